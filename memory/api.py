"""The HTTP doors of memory: parse once, call one verb, answer its report."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

from django.conf import settings
from django.utils import timezone
from pydantic import Field, TypeAdapter, ValidationError
from rest_framework.decorators import api_view, parser_classes, permission_classes
from rest_framework.request import Request
from rest_framework.response import Response

from memory.access import derive_key, revoke_own
from memory.auth import caller, needs
from memory.doors import CappedJSONParser, TooLarge, body, described, faults, parse
from memory.doors import problem as problem
from memory.envelope import Miss, Range, Sender, SessionEnd
from memory.errors import RefusedError
from memory.intake import Incoming, Invalid
from memory.pipeline import process
from memory.stages.capture import BATCH_ITEMS_MAX, CaptureReport, Outcome, capture
from memory.stages.segment import segment
from memory.text.clean import clean_text
from memory.text.secrets import redact

#: Characters of a key's name.
# Why: it says which machine and which use, on a line of `manage.py keys`.
KEY_NAME_CHARACTERS_MAX = 200


@dataclass(frozen=True)
class Batch:
    """The envelope of a batch; its items are judged one by one."""

    items: list[Any]
    session_end: SessionEnd | None = None
    range: Range | None = None
    client: Sender | None = None
    misses: list[Miss] = field(default_factory=list)


@dataclass(frozen=True)
class KeyWanted:
    """A key for a narrower use: what it may, of what the asking one may."""

    scopes: list[str]
    name: Annotated[str, Field(max_length=KEY_NAME_CHARACTERS_MAX)] = ""


BATCH = TypeAdapter(Batch)
INCOMING = TypeAdapter(Incoming)
KEY_WANTED = TypeAdapter(KeyWanted)


@described("capture", methods=("POST",), body=TypeAdapter(Incoming | Batch))
@api_view(["POST"])
@permission_classes([needs("capture")])
@parser_classes([CappedJSONParser])
def capture_items(request: Request) -> Response:
    """Store one item (201 new, 200 known or refused) or a batch (200), each item judged alone."""
    data = body(request)
    batched = isinstance(data, dict) and "items" in data
    batch = parse(BATCH, data) if batched else Batch([data])
    if len(batch.items) > BATCH_ITEMS_MAX:
        raise TooLarge(f"{len(batch.items)} items, {BATCH_ITEMS_MAX} are allowed in one post.")
    owner, key = caller(request)
    publishes = "resolve" in key.scopes
    report = capture(
        [incoming(one, publishes=publishes) for one in batch.items],
        owner=owner,
        key=key,
        session_end=batch.session_end,
        client_range=asdict(batch.range) if batch.range else None,
        client=asdict(batch.client) if batch.client else None,
        misses=[asdict(miss) for miss in batch.misses],
        now=timezone.now(),
    )
    return Response(_batch_reply(report)) if batched else _single_reply(report, data)


def incoming(data: Any, *, publishes: bool) -> Incoming | Invalid:
    """Parse one item; what is wrong with it is a refusal of this item alone.

    What others see is a person's decision: only a key that may resolve posts beyond `private`.
    """
    try:
        item = INCOMING.validate_python(data)
        if item.visibility == "private" or publishes:
            return item
        detail = f"/visibility: {item.visibility} needs a key with the scope resolve"
    except ValidationError as error:
        detail = "; ".join(f"{one['pointer']}: {one['detail']}" for one in faults(error))
    try:
        return Invalid(detail, json.dumps(data, default=str))
    except RecursionError:
        return Invalid(detail)


def _single_reply(report: CaptureReport, data: Any) -> Response:
    outcome = report.outcomes[0]
    if outcome.refused == "invalid":
        parse(INCOMING, data)  # Answers with pointers what the receipt has as a sentence.
        raise RefusedError(outcome.detail)
    reply = {**asdict(outcome), "redacted": report.redacted, "receipt": report.receipt}
    return Response(reply, status=201 if outcome.id and not outcome.duplicate else 200)


def _batch_reply(report: CaptureReport) -> dict[str, Any]:
    return {
        "stored": report.stored,
        "duplicates": report.duplicates,
        "refused": report.refused,
        "redacted": report.redacted,
        "receipt": report.receipt,
        "items": [_item_reply(one) for one in report.outcomes],
    }


def _item_reply(outcome: Outcome) -> dict[str, Any]:
    if outcome.refused:
        return {"refused": outcome.refused, "detail": outcome.detail}
    return {"id": outcome.id, "duplicate": outcome.duplicate}


@described("segment", methods=("POST",))
@api_view(["POST"])
@permission_classes([needs("operate")])
def segment_sessions(request: Request) -> Response:
    """Close every episode that can be closed."""
    return Response(asdict(segment(trigger="api")))


@described("process", methods=("POST",))
@api_view(["POST"])
@permission_classes([needs("operate")])
def process_pipeline(request: Request) -> Response:
    """Run every stage once, in order."""
    return Response(process(trigger="api", seconds=settings.PROCESS_SECONDS).as_json())


@described("keys_revoke", methods=("DELETE",))
@described("keys_make", methods=("POST",), body=KEY_WANTED)
@described("keys_tell", methods=("GET",))
@api_view(["GET", "POST", "DELETE"])
@parser_classes([CappedJSONParser])
def keys(request: Request) -> Response:
    """GET: what the asking key may do. POST: a key that can do no more than the asking one, shown
    this once, and falls with it. DELETE: the asking key revokes itself, and those it made."""
    key = caller(request)[1]
    if request.method == "GET":
        return Response({"prefix": key.prefix, "name": key.name, "scopes": key.scopes})
    if request.method == "DELETE":
        revoke_own(key, now=timezone.now())
        return Response(status=204)
    wanted = parse(KEY_WANTED, body(request))
    name = redact(clean_text(wanted.name)[0]).text
    made, row = derive_key(key, scopes=wanted.scopes, name=name)
    shown = {"key": made, "prefix": row.prefix, "scopes": row.scopes}
    return Response(shown, status=201, headers={"Cache-Control": "private, no-store"})
