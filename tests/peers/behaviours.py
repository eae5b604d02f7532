"""The tools of the scripted peers, each a fault. See ``tests/peers/scripted.py``; for other methods, ``handlers.py``.

A tool is ``name(server, request, **arguments)``. What it returns is the answer (a text or a result); with None it
answers itself, later, or never. This module is loaded inside the peer, where there is no other module of the tests.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from typing import Any, Dict, List, Optional

Message = Dict[str, Any]

# --- good ones


def echo(server: Any, request: Message, text: str = "") -> str:
    """Says the text again."""
    return text


def large(server: Any, request: Message, size: int) -> str:
    """A text of so many bytes, on one line."""
    return "x" * size


def length(server: Any, request: Message, text: str) -> str:
    """How long the text was: for large arguments."""
    return str(len(text))


def environment(server: Any, request: Message) -> str:
    """The peer's environment and folder, as JSON."""
    return json.dumps({"env": dict(os.environ), "cwd": os.getcwd()})


# --- time


def sleep(server: Any, request: Message, seconds: float, heed: bool = False, text: str = "slept") -> None:
    """Answers later, and serves others meanwhile. ``heed``: no answer if it was cancelled; else the answer is late."""

    def answer() -> None:
        if heed and request["id"] in server.cancelled:
            server.record("stopped", request_id=request["id"])
        else:
            server.text(request, text)
            server.record("answered", request_id=request["id"])

    server.after(seconds, answer)


def busy(server: Any, request: Message, seconds: float) -> str:
    """Blocks the whole server, as a single-threaded one does."""
    time.sleep(seconds)
    return "was busy"


def jumbled(server: Any, request: Message, text: str = "", within: float = 0.005) -> None:
    """Answers at a random moment, so that many calls are answered in random order."""
    server.after(random.random() * within, lambda: server.text(request, text))


def silent(server: Any, request: Message, **ignored: Any) -> None:
    """Never answers."""


# --- ends


def die(server: Any, request: Message, code: int = 3, stderr: str = "", answer: bool = False) -> None:
    """Exits, perhaps after a word on stderr or an answer."""
    server.write(stderr.encode(), 2)
    if answer:
        server.text(request, "dying")
    os._exit(code)


def kill(server: Any, request: Message, name: str = "SIGKILL", stderr: str = "") -> None:
    """Kills itself with a signal."""
    server.write(stderr.encode(), 2)
    os.kill(os.getpid(), getattr(signal, name))


def close_stdout(server: Any, request: Message, answer: bool = True) -> None:
    """Closes its stdout and lives on."""
    if answer:
        server.text(request, "the last word")
    os.close(1)


def stop_reading(server: Any, request: Message, seconds: Optional[float] = None) -> str:
    """Leaves stdin unread from now on, for so many seconds or for good. What came before this is served."""
    server.stop_reading(seconds)
    return "deaf now"


# --- noise


def noise(server: Any, request: Message, *, kinds: List[str], answer: bool = True) -> None:
    """Lines that are no messages, then a notification, lines again, and the answer."""
    lines = {
        "banner": b"*** Welcome to the server ***\n",
        "log": b"2026-07-28 12:00:00 INFO listening\n",
        "blank": b"\n\r\n   \n",
        "invalid_utf8": b'{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"\xff\xfe"}}\n',
        "scalar": b'"text"\n17\nnull\n',
        "object": b'{"level":"info","msg":"structured log"}\n{}\n',
        "half": b'{"jsonrpc":"2.0","id":\n',
        "nul": b"\x00\x00\n",
        "crlf": b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"crlf"}}\r\n',
        "deep": b"[" * 100_000 + b"\n",
        "nan": b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":NaN}}\n',
    }
    wanted = b"".join(lines[kind] for kind in kinds)
    server.write(wanted)
    server.notify("notifications/message", {"level": "info", "data": "between the noise"})
    server.write(wanted)
    if answer:
        server.text(request, "after the noise")


def glued(server: Any, request: Message, before: str = "DEBUG: answering ", after: str = "") -> None:
    """An answer with log text on the same line."""
    answer = {"jsonrpc": "2.0", "id": request["id"], "result": {"content": [], "resultType": "complete"}}
    server.write(before.encode() + json.dumps(answer).encode() + after.encode() + b"\n")


def write_stderr(server: Any, request: Message, size: int, newline: bool = True) -> str:
    """So many bytes on stderr, in lines or as one that does not end, before the answer."""
    line = b"e" * 79 + (b"\n" if newline else b"e")
    server.write((line * (size // 80 + 1))[:size], 2)
    return "written"


def raw(server: Any, request: Message, data: str, answer: bool = True) -> None:
    """Any bytes (as latin-1) on stdout; the text ``$ID`` stands for the id of this request."""
    server.write(data.replace("$ID", json.dumps(request["id"])).encode("latin-1"))
    if answer:
        server.text(request, "sent")


def in_pieces(server: Any, request: Message, size: int = 1_000, piece: int = 7) -> None:
    """An answer in small writes."""
    content = [{"type": "text", "text": "x" * size}]
    answer = {"jsonrpc": "2.0", "id": request["id"], "result": {"content": content, "resultType": "complete"}}
    data = json.dumps(answer).encode() + b"\n"
    for at in range(0, len(data), piece):
        server.write(data[at : at + piece])


# --- ids, envelopes, results


def answers(server: Any, request: Message, ids: List[str]) -> None:
    """An answer for each: ``same`` (the right id), ``unknown``, ``null``, ``string`` (the id as text), ``float``,
    ``bool``, ``missing``, or ``error`` (the right id, but an error)."""
    own = request["id"]
    other = {"same": own, "unknown": 987_654, "null": None, "string": str(own), "float": own + 0.5, "bool": True}
    for number, kind in enumerate(ids):
        if kind == "error":
            server.error(request, -32000, "answer %d" % number)
        elif kind == "missing":
            server.send({"jsonrpc": "2.0", "result": {"content": []}})
        else:
            server.text(request, "answer %d" % number, other[kind])


def batch(server: Any, request: Message, kinds: Optional[List[str]] = None) -> None:
    """The answer in a JSON-RPC batch, among other things."""
    content = [{"type": "text", "text": "batched"}]
    things: Dict[str, Any] = {
        "notification": {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}},
        "answer": {"jsonrpc": "2.0", "id": request["id"], "result": {"content": content}},
        "junk": 17,
        "empty": [],
        "ping": {"jsonrpc": "2.0", "id": "batched-ping", "method": "ping"},
    }
    server.send([things[kind] for kind in kinds or ["notification", "answer"]])


def error(server: Any, request: Message, code: int, message: str = "no", data: Any = None) -> None:
    """A JSON-RPC error."""
    server.error(request, code, message, data)


def outcome(server: Any, request: Message, **members: Any) -> None:
    """An answer with these members beside ``jsonrpc`` and ``id``: both result and error, neither, odd types."""
    server.send({"jsonrpc": "2.0", "id": request["id"], **members})


def result_type(server: Any, request: Message, value: Any) -> Message:
    """A result of another ``resultType``."""
    return {"content": [], "resultType": value}


# --- what comes unasked


def notify(server: Any, request: Message, method: str, params: Optional[Message] = None, count: int = 1) -> str:
    """Notifications, known or not, before the answer."""
    for _ in range(count):
        server.notify(method, params)
    return "notified"


def flood(server: Any, request: Message, count: int, progress: bool = False) -> str:
    """Very many log messages, or progress notifications, and then the answer."""
    if progress:
        for number in range(1, count + 1):
            server.progress(request, number, count)
    else:
        line = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "flood"}}
        server.write((json.dumps(line).encode() + b"\n") * count)
    return "flooded"


def endless_progress(server: Any, request: Message, every: float = 0.02) -> None:
    """Progress again and again, and never an answer; stops when it is cancelled."""
    done = 0

    def tick() -> None:
        nonlocal done
        if request["id"] in server.cancelled:
            server.record("stopped", request_id=request["id"])
            return
        done += 1
        server.progress(request, done)
        server.after(every, tick)

    tick()


def late_progress(server: Any, request: Message) -> None:
    """The answer first, and progress for it after that."""
    server.text(request, "answered")
    server.progress(request, 1, 1)


def changed(server: Any, request: Message, what: str = "tools", count: int = 1, tool: Optional[str] = None) -> str:
    """So many ``list_changed`` at once, perhaps because there is one more tool."""
    if tool is not None:
        server.tools.append({"name": tool, "description": "new", "inputSchema": {"type": "object"}})
    for _ in range(count):
        server.announce("notifications/%s/list_changed" % what)
    return "changed"


def updated(server: Any, request: Message, uri: str, count: int = 1) -> str:
    """So many ``resources/updated``."""
    for _ in range(count):
        server.announce("notifications/resources/updated", {"uri": uri})
    return "updated"


# --- questions


def ask(
    server: Any, request: Message, method: str, params: Optional[Message] = None, times: int = 1, id: Any = "clash"
) -> None:
    """A request to the client, so many times one after the other; the answer is the client's last one, as JSON.

    The first takes the id of the client's own request, on purpose: the ids of the two sides have nothing to do with
    each other. ``id`` gives another.
    """
    own = request["id"] if id == "clash" else id
    left = times

    def reply(answer: Message) -> None:
        nonlocal left
        left -= 1
        if left > 0:
            server.ask(method, params or {}, reply, "%s-%d" % (own, left))
        else:
            server.text(request, json.dumps(answer))

    server.ask(method, params or {}, reply, own)


def ask_without_waiting(server: Any, request: Message, method: str, params: Optional[Message] = None) -> str:
    """A request to the client, and the answer to the call at once. The client's answer is recorded as ``reply``."""
    server.ask(method, params or {}, lambda answer: server.record("reply", data=answer), "late-%s" % request["id"])
    return "asked"


def withdraw(server: Any, request: Message, method: str, params: Optional[Message] = None) -> str:
    """A request to the client that is cancelled at once."""
    question = "withdrawn-%s" % request["id"]
    server.ask(method, params or {}, lambda answer: server.record("reply", data=answer), question)
    server.notify("notifications/cancelled", {"requestId": question, "reason": "changed my mind"})
    return "withdrawn"


def url_required(
    server: Any, request: Message, url: str = "https://example.com/", complete: Optional[float] = 0.0, refuse: int = 1
) -> Optional[str]:
    """-32042 the first ``refuse`` times, then the answer.

    ``complete``: so many seconds later ``notifications/elicitation/complete`` is sent; None: never.
    """
    asked = server.memory["url_required"] = server.memory.get("url_required", 0) + 1
    if asked > refuse:
        return "done"
    elicitation_id = "elicitation-%d" % asked
    elicitation = {"mode": "url", "url": url, "elicitationId": elicitation_id, "message": "please go there"}
    server.error(request, -32042, "go there first", {"elicitations": [elicitation]})
    if complete is not None:
        method, params = "notifications/elicitation/complete", {"elicitationId": elicitation_id}
        server.after(complete, lambda: server.notify(method, params))
    return None


def rounds(
    server: Any, request: Message, count: Optional[int] = 1, questions: Any = None, state: Optional[str] = "state"
) -> Any:
    """``input_required`` so many times (None: endlessly), then the last ``inputResponses`` as JSON.

    ``state`` begins each ``requestState``; None: there is none. A state that was altered, that is used twice, that
    comes with other arguments, or that was never given, is answered with -32602.
    """
    params, given_states = request["params"], server.memory.setdefault("states", {})
    arguments, given = json.dumps(params.get("arguments")), params.get("requestState")
    if given is not None:
        asked_with, number = given_states.pop(given, (None, 0))
        if asked_with != arguments:
            return server.error(request, -32602, "a requestState that is not for this call", given)
    elif "inputResponses" in params or state is None:
        number = server.memory["blind"] = server.memory.get("blind", -1) + 1
    else:
        number = 0
    if count is not None and number >= count:
        return json.dumps(params.get("inputResponses"))
    result: Message = {"resultType": "input_required"}
    if state is not None:
        serial = server.memory["serial"] = server.memory.get("serial", 0) + 1
        result["requestState"] = "%s #%d" % (state, serial)
        given_states[result["requestState"]] = (arguments, number + 1)
    if questions is not None:
        result["inputRequests"] = questions
    return result
