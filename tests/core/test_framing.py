"""Line framing: any cut of any lines gives the same lines, in linear time and bounded."""

from __future__ import annotations

import time
from typing import List

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpsync.core.framing import LineFramer
from mcpsync.errors import MessageTooLarge

LIMIT = 64

contents = st.binary(max_size=20).map(lambda data: data.replace(b"\n", b" "))
ends = st.sampled_from([b"\n", b"\r\n"])


def cut(stream: bytes, places: List[int]) -> List[bytes]:
    at = sorted({place % (len(stream) + 1) for place in places})
    return [stream[start:stop] for start, stop in zip([0, *at], [*at, len(stream)])]


def expected(stream: bytes) -> List[bytes]:
    lines = [line[:-1] if line.endswith(b"\r") else line for line in stream.split(b"\n")[:-1]]
    return [line for line in lines if line.strip()]


@given(st.lists(st.tuples(contents, ends)), contents, st.lists(st.integers(min_value=0), max_size=30))
def test_any_cut_gives_the_same_lines(lines, rest, places):
    stream = b"".join(content + end for content, end in lines) + rest
    framer = LineFramer(LIMIT)
    got: List[bytes] = []
    for chunk in cut(stream, places):
        got += framer.feed(chunk)
    assert got == expected(stream)
    assert framer.pending == len(rest)


@given(st.binary(max_size=60).map(lambda data: data.replace(b"x", b"\n")), st.lists(st.integers(min_value=0)))
def test_any_cut_finds_the_same_line_too_long(stream, places):
    """With a small limit: what is delivered before the fault, and the fault itself, do not depend on the cut."""
    limit = 3

    def run(chunks: List[bytes]):
        framer = LineFramer(limit)
        got: List[bytes] = []
        try:
            for chunk in chunks:
                got += framer.feed(chunk)
        except MessageTooLarge:
            return got + framer.salvaged, True
        return got, False

    whole = run([stream])
    assert run(cut(stream, places)) == whole
    assert run([stream[at : at + 1] for at in range(len(stream))]) == whole
    longest = max(len(line[:-1] if line.endswith(b"\r") else line) for line in stream.split(b"\n"))
    assert whole[1] == (longest > limit)


def test_one_whole_line_is_the_chunk_without_its_end():
    framer = LineFramer(LIMIT)
    assert framer.feed(b'{"a":1}\n') == [b'{"a":1}']
    assert framer.feed(b'{"a":2}\r\n') == [b'{"a":2}']
    assert framer.pending == 0


@pytest.mark.parametrize("chunk", [b"", b"\n", b"\r\n", b"  \t\n", b"\n\r\n \n\n"])
def test_blank_lines_are_no_messages(chunk):
    assert LineFramer(LIMIT).feed(chunk) == []


def test_a_carriage_return_inside_a_line_stays():
    assert LineFramer(LIMIT).feed(b"a\rb\r\r\n") == [b"a\rb\r"]


def test_pending_counts_what_waits():
    framer = LineFramer(LIMIT)
    framer.feed(b"abc")
    assert framer.pending == 3
    framer.feed(b"de\nfg")
    assert framer.pending == 2


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_line_of_exactly_the_limit_passes(end):
    line = b"x" * LIMIT
    assert LineFramer(LIMIT).feed(line + end) == [line]
    byte_by_byte = LineFramer(LIMIT)
    assert [got for byte in line + end for got in byte_by_byte.feed(bytes([byte]))] == [line]


@pytest.mark.parametrize("chunk", [b"x" * (LIMIT + 1), b"x" * (LIMIT + 1) + b"\n", b"x" * LIMIT + b"\rx"])
def test_a_longer_line_is_refused_finished_or_not(chunk):
    with pytest.raises(MessageTooLarge, match="longer than the limit of 64 bytes") as caught:
        LineFramer(LIMIT).feed(chunk)
    assert caught.value.limit == LIMIT


def test_the_lines_before_it_are_salvaged_and_nothing_follows():
    framer = LineFramer(LIMIT)
    with pytest.raises(MessageTooLarge):
        framer.feed(b"one\ntwo\n" + b"x" * 100)
    assert framer.salvaged == [b"one", b"two"]
    for chunk in (b"\n", b"three\n", b"x", b"\nfour\n"):
        with pytest.raises(MessageTooLarge):
            framer.feed(chunk)


def test_an_endless_line_is_not_kept():
    """A refused line must not hold its memory until the connection is gone."""
    framer = LineFramer(1_000_000)
    with pytest.raises(MessageTooLarge):
        for _ in range(1_000):
            framer.feed(b"x" * 65_536)
    assert framer._pieces == []


@pytest.mark.alone
@pytest.mark.timed
def test_five_megabytes_in_small_pieces_take_linear_time():
    line = b"x" * 5_000_000
    framer = LineFramer(64 * 1024 * 1024)
    started = time.process_time()
    for at in range(0, len(line), 128):
        assert framer.feed(line[at : at + 128]) == []
    assert framer.feed(b"\n") == [line]
    assert time.process_time() - started < 1.0
