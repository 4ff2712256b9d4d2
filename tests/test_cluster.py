"""The tests' own databases: what is left of them, and where their server lies."""

from __future__ import annotations

import fcntl
import threading
from pathlib import Path

import pytest
from pytest_django import DjangoDbBlocker

from tests import cluster
from tests.settings import lock_of, placed


def test_a_clone_is_gone_whatever_happened_in_it(
    template_db: str, django_db_blocker: DjangoDbBlocker
) -> None:
    names = []
    with (
        django_db_blocker.unblock(),
        pytest.raises(ZeroDivisionError),
        cluster.copied(template_db) as name,
    ):
        names.append(name)
        assert name in cluster._databases()
        raise ZeroDivisionError
    assert names and names[0] not in cluster._databases()


def test_a_link_into_nothing_is_taken_away_by_one_at_a_time(tmp_path: Path) -> None:
    """What lay in memory before the machine started anew. How: another run has the lock, and puts
    a new link there before it lets go."""
    root, there = tmp_path / "pg", tmp_path / "there"
    root.symlink_to(tmp_path / "nowhere")

    def look() -> None:
        with placed(root):
            pass

    with open(lock_of(root), "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        other = threading.Thread(target=look)
        other.start()
        other.join(0.2)
        assert root.is_symlink(), "it waits"
        root.unlink()
        there.mkdir()
        root.symlink_to(there)
    other.join(10)
    assert root.resolve() == there
    there.rmdir()
    look()
    assert not root.is_symlink()
