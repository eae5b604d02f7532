"""Elicitation: what a server asks is put to the person at the terminal, or declined where there is none.

Specification: `client/elicitation`, "Implementation Considerations": it is clear which server asks, and the person
can decline and cancel at any time.
"""

from __future__ import annotations

import json
import sys
import threading
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional

from mcpsync.cli.text import inline, printable

if TYPE_CHECKING:
    from mcpsync.cli.output import Output
    from mcpsync.types import ElicitationRequest, ElicitationResult

__all__ = ["Asker", "can_ask", "confirmed"]

_one_at_a_time = threading.Lock()  # several servers may ask, and there is one terminal
_YES_AND_NO = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}


def can_ask(output: Output) -> bool:
    """Whether there is a person to ask."""
    return sys.stdin is not None and sys.stdin.isatty() and output.errors_on_terminal


def confirmed(output: Output, question: str) -> bool:
    """Ask the person for a yes; anything else is a no."""
    output.errors("%s [y/N] " % question)
    return _YES_AND_NO.get(sys.stdin.readline().strip().lower(), False)


class Asker:
    """Answers the questions of one server.

    :param server: its name
    :param before: called before anything is asked
    :param suggested: proposals of this side, by key, for what the server proposes nothing for
    """

    def __init__(
        self,
        server: str,
        output: Output,
        before: Callable[[], None] = lambda: None,
        suggested: Optional[Mapping[str, Any]] = None,
    ) -> None:
        self.server = server
        self._output = output
        self._suggested = dict(suggested or {})
        self.before = before

    def __call__(self, request: ElicitationRequest) -> ElicitationResult:
        """Ask."""
        with _one_at_a_time:
            return self._answer(request)

    def _answer(self, request: ElicitationRequest) -> ElicitationResult:
        from mcpsync.types import ElicitationResult

        self.before()
        if not can_ask(self._output):
            self._output.note("server %r asks: %s (declined: no terminal)" % (self.server, request.message))
            return ElicitationResult.decline()
        self._say("server '%s' asks (Ctrl-D declines):" % inline(self.server))
        self._say(printable(request.message))
        try:
            if request.url is not None:
                return self._visit(request.url)
            return ElicitationResult.accept(self._fill_in(request.requested_schema or {}))
        except EOFError:
            self._output.errors("\n")
            return ElicitationResult.decline()

    def _visit(self, url: str) -> ElicitationResult:
        from mcpsync.types import ElicitationResult

        self._say("It wants you to visit, in a browser of yours: %s" % inline(url))
        agreed = self._ask_until("Will you? (yes or no)", None, _yes_or_no)
        return ElicitationResult.accept() if agreed else ElicitationResult.decline()

    def _fill_in(self, schema: Mapping[str, Any]) -> Dict[str, Any]:
        from mcpsync.core.elicitation import check, fields, fill_defaults

        defaults = fill_defaults(schema, None)
        required = schema.get("required")
        questions = fields(schema)
        answers: Dict[str, Any] = {}
        for key, field in questions.items():
            mandatory = isinstance(required, list) and key in required
            default = defaults.get(key, self._suggested.get(key))

            def read(text: str, key: str = key, field: Mapping[str, Any] = field) -> Any:
                value = _read(text, field)
                problems = check({"properties": {key: field}}, {key: value})
                if problems:
                    raise ValueError(problems[0].partition(": ")[2])
                return value

            answer = self._ask_until(_label(key, field, mandatory), default, read, optional=not mandatory)
            if answer is not None:
                answers[key] = answer
        if not questions and not self._ask_until("Do you agree? (yes or no)", None, _yes_or_no):
            raise EOFError
        return answers

    def _ask_until(self, label: str, default: Any, read: Callable[[str], Any], optional: bool = False) -> Any:
        """Ask until the answer will do; None if nothing was answered and nothing has to be."""
        hint = "" if default is None else " [%s]" % inline(_written(default))
        while True:
            self._output.errors("  %s%s: " % (label, hint))
            line = sys.stdin.readline()
            if not line:
                raise EOFError
            text = line.strip()
            if not text and (default is not None or optional):
                return default
            try:
                if not text:
                    raise ValueError("an answer is required")
                return read(text)
            except ValueError as error:
                self._say("  %s" % inline(str(error)))

    def _say(self, text: str) -> None:
        self._output.errors(text + "\n")


def _label(key: str, field: Mapping[str, Any], mandatory: bool) -> str:
    title, description = field.get("title"), field.get("description")
    label = title if isinstance(title, str) and title else key
    notes: List[str] = []
    if isinstance(description, str) and description:
        notes.append(description)
    options = _options(field)
    if options:
        notes.append("one of: " + ", ".join(options))
    elif field.get("type") == "boolean":
        notes.append("yes or no")
    elif field.get("type") == "array":
        several = _options(field.get("items"))
        notes.append("several, with commas between" + (": " + ", ".join(several) if several else ""))
    if not mandatory:
        notes.append("optional")
    return inline(label + (" (%s)" % "; ".join(notes) if notes else ""))


def _options(field: Any) -> List[str]:
    """The strings to choose from, each with its title if it has one."""
    if not isinstance(field, Mapping):
        return []
    titled = field.get("oneOf", field.get("anyOf"))
    if isinstance(titled, list):
        found = [each for each in titled if isinstance(each, Mapping) and isinstance(each.get("const"), str)]
        return ["%s (%s)" % (each["const"], each["title"]) if "title" in each else each["const"] for each in found]
    enum = field.get("enum")
    return [each for each in enum if isinstance(each, str)] if isinstance(enum, list) else []


def _read(text: str, field: Mapping[str, Any]) -> Any:
    kind = field.get("type")
    if kind == "boolean":
        return _yes_or_no(text)
    if kind in ("integer", "number"):
        try:
            return json.loads(text)
        except ValueError:
            raise ValueError("must be a number") from None
    if kind == "array":
        return [item.strip() for item in text.split(",")]
    return text


def _yes_or_no(text: str) -> bool:
    try:
        return _YES_AND_NO[text.lower()]
    except KeyError:
        raise ValueError("must be yes or no") from None


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
