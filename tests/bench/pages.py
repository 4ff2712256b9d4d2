"""Every page at 10,000 and at 100,000 raw items, against a bare `SELECT 1` view of the same run.

`python -m tests.bench.pages [RAW ...]`. One throwaway database that grows, with a tenth as many
notes and everything else in proportion (tests/bench/pageload.py); the web server as `up` runs it; a
session that is logged in, over one connection; pages and floor in turn. The times are the server's
own, from the first middleware to the last, the floor's as well; over HTTP both take as much longer.
Beside them stand the milliseconds of the processors, which a busy machine does not make longer.
What the board keeps for half a minute is kept, but for the page "board, all anew". To ask costs a
run of the embedder beside the page: every question is a new one.
"""

from __future__ import annotations

import http.client
import itertools
import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from statistics import median
from typing import Any
from urllib.parse import quote, urlsplit

from tests.bench.ground import database, server, spread

SIZES = (10_000, 100_000)
ROUNDS = 15

#: Recalls that were done for real; the ledger repeats them.
RECALLS = 60

#: What the product promises: p50 over the bare view's, and growth from the first size to the last.
FLOOR_RATIO_MAX, GROWTH_RATIO_MAX = 25.0, 1.5

FLOOR = "bare SELECT 1"

#: Where in a list its deep page begins.
DEPTH = 0.9

#: Rounds that do not count.
# Why so many: each thread of the server has a connection of its own, which must know the tables.
WARMING_ROUNDS = 10

#: Of each page the milliseconds on the clock, and those of the processors.
Times = dict[str, list[tuple[float, float]]]


def main() -> None:
    sizes = [int(one) for one in sys.argv[1:]] or list(SIZES)
    with database() as address:
        from memory.access import principal
        from memory.llm.minilm import shared
        from tests.bench.pageload import Grown, grow, tell_recalls
        from tests.cluster import owner_address

        owner = principal("bench")
        cookie = log_in(owner)
        grown = Grown(owner_address(address), owner, shared().name, datetime.now(UTC))
        p50s: list[dict[str, tuple[float, float]]] = []
        for size in sizes:
            before = grown.items
            grow(grown, size)
            words = [question(grown.writing) for _ in range(RECALLS)]
            tell_recalls(grown, words, before)
            with server(address, settings="tests.bench.pagesettings") as url:
                times = measure(url, cookie, addresses(grown))
            p50s.append(report(f"{size} raw items, {size // 10} notes", times))
    if len(sizes) > 1:
        told_growth(sizes, p50s)


def log_in(owner: Any) -> str:
    """The cookies of a reviewer and operator who stands for the owner of everything."""
    from tests.web import staff

    browser = staff("reviewer", "operator", who=owner)
    return "; ".join(f"{one.key}={one.value}" for one in browser.cookies.values())


def question(writing: Any) -> str:
    """Six words as a prompt has them."""
    return "what about " + " ".join(writing.texts(1)[0][:6])


def addresses(grown: Any) -> dict[str, Callable[[], str]]:
    """What is asked for, by name; each call gives the address of one request."""
    from memory.models import (
        Act,
        DedupVerdict,
        Episode,
        GateRejection,
        Injection,
        Note,
        Project,
        RawItem,
        TaskItem,
    )
    from review.models import Draw

    def middle(rows: Any) -> Any:
        rows = rows.as_pipeline() if hasattr(rows, "as_pipeline") else rows
        return rows.order_by("pk")[rows.count() // 2]

    lists = {
        "review": (DedupVerdict, ("-pk",), "?view=list"),
        "rejections": (GateRejection, ("-pk",), ""),
        "episodes": (Episode, ("-started_at", "-pk"), ""),
        "notes": (Note, ("-created_at", "-pk"), ""),
        "injections": (Injection, ("-pk",), ""),
        "feed/draws": (Draw, ("-pk",), ""),
        "tasks": (TaskItem, ("-opened_at", "-pk"), ""),
        "audit": (Act, ("-pk",), ""),
    }
    # Why ignored below: mypy knows no default of a lambda, which each needs for its own name.
    told: dict[str, Callable[[], str]] = {FLOOR: lambda: "/bench/bare"}
    for name in (
        "", "review/", "parked/", "injections/floors/", "feed/", "projects/", "keys/", "findings/",
    ):  # fmt: skip
        told[name or "board"] = lambda name=name: f"/ui/{name}"  # type: ignore[misc]
    told["board, all anew"] = lambda: "/ui/?anew=1"
    for name, (model, order, query) in lists.items():
        first = f"/ui/{name}/{query}"
        deep = f"{first}{'&' if query else '?'}after={cursor(model, order)}"
        told[f"{name}/{query}"] = lambda first=first: first  # type: ignore[misc]
        told[f"  deep page of {name}"] = lambda deep=deep: deep  # type: ignore[misc]
    one: dict[str, Any] = {
        "episodes": Episode,
        "items": RawItem,
        "rejections": GateRejection,
        "notes": Note,
        "injections": Injection,
        "projects": Project,
        "tasks": TaskItem,
    }
    for name, model in one.items():
        address = f"/ui/{name}/{middle(model.objects.all()).pk}/"
        told[f"{name}/{{id}}/"] = lambda address=address: address  # type: ignore[misc]
    for name in ("notes", "ask"):
        told[f"{name}/?q="] = lambda name=name: (  # type: ignore[misc]
            f"/ui/{name}/?q={quote(question(grown.writing))}"
        )
    return told


def cursor(model: Any, order: tuple[str, ...]) -> str:
    """The way on from a row far down a list, as a page writes it."""
    from memory.web.listing import _cursor

    rows = model.objects
    rows = rows.as_pipeline() if hasattr(rows, "as_pipeline") else rows.all()
    row = rows.order_by(*order)[int(rows.count() * DEPTH)]
    return _cursor(row, rows, order)


def measure(url: str, cookie: str, asked: dict[str, Callable[[], str]]) -> Times:
    """Milliseconds of each page by the server's own clock, in turn."""
    web = http.client.HTTPConnection(urlsplit(url).netloc)

    def get(address: str) -> tuple[float, float]:
        web.request("GET", address, headers={"Cookie": cookie})
        reply = web.getresponse()
        body = reply.read()
        if reply.status != 200:
            raise SystemExit(f"{address}: {reply.status} {body[:500]!r}")
        if "after=" in address and b'rel="prev"' not in body:
            raise SystemExit(f"{address}: a cursor that begins at the beginning")
        wall, processor = re.findall(r"dur=([\d.]+)", reply.headers["Server-Timing"])
        return float(wall), float(processor)

    times: Times = {name: [] for name in asked}
    for each, (name, address) in itertools.product(range(ROUNDS + WARMING_ROUNDS), asked.items()):
        if "anew" in (target := address()):
            get("/bench/forget")
        took = get(target)
        if each >= WARMING_ROUNDS:
            times[name].append(took)
    return times


def report(title: str, times: Times) -> dict[str, tuple[float, float]]:
    """Print the table; the p50 of each page in ms, on the clock and of the processors."""
    p50s = {
        name: (median(w for w, _ in some), median(p for _, p in some))
        for name, some in times.items()
    }
    print(f"\n{title}, {ROUNDS} rounds, the server's own time")
    print(f"{'':<26} {'p50 ms':>8} {'p95 ms':>8} {'x floor':>8} {'cpu ms':>8} {'x floor':>8}")
    for name, (wall, processor) in p50s.items():
        p95 = spread([one for one, _ in times[name]])[1]
        ratio, worked = wall / p50s[FLOOR][0], processor / p50s[FLOOR][1]
        more = "  above" if ratio > FLOOR_RATIO_MAX else ""
        print(
            f"{name:<26} {wall:8.2f} {p95:8.2f} {ratio:8.1f} {processor:8.2f} {worked:8.1f}{more}"
        )
    print(f"promised: {FLOOR_RATIO_MAX:.0f} times the floor", flush=True)
    return p50s


def told_growth(sizes: list[int], p50s: list[dict[str, tuple[float, float]]]) -> None:
    """Print by how much each page grew from the first size to the last, over the floor of its own
    run. "above" by the processors' time alone: the clock tells what else the machine found to do
    between the two."""
    print(
        f"\ngrowth over the floor, {sizes[0]} to {sizes[-1]}"
        f" (promised: {GROWTH_RATIO_MAX} of the processors' time)"
    )
    print(f"{'':<26} {'p50':>8} {'cpu':>8}")
    first, last = p50s[0], p50s[-1]
    for name in first:
        wall, processor = (
            (last[name][at] / last[FLOOR][at]) / (first[name][at] / first[FLOOR][at])
            for at in (0, 1)
        )
        above = "  above" if processor > GROWTH_RATIO_MAX else ""
        print(f"{name:<26} {wall:8.2f} {processor:8.2f}{above}")


if __name__ == "__main__":
    main()
