"""The HTTP doors of recall: parse once, call one verb, answer its result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

from django.conf import settings
from django.utils import timezone
from pydantic import Field, TypeAdapter
from rest_framework.decorators import api_view, parser_classes, permission_classes
from rest_framework.request import Request
from rest_framework.response import Response

from memory.auth import caller, needs
from memory.doors import CappedJSONParser, body, described, parse
from recall.context import recall_context
from recall.links import open_note
from recall.notes import recall_notes

#: Characters of a session's name and of a path.
# Why: the ledger's index holds the session, and an index row of Postgres ends at 2,700 bytes; a
# path ends at 4,096 on Linux.
SESSION_CHARACTERS_MAX = 512
PATH_CHARACTERS_MAX = 4_096

Session = Annotated[str, Field(max_length=SESSION_CHARACTERS_MAX)]
Folder = Annotated[str, Field(max_length=PATH_CHARACTERS_MAX)]


@dataclass(frozen=True)
class Prompt:
    """A prompt to recall for; `floor` may raise the server's, and lower it with scope operate."""

    query: str
    cwd: Folder = ""
    session: Session = ""
    floor: Annotated[float, Field(ge=0, le=10)] | None = None


@dataclass(frozen=True)
class Place:
    """Where a session starts."""

    cwd: Folder = ""
    session: Session = ""


PROMPT = TypeAdapter(Prompt)
PLACE = TypeAdapter(Place)

#: Recalled text is one person's and of this moment.
HEADERS = {"Cache-Control": "private, no-store"}


@described("recall_notes_post", methods=("POST",), body=PROMPT)
@described("recall_notes", methods=("GET",), query=PROMPT)
@api_view(["POST", "GET"])
@permission_classes([needs("recall")])
@parser_classes([CappedJSONParser])
def notes_for_prompt(request: Request) -> Response:
    """Notes for a prompt, or silence, with the reason for either."""
    given = body(request) if request.method == "POST" else request.query_params.dict()
    prompt = parse(PROMPT, given)
    recalled = recall_notes(
        prompt.query,
        principal=caller(request)[0],
        session=prompt.session,
        cwd=prompt.cwd,
        floor=_allowed_floor(request, prompt.floor),
        now=timezone.now(),
    )
    return Response(recalled.as_json(), headers=HEADERS)


def _allowed_floor(request: Request, floor: float | None) -> float | None:
    if floor is None or "operate" in caller(request)[1].scopes:
        return floor
    return max(floor, settings.ARGUS.recall_floor)


@described("recall_context", methods=("GET",), query=PLACE)
@api_view(["GET"])
@permission_classes([needs("recall")])
def context_for_session(request: Request) -> Response:
    """The notes a session should know from its start."""
    place = parse(PLACE, request.query_params.dict())
    context = recall_context(
        principal=caller(request)[0], cwd=place.cwd, session=place.session, now=timezone.now()
    )
    return Response(context.as_json(), headers=HEADERS)


@described("recall_note", methods=("GET",))
@api_view(["GET"])
@permission_classes([needs("recall")])
def note_by_id(request: Request, note_id: UUID) -> Response:
    """One note with its evidence and links; somebody else's answers 404."""
    opened = open_note(note_id, principal=caller(request)[0], now=timezone.now())
    return Response(opened, headers=HEADERS)
