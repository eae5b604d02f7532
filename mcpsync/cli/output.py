"""Where output goes: results to stdout, everything else to stderr, both harmless for a terminal.

Tables are drawn by ``rich`` where it is installed, stdout is a terminal and ``NO_COLOR`` is not set; else they are
plain text. When the reader of a pipe goes away, the rest is dropped without a word.
"""

from __future__ import annotations

import errno
import os
import sys
from typing import Any, List, Optional, Sequence, TextIO

from mcpsync.cli.text import inline, printable, shorten

__all__ = ["Output", "terminal_width"]

Row = Sequence[str]

_USUAL_WIDTH = 80


class Output:
    """Standard output and standard error of the command.

    :param as_json: stdout gets one JSON document; :meth:`lines` and :meth:`table` show nothing
    """

    def __init__(self, as_json: bool = False) -> None:
        self.as_json = as_json
        self._stdout: Optional[TextIO] = sys.stdout
        self._stderr: Optional[TextIO] = sys.stderr
        for stream in (self._stdout, self._stderr):
            if stream is not None and hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")  # a letter that the encoding lacks is no reason to fail

    # -- what the two streams are

    @property
    def on_terminal(self) -> bool:
        """Whether stdout is a terminal."""
        return _is_terminal(self._stdout)

    @property
    def errors_on_terminal(self) -> bool:
        """Whether stderr is a terminal."""
        return _is_terminal(self._stderr)

    @property
    def rich(self) -> bool:
        """Whether ``rich`` draws."""
        if not self.on_terminal or os.environ.get("NO_COLOR"):
            return False
        from importlib.util import find_spec

        return find_spec("rich") is not None

    # -- stdout

    def document(self, value: Any) -> None:
        """The JSON document. Pure ASCII, so that no encoding and no terminal can spoil it."""
        if self.as_json:
            import json

            self._write(json.dumps(value, indent=2).replace("\x7f", "\\u007f") + "\n")

    def lines(self, text: str) -> None:
        """A text of one or more lines."""
        if not self.as_json:
            self._write(printable(text) + "\n")

    def table(self, rows: Sequence[Row]) -> None:
        """Rows of the same length, indented; the last column is cut at the edge of a terminal."""
        if not rows or self.as_json:
            return
        shown = [[inline(cell) for cell in row] for row in rows]
        self._write(_rich_table(shown) if self.rich else self._plain_table(shown))

    def _plain_table(self, rows: List[List[str]]) -> str:
        widths = [max(map(len, column)) for column in zip(*rows)]
        lines = ["  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
        if self.on_terminal:
            lines = [shorten(line, terminal_width()) for line in lines]
        return "\n".join(lines) + "\n"

    def _write(self, text: str) -> None:
        stream = self._stdout
        if stream is None:
            return
        try:
            stream.write(text)
            stream.flush()
        except OSError as error:
            if error.errno not in (errno.EPIPE, errno.EINVAL):  # EINVAL: how Windows says it
                raise
            self._stdout = None
            _drop(stream)

    # -- stderr

    def note(self, text: str) -> None:
        """One line for the person: an error, or a remark."""
        self.errors("mcpsync: " + inline(text) + "\n")

    def errors(self, text: str) -> None:
        """Raw text for stderr; whoever calls has made it harmless."""
        if self._stderr is None:
            return
        try:
            self._stderr.write(text)
            self._stderr.flush()
        except OSError:  # nobody reads it, and there is nowhere else to say so
            _drop(self._stderr)
            self._stderr = None


def terminal_width() -> int:
    """Columns of the terminal."""
    import shutil

    return shutil.get_terminal_size().columns or _USUAL_WIDTH  # a terminal that does not know says 0


def _is_terminal(stream: Optional[TextIO]) -> bool:
    return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"


def _drop(stream: TextIO) -> None:
    """Lead a broken stream nowhere, so that the interpreter's last flush does not complain."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _rich_table(rows: List[List[str]]) -> str:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for index in range(len(rows[0])):
        table.add_column(style="bold" if index == 0 else None, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))  # Text: no markup is looked for in it
    with console.capture() as captured:
        console.print(table)
    text: str = captured.get()
    return text
