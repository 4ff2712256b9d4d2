"""The canonical form: what holds the same says the same, whatever numbers a database gave it."""

from __future__ import annotations

import psycopg
from django.db import connection

from argus import canonical, postgres
from memory.models import Decision, Evidence, Note, RejectionDecision
from tests import cluster
from tests.memory.books import fill

#: Other numbers for refusals and verdicts, and for whatever points to them.
RENUMBER = """
SET session_replication_role = replica;
UPDATE memory_gaterejection SET id = id + 1000;
UPDATE memory_rejectiondecision SET id = id + 7, rejection_id = rejection_id + 1000;
UPDATE memory_rejectedfact SET rejection_id = rejection_id + 1000;
UPDATE memory_dedupverdict SET id = id + 1000;
UPDATE memory_decision SET verdict_id = verdict_id + 1000;
UPDATE memory_evidence SET id = id + 1000;
"""


def test_it_tells_every_row_and_no_number_that_a_database_gave(clone_db: str) -> None:
    fill()
    before = canonical.digests()
    with connection.cursor() as cursor:
        for model in canonical.told():
            cursor.execute(f"SELECT count(*) FROM {model._meta.db_table}")
            assert before[model._meta.db_table].rows == cursor.fetchone()[0], model
    assert all(before[one._meta.db_table].rows for one in (Decision, RejectionDecision, Evidence))
    edge = Evidence.objects.select_related("raw_item").exclude(raw_item=None).earliest("pk")
    row = next(one for one in canonical.rows(Evidence) if str(edge.note_id) in one)
    assert edge.raw_item is not None and edge.raw_item.dedup_key in row
    name = connection.settings_dict["NAME"]
    with psycopg.connect(postgres.url(cluster.home(), postgres.SUPERUSER, name)) as other:
        other.execute(RENUMBER)
    assert canonical.digests() == before
    note = Note.objects.as_pipeline().earliest("pk")
    Note.objects.as_pipeline().filter(pk=note.pk).update(confidence=0.77)
    after = canonical.digests()
    assert [table for table in after if after[table] != before[table]] == ["memory_note"]
