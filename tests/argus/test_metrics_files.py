"""How: the rules and the dashboard as they are shipped, read by a parser of PromQL and compared
with what /metrics tells of a house that has something of everything."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import promql_parser
import pytest
import yaml
from django.utils import timezone

from argus import metrics
from memory.models import StageRun
from tests.argus.measures import values
from tests.cluster import ROOT
from tests.factories import three, turns
from tests.memory.books import fill

DEPLOY = ROOT / "argus" / "deploy"
ALERTS = yaml.safe_load((DEPLOY / "alerts.yml").read_text())
BOARD = json.loads((DEPLOY / "grafana.json").read_text())
RULES = [rule for group in ALERTS["groups"] for rule in group["rules"]]
RECORDED = {rule["record"] for rule in RULES if "record" in rule}
PANELS = [panel for panel in BOARD["panels"] if panel["type"] != "row"]

DURATION = re.compile(r"(\d+(ms|[smhdwy]))+")
SEVERITIES = {"critical", "warning", "info"}

#: What is told and looked at by hand alone.
NOT_SHOWN = ["argus_vault_files", "argus_vault_last_timestamp_seconds"]

#: Templates of Prometheus: a value, a label, and how it is told.
TEMPLATE = re.compile(
    r"\{\{ ?(\$value|\$labels\.(\w+))( \| (humanizeDuration|humanizePercentage))? ?\}\}"
)


def expressions() -> Iterator[tuple[str, str]]:
    """Every expression, and where it stands."""
    for rule in RULES:
        yield rule.get("record") or rule["alert"], rule["expr"]
    for panel in PANELS:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


def read(expression: str) -> dict[str, set[str]]:
    """The metrics that an expression reads, and the labels that it selects them by."""
    found: dict[str, set[str]] = {}

    def visit(node: Any) -> None:
        if isinstance(node, promql_parser.MatrixSelector):
            node = node.vector_selector
        if isinstance(node, promql_parser.VectorSelector):
            labels = {one.name for one in node.matchers.matchers}
            found.setdefault(str(node.name), set()).update(labels)

    promql_parser.walk(promql_parser.parse(expression), pre_visit=visit)
    return found


@pytest.fixture
def told() -> dict[str, set[str]]:
    """Every metric with the names of its labels, of a house that has something of everything."""
    fill()
    StageRun.objects.create(stage="verify", status="done", report={"found": {"indexes": 1}})
    return {
        ("argus_info" if one.name == "argus" else one.name): set(vars(one)["_labelnames"])
        for one in metrics.Rows(timezone.now()).collect()
    }


@pytest.mark.django_db
def test_every_metric_that_they_read_is_told_with_these_labels(told: dict[str, set[str]]) -> None:
    for place, expression in expressions():
        for name, labels in read(expression).items():
            assert name in RECORDED or name in told, f"{place} reads {name}, which nobody tells"
            assert name in RECORDED or labels <= told[name], f"{place}: {name} has no {labels}"


@pytest.mark.django_db
def test_every_metric_that_is_told_is_shown_somewhere(told: dict[str, set[str]]) -> None:
    used = {name for _, expression in expressions() for name in read(expression)}
    assert sorted(set(told) - used) == NOT_SHOWN
    assert used >= RECORDED, "a rule that nobody reads"


def test_the_rules_are_as_prometheus_loads_them() -> None:
    assert set(ALERTS) == {"groups"}
    names = [group["name"] for group in ALERTS["groups"]]
    assert len(set(names)) == len(names)
    for group in ALERTS["groups"]:
        assert set(group) <= {"name", "interval", "rules"}
        assert DURATION.fullmatch(group.get("interval", "1m"))
    told = [rule.get("record") or rule["alert"] for rule in RULES]
    assert len(set(told)) == len(told)
    for rule in RULES:
        if "record" in rule:
            assert set(rule) == {"record", "expr"}
            assert re.fullmatch(r"[a-z_]+:[a-z_]+:[a-z_0-9]+|[a-z_]+:[a-z_]+:share", rule["record"])
            continue
        assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
        assert re.fullmatch(r"Argus[A-Za-z]+", rule["alert"]) and DURATION.fullmatch(rule["for"])
        assert rule["labels"]["severity"] in SEVERITIES
        assert set(rule["annotations"]) == {"summary", "fix"}, "each says what helps"


@pytest.mark.django_db
def test_what_an_alert_says_of_labels_is_there_to_be_said(told: dict[str, set[str]]) -> None:
    recorded = {rule["record"]: rule["expr"] for rule in RULES if "record" in rule}
    for rule in RULES:
        for text in rule.get("annotations", {}).values():
            assert "{{" not in TEMPLATE.sub("", text), text
            for label in (found[2] for found in TEMPLATE.finditer(text) if found[2]):
                made = rule["expr"] + "".join(recorded.get(name, "") for name in read(rule["expr"]))
                assert re.search(rf"by \([^)]*\b{label}\b[^)]*\)", made), rule["alert"]


@pytest.mark.django_db
def test_no_alert_is_silent_because_what_it_waits_for_never_was() -> None:
    """A comparison with what has no sample is no alert: what never ran needs a rule of its own."""
    turns(three()[0], ["The port is 8443."])
    told, alerts = values(), [rule["expr"] for rule in RULES if "alert" in rule]
    ages = {
        name
        for expression in alerts
        for name in read(expression)
        if name.endswith(("_timestamp_seconds", "_age_seconds"))
    }
    assert "argus_worker_heartbeat_age_seconds" in ages
    minded = {name for one in alerts for name in re.findall(r"unless max\((\w+)", one)}
    silent = {name for name in ages - minded if not told[name]}
    assert silent == {"argus_hook_last_timestamp_seconds"}, "nobody must have a hook"
    for expression in alerts:
        if "unless max" in expression:
            there = expression.partition("unless")[0]
            assert all(told[name] for name in read(there)), expression


def test_the_dashboard_is_as_grafana_loads_it() -> None:
    assert BOARD["title"] and BOARD["uid"] and BOARD["schemaVersion"] >= 36 and BOARD["id"] is None
    ids = [panel["id"] for panel in BOARD["panels"]]
    assert len(set(ids)) == len(ids)
    [source] = BOARD["templating"]["list"]
    assert (source["type"], source["query"]) == ("datasource", "prometheus")
    taken: set[tuple[int, int]] = set()
    for panel in BOARD["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= 24 and not cells & taken, panel["title"]
        taken |= cells
    for panel in PANELS:
        assert panel["type"] in ("stat", "timeseries") and panel["fieldConfig"]["defaults"]["unit"]
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        refs = [target["refId"] for target in panel["targets"]]
        assert len(set(refs)) == len(refs) and panel["targets"]


def test_the_rules_say_how_to_scrape() -> None:
    head = (DEPLOY / "alerts.yml").read_text().partition("groups:")[0]
    asked = yaml.safe_load(re.sub(r"(?m)^# ?", "", head.partition("#\n")[2].partition("#\n")[0]))
    assert asked["scrape_configs"][0]["job_name"] == "argus"
