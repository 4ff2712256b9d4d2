"""Django's admin with our site in its place."""

from __future__ import annotations

from django.contrib.admin.apps import AdminConfig


class SiteConfig(AdminConfig):
    """Every `admin.site` of the process is ours."""

    default_site = "argus.site.ArgusSite"
