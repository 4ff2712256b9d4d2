"""/hook/: the client as one file, the line that installs it, recall by the client's own JSON."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import shutil
import subprocess
import threading
import zipfile
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.test import Client
from django.urls import reverse

from argus.hookdoors import client_file
from memory.models import Injection, Project, RawItem
from memory.text.fence import MARK
from tests.memory.door import problem, send
from tests.memory.posting import SECRET
from tests.recall.making import client as recaller
from tests.recall.making import note, people

EVENT = "/hook/claude/UserPromptSubmit"
FILE = "/hook/argus-hook.pyz"
ASKED = "Which port does the staging database use?"
PORT = "The staging database listens on port 5433."


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The server's user has a home of the test's, with no settings of a hook in it."""
    place = tmp_path / "home"
    place.mkdir()
    monkeypatch.setenv("HOME", str(place))
    return place


def said(prompt: str = ASKED, **more: Any) -> dict[str, Any]:
    """What the client posts, as far as it matters and beyond."""
    return {
        "session_id": "s1",
        "transcript_path": "/home/dev/.claude/projects/x/s1.jsonl",
        "cwd": "/src/harbor",
        "permission_mode": "default",
        "hook_event_name": "UserPromptSubmit",
        "prompt": prompt,
    } | more


def ask(who: Client, data: Any = None, path: str = EVENT, **extra: Any) -> Any:
    return send(None, said() if data is None else data, who, path, **extra)


def output(answer: Any) -> str:
    """The text of an answer that must be the client's own output, or "" for an empty one."""
    assert answer.status_code == 200, answer.content
    assert "no-store" in answer["Cache-Control"]
    got = answer.json()
    if got == {}:
        return ""
    text: str = got["hookSpecificOutput"]["additionalContext"]
    only = {"hookEventName": "UserPromptSubmit", "additionalContext": text}
    assert got == {"hookSpecificOutput": only} and text
    return text


def rows() -> Any:
    return Injection.objects.as_pipeline().order_by("pk")


# Whether the asker is on this machine.


def at(who: Client, folder: Path | str, **extra: Any) -> Any:
    return ask(who, {"folder": str(folder)}, "/hook/here", **extra)


@pytest.mark.django_db
def test_it_proves_that_it_sees_the_askers_files(tmp_path: Path) -> None:
    me = people().alice
    nonce = "0123456789abcdef" * 4
    (tmp_path / "here").write_text(nonce)
    proved = at(recaller(me), tmp_path)
    assert proved.json() == {"sha256": hashlib.sha256(nonce.encode()).hexdigest()}
    assert problem(at(recaller(me), tmp_path, HTTP_X_FORWARDED_FOR="10.0.0.1"), 404, "not_found")
    assert problem(at(recaller(me), tmp_path, REMOTE_ADDR="10.0.0.1"), 404, "not_found")
    assert problem(at(recaller(me, "capture"), tmp_path), 403, "permission_denied")


@pytest.mark.django_db
def test_it_tells_nothing_of_any_other_file(tmp_path: Path) -> None:
    me = people().alice
    nonce, place = "0123456789abcdef" * 4, tmp_path / "here"
    (tmp_path / "other").write_text(nonce)
    place.symlink_to(tmp_path / "other")
    assert problem(at(recaller(me), tmp_path), 404, "not_found")
    place.unlink()
    for text in ("", "password", nonce + "0", nonce[:-1], nonce.upper(), nonce[:-1] + "\n"):
        place.write_text(text)
        assert problem(at(recaller(me), tmp_path), 404, "not_found"), text
    place.unlink()
    os.mkfifo(place)
    assert problem(at(recaller(me), tmp_path), 404, "not_found")
    place.unlink()
    place.mkdir()
    assert problem(at(recaller(me), tmp_path), 404, "not_found")
    for folder in ("", "/nowhere", "a\0b"):
        assert at(recaller(me), folder).status_code in (400, 404)


# The client's file.


def test_it_gives_the_client_out_to_whoever_asks_with_its_digest(client: Client) -> None:
    answer = client.get(FILE)
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/zip")
    digest = hashlib.sha256(answer.content).digest()
    assert digest.hex() == client_file()[1]
    assert answer["Repr-Digest"] == f"sha-256=:{base64.b64encode(digest).decode()}:"
    assert answer["Cache-Control"] == "no-cache" and digest.hex() in answer["ETag"]
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert {"__main__.py", "argus/hook/main.py", "memory/text/secrets.py"} <= set(
            archive.namelist()
        )
    head = client.head(FILE)
    assert head.status_code == 200 and not head.content
    assert client.post(FILE).status_code == 405


def test_it_says_that_nothing_changed_to_who_has_it(client: Client) -> None:
    etag = client.get(FILE)["ETag"]
    same = client.get(FILE, headers={"if-none-match": etag})
    assert (same.status_code, same.content, same["ETag"]) == (304, b"", etag)
    assert client.get(FILE, headers={"if-none-match": '"older"'}).status_code == 200


def test_it_gives_the_digest_as_the_checking_tools_read_it(client: Client, tmp_path: Path) -> None:
    answer = client.get("/hook/argus-hook.pyz.sha256")
    assert answer["Content-Type"].startswith("text/plain")
    (tmp_path / "argus-hook.pyz").write_bytes(client.get(FILE).content)
    (tmp_path / "sums").write_bytes(answer.content)
    subprocess.run(["sha256sum", "--check", "--strict", "sums"], cwd=tmp_path, check=True)


# The line that installs it.


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def served(tmp_path: Path, settings: LazySettings) -> Iterator[Path]:
    """A folder behind the address that the server is told it has."""
    folder = tmp_path / "served"
    (folder / "hook").mkdir(parents=True)

    def handler(*args: Any) -> Quiet:
        return Quiet(*args, directory=str(folder))

    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        settings.ARGUS = settings.ARGUS.model_copy(update={"url": url})
        yield folder
        server.shutdown()


def install(
    place: Path, *tools: str, shell: str = "sh"
) -> tuple[subprocess.CompletedProcess[str], str]:
    """Run the page's line with these tools alone; what it ran, and with which arguments."""
    page = Client().get("/hook/").content.decode()
    (line,) = [line for line in page.splitlines() if line.startswith("sh -c")]
    bins, here, temp = place / "bin", place / "here", place / "temporary place"
    for folder in (bins, here, temp):
        folder.mkdir()
    for tool in ("sh", "mktemp", "rm", *tools):
        (bins / tool).symlink_to(shutil.which(tool) or pytest.skip(f"no {tool} here"))
    python, ran = bins / "python3", place / "ran"
    python.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >{ran}\ncat "$2" >>{ran}\ncat >>{ran}\n')
    python.chmod(0o755)
    (bins / "cat").symlink_to(shutil.which("cat") or "/bin/cat")
    done = subprocess.run(
        [shutil.which(shell) or pytest.skip(f"no {shell} here"), "-c", line],
        cwd=here, input="typed", capture_output=True, text=True,
        env={"PATH": str(bins), "TMPDIR": str(temp)},
    )  # fmt: skip
    assert not list(here.iterdir()) and not list(temp.iterdir()), "it leaves nothing"
    return done, ran.read_text("latin-1") if ran.exists() else ""


@pytest.mark.parametrize("tool", ["sha256sum", "shasum"])
@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_its_line_runs_the_file_of_the_digest(
    served: Path, tmp_path: Path, settings: LazySettings, tool: str, shell: str
) -> None:
    (served / "hook" / "argus-hook.pyz").write_bytes(client_file()[0])
    tools = ("shasum", "perl") if tool == "shasum" else (tool,)
    done, ran = install(tmp_path, "curl", *tools, shell=shell)
    assert done.returncode == 0, done.stderr
    flag, file, *arguments = ran.splitlines()[:5]
    assert flag == "-I" and file.endswith("/argus-hook.pyz")
    assert arguments == ["install", "--url", settings.ARGUS.url]
    assert ran.endswith("typed"), "what asks for the key is still the person's terminal"


def test_its_line_runs_nothing_else(served: Path, tmp_path: Path) -> None:
    (served / "hook" / "argus-hook.pyz").write_bytes(client_file()[0] + b" ")
    done, ran = install(tmp_path, "curl", "sha256sum")
    assert done.returncode == 1 and "nothing was run" in done.stderr and not ran


@pytest.mark.parametrize("tools", [("sha256sum",), ("curl",), ("curl", "sha256sum")])
def test_its_line_runs_nothing_when_something_is_missing(
    served: Path, tmp_path: Path, tools: tuple[str, ...]
) -> None:
    if len(tools) < 2:
        (served / "hook" / "argus-hook.pyz").write_bytes(client_file()[0])
    done, ran = install(tmp_path, *tools)
    assert done.returncode != 0 and not ran


def test_its_page_needs_no_key_and_holds_none(client: Client) -> None:
    page = client.get("/hook/")
    assert page["Content-Type"].startswith("text/plain")
    text = page.content.decode()
    assert client_file()[1] in text and "argus_" not in text and "KEY" not in text
    assert reverse("hook-client") == FILE


# The event.


@pytest.mark.django_db
def test_it_answers_the_clients_own_json_with_the_clients_own_json() -> None:
    alice = people().alice
    port = note(alice, PORT, project="harbor")
    text = output(ask(recaller(alice)))
    assert PORT in text and MARK in text
    row = rows().get()
    assert (row.mode, row.outcome, row.session, row.cwd) == (
        "prompt", "injected", "s1", "/src/harbor",
    )  # fmt: skip
    assert row.note_ids == [port.pk] and row.query == ASKED
    assert not RawItem.objects.as_pipeline().exists(), "what is asked is never stored"


@pytest.mark.django_db
@pytest.mark.parametrize("prompt", ["ok", "", "How do I bake a sourdough bread at home?"])
def test_it_answers_with_an_empty_object_when_nothing_is_worth_telling(prompt: str) -> None:
    alice = people().alice
    note(alice, PORT, project="harbor")
    assert output(ask(recaller(alice), said(prompt))) == ""
    assert rows().get().outcome in ("gated", "below_floor", "no_hits")


@pytest.mark.django_db
@pytest.mark.parametrize(
    "path",
    ["/hook/claude/Stop", "/hook/claude/SessionStart", "/hook/codex/UserPromptSubmit", "/hook/a/b"],
)
def test_it_answers_no_other_event_and_no_other_client(path: str) -> None:
    problem(ask(recaller(people().alice), path=path), 404, "not_found")
    assert not rows().exists()


@pytest.mark.django_db
def test_it_asks_for_a_key_that_may_recall() -> None:
    problem(ask(Client()), 401, "not_authenticated")
    problem(ask(recaller(people().alice, "capture")), 403, "permission_denied")
    assert not rows().exists()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("data", "status", "code"),
    [
        (b"{", 400, "parse_error"),
        (b"\xff\xfe", 400, "parse_error"),
        ({}, 422, "invalid"),
        ([], 422, "invalid"),
        ({**said(), "prompt": None}, 422, "invalid"),
        (said(cwd="/" + "x" * 5_000), 422, "invalid"),
    ],
)
def test_it_refuses_what_is_no_prompt(data: Any, status: int, code: str) -> None:
    problem(ask(recaller(people().alice), data), status, code)
    assert not rows().exists()


@pytest.mark.django_db
@pytest.mark.parametrize("value", ["1", "true", "yes", "TRUE"])
def test_it_is_silent_where_the_person_switched_it_off(value: str) -> None:
    alice = people().alice
    note(alice, PORT)
    assert output(ask(recaller(alice), headers={"X-Argus-Disabled": value})) == ""
    assert not rows().exists()


@pytest.mark.django_db
@pytest.mark.parametrize("value", ["", "0", "false", "Off", "$ARGUS_DISABLED"])
def test_it_is_not_silent_for_a_variable_that_nobody_set(value: str) -> None:
    alice = people().alice
    note(alice, PORT)
    assert PORT in output(ask(recaller(alice), headers={"X-Argus-Disabled": value}))


@pytest.mark.django_db
def test_it_is_silent_for_a_sub_agent() -> None:
    alice = people().alice
    note(alice, PORT)
    assert output(ask(recaller(alice), said(agent_id="a1"))) == ""
    assert not rows().exists()
    assert PORT in output(ask(recaller(alice), said(agent_id=None)))


@pytest.mark.django_db
def test_it_keeps_and_searches_nothing_private_and_no_secret() -> None:
    alice = people().alice
    note(alice, PORT)
    prompt = f"{ASKED} <private>my password is hunter2</private> The token is {SECRET}."
    assert PORT in output(ask(recaller(alice), said(prompt)))
    row = rows().get()
    assert ASKED in row.query and "hunter2" not in row.query and SECRET not in row.query
    assert output(ask(recaller(alice), said(f"<PRIVATE>{ASKED}"))) == ""
    assert rows().last().query == "" and rows().last().gate == "too_short"


@pytest.mark.django_db
def test_it_takes_a_floor_and_none_below_the_servers_without_the_right() -> None:
    alice = people().alice
    note(alice, PORT)
    assert output(ask(recaller(alice), path=f"{EVENT}?floor=9")) == ""
    assert output(ask(recaller(alice), path=f"{EVENT}?floor=0"))
    high, low = rows()
    assert high.options["floor"] == 9 and low.options["floor"] > 0
    problem(ask(recaller(alice), path=f"{EVENT}?floor=high"), 422, "invalid")


# What the folder says.


def repository(folder: Path, **rules: Any) -> Path:
    """A repository with these rules, and a folder below its root."""
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    if rules:
        (folder / ".argus.json").write_text(json.dumps(rules))
    below = folder / "service" / "api"
    below.mkdir(parents=True)
    return below


@pytest.mark.django_db
def test_it_knows_the_repository_of_a_folder_on_this_machine(tmp_path: Path) -> None:
    alice = people().alice
    Project.objects.create(name="harbor")
    below = str(repository(tmp_path / "harbor"))
    for peer, project in (("127.0.0.1", "harbor"), ("::1", "harbor"), ("192.0.2.7", None)):
        ask(recaller(alice), said(cwd=below), REMOTE_ADDR=peer)
        named = rows().last().project
        assert (named and named.name) == project, peer


@pytest.mark.django_db
def test_it_takes_the_project_that_the_repository_names(tmp_path: Path) -> None:
    alice = people().alice
    Project.objects.create(name="quay")
    below = str(repository(tmp_path / "harbor", project="quay"))
    ask(recaller(alice), said(cwd=below))
    assert rows().get().project.name == "quay"


@pytest.mark.django_db
@pytest.mark.parametrize("rules", [{"enabled": False}, {"recall": False}])
def test_it_is_silent_where_a_file_says_so(tmp_path: Path, rules: dict[str, bool]) -> None:
    alice = people().alice
    note(alice, PORT)
    below = repository(tmp_path / "harbor", **rules)
    assert output(ask(recaller(alice), said(cwd=str(below)))) == ""
    assert not rows().exists()
    (tmp_path / "harbor" / ".argus.json").write_text('{"capture": false}')
    assert PORT in output(ask(recaller(alice), said(cwd=str(below)))), "seen at once"


@pytest.mark.django_db
def test_it_says_in_the_ledger_when_it_could_not_read_what_a_folder_says(tmp_path: Path) -> None:
    """Silent, because somebody may have said no; but not in silence."""
    alice = people().alice
    note(alice, PORT)
    below = repository(tmp_path / "harbor")
    (tmp_path / "harbor" / ".argus.json").write_text("{enabled: no}")
    assert output(ask(recaller(alice), said(cwd=str(below)))) == ""
    row = rows().get()
    assert (row.mode, row.outcome, row.session, row.query) == ("prompt", "skipped", "s1", "")
    assert ".argus.json" in row.options["reason"] and row.options["client"] == "claude"
    assert output(ask(recaller(alice), said(cwd="/" + "a" * 300))) == ""
    assert rows().count() == 2


@pytest.mark.django_db
@pytest.mark.parametrize(
    "extra",
    [
        {"REMOTE_ADDR": "192.0.2.7"},
        {"REMOTE_ADDR": ""},
        {"headers": {"X-Forwarded-For": "127.0.0.1"}},
        {"headers": {"Forwarded": "for=127.0.0.1"}},
    ],
)
def test_it_reads_no_file_for_who_is_not_on_this_machine(tmp_path: Path, extra: Any) -> None:
    alice = people().alice
    note(alice, PORT)
    below = repository(tmp_path / "harbor", enabled=False)
    assert PORT in output(ask(recaller(alice), said(cwd=str(below)), **extra))


@pytest.mark.django_db
@pytest.mark.parametrize("cwd", ["", "relative/path", "C:\\Users\\a", "/a\x00b", "/dev/null/x"])
def test_it_answers_for_any_folder(cwd: str) -> None:
    alice = people().alice
    note(alice, PORT)
    assert PORT in output(ask(recaller(alice), said(cwd=cwd)))


def test_it_builds_the_client_once() -> None:
    assert client_file() is client_file()
