"""Prompt recall on the bundled demo, prompt by prompt; `test_silence` has the measured shares."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import call_command
from django.utils import timezone
from pytest_django import DjangoDbBlocker

from memory.access import principal
from memory.pipeline import process
from recall.notes import Recalled, recall_notes
from recall.scoring import Hit
from tests import cluster

DEMO = Path(__file__).resolve().parents[1] / "fixtures" / "demo"

OFF_TOPIC = [
    "What is the capital of Mongolia and how many people live there?",
    "Write a haiku about autumn leaves falling in Kyoto.",
    "Explain the difference between TCP and UDP to a beginner.",
    "How do I center a div horizontally with flexbox?",
    "Convert this temperature from Fahrenheit to Celsius please: 98.6",
    "Recommend three science fiction novels about first contact.",
    "Implement quicksort in Rust with generics and add unit tests.",
    "What are good warm-up exercises before running a marathon?",
    "Translate 'good morning, dear colleagues' into Portuguese.",
    "How does photosynthesis convert sunlight into chemical energy?",
    "Summarise the plot of Hamlet in two sentences for me.",
    "Which visa does an Australian need to work in Canada?",
    "Draw an ASCII art picture of a cat sleeping on a sofa.",
    "Calculate the monthly payment of a mortgage of 300000 at 4 percent.",
    "What is the best way to remove red wine from a carpet?",
    "Why is the sky blue but the sunset red or orange?",
    "Give me a recipe for lentil soup with coriander and lemon.",
    "Set up a Kubernetes ingress with cert-manager on bare metal.",
    "Refactor this Java class to use the visitor pattern.",
    "Wie bekomme ich am besten Rotwein aus dem Teppich?",
    "Schreib mir bitte ein Gedicht über den Herbst in Kyoto.",
    "秋についての俳句を一つ書いてください",
    "如何用番茄和鸡蛋做一道简单的家常菜",
]

#: Prompt, working directory, and what the text that goes out must hold.
ON_TOPIC = [
    ("Which PostgreSQL version and port does the harbor staging database use?", "harbor", "5433"),
    ("Which Node version do I need to build tidepool?", "tidepool", "20.11"),
    ("How long is the booking request timeout set by BOOKING_TIMEOUT?", "harbor", "10 seconds"),
    ("How do I load the seed data for harbor on my machine?", "harbor", "make seed"),
    ("May I force-push to main to clean up the history?", "harbor", "force-push"),
    ("What was the root cause of the double bookings of a berth?", "harbor", "berth"),
    ("How do we handle idempotency keys for bookings?", "harbor", "dempotency"),
    (
        "Should the dashboard use server-sent events or polling for live updates?",
        "tidepool",
        "vents",
    ),
    ("Can I add a new dependency to tidepool for this chart?", "tidepool", "depend"),
    ("When is the payment sandbox reset during the night?", "harbor", "sandbox"),
    ("What separates the columns of the CSV export?", "harbor", "emicolon"),
    ("What must be run before opening a pull request in harbor?", "harbor", "make lint"),
    ("Why does the map flicker in Safari?", "tidepool", "Safari"),
    ("How do I publish a release of tidepool with npm run release?", "tidepool", "npm run release"),
    ("Dürfen die Rechnungsnummern von harbor Lücken haben?", "harbor", "Rechnungsnummern"),
    ("预发环境的 Redis 用哪个端口", "harbor", "6380"),
    ("When is the deploy freeze in August?", "harbor", "production deploys"),
]


@pytest.fixture(scope="module")
def demo(template_db: str, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """The demo captured and processed, once for this module."""
    with django_db_blocker.unblock(), cluster.copied(template_db):
        call_command("capture", str(DEMO), "--json")
        process()
        yield


def recall(prompt: str, project: str = "harbor") -> Recalled:
    cwd = f"/home/dev/src/{project}"
    return recall_notes(prompt, principal=principal(), cwd=cwd, now=timezone.now())


@pytest.mark.parametrize("prompt", OFF_TOPIC)
def test_it_is_silent_about_what_nobody_recorded(demo: None, prompt: str) -> None:
    got = recall(prompt)
    assert got.text == "", [numbers(hit) for hit in got.hits]


@pytest.mark.parametrize(("prompt", "project", "holds"), ON_TOPIC)
def test_it_recalls_what_was_recorded(demo: None, prompt: str, project: str, holds: str) -> None:
    got = recall(prompt, project)
    assert holds in got.text, (got.outcome, got.asked, list(map(numbers, got.weighed[:6])))


def numbers(hit: Hit) -> tuple[object, ...]:
    judged = hit.judged
    return (hit.source, hit.key, hit.facts.get("title"), round(judged.relevance, 2), judged.refused)
