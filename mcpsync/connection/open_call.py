"""A call whose answer is of a type that an extension adds, in the hands of that extension.

Specification: `basic/index`, "ResultType" (2026-07-28).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, Mapping, Optional, Protocol

if TYPE_CHECKING:
    from mcpsync.connection.call import Call

__all__ = ["NO_RESULT_TYPES", "OpenCall", "ResultFunction", "ResultTypes"]


class _Further(Protocol):
    def request(self, call: Call, method: str, params: Mapping[str, Any]) -> Dict[str, Any]: ...

    def answers(self, call: Call, requests: Mapping[str, Any]) -> Dict[str, Any]: ...

    def pause(self, call: Call, seconds: float) -> None: ...

    def tell(self, call: Call, method: str, params: Mapping[str, Any]) -> None: ...


class OpenCall:
    """What can be done on behalf of a call, within its time, on the thread that goes on with it.

    Each method raises what ends the call meanwhile: :class:`~mcpsync.RequestTimeout`,
    :class:`~mcpsync.RequestCancelled`, :class:`~mcpsync.ConnectionLost`, :class:`~mcpsync.ClientClosed`. It may be
    caught to tidy up, but the call is over then whatever is returned.

    :ivar method: of the call
    :ivar params: that its caller gave, without ``_meta``
    """

    def __init__(self, further: _Further, call: Call, params: Mapping[str, Any]) -> None:
        self.method = call.method
        self.params = params
        self._further = further
        self._call = call

    def request(self, method: str, params: Optional[Mapping[str, Any]] = None) -> Dict[str, Any]:
        """Make one more request, over the same connection and with the same ``_meta`` and what the
        parameters add to it; gives its result object.

        :raises RpcError: what the server answered
        """
        return self._further.request(self._call, method, params or {})

    def wait(self, seconds: float) -> None:
        """Let some time pass."""
        self._further.pause(self._call, seconds)

    def ask(self, requests: Mapping[str, Any]) -> Dict[str, Any]:
        """Have the client's handlers answer an ``inputRequests`` object; gives the ``inputResponses``.

        :raises InvalidMessage: it asks for something that no client answers
        :raises RpcError: nobody here answers such a question, or the one who does has refused
        """
        return self._further.answers(self._call, requests)

    def tell(self, method: str, params: Optional[Mapping[str, Any]] = None) -> None:
        """Have one more request made that nobody waits for, over the same connection; also when the call is over, as to
        tidy up. It raises nothing, and its answer is looked at by nobody.
        """
        self._further.tell(self._call, method, params or {})


ResultFunction = Callable[[Dict[str, Any], OpenCall], Mapping[str, Any]]
"""Makes of a result of an extension's own type the result of the call."""
ResultTypes = Mapping[str, Optional[ResultFunction]]
"""By ``resultType``; None: the caller gets the result as it came."""
NO_RESULT_TYPES: ResultTypes = {}
