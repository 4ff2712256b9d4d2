"""/api/schema: what the doors are, for machines."""

from __future__ import annotations

import pytest
import yaml
from django.test import Client


@pytest.mark.django_db
def test_it_describes_every_door_of_the_contract(client: Client) -> None:
    answer = client.get("/api/schema")
    assert answer.status_code == 200
    schema = yaml.safe_load(answer.content)
    paths = {"/capture", "/segment", "/process", "/recall/context", "/recall/notes"}
    assert paths <= set(schema["paths"])
    assert set(schema["paths"]["/recall/notes"]) == {"get", "post"}
