"""Names of files and folders: readable, and legal wherever the vault may lie.

A name is legal on Windows, macOS and Linux and within a wikilink, is in NFC, at most 200 bytes long
with `.md`, begins with neither a dot nor an underscore (those are ours), and differs from every
other in its folder by more than case and the way of writing accents. Who has a name keeps it.
Knows nothing about notes, the database or the disk.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from exporter.inert import one_line

#: Of a whole file name, `.md` included.
# Why: file systems take 255; HFS+ writes accents apart, sync tools put words of theirs behind.
NAME_BYTES_MAX = 200

#: Of a project's folder.
# Why: Windows takes 260 characters for the whole path unless told otherwise.
FOLDER_BYTES_MAX = 100

#: Hex digits of the id behind a name that is taken, and what is tried when that is, too.
# Why: 8 tell ten thousand notes of one title apart in all but one of a hundred cases.
SUFFIX_DIGITS = (8, 12, 16, 32)

EXTENSION = ".md"
UNTITLED = "untitled"
UNATTRIBUTED = "_unattributed"

# Look-alikes for what a file system or a wikilink cannot have, so that C# and C stay two names.
_ALIKE = str.maketrans(
    {
        "#": "♯", "^": "ˆ", "[": "(", "]": ")", "|": "¦", "\\": "-", "/": "-", ":": "-",
        "*": "∗", "?": "？", '"': "'", "<": "‹", ">": "›", "`": "'", "$": "＄",
    }  # fmt: skip
)  # fmt: skip
_COLON = re.compile(r":(?=\s)")
_PERCENTS = re.compile(r"%{2,}")

# What Windows keeps for its devices, whatever follows the first dot.
_DEVICES = frozenset(
    ["con", "prn", "aux", "nul", "conin$", "conout$", "clock$"]
    + [f"{name}{digit}" for name in ("com", "lpt") for digit in "0123456789¹²³"]
)

# Characters that show nothing and are no marks: fillers, the empty Braille cell.
_UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_SUFFIX = re.compile(r" ~[0-9a-f]{8,32}\Z")


@dataclass(frozen=True)
class Named:
    """A page that wants a name: in which folder, after which title; `ident` is hex and the page's
    own, `created` says who comes first where two want the same."""

    key: str
    folder: str
    title: str
    ident: str
    created: datetime | None = None


def fold(path: str) -> str:
    """What two paths have in common when some file system takes them for one.

    Wider than any of them: case in every alphabet, accents written together or apart.
    """
    if path.isascii():
        return path.lower()
    apart = unicodedata.normalize("NFD", path)
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", apart.upper()).casefold())


def stem(title: str, *, lowercase: bool = False) -> str:
    """The title as a file's name without `.md`; never empty."""
    return _name(title, NAME_BYTES_MAX - len(EXTENSION), lowercase) or UNTITLED


def folder(project: str | None, *, lowercase: bool = False) -> str:
    """The project's name as a folder's; UNATTRIBUTED for none."""
    if project is None:
        return UNATTRIBUTED
    return _name(project, FOLDER_BYTES_MAX, lowercase) or UNTITLED


def folders(
    projects: Collection[str], kept: Mapping[str, str], *, lowercase: bool = False
) -> dict[str, str]:
    """A folder for each project, no two of which any file system takes for one.

    `kept`: the folders that projects have; they stay. Independent of the projects' order.
    """
    found: dict[str, str] = {}
    used: set[str] = set()
    for project in sorted(set(projects), key=lambda one: (one not in kept, one)):
        digest = hashlib.sha256(project.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        plain = folder(project, lowercase=lowercase)
        choices = _choices(plain, digest, FOLDER_BYTES_MAX)
        old = kept.get(project)
        name = old if old and fold(old) not in used else _free(choices, used)
        used.add(fold(name))
        found[project] = name
    return found


def allot(
    wanted: Sequence[Named],
    *,
    kept: Mapping[str, str],
    taken: Collection[str] = (),
    lowercase: bool = False,
) -> dict[str, str]:
    """A path with `.md` for each page, by its key.

    A page keeps its path while folder and title are the same but for case. The others get theirs
    by age, then id: the plain name, or one with the start of their id where that is taken. `taken`
    are paths that nobody gets, not even who had one. Independent of the order of `wanted`.
    """
    found: dict[str, str] = {}
    used = {fold(path) for path in taken}
    # Aware times and none cannot be compared; nobody comes before who has no time.
    queue = sorted(wanted, key=lambda one: (_age(one), one.ident, one.key))
    new: list[tuple[Named, str]] = []
    for one in queue:
        plain = stem(one.title, lowercase=lowercase)
        old = kept.get(one.key)
        if old and fold(old) not in used and _suits(old, one.folder, plain):
            used.add(fold(old))
            found[one.key] = old
        else:
            new.append((one, plain))
    for one, plain in new:
        names = _choices(plain, one.ident, NAME_BYTES_MAX - len(EXTENSION))
        paths = (f"{one.folder}/{name}{EXTENSION}" for name in names)
        path = _free(paths, used)
        used.add(fold(path))
        found[one.key] = path
    return found


def _age(one: Named) -> float:
    return one.created.timestamp() if one.created else 0.0


def _suits(path: str, place: str, plain: str) -> bool:
    """Whether a path is one that this plain name has or could have been given in this folder."""
    above, _, name = path.rpartition("/")
    if fold(above) != fold(place) or not name.endswith(EXTENSION):
        return False
    name = name.removesuffix(EXTENSION)
    if fold(name) == fold(plain):
        return True
    suffix = _SUFFIX.search(name)
    if not suffix:
        return False
    room = NAME_BYTES_MAX - len(EXTENSION) - len(suffix.group())
    return fold(name[: suffix.start()]) == fold(_cut(plain, room))


def _choices(plain: str, ident: str, bytes_max: int) -> Iterator[str]:
    """The plain name, then with more and more of the id, then with a number: endless."""
    yield plain
    for digits in SUFFIX_DIGITS:
        suffix = f" ~{ident[:digits]}"
        yield _cut(plain, bytes_max - len(suffix)) + suffix
    number = 2
    while True:
        suffix = f" ~{ident[:32]}-{number}"
        yield _cut(plain, bytes_max - len(suffix)) + suffix
        number += 1


def _free(names: Iterator[str], used: Collection[str]) -> str:
    return next(name for name in names if fold(name) not in used)


def _name(text: str, bytes_max: int, lowercase: bool) -> str:
    """The text as a name of at most so many bytes; "" if nothing of it can be in one."""
    text = one_line(text)
    if not text.isascii():
        text = "".join(sign for sign in text if _nameable(sign))
    text = _trim(text)
    text = _PERCENTS.sub("%", _COLON.sub(" -", text)).translate(_ALIKE)
    if lowercase:
        text = text.lower()
    text = unicodedata.normalize("NFC", " ".join(text.split()))
    base, dot, rest = text.lstrip(" ._").partition(".")
    if base.rstrip(" ").casefold() in _DEVICES:
        base = f"{base.rstrip(' ')} note"
    return _cut(f"{base}{dot}{rest}", bytes_max)


def _nameable(sign: str) -> bool:
    """Whether a file system may have it: no controls, nothing unseen, private or not assigned."""
    return unicodedata.category(sign)[0] != "C" and sign not in _UNSEEN


def _cut(text: str, bytes_max: int) -> str:
    """The start of a name, at most so many bytes, not within a character and its marks; trimmed."""
    if len(text.encode()) > bytes_max:
        whole, text = text, text.encode()[:bytes_max].decode("utf-8", "ignore")
        at = len(text)
        while at and _continues(whole, at):
            at -= 1
        text = whole[:at] or text
    return _trim(text)


def _trim(text: str) -> str:
    """Without blanks, dots and `.md` at the end: a link to `x.md` is one to the page `x`."""
    while (kept := text.rstrip(" .")) != text or kept[-3:].lower() == EXTENSION:
        text = kept[:-3] if kept[-3:].lower() == EXTENSION else kept
    return text


def _continues(text: str, at: int) -> bool:
    """Whether the character there belongs to the one before."""
    if at >= len(text):
        return False
    sign = text[at]
    return unicodedata.category(sign)[0] == "M" or "\U0001f3fb" <= sign <= "\U0001f3ff"
