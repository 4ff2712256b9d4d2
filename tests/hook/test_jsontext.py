"""JSON text edited in place: what is not ours keeps every byte."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argus.hook import jsontext
from argus.hook.jsontext import Broken

KEYS = st.text(max_size=6).filter(str.isprintable)
SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=8).filter(str.isprintable)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=5)
HOOK = {"hooks": [{"type": "command", "command": "x 'y z' ü", "timeout": 5}]}


@st.composite
def texts(draw: st.DrawFn) -> tuple[str, dict[str, object]]:
    value: dict[str, object] = dict(draw(OBJECTS))
    value.pop("hooks", None)
    if draw(st.booleans()):
        value["hooks"] = {"Stop": [{"hooks": [{"type": "command", "command": "theirs"}]}]}
    indent = draw(st.sampled_from([None, 1, 2, 4, "\t"]))
    separators = draw(st.sampled_from([(",", ":"), (", ", ": "), (",", " : ")]))
    text = json.dumps(value, indent=indent, separators=separators, ensure_ascii=draw(st.booleans()))
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    ends = st.sampled_from(["", "\n", "\r\n", " \n\n"])
    return draw(st.sampled_from(["", "\n", "  "])) + text + draw(ends), value


@settings(max_examples=300, deadline=None)
@given(texts(), st.sampled_from(["Stop", "SessionEnd"]))
def test_it_takes_out_what_it_put_in_to_the_same_bytes(
    case: tuple[str, dict[str, object]], event: str
) -> None:
    text, value = case
    known = value.get("hooks")
    theirs = len(known["Stop"]) if isinstance(known, dict) and event == "Stop" else 0
    after = jsontext.append(text, ["hooks", event], HOOK)
    parsed = json.loads(after)
    assert parsed["hooks"][event][theirs] == HOOK
    assert {k: v for k, v in parsed.items() if k != "hooks"} == {
        k: v for k, v in value.items() if k != "hooks"
    }
    path: list[str | int] = ["hooks", event, theirs]
    if not theirs:
        path = ["hooks", event] if known else ["hooks"]
    assert jsontext.take_out(after, path) == text


@settings(max_examples=200, deadline=None)
@given(texts(), KEYS, VALUES)
def test_it_sets_a_value_and_leaves_the_others_equal(
    case: tuple[str, dict[str, object]], key: str, value: object
) -> None:
    text, before = case
    after = jsontext.put(text, [key], value)
    assert json.loads(after) == {**before, key: value}


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet='{}[]",:/* \n\r\t\\tfnu0123.-eé', max_size=40))
def test_it_reads_what_python_reads_and_refuses_the_rest(text: str) -> None:
    try:
        expected = json.loads(text)
    except ValueError:
        with pytest.raises(Broken):
            jsontext.parse(text)
    else:
        assert jsontext.parse(text).value == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{\n  "a": 1,\n}', 'line 2, column 9: a comma before "}"'),
        ('{\n  // mine\n  "a": 1}', "line 2, column 3: a comment"),
        ('{"a": 1', "line 1, column 8: the text ends"),
        ('{"a" 1}', "line 1, column 6"),
        ('{"a": NaN}', "line 1, column 7"),
        ('{"a": 1} x', "line 1, column 10"),
        ("{\r\n\"a\": 'b'}", "line 2, column 6"),
    ],
)
def test_it_tells_the_line_and_the_column(text: str, said: str) -> None:
    with pytest.raises(Broken, match="^" + said.replace("}", r"\}")):
        jsontext.parse(text)


def test_it_refuses_a_key_on_its_way_that_stands_twice() -> None:
    with pytest.raises(Broken, match='line 2, column 1: "hooks" stands here a second time'):
        jsontext.append('{"hooks": {},\n"hooks": {}}', ["hooks", "Stop"], HOOK)


def test_it_refuses_what_is_no_object_or_array() -> None:
    with pytest.raises(Broken, match="hooks must be an object"):
        jsontext.append('{"hooks": []}', ["hooks", "Stop"], HOOK)
    with pytest.raises(Broken, match=r"hooks\.Stop must be an array"):
        jsontext.append('{"hooks": {"Stop": {}}}', ["hooks", "Stop"], HOOK)


def test_it_does_not_follow_a_hostile_depth() -> None:
    with pytest.raises(Broken, match="deeper than"):
        jsontext.parse("[" * 100_000)


def test_it_writes_as_the_text_is_written() -> None:
    tall = '{\r\n\t"a": {\r\n\t\t"b": 1\r\n\t}\r\n}'
    after = jsontext.put(tall, ["a", "c"], {"d": [1]})
    assert after == (
        '{\r\n\t"a": {\r\n\t\t"b": 1,\r\n\t\t"c": {\r\n\t\t\t"d": [\r\n\t\t\t\t1\r\n\t\t\t]'
        "\r\n\t\t}\r\n\t}\r\n}"
    )
    assert jsontext.put('{"a":1}', ["b"], [1, 2]) == '{"a":1,"b":[1,2]}'


def test_it_replaces_an_element_where_it_stands() -> None:
    text = '{"a": [1, {"b": 2}, 3]}'
    assert jsontext.put(text, ["a", 1, "b"], 5) == '{"a": [1, {"b": 5}, 3]}'
    assert jsontext.take_out(text, ["a", 0]) == '{"a": [{"b": 2}, 3]}'
    assert jsontext.take_out(text, ["a", 9]) == text


def test_it_refuses_a_number_that_python_will_not_read() -> None:
    with pytest.raises(Broken, match="line 1, column 2"):
        jsontext.parse("[" + "9" * 5000 + "]")
