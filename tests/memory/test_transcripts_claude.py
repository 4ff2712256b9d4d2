"""Claude Code transcripts: what is a turn, and why the rest is not."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memory.transcripts import Item, Reading, Skip, Turn, read
from memory.transcripts.claude_words import own_words

FIXTURE = Path(__file__).parents[1] / "fixtures" / "transcripts" / "claude-code" / "teapot.jsonl"
SESSION = "5c2f0a4e-6b1d-4c77-9d3a-1f0e8a2b4c6d"


def turns(path: Path, offset: int = 0) -> list[Turn]:
    return [item for item in read(path, offset=offset) if isinstance(item, Turn)]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def said(kind: str, uuid: str, parent: str | None, text: Any, **more: Any) -> dict[str, Any]:
    message = {"role": kind, "content": text}
    base = {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s", "message": message}
    return {**base, "timestamp": "2026-01-02T03:04:05Z", **more}


def found(path: Path) -> tuple[list[str | None], dict[str, int]]:
    reading = Reading()
    ids = [item.record_id for item in read(path, reading=reading) if isinstance(item, Turn)]
    return ids, dict(reading.skipped)


def test_it_keeps_what_was_said_and_nothing_else() -> None:
    assert [(turn.record_id, turn.role, turn.body) for turn in turns(FIXTURE)] == [
        ("u1", "user", "We store kettle readings in SQLite for now."),
        ("a2", "assistant", "Noted: SQLite, file readings.db."),
        ("q1", "user", "Also write the schema down."),
        ("a4", "assistant", "The schema has one table.\n\nIt is called reading."),
        (
            "u2",
            "user",
            "Look at the log <system-reminder>inline quote</system-reminder> please.\nThen stop.",
        ),
        ("a5", "assistant", "Looked."),
        ("u4", "user", "Deploy to the kitchen"),
        ("c1", "user", "keep the schema decision"),
        ("u5", "user", "What is a <task-notification> row?"),
        ("a6", "assistant", "A row that the client writes itself."),
        ("u6", "user", "Now in the worktree."),
    ]


def test_it_counts_every_other_row_by_reason() -> None:
    reading = Reading()
    items = list(read(FIXTURE, reading=reading))
    assert reading.skipped == {
        "plumbing": 5,
        "injected": 3,
        "thinking": 1,
        "tool": 2,
        "harness": 4,
        "abandoned": 1,
        "poison": 1,
        "system": 1,
        "digest": 1,
        "event": 1,
        "unknown:hologram": 1,
        "unknown:attachment/scent": 1,
        "duplicate": 2,
        "foreign": 2,
    }
    assert reading.turns + sum(reading.skipped.values()) == reading.lines == len(items)
    assert reading.offset == FIXTURE.stat().st_size
    assert (reading.source, reading.session) == ("claude-code", SESSION)


def test_it_says_where_and_when_a_turn_was() -> None:
    first, *_, last = turns(FIXTURE)
    assert (first.source, first.kind, first.session) == ("claude-code", "turn", SESSION)
    assert first.cwd == "/home/mira/src/teapot"
    assert first.occurred_at == datetime(2026, 3, 4, 9, 0, 1, 120000, tzinfo=UTC)
    assert first.metadata["branch"] == "main" and first.metadata["version"] == "2.1.190"
    data = FIXTURE.read_bytes()
    row = json.loads(data[first.locator["start"] : first.locator["end"]])
    assert row["uuid"] == "u1" and first.locator["line"] == 7
    assert last.cwd.endswith("worktrees/spout")
    assert last.metadata["worktree"]["main"] == "/home/mira/src/teapot"


def test_it_marks_queued_aborted_and_typed_commands() -> None:
    marks = {turn.record_id: turn.metadata for turn in turns(FIXTURE)}
    assert marks["q1"]["queued"] and marks["a5"]["aborted"]
    assert marks["c1"]["form"] == "command"
    assert marks["a2"]["model"] == "claude-opus-4-8"


def test_it_stores_once_what_a_second_compaction_wrote_again(tmp_path: Path) -> None:
    rows = []
    for n in range(5):
        rows.append(said("user", f"u{n}", f"a{n - 1}" if n else None, f"question {n}"))
        rows.append(said("assistant", f"a{n}", f"u{n}", [{"type": "text", "text": f"answer {n}"}]))
    boundary = {"type": "system", "subtype": "compact_boundary", "sessionId": "s"}
    after = [said("user", "v", "a4", "after")]
    ids, skipped = found(write(tmp_path / "s.jsonl", rows + [boundary] + after + rows))
    assert len(ids) == 11 and len(set(ids)) == 11
    assert skipped == {"system": 1, "duplicate": 10}


def test_it_stores_an_echo_with_the_same_uuid_once(tmp_path: Path) -> None:
    rows = [
        said("user", "A", None, "hello there"),
        {"type": "system", "subtype": "init", "sessionId": "s"},
        said("user", "A", None, "hello there"),
        said("assistant", "B", "A", "hi"),
    ]
    assert found(write(tmp_path / "s.jsonl", rows))[0] == ["A", "B"]


def test_it_gives_a_fork_the_same_ids_under_another_session(tmp_path: Path) -> None:
    rows = [said("user", "A", None, "hello"), said("assistant", "B", "A", "hi")]
    copies = [{**row, "sessionId": "fork"} for row in rows] + [
        said("user", "C", "B", "tail", sessionId="fork")
    ]
    old = turns(write(tmp_path / "old.jsonl", rows))
    new = turns(write(tmp_path / "new.jsonl", copies))
    assert [t.record_id for t in new] == [*(t.record_id for t in old), "C"]
    assert {t.session for t in new} == {"fork"}
    assert [t.occurred_at for t in new][:2] == [t.occurred_at for t in old]


def test_it_skips_a_prompt_that_was_withdrawn_unanswered(tmp_path: Path) -> None:
    rows = [
        said("user", "u0", None, "begin"),
        said("assistant", "a0", "u0", "go"),
        said("user", "first", "a0", "delte it"),
        {"type": "attachment", "uuid": "h", "parentUuid": "first", "sessionId": "s",
         "attachment": {"type": "hook_additional_context", "content": ["x"]}},
        said("user", "second", "a0", "delete it"),
        said("assistant", "a1", "second", "done"),
    ]  # fmt: skip
    assert found(write(tmp_path / "s.jsonl", rows)) == (
        ["u0", "a0", "second", "a1"],
        {"abandoned": 1, "injected": 1},
    )


def test_it_keeps_both_branches_of_a_rewind(tmp_path: Path) -> None:
    rows = [
        said("user", "u0", None, "begin"),
        said("assistant", "a0", "u0", "go"),
        said("user", "one", "a0", "first way"),
        said("assistant", "a1", "one", "tried"),
        said("user", "two", "a0", "second way"),
        said("assistant", "a2", "two", "worked"),
    ]
    assert found(write(tmp_path / "s.jsonl", rows))[0] == ["u0", "a0", "one", "a1", "two", "a2"]


@pytest.mark.parametrize("odd", [{"x": 1}, [[]], 7, True, None])
@pytest.mark.parametrize("key", ["parentUuid", "uuid", "type", "block", "timestamp", "origin"])
@pytest.mark.parametrize("kind", ["user", "assistant"])
def test_it_reads_on_behind_a_row_of_odd_types(
    tmp_path: Path, kind: str, key: str, odd: object
) -> None:
    row = said(kind, "b", "a", "odd")
    if key == "block":
        row["message"]["content"] = [{"type": odd}]
    else:
        row[key] = odd
    rows = [said("user", "a", None, "before"), row, said("assistant", "c", "a", "after")]
    ids, _ = found(write(tmp_path / "s.jsonl", rows))
    assert ids[0] == "a" and ids[-1] == "c"


def test_it_keeps_prompts_of_files_without_a_tree(tmp_path: Path) -> None:
    rows = [said("user", f"u{n}", None, f"prompt {n}") for n in range(3)]
    assert found(write(tmp_path / "s.jsonl", rows)) == (["u0", "u1", "u2"], {})


def test_it_skips_rows_that_the_client_took_back(tmp_path: Path) -> None:
    rows = [
        said("user", "u", None, "write a poem"),
        said("assistant", "a", "u", "Roses are"),
        said("assistant", "b", "u", "Violets are", supersedesUuids=["a"]),
        said("assistant", "c", "b", "I would rather"),
        {"type": "system", "subtype": "api_refusal", "sessionId": "s",
         "retractedMessageUuids": ["c"]},
    ]  # fmt: skip
    assert found(write(tmp_path / "s.jsonl", rows)) == (["u", "b"], {"retracted": 2, "system": 1})


def test_it_reads_steering_of_versions_before_queued_commands(tmp_path: Path) -> None:
    removed = {"type": "queue-operation", "operation": "remove", "sessionId": "s",
               "timestamp": "2026-01-02T03:04:06Z", "content": "and use tabs"}  # fmt: skip
    enqueued = {**removed, "operation": "enqueue"}
    rows = [said("user", "u", None, "format it"), enqueued, removed]
    items = turns(write(tmp_path / "old.jsonl", rows))
    assert [(t.body, t.record_id) for t in items] == [("format it", "u"), ("and use tabs", None)]
    queued = {"type": "attachment", "uuid": "q", "sessionId": "s",
              "attachment": {"type": "queued_command", "prompt": "and use tabs"}}  # fmt: skip
    assert found(write(tmp_path / "new.jsonl", [*rows, queued]))[0] == ["u", "q"]


def test_it_stores_a_cut_pair_once_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    row = json.dumps(said("user", "u", None, "CUT")).replace("CUT", r"cut \ud83d\u2026 end")
    queue = json.dumps({"type": "queue-operation", "operation": "enqueue", "sessionId": "s"})
    path.write_text(queue[:-1] + r', "content": "cut \ud83d\u2026 end"}' + "\n" + row + "\n")
    (turn,) = turns(path)
    assert turn.body == "cut \ufffd… end"
    assert turn.metadata["sanitised"] is True
    turn.body.encode("utf-8")


def test_it_removes_nul(tmp_path: Path) -> None:
    (turn,) = turns(write(tmp_path / "s.jsonl", [said("user", "u", None, "a\x00b")]))
    assert (turn.body, turn.metadata["sanitised"]) == ("ab", True)


def test_it_needs_only_type_content_and_time_of_an_answer(tmp_path: Path) -> None:
    message = {"content": [{"type": "text", "text": "Fine."}], "model": "deepseek-v4-flash"}
    row = {"type": "assistant", "sessionId": "s", "timestamp": "2026-01-01T00:00:00+02:00",
           "message": message}  # fmt: skip
    (turn,) = turns(write(tmp_path / "s.jsonl", [row]))
    assert turn.record_id is None
    assert turn.occurred_at == datetime(2025, 12, 31, 22, tzinfo=UTC)


@pytest.mark.parametrize("stamp", ["0001-01-01T00:00:00Z", "9999-12-31T00:00:00Z", "soon", None])
def test_it_keeps_a_turn_whose_time_cannot_be(tmp_path: Path, stamp: str | None) -> None:
    (turn,) = turns(write(tmp_path / "s.jsonl", [said("user", "u", None, "hi", timestamp=stamp)]))
    assert turn.occurred_at is None
    assert turn.metadata["time_problem"] in ("impossible", "unreadable", "missing")


def test_it_names_a_session_after_its_file_when_rows_do_not(tmp_path: Path) -> None:
    row = said("user", "u", None, "hi")
    del row["sessionId"]
    assert turns(write(tmp_path / "abc.jsonl", [row]))[0].session == "abc"


def test_it_skips_files_of_sub_agents() -> None:
    folder = FIXTURE.parent
    for path in (
        folder / "agent-sibling.jsonl",
        folder / SESSION / "subagents" / "agent-a1b2.jsonl",
    ):
        reading = Reading()
        assert not [i for i in read(path, reading=reading) if isinstance(i, Turn)]
        assert reading.skipped["sidechain"] == 2


def test_it_goes_on_where_it_stopped() -> None:
    data = FIXTURE.read_bytes()
    middle = data.index(b"\n", len(data) // 2) + 1
    rest = [t.record_id for t in turns(FIXTURE) if t.locator["start"] >= middle]
    later: list[Item] = list(read(FIXTURE, offset=middle))
    ids = [item.record_id for item in later if isinstance(item, Turn)]
    # The copies at the end cannot be known as such from here: their record ids settle it.
    assert [i for i in ids if i not in ("u1", "a2")] == rest
    assert len(ids) == len(rest) + 2 and len(rest) > 3
    first = next(i for i in later if isinstance(i, (Turn, Skip)))
    number = first.line if isinstance(first, Skip) else first.locator["line"]
    assert number == data[:middle].count(b"\n") + 1


@pytest.mark.parametrize(
    ("text", "kept", "reason"),
    [
        ("plain words", "plain words", None),
        ("  <task-notification>x</task-notification>", "", "harness"),
        ("[SYSTEM NOTIFICATION - NOT USER INPUT] x", "", "harness"),
        ("<local-command-stdout>x</local-command-stdout>", "", "harness"),
        ("Caveat: The messages below were generated by the user while running local commands.",
         "", "harness"),
        ("<cross-session-message from='x'>a &amp;lt; b</cross-session-message>", "", "harness"),
        ("<teammate-message id='1'>x", "", "harness"),
        ("[Request interrupted by user for tool use]", "", "harness"),
        ("Stop hook feedback:\n- x", "", "harness"),
        ("This session is being continued from a previous conversation that ran out of context. x",
         "", "digest"),
        ("<bash-input>ls</bash-input>", "", "shell"),
        ("<user-memory-input>always use tabs</user-memory-input>", "always use tabs", None),
        ("<command-name>/clear</command-name><command-args></command-args>", "", "command"),
        ("<command-message>review</command-message><command-name>/review</command-name>"
         "<command-args>--deep 123</command-args>", "", "command"),
        ("<command-name>/fix</command-name><command-args>the login page timeout</command-args>",
         "the login page timeout", None),
        ("<command-name>/fix</command-name><command-args>修复登录超时</command-args>",
         "修复登录超时", None),
        ("<system-reminder>only this</system-reminder>", "", "empty"),
        ("<system-reminder>never closed\nand more", "", "empty"),
        ("<ide_opened_file>a.py</ide_opened_file>\nFix it.", "Fix it.", None),
        ("Before\n<system-reminder>\nx\n</system-reminder>\nafter", "Before\nafter", None),
        ("Why does <system-reminder>x</system-reminder> show up?",
         "Why does <system-reminder>x</system-reminder> show up?", None),
        ("See:\n```\n<system-reminder>x</system-reminder>\n```\nok",
         "See:\n```\n<system-reminder>x</system-reminder>\n```\nok", None),
        ("I quote: <task-notification> means done", "I quote: <task-notification> means done",
         None),
    ],
)  # fmt: skip
def test_it_tells_own_words_from_harness(text: str, kept: str, reason: str | None) -> None:
    words = own_words(text)
    assert (words.text.strip(), words.reason) == (kept, reason)


def test_it_strips_many_reminders_in_one_pass() -> None:
    reminder = "<system-reminder>\nx\n</system-reminder>\n"
    words = own_words("keep\n" + reminder * 20_000 + "these")
    assert words.text == "keep\nthese"
    assert own_words("```\n" + reminder * 3 + "```\n" + reminder + "end").text == (
        "```\n" + reminder * 3 + "```\nend"
    )
