"""One URL and how it is reached: proxies, certificates, cookies, headers, all settled once per connection.

``requests`` at the edges: sessions, adapters, environment. The hot path goes straight to the ``urllib3`` pool of the
session's own adapter, which saves two thirds of what a ``Session.post`` costs. Where the user's session has an
adapter, auth or hooks of its own, these see every request instead.
"""

from __future__ import annotations

import io
import ipaddress
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple, Union
from urllib.parse import urljoin, urlsplit

import requests
import requests.adapters
import urllib3
from requests.cookies import extract_cookies_to_jar, get_cookie_header

from mcpsync.errors import ConfigError, HttpError, MessageTooLarge
from mcpsync.transport.http.exchange import Exchange, StaleConnection, make_abortable

__all__ = ["Endpoint", "HeaderSource", "Response"]

HeaderSource = Union[Mapping[str, str], Callable[[], Mapping[str, str]], None]

_CHUNK = 65536
_BIG_BODY = 1_000_000
_PLAIN_SEND = requests.adapters.HTTPAdapter.send  # kept, since tools that fake answers replace it
_MOST_REDIRECTS = 5
_KEEPING_METHOD = (307, 308)
_REDIRECTS = (301, 302, 303, *_KEEPING_METHOD)


class Response:
    """A response whose body is read by the thread that drives its exchange.

    :ivar status: HTTP status
    :ivar headers: by name, in any case
    """

    def __init__(self, raw: Any, exchange: Exchange) -> None:
        self._raw = raw
        self._exchange = exchange
        self._ended = False
        self.status: int = raw.status
        self.headers: Mapping[str, str] = raw.headers

    @property
    def content_type(self) -> str:
        """The media type, without parameters, in lower case."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def chunks(self) -> Iterator[bytes]:
        """The body as it comes, decompressed.

        :raises Aborted: the exchange was ended meanwhile
        """
        read1 = getattr(self._raw, "read1", None)
        if read1 is None:  # urllib3 before 2.2
            pieces: Iterator[bytes] = self._raw.stream(_CHUNK)
        else:
            pieces = iter(lambda: read1(_CHUNK), b"")
        for piece in pieces:
            self._exchange.check()
            if piece:
                yield piece
        self._exchange.check()
        self._ended = True

    def body(self, limit: int) -> bytes:
        """The whole body.

        :raises MessageTooLarge: it is longer than the limit
        """
        pieces: List[bytes] = []
        left = limit
        for piece in self.chunks():
            left -= len(piece)
            if left < 0:
                raise MessageTooLarge(
                    "the body is longer than the limit of %d bytes; raise the limit if this server's messages are "
                    "meant to be that large" % limit,
                    limit=limit,
                )
            pieces.append(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def excerpt(self, limit: int = 300) -> str:
        """The start of the body as a line of text."""
        pieces: List[bytes] = []
        for piece in self.chunks():
            pieces.append(piece)
            if sum(map(len, pieces)) >= limit:
                break
        text = b"".join(pieces)[:limit].decode("utf-8", "replace")
        return " ".join("".join(c if c.isprintable() else " " for c in text).split())

    def close(self) -> None:
        """Give the connection back: to the pool if the body was read to its end, to the system if not."""
        if not self._ended or self._exchange.reason is not None:
            self._raw.close()
        self._raw.release_conn()


class Endpoint:
    """One URL.

    :param url: of the server
    :param server: its name, for errors
    :param session: the user's own; None: one is made
    :param headers: for every request: a mapping, or a function that is called for each
    :param verify: False, or the path of a CA bundle; None: as the environment has it
    :param cert: path of a client certificate, or of certificate and key
    :param proxies: by scheme; None: as the environment has it, and none for loopback addresses
    :param connections: kept open at a time
    :param connect_timeout: seconds after which a connection attempt is given up whatever the deadline says
    :raises ConfigError: the URL is none that can be used
    """

    def __init__(
        self,
        url: str,
        *,
        server: str = "server",
        session: Optional[requests.Session] = None,
        headers: HeaderSource = None,
        verify: Union[bool, str, None] = None,
        cert: Union[str, Tuple[str, str], None] = None,
        proxies: Optional[Mapping[str, str]] = None,
        connections: int = 64,
        connect_timeout: float = 60.0,
    ) -> None:
        self.url = _checked_url(url)
        self._server = server
        self._headers = headers
        self._owned = session is None
        self._session = _own_session(connections) if session is None else session
        if proxies is None and _is_loopback(self.url):
            proxies = {"http": "", "https": "", "all": ""}
        self._settings: Dict[str, Any] = dict(
            self._session.merge_environment_settings(self.url, dict(proxies or {}), True, verify, cert)
        )
        self._timeout = urllib3.Timeout(connect=connect_timeout, read=None)
        self._connect_timeout = connect_timeout
        self._prepared = self._session.prepare_request(requests.Request("POST", self.url))
        self._base = dict(self._prepared.headers)
        self._base.pop("Content-Length", None)
        self._base.pop("Cookie", None)
        self._adapter: Any = self._session.get_adapter(self.url)
        self._direct = self._is_direct()
        self._pool: Any = None
        self._target = ""

    def request(
        self, exchange: Exchange, method: str, body: Optional[bytes], headers: Mapping[str, str], url: str = ""
    ) -> Response:
        """Send a request and give the response as soon as its headers are there.

        The exchange has to be current. Redirects to the same origin that keep the method are followed.

        :param url: of the same origin; None: the endpoint's
        :raises Aborted: the exchange was ended
        :raises HttpError: a redirect that is not followed
        :raises OSError, urllib3.exceptions.HTTPError, requests.RequestException: the network failed
        """
        url = url or self.url
        for _ in range(_MOST_REDIRECTS):
            response = self._send(exchange, method, url, body, self._all_headers(headers))
            if response.status not in _REDIRECTS:
                return response
            url = self._redirect(response, url)
        raise HttpError("more than %d redirects" % _MOST_REDIRECTS, status=response.status, server=self._server)

    def close(self) -> None:
        """Close the connections, unless they are the user's session's."""
        if self._owned:
            self._session.close()

    # -- requests ----------------------------------------------------------------------------------------------

    def _all_headers(self, headers: Mapping[str, str]) -> Dict[str, str]:
        merged = dict(self._base)
        own = self._headers() if callable(self._headers) else self._headers
        if own:
            merged.update(_checked_headers(own, self._server))
        merged.update(headers)
        return merged

    def _is_direct(self) -> bool:
        """Whether nothing of the user's would be passed over by going straight to the pool."""
        adapter, session = self._adapter, self._session
        return (
            type(adapter) is requests.adapters.HTTPAdapter
            and type(adapter).send is _PLAIN_SEND
            and session.auth is None
            and not any(session.hooks.values())
        )

    def _send(
        self, exchange: Exchange, method: str, url: str, body: Optional[bytes], headers: Dict[str, str]
    ) -> Response:
        while True:
            try:
                if self._direct:
                    raw = self._send_directly(method, url, body, headers)
                else:
                    raw = self._send_through_session(method, url, body, headers)
            except StaleConnection:
                continue
            exchange.check()
            return Response(raw, exchange)

    def _send_directly(self, method: str, url: str, body: Optional[bytes], headers: Dict[str, str]) -> Any:
        pool = self._pool or self._open_pool()
        target = self._target if url == self.url else urlsplit(url)._replace(scheme="", netloc="").geturl()
        if self._session.cookies:
            cookie = get_cookie_header(self._session.cookies, self._prepared)  # type: ignore[no-untyped-call]
            if cookie:
                headers["Cookie"] = cookie
        payload: Any = body
        if body is not None and len(body) > _BIG_BODY:
            # in pieces, so that the upload can be ended between two of them whatever TLS makes of the first
            payload = io.BytesIO(body)
            headers["Content-Length"] = str(len(body))
        try:
            raw = pool.urlopen(
                method,
                target,
                body=payload,
                headers=headers,
                redirect=False,
                assert_same_host=False,
                preload_content=False,
                retries=False,
                timeout=self._timeout,
            )
        except urllib3.exceptions.ClosedPoolError:
            self._pool = None
            raise StaleConnection from None
        if "set-cookie" in raw.headers:
            extract_cookies_to_jar(self._session.cookies, self._prepared, raw)  # type: ignore[no-untyped-call]
        return raw

    def _open_pool(self) -> Any:
        settings = self._settings
        pool = self._adapter.get_connection_with_tls_context(
            self._prepared, settings["verify"], proxies=settings["proxies"], cert=settings["cert"]
        )
        make_abortable(pool)
        self._target = self._adapter.request_url(self._prepared, settings["proxies"])
        self._pool = pool
        return pool

    def _send_through_session(self, method: str, url: str, body: Optional[bytes], headers: Dict[str, str]) -> Any:
        if isinstance(self._adapter, requests.adapters.HTTPAdapter):
            self._open_pool()
        response = self._session.request(
            method,
            url,
            data=body,
            headers=headers,
            stream=True,
            allow_redirects=False,
            timeout=(self._connect_timeout, None),
            proxies=self._settings["proxies"],
            verify=self._settings["verify"],
            cert=self._settings["cert"],
        )
        return response.raw

    def _redirect(self, response: Response, url: str) -> str:
        location = response.headers.get("location", "")
        target = urljoin(url, location)
        response.close()
        if location and response.status in _KEEPING_METHOD and _origin(target) == _origin(url):
            return target
        raise HttpError(
            "redirected (%d) to %.200s, which is not followed: only 307 and 308 to the same origin keep method, body "
            "and credentials; use the new URL if it is right" % (response.status, _shown(target) or "nowhere"),
            status=response.status,
            server=self._server,
        )


def _own_session(connections: int) -> requests.Session:
    session = requests.Session()
    adapter = requests.adapters.HTTPAdapter(pool_maxsize=connections)
    session.mount("http://", adapter)
    session.mount("https://", adapter)
    return session


def _checked_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        raise ConfigError("a server's URL starts with http:// or https://, not %.60r" % parts.scheme)
    if not parts.hostname:
        raise ConfigError("the URL names no host")
    if parts.username is not None or parts.password is not None:
        raise ConfigError("credentials do not belong into a URL: use headers or auth")
    if parts.fragment:
        url = parts._replace(fragment="").geturl()
    return url if parts.path else parts._replace(path="/", fragment="").geturl()


def _checked_headers(headers: Mapping[str, str], server: str) -> Mapping[str, str]:
    for name, value in headers.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise ConfigError("header %.60r: name and value have to be text" % (name,), server=server)
        if any(char in "\r\n\0" for char in name + value):
            raise ConfigError("header %.60r: a line end or NUL is not allowed" % name, server=server)
    return headers


def _origin(url: str) -> Tuple[str, str, Optional[int]]:
    parts = urlsplit(url)
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, (parts.hostname or "").lower(), port


def _shown(url: str) -> str:
    """A URL without what may be secret in it."""
    parts = urlsplit(url)
    return "%s://%s%s%s" % (parts.scheme, parts.hostname, ":%d" % parts.port if parts.port else "", parts.path)


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
