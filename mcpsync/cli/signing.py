"""Commands for signing in: login, logout, auth status."""

from __future__ import annotations

import time
from typing import Any, Dict, List, Optional, Sequence

from mcpsync.auth.browser import Browser, Paste
from mcpsync.auth.credentials import Credentials
from mcpsync.auth.default_store import default_store
from mcpsync.auth.oauth import OAuth
from mcpsync.cli.arguments import Invocation
from mcpsync.cli.exits import OK, code_of
from mcpsync.cli.listings import error_document
from mcpsync.cli.output import Output
from mcpsync.cli.servers import Server, closed_after, find_servers, the_one
from mcpsync.cli.text import printable
from mcpsync.client import Client
from mcpsync.errors import ConfigError, McpError

__all__ = ["oauth_of", "run_signing"]


def oauth_of(invocation: Invocation, output: Output) -> OAuth:
    """How ``login`` signs in."""

    def announce(url: str) -> None:
        output.errors("To sign in, open this in a browser, if that has not happened:\n\n  %s\n\n" % printable(url))

    port = invocation.callback_port or 0
    return OAuth(
        scopes=invocation.scope,
        client_id=invocation.client_id,
        callback_port=port,
        way=Paste(port=port) if invocation.paste else Browser(port, announce=announce),
    )


def run_signing(invocation: Invocation, output: Output) -> int:
    """Do it, show what came of it, and give the exit code."""
    if invocation.command == "auth":
        return _status(output)
    server = the_one(find_servers(invocation, output), invocation)
    with closed_after([] if server.client is None else [server.client]):
        try:
            client = _client_of(server)
            return (_login if invocation.command == "login" else _logout)(client, invocation, output)
        except McpError as error:
            error.located(server.name)
            output.note(str(error))
            output.document({"server": server.name, "error": error_document(error)})
            return code_of(error)


def _client_of(server: Server) -> Client:
    if server.client is None:
        raise server.error or ConfigError("cannot be reached", server=server.name)
    return server.client


def _login(client: Client, invocation: Invocation, output: Output) -> int:
    client.login(invocation.timeout)
    credentials = client.credentials
    assert credentials is not None
    output.lines("%s: signed in at %s" % (client.name, credentials.issuer))
    output.table([_row(credentials)[1:]])
    output.document({"server": client.name, "signed_in": True, **_document(credentials)})
    return OK


def _logout(client: Client, invocation: Invocation, output: Output) -> int:
    had = client.credentials
    told = client.logout()
    if had is None:
        output.lines("%s: nobody was signed in" % client.name)
    elif told:
        output.lines("%s: signed out; %s was told" % (client.name, had.issuer))
    else:
        output.lines("%s: signed out here; %s was not told, and may know the tokens until they expire" % (
            client.name, had.issuer))  # fmt: skip
    output.document({"server": client.name, "was_signed_in": had is not None, "revoked": told})
    return OK


def _status(output: Output) -> int:
    store = default_store()
    found = [store.load(key) for key in sorted(store.keys()) if key.issuer]
    known = sorted((each for each in found if each is not None), key=lambda each: (each.account, each.resource))
    output.lines("%d sign-in%s in %s" % (len(known), "" if len(known) == 1 else "s", store.folder))
    rows: List[Sequence[str]] = [_row(each) for each in known]
    output.table(rows)
    output.document({"folder": store.folder, "accounts": [_document(each) for each in known]})
    return OK


def _row(credentials: Credentials) -> Sequence[str]:
    return (
        credentials.account,
        credentials.resource,
        _condition(credentials),
        "at " + credentials.issuer,
        _manner(credentials),
        " ".join(credentials.tokens.scope) if credentials.tokens is not None else "",
    )


def _manner(credentials: Credentials) -> str:
    return credentials.grant + (", bound to a key" if credentials.proof_key is not None else "")


def _condition(credentials: Credentials) -> str:
    tokens = credentials.tokens
    if tokens is None:
        return "signed out"
    if tokens.refresh_token is not None:
        return "signed in"
    if tokens.expires_at is None:
        return "signed in, for how long is not known"
    left = tokens.expires_at - time.time()
    return "expired" if left <= 0 else "signed in for %d min" % (left / 60)


def _document(credentials: Credentials) -> Dict[str, Any]:
    tokens = credentials.tokens
    expires_at: Optional[float] = None if tokens is None else tokens.expires_at
    return {
        "account": credentials.account,
        "resource": credentials.resource,
        "issuer": credentials.issuer,
        "client_id": credentials.identity.client_id,
        "state": _condition(credentials),
        "scopes": [] if tokens is None else list(tokens.scope),
        "expires_at": expires_at,
        "grant": credentials.grant,
        "bound": credentials.proof_key is not None,
        "refreshes": tokens is not None and tokens.refresh_token is not None,
    }
