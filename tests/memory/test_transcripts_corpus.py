"""Real files in every format, where they are at hand: counts that were checked by eye."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

import memory.transcripts
from memory.transcripts import Item, Reading, Skip, Turn, read, walk
from tests.corpus import CORPUS, SHARED, needs_corpus

SAMPLES = SHARED / "realclients" / "samples"


def counts(name: str) -> tuple[int, dict[str, int], list[int]]:
    reading = Reading()
    for _ in read(CORPUS / name, reading=reading):
        pass
    return reading.turns, dict(reading.skipped), [bad.line for bad in reading.bad_lines]


@needs_corpus
@pytest.mark.parametrize(
    ("name", "turns", "skipped", "bad"),
    [
        ("claude-code/claude-code-log/edge_cases.jsonl", 6, {"tool": 3, "harness": 2, "command": 1,
         "unknown:user": 2, "unknown:?": 1, "plumbing": 1}, [13, 15, 16]),
        ("claude-code/claude-code-log/dag_compact_after_rewind.jsonl", 10,
         {"system": 1, "digest": 1}, []),
        ("claude-code/claude-code-log/representative_messages.jsonl", 7,
         {"tool": 4, "plumbing": 1}, []),
        ("claude-code/claude-code-log/system_reminder.jsonl", 2, {"harness": 1}, []),
        ("claude-code/claude-code-log/sidechain_integrated.trimmed.jsonl", 1,
         {"tool": 2, "sidechain": 3}, []),
        ("claude-code/agent-sessions/schema_drift.jsonl", 2,
         {"tool": 2, "system": 2, "event": 1, "plumbing": 3}, []),
        ("codex/agent-sessions/session_simple.jsonl", 2, {}, []),
        ("codex/agent-sessions/schema_drift.jsonl", 2, {"tool": 2, "plumbing": 1}, []),
        ("codex/agent-sessions/large.jsonl", 8, {"plumbing": 3, "mirror": 1, "tool": 2,
         "harness": 1, "unmirrored": 5}, []),
        ("pi/agent-sessions/small.jsonl", 4, {"plumbing": 3, "digest": 2}, []),
        ("pi/fixtures/before-compaction.jsonl", 308, {"plumbing": 11, "tool": 664, "thinking": 2,
         "empty": 12, "digest": 2, "shell": 3, "poison": 1}, []),
        ("telegram/telegram_export.json", 7, {}, []),
        ("bookmarks/firefox_nested.htm", 21, {"no page": 3}, []),
        ("bookmarks/netscape_multiline.htm", 3, {}, []),
        ("bookmarks/shaarli_markdown.htm", 3, {}, []),
    ],
)  # fmt: skip
def test_it_reads_the_corpus(
    name: str, turns: int, skipped: dict[str, int], bad: list[int]
) -> None:
    assert counts(name) == (turns, skipped, bad)


@needs_corpus
def test_it_accounts_for_every_line_of_the_corpus() -> None:
    for path in walk([CORPUS / "claude-code", CORPUS / "codex", CORPUS / "pi"]):
        if isinstance(path, Skip):
            continue
        reading = Reading()
        for _ in read(path, reading=reading):
            pass
        told = reading.turns + sum(reading.skipped.values()) + len(reading.bad_lines)
        blank = sum(not line.strip() for line in path.read_bytes().split(b"\n")[:-1])
        assert told + blank == reading.lines, path
        assert reading.offset == path.stat().st_size, path


@needs_corpus
def test_it_reads_what_the_real_clients_wrote() -> None:
    found: dict[str, list[Item]] = {}
    for path in walk([SAMPLES]):
        if isinstance(path, Path) and path.suffix == ".jsonl":
            found.setdefault(f"{path.parent.parent.name}/{path.parent.name}", []).extend(read(path))
    reasons = Counter(i.reason for items in found.values() for i in items if isinstance(i, Skip))
    assert not [reason for reason in reasons if reason.startswith("unknown")]
    bodies = {
        name: [item.body for item in items if isinstance(item, Turn)]
        for name, items in found.items()
    }
    assert not [text for texts in bodies.values() for text in texts if "ARGUS-" in text]
    for client in ("claude", "codex", "pi"):
        assert bodies[f"{client}/one"] == [
            "Where does the deploy script live in this project?",
            "The deploy script lives in tools/deploy.sh and it must run with FOO=1.",
        ]
        assert len(bodies[f"{client}/resume3"]) == 6
        assert bodies[f"{client}/error400"] == [
            "This prompt meets an API error.",
            "And this one works again.",
            "It works.",
        ]
        assert len(bodies[f"{client}/unicode"]) == 2
    assert len(bodies["claude/compact"]) == 11
    assert len(bodies["claude/subagent"]) == 2
    fork = [item for item in found["claude/fork_claude"] if isinstance(item, Turn)]
    assert (len(fork), len({turn.record_id for turn in fork})) == (6, 4)


def test_it_is_python_3_9_and_stands_on_nothing() -> None:
    for path in Path(memory.transcripts.__file__).parent.glob("*.py"):
        tree = ast.parse(path.read_text(), feature_version=(3, 9))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                assert node.module.split(".")[0] not in ("django", "pydantic", "argus"), path
