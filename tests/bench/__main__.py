"""Benchmarks, one after the other, each in a process of its own: `make bench` for all of them."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

#: In the order of the README's table; those that need the corpus say so and go on.
BENCHES = (
    "capture",
    "recall",
    "graph",
    "pipeline",
    "hook",
    "clients",
    "scale",
    "pages",
    "vault",
    "verify",
    "rebuild",
    "footprint",
    "profiled",
    "distill_locomo",
    "judge_pairs",
    "topic_shift",
    "cosine_floors",
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("name", nargs="*", help=f"all of them unless named: {', '.join(BENCHES)}")
    named = parser.parse_args().name
    if unknown := sorted({*named} - {*BENCHES}):
        parser.error(f"no benchmark is called {', '.join(unknown)}; there are {', '.join(BENCHES)}")
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    failed = []
    for name in named or BENCHES:
        print(f"\n== tests.bench.{name}", flush=True)
        command = [sys.executable, "-m", f"tests.bench.{name}"]
        if subprocess.run(command, env=environment).returncode:
            failed.append(name)
    if failed:
        print(f"\nfailed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
