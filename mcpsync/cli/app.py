"""From a command line to an exit code."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from contextlib import contextmanager, suppress
from typing import Any, Iterator, List

from mcpsync.cli.exits import INTERNAL, INTERRUPTED, OK, USAGE, code_of
from mcpsync.cli.output import Output

__all__ = ["run"]


def run(argv: List[str]) -> int:
    """Run a command line.

    :param argv: the arguments, without the program's name
    :returns: the exit code
    :raises SystemExit: a signal asked this process to end
    """
    own = argv[: argv.index("--")] if "--" in argv else argv
    output = Output("--json" in own)
    verbose = "--verbose" in own
    try:
        with ended_by_signals():
            return _run(argv, output, verbose)
    except KeyboardInterrupt:
        output.errors("\n" if output.errors_on_terminal else "")
        output.note("interrupted")
        return INTERRUPTED
    except OSError as error:  # of stdout: those of files and servers are errors of ours by now
        output.note("the output cannot be written: %s" % error.strerror)
        _give_up_stdout()
        return USAGE
    except Exception as error:
        # a fault of this program: its exit code must not be taken for one that means something else
        output.note("internal error: %s: %s" % (type(error).__name__, error))
        if verbose:
            import traceback

            output.errors(traceback.format_exc())
        return INTERNAL


def _give_up_stdout() -> None:
    """What is still in its buffer goes nowhere: else the interpreter tries once more, and changes the exit code."""
    with suppress(OSError, ValueError, AttributeError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


def _run(argv: List[str], output: Output, verbose: bool) -> int:
    from mcpsync.cli.arguments import HelpWanted, parse
    from mcpsync.errors import McpError

    try:
        invocation = parse(argv)
        from mcpsync.cli.logs import logging_to

        # an overview has a row for each server, and says there what else would be a warning
        overview = invocation.command in ("status", "doctor")
        with logging_to(output, verbose, logging.ERROR if overview else logging.WARNING):
            if invocation.command == "demo":
                from mcpsync.cli.demo import run_demo

                return run_demo(invocation, output)
            if invocation.command in ("login", "logout", "auth"):
                from mcpsync.cli.signing import run_signing

                return run_signing(invocation, output)
            if invocation.command in ("servers", "add", "remove", "import", "config"):
                from mcpsync.cli.configs import run_config

                return run_config(invocation, output)
            if invocation.command in ("call", "read", "prompt"):
                from mcpsync.cli.actions import run_action

                return run_action(invocation, output)
            if overview:
                from mcpsync.cli.overview import run_overview

                return run_overview(invocation, output)
            from mcpsync.cli.listings import run_listing

            return run_listing(invocation, output)
    except HelpWanted as help_wanted:
        output.as_json = False
        output.lines(str(help_wanted))
        return OK
    except McpError as error:
        from mcpsync.cli.listings import error_document

        output.note(str(error))
        output.document({"error": error_document(error)})
        return code_of(error)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """While SIGTERM and SIGHUP end this process the way Ctrl-C does: calls cancelled, servers ended."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    ours = [number for number in numbers if before[number] not in (signal.SIG_IGN, None)]  # nohup ignores SIGHUP
    for number in ours:
        signal.signal(number, _end)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, before[number])


def _end(number: int, _: Any) -> None:
    raise SystemExit(128 + number)
