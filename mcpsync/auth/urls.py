"""URLs as signing in compares, shows and refuses them.

Kept apart from how they were written: identifiers (issuer, resource) are compared and sent as plain texts, while this
is where a request goes.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import urlsplit

from mcpsync.auth.addresses import is_loopback_name
from mcpsync.errors import AuthError

__all__ = ["Url"]

_DEFAULT_PORTS = {"http": 80, "https": 443}
_SAFE = re.compile(r"[!#-;=?-\[\]_a-z~]+\Z")  # printable ASCII without space " < > \ ^ ` { | }


class Url(NamedTuple):
    """An http or https URL.

    :ivar host: in lower case, without brackets
    :ivar target: path and query, as a request line has them
    """

    scheme: str
    host: str
    port: int
    target: str

    @classmethod
    def parse(cls, text: str, what: str) -> Url:
        """Read one, without its fragment.

        :param what: for the error
        :raises AuthError: it is none, or holds a user's name or characters that do not belong into a URL
        """
        try:
            parts = urlsplit(text)
            port = parts.port or _DEFAULT_PORTS.get(parts.scheme, 0)
        except ValueError as error:
            told = "" if "@" in text else ": %s" % error  # which repeats the host, with a password before it
            raise AuthError("%s is no URL%s" % (what, told)) from None
        if parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
            raise AuthError("%s is no https URL: %.100r" % (what, text.partition("?")[0]))
        if parts.username is not None or parts.password is not None:
            raise AuthError("%s holds credentials, which do not belong into a URL" % what)
        if not _SAFE.match(text):
            raise AuthError("%s holds characters that do not belong into a URL" % what)
        target = (parts.path or "/") + ("?" + parts.query if parts.query else "")
        return cls(parts.scheme, parts.hostname.lower(), port, target)

    @property
    def path(self) -> str:
        """Without the query."""
        return self.target.partition("?")[0]

    @property
    def authority(self) -> str:
        """Host and port, the latter where it is not the scheme's own."""
        host = "[%s]" % self.host if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else "%s:%d" % (host, self.port)

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        return "%s://%s" % (self.scheme, self.authority)

    @property
    def shown(self) -> str:
        """Without the query, for texts that people read."""
        return self.origin + self.path

    def __str__(self) -> str:
        return self.origin + self.target

    def require_secure(self) -> None:
        """Refuse plain http to another machine.

        :raises AuthError: anyone on the way could read it
        """
        if self.scheme != "https" and not is_loopback_name(self.host):
            raise AuthError("%s is not asked: it is not https" % self.shown)
