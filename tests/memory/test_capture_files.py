"""`manage.py capture`: files into the record, once, with every line accounted for."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from memory.access import principal
from memory.files import capture_files
from memory.models import CaptureReceipt, Project, RawItem, Session
from tests.cluster import ROOT
from tests.corpus import CORPUS, needs_corpus
from tests.memory.books import count
from tests.memory.posting import stored

FIXTURES = ROOT / "tests" / "fixtures"

#: Real and made-up files of every kind.
TREES = [
    pytest.param([FIXTURES / "transcripts"], id="fixtures"),
    pytest.param([FIXTURES / "demo"], id="demo"),
    pytest.param(
        [
            CORPUS / "pi" / "fixtures" / "before-compaction.jsonl",
            CORPUS / "claude-code",
            CORPUS / "codex",
        ],
        id="corpus",
        marks=needs_corpus,
    ),
]


class Ran:
    """What one run of the command answered."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        out, self.code = StringIO(), 0
        try:
            call_command("capture", *map(str, arguments), stdout=out, **options)
        except SystemExit as leave:
            self.code = int(leave.code or 0)
        self.text = out.getvalue()

    @property
    def json(self) -> dict[str, Any]:
        report: dict[str, Any] = json.loads(self.text)
        return report


def row(number: int, text: str, **changed: Any) -> dict[str, Any]:
    """One line of a Claude Code transcript."""
    given = {
        "type": "user",
        "uuid": f"00000000-0000-4000-8000-{number:012d}",
        "sessionId": "11111111-0000-4000-8000-000000000001",
        "timestamp": f"2026-04-0{1 + number % 9}T10:{number % 60:02d}:00.000Z",
        "cwd": "/src/argus",
        "message": {"role": "user", "content": text},
    }
    return given | changed


def transcript(path: Path, *rows: Any) -> Path:
    lines = (one if isinstance(one, bytes) else json.dumps(one).encode() for one in rows)
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


@pytest.fixture
def two_files(tmp_path: Path) -> Iterator[Path]:
    """A session and its fork, which begins with the same rows."""
    shared = [row(number, f"We talk about part {number}.") for number in range(6)]
    fork = "22222222-0000-4000-8000-000000000002"
    transcript(tmp_path / "11111111-0000-4000-8000-000000000001.jsonl", *shared)
    transcript(
        tmp_path / f"{fork}.jsonl",
        *({**one, "sessionId": fork} for one in shared),
        row(7, "Only the fork has this.", sessionId=fork),
    )
    yield tmp_path


# Twice, and dry.


@pytest.mark.django_db
@pytest.mark.parametrize("paths", TREES)
def test_a_second_run_stores_nothing_and_a_dry_run_counts_the_same(paths: list[Path]) -> None:
    dry = Ran(*paths, "--json", "--dry-run")
    kept = ("rawitem", "capturereceipt", "session", "project")
    assert {name: count(f"memory_{name}") for name in kept} == dict.fromkeys(kept, 0)
    first, second = Ran(*paths, "--json"), Ran(*paths, "--json")
    assert dry.json == first.json
    assert dry.code == first.code == second.code == (3 if first.json["bad_lines"] else 0)
    assert first.json["stored"] == count("memory_rawitem") > 0
    assert second.json["stored"] == 0
    assert second.json["duplicates"] == first.json["stored"] + first.json["duplicates"]
    for name in ("refused", "skipped", "bad_lines", "files"):
        assert second.json[name] == first.json[name]


@pytest.mark.django_db
def test_a_fork_adds_its_own_tail_only(two_files: Path) -> None:
    dry, real = Ran(two_files, "--json", "--dry-run").json, Ran(two_files, "--json").json
    assert (real["stored"], real["duplicates"], real["files"]) == (7, 6, 2)
    assert dry == real


@pytest.mark.django_db
def test_two_people_each_have_what_they_captured(two_files: Path) -> None:
    for name in ("alice", "bob"):
        assert capture_files([two_files], owner=principal(name)).stored == 7
    assert capture_files([two_files], owner=principal("bob")).stored == 0


@pytest.mark.django_db
def test_a_file_that_grew_adds_what_is_new(tmp_path: Path) -> None:
    path = transcript(tmp_path / "s.jsonl", row(1, "One."), row(2, "Two."))
    assert Ran(path, "--json").json["stored"] == 2
    half = json.dumps(row(3, "Three 🔴.")).encode()
    whole = path.read_bytes()
    path.write_bytes(whole + half[:-12])
    assert Ran(path, "--json").json["stored"] == 0
    path.write_bytes(whole + half + b"\n")
    again = Ran(path, "--json")
    assert (again.json["stored"], again.json["duplicates"], again.code) == (1, 2, 0)


# What the report says.


@pytest.mark.django_db
def test_its_json_is_a_contract(two_files: Path) -> None:
    report = Ran(two_files, "--json").json
    assert {"stored", "duplicates", "refused", "bad_lines", "files"} <= set(report)
    assert isinstance(report["refused"], dict) and isinstance(report["bad_lines"], list)
    assert all(isinstance(report[name], int) for name in ("stored", "duplicates", "files"))


@pytest.mark.django_db
def test_it_counts_refusals_by_reason_and_adds_up(tmp_path: Path) -> None:
    path = transcript(
        tmp_path / "s.jsonl",
        row(1, "We keep the queue in Postgres."),
        row(2, "   "),
        row(
            3, "", type="assistant",
            message={"role": "assistant", "content": [
                {"type": "text", "text": "I'm sorry, but I can't help with that."}]},
        ),
        row(4, "word " * 300_000),
        row(1, "We keep the queue in Postgres."),
    )  # fmt: skip
    report = Ran(path, "--json").json
    assert (report["stored"], report["files"]) == (1, 1)
    assert report["refused"]["poison"] == 1
    assert report["refused"]["oversized"] == 1
    receipts = CaptureReceipt.objects.as_pipeline().values_list(
        "seen", "stored", "duplicates", "refused"
    )
    assert all(seen == new + old + sum(no.values()) for seen, new, old, no in receipts)


@pytest.mark.django_db
def test_it_names_each_bad_line_and_reads_on(tmp_path: Path) -> None:
    path = transcript(
        tmp_path / "s.jsonl",
        row(1, "One."), b'{"type": "user", "message": {"cont', row(2, "Two."),
        b'{"a": 1}{"b": 2}', row(3, "Three."), b"\xff\xfe", row(4, "Four."),
    )  # fmt: skip
    ran = Ran(path, "--json")
    assert ran.code == 3
    assert [one["line"] for one in ran.json["bad_lines"]] == [2, 4, 6]
    assert {one["path"] for one in ran.json["bad_lines"]} == {str(path)}
    assert all(one["reason"] for one in ran.json["bad_lines"])
    assert ran.json["stored"] == 4
    told = Ran(path)
    assert told.code == 3 and f"{path}:2:" in told.text


@pytest.mark.django_db
def test_it_tells_a_person_what_it_did_and_what_it_would_do(two_files: Path) -> None:
    assert "would store 7" in Ran(two_files, "--dry-run").text
    assert "stored 7" in Ran(two_files).text
    assert "duplicates 13" in Ran(two_files).text


# Paths.


@pytest.mark.django_db
def test_a_path_that_is_not_there_is_a_wrong_argument(two_files: Path) -> None:
    with pytest.raises(CommandError, match="nowhere") as told:
        Ran(two_files / "nowhere")
    assert told.value.returncode == 2
    assert not stored()


@pytest.mark.django_db
def test_an_unknown_source_is_a_wrong_argument(two_files: Path) -> None:
    with pytest.raises(CommandError, match="invalid choice"):
        Ran(two_files, "--source", "emacs")


@pytest.mark.django_db
def test_a_file_that_cannot_be_read_is_named_and_the_others_are_stored(
    two_files: Path, unreadable: Path
) -> None:
    ran = Ran(two_files, unreadable, "--source", "claude-code", "--json")
    assert ran.code == 3
    assert (ran.json["stored"], ran.json["files"]) == (7, 2)
    assert len(ran.json["unreadable"]) == 1 and str(unreadable) in ran.json["unreadable"][0]


@pytest.mark.django_db
def test_a_file_met_on_the_way_that_cannot_be_read_is_named(
    two_files: Path, unreadable: Path
) -> None:
    (two_files / "locked.jsonl").symlink_to(unreadable)
    ran = Ran(two_files, "--json")
    assert (ran.code, ran.json["stored"]) == (3, 7)
    assert [Path(line.split(":")[0]).name for line in ran.json["unreadable"]] == ["locked.jsonl"]


@pytest.mark.django_db
@pytest.mark.skipif(os.geteuid() == 0, reason="root lists every folder")
def test_a_folder_that_cannot_be_listed_is_named(two_files: Path) -> None:
    locked = two_files / "locked"
    locked.mkdir(mode=0)
    ran = Ran(two_files, "--json")
    assert (ran.code, ran.json["stored"], ran.json["unreadable"]) == (3, 7, [str(locked)])


@pytest.fixture
def unreadable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that opens or reads with an error, for root as well."""
    if os.geteuid() != 0:
        path = tmp_path_factory.mktemp("locked") / "s.jsonl"
        path.touch(mode=0)
        return path
    memory = Path("/proc/self/mem")
    if not memory.exists():
        pytest.skip("root reads every file here")
    return memory


@pytest.mark.django_db
def test_a_folder_is_walked_and_what_is_not_for_us_is_passed_over(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    for folder in (deep, tmp_path / ".hidden", deep / "node_modules", deep / "s1" / "subagents"):
        folder.mkdir(parents=True)
        transcript(folder / "s.jsonl", row(len(str(folder)), f"In {folder.name}."))
    (deep / "picture.png").write_bytes(b"\x89PNG")
    (deep / "note.md").write_text("# Decided\n\nWe keep the queue in Postgres.\n")
    (tmp_path / "again").symlink_to(deep)
    report = Ran(tmp_path, tmp_path / "a", "--json").json
    assert {one.body for one in stored(kind="turn")} == {"In b."}
    assert [one.source for one in stored(kind="document")] == ["file"]
    assert report["refused"] == {"sidechain": 1}
    assert (report["stored"], report["duplicates"], report["files"]) == (2, 0, 2)


@pytest.mark.django_db
def test_a_named_project_holds_for_every_file(two_files: Path) -> None:
    Ran(two_files, "--project", "shop")
    assert {one.project_method for one in stored()} == {"explicit"}
    assert Project.objects.get().name == "shop"


@pytest.mark.django_db
def test_it_acts_for_whom_commands_act_for(two_files: Path, settings: Any) -> None:
    settings.ARGUS = settings.ARGUS.model_copy(update={"principal": "carol"})
    Ran(two_files)
    assert {one.owner.name for one in stored()} == {"carol"}


@pytest.mark.django_db
def test_a_session_that_ended_long_ago_may_close(two_files: Path) -> None:
    Ran(two_files)
    assert set(Session.objects.values_list("ended_reason", flat=True)) == {"end of file"}


# Real processes.


def process(environment: dict[str, str], *arguments: Any) -> subprocess.CompletedProcess[str]:
    # A run of tests that ends beside this one stops a server to which nobody is connected.
    connection.ensure_connection()
    return subprocess.run(
        [sys.executable, ROOT / "manage.py", "capture", *map(str, arguments), "--json"],
        env=environment, cwd=ROOT, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


def test_its_exit_codes_are_those_of_a_process(
    clone_environment: dict[str, str], two_files: Path
) -> None:
    assert process(clone_environment, two_files / "nowhere").returncode == 2
    done = process(clone_environment, two_files)
    assert (done.returncode, json.loads(done.stdout)["stored"]) == (0, 7)
    assert done.stdout.count("\n") == 1, "one JSON object and nothing else"
    bad = transcript(two_files / "bad.jsonl", row(9, "Nine."), b"{")
    assert process(clone_environment, bad).returncode == 3
    away = clone_environment | {"ARGUS_DATABASE_URL": "postgresql://a:b@127.0.0.1:9/c"}
    assert process(away, two_files).returncode == 75


@pytest.mark.slow
def test_its_memory_does_not_grow_with_the_file(
    clone_environment: dict[str, str], tmp_path: Path
) -> None:
    def rows(turns: int) -> Iterator[dict[str, Any]]:
        result = [{"type": "tool_result", "tool_use_id": "t", "content": "x" * 900_000}]
        for number in range(turns):
            yield row(number, f"Turn {number}. " + f"word{number} " * 1500)
            if number % 10 == 0:
                yield row(10_000 + number, "", message={"role": "user", "content": result})

    small = transcript(tmp_path / "small.jsonl", *rows(10))
    large = tmp_path / "large.jsonl"
    with large.open("wb") as handle:
        for one in rows(500):
            handle.write(json.dumps(one).encode() + b"\n")
    assert large.stat().st_size > 50_000_000
    peaks = []
    for path, turns in ((small, 10), (large, 500)):
        done = process(clone_environment, path)
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout)
        assert report["stored"] + report["duplicates"] == turns
        peaks.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)
    assert peaks[1] - peaks[0] < 40, f"peak memory in MB: {peaks}"


@needs_corpus
@pytest.mark.django_db
def test_it_reads_a_session_again_after_the_client_rewrote_its_file(tmp_path: Path) -> None:
    """pi moves old files to its new format in place: every row gets an id of a new kind."""
    source = CORPUS / "pi" / "fixtures" / "before-compaction.jsonl"
    path = tmp_path / source.name
    shutil.copy(source, path)
    first = Ran(path, "--json").json
    lines = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    for number, line in enumerate(lines):
        if line.get("type") != "session":
            line |= {"id": f"{number:08x}", "parentId": f"{number - 1:08x}"}
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    again = Ran(path, "--json").json
    assert first["stored"] > 0
    assert (again["stored"], again["duplicates"]) == (0, first["stored"] + first["duplicates"])
    times = RawItem.objects.as_pipeline().values_list("occurred_at", flat=True)
    assert len(set(times)) > 1
