"""The paths of recall's doors: a public contract."""

from __future__ import annotations

from django.urls import path

from recall import api

urlpatterns = [
    path("recall/context", api.context_for_session, name="recall-context"),
    path("recall/query", api.query, name="recall-query"),
    path("recall/notes", api.notes_for_prompt, name="recall-notes"),
    path("recall/skipped", api.skipped, name="recall-skipped"),
    path("recall/notes/<uuid:note_id>", api.note_by_id, name="recall-note"),
    path("recall/notes/<uuid:note_id>/feedback", api.feedback_on_note, name="recall-note-feedback"),
    path("recall/turns/<int:turn_id>", api.turn_by_id, name="recall-turn"),
]
