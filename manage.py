#!/usr/bin/env python
"""The door to every command of Argus."""

from __future__ import annotations

import io
import json
import os
import sys
from typing import NoReturn

#: What a command answers when the database is away: try again later.
EXIT_AWAY = 75
EXIT_FAILED, EXIT_USAGE = 1, 2
#: As the shell has it for what SIGPIPE ended.
EXIT_CLOSED = 141


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "argus.settings")
    import django
    from django.core.management import execute_from_command_line
    from django.db import OperationalError

    from argus.binaries import ClusterError
    from argus.environment import EnvironmentProblem
    from memory.errors import ConfigurationError

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Why: a terminal or a cron job that has no such letter gets another one, not a failure.
            stream.reconfigure(errors="replace")
    try:
        django.setup()
        from argus.ready import make_ready

        make_ready(sys.argv)
        execute_from_command_line(sys.argv)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read it has read enough (`| head`); what Python says at its end goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_CLOSED)
    except EnvironmentProblem as problem:
        end(str(problem), EXIT_USAGE)
    except ConfigurationError as problem:
        end(str(problem), EXIT_FAILED)
    except (ClusterError, OperationalError) as error:
        end(f"The database is away. {error}".strip(), EXIT_AWAY)


def end(why: str, code: int) -> NoReturn:
    """Say why no command ran; who asked for `--json` has it as an object, too.

    Why print: no command is there yet whose streams could be asked.
    """
    if "--json" in sys.argv:
        print(json.dumps({"error": why, "exit": code}))
    print(why, file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
