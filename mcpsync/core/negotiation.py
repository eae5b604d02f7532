"""Finding out what a server speaks: the era probe and the ``initialize`` handshake, as one state machine.

It is fed with what happened and says what to do next; the connection does it. Requests are named by their
method, since at most one of each is in flight.

Specification: `basic/versioning` and `basic/transports/stdio`, "Backward Compatibility" (2026-07-28);
`basic/lifecycle`, "Initialization" (2025-11-25 and earlier).
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Set, Union

from mcpsync.core import jsonrpc
from mcpsync.core.era import (
    LEGACY,
    MODERN,
    REVISIONS,
    SERVER_INFO_KEY,
    Revision,
    declared,
    newest_common,
)
from mcpsync.errors import AuthError, InvalidMessage, McpError, RpcError, VersionMismatch

__all__ = ["Agreed", "Fail", "Negotiation", "Restart", "Send", "Step"]

DISCOVER = "server/discover"
INITIALIZE = "initialize"

_MODERN_ERRORS = (jsonrpc.UNSUPPORTED_VERSION, jsonrpc.HEADER_MISMATCH, jsonrpc.MISSING_CAPABILITY)


class Send(NamedTuple):
    """Send this request, under this revision.

    :ivar silence: seconds after which :meth:`Negotiation.silent` wants to know that no answer came; None: never
    """

    method: str
    params: Dict[str, Any]
    revision: Optional[Revision]
    silence: Optional[float] = None


class Restart(NamedTuple):
    """The process died of the probe: start it again, then send this."""

    then: Send


class Agreed(NamedTuple):
    """Both sides speak this.

    :ivar server: what the server said: capabilities, serverInfo, instructions
    :ivar handshake: ``notifications/initialized`` has to follow
    :ivar certain: the server said so itself, so the verdict may be remembered
    """

    revision: Revision
    server: Dict[str, Any]
    handshake: bool
    certain: bool


class Fail(NamedTuple):
    """It cannot be done, and why."""

    error: McpError


Step = Union[Send, Restart, Agreed, Fail]


def offered_revisions(protocol: str) -> List[str]:
    """The revisions that a ``protocol`` argument stands for: ``auto``, ``legacy``, ``modern`` or one by name.

    :raises ValueError: it is none of them
    """
    if protocol == "auto":
        return LEGACY + MODERN
    if protocol == "legacy":
        return LEGACY
    if protocol == "modern":
        return MODERN
    if protocol in REVISIONS:
        return [protocol]
    raise ValueError(
        "protocol must be 'auto', 'legacy', 'modern' or one of %s, not %r" % (", ".join(REVISIONS), protocol)
    )


class Negotiation:
    """One negotiation, from the first request to :class:`Agreed` or :class:`Fail`.

    :param protocol: ``auto``, ``legacy``, ``modern`` or a revision by name
    :param client_info: ``clientInfo`` as it travels
    :param capabilities: the client's capabilities as they travel
    :param remembered: what an earlier negotiation with the same server found: ``legacy``, ``modern`` or None
    :param silence: seconds to wait for the probe before ``initialize`` is tried as well
    """

    def __init__(
        self,
        protocol: str,
        client_info: Mapping[str, Any],
        capabilities: Mapping[str, Any],
        remembered: Optional[str] = None,
        silence: float = 2.0,
    ) -> None:
        self._ours = offered_revisions(protocol)
        self._modern = [name for name in self._ours if name in MODERN]
        self._legacy = [name for name in self._ours if name in LEGACY]
        self._client_info = client_info
        self._capabilities = capabilities
        self._remembered = remembered if remembered == "legacy" and self._legacy else None
        self._silence = silence
        self._in_flight: Set[str] = set()
        self._discovered_twice = False
        self._initialized_twice = False
        self._refusal: Optional[McpError] = None

    def start(self) -> Step:
        """The first request."""
        if self._modern and self._remembered is None:
            return self._discover(self._silence if self._legacy else None)
        return self._initialize()

    def silent(self) -> Optional[Step]:
        """No answer to the probe in time: ask the old way as well."""
        if not self._legacy or self._in_flight != {DISCOVER}:
            return None
        return self._initialize() if self._refusal is None else Fail(self._refusal)

    def died(self, cause: McpError) -> Step:
        """The process ended. If it may have died of the probe, it is asked the old way in its next life."""
        died_of_probe = DISCOVER in self._in_flight and not self._discovered_twice
        self._in_flight.clear()
        if died_of_probe and self._legacy:
            return Restart(self._initialize())
        return Fail(cause)

    def answered(self, method: str, result: Optional[Dict[str, Any]], failure: Optional[McpError]) -> Optional[Step]:
        """An answer came. None: go on waiting for the other request."""
        self._in_flight.discard(method)
        if isinstance(failure, AuthError):
            return Fail(failure)  # whoever is not signed in learns nothing about the server from asking otherwise
        if method == DISCOVER:
            return self._discovered(result, failure or InvalidMessage("no answer to server/discover"))
        return self._initialized(result, failure or InvalidMessage("no answer to initialize"))

    # -- modern ------------------------------------------------------------------------------------------------

    def _discover(self, silence: Optional[float]) -> Send:
        self._in_flight.add(DISCOVER)
        return Send(DISCOVER, {}, REVISIONS[self._modern[-1]], silence)

    def _discovered(self, result: Optional[Dict[str, Any]], failure: McpError) -> Optional[Step]:
        if result is not None:
            theirs = result.get("supportedVersions")
            if isinstance(theirs, list) and result.get("resultType", "complete") == "complete":
                return self._choose(theirs, result)
            failure = InvalidMessage("the answer to server/discover has no supportedVersions")
        if isinstance(failure, RpcError) and failure.code in _MODERN_ERRORS:
            supported = _supported(failure)
            if failure.code == jsonrpc.UNSUPPORTED_VERSION and supported is not None:
                return self._refused_version(supported, failure)
            return Fail(failure)
        if self._legacy:
            return self._try_legacy()
        return Fail(self._not_modern(failure) if isinstance(failure, RpcError) else failure)

    def _choose(self, theirs: List[Any], result: Dict[str, Any]) -> Optional[Step]:
        modern = newest_common(self._modern, theirs)
        if modern is not None:
            server = dict(result)
            meta = result.get("_meta")
            if isinstance(meta, dict) and SERVER_INFO_KEY in meta:
                server["serverInfo"] = meta[SERVER_INFO_KEY]
            return Agreed(REVISIONS[modern], server, handshake=False, certain=True)
        legacy = newest_common(self._legacy, theirs)
        return Fail(self._mismatch(theirs)) if legacy is None else self._try_legacy(legacy)

    def _refused_version(self, theirs: List[Any], failure: RpcError) -> Optional[Step]:
        modern = newest_common(self._modern, theirs)
        if modern is not None and not self._discovered_twice:
            # it refused the very revision that it names: that is answered by asking once more
            self._discovered_twice = True
            return self._discover(None)
        legacy = newest_common(self._legacy, theirs)
        if legacy is not None:
            return self._try_legacy(legacy)
        return Fail(failure if modern is not None else self._mismatch(theirs))

    # -- legacy ------------------------------------------------------------------------------------------------

    def _try_legacy(self, revision: Optional[str] = None) -> Optional[Step]:
        """The probe has led nowhere; ``initialize`` may be under way already, or have been refused."""
        if INITIALIZE in self._in_flight:
            return None
        if self._refusal is not None:
            if revision is None:
                return Fail(self._refusal)
            self._initialized_twice = True
        return self._initialize(revision)

    def _initialize(self, revision: Optional[str] = None) -> Send:
        offered = revision or self._legacy[-1]
        params = {
            "protocolVersion": offered,
            "capabilities": declared(self._capabilities, REVISIONS[offered]),
            "clientInfo": dict(self._client_info),
        }
        self._in_flight.add(INITIALIZE)
        return Send(INITIALIZE, params, None)

    def _initialized(self, result: Optional[Dict[str, Any]], failure: McpError) -> Optional[Step]:
        if result is not None:
            chosen = result.get("protocolVersion")
            if chosen in self._legacy:
                # with a probe still unanswered, or none allowed, the server may be a modern one all the same
                certain = bool(self._modern) and DISCOVER not in self._in_flight
                return Agreed(REVISIONS[chosen], result, handshake=True, certain=certain)
            if isinstance(chosen, str) and chosen not in self._ours:
                failure = self._mismatch([chosen])
            else:
                failure = InvalidMessage(
                    "the answer to initialize has no usable protocolVersion: %s" % jsonrpc.shown(chosen)
                )
        self._refusal = failure
        if DISCOVER in self._in_flight:
            return None  # a slow modern server: its answer to the probe decides
        if self._remembered is not None and self._modern:
            self._remembered = None  # it was legacy once, it is no more
            return self.start()
        supported = _supported(failure)
        legacy = newest_common(self._legacy, supported)
        if legacy is not None and not self._initialized_twice:
            self._initialized_twice = True
            return self._initialize(legacy)
        if supported is not None and newest_common(self._ours, supported) is None:
            return Fail(self._mismatch(supported))
        return Fail(failure)

    def _not_modern(self, refusal: RpcError) -> VersionMismatch:
        return VersionMismatch(
            "the server does not speak %s, only an earlier revision: it answered server/discover with: %.200s"
            % (" or ".join(self._ours), refusal),
            ours=list(self._ours),
            theirs=[],
        )

    def _mismatch(self, theirs: List[Any]) -> VersionMismatch:
        names = [name[:40] if isinstance(name, str) else jsonrpc.shown(name, 40) for name in theirs[:20]]
        return VersionMismatch(
            "no protocol revision in common: the server speaks %s, this client was to speak %s"
            % (", ".join(names) or "none", ", ".join(self._ours)),
            ours=list(self._ours),
            theirs=names,
        )


def _supported(failure: McpError) -> Optional[List[Any]]:
    """The revisions that an error names, whatever its code."""
    data = failure.data if isinstance(failure, RpcError) else None
    supported = data.get("supported") if isinstance(data, dict) else None
    return supported if isinstance(supported, list) else None
