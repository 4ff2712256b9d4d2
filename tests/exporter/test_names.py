"""How: every title of the cases and any other, held against what file systems and links refuse."""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exporter.names import (
    FOLDER_BYTES_MAX,
    NAME_BYTES_MAX,
    UNATTRIBUTED,
    UNTITLED,
    Named,
    allot,
    fold,
    folder,
    folders,
    stem,
)
from tests.exporter.captured import TEXTS

MANY = settings(max_examples=200, deadline=None)
AT = datetime(2026, 11, 29, tzinfo=UTC)

TITLES = st.one_of(
    TEXTS,
    st.text(max_size=30),
    st.text(min_size=60, max_size=120),
    st.sampled_from(["CON", "aux.md", "a", "A", "ß", "SS", "é", "e\u0301", "Note.", "note "]),
)

#: What Windows, macOS, a wikilink or Obsidian does not take in a name.
REFUSED = re.compile(
    r'[\x00-\x1f\x7f-\x9f#^\[\]|\\/:*?"<>`$]|%%|[\u200b-\u200f\u202a-\u202e\ufeff]'
)
DEVICES = re.compile(
    r"(?i)(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)\s*(?:\.|\Z)"
)


def legal(name: str, *, bytes_max: int) -> bool:
    """Whether a file or a folder may be called so, everywhere and in a link."""
    assert name and not REFUSED.search(name), name
    assert not name.startswith((".", "_", " ")) and not name.endswith((".", " ")), name
    assert not DEVICES.match(name), name
    assert len(name.encode()) <= bytes_max, name
    assert unicodedata.is_normalized("NFC", name), name
    assert all(unicodedata.category(sign)[0] != "C" for sign in name), name
    return True


def pages(titles: list[str], place: str = "shop") -> list[Named]:
    """One page for each title, each older than the next."""
    return [
        Named(f"k{at}", place, title, f"{at:08x}{Random(at).getrandbits(96):024x}",
              AT + timedelta(seconds=at))
        for at, title in enumerate(titles)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Test 3.0 Version", "Test 3.0 Version"),
        ("v1.2.md", "v1.2"),
        ("v1.2.MD .md.", "v1.2"),
        (".hidden", "hidden"),
        ("..", UNTITLED),
        ("", UNTITLED),
        (" \u200b\x00", UNTITLED),
        (".md", UNTITLED),
        ("___", UNTITLED),
        ("../../x", "-..-x"),
        ("/etc/passwd", "-etc-passwd"),
        ("..\\..\\x", "-..-x"),
        ("C# basics", "C♯ basics"),
        ("C basics", "C basics"),
        ("[Bug] x", "(Bug) x"),
        ("[[x]]", "((x))"),
        ("a|b", "a¦b"),
        ("x^2", "xˆ2"),
        ("a/b", "a-b"),
        ("Fwd: hints", "Fwd - hints"),
        ("10:30", "10-30"),
        ('say "x"', "say 'x'"),
        ("what?", "what？"),
        ("100%% <b>", "100% ‹b›"),
        ("Note ", "Note"),
        ("Note.", "Note"),
        ("CON", "CON note"),
        ("aux.md", "aux note"),
        ("nul.tar.gz", "nul note.tar.gz"),
        ("com¹", "com¹ note"),
        ("console", "console"),
        ("Q3 Review\nconfidential: true\n---\n# x", "Q3 Review confidential - true --- ♯ x"),
        ("\u202egnp.exe", "gnp.exe"),
        ("e\u0301te\u0301", "été"),
        ("__init__.py", "init__.py"),
        ("👩\u200d💻 desk", "👩💻 desk"),
        ("😀", "😀"),
        ("- list", "- list"),
        ("\ue000private\U000e0041", "private"),
    ],
)
def test_a_title_becomes_this_name(title: str, name: str) -> None:
    assert stem(title) == name
    assert legal(name, bytes_max=NAME_BYTES_MAX - 3)


@pytest.mark.parametrize("title", ["x" * 300, "漢" * 300, "e\u0301" * 300, "😀" * 80, "क्षि" * 60])
def test_a_long_title_is_cut_between_characters(title: str) -> None:
    name = stem(title)
    assert legal(name, bytes_max=NAME_BYTES_MAX - 3)
    assert len(name.encode()) > NAME_BYTES_MAX - 20
    whole = unicodedata.normalize("NFC", title)
    assert whole.startswith(name)
    assert unicodedata.category(whole[len(name)])[0] != "M"


@MANY
@given(TITLES, st.booleans())
def test_every_name_is_legal_everywhere(title: str, lowercase: bool) -> None:
    name = stem(title, lowercase=lowercase)
    assert legal(name, bytes_max=NAME_BYTES_MAX - 3)
    assert not name.lower().endswith(".md")
    assert stem(name, lowercase=lowercase) == name
    assert not lowercase or fold(name) == fold(stem(title)) or name.lower() == name


@MANY
@given(TITLES, st.booleans())
def test_every_folder_is_legal_and_none_of_ours(project: str, lowercase: bool) -> None:
    name = folder(project, lowercase=lowercase)
    assert legal(name, bytes_max=FOLDER_BYTES_MAX)
    assert folder(None) == UNATTRIBUTED != name


@MANY
@given(st.lists(TITLES, max_size=8), st.booleans())
def test_names_are_legal_and_differ_by_more_than_case(titles: list[str], lowercase: bool) -> None:
    # Twice each, so that there is always somebody to make way for.
    wanted = pages([*titles, *titles])
    found = allot(wanted, kept={}, lowercase=lowercase)
    assert set(found) == {one.key for one in wanted}
    assert len({fold(path) for path in found.values()}) == len(wanted)
    assert len({path.casefold().upper() for path in found.values()}) == len(wanted)
    for path in found.values():
        place, name = path.split("/")
        assert place == "shop" and name.endswith(".md")
        assert legal(name, bytes_max=NAME_BYTES_MAX) and legal(name[:-3], bytes_max=NAME_BYTES_MAX)
        assert not lowercase or name == unicodedata.normalize("NFC", name.lower())


@MANY
@given(st.lists(TITLES, max_size=8), st.randoms(use_true_random=False))
def test_names_do_not_depend_on_the_order_and_stay(titles: list[str], chance: Random) -> None:
    wanted = pages(titles)
    found = allot(wanted, kept={})
    mixed = chance.sample(wanted, len(wanted))
    assert allot(mixed, kept={}) == found
    assert allot(mixed, kept=found) == found
    # Those who are left keep theirs when others go, and whoever comes later takes none of them.
    left = [one for one in wanted if chance.random() < 0.5]
    assert allot(left, kept=found) == {one.key: found[one.key] for one in left}
    more = [*pages([*titles, *titles])]
    later = allot(more, kept=found)
    assert {key: later[key] for key in found} == found
    assert len({fold(path) for path in later.values()}) == len(more)


def test_three_that_differ_in_case_and_dash_are_three_files() -> None:
    titles = ["Finance plan", "finance Plan", "Finance-plan", "FINANCE PLAN"]
    wanted = pages(titles)
    assert list(allot(wanted, kept={}).values()) == [
        "shop/Finance plan.md",
        f"shop/finance Plan ~{wanted[1].ident[:8]}.md",
        "shop/Finance-plan.md",
        f"shop/FINANCE PLAN ~{wanted[3].ident[:8]}.md",
    ]


def test_the_older_one_has_the_plain_name_whoever_comes_first() -> None:
    old, new = (
        Named("a", "p", "X", "ff" * 16, AT),
        Named("b", "p", "x", "00" * 16, AT.replace(day=30)),
    )
    assert allot([new, old], kept={}) == {"a": "p/X.md", "b": "p/x ~00000000.md"}


def test_a_title_that_changes_only_in_case_or_accents_written_apart_renames_nothing() -> None:
    kept = {"k0": "shop/deploy plan é.md"}
    for title in ("Deploy Plan é", "DEPLOY PLAN E\u0301", "deploy plan é"):
        assert allot(pages([title]), kept=kept) == kept
    assert allot(pages(["Deploy Plan é"]), kept=kept, lowercase=True) == kept
    assert allot(pages(["Deploy plans"]), kept=kept) == {"k0": "shop/Deploy plans.md"}


def test_an_heir_keeps_the_name_with_the_start_of_its_forebears_id() -> None:
    kept = {"k0": "shop/Plan ~0123abcd.md"}
    assert allot(pages(["plan"]), kept=kept) == kept
    long = "x" * 300
    old = allot(pages([long, long]), kept={})["k1"]
    assert allot(pages([long]), kept={"k0": old}) == {"k0": old}


def test_a_page_moves_with_its_project() -> None:
    assert allot(pages(["Plan"], "web"), kept={"k0": "shop/Plan.md"}) == {"k0": "web/Plan.md"}


def test_nobody_gets_the_name_of_a_persons_file() -> None:
    wanted = pages(["Plan"])
    other = {"k0": f"shop/Plan ~{wanted[0].ident[:8]}.md"}
    assert allot(wanted, kept={}, taken=["shop/PLAN.md"]) == other
    assert allot(wanted, kept={"k0": "shop/Plan.md"}, taken=["shop/plan.md"]) == other
    more = ["shop/plan.md", other["k0"].upper().replace("SHOP", "shop")]
    assert allot(wanted, kept={}, taken=more) == {"k0": f"shop/Plan ~{wanted[0].ident[:12]}.md"}


def test_even_ids_that_are_alike_end_in_names_that_are_not() -> None:
    wanted = [Named(f"k{at}", "p", "X", "0" * 32) for at in range(8)]
    found = allot(wanted, kept={})
    assert len({fold(path) for path in found.values()}) == 8
    assert all(legal(path[2:], bytes_max=NAME_BYTES_MAX) for path in found.values())


def test_two_who_kept_one_name_do_not_share_it() -> None:
    wanted = pages(["X", "X"])
    found = allot(wanted, kept={"k0": "shop/X.md", "k1": "shop/x.md"})
    assert found == {"k0": "shop/X.md", "k1": f"shop/X ~{wanted[1].ident[:8]}.md"}


def test_folders_are_unique_under_case_and_stay() -> None:
    found = folders(["database", "Database", "web"], {})
    assert found["Database"] == "Database" and found["web"] == "web"
    assert re.fullmatch(r"database ~[0-9a-f]{8}", found["database"])
    assert folders(["Database", "web", "database"], {}) == found
    other = folders(["Database", "database"], {"database": "database"})
    assert other["database"] == "database" and fold(other["Database"]) != "database"
    assert folders(["Database", "database"], other) == other


@MANY
@given(st.lists(TITLES, max_size=8, unique=True), st.randoms(use_true_random=False))
def test_folders_do_not_depend_on_the_order(projects: list[str], chance: Random) -> None:
    found = folders(projects, {})
    assert folders(chance.sample(projects, len(projects)), {}) == found
    assert len({fold(name) for name in found.values()}) == len(projects)
    assert all(legal(name, bytes_max=FOLDER_BYTES_MAX) for name in found.values())


@pytest.mark.parametrize(
    ("one", "other"),
    [("A", "a"), ("é", "e\u0301"), ("É", "e\u0301"), ("ß", "SS"), ("ſ", "S"), ("\u212a", "k"),
     ("ς", "Σ"), ("ı", "I"), ("ﬀ", "FF"), ("\u1fb3", "\u0391\u0399"), ("Ǆ", "ǅ")],
)  # fmt: skip
def test_it_takes_for_one_what_some_file_system_takes_for_one(one: str, other: str) -> None:
    assert fold(one) == fold(other)


@pytest.mark.parametrize(("one", "other"), [("C♯", "C"), ("a-b", "a b"), ("é", "e"), ("1", "¹")])
def test_it_keeps_apart_what_all_keep_apart(one: str, other: str) -> None:
    assert fold(one) != fold(other)


@MANY
@given(st.text(max_size=20))
def test_folding_equates_all_ways_of_case_and_normal_form(text: str) -> None:
    ways = [text.upper(), text.lower(), text.casefold(), text.swapcase()]
    ways += [unicodedata.normalize(form, way) for way in [*ways, text] for form in ("NFC", "NFD")]
    assert {fold(way) for way in ways} == {fold(text)}
