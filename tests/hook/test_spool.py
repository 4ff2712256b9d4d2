"""What waits for the server: bounded, in order, never half."""

from __future__ import annotations

import os
import time

import pytest

from argus.hook import spool
from tests.hook.ground import Home


@pytest.fixture(autouse=True)
def here(home: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("HOME", str(home.path))
    return home


def test_it_gives_back_what_it_took_in_the_order_of_coming(
    here: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        assert spool.add({"key": f"claude.s{number % 2}"}, b'{"n": %d}\n\n' % number, False)
        # A clock that is set back does not change the order.
        monkeypatch.setattr(time, "time_ns", lambda number=number: 10**18 - number)
    found = [spool.read(name) for name in spool.waiting()]
    assert [one[1] for one in found if one] == [b'{"n": %d}\n\n' % n for n in range(5)]
    assert len(spool.waiting("claude.s1")) == 2
    assert spool.waiting("claude.s") == []
    assert spool.keys() == {"claude.s0", "claude.s1"}
    files, size = spool.totals()
    assert files == 5
    assert size > 40


def test_it_is_for_this_user_alone(here: Home) -> None:
    spool.add({"key": "claude.s"}, b"{}", False)
    folder = here.argus / "hook" / "spool"
    assert folder.stat().st_mode & 0o077 == 0
    assert [path.stat().st_mode & 0o777 for path in folder.iterdir()] == [0o600]


def test_it_keeps_room_for_what_stands_nowhere_else(
    here: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool, "SPOOL_BYTES_MAX", 1000)
    monkeypatch.setattr(spool, "RESERVE_BYTES", 200)
    assert spool.add({"key": "claude.s"}, b"x" * 800, False)
    assert not spool.add({"key": "claude.s"}, b"x" * 300, False)
    assert spool.add({"key": "claude.s"}, b"x" * 300, True)
    assert not spool.add({"key": "claude.s"}, b"x" * 300, True)
    monkeypatch.setattr(spool, "SPOOL_FILES_MAX", 2)
    monkeypatch.setattr(spool, "RESERVE_FILES", 0)
    assert not spool.add({"key": "claude.s"}, b"x", True)


def test_it_counts_what_the_dead_left_half_written(
    here: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool, "SPOOL_BYTES_MAX", 1000)
    assert spool.add({"key": "claude.s"}, b"x" * 100, False)
    (here.argus / "hook" / "spool" / "1.post.7.new").write_bytes(b"x" * 900)
    assert not spool.add({"key": "claude.s"}, b"x" * 100, False)


def test_it_puts_a_session_behind_the_others_whose_post_was_tried(here: Home) -> None:
    for key in ("claude.a", "claude.b", "claude.a", "claude.c"):
        spool.add({"key": key}, b"{}", False)
    first, second, third, fourth = spool.waiting()
    for at, name in enumerate(spool.waiting()):
        then = time.time() - 100 + at
        os.utime(here.argus / "hook" / "spool" / name, (then, then))
    assert spool.queue() == [first, third, second, fourth]
    spool.tried(first)
    assert spool.queue() == [second, fourth, first, third]
    spool.tried(second, at_fault=True)
    spool.tried(second, at_fault=True)
    found = spool.read(second)
    assert found is not None
    assert found[0]["failed"] == 2
    assert spool.queue() == [fourth, first, third, second]
    spool.tried("gone.post", at_fault=True)
    assert len(spool.waiting()) == 4


@pytest.mark.parametrize("data", [b"", b"{}", b"{}\nx", b"[1]\nx", b"\xff\nx", b"no\nx"])
def test_it_reads_nothing_out_of_a_file_that_is_none_of_its(here: Home, data: bytes) -> None:
    spool.add({"key": "claude.s"}, b"{}", False)
    name = spool.waiting()[0]
    (here.argus / "hook" / "spool" / name).write_bytes(data)
    assert spool.read(name) is None
    spool.remove(name)
    spool.remove(name)
    assert spool.read(name) is None


def test_it_passes_over_foreign_files(here: Home) -> None:
    spool.add({"key": "claude.s"}, b"{}", False)
    folder = here.argus / "hook" / "spool"
    (folder / "notes.post").write_text("x")
    (folder / f"{'1' * 20}-1.claude.s.post.123.new").write_text("x")
    assert len(spool.waiting()) == 1
