"""A purge from end to end: the record, what the planner remembers, the files, and the proof.

Put together from what each app offers as `purge`. Reads and writes: as they do. Audits:
purge_proof; the newest one of a purge counts. Knows nothing about doors.
Verify: `finish` of a purge that was cut off anywhere makes its proof, or says what it lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import psycopg
from django.conf import settings
from django.db.models import Q, QuerySet

from argus import scratch, unsent
from argus.owner import OwnerProblem
from exporter import purge as vault
from memory import outside, proof
from memory import purge as record
from memory.errors import NotFound, RefusedError
from memory.models import AccessKey, Principal, PurgeLedger, PurgeProof
from memory.selection import Selection, choose
from memory.text.passages import Passages, known

#: What no purge reaches, told with every receipt.
BEYOND = (
    "Dead rows lie in the database's files until VACUUM (autovacuum does it in time; VACUUM FULL "
    "as the owner at once), the log of writes (WAL) until it is recycled, archived copies of it "
    "for ever; a standby follows within its lag.",
    "Backups and exports made before still hold it: make a new one and remove the old ones.",
    "Folders that were a vault once, and vaults of others who saw it: the next export there "
    "removes its files.",
    "What the clients keep of a session themselves (no hook reads it again, `argus-hook backfill` "
    "would), and on other machines what hooks have not sent yet: delete it there, too.",
    "Logs of the database server, of web servers before it, and devices that the vault was synced "
    "to keep what they had.",
)

#: What is told whoever wanted to forbid what no note says.
NO_NOTE = (
    "no note came of what goes, and only what a note says is known again. A statement is forbidden "
    "by its words, as a note would have it: manage.py rejection forbid --words - (which reads them)"
)

#: How words are looked for that Argus does not have any more.
LOOK = "Who knows the words looks for them: manage.py purge --matching REGEX, without --yes"

#: What stands for the table of items that hooks had not sent yet, and now never will.
UNSENT = "posts of hooks"

#: What stands for the column where a pattern was looked for.
PATTERN = "what matches"

#: The same of git, where the vault has a repository.
HISTORY = (
    "git in {vault} keeps what the files said in its history: rewrite it (git filter-repo), or "
    "remove {vault}/.git and begin anew; whatever it was pushed to keeps its own."
)

#: What is said from now on is stored as before.
KEYS = (
    "Keys of whoever it was of stay in force, and store what their hooks post: {keys} (manage.py "
    "revokekey PREFIX)."
)


@dataclass(frozen=True)
class Outcome:
    """What a purge did and what its proof says; statements that were `forbidden`, and `known` as
    such before; `paths`: files that its words are in, which no row names; `beyond`: where it does
    not reach."""

    ledger: int
    counts: dict[str, int]
    forbidden: int
    known: int
    files: vault.Swept
    proof: PurgeProof
    paths: tuple[str, ...]
    beyond: tuple[str, ...]

    @property
    def proved(self) -> bool:
        """Whether all is gone, and shown to be."""
        return self.proof.proved and not self.files.pending


def carry_out(
    what: record.Plan,
    *,
    by: Principal,
    reason: str,
    clock: Callable[[], datetime],
    forbid: bool = False,
) -> Outcome:
    """Purge, and prove it. Raises as `memory.purge.purge` does, before anything is done."""
    done = record.purge(what, by=by, reason=reason, now=clock(), forbid=forbid)
    ledger = PurgeLedger.objects.get(pk=done.ledger)
    files = _beside(ledger, what.owners)
    unsent_ = _unsent(ledger, what.everything, what.owners, what.selection)
    shown = proof.prove(
        ledger, what.everything,
        owners=what.told_of(by), of=what.owners, twins=done.proof.scanned["twins"],
        folders=folders(),
        files_pending=files.pending, aside=_aside(what, by), now=clock(),
    )  # fmt: skip
    counts = {**done.counts, **({UNSENT: unsent_} if unsent_ else {})}
    return _outcome(ledger, counts, (done.forbidden, done.known), files, shown)


def finish(number: int, *, clock: Callable[[], datetime]) -> Outcome:
    """Do what a purge left undone, and prove it by the windows that were kept: all of its words,
    where they were few, or a sample of them, and then it says so. Raises NotFound for a purge that
    is none, or has nothing to be known by."""
    ledger = PurgeLedger.objects.filter(pk=number).first()
    last = latest(ledger) if ledger else None
    if ledger is None or last is None:
        raise NotFound(f"no purge {number} that could be finished")
    of = proof.owners_of(last)
    files, words = _beside(ledger, of), known(last.shingles)
    _unsent(ledger, words, of)
    shown = proof.prove(
        ledger, words, again=last, folders=folders(),
        files_pending=files.pending, aside=proof.Aside(copies=_copies()), now=clock(),
    )  # fmt: skip
    return _outcome(ledger, dict(ledger.counts.get("tables", {})), (0, 0), files, shown)


def mine(by: Principal, *, everyones: bool) -> QuerySet[PurgeLedger]:
    """Purges that this one is told of, the newest first: their own, those of nothing but what was
    theirs, or everybody's. What else stands in the ledger is no purge: ledgers that were let go,
    tables made anew."""
    rows = PurgeLedger.objects.filter(counts__has_key="raw_items").order_by("-pk")
    of_theirs = PurgeProof.objects.filter(scanned__of=[by.pk]).values("ledger")
    return rows if everyones else rows.filter(Q(actor=by.name) | Q(pk__in=of_theirs))


def state(shown: PurgeProof | None) -> str:
    """What a proof says, in a word or two."""
    if shown is None:
        return "none"
    if shown.files_pending:
        return "files wait"
    if any(not one["by_right"] for one in shown.elsewhere):
        return "elsewhere"
    if shown.elsewhere:
        return "by right"
    if shown.proved:
        return "clean"
    return "clean by sample" if shown.scanned.get("sampled") else "not proved"


def to_do(shown: PurgeProof, *, forbade_nothing: bool = False) -> list[str]:
    """What a person does about a purge that is not proved whole, a sentence each; nothing where it
    is, and all that was asked for was done."""
    finish, seen = f"manage.py purge --finish {shown.ledger_id}", shown.scanned
    told = [f"--forbid forbade nothing: {NO_NOTE}"] if forbade_nothing else []
    if shown.files_pending:
        told.append(f"files wait: mend what keeps them, then {finish}")
    wrong = [one for one in shown.elsewhere if not one["by_right"]]
    if back := [one for one in wrong if one["column"] == proof.BACK]:
        ids = [pk for one in back for pk in one["ids"]]
        more = sum(one["count"] for one in back) - len(ids)
        told.append(
            f"raw items that it removed are back: manage.py purge --raw {' '.join(ids)} --yes"
            f" --reason WHY (--all-owners, where they are another's), then {finish}"
            + (f", which names {more} more" if more else "")
        )
    elif wrong:
        told.append(
            f"its words stand where they should not: remove that (see above), then {finish}"
        )
    if any(one["place"] == proof.FILES for one in wrong):
        told.append(
            "the files are named above, and Argus changes none but its vault's and what hooks have "
            "not sent: delete each, or take the words out"
        )
    if shown.elsewhere and all(one["by_right"] for one in shown.elsewhere):
        told.append("other raw items say the same by right: purge those, too, if they are to go")
    if seen.get("sampled"):
        told.append(
            "not all of its words could be looked for again: they are gone, and of some no number "
            "is kept (of short ones none, as it could be guessed). Nothing is left to finish, and "
            f"no later look can say more. {LOOK}"
        )
    if seen.get("too_short"):
        told.append(f"{seen['too_short']} texts of one plain word were not looked for. {LOOK}")
    if seen.get("pattern"):
        told.append(f"the pattern found no end: look with a simpler one. {LOOK}")
    if not told and not shown.proved:
        told.append(f"it held no words that could be looked for. {LOOK}")
    return told


def latest(ledger: PurgeLedger) -> PurgeProof | None:
    """The proof that counts."""
    return PurgeProof.objects.filter(ledger=ledger).order_by("-pk").first()


def folders() -> tuple[Path, ...]:
    """Where files of ours may lie on this machine."""
    return outside.folders()


def _aside(what: record.Plan, by: Principal) -> proof.Aside:
    """What a pattern still matches, and databases that hold copies."""
    copies = _copies()
    if not what.selection.matching:
        return proof.Aside(copies=copies)
    try:
        found = choose(what.selection, by=by, everyones=what.everyones)
    except NotFound:
        return proof.Aside(left=(), copies=copies)
    except RefusedError:
        # Everything is gone by now: that nobody can say more is no wrong argument.
        return proof.Aside(left=(), ended=False, copies=copies)
    rows = {proof.RECORD: [str(pk) for pk in found.items], **found.rows}
    left = [
        proof.Elsewhere(table, PATTERN, tuple(ids[: proof.IDS_TOLD_MAX]), len(ids), False)
        for table, ids in rows.items()
        if ids
    ]
    return proof.Aside(left=left, copies=copies)


def _copies() -> tuple[str, ...]:
    """Throwaway databases that stand beside ours, with rows of the record in them: those that no
    process holds any more are dropped first, where the owner's address is known."""
    with suppress(OwnerProblem, psycopg.Error):
        scratch.leftovers()
    return tuple(scratch.standing())


def _beside(ledger: PurgeLedger, owners: Sequence[int] | None) -> vault.Swept:
    """What is no text of the record: what the planner remembers, and the files. `owners`: of whose
    it was, None where nobody knows."""
    record.forget_statistics()
    tables = ledger.counts.get("tables", {})
    return vault.bring_up(tables.keys(), owners)


def _unsent(
    ledger: PurgeLedger,
    words: Passages,
    owners: Sequence[int] | None,
    asked: Selection | None = None,
) -> int:
    """Items that hooks of this machine have not sent, and that would have gone, go."""
    if not owners:
        # No item went: it was about whoever asked, or was named.
        name = asked.owner if asked and asked.owner else ledger.actor
        owners = list(Principal.objects.filter(name=name).values_list("pk", flat=True))
    home = Path(settings.ARGUS.home)
    return unsent.forget(home, words, frozenset(ledger.hashes), owners=owners, asked=asked)


def _outcome(
    ledger: PurgeLedger,
    counts: dict[str, int],
    forbidden: tuple[int, int],
    files: vault.Swept,
    shown: proof.Shown,
) -> Outcome:
    beyond = [*BEYOND]
    if files.history:
        beyond.append(HISTORY.format(vault=files.vault))
    keys = AccessKey.objects.filter(principal__in=shown.row.scanned["of"] or (), revoked_at=None)
    if prefixes := list(keys.order_by("pk").values_list("prefix", flat=True)):
        beyond.append(KEYS.format(keys=", ".join(prefixes)))
    return Outcome(ledger.pk, counts, *forbidden, files, shown.row, shown.paths, tuple(beyond))
