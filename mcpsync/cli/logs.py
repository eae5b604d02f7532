"""What the library logs, on stderr and harmless for a terminal."""

from __future__ import annotations

import logging
import traceback
from contextlib import contextmanager
from typing import Iterator

from mcpsync.cli.output import Output
from mcpsync.cli.text import printable

__all__ = ["logging_to"]


class _Handler(logging.Handler):
    """Writes records as lines."""

    def __init__(self, output: Output, verbose: bool) -> None:
        super().__init__()
        self._output = output
        self._verbose = verbose

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        self._output.note(text[len("mcpsync: ") :] if text.startswith("mcpsync: ") else text)
        if self._verbose and record.exc_info and record.exc_info[0] is not None:
            self._output.errors(printable("".join(traceback.format_exception(*record.exc_info))))


@contextmanager
def logging_to(output: Output, verbose: bool, least: int = logging.WARNING) -> Iterator[None]:
    """While what the library logs is shown: warnings, or all of it.

    :param verbose: all of it, with tracebacks
    :param least: the level of what is shown else
    """
    logger = logging.getLogger("mcpsync")
    handler = _Handler(output, verbose)
    level, propagate = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG if verbose else least)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagate
