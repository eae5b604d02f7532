"""One session with a server: bytes in, events out; calls in, bytes out.

No I/O, no threads, no clock. The object may be used by several threads at once: what it does to its tables is
one atomic step each (see :meth:`Session.retire`), and everything else it touches belongs to the caller.

Specification: `basic/index`, "Messages"; `basic/patterns/progress`; `basic/patterns/cancellation`.
"""

from __future__ import annotations

import math
from typing import Any, Dict, Generic, Iterator, List, Mapping, NamedTuple, Optional, Protocol, TypeVar, Union

from mcpsync.core import jsonrpc
from mcpsync.core.era import CAPABILITIES_KEY, CLIENT_INFO_KEY, LOG_LEVEL_KEY, VERSION_KEY, Revision, declared
from mcpsync.core.salvage import answered_id
from mcpsync.errors import InvalidMessage, McpError, RpcError

__all__ = [
    "Answered",
    "Asked",
    "Event",
    "InFlight",
    "Notified",
    "Oddity",
    "Progressed",
    "Session",
    "Withdrawn",
]


class InFlight(Protocol):
    """What the session knows of a call: its method, and the id of the request that it waits for."""

    @property
    def method(self) -> str:
        """The MCP method."""

    request_id: int


CallT = TypeVar("CallT", bound=InFlight)


class Answered(NamedTuple):
    """A call was answered, and retired by that.

    :ivar call: the call
    :ivar result: the result object, if it is one
    :ivar failure: the server's error, or why the answer is none
    """

    call: Any
    result: Optional[Dict[str, Any]]
    failure: Optional[McpError]


class Progressed(NamedTuple):
    """A progress notification for a call in flight."""

    call: Any
    params: Dict[str, Any]


class Asked(NamedTuple):
    """The server sent a request; the id has to come back as it is."""

    request_id: Union[int, float, str]
    method: str
    params: Dict[str, Any]


class Withdrawn(NamedTuple):
    """The server cancelled a request of its own: no answer must be sent."""

    request_id: Union[int, float, str]


class Notified(NamedTuple):
    """Any other notification."""

    method: str
    params: Dict[str, Any]


class Oddity(NamedTuple):
    """Something that the protocol does not allow and that was survived.

    :ivar kind: short and constant, so that each kind is logged once
    :ivar detail: what it was, bounded
    """

    kind: str
    detail: str


Event = Union[Answered, Progressed, Asked, Withdrawn, Notified, Oddity]

_new = tuple.__new__  # on the path of every call; the constructor of a named tuple is a Python function
_NO_PARAMS: Dict[str, Any] = {}
_LISTEN = "subscriptions/listen"


class Session(Generic[CallT]):
    """The state of one session: revision, calls in flight, requests of the server under way.

    :param ids: source of request ids; shared by all sessions of a connection, so that an id is never used twice
    :param client_info: ``clientInfo`` as it travels
    :param capabilities: the client's capabilities as they travel
    :ivar last_id: the newest id that was given out
    """

    def __init__(self, ids: Iterator[int], client_info: Mapping[str, Any], capabilities: Mapping[str, Any]) -> None:
        self._ids = ids
        self._client_info = client_info
        self._capabilities = capabilities
        self._calls: Dict[int, CallT] = {}
        self._watched: Dict[int, CallT] = {}
        self._asked: Dict[Union[int, float, str], Asked] = {}
        self._meta: Dict[str, Any] = {}
        self._meta_json = b""
        self.log_level: Optional[str] = None
        self.revision: Optional[Revision] = None
        self.last_id = 0

    def adopt(self, revision: Optional[Revision], log_level: Optional[str] = None) -> None:
        """Speak this revision from now on; ``log_level`` goes with each request where the revision has it so."""
        meta: Dict[str, Any] = {}
        if revision is not None and revision.metadata:
            meta = {
                VERSION_KEY: revision.name,
                CLIENT_INFO_KEY: self._client_info,
                CAPABILITIES_KEY: declared(self._capabilities, revision),
            }
            if log_level is not None:
                meta[LOG_LEVEL_KEY] = log_level
        # each replaced whole: another thread may make a request at this moment
        self._meta_json = jsonrpc.encode(meta) if meta else b""
        self._meta = meta
        self.log_level = log_level
        self.revision = revision

    # -- calls -------------------------------------------------------------------------------------------------

    def request(
        self,
        call: CallT,
        method: str,
        params: Mapping[str, Any],
        progress: bool = False,
        meta: Optional[Mapping[str, Any]] = None,
        log_level: Optional[str] = None,
    ) -> bytes:
        """Open a request for a call, under a new id, and give its bytes.

        :param params: without ``_meta``
        :param meta: further keys for ``_meta``; those of the protocol stand above them
        :raises ValueError: the parameters have no JSON form, or ``meta`` names a progress token
        """
        self.last_id = request_id = next(self._ids)
        try:
            body = jsonrpc.encode(params)
            if meta is not None or log_level is not None:
                extra = self._full_meta(request_id, progress, meta, log_level)
            elif progress:
                head = self._meta_json[:-1] + b"," if self._meta_json else b"{"
                extra = b'%s"progressToken":%d}' % (head, request_id)
            else:
                extra = self._meta_json
        except ValueError as error:
            raise ValueError("%s: the parameters have no JSON form: %s" % (method, error)) from None
        data = jsonrpc.request(request_id, method, body, extra)
        call.request_id = request_id
        if progress:
            self._watched[request_id] = call
        self._calls[request_id] = call
        return data

    def _full_meta(
        self, request_id: int, progress: bool, meta: Optional[Mapping[str, Any]], log_level: Optional[str]
    ) -> bytes:
        full = dict(meta or {})
        if "progressToken" in full:
            # it might be the token of another call
            raise ValueError("progressToken is chosen by the client; ask for progress with on_progress")
        full.update(self._meta)
        if log_level is not None:
            full[LOG_LEVEL_KEY] = log_level
        if progress:
            full["progressToken"] = request_id
        return jsonrpc.encode(full)

    def retire(self, call: CallT) -> bool:
        """Take a call out of flight. True for the one who did it: only they may complete the call.

        This is the point that makes every call complete exactly once. ``dict.pop`` is one atomic step, with the
        interpreter lock and, in builds without one, with the dictionary's own.
        """
        request_id = call.request_id
        self._watched.pop(request_id, None)
        return self._calls.pop(request_id, None) is not None

    def retire_all(self) -> List[CallT]:
        """Take every call out of flight; gives those that were."""
        return [call for call in list(self._calls.values()) if self.retire(call)]

    def in_flight(self) -> List[CallT]:
        """The calls in flight at this moment."""
        return list(self._calls.values())

    def notification(self, method: str, params: Optional[Mapping[str, Any]] = None) -> bytes:
        """A notification.

        :raises ValueError: the parameters have no JSON form
        """
        try:
            return jsonrpc.notification(method, None if params is None else dict(params))
        except ValueError as error:
            raise ValueError("%s: the parameters have no JSON form: %s" % (method, error)) from None

    def cancel(self, request_id: int, reason: str) -> bytes:
        """The notification that a request of ours is cancelled."""
        return jsonrpc.notification("notifications/cancelled", {"requestId": request_id, "reason": reason})

    # -- requests of the server --------------------------------------------------------------------------------

    def answer(self, request_id: Any, result: Any) -> Optional[bytes]:
        """The answer to a request of the server; None if it was withdrawn or answered already.

        :raises ValueError: the result has no JSON form; the request still waits for its answer
        """
        data = jsonrpc.result_answer(request_id, result)
        return None if self._asked.pop(request_id, None) is None else data

    def refuse(self, request_id: Any, code: int, message: str, data: Any = None) -> Optional[bytes]:
        """The refusal of a request of the server; None if it was withdrawn or answered already.

        :raises ValueError: ``data`` has no JSON form; the request still waits for its answer
        """
        refusal = jsonrpc.error_answer(request_id, code, message, data)
        return None if self._asked.pop(request_id, None) is None else refusal

    # -- what comes in -----------------------------------------------------------------------------------------

    def receive(self, data: bytes) -> List[Event]:
        """The events that one incoming message, or batch, means."""
        try:
            message = jsonrpc.decode(data)
        except InvalidMessage as error:
            return [self._undecodable(data, error)]
        if type(message) is dict:
            return [self._single(message) if "method" in message else self._answered(message)]
        if type(message) is list:
            return self._batch(message)
        return [Oddity("not an object", jsonrpc.excerpt(data))]

    def _undecodable(self, data: bytes, error: InvalidMessage) -> Event:
        request_id: Any = _own_id(answered_id(data))
        call = self._calls.pop(request_id, None)
        if call is None:
            return Oddity("invalid message", error.message)
        self._watched.pop(request_id, None)
        return Answered(call, None, error)

    def _batch(self, messages: List[Any]) -> List[Event]:
        events: List[Event] = []
        if self.revision is not None and not self.revision.batching:
            # taken all the same: an answer that is here must not be lost
            events.append(Oddity("batch", "revision %s has no batches" % self.revision.name))
        if not messages:
            events.append(Oddity("empty batch", "a batch without messages"))
        for message in messages:
            if type(message) is dict:
                events.append(self._single(message))
            else:
                events.append(Oddity("not an object", "in a batch: %s" % jsonrpc.shown(message)))
        return events

    def _single(self, message: Dict[str, Any]) -> Event:
        method = message.get("method")
        if method is None:  # null says as much as none
            return self._answered(message)
        if type(method) is not str:
            return Oddity("method", "method is no string: %s" % jsonrpc.shown(method))
        params = message.get("params", _NO_PARAMS)
        if type(params) is not dict:
            params = _NO_PARAMS
        if "id" in message:
            return self._asks(message["id"], method, params)
        if method == "notifications/progress":
            return self._progress(params)
        if method == "notifications/cancelled":
            return self._cancelled(params)
        return Notified(method, params)

    def _answered(self, message: Dict[str, Any]) -> Event:
        request_id: Any = message.get("id")
        if type(request_id) is not int:
            request_id = _own_id(request_id)  # None where it is none: no call has that
        call = self._calls.pop(request_id, None)
        if call is None:
            return self._unmatched(message)
        self._watched.pop(request_id, None)
        result = message.get("result")
        if type(result) is dict:
            return _new(Answered, (call, result, None))
        error = message.get("error")
        if type(error) is dict:
            return Answered(call, None, _rpc_error(error))
        return Answered(call, None, InvalidMessage("the answer has neither a result object nor an error object"))

    def _unmatched(self, message: Dict[str, Any]) -> Event:
        error = message.get("error")
        if message.get("id") is None and type(error) is dict:
            return Oddity("error without id", "the server could not read a message: %.200s" % _rpc_error(error))
        named = jsonrpc.shown(message.get("id"))
        if _own_id(message.get("id")) is not None:
            return Oddity("late answer", "to request %s, which is not in flight (any more)" % named)
        return Oddity("unknown answer", "its id %s is none of ours" % named)

    def _asks(self, request_id: Any, method: str, params: Dict[str, Any]) -> Event:
        named = jsonrpc.shown(method), jsonrpc.shown(request_id)
        if not _is_id(request_id):
            return Oddity("request id", "%s came with the id %s" % named)
        if self.revision is not None and not self.revision.server_requests:
            return Oddity("request", "revision %s lets no server send %s" % (self.revision.name, named[0]))
        asked = Asked(request_id, method, params)
        if self._asked.setdefault(request_id, asked) is not asked:
            return Oddity("request id", "%s came with the id %s, which is in use" % named)
        return asked

    def _progress(self, params: Dict[str, Any]) -> Event:
        token = params.get("progressToken")
        own_id: Any = _own_id(token)
        call = self._watched.get(own_id)
        if call is None:
            return Oddity("progress", "for the token %s, which is not in flight (any more)" % jsonrpc.shown(token))
        return Progressed(call, params)

    def _cancelled(self, params: Dict[str, Any]) -> Event:
        request_id: Any = params.get("requestId")
        if self.revision is not None and not self.revision.server_requests:
            own_id: Any = _own_id(request_id)
            call = self._calls.get(own_id)
            if call is not None:
                if call.method != _LISTEN:
                    return Oddity("cancelled", "a server may end a subscription, but not %s" % call.method)
                if self.retire(call):
                    return Answered(call, {}, None)
        elif _is_id(request_id):
            asked = self._asked.pop(request_id, None)
            if asked is not None:
                return Withdrawn(asked.request_id)
        return Oddity("cancelled", "for the id %s, which is not in flight" % jsonrpc.shown(request_id))


def _own_id(value: Any) -> Optional[int]:
    """What may be an id of ours: JSON has one kind of number, so 1.0 is 1; the text "1" and true are not."""
    if type(value) is float and value.is_integer():
        return int(value)
    return value if type(value) is int else None


def _is_id(value: Any) -> bool:
    """Whether it may be the id of a request of the server, and can go back as it came."""
    return type(value) in (int, str) or (type(value) is float and math.isfinite(value))


def _rpc_error(error: Dict[str, Any]) -> RpcError:
    code, message = error.get("code"), error.get("message")
    if type(code) is float and code.is_integer():
        code = int(code)
    text = message if type(message) is str and message else "the server gave no message"
    return RpcError.of(code if type(code) is int else jsonrpc.INTERNAL_ERROR, text, error.get("data"))
