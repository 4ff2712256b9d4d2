"""Queued: how many tasks wait for a worker, and since when, wherever the queue lies.

Reads: the queue's table, or Redis where ARGUS_REDIS_URL is set. Knows nothing about what is done in
a task, and says "not known" (None) sooner than a number that is not so.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django_q.models import OrmQ
from django_q.signing import BadSignature, SignedPackage

from memory.lately import ask

#: Tasks in the queue's table that are counted.
QUEUED_COUNTED_MAX = 10_000

#: How long Redis may take to let us in, and for an answer.
# Why: who watches and who waits for a page should not hang on a queue that is away.
REDIS_SECONDS = 1.0

# Redis hands a task over and forgets it: what is in hand is not known there.
QUEUE_SQL = """
SELECT count(*) FILTER (WHERE lock <= %(now)s), count(*) FILTER (WHERE lock > %(now)s),
    min(lock) FILTER (WHERE lock <= %(now)s)
FROM (SELECT lock FROM django_q_ormq LIMIT %(most)s) t
"""

assert OrmQ._meta.db_table == "django_q_ormq"


@dataclass(frozen=True)
class Queue:
    """Tasks that wait for a worker, those in hand, and since when the oldest waits; None is not
    known, and `since` of a queue where nothing waits none."""

    waiting: int | None = None
    taken: int | None = None
    since: datetime | None = None

    def oldest_seconds(self, now: datetime) -> float | None:
        """How long the oldest waits: 0 where nothing does, None where it is not known."""
        if self.since is None:
            return 0.0 if self.waiting == 0 else None
        return max(0.0, (now - self.since).total_seconds())


def queue(now: datetime) -> Queue:
    """How the queue stands. Of one in Redis that does not answer nothing is known."""
    if settings.ARGUS.redis_url is None:
        return Queue(*ask(QUEUE_SQL, {"now": now, "most": QUEUED_COUNTED_MAX})[0])
    import redis

    url = settings.ARGUS.redis_url.get_secret_value()
    patience = {"socket_timeout": REDIS_SECONDS, "socket_connect_timeout": REDIS_SECONDS}
    if url.startswith("unix:"):
        del patience["socket_connect_timeout"]
    try:
        with redis.Redis.from_url(url, **patience) as client:
            # As django-q2 calls it.
            name = f"django_q:{settings.Q_CLUSTER['name']}:q"
            many = int(client.llen(name))
            return Queue(many, None, _put_at(client.lindex(name, 0)) if many else None)
    except redis.RedisError:
        return Queue()


def _put_at(task: Any) -> datetime | None:
    """When a task was put into the queue; None of what is no task of ours."""
    try:
        at = SignedPackage.loads(task.decode()).get("started") if task else None
    except (BadSignature, UnicodeDecodeError):
        return None
    return at if isinstance(at, datetime) else None
