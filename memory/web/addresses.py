"""Addresses of the pages of things, by their ids. Knows nothing about what a thing is."""

from __future__ import annotations

from functools import cache
from typing import Any
from uuid import UUID

from django.urls import NoReverseMatch, reverse


def at(pk: Any, name: str) -> str:
    """The address of the page of this name of the thing with this id: as `url`, which takes a dozen
    times as long, and a list has thirty of them."""
    before, after = _around(name)
    return f"{before}{pk}{after}"


@cache
def _around(name: str) -> tuple[str, str]:
    """What stands before and behind the id in the addresses of a page."""
    example: int | UUID = 0
    try:
        whole = reverse(f"admin:{name}", args=[example])
    except NoReverseMatch:
        example = UUID(int=0)
        whole = reverse(f"admin:{name}", args=[example])
    before, _, after = whole.rpartition(str(example))
    return before, after
