"""POST /recall/skipped: what a client gave up, told afterwards, each once."""

from __future__ import annotations

import json
import uuid
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.test import Client
from django.utils import timezone

from memory.errors import RefusedError
from memory.ledger import shown_in
from memory.models import Injection, Principal, Project
from recall.feedback import give_feedback
from recall.impact import used_rate, waiting
from recall.labels import from_ledger, useful
from recall.opened import read_note
from recall.skipped import SKIPPED_MAX, WORD_CHARACTERS_MAX
from tests.memory.door import problem
from tests.memory.posting import SECRET
from tests.recall.making import NOW, client, note, people, turn

pytestmark = pytest.mark.django_db

PORT = "The staging database listens on port 5433."


def one(**changed: Any) -> dict[str, Any]:
    """A recall given up a minute ago, as a client tells of it."""
    given = {
        "id": str(uuid.uuid4()),
        "mode": "prompt",
        "at": (timezone.now() - timedelta(minutes=1)).isoformat(),
        "session": "s1",
        "cwd": "/src/harbor",
        "client": "claude",
        "machine": "desk",
        "reason": "timeout",
        "milliseconds": 1_500,
    }
    return given | changed


def tell(who: Client, *skipped: Any) -> Any:
    data = json.dumps({"skipped": list(skipped)})
    return who.post("/recall/skipped", data, content_type="application/json")


def counts(who: Client, *skipped: Any) -> tuple[int, int]:
    answer = tell(who, *skipped)
    assert answer.status_code == 200, answer.content
    got = answer.json()
    assert set(got) == {"recorded", "known"}
    return got["recorded"], got["known"]


def rows() -> list[Any]:
    return list(Injection.objects.as_pipeline().order_by("pk"))


def test_it_notes_what_a_client_gave_up_with_its_own_time_and_place() -> None:
    alice = people().alice
    harbor = Project.objects.create(name="harbor")
    told = one()
    assert counts(client(alice), told) == (1, 0)
    (row,) = rows()
    assert (row.owner, row.mode, row.outcome, row.project) == (alice, "prompt", "skipped", harbor)
    assert (row.session, row.cwd, row.query) == ("s1", "/src/harbor", "")
    assert row.created_at == datetime.fromisoformat(told["at"])
    assert row.timings == {"total": 1_500}
    assert row.options == {
        "id": told["id"], "client": "claude", "machine": "desk", "reason": "timeout",
    }  # fmt: skip
    assert not (row.note_ids or row.turn_ids or row.hits or row.characters)


def test_it_notes_each_once_however_often_it_is_told() -> None:
    who = client(people().alice)
    first, second = one(), one(mode="context")
    assert counts(who, first, first) == (1, 1)
    assert counts(who, first, second) == (1, 1)
    assert counts(who, second, first) == (0, 2)
    assert [row.mode for row in rows()] == ["prompt", "context"]


def test_two_people_may_name_theirs_alike() -> None:
    cast, told = people(), one()
    assert counts(client(cast.alice), told) == counts(client(cast.bob), told) == (1, 0)
    assert [row.owner for row in rows()] == [cast.alice, cast.bob]


def test_the_database_itself_holds_each_to_one_row() -> None:
    alice = people().alice
    made = {"owner": alice, "mode": "prompt", "options": {"id": "1"}}
    Injection.objects.create(**made, outcome="skipped")
    Injection.objects.create(**made, outcome="injected")
    with pytest.raises(IntegrityError), transaction.atomic():
        Injection.objects.create(**made, outcome="skipped")


@pytest.mark.parametrize(
    ("at", "clock"),
    [("2999-01-01T00:00:00Z", "future"), ("1969-01-01T00:00:00Z", "impossible"), (None, None)],
)
def test_it_takes_its_own_time_for_one_that_cannot_be(at: str | None, clock: str | None) -> None:
    before = timezone.now()
    assert counts(client(people().alice), one(at=at)) == (1, 0)
    (row,) = rows()
    assert before <= row.created_at <= timezone.now()
    assert row.options.get("clock") == clock


def test_it_keeps_no_prompt_no_secret_and_nothing_private() -> None:
    told = one(
        query="what I asked", reason=f"401 for {SECRET}\x00", cwd=f"/src/{SECRET}",
        client="<private>mine</private>", machine="m" * 10_000,
    )  # fmt: skip
    assert counts(client(people().alice), told) == (1, 0)
    (row,) = rows()
    kept = json.dumps(row.options) + row.cwd + row.query
    assert SECRET not in kept and "mine" not in kept and "asked" not in kept
    assert len(row.options["machine"]) == WORD_CHARACTERS_MAX


@pytest.mark.parametrize(
    ("wrong", "pointer"),
    [
        ({"id": "seven"}, "/skipped/0/id"),
        ({"mode": "query"}, "/skipped/0/mode"),
        ({"at": "yesterday"}, "/skipped/0/at"),
        ({"milliseconds": -1}, "/skipped/0/milliseconds"),
        ({"session": "s" * 513}, "/skipped/0/session"),
    ],
)
def test_it_says_what_is_wrong(wrong: dict[str, Any], pointer: str) -> None:
    told = problem(tell(client(people().alice), one(**wrong)), 422, "invalid")
    assert [error["pointer"] for error in told["errors"]] == [pointer]
    assert not rows()


def test_it_takes_so_many_at_a_time() -> None:
    who = client(people().alice)
    problem(tell(who, *(one() for _ in range(SKIPPED_MAX + 1))), 422, "invalid")
    assert counts(who, *(one() for _ in range(SKIPPED_MAX))) == (SKIPPED_MAX, 0)
    assert counts(who) == (0, 0)


def test_it_asks_for_a_key_that_may_recall() -> None:
    problem(tell(Client(), one()), 401, "not_authenticated")
    problem(tell(client(people().alice, "capture"), one()), 403, "permission_denied")


def test_nothing_that_counts_what_was_shown_counts_what_was_not() -> None:
    """Impact, labels, feedback and confidence each read the ledger; a skipped row is none."""
    alice: Principal = people().alice
    known = note(alice, PORT, project="harbor")
    Project.objects.create(name="quay")
    turn(alice, "An answer.", role="assistant", occurred_at=timezone.now())
    assert counts(client(alice), one(cwd="/src/quay")) == (1, 0)
    (row,) = rows()
    soon = timezone.now() + timedelta(hours=3)
    left = waiting(soon)
    assert (left.answered, left.without_reply, left.unsampled) == ([], 0, 0)
    assert used_rate(NOW, principal=alice).checked == 0
    assert not useful(alice) and not from_ledger(alice)
    assert shown_in([known.pk], owner=alice, sessions=["s1"]) == set()
    with pytest.raises(RefusedError, match="nothing to do with"):
        give_feedback(known.pk, "useful", principal=alice, now=NOW, injection=row.pk)
    # Where a session was last told something is not where it was told nothing.
    give_feedback(known.pk, "never", principal=alice, now=NOW, project="quay")
    assert read_note(known.pk, principal=alice, session="s1", now=NOW)["id"] == str(known.pk)
