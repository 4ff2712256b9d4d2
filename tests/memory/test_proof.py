"""The proof of a purge: it looks at whatever the database has, and tells what it finds."""

from __future__ import annotations

import base64
import bz2
import gzip
import json
import lzma
import os
import pickle
import zlib
from collections.abc import Callable
from pathlib import Path
from unicodedata import normalize

import pytest
from django.conf import settings
from django.contrib.sessions.models import Session
from django.core import signing
from django.db import connection
from django.utils import timezone

from argus.owner import as_owner
from memory import folders, proof, returned, scan
from memory.access import principal
from memory.errors import RefusedError
from memory.folders import in_file, walk
from memory.models import Injection, ModelReply, PurgeLedger, PurgeProof
from memory.text.numbers import Numbers
from memory.text.passages import Passages, known
from tests import factories
from tests.memory.books import DECIDED, purge, two_sessions

WORDS = "The harbour master keeps the tide tables in the blue drawer below the window."


def words(*texts: str) -> Passages:
    made = Passages()
    for text in texts:
        made.add(text)
    return made


@pytest.fixture(autouse=True)
def _quick(local: Callable[..., None]) -> None:
    """Vectors made of words: nothing here is about meaning."""


def places(found: proof.Found) -> set[tuple[str, str]]:
    return {(one.place, one.column) for one in found.elsewhere}


@pytest.mark.parametrize(
    ("text", "there"),
    [
        (WORDS, True),
        (f"He said: {WORDS.upper()} And more.", True),
        ("the harbour   master\nkeeps the tide-tables in the red drawer", True),
        ("The harbour master keeps the tide tables.", False),
        ("Somebody keeps tables in a drawer below a window of the harbour master.", False),
        ("", False),
    ],
)
def test_it_knows_eight_words_in_a_row_again(text: str, there: bool) -> None:
    assert bool(words(WORDS).in_text(text)) is there


def test_it_looks_for_a_short_text_whole_and_for_a_word_or_two_not_at_all() -> None:
    short = words("My locker has number 4711", "ok", "go on")
    assert short.left_out == 1
    assert short.in_text("by the way, my locker has number 4711, you know")
    assert not short.in_text("my locker has number 4712")
    assert not short.in_text("ok go on")
    unspaced = words("港の管理人は潮の表を窓の下の青い引き出しに入れています、毎日です")
    assert unspaced.in_text(
        "彼は言った。港の管理人は潮の表を窓の下の青い引き出しに入れています、毎日です。"
    )
    assert not unspaced.in_text("港の管理人は潮の表を持っていない、と彼は言いましたので、はい")


def test_it_knows_every_window_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample leaves what it has not, and proves by the same sample that it is gone."""
    monkeypatch.setattr("memory.text.passages.QUICK_MAX", 50)
    monkeypatch.setattr("memory.text.numbers.LOOSE_MIN", 70)
    texts = [" ".join(f"word{n}x{k}" for k in range(60)) for n in range(40)]
    many = words(*texts, *(f"my locker has number {n}" for n in range(60)), "so be it", *texts[:9])
    assert isinstance(many.windows, Numbers) and isinstance(many.short[5], Numbers)
    assert (len(many.windows), many.shorts()) == (40 * 53, 61)
    for n in range(40):
        for k in range(53):
            assert many.in_text(" ".join(f"word{n}x{one}" for one in range(k, k + 8)))
    assert not many.in_text(" ".join(f"word{n}x{n}" for n in range(20)))
    assert many.in_text("My locker has number 7!") and not many.in_text("My locker has number 77")
    some = many.in_text(texts[7])
    assert len(some) == 53
    for less, left in ((many.without(some), 39 * 53), (many.only(some), 53)):
        assert len(less.windows) == len(set(less.windows)) == left
        assert (less.in_text(texts[7]) == some) is (left == 53)
    assert len(many.windows) == 40 * 53 and many.in_text(texts[7]) == some
    kept = proof.kept(many, first=some)
    assert kept == sorted(many.windows) and some <= set(kept)


def test_it_keeps_the_same_numbers_of_many_whatever_they_are_kept_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(proof, "SHINGLES_KEPT_MAX", 64)
    texts = [" ".join(f"word{n}x{k}" for k in range(60)) for n in range(40)]
    few, first = words(*texts), words(texts[7]).windows
    monkeypatch.setattr("memory.text.passages.QUICK_MAX", 50)
    many = words(*texts)
    assert type(few.windows) is not type(many.windows)
    assert proof.kept(few, first=first) == proof.kept(many, first=Numbers(first))
    assert len(proof.kept(few)) <= 64 and set(first) <= set(proof.kept(few, first=first))


def test_it_takes_all_of_it_or_says_that_it_is_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory.text.passages.WINDOWS_MAX", 100)
    monkeypatch.setattr("memory.text.passages.QUICK_MAX", 50)
    text = " ".join(f"word{k}" for k in range(100))
    assert len(words(*[text] * 5).windows) == 93, "said again it is no more"
    with pytest.raises(RefusedError, match=r"more than 100 words.*--session"):
        words(text, " ".join(f"other{k}" for k in range(20)))


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        (WORDS, True),
        ("The harbour master keeps the tide tables in the blue drawer.", True),
        (f"{WORDS} And it is wet.", False),
        ("My locker has number 4711", True),
        ("my locker has number 4711, you know", False),
        ("", False),
    ],
)
def test_it_knows_whether_a_text_says_nothing_else(text: str, whole: bool) -> None:
    assert words(WORDS, "My locker has number 4711").covers(text) is whole


@pytest.mark.django_db
def test_it_reads_what_is_compressed_signed_or_in_an_object() -> None:
    alice = principal("alice")
    Injection.objects.create(
        owner=alice, mode="notes", outcome="hit", hits=[{"deep": [{"in": f"x\n{WORDS}"}]}]
    )
    ModelReply.objects.create(port="p", model="m", prompt_version="1", input_sha256="0",
                              reply=zlib.compress(json.dumps({"a": WORDS}).encode()))  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO django_session (session_key, session_data, expire_date)"
            " VALUES ('k', %s, now()), ('l', 'nothing', now())",
            [signing.dumps({"said": [WORDS * 3]}, compress=True)],
        )
    found = proof.search(words(WORDS))
    assert places(found) == {("memory_injection", "hits"), ("memory_modelreply", "reply"),
                             ("django_session", "session_data")}  # fmt: skip
    assert len(found.wrong) == 3
    assert {one.ids for one in found.elsewhere if one.place == "django_session"} == {("k",)}
    assert found.rows > 3 and found.columns > 100


def test_it_looks_at_a_column_that_was_added_yesterday(clone_db: str) -> None:
    words_ = words(WORDS)
    with as_owner(), connection.cursor() as cursor:
        cursor.execute("CREATE TABLE memory_news (a int, b int, told text[], PRIMARY KEY (a, b))")
        cursor.execute("ALTER TABLE memory_project ADD COLUMN motto varchar(900) DEFAULT ''")
    factories.project()
    assert proof.search(words_).elsewhere == ()
    with as_owner(), connection.cursor() as cursor:
        cursor.execute("UPDATE memory_project SET motto = %s", [WORDS])
        cursor.execute("INSERT INTO memory_news VALUES (1, 2, %s)", [["x", WORDS]])
    assert "motto" in scan.text_columns()["memory_project"].names
    assert places(proof.search(words_)) == {("memory_project", "motto"), ("memory_news", "told")}


@pytest.mark.django_db
def test_it_tells_what_stands_there_by_right() -> None:
    first, _ = two_sessions()
    factories.turns(principal("bob"), [f"I heard: {DECIDED[2]}"], session="b")
    purge(list(first.turns.values_list("raw_item_id", flat=True)))
    ledger, now = PurgeLedger.objects.get(), timezone.now()
    row = proof.prove(ledger, words(*DECIDED[1:]), now=now).row
    told = {(one["place"], one["column"]): one["by_right"] for one in row.elsewhere}
    assert told == {("memory_rawitem", "body"): True}
    assert (row.proved, row.scanned["too_short"], row.files_pending) == (False, 0, False)
    assert 0 < len(row.shingles) <= proof.SHINGLES_KEPT_MAX
    again = proof.prove_again_all([row])[row.pk]
    assert again.elsewhere and again.wrong == ()


def test_what_a_backup_brings_back_stands_without_right_and_gives_none(clone_db: str) -> None:
    """What others say, and what the same person had said twice, stands by right as before."""
    alice, bob = principal("alice"), principal("bob")
    (said,) = factories.turns(alice, [WORDS], session="a")
    factories.turns(alice, [DECIDED[2]], session="b")
    (twice,) = factories.turns(alice, [DECIDED[2]], session="c")
    factories.turns(bob, [DECIDED[2]], session="d")
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMP TABLE kept AS SELECT * FROM memory_rawitem")
        rows = []
        for item in (said, twice):
            purge([item.pk])
            ledger, now = PurgeLedger.objects.latest("pk"), timezone.now()
            stayed = returned.twins(ledger, [alice.pk])
            shown = proof.prove(ledger, words(item.body), of=[alice.pk], twins=stayed, now=now)
            rows.append(shown.row)
        assert [row.proved for row in rows] == [True, False]
        assert [found.wrong for found in proof.prove_again_all(rows).values()] == [(), ()]
        Injection.objects.create(owner=alice, mode="notes", outcome="hit", query=f"so: {WORDS}")
        cursor.execute(
            "INSERT INTO memory_rawitem OVERRIDING SYSTEM VALUE SELECT * FROM kept WHERE id = %s",
            [said.pk],
        )
    first, second = proof.prove_again_all(rows).values()
    assert {(one.place, one.column, one.ids) for one in first.wrong if one.column != "query"} == {
        ("memory_rawitem", proof.BACK, (str(said.pk),))
    }
    assert ("memory_injection", "query") in places(first)
    assert second.wrong == (), "it is of another purge"
    now = timezone.now()
    again = proof.prove(rows[0].ledger, words(WORDS), again=rows[0], now=now).row
    assert not again.proved and not all(one["by_right"] for one in again.elsewhere)


def test_what_came_back_is_told_once_and_until_it_is_gone(
    clone_db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a word was found of which no number is kept, and where more came back than are
    named."""
    monkeypatch.setattr(proof, "IDS_TOLD_MAX", 1)
    alice, now = principal("alice"), timezone.now()
    Injection.objects.create(owner=alice, mode="notes", outcome="hit", query="hunter2 Xy9")
    items = factories.turns(alice, [WORDS, "hunter2 Xy9"])
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMP TABLE kept AS SELECT * FROM memory_rawitem")
        purge([item.pk for item in items])
        ledger, said = PurgeLedger.objects.get(), words(WORDS, "hunter2 Xy9")
        last = proof.prove(ledger, said, of=[alice.pk], twins=[], now=now).row
        assert last.scanned["unkept"] == 1
        cursor.execute("INSERT INTO memory_rawitem OVERRIDING SYSTEM VALUE SELECT * FROM kept")
    for _ in range(2):
        last = proof.prove(ledger, known(last.shingles), again=last, now=now).row
        (back,) = (one for one in last.elsewhere if one["column"] == proof.BACK)
        assert (list(back["ids"]), back["count"]) == ([str(items[0].pk)], 2)
        assert not last.proved
    purge([item.pk for item in items])
    last = proof.prove(ledger, known(last.shingles), again=last, now=now).row
    assert not [one for one in last.elsewhere if one["column"] == proof.BACK]


def test_of_a_text_said_too_often_nobody_knows_what_is_back(
    clone_db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(returned, "TWINS_KEPT_MAX", 2)
    alice = principal("alice")
    first, *others = (
        factories.turns(alice, [WORDS], session=f"s{n}", start=factories.at(n))[0].pk
        for n in range(4)
    )
    purge([first])
    ledger = PurgeLedger.objects.get()
    assert returned.twins(ledger, [alice.pk]) is None
    row = PurgeProof(ledger=ledger, scanned={"of": [alice.pk], "twins": None})
    assert returned.back(row) is None
    monkeypatch.setattr(returned, "TWINS_KEPT_MAX", 3)
    assert returned.twins(ledger, [alice.pk]) == others


def test_whose_a_purge_was_is_not_forgotten_by_looking_again(clone_db: str) -> None:
    """Proofs of an earlier Argus say only whose rows they may name."""
    alice, now = principal("alice"), timezone.now()
    purge([factories.document(alice, WORDS).pk])
    ledger = PurgeLedger.objects.get()
    last = PurgeProof.objects.create(
        ledger=ledger, proved=False, scanned={"owners": [alice.pk]}, created_at=now
    )
    for _ in range(3):
        assert proof.owners_of(last) == [alice.pk] and returned.back(last) is None
        last = proof.prove(ledger, words(WORDS), again=last, now=now).row
    last.scanned = {}
    assert proof.owners_of(last) is None


@pytest.mark.django_db
def test_it_proves_again_by_what_it_kept_and_tells_each_purge_its_own() -> None:
    alice, now = principal("alice"), timezone.now()
    other = "Every second Tuesday the ferry leaves from the northern pier at seven o'clock."
    rows = []
    for text in (WORDS, other):
        purge([factories.document(alice, text).pk])
        ledger = PurgeLedger.objects.latest("pk")
        rows.append(proof.prove(ledger, words(text), now=now).row)
    assert all(row.proved for row in rows)
    assert all(found.elsewhere == () for found in proof.prove_again_all(rows).values())
    Injection.objects.create(owner=alice, mode="notes", outcome="hit", query=f"is it so? {other}")
    found = proof.prove_again_all(rows)
    assert found[rows[0].pk].elsewhere == ()
    assert places(found[rows[1].pk]) == {("memory_injection", "query")}
    assert PurgeProof.objects.count() == 2, "it writes nothing"


@pytest.mark.django_db
def test_a_file_that_cannot_be_read_and_words_that_are_too_few_prove_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "PG_VERSION").write_text("18")
    (tmp_path / "base" / "table").write_text(WORDS)
    (tmp_path / "note.md").write_text(WORDS)

    def refuse(path: Path, words: Passages) -> set[int]:
        raise PermissionError(path)

    monkeypatch.setattr(proof, "in_file", refuse)
    found = proof.search(words(WORDS), folders=[tmp_path])
    assert [(one.place, one.column) for one in found.wrong] == [(proof.FILES, proof.UNREAD)]
    assert found.paths == (str(tmp_path / "note.md"),)
    purge([factories.document(principal("alice"), "Go on.").pk])
    row = proof.prove(PurgeLedger.objects.get(), words("Done."), now=timezone.now()).row
    assert (row.proved, row.elsewhere, row.scanned["too_short"]) == (False, [], 1)
    assert proof.unfinished() == [], "told, and nothing to do"
    row = proof.prove(PurgeLedger.objects.get(), words(WORDS, "Done."), now=timezone.now()).row
    assert (row.proved, row.scanned["too_short"]) == (False, 1), "what was never looked for"


def test_it_reads_files_and_their_names(tmp_path: Path) -> None:
    (tmp_path / "sub" / ".git").mkdir(parents=True)
    (tmp_path / "sub" / "note.md").write_text(f"# A\n\n> {WORDS}\n")
    (tmp_path / "spool.jsonl").write_text(json.dumps({"body": f"He said\n{WORDS}"}) + "\n")
    (tmp_path / "kept.z").write_bytes(zlib.compress(WORDS.encode()))
    (tmp_path / f"{WORDS[:-1]}.md").write_text("")
    (tmp_path / "sub" / ".git" / "x").write_text(WORDS)
    (tmp_path / "other.md").write_text("The harbour is closed.")
    (tmp_path / "link").symlink_to(tmp_path / "sub")
    found = [path.name for path in walk([tmp_path, tmp_path / "sub"])
             if in_file(path, words(WORDS))]  # fmt: skip
    assert sorted(found) == sorted(["note.md", "spool.jsonl", "kept.z", f"{WORDS[:-1]}.md"])


@pytest.mark.parametrize(
    ("said", "text", "there"),
    [
        ("hunter2 Xy9", "hunter2 xy9", True),
        ("hunter2 Xy9", "is it hunter2 Xy9?", True),
        ("AKIAIOSFODNN7EXAMPLEKEYLONG", "AKIAIOSFODNN7EXAMPLEKEYLONG", True),
        ("swordfish please", "Swordfish, please!", True),
        ("swordfish please", "a swordfish please him", False),
        ("done", "done", False),
    ],
)
def test_it_looks_for_a_text_of_a_word_or_two_as_well(said: str, text: str, there: bool) -> None:
    known_ = words(WORDS, said)
    assert bool(known_.in_text(text)) is there
    assert known_.left_out == (said == "done")


@pytest.mark.django_db
def test_a_password_of_a_turn_is_found_where_it_was_asked_for() -> None:
    alice = principal("alice")
    Injection.objects.create(owner=alice, mode="notes", outcome="hit", query="hunter2 Xy9")
    assert places(proof.search(words(WORDS, "hunter2 Xy9"))) == {("memory_injection", "query")}


@pytest.mark.django_db
def test_a_look_by_a_sample_proves_nothing_and_clears_nothing_it_has_no_number_of() -> None:
    alice, now = principal("alice"), timezone.now()
    purge([factories.document(alice, WORDS).pk])
    ledger, said = PurgeLedger.objects.get(), words(WORDS, "hunter2 Xy9")
    first = proof.prove(ledger, said, now=now).row
    assert first.proved and not proof.whole(first)
    again = proof.prove(ledger, known(first.shingles), again=first, now=now).row
    assert (again.proved, again.elsewhere, again.scanned["sampled"]) == (False, [], True)
    session = {"session_data": "hunter2 Xy9", "expire_date": now}
    left = Session.objects.create(session_key="k", **session)
    full = proof.prove(ledger, said, now=now).row
    assert proof.unfinished() == [ledger.pk]
    again = proof.prove(ledger, known(full.shingles), again=full, now=now).row
    assert again.elsewhere == full.elsewhere and proof.unfinished() == [ledger.pk]
    left.delete()
    again = proof.prove(ledger, known(again.shingles), again=again, now=now).row
    assert again.elsewhere == [] and proof.unfinished() == []


@pytest.mark.django_db
def test_few_words_are_proved_again_in_full(tmp_path: Path) -> None:
    purge([factories.document(principal("alice"), WORDS).pk])
    ledger, now = PurgeLedger.objects.get(), timezone.now()
    (tmp_path / "note.md").write_text(WORDS)
    first = proof.prove(ledger, words(WORDS), folders=[tmp_path], now=now).row
    assert proof.unfinished() == [ledger.pk] and proof.whole(first)
    (tmp_path / "note.md").unlink()
    again = known(first.shingles)
    row = proof.prove(ledger, again, again=first, folders=[tmp_path], now=now).row
    assert row.proved and "sampled" not in row.scanned


@pytest.mark.django_db
def test_it_keeps_no_name_of_a_file_and_no_number_of_somebody_elses_row(tmp_path: Path) -> None:
    alice, bob = principal("alice"), principal("bob")
    purge([factories.document(alice, "Anna Schmidt left the company.").pk])
    factories.turns(bob, [WORDS], session="b")
    mine = Injection.objects.create(owner=alice, mode="notes", outcome="hit", query=WORDS)
    Injection.objects.create(owner=bob, mode="notes", outcome="hit", query=WORDS)
    page = tmp_path / "Anna Schmidt left the company.md"
    page.write_text(WORDS)
    (tmp_path / "shut").symlink_to(tmp_path / "nowhere")
    shown = proof.prove(
        PurgeLedger.objects.get(), words(WORDS), owners=[alice.pk], folders=[tmp_path],
        now=timezone.now(),
    )  # fmt: skip
    shown.row.refresh_from_db()
    told = {one["place"]: one for one in shown.row.elsewhere}
    assert (told["memory_injection"]["count"], told["memory_injection"]["ids"]) == (
        1, [str(mine.pk)],
    )  # fmt: skip
    assert "memory_rawitem" not in told, "how many others say it in private is told to nobody"
    assert "Anna" not in json.dumps([shown.row.elsewhere, shown.row.scanned])
    assert shown.paths == (str(page),) == tuple(proof.named(shown.row, [tmp_path]))


def test_a_folder_that_cannot_be_listed_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shut").mkdir()
    scandir = os.scandir

    def refuse(path: str) -> object:
        if str(path).endswith("shut"):
            raise PermissionError(13, "no", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    missed: list[str] = []
    assert list(walk([tmp_path], missed)) == [] and missed == [str(tmp_path / "shut")]


def test_it_reads_a_large_file_and_a_large_reply_to_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "FILE_BYTES_AT_ONCE", 100_000)
    monkeypatch.setattr(scan, "UNPACKED_BYTES_MAX", 100_000)
    filler = "and so on and on " * 5_875
    path = tmp_path / "spool.jsonl"
    path.write_text(json.dumps({"n": filler}) + "\n" + json.dumps({"b": f"x\n{WORDS}"}) + "\n")
    assert in_file(path, words(WORDS))
    packed = zlib.compress(f"{filler}{filler}{WORDS}".encode())
    assert any(words(WORDS).in_text(text) for text in scan.texts(packed))


@pytest.mark.parametrize("packed", [gzip.compress, bz2.compress, lzma.compress])
def test_it_reads_what_is_compressed_to_the_end(
    packed: Callable[[bytes], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "FILE_BYTES_AT_ONCE", 100_000)
    monkeypatch.setattr(scan, "UNPACKED_BYTES_MAX", 100_000)
    path, filler = tmp_path / "old.log", "and so on and on " * 20_000
    # A log that is rotated is appended to.
    data = packed(filler.encode()) + packed(f"{filler}{WORDS}".encode())
    path.write_bytes(data)
    assert in_file(path, words(WORDS))
    path.write_bytes(data[:-20])
    with pytest.raises(OSError, match="cut off"):
        in_file(path, words(WORDS))
    path.write_bytes(data[:3] + f" says: {WORDS}".encode())
    assert in_file(path, words(WORDS)), "a text that begins with the same letters"
    if packed is gzip.compress:
        assert any(words(WORDS).in_text(text) for text in scan.texts(data))
        assert any(
            words(WORDS).in_text(text) for text in scan.texts(base64.b64encode(data).decode())
        )


def test_it_tells_of_what_it_may_not_read_and_reads_other_schemas(clone_db: str) -> None:
    with as_owner(), connection.cursor() as cursor:
        cursor.execute("CREATE SCHEMA old")
        cursor.execute("CREATE TABLE old.items AS SELECT %s::text AS body", [WORDS])
        cursor.execute("CREATE TABLE old.words AS SELECT to_tsvector('simple', %s) AS v", [WORDS])
        cursor.execute("CREATE MATERIALIZED VIEW seen AS SELECT %s::text AS body", [WORDS])
        cursor.execute("GRANT USAGE ON SCHEMA old TO PUBLIC")
        cursor.execute("GRANT SELECT ON ALL TABLES IN SCHEMA old TO PUBLIC")
        cursor.execute("CREATE TABLE items_2025 AS SELECT %s::text AS body", [WORDS])
        cursor.execute("REVOKE ALL ON items_2025 FROM PUBLIC")
        cursor.execute(f'REVOKE ALL ON items_2025 FROM "{settings.ARGUS_APP_ROLE}"')
        cursor.execute(f'GRANT SELECT ON seen TO "{settings.ARGUS_APP_ROLE}"')
    assert places(proof.search(words(WORDS))) == {
        ("old.items", "body"), ("old.words", "v"), ("seen", "body"), ("items_2025", proof.UNREAD),
    }  # fmt: skip


MULLER = "Wir beschließen heute: Müllers Schlüssel liegen für immer drüben in der Küche."


@pytest.mark.parametrize(
    "text",
    [
        normalize("NFD", MULLER),
        MULLER.replace("Schlüssel", "Schlüs\u00adsel"),
        MULLER.replace("heute", "he\u200bute"),
    ],
)
def test_it_knows_words_again_however_they_are_written(text: str) -> None:
    assert words(MULLER).in_text(text) == words(MULLER).windows == words(text).windows


@pytest.mark.parametrize(
    "around", ["{}", "```json\n{}\n```", "Here: {}", "<think>so</think>{}", "{} and {}"]
)
def test_it_reads_json_wherever_it_stands_in_a_text(around: str) -> None:
    lines = "wir beschließen:\nMüllers Schlüssel\tliegen für\nimmer drüben in der Küche"
    reply = around.replace("{}", json.dumps({"why": lines}))
    known_ = words(lines)
    found = {one for text in scan.texts(reply) for one in known_.in_text(text)}
    assert found == known_.windows


@pytest.mark.django_db
@pytest.mark.parametrize("compressed", [False, True])
def test_it_reads_the_arguments_of_a_task_that_ran(compressed: bool) -> None:
    data = pickle.dumps({"detail": f"Failing row contains ({WORDS})", "key": ["hunter2 Xy9"]})
    packed = base64.b64encode(zlib.compress(data) if compressed else data).decode()
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO django_q_task (id, name, func, args, started, stopped, success,"
            " attempt_count) VALUES ('a', 'a', 'f', %s, now(), now(), false, 1)",
            [packed],
        )
    for said in (WORDS, "hunter2 Xy9"):
        assert places(proof.search(words(said))) == {("django_q_task", "args")}
