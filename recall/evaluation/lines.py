"""A data set of one's own: JSON lines with items, questions, or both. Pure.

    {"items": [{"id": "a1", "text": "...", "occurred_at": "2026-03-02T10:00:00Z",
                "speaker": "Ann", "session": "s1", "kind": "turn"}]}
    {"question": "...", "evidence": ["a1", "words that stand in an item"], "category": "ports"}
    {"question": "...", "answerable": false}

`pool` on a line keeps apart what shares no memory (default: one pool); `project` is another word
for it. A question may come before its items. Evidence is the id of an item, or words of one; words
that several items hold are borne out by any of them. Of an item only `text` is needed. The same
lines without items ask one's own memory, where a number is the id of a raw item. Knows nothing
about where the items go.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from memory.models.record import KINDS
from memory.text.words import normalise
from recall.evaluation.dataset import NO_ANSWER, Dataset, DatasetProblem, Item, Question

#: The pool of lines that name none.
POOL = "default"

#: When the first item without a time is said to have been; each later one a minute on.
START = datetime(2026, 1, 1, tzinfo=UTC)

LINE_FIELDS = {"pool", "project", "items", "question", "evidence", "category", "answerable"}
ITEM_FIELDS = {"id", "text", "occurred_at", "speaker", "session", "kind", "source", "role"}


class _Wrong(ValueError):
    """What is wrong on a line, without the place."""


@dataclass(frozen=True)
class Line:
    """What a line asks. `evidence` as it was given, empty where nothing answers; `pool` is "" when
    none is named."""

    number: int
    text: str
    evidence: tuple[str | int, ...] = ()
    pool: str = ""
    category: str = ""


@dataclass
class _Pool:
    """What the lines said of one pool so far."""

    items: dict[str, Item] = field(default_factory=dict)
    asked: list[Line] = field(default_factory=list)


def questions(lines: Iterable[str], name: str) -> Iterator[Line]:
    """The questions of lines that bring no items, because what they ask is there already. Raises
    DatasetProblem naming the first bad line."""
    for number, row in _rows(lines, name):
        with _located(name, number):
            if "items" in row:
                raise _Wrong("items stand here, and the memory that is asked has its own")
            yield _line(row, number)


def read(lines: Iterable[str], name: str) -> Dataset:
    """The lines as items and questions. Raises DatasetProblem naming the first bad line."""
    pools: dict[str, _Pool] = defaultdict(_Pool)
    count = 0
    for number, row in _rows(lines, name):
        with _located(name, number):
            key = _pool(row) or POOL
            for given in row.get("items", ()):
                count += 1
                item = _item(given, key, count)
                if item.name in pools[key].items:
                    raise _Wrong(f"the item {item.name!r} stands in its pool already")
                pools[key].items[item.name] = item
            if "question" in row:
                pools[key].asked.append(_line(row, number))
    made = []
    for key, pool in pools.items():
        for line in pool.asked:
            with _located(name, line.number):
                made.append((line.number, _question(line, key, pool)))
    if not made:
        raise DatasetProblem(f"{name}: no line asks a question")
    items = tuple(item for pool in pools.values() for item in pool.items.values())
    in_order = sorted(made, key=lambda one: one[0])
    return Dataset(name, items, tuple(question for _, question in in_order))


def _rows(lines: Iterable[str], name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Every line that is not empty, with its number."""
    for number, line in enumerate(lines, start=1):
        if line.strip():
            with _located(name, number):
                row = _row(line)
            yield number, row


@contextmanager
def _located(name: str, number: int) -> Iterator[None]:
    try:
        yield
    except _Wrong as wrong:
        raise DatasetProblem(f"{name}:{number}: {wrong}") from None


def _row(line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise _Wrong(f"not JSON: {error}") from None
    if not isinstance(row, dict) or not {"items", "question"} & row.keys():
        raise _Wrong('neither "items" nor "question" in an object')
    _known(row, LINE_FIELDS)
    _typed(row, ("pool", "project", "question", "category"), str, "a text")
    _typed(row, ("items",), list, "a list")
    _typed(row, ("evidence",), list, "a list of ids or texts")
    _typed(row, ("answerable",), bool, "true or false")
    return row


def _known(row: dict[str, Any], allowed: set[str]) -> None:
    if unknown := sorted(row.keys() - allowed):
        raise _Wrong(f"{unknown[0]!r} is not known here: {', '.join(sorted(allowed))}")


def _typed(row: dict[str, Any], names: Iterable[str], kind: type, what: str) -> None:
    for name in names:
        if name in row and not isinstance(row[name], kind):
            raise _Wrong(f"{name} must be {what}")


def _item(given: Any, pool: str, count: int) -> Item:
    if not isinstance(given, dict):
        raise _Wrong("an item must be an object")
    _known(given, ITEM_FIELDS)
    _typed(given, sorted(ITEM_FIELDS), str, "a text")
    if not given.get("text", "").strip():
        raise _Wrong("an item needs a text")
    kind = given.get("kind", "turn")
    if kind not in KINDS:
        raise _Wrong(f"kind is {kind!r}; allowed: {', '.join(KINDS)}")
    spoken = kind == "turn"
    return Item(
        pool=pool,
        name=given.get("id") or f"item {count}",
        text=given["text"],
        kind=kind,
        source=given.get("source", "eval"),
        role=given.get("role", "user" if spoken else ""),
        session=given.get("session", pool if spoken else ""),
        speaker=given.get("speaker", ""),
        occurred_at=_instant(given.get("occurred_at"), count),
    )


def _instant(given: str | None, count: int) -> datetime:
    if given is None:
        return START + timedelta(minutes=count)
    try:
        moment = datetime.fromisoformat(given)
    except ValueError:
        raise _Wrong(f"occurred_at is {given!r}; allowed: 2026-03-02T10:00:00Z") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _pool(row: dict[str, Any]) -> str:
    named = {row[name] for name in ("pool", "project") if row.get(name)}
    if len(named) > 1:
        raise _Wrong("pool and project are two words for one thing, and differ")
    return named.pop() if named else ""


def _line(row: dict[str, Any], number: int) -> Line:
    if not row["question"].strip():
        raise _Wrong("the question is empty")
    evidence = row.get("evidence", [])
    if bool(evidence) != row.get("answerable", True):
        raise _Wrong('a question needs evidence, or "answerable": false and none')
    for one in evidence:
        if isinstance(one, bool) or not isinstance(one, str | int):
            raise _Wrong("evidence must be a list of texts, or of numbers that are ids")
        if isinstance(one, str) and not normalise(one):
            raise _Wrong(f"evidence {one!r} has no words")
    return Line(number, row["question"], tuple(evidence), _pool(row), row.get("category", ""))


def _question(line: Line, key: str, pool: _Pool) -> Question:
    if not line.evidence:
        return Question(key, line.text, category=NO_ANSWER)
    facts = tuple(_fact(one, pool) for one in line.evidence)
    named = {name for fact in facts for name in fact}
    sorts = {item.sort for item in pool.items.values() if item.full_name in named}
    kind = sorts.pop() if len(sorts) == 1 else "mixed"
    return Question(key, line.text, facts, line.category, kind)


def _fact(given: str | int, pool: _Pool) -> frozenset[str]:
    """The items that bear this out: the one of that id, or all that hold these words."""
    if isinstance(given, int):
        raise _Wrong("evidence must be a list of texts: ids of items are texts")
    if given in pool.items:
        return frozenset({pool.items[given].full_name})
    wanted = normalise(given)
    found = {one.full_name for one in pool.items.values() if wanted in normalise(one.text)}
    if not found:
        raise _Wrong(f"evidence {given!r} is no item's id and stands in no item of its pool")
    return frozenset(found)
