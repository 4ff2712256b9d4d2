#!/usr/bin/env python
"""The door to every command of Argus."""

from __future__ import annotations

import os
import sys

#: What a command answers when the database is away: try again later.
EXIT_AWAY = 75
EXIT_USAGE = 2


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "argus.settings")
    from django.core.management import execute_from_command_line
    from django.db import OperationalError

    from argus.binaries import ClusterError
    from argus.environment import EnvironmentProblem

    try:
        execute_from_command_line(sys.argv)
    except EnvironmentProblem as problem:
        print(problem, file=sys.stderr)
        sys.exit(EXIT_USAGE)
    except (ClusterError, OperationalError) as error:
        print(f"The database is away. {error}".strip(), file=sys.stderr)
        sys.exit(EXIT_AWAY)


if __name__ == "__main__":
    main()
