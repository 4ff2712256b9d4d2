"""The rule judge on hand-made pairs: confusion table, precision and recall per verdict.

Run: `python -m tests.bench.judge_pairs [FILE] [--wrong]`. The file is a list of {old, new,
verdict}. Reads nothing else.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from memory.llm.ports import Origin, Statement
from memory.llm.rules.judge import Rules

VERDICTS = ("duplicate", "refine", "supersede", "distinct")
PAIRS = Path(__file__).parents[1] / "fixtures" / "pairs.json"


def judge(old: str, new: str) -> tuple[str, str]:
    """Return the verdict of the rule judge on one pair, and its reason."""
    judgement, _ = Rules().judge(
        Statement(id="new", content=new),
        [Statement(id="old", content=old)],
        origin=Origin(stage="bench"),
    )
    return judgement.verdict, judgement.reasoning


def confusion(pairs: Sequence[dict[str, str]]) -> Counter[tuple[str, str]]:
    """Return how often each (labelled, judged) came up."""
    return Counter((pair["verdict"], judge(pair["old"], pair["new"])[0]) for pair in pairs)


def table(counts: Counter[tuple[str, str]]) -> str:
    """Return the confusion table with precision and recall as text; rows are labels."""
    lines = [
        f"{'label / judged':<16}"
        + "".join(f"{name:>11}" for name in VERDICTS)
        + "  precision  recall"
    ]
    for label in VERDICTS:
        right = counts[label, label]
        judged = sum(counts[other, label] for other in VERDICTS)
        labelled = sum(counts[label, other] for other in VERDICTS)
        cells = "".join(f"{counts[label, name]:>11}" for name in VERDICTS)
        lines.append(
            f"{label:<16}{cells}  {_share(right, judged):>9}  {_share(right, labelled):>6}"
        )
    return "\n".join(lines)


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.2f}" if whole else "-"


def main() -> None:
    """Print the table; with --wrong also each pair that is not judged as labelled."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("file", nargs="?", type=Path, default=PAIRS)
    parser.add_argument("--wrong", action="store_true")
    arguments = parser.parse_args()
    pairs = json.loads(arguments.file.read_text(encoding="utf-8"))
    print(f"{len(pairs)} pairs of {arguments.file.name}")
    print(table(confusion(pairs)))
    if arguments.wrong:
        for pair in pairs:
            verdict, why = judge(pair["old"], pair["new"])
            if verdict != pair["verdict"]:
                print(f"\n{pair['verdict']} judged {verdict}: {why}")
                print(f"  old: {pair['old']}\n  new: {pair['new']}")


if __name__ == "__main__":
    main()
