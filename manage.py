#!/usr/bin/env python
"""The door to every command of Argus."""

from __future__ import annotations

import os
import sys

#: What a command answers when the database is away: try again later.
EXIT_AWAY = 75
EXIT_FAILED, EXIT_USAGE = 1, 2


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "argus.settings")
    import django
    from django.core.management import execute_from_command_line
    from django.db import OperationalError

    from argus.binaries import ClusterError
    from argus.environment import EnvironmentProblem
    from memory.errors import ConfigurationError

    try:
        django.setup()
        from argus.ready import make_ready

        make_ready(sys.argv)
        execute_from_command_line(sys.argv)
    except EnvironmentProblem as problem:
        print(problem, file=sys.stderr)
        sys.exit(EXIT_USAGE)
    except ConfigurationError as problem:
        print(problem, file=sys.stderr)
        sys.exit(EXIT_FAILED)
    except (ClusterError, OperationalError) as error:
        print(f"The database is away. {error}".strip(), file=sys.stderr)
        sys.exit(EXIT_AWAY)


if __name__ == "__main__":
    main()
