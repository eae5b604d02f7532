"""A server over HTTP in a process of its own, which counts what it executes: ``python counting_http.py ERA``.

It prints its URL. Then each line that it reads is a command, answered with a line: ``drop`` closes all connections,
``forget`` the sessions too, ``quit`` ends it. The tool ``count`` writes the number that it is given to a file.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Dict

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from tests.peers.http import Exchange, HttpPeer, tool_result
from tests.peers.http_servers import Legacy, Modern


class _Forgetful(HttpPeer):
    """One that runs for long: it remembers no requests."""

    def forget_requests(self) -> None:
        with self.changed:
            self.requests.clear()
            self._threads = [thread for thread in self._threads if thread.is_alive()]


def main(era: str, counted: str) -> None:
    """Serve until told to quit."""
    with open(counted, "a", encoding="ascii", buffering=1) as out:

        def count(exchange: Exchange, message: Dict[str, Any]) -> None:
            number = message["params"]["arguments"]["number"]
            out.write("<%d>\n" % number)
            complete = {"resultType": "complete"} if era == "modern" else {}
            exchange.result({**complete, **tool_result("counted %d" % number)})

        server = Legacy(count) if era == "legacy" else Modern(count)
        with _Forgetful(server) as peer:
            print(peer.url, flush=True)
            for line in sys.stdin:
                command = line.strip()
                if command == "quit":
                    break
                if command == "forget" and isinstance(server, Legacy):
                    server.forget_sessions()
                peer.drop_connections()
                peer.forget_requests()
                print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
