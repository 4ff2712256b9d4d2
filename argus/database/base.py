"""Django's PostgreSQL backend, which starts the embedded server when nothing answers.

So any command has a database, and importing the settings costs no server. Knows one thing more
than Django's: the key ARGUS_HOME of its settings.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
from django.db.backends.postgresql import base

from argus import postgres


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection to the embedded server of `settings_dict["ARGUS_HOME"]`."""

    def get_new_connection(self, conn_params: Any) -> Any:
        try:
            return super().get_new_connection(conn_params)
        except psycopg.OperationalError:
            # Why not ask first: the server runs nearly always, and asking costs a connection.
            postgres.start(Path(self.settings_dict["ARGUS_HOME"]))
            return super().get_new_connection(conn_params)
