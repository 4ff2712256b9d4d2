"""What a purge leaves in the vault: its files are removed by an export, which knows how.

Reads: what export reads. Writes: the vault, by the verb export. Audits: stage_run,
exported_file (by export). Knows nothing about what was purged: whatever the vault holds of notes
that are gone goes.
Verify: memory.proof, which reads the files.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from exporter.export import export
from exporter.git import GitAway, Inside
from exporter.models import ExportedFile
from exporter.place import NoVault, place
from memory.errors import ArgusError

#: Tables whose rows say that a purge concerns files: of notes that went, and of what others quoted.
FILES = "exporter_exportedfile"
QUOTES = "memory_evidence"


@dataclass(frozen=True)
class Swept:
    """What became of the files. `vault`: the folder, "" without one; `removed` files; `pending`:
    not all is done yet, for the reason `why`; `history`: git keeps what the files said."""

    vault: str = ""
    removed: int = 0
    pending: bool = False
    why: str = ""
    history: bool = False


def bring_up(tables: Collection[str]) -> Swept:
    """Bring the vault to what it shall hold now. `tables`: those of which a purge took rows along.
    Never raises for what a second try can mend: it is `pending` then."""
    # Notes that stay may have lost a quote. Files that were never written wait for nothing.
    concerned = FILES in tables or (
        QUOTES in tables and ExportedFile.objects.as_pipeline().exists()
    )
    try:
        where = place()
    except NoVault:
        why = "files were written, and no ARGUS_VAULT is set: name their folder, then --finish"
        return Swept(pending=True, why=why) if concerned else Swept()
    if not where.folder.is_dir():
        why = "the folder of the vault is not there"
        return Swept(str(where.folder), pending=True, why=why) if concerned else Swept()
    told = Swept(vault=str(where.folder), history=(where.folder / ".git").exists())
    try:
        report = export()
    except (GitAway, Inside) as error:
        # All files are done by then.
        return Swept(told.vault, why=error.told or str(error), history=told.history)
    except ArgusError as error:
        why = error.told or str(error)
        return Swept(told.vault, pending=True, why=why, history=told.history)
    left = [f"{one.path}: {one.why}" for one in report.troubles]
    return Swept(
        vault=told.vault,
        removed=report.removed + report.retired,
        pending=bool(report.pending),
        why="; ".join(left[:3]),
        history=told.history,
    )
