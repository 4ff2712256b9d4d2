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

from memory.errors import NotFound, RefusedError
from memory.models import AccessKey, Principal

#: What a key may be for.
SCOPES = ("capture", "recall", "operate", "resolve")

#: How stale `last_used_at` may be.
# Why: a write on every request would cost more than the request.
LAST_USED_MINUTES = 5

#: What every key starts with, so that secret scanners (ours among them) know one.
KEY_MARK = "argus"


def principal(name: str | None = None) -> Principal:
    """The principal of this name, made when new; without a name, the one commands act as."""
    found, _ = Principal.objects.get_or_create(name=name or settings.ARGUS.principal)
    return found


def create_key(*, owner: str, scopes: Collection[str], name: str = "") -> tuple[str, AccessKey]:
    """A new key, shown this once, and its row. Raises RefusedError for an unknown scope."""
    if unknown := sorted(set(scopes) - set(SCOPES)):
        raise RefusedError(f"unknown scope {', '.join(unknown)}: allowed are {', '.join(SCOPES)}")
    if not scopes:
        raise RefusedError(f"a key needs a scope: {', '.join(SCOPES)}")
    prefix = secrets.token_hex(4)
    key = f"{KEY_MARK}_{prefix}_{secrets.token_urlsafe(32)}"
    row = AccessKey.objects.create(
        principal=principal(owner),
        name=name,
        prefix=prefix,
        digest=digest(key),
        scopes=[scope for scope in SCOPES if scope in scopes],
    )
    return key, row


def revoke_key(prefix: str, *, now: datetime) -> AccessKey:
    """Revoke the key with this prefix, at once. Raises NotFound."""
    if not AccessKey.objects.filter(prefix=prefix, revoked_at=None).update(revoked_at=now):
        raise NotFound(f"no key in force has the prefix {prefix}: see `manage.py keys`")
    return AccessKey.objects.select_related("principal").get(prefix=prefix)


def authenticate(key: str, *, now: datetime) -> AccessKey | None:
    """The key's row when it is in force, else None."""
    wanted = digest(key)
    row = AccessKey.objects.select_related("principal").filter(digest=wanted).first()
    # The lookup is by digest, which nobody can steer; the comparison is constant all the same.
    if row is None or not hmac.compare_digest(row.digest, wanted) or row.revoked_at:
        return None
    if row.last_used_at is None or now - row.last_used_at > timedelta(minutes=LAST_USED_MINUTES):
        AccessKey.objects.filter(pk=row.pk).update(last_used_at=now)
    return row


def digest(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()
