"""The one way past append-only: the purge function, its ledger, and what it leaves."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.db import DatabaseError, ProgrammingError, connection, transaction

from argus.owner import as_owner
from memory.access import principal
from memory.acts import record_act
from memory.edits import edit_note
from memory.keeping import pin
from memory.llm.kept import Key, keep_reply
from memory.models import (
    Act,
    Claim,
    Decision,
    DedupVerdict,
    DistillFailure,
    Episode,
    Evidence,
    GateRejection,
    ModelReply,
    Note,
    Proposal,
    PurgeLedger,
    RawItem,
    RejectionDecision,
    Session,
    TaskItem,
)
from memory.pipeline import process
from memory.stages.distill import distill
from memory.stages.segment import segment
from memory.text.identity import sha256
from tests import factories
from tests.cluster import owner_address
from tests.memory.books import DECIDED, count, owner_role, purge, two_sessions


@pytest.fixture(autouse=True)
def _quick(local: Callable[..., None]) -> None:
    """Vectors made of words: nothing here is about meaning."""


def notes(**named: Any) -> list[Any]:
    return list(Note.objects.as_pipeline().filter(**named).order_by("pk"))


def items_of(episode: Episode) -> list[int]:
    return list(episode.turns.values_list("raw_item_id", flat=True))


def words_kept(words: str) -> list[str]:
    """Tables of memory in which a row still holds these words."""
    found = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names():
            cursor.execute(
                f"SELECT 1 FROM {table} t WHERE position(%s IN row_to_json(t)::text) > 0 LIMIT 1",
                [words],
            )
            if cursor.fetchone():
                found.append(table)
    return found


@pytest.mark.django_db
def test_it_removes_an_item_and_all_that_derives_from_it() -> None:
    first, second = two_sessions()
    canary = DECIDED[2]
    others = notes(episode=second)
    assert {"memory_rawitem", "memory_note", "memory_evidence"} <= set(words_kept(canary))
    GateRejection.objects.create(
        owner=first.owner, episode=first, reason="title", candidate={"content": canary}
    )
    DistillFailure.objects.create(unit=first.unit_key, kind="content", error=canary)
    key = Key.of("distill", "m", "1", [canary])
    keep_reply(key, canary, model_real="m", unit=first.unit_key)
    gone = items_of(first)
    report = purge(gone)
    assert words_kept(canary) == []
    assert not RawItem.objects.as_pipeline().filter(pk__in=gone).exists()
    assert not Episode.objects.as_pipeline().filter(pk=first.pk).exists()
    assert not ModelReply.objects.filter(units=[first.unit_key]).exists()
    assert report["raw_items"] == len(gone) and report["notes"] > 0
    assert notes() == others, "the other session has what it had"
    assert count("memory_evidence") > 0


@pytest.mark.django_db
def test_it_leaves_a_row_with_who_why_how_much_and_hashes_alone() -> None:
    first, _ = two_sessions()
    bodies = RawItem.objects.as_pipeline().filter(pk__in=items_of(first)).order_by("pk")
    hashes = [hashlib.sha256(row.body.encode()).hexdigest() for row in bodies]
    made = len(notes(episode=first))
    report = purge(items_of(first), actor="bob", reason="a customer asked")
    row = PurgeLedger.objects.get()
    assert (row.pk, row.actor, row.reason) == (report["ledger"], "bob", "a customer asked")
    assert row.hashes == hashes
    tables = row.counts.pop("tables")
    assert row.counts.pop("units") == [], "nothing of it is distilled again"
    assert row.counts == {"raw_items": 4, "episodes": 1, "notes": made, "verdicts": 0}
    assert (tables["memory_rawitem"], tables["memory_note"]) == (4, made)
    assert {name: report[name] for name in row.counts} == row.counts


@pytest.mark.django_db
def test_it_makes_the_unit_pending_again_and_distill_reads_what_remains() -> None:
    first, _ = two_sessions()
    turns = items_of(first)
    kept_quote, canary = DECIDED[0], DECIDED[2]
    assert any(canary in note.content for note in notes(episode=first))
    purge([turns[2]])
    first.refresh_from_db(from_queryset=Episode.objects.as_pipeline())
    assert first.distilled_at is None
    assert (first.turn_count, items_of(first)) == (3, [turns[0], turns[1], turns[3]])
    assert notes(episode=first) == [], "nothing that stood on the whole unit stays"
    distill(clock=factories.clock(factories.at(days=4)))
    assert any(kept_quote in note.content for note in notes(episode=first))
    assert words_kept(canary) == []


@pytest.mark.django_db
@pytest.mark.parametrize("place", [0, 3])
def test_it_moves_the_ends_of_an_episode_that_loses_one(place: int) -> None:
    first, _ = two_sessions()
    turns = items_of(first)
    purge([turns.pop(place)])
    first.refresh_from_db(from_queryset=Episode.objects.as_pipeline())
    assert (first.first_item_id, first.last_item_id) == (turns[0], turns[-1])


@pytest.mark.django_db
def test_it_leaves_a_note_the_evidence_that_it_has_elsewhere() -> None:
    first, second = two_sessions()
    kept = notes(episode=second)[0]
    edge = Evidence.objects.filter(note=kept).get()
    borrowed = Evidence.objects.filter(note__episode=first).first()
    assert borrowed is not None
    # What a duplicate hands over when it is retired.
    Evidence.objects.create(
        note=kept, raw_item=borrowed.raw_item, quote=borrowed.quote, start=borrowed.start,
        end=borrowed.end, sha256=borrowed.sha256, origin="duplicate",
    )  # fmt: skip
    purge(items_of(first))
    assert list(Evidence.objects.filter(note=kept)) == [edge]
    assert notes(pk=kept.pk) == [kept]
    purge(items_of(second))
    assert notes(pk=kept.pk) == []


@pytest.mark.django_db
def test_it_removes_verdicts_and_decisions_about_what_goes_and_no_other() -> None:
    first, second = two_sessions()
    third = factories.note(
        first.owner, "The export is written at night.", when=factories.at(days=3)
    )
    old, new = notes(episode=first)[0], notes(episode=second)[0]
    about, shown = factories.verdict(new, old), factories.verdict(new, third, kind="distinct")
    beside = factories.verdict(third, new, kind="distinct", status="applied")
    DedupVerdict.objects.as_pipeline().filter(pk=shown.pk).update(status="applied")
    told = factories.verdict(
        third, new, kind="distinct", status="applied",
        candidates=[{"note": str(old.pk), "similarity": 0.5}], reasoning=old.content,
    )  # fmt: skip
    for row in (about, beside):
        Decision.objects.create(
            verdict=row, principal=first.owner, action="x", status_before="a", status_after="b"
        )
    reply = Key.of("judge", "m", "1", ["q"])
    keep_reply(reply, f"unlike {old.content}", model_real="m", unit=f"note:{new.pk}")
    purge(items_of(first))
    assert set(DedupVerdict.objects.as_pipeline().values_list("pk", flat=True)) == {
        shown.pk,
        beside.pk,
    }
    assert told.pk not in set(DedupVerdict.objects.as_pipeline().values_list("pk", flat=True))
    assert list(Decision.objects.values_list("verdict", flat=True)) == [beside.pk]
    assert not ModelReply.objects.exists(), "what a judge said of both goes with the one"


@pytest.mark.django_db
def test_it_takes_what_people_said_of_it_along() -> None:
    # An edit, and the edit of that, say mostly the words that go; so may a task, a pin's note, a
    # decision about a refusal, a proposal and the reason of an act.
    alice, now = principal("alice"), factories.at(days=3)
    item = factories.document(alice, "The borealis cluster listens on port 8443.")
    old = factories.note(alice, "The borealis cluster listens on port 8443.", evidence=item)
    new = edit_note(old.pk, title="Borealis", content="Borealis listens on port 8443 over TLS.",
                    by=alice, now=now, reason="borealis speaks TLS")  # fmt: skip
    newest = edit_note(new.pk, title="Borealis", content="Borealis has port 8443, over TLS 1.3.",
                       by=alice, now=now)  # fmt: skip
    pin(newest.pk, by=alice, now=now)
    refused = GateRejection.objects.create(
        owner=alice, raw_item=item, reason="grounding", candidate={"title": "borealis"}
    )
    RejectionDecision.objects.create(
        rejection=refused, principal=alice, action="confirm", reason="borealis is not"
    )
    Proposal.objects.create(
        owner=alice, unit=f"item:{item.pk}", notes=[{"title": "borealis"}], principal=alice
    )
    TaskItem.objects.create(
        owner=alice, opening="request", title="borealis", raw_item=item, start=0, end=3,
        quote="The", sha256=sha256("The"), opened_at=item.occurred_at,
    )  # fmt: skip
    purge([item.pk])
    assert words_kept("orealis") == []


@pytest.mark.django_db
def test_it_takes_along_what_was_said_of_the_sessions_it_touches_and_of_no_other() -> None:
    # A session is a unit as well: of segment, and of track.
    first, second = two_sessions()
    one, other = (
        f"session:{Session.objects.get(owner=first.owner, key=key).pk}" for key in ("s1", "s2")
    )
    for unit in (one, other):
        record_act(first.owner, "release", "unit", unit, now=factories.at(days=3),
                   reason="the borealis turn is too long")  # fmt: skip
        DistillFailure.objects.create(unit=unit, kind="content", error=f"borealis in {unit}")
        key = Key.of("segment", "m", "1", [unit])
        keep_reply(key, f"borealis is a new topic in {unit}", model_real="m", unit=unit)
    purge(items_of(first)[:1])
    assert list(Act.objects.filter(kind="unit").values_list("reference", flat=True)) == [other]
    assert list(DistillFailure.objects.values_list("unit", flat=True)) == [other]
    assert not ModelReply.objects.filter(units__contains=[one]).exists()
    assert ModelReply.objects.filter(units__contains=[other]).exists()
    purge(items_of(second))
    assert words_kept("borealis") == []


@pytest.mark.django_db
def test_it_forgets_what_a_session_was_parked_for_but_not_that_somebody_dismissed_it() -> None:
    first, second = two_sessions()
    one, other = (
        f"session:{Session.objects.get(owner=first.owner, key=key).pk}" for key in ("s1", "s2")
    )
    parked = {"parked_at": factories.at(days=3), "parked_reason": "borealis is no JSON"}
    away = {"dismissed_at": factories.at(days=3)}
    Claim.objects.create(stage="segment", unit=one, **parked, **away)
    Claim.objects.create(stage="track", unit=one, **parked)
    Claim.objects.create(stage="distill", unit=first.unit_key, **parked, **away)
    Claim.objects.create(stage="track", unit=other, **parked)
    purge(items_of(first)[:1])
    left = Claim.objects.exclude(parked_at=None).order_by("stage")
    assert list(left.values_list("stage", "unit", "dismissed_at", "parked_reason")) == [
        ("segment", one, factories.at(days=3), ""),
        ("track", other, None, "borealis is no JSON"),
    ]
    assert second.session == "s2"


@pytest.mark.django_db
def test_it_purges_documents() -> None:
    page = factories.document(principal("alice"), "\n\n".join(DECIDED))
    distill(clock=factories.clock(factories.at(days=1)))
    assert notes(raw_item=page)
    purge([page.pk])
    assert words_kept(DECIDED[0]) == []


@pytest.mark.django_db
def test_it_lets_what_is_left_go_through_the_whole_pipeline() -> None:
    first, _ = two_sessions()
    process(clock=factories.clock(factories.at(days=3)))
    purge(items_of(first)[:2])
    report = process(clock=factories.clock(factories.at(days=4)))
    assert report.ok
    assert count("memory_episode", "distilled_at IS NULL") == 0
    assert count("memory_note", "embedding IS NULL AND deleted_at IS NULL") == 0


@pytest.mark.django_db
def test_it_takes_a_purged_item_as_new_when_it_comes_again() -> None:
    first, _ = two_sessions()
    body = RawItem.objects.as_pipeline().get(pk=items_of(first)[0]).body
    purge(items_of(first))
    again = factories.turns(first.owner, [body])[0]
    assert again.pk not in items_of(first)
    segment(clock=factories.clock(factories.at(days=5)))
    assert count("memory_episodeturn", f"raw_item_id = {again.pk}") == 1


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("actor", "reason"), [("", "why"), ("who", ""), ("  ", "why"), ("who", "\t "), (None, "why")]
)
def test_it_refuses_a_purge_without_who_and_why(actor: Any, reason: Any) -> None:
    stored = post_one()
    with pytest.raises(DatabaseError), transaction.atomic():
        purge([stored], actor=actor, reason=reason)
    assert count("memory_rawitem") == 1 and count("memory_purgeledger") == 0


def post_one() -> int:
    factories.turns(principal("alice"), ["We keep it."])
    return int(RawItem.objects.as_pipeline().get().pk)


@pytest.mark.django_db
def test_it_answers_for_items_that_are_not_there() -> None:
    report = purge([999_999])
    assert (report["raw_items"], PurgeLedger.objects.get().hashes) == (0, [])


def test_a_row_of_an_earlier_transaction_lets_nothing_through(clone_db: str) -> None:
    factories.turns(principal("alice"), ["One.", "Two."])
    first, second = RawItem.objects.as_pipeline().order_by("pk").values_list("pk", flat=True)
    purge([first])
    assert PurgeLedger.objects.count() == 1
    with as_owner(), connection.cursor() as cursor, pytest.raises(ProgrammingError):
        cursor.execute("DELETE FROM memory_rawitem WHERE id = %s", [second])
    assert count("memory_rawitem") == 1


def test_a_rollback_undoes_all_of_it(clone_db: str) -> None:
    first, _ = two_sessions()
    tables = (
        "rawitem",
        "episode",
        "episodeturn",
        "note",
        "evidence",
        "segmentcheck",
        "purgeledger",
    )
    before = {name: count(f"memory_{name}") for name in tables}
    with transaction.atomic():
        purge(items_of(first))
        assert count("memory_note") < before["note"]
        transaction.set_rollback(True)
    assert {name: count(f"memory_{name}") for name in tables} == before


def test_it_opens_the_way_for_its_own_transaction_only(clone_db: str) -> None:
    """While one session purges, another one is refused as ever."""
    post_one()
    factories.turns(principal("alice"), ["Another."], session="s2")
    first, second = RawItem.objects.as_pipeline().order_by("pk").values_list("pk", flat=True)
    with transaction.atomic():
        purge([first])
        with (
            psycopg.connect(owner_address(clone_db)) as other,
            pytest.raises(psycopg.errors.InsufficientPrivilege),
        ):
            other.execute("DELETE FROM memory_rawitem WHERE id = %s", [second])
    assert count("memory_rawitem") == 1


@pytest.mark.django_db
def test_it_finds_the_public_tables_whatever_the_caller_made() -> None:
    stored = post_one()
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMP TABLE memory_rawitem (id bigint, sha256 text)")
        cursor.execute("SET LOCAL search_path = pg_temp, public")
        cursor.execute("SELECT public.argus_purge(%s, 'alice', 'asked')", [[stored]])
        cursor.execute("SELECT count(*) FROM public.memory_rawitem")
        assert cursor.fetchone() == (0,)


@pytest.mark.django_db
def test_it_may_be_called_by_the_application_and_its_owner_alone() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT r.rolname FROM pg_roles r WHERE NOT r.rolsuper"
            " AND has_function_privilege(r.oid, 'argus_purge(bigint[],text,text,jsonb)', 'EXECUTE')"
        )
        allowed = {name for (name,) in cursor.fetchall()}
    assert allowed == {settings.ARGUS_APP_ROLE, owner_role()}
