"""What questions are asked of: a data set captured and indexed by the real verbs.

Writes what capture and the stages write, in the database at hand, which is a throwaway one.
Knows nothing about questions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from tqdm import tqdm

from memory.errors import ConfigurationError
from memory.intake import Incoming
from memory.llm.choice import embedder
from memory.llm.ports import Origin
from memory.models import Evidence, Principal
from memory.pipeline import PENDING, PIPELINE
from memory.stages.capture import BATCH_ITEMS_MAX, capture
from recall.evaluation.baselines import Shelf, Text
from recall.evaluation.dataset import Dataset, Item

#: Stages that make notes; left out where raw items alone are ranked.
NOTE_STAGES = frozenset({"distill", "dedup"})

#: Units of a stage between two moves of the progress bar.
UNITS_A_STEP = 16

#: Texts embedded in one call.
TEXTS_A_BATCH = 64


@dataclass(frozen=True)
class Ground:
    """What can be found, pool by pool, and what each found thing stands for.

    `stands_for`: key of a raw item or note -> names as questions know them. `counts`: for the
    report.
    """

    shelves: Mapping[str, Shelf]
    stands_for: Mapping[str, frozenset[str]]
    counts: Mapping[str, Any]
    now: datetime

    def named(self, *keys: str) -> frozenset[str]:
        """The names that a hit stands for; none, for something that no question knows."""
        return frozenset().union(*(self.stands_for.get(key, frozenset()) for key in keys))


def lay(dataset: Dataset, *, principal: Principal, progress: bool = False) -> Ground:
    """Capture the items, run the stages, and read back what there is to find.

    Everything happens a day after the last item. Raises InfraError when the embedder is away.
    """
    now = max(item.occurred_at for item in _some(dataset.items)) + timedelta(days=1)
    kept, refused = _capture(dataset.items, principal, now, progress)
    _process(dataset.distil, now, progress)
    stands_for = {key: frozenset(one.full_name for one in items) for key, items in kept.items()}
    notes = _notes(stands_for)
    counts = {"items": len(kept), "refused": refused, "notes": len(notes)}
    shelves = _shelves({key: items[0] for key, items in kept.items()}, progress)
    return Ground(shelves, {**stands_for, **notes}, counts, now)


def raw_key(pk: int) -> str:
    """How a raw item is called among hits."""
    return f"raw:{pk}"


def note_key(pk: object) -> str:
    """How a note is called among hits."""
    return f"note:{pk}"


def _some(items: Sequence[Item]) -> Sequence[Item]:
    if not items:
        raise ConfigurationError("The data set has no items.")
    return items


def _capture(
    items: Sequence[Item], principal: Principal, now: datetime, progress: bool
) -> tuple[dict[str, list[Item]], int]:
    """Post all items; those in the record by key (twins share one), and how many were refused."""
    kept: dict[str, list[Item]] = defaultdict(list)
    refused = 0
    steps = range(0, len(items), BATCH_ITEMS_MAX)
    for at in tqdm(steps, desc="capture", disable=None if progress else True, leave=False):
        batch = items[at : at + BATCH_ITEMS_MAX]
        report = capture([_incoming(item) for item in batch], owner=principal, now=now)
        for item, outcome in zip(batch, report.outcomes, strict=True):
            if outcome.id is None:
                refused += 1
            else:
                kept[raw_key(outcome.id)].append(item)
    return dict(kept), refused


def _incoming(item: Item) -> Incoming:
    return Incoming(
        source=item.source,
        body=item.text,
        kind=item.kind,
        role=item.role,
        session=f"{item.pool}/{item.session}",
        project=item.pool,
        record_id=item.full_name,
        original_timestamp=item.occurred_at,
        metadata={"speaker": item.speaker} if item.speaker else {},
    )


def _process(distil: bool, now: datetime, progress: bool) -> None:
    """Run the stages until nothing waits that they can do; a bar for each."""
    for verb in PIPELINE:
        name = verb.__name__
        if name in NOTE_STAGES and not distil:
            continue
        waiting = PENDING[name](now)
        with tqdm(total=waiting, desc=name, disable=None if progress else True, leave=False) as bar:
            while waiting:
                verb(clock=lambda: now, limit=UNITS_A_STEP, trigger="eval")
                left = PENDING[name](now)
                bar.update(waiting - left)
                if left >= waiting:
                    break
                waiting = left
        # What the steps left behind, and what no count of units shows.
        verb(clock=lambda: now, trigger="eval")


def _notes(stands_for: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    """Each note stands for the items that bear it out."""
    found: dict[str, set[str]] = defaultdict(set)
    for note, item in Evidence.objects.exclude(raw_item=None).values_list("note", "raw_item"):
        found[note_key(note)] |= stands_for.get(raw_key(item), frozenset())
    return {key: frozenset(names) for key, names in found.items()}


def _shelves(stored: Mapping[str, Item], progress: bool) -> dict[str, Shelf]:
    """The same items for the baselines, under a header of who and when as the index has it."""
    said = {
        key: f"{item.speaker} ({item.occurred_at:%d %B %Y}): {item.text}"
        if item.speaker
        else item.text
        for key, item in stored.items()
    }
    vectors = _vectors(said, progress)
    pools: dict[str, list[Text]] = defaultdict(list)
    for key, item in stored.items():
        text = Text(key, said[key], item.occurred_at, item.sort, vectors[key])
        pools[item.pool].append(text)
    return {pool: Shelf(texts) for pool, texts in pools.items()}


def _vectors(said: Mapping[str, str], progress: bool) -> dict[str, Sequence[float]]:
    """Vectors of the dense baseline's own.

    The engine's would be cheaper, and would make the baseline as good or bad as what the engine
    chose to embed: a turn without its header finds half as much.
    """
    model = embedder()
    vectors: dict[str, Sequence[float]] = {}
    keys = list(said)
    steps = range(0, len(keys), TEXTS_A_BATCH)
    for at in tqdm(steps, desc="dense", disable=None if progress else True, leave=False):
        batch = keys[at : at + TEXTS_A_BATCH]
        made = model.embed([said[key] for key in batch], origin=Origin("eval"))
        vectors.update(zip(batch, made, strict=True))
    return vectors
