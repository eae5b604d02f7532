"""An in-memory connection in the shape of exchanges, as HTTP has it.

Each frame opens an exchange of its own, which the sender drives to its end; beside them there is one long stream,
on which the server may send at any time once the client listens on it.
"""

from __future__ import annotations

import copy
from typing import Callable, Dict, List, NamedTuple, Optional

from mcpsync.deadline import Deadline
from mcpsync.errors import ConnectionLost, McpError, RequestTimeout
from mcpsync.transport.base import Frame, Request, StreamId
from mcpsync.transport.memory_channel import Channel
from mcpsync.transport.memory_transport import CAPACITY, MemoryServer, MemoryTransport

__all__ = ["Exchange", "ExchangeServer", "MemoryExchange"]


class Exchange:
    """One frame of the client, and all that the server sends back for it, as the server sees it.

    :ivar request: the frame: a request, or a notification or an answer, for which nothing is sent back
    """

    def __init__(
        self, request: Frame, channel: Channel, end: Callable[[], None], push: Callable[[bytes], bool]
    ) -> None:
        self.request = request
        self._channel = channel
        self._end = end
        self._push = push

    def send(self, data: bytes, timeout: Optional[float] = None) -> None:
        """Send a message on the exchange's own stream.

        :param timeout: seconds to wait for room; None: no limit
        :raises Overloaded: there was no room in time
        :raises ConnectionLost: the exchange is over
        """
        self._channel.put(data, Deadline(timeout))

    def push(self, data: bytes) -> bool:
        """Send a message on the connection's long stream.

        :returns: False if the client does not listen on one
        :raises ConnectionLost: the connection is over
        """
        return self._push(data)

    def end(self) -> None:
        """Nothing more comes. Returning from the server's function does the same. Idempotent."""
        self._end()

    @property
    def ended(self) -> bool:
        """Whether it is over: answered, ended by the server, or by the client, which no longer wants an answer."""
        return self._channel.end is not None

    def wait_ended(self, timeout: Optional[float] = None) -> bool:
        """Wait until it is over; False if it was not in time.

        :param timeout: seconds; None: no limit
        """
        return self._channel.wait_end(Deadline(timeout))


class ExchangeServer(MemoryServer):
    """A server in this process that is spoken to in exchanges. It is a transport factory.

    :param function: serves one exchange: called with an :class:`Exchange`, on a thread of its own. When it returns,
        the exchange ends. It has to return soon after the exchange has ``ended``.
    :param ending_cancels: the end of an exchange tells the server that its request is cancelled, as over HTTP since
        2026-07-28; otherwise ``notifications/cancelled`` has to, as before
    :param server_name: for errors and the names of threads
    :param capacity: messages that may wait on each stream
    """

    def __init__(
        self,
        function: Callable[[Exchange], None],
        *,
        ending_cancels: bool = False,
        server_name: Optional[str] = None,
        capacity: int = CAPACITY,
    ) -> None:
        super().__init__(server_name)
        self._function = function
        self._ending_cancels = ending_cancels
        self._capacity = capacity

    def __call__(self) -> MemoryExchange:
        """A transport for one connection to this server."""
        return MemoryExchange(self, self._function, self._ending_cancels, self._capacity)

    def push(self, data: bytes) -> int:
        """Send a message on the long stream of each connection whose client listens.

        :returns: to how many of them
        """
        return sum(transport.push(data) for transport in self._transports() if isinstance(transport, MemoryExchange))


class _Driven(NamedTuple):
    """An exchange, as the client sees it."""

    request: Optional[Request]
    channel: Channel


class MemoryExchange(MemoryTransport):
    """The client's end of one connection; see :class:`ExchangeServer`.

    The long stream is named None, and each exchange by a number.
    """

    exchange_like = True

    def __init__(
        self, server: ExchangeServer, function: Callable[[Exchange], None], ending_cancels: bool, capacity: int
    ) -> None:
        super().__init__(server, capacity)
        self._function = function
        self._ending_cancels = ending_cancels
        self._capacity = capacity
        self._listening = False
        self._serial = 0
        self._over = self._gone("the client has ended the exchange")
        self._finished = self._gone("the exchange ended without an answer", maybe_executed=True)

    def _reset(self) -> None:
        super()._reset()
        self._driven: Dict[int, _Driven] = {}

    def listen(self, frame: Frame, deadline: Deadline, request: Optional[Request] = None) -> None:
        """Open the long stream, which ``run`` reads.

        :param frame: a request that the server gets, and whose answers come on the long stream; without data, none
        :raises Overloaded: no thread can be started for the server
        :raises ConnectionLost: the connection is over, or was not opened
        """
        with self._state:
            if self._end is not None:
                raise copy.copy(self._end)
            self._listening = True
        if frame.data:
            # the stream stays when the server's function returns: it may push at any time
            self._serve(Exchange(frame, self._incoming, lambda: None, self.push), self._incoming, lambda failure: None)

    def push(self, data: bytes) -> bool:
        """For the server: send a message on the long stream; False if nobody listens."""
        if not self._listening:
            return False
        self._incoming.put(data, Deadline(None))
        return True

    def send(self, frame: Frame, request: Optional[Request], deadline: Deadline) -> None:
        """Drive one exchange: the server gets the frame, the sink what comes back.

        Returns when the request is answered, on whatever stream, or retired, or when the exchange of a frame that
        is no request has ended.

        :raises RequestTimeout: it was not over at the deadline, and is now
        :raises ConnectionLost: it ended without an answer, and only it; or the connection is over or was not opened
        :raises Overloaded: no thread can be started for the server
        """
        channel = Channel(self._capacity)
        serial = self._enter(_Driven(request, channel), deadline)
        try:
            if request is None or not request.answered:
                self._serve(
                    Exchange(frame, channel, lambda: channel.close(self._finished, drop=False), self.push),
                    channel,
                    lambda failure: channel.close(failure or self._finished, drop=False),
                )
                self._drive(serial, request, channel, deadline)
        finally:
            with self._state:
                self._driven.pop(serial, None)
            channel.close(self._over, drop=True)

    def abort(self, request: Request, reason: str) -> bool:
        """End the exchange of a request; True if that tells the server."""
        with self._state:
            channels = [driven.channel for driven in self._driven.values() if driven.request is request]
        for channel in channels:
            channel.close(self._over, drop=True)
        return self._ending_cancels

    def _enter(self, driven: _Driven, deadline: Deadline) -> int:
        """Note an exchange, so that it can be ended from here on, and see to it that there is a sink to feed."""
        with self._state:
            while self._end is None and self._sink is None:
                if deadline.expired:
                    raise self._timeout("nobody reads the connection")
                self._state.wait(deadline.remaining())
            if self._end is not None:
                raise copy.copy(self._end)
            self._serial += 1
            self._driven[self._serial] = driven
            return self._serial

    def _serve(self, exchange: Exchange, channel: Channel, over: Callable[[Optional[McpError]], None]) -> None:
        self._start_thread(lambda: self._function(exchange), over, channel)

    def _drive(self, serial: int, request: Optional[Request], channel: Channel, deadline: Deadline) -> None:
        while True:
            try:
                data = channel.take(deadline)
            except TimeoutError:
                raise self._timeout("no answer came in time") from None
            if data is None:
                break
            self._deliver(data, serial)
            if request is not None and request.answered:
                return
        end = channel.end
        assert end is not None
        retired = end is self._over or (request is not None and request.answered)
        if retired or (request is None and end is self._finished):
            return
        error = copy.copy(end)
        if isinstance(error, ConnectionLost):
            error.maybe_executed = request is not None  # the server's function has had it
        raise error

    def _deliver(self, data: bytes, stream: StreamId) -> None:
        assert self._sink is not None
        self._sink.frame(data, stream)
        # an answer that came on another stream ends its own exchange
        with self._state:
            over = [
                driven for driven in self._driven.values() if driven.request is not None and driven.request.answered
            ]
        for driven in over:
            driven.channel.close(self._over, drop=True)

    def _timeout(self, message: str) -> RequestTimeout:
        return RequestTimeout(message, server=self._server_name)

    def _start(self) -> None:
        """Each exchange starts a thread of its own."""

    def _end_all(self, cause: McpError) -> None:
        self._incoming.close(cause, drop=True)
        with self._state:
            self._state.notify_all()  # whoever waits for a reader
            driven = list(self._driven.values())
        for each in driven:
            each.channel.close(cause, drop=True)

    def _channels(self) -> List[Channel]:
        return [self._incoming, *(driven.channel for driven in self._driven.values())]
