"""What an export is decided from, and what is decided of each page: values, and what follows from
one of them alone.

Pure. A file is *clean* when our part of it has a hash that we wrote for this very page. Knows
nothing about what a page says, about databases or files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from exporter.found import Found
from exporter.names import Named

Fate = Literal["page", "removed", "retired"]
Reason = Literal["", "changed", "unmarked", "taken", "gone", "barred", "waits"]


@dataclass(frozen=True)
class Page(Named):
    """A page that the vault shall hold. `fixed`: the name of the file, where it does not follow
    from the title."""

    fixed: str = ""


@dataclass(frozen=True)
class Last:
    """The last that was done to a page's file; conflicts are not counted."""

    path: str
    action: str
    sha256: str

    @property
    def stands(self) -> bool:
        return self.action in ("written", "renamed")

    @property
    def rests(self) -> bool:
        return self.action == "retired"


@dataclass(frozen=True)
class Log:
    """What the log knows. `hashes` and `paths` are all that were ever written for a page: of pages
    that are not in there `last` is enough. `purged`: keys of pages that are in the log no more;
    `unseen`: of those that may not lie in this vault any more.
    `clashes`: path and hash of the conflict that a page was last told of."""

    last: Mapping[str, Last] = field(default_factory=dict)
    hashes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    paths: Mapping[str, frozenset[str]] = field(default_factory=dict)
    purged: frozenset[str] = frozenset()
    unseen: frozenset[str] = frozenset()
    clashes: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def knows(self, key: str) -> bool:
        return key in self.last or key in self.purged

    def bare(self, key: str) -> bool:
        """Whether nothing may stay of a page but what a person wrote into it."""
        return key in self.purged or key in self.unseen

    def clean(self, one: Found) -> bool:
        assert one.key is not None
        last = self.last.get(one.key)
        if last is not None and last.sha256 == one.managed:
            return True
        return one.managed in self.hashes.get(one.key, ())

    def was_at(self, one: Found) -> bool:
        assert one.key is not None
        last = self.last.get(one.key)
        if last is not None and last.path == one.path:
            return True
        return one.path in self.paths.get(one.key, ()) or one.key in self.purged

    def rests(self, one: Found) -> bool:
        """Whether this is the file of a retired note, where it was put."""
        last = None if self.bare(one.key or "") else self.last.get(one.key or "")
        return last is not None and last.rests and last.path == one.path


@dataclass(frozen=True)
class Heir:
    """The page that stands in the place of one that is gone. `takes`: its file as well; else what
    a person wrote there is added to the heir's. `far`: how many replacements lie between."""

    key: str
    takes: bool
    far: int = 1


@dataclass
class Move:
    """What becomes of the files of one page, before its bytes are known.

    `path`: where the page is afterwards ("" for nowhere). `home`: the file that it has or takes
    over. `adds`: files whose words of a person come to it. `trouble`: why its file is left alone;
    `bar` is what stands where its folder belongs; `heir` is the page that stands in the place of
    one that is gone. Moves of a later `wave` come after.
    """

    key: str
    fate: Fate = "page"
    path: str = ""
    home: Found | None = None
    adds: list[Found] = field(default_factory=list)
    trouble: Reason = ""
    bar: str = ""
    heir: str = ""
    wave: int = 0

    @property
    def gone(self) -> list[Found]:
        """The files that are not there any more afterwards."""
        if self.trouble:
            return []
        return [one for one in self.files if one.path != self.path]

    @property
    def there(self) -> Found | None:
        """Which of its files lies where the page belongs."""
        return next((one for one in self.files if one.path == self.path), None)

    @property
    def files(self) -> list[Found]:
        """All files that go into it."""
        return [*([self.home] if self.home is not None else []), *self.adds]


@dataclass(frozen=True)
class Layout:
    """Where every page is, by key, and what becomes of the files. `strangers`: files that call
    themselves a page of ours which nobody knows, or may know any more."""

    paths: dict[str, str]
    moves: list[Move]
    strangers: list[Found] = field(default_factory=list)
