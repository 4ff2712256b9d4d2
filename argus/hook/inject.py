"""The verbs recall and context: what is asked for an event, and what is put before a model.

On a prompt's path: two seconds for everything, then nothing is said and the prompt goes on. A
prompt leaves this machine without private spans and secrets. Prints the one object that clients
take, or nothing. Knows nothing about how the server finds what it answers.
"""

from __future__ import annotations

import os
import sys
import time

from argus.hook.events import Event, clean, read_event
from argus.hook.home import on, place, private, read_env
from argus.hook.optout import Rules, disabled, look
from argus.hook.quickjson import dump
from argus.hook.trouble import complain, log, skipped, tell

#: Seconds from the start of the verb to its last word.
# Why: more than a good answer takes, less than a person waits without asking why.
TOTAL_SECONDS_MAX = 2.0
#: Seconds that are kept for what comes after the answer.
_PRINT_SECONDS = 0.05

#: Characters, and bytes of UTF-8, of what is printed.
# Why: Claude Code cuts at 10,000 characters, Codex in the middle of 10,000 bytes.
TEXT_CHARACTERS_MAX = 8_000
TEXT_BYTES_MAX = 9_500

#: Characters of a prompt that are searched for secrets when there may be one; the rest is not sent.
# Why: searching takes time with the length.
REDACTED_CHARACTERS_MAX = 60_000
#: Characters of a prompt's beginning and end that are sent.
# Why: what a person wants stands at either end of what was pasted.
HEAD_CHARACTERS, TAIL_CHARACTERS = 5_000, 3_000

#: Characters of a session's name and of a path that the server takes.
SESSION_CHARACTERS_MAX = 512
PATH_CHARACTERS_MAX = 4_096

#: Seconds for which a server that was too slow is not asked for a prompt again, and the most of
#: them when the server names a time.
# Why: a server that hangs would cost every prompt its two seconds.
# Why apart from the shut door of capture: one that is too slow for a prompt still takes what was
# said, and one that refuses costs a prompt nothing.
COOL_SECONDS = 30
COOL_SECONDS_MAX = 300

#: The events that may carry text back, by verb; the first is told when the client names none.
_EVENTS = {"prompt": "UserPromptSubmit", "context": "SessionStart"}

# The fence, as memory.text.fence makes it; importing it would compile its patterns.
_OPENING, _CLOSING = "<argus-memory ", "\n</argus-memory>"
# How a closing tag begins once everything is gone that a reader may pass over.
_CLOSED = "</argusmemory"
_KEPT = frozenset("abcdefghijklmnopqrstuvwxyz0123456789<>/&;")


def recall(client: str, via: str) -> None:
    """Print what is known about the prompt on stdin, as the client takes it, or nothing."""
    _inject("prompt", client, via)


def context(client: str, via: str) -> None:
    """Print what a session should know from its start, as the client takes it, or nothing."""
    _inject("context", client, via)


def _inject(mode: str, client: str, via: str) -> None:
    deadline = time.monotonic() + TOTAL_SECONDS_MAX
    event = read_event(client)
    # Why not for an agent's agent: its prompt is a model's, and its words are not the person's.
    if event is None or event.agent or (via == "plugin" and _settings_hold(event)):
        return
    settings = read_env()
    capturing = on(settings, "ARGUS_CAPTURE") and not disabled()
    if not capturing:
        _mark(mode, event, settings)
    if disabled():
        return
    tell()
    if via == "plugin" and mode == "context":
        from argus.hook.claude import ran_as_plugin

        ran_as_plugin()
    rules = look(event.cwd, settings)
    if rules.why:
        complain("rules", rules.why)
    if rules.recall and (mode == "context" or event.prompt.strip()):
        _answer(mode, event, rules, settings, deadline)
    _close_stdout()
    if rules.enabled and capturing:
        from argus.hook.capture import catch_up

        catch_up(event, flush=mode == "context")


def _mark(mode: str, event: Event, settings: dict[str, str]) -> None:
    """Note that this session is never captured, should it end without a word: as `capture` does
    at its own events while ARGUS_DISABLED is set or ARGUS_CAPTURE is off.

    Why not at every start: a fork starts under the name of the session that it came from, and its
    prompts tell its own. Where prompts are posted nobody here sees them, so that a resumed session
    is marked from its start; a fork then silences its origin, which harms less than to keep what
    was said while we were off.
    """
    posted = ("resume",) if settings.get("ARGUS_RECALL_KEY") else ()
    if event.session and (mode == "prompt" or event.source in ("startup", "clear", *posted)):
        from argus.hook.sessions import disable

        disable(event.client, event.session, event.transcript)


def _settings_hold(event: Event) -> bool:
    """Whether the settings run us at this event, so that the plugin's copy has nothing to do."""
    from argus.hook.claude import installed

    return installed(event.name)


def _answer(
    mode: str, event: Event, rules: Rules, settings: dict[str, str], deadline: float
) -> None:
    """Ask, and print the answer; what goes wrong is kept for the server's ledger."""
    from argus.hook.wire import Away

    started = time.monotonic()
    try:
        if _cooling():
            raise Away("cooling", detail="the server was too slow a moment ago")
        text = _ask(mode, event, rules, settings, deadline)
    except Away as away:
        if away.why == "timeout" or away.retry_after:
            _cool(away.retry_after)
        spent = int((time.monotonic() - started) * 1000)
        skipped(mode, event.client, event.session, _cleansed(event.cwd), away.why, spent)
        if away.why != "cooling":
            complain(f"recall-{away.why}", f"nothing was recalled: {away}")
        return
    if text:
        _print(mode, event, text)


def _ask(mode: str, event: Event, rules: Rules, settings: dict[str, str], deadline: float) -> str:
    """The server's text within its fence, cut to what clients take; "" when it has none.

    Raises Away.
    """
    from argus.hook.home import URL, installer
    from argus.hook.repository import facts
    from argus.hook.wire import Away, encode, request

    git = facts(event.cwd)
    paths = {name: git.get(name, "") for name in ("git_root", "git_common_dir")}
    fields = {
        name: _cleansed(clean(path))[:PATH_CHARACTERS_MAX]
        for name, path in {"cwd": event.cwd, **paths}.items()
    }
    fields.update(session=event.session[:SESSION_CHARACTERS_MAX], here=rules.project)
    key = settings.get("ARGUS_KEY", "")
    if not key:
        raise Away("key", detail=f"there is none: run `{installer()}`")
    told: dict[str, object] = {name: value for name, value in fields.items() if value}
    if mode == "prompt":
        told["query"] = _ends(_cleansed(event.prompt))
        if not told["query"]:
            return ""
        floor = _floor(settings.get("ARGUS_RECALL_FLOOR", ""))
        if floor is not None:
            told["floor"] = floor
        method, path, body = "POST", "/recall/notes", dump(told).encode("ascii")
    else:
        method, path, body = "GET", f"/recall/context{encode(fields)}", None
    answer = request(
        settings.get("ARGUS_URL") or URL,
        method,
        path,
        key,
        body,
        seconds=deadline - time.monotonic() - _PRINT_SECONDS,
    )
    if answer.status != 200:
        raise Away(str(answer.status), answer.retry_after, "the server refused")
    given = answer.json()
    text = given.get("text") if isinstance(given, dict) else None
    if not isinstance(text, str):
        raise Away("json", detail="an answer without a text")
    return fit(clean(text))


def _cleansed(text: str) -> str:
    """The text as it may leave this machine: without private spans and secrets."""
    from memory.text.anchors import may_hold_secret

    if "<" in text or not text.isascii():
        from memory.text.private import strip_private

        text = strip_private(text)[0]
    if not may_hold_secret(text):
        return text
    if len(text) > REDACTED_CHARACTERS_MAX:
        # Why up to a blank: half of a secret would not be known as one.
        text = text[:REDACTED_CHARACTERS_MAX].rpartition(" ")[0]
    from memory.text.secrets import redact

    return redact(text).text


def _ends(prompt: str) -> str:
    """Beginning and end of a long prompt; "" for one of which nothing but marks is left."""
    if not prompt.replace("[private]", "").strip():
        return ""
    if len(prompt) <= HEAD_CHARACTERS + TAIL_CHARACTERS:
        return prompt
    return f"{prompt[:HEAD_CHARACTERS]}\n{prompt[-TAIL_CHARACTERS:]}"


def _floor(text: str) -> float | None:
    """A floor from 0 to 10; what is none is left to the server."""
    try:
        floor = float(text)
    except ValueError:
        return None
    return floor if 0 <= floor <= 10 else None


def fit(text: str) -> str:
    """The block, cut at a line's end to what every client takes whole; "" when it has no fence."""
    text = text.strip()
    if not text:
        return ""
    lines = text[: -len(_CLOSING)].split("\n")
    fenced = text.startswith(_OPENING) and text.endswith(_CLOSING) and len(lines) > 1
    if not fenced or _CLOSED in _squeezed("\n".join(lines)):
        from argus.hook.wire import Away

        raise Away("fence", detail="an answer that is no block of ours")
    while len(lines) > 2:
        block = "\n".join(lines) + _CLOSING
        if len(block) <= TEXT_CHARACTERS_MAX and len(block.encode()) <= TEXT_BYTES_MAX:
            return block
        lines.pop()
    return ""


def _squeezed(text: str) -> str:
    """The text's letters, digits and brackets in small: whoever reads it may take it so."""
    wide = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
    return "".join(sign for sign in text.translate(wide).lower() if sign in _KEPT)


def _print(mode: str, event: Event, text: str) -> None:
    """Write the one object in one piece."""
    named = event.name if event.name in _EVENTS.values() else _EVENTS[mode]
    told = {"hookSpecificOutput": {"hookEventName": named, "additionalContext": text}}
    data = memoryview((dump(told) + "\n").encode("ascii"))
    # Why the object and not the number: a closed stdout's number may belong to another file now.
    if sys.stdout is None:
        return
    try:
        while data:
            data = data[os.write(1, data) :]
    except OSError as error:
        log(f"{event.client}: what was recalled could not be printed: {error.strerror}")


def _close_stdout() -> None:
    """Let the client go on: it waits until nobody holds the pipe."""
    if sys.stdout is None:
        return
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)
    except OSError as error:
        log(f"stdout stays open: {error.strerror}")


def _cooling() -> bool:
    """Whether the server is left alone for now."""
    try:
        until = os.stat(place("hook", "cooling")).st_mtime
    except OSError:
        return False
    return 0 < until - time.time() <= COOL_SECONDS_MAX


def _cool(seconds: float | None) -> None:
    """Leave the server alone for so long; without a word of its own for `COOL_SECONDS`."""
    until = time.time() + min(seconds or COOL_SECONDS, COOL_SECONDS_MAX)
    try:
        path = os.path.join(private("hook"), "cooling")
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        os.utime(path, (until, until))
    except OSError:
        log("the server is slow, and that could not be noted")
