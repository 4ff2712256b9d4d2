"""Capture refuses an item by reason, with a trace, and leaves its siblings alone."""

from __future__ import annotations

import hashlib

import pytest

from memory.access import principal
from memory.intake import (
    FIELD_CHARACTERS_MAX,
    ITEM_BYTES_MAX,
    Incoming,
    Invalid,
)
from memory.ledger import emit
from memory.models import CaptureReceipt
from memory.stages.capture import REFUSED_CHARACTERS_MAX
from memory.text.fence import wrap
from tests.memory.posting import NOW, SECRET, item, post, stored

pytestmark = pytest.mark.django_db


OVERSIZED = "word " * (ITEM_BYTES_MAX // 5 + 1)
REFUSED: dict[str, list[Incoming | Invalid]] = {
    "empty": [item(""), item(" \n\t "), item("\x00")],
    "oversized": [item(OVERSIZED), item("設" * (ITEM_BYTES_MAX // 3 + 1))],
    "harness": [item("<system-reminder>The todo list is empty.</system-reminder>")],
    "poison": [
        item(
            'API Error: 529 {"type":"error","error":{"type":"overloaded_error"}}', role="assistant"
        )
    ],
    "derived": [
        item(wrap(["- [argus, 2026-05-01, the user said] We keep the queue in Postgres."]))
    ],
    "invalid": [
        Invalid("/body: Field required", "{}"),
        *(item(**{name: "x" * (most + 1)}) for name, most in FIELD_CHARACTERS_MAX.items()),
    ],
}


@pytest.mark.parametrize("reason", REFUSED)
def test_it_refuses_by_reason_and_leaves_the_siblings_alone(reason: str) -> None:
    bad = REFUSED[reason]
    report = post(item("Before."), *bad, item("After."))
    assert report.refused == {reason: len(bad)}
    assert [row.body for row in stored()] == ["Before.", "After."]
    receipt = CaptureReceipt.objects.as_pipeline().get(pk=report.receipt or 0)
    assert (receipt.seen, receipt.stored, receipt.refused) == (len(bad) + 2, 2, report.refused)
    for refusal, given_ in zip(receipt.refusals, bad, strict=True):
        text = given_.text if isinstance(given_, Invalid) else given_.body
        assert refusal["reason"] == reason
        assert len(refusal["sha256"]) == 64
        assert len(refusal["excerpt"]) <= REFUSED_CHARACTERS_MAX
        assert text.replace("\x00", "").startswith(refusal["excerpt"])


def test_it_says_what_a_refused_item_was() -> None:
    text = f"API Error: 401 bad key {SECRET} " + "and so on " * 40
    report = post(item(text, role="assistant"))
    refusal = CaptureReceipt.objects.as_pipeline().get().refusals[0]
    assert report.refused == {"poison": 1}
    assert refusal["sha256"] == hashlib.sha256(text.encode()).hexdigest()
    assert len(refusal["excerpt"]) == REFUSED_CHARACTERS_MAX
    assert SECRET not in refusal["excerpt"] and "[redacted:" in refusal["excerpt"]


def test_it_takes_a_secret_out_before_it_cuts_the_excerpt() -> None:
    text = "API Error: 401 " + "x" * (REFUSED_CHARACTERS_MAX - 25) + f" {SECRET}"
    post(item(text, role="assistant"))
    assert "ghp_" not in CaptureReceipt.objects.as_pipeline().get().refusals[0]["excerpt"]


@pytest.mark.parametrize("role", ["user", "User", "USER"])
def test_it_believes_what_a_person_pastes(role: str) -> None:
    assert post(item("API Error: 529 overloaded_error", role=role)).stored == 1


def test_it_judges_only_turns_as_talk() -> None:
    text = "API Error: 529 overloaded_error"
    assert post(item(text, role="assistant", kind="document")).stored == 1
    assert post(item(text, role="assistant", kind="turn", session="s2")).refused == {"poison": 1}


def test_it_refuses_half_a_batch_and_stores_the_other_half() -> None:
    batch = [
        item("API Error: 529 overloaded_error", role="assistant", session=f"s{number}")
        if number % 2
        else item(f"Turn {number}.", session=f"s{number}")
        for number in range(100)
    ]
    report = post(*batch)
    assert (report.stored, report.refused) == (50, {"poison": 50})
    assert [bool(one.id) for one in report.outcomes] == [n % 2 == 0 for n in range(100)]
    assert [one["index"] for one in CaptureReceipt.objects.as_pipeline().get().refusals] == list(
        range(1, 100, 2)
    )


def test_it_bounds_a_body_by_bytes_not_by_characters() -> None:
    assert post(item("x" * ITEM_BYTES_MAX)).stored == 1
    assert post(item("x" * (ITEM_BYTES_MAX + 1))).refused == {"oversized": 1}
    assert post(item("ö" * (ITEM_BYTES_MAX // 2))).stored == 1
    assert post(item("ö" * (ITEM_BYTES_MAX // 2 + 1))).refused == {"oversized": 1}


@pytest.mark.parametrize("name", FIELD_CHARACTERS_MAX)
def test_it_stores_the_longest_name_that_is_allowed(name: str) -> None:
    # Characters of four bytes that nothing can compress: the worst for an index entry.
    longest = "".join(
        chr(0x20000 + index * 37 % 40000) for index in range(FIELD_CHARACTERS_MAX[name])
    )
    assert post(item(**{name: longest})).stored == 1


# What comes back from us is no news.


EMITTED = [
    "- [argus, 2026-05-01, the user said] We keep the job queue in Postgres because one store is"
    " enough for a team of three people.",
    "- [argus, 2026-05-02, the user said] The nightly export is written by a command and never by"
    " the web process, which has no right to the vault.",
    "- [argus, 2026-05-03, the assistant said] Release builds fail when the lock file is older than"
    " the manifest, so the build refuses to start.",
]


def recalled(owner: str = "alice", lines: list[str] = EMITTED) -> str:
    block = wrap(lines)
    emit(block, owner=principal(owner), kind="recall", now=NOW)
    return block


def test_it_knows_its_own_block_without_the_fence() -> None:
    block = recalled()
    bare = "\n".join(block.splitlines()[2:-1])
    assert "argus-memory" not in bare
    report = post(item(bare), item(bare.upper().replace(",", "")), item(bare, role="assistant"))
    assert report.refused == {"derived": 3}
    assert [one["reason"] for one in CaptureReceipt.objects.as_pipeline().get().refusals] == [
        "derived"
    ] * 3


@pytest.mark.parametrize("comma", [",", ""], ids=["short runs", "long runs"])
def test_it_knows_its_own_block_in_a_script_without_spaces(comma: str) -> None:
    first = (
        "我们把任务队列放在数据库里",
        "因为三个人的团队只需要一个存储系统",
        "多一个服务就要多备份一次",
    )
    second = (
        "每天晚上的导出由命令完成",
        "网页进程没有写入仓库的权限",
        "出错的时候只需要检查一个地方",
    )
    block = recalled(
        lines=[
            f"- [argus, 2026-05-01, the user said] {comma.join(first)}",
            f"- [argus, 2026-05-02, the user said] {comma.join(second)}",
        ]
    )
    bare = "\n".join(block.splitlines()[2:-1])
    assert post(item(bare)).refused == {"derived": 1}


def test_it_strips_its_block_and_keeps_the_rest() -> None:
    block = recalled()
    report = post(item(f"Please go on.\n\n{block}\n\nAnd tell me when it is done."))
    assert report.stored == 1
    row = stored()[0]
    assert row.flags == {"derived_stripped": True}
    assert "Please go on." in row.body and "And tell me when it is done." in row.body
    assert "Postgres" not in row.body and "argus-memory" not in row.body


def test_it_keeps_the_words_of_a_person_who_quotes_one_remembered_line() -> None:
    recalled()
    quoted = EMITTED[0].partition("] ")[2]
    assert post(item(quoted)).stored == 1, "said again, it is news that it still holds"
    own = " ".join(
        f"But word{number} is another matter that we never settled." for number in range(12)
    )
    assert post(item(f"{quoted}\n{own}", session="s2")).stored == 1


def test_it_takes_what_it_told_somebody_else_as_news() -> None:
    block = recalled(owner="bob")
    assert post(item("\n".join(block.splitlines()[2:-1]))).stored == 1


def test_it_answers_a_known_item_even_when_its_words_were_recalled_since() -> None:
    bare = "\n".join(EMITTED)
    first = post(item(bare))
    recalled()
    again = post(item(bare))
    assert (again.duplicates, again.outcomes[0].id) == (1, first.outcomes[0].id)
