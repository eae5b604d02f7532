"""Servers that machines get tokens from, and servers that want a proof of possession with each token.

Their checks are their own: they verify signatures with ``cryptography``, and share no code with the client.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import time
from typing import Any, Dict, List, Mapping, Optional, Set
from urllib.parse import parse_qs

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from tests.peers.authorization import AuthorizationServer, ProtectedServer, Refused
from tests.peers.http import Exchange

__all__ = ["BoundServer", "IdentityProvider", "MachineServer", "decoded", "new_pem", "public_of", "signed"]

JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"
RECENT = 60


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unb64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def new_key(algorithm: str = "ES256") -> Any:
    """A private key."""
    if algorithm == "RS256":
        return rsa.generate_private_key(65537, 2048)
    return ec.generate_private_key(ec.SECP256R1()) if algorithm == "ES256" else ed25519.Ed25519PrivateKey.generate()


def new_pem(algorithm: str = "ES256", form: Any = serialization.PrivateFormat.PKCS8) -> str:
    """A private key, as clients have them."""
    none = serialization.NoEncryption()
    return new_key(algorithm).private_bytes(serialization.Encoding.PEM, form, none).decode()


def public_of(pem: str) -> Any:
    """Its other half."""
    return serialization.load_pem_private_key(pem.encode(), None).public_key()


def signed(header: Dict[str, Any], claims: Dict[str, Any], key: Any) -> str:
    """A token that is signed with ES256."""
    text = "%s.%s" % (b64(json.dumps(header).encode()), b64(json.dumps(claims).encode()))
    der = key.sign(text.encode(), ec.ECDSA(hashes.SHA256()))
    # the two numbers, out of their ASN.1
    first = 4 + der[3]
    r, s = der[4:first], der[first + 2 :]
    return "%s.%s" % (text, b64(r[-32:].rjust(32, b"\0") + s[-32:].rjust(32, b"\0")))


def decoded(token: str) -> List[Any]:
    """Header and claims, unverified."""
    return [json.loads(unb64(part)) for part in token.split(".")[:2]]


def verified(token: str, key: Any, algorithm: str) -> List[Any]:
    """Header and claims.

    :raises Refused: the signature is another one
    """
    try:
        text, _, signature = token.rpartition(".")
        raw = unb64(signature)
        if algorithm == "ES256":
            numbers = (int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
            key.verify(encode_dss_signature(*numbers), text.encode(), ec.ECDSA(hashes.SHA256()))
        elif algorithm == "RS256":
            key.verify(raw, text.encode(), padding.PKCS1v15(), hashes.SHA256())
        else:
            key.verify(raw, text.encode())
        found = decoded(token)
    except (InvalidSignature, ValueError, AttributeError):
        raise Refused("invalid_client") from None
    if found[0].get("alg") != algorithm:
        raise Refused("invalid_client")
    return found


class Proofs:
    """What of proofs of possession was seen.

    :param nonce: that has to be in each; None: none
    """

    def __init__(self, nonce: Optional[str] = None) -> None:
        self.nonce = nonce
        self.seen: Set[str] = set()
        self.accepted: List[Dict[str, Any]] = []

    def thumbprint(self, exchange: Exchange, url: str, token: Optional[str] = None) -> str:
        """Of the key of the proof that came with a request.

        :raises Refused: the proof is not right
        """
        proof = exchange.request.headers.get("dpop", "")
        try:
            header, _ = decoded(proof)
            jwk = header["jwk"]
            numbers = ec.EllipticCurvePublicNumbers(
                int.from_bytes(unb64(jwk["x"]), "big"), int.from_bytes(unb64(jwk["y"]), "big"), ec.SECP256R1()
            )
            header, claims = verified(proof, numbers.public_key(), "ES256")
        except (Refused, ValueError, KeyError):
            raise Refused("invalid_dpop_proof") from None
        right = (
            header["typ"] == "dpop+jwt"
            and set(jwk) == {"kty", "crv", "x", "y"}
            and claims["htm"] == exchange.request.method
            and claims["htu"] == url.partition("?")[0]
            and abs(time.time() - claims["iat"]) < RECENT
            and claims["jti"] not in self.seen
            and claims.get("ath") == (None if token is None else b64(hashlib.sha256(token.encode()).digest()))
        )
        self.seen.add(claims["jti"])
        if not right:
            raise Refused("invalid_dpop_proof")
        if self.nonce is not None and claims.get("nonce") != self.nonce:
            raise Refused("use_dpop_nonce")
        self.accepted.append(claims)
        canonical = json.dumps({name: jwk[name] for name in ("crv", "kty", "x", "y")}, separators=(",", ":"))
        return b64(hashlib.sha256(canonical.encode()).digest())


class MachineServer(AuthorizationServer):
    """An authorization server that also has grants for machines.

    :param keys: public keys of clients, by id, with their algorithm
    :param trusts: public key (ES256) of who makes assertions
    :param bound: tokens are bound to keys; a request without a proof is refused
    """

    def __init__(
        self,
        *,
        keys: Optional[Mapping[str, Any]] = None,
        trusts: Any = None,
        bound: bool = False,
        nonce: Optional[str] = None,
        **more: Any,
    ) -> None:
        self._keys = dict(keys or {})
        self._trusts = trusts
        self.bound = bound
        self.proofs = Proofs(nonce)
        self._used: Set[str] = set()
        self._thumbprint: Optional[str] = None
        self._about: Mapping[str, Any] = {}
        super().__init__(**more)

    def document(self) -> Dict[str, Any]:
        found = super().document()
        if self.bound:
            found.setdefault("dpop_signing_alg_values_supported", ["ES256"])
        return found

    def _token(self, exchange: Exchange) -> None:
        with self._lock:
            self._thumbprint = None
            if self.bound:
                try:
                    self._thumbprint = self.proofs.thumbprint(exchange, self.issuer + "/token")
                except Refused as refusal:
                    code = str(refusal)
                    self.refused.append(code)
                    nonce = {} if self.proofs.nonce is None else {"DPoP_Nonce": self.proofs.nonce}
                    exchange.respond(400, {"error": code}, **nonce)
                    return
            super()._token(exchange)

    def _client_of(self, exchange: Exchange, form: Mapping[str, str]) -> str:
        if "client_assertion" not in form:
            return super()._client_of(exchange, form)
        client_id = decoded(form["client_assertion"])[1]["iss"]
        known = self._keys.get(client_id)
        if known is None or form["client_assertion_type"] != ASSERTION_TYPE or form.get("client_id") != client_id:
            raise Refused("invalid_client")
        key, algorithm = known
        _, claims = verified(form["client_assertion"], key, algorithm)
        right = (
            claims["sub"] == client_id
            and claims["aud"] == self.issuer
            and claims["iat"] - RECENT < time.time() < claims["exp"] <= claims["iat"] + 300
            and claims["jti"] not in self._used
        )
        self._used.add(claims["jti"])
        if not right:
            raise Refused("invalid_client")
        return client_id

    def _grant(self, form: Mapping[str, str], client_id: str) -> Dict[str, str]:
        kind = form.get("grant_type")
        machine: Dict[str, str] = {"client_id": client_id, "scope": form.get("scope", ""), "family": "machine"}
        if kind == "client_credentials":
            if self.asks_resource and "resource" not in form:
                raise Refused("invalid_target")
            return machine
        if kind == JWT_BEARER:
            try:
                header, claims = verified(form["assertion"], self._trusts, "ES256")
            except Refused:
                raise Refused("invalid_grant") from None
            if claims["aud"] != self.issuer or claims["exp"] <= time.time():
                raise Refused("invalid_grant")
            if header.get("typ") == "oauth-id-jag+jwt":
                if claims["client_id"] != client_id:
                    raise Refused("invalid_grant")
                return {**machine, "scope": claims.get("scope", "")}
            return machine
        granted = super()._grant(form, client_id)
        if granted.get("dpop_jkt", self._thumbprint) != self._thumbprint:
            raise Refused("invalid_grant")
        return granted

    def _issue(self, granted: Dict[str, str], form: Mapping[str, str]) -> Dict[str, Any]:
        held = granted.get("jkt")
        if form["grant_type"] == "refresh_token" and held is not None and held != self._thumbprint:
            raise Refused("invalid_grant")
        granted = dict(granted)
        if self._thumbprint is not None:
            granted["jkt"] = self._thumbprint
        answer = super()._issue(granted, form)
        if self._thumbprint is not None:
            answer["token_type"] = "DPoP"
        if granted["family"] == "machine":
            answer.pop("refresh_token", None)
        return answer


class IdentityProvider(AuthorizationServer):
    """The identity provider of an organization: exchanges identity tokens for what other servers believe.

    :param key: signs
    :param id_token: the only one that is good
    """

    def __init__(self, key: Any, id_token: str, **more: Any) -> None:
        self._key = key
        self._id_token = id_token
        super().__init__(asks_resource=False, **more)

    def _token(self, exchange: Exchange) -> None:
        form = {name: values[0] for name, values in parse_qs(exchange.request.body.decode()).items()}
        with self._lock:
            self.token_requests.append(form)
            try:
                client_id = self._client_of(exchange, form)
                right = (
                    form.get("grant_type") == EXCHANGE
                    and form.get("requested_token_type") == ID_JAG
                    and form.get("subject_token") == self._id_token
                    and form.get("subject_token_type") == "urn:ietf:params:oauth:token-type:id_token"
                )
                if not right:
                    raise Refused("invalid_grant")
            except Refused as refusal:
                self._refuse(exchange, str(refusal))
                return
        claims = {
            "iss": self.issuer,
            "sub": "ada",
            "aud": form["audience"],
            "resource": form["resource"],
            "client_id": {"agent-at-idp": "agent"}.get(client_id, client_id),
            "scope": form.get("scope", ""),
            "jti": secrets.token_hex(8),
            "exp": int(time.time()) + 60,
        }
        given = signed({"alg": "ES256", "typ": "oauth-id-jag+jwt"}, claims, self._key)
        answer = {"issued_token_type": ID_JAG, "access_token": given, "token_type": "N_A", "expires_in": 60}
        answer.update(self._tokens)
        exchange.respond(200, answer)


class BoundServer(ProtectedServer):
    """An MCP server that wants a proof with each token.

    :param nonce: that has to be in each proof; None: none
    """

    def __init__(self, *trusted: AuthorizationServer, nonce: Optional[str] = None, **more: Any) -> None:
        self.proofs = Proofs(nonce)
        self.refusals: List[str] = []
        super().__init__(*trusted, **more)

    @property
    def challenge(self) -> str:
        return "DPoP " + super().challenge[len("Bearer ") :]

    def _guard(self, exchange: Exchange) -> None:
        scheme, _, token = exchange.request.headers.get("authorization", "").partition(" ")
        granted = next((server.access[token] for server in self.trusted if token in server.access), None)
        if granted is None or scheme != "DPoP":
            exchange.respond(401, {}, WWW_Authenticate=self.challenge)
            return
        nonce = {} if self.proofs.nonce is None else {"DPoP_Nonce": self.proofs.nonce}
        try:
            if self.proofs.thumbprint(exchange, self.url, token) != granted["jkt"]:
                raise Refused("invalid_token")
        except Refused as refusal:
            self.refusals.append(str(refusal))
            exchange.respond(401, {}, WWW_Authenticate='DPoP error="%s"' % refusal, **nonce)
            return
        self._then(exchange)
