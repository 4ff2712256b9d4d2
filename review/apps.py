"""The app that owns what a person decides."""

from django.apps import AppConfig


class ReviewConfig(AppConfig):
    name = "review"

    def ready(self) -> None:
        """Offer what is to be checked of our tables."""
        from memory.verifying.offered import offer
        from review.verify import CHECKS

        offer(*CHECKS)
