"""Long results: a piece at a time."""

from __future__ import annotations

from mcpsync import Host
from mcpsync.host.kept import Kept
from tests.host.inside import inside


def test_a_short_text_is_itself() -> None:
    assert Kept(5).fit("12345") == "12345"


def test_the_pieces_are_the_whole() -> None:
    kept, text = Kept(1000, "mcp_result"), "".join("%05d" % number for number in range(700))
    piece = kept.fit(text)
    assert piece.endswith(
        "[cut here: 2500 of 3500 characters left out, kept as r1: call mcp_result with id 'r1' and offset 1000]"
    )
    pieces, offset = [], 0
    while "[cut here" in piece:
        pieces.append(piece.rpartition("\n")[0])
        offset += 1000
        found = kept.read("r1", offset)
        assert found is not None
        piece = found
    assert "".join([*pieces, piece]) == text == kept.get("r1")


def test_a_smaller_piece_and_one_past_the_end() -> None:
    kept = Kept(10)
    kept.fit("x" * 100)
    assert kept.read("r1", 98) == "xx"
    assert kept.read("r1", 500) == ""
    assert kept.read("r1", 0, 3) == "xxx\n[cut here: 97 of 100 characters left out, kept as r1]"
    assert kept.read("r2", 0) is None


def test_the_oldest_go() -> None:
    kept = Kept(1)
    for _ in range(70):
        kept.fit("ab")
    assert kept.get("r6") is None
    assert kept.get("r7") == "ab"
    kept.fit("x" * 17_000_000)
    assert kept.get("r70") is None
    assert len(kept.get("r71") or "") == 17_000_000


def test_a_model_reads_on() -> None:
    long = inside(["work"], {"tools/call": lambda params: {"content": [{"type": "text", "text": "abcdefghij" * 10}]}})
    with Host.from_config({"mcpServers": {}}, context_tools=True, result_limit=60, approve=lambda _: "once") as host:
        host.connect_all({"s": long})
        first = host.dispatch("openai", _call("mcp__s__work", "{}"))["content"]
        assert first.startswith(
            "abcdefghij" * 6 + "\n[cut here: 40 of 100 characters left out, kept as r1: call mcp_result"
        )
        rest = host.dispatch("openai", _call("mcp_result", '{"id": "r1", "offset": 60}'))["content"]
        assert rest == "abcdefghij" * 4
        assert host.kept_result("r1") == "abcdefghij" * 10
        assert host.kept_result("r2") is None
        for wrong in ('{"id": "r9"}', '{"id": 5}', '{"id": "r1", "offset": "x"}', '{"id": "r1", "offset": -1}'):
            assert host.dispatch("openai", _call("mcp_result", wrong))["content"].startswith("Error: ")


def _call(name: str, arguments: str) -> object:
    return {"id": "c", "type": "function", "function": {"name": name, "arguments": arguments}}
