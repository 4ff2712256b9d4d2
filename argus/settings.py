"""Django's settings, all of them from `argus.environment`. Knows no other source."""

from __future__ import annotations

import contextlib
import math
import os
import secrets
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.templatetags.static import static
from psycopg.conninfo import conninfo_to_dict

from argus import environment, policy, postgres
from memory import reading

BASE_DIR = Path(__file__).resolve().parent.parent

#: The settings of this machine, for whoever needs one: `settings.ARGUS.recall_floor`.
ARGUS = environment.read()


def _secret_key(home: Path) -> str:
    """The key under ARGUS_HOME, made by whichever process comes first. Raises EnvironmentProblem
    where nothing can be kept there."""
    path = home / "secret_key"
    try:
        if not path.exists():
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft = home / f"secret_key.{os.getpid()}"
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w") as handle:
                handle.write(secrets.token_urlsafe(64))
            # Why link and not rename: the first one wins, and the file is whole when it appears.
            with contextlib.suppress(FileExistsError):
                os.link(draft, path)
            draft.unlink()
        return path.read_text().strip()
    except OSError as error:
        raise environment.EnvironmentProblem(
            f"ARGUS_HOME: {home} cannot be used ({error.strerror}); allowed: a folder that this "
            "user may write."
        ) from None


def _database(url: str) -> dict[str, Any]:
    """Django's form of a connection URL; what Django has no name for goes into OPTIONS."""
    options = {name: value for name, value in conninfo_to_dict(url).items() if value is not None}
    program = Path(sys.argv[0]).stem if len(sys.argv) < 2 else sys.argv[1]
    options.setdefault("application_name", f"argus {program}"[:60])
    return {
        "ENGINE": "argus.database" if ARGUS.embedded else "django.db.backends.postgresql",
        "NAME": options.pop("dbname", postgres.DATABASE),
        "USER": options.pop("user", ""),
        "PASSWORD": options.pop("password", ""),
        "HOST": options.pop("host", ""),
        "PORT": str(options.pop("port", "")),
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
        # Why: between two transactions a pooler gives the cursor's connection to somebody else.
        "DISABLE_SERVER_SIDE_CURSORS": ARGUS.pooled,
        "OPTIONS": options,
        "ARGUS_HOME": str(ARGUS.home),
    }


#: How long a standby that is gone may keep a search waiting, by libpq's settings.
# Why: without them a machine that was cut off is waited for for minutes. Seconds; the last one
# milliseconds.
STANDBY_GONE = {
    "connect_timeout": "2", "keepalives_idle": "2", "keepalives_interval": "1",
    "keepalives_count": "3", "tcp_user_timeout": "3000",
}  # fmt: skip


def _standby(url: str) -> dict[str, Any]:
    """The standby's form; in tests of Django's own making it is the primary."""
    database = _database(url)
    return {
        **database,
        "OPTIONS": {**STANDBY_GONE, **database["OPTIONS"]},
        "TEST": {"MIRROR": "default"},
    }


def _app_url() -> str:
    if ARGUS.database_url is None:
        return postgres.url(ARGUS.home, postgres.APP)
    return ARGUS.database_url.get_secret_value()


def _owner_url() -> str | None:
    if ARGUS.database_url is None:
        return postgres.url(ARGUS.home, postgres.OWNER)
    owner = ARGUS.owner_database_url
    return owner.get_secret_value() if owner else None


SECRET_KEY = ARGUS.secret_key.get_secret_value() if ARGUS.secret_key else _secret_key(ARGUS.home)
DEBUG = ARGUS.debug

_site = urlsplit(ARGUS.url)
ALLOWED_HOSTS = sorted({_site.hostname or "", "localhost", "127.0.0.1", "[::1]"})
CSRF_TRUSTED_ORIGINS = [f"{_site.scheme}://{_site.netloc}"]
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _site.scheme == "https"
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = True
CSRF_COOKIE_SAMESITE = "Strict"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

INSTALLED_APPS = [
    # Why first: its `migrate` wins over Django's.
    "argus",
    "memory",
    "review",
    "recall",
    "exporter",
    # Why not its other config: that one puts a site of its own in the place of ours.
    "unfold.apps.BasicAppConfig",
    "argus.siteconfig.SiteConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "rest_framework",
    "drf_spectacular",
    "django_q",
    "django_htmx",
    "axes",
]

MIDDLEWARE = [
    # Why these first: what a browser may do is said in every reply, of one that refuses a foreign
    # host and of a file as well.
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "argus.policy.PolicyMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "argus.hosts.HostMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    # Why last: it turns the refusal of a locked-out login into its answer.
    "axes.middleware.AxesMiddleware",
]

CONTENT_SECURITY_POLICY = {"DIRECTIVES": dict(policy.POLICY)}

ROOT_URLCONF = "argus.urls"
WSGI_APPLICATION = "argus.wsgi.application"
APPEND_SLASH = False

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

DATABASES = {"default": _database(_app_url())}
if ARGUS.replica_url:
    # Only what `memory.reading` runs goes there.
    DATABASES[reading.STANDBY] = _standby(ARGUS.replica_url.get_secret_value())

#: The owner's form of the same database, or None when nobody told us (argus.owner).
OWNER_DATABASE = _database(_owner) if (_owner := _owner_url()) else None

#: A migrated database that throwaway ones begin as a copy of, or None: they begin empty. Where
#: hundreds are made, as in the tests, most of their time is that of their migrations.
SCRATCH_TEMPLATE: str | None = None

#: The role that the grants are made for.
ARGUS_APP_ROLE = DATABASES["default"]["USER"]

DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

LOGIN_URL = "/ui/login/"
LOGIN_REDIRECT_URL = "/ui/"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("MinimumLengthValidator", "CommonPasswordValidator", "NumericPasswordValidator")
]

AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]

#: Failed logins of one name from one address after which it waits.
# Why: a person mistypes a few times; a program that guesses gets twenty tries an hour.
AXES_FAILURE_LIMIT = 5

#: Minutes that it waits.
LOCKED_OUT_MINUTES = 15

AXES_COOLOFF_TIME = timedelta(minutes=LOCKED_OUT_MINUTES)
# Why both: who guesses from elsewhere locks nobody else out.
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
AXES_LOCKOUT_CALLABLE = "argus.probes.locked_out"
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False

USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"
USE_I18N = False

STATIC_URL = "/static/"
STATICFILES_DIRS = [path for path in (BASE_DIR / "static",) if path.exists()]
# Why: no collectstatic on a machine that serves itself; whitenoise finds the files in the apps.
WHITENOISE_USE_FINDERS = True

#: One raw item is at most 1 MiB, one batch 8 MiB; the door reads under its own cap.
DATA_UPLOAD_MAX_MEMORY_SIZE = 9 * 1024 * 1024

REST_FRAMEWORK = {
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_AUTHENTICATION_CLASSES": ["memory.auth.KeyAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "memory.doors.problem",
    "UNAUTHENTICATED_USER": None,
}

SPECTACULAR_SETTINGS = {
    # The schemas are JSON Schema as the parsers have them: 3.0 knows no null type.
    "OAS_VERSION": "3.1.0",
    "TITLE": "Argus",
    "DESCRIPTION": "The memory of coding agents that a person can audit.",
    "VERSION": "0.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_AUTHENTICATION": [],
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
}

#: Seconds of one scheduled pass of the pipeline, shared by its stages; then no unit is begun.
# Why: a queue's task must end; what is left waits for the next pass, minutes later.
# Calibrate: above the sum of the stages' usual milliseconds a pass, below the queue's timeout.
PROCESS_SECONDS = 200

#: Seconds after which the queue ends a task, at least.
TASK_SECONDS_MIN = 300


def task_seconds(model_timeout_seconds: float) -> int:
    """When the queue ends a task: after a pass, the model call it ends with, and its writing."""
    return max(TASK_SECONDS_MIN, math.ceil(PROCESS_SECONDS + model_timeout_seconds) + 30)


#: What hands tasks to the workers.
BROKER = {"redis": ARGUS.redis_url.get_secret_value()} if ARGUS.redis_url else {"orm": "default"}

_task_seconds = task_seconds(ARGUS.model_timeout_seconds)

# Why these and not the defaults: django-q2 repeats for ever, and runs a task twice when `retry`
# does not exceed `timeout` and the wait inside the cluster.
Q_CLUSTER = {
    "name": "argus",
    **BROKER,
    "workers": ARGUS.workers,
    "timeout": _task_seconds,
    "retry": _task_seconds + 60,
    "max_attempts": 5,
    "ack_failures": False,
    "catch_up": False,
    "poll": 1,
    "bulk": 1,
    "queue_limit": 4,
    "recycle": 200,
    "save_limit": 10_000,
    "max_rss": 900_000,
    "label": "Jobs",
}

#: Minutes between two looks at whether what was injected was used.
# Why: a rate of days; an hour keeps one look small.
# Calibrate: `pending` of the impact runs should fall to nothing each day.
IMPACT_MINUTES = 60

#: Minutes between two looks at whether the record still says what it said.
# Why: it reads every row once, and what it finds is rare and no emergency of minutes.
# Calibrate: seconds of `manage.py verify`; a house that it takes long in may look less often.
VERIFY_MINUTES = 24 * 60

#: Name -> (function, every so many minutes); `manage.py schedules` brings the queue in line.
SCHEDULES = {
    "process": ("memory.tasks.run_process", ARGUS.process_every_minutes),
    "impact": ("recall.tasks.run_impact", IMPACT_MINUTES),
    "track": ("memory.tasks.run_track", ARGUS.process_every_minutes),
    "verify": ("memory.tasks.run_verify", VERIFY_MINUTES),
}
if ARGUS.vault and ARGUS.vault_every_minutes:
    SCHEDULES["export"] = ("exporter.tasks.run_export", ARGUS.vault_every_minutes)
if ARGUS.reconcile_hours:
    SCHEDULES["reconcile"] = ("memory.tasks.run_reconcile", ARGUS.reconcile_hours * 60)

UNFOLD = {
    "SITE_TITLE": "Argus",
    "SITE_HEADER": "Argus",
    "SITE_SYMBOL": "visibility",
    "SITE_URL": None,
    "SITE_FAVICONS": [
        {
            "rel": "icon",
            "type": "image/svg+xml",
            "href": lambda request: static("argus.svg"),
        }
    ],
    "SHOW_HISTORY": False,
    "SHOW_VIEW_ON_SITE": False,
    "BORDER_RADIUS": "6px",
    # A calm teal, dark enough for white text on its 600 and light enough on dark from 400 up.
    "COLORS": {
        "primary": {
            "50": "oklch(98.4% .014 180.72)",
            "100": "oklch(95.3% .051 180.801)",
            "200": "oklch(91% .096 180.426)",
            "300": "oklch(85.5% .138 181.071)",
            "400": "oklch(77.7% .152 181.912)",
            "500": "oklch(62% .12 182.503)",
            "600": "oklch(51.1% .096 186.391)",
            "700": "oklch(43.7% .078 188.216)",
            "800": "oklch(38.6% .063 188.416)",
            "900": "oklch(33% .046 192.524)",
            "950": "oklch(27.7% .046 192.524)",
        }
    },
    "SIDEBAR": {"navigation": "argus.navigation.sidebar"},
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "short": {
            "()": "argus.logs.ShortFormatter",
            "format": "{asctime} {levelname} {name} {message}",
            "style": "{",
        }
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "short"}},
    "root": {"handlers": ["stderr"], "level": ARGUS.log_level},
    "loggers": {
        "django": {"level": ARGUS.log_level},
        "django.server": {"handlers": ["stderr"], "level": ARGUS.log_level, "propagate": False},
        # Why: a dozen lines each time a worker starts or stops.
        "django-q": {"level": "DEBUG" if ARGUS.log_level == "DEBUG" else "WARNING"},
        # Why: a line for each page that is asked for.
        "axes": {"level": "WARNING"},
        # Why: they report the address of each request, keys and all.
        "httpx": {"level": "WARNING"},
        "httpx2": {"level": "WARNING"},
        "openai": {"level": "WARNING"},
    },
}
