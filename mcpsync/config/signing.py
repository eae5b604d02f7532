"""What an entry says of signing in, in the spellings of all layouts, as the options of :class:`~mcpsync.OAuth`."""

from __future__ import annotations

import re
from typing import Any, Callable, Dict, Mapping, Optional, Tuple

from mcpsync.config.diagnose import Where, kind, nearest

__all__ = ["Remarks", "read_auth"]

Scalar = Callable[[str, Where, Any], str]

_NAMES: Mapping[str, str] = {
    "account": "account",
    "assertion": "assertion",
    "assertionfile": "assertion",
    "allowhosts": "allow_hosts",
    "authmethod": "auth_method",
    "authorizationparams": "parameters",
    "authservermetadataurl": "server_metadata_url",
    "callbackport": "callback_port",
    "clientid": "client_id",
    "clientmetadataurl": "client_metadata_url",
    "clientname": "client_name",
    "clientsecret": "client_secret",
    "dpop": "dpop",
    "grant": "grant",
    "idpclientid": "idp_client_id",
    "idpclientsecret": "idp_client_secret",
    "idpissuer": "idp_issuer",
    "idptokenendpoint": "idp_token_endpoint",
    "idtoken": "id_token",
    "idtokenfile": "id_token",
    "issuer": "issuer",
    "keyid": "key_id",
    "privatekey": "private_key",
    "privatekeyfile": "private_key",
    "redirecturi": "redirect_uri",
    "scope": "scopes",
    "scopes": "scopes",
    "signingalgorithm": "signing_algorithm",
}
_SPELLINGS = (
    *("account", "allow_hosts", "auth_method", "authorizationParams", "authServerMetadataUrl", "callbackPort"),
    *("clientId", "clientMetadataUrl", "clientName", "clientSecret", "issuer", "redirectUri", "scopes"),
    *("assertion", "assertionFile", "dpop", "grant", "idToken", "idTokenFile", "idpClientId", "idpClientSecret"),
    *("idpIssuer", "idpTokenEndpoint", "keyId", "privateKey", "privateKeyFile", "signingAlgorithm"),
)
_NOT_USED = frozenset(
    ("audiences", "authorizationurl", "enterprisemanaged", "oninsufficientscope", "tokenparamname", "tokenurl")
)
_METHODS = ("none", "client_secret_basic", "client_secret_post", "private_key_jwt")
_DOCUMENT = re.compile(r"https://[!#-;=?-\[\]_a-z~]+/[!#-;=?-\[\]_a-z~]+\Z")
_NEEDS: Mapping[str, Tuple[Tuple[str, ...], ...]] = {  # by grant: one of each
    "authorization_code": (),
    "client_credentials": (("client_id", "client_metadata_url"), ("client_secret", "private_key")),
    "jwt_bearer": (("client_id", "client_metadata_url"), ("assertion",)),
    "enterprise": (
        ("client_id", "client_metadata_url"),
        ("id_token",),
        ("idp_client_id",),
        ("idp_issuer", "idp_token_endpoint"),
    ),
}
_LISTS = ("scopes", "allow_hosts")
_FILES = ("assertionfile", "idtokenfile", "privatekeyfile")


class Remarks:
    """How an entry reads texts and reports what is wrong.

    :ivar scalar: a text, expanded, of a field and a place
    :ivar wrong: what keeps the server from starting
    :ivar warn: what does not
    """

    def __init__(
        self,
        scalar: Scalar,
        wrong: Callable[[Where, str], None],
        warn: Callable[[Where, str, Optional[str]], Any],
    ) -> None:
        self.scalar = scalar
        self.wrong = wrong
        self.warn = warn


def read_auth(
    fields: Mapping[str, Tuple[str, Any]], headers: Mapping[str, str], remarks: Remarks
) -> Tuple[Optional[Dict[str, Any]], Optional[str]]:
    """Options for signing in, None if nobody is to; and a token that is to be sent as it is, if there is one.

    :param fields: by field, the key that it has in the entry, and its value: ``auth`` and ``oauth``
    :param headers: an ``Authorization`` among them is used instead
    """
    has_header = any(name.lower() == "authorization" for name in headers)
    options: Optional[Dict[str, Any]] = None if has_header else {}
    for field in ("auth", "oauth"):
        if field not in fields:
            continue
        key, value = fields[field]
        if has_header and value not in (False, "none"):
            remarks.warn((key,), "is not used: there is an Authorization header", None)
        elif isinstance(value, Mapping):
            said = _options(key, value, remarks)
            options = None if said is None or options is None else {**options, **said}
        elif value in (False, "none"):
            options = None
        elif value is True or value == "oauth":
            pass
        elif field == "auth" and isinstance(value, str):
            return None, remarks.scalar("auth", (key,), value)
        else:
            remarks.wrong((key,), "must be 'oauth', 'none' or a map of options, and is %s" % kind(value))
    return options, None


def _options(key: str, said: Mapping[Any, Any], remarks: Remarks) -> Optional[Dict[str, Any]]:
    """None: it says that nobody is to sign in."""
    found: Dict[str, Any] = {}
    for given, value in said.items():
        inside = (key, str(given))
        plain = str(given).replace("_", "").lower()
        if plain == "enabled":
            if value is False:
                return None
        elif plain in _NOT_USED:
            remarks.warn(inside, "is known, but not used by this version", None)
        elif plain not in _NAMES:
            remarks.warn(inside, "unknown key", nearest(str(given), dict.fromkeys(_SPELLINGS), {}))
        elif value is not None:
            name = _NAMES[plain]
            found[name] = _value(name, inside, value, remarks)
            if plain in _FILES:
                found[name] = {"file": found[name]}
    _check(key, found, remarks)
    return found


def _check(key: str, found: Mapping[str, Any], remarks: Remarks) -> None:
    """What would be refused when the client is made, which is too late to say where it stands."""
    secret, method = found.get("client_secret"), found.get("auth_method")
    if secret is not None and not found.get("client_id"):
        remarks.wrong((key,), "has a client secret without the client id that it is of")
    if method not in (None, *_METHODS):
        remarks.wrong((key,), "auth_method must be one of %s" % ", ".join(_METHODS))
    elif method == "private_key_jwt" and found.get("private_key") is None:
        remarks.wrong((key,), "auth_method private_key_jwt needs a private key")
    elif method not in (None, "none", "private_key_jwt") and found.get("client_id") and secret is None:
        remarks.wrong((key,), "auth_method %s needs a client secret" % method)
    _check_grant(key, found, remarks)
    url = found.get("client_metadata_url")
    if url is not None and not _DOCUMENT.match(url):
        remarks.wrong((key,), "clientMetadataUrl must be an https URL with a path")


def _check_grant(key: str, found: Mapping[str, Any], remarks: Remarks) -> None:
    grant = found.get("grant", "authorization_code")
    if grant not in _NEEDS:
        remarks.wrong((key,), "grant must be one of %s" % ", ".join(_NEEDS))
        return
    for alternatives in _NEEDS[grant]:
        if not any(found.get(name) for name in alternatives):
            remarks.wrong((key,), "grant %s needs a %s" % (grant, " or a ".join(alternatives)))
            return


def _value(name: str, inside: Where, value: Any, remarks: Remarks) -> Any:
    if name == "callback_port":
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 65536:
            remarks.wrong(inside, "must be the number of a port")
            return 0
        return value
    if name == "dpop":
        if not isinstance(value, bool):
            remarks.wrong(inside, "must be true or false, and is %s" % kind(value))
            return None
        return value
    if name == "parameters":
        if not isinstance(value, Mapping):
            remarks.wrong(inside, 'must be a map, as {"audience": "x"}, and is %s' % kind(value))
            return {}
        return {str(each): remarks.scalar("auth", (*inside, str(each)), text) for each, text in value.items()}
    if name in _LISTS and isinstance(value, (list, tuple)):
        return [remarks.scalar("auth", (*inside, index), text) for index, text in enumerate(value)]
    text = remarks.scalar("auth", inside, value)
    return text.split() if name in _LISTS else text
