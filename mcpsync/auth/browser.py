"""The ways in which a person signs in: a browser here, a browser elsewhere, or whatever the host has.

Specification: RFC 8252.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import webbrowser
from contextlib import contextmanager
from typing import Any, Callable, ContextManager, Iterator, List, Mapping, Optional, Protocol, Sequence
from urllib.parse import urlsplit

from mcpsync.auth.authorization_code import AuthorizationRequest, answer_of, matches
from mcpsync.auth.loopback import Loopback
from mcpsync.deadline import Deadline
from mcpsync.errors import AuthError

__all__ = ["Browser", "OwnWay", "Paste", "Visit", "Way", "ask_on_terminal", "open_browser"]

_CALLBACK = "http://127.0.0.1:%d/callback"
_TRIES = 3


class Visit(Protocol):
    """One person on their way.

    :ivar redirect_uri: where they will come back to
    """

    redirect_uri: str

    def answer(self, request: AuthorizationRequest, deadline: Deadline) -> Mapping[str, str]:
        """Send them off, and give the parameters that they come back with.

        :raises AuthError: they did not come back
        """


class Way(Protocol):
    """How a person signs in."""

    def begin(self, known: Sequence[str]) -> ContextManager[Visit]:
        """Get ready, before the client is registered.

        :param known: redirect URIs that the client is registered with already: one of these saves a registration
        :raises AuthError: it cannot be
        """


# -- a browser on this machine ---------------------------------------------------------------------------------------


class Browser:
    """A browser on this machine, and a callback here.

    :param port: of the callback; 0: one that is free
    :param redirect_uri: in place of ``http://127.0.0.1:<port>/callback``
    :param opener: opens a URL; False: it could not
    :param announce: gets the URL as well, to be shown in case that nothing opens
    """

    def __init__(
        self,
        port: int = 0,
        redirect_uri: Optional[str] = None,
        opener: Optional[Callable[[str], bool]] = None,
        announce: Optional[Callable[[str], Any]] = None,
    ) -> None:
        self._redirect_uri = redirect_uri or _CALLBACK % port
        self._opener = opener or open_browser
        self._announce = announce

    @contextmanager
    def begin(self, known: Sequence[str]) -> Iterator[Visit]:
        with Loopback(self._redirect_uri, _ports(known)) as loopback:
            yield _BrowserVisit(loopback, self._opener, self._announce)


class _BrowserVisit:
    def __init__(
        self, loopback: Loopback, opener: Callable[[str], bool], announce: Optional[Callable[[str], Any]]
    ) -> None:
        self.redirect_uri = loopback.redirect_uri
        self._loopback = loopback
        self._opener = opener
        self._announce = announce

    def answer(self, request: AuthorizationRequest, deadline: Deadline) -> Mapping[str, str]:
        self._loopback.expect(request.state)
        if self._announce is not None:
            self._announce(request.url)
        if not self._opener(request.url) and self._announce is None:
            raise AuthError(
                "no browser can be opened here; sign in by pasting the address that a browser elsewhere ends at "
                "(way='paste'), or with a function of your own"
            )
        return self._loopback.wait(deadline)


def open_browser(url: str) -> bool:
    """Open a URL in the person's browser. False: there is none that can be opened."""
    if not _has_screen():
        return False
    opened: List[bool] = []
    done = threading.Event()

    def run() -> None:
        try:
            opened.append(webbrowser.open(url))
        except (webbrowser.Error, OSError):
            opened.append(False)
        finally:
            done.set()

    # some systems start the browser in the foreground: then it is open, for as long as this does not return
    threading.Thread(target=run, name="mcpsync-sign-in-browser", daemon=True).start()
    return opened[0] if done.wait(10.0) else True


def _has_screen() -> bool:
    """Whether a browser would have somewhere to show; without, one in the terminal would take that over."""
    if sys.platform in ("win32", "darwin"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "WSL_DISTRO_NAME"))


# -- a browser elsewhere ---------------------------------------------------------------------------------------------


class Paste:
    """A browser on another machine: it ends at an address that does not load, which the person copies back.

    :param ask: shows a URL to the person and gives what they bring back; by default on the terminal
    :param port: that the address names; nothing listens there
    :param redirect_uri: in place of ``http://127.0.0.1:<port>/callback``
    """

    def __init__(
        self, ask: Optional[Callable[[str], str]] = None, port: int = 0, redirect_uri: Optional[str] = None
    ) -> None:
        self._ask = ask or ask_on_terminal
        self._port = port
        self._redirect_uri = redirect_uri

    @contextmanager
    def begin(self, known: Sequence[str]) -> Iterator[Visit]:
        uri = self._redirect_uri
        if uri is None:
            port = self._port or next(iter(_ports(known)), 0) or _free_port()
            uri = _CALLBACK % port
        yield _PasteVisit(uri, self._ask)


class _PasteVisit:
    def __init__(self, redirect_uri: str, ask: Callable[[str], str]) -> None:
        self.redirect_uri = redirect_uri
        self._ask = ask

    def answer(self, request: AuthorizationRequest, deadline: Deadline) -> Mapping[str, str]:
        for _ in range(_TRIES):
            pasted = self._asked(request.url, deadline)
            if "state=" in pasted:
                found = answer_of(pasted.strip())
                if matches(request.state, found):
                    return found
        raise AuthError("what was pasted is not the address that this sign-in ended at")

    def _asked(self, url: str, deadline: Deadline) -> str:
        said: List[str] = []
        failed: List[BaseException] = []
        done = threading.Event()

        def run() -> None:
            try:
                said.append(self._ask(url))
            except BaseException as error:  # raised where it is waited for
                failed.append(error)
            finally:
                done.set()

        # a read from a terminal cannot be ended: past the deadline it reads for nobody
        threading.Thread(target=run, name="mcpsync-sign-in-paste", daemon=True).start()
        if not deadline.wait(done):
            raise AuthError("nothing was pasted in time; sign in again")
        if failed:
            if isinstance(failed[0], EOFError):
                raise AuthError("there is nobody to paste anything: the input is closed")
            raise failed[0]
        return said[0]


def ask_on_terminal(url: str) -> str:
    """Show a URL on stderr, and read a line.

    :raises EOFError: there is nothing to read from
    """
    if sys.stderr is not None:
        sys.stderr.write(
            "To sign in, open this in a browser:\n\n  %s\n\nIt ends at an address on 127.0.0.1 that may not load. "
            "Copy that whole address and paste it here:\n" % url
        )
        sys.stderr.flush()
    line = "" if sys.stdin is None else sys.stdin.readline()
    if not line:
        raise EOFError
    return line


# -- whatever the host has -------------------------------------------------------------------------------------------


class OwnWay:
    """A function of the host's, which runs on the thread that signs in.

    :param function: gets the URL to show, and gives the address that the person was sent back to
    :param redirect_uri: that the function knows to catch
    """

    def __init__(self, function: Callable[[str], str], redirect_uri: Optional[str] = None, port: int = 0) -> None:
        self._function = function
        self._redirect_uri = redirect_uri
        self._port = port

    @contextmanager
    def begin(self, known: Sequence[str]) -> Iterator[Visit]:
        port = self._port or next(iter(_ports(known)), 0) or _free_port()
        yield _OwnVisit(self._redirect_uri or _CALLBACK % port, self._function)


class _OwnVisit:
    def __init__(self, redirect_uri: str, function: Callable[[str], str]) -> None:
        self.redirect_uri = redirect_uri
        self._function = function

    def answer(self, request: AuthorizationRequest, deadline: Deadline) -> Mapping[str, str]:
        came_back = self._function(request.url)
        if not isinstance(came_back, str):
            raise AuthError("the sign-in was given up: the function gave no address that it ended at")
        return answer_of(came_back)


def _ports(uris: Sequence[str]) -> Sequence[int]:
    """The ports of callbacks on this machine."""
    found = []
    for uri in uris:
        try:
            parts = urlsplit(uri)
            if parts.scheme == "http" and parts.hostname in ("127.0.0.1", "localhost", "::1") and parts.port:
                found.append(parts.port)
        except ValueError:
            continue
    return found


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port
