"""`qcluster`: the worker. It ends as a whole when one of its processes was killed.

Its processes hand each other tasks by pipes with locks. Who is killed (by a person, or because the
machine has no memory left) may hold one for ever, and whoever is started in its place waits for
it: a worker that looks alive and does nothing. What starts workers starts a new one.
"""

from __future__ import annotations

import logging
import os
import sys
from multiprocessing import Process
from typing import Any

from django_q import cluster
from django_q.management.commands import qcluster

logger = logging.getLogger("django-q")

#: How long the others may take to put back what they have in hand.
END_SECONDS_MAX = 10


# Ignored here and below: django-q2 has no types.
class Whole(cluster.Sentinel):  # type: ignore[misc]
    """Django-q's keeper of the processes, which starts none in the place of a killed one."""

    def reincarnate(self, process: Process) -> None:
        """Start another; ends this process where that one was ended by a signal not of ours."""
        if (process.exitcode or 0) >= 0:
            super().reincarnate(process)
            return
        logger.critical("One process ended by signal %s: all end.", -(process.exitcode or 0))
        others = [*self.pool, self.monitor, self.pusher]
        for one in others:
            one.terminate()
        for one in others:
            one.join(END_SECONDS_MAX)
            one.kill()
        # Why not sys.exit: it would wait for pipes that nobody reads any more.
        os._exit(1)


class Command(qcluster.Command):  # type: ignore[misc]
    def handle(self, *args: Any, **options: Any) -> None:
        cluster.Sentinel = Whole
        if options["run_once"]:
            super().handle(*args, **options)
            return
        if options["cluster_name"]:
            os.environ["Q_CLUSTER_NAME"] = options["cluster_name"]
        made = cluster.Cluster()
        made.start()
        made.sentinel.join()
        if made.sentinel.exitcode:
            sys.exit(1)
