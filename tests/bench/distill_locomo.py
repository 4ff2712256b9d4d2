"""How well the extractive distiller finds the turns that hold a durable fact, beside simple rules.

LoCoMo's `observation` lists name the turns from which people drew a durable fact. Each session is
cut into episodes of at most 20 turns and distilled; each baseline picks the same number of turns
per episode. Precision = labelled turns among the picked ones, recall = picked turns among the
labelled ones. Run: `python -m tests.bench.distill_locomo`.
"""

from __future__ import annotations

import json
import random
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memory.llm.extractive.distiller import Extractive
from memory.llm.ports import Origin, Passage
from memory.text.words import sentences

EPISODE_TURNS_MAX = 20
RANDOM_SEEDS = 20
#: Dialogues that the weights were tuned on; the others show whether they carry over.
TUNED_ON = ("conv-26", "conv-42", "conv-47")
TURN_ID = re.compile(r"D\d+:\d+")

Pick = Callable[[Sequence[Passage], int], set[int]]


@dataclass(frozen=True)
class Episode:
    """Passages of one episode, with the positions of those that hold a durable fact."""

    dialogue: str
    passages: tuple[Passage, ...]
    labelled: frozenset[int]


@dataclass
class Score:
    """Counts of picked, labelled and picked-and-labelled turns."""

    turns: int = 0
    picked: int = 0
    labelled: int = 0
    both: int = 0

    @property
    def precision(self) -> float:
        return self.both / self.picked if self.picked else 0.0

    @property
    def recall(self) -> float:
        return self.both / self.labelled if self.labelled else 0.0


def episodes(path: Path) -> Iterator[Episode]:
    """Yield the episodes of all dialogues of a LoCoMo file, in order."""
    for dialogue in json.loads(path.read_text(encoding="utf-8")):
        talk = dialogue["conversation"]
        for key in talk:
            if not re.fullmatch(r"session_\d+", key):
                continue
            labels = _labels(dialogue["observation"].get(f"{key}_observation", {}))
            when = _instant(str(talk.get(f"{key}_date_time", "")))
            for at in range(0, len(talk[key]), EPISODE_TURNS_MAX):
                turns = talk[key][at : at + EPISODE_TURNS_MAX]
                passages = tuple(
                    Passage(at + i, "user", str(turn["text"]), when) for i, turn in enumerate(turns)
                )
                marked = frozenset(i for i, turn in enumerate(turns) if turn["dia_id"] in labels)
                yield Episode(dialogue["sample_id"], passages, marked)


def _labels(observation: dict[str, Any]) -> set[str]:
    """Collect turn ids; an entry is (fact, id), (fact, [ids]) or a malformed list of them."""
    entries = [entry for facts in observation.values() for entry in facts]
    return {name for entry in entries for name in TURN_ID.findall(str(entry[1:]))}


def _instant(text: str) -> datetime:
    try:
        return datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
    except ValueError:
        return datetime(2023, 1, 1, tzinfo=UTC)


def distilled(passages: Sequence[Passage]) -> list[int]:
    """Return the position of the evidence of each note."""
    draft = Extractive().distill(passages, origin=Origin("distill"))
    return [
        next(i for i, passage in enumerate(passages) if note.source_ref in passage.body)
        for note in draft.candidates
    ]


def longest_sentence(passages: Sequence[Passage], count: int) -> set[int]:
    """The turns that hold the longest sentences."""
    length = [max((len(s.text) for s in sentences(p.body)), default=0) for p in passages]
    return set(sorted(range(len(passages)), key=lambda i: -length[i])[:count])


def first_sentence(passages: Sequence[Passage], count: int) -> set[int]:
    """The first turns."""
    return set(range(len(passages))[:count])


def chance(seed: int) -> Pick:
    """Turns drawn by a seeded generator."""
    generator = random.Random(seed)
    return lambda passages, count: set(generator.sample(range(len(passages)), count))


def everything(passages: Sequence[Passage], count: int) -> set[int]:
    """All turns."""
    return set(range(len(passages)))


def compare(found: Sequence[Episode]) -> dict[str, Score]:
    """Return the scores of the distiller and of every baseline at its number of notes."""
    picks: dict[str, Pick] = {
        "longest sentence": longest_sentence,
        "first sentence": first_sentence,
    }
    picks |= {f"random {seed}": chance(seed) for seed in range(RANDOM_SEEDS)}
    picks["keep everything"] = everything
    scores = {name: Score() for name in ["extractive", *picks]}
    for episode in found:
        chosen = set(distilled(episode.passages))
        _count(scores["extractive"], episode, chosen)
        for name, pick in picks.items():
            _count(scores[name], episode, pick(episode.passages, len(chosen)))
    drawn = [scores.pop(f"random {seed}") for seed in range(RANDOM_SEEDS)]
    scores[f"random (mean of {RANDOM_SEEDS})"] = Score(
        *(sum(getattr(s, part) for s in drawn) for part in ("turns", "picked", "labelled", "both"))
    )
    return scores


def _count(score: Score, episode: Episode, picked: set[int]) -> None:
    score.turns += len(episode.passages)
    score.picked += len(picked)
    score.labelled += len(episode.labelled)
    score.both += len(picked & episode.labelled)


def table(title: str, found: Sequence[Episode]) -> str:
    """Return the scores of these episodes as lines of text."""
    scores = compare(found)
    lines = [title, f"  {'':24s} precision  recall  notes/turn"]
    for name, score in scores.items():
        share = score.picked / score.turns if score.turns else 0.0
        lines.append(
            f"  {name:24s}     {score.precision:.3f}   {score.recall:.3f}       {share:.3f}"
        )
    ahead = scores["extractive"].recall - scores["longest sentence"].recall
    lines.append(f"  ahead of the longest sentence by {100 * ahead:.1f} points of recall")
    return "\n".join(lines)


def main() -> int:
    """Print the tables: all dialogues, those tuned on, the rest; 2 when the file is not there."""
    from tests.corpus import CORPUS

    path = CORPUS / "bench" / "locomo_dev.json"
    if not path.is_file():
        print("no LoCoMo file in the corpus")
        return 2
    found = list(episodes(path))
    begun = time.perf_counter()
    for episode in found:
        distilled(episode.passages)
    spent = 1000 * (time.perf_counter() - begun) / len(found)
    print(table(f"all {len(found)} episodes", found))
    print(table("dialogues tuned on", [e for e in found if e.dialogue in TUNED_ON]))
    print(table("dialogues held out", [e for e in found if e.dialogue not in TUNED_ON]))
    print(f"  {spent:.1f} ms an episode")
    return 0


if __name__ == "__main__":
    sys.exit(main())
