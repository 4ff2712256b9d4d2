"""`rebuild` of a house, against making it the first time and against copying its rows.

`python -m tests.bench.rebuild [NOTES]`; of 10000 it takes half an hour, most of it the making. The
notes are made by the real pipeline of captured turns, with the default models, in one throwaway
database. Then everything above the turns is made again beside it and compared; nothing may come out
otherwise. The floors: the pipeline's own time, and a database copied by the server.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections import Counter
from datetime import timedelta
from typing import Any

from tests.bench.ground import database, milliseconds, table
from tests.bench.pipeline import hear, remarks

NOTES = 1_000

#: Turns heard before the pipeline runs again.
TURNS_A_PASS = 600

#: Passes without which the notes are not worth waiting for.
PASSES_MAX = 200

#: What the product promises: it takes no longer than making it did.
MADE_RATIO_MAX = 1.0

MAKE, COPY, REBUILD = "make it by the pipeline", "copy the database", "rebuild"


def main() -> None:
    count = int(sys.argv[1]) if sys.argv[1:] else NOTES
    with database():
        from django.utils import timezone

        from argus.rebuilding.rebuild import rebuild
        from memory.access import principal

        owner = principal("bench")
        making = make(owner, count)
        copying = milliseconds(copied)
        reports: list[Any] = []
        took = milliseconds(
            lambda: reports.append(rebuild(by=owner, now=timezone.now(), progress=True))
        )
    report = reports[0]
    table("a house", {COPY: [copying], MAKE: [making], REBUILD: [took]}, floor=MAKE)
    events = sum(report.events.values())
    print(
        f"{dict(report.events)}: {took / max(events, 1):.1f} ms an event;"
        f" identical: {report.identical}"
    )
    for name, rows in report.difference.tables.items():
        print(f"  {name:<34} same {rows.same:>8,}  more {rows.more:,}  less {rows.less:,}")
    word = "holds" if took <= making * MADE_RATIO_MAX and report.identical else "MISSED"
    print(f"rebuild / made {took / making:.2f} (aim <= {MADE_RATIO_MAX:g}, identical): {word}")


def make(owner: Any, count: int) -> float:
    """Turns heard and worked off until there are so many notes; milliseconds of the stages."""
    from memory.models import EpisodeTurn, Note
    from memory.pipeline import PIPELINE

    spent: Counter[str] = Counter()
    started = time.perf_counter()
    for seed in itertools.islice(itertools.count(1), PASSES_MAX):
        now = hear(owner, remarks(TURNS_A_PASS, seed), seed)
        for place, verb in enumerate(PIPELINE):
            at = now + timedelta(minutes=place)
            spent[verb.__name__] += milliseconds(lambda: verb(clock=lambda: at))  # type: ignore[assignment]  # noqa: B023
        made = Note.objects.as_pipeline().count()
        if made >= count:
            break
    turns = EpisodeTurn.objects.count()
    told = ", ".join(f"{name} {milli / 1000:.1f}" for name, milli in spent.items())
    print(
        f"{turns:,} turns made {made:,} notes in {time.perf_counter() - started:.0f} s,"
        f" of them seconds of {told}"
    )
    return float(spent.total())


def copied() -> None:
    """The database, as the server copies it."""
    from django.db import connection

    from tests import cluster

    name = connection.settings_dict["NAME"]
    connection.close()
    cluster.drop(cluster.clone(name))


if __name__ == "__main__":
    main()
