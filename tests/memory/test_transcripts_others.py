"""Chat exports, bookmarks and documents; instants of every kind; the walk over folders."""

from __future__ import annotations

import json
import os
import tracemalloc
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from memory.transcripts import Reading, Skip, Turn, detect, read, walk
from memory.transcripts.documents import cut, front_matter
from memory.transcripts.instants import instant

FOLDER = Path(__file__).parents[1] / "fixtures" / "transcripts"
CHATS = FOLDER / "telegram.json"
MARKS = FOLDER / "bookmarks.html"


def turns(path: Path, **more: Any) -> list[Turn]:
    return [item for item in read(path, **more) if isinstance(item, Turn)]


# Telegram


def test_it_reads_all_chats_of_an_export() -> None:
    reading = Reading()
    found = [i for i in read(CHATS, reading=reading) if isinstance(i, Turn)]
    assert [(turn.session, turn.record_id, turn.body) for turn in found] == [
        ("telegram:42", "42/2", "The kettle moved to the second shelf."),
        ("telegram:42", "42/3", "See the plan (https://example.invalid/plan) now"),
        ("telegram:43", "43/2", "Buy filters. 🫖"),
    ]
    assert reading.skipped == {"service": 1, "image": 1}
    assert reading.source == "telegram" and reading.offset == CHATS.stat().st_size
    assert found[1].metadata["sender"] == "deleted account"
    assert found[1].metadata["reply_to"] == 2 and found[0].metadata["chat"] == "Kitchen"


def test_it_prefers_the_epoch_and_says_when_a_zone_was_assumed() -> None:
    first, naive, _ = turns(CHATS)
    assert first.occurred_at == datetime(2026, 1, 5, 10, tzinfo=UTC)
    assert naive.occurred_at == datetime(2026, 1, 5, 12, 1, tzinfo=UTC)
    assert naive.metadata["assumed_zone"] == "UTC" and "assumed_zone" not in first.metadata
    tokyo = timezone(timedelta(hours=9))
    there = turns(CHATS, zone=tokyo)[1]
    assert there.occurred_at == datetime(2026, 1, 5, 3, 1, tzinfo=UTC)


def test_it_reads_one_chat_of_any_size_in_flat_memory(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    body = "x" * 1000
    messages = [
        {"id": n, "type": "message", "date_unixtime": str(1767600000 + n), "text": f"{n} {body}"}
        for n in range(6_000)
    ]
    chat = {"name": "Long [chat] {1}", "type": "personal_chat", "id": 7, "messages": messages}
    path.write_text(json.dumps(chat))
    del messages, chat
    count = 0
    tracemalloc.start()
    for item in read(path):
        assert isinstance(item, Turn) and item.session == "telegram:7"
        count += 1
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 6_000
    assert peak < path.stat().st_size / 4


def test_it_reports_a_chat_file_that_ends_too_early(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    data = CHATS.read_text()
    path.write_text(data[: data.index("Buy filters")])
    reading = Reading()
    assert len([i for i in read(path, reading=reading) if isinstance(i, Turn)]) == 2
    assert len(reading.bad_lines) == 1 and reading.bad_lines[0].line > 30


# Bookmarks


def test_it_reads_bookmarks_with_folders_and_descriptions() -> None:
    reading = Reading()
    found = [i for i in read(MARKS, reading=reading) if isinstance(i, Turn)]
    assert [turn.metadata["url"].rsplit("/", 1)[1] for turn in found] == [
        "green",
        "pots",
        "micro",
        "apache",
        "undated",
    ]
    first = found[0]
    assert first.body == (
        "Green & white\nhttps://example.invalid/green\n\nWater at 75 degrees,\ntwo minutes."
    )
    assert first.metadata["tags"] == ["tea", "green"] and first.metadata["private"]
    assert (first.metadata["folder"], found[1].metadata["folder"]) == ("Tea", "Tea/Pots")
    assert "folder" not in found[2].metadata
    assert (first.kind, first.source, first.locator["line"]) == ("document", "bookmark", 8)
    assert reading.skipped == {"duplicate": 1, "no page": 1}


def test_it_reads_dates_of_bookmarks_in_every_unit() -> None:
    second = datetime(2023, 11, 14, 22, 13, 21, tzinfo=UTC)
    green, pots, micro, apache, undated = turns(MARKS)
    assert green.occurred_at == pots.occurred_at == micro.occurred_at == second
    assert apache.occurred_at == datetime(2000, 10, 10, 10, 55, 36, tzinfo=UTC)
    assert undated.occurred_at is None and undated.metadata["time_problem"] == "impossible"
    assert undated.body == "https://example.invalid/undated"


# Documents


def test_it_reads_a_note_as_one_document() -> None:
    path = FOLDER / "note.md"
    (turn,) = turns(path)
    assert turn.body == path.read_text()
    assert (turn.kind, turn.source, turn.metadata["title"]) == ("document", "file", "Descaling")
    assert turn.occurred_at == datetime(2026, 3, 1, tzinfo=UTC)


def test_it_names_a_document_by_place_and_content(tmp_path: Path) -> None:
    one, two = tmp_path / "a.md", tmp_path / "b.md"
    one.write_text("# Tea\n\nHot.\n")
    two.write_text("# Tea\n\nHot.\n")
    first = turns(one)[0].record_id
    os.utime(one, (1, 1_000_000_000))
    again = turns(one)[0]
    assert again.record_id == first
    assert again.occurred_at == datetime(2001, 9, 9, 1, 46, 40, tzinfo=UTC)
    assert again.metadata["time_from"] == "file"
    assert turns(two)[0].record_id != first
    one.write_text("# Tea\n\nCold.\n")
    assert turns(one)[0].record_id != first


def test_it_cuts_long_documents_at_headings() -> None:
    text = "intro\n" + "".join(
        f"# H{n}\n" + "é" * 30 + "\n## Sub\n```\n# no\n```\n" for n in range(6)
    )
    pieces = cut(text, 200)
    assert "".join(piece.text for piece in pieces) == text
    assert all(len(piece.text.encode()) <= 200 for piece in pieces)
    assert len(pieces) > 2
    for piece in pieces[1:]:
        assert piece.text.startswith("#") and not piece.text.startswith("# no")
        assert text[piece.start :].startswith(piece.text)
        assert piece.line == text[: piece.start].count("\n") + 1
        assert piece.headings[0].startswith("H")


def test_it_cuts_one_endless_line_too() -> None:
    text = "\U0001fad6" * 500 + "\nshort\n"
    pieces = cut(text, 100)
    assert "".join(piece.text for piece in pieces) == text
    assert all(len(piece.text.encode()) <= 100 for piece in pieces)


def test_it_gives_one_item_per_piece(tmp_path: Path) -> None:
    path = tmp_path / "long.txt"
    path.write_text("# A\n" + "a" * 600_000 + "\n# B\n" + "b" * 600_000 + "\n")
    found = turns(path)
    assert [turn.locator["headings"] for turn in found] == [["A"], ["B"]]
    assert [(t.locator["piece"], t.locator["pieces"]) for t in found] == [(1, 2), (2, 2)]
    assert len({turn.record_id for turn in found}) == 2


@pytest.mark.parametrize(
    ("data", "reason"),
    [(b"", "empty"), (b" \n", "empty"), (b"PK\x03\x04\x00\x00", "binary")],
)
def test_it_skips_files_without_words(tmp_path: Path, data: bytes, reason: str) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes(data)
    (item,) = read(path)
    assert isinstance(item, Skip) and item.reason == reason


def test_it_reads_front_matter_only_where_it_is_closed() -> None:
    assert front_matter("---\nTitle: 'A'\nnote\n---\nx") == {"title": "A"}
    assert front_matter("---\ntitle: A\nx") == {}
    assert front_matter("title: A") == {}


# Instants


@pytest.mark.parametrize(
    ("value", "want"),
    [
        ("2026-03-01T10:00:00Z", "2026-03-01T10:00:00"),
        ("2026-03-01T10:00:00.5+02:00", "2026-03-01T08:00:00.500000"),
        ("2026-03-01T10:00:00.123456789-0130", "2026-03-01T11:30:00.123456"),
        ("2026-03-01 10:00", "2026-03-01T10:00:00"),
        ("2026-03-01", "2026-03-01T00:00:00"),
        ("2026-03-01T23:59:60Z", "2026-03-01T23:59:59"),
        (1772359200, "2026-03-01T10:00:00"),
        ("1772359200", "2026-03-01T10:00:00"),
        (1772359200123, "2026-03-01T10:00:00.123000"),
        (1772359200123456, "2026-03-01T10:00:00.123456"),
        (1772359200123456789, "2026-03-01T10:00:00.123457"),
        ("13416832800000000", "2026-03-01T10:00:00"),
    ],
)
def test_it_reads_instants(value: object, want: str) -> None:
    when, problem = instant(value)
    assert problem is None and when is not None
    assert when == datetime.fromisoformat(want).replace(tzinfo=UTC)
    assert when.utcoffset() == timedelta(0)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (None, "missing"),
        ("", "missing"),
        (True, "missing"),
        (0, "impossible"),
        (-5, "impossible"),
        (1e300, "impossible"),
        (float("nan"), "unreadable"),
        ("0001-01-01T00:00:00+14:00", "impossible"),
        ("9999-12-31T23:59:59-14:00", "impossible"),
        ("2026-02-30", "impossible"),
        ("2026-01-01T25:00:00Z", "impossible"),
        ("2026-01-01T10:00:00+99:99", "impossible"),
        ("next Friday", "unreadable"),
        ("[trimmed]", "unreadable"),
        ([], "unreadable"),
    ],
)
def test_it_says_why_there_is_no_instant(value: object, why: str) -> None:
    assert instant(value) == (None, why)


# Which files, and whose


def test_it_knows_whose_file_it_is(tmp_path: Path) -> None:
    assert detect(FOLDER / "claude-code" / "teapot.jsonl") == "claude-code"
    assert {detect(path) for path in (FOLDER / "codex").iterdir()} == {"codex"}
    assert {detect(path) for path in (FOLDER / "pi").iterdir()} == {"pi"}
    assert (detect(CHATS), detect(MARKS), detect(FOLDER / "note.md")) == (
        "telegram",
        "bookmark",
        "file",
    )
    for name, text in (
        ("log.jsonl", '{"level": "info", "msg": "x"}\n'),
        ("page.html", "<html><body>hello</body></html>"),
        ("discord.json", '{"guild": {}, "messages": [{"content": "x", "author": {}}]}'),
        ("stream.jsonl", '{"type": "system", "subtype": "init", "session_id": "x"}\n'),
        ("empty.jsonl", ""),
        ("photo.png", "x"),
    ):
        path = tmp_path / name
        path.write_text(text)
        assert detect(path) is None, name


def test_it_says_that_a_file_is_nobodys(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,b\n")
    assert list(read(path)) == [Skip("unrecognised", 0, str(path))]
    with pytest.raises(ValueError, match="unknown source"):
        list(read(path, "fax"))


def test_it_walks_folders_in_order_and_counts_what_it_passes_over(tmp_path: Path) -> None:
    def put(name: str, text: str = "words\n") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    row = (FOLDER / "claude-code" / "teapot.jsonl").read_text()
    wanted = [put("p/b.md"), put("p/s.jsonl", row), put("a.txt")]
    put("p/s/subagents/agent-1.jsonl", row)
    put("p/s/subagents/agent-1.meta.json", "{}")
    put("p/s/tool-results/hook-1-additionalContext.txt")
    put("p/rollout-1.jsonl.zst")
    put("p/data.bin")
    put(".hidden/c.md")
    put("node_modules/d.md")
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    found = list(walk([tmp_path, tmp_path / "a.txt", tmp_path / "p"]))
    assert [item for item in found if isinstance(item, Path)] == [wanted[2], *wanted[:2]]
    assert sorted(item.reason for item in found if isinstance(item, Skip)) == [
        "compressed",
        "injected",
        "sidechain",
        "sidechain",
        "unrecognised",
    ]


def test_it_gives_a_file_that_was_named_whatever_it_is(tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    path.write_bytes(b"x")
    assert list(walk([path])) == [path]
    with pytest.raises(FileNotFoundError):
        list(walk([tmp_path / "gone"]))
