"""An in-memory connection in the shape of a stream, as stdio has it: frames go in, a reader takes frames out."""

from __future__ import annotations

import copy
from typing import Callable, Iterator, List, Optional

from mcpsync.deadline import Deadline
from mcpsync.errors import McpError
from mcpsync.transport.base import Frame, Request, StreamId
from mcpsync.transport.memory_channel import Channel
from mcpsync.transport.memory_transport import CAPACITY, MemoryServer, MemoryTransport

__all__ = ["MemoryStream", "ServerEnd", "StreamServer"]


class ServerEnd:
    """The server's end of one connection. Iterating gives each message until the client closes."""

    def __init__(self, incoming: Channel, outgoing: Channel, hang_up: Callable[[], None]) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._hang_up = hang_up

    def receive(self, timeout: Optional[float] = None) -> Optional[bytes]:
        """The next message of the client; None when it has closed the connection and all is read.

        :param timeout: seconds; None: no limit
        :raises TimeoutError: nothing came in time
        """
        return self._incoming.take(Deadline(timeout))

    def send(self, data: bytes, timeout: Optional[float] = None) -> None:
        """Send one message to the client.

        :param timeout: seconds to wait for room; None: no limit
        :raises Overloaded: there was no room in time
        :raises ConnectionLost: the connection is over
        """
        self._outgoing.put(data, Deadline(timeout))

    def close(self) -> None:
        """End the connection: the client still gets what was sent, and then sees it as lost. Idempotent."""
        self._hang_up()

    def wait_closed(self, timeout: Optional[float] = None) -> bool:
        """Wait until the connection is over, without reading; False if it was not in time.

        :param timeout: seconds; None: no limit
        """
        return self._incoming.wait_end(Deadline(timeout))

    def __iter__(self) -> Iterator[bytes]:
        data = self.receive()
        while data is not None:
            yield data
            data = self.receive()


class StreamServer(MemoryServer):
    """A server in this process that is spoken to over streams. It is a transport factory.

    :param handler: serves one connection: called with a :class:`ServerEnd`, on a thread per connection. When it
        returns, the connection ends. It has to return soon after ``receive()`` gave None.
    :param server_name: for errors and the names of threads
    :param capacity: messages that may wait in either direction; a sender waits for room
    """

    def __init__(
        self, handler: Callable[[ServerEnd], None], *, server_name: Optional[str] = None, capacity: int = CAPACITY
    ) -> None:
        super().__init__(server_name)
        self._handler = handler
        self._capacity = capacity

    def __call__(self) -> MemoryStream:
        """A transport for one connection to this server."""
        return MemoryStream(self, self._handler, self._capacity)


class MemoryStream(MemoryTransport):
    """The client's end of one connection; see :class:`StreamServer`."""

    exchange_like = False

    def __init__(self, server: StreamServer, handler: Callable[[ServerEnd], None], capacity: int) -> None:
        super().__init__(server, capacity)
        self._handler = handler
        self._outgoing = Channel(capacity)

    def listen(self, frame: Frame, deadline: Deadline, request: Optional[Request] = None) -> None:
        """
        :raises ConnectionLost: always, for the connection is one long stream already
        """
        raise self._gone("an in-memory stream has no other stream to listen on")

    def send(self, frame: Frame, request: Optional[Request], deadline: Deadline) -> None:
        """Put one frame into the queue for the server.

        :raises Overloaded: the server does not read, and there was no room until the deadline
        :raises ConnectionLost: the connection is over, or was not opened
        """
        if self._end is not None:
            raise copy.copy(self._end)
        self._outgoing.put(frame.data, deadline, request)

    def abort(self, request: Request, reason: str) -> bool:
        """True if the server had not read the request: it never hears of it."""
        return self._outgoing.withdraw(request)

    def _start(self) -> None:
        peer = ServerEnd(self._outgoing, self._incoming, self._hung_up)
        self._start_thread(lambda: self._handler(peer), self._hung_up, self._incoming)

    def _hung_up(self, failure: Optional[McpError] = None) -> None:
        """The server ends the connection: what it sent before still arrives."""
        cause = failure or self._gone("the server closed the connection")
        self._incoming.close(cause, drop=False)
        self._outgoing.close(cause, drop=True)

    def _deliver(self, data: bytes, stream: StreamId) -> None:
        assert self._sink is not None
        self._sink.frame(data, stream)

    def _end_all(self, cause: McpError) -> None:
        self._incoming.close(cause, drop=True)
        # who hangs up is still heard to the end; what is cut off is not
        self._outgoing.close(cause, drop=cause is not self._farewell)

    def _channels(self) -> List[Channel]:
        return [self._incoming, self._outgoing]
