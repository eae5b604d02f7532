"""Tools of the HTTP servers in :mod:`tests.peers.http_servers`, each a way to behave; the same in both eras."""

from __future__ import annotations

import itertools
import json
import random
import threading
from typing import Any, Dict, List

from tests.peers.http import PATIENCE, Exchange
from tests.peers.http_servers import Legacy, Modern

__all__ = ["ERAS", "Tools", "serving"]

FORM = {"mode": "form", "message": "?", "requestedSchema": {"type": "object", "properties": {}}}
ERAS = {"legacy": Legacy, "modern": Modern}


class Tools:
    """What a tool call does, by the tool's name.

    :ivar begun: the names of the calls so far
    :ivar ended: the ids of those silent calls whose exchange the client has ended
    """

    def __init__(self, server: Any) -> None:
        self.server = server
        self.changed = threading.Condition()
        self.begun: List[str] = []
        self.ended: List[Any] = []
        self._answers: Dict[Any, Any] = {}
        self._ids = itertools.count(1000)
        self._random = random.Random(1)
        server.work = self
        if isinstance(server, Legacy):
            server.told = self._told  # type: ignore[method-assign]

    def __call__(self, exchange: Exchange, message: Dict[str, Any]) -> None:
        name = message["params"]["name"]
        with self.changed:
            self.begun.append(name)
            self.changed.notify_all()
        getattr(self, name)(exchange, message, **message["params"].get("arguments", {}))

    def wait_begun(self, count: int) -> None:
        """Until so many calls have come."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.begun) >= count, PATIENCE)

    def wait_ended(self, count: int = 1) -> List[Any]:
        """The ids of those silent calls that the client ended, when there are so many."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.ended) >= count, PATIENCE)
            return list(self.ended)

    def result(self, text: str) -> Dict[str, Any]:
        """What a call gives."""
        return {"resultType": "complete", "content": [{"type": "text", "text": text}]}

    # -- the tools ---------------------------------------------------------------------------------------------

    def echo(self, exchange: Exchange, message: Any, text: str = "", slow: bool = False) -> None:
        """Says the text again; in random order if they come many at once."""
        if slow:
            exchange.wait_closed(self._random.uniform(0, 0.01))
        exchange.result(self.result(text))

    def streamed(self, exchange: Exchange, message: Any, text: str = "", progress: int = 0) -> None:
        """The same by events, behind so many of progress."""
        exchange.start()
        token = message["params"].get("_meta", {}).get("progressToken")
        for number in range(progress):
            params = {"progressToken": token, "progress": number + 1, "total": progress}
            exchange.event({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
        exchange.event_result(self.result(text))
        exchange.end()

    def silent(self, exchange: Exchange, message: Any, streams: bool = False) -> None:
        """No answer."""
        try:
            if streams:
                exchange.start()
                exchange.write(b": here\n\n")
            exchange.wait_closed()
        finally:
            with self.changed:
                self.ended.append(message["id"])
                self.changed.notify_all()

    def chatty(self, exchange: Exchange, message: Any, seconds: float = 0.05) -> None:
        """Progress without end, and no answer."""
        exchange.start()
        token = message["params"].get("_meta", {}).get("progressToken")
        for number in itertools.count(1):
            params = {"progressToken": token, "progress": number}
            exchange.event({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
            if exchange.wait_closed(seconds):
                return

    def late(self, exchange: Exchange, message: Any, seconds: float) -> None:
        """Answers after so long, whether or not anybody still waits."""
        exchange.peer.closing.wait(seconds)
        exchange.result(self.result("late"))

    def dies(self, exchange: Exchange, message: Any) -> None:
        """The connection breaks."""
        exchange.reset()

    def dies_later(self, exchange: Exchange, message: Any) -> None:
        """The same, in the middle of a stream."""
        exchange.start()
        exchange.write(b": here\n\n")
        exchange.reset()

    def asks(self, exchange: Exchange, message: Any, times: int = 1) -> None:
        """Asks the user, and gives the answer as JSON."""
        if isinstance(self.server, Modern):
            self._asks_in_rounds(exchange, message, times)
            return
        exchange.start()
        answer: Any = None
        for _ in range(times):
            with self.changed:
                request_id = next(self._ids)
            exchange.event({"jsonrpc": "2.0", "id": request_id, "method": "elicitation/create", "params": FORM})
            while request_id not in self._answers:
                if exchange.wait_closed(0.005):
                    return
            answer = self._answers[request_id]
        exchange.event_result(self.result(json.dumps(answer)))
        exchange.end()

    def _asks_in_rounds(self, exchange: Exchange, message: Any, times: int) -> None:
        params = message["params"]
        given = int(params.get("requestState", "0"))
        if given >= times:
            exchange.result(self.result(json.dumps(params["inputResponses"]["q"])))
            return
        question = {"method": "elicitation/create", "params": FORM}
        exchange.result(
            {"resultType": "input_required", "inputRequests": {"q": question}, "requestState": str(given + 1)}
        )

    def _told(self, message: Dict[str, Any]) -> None:
        if "method" not in message:
            with self.changed:
                self._answers[message["id"]] = message.get("result", message.get("error"))
                self.changed.notify_all()


def serving(era: str, **options: Any) -> Tools:
    """The tools of a server of this era, which is their ``server``."""
    return Tools(ERAS[era](**options))
