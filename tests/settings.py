"""The settings under test: Argus's own, on a home and a server that belong to the tests alone.

Nothing of the operator's environment reaches a test, and no test reaches `~/.argus`.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: Seeds of what is killed at random; a person may ask for more.
SEEDS = int(os.environ.get("ARGUS_TEST_SEEDS", "3"))

#: What asks: "test", or "bench", which measures a disk and has a server of its own there.
ASKED_BY = os.environ.get("TESTS_ASKED_BY", "test")

for _name in [name for name in os.environ if name.startswith("ARGUS_")]:
    del os.environ[_name]

#: One home for all test runs of this user, so that the server is made once.
# Why in the environment: commands that a test starts as processes find it, too.
TEST_HOME = (
    Path(os.environ.get("TMPDIR") or tempfile.gettempdir()) / f"argus-{ASKED_BY}-{os.geteuid()}"
)
os.environ["ARGUS_HOME"] = str(TEST_HOME.absolute())

# Why below: what is imported here may read the environment, which is as it is to be from here on.
from argus import postgres  # noqa: E402
from argus.settings import *  # noqa: E402, F403


def lock_of(root: Path) -> Path:
    """What whoever makes or removes this place of a server's files holds."""
    return root.with_name(f"{root.name}.lock")


@contextmanager
def placed(root: Path) -> Iterator[None]:
    """Nobody else makes or removes this place of a server's files meanwhile; and where it was a
    link to what lay in memory before the machine started anew, it is gone."""
    with open(lock_of(root), "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        if root.is_symlink() and not root.exists():
            root.unlink()
        yield


_root = postgres.place(TEST_HOME).root
if _root.is_symlink() and not _root.exists():
    # Whatever asks for these settings may start the server, which would fall over the link.
    with placed(_root):
        pass

# The second is what a real server checks a password by.
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.MD5PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
