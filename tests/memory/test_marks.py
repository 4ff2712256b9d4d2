"""How: texts and spans by hand and by hypothesis; pieces read back together."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.text.seen import visible
from memory.web.marks import DIFF_LINES_MAX, DIFF_TOKENS_MAX, Piece, diff_words, highlight, quoted

OLD = "The staging server listens on port 8443."
NEW = "The staging server listens on port 9443."


def joined(pieces: list[Piece]) -> str:
    return "".join(piece.text for piece in pieces)


def marked(pieces: list[Piece], kind: str) -> list[str]:
    return [piece.text for piece in pieces if piece.kind == kind]


class TestDiff:
    def test_it_marks_the_word_that_changed(self) -> None:
        old, new = diff_words(OLD, NEW)
        assert old == [
            Piece("The staging server listens on port "),
            Piece("8443", "del"),
            Piece("."),
        ]
        assert new[1] == Piece("9443", "ins") and joined(new) == NEW

    @pytest.mark.parametrize(
        ("old", "new", "went", "came"),
        [
            ("It is PostgreSQL 15.6 now.", "It is PostgreSQL 16.2 now.", "15.6", "16.2"),
            ("Run src/a/one.py first.", "Run src/b/one.py first.", "src/a/one.py", "src/b/one.py"),
            ("服务器使用八号端口。", "服务器使用九号端口。", "八", "九"),
        ],
    )
    def test_it_marks_a_number_a_path_and_an_ideograph_as_a_whole(
        self, old: str, new: str, went: str, came: str
    ) -> None:
        left, right = diff_words(old, new)
        assert marked(left, "del") == [went] and marked(right, "ins") == [came]

    def test_it_marks_nothing_in_equal_texts(self) -> None:
        assert diff_words(OLD, OLD) == ([Piece(OLD)], [Piece(OLD)])
        assert diff_words("", "") == ([], [])

    def test_it_marks_all_of_two_texts_that_share_hardly_a_word(self) -> None:
        old, new = diff_words(OLD, "Deploys of billing need two approvals, always and everywhere.")
        assert marked(old, "del") == [OLD] and len(new) == 1

    def test_it_marks_neighbouring_words_as_one_change(self) -> None:
        old, _ = diff_words("We keep jobs in a small box here.", "We keep jobs in Redis here.")
        assert marked(old, "del") == ["a small box"]

    def test_it_compares_long_texts_by_lines_and_very_long_ones_not_at_all(self) -> None:
        lines = [f"line {number} says so\n" for number in range(DIFF_TOKENS_MAX // 4)]
        old, new = diff_words("".join(lines), "".join([*lines[:-1], "the last one is new\n"]))
        assert marked(old, "del") == [lines[-1]] and marked(new, "ins") == ["the last one is new\n"]
        huge = "word\n" * DIFF_LINES_MAX
        assert diff_words(huge, huge + "x")[0] == [Piece(huge, "del")]

    def test_it_is_quick_at_its_bound(self) -> None:
        half = DIFF_TOKENS_MAX // 4
        old = " ".join(f"a{number % 7}" for number in range(half))
        new = " ".join(f"a{number % 11}" for number in range(half))
        started = time.process_time()
        diff_words(old, new)
        assert time.process_time() - started < 1

    @given(st.text(max_size=60), st.text(max_size=60))
    def test_it_loses_no_character(self, old: str, new: str) -> None:
        left, right = diff_words(old, new)
        assert joined(left) == visible(old) and joined(right) == visible(new)
        assert {piece.kind for piece in left} <= {"", "del"}
        assert {piece.kind for piece in right} <= {"", "ins"}
        assert joined([p for p in left if not p.kind]) == joined([p for p in right if not p.kind])


class TestHighlight:
    def test_it_marks_the_span(self) -> None:
        assert highlight("abcdef", [(2, 4)]) == [
            Piece("ab"),
            Piece("cd", "evidence"),
            Piece("ef"),
        ]

    def test_it_joins_spans_that_overlap_or_touch(self) -> None:
        assert marked(highlight("abcdef", [(3, 5), (1, 3), (2, 4)]), "evidence") == ["bcde"]

    def test_it_says_where_text_is_left_out(self) -> None:
        body = "a" * 50 + "XX" + "b" * 50 + "YY" + "c" * 50
        pieces = highlight(body, [(50, 52), (102, 104)], around=3)
        assert [(piece.text, piece.kind) for piece in pieces] == [
            ("…", "cut"),
            ("aaa", ""),
            ("XX", "evidence"),
            ("bbb", ""),
            ("…", "cut"),
            ("bbb", ""),
            ("YY", "evidence"),
            ("ccc", ""),
            ("…", "cut"),
        ]

    def test_it_leaves_nothing_out_between_spans_whose_surroundings_meet(self) -> None:
        pieces = highlight("abXXcdYYef", [(2, 4), (6, 8)], around=2)
        assert joined(pieces) == "abXXcdYYef" and not marked(pieces, "cut")

    def test_it_shows_the_beginning_when_there_is_no_span(self) -> None:
        assert highlight("abcdefgh", [], around=2) == [Piece("abcd"), Piece("…", "cut")]
        assert highlight("abc", []) == [Piece("abc")]

    def test_it_cuts_spans_to_the_body(self) -> None:
        assert highlight("abc", [(-5, 1), (2, 99), (50, 60), (2, 1)]) == [
            Piece("a", "evidence"),
            Piece("b"),
            Piece("c", "evidence"),
        ]

    @given(
        st.text(alphabet="ab\n", max_size=40),
        st.lists(st.tuples(st.integers(-3, 45), st.integers(-3, 45)), max_size=5),
        st.integers(0, 10),
    )
    def test_it_keeps_every_marked_character(
        self, body: str, spans: list[tuple[int, int]], around: int
    ) -> None:
        inside = {n for start, end in spans for n in range(max(0, start), min(end, len(body)))}
        expected = "".join(body[number] for number in sorted(inside))
        for pieces in (highlight(body, spans), highlight(body, spans, around)):
            assert "".join(marked(pieces, "evidence")) == expected
        assert joined(highlight(body, spans)) == body


class TestVisible:
    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("a\x1b[31mred", "a␛[31mred"),
            ("a\u202eb", "a⟨U+202E⟩b"),
            ("zero\u200bwidth", "zero⟨U+200B⟩width"),
            ("a\x00b\x7f\x9f", "a␀b␡⟨U+009F⟩"),
            ("tag\U000e0041", "tag⟨U+E0041⟩"),
            ("line\u2028end", "line⟨U+2028⟩end"),
            ("a\u200db \u200c", "a⟨U+200D⟩b ⟨U+200C⟩"),
            ("می\u200cخواهم 👩\u200d💻", "می\u200cخواهم 👩\u200d💻"),
            ("é\u200d\u200dé", "é⟨U+200D⟩⟨U+200D⟩é"),
            ("keeps\n\ttheir place\r\n", "keeps\n\ttheir place\n"),
            ("Grüße, 日本語, שלום, 👍🏽", "Grüße, 日本語, שלום, 👍🏽"),
        ],
    )
    def test_it_shows_what_hides_or_turns_text(self, text: str, shown: str) -> None:
        assert visible(text) == shown

    def test_it_leaves_no_hidden_character_in_a_diff_or_a_highlight(self) -> None:
        old, new = diff_words("a\u202eb", "a\u202ec")
        assert "\u202e" not in joined(old) + joined(new)
        assert "\u202e" not in joined(highlight("a\u202eb", [(0, 2)]))


class TestQuoted:
    @pytest.mark.parametrize(
        ("before", "after", "cuts"),
        [
            (0, 0, (False, False)),
            (4, 4, (False, False)),
            (5, 5, (True, True)),
            (9, 4, (True, False)),
        ],
    )
    def test_it_says_where_the_text_goes_on_and_only_there(
        self, before: int, after: int, cuts: tuple[bool, bool]
    ) -> None:
        text, around = f"{'x' * before}quote{'y' * after}", 4
        start, end = before, before + 5
        first = max(start - around, 0)
        # What a database gives: the window, and one character more.
        pieces = quoted(text[first : end + around + 1], start, end, first=first, around=around)
        assert marked(pieces, "evidence") == ["quote"]
        assert (pieces[0].kind == "cut", pieces[-1].kind == "cut") == cuts
        plain = "".join(piece.text for piece in pieces if piece.kind == "")
        assert plain == "x" * min(before, around) + "y" * min(after, around)
