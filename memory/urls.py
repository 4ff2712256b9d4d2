"""The paths of memory's doors: a public contract."""

from __future__ import annotations

from django.urls import path

from memory import api

urlpatterns = [
    path("capture", api.capture_items, name="capture"),
    path("keys", api.keys, name="keys"),
    path("segment", api.segment_sessions, name="segment"),
    path("process", api.process_pipeline, name="process"),
]
