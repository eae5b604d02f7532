"""Texts that are secret and kept elsewhere: in a file, in the environment, or wherever a function gets them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Callable, Mapping, Union

from mcpsync.errors import AuthError

__all__ = ["FromEnvironment", "FromFile", "Source", "text_of"]

Source = Union[str, Callable[[], str], Mapping[str, str]]
"""A text, or what gives it, which is called each time it is needed; ``{"file": path}`` is as :class:`FromFile`, as
config files have it."""

_MOST_BYTES = 64 * 1024


@dataclass(frozen=True)
class FromFile:
    """The text of a file, read each time: what renews the file need not know who reads it.

    :param path: ``~`` is the user's home
    """

    path: str

    def __call__(self) -> str:
        """
        :raises AuthError: it cannot be read
        """
        try:
            with open(os.path.expanduser(self.path), encoding="utf-8") as file:
                return file.read(_MOST_BYTES)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or type(error).__name__
            raise AuthError("%s cannot be read: %s" % (self.path, reason)) from None


@dataclass(frozen=True)
class FromEnvironment:
    """The text of an environment variable.

    :param name: of the variable
    """

    name: str

    def __call__(self) -> str:
        """
        :raises AuthError: it is not set
        """
        text = os.environ.get(self.name)
        if not text:
            raise AuthError("the environment variable %s is not set" % self.name)
        return text


def text_of(source: Source, what: str) -> str:
    """The text, without blanks around it.

    :param what: for the error
    :raises AuthError: there is none
    """
    if isinstance(source, Mapping):
        source = FromFile(source.get("file", ""))
    text = source
    if callable(source):
        try:
            text = source()
        except AuthError as error:
            raise AuthError("%s: %s" % (what, error.message)) from None
        except Exception as error:
            # a function of the user's may raise anything; its text may hold what it was about to give
            raise AuthError("%s: the function that gives it failed: %s" % (what, type(error).__name__)) from None
    if not isinstance(text, str) or not text.strip():
        raise AuthError("%s is no text, or an empty one" % what)
    return text.strip()
