"""How a client proves itself with a key: a statement about itself, signed, in place of a secret.

Specification: RFC 7523, 2.2 and 3; the client credentials extension, which wants the issuer as audience.
"""

from __future__ import annotations

import secrets
import time
from typing import Dict, NoReturn, Optional

from mcpsync.auth.sources import Source, text_of

__all__ = ["METHOD", "ClientKey"]

METHOD = "private_key_jwt"
_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_LIFE = 60  # seconds; each is used at once, and once


class ClientKey:
    """The key of a client.

    :param source: PEM, or what gives it, each time a statement is signed: a key that turned is used at once
    :param algorithm: that it has to be for; None: that of the key
    :param key_id: under which the authorization server knows it; None: it knows one only
    """

    __slots__ = ("_algorithm", "_key_id", "_source")

    def __init__(self, source: Source, algorithm: Optional[str] = None, key_id: Optional[str] = None) -> None:
        self._source = source
        self._algorithm = algorithm
        self._key_id = key_id

    def __repr__(self) -> str:
        return "<ClientKey %r>" % (self._key_id or "")

    def __reduce__(self) -> NoReturn:
        raise TypeError("a private key is not pickled")

    def parameters(self, client_id: str, issuer: str) -> Dict[str, str]:
        """What a request to the token endpoint has more.

        :param issuer: the one authorization server that this is for; another has no use for it
        :raises AuthError: there is no key, or one of another kind
        """
        from mcpsync.auth.keys import PrivateKey

        key = PrivateKey.from_pem(text_of(self._source, "private_key"), "private_key", self._algorithm)
        header = {"typ": "JWT"} if self._key_id is None else {"typ": "JWT", "kid": self._key_id}
        now = int(time.time())
        claims = {
            "iss": client_id,
            "sub": client_id,
            "aud": issuer,
            "jti": secrets.token_urlsafe(16),
            "iat": now,
            "exp": now + _LIFE,
        }
        return {"client_assertion_type": _TYPE, "client_assertion": key.token(header, claims)}
