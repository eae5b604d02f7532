"""Types are loaded by group, on demand, and cheaply."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from mcpsync import types


def _loaded_by(code: str) -> set:
    """The modules that the code adds to what the errors, which every program loads, bring in."""
    script = (
        "import sys, mcpsync.errors; before = set(sys.modules)\n%s\n"
        "print(*sorted(set(sys.modules) - before), 'dataclasses' * ('dataclasses' in sys.modules))" % code
    )
    # -S: what the environment's site hooks import is not ours.
    path = str(Path(types.__file__).parents[2])
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-c", "import sys; sys.path.insert(0, %r)\n%s" % (path, script)],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(run.stdout.split())


def _groups(loaded: set) -> set:
    return {name.split(".")[2] for name in loaded if name.startswith("mcpsync.types.")}


def test_the_package_loads_no_group() -> None:
    loaded = _loaded_by("import mcpsync.types")
    assert _groups(loaded) == set()
    assert not loaded & {"dataclasses", "inspect", "asyncio"}


@pytest.mark.parametrize(
    ("name", "groups"),
    [
        ("ToolResult", {"result", "raw", "readers"}),
        ("ServerCapabilities", {"capabilities", "raw", "readers"}),
        ("Tool", {"tools", "common", "wire", "raw", "readers"}),
        ("Progress", {"notifications", "wire", "raw", "readers"}),
    ],
)
def test_a_name_loads_its_group_only(name: str, groups: set) -> None:
    loaded = _loaded_by("import mcpsync.types; mcpsync.types.%s" % name)
    assert _groups(loaded) == groups


def test_reading_loads_no_code_generator() -> None:
    code = "from mcpsync.types import *; Tool.from_wire({'name': 'n', 'inputSchema': {}}).to_wire()"
    assert not _loaded_by(code) & {"dataclasses", "inspect", "asyncio"}


def test_content_of_a_result_loads_the_blocks() -> None:
    code = "from mcpsync.types.result import ToolResult; r = ToolResult({'content': []}); r.text; r.is_error"
    assert "content" not in _groups(_loaded_by(code))
    assert "content" in _groups(_loaded_by(code + "; r.content"))


def test_names() -> None:
    assert set(types.__all__) <= set(dir(types))
    for name in types.__all__:
        assert getattr(types, name) is not None
    with pytest.raises(AttributeError, match=r"module 'mcpsync\.types' has no attribute 'Nothing'"):
        types.Nothing
    with pytest.raises(ImportError):
        from mcpsync.types import Nothing  # noqa: F401


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse(Path(types.__file__).read_text("utf-8"))
    checking = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.name: node.module for node in checking.body for alias in node.names}
    assert set(seen) == set(types.__all__)
    for name, module in seen.items():
        assert "mcpsync.types." + types._HOME[name] == module
