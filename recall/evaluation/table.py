"""An evaluation as a table for people. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

WIDTH = 22
NUMBERS = ("recall5", "recall10", "mrr10", "ndcg10")
HEADS = ("R@5", "R@10", "MRR@10", "nDCG@10")


def lines(report: Mapping[str, Any]) -> Iterator[str]:
    """The report, line by line: rankers, then categories, kinds, silence and time."""
    argus, floors = report["argus"], report["argus_with_floors"]
    yield (
        f"{report['dataset']}: {report['items']} items, {report['notes']} notes,"
        f" {argus['questions']} questions with an answer; embedder {report['embedder']}"
    )
    if report["refused"]:
        yield f"{report['refused']} items were refused by capture; their questions count as missed"
    for why, count in report["left_out"].items():
        yield f"not asked: {count} ({why})"
    yield ""
    yield _head("questions")
    yield _row("argus", argus)
    yield _row("argus, floors on", floors)
    for name, one in report["baselines"].items():
        yield _row(name.replace("_", " "), one)
    labels = report["labels"]
    for title, key in (("by category", "by_category"), ("by kind", "by_kind")):
        if len(argus[key]) < 2:
            continue
        yield ""
        yield _head("questions", title)
        for name, one in argus[key].items():
            took = f"{one['share_of_five']:9.1%} of the first five" if key == "by_kind" else ""
            yield _row(f"{name} {labels.get(name, '')}".strip(), one) + took
    yield ""
    for name, one in floors["false_injection"].items():
        if one["asked"]:
            yield (
                f"false injections, {name.replace('_', ' ')}: {one['injected']} of {one['asked']}"
                f" ({one['rate']:.1%})"
            )
    put = floors["injection"]
    yield (
        f"injections where there is an answer: {put['injected']} of {put['asked']}"
        f" ({put['rate']:.1%}), with a right one among them {put['right_rate']:.1%}"
    )
    yield f"a search takes {argus['p50_ms']:.0f} ms (p50), {argus['p95_ms']:.0f} ms (p95)"


def _head(count: str, title: str = "") -> str:
    return f"{title:<{WIDTH}} {count:>9} " + " ".join(f"{head:>8}" for head in HEADS)


def _row(name: str, one: Mapping[str, Any]) -> str:
    numbers = " ".join(f"{one[key]:8.3f}" for key in NUMBERS)
    return f"{name:<{WIDTH}} {one['questions']:>9} {numbers}"
