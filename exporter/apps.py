"""The app that owns what leaves: the vault."""

from django.apps import AppConfig


class ExporterConfig(AppConfig):
    name = "exporter"

    def ready(self) -> None:
        """Offer what is to be checked of our tables, which files hold a note, and where all lie."""
        from exporter.lying import lying
        from exporter.place import folders
        from exporter.verify import CHECKS
        from memory.outside import offer_files, offer_folders
        from memory.verifying.offered import offer

        offer(*CHECKS)
        offer_files(lying)
        offer_folders(folders)
