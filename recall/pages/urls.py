"""The addresses of recall's pages, below the admin site."""

from __future__ import annotations

from django.urls import path

from recall.pages import ask, injections, notes

urlpatterns = [
    path("notes/", notes.notes, name="notes"),
    path("notes/<uuid:pk>/", notes.note, name="note"),
    path("notes/<uuid:pk>/edit", notes.edit, name="note-edit"),
    path("notes/<uuid:pk>/retire", notes.retire, name="note-retire"),
    path("notes/<uuid:pk>/restore", notes.restore, name="note-restore"),
    path("notes/<uuid:pk>/pin", notes.pin, name="note-pin"),
    path("notes/<uuid:pk>/unpin", notes.unpin, name="note-unpin"),
    path("notes/<uuid:pk>/feedback", notes.feedback, name="note-feedback"),
    path("injections/", injections.injections, name="injections"),
    path("injections/floors/", injections.floors, name="floors"),
    path("injections/floors/save", injections.save_floors, name="floors-save"),
    path("injections/<int:pk>/", injections.injection, name="injection"),
    path("injections/<int:pk>/feedback", injections.feedback, name="injection-feedback"),
    path("ask/", ask.ask, name="ask"),
]
