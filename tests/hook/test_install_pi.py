"""pi's extension: there with the paths of this machine, gone without a trace."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from argus.hook import inject, pi
from tests.hook.installing import Person, snapshot


@pytest.fixture
def person(tmp_path: Path) -> Person:
    home = tmp_path / 'ho me "quoted"'
    (home / ".pi").mkdir(parents=True)
    return Person(home)


def test_it_writes_the_extension_with_the_paths_of_this_machine(person: Person) -> None:
    person.installs("pi")
    data = person.extension.read_bytes()
    assert b"@PYTHON@" not in data and b"@SCRIPT@" not in data
    script = person.home / ".argus" / "lib" / "argus-hook"
    assert pi.programs(data) == [os.path.realpath(sys.executable), str(script)]
    assert script.exists()
    assert person.key.encode() not in data


def test_it_waits_longer_than_the_hook_takes_by_itself(person: Person) -> None:
    person.installs("pi")
    waits = re.search(r"RECALL_MS = (\d+);", person.extension.read_text())
    assert waits and int(waits[1]) >= 1000 * inject.TOTAL_SECONDS_MAX + 1000


def test_it_changes_no_byte_the_second_time_and_leaves_none(person: Person) -> None:
    person.installs("pi")
    before = snapshot(person.home)
    person.installs("pi")
    assert snapshot(person.home) == before
    person.uninstalls()
    assert not person.extension.exists()


def test_it_replaces_an_older_one_of_ours(person: Person) -> None:
    person.installs("pi")
    old = person.extension.read_text().replace("RECALL_MS = 3000", "RECALL_MS = 9")
    person.extension.write_text(old)
    person.installs("pi")
    assert "RECALL_MS = 3000" in person.extension.read_text()
    person.uninstalls()
    assert not person.extension.exists()


def test_it_refuses_where_somebody_elses_lies(person: Person) -> None:
    before = person.wrote("export default function () {}\n", person.extension)
    assert "another name" in person.refused("pi")
    assert person.extension.read_bytes() == before
    person.uninstalls()
    assert person.extension.read_bytes() == before


def test_it_goes_where_pi_looks(person: Person) -> None:
    elsewhere = person.home / "agent"
    person.installs("pi", PI_CODING_AGENT_DIR=str(elsewhere))
    assert (elsewhere / "extensions" / "argus.ts").exists()
    assert not person.extension.exists()
