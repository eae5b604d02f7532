"""The two documents that say where to sign in, checked as far as each can be alone.

Specification: `basic/authorization`, authorization server discovery; RFC 9728, 2; RFC 8414, 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Mapping, Optional, Tuple

from mcpsync.auth.urls import Url
from mcpsync.errors import AuthError

__all__ = ["ResourceMetadata", "ServerMetadata"]

_MOST = 1000  # items of a list; a longer one is no help


@dataclass(frozen=True)
class ResourceMetadata:
    """What a protected resource says about itself.

    :ivar resource: its identifier, exactly as published
    :ivar authorization_servers: issuers, exactly as published; at least one
    :ivar scopes_supported: None: not said
    :ivar source: the URL it was fetched from
    :ivar wants_proof: of possession, with each token (``dpop_bound_access_tokens_required``)
    """

    resource: str
    authorization_servers: Tuple[str, ...]
    scopes_supported: Optional[Tuple[str, ...]] = None
    source: str = ""
    wants_proof: bool = False

    @classmethod
    def from_json(cls, data: Mapping[str, Any], source: str) -> ResourceMetadata:
        """From a document.

        :raises AuthError: it lacks what it must have, or has it in another form
        """
        read = _Fields(data, source)
        servers = read.texts("authorization_servers")
        if not servers:
            raise AuthError("%s names no authorization_servers" % source)
        wants_proof = read.flag("dpop_bound_access_tokens_required")
        return cls(read.text("resource"), servers, read.texts("scopes_supported"), source, wants_proof)


@dataclass(frozen=True)
class ServerMetadata:
    """What an authorization server says about itself.

    :ivar issuer: exactly as published
    :ivar authorization_endpoint: empty: people cannot sign in here, only machines
    :ivar registration_endpoint: None: clients cannot register on their own
    :ivar revocation_endpoint: None: tokens cannot be revoked
    :ivar scopes_supported: None: not said; so for all lists
    :ivar sends_issuer: its answers name it (``authorization_response_iss_parameter_supported``)
    :ivar takes_metadata_documents: a client's id may be the URL of its metadata
    :ivar proof_algorithms: for proofs of possession (``dpop_signing_alg_values_supported``)
    :ivar source: the URL it was fetched from; empty: the defaults of 2025-03-26
    """

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    registration_endpoint: Optional[str] = None
    revocation_endpoint: Optional[str] = None
    scopes_supported: Optional[Tuple[str, ...]] = None
    response_types_supported: Optional[Tuple[str, ...]] = None
    grant_types_supported: Optional[Tuple[str, ...]] = None
    token_endpoint_auth_methods_supported: Optional[Tuple[str, ...]] = None
    code_challenge_methods_supported: Optional[Tuple[str, ...]] = None
    sends_issuer: bool = False
    takes_metadata_documents: bool = False
    source: str = ""
    proof_algorithms: Optional[Tuple[str, ...]] = None

    @classmethod
    def from_json(cls, data: Mapping[str, Any], source: str) -> ServerMetadata:
        """From a document.

        :raises AuthError: it lacks what it must have, or has it in another form
        """
        read = _Fields(data, source)
        return cls(
            issuer=read.text("issuer"),
            authorization_endpoint=read.optional_text("authorization_endpoint") or "",
            token_endpoint=read.text("token_endpoint"),
            registration_endpoint=read.optional_text("registration_endpoint"),
            revocation_endpoint=read.optional_text("revocation_endpoint"),
            scopes_supported=read.texts("scopes_supported"),
            response_types_supported=read.texts("response_types_supported"),
            grant_types_supported=read.texts("grant_types_supported"),
            token_endpoint_auth_methods_supported=read.texts("token_endpoint_auth_methods_supported"),
            code_challenge_methods_supported=read.texts("code_challenge_methods_supported"),
            sends_issuer=read.flag("authorization_response_iss_parameter_supported"),
            takes_metadata_documents=read.flag("client_id_metadata_document_supported"),
            source=source,
            proof_algorithms=read.texts("dpop_signing_alg_values_supported"),
        )

    @classmethod
    def defaults_at(cls, origin: str) -> ServerMetadata:
        """Where the endpoints are if a server says nothing (2025-03-26, fallbacks without metadata discovery)."""
        return cls(origin, origin + "/authorize", origin + "/token", origin + "/register")

    def check(self, allows: Callable[[Url], bool], *, for_people: bool = True) -> None:
        """Hold the endpoints to https and to the issuer's origin, and the server to PKCE.

        :param allows: whether the user named a host as one that may hold endpoints
        :param for_people: whether a person is to sign in there
        :raises AuthError: an endpoint is elsewhere, or the server does not do the code flow with S256
        """
        issuer = Url.parse(self.issuer, "the issuer")
        for name in ("authorization_endpoint", "token_endpoint", "registration_endpoint", "revocation_endpoint"):
            endpoint = getattr(self, name)
            if not endpoint:
                continue
            url = Url.parse(endpoint, "the %s of %s" % (name, self.issuer))
            url.require_secure()
            if url.origin != issuer.origin and not allows(url):
                raise AuthError(
                    "the %s of %s is elsewhere, on %s; if that provider splits its endpoints, name %r in allow_hosts"
                    % (name, self.issuer, url.origin, url.authority)
                )
        if not for_people:
            return
        if not self.authorization_endpoint:
            raise AuthError("%s has no authorization_endpoint" % (self.source or self.issuer))
        if self.source and "S256" not in (self.code_challenge_methods_supported or ()):
            raise AuthError(
                "%s does not say that it supports PKCE with S256 (code_challenge_methods_supported in %s): "
                "it cannot be used safely" % (self.issuer, self.source)
            )
        if self.response_types_supported is not None and "code" not in self.response_types_supported:
            raise AuthError("%s does not support the authorization code flow" % self.issuer)


class _Fields:
    """The fields of a document; errors name document and field."""

    def __init__(self, data: Mapping[str, Any], source: str) -> None:
        self._data = data
        self._source = source

    def optional_text(self, name: str) -> Optional[str]:
        value = self._data.get(name)
        if value is not None and not isinstance(value, str):
            raise AuthError("%s: %s is a %s, not a text" % (self._source, name, type(value).__name__))
        return value or None

    def text(self, name: str) -> str:
        value = self.optional_text(name)
        if value is None:
            raise AuthError("%s has no %s" % (self._source, name))
        return value

    def texts(self, name: str) -> Optional[Tuple[str, ...]]:
        value = self._data.get(name)
        if value is None:
            return None
        if not isinstance(value, list) or len(value) > _MOST or not all(isinstance(item, str) for item in value):
            raise AuthError("%s: %s is not a list of at most %d texts" % (self._source, name, _MOST))
        return tuple(dict.fromkeys(value))

    def flag(self, name: str) -> bool:
        return self._data.get(name) is True
