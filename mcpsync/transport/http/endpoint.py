"""One URL and how it is reached: proxies, certificates, cookies, headers, all settled once per connection.

``requests`` at the edges: sessions, adapters, environment. The hot path goes straight to the connections of the
session's own adapter. Where the user's session has an adapter, auth or hooks of its own, these see every request
instead.
"""

from __future__ import annotations

import io
import ipaddress
import os
import re
import threading
from typing import Any, Callable, Dict, Mapping, NamedTuple, Optional, Tuple, Union
from urllib.parse import urljoin, urlsplit

import requests
import requests.adapters
import urllib3
from requests.cookies import MockRequest, MockResponse, get_cookie_header
from requests.utils import get_environ_proxies, select_proxy

from mcpsync.errors import ConfigError, HttpError
from mcpsync.transport.http.abortable import make_abortable, make_retries_abortable
from mcpsync.transport.http.exchange import Exchange, StaleConnection
from mcpsync.transport.http.pool import DirectPool
from mcpsync.transport.http.response import PooledResponse, Response
from mcpsync.transport.http.unix import UnixAdapter
from mcpsync.transport.masking import Mask
from mcpsync.transport.unix_url import unix_url

__all__ = ["Endpoint", "HeaderSource", "Target", "headers_by_name"]

HeaderSource = Union[Mapping[str, str], Callable[[], Mapping[str, str]], None]

_PLAIN_SEND = requests.adapters.HTTPAdapter.send  # kept, since tools that fake answers replace it
_MOST_REDIRECTS = 5
_KEEPING_METHOD = (307, 308)
_PERMANENT = 308
_REDIRECTS = (301, 302, 303, *_KEEPING_METHOD)
_NOT_GIVEN = ("content-length", "transfer-encoding", "connection")  # set for each request, or not at all
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")


class Target(NamedTuple):
    """A URL, as requests to it name it.

    :ivar prepared: for the matching of cookies
    :ivar target: what the request line says
    """

    url: str
    prepared: Any
    target: str


class Endpoint:
    """One URL.

    :param url: of the server: ``http``, ``https``, or a Unix socket
    :param server: its name, for errors
    :param session: the user's own, which is not closed; None: one is made
    :param headers: for every request: a mapping, or a function that is called for each
    :param verify: False, or the path of a CA bundle; None: as the session or else the environment has it
    :param cert: path of a client certificate, or of certificate and key
    :param proxies: by scheme; None: as the session or else the environment has it, which is not asked for loopback
    :param connections: kept open while they are idle; more are made when more requests travel at once
    :param connect_timeout: seconds after which an attempt to connect is given up whatever the deadline says
    :ivar url: as it is requested
    :ivar host: as the user knows it, for errors
    :raises ConfigError: the URL is none that can be used, or a header none that can be sent
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
        unix = unix_url(url)
        self.url = _checked_url("http://localhost" + (unix.target or "/") if unix else url, server)
        self.host = unix.path if unix else urlsplit(self.url).netloc
        self._server = server
        self._headers = headers if callable(headers) else None
        self._owned = session is None
        self._session = _own_session(connections) if session is None else session
        self._connect_timeout = connect_timeout
        self._own_adapter = UnixAdapter(unix.path, connections) if unix else None
        self._adapter: Any = self._own_adapter or self._session.get_adapter(self.url)
        self._settings = self._settled(proxies, verify, cert)
        try:
            self._target = self._target_of(self.url)
        except requests.exceptions.InvalidURL as error:  # Python below 3.11 lets more pass before
            raise ConfigError("not a URL that can be used: %s" % error, server=server) from None
        self._base = headers_by_name(self._target.prepared.headers)
        self._base.pop("cookie", None)
        self._base["host"] = ("Host", _authority(self._target.prepared.url))
        if headers is not None and not callable(headers):
            self._base.update(headers_by_name(headers, server))
        self._sent: Mapping[str, str] = {}  # replaced as a whole by each request
        self._direct = self._is_direct()
        self._pool: Optional[DirectPool] = None
        self._making_pool = threading.RLock()  # guards that there is one pool: connections of a second would be lost

    def request(
        self, exchange: Exchange, method: str, body: Optional[bytes], headers: Mapping[str, str], url: str = ""
    ) -> Response:
        """Send a request and give the response as soon as its headers are there.

        The exchange has to be current. Redirects to the same origin that keep the method are followed.

        :param headers: of the protocol; they win over those of the user
        :param url: of the same origin; empty: the endpoint's
        :raises Aborted: the exchange was ended
        :raises HttpError: a redirect that is not followed
        :raises ConfigError: the function for headers gave some that cannot be sent
        :raises OSError, http.client.HTTPException, urllib3.exceptions.HTTPError, requests.RequestException:
            the network failed
        """
        target = self._target_of(url) if url else self._target
        for _ in range(_MOST_REDIRECTS):
            response = self._send(exchange, method, target, body, headers)
            if response.status not in _REDIRECTS:
                return response
            following = self._target_of(self._redirect(response, target.url))
            if response.status == _PERMANENT and target is self._target:
                self._target = following
            target = following
        raise HttpError(
            "more than %d redirects, the last one to %s" % (_MOST_REDIRECTS, _shown(target.url)),
            status=response.status,
            server=self._server,
        )

    def resolve(self, location: str) -> str:
        """The URL of a location that the server names.

        :raises HttpError: it is of another origin
        """
        url = _joined(self._target.url, location)
        if _origin(url) != _origin(self.url):
            raise HttpError(
                "the server names %.200s for messages, which is not of the same origin as its URL" % _shown(url),
                status=200,
                server=self._server,
            )
        return url

    def masked(self, text: str) -> str:
        """A text of the server's without the secrets in the headers of the last request."""
        return Mask.of_headers(self._sent).text(text)

    def close(self) -> None:
        """Close the connections, unless they are the user's session's."""
        if self._own_adapter is not None:
            self._own_adapter.close()
        pool = self._pool
        if pool is not None:
            pool.forget()
        if self._owned:
            if pool is not None:
                pool.close()  # which some versions of urllib3 leave to the garbage collector
            self._session.close()

    # -- what is settled once ----------------------------------------------------------------------------------

    def _settled(
        self,
        proxies: Optional[Mapping[str, str]],
        verify: Union[bool, str, None],
        cert: Union[str, Tuple[str, str], None],
    ) -> Dict[str, Any]:
        """Proxy, verification and certificate; the environment never wins over what was given."""
        session = self._session
        if verify is None:
            verify = session.verify
            if verify is True and session.trust_env:
                verify = os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE") or True
        if proxies is None:
            proxies = session.proxies
            if not proxies and session.trust_env and not _is_reached_directly(self.url):
                proxies = get_environ_proxies(self.url)
        # named for this scheme, empty if there is none: requests adds none of the environment's to that
        proxy = select_proxy(self.url, dict(proxies)) or ""
        return {
            "proxies": {urlsplit(self.url).scheme: proxy},
            "verify": verify,
            "cert": session.cert if cert is None else cert,
        }

    def _target_of(self, url: str) -> Target:
        auth: Any = None if self._session.auth is None else _leave_as_it_is  # asked for each request, and not now
        prepared = self._session.prepare_request(requests.Request("POST", url, auth=auth))
        if not hasattr(self._adapter, "request_url"):  # of the user's own kind, which makes the request line itself
            return Target(url, prepared, "")
        return Target(url, prepared, self._adapter.request_url(prepared, self._settings["proxies"]))

    def _is_direct(self) -> bool:
        """Whether nothing of the user's would be passed over by going straight to the connections."""
        adapter, session = self._adapter, self._session
        retries = adapter.max_retries if isinstance(adapter, requests.adapters.HTTPAdapter) else None
        return (
            type(adapter) in (requests.adapters.HTTPAdapter, UnixAdapter)
            and type(adapter).send is _PLAIN_SEND
            and not {"send", "add_headers", "cert_verify", "build_response"} & set(vars(adapter))
            and not getattr(retries, "total", None)
            and session.auth is None
            and not any(session.hooks.values())
        )

    # -- requests ----------------------------------------------------------------------------------------------

    def _merged(self, headers: Mapping[str, str]) -> Dict[str, str]:
        merged = dict(self._base)
        if self._headers is not None:
            merged.update(headers_by_name(self._headers(), self._server))
        for name, value in headers.items():
            merged[name.lower()] = (name, value)
        return dict(merged.values())

    def _send(
        self, exchange: Exchange, method: str, target: Target, body: Optional[bytes], headers: Mapping[str, str]
    ) -> Response:
        merged = self._sent = self._merged(headers)
        while True:
            try:
                if self._direct:
                    return self._send_directly(exchange, method, target, body, merged)
                return self._send_through_session(exchange, method, target, body, merged)
            except urllib3.exceptions.ClosedPoolError:
                with self._making_pool:  # the adapter keeps a bounded number of pools, and let this one go
                    pool, self._pool = self._pool, None
                if pool is not None:
                    pool.forget()
            except StaleConnection:
                pass

    def _send_directly(
        self, exchange: Exchange, method: str, target: Target, body: Optional[bytes], headers: Dict[str, str]
    ) -> Response:
        pool = self._pool or self._make_pool()
        jar = self._session.cookies
        if jar and "cookie" not in self._base:
            cookie = get_cookie_header(jar, target.prepared)  # type: ignore[no-untyped-call]
            if cookie:
                headers["Cookie"] = cookie
        response = pool.send(exchange, method, target.target, body, headers)
        if response.headers.get("set-cookie") is not None:
            jar.extract_cookies(MockResponse(response.headers), MockRequest(target.prepared))  # type: ignore
        return response

    def _make_pool(self) -> DirectPool:
        with self._making_pool:
            if self._pool is None:
                self._pool = DirectPool(self._urllib3_pool(), self._connect_timeout)
            return self._pool

    def _urllib3_pool(self) -> Any:
        return self._adapter.get_connection_with_tls_context(
            self._target.prepared,
            self._settings["verify"],
            proxies=self._settings["proxies"],
            cert=self._settings["cert"],
        )

    def _send_through_session(
        self, exchange: Exchange, method: str, target: Target, body: Optional[bytes], headers: Dict[str, str]
    ) -> Response:
        session = self._session
        if isinstance(self._adapter, requests.adapters.HTTPAdapter):
            make_abortable(self._urllib3_pool())
            make_retries_abortable(self._adapter)
        auth: Any = None
        if session.auth is None and any(name.lower() == "authorization" for name in headers):
            auth = _leave_as_it_is
        try:
            response = session.request(
                method,
                target.url,
                data=body,
                headers=headers,
                auth=auth,
                stream=True,
                allow_redirects=False,
                timeout=(self._connect_timeout, None),
                **self._settings,
            )
        except requests.HTTPError as error:  # a hook of the user's that raises for the status
            if error.response is None:
                raise
            response = error.response
        exchange.check()
        return PooledResponse(_raw_of(response), exchange, lambda: response.content)

    def _redirect(self, response: Response, url: str) -> str:
        location = response.headers.get("location") or ""
        target = _joined(url, location)
        if location and response.status in _KEEPING_METHOD and _origin(target) == _origin(url):
            response.start(1024)
            response.close()
            return target
        response.close()
        raise HttpError(
            "redirected (%d) to %.200s, which is not followed: only 307 and 308 to the same origin keep method, body "
            "and credentials; use the new URL if it is right"
            % (response.status, _shown(target) if location else "nowhere"),
            status=response.status,
            server=self._server,
        )


def _raw_of(response: requests.Response) -> Any:
    """What carries status, headers and body. An adapter or hook of the user's may give no more than a file, or a body
    that is there already."""
    if hasattr(response.raw, "headers"):
        return response.raw
    return urllib3.HTTPResponse(
        io.BytesIO(response.content or b""), response.headers, response.status_code, preload_content=False
    )


def _leave_as_it_is(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request


def _own_session(connections: int) -> requests.Session:
    session = requests.Session()
    session.headers.update({"User-Agent": "mcpsync", "Accept-Encoding": "gzip, deflate"})
    del session.headers["Connection"]
    adapter = requests.adapters.HTTPAdapter(pool_maxsize=connections)
    session.mount("http://", adapter)
    session.mount("https://", adapter)
    return session


def _checked_url(url: str, server: str) -> str:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        told = "" if "@" in url else ": %s" % error  # which repeats the host, with a password before it
        raise ConfigError("not a URL that can be used%s" % told, server=server) from None
    if parts.scheme not in ("http", "https"):
        raise ConfigError("a server's URL starts with http:// or https://, not %.60r" % parts.scheme, server=server)
    if not parts.hostname:
        raise ConfigError("the URL names no host", server=server)
    if parts.username is not None or parts.password is not None:
        raise ConfigError("credentials do not belong into a URL: use headers or auth", server=server)
    return parts._replace(path=parts.path or "/", fragment="").geturl()


def headers_by_name(headers: Mapping[Any, Any], server: str = "") -> Dict[str, Tuple[str, str]]:
    """Headers by their lower-case name, each checked."""
    found: Dict[str, Tuple[str, str]] = {}
    for name, given in headers.items():
        value = given.decode("latin-1") if isinstance(given, bytes) else given
        if not isinstance(name, str) or not isinstance(value, str):
            raise ConfigError("header %.60r: name and value have to be text" % (name,), server=server)
        if not _TOKEN.match(name):
            raise ConfigError("header %.60r: that is no name for a header" % name, server=server)
        if any(char in "\r\n\0" for char in value) or any(ord(char) > 255 for char in value):
            raise ConfigError("header %s: its value has characters that cannot be sent" % name, server=server)
        if name.lower() not in _NOT_GIVEN:
            found[name.lower()] = (name, value)
    return found


def _authority(url: str) -> str:
    """Host and port, as the ``Host`` header names them."""
    scheme = urlsplit(url).scheme
    netloc = urlsplit(url).netloc
    default = ":%s" % {"http": 80, "https": 443}.get(scheme)
    return netloc[: -len(default)] if netloc.endswith(default) else netloc


def _joined(base: str, location: str) -> str:
    """The URL of a location; one that is none gives one without a host."""
    try:
        return urljoin(base, location)
    except ValueError:
        return "invalid:"


def _origin(url: str) -> Tuple[str, str, Optional[int]]:
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = -1
    return parts.scheme, (parts.hostname or "").lower(), port or {"http": 80, "https": 443}.get(parts.scheme)


def _shown(url: str) -> str:
    """A URL without what may be secret in it."""
    scheme, host, port = _origin(url)
    default = {"http": 80, "https": 443}.get(scheme)
    return "%s://%s%s%s" % (scheme, host, "" if port == default else ":%s" % port, urlsplit(url).path)


def _is_reached_directly(url: str) -> bool:
    """Whether the environment's proxies are not meant for it: this machine, or an address and port in NO_PROXY."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    # an address with a port is what requests does not look for
    listed = (os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or "").replace(" ", "").split(",")
    return address.is_loopback or parts.netloc in listed
