"""This side of the conversations: a person and a model that answer, and ears for what servers tell unasked."""

from __future__ import annotations

import queue
from pathlib import Path
from typing import Any, Callable, Dict, List, Sequence

import mcpsync
from mcpsync.types import ElicitationRequest, ElicitationResult, Root, SamplingRequest, SamplingResult, TextContent

WAIT_SECONDS = 30.0
ROOT = "file:///srv/data"


class Side:
    """Handlers for a client, and what they were asked.

    :ivar questions: every elicitation, in order
    :ivar sampled: every request for sampling, in order
    :ivar answer: what the person fills in; or an action, True or False
    :ivar roots: the folders
    """

    def __init__(self) -> None:
        self.questions: List[ElicitationRequest] = []
        self.sampled: List[SamplingRequest] = []
        self.answer: Any = {"name": "Ada"}
        self.roots: Sequence[Any] = [Root(ROOT, name="data")]
        self._told: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._kept: List[Any] = []

    def elicitation(self, request: ElicitationRequest) -> Any:
        """The person."""
        self.questions.append(request)
        if request.mode == "url" and isinstance(self.answer, dict):
            return True
        return ElicitationResult(self.answer) if isinstance(self.answer, str) else self.answer

    def sampling(self, request: SamplingRequest) -> SamplingResult:
        """The model."""
        self.sampled.append(request)
        return SamplingResult(content=TextContent(text="pong"), model="m1", stop_reason="endTurn")

    def tell(self, kind: str) -> Callable[..., None]:
        """A callback whose news :meth:`next` gives."""
        return lambda *news: self._told.put((kind, news[0] if len(news) == 1 else news))

    def next(self, kind: str, fits: Callable[[Any], Any] = lambda news: True) -> Any:
        """Wait for the next news of that kind that fits; others are kept."""
        for index, (told, news) in enumerate(self._kept):
            if told == kind and fits(news):
                del self._kept[index]
                return news
        while True:
            try:
                told, news = self._told.get(timeout=WAIT_SECONDS)
            except queue.Empty:
                raise AssertionError("no %s in %g s; told: %s" % (kind, WAIT_SECONDS, self._kept)) from None
            if told == kind and fits(news):
                return news
            self._kept.append((told, news))

    def heard(self, kind: str) -> List[Any]:
        """What has been told so far and was not asked for."""
        while not self._told.empty():
            self._kept.append(self._told.get())
        return [news for told, news in self._kept if told == kind]

    def options(self, **more: Any) -> Dict[str, Any]:
        """The options of a client that does everything."""
        return {
            "elicitation": self.elicitation,
            "sampling": self.sampling,
            "roots": lambda: self.roots,
            "on_log": self.tell("log"),
            "on_notification": self.tell("notification"),
            "debounce": 0.05,
            **more,
        }

    def connect(self, command: Sequence[str], **more: Any) -> mcpsync.Client:
        """A client that does everything."""
        return mcpsync.connect(command, **self.options(**more))


def listed(folder: Path) -> List[str]:
    """The names in a folder."""
    return sorted(entry.name for entry in folder.iterdir())
