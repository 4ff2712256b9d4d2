"""What stands between private tags is never stored, whichever door it comes by."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from memory.access import create_key
from memory.intake import Invalid
from memory.models import CaptureReceipt, RawItem
from memory.text.identity import sha256
from tests.memory.door import TURN, send
from tests.memory.posting import item, post, stored, the

pytestmark = pytest.mark.django_db

HIDDEN = "my sister is called Marjolein"


def kept() -> str:
    """Everything of the record and of its receipts, as text."""
    tables = (RawItem.objects.as_pipeline(), CaptureReceipt.objects.as_pipeline())
    return json.dumps([list(rows.values()) for rows in tables], default=str)


@pytest.mark.parametrize(
    ("body", "left", "spans"),
    [
        (f"We use Postgres. <private>{HIDDEN}</private> Ask me.", "We use Postgres. {} Ask me.", 1),
        (f"We use Postgres. <PRIVATE>{HIDDEN}</Private>", "We use Postgres. {}", 1),
        (f"We use Postgres. <private>{HIDDEN}, and so on", "We use Postgres. {}", 1),
        (f"A <private>{HIDDEN}</private> b <private>{HIDDEN}</private>", "A {} b {}", 2),
    ],
)
def test_it_stores_the_rest_and_counts_the_spans(body: str, left: str, spans: int) -> None:
    row = the(post(item(body)))
    assert row.body == left.replace("{}", "[private]")
    assert row.flags["private"] == spans
    assert row.sha256 == sha256(row.body)
    assert "Marjolein" not in kept()


def test_two_posts_that_differ_in_what_is_private_are_one() -> None:
    said = "We use Postgres. <private>{}</private>"
    assert post(item(said.format("one"))).stored == 1
    assert post(item(said.format("two"))).duplicates == 1
    assert post(item("We use Postgres. [private]")).duplicates == 1, "as a client strips it itself"


@pytest.mark.parametrize(
    "body", [f"<private>{HIDDEN}</private>", f" <private>{HIDDEN}\n\n", "<private>"]
)
def test_it_refuses_what_is_private_alone_and_keeps_no_word_and_no_hash_of_it(body: str) -> None:
    report = post(item(body), item("We use Postgres."))
    assert (report.stored, report.refused) == (1, {"private": 1})
    receipt = CaptureReceipt.objects.as_pipeline().get()
    assert receipt.refused == {"private": 1}
    (refusal,) = receipt.refusals
    assert refusal["reason"] == "private" and "[private]" in refusal["excerpt"]
    assert refusal["sha256"] != sha256(body)
    assert "Marjolein" not in kept()


@pytest.mark.parametrize(
    "refused",
    [
        item(f"API Error: 529 overloaded_error <private>{HIDDEN}</private>", role="assistant"),
        item(f"fine <private>{HIDDEN}</private>", source="x" * 65),
        Invalid("/kind: wrong", json.dumps({"body": f"a <private>{HIDDEN}</private>"})),
    ],
)
def test_no_refusal_of_another_reason_keeps_it(refused: Any) -> None:
    assert post(refused).stored == 0
    assert "Marjolein" not in kept()
    (refusal,) = CaptureReceipt.objects.as_pipeline().get().refusals
    assert refusal["reason"] != "private"


def test_it_takes_it_out_of_names_and_metadata_too() -> None:
    dirty = f"x <private>{HIDDEN}</private>"
    row = the(
        post(
            item(
                session=dirty, cwd=f"/src/{dirty}", record_id=dirty, role=dirty,
                metadata={"note": [dirty], dirty: 1}, locator={"at": dirty},
            )
        )
    )  # fmt: skip
    assert "Marjolein" not in kept()
    assert row.metadata == {"note": ["x [private]"], "x [private]": 1}
    assert row.flags["private"] == 7 and "redacted" not in row.flags


def test_a_body_that_speaks_of_the_word_keeps_it() -> None:
    body = "A private method, a [private] note, </private> and &lt;private&gt;."
    row = the(post(item(body)))
    assert row.body == body and "private" not in row.flags


def test_it_stores_none_that_comes_through_the_door_or_from_a_file(tmp_path: Path) -> None:
    key = create_key(owner="alice", scopes=["capture"])[0]
    hidden = f"Kept <private>{HIDDEN}</private>"
    assert send(key, TURN | {"body": hidden}).status_code == 201
    path = tmp_path / "notes.md"
    path.write_text(f"# Harbor\n\nKept in the file, too.\n\n<private>{HIDDEN}</private>\n")
    call_command("capture", str(path), verbosity=0)
    assert len(stored()) >= 2 and "Kept in the file" in kept()
    assert "Marjolein" not in kept()
