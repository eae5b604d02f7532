"""Packages that only some programs have: imported when they are needed, and named when they are missing."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from mcpsync.errors import ConfigError

__all__ = ["needed"]


def needed(module: str, extra: str) -> Any:
    """The module of an optional package.

    :param extra: the extra of this library that brings it
    :raises ConfigError: it is not installed
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise ConfigError(
            "%s cannot be imported (%s): pip install 'mcpsync[%s]'" % (module.partition(".")[0], error, extra)
        ) from None
