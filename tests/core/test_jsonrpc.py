"""Messages as bytes: the same with and without ``orjson``, and no input that is not answered for."""

from __future__ import annotations

import enum
import gc
import json
import json.encoder
import math
import re
import sys
import time
import uuid
from collections import OrderedDict, namedtuple

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from mcpsync.core import jsonrpc
from mcpsync.errors import InvalidMessage
from tests.core.codecs import STDLIB, orjson_codec

Point = namedtuple("Point", "x y")


class Colour(enum.Enum):
    RED = "red"
    NESTED = ("a", 1)


class Level(enum.IntEnum):
    HIGH = 3


class Word(str, enum.Enum):
    YES = "yes"


def nested(depth, leaf=None):
    for _ in range(depth):
        leaf = [leaf]
    return leaf


def circular():
    made = {"a": []}
    made["a"].append(made)
    return made


# --- encoding


@pytest.mark.usefixtures("codec")
@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": [1, 2.5, True, None, "x"]}, b'{"a":[1,2.5,true,null,"x"]}'),
        ({}, b"{}"),
        ((1, 2), b"[1,2]"),
        ("gr\u00fcn \U0001f600 \u2028", '"gr\u00fcn \U0001f600 \u2028"'.encode()),
        ("\ud800", rb'"\ud800"'),
        ({"a\udfff": "\u00e9"}, rb'{"a\udfff":"\u00e9"}'),
        ('\x00\x1f"\\', rb'"\u0000\u001f\"\\"'),
        (2**63, b"9223372036854775808"),
        (-(2**200), str(-(2**200)).encode()),
        ({7: "a", 2.5: "b", None: "c", True: "d"}, b'{"7":"a","2.5":"b","null":"c","true":"d"}'),
        (OrderedDict(a=1), b'{"a":1}'),
        (Point(1, 2), b"[1,2]"),
        (Colour.RED, b'"red"'),
        (Colour.NESTED, b'["a",1]'),
        ({"k": [Level.HIGH, Word.YES]}, b'{"k":[3,"yes"]}'),
        ({Word.YES: 1}, b'{"yes":1}'),
        ([uuid.UUID(int=5)], b'["00000000-0000-0000-0000-000000000005"]'),
        ("null", b'"null"'),
        (nested(500), b"[" * 500 + b"null" + b"]" * 500),
        (nested(500, "\ud800"), b"[" * 500 + rb'"\ud800"' + b"]" * 500),
    ],
)
def test_a_value_has_one_text(value, text):
    assert jsonrpc.encode(value) == text


@pytest.mark.usefixtures("codec")
@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        {"deep": [{"er": -math.inf}], "null": None},
        {math.nan: 1},
        circular(),
        nested(100_000),
        nested(100_000, "\ud800"),
        b"bytes",
        {"a": {1, 2}},
        {"a": object()},
        {(1, 2): 3},
        {Colour.RED: 3},
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_has_no_json_form_is_a_value_error(value):
    with pytest.raises(ValueError):
        jsonrpc.encode(value)


@pytest.mark.usefixtures("codec")
@pytest.mark.skipif(not hasattr(sys, "set_int_max_str_digits"), reason="this interpreter writes integers of any length")
def test_an_integer_that_python_does_not_write_out_is_a_value_error():
    with pytest.raises(ValueError):
        jsonrpc.encode([10**10_000])
    with pytest.raises(InvalidMessage):
        jsonrpc.decode(b"1" * 10_000)


@pytest.mark.usefixtures("codec")
def test_the_error_names_the_type():
    with pytest.raises(ValueError, match="object is not one of JSON's types"):
        jsonrpc.encode({"a": object()})
    with pytest.raises(ValueError, match="nested too deeply, or contains itself"):
        jsonrpc.encode(circular())


def test_a_uuid_is_text_only_where_there_are_uuids(monkeypatch):
    value = uuid.UUID(int=5)
    monkeypatch.delitem(sys.modules, "uuid")
    with pytest.raises(ValueError, match="UUID is not one of JSON's types"):
        STDLIB.encode(value)


def test_an_interpreter_without_a_c_encoder(monkeypatch):
    monkeypatch.setattr(json.encoder, "c_make_encoder", None)
    encode_text = jsonrpc._text_encoder()
    assert encode_text({"a": [1, "\u00e9", Colour.RED]}) == '{"a":[1,"\u00e9","red"]}'
    with pytest.raises(ValueError):
        encode_text(math.nan)


def test_without_orjson_the_standard_library_stays(monkeypatch):
    monkeypatch.setitem(sys.modules, "orjson", None)
    assert orjson_codec() is None


# --- decoding


@pytest.mark.usefixtures("codec")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b'{"a":[1,2.5,true,null,"x"]}', {"a": [1, 2.5, True, None, "x"]}),
        (b' \t\r\n{"a":1} \r', {"a": 1}),
        (b"\xef\xbb\xbf{}", {}),
        (b"\xef\xbb\xbf [1]", [1]),
        (rb'"\ud800"', "\ud800"),
        (rb'"\ud83d\ude00"', "\U0001f600"),
        (rb'"\u0000"', "\x00"),
        (b'"\x7f\xe2\x80\xa8"', "\x7f\u2028"),
        (b'{"a":1,"b":2,"a":3}', {"a": 3, "b": 2}),
        (b"1e999", math.inf),
        (b"-1e999", -math.inf),
        (b"-Infinity", -math.inf),
        (b"18446744073709551615", 2**64 - 1),
        (b"-9223372036854775808", -(2**63)),
        (b"1e5", 100000.0),
        (b"-0", 0),
        (b"[" * 500 + b"]" * 500, nested(499, [])),
    ],
)
def test_a_text_has_one_value(text, value):
    got = jsonrpc.decode(text)
    assert got == value
    assert type(got) is type(value)


@pytest.mark.usefixtures("codec")
def test_not_a_number_is_taken():
    assert math.isnan(jsonrpc.decode(b'{"a":NaN}')["a"])


@pytest.mark.parametrize("text", [b"18446744073709551616", b"-9223372036854775809", b"1" + b"0" * 100])
def test_an_integer_of_more_than_64_bits_is_exact_or_a_float(codec, text):
    """The one difference between the two, which the module's documentation names."""
    value = jsonrpc.decode(text)
    assert value == (int(text) if codec == "stdlib" else float(text))


@pytest.mark.usefixtures("codec")
@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "invalid JSON"),
        (b"   ", "invalid JSON"),
        (b"Server started", "invalid JSON"),
        (b'{"a":1', "invalid JSON"),
        (b'{"a":1}{"b":2}', "invalid JSON"),
        (b'[INFO] {"a":1}', "invalid JSON"),
        (b'{"a":1}\x00', "invalid JSON"),
        (b'"\x00"', "invalid JSON"),
        (b"{'a':1}", "invalid JSON"),
        (b"01", "invalid JSON"),
        (b"1.", "invalid JSON"),
        (b"\x0b1", "invalid JSON"),
        (b'{"a":"\xff"}', "invalid UTF-8 at byte 6"),
        (b'"\xed\xa0\x80"', "invalid UTF-8 at byte 1"),
        (b'"\xf4\x90\x80\x80"', "invalid UTF-8 at byte 1"),
        (b'{"a":"\xe2\x82', "invalid UTF-8 at byte 6"),
        (b"[" * 200_000 + b"]" * 200_000, "nested too deeply"),
        (b'{"a":' * 200_000, "nested too deeply"),
    ],
)
def test_what_is_no_json_is_an_invalid_message(text, why):
    with pytest.raises(InvalidMessage, match=why) as caught:
        jsonrpc.decode(text)
    assert len(str(caught.value)) < 500
    assert str(caught.value).isprintable()


# --- the two agree


def outcome(function, argument):
    """The value with its type, or that there is none; comparable, NaN too."""
    try:
        return repr(function(argument))
    except (ValueError, InvalidMessage):
        return "refused"


texts = st.text(alphabet=st.characters(blacklist_categories=()), max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts | st.sampled_from([Colour.RED, Level.HIGH, b""]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts | st.integers() | st.none(), inner, max_size=4),
    max_leaves=12,
)


@given(values)
def test_any_value_is_encoded_alike(value):
    fast = orjson_codec()
    if fast is None:
        pytest.skip("orjson is not installed")
    plain_text, fast_text = outcome(STDLIB.encode, value), outcome(fast.encode, value)
    if plain_text == "refused" or fast_text == "refused":
        assert plain_text == fast_text
    else:  # 1e+16 and 1e16 are one number
        assert outcome(STDLIB.decode, STDLIB.encode(value)) == outcome(STDLIB.decode, fast.encode(value))


pieces = st.sampled_from(
    [
        *[
            b"{",
            b"}",
            b"[",
            b"]",
            b",",
            b":",
            b'"',
            b'"a"',
            b"\\",
            rb"\ud800",
            rb"\u0041",
            b"1",
            b"0",
            b"-",
            b".",
            b"e5",
        ],
        *[
            b"e5",
            b"1e999",
            b"true",
            b"null",
            b"NaN",
            b"Infinity",
            b" ",
            b"\t",
            b"\x00",
            b"\xff",
            b"\xc3\xa9",
            b"\xef\xbb\xbf",
        ],
    ]
)


@given(st.lists(pieces, max_size=10).map(b"".join) | values.map(lambda value: json.dumps(str(value)).encode()))
@example(b'{"a":1,"a":2}')
@example(b"\xef\xbb\xbf\xef\xbb\xbf1")
def test_any_text_is_decoded_alike(text):
    fast = orjson_codec()
    if fast is None:
        pytest.skip("orjson is not installed")
    assume(not re.search(rb"\d{19}", text))
    assert outcome(STDLIB.decode, text) == outcome(fast.decode, text)


@pytest.mark.usefixtures("codec")
@given(value=st.recursive(st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | texts, st.lists, max_leaves=8))
@pytest.mark.filterwarnings("ignore")
def test_what_is_encoded_comes_back(value):
    assert jsonrpc.decode(jsonrpc.encode(value)) == value
    assert b"\n" not in jsonrpc.encode(value)


# --- messages


@pytest.mark.usefixtures("codec")
def test_messages():
    def same(data, message):
        return json.loads(data) == {"jsonrpc": "2.0", **message}

    assert same(jsonrpc.request(7, "tools/call", b'{"a":1}'), {"id": 7, "method": "tools/call", "params": {"a": 1}})
    assert same(jsonrpc.request(7, 'a"b\\\n\ud800', b"{}"), {"id": 7, "method": 'a"b\\\n\ud800', "params": {}})
    assert same(jsonrpc.notification("n"), {"method": "n"})
    assert same(jsonrpc.notification("n", {}), {"method": "n", "params": {}})
    assert same(jsonrpc.result_answer("0", {"r": 1}), {"id": "0", "result": {"r": 1}})
    assert same(jsonrpc.error_answer(1.5, -1, "no"), {"id": 1.5, "error": {"code": -1, "message": "no"}})
    assert same(jsonrpc.error_answer(0, -1, "no", []), {"id": 0, "error": {"code": -1, "message": "no", "data": []}})


# --- what logs and errors show


def test_an_excerpt_is_bounded_and_on_one_line():
    assert jsonrpc.excerpt(b"a\nb\x1b[31m\xff\xe2\x80\xae") == r"a\nb\x1b[31m" + "\ufffd" + r"\u202e"
    assert jsonrpc.excerpt(b"x" * 1_000) == "x" * 200 + "... (1000 bytes)"
    assert jsonrpc.excerpt("\u00e9".encode() * 3, limit=3) == "\u00e9\ufffd... (6 bytes)"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None"),
        (7, "7"),
        ("a\nb", r"'a\nb'"),
        ("x" * 1_000, "'%s'" % ("x" * 100)),
        (10**3_000, "1" + "0" * 99),
        ({"a": 1}, "an object"),
        (nested(100_000), "an array"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_is_shown_bounded(value, text):
    assert jsonrpc.shown(value) == text


def test_showing_a_large_message_costs_nothing():
    value = {"key %d" % n: "x" * 100 for n in range(10_000)}
    started = time.process_time()
    for _ in range(10_000):
        jsonrpc.shown(value)
    assert time.process_time() - started < 0.5


LARGE = b"[%s]" % b",".join([b'{"a":[1]}'] * 150_000)


@pytest.mark.usefixtures("codec")
@pytest.mark.skipif(sys.version_info >= (3, 12), reason="the interpreter itself does not collect within")
def test_a_large_text_is_decoded_without_collections():
    before = [generation["collections"] for generation in gc.get_stats()]
    value = jsonrpc.decode(LARGE)
    after = [generation["collections"] for generation in gc.get_stats()]
    assert len(value) == 150_000
    assert sum(after) - sum(before) <= 3
    assert gc.isenabled()


@pytest.mark.usefixtures("codec")
def test_the_collector_is_left_as_it_was():
    with pytest.raises(InvalidMessage):
        jsonrpc.decode(LARGE[:-1])
    assert gc.isenabled()
    gc.disable()
    try:
        jsonrpc.decode(LARGE)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_child_forked_amidst_a_decoding_collects():
    seen = []

    def decode(data):
        seen.append(gc.isenabled())
        jsonrpc.after_fork()
        seen.append(gc.isenabled())

    jsonrpc._uncollected(decode, b"")
    assert seen == [False, True]
    assert gc.isenabled()
