"""Metrics: what a watcher from outside sees, in Prometheus's text format.

Reads: what `health` of the apps, `memory.measures` and `memory.findings` read. Every number is of
the rows, so that all processes tell the same; numbers of 24 hours say so in their names, and are
kept for half a minute, sums of a flood for some minutes. Words of the record are in none of them.
Judges nothing: `argus/deploy/` holds the rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, InfoMetricFamily
from prometheus_client.registry import Collector
from rest_framework.decorators import api_view, permission_classes, renderer_classes
from rest_framework.permissions import BasePermission
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from argus.answers import away_after
from argus.board import BESIDE, STAGES
from argus.hookdoors import on_this_machine
from argus.hosts import by_own_name
from exporter.health import health as exporter_health
from memory import findings
from memory.auth import needs
from memory.health import last_runs, left, parked
from memory.lately import DAYS, kept
from memory.llm.budget import standing
from memory.measures import measured, resting, told_apart
from memory.proof import unfinished
from memory.queued import queue
from recall.health import by_mode
from review.health import health as review_health

#: Seconds for which a process gives the same text again.
# Why: two watchers that scrape each process every few seconds cost one look.
# Calibrate: below the scrape interval (15 s as a rule), so that no two scrapes are the same.
TEXT_SECONDS = 5

#: The form of the text that every Prometheus reads.
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

#: Stages that are told of: those of the board, and a new start with another embedder.
MEASURED = (*STAGES, *BESIDE, "reembed")

#: A label's values and the number they have.
Samples = Iterable[tuple[tuple[str, ...], float]]


class Rows(Collector):
    """Reads the rows anew for each look."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def collect(self) -> Iterator[Metric]:
        """Every family, in the order of the pipeline."""
        version = {"version": str(settings.SPECTACULAR_SETTINGS["VERSION"])}
        yield InfoMetricFamily("argus", "The version that answers.", version)
        yield from _captured(self.now)
        yield from _worked(self.now)
        yield from _waits(self.now)
        yield from _models(self.now)
        yield from _recalled(self.now)
        yield from _found()
        yield from _kept(self.now)


def text(now: datetime) -> bytes:
    """All metrics as Prometheus reads them."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Rows(now))
    return generate_latest(registry)


def gauge(name: str, what: str, *labels: str, samples: Samples) -> Metric:
    """One family; what it says of no sample is that it is there."""
    family = GaugeMetricFamily(f"argus_{name}", what, labels=labels)
    for values, number in samples:
        family.add_metric(values, number)
    return family


def number(name: str, what: str, value: float | None) -> Metric:
    """A family of one number; of None without any."""
    return gauge(name, what, samples=[] if value is None else [((), value)])


def counts(name: str, what: str, label: str, told: Mapping[str, float]) -> Metric:
    """A family with one label, by what stands in the mapping."""
    return gauge(name, what, label, samples=[((word,), n) for word, n in told.items()])


def moment(name: str, what: str, at: datetime | None) -> Metric:
    return number(f"{name}_timestamp_seconds", what, at.timestamp() if at else None)


def _age(at: datetime | None, now: datetime) -> float:
    """Seconds since then; 0 where nothing is."""
    return max(0.0, (now - at).total_seconds()) if at else 0.0


def _captured(now: datetime) -> Iterator[Metric]:
    posts = measured(now, MEASURED).posts
    yield number("capture_posts_24h", "Posts to capture.", posts.posts)
    yield counts("capture_items_24h", "Items posted, by outcome.", "outcome", posts.items)
    yield counts("capture_refused_24h", "Items refused, by reason.", "reason", posts.refused)
    yield counts(
        "capture_lines_24h",
        "Lines of transcripts that hooks saw, filtered and posted, as they counted them.",
        "fate",
        posts.lines,
    )
    yield counts("capture_filtered_24h", "Lines filtered, by reason.", "reason", posts.filtered)
    yield counts("capture_missed_24h", "What hooks missed, by reason.", "reason", posts.missed)
    yield counts("capture_24h_seconds", "Seconds of a post.", "quantile", posts.seconds)
    yield moment("capture_last", "When something was posted last.", posts.last_at)
    yield number("hooks_24h", "Clients on machines that posted.", posts.hooks)
    yield moment("hook_last", "When a hook posted last.", posts.hook_at)


def _worked(now: datetime) -> Iterator[Metric]:
    day = measured(now, MEASURED)
    yield counts("gate_rejections_24h", "Candidates refused, by reason.", "reason", day.refused)
    yield number("notes_made_24h", "Notes made.", day.made)
    yield gauge(
        "stage_runs_24h",
        "Runs of a stage, by status.",
        "stage",
        "status",
        samples=[((one.stage, status), n) for one in day.ran for status, n in one.statuses.items()],
    )
    yield gauge(
        "stage_run_24h_seconds",
        "Seconds of a run that was done.",
        "stage",
        "quantile",
        samples=[((one.stage, q), took) for one in day.ran for q, took in one.seconds.items()],
    )
    alive_at = day.alive_at or day.due_since
    yield number(
        "worker_heartbeat_age_seconds",
        "Since any worker was alive, or, where none ever was, there was something to do for one.",
        _age(alive_at, now) if alive_at else None,
    )
    patience = away_after(timedelta(minutes=settings.ARGUS.process_every_minutes))
    what = "How long a worker may be silent before it counts as away."
    yield number("worker_away_after_seconds", what, patience.total_seconds())


def _waits(now: datetime) -> Iterator[Metric]:
    waiting, aside = left(now, last_runs(MEASURED)), parked()
    yield counts(
        "waiting_units",
        "Units that wait for a stage, counted to 1,000, or what its last report said.",
        "stage",
        {stage: one.units for stage, one in waiting.items()},
    )
    yield counts(
        "waiting_oldest_seconds",
        "How long the oldest of them waits.",
        "stage",
        {stage: _age(one.since, now) if one.units else 0.0 for stage, one in waiting.items()},
    )
    what = "Live notes without a vector that are not parked."
    yield number("unembedded_notes", what, waiting["embed"].units)
    aside = dict.fromkeys(MEASURED, 0) | aside
    yield counts("parked_units", "Units set aside after failures.", "stage", aside)
    tasks = queue(now)
    told = {"waiting": tasks.waiting, "taken": tasks.taken}
    yield counts(
        "queue_tasks",
        "Tasks in the queue; none of a state that is not known.",
        "state",
        {state: n for state, n in told.items() if n is not None},
    )
    yield number("queue_oldest_seconds", "How long the oldest waits.", tasks.oldest_seconds(now))
    held = review_health(None)
    since = held.oldest_hold_at
    yield number("holds_pending", "Held verdicts, counted to 1,000.", held.holds)
    yield number("holds_oldest_seconds", "How long the oldest waits.", _age(since, now))
    yield number("rejections_undecided", "Of the newest 200 refusals.", held.undecided)


def _models(now: datetime) -> Iterator[Metric]:
    asked = measured(now, MEASURED).asked
    labels = ("stage", "port", "model", "outcome")
    named = [((one.stage, one.port, one.model, one.outcome), one) for one in asked]
    yield gauge(
        "model_calls_24h",
        "Calls of models, by outcome.",
        *labels,
        samples=[(names, one.calls) for names, one in named],
    )
    yield gauge(
        "model_tokens_24h",
        "Tokens of these calls.",
        *labels,
        "direction",
        samples=[
            ((*names, direction), tokens)
            for names, one in named
            for direction, tokens in (("in", one.tokens_in), ("out", one.tokens_out))
        ],
    )
    yield gauge(
        "model_busy_24h_seconds",
        "Seconds that these calls took together.",
        *labels,
        samples=[(names, one.seconds) for names, one in named],
    )
    yield number("models_resting", "Providers in a cool-down.", resting(now))
    budget = standing(now)
    yield number("budget_spent_tokens", "Tokens of today (UTC).", budget.tokens)
    yield number("budget_allowed_tokens", "Most tokens of today.", budget.allowed)
    yield number("budget_lifted_tokens", "Of these, allowed by a person.", budget.extra)
    yield number("budget_stopped", "1: background work waits for tokens.", budget.stopped)


def _recalled(now: datetime) -> Iterator[Metric]:
    told = by_mode(now)
    yield gauge(
        "recalls_24h",
        "Recalls, by mode and outcome.",
        "mode",
        "outcome",
        samples=[((one.mode, word), n) for one in told.modes for word, n in one.outcomes.items()],
    )
    yield gauge(
        "recall_24h_seconds",
        "Seconds of a recall that was answered.",
        "mode",
        "quantile",
        samples=[((one.mode, q), took) for one in told.modes for q, took in one.seconds.items()],
    )
    yield gauge(
        "recalls_read_24h",
        "Recalls, by the server that was searched where there is a standby.",
        "mode",
        "server",
        samples=[
            ((one.mode, server), n) for one in told.modes for server, n in one.servers.items()
        ],
    )
    yield counts("recalls_degraded_24h", "Recalls without a track.", "track", told.degraded)
    skipped = told_apart(told.skipped)
    yield counts("recalls_skipped_24h", "Why clients gave up.", "reason", skipped)
    looked, used = told.used.checked, told.used.used
    yield number(f"injections_checked_{DAYS}d", "Injections looked at for use.", looked)
    yield number(f"injections_used_{DAYS}d", "Those that showed in the answer.", used)


def _found() -> Iterator[Metric]:
    runs = {stage: findings.last(stage) for stage in findings.STAGES}
    yield gauge(
        "findings",
        "What the last run of verify or reconcile found, by check.",
        "stage",
        "check",
        samples=[
            ((stage, check), n)
            for stage, run in runs.items()
            if run
            for check, n in run.counts.items()
        ],
    )
    yield counts(
        "findings_run_timestamp_seconds",
        "When that run ended.",
        "stage",
        {stage: run.at.timestamp() for stage, run in runs.items() if run},
    )
    what = "Purges that left files to do, or words that stand somewhere without right."
    yield number("purges_open", what, len(unfinished()))


def _kept(now: datetime) -> Iterator[Metric]:
    vault, day = exporter_health(), measured(now, MEASURED)
    there = vault.vault
    yield number("vault_files", "Files of the vault.", vault.files if there else None)
    yield number("vault_conflicts", "Files left alone.", vault.conflicts if there else None)
    yield moment("vault_last", "When an export ended last.", vault.last_at)
    yield number("database_bytes", "Size of the database.", day.bytes)
    yield counts("rows", "Rows of a table, as the planner thinks.", "table", day.rows)
    cut = day.cut | ({"recalls"} if by_mode(now).cut else frozenset())
    yield counts(
        "day_cut",
        "1: there was more of it in 24 hours than was looked at; numbers of it are of the newest.",
        "what",
        {name: name in cut for name in ("posts", "rejections", "notes", "model_calls", "recalls")},
    )


class PlainText(BaseRenderer):
    """Gives on what is text already; a problem is JSON all the same."""

    media_type = "text/plain"
    format = "txt"

    def render(self, data: object, *args: object, **kwargs: object) -> bytes:
        return data if isinstance(data, bytes) else bytes(JSONRenderer().render(data))


class MayScrape(BasePermission):
    """A key with the scope operate; where the setting says so, whoever asks from this machine."""

    message = "The key lacks the scope operate."

    def has_permission(self, request: Request, view: Any) -> bool:
        if settings.ARGUS.metrics_loopback and request.auth is None and on_this_machine(request):
            # Why by its name: a page that led its name to this machine would read it by a browser.
            return by_own_name(request)
        return bool(needs("operate")().has_permission(request, view))


@extend_schema(operation_id="metrics", responses={(200, "text/plain"): OpenApiTypes.STR})
@api_view(["GET"])
@permission_classes([MayScrape])
@renderer_classes([PlainText])
def metrics(request: Request) -> Response | HttpResponse:
    """Every number that a watcher needs, as Prometheus reads them."""
    body = kept("metrics", lambda: text(timezone.now()), TEXT_SECONDS)
    headers = {"Cache-Control": "no-store"}
    return HttpResponse(body, content_type=CONTENT_TYPE, headers=headers)
