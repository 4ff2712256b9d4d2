"""Questions that somebody labelled, as calibration needs them: what is found, and what is right.

Reads: note, evidence, raw_item, injection, feedback. Two ways: questions of a file, weighed now as
a prompt is, without any floor; and the ledger, where people said of injected notes whether they
were useful. The same questions make what a ranker is trained on. Writes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any
from uuid import UUID

import numpy as np
from django.db.models.functions import Left
from tqdm import tqdm

from memory.attribution import Registry
from memory.errors import InfraError, RefusedError
from memory.llm.choice import embedder
from memory.models import Evidence as Edge
from memory.models import Feedback, Injection, Principal, RawItem
from memory.text.tongue import tongue
from memory.text.words import normalise
from recall.calibration import in_force
from recall.evaluation import lines, locomo
from recall.evaluation.dataset import NO_ANSWER
from recall.features import FEATURES
from recall.floors import SOURCES
from recall.found import Found
from recall.gates import ask
from recall.proposal import FITTED_MAX, Labelled, Seen
from recall.results import fold
from recall.scoring import Hit, weigh_all
from recall.search import Searched, search
from recall.training import FOLDS, Example
from recall.weighed import evidence_of
from recall.where import where
from recall.withheld import withhold

#: Words of feedback that are read, the latest.
# Why: a hundred times what floors are proposed from, and still one read; what is older was said of
# another memory.
# Calibrate: floors from the newest half against those from all.
LEDGER_MAX = 5_000

#: Questions of one calibration.
# Why: each is a whole search; at some 50 ms ten thousand take ten minutes, and tell a share to half
# a point.
# Calibrate: by patience.
QUESTIONS_MAX = 10_000

#: Characters of a raw item in which the words of evidence are looked for.
# Why: a turn is a page; sixty documents of a megabyte would be read whole for each question.
# Calibrate: questions whose words stand later than this in their only item.
BODY_CHARACTERS_MAX = 50_000

#: What feedback says of a hit.
# Why not `outdated`: what recall did was right, the note fitted what was asked; what it says is no
# longer so. As wrong it would teach floors that a good match is none, as right that an agent was
# served. It tells nothing about finding, and is left out, as what was taken back is.
RIGHT = {"useful": True, "wrong": False, "never": False}

#: A piece of evidence: "id" or "words", and which.
_Piece = tuple[str, str]


@dataclass(frozen=True)
class LabelledQuestion:
    """A question; `evidence` are ids of notes (a UUID, or "note:UUID") or of raw items (a number,
    or "raw:17"), or words that a right one holds; `project` is the name of the one that it is asked
    from."""

    text: str
    evidence: tuple[str | int, ...] = ()
    project: str = ""


def read(text: str, name: str) -> list[LabelledQuestion]:
    """The questions of a file: JSON lines, or of LoCoMo's JSON those of the category that has no
    answer, because the others ask of dialogues that are not in this memory.

    A line is {"question", "evidence": [...]} or {"question", "answerable": false}, with "project"
    when it is asked from one. Raises RefusedError naming the line.
    """
    try:
        whole = json.loads(text)
    except ValueError:
        whole = None  # Lines.
    if locomo.looks_like(whole):
        asked = locomo.read(whole, name).questions
        found = [LabelledQuestion(one.text) for one in asked if one.category == NO_ANSWER]
    else:
        rows = islice(lines.questions(text.split("\n"), name), QUESTIONS_MAX + 1)
        found = [LabelledQuestion(row.text, row.evidence, row.pool) for row in rows]
    if len(found) > QUESTIONS_MAX:
        raise RefusedError(
            f"{name}: more than {QUESTIONS_MAX} questions, each of which is a search: give a sample"
        )
    return found


def label(
    questions: Sequence[LabelledQuestion],
    *,
    principal: Principal,
    now: datetime,
    progress: bool = False,
) -> list[Labelled]:
    """What recall weighs for each question before any floor is enforced, and which of it is right.
    A question that a gate refuses finds nothing. Raises InfraError when the embedder is away."""
    engine = _Engine(principal, now, questions)
    made = []
    for question in _bar(questions, progress):
        searched = engine.search(question)
        hits: list[Seen] = []
        if searched is not None:
            borne = _borne(searched.found, set(map(_piece, question.evidence)), principal)
            weighed = engine.weigh(searched, question)
            for source in SOURCES:
                # What says the same takes one of the five places that are shown.
                best = fold([hit for hit in weighed if hit.source == source])[:FITTED_MAX]
                hits += [Seen(source, hit.seen, _bears(hit, borne)) for hit in best]
        made.append(Labelled(question.text, bool(question.evidence), tuple(hits)))
    return made


def examples(
    questions: Sequence[LabelledQuestion],
    *,
    principal: Principal,
    now: datetime,
    progress: bool = False,
) -> list[Example]:
    """What a ranker is trained and judged on: of every question with an answer the features of its
    candidates, for each source by itself, because each is ordered by itself.

    Evidence that no candidate of either source bears counts as missed by any ranker; what the other
    source bears is not missed. A question that a gate refuses is ranked by none. Candidates are the
    best that recall keeps: what the ranker in force put behind them is learned from no label.
    Raises InfraError when the embedder is away.
    """
    engine = _Engine(principal, now, questions)
    made = []
    for number, question in enumerate(_bar(questions, progress)):
        searched = engine.search(question) if question.evidence else None
        if searched is None:
            continue
        pieces = set(map(_piece, question.evidence))
        borne = _borne(searched.found, pieces, principal)
        missed = len(pieces.difference(*borne.values()))
        for source in SOURCES:
            found = [one for one in searched.found if one.source == source]
            right = np.array([bool(borne[str(one.key)]) for one in found], dtype=np.bool_)
            if not right.any() and not missed:
                continue
            rows = [one.row for one in found if one.row is not None]
            matrix = np.stack(rows) if rows else np.zeros((0, len(FEATURES)))
            # Both sources of a question are held out together.
            made.append(Example(matrix, right, int(right.sum()) + missed, str(number % FOLDS)))
    return made


def useful(principal: Principal) -> list[LabelledQuestion]:
    """Prompts of the ledger whose notes were called useful, as questions to be asked anew."""
    said = words_of(principal)
    asked = Injection.objects.visible_to(principal).filter(pk__in={pk for pk, _ in said})
    queries = dict(asked.values_list("pk", "query"))
    held: dict[str, set[str]] = {}
    for (injection, note), verdict in said.items():
        if injection in queries:
            kept = held.setdefault(queries[injection], set())
            (kept.add if verdict == "useful" else kept.discard)(note)
    return [LabelledQuestion(query, tuple(sorted(kept))) for query, kept in held.items() if kept]


def from_ledger(principal: Principal) -> list[Labelled]:
    """Injections of which people said whether their notes were useful. One with a useful note has
    an answer; one with wrong notes alone has none. What nobody spoke of is left out."""
    model = embedder().name
    said: dict[int, dict[str, bool]] = {}
    for (injection, note), verdict in words_of(principal).items():
        if verdict in RIGHT:
            said.setdefault(injection, {})[note] = RIGHT[verdict]
    injections = Injection.objects.visible_to(principal).filter(pk__in=said, model_asked=model)
    return [
        Labelled(query, any(seen.right for seen in hits), hits)
        for pk, query, kept in injections.order_by("pk").values_list("pk", "query", "hits")
        if (hits := tuple(_kept(kept, said[pk], model, tongue(query))))
    ]


class _Engine:
    """Recall as a prompt meets it, for many questions: place and rules are looked up once."""

    def __init__(
        self, principal: Principal, now: datetime, questions: Sequence[LabelledQuestion]
    ) -> None:
        if len(questions) > QUESTIONS_MAX:
            raise RefusedError(f"{len(questions)} questions, {QUESTIONS_MAX} at most")
        self._principal, self._now = principal, now
        self._here = where(principal=principal)
        self._rules = in_force(embedder().name)
        aliases = Registry.load().names
        asked = {one.project for one in questions if one.project}
        self._projects = {name: aliases.get(name, name) for name in asked}
        if unknown := sorted(name for name in asked if self._here.named(name) is None):
            raise RefusedError(f"no project {unknown[0]}: see `manage.py project list`")

    def search(self, question: LabelledQuestion) -> Searched | None:
        """Both sources; None for what a gate refuses."""
        asked = ask(question.text)
        if asked.gate:
            return None
        searched = search(
            asked.text,
            principal=self._principal,
            now=self._now,
            here=self._here.named(question.project),
            silent=self._here.names,
            ranker=self._rules.ranker,
        )
        if why := searched.degraded.get("semantic"):
            # What is learned on the words alone would hold for the meaning, too.
            raise InfraError(f"nothing can be learned without the embedder: {why}")
        return searched

    def weigh(self, searched: Searched, question: LabelledQuestion) -> list[Hit]:
        """Everything found that a prompt may be given as hits, in the order of recall."""
        project = self._projects.get(question.project)
        weighed = weigh_all(
            searched,
            self._rules.floors,
            project=project,
            now=self._now,
            alike=self._here.named_alike(project),
        )
        # What the floors in force refuse is judged, too: others are on trial.
        cleared = [replace(hit, judged=replace(hit.judged, refused="")) for hit in weighed]
        judged = withhold(
            cleared,
            principal=self._principal,
            now=self._now,
            silenced=searched.silenced,
            prompt=True,
        )
        return [hit for hit in judged if not hit.withheld]


def _bar(questions: Sequence[LabelledQuestion], progress: bool) -> Iterable[LabelledQuestion]:
    return tqdm(questions, desc="ask", disable=None if progress else True, leave=False)


def _bears(hit: Hit, borne: Mapping[str, set[_Piece]]) -> bool:
    """Whether a hit is right, or one that says the same."""
    return any(borne[key] for key in (str(hit.key), *hit.twins))


def _borne(
    found: Sequence[Found], pieces: Collection[_Piece], principal: Principal
) -> dict[str, set[_Piece]]:
    """The pieces of evidence that each find bears, by its key: its own id, an item that it cites,
    or words of what it says."""
    names = {str(one.key): {str(one.key)} for one in found}
    if pieces:
        notes = [one.key for one in found if isinstance(one.key, UUID)]
        edges = Edge.objects.filter(note__in=notes, raw_item__isnull=False)
        for note, item in edges.values_list("note", "raw_item"):
            names[str(note)].add(str(item))
    said = _said_by(found, principal) if any(kind == "words" for kind, _ in pieces) else {}
    return {
        key: {
            (kind, piece)
            for kind, piece in pieces
            if (piece in known if kind == "id" else piece in said.get(key, ""))
        }
        for key, known in names.items()
    }


def _piece(evidence: str | int) -> _Piece:
    """What evidence means: an id as hits' keys are written, or words as texts are compared. Digits
    in quotes are words: ports and years are asked for."""
    if isinstance(evidence, int):
        return "id", str(evidence)
    kind, _, rest = evidence.partition(":")
    if kind == "raw" and rest.isdecimal():
        return "id", rest
    try:
        return "id", str(UUID(rest if kind == "note" else evidence))
    except ValueError:
        return "words", normalise(evidence)


def _said_by(found: Sequence[Found], principal: Principal) -> dict[str, str]:
    """What each find says, normalised as evidence is."""
    items = [one.key for one in found if one.source == "turn"]
    rows = RawItem.objects.visible_to(principal).filter(pk__in=items)
    bodies = dict(rows.values_list("pk", Left("body", BODY_CHARACTERS_MAX)))
    said = {str(pk): normalise(body) for pk, body in bodies.items()}
    for one in found:
        if one.source == "note":
            said[str(one.key)] = normalise(f"{one.facts['title']}\n{one.facts['content']}")
    return said


def words_of(principal: Principal) -> dict[tuple[Any, str], str]:
    """The newest word on each note of each injection, oldest first; none that was taken back. To
    take a word back takes back all that was said of the note in that place."""
    rows = (
        Feedback.objects.filter(principal=principal)
        .order_by("-pk")
        .values_list("injection", "note", "project", "verdict")[:LEDGER_MAX]
    )
    said: dict[tuple[Any, str], str] = {}
    withdrawn: set[tuple[Any, Any]] = set()
    for injection, note, project, verdict in rows:
        if verdict == "withdrawn":
            withdrawn.add((note, project))
        elif injection is not None and (note, project) not in withdrawn:
            said.setdefault((injection, str(note)), verdict)
    return dict(reversed(said.items()))


def _kept(
    hits: Sequence[Mapping[str, Any]], said: Mapping[str, bool], model: str, spoken: str
) -> Iterable[Seen]:
    """The hits of a row that somebody spoke of, in the numbers that `weigh` gave them; rows of an
    older time lack some."""
    for hit in hits:
        if hit.get("note") in said and (evidence := evidence_of(hit, model, spoken)) is not None:
            yield Seen("note", evidence, said[hit["note"]])
