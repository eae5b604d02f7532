"""Proof of possession: whoever holds a token has to show, with each request, that it holds the token's key as well.

Specification: RFC 9449, 4.2 and 7.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from typing import NoReturn, Optional, Tuple

from mcpsync.auth.jwt import base64url
from mcpsync.auth.keys import PrivateKey
from mcpsync.auth.nonces import Nonces
from mcpsync.auth.urls import Url

__all__ = ["ALGORITHM", "Prover"]

ALGORITHM = "ES256"


class Prover:
    """A key, and the proofs that are made with it. Any number of threads may use it.

    :ivar thumbprint: of the public half: what tokens are bound to
    """

    def __init__(self, key: PrivateKey, nonces: Nonces) -> None:
        self._key = key
        self.nonces = nonces
        self.thumbprint = key.thumbprint()
        header = {"typ": "dpop+jwt", "alg": key.algorithm, "jwk": key.public_jwk()}
        self._header = base64url(json.dumps(header, separators=(",", ":")).encode()) + "."
        self._place: Tuple[str, str, str] = ("", "", "")  # URL, what a proof says of it, origin
        self._bound: Tuple[str, str] = ("", "")  # token, its hash

    @classmethod
    def generate(cls, nonces: Nonces) -> Prover:
        """With a new key."""
        return cls(PrivateKey.generate(), nonces)

    @classmethod
    def from_pem(cls, text: str, nonces: Nonces) -> Prover:
        """With a key that was kept.

        :raises AuthError: it is none
        """
        return cls(PrivateKey.from_pem(text, "the stored key of the tokens", ALGORITHM), nonces)

    def __repr__(self) -> str:
        return "<Prover %s>" % self.thumbprint

    def __reduce__(self) -> NoReturn:
        raise TypeError("a private key is not pickled")

    def to_pem(self) -> str:
        """The key; secret."""
        return self._key.to_pem()

    def proof(self, method: str, url: str, access_token: Optional[str] = None) -> str:
        """A proof for one request.

        :param url: that it goes to
        :param access_token: that goes with it; None: it is for a token
        """
        known, said, origin = self._place
        if known != url:
            parsed = Url.parse(url, "a request's URL")
            said, origin = json.dumps(parsed.shown), parsed.origin
            self._place = (url, said, origin)
        # written by hand: this is done for each request, and none of these texts needs escapes
        claims = '{"jti":"%s","htm":"%s","htu":%s,"iat":%d' % (os.urandom(16).hex(), method, said, time.time())
        if access_token is not None:
            token, digest = self._bound
            if token != access_token:
                digest = base64url(hashlib.sha256(access_token.encode()).digest())
                self._bound = (access_token, digest)
            claims += ',"ath":"%s"' % digest
        nonce = self.nonces.of(origin)
        if nonce is not None:
            claims += ',"nonce":"%s"' % nonce
        signed = self._header + base64url((claims + "}").encode())
        return signed + "." + base64url(self._key.sign(signed.encode()))
