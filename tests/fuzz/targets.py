"""What is fuzzed, and what has to hold for any input."""

from __future__ import annotations

import atexit
import itertools
import json
import os
import random
import re
import tempfile
import zlib
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Sequence

from mcpsync.config import load
from mcpsync.config.edit import change_server, remove_server
from mcpsync.config.model import Config
from mcpsync.core.era import REVISIONS
from mcpsync.core.framing import LineFramer
from mcpsync.core.session import Answered, Asked, Event, Notified, Oddity, Progressed, Session, Withdrawn
from mcpsync.errors import ConfigError, InvalidMessage, MessageTooLarge
from tests.config.files_of_programs import FILES
from tests.core.codecs import STDLIB, orjson_codec
from tests.core.test_sse import STREAMS, TOKENS, interpret, read
from tests.fuzz.fuzzer import Target

__all__ = ["TARGETS"]


def _cuts(data: bytes) -> Iterator[bytes]:
    """The input in pieces, which only depend on it."""
    chance = random.Random(zlib.crc32(data))
    place = 0
    while place < len(data):
        end = place + chance.choice((1, 2, 3, 10, 1000))
        yield data[place:end]
        place = end


# -- framing ---------------------------------------------------------------------------------------------------

_LIMIT = 40


def _lines(chunks: Sequence[bytes]) -> List[Optional[bytes]]:
    """What a framer makes of it; None where a line was too long, which is the end."""
    framer = LineFramer(_LIMIT)
    lines: List[Optional[bytes]] = []
    for chunk in chunks:
        try:
            lines += framer.feed(chunk)
        except MessageTooLarge:
            return [*lines, *framer.salvaged, None]
    return lines


def check_framing(data: bytes) -> None:
    """Any cut gives what the rules say."""
    expected: List[Optional[bytes]] = []
    *ended, rest = data.split(b"\n")
    for each in ended:
        line = each[:-1] if each.endswith(b"\r") else each
        if len(line) > _LIMIT:
            expected.append(None)
            break
        if line and not line.isspace():
            expected.append(line)
    else:
        if len(rest) - rest.endswith(b"\r") > _LIMIT:
            expected.append(None)
    assert _lines([data]) == expected
    assert _lines(list(_cuts(data))) == expected


# -- JSON-RPC --------------------------------------------------------------------------------------------------

_ORJSON = orjson_codec()


def check_json(data: bytes) -> None:
    """It is a value, the same for both decoders, or an InvalidMessage; a value survives its encoding."""
    try:
        value = STDLIB.decode(data)
    except InvalidMessage as error:
        assert len(str(error)) < 2000
        if _ORJSON is not None:
            try:
                _ORJSON.decode(data)
            except InvalidMessage:
                return
            raise AssertionError("orjson takes it") from error
        return
    if _ORJSON is not None and not re.search(rb"\d{17}", data):
        assert repr(_ORJSON.decode(data)) == repr(value)
    try:
        again = STDLIB.encode(value)
    except ValueError:  # NaN, or infinity
        return
    assert repr(STDLIB.decode(again)) == repr(value)


class _Call:
    def __init__(self, method: str) -> None:
        self.method = method
        self.request_id = -1


def check_session(data: bytes) -> None:
    """Whatever comes in, each call is answered once at most, and is in flight as long as it is not."""
    for revision in ("2025-03-26", "2025-11-25", "2026-07-28"):
        session: Session[_Call] = Session(itertools.count(0), {"name": "t", "version": "1"}, {})
        session.adopt(REVISIONS[revision], None)
        calls = [_Call("tools/call") for _ in range(4)]
        for call in calls:
            session.request(call, call.method, {}, call is calls[0])
        answered: List[_Call] = []
        for line in data.split(b"\n"):
            if line:
                for event in session.receive(line):
                    _check_event(session, event, calls, answered)
        assert len(answered) == len(set(answered))
        assert set(session.in_flight()) == set(calls) - set(answered)
        assert set(session.retire_all()) == set(calls) - set(answered)


def _check_event(session: Session[_Call], event: Event, calls: List[_Call], answered: List[_Call]) -> None:
    if isinstance(event, Answered):
        assert (event.result is None) != (event.failure is None)
        answered.append(event.call)
    elif isinstance(event, Progressed):
        assert event.call is calls[0] and event.call not in answered
    elif isinstance(event, Asked):
        if len(event.method) % 2:
            assert session.refuse(event.request_id, -32601, "no") is not None
            assert session.refuse(event.request_id, -32601, "no") is None
    else:
        assert isinstance(event, (Notified, Oddity, Withdrawn))
        if isinstance(event, Oddity):
            assert len(str(event)) < 2000


_MESSAGES: List[Any] = [
    {"jsonrpc": "2.0", "id": 0, "result": {"content": [], "resultType": "complete"}},
    {"jsonrpc": "2.0", "id": "1", "result": {"content": [{"type": "text", "text": "x"}]}},
    {"jsonrpc": "2.0", "id": 2, "error": {"code": -32602, "message": "no", "data": {"a": [1]}}},
    {"jsonrpc": "2.0", "id": 3, "error": {"code": -32042, "message": "u", "data": {"elicitations": [{"url": "x"}]}}},
    {"jsonrpc": "2.0", "id": 1, "result": {"resultType": "input_required", "inputRequests": {"a": {"method": "x"}}}},
    {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 0, "progress": 1, "total": 2}},
    {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"},
    {"jsonrpc": "2.0", "id": 7, "method": "sampling/createMessage", "params": {"messages": []}},
    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7, "reason": "r"}},
    {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "parse"}},
    [{"jsonrpc": "2.0", "id": 0, "result": {}}, {"jsonrpc": "2.0", "id": 1, "result": {}}],
]
_JSON_SEEDS = [json.dumps(message).encode() for message in _MESSAGES] + [
    b'"\\ud800"',
    b"[1e999,-0,0.1,1E+2,NaN,Infinity]",
    b'\xef\xbb\xbf{"a":1,"a":2}',
    b" \t{}\r\n",
    b"123456789012345678901234567890",
]
_JSON_WORDS = [
    *(b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"\\u0041", b"\\ud83d", b"null", b"true", b"1", b"-", b"."),
    *(b"e5", b"1e999", b"NaN", b" ", b"\t", b"\n", b"\0", b"\xff", b"\xc3\xa9", b"\xed\xa0\x80", b"\xef\xbb\xbf"),
    *(b'"id":', b'"jsonrpc":"2.0"', b'"method":', b'"params":', b'"result":', b'"error":', b'"code":', b"{}", b"[]"),
    *(b'"progressToken":0', b'"resultType":"complete"', b'"requestId":7', b'"0"', b"0.0", b"-0", b"1.0", b"false"),
    b'"notifications/progress"',
]


# -- event streams ---------------------------------------------------------------------------------------------


def check_sse(data: bytes) -> None:
    """Any cut gives what the rules say."""
    expected = interpret(data)
    assert read([data]) == expected
    assert read(list(_cuts(data))) == expected


# -- config files ----------------------------------------------------------------------------------------------

_SUFFIXES = {b"j": ".json", b"y": ".yaml", b"t": ".toml"}
_ENVIRON = {"HOME": "/h", "T": "secret-t", "U": "${T}"}
_folder = tempfile.TemporaryDirectory(prefix="fuzz-config-")
atexit.register(_folder.cleanup)


def _load(path: Path, dialect: Optional[str] = None) -> Optional[Config]:
    try:
        config = load(path, environ=_ENVIRON, dialect=dialect)
    except ConfigError as error:
        assert "secret-t" not in str(error) and len(str(error)) < 4000
        return None
    for diagnostic in config.diagnostics:
        assert "secret-t" not in str(diagnostic)
    for server in config.servers.values():
        assert "secret-t" not in repr(server).replace(repr(server.target), "")
    return config


def check_config(data: bytes) -> None:
    """It loads, or the error says why, and neither shows a secret; an edit changes what it should and no more."""
    suffix = _SUFFIXES.get(data[:1])
    if suffix is None:
        return
    path = Path(_folder.name) / ("mcp%s" % suffix)
    path.write_bytes(data[1:])
    config = _load(path)
    if config is None or not config.servers:
        return
    name = sorted(config.servers)[0]
    others = _shown(config, without=name)
    for edit in (lambda: change_server(str(path), name, {"note": "n"}), lambda: remove_server(str(path), name)):
        try:
            edit()
        except ConfigError as error:
            assert "secret-t" not in str(error)
            return
        edited = _load(path)
        if edited is None:  # it was the last, so there is no map of servers any more
            assert not others
            return
        assert _shown(edited, without=name) == others
    assert name not in edited.servers


def _shown(config: Config, without: str) -> Dict[str, str]:
    return {name: re.sub(r":\d+:", ":", repr(server)) for name, server in config.servers.items() if name != without}


_FLOW = b"{mcpServers: {a: {command: x, args: [1, 'b', \"c\"]}, b: {url: 'http://h/'}}}"
_CONFIG_SEEDS = [
    *((b"t" if path.endswith("toml") else b"y" if path.endswith(("yaml", "yml")) else b"j") + text.encode()
      for path, text in FILES.values()),
    b"y" + _FLOW,
    b"ymcpServers:\n  a: &x\n    command: y # c\n    args:\n    - 1\n    - |\n      b\n",
    b"ymcpServers:\n  a: &x {command: y}\n  c:\n    <<: *x\n    env: {T: ${T}}\n",
    b"ymcp_servers:\n  'a b':\n    command: >-\n      x\n      y\n  ? b\n  : url: https://h\n",
    b'j{/* c */"mcpServers":{"a":{"command":"x",},},// d\n}',
    b't[mcpServers.a]\ncommand = "x"\nargs = ["1",\n"2"] # c\n[mcpServers.a.env]\nT = "${T:-d}"\n',
    b"tmcpServers = {a = {command = 'x'}, \"b.c\" = {url = \"http://h\"}}\n",
]  # fmt: skip
_CONFIG_WORDS = [
    *(b"{", b"}", b"[", b"]", b",", b":", b'"', b"'", b"#", b"//", b"/*", b"*/", b"\n", b"\r\n", b"  ", b"\t", b"- "),
    *(b"${T}", b"${U}", b"${NO:-${T}}", b"$T", b"${env:T}", b"${input:i}", b"${", b"$$", b"&a", b"*a", b"<<: *a"),
    *(b"!!python/object:x.y", b"!!binary x", b"%YAML 1.1\n---\n", b"...\n", b"? ", b"|\n", b">-\n", b"~", b"null"),
    *(b"true", b"0x1F", b"1e9", b".inf", b"1979-05-27T07:32:00Z", b"'''", b'"""', b"\\u0000", b"\\", b"\0", b"\xff"),
    *(b"command", b"url", b"args", b"env", b"headers", b"mcpServers", b"servers", b"timeout", b"enabled", b"type"),
    *(b"[mcpServers.a]", b"[[a]]", b"a.b = 1", b"\xef\xbb\xbf", b"\xff\xfe", b"\xe2\x80\xa8", b"_", b"disabled"),
]

_CONFIG_PARTS = ("mcpsync/config", "yaml/", "json/decoder", "tomllib", "tomli")

TARGETS: Dict[str, Target] = {
    "framing": Target(
        check_framing,
        [b'{"a":1}\n{"b":2}\r\n', b"\n \n\r\n", b"x" * _LIMIT + b"\r\n", b"x" * (_LIMIT + 1) + b"\n"],
        [b"\n", b"\r", b"\r\n", b" ", b"x" * 10, b"x" * _LIMIT, b"\0", b"\xff", b"\t"],
        ("mcpsync/core",),
    ),
    "json": Target(check_json, _JSON_SEEDS, _JSON_WORDS, ("mcpsync/core", "json/decoder", "json/scanner")),
    "session": Target(
        check_session, [*_JSON_SEEDS, b"\n".join(_JSON_SEEDS)], _JSON_WORDS, ("mcpsync/core", "mcpsync/errors")
    ),
    "sse": Target(check_sse, [*STREAMS.values()], TOKENS, ("mcpsync/core",)),
    "config": Target(check_config, _CONFIG_SEEDS, _CONFIG_WORDS, _CONFIG_PARTS),
}
assert os.sep == "/" or not any("/" in part for part in _CONFIG_PARTS), "the parts of paths are those of POSIX"
