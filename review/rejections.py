"""Rejections: a person decides what the gate refused: accept it anyway, confirm, forbid, undo.

Reads: gate_rejection, episode, raw_item, dedup_verdict. Writes: note and evidence (accept), note
by retire (undo), rejected_fact (forbid, lift). Audits: rejection_decision and act, in the
transaction of the effect. What a page shows of a refusal is in `review.shown.rejections`.
Verify: an accepted note stands on words of the record like any other; of two people who decide at
once, one does and the other hears who and when.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime

from django.db import transaction
from django.db.models import Q

from memory import gate, making, rejected, verdicts
from memory.acts import record_act, tidy_reason
from memory.errors import Conflict, NotFound, RefusedError
from memory.llm.ports import Candidate, Usage
from memory.models import (
    DedupVerdict,
    GateRejection,
    Note,
    Principal,
    RejectionDecision,
)
from memory.retire import retire, revive
from memory.searchtexts import index_notes
from memory.text.secrets import redact
from review.grounding import Words, borne_out, candidate_of

#: Origin of the evidence of a note that a person accepted.
ACCEPTED = "accept"

#: Refusals that only a stated reason turns into a note.
# Why: what reads like an error or like an order to an agent harms most when it is one after all.
REASON_NEEDED = ("poison", "injection")

#: Why a note may be gone and come back when its candidate is accepted.
COMES_BACK = ("redistilled", verdicts.UNDONE)


def accept(
    rejection_id: int, *, by: Principal, now: datetime, reason: str = "", words: Words | None = None
) -> RejectionDecision:
    """Make the note that the gate refused, on a person's word, with evidence of the record.

    The evidence is the candidate's quote, letter case and marks aside, or what `words` name. The
    note is the one that distill would have made, with the model and the prompt that proposed it;
    the pipeline embeds and compares it like any other. Raises NotFound, Conflict (decided before,
    forbidden, or there already), and RefusedError when the record does not bear it out or the text
    may not be kept.
    """

    def effect(row: GateRejection) -> Note:
        candidate = _fit(row, words or Words())
        if fact := rejected.said(candidate.content, owner=row.owner):
            raise Conflict(f"{fact}: take that back first")
        unit = making.load(unit_of(row))
        if unit is None:
            raise NotFound("the unit that it was made of is gone")
        grounded = borne_out(candidate, unit.passages, words or Words())
        if found := redact(grounded.quote).counts:
            raise RefusedError(f"its evidence holds a secret ({', '.join(sorted(found))})")
        if (why := risk(row, grounded.candidate, grounded.quote)) and not reason.strip():
            as_well = "refused as" if why == row.reason else "not looked at for it, but it is"
            raise RefusedError(f"{as_well} {why}: say why it is none", reason="reason")
        usage = Usage(row.model_asked, row.model_real, row.prompt_version)
        note, edge = making.make_note(unit, grounded, usage, check=None, run=row.run, now=now)
        edge.origin = ACCEPTED
        if _returns(note):
            return note
        note.save(force_insert=True)
        edge.save(force_insert=True)
        index_notes(only=[note.pk])
        return note

    return _decide(rejection_id, "accept", effect, by=by, now=now, reason=reason)


def confirm(
    rejection_id: int, *, by: Principal, now: datetime, reason: str = ""
) -> RejectionDecision:
    """The gate was right: the refusal is settled and changes nothing."""
    return _decide(rejection_id, "confirm", lambda row: None, by=by, now=now, reason=reason)


def forbid(
    rejection_id: int, *, by: Principal, now: datetime, reason: str = ""
) -> RejectionDecision:
    """Make a rejected fact of it: the gate refuses to learn it again, from whatever source.

    Raises Conflict as well when its owner has forbidden the same words before.
    """

    def effect(row: GateRejection) -> None:
        if row.reason == "secret":
            # What is kept of it is not what was said, and would never be known again.
            raise RefusedError("secrets are refused anyway: confirm it", reason="secret")
        content = str(row.candidate.get("content") or "")
        rejected.forbid(content, owner=row.owner, by=by, now=now, rejection=row)

    return _decide(rejection_id, "forbid", effect, by=by, now=now, reason=reason)


@transaction.atomic
def forbid_words(content: str, *, by: Principal, now: datetime, reason: str = "") -> int:
    """Make a rejected fact of a statement that nobody proposed yet; its number. `by` learns it no
    more, and `lift` takes it back.

    Raises RefusedError for no words, too many, or a secret; Conflict when it is forbidden already.
    """
    if len(content) > gate.CONTENT_CHARACTERS_MAX:
        most = gate.CONTENT_CHARACTERS_MAX
        raise RefusedError(f"a note says one thing in {most} characters at most", reason="shape")
    if redact(content).counts:
        raise RefusedError("secrets are refused anyway", reason="secret")
    fact = rejected.forbid(content, owner=by, by=by, now=now)
    record_act(by, "forbid", "rejected_fact", fact.pk, now=now, reason=reason)
    return int(fact.pk)


def undo(rejection_id: int, *, by: Principal, now: datetime, reason: str = "") -> RejectionDecision:
    """Take the last decision back: an accepted note is retired, a rejected fact is lifted.

    Raises Conflict when nothing is decided, or when a verdict builds on the accepted note.
    """
    with transaction.atomic():
        row = _locked(rejection_id, by=by)
        last = standing([row.pk]).get(row.pk)
        if last is None:
            raise Conflict(f"nothing is decided about rejection {row.pk}")
        if last.action == "accept":
            _take_back(last, now=now)
        elif last.action == "forbid":
            rejected.lift(row, now=now)
        return _write(row, "undo", last.note, by=by, now=now, reason=reason)


def lift(fact_id: int, *, by: Principal, now: datetime, reason: str = "") -> None:
    """Let a rejected fact be learned again whose refusal was purged: no decision is left to undo.

    Raises NotFound, and Conflict when it was lifted before or its refusal is there.
    """
    with transaction.atomic():
        rejected.lift_wordless(fact_id, by=by, now=now)
        record_act(by, "lift", "rejected_fact", fact_id, now=now, reason=reason)


VERBS: dict[str, Callable[..., RejectionDecision]] = {
    "accept": accept,
    "confirm": confirm,
    "forbid": forbid,
    "undo": undo,
}

#: What is said of a refusal after each of these.
PAST = {"accept": "accepted", "confirm": "confirmed", "forbid": "forbidden", "undo": "taken back"}


def standing(rejections: Iterable[int]) -> dict[int, RejectionDecision]:
    """The decision that holds for each of these refusals; those without one are left out."""
    ids = list(rejections)
    if not ids:
        return {}
    rows = RejectionDecision.objects.filter(rejection__in=ids)
    newest = rows.order_by("rejection", "-pk").distinct("rejection").select_related("principal")
    return {row.rejection_id: row for row in newest if row.action != "undo"}


def unit_of(row: GateRejection) -> str:
    """The name of the unit that the refused candidate was made of."""
    return row.episode.unit_key if row.episode else f"item:{row.raw_item_id}"


def risk(row: GateRejection, candidate: Candidate, quote: str) -> str:
    """What of REASON_NEEDED a note of this candidate would be; nothing when it is neither. The gate
    names the first fault that it finds: what was refused for another may be this as well."""
    if row.reason in REASON_NEEDED:
        return str(row.reason)
    found = gate.harmful(candidate, quote)
    return found.reason if found else ""


def _fit(row: GateRejection, words: Words) -> Candidate:
    """The candidate as the note may have it. Raises RefusedError for what no word makes a note."""
    candidate = candidate_of(row.candidate)
    if words.title.strip():
        candidate = replace(candidate, title=" ".join(words.title.split()))
    if row.reason == "secret" or redact(gate.wording(candidate)).counts:
        raise RefusedError(
            "it held a secret, which is kept nowhere: what is left of it is no statement",
            reason="secret",
        )
    if not candidate.content.strip() or not candidate.title.strip():
        raise RefusedError("a note needs a title and content", reason="shape")
    if len(candidate.content) > gate.CONTENT_CHARACTERS_MAX:
        raise RefusedError(
            f"a note has {gate.CONTENT_CHARACTERS_MAX} characters at most", reason="shape"
        )
    if len(candidate.title) > gate.TITLE_CHARACTERS_MAX:
        raise RefusedError(
            f"a title has {gate.TITLE_CHARACTERS_MAX} characters at most: give a shorter one",
            reason="title",
        )
    return candidate


def _returns(note: Note) -> bool:
    """Whether the note was there before and came back. Raises Conflict when it is still there, or
    gone for a reason of its own."""
    before = Note.objects.as_pipeline().defer("embedding").filter(pk=note.pk).first()
    if before is None:
        return False
    if before.deleted_at is None:
        raise Conflict(f"note {note.pk} says this already")
    if before.retired_reason not in COMES_BACK:
        raise Conflict(f"note {note.pk} said this and was retired as {before.retired_reason}")
    return bool(revive(note.pk))


def _take_back(last: RejectionDecision, *, now: datetime) -> None:
    note = last.note_id
    assert note is not None
    # Locked as dedup locks it: no verdict builds on the note between the look and the retirement.
    Note.objects.as_pipeline().select_for_update(no_key=True).only("pk").get(pk=note)
    rows = (
        DedupVerdict.objects.as_pipeline()
        .filter(Q(note=note) | Q(target=note), status__in=("applied", "approved"))
        .exclude(verdict="distinct")
        .select_related("note", "target")
        .defer("note__embedding", "target__embedding")
    )
    for row in rows.order_by("-pk"):
        did = verdicts.effect(row.verdict, row.note, row.target)
        if note in (did.kept.pk, row.target_id if verdicts.edits(row) else None):
            raise Conflict(f"verdict {row.pk} builds on note {note}: undo that one first")
    retire([note], reason=verdicts.UNDONE, now=now)


def _decide(
    rejection_id: int,
    action: str,
    effect: Callable[[GateRejection], Note | None],
    *,
    by: Principal,
    now: datetime,
    reason: str,
) -> RejectionDecision:
    with transaction.atomic():
        row = _locked(rejection_id, by=by)
        if last := standing([row.pk]).get(row.pk):
            raise Conflict(
                f"rejection {row.pk} was {PAST[last.action]} by {last.principal} at"
                f" {last.created_at:%Y-%m-%d %H:%M:%S}Z: there is nothing to {action}"
            )
        return _write(row, action, effect(row), by=by, now=now, reason=reason)


def _locked(rejection_id: int, *, by: Principal) -> GateRejection:
    """The refusal, with whoever decides it kept apart from others: its row is frozen, and only its
    owner decides, so the owner's row is what they wait for. Raises NotFound."""
    Principal.objects.select_for_update(no_key=True).get(pk=by.pk)
    rows = GateRejection.objects.visible_to(by).filter(pk=rejection_id)
    row: GateRejection | None = rows.select_related("owner", "episode", "run").first()
    if row is None:
        raise NotFound(f"no rejection {rejection_id}")
    return row


def _write(
    row: GateRejection,
    action: str,
    note: Note | None,
    *,
    by: Principal,
    now: datetime,
    reason: str,
) -> RejectionDecision:
    said = tidy_reason(reason)
    decision: RejectionDecision = RejectionDecision.objects.create(
        rejection=row, principal=by, action=action, note=note, reason=said, created_at=now
    )
    detail = {"note": str(note.pk)} if note else {}
    record_act(by, action, "rejection", row.pk, now=now, reason=said, detail=detail)
    return decision
