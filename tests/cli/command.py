"""Runs the command as a user does: as a process, on pipes or on a terminal."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import time
from typing import Any, Dict, List, Mapping, Optional

DEMO = ["--", sys.executable, "-m", "mcpsync.demo"]
MCPSYNC = [sys.executable, "-W", "error", "-m", "mcpsync"]
SECONDS = 30


def environment(extra: Optional[Mapping[str, str]] = None) -> Dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TERM", "COLUMNS")}
    return {**kept, "TERM": "xterm", **(extra or {})}


def mcpsync(
    *arguments: str, env: Optional[Mapping[str, str]] = None, **options: Any
) -> subprocess.CompletedProcess[str]:
    """The command run to its end, its output captured; stdin is empty unless ``input`` is given."""
    if "input" not in options:
        options["stdin"] = subprocess.DEVNULL
    return subprocess.run(
        [*MCPSYNC, *arguments],
        env=environment(env),
        timeout=SECONDS,
        check=False,
        capture_output=True,
        encoding="utf-8",
        **options,
    )


def started(*arguments: str, **options: Any) -> subprocess.Popen[str]:
    """The command, running."""
    return subprocess.Popen(
        [*MCPSYNC, *arguments],
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        **options,
    )


def document(*arguments: str, code: int = 0) -> Any:
    """The JSON document that the command gives."""
    done = mcpsync(arguments[0], "--json", *arguments[1:])
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


class Terminal:
    """The command on a terminal of its own.

    :ivar seen: everything that it wrote so far
    """

    def __init__(self, *arguments: str, env: Optional[Mapping[str, str]] = None, stdout: Optional[int] = None) -> None:
        self._master, slave = pty.openpty()
        self.process = subprocess.Popen(
            [*MCPSYNC, *arguments],
            env=environment(env),
            stdin=slave,
            stdout=slave if stdout is None else stdout,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self.seen = ""
        self._position = 0

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._master)

    def read_until(self, text: str) -> None:
        """Read until the text appears behind what was waited for before."""
        deadline = time.monotonic() + SECONDS
        while text not in self.seen[self._position :]:
            if not self._read(deadline):
                raise AssertionError("%r did not appear in %r" % (text, self.seen[self._position :]))
        self._position = self.seen.index(text, self._position) + len(text)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def end(self) -> int:
        """Read the rest; the exit code."""
        deadline = time.monotonic() + SECONDS
        while self._read(deadline):
            pass
        return self.process.wait(SECONDS)

    def _read(self, deadline: float) -> bool:
        poll = select.poll()
        poll.register(self._master, select.POLLIN)
        if not poll.poll(max(0.0, deadline - time.monotonic()) * 1_000):
            return False
        try:
            chunk = os.read(self._master, 65_536)
        except OSError:  # the other end is closed
            return False
        self.seen += chunk.decode("utf-8", "replace").replace("\r\n", "\n")
        return bool(chunk)


def config(path: Any, servers: Mapping[str, List[str]], **more: Any) -> str:
    """A config file with these commands."""
    entries = {
        name: {"command": command[0], "args": command[1:], **more.get(name, {})} for name, command in servers.items()
    }
    file = path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": entries}), encoding="utf-8")
    return str(file)
