"""The peer's own process: ``python -S runtime.py FOLDER``, see ``tests/peers/scripted.py``.

One thread, one loop: a behaviour that blocks makes the whole server busy, as a single-threaded server is.
"""

from __future__ import annotations

import heapq
import importlib.util
import itertools
import json
import os
import select
import signal
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Tuple

Message = Dict[str, Any]
Reply = Callable[[Message], None]

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"
MODERN = "2026-07-28"
EVERYTHING: Message = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {"listChanged": True},
    "completions": {},
    "logging": {},
}


class Server:
    """What a behaviour works with.

    :ivar config: the options of the peer
    :ivar memory: for behaviours that must remember something from one request to the next
    :ivar tools: the definitions that ``tools/list`` shows
    :ivar cancelled: the ids of all requests that were cancelled
    :ivar subscriptions: the open subscriptions, by the id of their request
    """

    def __init__(self, home: Path) -> None:
        self.config: Message = json.loads((home / "config.json").read_text(encoding="utf-8"))
        self.memory: Message = {}
        self.cancelled: List[Any] = []
        self._record = os.open(home / "record", os.O_WRONLY | os.O_APPEND)
        self._bell = home / "bell"
        own = _functions(home / "own.py")
        self._handlers = {**_functions(Path(__file__).with_name("handlers.py")), **own}
        self._work = _functions(Path(__file__).with_name("behaviours.py"))
        self._work.update({name: own[name] for name in self.config["own_tools"]})
        self.tools: List[Message] = [
            {"name": name, "description": (work.__doc__ or "").strip(), "inputSchema": {"type": "object"}}
            for name, work in self._work.items()
        ]
        self._waiting: List[bytes] = []
        self._reading = not self.config.get("deaf", False)
        self._agenda: List[Tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._asked: Dict[str, Reply] = {}
        self.subscriptions: Dict[Any, Message] = {}
        self._session = False

    # --- sending

    def write(self, data: bytes, descriptor: int = 1) -> None:
        """Bytes to stdout (or stderr), as they are."""
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(descriptor, rest) :]
            except BrokenPipeError:
                self.record("broken_pipe", descriptor=descriptor)
                os._exit(1)

    def send(self, message: Any) -> None:
        """One line."""
        self.write(json.dumps(message).encode() + b"\n")

    def notify(self, method: str, params: Optional[Message] = None) -> None:
        """A notification, without regard to the era."""
        self.send({"jsonrpc": "2.0", "method": method, "params": params or {}})

    def result(self, request: Message, result: Message, request_id: Any = ...) -> None:
        """Answer a request, in the shape of its era; with another id, if one is given."""
        if is_modern(request):
            result = {"resultType": "complete", **result}
            if request["method"] in CACHEABLE:
                result = {"ttlMs": 0, "cacheScope": "private", **result}
        self.send({"jsonrpc": "2.0", "id": request["id"] if request_id is ... else request_id, "result": result})

    def text(self, request: Message, text: str, request_id: Any = ...) -> None:
        """Answer a tool call with a text."""
        self.result(request, {"content": [{"type": "text", "text": text}]}, request_id)

    def error(self, request: Message, code: int, message: str, data: Any = None) -> None:
        """Answer a request with an error."""
        error = {"code": code, "message": message, **({} if data is None else {"data": data})}
        self.send({"jsonrpc": "2.0", "id": request["id"], "error": error})

    def progress(self, request: Message, done: float, total: Optional[float] = None) -> None:
        """Progress of a request, if the client gave a token."""
        token = request["params"].get("_meta", {}).get("progressToken")
        if token is not None:
            params = {"progressToken": token, "progress": done}
            self.notify("notifications/progress", params if total is None else {**params, "total": total})

    def announce(self, method: str, params: Optional[Message] = None) -> None:
        """A change: to the session if there is one, and on every subscription (its filter is not looked at)."""
        if self._session:
            self.notify(method, params)
        for request_id in self.subscriptions:
            self.notify(method, {"_meta": {SUBSCRIPTION_KEY: request_id}, **(params or {})})

    def acknowledge(self, request: Message, notifications: Message) -> None:
        """Open a subscription."""
        self.subscriptions[request["id"]] = request["params"]
        meta = {SUBSCRIPTION_KEY: request["id"]}
        self.notify("notifications/subscriptions/acknowledged", {"_meta": meta, "notifications": notifications})

    def end_subscription(self, request_id: Any) -> None:
        """Close a subscription gracefully."""
        del self.subscriptions[request_id]
        result = {"resultType": "complete", "_meta": {SUBSCRIPTION_KEY: request_id}}
        self.send({"jsonrpc": "2.0", "id": request_id, "result": result})

    def ask(self, method: str, params: Message, reply: Reply, request_id: Any) -> None:
        """Send a request to the client; ``reply`` gets the whole answer."""
        self._asked[repr(request_id)] = reply
        self.send({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})

    # --- time, reading, record

    def after(self, seconds: float, act: Callable[[], None]) -> None:
        """Do something later; the loop goes on meanwhile."""
        heapq.heappush(self._agenda, (time.monotonic() + seconds, next(self._order), act))

    def stop_reading(self, seconds: Optional[float] = None) -> None:
        """Leave stdin alone, for so long or for good."""
        self._reading = False
        if seconds is not None:
            self.after(seconds, lambda: setattr(self, "_reading", True))

    def record(self, kind: str, **more: Any) -> None:
        """Let the test know of something."""
        event = {"kind": kind, "pid": os.getpid(), **more}
        os.write(self._record, json.dumps(event).encode() + b"\n")
        try:
            bell = os.open(self._bell, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # nobody waits
            return
        try:
            os.write(bell, b".")
        except (BlockingIOError, BrokenPipeError):  # it rings already, or who waited has gone in this moment
            pass
        finally:
            os.close(bell)

    def run(self) -> None:
        """Serve until stdin ends."""
        self._start()
        while True:
            while self._agenda and self._agenda[0][0] <= time.monotonic():
                heapq.heappop(self._agenda)[2]()
            wait = max(0.0, self._agenda[0][0] - time.monotonic()) if self._agenda else None
            if select.select([0] if self._reading else [], [], [], wait)[0]:
                self._read()

    def _start(self) -> None:
        config = self.config
        signal.alarm(config.get("lifetime", 120))
        if config.get("ignore_term"):
            signal.signal(signal.SIGTERM, lambda number, frame: self.record("signal", number=number))
        self.record("started", parent=os.getppid())
        if config.get("grandchild"):
            self._spawn(config["grandchild"])
        self.write(config.get("banner", "").encode("latin-1"))
        self.write(config.get("stderr", "").encode("latin-1"), 2)
        if config.get("exit_at_start") is not None:
            os._exit(config["exit_at_start"])

    def _spawn(self, kind: str) -> None:
        """A process that holds the pipes and does nothing; returns when it is ready."""
        ready, tell = os.pipe()
        child = os.fork()
        if child == 0:
            if kind != "fork":
                os.setsid()
            if kind == "double-fork" and os.fork() != 0:
                os._exit(0)
            stubborn = bool(self.config.get("stubborn"))
            for number in (signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN if stubborn else signal.SIG_DFL)
            signal.alarm(self.config.get("lifetime", 120))
            self.record("grandchild")
            os.close(ready)
            os.close(tell)
            while True:
                signal.pause()
        os.close(tell)
        os.read(ready, 1)
        os.close(ready)
        if kind == "double-fork":
            os.waitpid(child, 0)

    def _read(self) -> None:
        chunk = os.read(0, 65_536)
        if not chunk:
            self.record("eof")
            if not self.config.get("ignore_eof"):
                os._exit(0)
            self._reading = False
            return
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            line = b"".join([*self._waiting, end])
            self._waiting = []
            try:
                message = json.loads(line)
            except ValueError:
                self.record("torn", data=line.decode("latin-1"))
                continue
            self.record("message", data=message)
            self._receive(message)
        self._waiting.append(rest)

    # --- messages

    def _receive(self, message: Any) -> None:
        if not isinstance(message, dict):
            return
        if "method" not in message:
            reply = self._asked.pop(repr(message.get("id")), None)
            if reply is not None:
                reply(message)
        elif "id" not in message:
            if message["method"] == "notifications/cancelled":
                request_id = message["params"].get("requestId")
                self.cancelled.append(request_id)
                self.subscriptions.pop(request_id, None)
        else:
            message.setdefault("params", {})
            self._serve(message)

    def _serve(self, request: Message) -> None:
        method, params = request["method"], request["params"]
        if method in self.config.get("opening", {}):
            self._open_oddly(request, self.config["opening"][method])
        elif method in self.config["handlers"]:
            work = self._handlers[self.config["handlers"][method]]
            self._finish(request, work(self, request, **{name: params[name] for name in params if name != "_meta"}))
        elif method == "tools/call":
            work = self._work.get(params["name"], _unknown_tool)
            self._finish(request, work(self, request, **(params.get("arguments") or {})))
        elif method == "initialize" and self.config.get("era") != "modern":
            self._session = True
            self.result(request, self.initialized(params))
        elif method == "server/discover" and self.config.get("era") != "legacy":
            self._discover(request)
        elif method == "subscriptions/listen":
            self.acknowledge(request, params["notifications"])
        elif method == "tools/list":
            self.result(request, {"tools": self.tools})
        elif method in EMPTY:
            self.result(request, EMPTY[method])
        else:
            self.error(request, -32601, "unknown method " + method)

    def initialized(self, params: Message) -> Message:
        """The good result of ``initialize``."""
        return {
            "protocolVersion": self.config.get("revision", params.get("protocolVersion")),
            "capabilities": self.config.get("capabilities", EVERYTHING),
            "serverInfo": {"name": "scripted", "version": "1"},
        }

    def _discover(self, request: Message) -> None:
        supported = self.config.get("supported", [MODERN])
        asked = request["params"].get("_meta", {}).get(VERSION_KEY)
        if asked not in supported:
            data = {"supported": supported, "requested": asked}
            self.error(request, -32022, "unsupported protocol version", data)
            return
        capabilities = self.config.get("capabilities", EVERYTHING)
        self.result(request, {"supportedVersions": supported, "capabilities": capabilities})

    def _open_oddly(self, request: Message, how: Any) -> None:
        if how == "silent":
            return

        def act() -> None:
            if "exit" in how:
                os._exit(how["exit"])
            if "error" in how:
                self.send({"jsonrpc": "2.0", "id": request["id"], "error": how["error"]})
            elif "result" in how:
                self.send({"jsonrpc": "2.0", "id": request["id"], "result": how["result"]})
            elif request["method"] == "initialize":
                self._session = True
                self.result(request, self.initialized(request["params"]))
            else:
                self._discover(request)

        self.after(how.get("delay", 0.0), act)

    def _finish(self, request: Message, outcome: Any) -> None:
        if isinstance(outcome, dict):
            self.result(request, outcome)
        elif outcome is not None:
            self.text(request, str(outcome))


CACHEABLE = {
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
}
EMPTY: Dict[str, Message] = {
    "ping": {},
    "logging/setLevel": {},
    "resources/subscribe": {},
    "resources/unsubscribe": {},
    "resources/list": {"resources": []},
    "resources/templates/list": {"resourceTemplates": []},
    "prompts/list": {"prompts": []},
}


def is_modern(request: Message) -> bool:
    """Whether the request carries the metadata of the modern era."""
    return VERSION_KEY in (request["params"].get("_meta") or {})


def _unknown_tool(server: Server, request: Message, **arguments: Any) -> None:
    server.error(request, -32602, "unknown tool")


def _functions(path: Path) -> Dict[str, Callable[..., Any]]:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {
        name: value
        for name, value in vars(module).items()
        if callable(value) and not name.startswith("_") and getattr(value, "__module__", None) == path.stem
    }


if __name__ == "__main__":
    Server(Path(sys.argv[1])).run()
