"""The HTTP door of the exporter: call the verb, answer its report."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta

from django.utils import timezone
from rest_framework.decorators import api_view, permission_classes
from rest_framework.request import Request
from rest_framework.response import Response

from exporter.export import export
from exporter.place import place
from memory.auth import caller, needs
from memory.doors import described
from memory.errors import Forbidden

#: How long an export goes on that somebody waits for; what is left is `pending`.
# Why: clients and the servers between often wait for 30 seconds, and a first export of a large
# memory takes longer.
ANSWER_SECONDS = 20


@described("export", methods=("POST",))
@api_view(["POST"])
@permission_classes([needs("operate")])
def export_vault(request: Request) -> Response:
    """Bring the vault up to date, as far as an answer may wait. A vault on this disk is one
    person's: theirs alone may ask."""
    asker, _ = caller(request)
    whose = place().owner
    if asker.name != whose:
        raise Forbidden(f"The vault is {whose}'s, and this key stands for {asker.name}.")
    until = timezone.now() + timedelta(seconds=ANSWER_SECONDS)
    return Response(asdict(export(trigger="api", until=until)))
