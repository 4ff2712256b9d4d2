"""The web server's way in; the embedder is loaded beside it, so that no prompt waits for that."""

from __future__ import annotations

import os
import threading

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "argus.settings")

application = get_wsgi_application()


def _warm() -> None:
    from memory.llm.choice import warm

    warm()


threading.Thread(target=_warm, name="warm", daemon=True).start()
