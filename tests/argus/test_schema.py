"""/api/schema: what the doors are, for machines."""

from __future__ import annotations

import pytest
import yaml
from django.core.management import call_command
from django.test import Client


@pytest.mark.django_db
def test_it_describes_every_door_of_the_contract(client: Client) -> None:
    answer = client.get("/api/schema")
    assert answer.status_code == 200
    schema = yaml.safe_load(answer.content)
    paths = {"/capture", "/segment", "/process", "/recall/context", "/recall/notes",
             "/recall/skipped", "/keys", "/hook/{client}/{event}", "/hook/here"}  # fmt: skip
    assert paths <= set(schema["paths"])
    assert set(schema["paths"]["/recall/notes"]) == {"get", "post"}
    asked = schema["paths"]["/recall/notes"]["post"]["requestBody"]["content"]["application/json"]
    assert {"query", "cwd", "session", "floor"} <= set(asked["schema"]["properties"])
    posted = schema["paths"]["/capture"]["post"]["requestBody"]["content"]["application/json"]
    assert "$ref" not in str(posted) and "original_timestamp" in str(posted)
    named = [one["name"] for one in schema["paths"]["/recall/context"]["get"]["parameters"]]
    assert {"cwd", "session"} <= set(named)
    assert {"here", "git_root", "git_common_dir"} <= set(named)
    assert set(schema["paths"]["/keys"]) == {"get", "post", "delete"}
    assert "misses" in str(posted)
    assert schema["components"]["securitySchemes"]


@pytest.mark.django_db
def test_it_has_nothing_to_warn_of(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("spectacular", "--validate", "--fail-on-warn", "--file", "/dev/null")
    assert "Warning" not in capsys.readouterr().err
