"""`python -m argus.hook`: the client from a checkout."""

from __future__ import annotations

import sys

from argus.hook.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
