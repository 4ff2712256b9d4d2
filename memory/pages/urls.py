"""The addresses of memory's pages, below the admin site."""

from __future__ import annotations

from django.urls import path

from memory.pages import audit, episodes, findings, items, keys, projects, runs

urlpatterns = [
    path("episodes/", episodes.episodes, name="episodes"),
    path("episodes/<int:pk>/", episodes.episode, name="episode"),
    path("episodes/<int:pk>/redistill", episodes.redistill, name="episode-redistill"),
    path("episodes/<int:pk>/apply", episodes.apply, name="episode-apply"),
    path("episodes/<int:pk>/drop", episodes.drop, name="episode-drop"),
    path("items/<int:pk>/", items.item, name="item"),
    path("runs/<int:pk>/", runs.run, name="run"),
    path("runs/start/<str:stage>", runs.start, name="run-start"),
    path("runs/<int:pk>/cancel", runs.cancel, name="run-cancel"),
    path("projects/", projects.projects, name="projects"),
    path("projects/<int:pk>/", projects.project, name="project"),
    path("projects/<int:pk>/<str:verb>", projects.change, name="project-change"),
    path("keys/", keys.keys, name="keys"),
    path("keys/make", keys.make, name="key-make"),
    path("keys/<int:pk>/revoke", keys.revoke, name="key-revoke"),
    path("audit/", audit.audit, name="audit"),
    path("findings/", findings.findings, name="findings"),
]
