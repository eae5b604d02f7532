"""Programs of a few lines, each run in an interpreter of its own, as a user would run them."""

from __future__ import annotations

import inspect
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any, Callable, Mapping, NamedTuple, Optional, Sequence

__all__ = ["Finished", "Running", "run", "start"]

ROOT = str(Path(__file__).parents[2])
PATIENCE = 40.0


class Finished(NamedTuple):
    """How a program ended."""

    code: int
    out: str
    err: str
    seconds: float

    def check(self, out: str = "") -> Finished:
        """It succeeded, wrote this to stdout, and nothing to stderr."""
        assert self.code == 0 and not self.err, "ended with %d\n%s" % (self.code, self.err)
        assert self.out.strip() == out
        return self


class Running:
    """A program that runs."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._began = time.monotonic()
        self.pid = process.pid

    def line(self) -> str:
        """The next line of its output, without the end."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().decode().rstrip("\n")

    def say(self, text: str) -> None:
        """A line on its stdin."""
        assert self._process.stdin is not None
        self._process.stdin.write(text.encode() + b"\n")

    def interrupt(self) -> None:
        """What a terminal's Ctrl-C sends."""
        self._process.send_signal(signal.SIGINT)

    def terminate(self) -> None:
        """What ``kill`` sends."""
        self._process.terminate()

    def end(self, seconds: float = PATIENCE) -> Finished:
        """Wait for it; it and all that it forked is killed when that takes too long."""
        try:
            out, err = self._process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(self.pid, signal.SIGABRT)  # faulthandler is on: it tells where each thread is
            try:
                out, err = self._process.communicate(timeout=5)
            except subprocess.TimeoutExpired:
                os.killpg(self.pid, signal.SIGKILL)
                out, err = self._process.communicate()
            said = "stdout:\n%s\nstderr:\n%s" % (out.decode(), err.decode())
            raise AssertionError("still ran after %g s\n%s" % (seconds, said)) from None
        return Finished(self._process.returncode, out.decode(), err.decode(), time.monotonic() - self._began)


def start(
    body: Callable[..., Any],
    *arguments: Any,
    helpers: Sequence[Callable[..., Any]] = (),
    options: Sequence[str] = ("-W", "error"),
    env: Optional[Mapping[str, str]] = None,
) -> Running:
    """Run a function's source in a new interpreter.

    :param body: stands alone: it imports what it needs
    :param arguments: handed to it through JSON
    :param helpers: functions whose source is put before it
    :param options: of the interpreter
    :param env: instead of this process's variables
    """
    sources = [textwrap.dedent(inspect.getsource(each)) for each in (*helpers, body)]
    call = "if __name__ == '__main__':\n    %s(*json.loads(%r))\n" % (body.__name__, json.dumps(arguments))
    variables = dict(os.environ if env is None else env)
    variables["PYTHONPATH"] = ROOT
    variables["PYTHONFAULTHANDLER"] = "1"
    folder = Path(arguments[0]) if arguments and isinstance(arguments[0], str) else None
    assert folder is not None and folder.is_dir(), "the first argument is a folder for the program"
    script = folder / (body.__name__ + ".py")
    script.write_text("from __future__ import annotations\nimport json\n" + "\n\n".join(sources) + "\n\n" + call)
    return Running(
        subprocess.Popen(
            [sys.executable, *options, str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,  # line() must not take more than the line
            env=variables,
            start_new_session=True,
        )
    )


def run(body: Callable[..., Any], *arguments: Any, seconds: float = PATIENCE, **how: Any) -> Finished:
    """Start a program and wait for its end."""
    return start(body, *arguments, **how).end(seconds)
