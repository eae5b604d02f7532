"""The environment variables that a server's process gets.

Three modes, and in each the variables that the user set for the server are laid on top:

``safe``
    what programs need to run, to find their user, to reach the network and to install packages; not the secrets of
    the parent, and nothing that steers the parent's own interpreter or its library search
``inherit``
    everything that the parent has
``none``
    nothing (on Windows the few variables without which no program starts)

The MCP specification leaves this to the client (Basic / Transports / stdio).
"""

from __future__ import annotations

import os
import re
from functools import lru_cache
from typing import Dict, FrozenSet, List, Mapping, Optional

from mcpsync.transport.masking import looks_secret

__all__ = ["MODES", "server_environment", "withheld"]


def _names(text: str) -> FrozenSet[str]:
    return frozenset(text.split())


MODES = ("safe", "inherit", "none")

_SAFE_NAMES = _names(
    "PATH HOME USER LOGNAME SHELL TERM LANG LANGUAGE TZ TMPDIR TEMP TMP HTTP_PROXY HTTPS_PROXY FTP_PROXY"
    " ALL_PROXY NO_PROXY SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE NODE_EXTRA_CA_CERTS"
)
_SAFE_PREFIXES = ("LC_", "XDG_", "NPM_CONFIG_", "PIP_")
_ANY_CASE = re.compile(r"(?:https?|ftp|all|no)_proxy|npm_config_.*", re.IGNORECASE | re.DOTALL)
"""Names that programs read in lower case as well."""

_WINDOWS_MINIMUM = _names("SYSTEMROOT SYSTEMDRIVE WINDIR COMSPEC PATHEXT")
_WINDOWS_SAFE = _WINDOWS_MINIMUM | _names(
    "APPDATA LOCALAPPDATA PROGRAMDATA PROGRAMFILES PROGRAMFILES(X86) PROGRAMW6432 COMMONPROGRAMFILES"
    " COMMONPROGRAMFILES(X86) COMMONPROGRAMW6432 ALLUSERSPROFILE PUBLIC USERPROFILE USERNAME USERDOMAIN"
    " HOMEDRIVE HOMEPATH COMPUTERNAME NUMBER_OF_PROCESSORS PROCESSOR_ARCHITECTURE OS"
)

_OFTEN_NEEDED = _names(
    "SSH_AUTH_SOCK DOCKER_HOST DOCKER_CONTEXT DOCKER_CONFIG KUBECONFIG DISPLAY WAYLAND_DISPLAY XAUTHORITY"
    " DBUS_SESSION_BUS_ADDRESS JAVA_HOME NODE_PATH NODE_OPTIONS NVM_DIR PNPM_HOME VOLTA_HOME BUN_INSTALL"
    " GOPATH GOROOT CARGO_HOME RUSTUP_HOME PYTHONPATH PYTHONHOME VIRTUAL_ENV CONDA_PREFIX LD_LIBRARY_PATH"
    " DATABASE_URL GOOGLE_APPLICATION_CREDENTIALS EDITOR BROWSER"
)
_OFTEN_NEEDED_PREFIXES = ("AWS_", "AZURE_", "GOOGLE_", "GCP_", "UV_", "DYLD_", "PG", "MYSQL_", "REDIS_")


def server_environment(
    mode: str,
    extra: Optional[Mapping[str, str]] = None,
    environ: Optional[Mapping[str, str]] = None,
    *,
    windows: bool = os.name == "nt",
) -> Dict[str, str]:
    """The variables for a server.

    :param mode: ``safe``, ``inherit`` or ``none``
    :param extra: what is laid on top
    :param environ: the parent's variables; None: those of this process, now
    :raises ValueError: an unknown mode
    """
    if mode not in MODES:
        raise ValueError("env_mode must be one of %s, not %r" % (", ".join(MODES), mode))
    source = os.environ if environ is None else environ
    chosen = {name: value for name, value in source.items() if _passes(name, value, mode, windows)}
    for name, value in (extra or {}).items():
        if windows:
            for present in [other for other in chosen if other.upper() == name.upper()]:
                del chosen[present]
        chosen[name] = value
    return chosen


def withheld(environ: Mapping[str, str], mode: str, *, windows: bool = os.name == "nt") -> List[str]:
    """Names of the parent's variables that a server does not get in this mode and may well miss, sorted."""
    return sorted(
        name
        for name, value in environ.items()
        if not _passes(name, value, mode, windows) and _likely_missed(name.upper() if windows else name)
    )


def _passes(name: str, value: str, mode: str, windows: bool) -> bool:
    if mode == "inherit":
        return True
    if mode == "none":
        return windows and name.upper() in _WINDOWS_MINIMUM
    # "()" is a shell function that was exported: code, not data
    return not value.startswith("()") and _is_safe(name, windows)


@lru_cache(maxsize=1024)
def _is_safe(name: str, windows: bool) -> bool:
    if windows:
        name = name.upper()
        if name in _WINDOWS_SAFE:
            return True
    return name in _SAFE_NAMES or name.startswith(_SAFE_PREFIXES) or _ANY_CASE.fullmatch(name) is not None


def _likely_missed(name: str) -> bool:
    return name in _OFTEN_NEEDED or name.startswith(_OFTEN_NEEDED_PREFIXES) or looks_secret(name)
