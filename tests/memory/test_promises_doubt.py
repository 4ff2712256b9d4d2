"""How: sentences that sound like a proof, a yes, a claim or a request and are none, and their
honest twins, through the pure cues and the pure matching."""

from __future__ import annotations

import pytest

from memory.tracking.cues import about, read
from memory.tracking.match import akin

PROOFS = {"test_passed", "commit"}
DID = {*PROOFS, "confirmed", "claim_done"}


def kinds(body: str, role: str = "assistant") -> set[str]:
    return {cue.kind for cue in read(body, role).cues}


@pytest.mark.parametrize("role", ["assistant", "user"])
@pytest.mark.parametrize(
    "body",
    [
        "Expected output once done: 5 passed in 0.2s",
        "If you see `5 passed in 0.2s`, we are done.",
        "If you see\n`5 passed in 0.2s`, we are done.",
        "1 passed in 0.1s would be nice",
        "5 passed in 0.3s is what it should print",
        "I expect 5 passed in 0.3s.",
        "5 passed in 0.3s? I doubt it.",
        "Bob says 5 passed in 0.3s.",
        "The run never came to 5 passed in 0.3s.",
        "Yesterday it was 5 passed in 0.3s.",
        "It was 5 passed in 0.3s before, but now it hangs.",
        "It should print:\n\n```\n===== 5 passed in 0.3s =====\n```",
        "The expected output:\n===== 5 passed in 0.3s =====",
        "For example:\n\n```\n$ pytest\ncollected 5 items\n5 passed in 0.3s\n```",
        "The goal:\n\n```\ntest result: ok. 14 passed; 0 failed; 0 ignored\n```",
        "Once it works you would see Tests: 4 passed, 4 total.",
        "2 of 3 files would give 12 examples, 0 failures",
        "So sollte es aussehen:\n```\n12 passed in 3.2s\n```",
    ],
)
def test_it_takes_a_hoped_for_result_for_no_proof(body: str, role: str) -> None:
    assert not kinds(body, role) & PROOFS


@pytest.mark.parametrize(
    "body",
    [
        "5 passed in 0.3s",
        "I ran the suite: 5 passed in 0.3s.",
        "All green now, `5 passed in 0.3s`.",
        "\x1b[32m===== \x1b[32m\x1b[1m5 passed\x1b[0m, 1 skipped in 3.21s =====",
        "===== 5 passed, 2 warnings in 63.21s (0:01:03) =====",
        "$ pytest -q\n.....   [100%]\n5 passed in 0.3s",
        "Here is the output:\n\n```\n$ pytest\ncollected 5 items\n5 passed in 0.3s\n```\n",
        "Without it the parser would crash.\n\nNow:\n\n```\n5 passed in 0.3s\n```",
        "It should print more.\n\nResult: 5 passed in 0.3s",
    ],
)
def test_it_reads_what_a_runner_printed(body: str) -> None:
    found = [cue for cue in read(body, "assistant").cues if cue.kind == "test_passed"]
    if "\x1b" not in body:
        assert len(found) == 1
        assert body[found[0].start : found[0].end] == found[0].quote


def test_a_failed_half_of_a_hoped_for_result_is_no_proof_of_the_other() -> None:
    body = "You would see 2 failed, 10 passed in 3.21s."
    assert not kinds(body) & {"test_passed", "test_failed"}


@pytest.mark.parametrize(
    "body",
    [
        "The crash began when Bob merged the dashboard page in commit 1a2b3c4, I have not started.",
        "I have committed nothing as deadbee1",
        "Fixed in 1a2b3c4 broke it.",
        "Nobody committed it as 1a2b3c4.",
        "Bob merged the dashboard page in commit 1a2b3c4.",
        "The bug, added in 1a2b3c4, is back.",
        "Was it fixed in 1a2b3c4?",
        "Fixed in 1a2b3c4?",
        "Fixed the parser in 1a2b3c4, reverted in 2b3c4d5.",
        "Merged in 1a2b3c4, which caused the crash.",
        "Added in 1a2b3c4 by Bob.",
        "The ticket says it is fixed in 1a2b3c4.",
        "I would have pushed it as 1a2b3c4.",
        "The log should read:\n\n```\n[main 1a2b3c4] Add retries\n```",
        "Added in commit 1a2b3c4 last year.",
    ],
)
def test_it_takes_a_commit_somebody_talks_about_for_no_proof(body: str) -> None:
    assert not kinds(body) & PROOFS
    assert not kinds(body, "user") & PROOFS


@pytest.mark.parametrize(
    "body",
    [
        "Fixed the crash on startup in 1a2b3c4.",
        "I fixed the parser and pushed it as `1a2b3c4`.",
        "It was red. I've committed the parser as 1a2b3c4. It would be good to check the docs.",
        "- Added retries to the uploader in commit 1a2b3c4",
        "The parser has been merged in 1a2b3c4.",
        "```\n[main 1a2b3c4] Handle when the bucket would fail\n 1 file changed\n```",
    ],
)
def test_it_reads_a_commit_that_was_made(body: str) -> None:
    (found,) = [cue for cue in read(body, "assistant").cues if cue.kind == "commit"]
    assert found.commit == "1a2b3c4"
    assert body[found.start : found.end] == found.quote


@pytest.mark.parametrize(
    "body",
    [
        "It works not at all.",
        "That fixed nothing.",
        "I doubt it works now",
        "Bob says it works now",
        "it works exactly as badly as before",
        "confirmed the bug",
        "Can confirm the crash.",
        "Fixed in 1a2b3c4 broke it.",
        "That fixed the wrong line.",
        "It works, not.",
        "It works nowhere.",
        "It hardly works now.",
        "Works now and then crashes.",
        "It works until I log in.",
        "Supposedly it works now.",
        "Maybe it works now.",
        "Nobody says it works great.",
        "It works worse.",
        "That solved it for nobody.",
        "Looks good on paper.",
        "Es hat nie funktioniert.",
    ],
)
def test_it_takes_no_doubt_and_no_irony_for_a_yes(body: str) -> None:
    assert "confirmed" not in kinds(body, "user")


@pytest.mark.parametrize(
    "body",
    [
        "It works now!",
        "That fixed it, thanks.",
        "Confirmed.",
        "Confirmed, it works.",
        "It works, no more errors.",
        "Works great for me, thank you",
        "Works as expected.",
        "That fixed my problem.",
        "Yes, it works now and the page is fast.",
        "LGTM :)",
        "looks good to me",
        "Es funktioniert jetzt.",
        "all good now",
    ],
)
def test_it_still_reads_an_honest_yes(body: str) -> None:
    assert kinds(body, "user") & {"confirmed"} or body == "all good now"


@pytest.mark.parametrize(
    "body",
    [
        "Fixed nothing in the parser.",
        "I have committed nothing as deadbee1",
        "I've fixed absolutely nothing.",
        "Added no tests to the parser.",
        "I fixed the parser, not.",
        "I fixed the parser to no avail.",
        "Bob says the parser is fixed.",
        "Fixed in 1a2b3c4 broke it.",
        "Done: nothing.",
    ],
)
def test_it_takes_nothing_done_for_no_claim(body: str) -> None:
    assert not kinds(body) & DID


@pytest.mark.parametrize(
    "body",
    [
        "Fixed the parser that broke on empty lines.",
        "Removed no longer used imports.",
        "Added a check so that nothing is lost.",
        "As expected, all tests pass.",
    ],
)
def test_it_still_reads_an_honest_claim(body: str) -> None:
    assert kinds(body) == {"claim_done"}


@pytest.mark.parametrize(
    "body",
    [
        "I asked Bob to please fix the parser",
        "He said: please fix the parser.",
        "He said, please fix the parser.",
        "Bob wrote:\nplease fix the parser",
        "The ticket says please fix the parser.",
        "Anna told me to please fix the parser.",
        "Fix nothing.",
        "Please change nothing in the parser.",
        "Please add no tests to the parser.",
    ],
)
def test_it_takes_what_others_were_asked_for_no_request(body: str) -> None:
    assert "request" not in kinds(body, "user")


@pytest.mark.parametrize(
    "body",
    [
        "The error says file not found, please fix the parser.",
        "As I said, please fix the parser.",
        "I asked you to please fix the parser.",
        "Add no-cache headers to the parser.",
        "Handle None in the parser.",
    ],
)
def test_it_still_reads_an_honest_request(body: str) -> None:
    assert kinds(body, "user") == {"request"}


@pytest.mark.parametrize("body", ["I'll change nothing in the parser.", "I will add no tests."])
def test_it_takes_nothing_for_no_promise(body: str) -> None:
    assert "promise" not in kinds(body)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("please fix issue 12 of the importer", "please fix issue 13 of the importer"),
        ("please fix #12 of the importer", "please fix #13 of the importer"),
        ("please build widget number 7", "please build widget number 8"),
        ("please close PROJ-12 of the importer", "please close PROJ-13 of the importer"),
        ("please close PROJ-12 of the importer", "please close API-7 of the importer"),
        ("please move the importer to v2", "please move the importer to v3"),
        ("please fix the importer in row1.py", "please fix the importer in row2.py"),
        ("please revert 1a2b3c4 of the importer", "please revert 2b3c4d5 of the importer"),
        ("set the importer's port to 5432", "set the importer's port to 5433"),
    ],
)
def test_a_number_or_an_id_makes_another_task(one: str, other: str) -> None:
    assert not akin(about(other), about(one))
    assert akin(about(one), about(one))
    assert akin(about(f"{one} and {other}"), about(one)), "what names both is about either"


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("please fix issue 12 of the importer", "Fixed the importer issue."),
        ("please fix issue 12 of the importer", "Fixed the importer: 3 files changed."),
        ("please fix issue 12 of the importer", "Closed issue #12 of the importer."),
        ("add 3 retries to the uploader client", "Added 5 retries to the uploader client."),
        ("fix the importer's parser in row1.py", "Fixed the importer's parser, issue 7."),
    ],
)
def test_a_count_makes_no_other_task(task: str, said: str) -> None:
    assert akin(about(said), about(task))


def test_a_bare_number_alone_is_no_task() -> None:
    assert not kinds("Fix 2.", "user")
    assert kinds("Please fix issue 12.", "user") == {"request"}
