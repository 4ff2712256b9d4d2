"""The doctor at the doors: keys, hooks, and whether what they were given was used.

Asks, changes nothing. Tells of a key its prefix alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from argus.doctoring.row import Row, bounded, few
from memory.access import SCOPES
from memory.measures import last_posts
from memory.models import AccessKey, Injection
from memory.templatetags.argus import age
from recall.impact import DAYS_BACK_MAX, used_rate

#: Days after which a key that nobody used should be looked at: never at all, and lately.
# Why: a key that lies about is worth nothing but to who finds it.
UNUSED_DAYS_MAX = 30
IDLE_DAYS_MAX = 180

#: Hours within which a hook should have been heard of.
HEARD_HOURS = 24

#: Keys that are named.
NAMED_MAX = 3


def keys() -> Iterator[Row]:
    """Keys that open nothing or too long, and whether there is any."""
    now = timezone.now()
    with bounded():
        held = list(AccessKey.objects.filter(revoked_at=None).exclude(parent__revoked_at__lt=now))
    useless = [key for key in held if not set(key.scopes) & set(SCOPES)]
    unused = [
        key
        for key in held
        if key.last_used_at is None and now - key.created_at > timedelta(days=UNUSED_DAYS_MAX)
    ]
    idle = [
        key
        for key in held
        if key.last_used_at and now - key.last_used_at > timedelta(days=IDLE_DAYS_MAX)
    ]
    fix = "Revoke them: manage.py revokekey PREFIX, or /ui/keys/."
    if useless:
        yield Row("keys", "fail", f"Keys without a scope: {_named(useless)}.", fix)
    if unused:
        told = f"Never used in {UNUSED_DAYS_MAX} days: {_named(unused)}."
        yield Row("keys", "warn", told, fix)
    if idle:
        yield Row("keys", "warn", f"Not used for {IDLE_DAYS_MAX} days: {_named(idle)}.", fix)
    if not held:
        # Nobody was wired yet, so that nothing is missing.
        what = "none yet: `make up` makes the first one, or manage.py createkey"
        yield Row("keys", "ok", what)
    elif not any("capture" in key.scopes for key in held):
        fix = "Run manage.py createkey --scope capture,recall; `make up` makes the first one."
        yield Row("keys", "warn", "No key may capture: hooks have no way in.", fix)
    elif not (useless or unused or idle):
        yield Row("keys", "ok", f"{len(held)} in force")


def _named(keys: Sequence[AccessKey]) -> str:
    return few([key.prefix for key in keys], NAMED_MAX)


def hooks() -> Iterator[Row]:
    """Whether a hook was heard of within a day: a post, or a recall that it asked for."""
    now = timezone.now()
    with bounded():
        posted = last_posts()[1]
        held = AccessKey.objects.filter(revoked_at=None)
        # What asks by no key is no hook: the command and the demo ask, too.
        asked = _last_recall() if held.filter(last_used_at__isnull=False).exists() else None
        # `argus-hook install` makes a key of the one that it is given.
        installed = held.filter(parent__isnull=False).exists()
    heard = max((at for at in (posted, asked) if at), default=None)
    if heard is None and not installed:
        what = (
            f"none was heard of yet: the line at {settings.ARGUS.url}/hook/ installs one, and"
            " `argus-hook doctor` tells what keeps it"
        )
        yield Row("hook", "ok", what)
        return
    if heard is None:
        fix = "Run `argus-hook doctor` where agents work."
        yield Row("hook", "warn", "A hook was given a key and was never heard of.", fix)
        return
    told = age(max(0.0, (now - heard).total_seconds()))
    if now - heard > timedelta(hours=HEARD_HOURS):
        fix = "Run `argus-hook doctor` where agents work, unless nobody worked."
        yield Row("hook", "warn", f"No hook was heard of for {told}.", fix)
    elif posted is None or now - posted > timedelta(hours=HEARD_HOURS):
        fix = "Run `argus-hook doctor` where agents work: what is said there is not captured."
        yield Row("hook", "warn", f"Hooks ask for recall ({told} ago) and capture nothing.", fix)
    else:
        yield Row("hook", "ok", f"heard of {told} ago")


def _last_recall() -> datetime | None:
    """When an agent's prompt, or a session's beginning, was last asked about."""
    rows = Injection.objects.as_pipeline().filter(Q(mode="prompt") | Q(mode="context"))
    found: datetime | None = (
        rows.order_by("-created_at").values_list("created_at", flat=True).first()
    )
    return found


def impact() -> Iterator[Row]:
    """How much of what was injected showed in answers; told, never judged."""
    with bounded():
        rate = used_rate(timezone.now() - timedelta(days=DAYS_BACK_MAX))
    if rate.rate is None:
        what = f"no injection was looked at in {DAYS_BACK_MAX} days"
    else:
        what = (
            f"{rate.rate:.0%} of {rate.checked} injections looked at in {DAYS_BACK_MAX} days showed"
            " in what was answered"
        )
    yield Row("impact", "ok", what)
