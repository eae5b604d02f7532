"""Code that runs in the middle of the library's own while it signs requests, and renews what it signs them with."""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from types import ModuleType
from typing import Any, Iterator, Set, Tuple

import pytest

import mcpsync
from mcpsync import OAuth, Timeouts
from mcpsync.auth import flight, session
from mcpsync.auth.store import MemoryStore
from mcpsync.deadline import Deadline
from mcpsync.transport.http import abortable, authorized, clock, endpoint, exchange, life, pool, response, streamable
from tests.peers.authorization import AuthorizationServer, ProtectedServer, browse
from tests.peers.http_servers import Modern

SIGNING = (flight, session)
HTTP = (abortable, authorized, clock, endpoint, exchange, life, pool, response, streamable)
Client = Any
Servers = Tuple[AuthorizationServer, Client]


@pytest.fixture
def servers() -> Iterator[Servers]:
    with AuthorizationServer() as issuer, ProtectedServer(issuer, behaviour=Modern()) as resource:
        auth = OAuth(way=browse, store=MemoryStore())
        with mcpsync.connect(resource.url, auth=auth, timeouts=Timeouts(call=10)) as client:
            yield issuer, client


class AtEachLine:
    """Does something when this thread comes to a line of these modules for the first time; once in each ``with``."""

    def __init__(self, *modules: ModuleType) -> None:
        self.files = {module.__file__ for module in modules}
        self.seen: Set[Tuple[str, int]] = set()
        self._here = False

    def act(self) -> None:
        raise NotImplementedError

    def _call(self, frame: Any, event: str, argument: Any) -> Any:
        return self._line if frame.f_code.co_filename in self.files else None

    def _line(self, frame: Any, event: str, argument: Any) -> Any:
        where = (frame.f_code.co_filename, frame.f_lineno)
        if event == "line" and not self._here and where not in self.seen:
            self.seen.add(where)
            self._here = True
            self.act()
        return self._line

    def __enter__(self) -> None:
        self._here = False
        self._traced = sys.gettrace()
        sys.settrace(self._call)

    def __exit__(self, *_: Any) -> None:
        sys.settrace(self._traced)


def until_all_lines_were_met(each: AtEachLine, issuer: AuthorizationServer, call: Any) -> None:
    idle = number = 0
    while idle < 6:
        before = len(each.seen)
        number += 1
        if number % 2:
            issuer.expire_access()  # a renewal, every other time
        call()
        idle = 0 if len(each.seen) > before else idle + 1


@pytest.mark.parametrize(("modules", "least"), [(SIGNING, 40), (HTTP, 120)], ids=["signing", "http"])
def test_a_call_is_made_at_every_line_of_another(servers: Servers, modules: Tuple[ModuleType, ...], least: int) -> None:
    issuer, client = servers

    class Call(AtEachLine):
        def act(self) -> None:
            # as a signal handler or a __del__ might, wherever this thread is
            assert client.call_tool("work").text == "done"

    each = Call(*modules)

    def call() -> None:
        with each:
            assert client.call_tool("work").text == "done"

    until_all_lines_were_met(each, issuer, call)
    assert len(each.seen) >= least


def test_an_interrupt_at_any_line_leaves_signing_as_it_was(servers: Servers) -> None:
    issuer, client = servers

    class Interrupt(AtEachLine):
        def act(self) -> None:
            raise KeyboardInterrupt

    each = Interrupt(*SIGNING)

    def call() -> None:
        with each, suppress(KeyboardInterrupt):
            client.call_tool("work")
        assert client.call_tool("work", timeout=5).text == "done"

    until_all_lines_were_met(each, issuer, call)
    assert len(each.seen) >= 40


def test_a_flight_that_waits_for_itself_says_so() -> None:
    said = threading.Event()

    def run() -> None:
        with pytest.raises(mcpsync.AuthError, match="under way on this very thread"):
            itself.wait(Deadline(20))
        said.set()

    itself = flight.Flight("a try", "", run)
    itself.start("mcpsync-test-flight")
    itself.wait(Deadline(20))
    assert said.is_set()
