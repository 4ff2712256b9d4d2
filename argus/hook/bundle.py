"""The client as one file and as a folder: the same bytes from the same sources on every machine.

Knows nothing about what the client does, nor about Django: it also runs inside the zipapp, where it
unpacks the very archive that it lies in. A zip keeps no compiled code, so that hooks run from the
folder and the archive is the transport only.
"""

from __future__ import annotations

import compileall
import hashlib
import io
import os
import py_compile
import shutil
import sys
import zipfile

#: What the client is made of, from the folder above `argus`.
# Why these: the hook reads transcripts and takes secrets out by the rules that the server has.
SOURCES = (
    "argus/__init__.py",
    "argus/hook",
    "memory/__init__.py",
    "memory/errors.py",
    "memory/text",
    "memory/transcripts",
)
SUFFIXES = (".py", ".ts", ".json", ".sh")

#: The name of the script that hooks run, and of the file beside it that tells which build it is.
SCRIPT = "argus-hook"
DIGEST = "sha256"

#: The folder of the builds, beside the link that leads to the one that hooks run.
BUILDS = "builds"

_SHEBANG = b"#!/usr/bin/env python3\n"
_MAIN = b"""import sys

if sys.version_info < (3, 9):
    sys.exit("argus-hook needs Python 3.9 or newer, and this is %d.%d." % sys.version_info[:2])

from argus.hook.main import main

sys.exit(main(sys.argv[1:]))
"""
# Why a script and not a folder with a __main__: running a folder imports runpy first.
_RUN = b"""import os
import sys

# Why the real place: who has begun with one build goes on with it when another is installed.
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from argus.hook.main import main  # noqa: E402 - the path comes first

sys.exit(main(sys.argv[1:]))
"""


def files() -> dict[str, bytes]:
    """Every source of the client by its name in the archive, from wherever this module lies."""
    root = __file__[: -len("/argus/hook/bundle.py")]
    if os.path.isfile(root):
        with zipfile.ZipFile(root) as archive:
            names = [name for name in archive.namelist() if name != "__main__.py"]
            return {name: archive.read(name) for name in sorted(names)}
    found: dict[str, bytes] = {}
    for source in SOURCES:
        start = os.path.join(root, source)
        paths = [start] if os.path.isfile(start) else sorted(_below(start))
        for path in paths:
            with open(path, "rb") as handle:
                found[os.path.relpath(path, root).replace(os.sep, "/")] = handle.read()
    return found


def _below(folder: str) -> list[str]:
    return [
        os.path.join(place, name)
        for place, _, names in os.walk(folder)
        for name in names
        if name.endswith(SUFFIXES)
    ]


def build() -> bytes:
    """The zipapp. Stored, not deflated, and dated alike: its bytes depend on the sources alone."""
    buffer = io.BytesIO()
    buffer.write(_SHEBANG)
    with zipfile.ZipFile(buffer, "a", zipfile.ZIP_STORED) as archive:
        for name, data in {"__main__.py": _MAIN, **files()}.items():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.create_system = 3
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, data)
    return buffer.getvalue()


def digest() -> str:
    """SHA-256 of the zipapp, in hex."""
    return hashlib.sha256(build()).hexdigest()


def settle(lib: str) -> None:
    """Make the link `lib` lead to this build, compiled, in the folder of builds beside it.

    A hook that starts meanwhile finds one whole build, since only the link changes, by one rename.
    Raises OSError.
    """
    name = digest()[:12]
    unpack(os.path.join(os.path.dirname(lib), BUILDS, name))
    point(lib, name)


def point(lib: str, name: str) -> None:
    """Let the link `lib` lead to the build of this name. Raises OSError."""
    builds = os.path.join(os.path.dirname(lib), BUILDS)
    before = os.path.basename(os.readlink(lib)) if os.path.islink(lib) else ""
    draft = f"{lib}.{os.getpid()}.new"
    os.symlink(os.path.join(BUILDS, name), draft)
    if os.path.isdir(lib) and not before:
        shutil.rmtree(lib)
    os.rename(draft, lib)
    for other in os.listdir(builds):
        # Why the one before stays: hooks that began with it import more of it later.
        if before != name and other not in (name, before):
            shutil.rmtree(os.path.join(builds, other), ignore_errors=True)


def unpack(target: str) -> None:
    """Fill the folder `target` with the client, compiled; what is there and right stays as it is.

    Raises OSError when the folder cannot be written.
    """
    # The digest comes last: a folder without it was never filled to the end.
    for name, data in {**files(), SCRIPT: _RUN, DIGEST: digest().encode() + b"\n"}.items():
        path = os.path.join(target, *name.split("/"))
        if not _holds(path, data):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            draft = f"{path}.{os.getpid()}.new"
            with open(draft, "wb") as handle:
                handle.write(data)
            os.rename(draft, path)
    # Why by hash: a folder is copied, and a date would make Python compile again.
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    compileall.compile_dir(target, quiet=2, force=True, invalidation_mode=mode, stripdir=target)


def current(lib: str) -> bool:
    """Whether the link leads to this build, whole, and compiled for this Python."""
    compiled = f"main.{sys.implementation.cache_tag}.pyc"
    return (
        os.path.islink(lib)
        and os.path.basename(os.readlink(lib)) == digest()[:12]
        and os.path.exists(os.path.join(lib, "argus", "hook", "__pycache__", compiled))
        and all(_holds(os.path.join(lib, name), data) for name, data in files().items())
        and _holds(os.path.join(lib, SCRIPT), _RUN)
        and _holds(os.path.join(lib, DIGEST), digest().encode() + b"\n")
    )


def _holds(path: str, data: bytes) -> bool:
    try:
        with open(path, "rb") as handle:
            return handle.read() == data
    except OSError:
        return False


def main() -> int:
    """`python -m argus.hook.bundle FILE` writes the zipapp and prints its digest."""
    path = sys.argv[1]
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "wb") as handle:
        handle.write(build())
    os.chmod(path, 0o755)
    print(f"{digest()}  {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
