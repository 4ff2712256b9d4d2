"""Who writes and who reads: principals, the groups they share, and their keys."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone


class Group(models.Model):
    """People who see each other's rows of visibility `team`."""

    name = models.TextField(unique=True)

    def __str__(self) -> str:
        return self.name


class Principal(models.Model):
    """One person: keys, web users and commands stand for one; identity is never an argument."""

    name = models.TextField(unique=True)
    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL
    )
    groups = models.ManyToManyField(Group, blank=True, related_name="members")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        # What people may do on the pages; `memory.roles` puts them together.
        permissions = [
            ("look", "May look at every page"),
            ("decide", "May decide what waits for a person"),
            ("operate", "May run stages, set parked units free and see to keys"),
            ("see_all", "May ask for the rows of all owners"),
            ("purge", "May remove raw items and all that derives from them, for ever"),
        ]

    #: What REST framework asks of whoever a request stands for.
    is_authenticated = True

    def __str__(self) -> str:
        return self.name


class AccessKey(models.Model):
    """A key of a principal; only its SHA-256 digest is stored.

    One that another key made can do no more than that one, makes none itself, and falls with it.
    """

    principal = models.ForeignKey(Principal, on_delete=models.PROTECT, related_name="keys")
    parent = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.PROTECT, related_name="children"
    )
    name = models.TextField(default="", blank=True)
    prefix = models.TextField()
    digest = models.TextField(unique=True)
    scopes = ArrayField(models.TextField())
    created_at = models.DateTimeField(default=timezone.now)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.prefix} ({self.principal})"
