"""The YAML frontmatter of a SKILL.md, and whether a JSON object says the same.

YAML 1.1 and 1.2 read some plain scalars differently (``yes``, ``0755``, ``2026-07-28``), and a server may have
rendered its frontmatter by either. So it is compared as it is written: a plain scalar agrees with a JSON value if one
of the two revisions makes that value of it.

Specification: the Skills extension, "Frontmatter Verification".
"""

from __future__ import annotations

import datetime
import re
from contextlib import suppress
from typing import Any, Callable, Iterator, List, Mapping, Optional, Tuple

import yaml

__all__ = ["FrontmatterError", "difference", "split"]

MOST_CHARACTERS = 64 * 1024
"""Of frontmatter; what an Agent Skill may have in it is some thousand."""

_STRING = "tag:yaml.org,2002:str"

_BLOCK = re.compile(r"\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*\r?$", re.DOTALL | re.MULTILINE)

_CORE: List[Tuple[re.Pattern[str], Callable[[str], Any]]] = [
    (re.compile(r"(?:null|Null|NULL|~|)\Z"), lambda text: None),
    (re.compile(r"(?:true|True|TRUE)\Z"), lambda text: True),
    (re.compile(r"(?:false|False|FALSE)\Z"), lambda text: False),
    (re.compile(r"[-+]?[0-9]+\Z"), int),
    (re.compile(r"0o[0-7]+\Z"), lambda text: int(text[2:], 8)),
    (re.compile(r"0x[0-9a-fA-F]+\Z"), lambda text: int(text[2:], 16)),
    (re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z"), float),
]
"""The plain scalars of YAML 1.2's core schema that are no strings."""


class FrontmatterError(ValueError):
    """The text has no frontmatter, or none that can be read; the message says why."""


def split(text: str) -> str:
    """The YAML between the two lines ``---`` that a SKILL.md begins with.

    :raises FrontmatterError: there is none, or too much
    """
    found = _BLOCK.match(text[:MOST_CHARACTERS])
    if found is None:
        raise FrontmatterError(
            "it does not begin with YAML between two lines '---' (of %d characters at most)" % MOST_CHARACTERS
        )
    return found.group(1)


def difference(source: str, entry: Mapping[str, Any]) -> Optional[str]:
    """The first field in which YAML and entry differ; None if they say the same.

    :raises FrontmatterError: it is no YAML mapping
    """
    try:
        loader = yaml.SafeLoader(source)
        try:
            root = loader.get_single_node()
            if not isinstance(root, yaml.MappingNode):
                raise FrontmatterError("its frontmatter is no YAML mapping")
            return _first_difference(loader, root, entry)
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        problem = getattr(error, "problem", None) or "a character that is not allowed"
        raise FrontmatterError("its frontmatter is no valid YAML: %s" % problem) from None
    except RecursionError:
        raise FrontmatterError("its frontmatter is nested too deeply") from None


def _first_difference(loader: yaml.SafeLoader, node: yaml.MappingNode, entry: Mapping[str, Any]) -> Optional[str]:
    seen = set()
    for key, value in node.value:
        name = key.value if isinstance(key, yaml.ScalarNode) else None
        if name is None or name in seen or name not in entry or not _agrees(loader, value, entry[name]):
            return str(name)
        seen.add(name)
    return next((str(name) for name in entry if name not in seen), None)


def _agrees(loader: yaml.SafeLoader, node: yaml.Node, value: Any) -> bool:
    """Whether YAML says what JSON says. As deep and as long as the JSON is, whatever the aliases of the YAML hold."""
    if isinstance(node, yaml.MappingNode):
        return isinstance(value, dict) and _first_difference(loader, node, value) is None
    if isinstance(node, yaml.SequenceNode):
        return (
            isinstance(value, list)
            and len(value) == len(node.value)
            and all(_agrees(loader, inner, item) for inner, item in zip(node.value, value))
        )
    return isinstance(node, yaml.ScalarNode) and any(_equal(reading, value) for reading in _readings(loader, node))


def _readings(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> Iterator[Any]:
    """What the revisions of YAML make of a scalar; nothing where they cannot read it, as the 31st of February."""
    plain = node.style is None
    untagged = loader.resolve(yaml.ScalarNode, node.value, (plain, not plain))  # type: ignore[no-untyped-call]
    if node.tag != untagged:
        if node.tag == _STRING:
            yield node.value
        return
    with suppress(ValueError, OverflowError, yaml.YAMLError):
        old = loader.construct_object(node)  # YAML 1.1
        yield old.isoformat() if isinstance(old, datetime.date) else old
    if plain:
        with suppress(ValueError):
            yield next((read(node.value) for pattern, read in _CORE if pattern.match(node.value)), node.value)


def _equal(reading: Any, value: Any) -> bool:
    if isinstance(reading, (int, float)) and isinstance(value, (int, float)):
        return isinstance(reading, bool) == isinstance(value, bool) and reading == value
    return type(reading) is type(value) and bool(reading == value)
