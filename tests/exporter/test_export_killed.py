"""kill -9 at any point of an export: the next one finishes it, byte for byte, and loses nothing."""

from __future__ import annotations

import random
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from exporter.export import preview
from memory.access import principal
from memory.models import Note, Principal, StageRun
from memory.retire import retire
from memory.text.region import OURS
from tests import factories as make
from tests.exporter.exports import LATER, jot, replace, run, times, tree, where
from tests.exporter.process import start

pytestmark = pytest.mark.usefixtures("clone_db", "vault", "local")

SEEDS = range(8)


@pytest.fixture
def alice() -> Principal:
    return principal("alice")


def told(alice: Principal, number: int) -> Note:
    said = "What is known of the harbour's staging database and its port"
    return make.note(
        alice, f"{said}, number {number}.", title=f"Thing {number % 7}", project=make.project(),
        when=make.at(number),
    )  # fmt: skip


def change(alice: Principal, vault: Path, chance: random.Random) -> None:
    """People write, and notes come and go: something for each thing an export may do."""
    live = list(Note.objects.as_pipeline().live(LATER).order_by("created_at"))
    for one in chance.sample(live, 6):
        jot(where(vault, one), f"Mine, {chance.random()}.\n")
    chance.shuffle(live)
    number = 100 + Note.objects.as_pipeline().count()
    for at in range(3):
        replace(live.pop(), told(alice, number + at))
    replace(live[0], live.pop(), "duplicate")
    retire([live.pop().pk, live.pop().pk], reason="retired", now=make.at(days=19))
    for at in range(4):
        told(alice, number + 10 + at)
    moved = where(vault, live.pop())
    moved.rename(vault / f"moved {chance.randrange(10**6)}.md")


def foreseen(vault: Path) -> dict[str, bytes]:
    """What an export that nobody kills leaves."""
    lies = tree(vault) if vault.exists() else {}
    for one in preview(now=LATER).changes:
        if one.was:
            lies.pop(one.was, None)
        if one.after is None:
            lies.pop(one.path, None)
    lies |= {one.path: one.after for one in preview(now=LATER).changes if one.after is not None}
    return lies


def words(files: dict[str, bytes]) -> Iterator[bytes]:
    for data in files.values():
        yield from (line for line in data.splitlines() if line.startswith(b"Mine, "))


@pytest.mark.slow
def test_it_ends_the_same_wherever_it_was_killed(
    vault: Path, alice: Principal, clone_environment: dict[str, str]
) -> None:
    for number in range(24):
        told(alice, number)
    # How much there is to do: as much as in a folder that nobody looks at.
    whole = start(vault.parent / "Other", clone_environment)
    out, err = whole.communicate(timeout=120)
    assert whole.returncode == 0, err
    points = int(out)
    assert points > 100
    killed = 0
    for seed in SEEDS:
        chance = random.Random(seed)
        if seed:
            change(alice, vault, chance)
        expected = foreseen(vault)
        before = sorted(words(tree(vault))) if vault.exists() else []
        process = start(vault, clone_environment, chance.randrange(1, points))
        _, err = process.communicate(timeout=120)
        assert process.returncode in (0, -signal.SIGKILL), err
        killed += process.returncode != 0
        # Nothing of a person's is lost, not even for a moment.
        assert Counter(before) <= Counter(words(tree(vault)))
        run()
        assert tree(vault) == expected
        assert list((vault / OURS / "tmp").iterdir()) == []
        left = times(vault)
        assert (run().written, times(vault)) == (0, left)
        # Nor doubled.
        assert sorted(words(tree(vault))) == before
    assert killed >= len(SEEDS) // 2
    statuses = set(StageRun.objects.filter(stage="export").values_list("status", flat=True))
    assert statuses <= {"done", "lost"} and "lost" in statuses
