"""Several machines: what a process is told of them, and that what runs by the clock runs once."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as configured
from django.db import connections
from django.utils import timezone
from django_q.models import Failure, OrmQ, Schedule, Success
from django_q.scheduler import scheduler
from pydantic import SecretStr

from argus import environment, schedules
from argus.doctoring import work
from memory.queued import Queue
from memory.queued import queue as tasks
from tests.standby import until

URL = "postgresql://argus_app:word@db-rw:5432/argus"
STANDBY = "postgresql://argus_app:word@db-ro:5432/argus?connect_timeout=7"

TELL = """
import json
import django
django.setup()
from argus import settings
from django_q.brokers import get_broker
broker = type(get_broker()).__name__ if settings.ARGUS.redis_url else ""
print(json.dumps([settings.DATABASES, settings.Q_CLUSTER, broker]))
"""

PUT = """
import django
django.setup()
from django_q.scheduler import scheduler
scheduler()
"""


def told(tmp_path: Path, **variables: str) -> Any:
    """What a process makes of these variables: (databases, queue, broker)."""
    done = subprocess.run(
        [sys.executable, "-c", TELL],
        env={
            **{name: value for name, value in os.environ.items() if not name.startswith("ARGUS_")},
            **{f"ARGUS_{name}": value for name, value in variables.items()},
            "ARGUS_HOME": str(tmp_path / "home"),
            "ARGUS_DATABASE_URL": URL,
            "DJANGO_SETTINGS_MODULE": "argus.settings",
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_it_takes_standby_pooler_and_redis_from_the_environment(tmp_path: Path) -> None:
    pytest.importorskip("redis")
    # By default none of them.
    assert configured.Q_CLUSTER["orm"] == "default" and "redis" not in configured.Q_CLUSTER
    assert not configured.DATABASES["default"]["DISABLE_SERVER_SIDE_CURSORS"]
    assert list(configured.DATABASES) == ["default"]
    more = {"REPLICA_URL": STANDBY, "POOLED": "true", "REDIS_URL": "redis://queue:6379/0"}
    databases, queue, broker = told(tmp_path, **more)
    assert databases["replica"]["HOST"] == "db-ro" and databases["default"]["HOST"] == "db-rw"
    # What the address says wins; what it does not say cannot keep a prompt waiting.
    assert databases["replica"]["OPTIONS"]["connect_timeout"] == "7"
    assert databases["replica"]["OPTIONS"]["tcp_user_timeout"] == "3000"
    assert all(one["DISABLE_SERVER_SIDE_CURSORS"] for one in databases.values())
    assert (queue["redis"], "orm" in queue, broker) == ("redis://queue:6379/0", False, "Redis")


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"REPLICA_URL": STANDBY}, "ARGUS_DATABASE_URL is not set, and ARGUS_REPLICA_URL needs it"),
        ({"POOLED": "true"}, "ARGUS_DATABASE_URL is not set, and ARGUS_POOLED needs it"),
        (
            {"DATABASE_URL": URL, "REPLICA_URL": STANDBY.replace("/argus?", "/other?")},
            "ARGUS_REPLICA_URL names another database than ARGUS_DATABASE_URL",
        ),
        ({"REDIS_URL": "http://queue"}, "ARGUS_REDIS_URL is a value that is not shown; allowed:"),
    ],
)
def test_it_refuses_what_cannot_work(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], message: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(f"ARGUS_{name}", value)
    with pytest.raises(environment.EnvironmentProblem) as caught:
        environment.read()
    assert message in str(caught.value) and "word" not in str(caught.value)


def test_schedulers_of_two_hosts_queue_each_task_once(clone_db: str) -> None:
    schedules.sync()
    due = Schedule.objects.count()
    Schedule.objects.update(next_run=timezone.now() - timedelta(minutes=1))
    start = threading.Barrier(4)

    def host() -> None:
        try:
            start.wait(10)
            scheduler()
        finally:
            connections.close_all()

    hosts = [threading.Thread(target=host) for _ in range(4)]
    for one in hosts:
        one.start()
    for one in hosts:
        one.join()
    queued = [row.task["func"] for row in OrmQ.objects.all()]
    assert sorted(queued) == sorted(Schedule.objects.values_list("func", flat=True))
    assert len(queued) == due > 0
    assert not Schedule.objects.filter(next_run__lt=timezone.now()).exists()


def test_a_scheduled_task_goes_through_redis_and_is_told_in_postgres(
    clone_db: str, clone_environment: dict[str, str], tmp_path: Path, settings: Any
) -> None:
    pytest.importorskip("redis")
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("no redis-server on this machine: apt install redis-server")
    place = tmp_path / "redis.sock"
    words = ["--port", "0", "--unixsocket", str(place), "--save", "", "--dir", str(tmp_path)]
    queue = subprocess.Popen([program, *words], stdout=subprocess.DEVNULL)
    environment = {
        **clone_environment,
        "ARGUS_REDIS_URL": f"unix://{place}",
        "ARGUS_SECRET_KEY": configured.SECRET_KEY,
    }
    schedules.sync()
    try:
        until(place.exists, "redis does not answer")
        settings.ARGUS = configured.ARGUS.model_copy(
            update={"redis_url": SecretStr(environment["ARGUS_REDIS_URL"])}
        )
        now = timezone.now()
        assert tasks(now) == Queue(0, None, None) and tasks(now).oldest_seconds(now) == 0
        for command in (["-c", PUT], ["manage.py", "qcluster", "--run-once"]):
            done = subprocess.run(
                [sys.executable, *command], env=environment, capture_output=True, text=True
            )
            assert done.returncode == 0, done.stderr
            if PUT in command:
                waiting = tasks(timezone.now())
                assert waiting.waiting == Schedule.objects.count() and waiting.taken is None
                assert waiting.since and now <= waiting.since <= timezone.now()
        until(lambda: Success.objects.exists(), "nothing was carried out")
        assert not OrmQ.objects.exists() and not Failure.objects.exists()
    finally:
        queue.terminate()
        queue.wait(10)
    assert tasks(now) == Queue() and tasks(now).oldest_seconds(now) is None
    [row] = work.queue()
    assert (row.state, row.away) == ("fail", True) and "Redis does not answer" in row.what
