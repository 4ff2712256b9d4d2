"""The app that owns what a person decides."""

from django.apps import AppConfig


class ReviewConfig(AppConfig):
    name = "review"
