"""The progress of a call, on the terminal."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any, Optional

from mcpsync.cli.output import Output, terminal_width
from mcpsync.cli.text import inline, shorten

if TYPE_CHECKING:
    from mcpsync.types import Progress

__all__ = ["ProgressBar", "progress_bar"]

_BETWEEN = 0.05  # seconds between two pictures: a server may send thousands a second
_BAR = 30


class ProgressBar:
    """Shows the latest of the progress that it is called with on one line of stderr.

    :ivar count: how often it was told
    """

    def __init__(self, output: Output) -> None:
        self.count = 0
        self._output = output
        self._next = 0.0
        self._shown = ""

    def __call__(self, progress: Progress) -> None:
        """Take note; draw unless the last picture is very young."""
        self.count += 1
        done = progress.total is not None and progress.progress >= progress.total
        now = time.monotonic()
        if now >= self._next or done:
            self._next = now + _BETWEEN
            self._draw(progress)

    def end(self) -> None:
        """Take the picture away; the next call draws it anew."""
        self._put("")
        self._next = 0.0

    def _draw(self, progress: Progress) -> None:
        self._put(_line(progress))

    def _put(self, line: str) -> None:
        if line or self._shown:
            # no escape sequence: spaces wipe what the new line does not cover
            self._output.errors("\r" + line.ljust(len(self._shown)) + ("" if line else "\r"))
            self._shown = line


def _line(progress: Progress) -> str:
    told, total = progress.progress, progress.total
    share = told / total if total and math.isfinite(told) and math.isfinite(total) else None
    parts = []
    if share is not None:
        full = round(_BAR * min(1.0, max(0.0, share)))
        parts.append("[%s%s]" % ("#" * full, "-" * (_BAR - full)))
    parts.append("%g" % told if total is None else "%g/%g" % (told, total))
    if progress.message:
        parts.append(inline(progress.message))
    return shorten(" ".join(parts), terminal_width() - 1)


class RichBar(ProgressBar):
    """The same, drawn by ``rich``."""

    def __init__(self, output: Output) -> None:
        super().__init__(output)
        self._bar: Optional[Any] = None

    def _draw(self, progress: Progress) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as Bar
        from rich.text import Text

        if self._bar is None:
            message = TextColumn("{task.description}", markup=False)
            self._bar = Bar(
                BarColumn(), TextColumn("{task.completed:g}/{task.total}"), message,
                console=Console(stderr=True), transient=True, auto_refresh=False,
            )  # fmt: skip
            self._bar.start()
            self._bar.add_task("", total=None)
        text = Text(inline(progress.message or "")).plain
        self._bar.update(self._bar.task_ids[0], completed=progress.progress, total=progress.total, description=text)
        self._bar.refresh()

    def end(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
        self._next = 0.0


def progress_bar(output: Output) -> Optional[ProgressBar]:
    """The bar for a call; None where nobody would see it."""
    if not output.errors_on_terminal:
        return None
    return RichBar(output) if output.rich else ProgressBar(output)
