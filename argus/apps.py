"""The roof: it has commands and settings, and no tables."""

from __future__ import annotations

from django.apps import AppConfig


class ArgusConfig(AppConfig):
    name = "argus"
    verbose_name = "Argus"
