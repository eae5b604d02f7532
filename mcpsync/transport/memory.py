"""A server in the same process: for programs that embed one, and for tests.

It comes in two shapes, and each server object is a transport factory: it makes a fresh connection per call. The
server is a plain function over messages, which are UTF-8 JSON in bytes. The stream-like shape is the simpler one, and
behaves as a server over stdio does::

    import json

    from mcpsync.transport.memory import ServerEnd, StreamServer

    def serve(client: ServerEnd) -> None:
        for data in client:                                # until the client closes
            message = json.loads(data)
            if "id" in message:
                client.send(json.dumps(answer_to(message)).encode())

    server = StreamServer(serve, server_name="inside")

The exchange-like shape behaves as a server over Streamable HTTP does: each message of the client opens an exchange
that carries what belongs to it, and one long stream carries the rest::

    from mcpsync.transport.memory import Exchange, ExchangeServer

    def serve(exchange: Exchange) -> None:
        message = json.loads(exchange.request.data)
        if "id" in message:
            exchange.send(json.dumps(answer_to(message)).encode())

    server = ExchangeServer(serve, server_name="inside")

The function runs on threads named ``mcpsync-<server>-server``: one per connection, or one per exchange. Closing the
client waits for them, so the function has to notice the end of the connection. ``server.fail_next()`` refuses the next
attempt to connect, and ``server.lose()`` cuts what is open.
"""

from __future__ import annotations

from mcpsync.transport.memory_exchange import Exchange, ExchangeServer, MemoryExchange
from mcpsync.transport.memory_stream import MemoryStream, ServerEnd, StreamServer
from mcpsync.transport.memory_transport import CAPACITY, MemoryServer

__all__ = [
    "CAPACITY",
    "Exchange",
    "ExchangeServer",
    "MemoryExchange",
    "MemoryServer",
    "MemoryStream",
    "ServerEnd",
    "StreamServer",
]
