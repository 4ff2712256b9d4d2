"""Every address of Argus, put together from the apps'."""

from __future__ import annotations

import importlib.util

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path
from drf_spectacular.views import SpectacularAPIView

from argus import hookdoors, metrics, probes

handler404 = "argus.probes.not_found"
handler500 = "argus.probes.broken"

urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", probes.healthz),
    path("readyz", probes.readyz),
    path("metrics", metrics.metrics, name="metrics"),
    path("api/schema", SpectacularAPIView.as_view(), name="schema"),
    path("hook/", hookdoors.install, name="hook"),
    path(f"hook/{hookdoors.FILE}", hookdoors.client, name="hook-client"),
    path(f"hook/{hookdoors.FILE}.sha256", hookdoors.checksum, name="hook-checksum"),
    path("hook/here", hookdoors.here, name="hook-here"),
    path("hook/<str:client>/<str:event>", hookdoors.answer, name="hook-event"),
    *(
        path("", include(f"{app}.urls"))
        for app in ("memory", "review", "recall", "exporter")
        # Why asked: an app without pages has no addresses.
        if importlib.util.find_spec(f"{app}.urls")
    ),
    path("ui/", admin.site.urls),
]
