"""Codex rollouts: one copy of every text, in whichever channel a version wrote it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memory.transcripts import Reading, Turn, read
from memory.transcripts.codex import thread_of
from memory.transcripts.codex_words import one_text, own_words

FOLDER = Path(__file__).parents[1] / "fixtures" / "transcripts" / "codex"
THREAD = "019d1f00-1111-7222-8333-444455556666"
NEW = FOLDER / f"rollout-2026-04-02T10-00-00-{THREAD}.jsonl"
OLD = FOLDER / "rollout-2025-11-20T08-00-00-019b0000-aaaa-7bbb-8ccc-ddddeeeeffff.jsonl"

Row = dict[str, Any]


def turns(path: Path, offset: int = 0) -> list[Turn]:
    return [item for item in read(path, "codex", offset) if isinstance(item, Turn)]


def rewrite(path: Path, target: Path, change: Callable[[Row], Row | None]) -> Path:
    rows = [change(json.loads(line)) for line in path.read_text().splitlines()]
    target.write_text("".join(json.dumps(row) + "\n" for row in rows if row is not None))
    return target


def spoken(found: list[Turn]) -> list[tuple[str, str, str | None]]:
    return [(turn.role, turn.body, turn.record_id) for turn in found]


def test_it_keeps_one_copy_of_each_text() -> None:
    assert [(turn.role, turn.body) for turn in turns(NEW)] == [
        ("user", "Which day do we close the ledger?"),
        ("assistant", "On Friday, after the import."),
        ("user", "Close it on Thursday instead."),
        ("assistant", "Changed to Thursday."),
    ]


def test_it_counts_every_other_line_by_reason() -> None:
    reading = Reading()
    list(read(NEW, reading=reading))
    assert reading.skipped == {
        "plumbing": 9,
        "injected": 2,
        "harness": 1,
        "mirror": 4,
        "thinking": 1,
        "tool": 2,
        "digest": 1,
        "unknown:hovercraft": 1,
    }
    assert reading.turns + sum(reading.skipped.values()) == reading.lines
    assert (reading.session, reading.source) == (THREAD, "codex")


def test_it_gives_equal_turns_with_and_without_mirrors(tmp_path: Path) -> None:
    def bare(row: Row) -> Row | None:
        return None if row["payload"].get("type") == "item_completed" else row

    def events(row: Row) -> Row | None:
        """The same session as a version wrote it that had events instead."""
        item = row["payload"].get("item", {})
        if item.get("type") == "UserMessage":
            said = {"type": "user_message", "message": item["content"][0]["text"]}
            return {**row, "payload": said}
        if item.get("type") == "AgentMessage":
            said = {"type": "agent_message", "message": item["content"][0]["text"]}
            return {**row, "payload": said}
        return row

    want = spoken(turns(NEW))
    assert spoken(turns(rewrite(NEW, tmp_path / "bare.jsonl", bare))) == want
    assert spoken(turns(rewrite(NEW, tmp_path / "events.jsonl", events))) == want


def test_it_takes_answers_from_items_when_there_is_no_response(tmp_path: Path) -> None:
    def silent(row: Row) -> Row | None:
        return None if row["payload"].get("role") == "assistant" else row

    found = turns(rewrite(NEW, tmp_path / "s.jsonl", silent))
    assert spoken(found) == spoken(turns(NEW))


def test_it_knows_turn_directory_and_undone_turns() -> None:
    first, answer, second, last = turns(NEW)
    assert first.record_id and first.record_id.startswith(f"{THREAD}/T1/user/")
    assert (first.cwd, second.cwd) == ("/home/mira/src/ledger", "/home/mira/src/ledger/tools")
    assert answer.metadata["model"] == "gpt-5.5" and answer.metadata["branch"] == "main"
    assert "rolled_back" not in first.metadata and "rolled_back" not in answer.metadata
    assert second.metadata["rolled_back"] and last.metadata["rolled_back"]


def test_it_reads_rollouts_with_events() -> None:
    found = turns(OLD)
    assert [(turn.role, turn.body) for turn in found] == [
        ("user", "Sum the March column."),
        ("assistant", "Done."),
        ("user", "Sum April, too."),
        ("assistant", "Done."),
    ]
    assert len({turn.record_id for turn in found}) == 4
    # A second header in the file is a copy of the parent's: the first one names it.
    assert {turn.session for turn in found} == {"019b0000-aaaa-7bbb-8ccc-ddddeeeeffff"}


def test_it_reads_bare_items_of_the_first_versions() -> None:
    found = turns(FOLDER / "bare-2025.jsonl")
    assert [(turn.role, turn.body) for turn in found] == [
        ("user", "Rename the invoice field."),
        ("assistant", "Renamed to bill."),
    ]
    assert {turn.session for turn in found} == {"old-thread"}


def test_it_skips_threads_of_sub_agents() -> None:
    path = next(FOLDER.glob("*019d1f00-9999*"))
    reading = Reading()
    list(read(path, reading=reading))
    assert reading.turns == 0 and reading.skipped["sidechain"] == 2


def test_it_goes_on_where_it_stopped_under_another_path(tmp_path: Path) -> None:
    lines = NEW.read_bytes().splitlines(keepends=True)
    live = tmp_path / NEW.name
    live.write_bytes(b"".join(lines[:18]))
    reading = Reading()
    before = [item for item in read(live, reading=reading) if isinstance(item, Turn)]
    archived = tmp_path / "archived_sessions" / NEW.name
    archived.parent.mkdir()
    shutil.move(live, archived)
    with archived.open("ab") as handle:
        handle.write(b"".join(lines[18:]))
    after = turns(archived, reading.offset)
    whole = turns(NEW)
    # What was read before its better channel came has the same record id as that channel's.
    assert spoken(before)[:2] == spoken(whole)[:2]
    assert {t.record_id for t in before} | {t.record_id for t in after} == {
        t.record_id for t in whole
    }
    assert after[-1].cwd == whole[-1].cwd


def test_it_never_reads_what_a_compaction_holds(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in NEW.read_text().splitlines()]
    compacted = next(row for row in rows if row["type"] == "compacted")
    path = tmp_path / "s.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows + [compacted] * 50))
    reading = Reading()
    found = [i for i in read(path, reading=reading) if isinstance(i, Turn)]
    assert spoken(found) == spoken(turns(NEW))
    assert reading.skipped["digest"] == 51


def test_it_shows_prompts_that_no_event_repeats(tmp_path: Path) -> None:
    def forget(row: Row) -> Row | None:
        said = str(row["payload"].get("message", ""))
        return None if said.startswith("Sum the March") else row

    reading = Reading()
    list(read(rewrite(OLD, tmp_path / "s.jsonl", forget), reading=reading))
    assert reading.skipped["unmirrored"] == 1


@pytest.mark.parametrize(
    "text",
    [
        '<codex_internal_context source="goal">Continue working.</codex_internal_context>',
        "<goal_context>Continue working.</goal_context>",
        "  # AGENTS.md instructions for /x\n\n<INSTRUCTIONS>y</INSTRUCTIONS>",
        "<ENVIRONMENT_CONTEXT><cwd>/x</cwd>",
        "<turn_aborted>x</turn_aborted>",
        "<user_shell_command>ls</user_shell_command>",
        "<hook_prompt id='1'>x</hook_prompt>",
    ],
)
def test_it_skips_injected_text(text: str) -> None:
    assert one_text(text).reason == "harness"


def test_it_keeps_a_person_who_quotes_such_text() -> None:
    text = "Why do I see <goal_context>Continue working.</goal_context> in the log?"
    assert one_text(text) == (text, None)


def test_it_judges_each_item_of_a_message_alone() -> None:
    items = [
        {"type": "input_text", "text": "<environment_context>x</environment_context>"},
        {"type": "input_text", "text": "Fix the sum."},
    ]
    assert own_words({"content": items}).text == "Fix the sum."
    named = {"content_item_kinds": ["user.text", "hooks.additional_context"]}
    passed = {"content": [{"type": "input_text", "text": t} for t in ("mine", "not mine")]}
    kept = own_words({**passed, "internal_chat_message_metadata_passthrough": named})
    assert kept.text == "mine"


def test_it_keeps_the_request_behind_an_editors_preamble() -> None:
    text = "# Context from my IDE setup:\n\n- a.py\n\n## My request for Codex:\nSum it.\n"
    assert one_text(text).text == "Sum it."


def test_it_finds_the_thread_in_a_file_name() -> None:
    assert thread_of(NEW.name) == THREAD
    assert thread_of("notes.jsonl") == "notes"
