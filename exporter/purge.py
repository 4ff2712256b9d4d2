"""What a purge leaves in the vault: its files are removed by an export, which knows how.

Reads: what export reads. Writes: the vault, by the verb export. Audits: stage_run,
exported_file (by export). Knows nothing about what was purged: whatever the vault holds of notes
that are gone goes.
Verify: memory.proof, which reads the files.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from django.conf import settings

from exporter.export import export
from exporter.git import GitAway, Inside
from exporter.models import ExportedFile
from exporter.own import ForeignVault
from exporter.place import NoVault, Place, place
from memory.errors import ArgusError
from memory.models import Principal

#: Tables whose rows say that a purge concerns files: of notes that went, and of what others quoted.
FILES = "exporter_exportedfile"
QUOTES = "memory_evidence"


@dataclass(frozen=True)
class Swept:
    """What became of the files. `vault`: the folder, "" without one; `removed` files; `pending`:
    not all is done yet, for the reason `why`, which may name what is left in vaults of others, too;
    `history`: git keeps what the files said."""

    vault: str = ""
    removed: int = 0
    pending: bool = False
    why: str = ""
    history: bool = False


def bring_up(tables: Collection[str], owners: Collection[int] | None) -> Swept:
    """Bring the vault to what it shall hold now. `tables`: those of which a purge took rows along;
    `owners`: ids of whose these were, None for everybody's. Never raises for what a second try can
    mend: it is `pending` then, unless nothing of it was ever in a vault."""
    exporters = _exporters(owners)
    # Notes that stay may have lost a quote. Files that were never written wait for nothing.
    concerned = FILES in tables or (QUOTES in tables and bool(exporters))
    try:
        where = place()
    except NoVault:
        if not concerned:
            return Swept()
        why = "files were written, and no ARGUS_VAULT is set: name their folder, then --finish"
        if exporters and not _among(settings.ARGUS.principal, owners):
            why = f"files were written, and no vault of theirs is in force: {_way(exporters)}"
        return Swept(pending=True, why=why)
    ours = _among(where.owner, owners)
    if not (concerned or ours):
        return Swept()
    named = [] if owners is None else exporters
    others = [name for name in named if name != where.owner]
    if not where.folder.is_dir():
        why = (
            "the folder of the vault is not there: make it, or set ARGUS_VAULT to where it lies "
            "now, then --finish"
        )
        if others and not ours:
            why = f"files were written to another vault: {_way(others)}"
        return Swept(str(where.folder), pending=True, why=why) if concerned else Swept()
    try:
        swept = _exported(where, concerned=concerned)
    except ForeignVault as error:
        if not concerned:
            return Swept()
        why = f"the vault in force is {error.owner}'s: {_way(named or [where.owner])}"
        return Swept(str(where.folder), pending=True, why=why)
    if others and concerned:
        # Nobody keeps which of several vaults are done: whoever does one is told of all others.
        why = f"the vault in force is {where.owner}'s: {_way(others)}"
        why = f"{swept.why}; {why}" if swept.why else why
        return replace(swept, pending=swept.pending or not ours, why=why)
    return swept


def _exported(where: Place, *, concerned: bool) -> Swept:
    """What an export into this folder did. Raises ForeignVault."""
    told = Swept(vault=str(where.folder), history=(where.folder / ".git").exists())
    try:
        report = export()
    except ForeignVault:
        raise
    except (GitAway, Inside) as error:
        # All files are done by then.
        return replace(told, why=error.told or str(error))
    except ArgusError as error:
        return replace(told, pending=concerned, why=error.told or str(error))
    left = [f"{one.path}: {one.why}" for one in report.troubles]
    return replace(
        told,
        removed=report.removed + report.retired,
        pending=bool(report.pending) and concerned,
        why="; ".join(left[:3]),
    )


def _exporters(owners: Collection[int] | None) -> list[str]:
    """Names of those among these owners into whose vault anything was ever written. The index of a
    project stays in the log when all of its notes are gone."""
    rows = ExportedFile.objects.as_pipeline()
    if owners is not None:
        rows = rows.filter(owner__in=owners)
    return sorted(
        Principal.objects.filter(pk__in=rows.values("owner")).values_list("name", flat=True)
    )


def _among(name: str, owners: Collection[int] | None) -> bool:
    """Whether this one is among them; None is everybody."""
    return owners is None or Principal.objects.filter(name=name, pk__in=owners).exists()


def _way(names: Sequence[str]) -> str:
    """How each of them finishes a purge in the vault that is theirs."""
    each = [
        f"ARGUS_PRINCIPAL={shlex.quote(name)} ARGUS_VAULT=FOLDER manage.py purge --finish"
        for name in names
    ]
    return f"{', and '.join(each)}, with the folder of {' and '.join(names)}"
