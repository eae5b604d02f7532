"""Real stdio servers that misbehave on command, for fault tests.

A test asks for a peer, connects to its command, and calls the peer's tools: each tool is a fault, defined in
``tests/peers/behaviours.py`` and described there. What the peer received is recorded, so that a test can assert on it::

    from tests.peers.scripted import peer

    def test_a_dead_server_fails_its_calls(tmp_path):
        server = peer(tmp_path, era="legacy")
        with mcpsync.connect(server.command) as client:
            pending = client.submit("silent")
            server.wait_for("tools/call")              # it is there, so the next call finds it pending
            with pytest.raises(ProcessExited):
                client.call_tool("die", {"code": 3, "stderr": "out of luck"})
            ...
        assert server.received("notifications/cancelled") == []

**Options** of :func:`peer`, all optional:

=================== ==================================================================================================
``era``             ``"both"`` (default), ``"modern"`` (no ``initialize``), ``"legacy"`` (no ``server/discover``)
``revision``        legacy: what it answers ``initialize`` with; default: the one asked for
``supported``       modern: its ``supportedVersions``; others are refused with -32022
``capabilities``    what it declares; default: everything
``opening``         how it answers ``"server/discover"`` and ``"initialize"``, by method: ``"silent"``; or a dict with
                    at most one of ``exit`` (a code), ``error``, ``result``, and perhaps a ``delay`` (seconds)
``handlers``        other answers, by method: a function, or the name of one in ``tests/peers/handlers.py``
                    (``{"tools/list": "three_pages"}``)
``banner``          bytes written to stdout before anything else
``stderr``          bytes written to stderr before anything else
``exit_at_start``   a code: exit with it after banner and stderr, before reading anything
``ignore_eof``      go on when stdin ends
``ignore_term``     survive SIGTERM (it is recorded)
``deaf``            never read stdin at all
``grandchild``      a process that keeps the pipes open: ``"fork"``, ``"setsid"`` (its own session) or ``"double-fork"``
                    (its own session, and no parent)
``stubborn``        the grandchild survives SIGTERM and SIGHUP
``lifetime``        seconds after which peer and grandchild kill themselves if a test forgot them; default 120
=================== ==================================================================================================

**Functions of the test.** ``peer(tmp_path, my_tool)`` adds a tool ``my_tool``: a function ``my_tool(server, request,
**arguments)`` whose source is copied into the peer, so it must stand alone (import what it needs inside). It gets a
:class:`tests.peers.runtime.Server` and returns the result's text, a result as a dict, or None when it answers itself,
later, or not at all. A function in ``handlers`` is the same, with the members of ``params`` for arguments.

**Launching**: ``server.command`` is the argv. ``server.through_sh`` has a shell between (the peer is a grandchild);
with ``server.orphaned_by_sh`` the shell has died when the peer starts.

**Observing**: :meth:`Peer.received`, :meth:`Peer.wait_for`, :meth:`Peer.events`, :meth:`Peer.pids`, :meth:`Peer.alive`,
:meth:`Peer.wait_ended`. None of them sleeps: the peer rings a FIFO for each record, and the end of a process is waited
for. Each fails with what was recorded instead.

Linux only. The peers start with ``python -S``, so nothing but the standard library is there for them.
"""

from __future__ import annotations

import inspect
import json
import os
import select
import sys
import tempfile
import textwrap
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Union

__all__ = ["Peer", "peer"]

Message = Dict[str, Any]
Handler = Union[str, Callable[..., Any]]

RUNTIME = Path(__file__).with_name("runtime.py")
WAIT_SECONDS = 10.0


def peer(
    tmp_path: Path, *functions: Callable[..., Any], handlers: Optional[Mapping[str, Handler]] = None, **options: Any
) -> Peer:
    """A peer that is ready to be started, any number of times, by whoever runs its command."""
    home = Path(tempfile.mkdtemp(prefix="peer-", dir=str(tmp_path)))
    named = {method: _name(handler) for method, handler in (handlers or {}).items()}
    own = [*functions, *(handler for handler in (handlers or {}).values() if callable(handler))]
    source = "\n\n".join(textwrap.dedent(inspect.getsource(function)) for function in own)
    (home / "own.py").write_text("from __future__ import annotations\n\n" + source, encoding="utf-8")
    os.mkfifo(home / "bell")
    (home / "record").touch()
    config = {
        **{name: value.decode("latin-1") if isinstance(value, bytes) else value for name, value in options.items()},
        "handlers": named,
        "own_tools": [function.__name__ for function in functions],
    }
    (home / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return Peer(home)


def _name(handler: Handler) -> str:
    return handler if isinstance(handler, str) else handler.__name__


class Peer:
    """The test's side of a peer: how to start it, and what it has seen so far.

    :ivar command: its argv
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self.command: List[str] = [sys.executable, "-S", str(RUNTIME), str(home)]

    @property
    def through_sh(self) -> List[str]:
        """The argv with a shell that starts the peer and waits for it."""
        return ["/bin/sh", "-c", '"$@"; exit $?', "sh", *self.command]

    @property
    def orphaned_by_sh(self) -> List[str]:
        """The argv with a shell that starts the peer on its own pipes and dies at once."""
        return ["/bin/sh", "-c", 'exec 3<&0; "$@" <&3 3<&- & exit 0', "sh", *self.command]

    def events(self, kind: Optional[str] = None) -> List[Message]:
        """What has been recorded so far, in order; does not wait.

        Each has ``kind`` and ``pid``: ``started``, ``grandchild``, ``message`` (with ``data``), ``torn`` (a line that
        is no JSON, with ``data``), ``eof``, ``signal`` (with ``number``), or what a behaviour recorded itself.
        """
        lines = (self._home / "record").read_bytes().split(b"\n")[:-1]
        recorded = [json.loads(line) for line in lines]
        return [event for event in recorded if kind is None or event["kind"] == kind]

    def received(self, method: Optional[str] = None) -> List[Message]:
        """The messages that arrived so far, over all starts; does not wait.

        Exact after a call that was answered (the peer reads in order) and after the connection was closed.
        """
        messages = [event["data"] for event in self.events("message")]
        return [
            each for each in messages if method is None or (isinstance(each, dict) and each.get("method") == method)
        ]

    def wait_for(self, method: str, count: int = 1, timeout: float = WAIT_SECONDS) -> List[Message]:
        """The messages with that method, as soon as there are so many."""
        return self._wait(lambda: self.received(method), count, timeout, method)

    def wait_event(self, kind: str, count: int = 1, timeout: float = WAIT_SECONDS) -> List[Message]:
        """The events of that kind, as soon as there are so many."""
        return self._wait(lambda: self.events(kind), count, timeout, "event " + kind)

    def pids(self) -> List[int]:
        """The ids of all processes that were started: peers and grandchildren."""
        return [event["pid"] for event in self.events() if event["kind"] in ("started", "grandchild")]

    def alive(self) -> List[int]:
        """Those of them that run; a zombie does not."""
        return [pid for pid in self.pids() if _runs(pid)]

    def wait_ended(self, timeout: float = WAIT_SECONDS) -> None:
        """Wait until none of them runs."""
        deadline = time.monotonic() + timeout
        for pid in self.pids():
            if not _ends(pid, deadline):
                raise AssertionError("process %d still runs after %.1f s; recorded: %s" % (pid, timeout, self._tail()))

    def _wait(self, look: Callable[[], List[Message]], count: int, timeout: float, what: str) -> List[Message]:
        deadline = time.monotonic() + timeout
        bell = os.open(self._home / "bell", os.O_RDWR | os.O_NONBLOCK)  # open before looking, so that no ring is missed
        try:
            while True:
                found = look()
                if len(found) >= count:
                    return found
                if not _readable(bell, deadline):
                    raise AssertionError(
                        "%d of %d messages %s within %.1f s; recorded: %s"
                        % (len(found), count, what, timeout, self._tail())
                    )
                os.read(bell, 65_536)
        finally:
            os.close(bell)

    def _tail(self) -> str:
        return "\n".join(json.dumps(event)[:300] for event in self.events()[-20:]) or "nothing"


def _readable(descriptor: int, deadline: float) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(max(0.0, deadline - time.monotonic()) * 1_000))


def _runs(pid: int) -> bool:
    try:
        state = Path("/proc/%d/stat" % pid).read_text(errors="replace").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def _ends(pid: int, deadline: float) -> bool:
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return _readable(descriptor, deadline)
    finally:
        os.close(descriptor)
