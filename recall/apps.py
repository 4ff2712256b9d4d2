"""The app that owns what an agent gets back."""

from django.apps import AppConfig


class RecallConfig(AppConfig):
    name = "recall"
