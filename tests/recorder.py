"""Every message that a client sends in a test is held to the official JSON schema of its revision.

The tap is where a connection meets its transport: :class:`~mcpsync.connection.link.Link` is watched, and nothing of it
is replaced. While the test runs, frames are only kept; they are checked when it is over, so no timing changes. A
message that is like one that has passed before, but for its ids and a tool's arguments, is not checked again.

Two markers make exceptions: ``own_methods("x/y")`` names methods that no schema knows, whose envelope alone is
checked, and ``unrecorded`` is for tests that send something wrong on purpose, or that measure time or memory.
"""

from __future__ import annotations

import json
import weakref
from contextlib import contextmanager
from typing import Any, Callable, Collection, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

import pytest

from mcpsync.connection.link import Link

Key = Tuple[str, Any]
"""An id and its type: the schemas tell 1 from "1"."""

_TAPPED_METHODS = ("send", "listen")


class Sent(NamedTuple):
    """A frame on its way to the server."""

    tap: Tap
    revision: Optional[str]
    data: bytes


class Heard(NamedTuple):
    """A frame from the server that may hold a request."""

    tap: Tap
    data: bytes


class Tap:
    """What is known of one link.

    :ivar asked: the server's requests that are not answered yet, and their methods
    :ivar offered: the revision that ``initialize`` asked for; in force until another is agreed on
    """

    def __init__(self) -> None:
        self.asked: Dict[Key, str] = {}
        self.offered: Optional[str] = None

    def heard(self, message: Any) -> None:
        """A message, or a batch, came in."""
        for each in message if isinstance(message, list) else [message]:
            if isinstance(each, dict) and _is_id(each.get("id")) and isinstance(each.get("method"), str):
                self.asked[_key(each["id"])] = each["method"]

    def answered(self, message: Any) -> Optional[str]:
        """The method of the request that a message answers; None if it is no answer to a known one."""
        if not isinstance(message, dict) or "method" in message:
            return None
        request_id = message.get("id")
        return self.asked.pop(_key(request_id), None) if _is_id(request_id) else None


_passed: Set[Tuple[Any, ...]] = set()  # in any test: a message that passed once passes again


class Recorder:
    """What one test sent.

    :param own_methods: methods that no schema names
    """

    def __init__(self, own_methods: Collection[str] = ()) -> None:
        self._own_methods = frozenset(own_methods)
        self._frames: List[Any] = []  # appending is one atomic step, with the interpreter lock or the list's own

    def add(self, frame: Any) -> None:
        """Keep a frame; any thread."""
        self._frames.append(frame)

    def problems(self) -> List[str]:
        """Check what was kept since the last time: one text for each message that breaks its schema."""
        frames, self._frames = self._frames, []
        found = []
        for frame in frames:
            if isinstance(frame, Heard):
                frame.tap.heard(_decoded(frame.data))
            else:
                problem = self._problem(frame)
                if problem is not None:
                    found.append(problem)
        return found

    def _problem(self, sent: Sent) -> Optional[str]:
        from tests.schemas.book import SchemaBook, SchemaViolation

        message = _decoded(sent.data)
        answering = sent.tap.answered(message)
        revision = sent.revision or sent.tap.offered
        if isinstance(message, dict) and message.get("method") == "initialize":
            sent.tap.offered = message.get("params", {}).get("protocolVersion")
        likeness = (revision, answering, json.dumps(_likeness(message)))
        if likeness in _passed:
            return None
        try:
            SchemaBook(self._own_methods).validate_client_message(revision, message, answering)
        except SchemaViolation as violation:
            return "%s\n  sent in %s: %.1000s" % (violation, revision, sent.data.decode(errors="replace"))
        if not (isinstance(message, dict) and message.get("method") in self._own_methods):
            _passed.add(likeness)
        return None


def _decoded(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return data.decode(errors="replace")  # for whoever looks at it: a text is no message


def _is_id(value: Any) -> bool:
    return isinstance(value, (str, int, float)) and not isinstance(value, bool)


def _key(request_id: Any) -> Key:
    return type(request_id).__name__, request_id


def _likeness(message: Any) -> Any:
    """The message, with the types of what varies and is checked for its type alone in place of the values."""
    if not isinstance(message, dict):
        return message
    like = {**message, "id": type(message["id"]).__name__} if "id" in message else dict(message)
    params = like.get("params")
    if isinstance(params, dict):
        params = dict(params)
        for name in ("arguments", "requestId"):
            if name in params and not (name == "arguments" and like.get("method") != "tools/call"):
                params[name] = type(params[name]).__name__
        meta = params.get("_meta")
        if isinstance(meta, dict) and "progressToken" in meta:
            params["_meta"] = {**meta, "progressToken": type(meta["progressToken"]).__name__}
        like["params"] = params
    return like


# -- the tap ---------------------------------------------------------------------------------------------------

_recorder: Optional[Recorder] = None


def _watch_sending(link: Link) -> None:
    """See what goes out; what a lost link is given, and a GET without a body, is no message on its way.

    No new strong references: a client that is dropped has to go as it would unwatched.
    """
    link_ref, tap = weakref.ref(link), link.recorder_tap

    def watched(plain: Callable[..., Any]) -> Any:
        def send(frame: Any, *rest: Any) -> Any:
            recorder, alive = _recorder, link_ref()
            if recorder is not None and alive is not None and alive.cause is None and frame.data:
                revision = alive.session.revision
                recorder.add(Sent(tap, None if revision is None else revision.name, frame.data))
            return plain(frame, *rest)

        send.watched = True  # type: ignore[attr-defined]
        return send

    for name in _TAPPED_METHODS:
        method = getattr(link.transport, name, None)
        if method is not None and not hasattr(method, "watched"):
            setattr(link.transport, name, watched(_weakly(link.transport, name)))


def _weakly(transport: Any, name: str) -> Callable[..., Any]:
    if name in vars(transport):  # what the transport itself has put there
        return getattr(transport, name)
    kind, ref = type(transport), weakref.ref(transport)
    return lambda *args: getattr(kind, name)(ref(), *args)


def install() -> None:
    """Watch every link from now on."""
    plain_init, plain_open, plain_frame = Link.__init__, Link.open, Link.frame

    def init(self: Link, *args: Any, **kwargs: Any) -> None:
        plain_init(self, *args, **kwargs)
        self.recorder_tap = Tap()
        _watch_sending(self)

    def open(self: Link, *args: Any) -> None:
        plain_open(self, *args)
        _watch_sending(self)  # some transports know only now how they send

    def frame(self: Link, data: bytes, stream: Any) -> None:
        recorder = _recorder
        if recorder is not None and b'"method"' in data and b'"id"' in data:
            recorder.add(Heard(self.recorder_tap, data))
        plain_frame(self, data, stream)

    Link.__init__ = init
    Link.open = open
    Link.frame = frame


@contextmanager
def recording(recorder: Recorder) -> Iterator[Recorder]:
    """What is sent meanwhile goes to this recorder, and to no other."""
    global _recorder
    outer, _recorder = _recorder, recorder
    try:
        yield recorder
    finally:
        _recorder = outer


@contextmanager
def held_to_the_schema(own_methods: Collection[str] = ()) -> Iterator[None]:
    """Fail the test if something that is sent meanwhile breaks its schema."""
    recorder = Recorder(own_methods)
    with recording(recorder):
        yield
    problems = recorder.problems()
    if problems:
        pytest.fail("sent, and against the schema:\n%s" % "\n".join(problems), pytrace=False)
