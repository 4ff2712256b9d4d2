"""`demo`: the story comes out, twice, from rows alone, and the pasted secrets are nowhere.

How: the command itself runs twice on a clone with the real embedder; what it says is compared
with what it said before and with the tables.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.test import Client, override_settings
from django.utils import timezone
from psycopg import sql
from pytest_django import DjangoDbBlocker

from argus.demo import tables
from argus.demo.script import MADE_UP
from argus.demo.story import OWNER, play
from argus.rebuilding.rebuild import rebuild
from memory.access import principal
from memory.edits import edit_note
from memory.files import capture_files
from memory.llm.minilm import shared
from memory.models import (
    Claim,
    DistillFailure,
    GateRejection,
    Note,
    RawItem,
    RejectionDecision,
)
from review import holds
from tests import cluster

#: What is pasted in the Codex session, and what the scripted reply makes up.
SECRETS = ("ghp_", "s3agull", "s3a-breeze-2026")

FOLDER = cluster.ROOT / "tests" / "fixtures" / "demo"


class Told(NamedTuple):
    """What two runs said: first as JSON, then as text, then as JSON after a person decided.
    `looked`: what verify and reconcile found right after the first."""

    first: dict[str, Any]
    looked: dict[str, list[Any]]
    text: str
    later: dict[str, Any]


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command("demo", *arguments, stdout=out, no_color=True)
    return out.getvalue()


def found(command: str, *arguments: str) -> list[Any]:
    """What a look at the record finds, as the demo's owner."""
    out = io.StringIO()
    at = settings.ARGUS.model_copy(update={"principal": OWNER})
    with override_settings(ARGUS=at), suppress(SystemExit):
        call_command(command, *arguments, "--json", stdout=out)
    rows: list[Any] = json.loads(out.getvalue())["rows"]
    return rows


@pytest.fixture(scope="module")
def told(
    template_db: str,
    django_db_blocker: DjangoDbBlocker,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Told]:
    with django_db_blocker.unblock(), cluster.copied(template_db):
        vault = f"--vault={tmp_path_factory.mktemp('demo') / 'vault'}"
        first = json.loads(run("--json", vault))
        looked = {"verify": found("verify"), "reconcile": found("reconcile", "--full")}
        text = run(vault)
        for hold in holds.pending(principal(OWNER)):
            holds.approve(hold.pk, by=principal(OWNER), now=timezone.now())
        edited = Note.objects.visible_to(principal(OWNER)).live(timezone.now()).earliest("pk")
        edit_note(
            edited.pk, title=edited.title, content=f"{edited.content} Since spring.",
            by=principal(OWNER), now=timezone.now(), reason="",
        )  # fmt: skip
        yield Told(first, looked, text, json.loads(run("--json", vault)))


def test_it_tells_the_whole_story(told: Told) -> None:
    assert told.first["ok"], told.first["checks"]
    assert all(told.first["checks"].values())


def test_it_leaves_a_record_in_which_nothing_is_found(told: Told) -> None:
    assert told.looked == {"verify": [], "reconcile": []}


def test_it_has_rows_for_every_table(told: Told) -> None:
    first = told.first
    assert len(first["capture"]["sources"]) == 5
    assert first["segment"]["projects"] and first["segment"]["checks"]
    assert set(first["segment"]["reasons"]) == {"size", "gap", "topic", "session_end"}
    assert first["distill"]["shown"] and first["distill"]["rejections"]
    assert first["embed"]["notes"] and first["embed"]["turns"]
    assert {one["verdict"] for one in first["dedup"]["told"]} == {
        "duplicate", "refine", "supersede",
    }  # fmt: skip
    stages = {run["stage"] for run in first["runs"]}
    assert stages == {"segment", "distill", "embed", "dedup", "track", "export"}
    assert [one["outcome"] for one in first["recalls"]] == ["injected", "gated", "below_floor"]


def test_it_comes_out_as_the_page_beside_the_story_says(told: Told) -> None:
    kinds = {(one["verdict"], one["status"]): one["n"] for one in told.first["dedup"]["kinds"]}
    kinds.pop(("distinct", "applied"))
    assert kinds == {
        ("duplicate", "applied"): 5,
        ("refine", "applied"): 1,
        ("supersede", "applied"): 1,
        ("supersede", "pending"): 2,
    }
    assert told.first["segment"]["episodes"] == 20
    assert told.first["files"]["duplicates"] == 12


def test_it_lets_the_real_gate_refuse_what_a_model_would_invent(told: Told) -> None:
    refused = GateRejection.objects.as_pipeline().filter(candidate__content=MADE_UP).order_by("pk")
    first, again = refused
    assert first.reason == "grounding"
    assert set(told.first["distill"]["rejected"]) == {
        "shape", "poison", "injection", "grounding", "title", "secret", "rejected",
    }  # fmt: skip
    # What its owner never wants to learn is refused when it is made up again, from wherever.
    assert again.reason == "rejected" and again.raw_item_id and OWNER in again.detail
    decision = RejectionDecision.objects.get()
    assert (decision.rejection_id, decision.action) == (first.pk, "forbid")
    assert not Note.objects.as_pipeline().filter(content__icontains="kafka").exists()


def test_it_parks_the_unit_whose_reply_cannot_be_read(told: Told) -> None:
    claim = Claim.objects.get(parked_at__isnull=False)
    failures = DistillFailure.objects.filter(unit=claim.unit).order_by("attempt")
    assert [row.attempt for row in failures] == [1, 2, 3, 4, 5]
    assert all(row.reply for row in failures)


def test_it_lets_a_visitor_look_at_the_pages_as_its_owner(told: Told) -> None:
    visitor = told.first["visitor"]
    assert told.later["visitor"] == {"name": visitor["name"], "password": None}
    browser = Client()
    assert browser.post(
        "/ui/login/", {"username": visitor["name"], "password": visitor["password"]}
    ).has_header("Location")
    page = browser.get("/ui/notes/").content.decode()
    assert "db-staging" in page


def test_it_stores_nothing_the_second_time_and_still_prints_the_rows(told: Told) -> None:
    assert "nothing stored: all 125 items were there already" in told.text
    for word in (
        "CAPTURE", "SEGMENT", "DISTILL", "EMBED", "DEDUP", "TRACK", "RECALL", "CONTEXT", "EXPORT",
    ):  # fmt: skip
        assert f"\n{word}: " in told.text
    assert "NO  " not in told.text and "WHERE TO LOOK NEXT" in told.text
    assert "#" in told.text and "Kafka" in told.text


def test_it_fits_into_a_hundred_columns(told: Told) -> None:
    assert max(map(tables.columns, told.text.splitlines())) <= tables.LINE_COLUMNS_MAX


def test_it_still_comes_out_after_a_person_has_decided(told: Told) -> None:
    assert told.later["ok"], told.later["checks"]
    assert told.later["files"]["stored"] == 0
    statuses = {one["status"] for one in told.later["dedup"]["kinds"]}
    assert statuses == {"applied", "approved"}
    assert told.later["capture"]["captured"] == told.first["capture"]["captured"]
    assert told.later["capture"]["raw_items"] == told.first["capture"]["raw_items"] + 1


def test_it_is_made_again_as_it_is_after_a_person_has_decided(told: Told) -> None:
    report = rebuild(by=principal(OWNER), now=timezone.now())
    assert told.later["ok"] and report.identical and not report.troubles, report.as_json()


def test_it_leaves_no_secret_anywhere_in_the_database(told: Told) -> None:
    assert any(secret in path.read_text() for path in FOLDER.rglob("*.jsonl") for secret in SECRETS)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name, column_name FROM information_schema.columns"
            " WHERE table_schema = current_schema()"
            " AND data_type IN ('text', 'character varying', 'jsonb', 'json', 'ARRAY', 'tsvector')"
        )
        columns = cursor.fetchall()
        assert ("memory_rawitem", "body") in columns
        for table, column in columns:
            query = sql.SQL("SELECT count(*) FROM {} WHERE {}::text LIKE ANY(%s)").format(
                sql.Identifier(table), sql.Identifier(column)
            )
            cursor.execute(query, [[f"%{secret}%" for secret in SECRETS]])
            assert cursor.fetchone() == (0,), (table, column)


def test_it_leaves_a_vault_that_follows_what_a_person_decides(told: Told) -> None:
    first, later = told.first["export"], told.later["export"]
    assert first["report"]["written"] == first["files"] > 30
    assert first["report"]["conflicts"] == later["report"]["conflicts"] == 0
    assert first["report"]["linked"] > 0
    # Two held supersessions were approved: two notes left, and their files went to the heirs.
    assert later["files"] == first["files"] - 2
    vault, links = Path(later["vault"]), 0
    for path in vault.rglob("*.md"):
        assert not any(secret in path.read_text() for secret in SECRETS)
        linked = re.findall(r"\[\[([^\[\]|]+)\|", path.read_text())
        assert all((vault / f"{target}.md").is_file() for target in linked), path
        links += len(linked)
    assert links >= later["files"]
    captured = capture_files([vault], owner=principal(OWNER))
    assert captured.refused == {"derived": later["files"]}
    assert captured.stored == captured.duplicates == 0


def test_it_stays_apart_from_a_memory_that_was_there_before(clone_db: str, tmp_path: Path) -> None:
    shared()
    owner = principal()
    capture_files([FOLDER.parent / "transcripts" / "note.md"], owner=owner)
    for story in (play(tmp_path / "vault"), play(tmp_path / "vault")):
        assert story.ok and story.owner == OWNER != owner.name
    assert RawItem.objects.visible_to(owner).count() == 1
    assert any(
        f"ARGUS_PRINCIPAL={OWNER}" in line for page in tables.pages(story) for line in page.lines
    )
