"""Capture: every item is stored once, or refused with a trace."""

from __future__ import annotations

import hashlib
import itertools
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory.access import principal
from memory.attribution import Registry
from memory.intake import FIELD_CHARACTERS_MAX, ITEM_BYTES_MAX, Incoming, Invalid, instant, judge
from memory.ledger import emit
from memory.models import CaptureReceipt, Project, RawItem, Session
from memory.stages.capture import REFUSED_CHARACTERS_MAX, SessionEnd
from memory.text.fence import wrap
from tests.memory.posting import NOW, SECRET, SPOKEN, item, post, stored

pytestmark = pytest.mark.django_db


# Identity: a raw item is stored once for each owner, however it comes back.


def test_it_answers_the_first_id_when_an_item_is_posted_again() -> None:
    first, again = post(item()), post(item())
    assert (first.stored, first.duplicates) == (1, 0)
    assert (again.stored, again.duplicates) == (0, 1)
    assert again.outcomes[0].duplicate
    assert again.outcomes[0].id == first.outcomes[0].id == stored()[0].pk


def test_it_knows_an_instant_in_another_zone() -> None:
    post(item())
    berlin = SPOKEN.astimezone(timezone(timedelta(hours=2)))
    assert post(item(original_timestamp=berlin)).duplicates == 1
    assert post(item(original_timestamp=SPOKEN + timedelta(microseconds=1))).stored == 1


def test_it_knows_copied_history_by_its_record_id() -> None:
    first = post(item(record_id="row-1"))
    fork = post(item(record_id="row-1", session="s2", cwd="/elsewhere"))
    assert fork.outcomes[0].id == first.outcomes[0].id
    other = post(item("Something else.", record_id="row-1", source="codex"))
    assert other.stored == 1, "a record id is a name within its source only"


def test_it_knows_copied_history_by_project_instant_role_and_words() -> None:
    first = post(item())
    assert post(item(session="s2")).outcomes[0].id == first.outcomes[0].id
    assert post(item(session="s2", role="assistant")).stored == 1
    assert post(item(session="s2", cwd="/src/other")).stored == 1
    assert post(item(session="s2", body="We keep the queue in Redis.")).stored == 1


def test_it_tells_items_without_an_instant_apart_by_their_session_alone() -> None:
    undated = item(original_timestamp=None)
    assert post(undated).stored == 1
    assert post(undated, now=NOW + timedelta(days=1)).duplicates == 1
    assert post(item(original_timestamp=None, session="s2")).stored == 1


def test_it_keeps_a_transcript_for_each_of_two_owners() -> None:
    mine, theirs = post(item(record_id="row-1")), post(item(record_id="row-1"), owner="bob")
    assert mine.stored == theirs.stored == 1
    assert mine.outcomes[0].id != theirs.outcomes[0].id
    # The one's name begins with the other's.
    assert post(item(record_id="row-1"), owner="bob2").stored == 1


def test_it_stores_one_of_two_twins_in_a_batch() -> None:
    report = post(item(), item(), item("Another."), item(session="s2"))
    assert (report.stored, report.duplicates) == (2, 2)
    assert len({report.outcomes[index].id for index in (0, 1, 3)}) == 1
    assert [one.duplicate for one in report.outcomes] == [False, True, False, True]


def test_it_finds_the_row_again_when_a_secret_is_posted_again() -> None:
    first = post(item(f"the token is {SECRET}, keep it"))
    again = post(item(f"the token is {SECRET}, keep it"))
    masked = post(item(stored()[0].body))
    assert first.outcomes[0].id == again.outcomes[0].id == masked.outcomes[0].id
    row = stored()[0]
    assert SECRET not in row.body and "[redacted:" in row.body
    assert row.sha256 == hashlib.sha256(row.body.encode()).hexdigest()
    assert sum(row.flags["redacted"].values()) == sum(first.redacted.values()) == 1


def test_it_marks_a_near_duplicate_and_stores_it() -> None:
    first = post(item("We keep the job queue in Postgres, not Redis."))
    report = post(
        item("we keep the job queue  in postgres — NOT redis", session="s2"),
        item("WE KEEP the job queue in Postgres, not Redis!", session="s3"),
        item("We keep the job queue in Postgres, not Kafka.", session="s4"),
    )
    assert report.stored == 3
    near = {row.session: row.near_duplicate_of_id for row in stored()}
    origin = first.outcomes[0].id
    assert near == {"s1": None, "s2": origin, "s3": origin, "s4": None}
    other = post(item("We keep the job queue in Postgres, not Redis."), owner="bob")
    assert stored(pk=other.outcomes[0].id)[0].near_duplicate_of_id is None


def test_it_marks_a_near_duplicate_within_one_batch() -> None:
    report = post(
        item("We keep the job queue in Postgres, not Redis."),
        item("we keep the job queue in postgres, not redis", session="s2"),
    )
    assert stored(session="s2")[0].near_duplicate_of_id == report.outcomes[0].id


# Refusals.

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
    receipt = CaptureReceipt.objects.get(pk=report.receipt)
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
    refusal = CaptureReceipt.objects.get().refusals[0]
    assert report.refused == {"poison": 1}
    assert refusal["sha256"] == hashlib.sha256(text.encode()).hexdigest()
    assert len(refusal["excerpt"]) == REFUSED_CHARACTERS_MAX
    assert SECRET not in refusal["excerpt"] and "[redacted:" in refusal["excerpt"]


def test_it_takes_a_secret_out_before_it_cuts_the_excerpt() -> None:
    text = "API Error: 401 " + "x" * (REFUSED_CHARACTERS_MAX - 25) + f" {SECRET}"
    post(item(text, role="assistant"))
    assert "ghp_" not in CaptureReceipt.objects.get().refusals[0]["excerpt"]


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
    assert [one["index"] for one in CaptureReceipt.objects.get().refusals] == list(range(1, 100, 2))


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
    assert [one["reason"] for one in CaptureReceipt.objects.get().refusals] == ["derived"] * 3


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


# Text that Postgres cannot hold, and secrets, wherever they stand.


def test_it_cleans_nul_and_lone_surrogates_at_every_depth_and_in_keys() -> None:
    dirty = "a\x00b\ud83dc"
    deep = {dirty: [{dirty: dirty}, [dirty, 1, None]], "n": float("nan")}
    report = post(
        item(
            f"Say {dirty}", source="api", role=dirty, session=dirty, cwd=f"/src/{dirty}",
            project=dirty, record_id=dirty, metadata=deep, locator=deep,
        ),
        session_end=SessionEnd(dirty, dirty),
        client_range={dirty: 3},
    )  # fmt: skip
    clean = "ab\ufffdc"
    row = stored()[0]
    assert report.stored == 1
    assert (row.body, row.role, row.session, row.record_id) == (f"Say {clean}", clean, clean, clean)
    assert row.metadata == {clean: [{clean: clean}, [clean, 1, None]], "n": None}
    assert row.locator == row.metadata
    assert row.flags["sanitised"] is True
    assert Project.objects.get().name == clean
    assert Session.objects.get(key=clean).ended_reason == clean
    receipt = CaptureReceipt.objects.get()
    assert receipt.session_end == {"session": clean, "reason": clean}
    assert receipt.client_range == {clean: 3}


def test_it_cleans_what_a_refusal_keeps() -> None:
    assert post(Invalid("odd \x00", "\x00\ud800 {"), item("\x00", source="\x00\ud800")).stored == 0
    assert CaptureReceipt.objects.get().refusals[0]["excerpt"] == "\ufffd {"


def test_it_finds_the_row_again_when_dirty_text_is_posted_again() -> None:
    assert post(item("ok \ud83d end \x00")).stored == 1
    assert post(item("ok \ud83d end \x00"), item("ok \ufffd end ")).duplicates == 2


def test_it_keeps_a_secret_out_of_every_column() -> None:
    post(
        item(
            f"body {SECRET}", source=SECRET, role=SECRET, session=SECRET, cwd=f"/src/{SECRET}",
            project=SECRET, record_id=SECRET, metadata={"a": [{SECRET: SECRET}]},
            locator={SECRET: SECRET},
        ),
        item("", source=SECRET),
        item(f"API Error: {SECRET}", role="assistant"),
        Invalid(f"{SECRET} is no kind", SECRET),
        session_end=SessionEnd(SECRET, SECRET),
    )  # fmt: skip
    assert everything().count(SECRET) == 0
    assert everything().count("[redacted:") > 10
    row = stored()[0]
    assert sum(row.flags["redacted"].values()) == 11, "each find is counted, whatever the field"
    assert Session.objects.get().ended_at == NOW, "the end of a session finds its redacted key"


def everything() -> str:
    """All that the tables of this application hold, as text."""
    tables = [name for name in connection.introspection.table_names() if "memory_" in name]
    with connection.cursor() as cursor:
        found = []
        for table in tables:
            cursor.execute(f"SELECT row_to_json(t)::text FROM {table} t")
            found += [row for (row,) in cursor.fetchall()]
    return "\n".join(found)


def test_it_stores_what_it_was_given_to_the_letter() -> None:
    # Composed and decomposed letters, line ends of three systems, odd spaces, odd separators.
    for number, body in enumerate(
        ["e\u0301 \u00e9", "a\r\nb\rc\n", "\u2028x\u2029 \u0085 \x0b\x0c", " x\n"]
    ):
        post(item(body, session=f"letter {number}"))
        assert stored(session=f"letter {number}")[0].body == body


# Time.

EARLY_EAST = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14)))
LATE_WEST = datetime(9999, 12, 31, 23, tzinfo=timezone(-timedelta(hours=12)))


@pytest.mark.parametrize(
    ("given_", "expected", "flag"),
    [
        (None, NOW, ""),
        (SPOKEN, SPOKEN, ""),
        (SPOKEN.replace(tzinfo=None), SPOKEN, "naive"),
        (NOW + timedelta(hours=23), NOW + timedelta(hours=23), ""),
        (NOW + timedelta(hours=25), NOW, "future"),
        (NOW + timedelta(days=3650), NOW, "future"),
        (datetime(9999, 12, 31, 23, 59, tzinfo=UTC), NOW, "future"),
        (LATE_WEST, NOW, "impossible"),
        (datetime(1, 1, 1), NOW, "impossible"),
        (EARLY_EAST, NOW, "impossible"),
        (datetime(1970, 1, 1, tzinfo=UTC), NOW, "impossible"),
    ],
)
def test_it_replaces_a_time_that_cannot_be_true_and_says_so(
    given_: datetime | None, expected: datetime, flag: str
) -> None:
    assert instant(given_, now=NOW) == (expected, flag)
    assert post(item(original_timestamp=given_)).stored == 1
    row = stored()[0]
    assert (row.occurred_at, row.flags.get("clock", "")) == (expected, flag)
    assert row.captured_at == NOW


def test_it_knows_an_item_of_an_impossible_time_again() -> None:
    odd = item(original_timestamp=datetime(9999, 1, 1, tzinfo=UTC))
    assert post(odd).stored == 1
    assert post(odd, now=NOW + timedelta(minutes=7)).duplicates == 1


def test_it_takes_a_naive_time_as_the_same_instant_in_utc() -> None:
    post(item(original_timestamp=SPOKEN.replace(tzinfo=None)))
    assert post(item(), item(session="s2")).duplicates == 2


# Sessions.


def test_it_marks_the_session_of_a_new_turn_as_having_something_to_segment() -> None:
    post(item(), item("Later.", original_timestamp=SPOKEN + timedelta(minutes=1)))
    session = Session.objects.get()
    assert (session.source, session.key, session.pending) == ("claude-code", "s1", True)
    assert session.last_turn_at == SPOKEN + timedelta(minutes=1)
    Session.objects.update(pending=False)
    post(item())
    session.refresh_from_db()
    assert not session.pending, "a duplicate is nothing to segment"
    post(item("Earlier.", original_timestamp=SPOKEN - timedelta(days=1)))
    session.refresh_from_db()
    assert (session.pending, session.last_turn_at) == (True, SPOKEN + timedelta(minutes=1))


def test_it_keeps_the_end_of_a_session_for_segment_and_on_the_receipt() -> None:
    report = post(
        item(), session_end=SessionEnd("s1", "clear"), client_range={"seen": 9, "posted": 1}
    )
    session = Session.objects.get()
    assert (session.ended_at, session.ended_reason, session.pending) == (NOW, "clear", True)
    receipt = CaptureReceipt.objects.get(pk=report.receipt)
    assert receipt.session_end == {"session": "s1", "reason": "clear"}
    assert receipt.client_range == {"seen": 9, "posted": 1}
    post(item(session="s2"), session_end=SessionEnd("s2"), owner="bob")
    assert Session.objects.filter(ended_reason="clear").count() == 1


def test_it_ends_only_the_sessions_of_the_one_who_says_so() -> None:
    post(item())
    post(item(), owner="bob")
    post(session_end=SessionEnd("s1", "quit"), owner="bob")
    ended = Session.objects.exclude(ended_at=None)
    assert [session.owner.name for session in ended] == ["bob"]


def test_it_makes_no_session_of_documents() -> None:
    post(item(kind="document", session=""))
    assert not Session.objects.exists()


# The receipt.


def test_it_leaves_a_receipt_for_an_empty_post() -> None:
    report = post()
    receipt = CaptureReceipt.objects.get()
    assert (report.receipt, receipt.seen, receipt.created_at) == (receipt.pk, 0, NOW)


def test_it_stores_nothing_when_it_only_tries() -> None:
    report = post(item(), item(), item(""), dry_run=True, session_end=SessionEnd("s1"))
    assert (report.stored, report.duplicates, report.refused) == (1, 1, {"empty": 1})
    assert report.receipt is None
    kept = (RawItem.objects.as_pipeline(), CaptureReceipt.objects, Session.objects, Project.objects)
    assert [rows.count() for rows in kept] == [0, 0, 0, 0]


BODIES = st.one_of(
    st.sampled_from(
        ["", "We keep it.", "we keep it", "API Error: 529 overloaded_error", "a\x00", "\ud83d"]
    ),
    st.text(max_size=30),
)
ITEMS = st.builds(
    item,
    BODIES,
    role=st.sampled_from(["user", "assistant"]),
    session=st.sampled_from(["s1", "s2", ""]),
    record_id=st.sampled_from(["", "", "r1", "r2"]),
    cwd=st.sampled_from(["/src/a", ""]),
    original_timestamp=st.sampled_from([None, SPOKEN, SPOKEN + timedelta(seconds=1)]),
    kind=st.sampled_from(["turn", "document"]),
    metadata=st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=2),
)
OWNERS = itertools.count()
POSTS = st.lists(
    st.one_of(ITEMS, st.builds(Invalid, st.just("odd"), st.text(max_size=9))), max_size=8
)


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(batch=POSTS)
def test_it_accounts_for_every_item_and_stores_nothing_twice(batch: list[Any]) -> None:
    # All examples share one transaction: each has an owner of its own.
    owner = f"owner {next(OWNERS)}"
    tried = post(*batch, owner=owner, dry_run=True)
    first, second = post(*batch, owner=owner), post(*batch, owner=owner)
    for report in (first, second):
        refused = sum(report.refused.values())
        assert report.stored + report.duplicates + refused == len(batch) == len(report.outcomes)
        receipt = CaptureReceipt.objects.get(pk=report.receipt)
        assert (receipt.seen, receipt.stored) == (len(batch), report.stored)
        assert (receipt.duplicates, receipt.refused) == (report.duplicates, report.refused)
        assert len(receipt.refusals) == refused
    assert (tried.stored, tried.duplicates) == (first.stored, first.duplicates)
    assert tried.refused == first.refused == second.refused
    assert second.stored == 0
    assert [one.id for one in first.outcomes] == [one.id for one in second.outcomes]
    mine = RawItem.objects.as_pipeline().filter(owner=principal(owner))
    assert mine.count() == first.stored
    assert {one.id for one in first.outcomes} - {None} == set(mine.values_list("pk", flat=True))


@settings(max_examples=200, deadline=None)
@given(body=st.text(min_size=1, max_size=200))
def test_it_keeps_any_text_as_it_was(body: str) -> None:
    judged = judge(0, item(body, kind="document"), registry=Registry(), now=NOW)
    if isinstance(judged, Incoming) or not hasattr(judged, "body"):
        assert not body.replace("\x00", "").strip()
        return
    if "redacted" not in judged.flags:
        assert judged.body == body.replace("\x00", "")
