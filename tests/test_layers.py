"""Who may know whom: the order of the parts, held by the imports in the source.

The table is section "The parts" of ``docs/architecture.md``. Imports inside functions count, and so do names of modules
in strings, as lazy loading uses them; imports for type checkers do not.
"""

from __future__ import annotations

import ast
import sys
from functools import cache
from pathlib import Path
from typing import Dict, FrozenSet, Iterator, List, NamedTuple, Set, Tuple

import pytest

import mcpsync

ROOT = Path(mcpsync.__file__).parent
MOST_LINES = 550

BASE = {"errors", "deadline"}
CORE = {"core", "types", *BASE}
CONNECTION = {"connection", "transport", *CORE}
CLIENT = {"client", "auth", "schema", *CONNECTION}
HOST = {"host", "config", "export", "extensions", *CLIENT}
KNOWS: Dict[str, Set[str]] = {
    "errors": set(),
    "deadline": set(),
    "shield": set(),
    "passing_threads": set(),
    "types": {"errors"},
    "core": {"types", "errors"},
    "transport": {"shield", "passing_threads", *CORE},
    "auth": {"types", *BASE},
    "connection": {"transport.base", "shield", "passing_threads", *CORE},
    "schema": set(),
    "client": {"auth", "schema", *CONNECTION},
    "extensions": CLIENT,
    "config": {"types", "errors"},
    "export": {"types", "errors"},  # a leaf: it turns tools and results into other formats, and the host uses it
    "host": HOST,
    "gui": HOST,
    "cli": {"mcpsync", "demo", "gui", *HOST},
    "demo": set(),
    "mcpsync": HOST,  # the face
    "__main__": {"cli"},
}
"""For each part, the parts (or modules of them) that it may import besides itself."""

THIRD_PARTY: Dict[str, Set[str]] = {
    "core": {"sseclient", "orjson"},
    "transport": {"requests", "urllib3"},
    "auth": {"requests", "urllib3", "cryptography", "keyring"},
    "schema": {"jsonschema_specifications"},
    "client": {"opentelemetry"},
    "extensions": {"yaml"},
    "config": {"yaml", "tomli"},
    "cli": {"rich"},
}
"""For each part, the packages of others that it may import."""

NOT_IN_CORE = {
    *(
        "_thread",
        "asyncio",
        "concurrent",
        "http",
        "multiprocessing",
        "queue",
        "select",
        "selectors",
        "signal",
        "socket",
    ),
    *("ssl", "subprocess", "threading", "time"),
}
"""The core has no I/O, no threads and no clock."""

STANDARD_LIBRARY: FrozenSet[str] = getattr(sys, "stdlib_module_names", frozenset())
LISTS_STANDARD_LIBRARY = pytest.mark.skipif(not STANDARD_LIBRARY, reason="this interpreter does not list its library")

SOURCES = sorted(ROOT.rglob("*.py"))


class Import(NamedTuple):
    """One import: the part that does it, the module that it names, and where."""

    part: str
    name: str
    where: str


def module_of(path: Path) -> Tuple[str, ...]:
    names = ("mcpsync", *path.relative_to(ROOT).with_suffix("").parts)
    return names[:-1] if names[-1] == "__init__" else names


MODULES = {".".join(module_of(path)) for path in SOURCES}


def part_of(module: Tuple[str, ...]) -> str:
    return module[min(1, len(module) - 1)]


def is_for_type_checkers(node: ast.AST) -> bool:
    test = node.test if isinstance(node, ast.If) else None
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


def nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those that only a type checker sees."""
    yield tree
    if is_for_type_checkers(tree):
        assert isinstance(tree, ast.If)
        children = list(tree.orelse)
    else:
        children = list(ast.iter_child_nodes(tree))
    for child in children:
        yield from nodes(child)


def names_imported(node: ast.AST, package: Tuple[str, ...]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (each.name for each in node.names)
    elif isinstance(node, ast.ImportFrom):
        above = package[: len(package) - node.level + 1] if node.level else ()
        module = ".".join((*above, node.module) if node.module else above)
        # "from package import x" may mean a module; "from module import x" never does
        yield from (module + "." + each.name if module + "." + each.name in MODULES else module for each in node.names)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in MODULES - {"mcpsync"}:
        yield node.value


def imports_of(source: str, module: Tuple[str, ...], package: Tuple[str, ...]) -> Iterator[Import]:
    for node in nodes(ast.parse(source)):
        for name in names_imported(node, package):
            yield Import(part_of(module), name, "%s:%d" % (".".join(module), getattr(node, "lineno", 0)))


@cache  # read by the first test that looks: not where tests are only collected
def all_imports() -> Tuple[Import, ...]:
    found: List[Import] = []
    for path in SOURCES:
        module = module_of(path)
        package = module if path.name == "__init__.py" else module[:-1]
        found += imports_of(path.read_text(encoding="utf-8"), module, package)
    return tuple(found)


def is_allowed(found: Import) -> bool:
    """Whether a part may import this module of ours."""
    names = found.name.split(".")
    if len(names) == 1:  # "from mcpsync import __version__": a name of the face, which needs nothing else
        return found.part in {"mcpsync", "cli", "client"}
    if names[1] == found.part:
        return True
    return any(names[1 : 1 + len(entry.split("."))] == entry.split(".") for entry in KNOWS[found.part])


def test_every_part_has_its_place():
    assert {part_of(module_of(path)) for path in SOURCES} <= set(KNOWS)


def test_imports_point_one_way():
    ours = [each for each in all_imports() if each.name.split(".")[0] == "mcpsync"]
    assert len(ours) > 100, "the imports were not found"
    assert [each for each in ours if not is_allowed(each)] == []


def test_the_order_has_no_circle():
    """The table itself: no part may be known, over however many steps, by what it knows."""

    def below(part: str, seen: Set[str]) -> Set[str]:
        for other in {entry.split(".")[0] for entry in KNOWS[part]} - {part}:
            if other not in seen:
                below(other, seen | {other})
                assert part not in {entry.split(".")[0] for entry in KNOWS[other]}, (part, other)
        return seen

    for part in set(KNOWS) - {"mcpsync"}:
        below(part, set())


@LISTS_STANDARD_LIBRARY
def test_what_others_wrote_is_imported_where_it_belongs():
    others = [
        each for each in all_imports() if each.name.split(".")[0] not in {*STANDARD_LIBRARY, "tomllib", "mcpsync"}
    ]
    assert others, "the imports were not found"
    assert [each for each in others if each.name.split(".")[0] not in THIRD_PARTY.get(each.part, set())] == []


def test_the_core_has_no_io_no_threads_and_no_clock():
    assert [each for each in all_imports() if each.part == "core" and each.name.split(".")[0] in NOT_IN_CORE] == []


def test_no_module_is_long():
    lines = {".".join(module_of(path)): len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCES}
    assert {module: count for module, count in lines.items() if count > MOST_LINES} == {}


@pytest.mark.parametrize(
    ("source", "module", "allowed"),
    [
        ("import mcpsync.transport.http", "mcpsync.core.x", False),
        ("from mcpsync.transport import base", "mcpsync.core.x", False),
        ("def f():\n    from mcpsync.connection import call", "mcpsync.transport.x", False),
        ("from ..connection import call", "mcpsync.transport.x", False),
        ("LAZY = {'Client': 'mcpsync.client.client'}", "mcpsync.core.x", False),
        ("if True:\n    from mcpsync.client import client", "mcpsync.connection.x", False),
        ("from mcpsync.transport.stdio import x", "mcpsync.connection.x", False),
        ("from mcpsync.transport.base import x", "mcpsync.connection.x", True),
        ("from mcpsync.transport import base", "mcpsync.connection.x", True),
        ("from mcpsync import errors", "mcpsync.core.x", True),
        ("from mcpsync import Client", "mcpsync.core.x", False),
        ("from mcpsync import errors", "mcpsync.demo.x", False),
        ("from mcpsync.deadline import Deadline", "mcpsync.core.x", False),
        ("from mcpsync.host.host import Host", "mcpsync.export.x", False),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import mcpsync.client", "mcpsync.core.x", True),
        ("if TYPE_CHECKING:\n    pass\nelse:\n    import mcpsync.client.client", "mcpsync.core.x", False),
    ],
)
def test_the_look_at_imports_sees(source, module, allowed):
    """The test's own eyes: what breaks the order is seen however it is written."""
    names = tuple(module.split("."))
    found = [each for each in imports_of(source, names, names[:-1]) if each.name.split(".")[0] == "mcpsync"]
    assert all(is_allowed(each) for each in found) is allowed
    assert found or allowed
