"""Lines, offsets and objects of JSONL files, whatever bytes they hold."""

from __future__ import annotations

import importlib
import io
import json
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memory.transcripts import SOURCES, BadLine, Item, Reading, Skip, Turn, read
from memory.transcripts.lines import LINE_BYTES_MAX, SKIP_BYTES, Line, parse, read_lines, run_past
from memory.transcripts.turns import text_hash

SESSION = "11111111-2222-4333-8444-555555555555"


def claude_row(number: int, text: str, **more: Any) -> dict[str, Any]:
    return {
        "type": "user",
        "uuid": f"u{number}",
        "sessionId": SESSION,
        "timestamp": f"2026-01-02T03:{number // 60:02d}:{number % 60:02d}Z",
        "message": {"role": "user", "content": text},
        **more,
    }


def lines_of(data: bytes, offset: int = 0) -> list[Line]:
    return list(read_lines(io.BytesIO(data), offset))


def read_all(path: Path, offset: int = 0) -> tuple[list[Item], Reading]:
    reading = Reading()
    return list(read(path, "claude-code", offset, reading)), reading


def bodies(items: list[Item]) -> list[str]:
    return [item.body for item in items if isinstance(item, Turn)]


def test_it_splits_on_line_feeds_only() -> None:
    text = "a\u2028b\u2029c\u0085d\x0be\x0cf"
    data = text.encode() + b"\n" + b"next\r\n"
    found = lines_of(data)
    assert [line.raw for line in found] == [text.encode(), b"next"]
    assert len(data.decode().splitlines()) == 7


def test_it_counts_offsets_in_bytes_of_the_file() -> None:
    data = "é1 \r\n\n中\nlast".encode()
    found = lines_of(data)
    assert [(line.number, line.start, line.end) for line in found] == [
        (1, 0, 6),
        (2, 6, 7),
        (3, 7, 11),
        (4, 11, 15),
    ]
    assert [line.complete for line in found] == [True, True, True, False]
    for line in found:
        assert data[line.start : line.end].rstrip(b"\n").rstrip(b"\r") == line.raw


def test_it_starts_at_an_offset() -> None:
    data = b"one\r\ntwo\r\nthree\n"
    assert [line.raw for line in lines_of(data, 5)] == [b"two", b"three"]


def test_it_takes_off_a_byte_order_mark_once() -> None:
    assert [line.raw for line in lines_of(b"\xef\xbb\xbf{}\n\xef\xbb\xbf{}\n")] == [
        b"{}",
        b"\xef\xbb\xbf{}",
    ]


def test_it_runs_over_a_line_above_the_ceiling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory.transcripts.lines.LINE_BYTES_MAX", 8)
    data = b"12345678\n" + b"123456789\n" + b"x" * 40 + b"\nok\n" + b"y" * 20
    found = lines_of(data)
    assert [line.raw for line in found] == [b"12345678", None, None, b"ok", None]
    assert [line.complete for line in found] == [True, True, True, True, False]
    assert found[-1].end == len(data)
    assert found[1].problem == "longer than 8 bytes"


@pytest.mark.parametrize(
    "raw",
    [
        b'{"a": 1}{"b": 2}',
        b'{"a": "\x01"}',
        b'{"a": "unterminated',
        b'{"a": 1' + b"0" * 6000 + b"}",
        b"[" * 200_000,
        b"not json",
    ],
)
def test_it_says_why_a_line_is_bad(raw: bytes) -> None:
    value, problem, _ = parse(Line(1, 0, len(raw), raw))
    assert value is None
    assert problem


def test_it_cleans_what_postgres_cannot_hold() -> None:
    raw = rb'{"k\u0000": ["a\u0000b", {"x": "cut \ud83d end", "ok": "\ud83d\ude00"}]}'
    value, problem, sanitised = parse(Line(1, 0, len(raw), raw))
    assert problem is None and sanitised
    assert value == {"k": ["ab", {"x": "cut \ufffd end", "ok": "😀"}]}
    json.dumps(value, ensure_ascii=False).encode("utf-8")


def test_it_keeps_a_row_with_bytes_that_are_not_utf_8() -> None:
    value, problem, sanitised = parse(Line(1, 0, 9, b'{"a": "\xff"}'))
    assert (value, problem, sanitised) == ({"a": "\ufffd"}, None, True)


def test_it_reports_bad_lines_with_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    rows = [json.dumps(claude_row(n, f"prompt {n}")) for n in range(145)]
    for place, broken in ((10, '{"a"'), (50, '{"a":1}{"b":2}'), (144, '"only a string"')):
        rows[place] = broken
    path.write_text("\n".join(rows) + "\n")
    items, reading = read_all(path)
    assert len(bodies(items)) == 142
    assert [bad.line for bad in reading.bad_lines] == [11, 51, 145]
    assert all(bad.reason for bad in reading.bad_lines)
    assert reading.offset == path.stat().st_size


def test_it_waits_for_a_last_line_cut_inside_an_emoji(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    first = json.dumps(claude_row(1, "first"), ensure_ascii=False).encode() + b"\n"
    second = json.dumps(claude_row(2, "tea 🫖 time"), ensure_ascii=False).encode() + b"\n"
    half = second.index("🫖".encode()) + 2
    path.write_bytes(first + second[:half])
    items, reading = read_all(path)
    assert bodies(items) == ["first"]
    assert reading.incomplete and reading.offset == len(first)
    path.write_bytes(first + second)
    items, reading = read_all(path, reading.offset)
    assert bodies(items) == ["tea 🫖 time"]
    assert not reading.bad_lines and reading.offset == path.stat().st_size
    assert [i.locator["line"] for i in items if isinstance(i, Turn)] == [2]


def test_it_takes_a_last_line_without_line_feed_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(json.dumps(claude_row(1, "whole")))
    items, reading = read_all(path)
    assert bodies(items) == ["whole"]
    assert reading.offset == path.stat().st_size and not reading.incomplete


def test_it_loses_nothing_over_appends_with_crlf(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    offset, found = 0, []
    data = b""
    for n in range(3):
        data += json.dumps(claude_row(n, f"line {n}  ")).encode() + b"  \r\n"
        path.write_bytes(data)
        items, reading = read_all(path, offset)
        offset = reading.offset
        assert offset == len(data)
        found += bodies(items)
    assert found == ["line 0  ", "line 1  ", "line 2  "]


def test_it_reads_a_truncated_file_from_its_start(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(json.dumps(claude_row(1, "again")) + "\n")
    items, reading = read_all(path, 10_000)
    assert bodies(items) == ["again"] and reading.restarted


def test_it_moves_the_offset_only_behind_lines_that_were_drawn(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    first = json.dumps(claude_row(1, "one")) + "\n"
    path.write_text(first + json.dumps(claude_row(2, "two")) + "\n")
    reading = Reading()
    drawn: Iterator[Item] = iter(read(path, "claude-code", 0, reading))
    next(drawn)
    assert reading.offset == 0
    next(drawn)
    assert reading.offset == len(first)


def test_it_keeps_memory_flat_on_a_huge_line(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    with path.open("wb") as handle:
        handle.write(json.dumps(claude_row(1, "before")).encode() + b"\n")
        handle.write(b'{"type": "user", "message": {"content": "data:image/png;base64,')
        for _ in range(60):
            handle.write(b"A" * 1_000_000)
        handle.write(b'"}}\n' + json.dumps(claude_row(2, "after")).encode() + b"\n")
    tracemalloc.start()
    items, reading = read_all(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert bodies(items) == ["before", "after"]
    assert [(bad.line, "longer than" in bad.reason) for bad in reading.bad_lines] == [(2, True)]
    assert reading.offset == path.stat().st_size
    # The line's beginning is held once, up to the ceiling; the other 44 MB never are.
    assert peak < 2.5 * LINE_BYTES_MAX


def test_it_omits_one_record_of_nine_mebibytes_and_keeps_its_siblings(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    tool = claude_row(2, "")
    tool["message"]["content"] = [{"type": "tool_result", "content": "x" * (9 << 20)}]
    rows = [claude_row(1, "before"), tool, claude_row(3, "after")]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    items, _ = read_all(path)
    assert bodies(items) == ["before", "after"]
    assert Skip("tool", 2) in items


def test_it_keeps_what_is_said_beside_a_large_picture(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    shown = claude_row(1, "")
    picture = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo" * 600_000}
    shown["message"]["content"] = [
        {"type": "text", "text": "Why is the button grey?"},
        {"type": "image", "source": picture},
    ]
    path.write_text(json.dumps(shown) + "\n")
    items, reading = read_all(path)
    assert bodies(items) == ["Why is the button grey?"] and not reading.bad_lines


@pytest.mark.parametrize("filler", ["😀 and words ", "[{}]," * 3, "line after line\n"])
def test_it_does_not_parse_what_would_take_many_times_its_size(tmp_path: Path, filler: str) -> None:
    path = tmp_path / "s.jsonl"
    huge = json.dumps(claude_row(2, filler * (15_000_000 // len(filler.encode()))))
    rows = [json.dumps(claude_row(1, "before")), huge, json.dumps(claude_row(3, "after"))]
    path.write_text("".join(row + "\n" for row in rows))
    del huge, rows
    tracemalloc.start()
    items, reading = read_all(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert bodies(items) == ["before", "after"]
    assert ["longer than" in bad.reason for bad in reading.bad_lines] == [True]
    assert peak < 3.5 * LINE_BYTES_MAX


def test_it_makes_short_hashes_of_any_text() -> None:
    assert len(text_hash("tea")) == 32
    assert text_hash("tea") != text_hash("Tea")
    assert text_hash("\ud83d")


def test_it_names_the_file_of_a_bad_line(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text("{broken\n")
    items, _ = read_all(path)
    assert isinstance(items[0], BadLine) and items[0].path == str(path)


@pytest.mark.parametrize("shift", range(-7, 2))
def test_it_sees_a_sign_across_the_edge_of_two_pieces(shift: int) -> None:
    data = b"\n" * (SKIP_BYTES + shift) + b"<sign>" + b"\n" * 9
    handle = io.BytesIO(data)
    assert run_past(handle, len(data), b"<sign>") == (len(data) - 6, True)
    assert run_past(handle, SKIP_BYTES + shift + 5, b"<sign>")[1] is False
    assert run_past(handle, 0, b"<sign>") == (0, False)


def test_it_names_each_source_as_its_adapter_does() -> None:
    modules = ("claude_code", "codex", "pi", "telegram", "bookmarks", "documents", "vault")
    adapters = [importlib.import_module(f"memory.transcripts.{module}") for module in modules]
    assert tuple(adapter.SOURCE for adapter in adapters) == SOURCES


def test_it_imports_the_adapter_of_one_source_alone() -> None:
    script = (
        "import sys; from memory.transcripts import claude_code;"
        "print(sorted(name for name in sys.modules if name.startswith('memory.transcripts.')))"
    )
    ran = subprocess.run(
        [sys.executable, "-S", "-c", script],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    for other in ("codex", "pi", "telegram", "bookmarks", "documents", "vault"):
        assert f"memory.transcripts.{other}" not in ran.stdout
