"""The README says what the code says."""

from __future__ import annotations

import re

from django.core.management import get_commands

from tests import readme


def test_it_prints_settings_constants_and_the_tree_from_the_code():
    text = readme.README.read_text()
    assert readme.filled(text) == text, "run: .venv/bin/python -m tests.readme"


def test_it_names_every_command_of_ours():
    text = readme.README.read_text()
    ours = {name for name, app in get_commands().items() if app in readme.ROOMS}
    table = text.partition("## Commands")[2].partition("##")[0]
    named = set(re.findall(r"`([a-z_-]+)", table))
    assert ours - named == set()
