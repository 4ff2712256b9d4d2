"""An edit: a person puts a note into other words, and a new note takes its place.

Reads: note. Writes: raw_item (the person's own words), distilled_item, note (a new one; the old one
by retire), evidence, search_text, pin. Audits: dedup_verdict, decision, act, in the same
transaction. Verify: no note is ever changed in place; the new one stands on what its editor wrote,
word for word, and on all that bore the old one out. Knows nothing about pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from memory import gate, intake, rejected, verdicts
from memory.acts import record_act, tidy_reason
from memory.attribution import Registry, family
from memory.carrying import carry_holds
from memory.errors import Conflict, RefusedError
from memory.keeping import clean_lines, gone, mine
from memory.llm.ports import Candidate, Passage, Usage
from memory.making import Unit, make_note
from memory.models import (
    Decision,
    DedupVerdict,
    DistilledItem,
    Note,
    Pin,
    Principal,
    RawItem,
)
from memory.searchtexts import index_notes
from memory.text.identity import sha256
from memory.text.words import meaningful, normalise
from memory.verdicts import PERSON

#: Source of what people write on pages and in commands.
SOURCE = "review"

#: Where a person's words are refused, what the gate's word for it means.
MEANS = {
    "shape": "a note needs a title and content, and not too much of it",
    "title": f"a title has {gate.TITLE_CHARACTERS_MAX} characters at most",
    "grounding": "these words are too few to say anything",
    "poison": "this reads like an error message or a refusal, not like something known",
    "rejected": "this was refused for good: lift that first",
    "injection": "this gives orders to an agent",
    "secret": "this holds a secret",
}


@dataclass(frozen=True)
class Words:
    """What a person wrote, cleaned: `body` is how it is captured, and holds both."""

    title: str
    content: str

    @property
    def body(self) -> str:
        return f"{self.title}\n{self.content}"

    @property
    def quote(self) -> str:
        """What of it bears the note out: the content, with the title where it is short."""
        short = meaningful(self.content) < gate.QUOTE_TOKENS_MIN
        return self.body if short else self.content


@transaction.atomic
def edit_note(
    note_id: UUID, *, title: str, content: str, by: Principal, now: datetime, reason: str = ""
) -> Note:
    """Put a note into other words: a new note takes its place, and the old one is retired.

    The person's words are captured first and are evidence of the new note, beside all that bore the
    old one out. Nothing else changes: project, times, confidence, who may see it. The verdict that
    says so can be undone (`review.holds.undo`), and approved again. What waits for a decision about
    the old note waits about the new one.

    Raises NotFound for a note that `by` may not decide, Conflict with who and when for one that is
    not live any more, RefusedError (with the gate's reason) for words that are no note.
    """
    said = tidy_reason(reason)
    old = _live(note_id, by=by, now=now)
    words = Words(" ".join(clean_lines(title).split()), clean_lines(content).strip())
    _check(words, old, now=now)
    item = _capture(words, old, by=by, now=now)
    new = _renewed(words, item, old, now=now)
    DistilledItem.objects.get_or_create(raw_item=item, defaults={"distilled_at": now})
    row = DedupVerdict.objects.create(
        owner=old.owner,
        note=new,
        target=old,
        verdict="refine",
        status="approved",
        model_asked=PERSON,
        model_real=PERSON,
        decided_by=by,
        decided_at=now,
        created_at=now,
    )
    verdicts.apply(row, now=now)
    Decision.objects.create(
        verdict=row,
        principal=by,
        action="edit",
        reason=said,
        status_before="pending",
        status_after="approved",
        created_at=now,
    )
    # Whoever pinned what it said pinned it: a person's wish outlives the wording.
    pins = Pin.objects.filter(note=old)
    Pin.objects.bulk_create(
        [Pin(principal_id=one.principal_id, note=new, created_at=one.created_at) for one in pins]
    )
    carry_holds(old, new, by=by, now=now)
    index_notes(only=[new.pk])
    detail = {"new": str(new.pk), "verdict": row.pk, "raw_item": item.pk}
    record_act(by, "edit", "note", old.pk, now=now, reason=said, detail=detail)
    return new


def _check(words: Words, old: Note, *, now: datetime) -> None:
    """The write gate for a person's words. Raises RefusedError."""
    if (words.title, words.content) == (old.title, old.content):
        raise RefusedError("nothing was changed", reason="same")
    passage = Passage(0, "user", words.body, now)
    unwanted = rejected.among(old.owner_id, [words.content])
    judged = gate.judge(_candidate(words, old), [passage], unwanted=unwanted)
    if isinstance(judged, gate.Rejection):
        why = MEANS.get(judged.reason, judged.reason)
        detail = f" ({judged.detail})" if judged.detail else ""
        raise RefusedError(f"{why}{detail}", reason=judged.reason)
    same = (
        Note.objects.as_pipeline()
        .live(now)
        .filter(owner=old.owner, content_key=_content_key(words), level=old.level)
        .filter(Q(project__in=family(old.project_id)) if old.project_id else Q(project=None))
        .exclude(pk=old.pk)
    )
    if (twin := same.values_list("pk", flat=True).first()) is not None:
        raise RefusedError(
            f"note {twin} says the same already: retire this one instead", reason="duplicate"
        )


def _candidate(words: Words, old: Note) -> Candidate:
    return Candidate(
        title=words.title,
        content=words.content,
        source_ref=words.quote,
        importance=old.importance,
        keywords=tuple(_still_said(old.keywords, words, old)),
        tags=tuple(old.tags),
        context=old.context,
        memory_kind=old.memory_kind,
    )


def _still_said(keywords: Sequence[str], words: Words, old: Note) -> list[str]:
    """The keywords without those that stood in the old words and stand in the new ones no more."""
    before, after = normalise(f"{old.title}\n{old.content}"), normalise(words.body)
    return [
        one for one in keywords if normalise(one) in after or normalise(one) not in before
    ]  # fmt: skip


def _content_key(words: Words) -> str:
    return sha256(normalise(words.content))


def _capture(words: Words, old: Note, *, by: Principal, now: datetime) -> RawItem:
    """The person's words as a raw item of the note's owner, keyed like any other.

    Not by the stage: it would take these words for an echo of what recall put out, as they mostly
    are what the old note said. Raises RefusedError for what no raw item may hold.
    """
    posted = intake.Incoming(
        source=SOURCE,
        kind="synthesis",
        role="user",
        body=words.body,
        project=old.project.name if old.project else "",
        original_timestamp=now,
        metadata={"by": by.name, "edits": str(old.pk)},
    )
    ready = intake.judge(0, posted, registry=Registry.load(), now=now)
    if isinstance(ready, intake.Refusal) or ready.body != words.body:
        why = ready.reason if isinstance(ready, intake.Refusal) else "private"
        raise RefusedError(f"these words cannot be kept as they are: {why}", reason=why)
    known = RawItem.objects.as_pipeline().filter(owner=old.owner, dedup_key=ready.dedup_key).first()
    if known is not None:
        raise Conflict("these very words were just written: read the list of notes again")
    made: RawItem = RawItem.objects.create(
        owner=old.owner,
        visibility=old.visibility,
        confidentiality=old.confidentiality,
        source=SOURCE,
        kind="synthesis",
        role="user",
        body=ready.body,
        project=old.project,
        project_method=ready.attributed.method,
        occurred_at=ready.occurred_at,
        captured_at=now,
        metadata=ready.item.metadata,
        flags=ready.flags,
        sha256=sha256(ready.body),
        dedup_key=ready.dedup_key,
        copy_key=ready.copy_key,
        near_key=ready.near_key,
    )
    return made


def _renewed(words: Words, item: RawItem, old: Note, *, now: datetime) -> Note:
    """The new note, saved, with the edge to the person's words. What it says was so since when the
    old one said it was: an edit corrects words."""
    passage = Passage(item.pk, item.role, item.body, item.occurred_at, item.kind)
    unit = Unit(f"item:{item.pk}", (passage,), {item.pk: item}, item)
    grounded = gate.judge(_candidate(words, old), unit.passages)
    assert isinstance(grounded, gate.Grounded), grounded
    note, edge = make_note(unit, grounded, Usage(PERSON, PERSON), check=None, run=None, now=now)
    note.level, note.said_by, note.session = old.level, "user", old.session
    note.confidence, note.valid_from = old.confidence, old.valid_from
    edge.origin = "edit"
    note.save(force_insert=True)
    edge.save(force_insert=True)
    return note


def _live(note_id: UUID, *, by: Principal, now: datetime) -> Note:
    note = mine(note_id, by=by)
    if note.deleted_at is not None:
        raise Conflict(gone(note))
    if not Note.objects.as_pipeline().live(now).filter(pk=note.pk).exists():
        raise Conflict(f"note {note.pk} does not hold now: only what is live is edited")
    return note
