"""What was taken away since a backup was made stays away, and what came back is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from django.contrib.auth.models import Group as AuthGroup
from django.contrib.auth.models import Permission, User
from django.utils import timezone

from argus.backups import backup
from argus.backups.restore import restore
from argus.backups.told import RestoreReport, lines
from memory import people, proof, roles
from memory import purge as record
from memory.access import principal
from memory.models import Act, Principal, PurgeLedger, PurgeProof, RawItem
from memory.selection import Selection
from tests import factories
from tests.argus.purging import run
from tests.memory.conftest import configure, local, server

__all__ = ["configure", "local", "server"]

GO_ON = "Please go on with the plan as we said this morning, thanks a lot for it."
KEPT = "We decided to keep the zanzibar ledger in Postgres because one store is enough for us."


@pytest.fixture(autouse=True)
def _quick(local: Callable[..., None], configure: Callable[..., None], tmp_path: Path) -> None:
    """Vectors made of words: nothing here is about meaning."""
    home = tmp_path / "home"
    home.mkdir()
    configure(model_url=None, model=None, vault=None, principal="alice", home=home)


@pytest.fixture
def path(clone_db: str, tmp_path: Path) -> Path:
    return tmp_path / "a.backup"


def back_up(path: Path) -> None:
    backup.back_up(path, by=principal("alice"), now=timezone.now())


def come_back(path: Path) -> RestoreReport:
    return restore(path, now=timezone.now(), force=True)


def purge(session: str, by: Principal) -> int:
    """Number of a purge that was killed before anybody looked for its words."""
    what = record.plan(Selection(session=session), by=by)
    return record.purge(what, by=by, reason="asked\nto \x1b[31m", now=timezone.now()).ledger


def test_it_names_what_came_back_of_a_purge_and_nothing_that_stayed(path: Path) -> None:
    """What the same person says twice, and what others say, no purge removed."""
    alice, bob = principal("alice"), principal("bob")
    gone = factories.turns(alice, [GO_ON, KEPT], session="a")
    twice = factories.turns(alice, [GO_ON], session="b", start=factories.at(hours=1))
    others = factories.turns(bob, [GO_ON, KEPT], session="c")
    back_up(path)
    number = purge("a", alice)
    ids = tuple(one.pk for one in gone)
    report = come_back(path)
    assert [(one.number, one.back) for one in report.purged_since] == [(number, ids)]
    assert f"back now, purge --raw {ids[0]} {ids[1]} (--all-owners" in lines(report)
    assert "(asked to \u241b[31m)" in lines(report)
    told = Act.objects.get(verb="restore").detail["purged_since"]
    assert told == [{"number": number, "back": [*ids]}]
    row = PurgeProof.objects.get(ledger=number)
    assert back_of(proof.prove_again_all([row])[row.pk].wrong) == [tuple(map(str, ids))]
    assert RawItem.objects.as_pipeline().count() == len([*gone, *twice, *others]) == 5


def back_of(elsewhere: tuple[proof.Elsewhere, ...]) -> list[tuple[str, ...]]:
    return [one.ids for one in elsewhere if one.column == proof.BACK]


def test_a_purge_that_was_killed_before_its_look_is_not_finished_while_it_is_back(
    path: Path,
) -> None:
    alice = principal("alice")
    gone = factories.turns(alice, [GO_ON, KEPT], session="a")
    back_up(path)
    number = purge("a", alice)
    come_back(path)
    ids = [str(one.pk) for one in gone]
    for _ in range(2):
        code, told = run("--finish", str(number))
        assert (code, told["state"]) == (3, "elsewhere")
        (back,) = (one for one in told["elsewhere"] if one["column"] == proof.BACK)
        assert back["ids"] == ids
        assert f"purge --raw {' '.join(ids)} --yes" in told["to_do"][0]
    run("--raw", *ids, "--yes", "--reason", "again")
    assert run("--finish", str(number))[0] == 0 and proof.unfinished() == []


def test_of_a_purge_that_does_not_say_whose_it_was_it_says_that_nothing_is_known(
    path: Path,
) -> None:
    """Proofs of an earlier Argus."""
    alice = principal("alice")
    factories.turns(alice, [KEPT], session="a")
    back_up(path)
    number = purge("a", alice)
    PurgeProof.objects.create(ledger_id=number, proved=True, created_at=timezone.now())
    report = come_back(path)
    assert [one.back for one in report.purged_since] == [None]
    assert "what of it is back is not known: purge --matching REGEX looks for" in lines(report)


def test_a_number_of_the_house_that_went_is_given_to_nobody_else(path: Path) -> None:
    """Its purges and proofs, which are carried over, say whose they are by it."""
    alice = principal("alice")
    factories.turns(alice, [GO_ON], session="a")
    back_up(path)
    bob = principal("bob")
    (item,) = factories.turns(bob, [KEPT], session="b")
    number = purge("b", bob)
    come_back(path)
    assert PurgeProof.objects.get(ledger=number).scanned["of"] == [bob.pk]
    carol = principal("carol")
    assert carol.pk > bob.pk and not Principal.objects.filter(pk=bob.pk).exists()
    assert factories.turns(carol, [GO_ON], session="c")[0].pk > item.pk
    assert PurgeLedger.objects.get().pk < purge("c", carol)


def test_logins_and_rights_that_were_taken_away_since_are_taken_away_again(path: Path) -> None:
    alice, now = principal("alice"), timezone.now()
    for name, given in (("rita", ["reviewer"]), ("tom", ["reviewer", "operator"]), ("ann", [])):
        people.add(
            name, given, by=alice, now=now, teams=["blue", "red"], superuser=name == "ann",
            password="Sehr-geheim-12345",
        )  # fmt: skip
    people.add("uma", ["reader"], by=alice, now=now, password="Sehr-geheim-12345")
    people.add("eve", ["reader"], by=alice, now=now, superuser=True, password="Sehr-geheim-12345")
    see_all = Permission.objects.get(codename="see_all")
    editors = AuthGroup.objects.create(name="Editors")
    editors.permissions.add(see_all)
    for name in ("tom", "ann"):
        User.objects.get(username=name).user_permissions.add(see_all)
    back_up(path)
    people.remove("rita", by=alice, now=now)
    people.set_roles("tom", ["operator"], by=alice, now=now)
    people.leave("tom", ["red"], by=alice, now=now)
    User.objects.get(username="tom").user_permissions.clear()
    User.objects.filter(username="ann").update(is_superuser=False)
    editors.permissions.clear()
    User.objects.filter(username="uma").delete()
    # What was given since is not in the backup, and is not given again.
    people.join("tom", ["green"], by=alice, now=now)
    report = come_back(path)
    assert report.rights_since is not None
    assert {(one.name, one.right) for one in report.rights_since} == {
        ("rita", "login"), ("rita", "staff"), ("rita", "role reviewer"),
        ("rita", "stands for rita"), ("tom", "role reviewer"), ("tom", "team red"),
        ("tom", "memory.see_all"), ("ann", "superuser"), ("Editors", "memory.see_all"),
    }  # fmt: skip
    assert report.unknown_logins == ("uma",)
    told = {one.name: one for one in people.listed()}
    assert not told["rita"].active and told["rita"].roles == [] and told["rita"].principal == ""
    assert not User.objects.get(username="rita").has_usable_password()
    assert (told["tom"].roles, told["tom"].teams) == (["operator"], ["blue"])
    assert not User.objects.get(username="tom").has_perm("memory.see_all")
    assert not told["ann"].superuser and User.objects.get(username="ann").has_perm("memory.see_all")
    assert told["eve"].superuser and told["uma"].active
    assert not AuthGroup.objects.get(name="Editors").permissions.exists()
    ours = AuthGroup.objects.get(name=roles.group_name("reader"))
    assert ours.permissions.exists()
    said = lines(report)
    assert "taken away since, and taken away again: Editors (memory.see_all); ann (superuser);" in (
        said
    )
    assert "rita (login, role reviewer, staff, stands for rita); tom (" in said
    assert "may log in again, and the database that went knew nothing of them: uma" in said
    detail = Act.objects.get(verb="restore").detail
    assert {"name": "ann", "right": "superuser"} in detail["rights_since"]
    # Who was removed can come again, as ever.
    people.add("rita", ["reader"], by=principal("alice"), now=now, principal="rita")


def test_a_look_says_that_it_does_not_know_of_rights(path: Path) -> None:
    principal("alice")
    back_up(path)
    report = restore(path, now=timezone.now(), dry_run=True)
    assert report.rights_since is None and report.unknown_logins is None
    assert "logins and rights that were taken away since are told when it is done" in lines(report)


def test_nobody_is_shut_out_of_a_house_that_was_emptied(path: Path) -> None:
    """Who is not there at all was taken away by nobody: it may be why the backup is needed."""
    alice, now = principal("alice"), timezone.now()
    people.add("ann", [], by=alice, now=now, superuser=True, password="Sehr-geheim-12345")
    back_up(path)
    Principal.objects.filter(name="ann").update(user=None)
    User.objects.all().delete()
    report = come_back(path)
    assert (report.rights_since, report.unknown_logins) == ((), ("ann",))
    assert User.objects.get().is_superuser
