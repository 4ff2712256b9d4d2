"""Git as a place that the vault goes to: one commit for each export that changed something.

Writes: the vault's repository, by the `git` command. The repository is the vault's own: one around
it is somebody's project, and goes where that is pushed. What a person staged stays staged; only
files of ours are committed, of those none that the person's `.gitignore` leaves out. Knows nothing
about notes.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from memory.errors import InfraError, RefusedError
from memory.text.region import OURS

#: How long one git command may take.
GIT_SECONDS = 120.0

#: Characters of what git said that are told.
GIT_SAID_CHARACTERS = 300

#: Whose commits they are, where the person's own git knows nobody.
NAME, EMAIL = "Argus", "argus@localhost"

# Nothing that lies in a vault runs: it may have come from anywhere.
_SAFE = (
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "commit.gpgSign=false",
    # Our bytes are committed as they are.
    "-c",
    "core.autocrlf=false",
    "-c",
    "core.safecrlf=false",
)

#: What a person has begun and not ended: a commit of ours in between would be part of it.
_BEGUN = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD")


class GitAway(InfraError):
    """Git did not commit what was exported."""


class Inside(RefusedError):
    """The vault lies inside another repository."""

    def __init__(self, root: Path, around: str) -> None:
        super().__init__(
            f"The vault {root} was exported and not committed: it lies inside the repository "
            f"{around}, and would go where that is pushed. Make the vault a repository of its own "
            f"(git -C {root} init), move it, or leave git to that repository (ARGUS_VAULT_GIT).",
            reason="inside_a_repository",
        )


def commit(root: Path, lie: Collection[str], ever: Collection[str], *, message: str) -> str:
    """Commit our files: where they `lie`, and where any `ever` lay and nothing is any more; the new
    commit's id, or "" when nothing of them changed. A folder without a repository gets one.

    Raises GitAway when git is not there or refuses, or a person's merge waits to be ended, Inside
    when another repository lies around the vault; the files are exported all the same.
    """
    if shutil.which("git") is None:
        raise GitAway("git is not installed: the vault was exported and not committed")
    root = root.resolve()
    top = _run(root, "rev-parse", "--show-toplevel", may_fail=True)
    if not top:
        _run(root, "init", "--quiet")
    elif not os.path.samefile(top, root):
        raise Inside(root, top)
    for name in _BEGUN:
        if _run(root, "rev-parse", "--quiet", "--verify", name, may_fail=True):
            raise GitAway(f"the vault was exported and not committed: {name} waits in {root}")
    _leave_out(root)
    mine = _known(root, lie, ever)
    if not mine:
        return ""
    listed = "\0".join(mine)
    by_list = ("--pathspec-from-file=-", "--pathspec-file-nul")
    # By force: of what it has already git would say that it is told to ignore it.
    _run(root, "add", "--all", "--force", *by_list, listed=listed)
    staged = _names(
        _run(root, "diff", "--cached", "--no-renames", "--name-only", "-z", "--relative")
    )
    changed = [path for path in mine if path in staged]
    if not changed:
        return ""
    _run(
        root, "commit", "--quiet", "--no-verify", "--message", message, "--only", *by_list,
        listed="\0".join(changed),
    )  # fmt: skip
    return _run(root, "rev-parse", "HEAD")


def _known(root: Path, lie: Collection[str], ever: Collection[str]) -> list[str]:
    """Of these the ones that git can add: those that are there, and those that it has yet; none
    that it is told to ignore, and none in a repository within the vault."""
    tracked = _names(_run(root, "ls-files", "-z"))
    there = {path for path in {*lie, *ever} if os.path.lexists(root / path)}
    listed = (there & set(lie)) | ((tracked & {*lie, *ever}) - there)
    asked = "\0".join(sorted(listed))
    ignored = _names(_run(root, "check-ignore", "-z", "--stdin", listed=asked, fine=(0, 1)))
    apart = {
        folder
        for folder in {path.rpartition("/")[0] for path in listed}
        if any((root / above / ".git").exists() for above in _upwards(folder))
    }
    return sorted(path for path in listed - ignored if path.rpartition("/")[0] not in apart)


def _upwards(folder: str) -> list[str]:
    """This folder and those above it, below the vault."""
    steps = folder.split("/") if folder else []
    return ["/".join(steps[: deep + 1]) for deep in range(len(steps))]


def _leave_out(root: Path) -> None:
    """Our own folder is on no commit: a line at the end of the list of what is left out, whatever
    else is in there. Behind a link lies somebody else's file."""
    exclude = root / _run(root, "rev-parse", "--git-path", "info/exclude")
    line = f"{OURS}/".encode()
    exclude.parent.mkdir(parents=True, exist_ok=True)
    how = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        with open(os.open(exclude, how, 0o644), "a+b") as file:
            file.seek(0)
            known = file.read()
            if line not in known.split(b"\n"):
                begun = b"\n" if known and not known.endswith(b"\n") else b""
                file.write(begun + line + b"\n")
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise GitAway(f"{exclude}: {error.strerror}") from error


def _names(said: str) -> set[str]:
    return {name for name in said.split("\0") if name}


def _run(
    root: Path,
    *words: str,
    listed: str | None = None,
    fine: Collection[int] = (0,),
    may_fail: bool = False,
) -> str:
    """What a git command says. Raises GitAway, with git's own words for whoever asked."""
    # A commit of single files adds them once more.
    filters = _filters(root) if words[0] in ("add", "commit") else ()
    command: Sequence[str] = ("git", *_SAFE, *_who(root, words), *words)
    try:
        done = subprocess.run(
            command,
            cwd=root,
            env=_environment(words[0], filters),
            input=(listed or "").encode("utf-8"),
            capture_output=True,
            timeout=GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GitAway(f"git {words[0]}: {error}") from error
    if done.returncode not in fine and not may_fail:
        said = done.stderr.decode("utf-8", "replace").strip()[:GIT_SAID_CHARACTERS]
        # Its words may name files.
        away = GitAway(f"git {words[0]} failed ({done.returncode})")
        away.told = f"git {words[0]} failed: {said}"
        raise away
    return done.stdout.decode("utf-8", "surrogateescape").rstrip("\n")


def _who(root: Path, words: Sequence[str]) -> tuple[str, ...]:
    """Our name for a commit where git does not know whose it is."""
    known = ("user.name", "user.email")
    if words[0] != "commit" or all(_run(root, "config", name, may_fail=True) for name in known):
        return ()
    return ("-c", f"user.name={NAME}", "-c", f"user.email={EMAIL}")


def _filters(root: Path) -> Iterator[tuple[str, str]]:
    """Settings that switch off the programs which the vault's own configuration puts before
    what is added."""
    said = _run(
        root, "config", "-z", "--includes", "--show-scope", "--name-only", "--get-regexp",
        r"^filter\.", may_fail=True,
    ).split("\0")  # fmt: skip
    for scope, name in zip(said[::2], said[1::2], strict=False):
        if scope in ("local", "worktree"):
            yield name, "false" if name.endswith(".required") else ""


def _environment(word: str, settings: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Ours without what would send git elsewhere, or have it ask somebody, and with settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    # Not by `-c`: a name may hold the sign that ends it there.
    given = list(settings)
    for number, (name, value) in enumerate(given):
        kept |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    kept["GIT_CONFIG_COUNT"] = str(len(given))
    # A path is a path and no pattern; `check-ignore` takes it so and refuses to be told.
    literal = "0" if word == "check-ignore" else "1"
    return kept | {"GIT_TERMINAL_PROMPT": "0", "GIT_LITERAL_PATHSPECS": literal, "LC_ALL": "C"}
