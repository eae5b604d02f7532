"""The only door to the network of signing in.

Every request of discovery, registration and token endpoints goes through :class:`Web`: https (or this machine), to an
address that was looked at, bounded in size and in time, never redirected with a secret in it. It uses no session of
the user's: cookies, ``netrc`` and headers that are meant for the MCP server stay with that.
"""

from __future__ import annotations

import io
import json
import os
import socket
import zlib
from typing import Any, Dict, Iterable, Mapping, NamedTuple, Optional, Tuple, Union
from urllib.parse import urlencode, urljoin

import urllib3
from requests.adapters import HTTPAdapter
from requests.utils import DEFAULT_CA_BUNDLE_PATH, get_environ_proxies, prepend_scheme_if_needed, select_proxy

from mcpsync.auth.addresses import (
    Address,
    Resolver,
    addresses_of,
    as_address,
    is_loopback_name,
    is_public,
    system_resolver,
)
from mcpsync.auth.urls import Url
from mcpsync.deadline import Deadline
from mcpsync.errors import AuthError

__all__ = ["Answer", "Web"]

_LIMIT = 512 * 1024  # bytes of a body; real metadata has a few thousand
_PATIENCE = 30.0  # seconds for one request, whatever the deadline of the whole
_REDIRECTS = 3
_REDIRECTING = (301, 302, 303, 307, 308)
_FORM = "application/x-www-form-urlencoded"


class Answer(NamedTuple):
    """What came back.

    :ivar status: of HTTP
    :ivar data: the body where it is a JSON object; None: it is something else
    :ivar headers: by lower-case name
    """

    status: int
    data: Optional[Dict[str, Any]]
    headers: Mapping[str, str]

    def __repr__(self) -> str:
        return "Answer(%d)" % self.status  # the rest may hold tokens


class Web:
    """Requests to authorization servers.

    :param server_url: of the MCP server; where that itself is on a private address, its host may be asked
    :param allow_hosts: names or addresses of hosts, ``host`` or ``host:port``, which may be asked wherever they are
    :param verify: False, or the path of a CA bundle; None: as the environment has it
    :param proxies: by scheme, as ``requests`` has them; None: as the environment has them. What goes through a proxy
        is resolved there, so that only addresses and names of this machine can be refused here.
    """

    def __init__(
        self,
        server_url: str,
        *,
        allow_hosts: Iterable[str] = (),
        verify: Union[bool, str, None] = None,
        proxies: Optional[Mapping[str, str]] = None,
        resolver: Resolver = system_resolver,
    ) -> None:
        self.server = Url.parse(server_url, "the server's URL")
        self._allowed = frozenset(host.lower() for host in allow_hosts)
        self._verify = verify
        self._proxies = proxies
        self._resolver = resolver

    def allows(self, url: Url) -> bool:
        """Whether the user named this host."""
        return bool(self._allowed & {url.host, url.authority})

    def get_json(self, url: str, deadline: Deadline) -> Answer:
        """Fetch a document. Redirects are followed on the same origin only.

        :raises AuthError: it could not be fetched, or must not be
        """
        current = Url.parse(url, "a metadata URL")
        for _ in range(_REDIRECTS + 1):
            answer = self._send("GET", current, None, {}, deadline)
            if answer.status not in _REDIRECTING:
                return answer
            target = Url.parse(urljoin(str(current), answer.headers.get("location", "")), "a redirect")
            if target.origin != current.origin:
                raise AuthError("%s redirects to %s, which is not followed" % (current.shown, target.origin))
            current = target
        raise AuthError("%s redirects too often" % current.shown)

    def post_form(
        self, url: str, form: Mapping[str, str], headers: Optional[Mapping[str, str]], deadline: Deadline
    ) -> Answer:
        """Send a form. A redirect is an error: it would carry secrets elsewhere.

        :raises AuthError: it could not be sent, must not be, or was redirected
        """
        return self._post(url, urlencode(form).encode(), {"Content-Type": _FORM, **(headers or {})}, deadline)

    def post_json(self, url: str, data: Mapping[str, Any], deadline: Deadline) -> Answer:
        """Send a JSON object. A redirect is an error.

        :raises AuthError: it could not be sent, must not be, or was redirected
        """
        return self._post(url, json.dumps(data).encode(), {"Content-Type": "application/json"}, deadline)

    def _post(self, url: str, body: bytes, headers: Mapping[str, str], deadline: Deadline) -> Answer:
        target = Url.parse(url, "an endpoint")
        answer = self._send("POST", target, body, headers, deadline)
        if answer.status in _REDIRECTING:
            raise AuthError("%s redirects (%d), which is not followed with secrets" % (target.shown, answer.status))
        return answer

    # -- one request -------------------------------------------------------------------------------------------

    def _send(
        self, method: str, url: Url, body: Optional[bytes], headers: Mapping[str, str], deadline: Deadline
    ) -> Answer:
        url.require_secure()
        deadline = deadline.sooner(_PATIENCE)
        headers = {
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": "mcpsync",
            "Host": url.authority,
            **headers,
        }
        proxy = self._proxy_for(url)
        if proxy is not None:
            self._check_unresolved(url)
            return self._exchange(self._pool_through(proxy, url), method, url, body, headers, deadline)
        addresses = self._addresses(url, deadline)
        unreachable = None
        for position, address in enumerate(addresses):
            share = deadline.sooner((deadline.remaining() or 0.0) / (len(addresses) - position))
            try:
                return self._exchange(self._pool(url, address), method, url, body, headers, deadline, share)
            except _Unreachable as error:
                unreachable = error
        raise _unreached(str(unreachable))

    def _pool(self, url: Url, address: Address) -> urllib3.HTTPConnectionPool:
        if url.scheme == "http":
            return urllib3.HTTPConnectionPool(str(address), url.port)
        tls = self._tls()
        checked: Any = False if tls["cert_reqs"] == "CERT_NONE" else url.host
        return urllib3.HTTPSConnectionPool(
            str(address), url.port, server_hostname=url.host, assert_hostname=checked, **tls
        )

    def _pool_through(self, proxy: str, url: Url) -> Any:
        try:
            with_scheme = prepend_scheme_if_needed(proxy, "http")  # type: ignore[no-untyped-call]
            manager = HTTPAdapter().proxy_manager_for(with_scheme)
        except (ValueError, urllib3.exceptions.HTTPError):  # whose texts may hold its password
            raise AuthError(
                "the proxy for %s cannot be used: it is to be a URL with http:// or https://, or with socks5:// where "
                "PySocks is installed" % url.origin
            ) from None
        return manager.connection_from_url(str(url), pool_kwargs=self._tls())

    def _tls(self) -> Dict[str, Any]:
        if self._verify is False:
            return {"cert_reqs": "CERT_NONE"}
        bundle = self._verify if isinstance(self._verify, (str, os.PathLike)) else None
        if self._verify is None:
            bundle = os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE")
        bundle = bundle or DEFAULT_CA_BUNDLE_PATH
        return {"cert_reqs": "CERT_REQUIRED", "ca_cert_dir" if os.path.isdir(bundle) else "ca_certs": bundle}

    def _exchange(
        self,
        pool: Any,
        method: str,
        url: Url,
        body: Optional[bytes],
        headers: Mapping[str, str],
        deadline: Deadline,
        connecting: Optional[Deadline] = None,
    ) -> Answer:
        pool.ConnectionCls = _bounded(pool.ConnectionCls, deadline)
        left = max(0.001, deadline.remaining() or 0.0)
        to_connect = left if connecting is None else max(0.001, connecting.remaining() or 0.0)
        try:
            response = pool.urlopen(
                method,
                url.target,
                body=body,
                headers=headers,
                retries=False,
                redirect=False,
                assert_same_host=False,
                preload_content=False,
                timeout=urllib3.Timeout(connect=to_connect, read=left),
            )
            try:
                return Answer(
                    response.status,
                    _as_object(_body(response, url)),
                    {str(name).lower(): str(value) for name, value in response.headers.items()},
                )
            finally:
                response.close()
        except (urllib3.exceptions.NewConnectionError, urllib3.exceptions.ConnectTimeoutError):
            raise _Unreachable("%s cannot be reached" % url.origin) from None
        except (urllib3.exceptions.TimeoutError, TimeoutError):
            raise _unreached("%s did not answer in time" % url.shown) from None
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise _unreached("%s: %s: %.300s" % (url.shown, type(error).__name__, error)) from None
        finally:
            pool.close()

    # -- where it may go ---------------------------------------------------------------------------------------

    def _proxy_for(self, url: Url) -> Optional[str]:
        if is_loopback_name(url.host):
            return None
        proxies = get_environ_proxies(str(url)) if self._proxies is None else dict(self._proxies)
        return select_proxy(str(url), proxies) or None

    def _check_unresolved(self, url: Url) -> None:
        if not self._may_be_anywhere(url):
            address = as_address(url.host)
            self._refuse_unless(address is None or is_public(address), url)

    def _addresses(self, url: Url, deadline: Deadline) -> Tuple[Address, ...]:
        """The addresses of a host that may be connected to."""
        found = addresses_of(url.host, self._resolver, deadline)
        if url.scheme == "http" and not all(address.is_loopback for address in found):
            raise AuthError("%s is not asked: that name is not this machine, and it is not https" % url.shown)
        if self._may_be_anywhere(url):
            return tuple(found)
        public = tuple(address for address in found if is_public(address))
        self._refuse_unless(bool(public), url)
        return public

    def _may_be_anywhere(self, url: Url) -> bool:
        if self.allows(url) or url.host == self.server.host:
            return True
        return is_loopback_name(url.host) and is_loopback_name(self.server.host)

    def _refuse_unless(self, public: bool, url: Url) -> None:
        if not public:
            raise AuthError(
                "%s is not asked: it is at a private or local address and the MCP server is not; if that is right, "
                "name %r in allow_hosts" % (url.shown, url.host)
            )


class _Unreachable(AuthError):
    """No connection was made to this address; there may be another."""


class _BoundedReader(io.RawIOBase):
    """Reads of a socket that all end by one deadline, not each by its own."""

    def __init__(self, sock: Any, deadline: Deadline) -> None:
        self._sock = sock
        self._inner = sock.makefile("rb", buffering=0)
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> Optional[int]:
        left = self._deadline.remaining()
        if not left:
            raise socket.timeout("timed out")  # what a socket raises, on Python 3.9 too
        self._sock.settimeout(left)
        count: Optional[int] = self._inner.readinto(buffer)
        return count

    def close(self) -> None:
        self._inner.close()
        super().close()


class _BoundedSocket:
    """A socket as ``http.client`` uses it, whose responses are read within a deadline."""

    def __init__(self, sock: Any, deadline: Deadline) -> None:
        self._sock = sock
        self._deadline = deadline

    def makefile(self, mode: str, *_: Any, **__: Any) -> io.BufferedReader:
        return io.BufferedReader(_BoundedReader(self._sock, self._deadline))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sock, name)


def _bounded(connection: Any, deadline: Deadline) -> Any:
    class Bounded(connection):  # type: ignore[misc]
        def connect(self) -> None:
            super().connect()
            self.sock: Any = _BoundedSocket(self.sock, deadline)
            self.is_verified = True  # or the user does not want it to be, and no warning for each request either

    return Bounded


def _body(response: Any, url: Url) -> bytes:
    pieces = []
    size = 0
    for piece in response.stream(16 * 1024, decode_content=False):
        pieces.append(piece)
        size += len(piece)
        if size > _LIMIT:
            raise AuthError("%s sent more than %d KB, which is no metadata" % (url.shown, _LIMIT // 1024))
    data = b"".join(pieces)
    if response.headers.get("content-encoding", "identity").strip().lower() in ("gzip", "x-gzip", "deflate"):
        try:
            data = zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(data, _LIMIT)
        except zlib.error:
            raise AuthError("%s sent a body that cannot be decompressed" % url.shown) from None
    return data


def _as_object(body: bytes) -> Optional[Dict[str, Any]]:
    try:
        data = json.loads(body)
        json.dumps(data, ensure_ascii=False).encode()  # halves of surrogate pairs could be put into no request
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def _unreached(message: str) -> AuthError:
    error = AuthError(message)
    error.passing = True
    return error
