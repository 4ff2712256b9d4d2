"""LoCoMo's JSON as a data set: each dialogue a pool, each turn an item. Pure.

Questions of categories 1 to 4 are scored; those of category 5 have no answer in the dialogue.
Knows nothing about where the turns go.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from recall.evaluation.dataset import NO_ANSWER, Dataset, DatasetProblem, Item, Question

SOURCE = "locomo"

LABELS = {"1": "multi-hop", "2": "temporal", "3": "open-domain", "4": "single-hop"}

#: The category whose questions ask for what was never said.
ADVERSARIAL = 5

# Some evidence strings hold several ids, or an id that no turn has.
_TURN_ID = re.compile(r"D\d+:\d+")
_SESSION = re.compile(r"session_\d+")
_DATE = "%I:%M %p on %d %B, %Y"


def looks_like(data: Any) -> bool:
    """Whether this JSON is LoCoMo's: a list of dialogues with questions."""
    return (
        isinstance(data, list)
        and bool(data)
        and all(isinstance(one, dict) and {"qa", "conversation"} <= one.keys() for one in data)
    )


def read(data: list[dict[str, Any]], name: str) -> Dataset:
    """The dialogues as items and questions. Raises DatasetProblem naming the dialogue."""
    items: list[Item] = []
    questions: list[Question] = []
    left_out: Counter[str] = Counter()
    for place, sample in enumerate(data):
        pool = str(sample.get("sample_id", place))
        try:
            turns = list(_turns(pool, sample["conversation"]))
            asked = list(_questions(pool, sample["qa"], {turn.name for turn in turns}))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise DatasetProblem(
                f"{name}: dialogue {pool} is not as LoCoMo's are: {error!r}"
            ) from (error)
        items += turns
        questions += [one for one in asked if isinstance(one, Question)]
        left_out.update(one for one in asked if isinstance(one, str))
    return Dataset(
        name, tuple(items), tuple(questions), distil=False, labels=LABELS, left_out=left_out
    )


def _turns(pool: str, talk: Mapping[str, Any]) -> Iterator[Item]:
    for session in (key for key in talk if _SESSION.fullmatch(key)):
        begin = datetime.strptime(talk[f"{session}_date_time"], _DATE).replace(tzinfo=UTC)
        for second, turn in enumerate(talk[session]):
            caption = turn.get("blip_caption")
            photo = f" [shares a photo: {caption}]" if caption else ""
            yield Item(
                pool=pool,
                name=turn["dia_id"],
                text=f"{turn['text']}{photo}".strip(),
                source=SOURCE,
                session=session,
                speaker=turn["speaker"],
                occurred_at=begin + timedelta(seconds=second),
            )


def _questions(pool: str, asked: list[dict[str, Any]], known: set[str]) -> Iterator[Question | str]:
    """Questions, or the reason why one is left out."""
    for one in asked:
        if one["category"] == ADVERSARIAL:
            yield Question(pool, one["question"], category=NO_ANSWER)
            continue
        named = dict.fromkeys(
            name for text in one.get("evidence") or () for name in _TURN_ID.findall(str(text))
        )
        facts = tuple(frozenset({f"{pool}/{name}"}) for name in named if name in known)
        if not facts:
            yield "no evidence in the data"
            continue
        yield Question(pool, one["question"], facts, str(one["category"]), "turn")
