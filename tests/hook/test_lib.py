"""The client's folder: whole at every moment, and a hook costs no prompt even without it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from argus.hook import bundle, wiring
from tests.hook.ground import Home
from tests.hook.installing import Person
from tests.hook.rawserver import Raw, answer, hear, saying

STARTS = 40


@pytest.fixture
def person(tmp_path: Path) -> Person:
    home = tmp_path / "ho me's"
    (home / ".claude").mkdir(parents=True)
    (home / ".codex").mkdir()
    return Person(home)


def said(person: Person, line: str, shell: str = "sh") -> tuple[int, bytes]:
    """What a client sees of this command line: exit code and stdout."""
    done = subprocess.run(
        [shell, "-c", line],
        input=json.dumps({"session_id": "s", "cwd": "/", "prompt": "why?"}).encode(),
        capture_output=True,
        env={"HOME": str(person.home), "PATH": os.environ["PATH"]},
        timeout=60,
    )
    return done.returncode, done.stdout


def lines(person: Person) -> list[str]:
    paths = (person.settings, person.codex / "hooks.json")
    return [
        handler["command"]
        for path in paths
        for handlers in person.hooks(path).values()
        for handler in handlers
    ]


def test_it_costs_no_prompt_when_the_client_is_gone(person: Person) -> None:
    person.installs("all")
    assert len(lines(person)) == 10
    (person.home / ".argus" / "lib").unlink()
    for line in lines(person):
        assert said(person, line) == (0, b""), line


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_it_ends_with_0_whatever_becomes_of_python(
    person: Person, tmp_path: Path, shell: str
) -> None:
    killed = tmp_path / "killed"
    killed.write_text("#!/bin/sh\nkill -9 $$\n")
    killed.chmod(0o755)
    for python in ("/nowhere/python3", str(killed), "/bin/false"):
        line = wiring.command(python, "/x/.argus/lib/argus-hook", "recall", "claude")
        assert said(person, line, shell) == (0, b"")
        assert wiring.ours({"command": line}, "claude")
        assert wiring.ours({"command": line.removesuffix(" || exit 0")}, "claude")
        assert not wiring.ours({"command": line + " || exit 0"}, "claude")


def test_it_is_whole_at_every_moment_of_an_installation(person: Person) -> None:
    person.installs("claude")
    argus = person.home / ".argus"
    for name in ("one", "two"):
        bundle.unpack(str(argus / "builds" / name))
        bundle.point(str(argus / "lib"), name)
    line = person.hooks()["UserPromptSubmit"][0]["command"].removesuffix(" || exit 0")
    over = threading.Event()

    def install() -> None:
        while not over.is_set():
            bundle.point(str(argus / "lib"), "one")
            bundle.point(str(argus / "lib"), "two")

    installing = threading.Thread(target=install)
    installing.start()
    try:
        ends = [said(person, line) for _ in range(STARTS)]
    finally:
        over.set()
        installing.join()
    assert set(ends) == {(0, b"")}
    assert "Error" not in (argus / "log" / "argus-hook.log").read_text()
    assert sorted(path.name for path in (argus / "builds").iterdir()) == ["one", "two"]


def test_it_goes_on_with_the_build_that_it_began_with(person: Person) -> None:
    person.installs("claude")
    argus = person.home / ".argus"
    bundle.unpack(str(argus / "builds" / "later"))
    # What is imported only after the server's answer.
    (argus / "builds" / "later" / "argus" / "hook" / "capture.py").unlink()

    def install(channel: socket.socket, raw: Raw) -> None:
        raw.heard.append(hear(channel))
        bundle.point(str(argus / "lib"), "later")
        channel.sendall(answer("200 OK", b'{"text": ""}'))

    with saying(install) as raw:
        (argus / "env").write_text(f"ARGUS_URL={raw.url}\nARGUS_KEY=argus_k\n")
        assert said(person, person.hooks()["UserPromptSubmit"][0]["command"]) == (0, b"")
        assert raw.heard
    log = argus / "log" / "argus-hook.log"
    assert not log.exists() or "Error" not in log.read_text()


def test_it_mends_a_client_of_which_something_is_missing(person: Person) -> None:
    person.installs("claude")
    lib = person.home / ".argus" / "lib"
    (lib / "argus" / "hook" / "wire.py").unlink()
    (lib / "argus" / "hook" / "home.py").write_text("spoiled")
    assert "the client, build" in person.installs("claude")
    assert bundle.current(str(lib))


def test_it_takes_the_place_of_a_folder(person: Person) -> None:
    lib = person.home / ".argus" / "lib"
    bundle.unpack(str(lib))
    person.installs("claude")
    assert lib.is_symlink() and bundle.current(str(lib))
    person.uninstalls()
    assert not lib.is_symlink()
    assert not (person.home / ".argus" / "builds").exists()


def test_it_has_every_module_that_it_imports(lib: Path, tmp_path: Path) -> None:
    names = [
        path.relative_to(lib).with_suffix("").as_posix().replace("/", ".")
        for path in sorted(lib.rglob("*.py"))
        if path.name != "__main__.py"
    ]
    assert len(names) > 50
    program = f"""
import sys
sys.path.insert(0, {str(lib)!r})
import importlib
for name in {names!r}:
    importlib.import_module(name.removesuffix(".__init__"))
known = {{*sys.stdlib_module_names, *sys.builtin_module_names, "argus", "memory", "__main__"}}
print(sorted({{name.partition(".")[0] for name in sys.modules}} - known))
"""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, cwd=tmp_path
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_it_belongs_to_the_home_where_it_lies(home: Home, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    home.run("recall", stdin="{", extra={"HOME": str(elsewhere)})
    assert (home.argus / "log" / "argus-hook.log").exists()
    assert not list(elsewhere.iterdir())
