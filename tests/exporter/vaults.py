"""Vaults for tests: files as Argus writes them, in a folder that is known as a vault."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from memory.text import region

ID = "8d3c1f4e-0c59-5c0a-9a77-2f6d1b7c9e10"


def a_vault(folder: Path) -> Path:
    """An empty vault."""
    (folder / region.OURS).mkdir(parents=True)
    (folder / region.OURS / region.SIGN).write_text("A vault of Argus.\n")
    return folder


def page(
    title: str = "Redis holds the jobs",
    body: str = "The jobs of the shop are held by Redis.",
    *,
    own: str = "",
    argus_id: str = ID,
    project: str = "shop",
) -> str:
    """A file of ours by hand, with a person's own words below the line."""
    return (
        f"---\n{region.FIELD}: {argus_id}\nproject: {project}\nlevel: note\naliases:\n- {title}\n"
        f"---\n\n# {title}\n\n{body}\n\n## Evidence\n\n> We said so on Monday.\n\n"
        f"{region.HEADING}\n{region.MARKER}\n{own}"
    )


def put(vault: Path, name: str, text: str) -> Path:
    path = vault / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def front(data: bytes) -> dict[str, Any] | None:
    """The front matter's values; None without one, or for one that is no mapping."""
    lines = region.front(data)
    if lines is None:
        return None
    try:
        found = yaml.safe_load(lines.decode("utf-8", "replace"))
    except (yaml.YAMLError, ValueError):
        return None
    return found if isinstance(found, dict) else None
