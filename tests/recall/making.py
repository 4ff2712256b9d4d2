"""Rows for the tests of recall: people, projects, notes with their vectors, keys."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from django.test import Client

from memory.access import create_key, principal
from memory.llm.minilm import shared
from memory.models import (
    Evidence,
    Group,
    Note,
    Principal,
    Project,
    RawItem,
    Session,
    TurnVector,
)
from memory.searchtexts import index_items, index_notes
from memory.text.identity import dedup_key, sha256
from memory.text.words import normalise

NOW = datetime(2026, 8, 1, 12, 0, tzinfo=UTC)


@dataclass(frozen=True)
class People:
    """Alice owns, Bob shares a group with her, Charlie is a stranger."""

    alice: Principal
    bob: Principal
    charlie: Principal


def people() -> People:
    alice, bob, charlie = (principal(name) for name in ("alice", "bob", "charlie"))
    group = Group.objects.create(name="crew")
    alice.groups.add(group)
    bob.groups.add(group)
    return People(alice, bob, charlie)


@cache
def vector(text: str) -> list[float]:
    """What the default embedder makes of a text."""
    return shared().encode(text)


def unsaved(owner: Principal, content: str, *, project: str = "", **fields: Any) -> Note:
    """A note as distill and embed would leave it; `embedding=None` leaves it without a vector."""
    title = fields.pop("title", content[:80])
    context = fields.pop("context", "")
    made: dict[str, Any] = {
        "id": uuid.uuid4(),
        "owner": owner,
        "title": title,
        "content": content,
        "context": context,
        "said_by": "user",
        "project": Project.objects.get_or_create(name=project)[0] if project else None,
        "unit_key": f"test:{uuid.uuid4()}",
        "content_key": sha256(normalise(content)),
        "valid_from": NOW - timedelta(days=30),
        "created_at": NOW - timedelta(days=30),
    }
    if "embedding" not in fields:
        made["embedding"] = vector(content)
    if fields.get("embedding", True) is not None:
        made |= {"embedding_model": shared().name, "embedded_at": NOW}
    return Note(**made | fields)


def note(owner: Principal, content: str, **fields: Any) -> Note:
    made = unsaved(owner, content, **fields)
    made.save(force_insert=True)
    index_notes()
    return made


def notes(owner: Principal, contents: Iterable[str], **fields: Any) -> list[Note]:
    made = Note.objects.bulk_create([unsaved(owner, one, **fields) for one in contents])
    while index_notes():
        pass
    return made


def turn(owner: Principal, body: str, **fields: Any) -> RawItem:
    """A raw item as capture would leave it."""
    at = fields.pop("occurred_at", NOW - timedelta(days=30))
    session = fields.pop("session", "s1")
    made = {
        "owner": owner, "source": "claude-code", "role": "user", "body": body, "session": session,
        "occurred_at": at, "captured_at": at, "sha256": sha256(body),
        "dedup_key": dedup_key(session, at, "user", body),
    }  # fmt: skip
    return RawItem.objects.create(**made | fields)


def said(owner: Principal, body: str, *, project: str = "", **fields: Any) -> RawItem:
    """A raw item as embed would leave it: found by its words and by what it means."""
    if project:
        fields["project"] = Project.objects.get_or_create(name=project)[0]
    session = fields.setdefault("session", f"session of {body[:40]}")
    Session.objects.get_or_create(owner=owner, source="claude-code", key=session)
    made = turn(owner, body, **fields)
    while index_items():
        pass
    TurnVector.objects.create(raw_item=made, model=shared().name, embedding=vector(body))
    return made


def evidence(of: Note, item: RawItem, quote: str) -> Evidence:
    start = item.body.index(quote)
    return Evidence.objects.create(
        note=of, raw_item=item, quote=quote, start=start, end=start + len(quote),
        sha256=sha256(quote),
    )  # fmt: skip


def client(owner: Principal, *scopes: str) -> Client:
    """A client with a key of this owner."""
    key, _ = create_key(owner=owner.name, scopes=scopes or ("recall",))
    return Client(headers={"authorization": f"Bearer {key}"})


def ids(rows: Sequence[Any]) -> list[str]:
    """Ids of notes or of a reply's notes, as strings, in order."""
    return [str(row["id"] if isinstance(row, dict) else row.pk) for row in rows]
