"""A row in every table that Postgres keeps from change: the real verbs, and what they leave out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.db import connection

from memory.guards import FROZEN
from memory.ledger import emit
from memory.llm.kept import digest_of_nothing as _unused  # noqa: F401
