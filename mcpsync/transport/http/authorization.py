"""What the HTTP transports know of signing in: headers for each request, and what to do when one is refused.

Whatever fits :class:`Auth` can sign a client's requests; ``mcpsync.auth`` has one that follows the specification.

Specification: `basic/authorization`.
"""

from __future__ import annotations

from typing import Mapping, NamedTuple, Protocol, Tuple

from mcpsync.deadline import Deadline

__all__ = ["Auth", "Challenge"]


class Challenge(NamedTuple):
    """A refusal: an answer with status 401 or 403, which proves that nothing was executed.

    :ivar status: 401 or 403
    :ivar url: that the request went to
    :ivar method: of the request, as ``POST``
    :ivar headers: of the answer; names in any case are found
    :ivar body: its start, 64 KB at most
    :ivar sent: the headers that :meth:`Auth.headers` gave for the request that was refused
    :ivar earlier: the refusals of the same request before this one
    """

    status: int
    url: str
    method: str
    headers: Mapping[str, str]
    body: bytes
    sent: Mapping[str, str]
    earlier: Tuple[Challenge, ...] = ()

    def __repr__(self) -> str:
        return "Challenge(%d to %s %s)" % (self.status, self.method, self.url)  # the rest may hold secrets


class Auth(Protocol):
    """Signs requests. Any number of threads may call at a time.

    The deadlines that these methods get are those of the request. Whoever waits in one does so with
    :meth:`Deadline.wait <mcpsync.deadline.Deadline.wait>`, which also ends, by an exception that has to be let
    through, when the request is cancelled or its connection closed.
    """

    def headers(self, method: str, url: str, deadline: Deadline) -> Mapping[str, str]:
        """The headers for one request, as ``Authorization``; they win over those of the user.

        Called for each request and each redirect that is followed, so it has to be quick when nothing is due.

        :param method: as ``POST``
        :param url: that the request goes to; on the origin of the server
        :raises AuthError: there are none: nothing is sent then
        """

    def challenged(self, challenge: Challenge, deadline: Deadline) -> bool:
        """A request was refused. True: send it again, with new headers.

        Asked three times at most for one request, so whoever can help only once looks at the earlier refusals. False:
        the refusal goes to whoever made the request.

        :raises AuthError: in place of the refusal
        """

    def observed(self, url: str, headers: Mapping[str, str]) -> None:
        """The headers of any answer, before its body is read: quick."""
