"""Distill a unit again: ask anew, show what would change, and do it when a person says so.

Nothing changes before that: what the distiller says now is a proposal, beside the notes there are.
Reads: episode, raw_item, note. Writes: proposal; applied: note, evidence, gate_rejection.
Audits: stage_run, llm_call, act. Verify: applied, the unit has the notes that were shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cached_property
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from memory import rejected
from memory.acts import record_act
from memory.audit import Clock, beat, close_run
from memory.errors import ArgusError, Conflict, NotFound, RefusedError
from memory.gate import Grounded, Rejection, said_again
from memory.llm.choice import distiller
from memory.llm.kept import asked_anew
from memory.llm.ports import Candidate, Check, Draft, Origin, Usage
from memory.making import Judged, Unit, judge, load, make_note, replace_notes, write_rejections
from memory.models import Episode, Evidence, Note, Principal, Proposal, StageRun
from memory.runs import ask_for, take
from memory.searchtexts import index_notes
from memory.text.identity import sha256

#: The name of such a run.
STAGE = "redistill"

#: The proposal for a unit that nobody decided yet; there is one at most.
# Why SQL: every page of an episode asks it, and the queryset takes longer to put together.
WAITING = "SELECT * FROM memory_proposal WHERE unit = %s AND status = 'open'"

#: What a note of a unit would become.
FATES = ("come", "go", "back", "stay")


@dataclass(frozen=True)
class Proposed:
    """A note as the distiller says it now, with its evidence; `replaces` is a note that goes and
    cites some of the same words."""

    note: Note
    edge: Evidence
    replaces: Note | None = None


@dataclass(frozen=True)
class Changes:
    """What applying a proposal would do. `asleep`: made again, but retired for another reason, and
    so it stays; `own`: accepted by a person, and so it stays."""

    come: tuple[Proposed, ...]
    go: tuple[Note, ...]
    back: tuple[Note, ...]
    stay: tuple[Note, ...]
    asleep: tuple[Note, ...]
    own: tuple[Note, ...]

    @property
    def nothing(self) -> bool:
        return not (self.come or self.go or self.back)

    @cached_property
    def seen(self) -> str:
        """A name for exactly these changes: who applies says what was shown."""
        ids = [sorted(str(one.note.pk) for one in self.come)]
        ids += [sorted(str(one.pk) for one in some) for some in (self.go, self.back, self.stay)]
        return sha256(repr(ids))[:16]


def start(episode_id: int, *, by: Principal, now: datetime, trigger: str = "page") -> StageRun:
    """Put the asking into the queue. Asking again while it goes on gives the run that there is.

    Raises NotFound, RefusedError when the episode was not distilled yet, Conflict while there is a
    proposal that nobody decided.
    """
    episode = _decidable(episode_id, by)
    if episode.distilled_at is None:
        raise RefusedError(f"{episode.unit_key} waits to be distilled for the first time")
    waiting = open_proposal(episode.unit_key)
    if waiting is not None:
        who = f"{waiting.principal} at {waiting.created_at:%Y-%m-%d %H:%M:%S}Z"
        raise Conflict(f"{who} asked already, and that is to be decided first")
    return ask_for(
        STAGE,
        "memory.tasks.run_redistill",
        episode.unit_key,
        by.pk,
        by=by,
        now=now,
        trigger=trigger,
        progress={"unit": episode.unit_key, "episode": episode.pk},
        detail={"unit": episode.unit_key},
    )


def propose(
    run_id: int, unit_key: str, principal_id: int, *, clock: Clock = timezone.now
) -> int | None:
    """Ask the distiller anew and keep what passes the gate, in the worker; the proposal's id.

    None when the run was cancelled, when what is asked is away, or when its answer is of no use:
    the run then says which.
    """
    run = take(run_id, now=clock())
    if run is None:
        return None
    by = Principal.objects.get(pk=principal_id)
    try:
        proposal = _propose(run, unit_key, by, clock)
    except Stopped:
        close_run(run, status="cancelled", now=clock())
        return None
    except ArgusError as error:
        message = f"{type(error).__name__}: {error}"
        close_run(run, status="failed", error=message, now=clock())
        # What is away is tried again when a person says so: nothing waits for it.
        return None
    except BaseException as error:  # As in `audit.stage`: the row is closed whatever happened.
        close_run(run, status="failed", error=f"{type(error).__name__}: {error}", now=clock())
        raise
    report = {
        "proposal": proposal.pk,
        "notes": len(proposal.notes),
        "refused": len(proposal.refused),
    }
    close_run(run, status="done", report=report, now=clock())
    return proposal.pk


class Stopped(ArgusError):
    """Somebody said to stop."""


def _propose(run: StageRun, unit_key: str, by: Principal, clock: Clock) -> Proposal:
    def pulse() -> None:
        if beat(run):
            raise Stopped

    unit = load(unit_key)
    if unit is None:
        raise NotFound(f"{unit_key} is gone")
    confidentiality = unit.source.confidentiality
    origin = Origin(STAGE, unit.key, confidentiality, run.pk, pulse=pulse)
    pulse()
    with asked_anew(f"run {run.pk}"):
        draft = distiller(confidentiality).distill(unit.passages, origin=origin)
        judged = judge(draft, unit, origin)
    pulse()
    fields = row_of(unit, draft, judged) | {"principal": by, "run": run, "created_at": clock()}
    with transaction.atomic():
        made: Proposal
        made, fresh = Proposal.objects.as_pipeline().get_or_create(
            unit=unit.key, status="open", defaults=fields
        )
    if not fresh:
        raise Conflict(f"there is a proposal for {unit.key} already")
    return made


def row_of(unit: Unit, draft: Draft, judged: Judged) -> dict[str, Any]:
    """What a proposal keeps of an answer, but for who asked and when."""
    return {
        "owner": unit.source.owner,
        "notes": [
            asdict(grounded.candidate)
            | {
                "item": grounded.passage.item_id,
                "start": grounded.start,
                "end": grounded.end,
                "quote": grounded.quote,
                "question": check.question if check else "",
                "answer": check.answer if check else "",
            }
            for grounded, check in judged.kept
        ],
        "refused": [
            {"candidate": one.as_json(), "reason": one.reason, "detail": one.detail}
            for one in judged.refused
        ],
        "model_asked": draft.usage.model_asked,
        "model_real": draft.usage.model_real,
        "prompt_version": draft.usage.prompt_version,
    }


def open_proposal(unit_key: str) -> Proposal | None:
    """What waits for a decision about this unit. Ask only for a unit that may be seen."""
    return next(iter(Proposal.objects.raw(WAITING, [unit_key])), None)


def is_of(proposal_id: int, unit_key: str) -> bool:
    """Whether the proposal is one for this unit. Ask only for a unit that may be seen."""
    return Proposal.objects.as_pipeline().filter(pk=proposal_id, unit=unit_key).exists()


def changes(proposal: Proposal, *, now: datetime) -> Changes:
    """What applying the proposal would do to the unit's notes as they are now. Raises NotFound."""
    unit = load(proposal.unit)
    if unit is None:
        raise NotFound(f"{proposal.unit} is gone")
    return compare(pairs_of(proposal, unit, now=now), notes_of(proposal.unit))


def notes_of(unit_key: str) -> list[Note]:
    """Every note of a unit, the retired ones too, with its evidence."""
    rows = Note.objects.as_pipeline().filter(unit_key=unit_key).defer("embedding")
    return list(rows.prefetch_related("evidence", "accepted").order_by("valid_from", "pk"))


def pairs_of(proposal: Proposal, unit: Unit, *, now: datetime) -> list[tuple[Note, Evidence]]:
    """The notes of the proposal, made but not saved; each id once, as it is written. Without what
    a person forbade since."""
    passages = {passage.item_id: passage for passage in unit.passages}
    usage = Usage(proposal.model_asked, proposal.model_real, proposal.prompt_version)
    made: dict[UUID, tuple[Note, Evidence]] = {}
    for row in _allowed(proposal)[0]:
        passage = passages.get(row["item"])
        if passage is None:
            raise Conflict(f"{proposal.unit} is no longer what it was: a part of it is gone")
        grounded = Grounded(_candidate(row), passage, row["start"], row["end"])
        check = Check(True, row["question"], row["answer"], usage) if row["question"] else None
        note, edge = make_note(unit, grounded, usage, check=check, run=proposal.run, now=now)
        made.setdefault(note.pk, (note, edge))
    return list(made.values())


def _allowed(proposal: Proposal) -> tuple[list[dict[str, Any]], list[Rejection]]:
    """Of the notes of a proposal, those that may be learned now, and the others as the gate refuses
    them: it was asked when the proposal was made, and a person may have forbidden a fact since."""
    unwanted = rejected.among(proposal.owner_id, [row["content"] for row in proposal.notes])
    kept: list[dict[str, Any]] = []
    refused: list[Rejection] = []
    for row in proposal.notes:
        if fact := said_again(row["content"], unwanted):
            refused.append(Rejection(_candidate(row), "rejected", str(fact)))
        else:
            kept.append(row)
    return kept, refused


def _candidate(row: dict[str, Any]) -> Candidate:
    return Candidate(
        title=row["title"],
        content=row["content"],
        source_ref=row["source_ref"],
        importance=row["importance"],
        keywords=tuple(row["keywords"]),
        tags=tuple(row["tags"]),
        context=row["context"],
        memory_kind=row["memory_kind"],
    )


def compare(pairs: Sequence[tuple[Note, Evidence]], before: Sequence[Note]) -> Changes:
    """As `making.replace_notes` does it: nothing made leaves everything as it is. Pure."""
    made = {note.pk for note, _ in pairs}
    known = {note.pk for note in before}
    kept = [note for note in before if note.deleted_at is None]
    own = [note for note in kept if note.pk not in made and note.accepted.all()]
    go = [note for note in kept if note.pk not in made and note not in own] if made else []
    gone = [note for note in before if note.deleted_at is not None and note.pk in made]
    come = [pair for pair in pairs if pair[0].pk not in known]
    return Changes(
        come=tuple(Proposed(note, edge, _replaced(edge, go)) for note, edge in come),
        go=tuple(go),
        back=tuple(note for note in gone if note.retired_reason == "redistilled"),
        stay=tuple(note for note in kept if note not in go and note not in own),
        asleep=tuple(note for note in gone if note.retired_reason != "redistilled"),
        own=tuple(own),
    )


def _replaced(edge: Evidence, go: Sequence[Note]) -> Note | None:
    """The note that goes whose evidence lies over this one's most."""
    assert edge.start is not None and edge.end is not None
    best: tuple[int, Note | None] = (0, None)
    for note in go:
        for old in note.evidence.all():
            if old.raw_item_id != edge.raw_item_id or old.start is None or old.end is None:
                continue
            common = min(edge.end, old.end) - max(edge.start, old.start)
            if common > best[0]:
                best = (common, note)
    return best[1]


def apply(proposal_id: int, *, seen: str, by: Principal, now: datetime) -> Changes:
    """Do what was shown (`Changes.seen`): the unit's notes are replaced as by a first distilling.

    Raises NotFound, and Conflict when somebody decided, or when the notes changed since.
    """
    with transaction.atomic():
        proposal = _decide(proposal_id, "applied", by=by, now=now)
        unit = load(proposal.unit)
        if unit is None:
            raise NotFound(f"{proposal.unit} is gone")
        locked = Note.objects.as_pipeline().filter(unit_key=proposal.unit).order_by("pk")
        list(locked.select_for_update(no_key=True).values_list("pk", flat=True))
        pairs = pairs_of(proposal, unit, now=now)
        done = compare(pairs, notes_of(proposal.unit))
        if done.seen != seen:
            raise Conflict("the notes of this unit changed since: look at it again")
        replace_notes(unit, pairs, now=now)
        usage = Usage(proposal.model_asked, proposal.model_real, proposal.prompt_version)
        refused = [
            Rejection(_candidate(row["candidate"]), row["reason"], row["detail"])
            for row in proposal.refused
        ]
        refused += _allowed(proposal)[1]
        write_rejections(unit, refused, usage, run=proposal.run, now=now)
        counts = {fate: len(getattr(done, fate)) for fate in FATES}
        detail = {"proposal": proposal.pk, **counts}
        record_act(by, STAGE, "unit", proposal.unit, now=now, detail=detail)
    # Found by its words at once; its vector comes with the next run of `embed`.
    index_notes()
    return done


def drop(proposal_id: int, *, by: Principal, now: datetime, reason: str = "") -> Proposal:
    """Leave the notes as they are. Raises NotFound, and Conflict when somebody decided."""
    with transaction.atomic():
        proposal = _decide(proposal_id, "dropped", by=by, now=now)
        detail = {"proposal": proposal.pk}
        record_act(by, "drop", "unit", proposal.unit, now=now, reason=reason, detail=detail)
    return proposal


def _decide(proposal_id: int, status: str, *, by: Principal, now: datetime) -> Proposal:
    """Close an open proposal, under its lock."""
    rows = Proposal.objects.as_pipeline().select_for_update(of=("self",), no_key=True)
    proposal: Proposal | None = rows.filter(pk=proposal_id).select_related("run").first()
    if proposal is None:
        raise NotFound(f"no proposal {proposal_id}")
    if not Episode.objects.decidable_by(by).filter(unit_key=proposal.unit).exists():
        raise NotFound(f"no proposal {proposal_id}")
    if proposal.status != "open":
        who = f"{proposal.decided_by} at {proposal.decided_at:%Y-%m-%d %H:%M:%S}Z"
        raise Conflict(f"this was {proposal.status} by {who}")
    proposal.status, proposal.decided_by, proposal.decided_at = status, by, now
    proposal.save(update_fields=["status", "decided_by", "decided_at"])
    return proposal


def _decidable(episode_id: int, by: Principal) -> Episode:
    found: Episode | None = Episode.objects.decidable_by(by).filter(pk=episode_id).first()
    if found is None:
        raise NotFound(f"no episode {episode_id}")
    return found
