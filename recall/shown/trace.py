"""Where a note went: what it replaced and what replaced it, and everything that it influenced.

Reads: dedup_verdict, decision, evidence, injection, impact, act. Every row shown is one of the
querysets that came in: who may see what is settled before. Bounded, with counts to a bound.
Knows nothing about pages, and of files what it is told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Count, Max, Q

from memory import verdicts
from memory.heirs import HEIRS_MAX
from memory.lately import counted_to
from memory.models import (
    Act,
    Decision,
    DedupVerdict,
    Evidence,
    Note,
    Principal,
)
from memory.models.note import FEEDBACKS
from memory.outside import HeldFile
from memory.querysets import NoteQuerySet, OwnerQuerySet, read
from memory.web.marks import Piece, diff_words

#: Verdicts of a history that are shown, the latest first.
# Why: a note that swallowed hundreds of others must not cost their reading.
HISTORY_VERDICTS_MAX = 30

#: Rows of each list of the trace.
TRACE_ROWS_MAX = 20

#: Acts on a note that count for whoever did them alone.
PERSONAL = ("pin", "unpin", *FEEDBACKS)

#: Up to how many rows are counted.
# Why: "1,000+" tells a person as much as the number does.
COUNTED_MAX = 1_000

# Why SQL, here and below: the page of a note asks a dozen times, and each of these takes longer to
# put together by a queryset than to ask.

#: The verdicts about some notes. Parameters: the notes twice, verdicts that are known, how many.
VERDICTS = """
SELECT id, note_id, target_id, verdict, status, reasoning, model_real, created_at
FROM memory_dedupverdict
WHERE {seen} AND (note_id = ANY(%s) OR target_id = ANY(%s)) AND target_id IS NOT NULL
    AND verdict <> 'distinct' AND id <> ALL(%s::bigint[]) ORDER BY id DESC LIMIT %s
"""

#: What people decided about some verdicts, and who (`who`). Parameter: the verdicts.
DECISIONS = """
SELECT d.*, p.name AS who FROM memory_decision d JOIN memory_principal p ON p.id = d.principal_id
WHERE d.verdict_id = ANY(%s) ORDER BY d.id
"""

#: What a history reads of its notes. Parameter: the notes.
TEXTS = """
SELECT id, title, content, project_id, visibility, confidence, valid_from FROM memory_note
WHERE {seen} AND id = ANY(%s)
"""

#: What people did to a note or to some verdicts, and who (`who`); of what counts for whoever did it
#: alone, what one principal did.
ACTS = """
SELECT a.*, p.name AS who FROM memory_act a JOIN memory_principal p ON p.id = a.principal_id
WHERE (a.kind = 'note' AND a.reference = %(note)s
        AND (a.principal_id = %(me)s OR a.verb <> ALL(%(personal)s))
    OR a.kind = 'feed' AND a.reference = %(note)s AND a.principal_id = %(me)s
    OR a.kind = 'verdict' AND a.reference = ANY(%(verdicts)s))
ORDER BY a.id DESC LIMIT %(most)s
"""


@dataclass(frozen=True)
class Step:
    """One verdict of a history: both notes, which of them it keeps, and what differs."""

    row: DedupVerdict
    new: Note
    old: Note
    kept: Note
    before: Sequence[Piece]
    after: Sequence[Piece]
    decisions: Sequence[Decision]
    edit: bool


@dataclass(frozen=True)
class Session:
    """A session that was told the note, how often, and in which injection last."""

    name: str
    times: int
    last: int


@dataclass(frozen=True)
class Counted:
    """The first rows of something, and how many there are: "12", "1,000+"."""

    rows: Sequence[Any] = ()
    total: str = "0"

    def __bool__(self) -> bool:
        return bool(self.rows)


@dataclass(frozen=True)
class Trace:
    """What a note influenced. `retired`: the notes that went because of it, by verdicts that stand;
    `apart`: how often it was looked at and left alone; `files`: what holds it now of the files of
    who looks."""

    injections: Counted
    sessions: Counted
    children: Counted
    retired: Counted
    files: Sequence[HeldFile] = ()
    apart: int = 0


def history(note: Note, *, notes: NoteQuerySet) -> list[Step]:
    """The verdicts that made this note what it is and that ended it, oldest first, followed both
    ways, whether they stand or not (`memory.heirs` is the way of those that do); those between
    notes of `notes` alone. Verdicts that found nothing alike are left out."""
    seen: set[UUID] = {note.pk}
    edge: set[UUID] = {note.pk}
    rows: dict[int, DedupVerdict] = {}
    every = DedupVerdict.objects.as_pipeline()
    for _ in range(HEIRS_MAX):
        left = HISTORY_VERDICTS_MAX - len(rows)
        ends = list(edge)
        fresh = read(every, VERDICTS, ends, ends, list(rows), left) if left and ends else []
        if not fresh:
            break
        rows |= {row.pk: row for row in fresh}
        edge = {pk for row in fresh for pk in (row.note_id, row.target_id) if pk} - seen
        seen |= edge
    if not rows:
        return []
    told = {one.pk: one for one in read(notes, TEXTS, list(seen))}
    decided = Decision.objects.raw(DECISIONS, [list(rows)])
    decisions: dict[int, list[Decision]] = {pk: [] for pk in rows}
    for one in decided:
        decisions[one.verdict_id].append(one)
    steps = [_step(rows[pk], told, decisions[pk]) for pk in sorted(rows)]
    return [step for step in steps if step is not None]


def _texts(notes: NoteQuerySet) -> NoteQuerySet:
    return notes.select_related("project").defer("embedding", "context", "question", "answer")


def _step(
    row: DedupVerdict, told: Mapping[UUID, Note], decisions: Sequence[Decision]
) -> Step | None:
    new, old = told.get(row.note_id), told.get(row.target_id) if row.target_id else None
    if new is None or old is None:
        return None
    before, after = diff_words(_whole(old), _whole(new))
    kept = verdicts.effect(row.verdict, new, old).kept
    return Step(row, new, old, kept, before, after, decisions, verdicts.edits(row))


def _whole(note: Note) -> str:
    """Title and content, the title left out where the content begins with it."""
    bare = note.title.rstrip(".… ")
    return note.content if note.content.startswith(bare) else f"{note.title}\n{note.content}"


def trace(
    note: Note,
    *,
    notes: NoteQuerySet,
    injections: OwnerQuerySet,
    files: Sequence[HeldFile] = (),
) -> Trace:
    """Everything that came of this note, as far as these querysets reach; `files` are the files of
    who looks that hold it."""
    told = injections.filter(note_ids__contains=[note.pk])
    latest = told.select_related("impact", "project", "owner").defer("hits", "timings", "floors")
    retired, apart = _judged(note, notes)
    injected = counted(told, latest.order_by("-pk"))
    return Trace(
        injections=injected,
        sessions=_sessions(told, injected),
        children=_children(note, notes),
        retired=retired,
        files=files,
        apart=apart,
    )


def _sessions(told: OwnerQuerySet, injected: Counted) -> Counted:
    """The sessions of these injections, the one that was told last first."""
    if injected.total == str(len(injected.rows)):
        # All of them are here: latest first, so that the first of a session is its last.
        times = Counter(row.session for row in injected.rows if row.session)
        last: dict[str, int] = {}
        for row in injected.rows:
            last.setdefault(row.session, row.pk)
        found = [Session(name, many, last[name]) for name, many in times.items()]
    else:
        grouped = told.exclude(session="").order_by().values("session")
        rows = grouped.annotate(times=Count("pk"), last=Max("pk")).order_by("-last")
        found = [
            Session(one["session"], one["times"], one["last"]) for one in rows[: TRACE_ROWS_MAX + 1]
        ]
    more = "+" if len(found) > TRACE_ROWS_MAX else ""
    kept = found[:TRACE_ROWS_MAX]
    return Counted(kept, f"{len(kept)}{more}")


def _children(note: Note, notes: NoteQuerySet) -> Counted:
    """Notes that were made of this one."""
    edges = Evidence.objects.filter(parent=note).values("note")
    rows = notes.filter(pk__in=edges)
    return counted(rows, _texts(rows).order_by("-created_at", "-pk"))


def _judged(note: Note, notes: NoteQuerySet) -> tuple[Counted, int]:
    """The notes that standing verdicts retired for this one, and verdicts that changed nothing."""
    rows = DedupVerdict.objects.as_pipeline().filter(Q(note=note) | Q(target=note))
    apart = rows.filter(Q(verdict="distinct") | Q(status="rejected"))[:COUNTED_MAX].count()
    standing = rows.filter(status__in=("applied", "approved"), target__isnull=False)
    # Who stays is read from the two notes, so they come along; their vectors do not.
    pairs = standing.exclude(verdict="distinct").select_related("note", "target")
    read = ("project", "visibility", "valid_from", "confidence", "deleted_at")
    sides = [f"{side}__{name}" for side in ("note", "target") for name in read]
    pairs = pairs.only("verdict", "note", "target", *sides)
    gone: list[UUID] = []
    for row in pairs.order_by("-pk")[:COUNTED_MAX]:
        did = verdicts.effect(row.verdict, row.note, row.target)
        if did.kept.pk == note.pk and did.retired is not None and did.retired.deleted_at:
            gone.append(did.retired.pk)
    if not gone:
        return Counted(), apart
    return counted(notes.filter(pk__in=gone), _texts(notes.filter(pk__in=gone))), apart


def counted(rows: Any, shown: Any) -> Counted:
    """The first of `shown`, and a count of `rows` only where they go on."""
    found = list(shown[: TRACE_ROWS_MAX + 1])
    if len(found) <= TRACE_ROWS_MAX:
        return Counted(found, str(len(found)))
    counted = rows.order_by().values("pk")[: COUNTED_MAX + 1].count()
    return Counted(found[:TRACE_ROWS_MAX], counted_to(counted, COUNTED_MAX))


def acts_on(note: Note, steps: Sequence[Step], *, principal: Principal) -> list[Act]:
    """What people did to this note, latest first, verdicts about it among it. What others said of
    it, how well they knew it and whether they pinned it is theirs."""
    own = [str(step.row.pk) for step in steps if note.pk in (step.new.pk, step.old.pk)]
    asked = {
        "note": str(note.pk),
        "verdicts": own,
        "me": principal.pk,
        "personal": list(PERSONAL),
        "most": TRACE_ROWS_MAX,
    }
    return list(Act.objects.raw(ACTS, asked))
