"""The real servers of the interop tests, each in an environment of its own.

Their versions conflict, so each lives in its own virtual environment or npm folder. These are made on demand
under ``MCPSYNC_INTEROP_HOME`` (default: ``.tox/interop-peers`` in the checkout). A folder's name carries a hash
of what was asked for, and a folder takes its name only when it is complete, so what has the name is usable, and
two runs at once do not disturb each other.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Callable, Dict, List, Optional, Sequence, Tuple

HERE = Path(__file__).resolve().parent
SERVERS = HERE / "servers"
BUILD_SECONDS = 600
AT_ONCE = 3
"""How many are made at a time: they wait for the network by turns."""
NODE_AT_LEAST = 20
PYTHON_AT_LEAST = (3, 10)


class PeerUnavailable(Exception):
    """A peer cannot be had on this machine; the text says which and why."""


def home() -> Path:
    """The folder that the environments are made under."""
    named = os.environ.get("MCPSYNC_INTEROP_HOME")
    return Path(named) if named else HERE.parent.parent / ".tox" / "interop-peers"


def everything_command() -> List[str]:
    """The reference server ``@modelcontextprotocol/server-everything``, over stdio."""
    return _npm_command("server-everything")


def filesystem_command(root: Path) -> List[str]:
    """``@modelcontextprotocol/server-filesystem`` with one allowed folder."""
    return [*_npm_command("server-filesystem"), str(root)]


def mcp2_command() -> List[str]:
    """``servers/mcp2_server.py`` on the official SDK 2.x: both eras."""
    return _python_command("mcp2")


def mcp1_command() -> List[str]:
    """``servers/mcp1_server.py`` on the official SDK 1.x: the legacy era alone."""
    return _python_command("mcp1")


def fastmcp4_command() -> List[str]:
    """``servers/fastmcp4_server.py`` on FastMCP 4: both eras."""
    return _python_command("fastmcp4")


def mcp2_auth_command() -> List[str]:
    """``servers/mcp2_auth_server.py``: the official SDK's own authorization server, on what mcp2 runs on."""
    python, server = mcp2_command()
    return [python, str(Path(server).with_name("mcp2_auth_server.py"))]


def oidc_command() -> List[str]:
    """``servers/oidc_server.cjs``: npm ``oidc-provider``; its packages are beside those of server-everything."""
    return [_node("oidc"), str(SERVERS / "oidc_server.cjs")]


def model_apis_command() -> List[str]:
    """``servers/model_apis.py``: the packages of the model APIs and two agent frameworks, to judge what is exported."""
    python, _ = _python_command("model_apis")
    return [python, str(SERVERS / "model_apis.py")]


def scanned_commands() -> Dict[str, List[str]]:
    """Real servers that are started to be listed, by package: of ``npm_scanned`` and ``requirements/scanned.txt``."""
    node = _node("scanned servers")
    modules = _npm_folder("scanned servers", "npm_scanned") / "node_modules"
    commands = {}
    for package in json.loads((HERE / "npm_scanned" / "package.json").read_text())["dependencies"]:
        programs = json.loads((modules / package / "package.json").read_text(encoding="utf-8"))["bin"]
        program = programs if isinstance(programs, str) else next(iter(programs.values()))
        commands[package] = [node, str(modules / package / program)]
    python, _ = _python_command("scanned")
    for package in ("mcp-server-fetch", "mcp-server-git", "mcp-server-time"):
        commands[package] = [python, "-m", package.replace("-", "_")]
    return commands


def chromium_paths() -> Tuple[str, str]:
    """Where Chromium is, and its chromedriver."""
    found = [shutil.which(name) for name in ("chromium", "chromedriver")]
    if found[0] is None or found[1] is None:
        raise PeerUnavailable("chromium: there is no chromium, or no chromedriver, on PATH")
    return found[0], found[1]


def _npm_command(package: str) -> List[str]:
    node = _node(package)
    folder = _npm_folder(package)
    return [node, str(folder / "node_modules" / "@modelcontextprotocol" / package / "dist" / "index.js")]


def _python_command(peer: str) -> List[str]:
    requirements = HERE / "requirements" / ("%s.txt" % peer)
    python = _interpreter(peer)
    version = _run([python, "-c", "import sys; print(sys.version)"], peer, "learning the version of %s" % python)

    def build(folder: Path) -> None:
        _run([python, "-m", "venv", str(folder)], peer, "making a virtual environment")
        pip = [str(_venv_python(folder)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        # the files name everything that is needed, and of that a server imports the smaller part
        pip += ["--no-deps", "--no-compile"]
        _run([*pip, "-r", str(requirements)], peer, "installing %s" % requirements.name)

    folder = _made(peer, [requirements.read_bytes(), version.encode()], build)
    return [str(_venv_python(folder)), str(SERVERS / ("%s_server.py" % peer))]


def _npm_folder(peer: str, folder: str = "npm") -> Path:
    wanted = [HERE / folder / "package.json", HERE / folder / "package-lock.json"]
    npm = shutil.which("npm")
    if npm is None:
        raise PeerUnavailable("%s: there is no npm on PATH" % peer)

    def build(folder: Path) -> None:
        folder.mkdir()
        for file in wanted:
            shutil.copy(file, folder)
        quiet = ["--ignore-scripts", "--no-audit", "--no-fund"]
        _run([npm, "ci", *quiet], peer, "npm ci", cwd=folder)

    return _made(folder, [file.read_bytes() for file in wanted], build)


def _made(name: str, ingredients: Sequence[bytes], build: Callable[[Path], None]) -> Path:
    """The folder built from these ingredients; builds it if it is not there."""
    digest = hashlib.sha256(b"\0".join(ingredients)).hexdigest()[:12]
    folder = home() / ("%s-%s" % (name, digest))
    if folder.is_dir():
        return folder
    home().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".%s-" % name, dir=str(home())) as scratch:
        fresh = Path(scratch) / name
        build(fresh)
        try:
            fresh.rename(folder)
        except OSError:
            if not folder.is_dir():  # else another run was quicker: its folder is as good
                raise
    return folder


def _venv_python(folder: Path) -> Path:
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def _interpreter(peer: str) -> str:
    if sys.version_info >= PYTHON_AT_LEAST:
        return sys.executable
    for minor in (13, 12, 11, 10):
        found = shutil.which("python3.%d" % minor)
        if found is not None and _answers(found):
            return found
    raise PeerUnavailable("%s: needs Python %d.%d or newer" % (peer, *PYTHON_AT_LEAST))


def _answers(python: str) -> bool:
    """Whether it is an interpreter; pyenv's shims are on PATH even where the version behind them is not."""
    return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0


def _node(peer: str) -> str:
    node = shutil.which("node")
    if node is None:
        raise PeerUnavailable("%s: there is no node on PATH" % peer)
    version = _run([node, "--version"], peer, "node --version").strip()
    if int(version.lstrip("v").split(".")[0]) < NODE_AT_LEAST:
        raise PeerUnavailable("%s: needs node %d or newer, this is %s" % (peer, NODE_AT_LEAST, version))
    return node


def _run(command: Sequence[str], peer: str, what: str, cwd: Optional[Path] = None) -> str:
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=BUILD_SECONDS,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        raise PeerUnavailable("%s: %s took longer than %d s" % (peer, what, BUILD_SECONDS)) from late
    if done.returncode:
        raise PeerUnavailable("%s: %s failed (exit code %d): %s" % (peer, what, done.returncode, done.stderr[-2000:]))
    return done.stdout


def main() -> int:
    """Make every environment now, so that no test's time limit pays for it; name what is missing."""
    peers = {
        "server-everything, server-filesystem and oidc-provider": everything_command,
        "chromium": chromium_paths,
        "model_apis": model_apis_command,
        "mcp2": mcp2_command,
        "mcp1": mcp1_command,
        "fastmcp4": fastmcp4_command,
        "servers for the scan": scanned_commands,
    }
    missing = 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        made = {name: pool.submit(command) for name, command in peers.items()}
    for name, future in made.items():
        try:
            future.result()
        except PeerUnavailable as reason:
            missing += 1
            print("MISSING %s" % reason)
        else:
            print("ready: %s" % name)
    return 1 if missing and os.environ.get("MCPSYNC_REQUIRE_INTEROP") == "1" else 0


if __name__ == "__main__":
    sys.exit(main())
