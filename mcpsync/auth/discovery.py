"""From a server's URL and its challenge to the authorization server that it trusts.

Specification: `basic/authorization`, authorization server discovery; for servers that publish no metadata of their
own, 2025-03-26 `basic/authorization`, server metadata discovery.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Collection, List, Optional, Tuple

from mcpsync.auth.challenge import BearerChallenge
from mcpsync.auth.metadata import ResourceMetadata, ServerMetadata
from mcpsync.auth.urls import Url
from mcpsync.auth.web import Web
from mcpsync.deadline import Deadline
from mcpsync.errors import AuthError, IssuerMismatch

__all__ = ["Discovery", "discover", "server_of"]

_RESOURCE = "/.well-known/oauth-protected-resource"
_SERVER = "/.well-known/oauth-authorization-server"
_OPENID = "/.well-known/openid-configuration"


@dataclass(frozen=True)
class Discovery:
    """Where to sign in for a server.

    :ivar resource: what tokens are for: as the server's metadata names it, or else its URL
    :ivar server: the authorization server
    :ivar resource_metadata: None: the server publishes none, and is its own authorization server (2025-03-26)
    :ivar challenged_scope: what the challenge asked for; None: it did not say
    """

    resource: str
    server: ServerMetadata
    resource_metadata: Optional[ResourceMetadata] = None
    challenged_scope: Optional[Tuple[str, ...]] = None

    @property
    def issuer(self) -> str:
        """Of the authorization server, exactly as published."""
        return self.server.issuer

    @property
    def names_resource(self) -> bool:
        """Whether token requests name the resource."""
        return self.resource_metadata is not None


def discover(
    url: str,
    challenge: BearerChallenge,
    web: Web,
    deadline: Deadline,
    *,
    issuer: Optional[str] = None,
    known_issuers: Collection[str] = (),
    server_metadata_url: Optional[str] = None,
    for_people: bool = True,
) -> Discovery:
    """Find out where to sign in.

    :param url: of the MCP server
    :param challenge: of its 401
    :param issuer: the only authorization server that the user wants; has to be one that the server names
    :param known_issuers: of several that the server names, one of these is preferred: a sign-in exists there
    :param server_metadata_url: where the user knows the authorization server's metadata to be
    :param for_people: whether a person is to sign in; machines need no PKCE
    :raises AuthError: nothing was found, or what was found leads elsewhere
    :raises IssuerMismatch: the authorization server is not who it should be
    """
    server_url = Url.parse(url, "the server's URL")
    server_url.require_secure()  # a token would be sent in the clear, and whoever is on the way could announce metadata
    found = _resource_metadata(server_url, challenge, web, deadline)
    if found is not None:
        _check_resource(found, server_url)
    if server_metadata_url is not None:
        server = _server_of_the_users(server_metadata_url, issuer, web, deadline)
    elif found is not None:
        server = server_of(_choose(found, issuer, known_issuers), web, deadline)
    elif issuer is not None:
        server = server_of(issuer, web, deadline)
    else:
        server = _server_of_its_own(server_url, web, deadline)
    server.check(web.allows, for_people=for_people)
    if found is None:
        return Discovery(_canonical(server_url), server, None, challenge.scope)
    return Discovery(found.resource, server, found, challenge.scope)


# -- the protected resource ------------------------------------------------------------------------------------------


def _resource_metadata(
    server_url: Url, challenge: BearerChallenge, web: Web, deadline: Deadline
) -> Optional[ResourceMetadata]:
    if challenge.resource_metadata is not None:
        named = challenge.resource_metadata
        answer = web.get_json(named, deadline)
        if answer.status != 200 or answer.data is None:
            raise AuthError(
                "%s, which the server names as its metadata, answers with %d and %s"
                % (Url.parse(named, "it").shown, answer.status, "no JSON object" if answer.data is None else "JSON")
            )
        return ResourceMetadata.from_json(answer.data, named)
    path = "" if server_url.path == "/" else server_url.path
    for candidate in dict.fromkeys((server_url.origin + _RESOURCE + path, server_url.origin + _RESOURCE)):
        answer = web.get_json(candidate, deadline)
        if answer.status == 200 and answer.data is not None:
            return ResourceMetadata.from_json(answer.data, candidate)
        if answer.status >= 500:  # it may have metadata, so that nothing else may be assumed
            raise _failing(candidate, answer.status)
    return None


def _failing(place: str, status: int) -> AuthError:
    error = AuthError("%s answers with %d; try again later" % (place, status))
    error.passing = True
    return error


def _check_resource(metadata: ResourceMetadata, server_url: Url) -> None:
    """Hold the metadata to be of this server, or of a part of its site that it is in (RFC 9728, 3.3)."""
    if "#" in metadata.resource:
        raise AuthError("%s: the resource has a fragment" % metadata.source)
    resource = Url.parse(metadata.resource, "the resource in %s" % metadata.source)
    inside = (server_url.path.rstrip("/") + "/").startswith(resource.path.rstrip("/") + "/")
    same_query = resource.target in (resource.path, server_url.target)
    if resource.origin != server_url.origin or not inside or not same_query or ".." in resource.path.split("/"):
        raise AuthError(
            "%s is the metadata of another resource, %s, and not of %s: no token is asked for"
            % (metadata.source, resource.shown, server_url.shown)
        )


def _choose(metadata: ResourceMetadata, issuer: Optional[str], known: Collection[str]) -> str:
    servers = metadata.authorization_servers
    if issuer is not None:
        # without its last slash it is the same server, and the user knows which way its own metadata says it
        if issuer.rstrip("/") not in {server.rstrip("/") for server in servers}:
            raise IssuerMismatch(
                "%s names the authorization servers %s, and not %s" % (metadata.source, ", ".join(servers), issuer)
            )
        return issuer
    return next((server for server in servers if server in known), servers[0])


def _canonical(url: Url) -> str:
    return url.origin + ("" if url.target == "/" else url.target)


# -- the authorization server ----------------------------------------------------------------------------------------


def well_known_urls(issuer: str) -> List[str]:
    """Where an issuer's metadata may be, in the specified order.

    :raises AuthError: it is no URL
    """
    url = Url.parse(issuer, "the issuer")
    if url.target != url.path or "#" in issuer:
        raise AuthError("the issuer %s has a query or a fragment" % url.shown)
    path = url.path.rstrip("/")
    found = [url.origin + _SERVER + path, url.origin + _OPENID + path]
    return [*found, url.origin + path + _OPENID] if path else found


def server_of(issuer: str, web: Web, deadline: Deadline) -> ServerMetadata:
    """The metadata of an authorization server, not yet held to what it is used for.

    :raises AuthError: there is none
    :raises IssuerMismatch: it is of another one
    """
    candidates = well_known_urls(issuer)
    found = _first(candidates, web, deadline)
    if found is None:
        raise AuthError("no metadata of the authorization server %s at %s" % (issuer, " or ".join(candidates)))
    return _checked(found, (issuer,))


def _server_of_its_own(server_url: Url, web: Web, deadline: Deadline) -> ServerMetadata:
    """What a server uses that publishes nothing about itself: its own origin (2025-03-26)."""
    origin = server_url.origin
    found = _first(well_known_urls(origin), web, deadline)
    if found is None:
        found = ServerMetadata.defaults_at(origin)
    # both are the identifier that this well-known URL belongs to, and nobody named one
    return _checked(found, (origin, origin + "/"))


def _server_of_the_users(url: str, issuer: Optional[str], web: Web, deadline: Deadline) -> ServerMetadata:
    found = _first([url], web, deadline)
    if found is None:
        raise AuthError("no metadata of an authorization server at %s" % url)
    if issuer is None and url in well_known_urls(found.issuer):
        issuer = found.issuer
    return _checked(found, (issuer or Url.parse(url, "it").origin,))


def _first(candidates: Collection[str], web: Web, deadline: Deadline) -> Optional[ServerMetadata]:
    """The first document that is there; one that is there and wrong is not passed over.

    :raises AuthError: there is none, and a place where it may be fails at the moment
    """
    failing: Optional[AuthError] = None
    for candidate in candidates:
        answer = web.get_json(candidate, deadline)
        if answer.status == 200 and answer.data is not None:
            return ServerMetadata.from_json(answer.data, candidate)
        if answer.status >= 500:
            failing = failing or _failing(candidate, answer.status)
    if failing is not None:  # nothing else may be assumed, as that it does not know PKCE
        raise failing
    return None


def _checked(metadata: ServerMetadata, issuers: Tuple[str, ...]) -> ServerMetadata:
    if metadata.issuer not in issuers:  # by plain comparison (RFC 8414, 3.3)
        raise IssuerMismatch(
            "%s is the metadata of %s, and not of %s: it is not used; if the former is the provider that you mean, "
            "name it as issuer" % (metadata.source, metadata.issuer, issuers[0])
        )
    return metadata
