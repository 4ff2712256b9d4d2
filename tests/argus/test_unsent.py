"""What hooks have not sent yet goes with a purge as it would have, had it been sent."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from argus import unsent
from argus.hook import home as hooks
from argus.hook import sessions, spool
from argus.hook.outbox import body
from memory.access import create_key, principal
from memory.text.identity import sha256
from memory.text.passages import Passages
from tests import factories
from tests.argus.purging import run
from tests.argus.test_purge import CANARY, SAID, holding
from tests.llm.conftest import configure, server
from tests.web import user

__all__ = ["configure", "server"]

OTHER = "The export runs at night, and nobody needs to be awake for it at all."
QUOTED = f"He said: {SAID[0]} And I said that this is wrong, because two stores are better."


@pytest.fixture
def house(
    clone_db: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, configure: Callable[..., None]
) -> Path:
    """The home of Alice and of her hooks."""
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / ".argus"
    folder.mkdir()
    configure(model_url=None, model=None, home=folder, principal="alice")
    return folder


def waits(*said: str, session: str = "s7", name: str = "claude.s7") -> str:
    """A post of the spool, as hooks keep it; its name."""
    items = [json.dumps({"role": "user", "session": session, "body": one}) for one in said]
    about = {"key": name, "client": "claude", "name": "s7", "start": 0, "end": 9, "mark": "m"}
    envelope = {"session_end": {"session": session, "reason": "clear"}}
    assert spool.add(about, body(items, envelope), only_copy=False)
    return spool.waiting()[-1]


def bodies(name: str) -> list[str]:
    found = spool.read(name)
    assert found is not None and found[0]["end"] == 9
    said = json.loads(found[1])
    assert said["session_end"]["reason"] == "clear", "what else it says stays"
    return [item["body"] for item in said["items"]]


def purge(*words: str) -> tuple[int, dict[str, Any]]:
    return run(*words, "--yes", "--reason", "asked")


def test_what_is_the_same_goes_and_what_quotes_it_is_told_with_its_file(house: Path) -> None:
    alice = principal("alice")
    item = factories.turns(alice, SAID[:1])[0]
    whole, mixed = waits(SAID[0]), waits(OTHER, f"  {SAID[0].upper()}\n", QUOTED)
    aside = hooks.place("hook", "aside", "1.post")
    hooks.private("hook", "aside")
    hooks.write(aside, body([json.dumps({"body": SAID[0], "session": "s1"})], {}))
    session = sessions.Session("claude", "s7")
    session.insured = [
        {"print": "a", "at": 1.0, "item": {"body": SAID[0]}, "looked": False},
        {"print": "b", "at": 1.0, "item": {"body": OTHER}, "looked": False},
    ]
    session.offset = session.spooled = 5
    sessions.save(session)
    code, told = purge("--raw", str(item.pk))
    assert told["rows"]["posts of hooks"] == 4
    # Without the post the hook would read its range of the transcript again.
    assert (bodies(whole), bodies(mixed)) == ([], [OTHER, QUOTED])
    assert not os.path.exists(aside)
    left = sessions.load("claude", "s7")
    assert ([one["print"] for one in left.insured], left.offset) == (["b"], 5)
    assert (code, told["paths"]) == (3, [str(house / "hook" / "spool" / mixed)])
    assert any("delete each" in one for one in told["to_do"])
    spool.remove(mixed)
    assert holding(house, CANARY) == []
    code, told = run("--finish", str(told["purge"]))
    assert code == 0 and (told.get("finished") or [told])[0]["proved"]


def test_what_was_asked_for_by_its_session_or_a_pattern_goes_unsent_as_well(house: Path) -> None:
    alice = principal("alice")
    factories.turns(alice, SAID[:2])
    mine, other = waits(OTHER, session="s1"), waits(OTHER, f"{OTHER} My key is xk-4711.")
    code, told = purge("--session", "s1")
    assert (code, told["rows"]["posts of hooks"]) == (0, 1), told
    assert (bodies(mine), len(bodies(other))) == ([], 2)
    factories.turns(alice, ["The key was xk-4712 once, and is not any more."], session="s2")
    code, told = purge("--matching", r"xk-\d+")
    assert (code, bodies(other)) == (0, [OTHER])


def test_a_purge_that_was_cut_off_is_finished_by_the_hashes_of_what_went(house: Path) -> None:
    alice = principal("alice")
    item = factories.turns(alice, ["Go on then."])[0]
    code, told = purge("--raw", str(item.pk))
    again = waits("Go on then.", OTHER)
    run("--finish", str(told["purge"]))
    assert bodies(again) == [OTHER] and code in (0, 3)


def test_it_leaves_what_is_somebody_elses_and_what_it_cannot_have_or_read(
    house: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unsent, "LOCK_SECONDS", 0.1)
    alice, bob = principal("alice"), principal("bob")
    hashes = [sha256(SAID[0])]
    name = waits(SAID[0])
    path = house / "hook" / "spool" / name
    (path.parent / "0-1.x.post").write_text("no json\n[")
    (path.parent / "0-2.x.post").write_text('{"key": "x"}\n{"items": 7}')
    (house / "hook" / "sessions" / "claude").mkdir(parents=True)
    (house / "hook" / "sessions" / "claude" / "x.json").write_text('{"insured": [3]}')

    def forget(owners: list[int]) -> int:
        return unsent.forget(house, Passages(), hashes, owners=owners)

    held = sessions.take("flush")
    assert held is not None and forget(owners=[alice.pk]) == 0, "a hook sends it"
    sessions.leave(held)
    key, _ = create_key(owner="bob", scopes=["capture"])
    hooks.write_env({"ARGUS_KEY": key})
    assert forget(owners=[alice.pk]) == 0, "it is Bob's"
    assert bodies(name) == [SAID[0]]
    assert forget(owners=[bob.pk]) == 1
    assert (path.parent / "0-1.x.post").read_text() == "no json\n["
    assert unsent.forget(house / "nowhere", Passages(), hashes, owners=[alice.pk]) == 0


def test_all_of_a_person_is_what_their_hooks_have_not_sent_too(house: Path) -> None:
    alice = principal("alice")
    factories.turns(alice, SAID[:1])
    name = waits(OTHER)
    assert purge("--owner", "alice")[0] == 0
    assert bodies(name) == [OTHER], "whose hooks these are nobody knows"
    factories.turns(alice, SAID[1:2])
    key, _ = create_key(owner="alice", scopes=["capture"])
    hooks.write_env({"ARGUS_KEY": key})
    assert purge("--owner", "alice")[1]["rows"]["posts of hooks"] == 1
    assert bodies(name) == []


def test_finishing_takes_no_other_posts_than_the_purge_itself(house: Path) -> None:
    """Whoever purges what is another's may say the same."""
    alice, bob = principal("alice"), principal("bob")
    user("admin", superuser=True, who=alice)
    (item,) = factories.turns(bob, SAID[:1])
    key, _ = create_key(owner="alice", scopes=["capture"])
    hooks.write_env({"ARGUS_KEY": key})
    name = waits(SAID[0])
    _, told = purge("--raw", str(item.pk), "--all-owners")
    assert bodies(name) == [SAID[0]]
    run("--finish", str(told["purge"]), "--all-owners")
    assert bodies(name) == [SAID[0]]
    # What would have gone, and came too late for it, goes.
    key, _ = create_key(owner="bob", scopes=["capture"])
    hooks.write_env({"ARGUS_KEY": key})
    run("--finish", str(told["purge"]), "--all-owners")
    assert bodies(name) == []
