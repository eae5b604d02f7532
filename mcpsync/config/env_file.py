"""Files with ``NAME=value`` lines, which an entry may name as ``envFile``."""

from __future__ import annotations

import re
from typing import Dict

__all__ = ["read_env_file"]

_LINE = re.compile(
    r"\s*(?:export\s+)?(?P<name>[A-Za-z_][A-Za-z0-9_.]*)\s*=\s*"
    r"(?:\"(?P<double>(?:[^\"\\]|\\.)*)\"|'(?P<single>[^']*)'|(?P<plain>.*?))\s*(?:(?<=[\s\"'=])\#.*)?"
)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}
_MOST_BYTES = 1 << 20


def read_env_file(path: str) -> Dict[str, str]:
    """The variables of a file. Values are taken as they are: nothing in them is expanded.

    :raises ValueError: it cannot be read, or a line is none; with the reason, and no value
    """
    try:
        with open(path, "rb") as file:
            text = file.read(_MOST_BYTES).decode("utf-8-sig")
    except OSError as error:
        raise ValueError("the file cannot be read: %s" % error.strerror) from None
    except UnicodeDecodeError:
        raise ValueError("the file is no UTF-8 text") from None
    found: Dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise ValueError("line %d of the file is not of the form NAME=value" % number)
        if match["double"] is not None:
            found[match["name"]] = re.sub(r"\\(.)", lambda each: _ESCAPES.get(each[1], each[1]), match["double"])
        else:
            found[match["name"]] = match["plain"] if match["single"] is None else match["single"]
    return found
