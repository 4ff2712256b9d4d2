"""Impact: did what was injected change what the agent said after it? A sample is looked at.

Reads: injection, note, raw_item, term. Writes: nothing but its own row.
Audits: impact, one row an injection looked at; stage_run, llm_call.
Verify: no note and no verdict changes by it; being used is no evidence that a note is true.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from zlib import crc32

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef
from django.db.models.functions import Left

from memory import claims
from memory.audit import Clock, stage
from memory.backlog import Backlog
from memory.errors import ContentError
from memory.lexical import hashed
from memory.llm.choice import opener
from memory.llm.ports import NoLogProbabilities, Origin, Usage
from memory.models import Collection, Injection, Note, Principal, RawItem, StageRun, Term
from memory.models.record import strictest
from memory.text.fence import wrap
from recall.divergence import Compared, Overlap, compare, divergence, reply_of
from recall.models import Impact
from recall.reranking import QUERY_CONFIDENTIALITY

#: Injections looked at in one run.
# Why: two calls of a model each, beside the pipeline's own.
# Calibrate: the sample of a busy day should be done by the day's runs.
IMPACTS_A_RUN_MAX = 100

#: Days after which an injection is not looked at any more.
# Why: what was not captured by then will not be; a rate that is shown is of late.
DAYS_BACK_MAX = 7

#: Injections among which a run looks for its sample.
INJECTIONS_LOOKED_AT = 20_000

#: Minutes that an agent has to finish what it says.
# Why: the turns of one answer are captured as they come, and a check is made once.
REPLY_MINUTES = 30

#: Turns after an injection that are read for the answer, and before it for what was said anyway.
TURNS_AFTER_MAX = 40
TURNS_BEFORE_MAX = 40

#: Characters of a turn that are read.
# Why: an answer says early what it stands on; a pasted log says nothing.
TURN_CHARACTERS_MAX = 8_000

#: Share of an owner's captured texts, and number of them at least, from which on a word that they
#: hold is an everyday one.
# Why: words that every second answer has show nothing. Tried on chat between two people: a foreign
# answer of eight turns passes for one that used the text in 51 % of cases with them, 6 % without.
# Calibrate: looks at answers of other sessions that count as used.
EVERYDAY_TEXTS_SHARE = 0.02
EVERYDAY_TEXTS_MIN = 3

#: Captured texts below which nobody knows an everyday word from a telling one.
# Why: in the same trial 11 % of foreign answers pass with a hundred texts known, 37 % with thirty.
TEXTS_KNOWN_MIN = 100

#: Nats a token by which an opening must differ for the context to count as used.
# Why: a first guess: no model with log-probabilities was at hand to measure a foreign context by.
# Calibrate: openings with the right note against those with a note of another project.
DIVERGENCE_MIN = 0.5

#: What the model is told; the question comes alone, or behind the block that the agent got.
SYSTEM = "You are a coding assistant. Answer the user's last message."


@dataclass(frozen=True)
class ImpactReport:
    """Injections looked at and found used, by method; then what was not done, by reason.

    `unsampled`, `without_reply` and `pending` are of the days that are looked back.
    """

    checked: int = 0
    used: int = 0
    kl: int = 0
    overlap: int = 0
    # A model was there, but gave no log-probabilities for these.
    without_log_probabilities: int = 0
    # Nothing in what was injected would show: the session had said all of it before, or too little
    # was captured yet to tell.
    untold: int = 0
    unsampled: int = 0
    without_reply: int = 0
    transient_failures: int = 0
    content_failures: int = 0
    parked: int = 0
    pending: int = 0


@dataclass(frozen=True)
class UsedRate:
    """How many injections were looked at and how many of them were used, in all and by method;
    `rate` None of none."""

    checked: int
    used: int
    by_method: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def rate(self) -> float | None:
        return self.used / self.checked if self.checked else None

    def as_json(self) -> dict[str, Any]:
        return {
            "checked": self.checked,
            "used": self.used,
            "rate": None if self.rate is None else round(self.rate, 4),
            "by_method": {
                method: {"checked": checked, "used": used}
                for method, (checked, used) in self.by_method.items()
            },
        }


@dataclass(frozen=True)
class Case:
    """One injection with the texts that stood in it and around it."""

    injection: Injection
    texts: dict[str, str]
    confidentiality: str
    before: list[str]
    reply: str


@stage
def impact(
    run: StageRun, *, clock: Clock, limit: int | None, until: datetime | None
) -> ImpactReport:
    """Look at a sample of the injections of the last days that were answered by now.

    With a chat model that shows log-probabilities: how far its opening with the injected block is
    from its opening without. Else: how much of what only the block said stands in the answer.
    """
    room = IMPACTS_A_RUN_MAX if limit is None else min(limit, IMPACTS_A_RUN_MAX)
    backlog = Backlog(run, clock=clock, limit=room, until=until)
    due = [f"injection:{pk}" for pk in waiting(clock()).answered]
    counts = backlog.work_off(
        lambda: due, lambda held: _look(backlog, held[0], now=clock()), at_once=1
    )
    left = waiting(clock())
    return ImpactReport(
        **counts,
        unsampled=left.unsampled,
        without_reply=left.without_reply,
        pending=len(left.answered),
    )


@dataclass(frozen=True)
class Waiting:
    """Sampled injections that have an answer, oldest first; how many have none, or are not in."""

    answered: list[int]
    without_reply: int
    unsampled: int


def waiting(now: datetime) -> Waiting:
    """What of the last days was injected for a prompt and not looked at yet."""
    pool = Injection.objects.as_pipeline().filter(
        mode="prompt",
        outcome="injected",
        impact=None,
        created_at__gt=now - timedelta(days=DAYS_BACK_MAX),
        created_at__lte=now - timedelta(minutes=REPLY_MINUTES),
    )
    answers = RawItem.objects.as_pipeline().filter(
        owner=OuterRef("owner"),
        session=OuterRef("session"),
        kind="turn",
        role="assistant",
        occurred_at__gt=OuterRef("created_at"),
    )
    seen = list(pool.order_by("-created_at").values_list("pk", flat=True)[:INJECTIONS_LOOKED_AT])
    sample = [pk for pk in seen if sampled(pk, settings.ARGUS.impact_share)]
    answered = pool.filter(pk__in=sample).exclude(session="").filter(Exists(answers))
    due = list(answered.order_by("created_at", "pk").values_list("pk", flat=True))
    return Waiting(due, len(sample) - len(due), len(seen) - len(sample))


def sampled(pk: int, share: float) -> bool:
    """Whether this injection is in the sample; always the same answer for the same share."""
    return crc32(f"impact:{pk}".encode()) < share * 2**32


def used_rate(since: datetime, *, principal: Principal | None = None) -> UsedRate:
    """The share of injections that were used, of those looked at since then; of one owner's."""
    rows = Impact.objects.filter(created_at__gte=since)
    if principal is not None:
        rows = rows.filter(injection__owner=principal)
    counted = Counter(rows.values_list("method", "used"))
    by_method = {
        method: (counted[method, True] + counted[method, False], counted[method, True])
        for method in sorted({method for method, _ in counted})
    }
    checked = sum(counted.values())
    return UsedRate(checked, sum(used for _, used in by_method.values()), by_method)


def _look(backlog: Backlog, held: claims.Held, *, now: datetime) -> dict[str, int]:
    """Look at one injection; its row and the end of its claim are one transaction."""
    case = _case(int(held.unit.partition(":")[2]))
    if case is None:
        claims.forget(held)
        return {}
    overlap = compare(
        case.texts,
        known=[case.injection.query, *case.before],
        reply=case.reply,
        common=usual(case.injection.owner_id),
    )
    openings, fell_back = _openings(backlog, case, alone=not overlap.told)
    if openings is None and not overlap.told:
        claims.forget(held)
        return {"untold": 1, "without_log_probabilities": fell_back}
    row = _row(case, overlap, openings)
    row.run, row.created_at = backlog.run, now
    with transaction.atomic():
        row.save(force_insert=True)
        claims.finish(held)
    return {
        "checked": 1,
        "used": int(row.used),
        row.method: 1,
        "without_log_probabilities": fell_back,
    }


def _case(pk: int) -> Case | None:
    """The injection with its texts, or None when somebody looked at it, or it was purged."""
    row = Injection.objects.as_pipeline().filter(pk=pk, impact=None).first()
    if row is None:
        return None
    notes = Note.objects.as_pipeline().filter(pk__in=row.note_ids)
    told = list(notes.values_list("pk", "title", "content", "context", "confidentiality"))
    turns = RawItem.objects.as_pipeline().annotate(said=Left("body", TURN_CHARACTERS_MAX))
    items = list(turns.filter(pk__in=row.turn_ids).values_list("pk", "said", "confidentiality"))
    texts = {str(pk): "\n".join(parts) for pk, *parts, _ in told}
    texts |= {f"turn:{pk}": said for pk, said, _ in items}
    session = turns.filter(owner=row.owner_id, session=row.session, kind="turn").values_list(
        "role", "said", "confidentiality"
    )
    before = list(
        session.filter(occurred_at__lte=row.created_at).order_by("-occurred_at", "-pk")[
            :TURNS_BEFORE_MAX
        ]
    )
    after = list(
        session.filter(occurred_at__gt=row.created_at).order_by("occurred_at", "pk")[
            :TURNS_AFTER_MAX
        ]
    )
    # The prompt is one of the session's turns: it may go nowhere where they may not.
    levels = [confidentiality for *_, confidentiality in (*told, *items, *before, *after)]
    return Case(
        row,
        texts,
        strictest([QUERY_CONFIDENTIALITY, *levels]),
        [said for _, said, _ in before],
        reply_of([(role, said) for role, said, _ in after]),
    )


def _openings(
    backlog: Backlog, case: Case, *, alone: bool
) -> tuple[tuple[Compared, Usage] | None, int]:
    """The model's openings with and without the block, compared; None where there is no such
    model, or it refuses this question. The number is 1 where it shows no log-probabilities.

    `alone`: nothing else tells, so that a refusal counts (ContentError), as that of any unit does.
    """
    model = opener(case.confidentiality)
    # Once is enough for a run: what a server leaves out once, it leaves out.
    if model is None or not case.texts or backlog.counts["without_log_probabilities"]:
        return None, int(model is not None and bool(case.texts))
    run, query = backlog.run, case.injection.query
    unit = f"injection:{case.injection.pk}"
    block = wrap([f"- {' '.join(text.split())}" for text in case.texts.values()])
    made: list[Sequence[dict[str, float]]] = []
    try:
        for user in (f"{block}\n\n{query}", query):
            backlog.pulse()
            origin = Origin(run.stage, unit, case.confidentiality, run.pk)
            tokens, usage = model.open(SYSTEM, user, origin=origin)
            made.append(tokens)
    except NoLogProbabilities:
        return None, 1
    except ContentError:
        if alone:
            raise
        return None, 0
    return (divergence(made[0], made[1]), usage), 0


def usual(owner_id: int) -> Callable[[frozenset[str]], frozenset[str]]:
    """Which of some stemmed words are everyday ones to this owner, by what was captured; all of
    them as long as too little was."""

    def common(words: frozenset[str]) -> frozenset[str]:
        whole = Collection.objects.filter(owner=owner_id, raw=True).first()
        if whole is None or whole.texts < TEXTS_KNOWN_MIN:
            return words
        most = max(EVERYDAY_TEXTS_MIN, EVERYDAY_TEXTS_SHARE * whole.texts)
        names = {hashed(word): word for word in words}
        held = Term.objects.filter(owner=owner_id, raw=True, term__in=names, texts__gte=most)
        return frozenset(names[term] for term in held.values_list("term", flat=True))

    return common


def _row(case: Case, overlap: Overlap, openings: tuple[Compared, Usage] | None) -> Impact:
    """The row of one look: numbers alone, no text."""
    detail: dict[str, Any] = {"overlap": overlap.as_json()}
    if openings is None:
        return Impact(
            injection=case.injection,
            method="overlap",
            score=overlap.score,
            used=overlap.used,
            detail=detail,
        )
    compared, usage = openings
    return Impact(
        injection=case.injection,
        method="kl",
        score=compared.mean,
        used=compared.mean >= DIVERGENCE_MIN,
        detail=detail | {"kl": compared.as_json(), "prompt_version": usage.prompt_version},
        model_asked=usage.model_asked,
        model_real=usage.model_real,
    )
