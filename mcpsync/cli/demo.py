"""``mcpsync demo``: the library at work on the bundled server, each step checked.

It ends with exit code 0 only if every step did what it should.
"""

from __future__ import annotations

import os
import re
import statistics
import sys
import threading
import time
from concurrent.futures import wait
from typing import TYPE_CHECKING, Any, Callable, List, Optional, Sequence

from mcpsync.cli.arguments import Invocation
from mcpsync.cli.asking import Asker, can_ask
from mcpsync.cli.exits import OK, TOOL_ERROR, code_of
from mcpsync.cli.output import Output
from mcpsync.cli.progress import ProgressBar, progress_bar
from mcpsync.cli.servers import closed_after, make_client, opened
from mcpsync.cli.text import inline
from mcpsync.errors import ConfigError, McpError, RequestCancelled

if TYPE_CHECKING:
    from mcpsync.client import Client
    from mcpsync.connection.future import CallFuture
    from mcpsync.types import ElicitationRequest, ElicitationResult, Progress

__all__ = ["Demo", "Mismatch", "demo_command", "run_demo"]

NAME = "Ada"
TIMED_CALLS = 300
CONFIRM_SECONDS = 3.0
TOOLS = ("add", "count", "echo", "greet", "slow")
_PYTHON = re.compile(r"(python|pypy|graalpy|mayapy|hython)[^/\\]*$", re.IGNORECASE)


class Mismatch(Exception):
    """A step did not give what it should have given."""


def demo_command(executable: Optional[str]) -> List[str]:
    """The command of the bundled server.

    :param executable: ``sys.executable``
    :raises ConfigError: it is no Python: programs that embed Python, and frozen ones, put themselves there
    """
    if not executable:
        raise ConfigError("this Python does not say where its interpreter is (sys.executable is empty), so the demo "
                          "cannot start its server: run 'mcpsync demo' from a Python of your own")  # fmt: skip
    if getattr(sys, "frozen", False) or not _PYTHON.search(os.path.basename(executable)):
        raise ConfigError("%r is no Python interpreter, so the demo cannot start its server with it: run "
                          "'mcpsync demo' from a Python of your own" % executable)  # fmt: skip
    return [executable, "-m", "mcpsync.demo"]


def run_demo(invocation: Invocation, output: Output) -> int:
    """Show everything, and give the exit code."""
    import mcpsync

    return show(
        demo_command(sys.executable),
        invocation,
        output,
        # there `-m` finds this very package, whatever the folder of the user holds
        cwd=os.path.dirname(os.path.dirname(os.path.abspath(mcpsync.__file__))),
    )


def show(command: Sequence[str], invocation: Invocation, output: Output, cwd: Optional[str] = None) -> int:
    """The demo with a given server."""
    asker = _DemoAsker(output)
    client, _ = make_client(command, invocation, output, name="demo", cwd=cwd, connect=10, call=10, asker=asker)
    demo = Demo(client, asker, output)
    output.lines("mcpsync at work on a server in plain Python that comes with it, over stdio:\n")
    try:
        with closed_after([client]):
            for step in demo.steps:
                demo.take(step)
        demo.closed()
    except (Mismatch, McpError) as error:
        output.lines("  FAILED  %s" % inline(str(error)))
        return TOOL_ERROR if isinstance(error, Mismatch) else code_of(error)
    output.lines("\nEverything was checked and is as it should be, in %.1f s." % demo.seconds())
    return OK


class _DemoAsker(Asker):
    """Answers with a name, or asks the person and proposes that name.

    :ivar questions: what the server asked
    :ivar answer: what it got
    """

    def __init__(self, output: Output) -> None:
        super().__init__("demo", output, suggested={"name": NAME})
        self.questions: List[str] = []
        self.answer: Optional[ElicitationResult] = None

    def __call__(self, request: ElicitationRequest) -> ElicitationResult:
        from mcpsync.types import ElicitationResult

        self.questions.append(request.message)
        if can_ask(self._output):
            self.answer = super().__call__(request)
        else:
            self.answer = ElicitationResult.accept({"name": NAME})
        return self.answer


class Demo:
    """The steps of the demo, in order; each says what it saw, or raises."""

    def __init__(self, client: Client, asker: _DemoAsker, output: Output) -> None:
        self._client = client
        self._asker = asker
        self._output = output
        self._began = time.perf_counter()
        self._stopping = 0.0
        self.steps: List[Callable[[], str]] = [
            self.connect,
            self.tools,
            self.call,
            self.progress,
            self.elicitation,
            self.cancel,
            self.resource,
            self.prompt,
            self.timings,
        ]

    def take(self, step: Callable[[], str]) -> None:
        """Do one step and tell of it."""
        text = step()
        self._stopping = time.perf_counter()
        self._tell(step.__name__, text)

    def _tell(self, name: str, text: str) -> None:
        self._output.lines("  ok  %-12s %s" % (name, inline(text)))

    def seconds(self) -> float:
        """How long it has taken so far."""
        return time.perf_counter() - self._began

    def connect(self) -> str:
        began = time.perf_counter()
        opened(self._client)
        milliseconds = (time.perf_counter() - began) * 1_000
        info, version = self._client.server_info, self._client.protocol_version
        _hold(info is not None and info.name == "mcpsync-demo", "another server answered: %r" % (info,))
        assert info is not None
        era = "no handshake" if version == "2026-07-28" else "a session, opened with initialize"
        return "%s %s, protocol %s (%s), in %.0f ms" % (info.name, info.version, version, era, milliseconds)

    def tools(self) -> str:
        names = [tool.name for tool in self._client.list_tools()]
        _hold(set(TOOLS) <= set(names), "tools are missing: %s" % ", ".join(names))
        return "%d: %s" % (len(names), ", ".join(names))

    def call(self) -> str:
        structured = self._client.call_tool("add", {"a": 19, "b": 23}).structured
        _hold(structured == {"sum": 42}, "19 + 23 came out as %r" % (structured,))
        return "add(a=19, b=23) gave %r" % (structured,)

    def progress(self) -> str:
        steps = 20
        told: List[float] = []
        bar: Optional[ProgressBar] = progress_bar(self._output)

        def take_note(progress: Progress) -> None:
            told.append(progress.progress)
            if bar is not None:
                bar(progress)

        try:
            result = self._client.call_tool("count", {"n": steps, "delay": 0.05}, on_progress=take_note)
        finally:
            if bar is not None:
                bar.end()
        _hold(told == list(range(1, steps + 1)), "progress came as %r" % (told,))
        _hold(result.text == "counted to %d" % steps, "the result is %r" % result.text)
        return "count(n=%d) told its progress %d times, in order" % (steps, len(told))

    def elicitation(self) -> str:
        text = self._client.call_tool("greet").text
        _hold(len(self._asker.questions) == 1, "the server asked %d questions" % len(self._asker.questions))
        answer = self._asker.answer
        if answer is None or answer.action != "accept" or answer.content is None:
            _hold(text == "No name, no greeting.", "declined, the tool said %r" % text)
            return "greet() asked %r, which was declined: %s" % (self._asker.questions[0], text)
        name = answer.content.get("name")
        greeting = "Good day" if answer.content.get("polite", True) else "Hi"
        _hold(text == "%s, %s!" % (greeting, name), "the name is %r, and the greeting %r" % (name, text))
        return "greet() asked %r; answered %s: %s" % (self._asker.questions[0], name, text)

    def cancel(self) -> str:
        changed = threading.Event()
        self._client.subscribe_resource("demo://log", lambda uri: changed.set())
        call = self._client.submit("slow", {"seconds": 60})
        _, running = wait([call], timeout=0.3)
        _hold(running, "a call of 60 seconds was over at once")
        began = time.perf_counter()
        _hold(call.cancel(), "the call could not be cancelled: it is over")
        request_id = _id_of_cancelled(call)
        _hold(changed.wait(CONFIRM_SECONDS), "the server did not confirm that it stopped")
        milliseconds = (time.perf_counter() - began) * 1_000
        self._client.unsubscribe_resource("demo://log")
        log = self._client.read_resource("demo://log").text
        confirmed = "cancelled request %s" % request_id
        _hold(confirmed in log.splitlines(), "the server's log says %r and not %r" % (log, confirmed))
        return "slow(seconds=60) cancelled; the server has stopped, its log says %r, in %.1f ms" % (log, milliseconds)

    def resource(self) -> str:
        text = self._client.read_resource("demo://hello").text
        _hold(text == "Hello from a server in plain Python.", "demo://hello holds %r" % text)
        return "demo://hello holds %r" % text

    def prompt(self) -> str:
        result = self._client.get_prompt("story", {"hero": NAME, "mood": "cheerful"})
        texts = [getattr(message.content, "text", None) for message in result.messages]
        _hold(texts == ["Tell a cheerful story about %s." % NAME], "the prompt came out as %r" % (texts,))
        return "story(hero=%s, mood=cheerful) reads %r" % (NAME, texts[0])

    def timings(self) -> str:
        micros: List[float] = []
        for number in range(TIMED_CALLS):
            began = time.perf_counter()
            text = self._client.call_tool("echo", {"text": str(number)}).text
            micros.append((time.perf_counter() - began) * 1_000_000)
            _hold(text == str(number), "echo gave %r for %r" % (text, str(number)))
        return "%d calls, median %.0f µs per call" % (TIMED_CALLS, statistics.median(micros))

    def closed(self) -> None:
        """The last step, after closing."""
        milliseconds = (time.perf_counter() - self._stopping) * 1_000
        for thread in threading.enumerate():
            if thread.name.startswith("mcpsync-demo"):
                thread.join(CONFIRM_SECONDS)
                _hold(not thread.is_alive(), "the thread %s is left" % thread.name)
        self._tell("close", "server and threads gone, in %.0f ms" % milliseconds)


def _id_of_cancelled(call: CallFuture[Any]) -> Optional[int]:
    try:
        result = call.result(timeout=CONFIRM_SECONDS)
    except RequestCancelled as error:
        return error.request_id
    raise Mismatch("the cancelled call gave %r" % (result,))


def _hold(true: Any, text: str) -> None:
    if not true:
        raise Mismatch(text)
