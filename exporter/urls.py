"""The path of the exporter's door: a public contract."""

from __future__ import annotations

from django.urls import path

from exporter import api

urlpatterns = [path("export", api.export_vault, name="export")]
