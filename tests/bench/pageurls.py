"""The product's addresses, and two more: a bare `SELECT 1`, and one that forgets what is kept."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from django.core.cache import cache
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.urls import path

from argus.urls import handler404, handler500
from argus.urls import urlpatterns as product

__all__ = ["handler404", "handler500", "urlpatterns"]

Answer = Callable[[HttpRequest], HttpResponse]


def timed(get_response: Answer) -> Answer:
    """Around every middleware: the milliseconds of a request as the header Server-Timing, and those
    of the processor alone, this thread's and its database process's, which a busy machine does not
    make longer."""

    def around(request: HttpRequest) -> HttpResponse:
        before, started, worked = _spent(), time.perf_counter(), time.thread_time()
        response = get_response(request)
        wall = (time.perf_counter() - started) * 1000
        processor = (time.thread_time() - worked + _spent() - before) * 1000
        response["Server-Timing"] = f"all;dur={wall:.3f}, cpu;dur={processor:.3f}"
        return response

    return around


def _spent() -> float:
    """Processor seconds of the database process that serves this thread; 0 without one."""
    if connection.connection is None:
        return 0.0
    told = Path(f"/proc/{connection.connection.info.backend_pid}/schedstat")
    return int(told.read_text().split()[0]) / 1e9 if told.exists() else 0.0


def bare(request: HttpRequest) -> HttpResponse:
    """What any answer costs that asks the database once."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        return HttpResponse(str(cursor.fetchone()[0]))


def forget(request: HttpRequest) -> HttpResponse:
    """As if the process had just started."""
    cache.clear()
    return HttpResponse("forgotten")


urlpatterns = [path("bench/bare", bare), path("bench/forget", forget), *product]
