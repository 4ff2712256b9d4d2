"""What other floors would have put before agents: the same recalls, judged again.

Pure, but that each row keeps what the floors in force send of it (`_standing`): every move of a
slider asks that again. Reads numbers that the ledger kept; asks neither the database nor the
embedder. Knows nothing about where the rows came from or what becomes of the floors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from recall.floors import Floors, Source, clears
from recall.weighed import Kept, Weighed

#: A word on a note of a recall: (id of the injection, id of the note) to whether it was right.
Labels = Mapping[tuple[Any, str], bool]


@dataclass(frozen=True)
class Side:
    """What goes out under some floors: recalls with anything in them, notes, turns, and how many of
    the notes people called right or wrong."""

    spoke: int = 0
    notes: int = 0
    turns: int = 0
    right: int = 0
    wrong: int = 0


@dataclass(frozen=True)
class Change:
    """A hit that one of two floors lets by; `right` is what somebody said of it, if anybody did.

    `unread`: a turn that was kept back by a floor, so that nobody looked whether it may be given.
    """

    injection: int
    query: str
    source: Source
    key: str
    relevance: float
    score: float
    right: bool | None = None
    unread: bool = False


@dataclass(frozen=True)
class WhatIf:
    """Recalls under the floors in force, `now`, and under others, `then`; what would have come and
    gone, and which recalls would have begun or ceased to say anything.

    `unjudged` recalls are of a time that kept too few numbers, and are in no count.
    """

    recalls: int
    unjudged: int
    now: Side
    then: Side
    added: tuple[Change, ...] = ()
    lost: tuple[Change, ...] = ()
    begun: int = 0
    silenced: int = 0
    labelled_right: int = 0
    labelled_wrong: int = 0

    @property
    def same(self) -> bool:
        """Whether the other floors would have changed nothing."""
        return not (self.added or self.lost)

    @property
    def unread(self) -> int:
        """Turns among what would have come that some rule may have kept back all the same."""
        return sum(change.unread for change in self.added)

    def as_json(self) -> dict[str, Any]:
        """The numbers, as an adoption keeps them."""
        return {
            "recalls": self.recalls,
            "unjudged": self.unjudged,
            "now": asdict(self.now),
            "then": asdict(self.then),
            "added": len(self.added),
            "lost": len(self.lost),
            "begun": self.begun,
            "silenced": self.silenced,
            "labelled_right": self.labelled_right,
            "labelled_wrong": self.labelled_wrong,
        }


def whatif(
    rows: Sequence[Weighed],
    *,
    now: Mapping[Source, Floors],
    then: Mapping[Source, Floors],
    labels: Labels | None = None,
) -> WhatIf:
    """Judge every row under both floors, by the numbers that it kept."""
    labels = labels or {}
    whole = [row for row in rows if row.whole]
    sides: dict[str, list[Side]] = {"now": [], "then": []}
    added, lost = list[Change](), list[Change]()
    begun = silenced = 0
    same = dict(now) == dict(then)
    for row in whole:
        old = _standing(row, now)
        sides["now"].append(_side(row, old, labels))
        if same:
            continue
        new = sent(row, then)
        sides["then"].append(_side(row, new, labels))
        before, after = {hit.key for hit in old}, {hit.key for hit in new}
        added += [_change(row, hit, labels, new=True) for hit in new if hit.key not in before]
        lost += [_change(row, hit, labels, new=False) for hit in old if hit.key not in after]
        begun += bool(new) and not old
        silenced += bool(old) and not new
    said = [
        labels[row.injection, hit.key]
        for row in (whole if labels else ())
        for hit in row.hits
        if (row.injection, hit.key) in labels
    ]
    out = _sum(sides["now"])
    return WhatIf(
        recalls=len(whole),
        unjudged=len(rows) - len(whole),
        now=out,
        then=out if same else _sum(sides["then"]),
        added=tuple(added),
        lost=tuple(lost),
        begun=begun,
        silenced=silenced,
        labelled_right=sum(said),
        labelled_wrong=len(said) - sum(said),
    )


def _standing(row: Weighed, floors: Mapping[Source, Floors]) -> list[Kept]:
    """`sent` by the floors in force, kept with the row: every move of a slider asks it again."""
    known: tuple[Mapping[Source, Floors], list[Kept]] | None = row.__dict__.get("_standing")
    if known is None or known[0] != floors:
        known = row.__dict__["_standing"] = dict(floors), sent(row, floors)
    return known[1]


def sent(row: Weighed, floors: Mapping[Source, Floors]) -> list[Kept]:
    """The hits of a recall that go out under these floors: notes first, each statement once, as
    many as were asked for. What a block holds in characters is not tried: it may be fewer."""
    if row.score is not None:
        floors = {source: replace(one, score=row.score) for source, one in floors.items()}
    clear = [
        hit for hit in row.hits if not hit.withheld and clears(hit.evidence, floors[hit.source])
    ]
    # What another one stands for comes out by itself where that one does not come out.
    stood_for = {key for hit in clear for key in hit.folded}
    kept = [hit for hit in clear if hit.key not in stood_for]
    return sorted(kept, key=lambda hit: hit.source != "note")[: row.room]


def _side(row: Weighed, hits: Sequence[Kept], labels: Labels) -> Side:
    if not hits:
        return Side()
    said = [labels.get((row.injection, hit.key)) for hit in hits] if labels else []
    notes = sum([hit.source == "note" for hit in hits])
    return Side(
        spoke=1,
        notes=notes,
        turns=len(hits) - notes,
        right=said.count(True),
        wrong=said.count(False),
    )


def _sum(sides: Sequence[Side]) -> Side:
    return Side(*(sum(getattr(side, name) for side in sides) for name in Side.__dataclass_fields__))


def _change(row: Weighed, hit: Kept, labels: Labels, *, new: bool) -> Change:
    return Change(
        injection=row.injection,
        query=row.query,
        source=hit.source,
        key=hit.key,
        relevance=hit.relevance,
        score=hit.evidence.score,
        right=labels.get((row.injection, hit.key)),
        unread=new and hit.source == "turn" and hit.fate == "dropped",
    )
