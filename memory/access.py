"""Keys and principals: make, revoke, list, and tell who a key stands for.

Reads and writes: principal, access_key. Audits: act, for what a person or a key did, in the same
transaction. Knows nothing about HTTP.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Collection
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet

from memory.acts import record_act, through
from memory.errors import Conflict, Forbidden, NotFound, RefusedError
from memory.models import AccessKey, Principal

#: What a key may be for.
SCOPES = ("capture", "recall", "operate", "resolve")

#: How stale `last_used_at` may be.
# Why: a write on every request would cost more than the request.
LAST_USED_MINUTES = 5

#: Keys in force that one key may have made.
# Why: a machine needs one for each way of asking; a program in a loop should hear of it.
CHILDREN_MAX = 50

#: What every key starts with, so that secret scanners (ours among them) know one.
KEY_MARK = "argus"


def principal(name: str | None = None) -> Principal:
    """The principal of this name, made when new; without a name, the one commands act as."""
    found, _ = Principal.objects.get_or_create(name=name or settings.ARGUS.principal)
    return found


def new_prefix() -> str:
    """A name for a key to be, which tells nothing of it."""
    return secrets.token_hex(4)


@transaction.atomic
def create_key(
    *,
    owner: str,
    scopes: Collection[str],
    name: str = "",
    parent: AccessKey | None = None,
    by: Principal | None = None,
    prefix: str = "",
) -> tuple[str, AccessKey]:
    """A new key, shown this once, and its row. Raises RefusedError for an unknown scope.

    `by` is who had it made, for the list of acts; None: Argus made it for itself. `prefix` is one
    of `new_prefix`, given out before: a second key of it is not made, which raises Conflict.
    """
    if unknown := sorted(set(scopes) - set(SCOPES)):
        raise RefusedError(f"unknown scope {', '.join(unknown)}: allowed are {', '.join(SCOPES)}")
    if not scopes:
        raise RefusedError(f"a key needs a scope: {', '.join(SCOPES)}")
    whose = principal(owner)
    if prefix:
        # Two who ask at once with the same prefix: one makes the key, the other hears of it.
        Principal.objects.select_for_update(no_key=True).get(pk=whose.pk)
        if made := AccessKey.objects.filter(prefix=prefix).first():
            raise Conflict(
                f"the key {prefix} was made by this form already, at"
                f" {made.created_at:%Y-%m-%d %H:%M:%S}Z, and shown then. If it was lost, revoke it;"
                " load the page again to make another"
            )
    prefix = prefix or new_prefix()
    key = f"{KEY_MARK}_{prefix}_{secrets.token_urlsafe(32)}"
    row = AccessKey.objects.create(
        principal=whose,
        parent=parent,
        name=name,
        prefix=prefix,
        digest=digest(key),
        scopes=[scope for scope in SCOPES if scope in scopes],
    )
    if by is not None:
        detail = {"for": row.principal.name, "scopes": row.scopes}
        detail |= {"parent": parent.prefix} if parent else {}
        record_act(by, "make", "key", prefix, now=row.created_at, detail=detail)
    return key, row


@transaction.atomic
def derive_key(
    parent: AccessKey, *, scopes: Collection[str], name: str = ""
) -> tuple[str, AccessKey]:
    """A new key of the same principal that can do no more than `parent`, and falls with it.

    Raises Forbidden when `parent` was itself made by a key, lacks one of the scopes or is revoked;
    RefusedError for an unknown scope, for none, and when it made CHILDREN_MAX already.
    """
    if parent.parent_id:
        raise Forbidden("a key that a key made makes none: ask with the one that made it")
    if lacking := sorted(set(scopes) & set(SCOPES) - set(parent.scopes)):
        raise Forbidden(f"this key lacks the scope {', '.join(lacking)}, and gives none on")
    # Locked, so that no key is made after its parent fell, nor more of them than allowed.
    if not AccessKey.objects.select_for_update(no_key=True).filter(pk=parent.pk, revoked_at=None):
        raise Forbidden("this key was revoked meanwhile")
    if AccessKey.objects.filter(parent=parent, revoked_at=None).count() >= CHILDREN_MAX:
        raise RefusedError(f"this key made {CHILDREN_MAX} keys already: revoke some of them")
    whose = parent.principal
    # Why here: the act is this key's, whatever door it came by.
    with through("api", parent):
        return create_key(owner=whose.name, scopes=scopes, name=name, parent=parent, by=whose)


@transaction.atomic
def revoke_key(prefix: str, *, now: datetime, by: Principal | None = None) -> AccessKey:
    """Revoke the key with this prefix, whosever it is, and those it made, at once.

    For whoever rules this machine. Raises NotFound.
    """
    fell = _revoke(AccessKey.objects.filter(prefix=prefix), by=by, now=now)
    if not fell:
        raise NotFound(f"no key in force has the prefix {prefix}: see `manage.py keys`")
    return fell[0]


@transaction.atomic
def revoke_one(
    pk: int, *, by: Principal, now: datetime, reason: str = "", everyones: bool = False
) -> AccessKey:
    """Revoke one key and those it made, at once; the key as it is now.

    Only `by`'s own, or anybody's where `everyones`. Raises NotFound, and Conflict with the time
    when it had fallen already.
    """
    mine = AccessKey.objects.filter(pk=pk)
    mine = mine if everyones else mine.filter(principal=by)
    fell = _revoke(mine, by=by, now=now, reason=reason)
    if fell:
        return fell[0]
    if (row := mine.first()) is None or row.revoked_at is None:
        raise NotFound("there is no such key")
    raise Conflict(f"the key {row.prefix} was revoked at {row.revoked_at:%Y-%m-%d %H:%M:%S}Z")


@transaction.atomic
def revoke_own(key: AccessKey, *, now: datetime) -> None:
    """Revoke this very key and those it made; one that fell meanwhile stays as it fell."""
    with through("api", key):
        _revoke(AccessKey.objects.filter(pk=key.pk), by=key.principal, now=now)


def revoke_all(whose: Principal, *, now: datetime) -> int:
    """Revoke every key of a principal; how many fell. Who calls it writes the act of the whole."""
    return AccessKey.objects.filter(principal=whose, revoked_at=None).update(revoked_at=now)


def _revoke(
    keys: QuerySet[AccessKey], *, by: Principal | None, now: datetime, reason: str = ""
) -> list[AccessKey]:
    """Revoke what of these is in force, and their children; the former. Inside a transaction."""
    found = keys.filter(revoked_at=None).select_for_update(of=("self",), no_key=True)
    fell = list(found.select_related("principal", "parent").order_by("pk"))
    for row in fell:
        children = AccessKey.objects.filter(parent=row, revoked_at=None)
        named = list(children.order_by("pk").values_list("prefix", flat=True))
        AccessKey.objects.filter(Q(pk=row.pk) | Q(parent=row), revoked_at=None).update(
            revoked_at=now
        )
        row.revoked_at = now
        if by is not None:
            detail = {"for": row.principal.name, "children": named}
            record_act(by, "revoke", "key", row.prefix, now=now, reason=reason, detail=detail)
    return fell


def authenticate(key: str, *, now: datetime) -> AccessKey | None:
    """The key's row when it is in force, and the one that made it, too; else None."""
    wanted = digest(key)
    row = AccessKey.objects.select_related("principal", "parent").filter(digest=wanted).first()
    # The lookup is by digest, which nobody can steer; the comparison is constant all the same.
    if row is None or not hmac.compare_digest(row.digest, wanted) or row.revoked_at:
        return None
    if row.parent and row.parent.revoked_at:
        return None
    if row.last_used_at is None or now - row.last_used_at > timedelta(minutes=LAST_USED_MINUTES):
        AccessKey.objects.filter(pk=row.pk).update(last_used_at=now)
    return row


def digest(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()
