"""Variables in config values: ``${NAME}``, ``${NAME:-default}``, ``${env:NAME}``; ``$NAME`` where the layout has it.

One pass from left to right: what a variable holds, and a default, are taken as they are and never looked at
again. A variable that is set but empty counts as set. There is no escape: text that is none of these forms
stays as it is, a lone ``$`` too.
"""

from __future__ import annotations

import re
from typing import Dict, Mapping, Match, NamedTuple, Tuple

__all__ = ["Expanded", "bare_variable", "expand"]

_BRACED = r"\$\{(?:env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<default>:-[^}]*)?\}"
_FOREIGN = r"\$\{(?P<foreign>(?:input|file|command|config|secrets):[^}]*)\}"
_BARE = r"\$(?P<bare>[A-Za-z_][A-Za-z0-9_]*)"

_FORMS = re.compile(_BRACED + "|" + _FOREIGN)
_FORMS_AND_BARE = re.compile(_BRACED + "|" + _FOREIGN + "|" + _BARE)
_ONLY_BARE = re.compile(_BARE)


class Expanded(NamedTuple):
    """A value after expansion.

    :ivar text: the value; what could not be expanded is still in it
    :ivar missing: the variables that are not set and have no default, each once
    :ivar foreign: the forms that only another program can fill, as ``input:token``, each once
    """

    text: str
    missing: Tuple[str, ...]
    foreign: Tuple[str, ...]


def expand(text: str, environ: Mapping[str, str], *, bare: bool = False) -> Expanded:
    """Expand the variables of one value, ``$NAME`` too if ``bare``."""
    missing: Dict[str, None] = {}
    foreign: Dict[str, None] = {}

    def value(form: Match[str]) -> str:
        groups = form.groupdict()
        if groups["foreign"] is not None:
            foreign[groups["foreign"]] = None
            return form.group()
        name = groups["name"] or groups.get("bare") or ""
        found = environ.get(name)
        if found is not None:
            return found
        if groups["default"] is not None:
            return str(groups["default"][2:])
        missing[name] = None
        return form.group()

    expanded = (_FORMS_AND_BARE if bare else _FORMS).sub(value, text)
    return Expanded(expanded, tuple(missing), tuple(foreign))


def bare_variable(text: str, environ: Mapping[str, str]) -> str:
    """The name if the whole text is ``$NAME`` and that variable is set, else an empty string."""
    whole = _ONLY_BARE.fullmatch(text)
    return whole["bare"] if whole and whole["bare"] in environ else ""
