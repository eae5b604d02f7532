"""Event streams: every kind of line end, any cut, against an interpreter of the rules written for obviousness."""

import json
import random
import time

import pytest

from mcpsync.core.sse import EventFramer, EventReader
from mcpsync.errors import MessageTooLarge

LIMIT = 1 << 30

STREAMS = {
    "LF": b"data: a\n\ndata: b\n\n",
    "CR LF": b"data: a\r\n\r\ndata: b\r\n\r\n",
    "CR": b"data: a\r\rdata: b\r\r",
    "LF, then CR LF": b"data: a\n\r\ndata: b\n\r\n",
    "CR LF, then LF": b"data: a\r\n\ndata: b\r\n\n",
    "CR, then CR LF": b"data: a\r\r\ndata: b\r\r\n",
    "CR LF, then CR": b"data: a\r\n\rdata: b\r\n\r",
    "line separators of Unicode": "data: x\u2028y\u2029z\x85w\x0bv\x0cu\x1ct\n\ndata: b\n\n".encode(),
    "several bytes a character": "data: é漢😀\n\n".encode(),
    "byte order mark": b"\xef\xbb\xbfdata: a\n\ndata: b\n\n",
    "half a byte order mark": b"\xef\xbbdata: a\n\ndata: b\n\n",
    "cut off": b'data: a\n\ndata: {"jsonrpc":"2.',
    "one line end at the end": b"data: a\n\ndata: b\n",
    "two lines of data": b"data: a\ndata: b\n\n",
    "no space": b"data:a\n\n",
    "two spaces": b"data:  a\n\n",
    "empty data": b"id: 1\ndata:\n\n",
    "data without colon": b"data\n\n",
    "comment": b": hi\n\ndata: a\n\n",
    "comment inside": b"data: a\n: hi\ndata: b\n\n",
    "id stays": b"id: 7\ndata: a\n\ndata: b\n\n",
    "id alone": b"id: 7\n\ndata: b\n\n",
    "id with NUL": b"id: a\0b\ndata: a\n\n",
    "id reset": b"id: 7\ndata: a\n\nid\ndata: b\n\n",
    "invalid UTF-8": b"data: a\xffb\n\ndata: c\n\n",
    "invalid UTF-8 in two lines": b"data: a\xff\ndata: b\n\n",
    "invalid UTF-8 in the id": b"id: \xff\ndata: b\n\n",
    "event type": b"event: endpoint\ndata: /m\n\ndata: b\n\n",
    "event type empty": b"event:\ndata: b\n\n",
    "blank lines": b"\n\n\ndata: a\n\n\n\ndata: b\n\n",
    "colons": b'data: {"a": "b:c"}\n\n',
    "unknown field": b"foo: x\ndata: a\n\n",
    "field that starts like another": b"database: x\ndata: a\n\nidle: 4\ndata: b\n\n",
    "line of white space": b"data: a\n \ndata: b\n\n",
}
TOKENS = [
    b"data:",
    b"data: ",
    b"data",
    b"id: ",
    b"id",
    b"event: ",
    b"retry: ",
    b"12",
    b"\n",
    b"\r",
    b"\r\n",
    b"\n\n",
    b"x",
    b" ",
    b":",
    "é".encode(),
    "\u2028".encode(),
    b"\xff",
    b"\xef\xbb\xbf",
    b"\0",
]


def interpret(stream):
    """The rules, one character at a time: [(type, data, last event id)]."""
    text = stream.decode("utf-8", "replace")
    if text.startswith("\ufeff"):
        text = text[1:]
    lines, line, place = [], "", 0
    while place < len(text):
        char = text[place]
        if char == "\r":
            lines.append(line)
            line = ""
            if text[place + 1 : place + 2] == "\n":
                place += 1
        elif char == "\n":
            lines.append(line)
            line = ""
        else:
            line += char
        place += 1
    events, data, kind, last_id = [], "", "", ""
    for line in lines:
        if not line:
            if data:
                events.append((kind or "message", data[:-1], last_id))
            data = kind = ""
            continue
        if line.startswith(":"):
            continue
        field, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if field == "data":
            data += value + "\n"
        elif field == "event":
            kind = value
        elif field == "id" and "\0" not in value:
            last_id = value
    return events


def read(chunks):
    reader = EventReader(LIMIT)
    events = [event for chunk in chunks for event in reader.feed(chunk)]
    return [(event.event, event.data.decode(), event.event_id) for event in events if event.data is not None]


@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)
def test_d8_one_right_answer_wherever_the_stream_is_cut(stream):
    expected = interpret(stream)
    for place in range(len(stream) + 1):
        assert read([stream[:place], stream[place:]]) == expected
    assert read([stream[place : place + 1] for place in range(len(stream))]) == expected


def test_agrees_with_the_rules_on_hostile_streams():
    chance = random.Random(7)
    for _ in range(20_000):
        stream = b"".join(chance.choice(TOKENS) for _ in range(chance.randint(1, 14)))
        chunks, place = [], 0
        while place < len(stream):
            end = place + chance.randint(1, 4)
            chunks.append(stream[place:end])
            place = end
        assert read(chunks) == interpret(stream), chunks


def test_d7_id_and_retry_reach_us_without_data():
    reader = EventReader(LIMIT)
    assert [(e.data, e.event_id, e.retry) for e in reader.feed(b"id: 5\n\nretry: 1500\n\n: ping\n\n")] == [
        (None, "5", None),
        (None, "5", 1500),
    ]
    assert reader.feed(b"retry: soon\n\nretry: 99999999999\n\n") == []
    assert (reader.last_id, reader.retry) == ("5", 1500)


def test_retry_beside_data_is_told_once():
    reader = EventReader(LIMIT)
    events = reader.feed(b"retry: 9\ndata: a\n\ndata: b\n\nretry: 10\ndata: a\ndata: b\n\n")
    assert [(event.data, event.retry) for event in events] == [(b"a", 9), (b"b", None), (b"a\nb", 10)]


@pytest.mark.parametrize("size", [128, 8192])
@pytest.mark.alone
@pytest.mark.timed
def test_d9_a_large_event_in_small_pieces_takes_linear_time(size):
    payload = json.dumps({"text": "x" * 5_000_000}).encode()
    stream = b"event: message\ndata: " + payload + b"\n\n"
    reader, events = EventReader(LIMIT), []
    started = time.perf_counter()
    for place in range(0, len(stream), size):
        events += reader.feed(stream[place : place + size])
    assert time.perf_counter() - started < 1
    assert [event.data for event in events] == [payload]


def test_an_event_past_the_limit_is_an_error_that_names_it():
    framer = EventFramer(10)
    assert framer.feed(b"data: 1234\n\n") == [b"data: 1234"]
    with pytest.raises(MessageTooLarge, match="limit of 10 bytes") as raised:
        framer.feed(b"data: 12345")
    assert raised.value.limit == 10


def test_few_kinds_of_event_are_remembered():
    reader = EventReader(LIMIT)
    for number in range(100):
        assert reader.feed(b"event: kind%d\ndata: x\n\n" % number)[0].event == "kind%d" % number
    assert len(reader._kinds) <= 16
