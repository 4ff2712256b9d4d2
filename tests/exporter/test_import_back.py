"""A vault captured: a person's own words come in as syntheses, what Argus wrote never does."""

from __future__ import annotations

import io
import json
import os
import shutil
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import call_command
from django.db import transaction
from django.utils import timezone
from hypothesis import given, settings
from hypothesis import strategies as st

from exporter.document import Face, Quote, note_page
from exporter.export import export
from exporter.place import Place, around_vault
from memory import verdicts
from memory.access import principal
from memory.files import capture_files
from memory.intake import Incoming
from memory.ledger import emit
from memory.models import Note, Principal, RawItem
from memory.pipeline import process
from memory.stages.capture import capture
from memory.text import region
from memory.transcripts import Reading, Turn, read, read_open, walk
from memory.verdicts import corroborates
from tests.exporter.vaults import ID, a_vault, page, put
from tests.factories import T0, at, document, items, note, verdict

OWN = "I looked again in May: the jobs of the shop moved from Redis to Postgres, and stay there.\n"


def captured(*paths: Path, **options: Any) -> dict[str, Any]:
    out = StringIO()
    call_command("capture", *map(str, paths), "--json", stdout=out, **options)
    report: dict[str, Any] = json.loads(out.getvalue())
    return report


def read_all(path: Path, source: str | None = None) -> tuple[list[Turn], dict[str, int]]:
    reading = Reading()
    found = [one for one in read(path, source, reading=reading) if isinstance(one, Turn)]
    return found, dict(reading.skipped)


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    return a_vault(tmp_path / "Notes")


# What is read of a file.


def test_it_takes_of_our_file_what_stands_below_the_line(vault: Path) -> None:
    path = put(vault, "shop/Redis holds the jobs.md", page(own=f"\n{OWN}"))
    (turn,), skipped = read_all(path)
    assert (turn.kind, turn.source, turn.role, turn.body) == (
        "synthesis", "vault", "user", OWN.strip(),
    )  # fmt: skip
    assert turn.metadata["title"] == "Redis holds the jobs"
    assert (turn.metadata["argus_id"], turn.project) == (ID, "shop")
    text = path.read_text()
    assert text[turn.locator["start"] : turn.locator["end"]] == turn.body
    assert text.splitlines()[turn.locator["line"] - 1] == OWN.strip()
    assert skipped == {"derived": 1}


@pytest.mark.parametrize("own", ["", "\n", " \n\t\n"])
def test_it_takes_nothing_where_nobody_wrote(vault: Path, own: str) -> None:
    assert read_all(put(vault, "shop/a.md", page(own=own))) == ([], {"derived": 1})


def test_it_takes_nothing_of_our_file_whose_line_is_gone(vault: Path) -> None:
    text = page(own=OWN).replace(region.MARKER, "")
    assert read_all(put(vault, "shop/a.md", text)) == ([], {"derived": 1})


@pytest.mark.parametrize("end", ["\r\n", "\n"])
def test_it_finds_the_line_whatever_an_editor_ends_lines_with(vault: Path, end: str) -> None:
    path = put(vault, "shop/a.md", "")
    path.write_bytes(page(own=OWN).replace("\n", end).encode())
    (turn,), _ = read_all(path)
    assert turn.body.strip() == OWN.strip()


def test_it_names_words_by_themselves_alone(vault: Path) -> None:
    one = put(vault, "shop/a.md", page("One", own=OWN))
    first = read_all(one)[0][0].record_id
    other = put(vault, "shop/b.md", page("Two", "Another body.", own=f"\n{OWN}\n", argus_id="x"))
    assert read_all(other)[0][0].record_id == first
    more = put(vault, "shop/b.md", page("Two", own=f"{OWN}And more.\n"))
    assert read_all(more)[0][0].record_id != first


def test_a_persons_own_note_is_a_synthesis_of_the_folders_project(vault: Path) -> None:
    put(vault, "c-sharp/_index.md", page("Index", argus_id="index:c-sharp", project="'C#: it''s'"))
    path = put(vault, "c-sharp/My plan.md", f"# My plan\n\n{OWN}")
    (turn,), skipped = read_all(path)
    assert (turn.kind, turn.source, turn.body) == ("synthesis", "vault", path.read_text())
    assert (turn.project, turn.metadata["title"], skipped) == ("C#: it's", "My plan", {})
    assert read_all(put(vault, "elsewhere/My plan.md", OWN))[0][0].project is None


def test_a_note_is_known_by_its_place_in_the_vault(vault: Path, tmp_path: Path) -> None:
    path = put(vault, "shop/Mine.md", OWN)
    first = read_all(path)[0][0].record_id
    moved = shutil.move(vault, tmp_path / "Other")
    assert read_all(Path(moved) / "shop/Mine.md")[0][0].record_id == first
    put(Path(moved), "shop/Mine.md", OWN + "More.\n")
    assert read_all(Path(moved) / "shop/Mine.md")[0][0].record_id != first


def test_a_home_of_argus_is_no_vault(tmp_path: Path) -> None:
    """Argus keeps its data in ~/.argus: every file of a home lies beside one."""
    (tmp_path / ".argus").mkdir()
    (tmp_path / ".argus" / "secret_key").write_text("k")
    (turn,), _ = read_all(put(tmp_path, "notes/tea.md", OWN))
    assert (turn.kind, turn.source) == ("document", "file")


def test_it_reads_nothing_of_folders_that_are_no_notes(vault: Path) -> None:
    for name in (".obsidian/plugin.md", ".trash/gone.md", ".argus/tmp/half.md"):
        put(vault, name, OWN)
    assert list(walk([vault])) == []
    for name, reason in ((".obsidian/plugin.md", "hidden"), (".argus/tmp/half.md", "derived")):
        assert read_all(vault / name) == ([], {reason: 1})


def test_a_copy_without_front_matter_is_known_by_its_end(tmp_path: Path) -> None:
    text = page(own=OWN).split("---", 2)[2]
    (turn,), skipped = read_all(put(tmp_path, "copy.md", text))
    assert (turn.body, turn.kind, skipped) == (OWN.strip(), "synthesis", {"derived": 1})
    told = f"# Vaults\n\nFiles end with `{region.MARKER}`, as here:\n\n    {region.MARKER}\n"
    (turn,), skipped = read_all(put(tmp_path, "about.md", told))
    assert (turn.body, skipped) == (told, {})


@pytest.mark.parametrize("source", [None, "file", "vault"])
@pytest.mark.parametrize("suffix", [".md", ".txt"])
def test_a_copy_of_our_file_is_known_wherever_it_lies(
    tmp_path: Path, source: str | None, suffix: str
) -> None:
    path = put(tmp_path, f"copy{suffix}", page())
    assert read_all(path, source) == ([], {"derived": 1})


@given(
    st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=200),
    st.text(
        alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=90
    ),
)
def test_the_line_parts_any_file_in_two(above: str, below: str) -> None:
    data = f"{above}\n{region.MARKER}\n{below}".encode()
    managed, own = region.split(data)
    assert own is not None and managed + own == data
    if region.MARKER not in above:
        assert own == below.encode()


WORDS = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=80)


@settings(deadline=None)
@given(title=WORDS, project=WORDS, content=WORDS, own=WORDS)
def test_it_reads_of_any_page_what_the_exporter_put_there(
    title: str, project: str, content: str, own: str
) -> None:
    """Titles and projects come back as they stand in the front matter, whatever they are."""
    face = Face(
        argus_id=ID, title=title, project=project, level="note", kind="semantic", importance=0.5,
        confidence=0.5, tags=(), created=T0, valid_from=T0, valid_to=None, sources=(),
        content=content, quotes=(Quote(content, "s1", T0, "user", "claude-code"),),
    )  # fmt: skip
    managed = note_page(face)
    data = managed + own.encode()
    reading = Reading(source="file")
    found = list(read_open(io.BytesIO(data), "page.md", "file", reading=reading))
    turns = [one for one in found if isinstance(one, Turn)]
    assert reading.skipped == {"derived": 1}
    kept = own.replace("\0", "").strip()
    assert [one.body for one in turns] == ([kept] if kept else [])
    front = yaml.safe_load(region.front(managed) or b"")
    for one in turns:
        assert one.metadata["argus_id"] == front["argus_id"] == ID
        assert one.metadata["title"] == front["aliases"][0]
        assert (one.project or "") == front["project"]


@given(st.binary(max_size=300))
def test_no_bytes_trouble_it(data: bytes) -> None:
    parts = region.split(data)
    assert parts.managed + (parts.region or b"") == data
    region.identity(data)
    region.identity(b"---\n" + data)


def test_a_pipe_in_place_of_an_index_keeps_nobody_waiting(vault: Path) -> None:
    path = put(vault, "shop/Mine.md", OWN)
    os.mkfifo(vault / "shop/_index.md")
    (turn,), _ = read_all(path)
    assert turn.project is None


@pytest.mark.parametrize("escape", ["\\U00110000", "\\UFFFFFFFF", "\\uD800"])
def test_a_character_that_there_is_not_stops_no_import(vault: Path, escape: str) -> None:
    text = page(own=OWN, project=f'"a{escape}b"').replace("- Redis", f'- "{escape}Redis')
    (turn,), _ = read_all(put(vault, "shop/a.md", text.replace("jobs\n---", 'jobs"\n---')))
    assert (turn.project, turn.body) == ("a\ufffdb", OWN.strip())


def test_it_reads_nothing_that_lies_outside(vault: Path, tmp_path: Path) -> None:
    (tmp_path / "passwd").write_text("root of all of it\n")
    (vault / "a.md").symlink_to(tmp_path / "passwd")
    (vault / "b.md").symlink_to(put(tmp_path, "other.md", page(own=OWN)))
    for name in ("a.md", "b.md"):
        assert read_all(vault / name) == ([], {"link": 1})


def test_it_says_where_words_stand_in_the_file_whatever_was_taken_out(vault: Path) -> None:
    path = put(vault, "shop/a.md", page(own=f"\0\n\0{OWN}"))
    (turn,), _ = read_all(path)
    text = path.read_text()
    assert text[turn.locator["start"] : turn.locator["end"]] == turn.body == OWN.strip()
    assert text.split("\n")[turn.locator["line"] - 1].strip("\0") == OWN.strip()


def test_a_text_that_shows_our_lines_as_code_is_none_of_ours(tmp_path: Path) -> None:
    shown = f"## Evidence\n\n{region.HEADING}\n{region.MARKER}\n"
    told = f"# Vaults\n\n````markdown\n```text\ncode\n{shown}````\n\nSo they end.\n"
    (turn,), skipped = read_all(put(tmp_path, "about.md", told))
    assert (turn.body, skipped) == (told, {})
    copied = page(body="````text\n```\n````").split("---", 2)[2]
    assert read_all(put(tmp_path, "copy.md", copied)) == ([], {"derived": 1})


@pytest.mark.django_db
def test_a_vault_of_another_person_is_not_read(vault: Path) -> None:
    put(vault, "shop/a.md", page(own=OWN))
    put(vault, "Mine.md", OWN)
    sign = vault / region.OURS / region.SIGN
    sign.write_text(f"{sign.read_text()}{region.OWNER}alice\n")
    for path in (vault, vault / "shop/a.md"):
        report = capture_files([path], owner=principal("bob"))
        assert report.stored == 0 and set(report.refused) == {"others_vault"}
    assert capture_files([vault], owner=principal("alice")).stored == 2
    assert RawItem.objects.as_pipeline().filter(owner__name="alice").count() == 2


# Into the record.


@pytest.mark.django_db
@pytest.mark.usefixtures("local")
def test_words_are_as_old_as_when_they_were_written(tmp_path: Path) -> None:
    """A page is written anew whenever a neighbour comes; that says nothing new below the line."""
    alice, folder = principal("alice"), tmp_path / "Vault"
    said = "The staging database of the harbour listens on port"
    one = note(alice, f"{said} 8080 {said}", title="One")
    with around_vault(Place(folder, "alice")):
        export()
        (path,) = folder.rglob("One.md")
        with path.open("a") as file:
            file.write("The port is 8081.\n")
        os.utime(path, (T0.timestamp(), T0.timestamp()))
        before = path.stat()
        for at_day in (1, 2):
            note(alice, f"{said} 808{at_day} {said}", when=at(days=at_day))
            assert export().written >= 3
        # Told apart by whoever goes by size and time.
        assert before.st_mtime_ns < path.stat().st_mtime_ns
        newer = note(alice, f"{said} 9090 {said}", title="New", when=at(days=3))
        with transaction.atomic():
            verdicts.apply(verdict(newer, one, "supersede", status="applied"), now=timezone.now())
        assert export().renamed >= 1
        capture_files([folder], owner=alice)
    item = RawItem.objects.as_pipeline().get(source="vault")
    assert item.body == "The port is 8081."
    assert abs(item.occurred_at - T0) < timedelta(minutes=1)


@pytest.mark.django_db
def test_a_vault_is_captured_once_and_changed_words_are_new(vault: Path) -> None:
    put(vault, "shop/a.md", page(own=OWN))
    put(vault, "shop/b.md", page("Nothing said", "Another body of ours.", argus_id="b"))
    put(vault, "My own.md", "# My own\n\nThe parcels of the shop leave from Leipzig on Fridays.\n")
    first = captured(vault)
    assert (first["stored"], first["refused"]) == (2, {"derived": 2})
    assert first["sources"] == {"vault": 2}
    me = principal()
    rows = RawItem.objects.visible_to(me).order_by("pk")
    assert {(row.kind, row.source, row.role) for row in rows} == {("synthesis", "vault", "user")}
    again = captured(vault)
    assert (again["stored"], again["duplicates"]) == (0, 2)

    # An export since: the note got another name, another body and another heir.
    (vault / "shop/a.md").unlink()
    later = put(vault, "shop/c.md", page("Renamed", "A newer body.", own=OWN, argus_id="c"))
    os.utime(later, (2_000_000_000 - 300_000_000, 2_000_000_000 - 300_000_000))
    assert (report := captured(vault))["stored"] == 0, report
    put(vault, "shop/c.md", page("Renamed", own=f"{OWN}\nAnd the parcels go by train.\n"))
    assert captured(vault)["stored"] == 1
    bodies = [row.body for row in RawItem.objects.visible_to(me)]
    assert not any("held by Redis" in body or "newer body" in body for body in bodies)


@pytest.mark.django_db
def test_a_dry_run_of_a_vault_counts_the_same(vault: Path) -> None:
    put(vault, "shop/a.md", page(own=OWN))
    put(vault, "shop/b.md", page(own=OWN, argus_id="b"))
    dry = captured(vault, dry_run=True)
    assert dry == captured(vault)
    assert (dry["stored"], dry["duplicates"]) == (1, 1)


@pytest.mark.django_db
def test_words_of_a_vault_become_notes_that_quote_them(vault: Path) -> None:
    put(vault, "shop/a.md", page(own=OWN))
    put(
        vault, "Own.md",
        "# Decisions\n\nWe decided to keep the parcel labels in Leipzig, never in Hamburg.\n",
    )  # fmt: skip
    assert captured(vault)["stored"] == 2
    report = process()
    assert report.ok and report.stages["distill"]["items_distilled"] == 2
    quotes = {
        edge.quote
        for note in Note.objects.visible_to(principal()).live(timezone.now())
        for edge in note.evidence.all()
    }
    assert any("moved from Redis to Postgres" in quote for quote in quotes), quotes
    assert any("parcel labels in Leipzig" in quote for quote in quotes), quotes
    assert process().stages["distill"]["items_distilled"] == 0


@pytest.mark.django_db
@pytest.mark.parametrize("told", [True, False])
def test_words_under_a_note_make_it_no_more_certain(told: bool) -> None:
    """Who reads a note in the vault and says it again below has said nothing new."""
    me = principal()
    old = note(me, "The jobs of the shop moved to Postgres.")
    if told:
        emit("The page.", owner=me, kind="vault", reference=str(old.pk), now=timezone.now())
    own = Incoming(
        source="vault", kind="synthesis", role="user", original_timestamp=at(days=1),
        body="I agree. The jobs of the shop moved to Postgres.",
    )  # fmt: skip
    (item,) = items(me, own)
    new = note(me, "The jobs of the shop moved to Postgres.", when=at(days=1), evidence=item)
    assert corroborates(new, old) is not told


@pytest.mark.django_db
def test_a_note_of_ones_own_is_one_voice_however_often_it_is_edited() -> None:
    alice, bob = principal("alice"), principal("bob")
    said = "The jobs of the shop moved to Postgres."

    def written(owner: Principal, body: str, number: int, source: str = "vault") -> Note:
        own = Incoming(
            source=source, kind="synthesis", role="user", body=body, original_timestamp=at(number)
        )
        (item,) = items(owner, own)
        return note(owner, said, when=at(number), evidence=item)

    old = written(alice, said, 0)
    long = " ".join(f"Number {n} is about something else altogether." for n in range(40))
    assert not corroborates(written(alice, f"{said} {long}", 1), old)
    assert corroborates(written(alice, f"{long} {said}", 2, source="file"), old)
    assert corroborates(written(bob, f"{said} {long} So it is.", 3), old)


@pytest.mark.django_db
def test_our_file_posted_by_any_door_is_refused() -> None:
    alice = principal("alice")
    bodies = (page(), page().split("---", 2)[2])
    posted = [
        Incoming(source="api", kind=kind, body=body)
        for kind in ("document", "synthesis")
        for body in bodies
    ]
    report = capture(posted, owner=alice, now=timezone.now())
    assert (report.stored, report.refused) == (0, {"derived": 4})
    own = "---\ntitle: mine\n---\n\nThe parcels leave from Leipzig."
    assert document(alice, own).body == own
    told = "What does this file of the vault say?\n\n" + page()
    assert len(items(alice, Incoming(source="claude-code", role="user", body=told))) == 1
