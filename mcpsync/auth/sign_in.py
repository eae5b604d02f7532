"""A whole sign-in by a person, from what discovery found to credentials.

Specification: `basic/authorization`, authorization flow steps.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional, Sequence

from mcpsync.auth.authorization_code import code_of, prepare
from mcpsync.auth.browser import Way
from mcpsync.auth.credentials import ClientIdentity, Credentials
from mcpsync.auth.discovery import Discovery
from mcpsync.auth.identity import IdentityOptions, identify
from mcpsync.auth.token_endpoint import TokenRefused, exchange_code
from mcpsync.auth.web import Web
from mcpsync.deadline import Deadline
from mcpsync.errors import AuthError

if TYPE_CHECKING:
    from mcpsync.auth.proof import Prover

__all__ = ["sign_in"]


def sign_in(
    discovery: Discovery,
    options: IdentityOptions,
    saved: Optional[ClientIdentity],
    scopes: Sequence[str],
    way: Way,
    web: Web,
    deadline: Deadline,
    *,
    account: str,
    identified: Optional[Callable[[Credentials], Any]] = None,
    parameters: Optional[Mapping[str, str]] = None,
    prover: Optional[Prover] = None,
) -> Credentials:
    """Have a person sign in.

    :param saved: who this client was before, of whatever issuer
    :param scopes: to ask for, see :func:`~mcpsync.auth.authorization_code.choose_scopes`
    :param deadline: for all of it, the person included
    :param account: whose credentials these become
    :param identified: told before the person is asked, with credentials that have no tokens yet: a registration is
        worth keeping even if nobody comes back
    :param parameters: more of them for the authorization endpoint, which a provider wants
    :param prover: has the key that the tokens are to be bound to; None: they are not
    :raises AuthError: nobody signed in; its subclasses say more
    """
    server = discovery.server
    with way.begin(() if saved is None or saved.issuer != server.issuer else saved.redirect_uris) as visit:
        identity = identify(discovery, options, saved, visit.redirect_uri, scopes, web, deadline)
        credentials = Credentials(
            issuer=server.issuer,
            resource=discovery.resource,
            account=account,
            identity=identity,
            token_endpoint=server.token_endpoint,
            revocation_endpoint=server.revocation_endpoint,
            requested=tuple(scopes),
            names_resource=discovery.names_resource,
        )
        if identified is not None:
            identified(credentials)
        thumbprint = None if prover is None else prover.thumbprint
        request = prepare(discovery, identity, scopes, visit.redirect_uri, parameters, thumbprint)
        try:
            answer = visit.answer(request, deadline)
        except AuthError as error:
            if identity is not saved or type(error) is not AuthError:  # those of a host's own way are its own
                raise
            raise AuthError(
                "%s; if %s said that it does not know the client, sign out first" % (error.message, server.issuer)
            ) from None
    code = code_of(request, answer)
    try:
        tokens = exchange_code(
            server.token_endpoint,
            identity,
            code=code,
            verifier=request.verifier,
            redirect_uri=visit.redirect_uri,
            resource=discovery.resource if discovery.names_resource else None,
            requested=request.scopes,
            web=web,
            deadline=deadline,
            prover=prover,
        )
    except TokenRefused as error:
        if error.error == "invalid_client" and identity.source == "registered":
            raise AuthError(
                "%s no longer knows the client that was registered there; sign out, and sign in again" % server.issuer
            ) from error
        raise
    return replace(credentials, tokens=tokens, proof_key=None if prover is None else prover.to_pem())
