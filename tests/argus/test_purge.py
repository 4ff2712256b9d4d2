"""A purge from the command to the proof, on a database of its own with real commits."""

from __future__ import annotations

import io
import json
import zlib
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.utils import timezone
from psycopg import sql

from argus import purge as whole
from argus.binaries import locate
from argus.scratch import connected, owner_of
from exporter import export as exporting
from exporter.place import Place, around_vault
from memory import purge as record
from memory import rejected
from memory.access import create_key, principal
from memory.acts import record_act
from memory.errors import RefusedError
from memory.llm.remote.embed import shared
from memory.models import (
    Act,
    CaptureReceipt,
    Evidence,
    Injection,
    LedgerDay,
    LlmCall,
    ModelReply,
    Note,
    Principal,
    PurgeLedger,
    PurgeProof,
    RawItem,
    Session,
    StageRun,
)
from memory.proof import unfinished
from memory.selection import Selection
from memory.stages.distill import distill
from memory.text.identity import sha256 as hash_of
from tests import factories
from tests.argus.purging import run
from tests.cluster import owner_address
from tests.llm.conftest import configure, server
from tests.memory.books import count
from tests.web import user

__all__ = ["configure", "server"]

#: What must not be found anywhere afterwards.
CANARY = "zanzibarium"
SAID = (
    f"We decided to keep the {CANARY} ledger in Postgres because one store is enough for us all.",
    "Noted: it stays in Postgres.",
    "Root cause of the slow export: the vault was written twice for every single note.",
    "Fixed: the export now writes each note of the vault exactly once.",
)


@pytest.fixture
def home(clone_db: str, tmp_path: Path, configure: Callable[..., None]) -> Iterator[Path]:
    """A home of Alice's with a vault in it that is in force; vectors are made of words."""
    shared.cache_clear()
    folder, vault = tmp_path / "home", tmp_path / "Vault"
    folder.mkdir()
    configure(model_url=None, model=None, home=folder, principal="alice")
    with around_vault(Place(vault, "alice")):
        yield tmp_path


def dump(address: str) -> str:
    """The whole database as plain text, with what is compressed in it unpacked."""
    said = locate().run(
        "pg_dump", "--format=plain", "-d", owner_address(address), cwd=Path("/tmp"),
        timeout_seconds=120,
    )  # fmt: skip
    assert said.returncode == 0, said.stdout[-2000:]
    replies = [zlib.decompress(bytes(one)).decode() for one in
               ModelReply.objects.values_list("reply", flat=True)]  # fmt: skip
    return "\n".join([said.stdout, *replies])


def holding(folder: Path, words: str) -> list[str]:
    """Files below a folder that hold the words, or have them in their names."""
    return [
        str(path.relative_to(folder))
        for path in sorted(folder.rglob("*"))
        if path.is_file() and (words in path.read_text(errors="replace") or words in path.name)
    ]


def said_everywhere(alice: Principal) -> None:
    """Rows of many a table that quote the sentence and hang on nothing of it."""
    sentence = SAID[0]
    Injection.objects.create(owner=alice, mode="notes", outcome="hit", query=sentence, options={
        "id": "one", "said": sentence})  # fmt: skip
    record_act(alice, "look", "page", "x", now=timezone.now(), reason=f"because {sentence}")
    StageRun.objects.create(stage="dedup", status="failed", error=f"bad: {sentence}")
    CaptureReceipt.objects.create(
        owner=alice, seen=1, stored=0, duplicates=0,
        refusals=[{"index": 0, "reason": "size", "sha256": "0", "excerpt": sentence}],
    )  # fmt: skip
    ModelReply.objects.create(
        port="judge", model="m", prompt_version="1", input_sha256="0",
        reply=zlib.compress(json.dumps({"told": f"{sentence}\nand more"}).encode()),
    )  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO django_q_task (id, name, func, args, started, stopped, success,"
            " attempt_count) VALUES ('a', 'a', 'f', %s, now(), now(), false, 1)",
            [sentence],
        )


def test_nothing_of_it_is_in_a_dump_or_in_a_file_afterwards(clone_db: str, home: Path) -> None:
    alice, vault = principal("alice"), home / "Vault"
    first = factories.episode(alice, SAID)
    distill(clock=factories.clock(factories.at(days=1)))
    made = Note.objects.as_pipeline().filter(content__contains=CANARY).count()
    assert made, "the distiller found nothing in the sentences of this test"
    exporting.export(clock=factories.clock(factories.at(days=2)))
    said_everywhere(alice)
    assert CANARY in dump(clone_db) and holding(vault, CANARY)
    item = RawItem.objects.as_pipeline().get(body__contains=CANARY)
    _, key = create_key(owner="alice", scopes=["capture"], name="laptop", by=alice)
    before = {name: count(name) for name in ("memory_injection", "memory_act", "memory_rawitem")}

    code, told = run("--raw", str(item.pk))
    assert (code, told["raw_items"], told["dry_run"]) == (0, [item.pk], True)
    assert told["rows"]["memory_injection (emptied)"] == 1
    outside = {"injection", "act", "stagerun", "capturereceipt", "modelreply"}
    assert set(told["named"]) >= {f"memory_{name}" for name in outside} | {"django_q_task"}
    assert {name: count(name) for name in before} == before and not PurgeLedger.objects.exists()

    code, done = run("--raw", str(item.pk), "--yes", "--reason", "a customer asked", "--forbid")
    assert done["rows"] == told["rows"], "what was told is what was done"
    assert (code, done["proved"], done["elsewhere"]) == (0, True, []), done
    assert done["forbidden"] >= 1 and done["files"]["removed"] >= 1
    assert any(f"{key.prefix} (manage.py revokekey" in one for one in done["beyond"])
    assert CANARY not in dump(clone_db)
    assert holding(vault, CANARY) == [] == holding(home, CANARY)
    assert count("memory_injection") == before["memory_injection"], "a recall stays counted"
    assert Injection.objects.as_pipeline().get().options == {"id": "one"}
    assert count("memory_episode", f"id = {first.pk} AND distilled_at IS NULL") == 1
    act = Act.objects.get(verb="purge")
    assert (act.reference, act.reason) == (str(done["purge"]), "a customer asked")
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_stats WHERE pg_stats::text ~ %s", [CANARY])
        assert cursor.fetchone() is None, "the planner remembers no value of it"

    # Said again, it is stored again; what was forbidden is not learned again.
    now = timezone.now()
    factories.episode(alice, SAID[:2], session="s9", start=now)
    distill(clock=factories.clock(now + timedelta(days=1)))
    assert not Note.objects.as_pipeline().filter(content__contains=CANARY).exists()
    code, _ = run("--finish", str(done["purge"]))
    assert code == 3, "and the proof is told so"
    shown = PurgeProof.objects.latest("pk").elsewhere
    assert {one["place"]: one["by_right"] for one in shown}["memory_rawitem"] is True


def test_files_that_wait_are_finished_later(home: Path) -> None:
    alice, vault = principal("alice"), home / "Vault"
    factories.distilled(alice, SAID)
    exporting.export(clock=factories.clock(factories.at(days=2)))
    (home / "home" / "spool.jsonl").write_text(json.dumps({"body": f"x\n{SAID[0]}"}) + "\n")
    # A folder that cannot be written, whoever we are.
    vault.rename(home / "Away")
    vault.write_text("in the way")
    with around_vault(Place(home / "Away" / "gone" / "x", "alice")):
        code, told = run("--matching", "zanzi.*um", "--yes", "--reason", "asked")
    assert (code, told["paths"]) == (3, [str(home / "home" / "spool.jsonl")])
    assert [one["place"] for one in told["elsewhere"]] == ["files"]
    with around_vault(Place(vault, "alice")):
        code, told = run("--finish", str(told["purge"]))
        assert (code, told["files"]["pending"]) == (0, False) or told["elsewhere"]
    vault.unlink()
    (home / "Away").rename(vault)
    (home / "home" / "spool.jsonl").unlink()
    code, told = run("--finish", str(told["purge"]))
    assert (code, told["proved"]) == (0, True), told
    assert holding(vault, CANARY) == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--raw", "999999"], "no raw item"),
        (["--matching", "(("], "invalid regular expression"),
        (["--matching", "x*"], "matches every text"),
        (["--session", "nowhere"], "nothing of yours"),
        (["--owner", "bob"], "no owner bob"),
        ([], "say what is to go"),
        (["--raw", "1", "--session", "s1"], "in one way"),
        (["--session", "s1", "--yes"], "--reason"),
        (["--ledger", "acts", "--before", "2026-01-01"], "injection, receipt, llm_call"),
        (["--ledger", "injection", "--before", "2999-01-01"], "not over"),
        (["--finish", "77"], "no purge 77"),
        (["--finish", "--raw", "3"], "no --raw"),
        (["--ledger", "injection", "--before", "2026-01-01", "--forbid"], "no --forbid"),
    ],
)
@pytest.mark.django_db
def test_a_wrong_argument_is_told_and_changes_nothing(
    words: list[str], says: str, configure: Callable[..., None]
) -> None:
    configure(principal="alice")
    code, told = run(*words)
    assert code == 2 and says in told["error"]
    assert count("memory_purgeledger") == 0


@pytest.mark.django_db
def test_it_takes_what_is_ones_own_alone(configure: Callable[..., None]) -> None:
    configure(principal="alice", model_url=None, model=None)
    alice, bob = principal("alice"), principal("bob")
    mine = factories.turns(alice, SAID[:2])
    theirs = factories.turns(bob, SAID[:2])
    code, _ = run("--raw", str(theirs[0].pk))
    assert code == 2
    assert run("--session", "s1")[1]["raw_items"] == [row.pk for row in mine]
    assert run("--matching", CANARY)[1]["raw_items"] == [mine[0].pk]
    user("admin", superuser=True, who=alice)
    assert run("--raw", str(theirs[0].pk))[0] == 2, "a digit off is nobody's wish"
    assert run("--raw", str(theirs[0].pk), "--all-owners")[1]["owners"] == ["bob"]
    assert Act.objects.filter(verb="see_all", principal=alice).count() == 1
    assert run("--matching", CANARY)[1]["raw_items"] == [mine[0].pk]
    assert run("--owner", "bob")[1]["raw_items"] == [row.pk for row in theirs]
    code, told = run("--owner", "bob", "--yes", "--reason", "they left")
    assert code == 3 and all(one["by_right"] for one in told["elsewhere"]), told
    assert not Session.objects.filter(owner=bob).exists()
    assert RawItem.objects.as_pipeline().count() == 2


@pytest.mark.django_db
def test_what_stands_in_no_raw_item_is_proved_by_its_pattern(
    configure: Callable[..., None],
) -> None:
    configure(principal="alice")
    alice = principal("alice")
    Injection.objects.create(owner=alice, mode="notes", outcome="hit", query="is it xk-4711?")
    Injection.objects.create(
        owner=alice, mode="notes", outcome="hit", query="no", hits=[{"said": "xk-4711"}]
    )
    code, told = run("--matching", r"xk-\d+", "--yes", "--reason", "a key got in")
    assert (code, [(one["place"], one["count"]) for one in told["elsewhere"]]) == (
        3, [("memory_injection", 1)],
    )  # fmt: skip
    assert count("memory_injection", "query ~ 'xk'") == 0


@pytest.mark.django_db
def test_a_reason_may_not_say_it_again(configure: Callable[..., None]) -> None:
    configure(principal="alice")
    factories.turns(principal("alice"), SAID[:1])
    for words, reason in ((["--session", "s1"], f"They said: {SAID[0]}"),
                          (["--matching", "zan[a-z]*um"], f"the {CANARY} asked")):  # fmt: skip
        code, told = run(*words, "--yes", "--reason", reason)
        assert code == 2 and "the reason says" in told["error"]
    assert count("memory_purgeledger") == 0


@pytest.mark.django_db
def test_it_lets_old_rows_of_a_ledger_go_and_keeps_their_sums(
    configure: Callable[..., None],
) -> None:
    configure(principal="alice")
    alice = principal("alice")
    for number in range(4):
        at = factories.at(days=number)
        Injection.objects.create(owner=alice, mode="notes", outcome="hit", created_at=at)
        LlmCall.objects.create(stage="distill", port="d", model_asked="m", outcome="ok",
                               tokens_in=10, created_at=at)  # fmt: skip
    since = factories.at(days=2).date().isoformat()
    code, told = run("--ledger", "injection", "--before", since)
    assert (code, told["counts"], told["days"]) == (0, {"injection": 2}, 2)
    assert count("memory_injection") == 4
    for ledger, table in (("injection", "memory_injection"), ("llm_call", "memory_llmcall")):
        code, told = run("--ledger", ledger, "--before", since, "--yes", "--reason", "two days")
        assert code == 0 and count(table) == 2
    days = LedgerDay.objects.filter(ledger="llm_call").order_by("day")
    assert [(row.counts["rows"], row.counts["tokens_in"]) for row in days] == [(1, 10), (1, 10)]
    assert Act.objects.filter(verb="let_go").count() == 2
    # Rows of a day that come in later are added to it.
    Injection.objects.create(owner=alice, mode="notes", outcome="no_hits",
                             created_at=factories.at(days=1))  # fmt: skip
    run("--ledger", "injection", "--before", since, "--yes", "--reason", "late ones")
    late = LedgerDay.objects.get(ledger="injection", day=factories.at(days=1).date())
    assert (late.counts["rows"], late.counts["outcome hit"], late.counts["outcome no_hits"]) == (
        2, 1, 1,
    )  # fmt: skip
    purges = PurgeLedger.objects.count()
    code, told = run("--ledger", "injection", "--before", since, "--yes", "--reason", "again")
    assert (code, told["counts"], told["ledger"]) == (0, {}, 0)
    assert PurgeLedger.objects.count() == purges, "what took nothing leaves no row"


def test_the_first_proof_is_written_with_the_purge_itself(home: Path) -> None:
    """Whoever is killed after it finds it among the unfinished."""
    alice = principal("alice")
    factories.turns(alice, SAID)
    plan = record.plan(Selection(session="s1"), by=alice)
    done = record.purge(plan, by=alice, reason="asked", now=timezone.now())
    assert (done.proof.proved, done.proof.files_pending) == (False, True)
    assert unfinished() == [done.ledger]
    code, every = run("--finish")
    (told,) = every["finished"]
    # One of the turns has five words, and no number of such a one is kept.
    assert (code, told["purge"], told["state"]) == (3, done.ledger, "clean by sample")
    (what,) = told["to_do"]
    assert "Nothing is left to finish" in what and "purge --matching REGEX" in what
    assert unfinished() == []
    assert run("--finish")[1] == {"finished": []}
    # The way that it names is one: who knows the words finds them nowhere.
    with pytest.raises(CommandError, match="no text of yours matches"):
        call_command("purge", "--matching", "it stays in Postgres")


def test_to_forbid_what_no_note_says_is_told_before_and_after(
    configure: Callable[..., None], db: None
) -> None:
    configure(principal="alice")
    alice = principal("alice")
    item, other = factories.turns(alice, ("Go on, please, as we said.", "Well, all right then."))
    code, told = run("--raw", str(item.pk), "--forbid")
    assert (code, told["nothing_to_forbid"], told["forbidden"]) == (0, True, [])
    out = io.StringIO()
    call_command("purge", "--raw", str(item.pk), "--forbid", stdout=out)
    assert "--forbid forbids nothing: no note came of what goes" in out.getvalue()
    assert "rejection forbid --words -" in out.getvalue()
    assert "forbid" not in str(run("--raw", str(item.pk))[1].get("to_do", ""))
    code, told = run("--raw", str(item.pk), "--forbid", "--yes", "--reason", "asked")
    assert (code, told["proved"], told["forbidden"]) == (3, True, 0)
    (what,) = told["to_do"]
    assert what.startswith("--forbid forbade nothing") and "rejection forbid --words -" in what
    code, told = run("--raw", str(other.pk), "--yes", "--reason", "asked")
    assert (code, told["to_do"]) == (0, []), "nobody asked to forbid anything"


def test_what_was_forbidden_before_is_as_forbidden_as_ever(
    configure: Callable[..., None], db: None
) -> None:
    configure(principal="alice")
    alice = principal("alice")
    for made in (notes := factories.distilled(alice, SAID)):
        rejected.forbid(made.content, owner=alice, by=alice, now=timezone.now())
    code, told = run("--session", "s1", "--forbid", "--yes", "--reason", "asked")
    assert (code, told["forbidden"], told["forbidden_before"]) == (0, 0, len(notes)), told


def test_a_note_that_stays_loses_its_quote_in_the_vault_too(home: Path) -> None:
    alice, vault = principal("alice"), home / "Vault"
    mine, other = factories.turns(alice, [SAID[0], SAID[2]])
    note = factories.note(alice, SAID[2], evidence=other)
    Evidence.objects.create(
        note=note, raw_item=mine, quote=mine.body, sha256=hash_of(mine.body),
        start=0, end=len(mine.body),
    )  # fmt: skip
    exporting.export(clock=factories.clock(factories.at(days=2)))
    assert holding(vault, CANARY)
    code, told = run("--raw", str(mine.pk), "--yes", "--reason", "asked")
    assert (code, told["state"], told["files"]["pending"]) == (0, "clean", False), told
    assert holding(vault, CANARY) == [] != holding(vault, "twice for every")


def test_words_that_somebody_keeps_in_a_page_are_found_again_when_they_are_gone(
    home: Path,
) -> None:
    """The page was changed above the line: no export touches it. Its title stays in no table."""
    alice, vault = principal("alice"), home / "Vault"
    note = factories.note(alice, SAID[0], title=f"{CANARY.title()} left the company")
    exporting.export(clock=factories.clock(factories.at(days=2)))
    page = next(path for path in vault.rglob("*.md") if CANARY.title() in path.name)
    page.write_text(page.read_text().replace("one store", "one single store"))
    code, told = run("--note", str(note.pk), "--yes", "--reason", "asked")
    assert (code, told["state"], told["paths"]) == (3, "elsewhere", [str(page)])
    shown = PurgeProof.objects.latest("pk")
    assert CANARY not in json.dumps([shown.elsewhere, shown.scanned]).lower()
    assert unfinished() == [told["purge"]]
    other = record.purge(
        record.plan(Selection(raw=(factories.turns(alice, ["Nothing of all this stays here."],
                                                   session="other")[0].pk,)), by=alice),
        by=alice, reason="asked", now=timezone.now(),
    )  # fmt: skip
    code, every = run("--finish")
    assert code == 3, "there is something to finish"
    assert [(one["purge"], one["state"]) for one in every["finished"]] == [
        (other.ledger, "clean by sample"), (told["purge"], "elsewhere"),
    ], "one object for all"  # fmt: skip
    page.unlink()
    code, every = run("--finish")
    assert (code, every["finished"][0]["state"]) == (0, "clean") and unfinished() == []


@pytest.mark.django_db
def test_nobody_finishes_what_is_anothers(configure: Callable[..., None]) -> None:
    configure(principal="bob", model_url=None, model=None)
    alice, bob = principal("alice"), principal("bob")
    factories.turns(alice, SAID)
    plan = record.plan(Selection(session="s1"), by=alice)
    done = record.purge(plan, by=alice, reason="asked", now=timezone.now())
    assert run("--finish", str(done.ledger))[0] == 2
    assert run("--finish")[1] == {"finished": []}
    assert run("--finish", "--all-owners")[0] == 2
    user("admin", superuser=True, who=bob)
    assert run("--finish")[1] == {"finished": []}
    assert run("--finish", "--all-owners")[1]["finished"][0]["purge"] == done.ledger
    # What was of nobody but them is theirs to finish, whoever purged it.
    (mine,) = factories.turns(bob, SAID[:1], session="s2")
    plan = record.plan(Selection(raw=(mine.pk,)), by=bob)
    done = record.purge(plan, by=alice, reason="asked", now=timezone.now())
    assert run("--finish", str(done.ledger))[1]["purge"] == done.ledger


def test_a_throwaway_database_of_a_killed_process_goes_and_another_is_told(home: Path) -> None:
    alice = principal("alice")
    items = factories.turns(alice, SAID[:1])
    real = connection.settings_dict["NAME"]
    names = [f"{real[:40]}_scratch_{digit * 12}" for digit in "ab"]
    with connected(owner_of(dict(connection.settings_dict))) as keeper:
        for name in names:
            keeper.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        keeper.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", [names[1]])
        try:
            code, told = run("--raw", str(items[0].pk), "--yes", "--reason", "asked")
            left = {one["place"]: one["ids"] for one in told["elsewhere"]}
            assert (code, left) == (3, {"databases": [names[1]]})
        finally:
            keeper.execute(sql.SQL("DROP DATABASE IF EXISTS {}").format(sql.Identifier(names[1])))
    assert run("--finish")[0] == 0


@pytest.mark.django_db
def test_a_pattern_that_finds_no_end_after_it_is_no_wrong_argument(
    configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(principal="alice", model_url=None, model=None)
    factories.turns(principal("alice"), SAID)

    def tired(*args: Any, **options: Any) -> None:
        raise RefusedError("the pattern found no end")

    monkeypatch.setattr(whole, "choose", tired)
    code, told = run("--matching", CANARY, "--yes", "--reason", "asked")
    assert (code, told["proved"], told["state"]) == (3, False, "not proved")
    assert told["scanned"]["pattern"] and unfinished() == []


@pytest.mark.django_db
def test_a_note_that_a_pattern_finds_is_not_learned_again_from_what_stays(
    configure: Callable[..., None],
) -> None:
    configure(principal="alice", model_url=None, model=None)
    alice = principal("alice")
    item = factories.turns(alice, SAID[2:3])[0]
    note = factories.note(alice, SAID[2], title="The exporter of xk-4711", evidence=item)
    words = ["--matching", r"xk-\d+"]
    assert run(*words)[1]["forbidden"] == [str(note.pk)]
    code, told = run(*words, "--yes", "--reason", "a key")
    assert (told["forbidden"], RawItem.objects.as_pipeline().count()) == (1, 1), (code, told)
    assert rejected.said(note.content, owner=alice)


@pytest.mark.django_db
def test_what_ended_a_session_is_let_go_by_no_date(configure: Callable[..., None]) -> None:
    """Whoever makes the episodes anew asks when it was."""
    configure(principal="alice")
    alice = principal("alice")
    for end in ({}, {"session": "s1", "reason": "clear"}):
        CaptureReceipt.objects.create(owner=alice, seen=1, stored=1, duplicates=0,
                                      session_end=end, created_at=factories.at())  # fmt: skip
    since = factories.at(days=2).date().isoformat()
    _, told = run("--ledger", "receipt", "--before", since, "--yes", "--reason", "old")
    assert told["counts"] == {"receipt": 1}
    kept = CaptureReceipt.objects.as_pipeline().get()
    assert kept.session_end["session"] == "s1"
