"""Private keys, and what is signed with them: JSON Web Tokens.

Keys are shown by no ``repr`` and never pickled.

Specification: RFC 7515, 7.1; RFC 7517; RFC 7518, 3; RFC 7638; RFC 8037.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Dict, Mapping, NoReturn, Optional

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from mcpsync.auth.jwt import base64url
from mcpsync.errors import AuthError

__all__ = ["PrivateKey"]

_LEAST_RSA_BITS = 2048
_COORDINATE = 32  # bytes, of P-256
_SHA256 = hashes.SHA256()
_ES256 = ec.ECDSA(_SHA256)
_RS256 = padding.PKCS1v15()


class PrivateKey:
    """A private key, and the algorithm that goes with it.

    :ivar algorithm: ``ES256``, ``RS256`` or ``EdDSA``
    """

    __slots__ = ("_key", "algorithm")

    def __init__(self, key: Any) -> None:
        self._key = key
        if isinstance(key, ec.EllipticCurvePrivateKey) and isinstance(key.curve, ec.SECP256R1):
            self.algorithm = "ES256"
        elif isinstance(key, rsa.RSAPrivateKey):
            if key.key_size < _LEAST_RSA_BITS:
                raise AuthError("an RSA key needs %d bits, and this one has %d" % (_LEAST_RSA_BITS, key.key_size))
            self.algorithm = "RS256"
        elif isinstance(key, ed25519.Ed25519PrivateKey):
            self.algorithm = "EdDSA"
        else:
            raise AuthError("the private key is of a kind that is not used here: use P-256, RSA or Ed25519")

    @classmethod
    def generate(cls) -> PrivateKey:
        """A new one, for ES256."""
        return cls(ec.generate_private_key(ec.SECP256R1()))

    @classmethod
    def from_pem(cls, text: str, what: str = "the private key", algorithm: Optional[str] = None) -> PrivateKey:
        """From PEM: PKCS8 or the older forms, not encrypted.

        :param what: for the error
        :param algorithm: that it has to be for
        :raises AuthError: it is no such key
        """
        try:
            key = cls(serialization.load_pem_private_key(text.strip().encode(), None))
        except TypeError:
            raise AuthError("%s is encrypted: give it decrypted, or a function that does that" % what) from None
        except (ValueError, UnsupportedAlgorithm):  # whose texts may hold parts of it
            raise AuthError("%s is no private key in PEM" % what) from None
        if algorithm is not None and algorithm != key.algorithm:
            raise AuthError("%s is for %s, and not for %s" % (what, key.algorithm, algorithm))
        return key

    def __repr__(self) -> str:
        return "<PrivateKey for %s>" % self.algorithm

    def __reduce__(self) -> NoReturn:
        raise TypeError("a private key is not pickled")

    def to_pem(self) -> str:
        """As PKCS8; secret."""
        return self._key.private_bytes(  # type: ignore[no-any-return]
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ).decode()

    def sign(self, data: bytes) -> bytes:
        """A signature, in the form that JSON Web Signatures have."""
        if self.algorithm == "ES256":
            r, s = decode_dss_signature(self._key.sign(data, _ES256))
            return r.to_bytes(_COORDINATE, "big") + s.to_bytes(_COORDINATE, "big")
        if self.algorithm == "RS256":
            return self._key.sign(data, _RS256, _SHA256)  # type: ignore[no-any-return]
        return self._key.sign(data)  # type: ignore[no-any-return]

    def token(self, header: Mapping[str, Any], claims: Mapping[str, Any]) -> str:
        """A JSON Web Token.

        :param header: without ``alg``
        """
        signed = base64url(_json({**header, "alg": self.algorithm})) + "." + base64url(_json(claims))
        return signed + "." + base64url(self.sign(signed.encode()))

    def public_jwk(self) -> Dict[str, str]:
        """The public half, with no more than its thumbprint is made of."""
        public = self._key.public_key()
        if self.algorithm == "ES256":
            numbers = public.public_numbers()
            x, y = (base64url(each.to_bytes(_COORDINATE, "big")) for each in (numbers.x, numbers.y))
            return {"crv": "P-256", "kty": "EC", "x": x, "y": y}
        if self.algorithm == "RS256":
            numbers = public.public_numbers()
            e, n = (base64url(each.to_bytes((each.bit_length() + 7) // 8, "big")) for each in (numbers.e, numbers.n))
            return {"e": e, "kty": "RSA", "n": n}
        raw = public.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        return {"crv": "Ed25519", "kty": "OKP", "x": base64url(raw)}

    def thumbprint(self) -> str:
        """Of the public half (RFC 7638)."""
        canonical = json.dumps(self.public_jwk(), separators=(",", ":"), sort_keys=True)
        return base64url(hashlib.sha256(canonical.encode()).digest())


def _json(data: Mapping[str, Any]) -> bytes:
    return json.dumps(data, separators=(",", ":")).encode()
