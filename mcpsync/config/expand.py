"""Variables in config values, in the forms that the layouts have.

===========  =====================================  =======================================================
kind         form                                   value
===========  =====================================  =======================================================
``braced``   ``${NAME}``                            of the environment
``default``  ``${NAME:-text}``                      of the environment, else the text
``env``      ``${env:NAME}``                        of the environment
``bare``     ``$NAME``                              of the environment
``percent``  ``%NAME%``                             of the environment, on Windows
``brace_env``  ``{env:NAME}``                       of the environment
``secrets``  ``${{ secrets.X }}``, ``${{ inputs.X }}``  of the environment
``input``    ``${input:id}``                        asked for: see :class:`Values`
``file``     ``${file:path}``                       the text of a file
``folders``  ``${workspaceFolder}``, ``${workspaceFolderBasename}``, ``${userHome}``, ``${pathSeparator}``, ``${/}``
===========  =====================================  =======================================================

One pass from left to right: what a variable holds, and a default, are taken as they are and never looked at
again. A variable that is set but empty counts as set. There is no escape: text that is none of these forms
stays as it is, a lone ``$`` too.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Callable, Dict, FrozenSet, Mapping, Match, NamedTuple, Optional, Pattern, Tuple

__all__ = ["SHELL", "Expanded", "Values", "bare_variable", "expand", "taken_literally"]

SHELL: FrozenSet[str] = frozenset({"braced", "default", "env"})

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_FORMS: Mapping[str, str] = {
    # first those that other patterns would take a part of
    "secrets": r"\$\{\{\s*(?:secrets|inputs)\.(?P<secret>%s)\s*\}\}" % _NAME,
    "folders": r"\$\{(?P<folder>workspaceFolder|workspaceFolderBasename|userHome|pathSeparator|/)\}",
    "input": r"\$\{input:(?P<input>[^}]*)\}",
    "file": r"\$\{file:(?P<file>[^}]*)\}",
    "foreign": r"\$\{(?P<foreign>(?:input|file|command|config|secrets):[^}]*)\}",
    "braced": r"\$\{(?P<braced>%s)\}" % _NAME,
    "default": r"\$\{(?:env:)?(?P<defaulted>%s):-(?P<default>[^}]*)\}" % _NAME,
    "env": r"\$\{env:(?P<env>%s)\}" % _NAME,
    "brace_env": r"\{env:(?P<brace_env>%s)\}" % _NAME,
    "bare": r"\$(?P<bare>%s)" % _NAME,
    "percent": r"%%(?P<percent>%s)%%" % _NAME,
}
_VARIABLES = ("secret", "braced", "defaulted", "env", "brace_env", "bare", "percent")
_ONLY_BARE = re.compile(_FORMS["bare"])
_LOOKS_LIKE_ONE = re.compile(r"\$\{(?:env:)?(?P<name>%s)(?::-[^}]*)?\}" % _NAME)
_MOST_BYTES = 1 << 20


@dataclass(frozen=True)
class Values:
    """Where the values of variables come from.

    :ivar environ: the environment
    :ivar ask: gives the value of an input by its id; None where it is not known. It raises ``ValueError`` with the
        reason
    :ivar workspace: the folder of the project, None where there is none
    :ivar folder: relative to which files are found
    :ivar on_missing: ``error``, ``empty`` or ``keep``
    :ivar symbolic: nothing is looked up: variables stay variables, in the form ``${NAME}`` whatever theirs is
    """

    environ: Mapping[str, str] = field(repr=False)
    ask: Optional[Callable[[str], str]] = None
    workspace: Optional[str] = None
    folder: str = ""
    on_missing: str = "error"
    symbolic: bool = False

    def variable(self, name: str) -> Optional[str]:
        """The value of a variable of the environment, None where it is not set."""
        return "${%s}" % name if self.symbolic else self.environ.get(name)


class Expanded(NamedTuple):
    """A value after expansion.

    :ivar text: the value; what could not be expanded is still in it
    :ivar missing: the variables that are not set and have no default, each once
    :ivar foreign: the forms that only another program can fill, as ``input:token``, each once
    :ivar problems: what else could not be had, each with the reason
    """

    text: str
    missing: Tuple[str, ...]
    foreign: Tuple[str, ...]
    problems: Tuple[str, ...] = ()


@lru_cache(64)
def _pattern(forms: FrozenSet[str]) -> Pattern[str]:
    known = forms | {"foreign"} if forms else forms
    if sys.platform != "win32":
        known = known - {"percent"}
    chosen = [pattern for kind, pattern in _FORMS.items() if kind in known]
    return re.compile("|".join(chosen) if chosen else r"(?!)")


def expand(text: str, values: Values, forms: FrozenSet[str] = SHELL) -> Expanded:
    """Expand the variables of one value, those of the given kinds."""
    missing: Dict[str, None] = {}
    foreign: Dict[str, None] = {}
    problems: Dict[str, None] = {}

    def value(match: Match[str]) -> str:
        groups = match.groupdict()
        name = next((groups[kind] for kind in _VARIABLES if groups.get(kind) is not None), None)
        if name is not None:
            if values.symbolic and groups.get("default") is not None:
                return "${%s:-%s}" % (name, groups["default"])
            found = values.variable(name)
            if found is None and groups.get("default") is not None:
                found = groups["default"]
            if found is None:
                missing[name] = None
                found = "" if values.on_missing == "empty" else match.group()
            return found
        if groups.get("foreign") is not None:
            foreign[groups["foreign"]] = None
            return match.group()
        try:
            return _other(groups, values)
        except ValueError as error:
            problems[str(error)] = None
            return match.group()

    return Expanded(_pattern(forms).sub(value, text), tuple(missing), tuple(foreign), tuple(problems))


def _other(groups: Mapping[str, Optional[str]], values: Values) -> str:
    """The value of an input, a file or a folder.

    :raises ValueError: there is none, with the reason
    """
    if values.symbolic and groups.get("folder") is None:
        raise ValueError("has a value that cannot be copied: write a variable in its place")
    if values.symbolic:
        return "${%s}" % groups["folder"]
    wanted = groups.get("input")
    if wanted is not None:
        if values.ask is None:
            raise ValueError("${input:%s} can only be filled by the program that the file was written for" % wanted)
        return values.ask(wanted)
    wanted = groups.get("file")
    if wanted is not None:
        return _content(os.path.join(values.folder, os.path.expanduser(wanted)), wanted)
    folder = groups.get("folder") or ""
    if folder in ("/", "pathSeparator"):
        return os.sep
    if folder == "userHome":
        return os.path.expanduser("~")
    if values.workspace is None:
        raise ValueError("${%s} is not known here: say which folder it is with workspace=" % folder)
    return os.path.basename(values.workspace) if folder.endswith("Basename") else values.workspace


def _content(path: str, shown: str) -> str:
    try:
        with open(path, "rb") as file:
            raw = file.read(_MOST_BYTES + 1)
        if len(raw) > _MOST_BYTES:
            raise ValueError("${file:%s} is larger than 1 MB" % shown)
        return raw.decode("utf-8").rstrip("\r\n")
    except OSError as error:
        raise ValueError("${file:%s} cannot be read: %s" % (shown, error.strerror)) from None
    except UnicodeDecodeError:
        raise ValueError("${file:%s} is no UTF-8 text" % shown) from None


def bare_variable(text: str, environ: Mapping[str, str]) -> str:
    """The name if the whole text is ``$NAME`` and that variable is set, else an empty string."""
    whole = _ONLY_BARE.fullmatch(text)
    return whole["bare"] if whole and whole["bare"] in environ else ""


def taken_literally(text: str) -> str:
    """What looks like a variable, in a layout that has none of this form."""
    found = _LOOKS_LIKE_ONE.search(text)
    return found.group() if found else ""
