"""The rule judge: decides what it can prove about two statements, and says distinct otherwise.

Needs no model and no network. Knows nothing about storage, confidence or holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import SequenceMatcher

from memory.llm.ports import Judgement, Origin, Statement, Usage, Verdict
from memory.llm.rules.frames import Reading, read
from memory.llm.rules.proofs import duplicate, refine, supersede
from memory.text.words import normalise

#: Older statements looked at for one new one.
# Why: looking costs nothing, and an update that is not looked at is missed.
# Calibrate: rank of the true target among the candidates of a labelled set.
CANDIDATES_MAX = 10

#: Characters of a statement that is read at all.
# Why: a proof is about one claim; a longer text makes many, and reading it costs time.
STATEMENT_CHARS_MAX = 2_000

#: Words up to which a statement may owe its subject to its context ("The port is 8080").
# Why: longer ones name what they are about.
SHORT_WORDS_MAX = 5

_Proof = Callable[[Reading, Reading], str | None]
#: The strongest proof first.
_PROOFS: tuple[tuple[Verdict, _Proof], ...] = (
    ("duplicate", duplicate),
    ("supersede", supersede),
    ("refine", refine),
)


class Rules:
    """A Judge that proves or abstains."""

    name = "rules-1"
    prompt_version = "1"
    candidates_max = CANDIDATES_MAX

    def judge(
        self, new: Statement, older: Sequence[Statement], *, origin: Origin
    ) -> tuple[Judgement, Usage]:
        """Return what the new statement is to the first `candidates_max` older ones, and an empty
        bill.

        The strongest proof wins (duplicate, supersede, refine), then the most similar statement,
        then the first. Without a proof the answer is distinct and has no target.
        """
        usage = Usage(
            model_asked=self.name, model_real=self.name, prompt_version=self.prompt_version
        )
        best: tuple[int, float, Judgement] | None = None
        for old in older[: self.candidates_max]:
            found = _prove(new, old)
            if found is None:
                continue
            rank, similarity, verdict, why = found
            if best is None or (rank, -similarity) < (best[0], -best[1]):
                best = (rank, similarity, Judgement(verdict, old.id, _sentence(why)))
        if best is None:
            return Judgement("distinct", None, "No rule proves that the statements are one."), usage
        return best[2], usage


def _prove(new: Statement, old: Statement) -> tuple[int, float, Verdict, str] | None:
    """Return the strongest proof about one pair: its rank, how similar the two are, verdict and
    reason.
    """
    if max(len(new.content), len(old.content)) > STATEMENT_CHARS_MAX:
        same = normalise(new.content) == normalise(old.content)
        return (
            (0, 1.0, "duplicate", "both texts are equal once case and spaces are set aside")
            if same
            else None
        )
    left, right = read(new.content), read(old.content)
    if not left.whole.tokens or not right.whole.tokens or not _comparable(new, left, old, right):
        return None
    if left.code or right.code:
        same = " ".join(new.content.split()) == " ".join(old.content.split())
        return (0, 1.0, "duplicate", "both are the same code, spaces set aside") if same else None
    for rank, (verdict, proof) in enumerate(_PROOFS):
        if verdict != "duplicate" and (left.leans or right.leans or _apart(new, left, old, right)):
            return None
        # Of two that cannot both hold, the one said later replaces the other, whichever was read
        # first; whoever carries out the verdict goes by the same dates.
        news = verdict == "supersede" and _said_before(new, old)
        if why := proof(right, left) if news else proof(left, right):
            similarity = SequenceMatcher(
                None, left.whole.keys, right.whole.keys, autojunk=False
            ).ratio()
            return rank, similarity, verdict, why
    return None


def _said_before(new: Statement, old: Statement) -> bool:
    return bool(new.valid_from and old.valid_from and new.valid_from < old.valid_from)


def _comparable(new: Statement, left: Reading, old: Statement, right: Reading) -> bool:
    """Return whether the two can be about one thing: same speaker where it says I, same context
    where it leans.
    """
    if (
        (left.first_person or right.first_person)
        and new.said_by
        and old.said_by
        and new.said_by != old.said_by
    ):
        return False
    if left.leans or right.leans:
        return normalise(new.context) == normalise(old.context)
    return True


def _apart(new: Statement, left: Reading, old: Statement, right: Reading) -> bool:
    """Return whether two short statements stand in contexts that name different things."""
    if min(len(left.whole.tokens), len(right.whole.tokens)) > SHORT_WORDS_MAX:
        return False
    here, there = _names(new.context), _names(old.context)
    return bool(here) and bool(there) and here.isdisjoint(there)


def _names(context: str) -> frozenset[str]:
    return read(context[:STATEMENT_CHARS_MAX]).whole.names()


def _sentence(why: str) -> str:
    return why[0].upper() + why[1:] + "."
