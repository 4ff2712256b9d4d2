"""The architecture, held by tests: floors, one spelling of each predicate, bounds with a reason."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import call_command
from django.urls import URLPattern, URLResolver, get_resolver

from tests.readme import ROOMS, ROOT

#: Lines of a file, and of a function.
FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70

#: Files that may be longer, and why.
LONG_FILES: dict[str, str] = {}

#: Lines of a file of tests.
TEST_FILE_LINES_MAX = 600

#: Lines from which on a public function has a docstring; shorter ones may say it by their name.
EXPLAINED_LINES_MIN = 12

#: Pure files that go into the hooks' zipapp.
ZIPAPP = ("argus/hook", "memory/errors.py", "memory/text", "memory/transcripts")

#: Where every exception ends, and why: a run is closed whatever happened; a hook costs no prompt; a
#: check that falls over a row is told as a finding, and keeps no other from its turn.
CATCHES_ALL = (
    "memory/audit.py", "memory/verifying/check.py", "argus/hook/main.py", "argus/hook/capture.py",
)  # fmt: skip

#: Where `deleted_at` may be compared with nothing: the predicate, retirement, and index conditions.
LIVE_IS_SPELLED_IN = ("memory/querysets.py", "memory/retire.py", "memory/models/note.py")


def python_files(*rooms: str) -> Iterator[Path]:
    for room in rooms:
        top = ROOT / room
        paths = [top] if top.is_file() else sorted(top.rglob("*.py"))
        yield from (path for path in paths if "migrations" not in path.parts)


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def read(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def test_it_keeps_every_arrow_pointing_down() -> None:
    lint = subprocess.run(
        [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert lint.returncode == 0, lint.stdout[-3_000:] + lint.stderr[-1_000:]


@pytest.mark.parametrize("room", ["argus", "memory"])
def test_it_costs_nothing_to_import_a_pure_module(room: str) -> None:
    assert (ROOT / room / "__init__.py").read_text() == ""


def test_it_loads_no_framework_for_a_pure_module() -> None:
    program = (
        "import sys; import memory.text.words, memory.text.secrets, memory.transcripts;"
        "import argus.hook.commands, argus.hook.capture, argus.hook.inject;"
        "print([m for m in ('django', 'pydantic', 'numpy', 'psycopg') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert ran.stdout.strip() == "[]", ran.stderr


@pytest.mark.parametrize("path", list(python_files(*ZIPAPP)), ids=name_of)
def test_it_writes_what_goes_to_other_machines_for_their_python(path: Path) -> None:
    ast.parse(path.read_text(), feature_version=(3, 9))
    tree = read(path)
    imported = {
        (node.module or "").partition(".")[0]
        for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)
    } | {
        alias.name.partition(".")[0]
        for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
    }  # fmt: skip
    own = {"argus", "memory"} if path.is_relative_to(ROOT / "argus") else {"memory"}
    assert imported <= set(sys.stdlib_module_names) | own
    unions = [node for node in ast.walk(tree) if isinstance(node, ast.Match)]
    assert not unions


def test_it_spells_live_once() -> None:
    spelling = re.compile(r"deleted_at__isnull\s*=\s*True|valid_to__gt\b|deleted_at IS NULL", re.I)
    elsewhere = {
        name_of(path)
        for path in python_files(*ROOMS)
        if spelling.search(path.read_text()) and name_of(path) not in LIVE_IS_SPELLED_IN
    }
    # embed re-reads a row under its expected state in the UPDATE itself; the two healths ask in SQL
    # for the index of notes without a vector, and for holds as `review.holds.waiting` has them.
    assert elsewhere <= {"memory/stages/embed.py", "memory/health.py", "review/health.py"}


def test_it_retires_notes_in_one_place() -> None:
    writing = re.compile(r"deleted_at\s*=\s*(?!None\b)\w+|[\"']deleted_at[\"']\s*:")
    writers = {
        name_of(path)
        for path in python_files(*ROOMS)
        if "commands" not in path.parts and writing.search(path.read_text())
    }
    others = {"recall/links.py", "memory/models/note.py"}  # A key of a reply; the column itself.
    assert writers - others <= {"memory/retire.py"}


def test_it_has_no_signals_and_catches_no_bug() -> None:
    for path in python_files(*ROOMS):
        text = path.read_text()
        assert "django.dispatch" not in text, path
        if name_of(path) in CATCHES_ALL:
            continue
        for node in ast.walk(read(path)):
            if isinstance(node, ast.ExceptHandler):
                bare = node.type is None or ast.unparse(node.type) in ("Exception", "BaseException")
                reraises = any(isinstance(one, ast.Raise) for one in ast.walk(node))
                assert not bare or reraises, f"{name_of(path)}:{node.lineno}"


FORBIDDEN = re.compile(r"(Manager|Service|Helper|Utils?|Handler|Processor)$")


def test_it_calls_things_by_their_nouns() -> None:
    for path in python_files(*ROOMS):
        assert not FORBIDDEN.search(path.stem.title()), path
        for node in ast.walk(read(path)):
            if isinstance(node, ast.ClassDef):
                assert not FORBIDDEN.search(node.name), f"{name_of(path)}: {node.name}"


def test_it_explains_every_module_and_every_public_verb() -> None:
    silent = []
    for path in python_files(*ROOMS):
        tree = read(path)
        if not tree.body:
            continue
        if not ast.get_docstring(tree):
            silent.append(name_of(path))
        for node in tree.body:
            if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
                continue
            if _lines(node) > EXPLAINED_LINES_MIN and not ast.get_docstring(node):
                silent.append(f"{name_of(path)}: {node.name}")
    assert not silent


def test_it_keeps_files_and_functions_short() -> None:
    long = []
    for path in python_files(*ROOMS, "tests"):
        lines = len(path.read_text().splitlines())
        most = TEST_FILE_LINES_MAX if "tests" in path.parts else FILE_LINES_MAX
        if lines > most and name_of(path) not in LONG_FILES:
            long.append(f"{name_of(path)}: {lines} lines")
        for node in ast.walk(read(path)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                size = _lines(node)
                if size > FUNCTION_LINES_MAX and "tests" not in path.parts:
                    long.append(f"{name_of(path)}: {node.name} has {size} lines")
    assert not long


def _lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


UNITS = re.compile(
    r"_(MAX|MIN|SECONDS|MINUTES|HOURS|DAYS|MS|BYTES|CHARACTERS|CHARS|TOKENS|TURNS|SHARE|RATIO)$"
)


def test_it_says_of_every_bound_what_it_is_and_why() -> None:
    """The group of comments above a constant, or above the ones it stands with, has `#:`."""
    bare = []
    for path in python_files(*ROOMS):
        lines = path.read_text().splitlines()
        for node in read(path).body:
            if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
                continue
            if not UNITS.search(node.targets[0].id) or not _number(node.value):
                continue
            at = node.lineno - 2
            while at >= 0 and (lines[at].startswith("#") or _constant(lines[at])):
                if lines[at].startswith("#:"):
                    break
                at -= 1
            else:
                bare.append(f"{name_of(path)}:{node.lineno} {node.targets[0].id}")
    assert not bare


def _number(node: ast.expr) -> bool:
    return all(
        isinstance(one, (ast.BinOp, ast.operator, ast.UnaryOp, ast.unaryop))
        or (isinstance(one, ast.Constant) and isinstance(one.value, (int, float)))
        for one in ast.walk(node)
    )


def _constant(line: str) -> bool:
    return bool(re.match(r"[A-Z][A-Z_]+ = ", line))


def routes() -> Iterator[tuple[str, str]]:
    """Every address of ours with its name, without the admin's own and third parties'."""

    def walk(resolver: URLResolver, prefix: str) -> Iterator[tuple[str, str, str]]:
        for one in resolver.url_patterns:
            path = prefix + str(one.pattern)
            if isinstance(one, URLResolver):
                yield from walk(one, path)
            elif isinstance(one, URLPattern):
                yield path, one.callback.__module__, str(one.name)

    for path, module, name in walk(get_resolver(), ""):
        themes = name == "app_list"  # Django's address, answered by our site.
        if not themes and module.split(".")[0] in (*ROOMS, "exporter") or path == "api/schema":
            yield path, name


#: These ask every address there is; a test that knows what it is for is another one.
FOR_ALL = ("test_house.py", "test_pages.py")


@pytest.mark.parametrize("route, name", sorted(routes()))
def test_it_tests_every_address(route: str, name: str) -> None:
    start = "/" + route.partition("<")[0]
    asked = re.compile(re.escape(start) + rf"|[\"'](admin:)?{re.escape(name)}[\"']")
    named = [path for path in python_files("tests") if asked.search(path.read_text())]
    assert [path for path in named if path.name not in FOR_ALL], f"no test names {start}"


def test_it_resolves_the_contract() -> None:
    found = {f"/{route}" for route, _ in routes()}
    contract = {"/capture", "/segment", "/process", "/recall/context", "/recall/notes",
                "/healthz", "/readyz", "/api/schema"}  # fmt: skip
    assert contract <= found


@pytest.mark.django_db
def test_it_has_a_migration_for_every_model() -> None:
    call_command("makemigrations", "--check", "--dry-run", verbosity=0)
