"""pi sessions of versions 1 to 3, forked, migrated and broken."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from memory.transcripts import Reading, Turn, detect, read
from memory.transcripts.pi import judge_entry

FOLDER = Path(__file__).parents[1] / "fixtures" / "transcripts" / "pi"
SESSION = "01a30000-1234-7000-8000-abcdefabcdef"
V3 = FOLDER / f"2026-05-06T07-00-00-000Z_{SESSION}.jsonl"
V1 = FOLDER / "v1.jsonl"


def turns(path: Path) -> list[Turn]:
    return [item for item in read(path, "pi") if isinstance(item, Turn)]


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_it_keeps_what_was_said_and_counts_the_rest() -> None:
    reading = Reading()
    found = [i for i in read(V3, reading=reading) if isinstance(i, Turn)]
    assert [(turn.role, turn.body) for turn in found] == [
        ("user", "How hot is green tea?"),
        ("assistant", "Seventy-five degrees."),
        ("assistant", "Stopped in the mid"),
        ("user", "with less water"),
    ]
    assert reading.skipped == {
        "plumbing": 3,
        "injected": 1,
        "tool": 1,
        "shell": 1,
        "poison": 1,
        "digest": 1,
        "unknown:teabag": 1,
    }
    assert (reading.source, reading.session) == ("pi", SESSION)
    assert found[2].metadata["aborted"] and found[3].metadata["form"] == "skill"
    assert found[0].metadata["forked_from"] == "parent-1"


def test_it_names_a_turn_by_the_messages_own_instant() -> None:
    first = turns(V3)[0]
    assert first.occurred_at == datetime(2026, 5, 6, 7, 0, 1, tzinfo=UTC)
    ms, role, digest = str(first.record_id).split("/")
    assert (ms, role, len(digest)) == ("1778050801000", "user", 32)


def test_it_reads_version_1_whose_messages_are_older_than_its_header() -> None:
    found = turns(V1)
    assert [turn.body for turn in found] == ["Read the brewing notes.", "Read them."]
    assert found[0].occurred_at == datetime(2025, 12, 8, 22, 41, 5, 292000, tzinfo=UTC)
    assert found[0].metadata["version"] == 1 and found[0].metadata["forked_from"] == "older"


def test_it_gives_a_migrated_file_the_same_ids(tmp_path: Path) -> None:
    rows = rows_of(V1)
    migrated = [{**rows[0], "version": 3}] + [
        {**row, "id": f"{n:08x}", "parentId": None} for n, row in enumerate(rows[1:])
    ]
    again = turns(write(tmp_path / "v1.jsonl", migrated))
    assert [turn.record_id for turn in again] == [turn.record_id for turn in turns(V1)]


def test_it_gives_a_fork_the_same_ids_under_another_session(tmp_path: Path) -> None:
    rows = rows_of(V3)
    rows[0] = {**rows[0], "id": "fork-session", "parentSession": str(V3)}
    forked = turns(write(tmp_path / "fork.jsonl", rows))
    assert [turn.record_id for turn in forked] == [turn.record_id for turn in turns(V3)]
    assert {turn.session for turn in forked} == {"fork-session"}
    assert forked[0].metadata["forked_from"] == SESSION


def test_it_keeps_the_rows_behind_a_broken_header(tmp_path: Path) -> None:
    path = tmp_path / f"2026-05-06T07-00-00-000Z_{SESSION}.jsonl"
    lines = V3.read_text().splitlines(keepends=True)
    second = next(n for n, line in enumerate(lines[1:], 1) if '"session"' in line)
    path.write_text("{broken header\n" + "".join(lines[1:second] + lines[second + 1 :]))
    assert detect(path) == "pi"
    reading = Reading()
    found = [i for i in read(path, reading=reading) if isinstance(i, Turn)]
    assert [bad.line for bad in reading.bad_lines] == [1]
    assert [t.record_id for t in found] == [t.record_id for t in turns(V3)]
    assert {turn.session for turn in found} == {SESSION}


def test_it_reads_a_repeated_message_once(tmp_path: Path) -> None:
    rows = rows_of(V1)
    path = write(tmp_path / "s.jsonl", rows + rows)
    reading = Reading()
    list(read(path, reading=reading))
    assert reading.turns == 2 and reading.skipped == {"plumbing": 2, "duplicate": 2}


def test_it_falls_back_to_the_entrys_time(tmp_path: Path) -> None:
    rows = rows_of(V1)
    del rows[1]["message"]["timestamp"]
    first = turns(write(tmp_path / "s.jsonl", rows))[0]
    assert first.occurred_at == datetime(2025, 12, 8, 22, 41, 5, 306000, tzinfo=UTC)
    assert first.occurred_at.utcoffset() == timedelta(0)


def test_it_skips_error_texts_and_bare_skills() -> None:
    def reason(**message: Any) -> str | None:
        return judge_entry({"type": "message", "message": message})[1]

    assert (
        reason(role="assistant", content=[{"type": "text", "text": "API Error: 500"}]) == "poison"
    )
    assert reason(role="user", content="<skill name='x'>\nbody\n</skill>") == "harness"
    assert reason(role="user", content=[{"type": "image"}]) == "image"
    assert reason(role="hookMessage", content="x") == "injected"
    assert reason(role="compactionSummary", summary="x") == "digest"


def test_it_marks_a_skill_that_was_expanded_without_a_tag() -> None:
    text = "# Brew\n\nHow to brew tea.\n\nUser: the green one"
    entry = {"type": "message", "message": {"role": "user", "content": text}}
    assert judge_entry(entry) == (text, None, {"derived": "skill"})
