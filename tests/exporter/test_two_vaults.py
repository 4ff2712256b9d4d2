"""Two folders of one owner: each is brought to the same, and keeps what a person wrote in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from exporter.place import Place, around_vault
from memory.access import principal
from memory.retire import revive
from memory.text.region import split
from tests.exporter.exports import gone, jot, note, replace, run, tree, where
from tests.factories import at

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("vault", "local")]


def words(vault: Path) -> dict[str, str]:
    """What a person wrote, by path."""
    parts = {path: split(data).region or b"" for path, data in tree(vault).items()}
    return {path: region.decode() for path, region in parts.items() if region}


def test_words_in_both_folders_stay_where_their_notes_go(vault: Path, tmp_path: Path) -> None:
    alice, second = principal("alice"), tmp_path / "Second"
    one, two, three = (note(alice, title) for title in ("One", "Two", "Three"))
    run()
    for each in (one, two, three):
        jot(where(vault, each), f"First: {each.title}.\n")
    jot(vault / "shop/_index.md", "First: index.\n")
    with around_vault(Place(second, "alice")):
        run()
        jot(second / "shop/Two.md", "Second: two.\n")
        new = note(alice, "New", when=at(days=2))
        replace(one, new)
        gone(two)
        gone(three)
        run()
        assert words(second) == {"_retired/Two.md": "Second: two.\n"}
    run()
    first = {
        "_retired/Three.md": "First: Three.\n", "_retired/Two.md": "First: Two.\n",
        "shop/New.md": "First: One.\n", "shop/_index.md": "First: index.\n",
    }  # fmt: skip
    assert words(vault) == first
    assert (run().written, words(vault)) == (0, first)
    with around_vault(Place(second, "alice")):
        assert run().written == 0
    revive(two.pk)
    run()
    first["shop/Two.md"] = first.pop("_retired/Two.md")
    assert words(vault) == first
    with around_vault(Place(second, "alice")):
        run()
        assert words(second) == {"shop/Two.md": "Second: two.\n"}
