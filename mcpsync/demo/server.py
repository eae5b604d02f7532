"""The protocol, in both eras.

*Legacy* clients open a session with ``initialize`` (2024-11-05 to 2025-11-25). *Modern* ones (2026-07-28) say all
there is to know in the ``_meta`` of each request. The same offers serve both, side by side; what differs is how a
request is read (:meth:`Server._open`), which methods there are, and how a result is finished.
"""

from __future__ import annotations

import threading
from typing import Any, Callable, Dict, List, Optional

from mcpsync.demo.call import (
    CAPABILITIES_KEY,
    INVALID_PARAMS,
    LOG_LEVELS,
    Call,
    Cancelled,
    InputRequired,
    LegacyCall,
    ModernCall,
    Session,
)
from mcpsync.demo.offers import Offers
from mcpsync.demo.wire import RpcError, Wire

__all__ = ["Server"]

LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN = "2026-07-28"
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
SERVER_INFO_KEY = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"

INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INTERNAL_ERROR = -32603
RESOURCE_NOT_FOUND = -32002
UNSUPPORTED_PROTOCOL_VERSION = -32022

PAGE_SIZE = 3
SERVER_INFO = {"name": "mcpsync-demo", "version": "1.0.0"}
CAPABILITIES: Dict[str, Any] = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True},
    "prompts": {},
    "completions": {},
    "logging": {},
}
INSTRUCTIONS = "A server to try things on. Every tool is harmless."

# How long a client may keep a result (2026-07-28, Utilities / Caching), and who may see it.
_CACHING: Dict[str, Dict[str, Any]] = {
    "server/discover": {"ttlMs": 3_600_000, "cacheScope": "public"},
    "tools/list": {"ttlMs": 60_000, "cacheScope": "public"},
    "resources/list": {"ttlMs": 60_000, "cacheScope": "public"},
    "resources/templates/list": {"ttlMs": 60_000, "cacheScope": "public"},
    "prompts/list": {"ttlMs": 60_000, "cacheScope": "public"},
    "resources/read": {"ttlMs": 0, "cacheScope": "private"},
}

Handler = Callable[[Call], Optional[Dict[str, Any]]]


class Server:
    """Serves one client over one wire."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._offers = Offers(self._tools_changed, self._resource_updated)
        self._session: Optional[Session] = None
        self._lock = threading.Lock()
        self._in_flight: Dict[Any, Call] = {}
        self._subscriptions: Dict[Any, Dict[str, Any]] = {}
        shared: Dict[str, Handler] = {
            "tools/list": lambda call: self._page(call, "tools", self._offers.tools()),
            "tools/call": self._call_tool,
            "resources/list": lambda call: self._page(call, "resources", self._offers.resources()),
            "resources/templates/list": lambda call: self._page(
                call, "resourceTemplates", self._offers.resource_templates()
            ),
            "resources/read": self._read_resource,
            "prompts/list": lambda call: self._page(call, "prompts", self._offers.prompts()),
            "prompts/get": self._get_prompt,
            "completion/complete": self._complete,
        }
        self._legacy_methods: Dict[str, Handler] = {
            **shared,
            "initialize": self._initialize,
            "ping": lambda call: {},
            "logging/setLevel": self._set_log_level,
            "resources/subscribe": lambda call: self._subscribe(call, True),
            "resources/unsubscribe": lambda call: self._subscribe(call, False),
        }
        self._modern_methods: Dict[str, Handler] = {
            **shared,
            "server/discover": self._discover,
            "subscriptions/listen": self._listen,
        }

    def run(self) -> None:
        """Serve until the client closes its end."""
        for message in self._wire.messages():
            # Batches are part of the one revision 2025-03-26.
            batch = isinstance(message, list) and self._session and self._session.revision == "2025-03-26"
            for each in message if batch else [message]:
                self._receive(each)
        self.stop()

    def stop(self) -> None:
        """Wake the tools that wait, so that they end and the process can."""
        with self._lock:
            for call in self._in_flight.values():
                call.cancel()

    def _receive(self, message: Any) -> None:
        if not isinstance(message, dict):
            self._wire.answer(None, error={"code": INVALID_REQUEST, "message": "a message must be an object"})
        elif "method" not in message:
            asked = self._session.close_question(message.get("id")) if self._session else None
            if asked is not None:
                asked.inbox.put(message)
        elif "id" in message:
            self._serve(message)
        else:
            self._notified(message["method"], message.get("params"))

    # --- requests

    def _serve(self, message: Dict[str, Any]) -> None:
        request_id = message["id"]
        try:
            if isinstance(request_id, bool) or not isinstance(request_id, (int, str)):
                raise RpcError(INVALID_REQUEST, "an id must be a string or an integer")
            call = self._open(request_id, message["method"], message.get("params", {}))
            methods = self._modern_methods if isinstance(call, ModernCall) else self._legacy_methods
            handler = methods.get(call.method)
            if handler is None:
                raise RpcError(METHOD_NOT_FOUND, "there is no method %r" % (call.method,))
        except RpcError as error:
            self._wire.answer(request_id, error=error.body)
            return
        with self._lock:
            self._in_flight[request_id] = call
        if call.method == "tools/call":  # tools may take their time; everything else is quick
            threading.Thread(target=self._work, args=(call, handler), name="demo-tool").start()
        else:
            self._work(call, handler)

    def _open(self, request_id: Any, method: Any, params: Any) -> Call:
        """Read a request as its era wants it read."""
        if not isinstance(method, str) or not isinstance(params, dict):
            raise RpcError(INVALID_REQUEST, "method must be a string, params an object")
        meta = params.get("_meta")
        meta = meta if isinstance(meta, dict) else {}
        if method == "initialize":
            self._session = _negotiate(params)
        modern = VERSION_KEY in meta or CAPABILITIES_KEY in meta
        if not modern and (self._session or method == "ping"):
            return LegacyCall(self._wire, request_id, method, params, self._session or Session(LEGACY[-1], {}))
        version = meta.get(VERSION_KEY)
        if isinstance(version, str) and version != MODERN:
            supported = {"supported": [MODERN], "requested": version}
            raise RpcError(UNSUPPORTED_PROTOCOL_VERSION, "unsupported protocol version", supported)
        if not isinstance(version, str) or not isinstance(meta.get(CAPABILITIES_KEY), dict):
            needed = "%s (a string) and %s (an object)" % (VERSION_KEY, CAPABILITIES_KEY)
            raise RpcError(INVALID_PARAMS, "without initialize, _meta needs %s" % needed)
        return ModernCall(self._wire, request_id, method, params)

    def _work(self, call: Call, handler: Handler) -> None:
        try:
            result = handler(call)
            if result is None:  # a subscription, which stays open
                return
            outcome = {"result": self._finished(call, result)}
        except InputRequired as question:
            outcome = {"result": question.result}
        except RpcError as error:
            outcome = {"error": error.body}
        except Cancelled:
            self._report_stop(call)
            return
        except Exception as error:  # whatever goes wrong in a tool, the client must get an answer
            outcome = {"error": {"code": INTERNAL_ERROR, "message": "%s: %s" % (type(error).__name__, error)}}
        with self._lock:
            wanted = self._in_flight.pop(call.request_id, None) is call
        if wanted:
            self._wire.answer(call.request_id, **outcome)
        else:  # cancelled at the last moment
            self._report_stop(call)

    def _finished(self, call: Call, result: Dict[str, Any]) -> Dict[str, Any]:
        if isinstance(call, LegacyCall):
            return result
        meta = {SERVER_INFO_KEY: SERVER_INFO}
        return {"resultType": "complete", "_meta": meta, **_CACHING.get(call.method, {}), **result}

    def _report_stop(self, call: Call) -> None:
        text = "cancelled request %s" % call.request_id
        self._offers.record(text)
        if isinstance(call, LegacyCall):  # a modern server says nothing more about a cancelled request
            call.log("notice", text)

    # --- notifications from the client

    def _notified(self, method: Any, params: Any) -> None:
        if method == "notifications/roots/list_changed":
            self._offers.record("the client's roots changed")
        elif method == "notifications/cancelled" and isinstance(params, dict):
            request_id = params.get("requestId")
            if not isinstance(request_id, (int, str)):
                return
            with self._lock:
                call = self._in_flight.pop(request_id, None)
                self._subscriptions.pop(request_id, None)
            if call is not None:
                call.cancel()

    # --- opening

    def _initialize(self, call: Call) -> Dict[str, Any]:
        assert isinstance(call, LegacyCall)
        return {
            "protocolVersion": call.session.revision,
            "capabilities": CAPABILITIES,
            "serverInfo": SERVER_INFO,
            "instructions": INSTRUCTIONS,
        }

    def _discover(self, call: Call) -> Dict[str, Any]:
        return {"supportedVersions": [MODERN], "capabilities": CAPABILITIES, "instructions": INSTRUCTIONS}

    def _set_log_level(self, call: Call) -> Dict[str, Any]:
        assert isinstance(call, LegacyCall)
        level = call.params.get("level")
        if level not in LOG_LEVELS:
            raise RpcError(INVALID_PARAMS, "level must be one of %s" % ", ".join(LOG_LEVELS))
        call.session.log_level = level
        return {}

    # --- offers

    def _page(self, call: Call, key: str, items: List[Dict[str, Any]]) -> Dict[str, Any]:
        cursor = call.params.get("cursor", "0")
        if not isinstance(cursor, str) or not cursor.isdecimal() or int(cursor[:9]) > len(items):
            raise RpcError(INVALID_PARAMS, "this cursor is not one that this server gave")
        start = int(cursor)
        page: Dict[str, Any] = {key: items[start : start + PAGE_SIZE]}
        if start + PAGE_SIZE < len(items):
            page["nextCursor"] = str(start + PAGE_SIZE)
        return page

    def _call_tool(self, call: Call) -> Dict[str, Any]:
        name = call.params.get("name")
        result = self._offers.call_tool(call, name, call.params.get("arguments", {}))
        if result is None:
            raise RpcError(INVALID_PARAMS, "unknown tool: %r" % (name,))
        return result

    def _read_resource(self, call: Call) -> Dict[str, Any]:
        uri = call.params.get("uri")
        content = self._offers.read_resource(uri)
        if content is None:
            code = RESOURCE_NOT_FOUND if isinstance(call, LegacyCall) else INVALID_PARAMS
            raise RpcError(code, "resource not found", {"uri": uri})
        return {"contents": [content]}

    def _get_prompt(self, call: Call) -> Dict[str, Any]:
        prompt = self._offers.get_prompt(call.params.get("name"), call.params.get("arguments"))
        if prompt is None:
            raise RpcError(INVALID_PARAMS, "there is one prompt, 'story', and it needs the argument 'hero'")
        return prompt

    def _complete(self, call: Call) -> Dict[str, Any]:
        reference, argument = call.params.get("ref"), call.params.get("argument")
        if not isinstance(reference, dict) or not isinstance(argument, dict):
            raise RpcError(INVALID_PARAMS, "ref and argument must be objects")
        values = self._offers.complete(reference, argument.get("name"), str(argument.get("value", "")))
        return {"completion": {"values": values, "total": len(values), "hasMore": False}}

    # --- subscriptions

    def _subscribe(self, call: Call, wanted: bool) -> Dict[str, Any]:
        assert isinstance(call, LegacyCall)
        uri = call.params.get("uri")
        if self._offers.read_resource(uri) is None:
            raise RpcError(RESOURCE_NOT_FOUND, "resource not found", {"uri": uri})
        with self._lock:
            (call.session.subscribed.add if wanted else call.session.subscribed.discard)(str(uri))
        return {}

    def _listen(self, call: Call) -> None:
        """Open a stream of notifications; it ends when the client cancels the request."""
        wanted = call.params.get("notifications")
        if not isinstance(wanted, dict):
            raise RpcError(INVALID_PARAMS, "notifications must be an object")
        honoured: Dict[str, Any] = {}
        if wanted.get("toolsListChanged") is True:
            honoured["toolsListChanged"] = True
        uris = wanted.get("resourceSubscriptions")
        if isinstance(uris, list):
            honoured["resourceSubscriptions"] = [uri for uri in uris if self._offers.read_resource(uri)]
        with self._lock:  # the acknowledgement comes before any notification
            self._in_flight.pop(call.request_id, None)
            self._subscriptions[call.request_id] = honoured
            acknowledged = {"_meta": {SUBSCRIPTION_KEY: call.request_id}, "notifications": honoured}
            self._wire.notify("notifications/subscriptions/acknowledged", acknowledged)

    def _tools_changed(self) -> None:
        if self._session is not None:
            self._wire.notify("notifications/tools/list_changed")
        self._publish("notifications/tools/list_changed", {}, lambda filters: "toolsListChanged" in filters)

    def _resource_updated(self, uri: str) -> None:
        with self._lock:
            subscribed = self._session is not None and uri in self._session.subscribed
        if subscribed:
            self._wire.notify("notifications/resources/updated", {"uri": uri})
        self._publish(
            "notifications/resources/updated",
            {"uri": uri},
            lambda filters: uri in filters.get("resourceSubscriptions", []),
        )

    def _publish(self, method: str, params: Dict[str, Any], wanted: Callable[[Dict[str, Any]], bool]) -> None:
        """Notify each modern subscription whose filters want it."""
        with self._lock:
            for request_id, filters in self._subscriptions.items():
                if wanted(filters):
                    self._wire.notify(method, {"_meta": {SUBSCRIPTION_KEY: request_id}, **params})


def _negotiate(params: Dict[str, Any]) -> Session:
    """The revision that the client asks for, if it is known; else the latest that has sessions."""
    revision = params.get("protocolVersion")
    capabilities = params.get("capabilities")
    known = revision if revision in LEGACY else LEGACY[-1]
    return Session(str(known), capabilities if isinstance(capabilities, dict) else {})
