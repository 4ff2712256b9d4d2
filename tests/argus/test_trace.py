"""The tree of a note or a raw item, both ways: bounded, and nothing that the asker may not see."""

from __future__ import annotations

import json
import uuid

import pytest
from django.core.management import CommandError, call_command

from argus.trace import Branch, lines, trace
from exporter.models import ExportedFile
from memory import trace as ground
from memory import verdicts
from memory.errors import NotFound, RefusedError
from memory.models import Evidence, Injection, Note, Principal, StageRun, TaskItem
from memory.text.identity import sha256
from tests.factories import T0, at, note, three, turns, verdict

pytestmark = pytest.mark.django_db


def told(tree: Branch, how: str) -> list[Branch]:
    return [one for one in tree.branches if one.how.startswith(how)]


def kinds(tree: Branch) -> list[tuple[str, str]]:
    return [(one.how, one.kind) for one in tree.branches]


@pytest.fixture
def alice() -> Principal:
    return three()[0]


@pytest.fixture
def story(alice: Principal) -> tuple[Note, Note]:
    """A note that replaced another one, was recalled twice, lies in the vault, and had a child."""
    old = note(alice, "The staging port is 5432 for everybody.")
    run = StageRun.objects.create(stage="distill", status="done")
    new = note(alice, "The staging port is 5433 for everybody.", when=at(days=1), session="s9",
               run=run, model_real="extractive")  # fmt: skip
    verdicts.apply(verdict(new, old, status="applied"), now=at(days=2))
    for session in ("one", "two"):
        Injection.objects.create(
            owner=alice, mode="prompt", outcome="injected", session=session, query="port?",
            note_ids=[new.pk],
        )  # fmt: skip
    child = note(alice, "Ports change often in this house.", level="L1")
    Evidence.objects.create(note=child, parent=new, quote="", sha256="")
    export = StageRun.objects.create(stage="export", status="done")
    for action in ("written", "written"):
        ExportedFile.objects.create(
            run=export, owner=alice, note=new, kind="note", key=str(new.pk), path="shop/port.md",
            action=action, sha256="0", size=1,
        )  # fmt: skip
    return old, new


def test_it_leads_from_a_note_back_to_who_said_it_where(
    alice: Principal, story: tuple[Note, Note]
) -> None:
    old, new = story
    tree = trace(str(new.pk), by=alice)
    (source,) = told(tree, "stands on")
    assert source.kind == "raw item" and source.detail["quote"] == new.content
    item = Evidence.objects.get(note=new).raw_item
    assert item is not None and source.id == str(item.pk)
    assert [(one.kind, one.id) for one in source.branches][0] == ("session", "s9")
    (made,) = told(tree, "made by")
    assert (made.kind, made.told) == ("run", "extractive")
    (judged,) = told(tree, "judged")
    assert judged.told == "supersede (applied): it stays"
    assert judged.branches[0].id == str(old.pk) and "[superseded" in judged.branches[0].told
    # What went tells so itself.
    assert told(trace(str(old.pk), by=alice), "judged")[0].told.endswith("it goes")


def test_it_leads_forward_to_everything_that_a_raw_item_influenced(
    alice: Principal, story: tuple[Note, Note]
) -> None:
    old, new = story
    item = Evidence.objects.get(note=new).raw_item
    assert item is not None
    TaskItem.objects.create(
        owner=alice, opening="promise", title="tell the team", raw_item=item, start=0, end=5,
        quote=item.body[:5], sha256=sha256(item.body[:5]), opened_at=T0,
    )  # fmt: skip
    Injection.objects.create(owner=alice, mode="query", outcome="answered", turn_ids=[item.pk])
    tree = trace(str(item.pk), by=alice, forward=True)
    assert [how for how, _ in kinds(tree)] == ["gave", "opened", "put before an agent in"]
    (gave,) = told(tree, "gave")
    assert gave.id == str(new.pk)
    assert kinds(gave) == [
        ("retired", "note"), ("made into", "note"), ("put before an agent in", "injection"),
        ("put before an agent in", "injection"), ("told to", "session"), ("told to", "session"),
        ("lies in", "file"),
    ]  # fmt: skip
    assert told(gave, "retired")[0].id == str(old.pk)
    assert told(gave, "lies in")[0].id == "shop/port.md"
    assert {one.id for one in told(gave, "told to")} == {"one", "two"}


def test_it_tells_strangers_nothing_and_others_only_how_much(
    alice: Principal, story: tuple[Note, Note]
) -> None:
    _, bob, charlie = three()
    _, new = story
    for reference in (str(new.pk), str(uuid.uuid4()), "4711",
                      str(Evidence.objects.get(note=new).raw_item_id)):  # fmt: skip
        for forward in (False, True):
            with pytest.raises(NotFound):
                trace(reference, by=charlie, forward=forward)
    # Bob may see the note, and not what it stands on, nor what was told to Alice.
    shared = note(alice, "The shared port is 5432 for us all.", visibility="team")
    Injection.objects.create(owner=alice, mode="prompt", outcome="injected", note_ids=[shared.pk])
    back, forth = trace(str(shared.pk), by=bob), trace(str(shared.pk), by=bob, forward=True)
    assert [(one.kind, one.told) for one in told(back, "stands on")] == [("more", "1 of others")]
    assert forth.branches == ()
    assert "Noted in passing" not in "\n".join(lines(back))


def test_it_is_bounded_and_says_what_it_left_out(
    alice: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ground, "ROWS_MAX", 2)
    words = " ".join(f"The port number {n} is open for all." for n in range(5))
    (item,) = turns(alice, [words], session="many")
    for n in range(5):
        note(alice, f"The port number {n} is open for all.", evidence=item)
    tree = trace(str(item.pk), by=alice, forward=True)
    assert [one.kind for one in told(tree, "gave")] == ["note", "note", "more"]
    assert told(tree, "gave")[-1].told == "3 more"
    # Notes that are made of each other in a ring end, too.
    one, two = (note(alice, f"Ring number {n} of the whole chain.") for n in range(2))
    Evidence.objects.create(note=one, parent=two, quote="", sha256="")
    Evidence.objects.create(note=two, parent=one, quote="", sha256="")
    assert len(list(lines(trace(str(one.pk), by=alice)))) < 20


def test_it_is_a_tree_on_a_terminal_and_an_object_for_programs(
    alice: Principal,
    story: tuple[Note, Note],
    capsys: pytest.CaptureFixture[str],
    settings,
) -> None:
    settings.ARGUS = settings.ARGUS.model_copy(update={"principal": "alice"})
    _, new = story
    call_command("trace", str(new.pk))
    printed = capsys.readouterr().out
    assert printed.startswith(f"note {new.pk}  The staging port is 5433")
    assert "├─ stands on raw item" in printed and "│  └─ captured" in printed
    call_command("trace", str(new.pk), "--forward", "--json")
    tree = json.loads(capsys.readouterr().out)
    assert tree["kind"] == "note" and {one["how"] for one in tree["branches"]} >= {"lies in"}
    for wrong, code in (("no-such", 2), (str(uuid.uuid4()), 2)):
        with pytest.raises(CommandError) as error:
            call_command("trace", wrong)
        assert error.value.returncode == code
    with pytest.raises(RefusedError):
        trace("", by=alice)
