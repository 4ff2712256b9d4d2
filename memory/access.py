"""Keys and principals: make, revoke, list, and tell who a key stands for.

Reads and writes: principal, access_key. Knows nothing about HTTP.
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

from memory.errors import Forbidden, NotFound, RefusedError
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


def create_key(
    *, owner: str, scopes: Collection[str], name: str = "", parent: AccessKey | None = None
) -> tuple[str, AccessKey]:
    """A new key, shown this once, and its row. Raises RefusedError for an unknown scope."""
    if unknown := sorted(set(scopes) - set(SCOPES)):
        raise RefusedError(f"unknown scope {', '.join(unknown)}: allowed are {', '.join(SCOPES)}")
    if not scopes:
        raise RefusedError(f"a key needs a scope: {', '.join(SCOPES)}")
    prefix = secrets.token_hex(4)
    key = f"{KEY_MARK}_{prefix}_{secrets.token_urlsafe(32)}"
    row = AccessKey.objects.create(
        principal=principal(owner),
        parent=parent,
        name=name,
        prefix=prefix,
        digest=digest(key),
        scopes=[scope for scope in SCOPES if scope in scopes],
    )
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
    return create_key(owner=parent.principal.name, scopes=scopes, name=name, parent=parent)


def revoke_key(prefix: str, *, now: datetime) -> AccessKey:
    """Revoke the key with this prefix and those it made, at once. Raises NotFound."""
    revoked = _revoke(AccessKey.objects.filter(prefix=prefix), now=now)
    if not revoked:
        raise NotFound(f"no key in force has the prefix {prefix}: see `manage.py keys`")
    return AccessKey.objects.select_related("principal").get(pk=revoked[0])


def revoke_own(key: AccessKey, *, now: datetime) -> None:
    """Revoke this very key and those it made; one that fell meanwhile stays as it fell."""
    _revoke(AccessKey.objects.filter(pk=key.pk), now=now)


@transaction.atomic
def _revoke(keys: QuerySet[AccessKey], *, now: datetime) -> list[int]:
    """Revoke what of these is in force, and their children; the ids of the former."""
    found = keys.filter(revoked_at=None).select_for_update(no_key=True).order_by("pk")
    fell = list(found.values_list("pk", flat=True))
    AccessKey.objects.filter(Q(pk__in=fell) | Q(parent__in=fell), revoked_at=None).update(
        revoked_at=now
    )
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
