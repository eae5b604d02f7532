"""Framing and session together: how a stream is cut says nothing about what it means."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpsync.core.era import REVISIONS
from mcpsync.core.framing import LineFramer
from mcpsync.core.session import Answered, Progressed, Session
from mcpsync.errors import MessageTooLarge

CALLS = 6
LIMIT = 200


class Call:
    method = "tools/call"
    request_id = -1


def wire(message):
    return json.dumps(message, ensure_ascii=False).encode()


call_ids = st.integers(0, CALLS - 1)
texts = st.text(st.characters(blacklist_categories=("Cs",)), max_size=6)
messages = st.one_of(
    st.builds(lambda n, t: {"id": n, "result": {"text": t}}, call_ids, texts),
    st.builds(lambda n, t: {"id": n, "error": {"code": -1, "message": t}}, call_ids, texts),
    st.builds(lambda n: {"method": "notifications/progress", "params": {"progressToken": n}}, call_ids),
    st.builds(lambda t: {"method": "notifications/message", "params": {"data": t}}, texts),
    st.builds(lambda n: {"id": n, "method": "ping"}, st.sampled_from([0, 1, "0", "x"])),
    st.builds(lambda n: {"method": "notifications/cancelled", "params": {"requestId": n}}, st.sampled_from([0, "x"])),
)
noise = st.sampled_from([b"", b" ", b"Server ready", b"\xff\xfe", b"[]", b"7", b"{", b'{"id":0,"result":{}', b"\r"])
lines = st.one_of(messages.map(wire), st.lists(messages, max_size=3).map(wire), noise, st.just(b"x" * (LIMIT + 1)))
ends = st.sampled_from([b"\n", b"\r\n"])
streams = st.lists(st.tuples(lines, ends), max_size=8).map(lambda pairs: b"".join(line + end for line, end in pairs))


def comparable(event, calls):
    """Equal for equal events of two sessions: a call by its number, a failure by its text."""
    if isinstance(event, Answered):
        return "answered", calls.index(event.call), event.result, event.failure and str(event.failure)
    if isinstance(event, Progressed):
        return "progressed", calls.index(event.call), event.params
    return type(event).__name__, *event


def meaning(chunks):
    """All events of a stream, and whether it ended in a line that was too long."""
    session = Session(itertools.count(), {"name": "t"}, {})
    session.adopt(REVISIONS["2025-03-26"])
    calls = [Call() for _ in range(CALLS)]
    for call in calls:
        session.request(call, call.method, {}, progress=True)
    framer = LineFramer(LIMIT)
    events, broken = [], False
    for chunk in chunks:
        try:
            complete = framer.feed(chunk)
        except MessageTooLarge:
            complete, broken = framer.salvaged, True
        events += [comparable(event, calls) for line in complete for event in session.receive(line)]
        if broken:
            break
    return events, broken, [calls.index(call) for call in session.in_flight()]


@pytest.mark.usefixtures("codec")
@given(stream=streams, rest=lines, places=st.lists(st.integers(min_value=0), max_size=20))
def test_any_cut_of_a_stream_gives_the_same_events(stream, rest, places):
    stream += rest
    whole = meaning([stream])
    at = sorted({place % (len(stream) + 1) for place in places})
    assert meaning([stream[start:stop] for start, stop in zip([0, *at], [*at, len(stream)])]) == whole
    assert meaning([stream[n : n + 1] for n in range(len(stream))]) == whole


@pytest.mark.usefixtures("codec")
def test_a_character_cut_in_two_is_whole_again():
    stream = '{"id":0,"result":{"text":"\u20ac\U0001f600"}}\n'.encode()
    for at in range(len(stream)):
        events, broken, in_flight = meaning([stream[:at], stream[at:]])
        assert events == [("answered", 0, {"text": "\u20ac\U0001f600"}, None)]
        assert not broken
        assert in_flight == [1, 2, 3, 4, 5]
