"""Run the demo server on standard input and output."""

from __future__ import annotations

from mcpsync.demo.server import Server
from mcpsync.demo.wire import Wire


def main() -> None:
    """Serve until standard input ends."""
    server = Server(Wire())
    try:
        server.run()
    except KeyboardInterrupt:
        server.stop()


if __name__ == "__main__":
    main()
