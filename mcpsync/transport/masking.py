"""Keeps secrets out of what is shown: logs, error messages, the tail of a server's stderr.

What counts as a secret is told by names: a variable ``GITHUB_TOKEN``, an option ``--api-key``, a header
``Authorization``; and by form: the password in a URL.
"""

from __future__ import annotations

import re
import shlex
from typing import Iterable, List, Mapping, Optional, Sequence, Set

__all__ = ["HIDDEN", "Mask", "looks_secret"]

HIDDEN = "***"

_SHORTEST = 4
"""Shorter values are not hidden: replacing every ``a`` in a text would rather point at the secret."""

_SECRET_PART = re.compile(
    r"TOKEN(?!IZ)|SECRET|PASSWORD|PASSWD|PASSPHRASE|PASSCODE|CREDENTIAL|API_?KEY|PRIVATE_?KEY|ACCESS_?KEY"
)
_SECRET_WORDS = frozenset(("KEY", "KEYS", "AUTH", "AUTHORIZATION", "PASS", "PAT", "PWD", "BEARER", "COOKIE"))
_INNOCENT_NAMES = frozenset(["PWD", "OLDPWD", "SSH_AUTH_SOCK"])
_INNOCENT_VALUE = re.compile(r"true|false|none|null|yes|no|on|off|auto|[0-9]{1,6}", re.IGNORECASE)

_URL_PASSWORD = re.compile(r"://[^/\s:@]*:([^/\s@]+)@")
_URL_PARAMETER = re.compile(r"[?&]([^=&#\s]+)=([^&#\s]+)")
_OPTION = re.compile(r"(?:--?|/)?([\w.-]+)=(.*)", re.DOTALL)
_HEADER = re.compile(r"([\w-]+):\s*(.*)", re.DOTALL)
_SCHEME = re.compile(r"(?:Bearer|Basic|Token)\s+", re.IGNORECASE)


def looks_secret(name: str) -> bool:
    """Whether a variable, an option or a header of this name is likely to hold a secret."""
    spread = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).upper().replace("-", "_").replace(".", "_")
    if spread in _INNOCENT_NAMES:
        return False
    return _SECRET_PART.search(spread) is not None or not _SECRET_WORDS.isdisjoint(spread.split("_"))


class Mask:
    """The secrets of one server, and texts without them.

    :param environ: the variables that its process gets
    :param command: its command line
    """

    def __init__(self, environ: Mapping[str, str], command: Sequence[str] = ()) -> None:
        self._environ = environ
        self._command = command
        self._found: Optional[List[str]] = None

    @classmethod
    def of_headers(cls, headers: Mapping[str, str]) -> Mask:
        """The secrets in the headers of a request."""
        return cls({}, ["%s: %s" % header for header in headers.items()])

    @property
    def _secrets(self) -> List[str]:
        """The longest first: one secret may be part of another. Sought when there is a text: most servers say none."""
        if self._found is None:
            secrets: Set[str] = set()
            for name, value in self._environ.items():
                if looks_secret(name):
                    secrets.add(value)
                secrets.update(_in_url(value))
            secrets.update(_in_arguments(self._command))
            self._found = sorted(
                (found for found in secrets if len(found) >= _SHORTEST and not _INNOCENT_VALUE.fullmatch(found)),
                key=len,
                reverse=True,
            )
        return self._found

    @property
    def longest(self) -> int:
        """Characters of the longest secret."""
        return len(self._secrets[0]) if self._secrets else 0

    def text(self, text: str) -> str:
        """The text with every secret replaced by ``***``."""
        for secret in self._secrets:
            if secret in text:
                text = text.replace(secret, HIDDEN)
        return text

    def command(self, command: Sequence[str]) -> str:
        """A command line to show to people, without its secrets."""
        return self.text(" ".join(map(shlex.quote, command)))

    def __repr__(self) -> str:
        return "Mask(%d secrets)" % len(self._secrets)


def _in_url(value: str) -> List[str]:
    found = _URL_PASSWORD.findall(value)
    found += [held for name, held in _URL_PARAMETER.findall(value) if looks_secret(name)]
    return found


def _in_arguments(command: Sequence[str]) -> Iterable[str]:
    expected = False
    for argument in command:
        if expected and not argument.startswith("-"):
            yield _without_scheme(argument)
        expected = argument.startswith("-") and "=" not in argument and looks_secret(argument.lstrip("-"))
        yield from _in_url(argument)
        for form in (_OPTION, _HEADER):
            match = form.fullmatch(argument)
            if match is not None and looks_secret(match.group(1)):
                yield _without_scheme(match.group(2))


def _without_scheme(value: str) -> str:
    return _SCHEME.sub("", value, count=1)
