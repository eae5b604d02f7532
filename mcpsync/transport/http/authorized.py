"""An endpoint whose requests are signed, and sent again when a refusal could be mended.

Specification: `basic/authorization`, "Access Token Usage" and "Error Handling".
"""

from __future__ import annotations

import threading
from typing import Any, Iterator, Mapping, Optional, Tuple

from mcpsync.deadline import Deadline
from mcpsync.errors import ConfigError
from mcpsync.transport.http.authorization import Auth, Challenge
from mcpsync.transport.http.endpoint import Endpoint, Target, headers_by_name
from mcpsync.transport.http.exchange import TIMED_OUT, Exchange
from mcpsync.transport.http.response import Response

__all__ = ["AuthorizedEndpoint"]

_REFUSALS = (401, 403)
_MOST_CHALLENGES = 3
_BODY = 65536


class AuthorizedEndpoint(Endpoint):
    """One URL, and who signs the requests to it.

    :param url: of the server
    :param auth: signs
    :param options: as for :class:`Endpoint`
    :raises ConfigError: there is another ``Authorization`` beside that one
    """

    def __init__(self, url: str, auth: Auth, **options: Any) -> None:
        super().__init__(url, **options)
        headers, session = options.get("headers"), options.get("session")
        if isinstance(headers, Mapping) and any(str(name).lower() == "authorization" for name in headers):
            raise ConfigError("both auth and an Authorization header: a request has one", server=self._server)
        if session is not None and session.auth is not None:
            raise ConfigError("both auth and a session with an auth of its own: give one", server=self._server)
        self._auth = auth
        self._checked: Mapping[str, str] = {}

    def _send(
        self, exchange: Exchange, method: str, target: Target, body: Optional[bytes], headers: Mapping[str, str]
    ) -> Response:
        auth = self._auth
        deadline = _Patience(exchange)
        earlier: Tuple[Challenge, ...] = ()
        while True:
            given = auth.headers(method, target.url, deadline)
            if given is not self._checked:
                headers_by_name(given, self._server)
                self._checked = given
            response = super()._send(exchange, method, target, body, {**headers, **given})
            try:
                auth.observed(target.url, response.headers)
            except BaseException:
                response.close()
                raise
            if response.status not in _REFUSALS or len(earlier) == _MOST_CHALLENGES:
                return response
            refused = _Refused(response, exchange)
            challenge = Challenge(
                response.status, target.url, method, response.headers, refused.start(_BODY), given, earlier
            )
            again = auth.challenged(challenge, deadline)
            if not again and deadline.expired:
                exchange.abort(TIMED_OUT)  # as will happen anyway, at this very moment
            exchange.check()
            if not again:
                return refused
            exchange.began = False  # for all that was sent so far, nothing was executed
            earlier = (*earlier, challenge)


class _Patience(Deadline):
    """The deadline of an exchange, whose waits end with the exchange as well."""

    __slots__ = ("_exchange",)

    def __init__(self, exchange: Exchange) -> None:
        self.at = exchange.deadline.at
        self._exchange = exchange

    def wait(self, event: threading.Event) -> bool:
        """
        :raises Aborted: the exchange was ended
        """
        self._exchange.wait_for(event, self.remaining())
        return event.is_set()


class _Refused(Response):
    """A refusal whose body, as far as anybody wants to know it, has been read."""

    def __init__(self, response: Response, exchange: Exchange) -> None:
        super().__init__(response, exchange)
        try:
            self._body = response.start(_BODY)
        finally:
            response.close()

    def _pieces(self) -> Iterator[bytes]:
        if self._body:
            yield self._body

    def close(self) -> None:
        """Closed already."""
