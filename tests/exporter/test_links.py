"""Every link of a vault leads to a page that is there, whatever the notes are called.

Links are read by an eye of its own (`captured`): as Markdown takes the text, not as it was written.
"""

from __future__ import annotations

import re
import shutil
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from exporter.place import Place, around_vault
from memory.access import principal
from memory.text.region import MARKER
from tests import factories as make
from tests.exporter.captured import TEXTS, links
from tests.exporter.exports import run, times, tree

#: What notes are called at their worst.
HOSTILE = [
    "C#:", "C", "[[x]]", "a|b/c", "CON", "con.md", "#tag", "- list", "Über ", "über", "東京の",
    "`code`", "`", "x^2", "v1.2.md", "%%c%%", "<% x %>", "..", ".", "/", "a\nb", "\u202eevil",
    "x" * 300, "null", "1e3", "~", "$a$", "![[p]]", "]]", "|", "a%%", "_index", "_hubs",
    ".argus", "e\u0301", "é", "ﬁ", "fi", "ẞ", "ss", "\\", "a\\", "![", "[^1]", " ", "\u200b",
    "😀" * 80, "x" * 200, "X" * 200, "---", "...", "a.", "a ", "~$a", "Argus\ttab", "[a](b.md)",
    "a]]b", "a[[b", "nul.txt.md", "-", "%", "",
]  # fmt: skip

#: Names that the database can hold.
NAMES = TEXTS.map(lambda text: re.sub(r"[\0\ud800-\udfff]", "", text)[:300])

owners = count()


def dangling(vault: dict[str, bytes]) -> tuple[int, list[tuple[str, str]]]:
    """How many links there are, and those that lead nowhere: (page, target)."""
    pages = {path.removesuffix(".md") for path in vault}
    found = [
        (path, target)
        for path, data in vault.items()
        for target in links(data.decode().partition("\n---\n")[2].partition(MARKER)[0])
    ]
    return len(found), [(path, target) for path, target in found if target not in pages]


@pytest.mark.django_db
@pytest.mark.usefixtures("local")
@settings(
    max_examples=12, deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip
@example(titles=HOSTILE, projects=["shop", "[[x]]", "C#:", "CON", "..", "_hubs"])
@given(
    titles=st.lists(NAMES, min_size=1, max_size=8), projects=st.lists(NAMES, min_size=1, max_size=3)
)
def test_every_link_of_a_vault_resolves_whatever_notes_are_called(
    tmp_path: Path, titles: list[str], projects: list[str]
) -> None:
    number = next(owners)
    owner, vault = principal(f"owner {number}"), tmp_path / f"Vault {number}"
    said = "The staging database of the harbour listens on port"
    for n, title in enumerate(titles):
        named = projects[n % len(projects)]
        make.note(
            owner, f"{said} {n} {said}", title=title, when=make.at(n),
            project=make.project(named) if named.strip() else None,
        )  # fmt: skip
    with around_vault(Place(vault, owner.name)):
        report = run()
        first = tree(vault)
        assert report.conflicts == report.pending == 0
        assert report.written == len(first) > len(titles)
        linked, lost = dangling(first)
        assert not lost
        # The index leads to every note, and notes that mean nearly the same to each other.
        assert linked >= len(titles) + report.linked
        assert report.linked or len(titles) <= len(projects)
        before = times(vault)
        assert run().written == 0 and times(vault) == before
        shutil.rmtree(vault)
        assert run().written == len(first)
        assert tree(vault) == first
