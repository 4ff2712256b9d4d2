"""Codex: hooks in hooks.json, trust in config.toml; tables only, every other byte as it was.

The `codex` on the path here is a program of a few lines that tells hooks as Codex does, so that the
way of trust is walked without it; the real one is asked by the tests of real clients.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argus.hook import codex
from tests.hook.installing import Person, snapshot

EVENTS = {"SessionStart", "UserPromptSubmit", "Stop", "SessionEnd", "PreCompact"}
CONFIG = '# mine\nmodel = "gpt"\n[features]\nx = 1 # why\n'
FOREIGN = '\n[hooks.state."/elsewhere/hooks.json:stop:0:0"]\ntrusted_hash = "sha256:theirs"\n'

TELLER = """#!{python}
import hashlib, json, os, re, sys
home = os.environ["HOME"] + "/.codex"
blind = os.path.exists(home + "/blind")
for line in sys.stdin:
    ask = json.loads(line)
    if ask.get("method") != "hooks/list":
        continue
    state = open(home + "/config.toml").read() if os.path.exists(home + "/config.toml") else ""
    told = []
    for event, groups in json.load(open(home + "/hooks.json"))["hooks"].items():
        label = re.sub("(?<!^)(?=[A-Z])", "_", event).lower()
        for at, group in enumerate(groups):
            for n, hook in enumerate(group["hooks"]):
                key = "%s/hooks.json:%s:%d:%d" % (home, label, at, n)
                value = "sha256:" + hashlib.sha256(json.dumps(hook).encode()).hexdigest()
                table = '[hooks.state.%s]\\ntrusted_hash = "%s"' % (json.dumps(key), value)
                known = not blind and table in state.replace("\\r", "")
                trust = "trusted" if known else "untrusted"
                told.append({{"key": key, "currentHash": value, "trustStatus": trust}})
    print(json.dumps({{"id": ask["id"], "result": {{"data": [{{"hooks": told}}]}}}}), flush=True)
"""


@pytest.fixture
def person(tmp_path: Path) -> Person:
    home = tmp_path / "home"
    (home / ".codex").mkdir(parents=True)
    return Person(home)


@pytest.fixture
def teller(person: Person) -> Person:
    place = person.home / "bin"
    place.mkdir()
    (place / "codex").write_text(TELLER.format(python=sys.executable))
    (place / "codex").chmod(0o755)
    return Person(person.home, path=f"{place}:/usr/bin:/bin")


def config(person: Person) -> Path:
    return person.codex / "config.toml"


def test_it_wires_every_event_and_explains_trust(person: Person) -> None:
    told = person.installs("codex", "--trust")
    hooks = person.hooks(person.codex / "hooks.json")
    assert set(hooks) == EVENTS
    assert hooks["SessionEnd"][0]["timeout"] == 3
    assert all(
        set(one) == {"type", "command", "timeout"} for ones in hooks.values() for one in ones
    )
    assert "/hooks" in told
    assert not config(person).exists()


def test_it_records_trust_and_leaves_the_very_bytes(teller: Person) -> None:
    for text in (CONFIG, CONFIG.replace("\n", "\r\n"), CONFIG.rstrip("\n"), CONFIG + FOREIGN, ""):
        before = teller.wrote(text, config(teller))
        assert "Codex trusts the hooks" in teller.installs("codex", "--trust")
        after = config(teller).read_bytes()
        assert after.startswith(before)
        assert after.count(b"trusted_hash") == 5 + text.count("trusted_hash")
        unchanged = snapshot(teller.home)
        teller.installs("codex")
        assert snapshot(teller.home) == unchanged
        teller.uninstalls()
        assert config(teller).read_bytes() == before
        assert not (teller.codex / "hooks.json").exists()


def test_it_leaves_trust_to_the_person_when_nobody_can_be_asked(teller: Person) -> None:
    before = teller.wrote(CONFIG, config(teller))
    told = teller.installs("codex")
    assert "/hooks" in told and "--trust" in told
    assert config(teller).read_bytes() == before


def test_it_takes_its_entry_back_where_codex_does_not_see_it(teller: Person) -> None:
    before = teller.wrote(CONFIG, config(teller))
    (teller.codex / "blind").touch()
    told = teller.installs("codex", "--trust")
    assert "hides our entry" in told and "/hooks" in told
    assert config(teller).read_bytes() == before


def test_it_takes_only_its_tables_out_when_codex_wrote_meanwhile(teller: Person) -> None:
    teller.wrote(CONFIG, config(teller))
    teller.installs("codex", "--trust")
    with config(teller).open("a") as handle:
        handle.write('\n[projects."/x"]\ntrust_level = "trusted"\n')
    teller.uninstalls()
    text = config(teller).read_text()
    assert text == CONFIG + '\n[projects."/x"]\ntrust_level = "trusted"\n'


def test_it_wires_sub_agents_where_the_person_wants_them(teller: Person) -> None:
    teller.installs("codex")
    env = teller.home / ".argus" / "env"
    env.write_text(env.read_text() + "ARGUS_SUBAGENTS=true\n")
    assert "no hook for SubagentStop" in teller.does("status").stdout
    assert "Codex trusts the hooks" in teller.installs("codex", "--trust")
    assert set(teller.hooks(teller.codex / "hooks.json")) == EVENTS | {"SubagentStop"}
    assert config(teller).read_text().count("trusted_hash") == 6
    teller.uninstalls()
    assert not (teller.codex / "hooks.json").exists()


def test_it_moves_the_trust_of_hooks_that_move_up(teller: Person) -> None:
    teller.installs("codex", "--trust")
    path = teller.codex / "hooks.json"
    value = json.loads(path.read_text())
    value["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": "theirs"}]})
    path.write_text(json.dumps(value))
    table = f'[hooks.state."{path}:stop:1:0"]\ntrusted_hash = "sha256:abc"\n'
    with config(teller).open("a") as handle:
        handle.write("\n" + table)
    teller.uninstalls()
    assert teller.hooks(path) == {"Stop": [{"type": "command", "command": "theirs"}]}
    assert config(teller).read_text() == "\n" + table.replace("stop:1:0", "stop:0:0")


def test_it_refuses_broken_hooks(person: Person) -> None:
    before = person.wrote('{"hooks": {\n"Stop": [}', person.codex / "hooks.json")
    assert "hooks.json, line 2, column 10" in person.refused("codex")
    assert (person.codex / "hooks.json").read_bytes() == before
    assert not (person.home / ".argus").exists()


NAMES = st.text(st.characters(min_codepoint=32, max_codepoint=500), min_size=1, max_size=12)
TABLES = st.dictionaries(NAMES, st.just("sha256:" + "0" * 64), min_size=1, max_size=4)
LINES = st.lists(
    st.sampled_from(["", "[a]", "x = 1", "# [hooks.state]", '[hooks.state."z"]', "enabled = true"])
)


@given(LINES, TABLES, st.sampled_from(["\n", "\r\n"]))
def test_it_takes_tables_out_to_the_same_bytes(
    lines: list[str], tables: dict[str, str], newline: str
) -> None:
    tables.pop("z", None)
    toml = "".join(line + newline for line in lines)
    after = codex.with_tables(toml, tables)
    assert after.startswith(toml)
    assert {k: v for k, v in codex.trusted(after).items() if k in tables} == tables
    assert codex.without_tables(after, tables) == toml
