"""What `verify` looks at of the vault's log: nothing of a retired note was exported since.

Reads: exported_file, note. Writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from memory.findings import Found
from memory.verifying.check import Check, Look, count, rows, slack

# A page that goes, or goes aside, is handled after its note went; a page that a person changed is
# only told. The slack is long: what an export writes was gathered when it began.
EXPORTED = """
SELECT 'note', f.note_id::text, f.owner_id,
    jsonb_build_object('file', f.id, 'run', f.run_id, 'retired', n.deleted_at)
FROM exporter_exportedfile f
JOIN memory_stagerun r ON r.id = f.run_id
JOIN memory_note n ON n.id = f.note_id
WHERE f.action IN ('written', 'renamed') AND f.kind = 'note'
    AND n.deleted_at < least(f.created_at, r.started_at) - %(slack)s
"""


def exported(look: Look) -> Iterator[Found]:
    """Notes that were written into the vault after they were retired."""
    count(look, "SELECT count(*) FROM exporter_exportedfile")
    yield from rows(look, EXPORTED, slack=slack())


CHECKS = (Check("exported", "no retired note was written into the vault", exported),)
