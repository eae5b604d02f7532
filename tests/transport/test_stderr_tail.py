"""The end of stderr: bounded, whole lines, no secrets."""

from __future__ import annotations

from mcpsync.transport.masking import Mask
from mcpsync.transport.stderr_tail import StderrTail


def test_lines_come_whole_however_they_are_cut() -> None:
    for size in range(1, 12):
        tail, got = StderrTail(Mask({})), []
        text = "eins\r\nzwei\n\nä\n".encode()
        for start in range(0, len(text), size):
            got += tail.feed(text[start : start + size])
        assert got == ["eins", "zwei", "", "ä"]
        assert tail.text == "eins\nzwei\nä"
        assert tail.brief == "eins | zwei | ä"


def test_it_keeps_the_last_forty_lines_and_8192_characters() -> None:
    tail = StderrTail(Mask({}))
    tail.feed(b"".join(b"line %d\n" % number for number in range(100)))
    assert tail.text.splitlines() == ["line %d" % number for number in range(60, 100)]
    tail.feed(b"".join(b"%d" % number * 1000 + b"\n" for number in range(10, 40)))
    assert len(tail.text) <= 8192
    assert tail.text.endswith("39" * 10)
    assert len(tail.brief) <= 601


def test_a_line_that_never_ends_is_cut() -> None:
    tail = StderrTail(Mask({}))
    for _ in range(100):
        assert tail.feed(b"x" * 10_000) == []
    assert tail.text == "x" * 2048 + "… [997952 more]"
    assert tail.feed(b"\nnext\n") == ["x" * 2048 + "… [997952 more]", "next"]


def test_the_unfinished_line_counts() -> None:
    tail = StderrTail(Mask({}))
    assert tail.feed(b"one\ntwo") == ["one"]
    assert tail.text == "one\ntwo"
    assert tail.end() == ["two"]
    assert tail.end() == []
    assert tail.text == "one\ntwo"


def test_what_is_no_utf_8_is_replaced() -> None:
    tail = StderrTail(Mask({}))
    assert tail.feed(b"a\xffb\n") == ["a\ufffdb"]


def test_a_secret_across_the_cut_is_hidden() -> None:
    secret = "s3cret" * 20
    tail = StderrTail(Mask({"TOKEN": secret}))
    for before in range(2048 - len(secret), 2060):
        (line,) = tail.feed(b"x" * before + secret.encode() * 3 + b"\n")
        assert "s3c" not in line
