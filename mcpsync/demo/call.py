"""One request that is being worked on, as the tools see it.

A tool is a plain function that blocks. What it does through its call looks the same in both eras of the protocol:
in the legacy era a question is a request to the client whose answer is waited for; in the modern era the call ends
with the question as its result, and the client repeats it with the answer (specification 2026-07-28, Patterns /
Multi Round-Trip Requests).
"""

from __future__ import annotations

import queue
import threading
from typing import Any, Dict, Optional, Set

from mcpsync.demo.wire import RpcError, Wire

__all__ = ["LOG_LEVELS", "Call", "Cancelled", "InputRequired", "LegacyCall", "ModernCall", "Session", "ToolFailed"]

LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
LOG_LEVEL_KEY = "io.modelcontextprotocol/logLevel"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
INVALID_PARAMS = -32602
MISSING_CLIENT_CAPABILITY = -32021

_CAPABILITY_FOR = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}
_CANCEL: Dict[str, Any] = {}


def _client_offers(capabilities: Dict[str, Any], method: str) -> bool:
    declared = capabilities.get(_CAPABILITY_FOR[method])
    if method == "elicitation/create" and declared:
        return "form" in declared  # an empty object means forms, too
    return declared is not None


class Cancelled(Exception):
    """The client does not want the answer any more."""


class ToolFailed(Exception):
    """The tool could not do its work; the model gets to read why."""


class InputRequired(Exception):
    """The answer to a question is needed first (modern era)."""

    def __init__(self, result: Dict[str, Any]) -> None:
        super().__init__("input required")
        self.result = result


class Call:
    """What both eras share."""

    def __init__(self, wire: Wire, request_id: Any, method: str, params: Dict[str, Any]) -> None:
        self.wire = wire
        self.request_id = request_id
        self.method = method
        self.params = params
        meta = params.get("_meta")
        self.meta: Dict[str, Any] = meta if isinstance(meta, dict) else {}
        self.inbox: queue.SimpleQueue[Dict[str, Any]] = queue.SimpleQueue()

    def cancel(self) -> None:
        """Wake the tool, wherever it waits, and make it stop."""
        self.inbox.put(_CANCEL)

    def pause(self, seconds: float) -> None:
        """Wait, unless the call is cancelled meanwhile."""
        try:
            self.inbox.get(timeout=max(0.0, seconds))
        except queue.Empty:
            return
        raise Cancelled  # nothing else is ever put there while no question is open

    def progress(self, done: float, total: float, message: str) -> None:
        """Tell how far the work is, if the client wants to know."""
        token = self.meta.get("progressToken")
        if token is not None:
            progress = {"progressToken": token, "progress": done, "total": total, "message": message}
            self.wire.notify("notifications/progress", progress)

    def log(self, level: str, text: str) -> None:
        """Send a log message, if the client wants those of this level."""
        least = self.least_log_level()
        if least is not None and LOG_LEVELS.index(level) >= LOG_LEVELS.index(least):
            self.wire.notify("notifications/message", {"level": level, "logger": "demo", "data": text})

    def least_log_level(self) -> Optional[str]:
        """The level from which on the client wants log messages; None for none at all."""
        raise NotImplementedError

    def ask(self, key: str, method: str, params: Dict[str, Any]) -> Dict[str, Any]:
        """The client's answer to a question: elicitation, sampling or roots.

        :param key: names the question among those of this call
        """
        raise NotImplementedError


class Session:
    """What ``initialize`` settled, for as long as this process lives (legacy era)."""

    def __init__(self, revision: str, capabilities: Dict[str, Any]) -> None:
        self.revision = revision
        self.capabilities = capabilities
        self.log_level = "info"
        self.subscribed: Set[str] = set()
        self._lock = threading.Lock()
        self._questions: Dict[int, Call] = {}
        self._asked = 0

    def open_question(self, call: Call) -> int:
        """The id for a new question of this call."""
        with self._lock:
            self._asked += 1
            self._questions[self._asked] = call
            return self._asked

    def close_question(self, question: Any) -> Optional[Call]:
        """The call that asked it; None if there is no such question."""
        with self._lock:
            return self._questions.pop(question, None) if isinstance(question, int) else None


class LegacyCall(Call):
    """A request of a session."""

    def __init__(self, wire: Wire, request_id: Any, method: str, params: Dict[str, Any], session: Session) -> None:
        super().__init__(wire, request_id, method, params)
        self.session = session

    def least_log_level(self) -> Optional[str]:
        """What ``logging/setLevel`` said."""
        return self.session.log_level

    def ask(self, key: str, method: str, params: Dict[str, Any]) -> Dict[str, Any]:
        """Send the question and wait for its answer."""
        if not _client_offers(self.session.capabilities, method):
            raise ToolFailed("this needs a client that offers %s" % _CAPABILITY_FOR[method])
        question = self.session.open_question(self)
        self.wire.request(question, method, params)
        answer = self.inbox.get()
        if answer is _CANCEL:
            if self.session.close_question(question):
                reason = "the request that asked was cancelled"
                self.wire.notify("notifications/cancelled", {"requestId": question, "reason": reason})
            raise Cancelled
        result = answer.get("result")
        if not isinstance(result, dict):
            raise ToolFailed("the client did not answer the question: %s" % (answer.get("error"),))
        return result


class ModernCall(Call):
    """A request that stands alone and says in its ``_meta`` all there is to know."""

    def __init__(self, wire: Wire, request_id: Any, method: str, params: Dict[str, Any]) -> None:
        super().__init__(wire, request_id, method, params)
        if self.meta.get(LOG_LEVEL_KEY, "info") not in LOG_LEVELS:
            raise RpcError(INVALID_PARAMS, "%s is no log level" % LOG_LEVEL_KEY)
        # The client must send this back as it is. It decides nothing here, so it needs no signature.
        self._state = "demo state of %s %s: \u2713 \u201c\\\u201d" % (method, params.get("name"))
        if params.get("requestState", self._state) != self._state:
            raise RpcError(INVALID_PARAMS, "requestState is not the one that this server gave for this request")

    def least_log_level(self) -> Optional[str]:
        """What this very request says."""
        return self.meta.get(LOG_LEVEL_KEY)

    def ask(self, key: str, method: str, params: Dict[str, Any]) -> Dict[str, Any]:
        """Take the answer that came with the request, or end the call with the question."""
        if not _client_offers(self.meta[CAPABILITIES_KEY], method):
            capability = _CAPABILITY_FOR[method]
            needs: Dict[str, Any] = {"requiredCapabilities": {capability: {}}}
            raise RpcError(MISSING_CLIENT_CAPABILITY, "this needs a client that offers %s" % capability, needs)
        responses = self.params.get("inputResponses")
        answer = responses.get(key) if isinstance(responses, dict) else None
        if isinstance(answer, dict):
            return answer
        questions = {key: {"method": method, "params": params}}
        raise InputRequired({"resultType": "input_required", "inputRequests": questions, "requestState": self._state})
