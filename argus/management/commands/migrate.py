"""`migrate`, as the owner: the application's role may change no table."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import migrate

from argus.owner import OwnerProblem, as_owner, prepare


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with as_owner():
                prepare()
                super().handle(*args, **options)
        except OwnerProblem as problem:
            raise CommandError(str(problem)) from None
