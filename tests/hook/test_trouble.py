"""Troubles are told once, kept for the server, and cost nothing when nothing can be written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from argus.hook import trouble

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path / ".argus"


def logged(home: Path) -> list[str]:
    return (home / "log" / "argus-hook.log").read_text().splitlines()


def test_it_logs_one_line_whatever_is_in_it(home):
    assert trouble.log("a\nb\x1b[31m" + "c" * 2_000)
    (line,) = logged(home)
    assert "a b [31mccc" in line and len(line) < 600
    assert (home / "log" / "argus-hook.log").stat().st_mode & 0o777 == 0o600


def test_it_turns_the_log_over_when_it_is_large(home):
    trouble.log("first")
    path = home / "log" / "argus-hook.log"
    path.write_text("x" * (trouble.LOG_BYTES_MAX + 1))
    trouble.log("second")
    assert len(logged(home)) == 1
    assert (home / "log" / "argus-hook.log.1").stat().st_size > trouble.LOG_BYTES_MAX


def test_it_complains_once_per_kind_and_ten_minutes(home, capfd):
    assert trouble.complain("away", "the server is away")
    assert not trouble.complain("away", "the server is away")
    assert trouble.complain("other/../kind", "another trouble")
    assert capfd.readouterr().err.splitlines() == [
        "argus-hook: the server is away",
        "argus-hook: another trouble",
    ]
    told = home / "hook" / "told" / "away"
    long_ago = time.time() - trouble.AGAIN_SECONDS - 1
    os.utime(told, (long_ago, long_ago))
    assert trouble.complain("away", "still away")
    ahead = time.time() + 10 * trouble.AGAIN_SECONDS
    os.utime(told, (ahead, ahead))
    assert trouble.complain("away", "and the clock was set back")


def test_it_lets_one_of_many_hooks_complain(home, capfd):
    with ThreadPoolExecutor(8) as pool:
        said = list(pool.map(lambda _: trouble.complain("away", "the server is away"), range(40)))
    assert sum(said) == 1
    assert len(capfd.readouterr().err.splitlines()) == 1


def test_it_tells_later_what_a_child_could_not(home, capfd):
    trouble.pass_on("401", "the key is refused")
    trouble.pass_on("401", "the key is refused")
    assert capfd.readouterr().err == ""
    trouble.tell()
    trouble.tell()
    assert capfd.readouterr().err == "argus-hook: the key is refused\n"
    assert not list((home / "hook").glob("troubles*"))


def test_it_keeps_what_was_missed_until_it_is_settled(home):
    assert trouble.miss("claude", "s1", "transcript_missing", "not at /x")
    assert trouble.skipped("prompt", "codex", "s2", "/src/x", "timeout", 2000)
    lines, settle = trouble.take("misses")
    assert [line["reason"] for line in lines] == ["transcript_missing"]
    assert str(lines[0]["at"]).endswith("Z")
    settle(False)
    trouble.miss("claude", "s1", "later")
    again, settle = trouble.take("misses")
    assert again == lines
    settle(True)
    rest, settle = trouble.take("misses")
    assert [line["reason"] for line in rest] == ["later"]
    settle(True)
    assert trouble.take("misses")[0] == []
    (skip,), settle = trouble.take("skipped")
    settle(True)
    assert (skip["mode"], skip["session"], skip["milliseconds"]) == ("prompt", "s2", 2000)
    assert len(str(skip["id"])) == 36


def test_it_gives_a_journal_to_one_at_a_time(home):
    trouble.miss("claude", "s", "x")
    lines, settle = trouble.take("misses")
    other, settle_other = trouble.take("misses")
    assert (len(lines), other) == (1, [])
    settle_other(True)
    settle(False)
    assert len(trouble.take("misses")[0]) == 1


def test_it_keeps_a_journal_over_the_death_of_who_took_it(home):
    trouble.miss("claude", "s", "x")
    code = "import os; from argus.hook import trouble; trouble.take('misses'); os._exit(9)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 9
    assert [line["reason"] for line in trouble.take("misses")[0]] == ["x"]


def test_it_counts_what_a_full_journal_does_not_take(home):
    trouble.miss("claude", "s", "x")
    with open(home / "hook" / "misses.jsonl", "ab") as handle:
        handle.write(b"no json\n" + b" " * trouble.JOURNAL_BYTES_MAX)
    assert not trouble.miss("claude", "s", "y")
    assert not trouble.miss("claude", "s", "z")
    lines, settle = trouble.take("misses")
    settle(True)
    assert [line["reason"] for line in lines] == ["x"]
    assert "2 lines were dropped" in logged(home)[-1]


def test_it_keeps_lines_of_many_hooks_apart(home):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: trouble.miss("claude", "s", f"r{n}", "🦭" * 2_000), range(200)))
    raw = (home / "hook" / "misses.jsonl").read_text().splitlines()
    assert all(len(line) < trouble.JOURNAL_LINE_BYTES_MAX for line in raw)
    assert {json.loads(line)["reason"] for line in raw} == {f"r{n}" for n in range(200)}


def test_it_says_once_a_process_what_no_file_remembers(tmp_path, monkeypatch, capfd):
    # A file where the folder should be: a superuser is stopped by no permission.
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".argus").write_text("")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert not trouble.log("x")
    assert trouble.complain("x", "it is so")
    assert not trouble.complain("x", "it is so")
    assert not trouble.pass_on("x", "x")
    assert not trouble.miss("claude", "s", "x")
    assert not trouble.skipped("prompt", "claude", "s", "/", "x", 1)
    assert trouble.take("misses")[0] == []
    trouble.tell()
    assert capfd.readouterr().err == "argus-hook: it is so\n"
