"""What servers may ask for: completions by the user's model, and answers of the user.

A completion costs money and puts a server's words before the model; a question can be a lure. So each request passes
a gate, per server: ``off``, ``ask`` somebody first, or ``allow`` within limits. Whatever comes of it, it can be shown
with its server and content.

Specification: `client/sampling` and `client/elicitation`, "User Interaction Model" and "Security Considerations".
"""

from __future__ import annotations

import logging
import time
from collections import deque
from dataclasses import dataclass
from threading import RLock
from typing import Any, Callable, Deque, Dict, Mapping, Optional, Tuple

from mcpsync.errors import ConfigError, RpcError, described

__all__ = ["GATED", "Gate", "Gatekeeper", "ServerRequest"]

logger = logging.getLogger("mcpsync")

#: The options of a client that are gated.
GATED = ("sampling", "elicitation")

_MODES = ("off", "ask", "allow")
_REJECTED = -1
"""The code for a request that the user rejected (specification: client/sampling, "Error Handling")."""


@dataclass(frozen=True)
class Gate:
    """What one kind of request may do.

    :ivar mode: ``off``: the capability is not declared and each request refused; ``ask``: somebody is asked before
        each; ``allow``: nobody is
    :ivar calls: the most requests of a server within ``seconds``, whatever the mode; None: no limit
    :ivar tokens: the most tokens that a server may have asked for within ``seconds``, sampling alone; None: no limit
    :ivar seconds: the time over which ``calls`` and ``tokens`` are counted
    """

    mode: str = "ask"
    calls: Optional[int] = 20
    tokens: Optional[int] = 100_000
    seconds: float = 3600.0

    def __post_init__(self) -> None:
        if self.mode not in _MODES:
            raise ConfigError("a gate is off, ask or allow, not %.60r" % (self.mode,))
        for name in ("calls", "tokens", "seconds"):
            value = getattr(self, name)
            if value is None and name != "seconds":
                continue
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
                raise ConfigError("a gate's %s is a positive number, not %.60r" % (name, value))


#: A question to the user is shown to the user anyway; a completion is not.
DEFAULT_GATES = {"sampling": Gate("ask"), "elicitation": Gate("allow", calls=100)}


@dataclass(frozen=True)
class ServerRequest:
    """What a server asks for.

    :ivar server: its name in the config
    :ivar kind: ``sampling`` or ``elicitation``
    :ivar request: a :class:`~mcpsync.types.SamplingRequest` or :class:`~mcpsync.types.ElicitationRequest`
    :ivar trusted: the config trusts the server
    """

    server: str
    kind: str
    request: Any
    trusted: bool

    @property
    def text(self) -> str:
        """What of it a person should read: the server's words in full, with the URL or the fields that it wants."""
        if self.kind == "elicitation":
            lines = [self.request.message]
            if self.request.url is not None:
                lines.append("URL: %s" % self.request.url)
            wanted = (self.request.requested_schema or {}).get("properties")
            if isinstance(wanted, Mapping) and wanted:
                lines.append("asks for: %s" % ", ".join(map(str, wanted)))
            return "\n".join(lines)
        lines = ["[system] %s" % self.request.system_prompt] if self.request.system_prompt else []
        for message in self.request.messages:
            others = [block.type for block in message.blocks if block.type != "text"]
            lines.append("[%s] %s%s" % (message.role, message.text, "".join(" [%s]" % kind for kind in others)))
        return "\n".join([*lines, "[at most %d tokens]" % self.request.max_tokens])


class _Account:
    """What a server has asked for lately."""

    def __init__(self) -> None:
        self._spent: Deque[Tuple[float, int]] = deque()

    def charge(self, gate: Gate, tokens: int, now: float) -> Optional[str]:
        """Count a request; gives the limit that it would exceed, and then counts nothing."""
        while self._spent and now - self._spent[0][0] >= gate.seconds:
            self._spent.popleft()
        if gate.calls is not None and len(self._spent) >= gate.calls:
            return "%d requests within %g s" % (gate.calls, gate.seconds)
        if gate.tokens is not None and tokens + sum(each for _, each in self._spent) > gate.tokens:
            return "%d tokens within %g s" % (gate.tokens, gate.seconds)
        self._spent.append((now, tokens))
        return None


class Gatekeeper:
    """The gates of a host.

    :param gates: by kind; what is missing has the default: ``ask`` for sampling, ``allow`` for elicitation, whose
        handler shows the user what is asked
    :param approve: gets a :class:`ServerRequest`, on a thread for handlers, and gives True to let it pass
    :param shown: gets each :class:`ServerRequest` as it comes, and whether it passed
    :param clock: seconds
    :raises ConfigError: there is no such gate
    """

    def __init__(
        self,
        gates: Mapping[str, Gate],
        approve: Optional[Callable[[ServerRequest], Any]] = None,
        shown: Optional[Callable[[ServerRequest, bool], Any]] = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        for kind, gate in gates.items():
            if kind not in GATED:
                raise ConfigError("there is no gate for %.60r: known are %s" % (kind, " and ".join(GATED)))
            if not isinstance(gate, Gate):
                raise ConfigError("the gate for %s is a mcpsync.host.Gate, not %s" % (kind, type(gate).__name__))
        self._gates: Dict[str, Gate] = {**DEFAULT_GATES, **gates}
        self._approve = approve
        self._shown = shown
        self._clock = clock
        self._accounts: Dict[Tuple[str, str], _Account] = {}
        self.after_fork()

    def after_fork(self) -> None:
        """In a forked child, and at first."""
        self._lock = RLock()  # guards the accounts

    def gated(self, server: str, trusted: bool, options: Mapping[str, Any]) -> Dict[str, Any]:
        """The options of a client with its handlers behind the gates."""
        behind = dict(options)
        for kind in GATED:
            handler = behind.get(kind)
            if handler is None:
                continue
            if self._gates[kind].mode == "off":
                del behind[kind]
            else:
                behind[kind] = self._behind(kind, server, trusted, handler)
        return behind

    def _behind(self, kind: str, server: str, trusted: bool, handler: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def ask(request: Any) -> Any:
            obstacle = self._obstacle(ServerRequest(server, kind, request, trusted))
            if obstacle is not None:
                logger.warning("mcpsync: host: a request of server %r for %s was refused: %s", server, kind, obstacle)
                return _refusal(kind)
            return handler(request)

        return ask

    def _obstacle(self, asked: ServerRequest) -> Optional[str]:
        """Why the request does not pass; None if it does."""
        obstacle = self._over_limit(asked) or self._unapproved(asked)
        if self._shown is not None:
            try:
                self._shown(asked, obstacle is None)
            except Exception as error:  # it is the user's, and what cannot be shown does not pass
                obstacle = obstacle or "it could not be shown: %s" % described(error)
        return obstacle

    def _over_limit(self, asked: ServerRequest) -> Optional[str]:
        tokens = asked.request.max_tokens if asked.kind == "sampling" else 0
        with self._lock:
            account = self._accounts.setdefault((asked.server, asked.kind), _Account())
            limit = account.charge(self._gates[asked.kind], max(0, tokens), self._clock())
        return None if limit is None else "the limit is %s" % limit

    def _unapproved(self, asked: ServerRequest) -> Optional[str]:
        if self._gates[asked.kind].mode == "allow":
            return None
        if self._approve is None:
            return "nobody can be asked: give the host approve_request, or a gate that allows it"
        try:
            answer = self._approve(asked)
        except Exception as error:  # the callback is the user's: whatever it raises is no agreement
            return "the callback raised %s" % described(error)
        return None if answer is True else "the answer was no"


def _refusal(kind: str) -> Any:
    """The answer for the server, which is not told why."""
    if kind == "sampling":
        raise RpcError.of(_REJECTED, "the user rejected the sampling request")
    from mcpsync.types import ElicitationResult

    return ElicitationResult.decline()
