"""The gates before a search: what no person asked, and what is too little to ask with."""

from __future__ import annotations

import time

import pytest

from memory.text.fence import wrap
from recall.gates import PROMPT_CHARACTERS_MAX, PROMPT_TOKENS_MIN, ask


@pytest.mark.parametrize(
    "prompt",
    [
        "<system-reminder>The file src/app.py was modified since the last look.</system-reminder>",
        "<local-command-stdout>compiled 14 modules without warnings today</local-command-stdout>",
        "<command-name>/compact</command-name>\n<command-message>compact</command-message>",
    ],
)
def test_it_refuses_a_turn_of_the_harness(prompt: str) -> None:
    assert ask(prompt).gate == "system_turn"


@pytest.mark.parametrize(
    "prompt",
    [
        "", " \n\t", "ok", "yes please go on", "👍🎉🚀 😀😀😀", "?!?! ...",
        "the of and to in for with",
        "fix it", "yes please go ahead and do it", "src/app/models/user.py",
        "你好吗", "。。。、、、", "1 2 3 4 5 6 7",
        "\u200b\u200b\u200b", "😀" * 200,
        "foo foo foo foo foo foo foo", "哈哈哈哈哈哈哈哈",
    ],
)  # fmt: skip
def test_it_refuses_what_is_too_little_to_ask_with(prompt: str) -> None:
    asked = ask(prompt)
    assert asked.gate == "too_short", asked
    assert str(PROMPT_TOKENS_MIN) in asked.detail


@pytest.mark.parametrize(
    "prompt",
    [
        "which port does the staging database use",
        "how do we deploy this service?",
        "数据库使用哪个端口",
        "ステージング環境のポート番号",
        "데이터베이스 포트 번호",
        "ما هو منفذ قاعدة بيانات الاختبار المستخدم حاليا",
        "איזה פורט משמש את מסד הנתונים של הבדיקות",
        "Welchen Port benutzt die Datenbank für Staging heute",
        "`def connect(host, port): return pool[host]` leaks sockets",
        "O'Reilly'; DROP TABLE memory_note; -- select everything now",
    ],
)
def test_it_lets_a_question_pass_in_any_script(prompt: str) -> None:
    assert ask(prompt).gate == ""


def test_it_counts_tokens_up_to_the_bound_exactly() -> None:
    assert ask("alpha beta gamma delta").gate == "too_short"
    assert ask("the alpha beta gamma").gate == "too_short"
    assert ask("where is alpha of beta and gamma").gate == ""
    assert ask("where is alpha of beta and the").gate == "too_short"
    assert ask("alpha beta gamma delta epsilon").gate == ""
    assert ask("数据库端").gate == "too_short"
    assert ask("数据库端口").gate == ""


def test_it_asks_with_what_stands_beside_a_reminder() -> None:
    mixed = "Which port does the staging database use?\n<system-reminder>x</system-reminder>"
    assert ask(mixed).gate == ""


def test_it_does_not_ask_with_its_own_block() -> None:
    block = wrap(["- the staging database listens on port 5433 since the move in May"])
    assert ask(block).gate == "too_short"
    asked = ask(f"{block}\nIs the staging database still on this port today?")
    assert asked.gate == "" and "5433" not in asked.text


def test_it_cuts_a_pasted_megabyte_and_stays_quick() -> None:
    started = time.process_time()
    asked = ask("the staging database port is unknown " + "x1y2z3 " * 150_000)
    assert len(asked.text) <= PROMPT_CHARACTERS_MAX
    assert asked.gate == ""
    assert time.process_time() - started < 5


def test_it_cleans_what_postgres_cannot_hold() -> None:
    asked = ask("which port does the\x00 staging \ud83d database use")
    assert "\x00" not in asked.text and "\ud83d" not in asked.text
    asked.text.encode()
