"""Plain functions that make rows for tests: through the real verbs where there are any.

Alice owns, Bob shares a group with her, Charlie is a stranger. Nothing here asserts anything.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from memory.access import principal
from memory.envelope import SessionEnd
from memory.intake import Incoming
from memory.models import (
    DedupVerdict,
    Episode,
    Evidence,
    Group,
    Note,
    Principal,
    Project,
    RawItem,
    TurnVector,
)
from memory.searchtexts import index_notes
from memory.stages.capture import capture
from memory.stages.distill import distill
from memory.stages.segment import segment
from memory.text.identity import sha256
from memory.text.words import normalise
from memory.verdicts import CONFIDENCE_START
from tests.hashing_embedder import vector_of

#: When the stories of the tests begin.
T0 = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)

#: The model of vectors that are made here, and of the scripted embeddings server.
EMBED_MODEL = "scripted-embed"

_numbers = itertools.count(1)


# An episode of four turns, two of which hold what a model is asked to find.
QUOTE = "We moved the job queue from Redis to Postgres."
OTHER = "The staging server listens on port 8443 since Monday."
SAID = ["Why did the jobs get lost?", f"Found it. {QUOTE}", "And staging?", OTHER]


#: A talk of two questions and what is decided and true of a shop.
FACTS = [
    "Which database does the shop use now?",
    "We decided to use Postgres 18 for the shop, because MySQL lost orders.",
    "And where does staging run?",
    "The staging server runs on staging.example.org, port 8443.",
]


def at(minutes: float = 0, *, hours: float = 0, days: float = 0) -> datetime:
    """A moment after T0."""
    return T0 + timedelta(minutes=minutes, hours=hours, days=days)


def clock(now: datetime) -> Callable[[], datetime]:
    """A clock that stands."""
    return lambda: now


def three() -> tuple[Principal, Principal, Principal]:
    """Alice and Bob, who share a group, and Charlie, who is in none."""
    alice, bob, charlie = (principal(name) for name in ("alice", "bob", "charlie"))
    group("pair", alice, bob)
    return alice, bob, charlie


def group(name: str, *members: Principal) -> Group:
    made, _ = Group.objects.get_or_create(name=name)
    made.members.add(*members)
    return made


def project(name: str = "shop") -> Project:
    return Project.objects.get_or_create(name=name)[0]


def items(owner: Principal, *posted: Incoming, now: datetime | None = None) -> list[RawItem]:
    """Post these to capture; the raw items, in the order posted."""
    now = now or max(i.original_timestamp or T0 for i in posted)
    report = capture(posted, owner=owner, now=now)
    assert not report.refused, report.refused
    ids = [outcome.id for outcome in report.outcomes]
    rows = {row.pk: row for row in RawItem.objects.as_pipeline().filter(pk__in=ids)}
    return [rows[pk] for pk in ids if pk is not None]


def turns(
    owner: Principal,
    bodies: Sequence[str],
    *,
    session: str = "s1",
    start: datetime = T0,
    step_minutes: float = 1,
    now: datetime | None = None,
    **fields: Any,
) -> list[RawItem]:
    """The turns of a session, user and assistant by turns, so many minutes apart."""
    fields = {"source": "claude-code", "cwd": "/home/alice/src/shop"} | fields
    posted = [
        Incoming(
            body=body,
            session=session,
            role=("user", "assistant")[number % 2],
            original_timestamp=start + timedelta(minutes=step_minutes * number),
            **fields,
        )
        for number, body in enumerate(bodies)
    ]
    return items(owner, *posted, now=now)


def end_session(owner: Principal, session: str = "s1", *, now: datetime) -> None:
    """The client says that the session is over."""
    capture([], owner=owner, now=now, session_end=SessionEnd(session, "exit"))


def document(owner: Principal, body: str, *, when: datetime = T0, **fields: Any) -> RawItem:
    posted = Incoming(source="file", kind="document", body=body, original_timestamp=when, **fields)
    return items(owner, posted)[0]


def episode(owner: Principal, bodies: Sequence[str], **fields: Any) -> Episode:
    """A closed episode of these turns, by capture and segment."""
    made = turns(owner, bodies, **fields)
    later = made[-1].occurred_at + timedelta(hours=1)
    segment(clock=clock(later))
    found: Episode = Episode.objects.as_pipeline().get(turns__raw_item=made[0])
    return found


def distilled(owner: Principal, bodies: Sequence[str], **fields: Any) -> list[Note]:
    """The notes that the distiller in force makes of a closed episode of these turns."""
    closed = episode(owner, bodies, **fields)
    distill(clock=clock(closed.ended_at + timedelta(hours=1)))
    return list(Note.objects.as_pipeline().filter(episode=closed).order_by("valid_from", "pk"))


def note(
    owner: Principal,
    content: str,
    *,
    when: datetime = T0,
    created_at: datetime | None = None,
    session: str = "",
    embedded: bool = True,
    evidence: RawItem | None = None,
    **fields: Any,
) -> Note:
    """A note with evidence that bears it out, as distill leaves one; `embedded` as embed does.

    The turn it is taken from has its vector, as segment leaves one.
    """
    number = next(_numbers)
    item = (
        evidence
        or turns(
            owner,
            [f"Noted in passing, number {number}: {content}"],
            session=session or f"session {number}",
            start=when,
            cwd="",
        )[0]
    )
    TurnVector.objects.get_or_create(
        raw_item=item, model=EMBED_MODEL, defaults={"embedding": vector_of(item.body)}
    )
    created = created_at or when + timedelta(minutes=30)
    if embedded:
        fields = {
            "embedding": vector_of(content),
            "embedding_model": EMBED_MODEL,
            "embedded_at": created,
        } | fields
    fields = {
        "confidence": CONFIDENCE_START,
        "title": content[:80],
        "said_by": item.role,
        "unit_key": f"made:{number}",
    } | fields
    made = Note.objects.create(
        id=uuid.uuid4(),
        owner=owner,
        content=content,
        content_key=sha256(normalise(content)),
        session=item.session,
        valid_from=when,
        created_at=created,
        **fields,
    )
    start = item.body.index(content)
    Evidence.objects.create(
        note=made,
        raw_item=item,
        quote=content,
        start=start,
        end=start + len(content),
        sha256=sha256(content),
        created_at=created,
    )
    index_notes()
    return made


def verdict(new: Note, old: Note, kind: str = "supersede", **fields: Any) -> DedupVerdict:
    """A row as dedup writes it; it does nothing to the notes."""
    fields = {"status": "pending", "created_at": new.created_at} | fields
    return DedupVerdict.objects.create(
        owner=new.owner, note=new, target=old, verdict=kind, **fields
    )


def fresh(row: Note) -> Note:
    """The note as the database has it now."""
    found: Note = Note.objects.as_pipeline().get(pk=row.pk)
    return found
