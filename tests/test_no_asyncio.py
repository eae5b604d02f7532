"""No ``asyncio``, not even hidden: nothing imports it, and no module speaks ``async``."""

from __future__ import annotations

import ast
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import List

import pytest

import mcpsync
from tests.peers.sockets import LineServer, scripted_behind

ROOT = Path(mcpsync.__file__).parent
LOOPS = {"anyio", "asyncio", "curio", "nest_asyncio", "sniffio", "trio", "twisted", "uvloop"}

ELSEWHERE = ("posix" if sys.platform == "win32" else "windows", "__main__")
"""How modules end that cannot be imported here."""

REFUSE_ASYNCIO = """
import sys

class Refuse:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "asyncio" or name.startswith("asyncio."):
            raise SystemExit("asyncio is imported")  # which no "except Exception" hides

assert "asyncio" not in sys.modules
sys.meta_path.insert(0, Refuse)
"""

IMPORT_EVERYTHING = """
import importlib, pkgutil, mcpsync

ELSEWHERE = %r
imported = ["mcpsync"]
for found in pkgutil.walk_packages(mcpsync.__path__, "mcpsync."):
    if not found.name.endswith(ELSEWHERE):
        importlib.import_module(found.name)
        imported.append(found.name)
for name in mcpsync.__all__:
    getattr(mcpsync, name)
assert "asyncio" not in sys.modules
print(*imported)
"""

USE_A_SERVER = """
import mcpsync

with mcpsync.connect(%r or [sys.executable, "-m", "mcpsync.demo"], protocol=%r) as client:
    tools = client.list_tools()
    result = client.call_tool("echo", {"text": "hello"})
assert "asyncio" not in sys.modules
assert not {"requests", "urllib3"} & set(sys.modules), "a stdio session has no use for HTTP"
print(len(tools), result.text)
"""


def run(code: str) -> List[str]:
    """The words that a fresh interpreter prints, in which nothing can import ``asyncio``."""
    command = [sys.executable, "-W", "error", "-c", REFUSE_ASYNCIO + code]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    assert done.returncode == 0, done.stdout
    return done.stdout.split()


def test_the_refusal_refuses():
    done = subprocess.run(
        [sys.executable, "-c", REFUSE_ASYNCIO + "try:\n    import asyncio\nexcept Exception:\n    pass"],
        check=False,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert done.returncode == 1
    assert "asyncio is imported" in done.stderr


def test_no_module_imports_it():
    imported = run(IMPORT_EVERYTHING % (ELSEWHERE,))
    sources = [path for path in ROOT.rglob("*.py") if not path.stem.endswith(ELSEWHERE)]
    assert len(imported) == len(sources)


@pytest.mark.parametrize("protocol", ["auto", "legacy", "modern"])
def test_a_stdio_session_imports_it_not(protocol):
    """A1: connect, list, call, close."""
    count, text = run(USE_A_SERVER % ("", protocol))
    assert int(count) > 0
    assert text == "hello"


@pytest.mark.skipif(sys.platform == "win32", reason="no Unix sockets")
def test_a_stream_over_a_unix_socket_imports_it_not():
    with LineServer(scripted_behind([sys.executable, "-m", "mcpsync.demo"])) as at:
        count, text = run(USE_A_SERVER % (at.url, "auto"))
    assert int(count) > 0
    assert text == "hello"


def asynchronous(source: str) -> List[str]:
    """What is asynchronous in a module."""
    found = []
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, (ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await)):
            found.append("line %d: %s" % (node.lineno, type(node).__name__))
        elif isinstance(node, ast.comprehension) and node.is_async:
            found.append("an asynchronous comprehension")
        elif isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        found += ["line %d: import %s" % (node.lineno, name) for name in names if name.split(".")[0] in LOOPS]
    return found


def test_no_module_is_asynchronous():
    found = {str(path): asynchronous(path.read_text(encoding="utf-8")) for path in sorted(ROOT.rglob("*.py"))}
    assert len(found) > 50
    assert {path: what for path, what in found.items() if what} == {}


@pytest.mark.parametrize(
    "source",
    [
        "async def f(): pass",
        "async def f():\n    await g()",
        "async def f():\n    return [x async for x in y]",
        "import asyncio.events",
        "def f():\n    from anyio import run",
    ],
)
def test_what_is_asynchronous_is_seen(source):
    assert asynchronous(textwrap.dedent(source))
