"""What the server has for hooks: the client as one file, how to install it, and recall without it.

A client that posts its own hook's JSON needs no process on the machine; what it posts is asked with
and never stored, but for the ledger of recall. Knows nothing about what the client's file does.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shlex
import stat
from dataclasses import dataclass
from functools import cache
from ipaddress import IPv6Address, ip_address
from typing import Annotated, Any
from uuid import uuid4

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.cache import get_conditional_response
from django.views.decorators.http import require_safe
from pydantic import Field, TypeAdapter
from rest_framework.decorators import api_view, parser_classes, permission_classes
from rest_framework.request import Request
from rest_framework.response import Response

from argus.hook import bundle, home, keys, optout, repository
from memory.auth import caller, needs
from memory.doors import CappedJSONParser, body, described, parse
from memory.errors import NotFound
from memory.text.clean import clean_text
from recall.api import HEADERS, Folder, Session, allowed_floor
from recall.notes import Wanted, recall_notes
from recall.skipped import Skipped, note_skipped
from recall.where import NO_FACTS, Facts

#: The client's file, as it is called on every machine.
FILE = "argus-hook.pyz"

#: Clients and events that are answered here; every other event of theirs is a command's.
ANSWERED = {("claude", "UserPromptSubmit")}

#: What the asker writes into a file, and all of it.
NONCE = re.compile(rb"[0-9a-f]{64}")

#: Headers that a proxy leaves: behind one, whoever asks is not on this machine.
FORWARDED = ("X-Forwarded-For", "Forwarded", "X-Real-IP", "Via")


@dataclass(frozen=True)
class Prompted:
    """What is read of the JSON that the client gives its hooks; the rest is dropped."""

    prompt: str
    session_id: Session = ""
    cwd: Folder = ""
    #: Set when a sub-agent asks, whose prompts are the main agent's words.
    agent_id: Any = None


@dataclass(frozen=True)
class Asked:
    """What the address says beside it."""

    floor: Annotated[float, Field(ge=0, le=10)] | None = None


@dataclass(frozen=True)
class Place:
    """A folder of the asker's."""

    folder: Folder


PLACE = TypeAdapter(Place)
PROMPTED = TypeAdapter(Prompted)
ASKED = TypeAdapter(Asked)


@cache
def client_file() -> tuple[bytes, str]:
    """The client and its SHA-256 in hex; built once a process, from the sources that it runs."""
    data = bundle.build()
    return data, hashlib.sha256(data).hexdigest()


@require_safe
def client(request: HttpRequest) -> HttpResponse:
    """The client as one file, with its digest; 304 when the asker has it."""
    data, digest = client_file()
    told = base64.b64encode(bytes.fromhex(digest)).decode()
    return _unless_known(
        request,
        HttpResponse(
            data,
            content_type="application/zip",
            headers={
                "Content-Disposition": f'attachment; filename="{FILE}"',
                "Repr-Digest": f"sha-256=:{told}:",
            },
        ),
    )


@require_safe
def checksum(request: HttpRequest) -> HttpResponse:
    """The digest as `sha256sum --check` reads it."""
    return _unless_known(request, _plain(f"{client_file()[1]}  {FILE}\n"))


@require_safe
def install(request: HttpRequest) -> HttpResponse:
    """How to get the client: one line that runs nothing but the file with this very digest."""
    return _plain(
        "argus-hook captures and recalls for every agent on a machine. It needs Python 3.9.\n"
        "This line fetches it from here, compares its SHA-256 and installs it, or runs nothing;\n"
        f"it asks for a key (manage.py createkey --scope capture,recall):\n\n{install_line()}\n\n"
        f"By hand: {settings.ARGUS.url}/hook/{FILE}, SHA-256 {client_file()[1]}\n"
    )


def install_line() -> str:
    """The command, for any shell of Linux and macOS: what is fetched lies in a folder of its own,
    which is gone afterwards, and no key is on the line."""
    url, digest = settings.ARGUS.url, client_file()[1]
    script = " && ".join(
        (
            "d=$(mktemp -d)",
            'trap "rm -rf \\"$d\\"" EXIT',
            f'curl -fsSL -o "$d/{FILE}" {shlex.quote(f"{url}/hook/{FILE}")}',
            # macOS has shasum, Linux sha256sum; both say the digest first.
            f's=$( (sha256sum 2>/dev/null || shasum -a 256) <"$d/{FILE}")',
            f'if [ "${{s%% *}}" != {digest} ]; then'
            f" echo {FILE} has another SHA-256: nothing was run >&2; exit 1; fi",
            f'python3 -I "$d/{FILE}" install --url {shlex.quote(url)}',
        )
    )
    return f"sh -c {shlex.quote(script)}"


@described("hook_here", methods=("POST",), body=PLACE)
@api_view(["POST"])
@permission_classes([needs("recall")])
@parser_classes([CappedJSONParser])
def here(request: Request) -> Response:
    """Prove that the asker's files are this machine's: the SHA-256 of the nonce that lies there."""
    folder = parse(PLACE, body(request)).folder
    nonce = _nonce(folder) if on_this_machine(request) else b""
    if not nonce:
        raise NotFound("there is no such file here")
    return Response({"sha256": hashlib.sha256(nonce).hexdigest()}, headers=HEADERS)


def _nonce(folder: str) -> bytes:
    """The nonce in the one file that is read of a folder; b"" when there is none.

    Why so narrow: a key that may recall must not read anything else of the server's machine.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(os.path.join(folder, keys.HERE), flags)
    except (OSError, ValueError):
        return b""
    try:
        plain = stat.S_ISREG(os.fstat(descriptor).st_mode)
        data = os.read(descriptor, 65) if plain else b""
    finally:
        os.close(descriptor)
    return data if NONCE.fullmatch(data) else b""


@described("hook_event", methods=("POST",), body=PROMPTED, query=ASKED)
@api_view(["POST"])
@permission_classes([needs("recall")])
@parser_classes([CappedJSONParser])
def answer(request: Request, client: str, event: str) -> Response:
    """A client's own hook JSON in, its own output JSON out: notes for the prompt, or `{}`."""
    if (client, event) not in ANSWERED:
        raise NotFound("only claude's UserPromptSubmit is answered here: install the command")
    asked = parse(ASKED, request.query_params.dict())
    said = parse(PROMPTED, body(request))
    silent = bool(said.agent_id) or switched_off(request)
    text = "" if silent else _recalled(request, said, asked.floor)
    output = {"hookEventName": event, "additionalContext": text}
    return Response({"hookSpecificOutput": output} if text else {}, headers=HEADERS)


def switched_off(request: Request) -> bool:
    """Whether the person's own environment switches Argus off; a variable's bare name does not:
    its client sends it where nothing is set."""
    said = request.headers.get("X-Argus-Disabled", "").strip()
    return optout.disabled({"ARGUS_DISABLED": said}) and not said.startswith("$")


def on_this_machine(request: Request) -> bool:
    """Whether the asker's folders are this machine's: a loopback peer, and no proxy before us."""
    if any(request.headers.get(name) for name in FORWARDED):
        return False
    try:
        peer = ip_address(request.META.get("REMOTE_ADDR") or "")
    except ValueError:
        return False
    inner = peer.ipv4_mapped if isinstance(peer, IPv6Address) else None
    return (inner or peer).is_loopback


def _recalled(request: Request, said: Prompted, floor: float | None) -> str:
    """The text for the prompt; "" also where the files at and above its folder want none."""
    principal, now, facts = caller(request)[0], timezone.now(), NO_FACTS
    if on_this_machine(request):
        folder = clean_text(said.cwd)[0]
        # Not `rules`: what that remembers would outlive what the person writes meanwhile.
        rules = optout.look(folder, home.read_env())
        if rules.why:
            # Nobody said no, we could not read what was said: that is seen in the ledger.
            row = Skipped(
                uuid4(), "prompt", now, said.session_id, said.cwd, "claude", reason=rules.why
            )
            note_skipped([row], principal=principal, now=now)
        if not rules.recall:
            return ""
        git = repository.facts(folder)
        facts = Facts(git.get("git_root", ""), git.get("git_common_dir", ""), rules.project)
    recalled = recall_notes(
        said.prompt,
        principal=principal,
        session=said.session_id,
        cwd=said.cwd,
        facts=facts,
        wanted=Wanted(floor=allowed_floor(request, floor)),
        now=now,
    )
    return recalled.text


def _plain(text: str) -> HttpResponse:
    headers = {"Cache-Control": "no-cache"}
    return HttpResponse(text, content_type="text/plain; charset=utf-8", headers=headers)


def _unless_known(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    response["ETag"], response["Cache-Control"] = f'"{client_file()[1]}"', "no-cache"
    known = get_conditional_response(request, etag=response["ETag"], response=response)
    return known or response
