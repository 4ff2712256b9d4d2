"""Whatever the pages show, in proportion to the raw items: made up, written as the stages write it.

One raw item a minute, ending now; more of them reach further back, so that what happened lately
stays the same while the tables grow. By the role that owns the tables, which alone may do that.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import psycopg
from django.db import connection as django
from django.db import models

from memory.models import (
    AccessKey,
    Act,
    Attribution,
    CaptureReceipt,
    Claim,
    Decision,
    DedupVerdict,
    DistillFailure,
    Emission,
    Episode,
    EpisodeTurn,
    Evidence,
    Feedback,
    GateRejection,
    Injection,
    LlmCall,
    Note,
    PathRule,
    Pin,
    Principal,
    Project,
    ProjectAlias,
    RawItem,
    RejectionDecision,
    SegmentCheck,
    Session,
    StageRun,
    TaskEvent,
    TaskItem,
    TurnVector,
)
from recall.models import Impact
from review.models import Card, Draw
from tests.bench.load import Writing, analyze, stage, without

#: Raw items of a note, of an episode and of a session.
NOTE_ITEMS, EPISODE_ITEMS, SESSION_ITEMS = 10, 20, 40

#: As many however much was captured.
PROJECTS = 50

#: Days for which a stage ran every ten minutes.
RUN_DAYS = 14

#: The raw item of number `n` in SQL: one a minute, the last one now.
AT = "%(now)s::timestamptz - (%(behind)s - n + %(first)s) * interval '1 minute'"

#: Verdicts that wait for a person.
HOLDS = "mod(s.n, 10) = 4 AND s.n < 500"

REASONS = "'{ungrounded,trivial,poison,secret,duplicate,too_long,private,no_content}'::text[]"
REPLY = zlib.compress(("I could not find anything. " * 60).encode())


@dataclass
class Grown:
    """A database that grows, whose it is, and what was written last."""

    address: str
    owner: Principal
    model: str
    now: datetime
    writing: Writing = field(default_factory=Writing)
    items: int = 0


def grow(grown: Grown, items: int) -> None:
    """Up to so many raw items (a multiple of 1,000), and everything else in proportion."""
    from memory.searchtexts import index_items, index_notes

    first, more = grown.items, items - grown.items
    values = {
        "first": first,
        "last": items - 1,
        "behind": items - 1,
        "owner": grown.owner.pk,
        "now": grown.now,
        "model": grown.model,
        "reply": REPLY,
    }
    with (
        without(grown.address, "note_nearest", "turn_nearest"),
        # Why this cursor: a value finds its type by the column it goes into.
        psycopg.connect(grown.address, cursor_factory=psycopg.ClientCursor) as connection,
    ):
        if not first:
            _once(connection, values)
        writing = grown.writing
        stage(connection, writing.texts(more), writing.vectors(more), first, 12)
        _record(connection, values)
        connection.execute("DROP TABLE staged")
        count = more // NOTE_ITEMS
        start = first // NOTE_ITEMS
        stage(connection, writing.texts(count), writing.vectors(count), start, 11)
        _notes(connection, values)
        _around(connection, values)
        _said(connection, values)
    with without(grown.address, "posting_own", "posting_common", "posting_team"):
        for some in (index_notes, index_items):
            while some(limit=4_000):
                pass
    grown.items = items
    tables = (model._meta.db_table for model in _models())
    analyze(grown.address, *tables)


def _models() -> list[type[models.Model]]:
    from django.apps import apps

    rooms = ("memory", "review", "recall")
    return [model for model in apps.get_models() if model._meta.app_label in rooms]


def fill(
    connection: psycopg.Connection,
    model: type[models.Model],
    rows: str,
    values: dict[str, Any],
    /,
    **columns: str,
) -> None:
    """INSERT into a model's table what `columns` say in SQL of each of `rows` (everything
    behind FROM); a column that is not named has its default."""
    given = dict(values)
    told: dict[str, str] = {}
    for one in model._meta.concrete_fields:
        assert one.column is not None
        assert one.column is not None
        if one.column in columns:
            told[one.column] = columns[one.column]
        elif not (one.null or one.primary_key or one.has_db_default()):
            default = given["now"] if isinstance(one, models.DateTimeField) else one.get_default()
            given[f"default_{one.column}"] = one.get_db_prep_save(default, django)
            told[one.column] = f"%(default_{one.column})s"
    names = ", ".join(f'"{name}"' for name in told)
    sql = f"INSERT INTO {model._meta.db_table} ({names}) SELECT {', '.join(told.values())}"
    connection.execute(f"{sql} FROM {rows}".encode(), given)


def _once(connection: psycopg.Connection, values: dict[str, Any]) -> None:
    """Projects, keys and the runs of a fortnight."""
    span = f"generate_series(1, {PROJECTS}) n"
    fill(connection, Project, span, values, name="'project ' || n", origin="'cwd'")
    fill(
        connection, ProjectAlias, "memory_project", values,
        name="name || ' too'", project_id="id",
    )  # fmt: skip
    fill(
        connection, PathRule, "memory_project", values,
        prefix="'/home/me/src/p' || id", project_id="id",
    )  # fmt: skip
    fill(
        connection, AccessKey, "generate_series(1, 60) n", values,
        principal_id="%(owner)s", name="'hook ' || n", prefix="'argus_' || n",
        digest="'digest ' || n", scopes="'{capture,recall}'", last_used_at="%(now)s",
    )  # fmt: skip
    runs = (
        "unnest('{segment,distill,embed,dedup,track}'::text[]) stage,"
        f" generate_series(1, {RUN_DAYS * 144}) n"
    )
    fill(
        connection, StageRun, runs, values,
        stage="stage", status="CASE WHEN mod(n, 97) = 0 THEN 'failed' ELSE 'done' END",
        report="""'{"pending": 3, "episodes": 2, "notes_created": 4, "embedded": 4, "turns": 9,"""
        """ "distinct": 3, "refine": 1, "opened": 1}'""",
        started_at="%(now)s::timestamptz - n * interval '10 minutes'",
        heartbeat_at="%(now)s::timestamptz - n * interval '10 minutes'",
        finished_at="%(now)s::timestamptz - n * interval '10 minutes'",
    )  # fmt: skip


def _record(connection: psycopg.Connection, values: dict[str, Any]) -> None:
    """Raw items with their vectors, sessions, episodes with their checks, and refusals."""
    project = (
        f"CASE WHEN mod(n / {SESSION_ITEMS}, 10) < 9 THEN (SELECT min(id) FROM memory_project)"
    )
    project += f" + mod(n / {SESSION_ITEMS}, {PROJECTS}) END"
    common = {"owner_id": "%(owner)s", "source": "'claude-code'"}
    fill(
        connection, Session, f"(SELECT DISTINCT n / {SESSION_ITEMS} AS s FROM staged) t", values,
        **common, key="'made' || s", last_captured_at="%(now)s", tracked_at="%(now)s",
    )  # fmt: skip
    fill(
        connection, RawItem, "staged ORDER BY n", values, **common,
        role="CASE WHEN mod(n, 2) = 0 THEN 'user' ELSE 'assistant' END",
        # A turn in ten is a long one.
        body="text || CASE WHEN mod(n, 10) = 7 THEN repeat(' and so on', 600) ELSE '' END",
        session=f"'made' || n / {SESSION_ITEMS}", cwd="'/home/me/src/p'", project_id=project,
        project_method="'cwd'", occurred_at=AT, captured_at=AT, sha256="md5(text)",
        dedup_key="'made' || n",
    )  # fmt: skip
    connection.execute(
        "CREATE TEMP TABLE item AS SELECT i.id, s.n, s.text, s.embedding, i.occurred_at AS at,"
        " i.project_id, i.session"
        " FROM staged s JOIN memory_rawitem i ON i.dedup_key = 'made' || s.n"
    )
    connection.execute("CREATE INDEX ON item (n)")
    connection.execute("ANALYZE item")
    fill(
        connection, TurnVector, "item", values,
        raw_item_id="id", model="%(model)s", embedding="embedding", created_at="at",
    )  # fmt: skip
    number = f"item.n / {EPISODE_ITEMS}"
    ends = f"item JOIN item tail ON tail.n = item.n + {EPISODE_ITEMS - 1}"
    fill(
        connection, Episode, f"{ends} WHERE mod(item.n, {EPISODE_ITEMS}) = 0 ORDER BY item.n",
        values, **common, session="item.session", unit_key=f"'episode:made' || {number}",
        first_item_id="item.id", last_item_id="tail.id", turn_count=str(EPISODE_ITEMS),
        started_at="item.at", ended_at="tail.at", project_id="item.project_id",
        boundary_reason=f"('{{session_end,gap,size,topic}}'::text[])[1 + mod({number}, 4)]",
        boundary_score="0.4", project_method="'cwd'", project_confidence="0.9",
        cwd="'/home/me/src/p'", distilled_at="tail.at + interval '1 hour'",
        created_at="tail.at + interval '10 minutes'",
    )  # fmt: skip
    connection.execute(
        f"CREATE TEMP TABLE made AS SELECT e.id, item.n / {EPISODE_ITEMS} AS n, item.id AS item,"
        " e.ended_at AS at, e.project_id, e.session, e.unit_key"
        " FROM memory_episode e JOIN item ON item.id = e.first_item_id"
    )
    fill(
        connection, EpisodeTurn, f"item JOIN made ON made.n = item.n / {EPISODE_ITEMS}", values,
        episode_id="made.id", raw_item_id="item.id", position=f"mod(item.n, {EPISODE_ITEMS})",
    )  # fmt: skip
    fill(
        connection, SegmentCheck, "item, unnest('{gap,topic}'::text[]) look", values,
        raw_item_id="item.id", check_kind="look", score="0.3", threshold="0.5",
        fired=f"mod(item.n, {EPISODE_ITEMS}) = 0", created_at="at",
    )  # fmt: skip
    fill(
        connection, Attribution, "made", values, episode_id="id", project_id="project_id",
        method="'cwd'", confidence="0.9", cwd="'/home/me/src/p'", created_at="at",
    )  # fmt: skip
    fill(
        connection, GateRejection, "made ORDER BY n", values, owner_id="%(owner)s",
        episode_id="id", reason=f"({REASONS})[1 + mod(n, 8)]", detail="'the quote is not there'",
        candidate="jsonb_build_object('title', 'Refused ' || n, 'content', 'The port is ' || n,"
        " 'source_ref', 'the port is', 'importance', 0.5)",
        model_asked="'made'", model_real="'made'", created_at="at",
    )  # fmt: skip


def _notes(connection: psycopg.Connection, values: dict[str, Any]) -> None:
    """Notes with evidence and verdicts, a tenth of them retired; and some holds."""
    of = f"staged s JOIN made ON made.n = s.n * {NOTE_ITEMS} / {EPISODE_ITEMS}"
    fill(
        connection, Note, f"{of} ORDER BY s.n", values, id="s.id", owner_id="%(owner)s",
        title="left(s.text, 60)", content="s.text", confidence="0.5 + mod(s.n, 5) / 10.0",
        said_by="'user'", project_id="made.project_id", episode_id="made.id",
        session="made.session", unit_key="made.unit_key", content_key="md5(s.text)",
        embedding="s.embedding", embedding_model="%(model)s", embedded_at="made.at",
        valid_from="made.at - interval '1 hour'", created_at="made.at + interval '1 hour'",
        deleted_at="CASE WHEN mod(s.n, 10) = 9 THEN made.at + interval '2 hours' END",
        retired_reason="CASE WHEN mod(s.n, 10) = 9 THEN 'superseded' ELSE '' END",
    )  # fmt: skip
    connection.execute("CREATE INDEX ON staged (n)")
    fill(
        connection, Evidence, f"staged s JOIN item ON item.n = s.n * {NOTE_ITEMS}", values,
        note_id="s.id", raw_item_id="item.id", quote="left(item.text, 40)", start="0",
        end="40", sha256="md5(item.text)", created_at="item.at",
    )  # fmt: skip
    pairs = "staged s JOIN staged old ON old.n = s.n - 1 JOIN made ON made.n = s.n / 2"
    fill(
        connection, DedupVerdict, f"{pairs} ORDER BY s.n", values, owner_id="%(owner)s",
        note_id="s.id", target_id="old.id",
        verdict=f"CASE WHEN mod(s.n, 10) = 0 OR {HOLDS} THEN 'supersede' ELSE 'distinct' END",
        status=f"CASE WHEN {HOLDS} THEN 'pending' ELSE 'applied' END",
        similarity="0.8", reasoning="'The newer one says where it listens now.'",
        model_asked="'made'", model_real="'made'", created_at="made.at + interval '1 hour'",
    )  # fmt: skip


def _around(connection: psycopg.Connection, values: dict[str, Any]) -> None:
    """What programs did about it: acts, posts, calls, tasks, parked units."""
    tenth = "item WHERE mod(item.n, 10) = 0 ORDER BY item.n"
    mine = {"owner_id": "%(owner)s"}
    me = {"principal_id": "%(owner)s"}
    fill(
        connection, Act, tenth, values, **me, created_at="at", reference="id",
        verb="('{approve,retire,confirm,release,rate}'::text[])[1 + mod(n / 10, 5)]",
        kind="('{verdict,note,rejection,unit,project}'::text[])[1 + mod(n / 10, 5)]",
        reason="'because it is ' || n", detail="jsonb_build_object('before', 'pending')",
    )  # fmt: skip
    fill(
        connection, CaptureReceipt, tenth, values, **mine, source="'claude-code'", seen="10",
        stored="9", duplicates="1", created_at="at", milliseconds="7",
        refused="""'{"empty": 1}'""",
        client="""jsonb_build_object('name', 'hook', 'client', 'claude', 'version', 'abc',"""
        """ 'machine', 'desk ' || mod(n / 10, 3))""",
    )  # fmt: skip
    fill(
        connection, LlmCall, "made ORDER BY n", values, stage="'distill'", port="'distill'",
        unit="unit_key", model_asked="'made'", model_real="'made'", tokens_in="900",
        tokens_out="200", milliseconds="2000", outcome="'ok'", created_at="at",
    )  # fmt: skip
    fill(
        connection, Emission, tenth, values, **mine, kind="'recall'", reference="'note:' || n",
        sha256="md5(text || n)", created_at="at",
        shingles="ARRAY(SELECT (n * 1000 + g)::bigint FROM generate_series(1, 20) g)",
    )  # fmt: skip
    fill(
        connection, TaskItem, "item WHERE mod(n, 20) = 3 ORDER BY n", values, **mine,
        opening="('{promise,request}'::text[])[1 + mod(n / 20, 2)]", title="left(text, 60)",
        source="'claude-code'", session="session", project_id="project_id", raw_item_id="id",
        start="0", end="20", quote="left(text, 20)", sha256="md5(text)", opened_at="at",
        created_at="at",
    )  # fmt: skip
    fill(
        connection, TaskEvent,
        "item JOIN memory_taskitem t ON t.raw_item_id = item.id,"
        " unnest('{claim_done,test_passed}'::text[]) happening", values,
        item_id="t.id", happening="happening", said_by="'assistant'", raw_item_id="item.id",
        start="0", end="20", quote="left(text, 20)", occurred_at="at", created_at="at",
    )  # fmt: skip
    parked = "made WHERE mod(n, 50) = 7"
    fill(
        connection, Claim, parked, values, stage="'distill'", unit="unit_key", attempts="5",
        content_failures="5", parked_at="at", parked_reason="'no JSON'",
    )  # fmt: skip
    fill(
        connection, DistillFailure, f"(SELECT * FROM {parked}) p, generate_series(1, 5) g", values,
        **mine, unit="unit_key", kind="'content'", error="'no JSON in the reply'",
        reply="%(reply)s", attempt="g", parked="g = 5", created_at="at",
    )  # fmt: skip


def _said(connection: psycopg.Connection, values: dict[str, Any]) -> None:
    """What a person said of it: decisions, cards, pins, feedback."""
    me = {"principal_id": "%(owner)s"}
    note = "staged s JOIN item ON item.n = s.n * 10"
    fill(
        connection, RejectionDecision, "memory_gaterejection r JOIN made ON made.id = r.episode_id"
        " WHERE mod(made.n, 5) = 0", values, **me, rejection_id="r.id",
        action="'confirm'", created_at="made.at",
    )  # fmt: skip
    fill(
        connection, Decision, "staged s JOIN memory_dedupverdict v ON v.note_id = s.id"
        " WHERE v.verdict = 'supersede' AND v.status = 'applied'", values, **me,
        verdict_id="v.id", action="'approve'", status_before="'pending'",
        status_after="'approved'", created_at="v.created_at",
    )  # fmt: skip
    fill(
        connection, Draw, f"{note} WHERE mod(s.n, 2) = 0 ORDER BY s.n DESC", values, **me,
        note_id="s.id", drawn_by="'draw'", probability="0.001", pool="1000", created_at="item.at",
    )  # fmt: skip
    fill(
        connection, Card, f"{note} WHERE mod(s.n, 10) = 2", values, **me, note_id="s.id",
        state="""'{"stability": 3.1, "difficulty": 5.2, "step": null, "state": 2, "card_id": 1}'""",
        due_at="%(now)s::timestamptz - mod(s.n, 7) * interval '1 day' + interval '3 days'",
        created_at="item.at",
    )  # fmt: skip
    fill(connection, Pin, "staged WHERE mod(n, 100) = 1", values, **me, note_id="id")
    fill(
        connection, Feedback, f"{note} WHERE mod(s.n, 25) = 3", values, **me, note_id="s.id",
        verdict="'useful'", created_at="item.at",
    )  # fmt: skip


def tell_recalls(grown: Grown, questions: list[str], before: int) -> None:
    """Recalls for real, each written again until there is one for ten raw items of those since
    `before`; half of them were looked at for whether they were of use."""
    from memory.llm.minilm import shared
    from recall.notes import recall_notes

    for question in questions:
        vector = grown.writing.vectors(1)[0].tolist()
        # Known to the embedder, as after a first asking. (mypy knows no default of a lambda.)
        shared()._recent.of(question, lambda vector=vector: vector)  # type: ignore[misc]
        recall_notes(question, principal=grown.owner, now=grown.now, session="made0")
    count = (grown.items - before) // 10
    with psycopg.connect(grown.address, cursor_factory=psycopg.ClientCursor) as connection:
        columns = [
            f'"{one.column}"'
            for one in Injection._meta.concrete_fields
            if one.column not in ("id", "created_at", "session")
        ]
        names = ", ".join(columns)
        connection.execute(
            f"WITH real AS (SELECT *, row_number() OVER (ORDER BY id DESC) - 1 AS place FROM"
            f" memory_injection ORDER BY id DESC LIMIT %(real)s) INSERT INTO memory_injection"
            f" (session, created_at, {names}) SELECT 'made' || n / 4,"
            f" %(now)s::timestamptz - n * interval '10 minutes', {names}"
            f" FROM generate_series(%(before)s, %(before)s + %(count)s - 1) n"
            f" JOIN real ON real.place = mod(n, %(real)s) ORDER BY n".encode(),
            {"real": len(questions), "now": grown.now, "before": before // 10, "count": count},
        )
        fill(
            connection, Impact,
            "memory_injection i LEFT JOIN recall_impact x ON x.injection_id = i.id"
            " WHERE mod(i.id, 2) = 0 AND x.id IS NULL", {"now": grown.now},
            injection_id="i.id", method="'overlap'", score="0.2", used="mod(i.id, 4) = 0",
            created_at="i.created_at",
        )  # fmt: skip
    analyze(grown.address, "memory_injection", "recall_impact")
