"""Why a result is where it is, in some six lines: from a hit's JSON. Pure.

Reads what `recall.results.as_json` tells with every number, and what the ledger keeps of a hit. A
row of an older time lacks what was not kept then; what is absent is not told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from memory.text.clean import strip_invisible
from recall.ranker import PARTS_SHOWN
from recall.scoring import REST

#: Matched words that are told.
WORDS_TOLD = 12

#: Turns, or notes that say the same, that are named.
IDS_TOLD = 3

#: Characters of a title or a word.
TOLD_CHARACTERS = 100


def explain(hit: Mapping[str, Any]) -> str:
    """Some six lines for people: which result, its ranks and scores, the ranker's sum part by part,
    the weights, the words that matched, the neighbour that lent to it, and its fate."""
    lines = [_head(hit)]
    told = (_tracks(hit), _ranker(hit), _weights(hit), _words(hit), _near(hit), _floors(hit))
    lines += [f"   {name:<8} {text}" for name, text in told if text]
    return "\n".join(lines)


def _head(hit: Mapping[str, Any]) -> str:
    kind = "turn" if hit.get("turn") is not None else "note"
    fate = "injected" if hit.get("injected") else "left out" if "injected" in hit else ""
    title = clip(hit.get("title") or "")
    parts = [f"#{clip(hit.get('rank', '?'))} {kind} {clip(hit.get(kind, '?'))}", title, fate]
    return "  ".join(part for part in parts if part)


def _tracks(hit: Mapping[str, Any]) -> tuple[str, str]:
    tracks: Mapping[str, Mapping[str, Any]] = hit.get("tracks") or {}
    told = [f"{clip(name)} #{clip(at.get('rank', '?'))} ({_number(at.get('score'))})"
            for name, at in tracks.items()]  # fmt: skip
    return "tracks", ", ".join(told)


def _ranker(hit: Mapping[str, Any]) -> tuple[str, str]:
    """The sum of log-odds and what it is the sum of, what is small as one number at the end; then
    what a reranker made of it, whose order is another."""
    given = dict(hit.get("features") or {})
    if not given:
        return "ranker", ""
    whole = hit.get("order", sum(given.values()))
    rest = given.pop(REST, None)
    ordered = sorted(given.items(), key=lambda part: (-abs(part[1]), part[0]))
    told = [f"{clip(name)} {value:+.2f}" for name, value in ordered[:PARTS_SHOWN]]
    if small := [value for _, value in ordered[PARTS_SHOWN:]] + ([] if rest is None else [rest]):
        told.append(f"{REST} {sum(small):+.2f}")
    reranked = hit.get("reranked")
    asked = "" if reranked is None else f"; reranker {_number(reranked)}"
    return "ranker", f"{_number(whole, sign=True)} log-odds: {', '.join(told)}{asked}"


def _weights(hit: Mapping[str, Any]) -> tuple[str, str]:
    """The score that the floor reads, as the product it is."""
    if "fused" not in hit or "score" not in hit:
        return "score", _number(hit["score"]) if "score" in hit else ""
    factors = [f"fused {_number(hit['fused'])}"]
    factors += [f"{name} {_number(hit[name])}"
                for name in ("prior", "decay", "boost") if hit.get(name, 1.0) != 1.0]  # fmt: skip
    return "score", f"{_number(hit['score'])} = {' x '.join(factors)}"


def _words(hit: Mapping[str, Any]) -> tuple[str, str]:
    words: Sequence[Any] = hit.get("terms") or ()
    more = f" and {len(words) - WORDS_TOLD} more" if len(words) > WORDS_TOLD else ""
    return "words", ", ".join(clip(word) for word in words[:WORDS_TOLD]) + more


def _near(hit: Mapping[str, Any]) -> tuple[str, str]:
    """The turn nearby that lent to the score, what the hit stands for beside itself, and where a
    note that holds no more points to."""
    lent = hit.get("neighbour")
    told = ([] if lent is None else [f"turn {clip(lent)}"], _folded(hit), _state(hit))
    return "near", "; ".join(chain.from_iterable(told))


def _folded(hit: Mapping[str, Any]) -> Iterator[str]:
    for name in ("turns", "twins"):
        ids: Sequence[Any] = hit.get(name) or ()
        if ids:
            more = f" and {len(ids) - IDS_TOLD} more" if len(ids) > IDS_TOLD else ""
            yield f"{name} {', '.join(clip(one) for one in ids[:IDS_TOLD])}{more}"


def _state(hit: Mapping[str, Any]) -> Iterator[str]:
    state = hit.get("state") or "live"
    if state == "live":
        return
    heir = hit.get("replaced_by")
    # The ledger keeps of it the id alone.
    named = (heir["id"], heir["title"]) if isinstance(heir, Mapping) else (heir,)
    now = f" by {' '.join(map(clip, named))}" if heir else ""
    yield f"{clip(state)} today{now}"


def _floors(hit: Mapping[str, Any]) -> tuple[str, str]:
    """What the floors read of it beside the tracks and the score, and what came of it."""
    named = ("relevance", "cosine", "coverage")
    read = [f"{name} {_number(hit[name])}" for name in named if hit.get(name) is not None]
    cleared: Sequence[str] = hit.get("cleared") or ()
    told = [", ".join(read), f"cleared {', '.join(map(clip, cleared))}" if cleared else ""]
    told.append(f"refused: {clip(hit['refused'])}" if hit.get("refused") else "")
    return "floors", "; ".join(part for part in told if part)


def _number(value: Any, *, sign: bool = False) -> str:
    if not isinstance(value, (int, float)):
        return "-"
    return f"{value:{'+' if sign else ''}.4g}"


def clip(value: Any) -> str:
    """A text of somebody's as a piece of a line: without what steers a terminal, and short."""
    text = " ".join(strip_invisible(str(value))[0].split())
    return text if len(text) <= TOLD_CHARACTERS else text[: TOLD_CHARACTERS - 1] + "…"
