"""Where an agent asks from: its session, its working directory, and the project that follows.

Reads: project rules. Shared by context and prompt recall.
"""

from __future__ import annotations

from dataclasses import dataclass

from memory.attribution import Registry, attribute
from memory.models import Project
from memory.text.clean import clean_text
from memory.text.secrets import redact


@dataclass(frozen=True)
class Where:
    """Session and folder as capture would store them, so that the two find each other again.

    `project` is a name that need not be in the registry; `project_id` is its row, when it is.
    """

    session: str = ""
    cwd: str = ""
    project: str | None = None
    project_id: int | None = None


def where(*, session: str, cwd: str) -> Where:
    """Clean what the client said, and name the project by the rules of capture."""
    session, cwd = (redact(clean_text(text)[0]).text for text in (session, cwd))
    name = attribute(Registry.load(), cwd=cwd).name
    row = Project.objects.filter(name=name).values_list("pk", flat=True).first() if name else None
    return Where(session, cwd, name, row)
