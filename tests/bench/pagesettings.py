"""The product's settings with a clock around everything, and the floor's address beside its own."""

from argus.settings import *  # noqa: F403
from argus.settings import MIDDLEWARE

ROOT_URLCONF = "tests.bench.pageurls"
MIDDLEWARE = ["tests.bench.pageurls.timed", *MIDDLEWARE]
