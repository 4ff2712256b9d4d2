"""How the weights in `recall/ranker.json` are made, and how such weights do on what they never saw.

    python -m tests.bench.ranker [--out recall/ranker.json] [FILE]

FILE is LoCoMo's JSON (default: the development half beside the checkout). Its turns are captured
and indexed by the real verbs in a throwaway database, each dialogue a project, and every question
of categories 1 to 4 is asked of the real engine within its dialogue. All candidates count, not only
the best that recall keeps, because the weights decide which are kept. Training starts from weights
of zero. The table holds out each dialogue in turn, the pull chosen without it, too; the weights
that are written have seen all dialogues.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import django
import numpy as np

from tests.corpus import CORPUS

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
django.setup()

from memory.access import principal  # noqa: E402
from memory.llm.choice import embedder  # noqa: E402
from memory.models import Principal, Project  # noqa: E402
from recall import found  # noqa: E402
from recall.evaluation import files, ground  # noqa: E402
from recall.evaluation.dataset import Dataset  # noqa: E402
from recall.features import FEATURES  # noqa: E402
from recall.ranker import Ranker, parse, shipped  # noqa: E402
from recall.search import search  # noqa: E402
from recall.training import Example, Measured, held_out, measure, tempered, train  # noqa: E402
from tests.bench.ground import database  # noqa: E402

DATASET = CORPUS / "bench" / "locomo_dev.json"

#: More candidates than any question has.
EVERY = 10**6

#: Where training starts.
NOTHING = Ranker((0.0,) * len(FEATURES))


def main() -> int:
    """Ask, train, print the table, and write the weights when it is said where."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.ranker")
    parser.add_argument("dataset", nargs="?", type=Path, default=DATASET)
    parser.add_argument("--out", type=Path, help="write the weights there")
    given = parser.parse_args()
    if not given.dataset.exists():
        print(f"{given.dataset} is absent; nothing was trained")
        return 0
    with database():
        examples = asked(files.read(str(given.dataset)), principal())
    made = learn(examples)
    print("\n".join(table(examples, parse(made))))
    if given.out:
        given.out.write_text(json.dumps(made, indent=2, ensure_ascii=False) + "\n")
        print(f"written: {given.out}")
    return 0


def asked(dataset: Dataset, who: Principal) -> list[Example]:
    """Capture and index the dialogues, and make an example of every question with an answer, the
    dialogues as groups. Evidence that no candidate is counts as missed."""
    laid = ground.lay(dataset, principal=who, progress=sys.stderr.isatty())
    projects = dict(Project.objects.values_list("name", "pk"))
    examples = []
    with every_candidate():
        for question in dataset.questions:
            if not question.facts:
                continue
            searched = search(
                question.text,
                principal=who,
                now=laid.now,
                project=projects[question.pool],
                sources=("turn",),
                ranker=shipped(),
            )
            wanted = frozenset[str]().union(*question.facts)
            right = [bool(laid.named(f"raw:{one.key}") & wanted) for one in searched.found]
            rows = [one.row for one in searched.found if one.row is not None]
            matrix = np.stack(rows) if rows else np.zeros((0, len(FEATURES)))
            labels = np.array(right, dtype=np.bool_)
            examples.append(Example(matrix, labels, len(question.facts), question.pool))
    return examples


@contextmanager
def every_candidate() -> Iterator[None]:
    """What the weights in force would leave out is a candidate, too."""
    kept = found.FOUND_MAX
    found.FOUND_MAX = EVERY
    try:
        yield
    finally:
        found.FOUND_MAX = kept


def learn(examples: Sequence[Example]) -> dict[str, Any]:
    """The JSON of a ranker of these examples, with how it was made and how its like do on dialogues
    held out."""
    dialogues = len({one.group for one in examples})
    how = {
        "on": f"LoCoMo, {dialogues} dialogues, turns as items, categories 1 to 4",
        "by": "python -m tests.bench.ranker",
        "embedder": embedder().name,
        "loss": "listwise softmax",
        "candidates": round(float(np.mean([len(one.labels) for one in examples])), 1),
    }
    ranker, compared = train(examples, NOTHING, trained=how)
    numbers = {
        name: value if name == "questions" else round(value, 4)
        for name, value in asdict(compared.new).items()
    }
    made = ranker.as_json()
    return {
        **made,
        "trained": {**made["trained"], "held_out": {"folds": "one dialogue", **numbers}},
    }


def table(examples: Sequence[Example], ranker: Ranker) -> list[str]:
    """Each dialogue as weights order it that never saw it, and all of them as the shipped weights
    and the new ones do, which saw them."""
    lines = [f"{'':<28} {'questions':>9} {'loss':>7} {'recall@5':>9} {'recall@10':>9} {'MRR':>7}"]
    start = np.array(NOTHING.weights)
    groups = sorted({one.group for one in examples})
    lines += [
        _line(f"held out: {group}", one)
        for group, one in zip(groups, by_group(examples, groups), strict=True)
    ]
    lines.append(_line("held out: all", held_out(examples, start=start)))
    for name, one in (("seen: the new weights", ranker), ("seen: the shipped weights", shipped())):
        weights = tempered(examples, np.array(one.weights))
        lines.append(_line(name, measure(examples, weights)))
    reached = np.mean([one.labels.sum() / max(one.evidence, 1) for one in examples])
    lines.append(f"{reached:.3f} of the evidence is among the candidates")
    return lines


def by_group(examples: Sequence[Example], groups: Sequence[str]) -> Iterator[Measured]:
    """Each group as weights order it that were trained on the others."""
    for group in groups:
        others = [one for one in examples if one.group != group]
        ranker, _ = train(others, NOTHING, trained={})
        held = [one for one in examples if one.group == group]
        yield measure(held, tempered(others, np.array(ranker.weights)))


def _line(name: str, one: Measured) -> str:
    return (
        f"{name:<28} {one.questions:>9} {one.loss:>7.3f} {one.recall5:>9.3f} "
        f"{one.recall10:>9.3f} {one.mrr10:>7.3f}"
    )


if __name__ == "__main__":
    sys.exit(main())
