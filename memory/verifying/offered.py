"""Which checks there are: memory's own, and those that other apps offer when they are loaded.

Memory sees no other app: each that has tables of its own offers what is to be checked of them, in
the `ready` of its AppConfig.
"""

from __future__ import annotations

from memory.verifying import judged, machine, record, search
from memory.verifying.check import Check

_offered: dict[str, Check] = {}


def offer(*checks: Check) -> None:
    """These are looked at as well, by every `verify` of this process."""
    _offered.update({check.name: check for check in checks})


def checks() -> dict[str, Check]:
    """All checks by name, in the order in which they are looked at."""
    own = (*record.CHECKS, *search.CHECKS, *machine.CHECKS, *judged.CHECKS)
    return {check.name: check for check in own} | _offered
