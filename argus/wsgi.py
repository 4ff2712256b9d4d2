"""The web server's way in; the embedder is loaded beside it, so that no prompt waits for that."""

from __future__ import annotations

import gc
import os
import threading

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "argus.settings")

#: Objects made until the collector looks for rings among them.
# Why: a page makes many times as many, and leaves no rings; Python's own 700 costs it a tenth.
# Calibrate: processor time in `python -m tests.bench.pages`; the server's memory after a day.
COLLECT_AFTER_OBJECTS = 50_000

application = get_wsgi_application()

# What is loaded by now stays: nobody need look at it again.
gc.freeze()
gc.set_threshold(COLLECT_AFTER_OBJECTS)


def _warm() -> None:
    from memory.llm.choice import warm

    warm()


threading.Thread(target=_warm, name="warm", daemon=True).start()
