"""What a server writes: frames on stdout, anything on stderr; and what is said of it when the connection ends."""

from __future__ import annotations

import logging
import signal
from typing import Callable, Iterable, Optional

from mcpsync.errors import ProcessExited, flat
from mcpsync.transport.base import Sink
from mcpsync.transport.intake import FrameIntake
from mcpsync.transport.masking import Mask
from mcpsync.transport.stderr_tail import StderrTail

__all__ = ["ServerOutput", "describe_exit"]


class ServerOutput(FrameIntake):
    """The two streams of one server. Fed by one thread at a time.

    :param server: its name
    :param limit: the longest message that is taken, in bytes
    :param mask: hides secrets
    :param stderr: gets each line of stderr; None: the logger ``mcpsync.server.<name>``, at DEBUG
    """

    def __init__(self, server: str, limit: int, mask: Mask, stderr: Optional[Callable[[str], None]]) -> None:
        super().__init__(server, limit, mask, "stdout")
        self.tail = StderrTail(mask)
        self._stderr = stderr
        self._log = logging.getLogger("mcpsync.server." + server)

    def stderr(self, chunk: bytes, sink: Sink) -> None:
        """Take the next bytes of stderr."""
        self._hand_on(self.tail.feed(chunk), sink)

    def stderr_ended(self, sink: Sink) -> None:
        """There will be no more of stderr."""
        self._hand_on(self.tail.end(), sink)

    def exited(self, code: Optional[int]) -> ProcessExited:
        """The error that says how the process ended and what it said before."""
        text = describe_exit(code) + self._last_words()
        return ProcessExited(text, exit_code=code, stderr_tail=self.tail.text, server=self._server)

    def _hand_on(self, lines: Iterable[str], sink: Sink) -> None:
        if self._stderr is None:
            if self._log.isEnabledFor(logging.DEBUG):
                for line in lines:
                    self._log.debug("%s", flat(line))
            return
        for line in lines:
            try:
                self._stderr(line)
            except Exception as error:  # a user's function: its faults must not end the connection
                sink.warn("stderr", "the function that takes the lines of stderr raised %r" % error)

    def _last_words(self) -> str:
        return "; stderr: " + self.tail.brief if self.tail.brief else super()._last_words()


def describe_exit(code: Optional[int]) -> str:
    """How a process ended, in words."""
    if code is None:
        return "the server process ended (its exit code was taken by another part of this program)"
    if code >= 0:
        return "the server process exited with code %d" % code
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = "unknown"
    return "the server process was killed by signal %d (%s)" % (-code, name)
