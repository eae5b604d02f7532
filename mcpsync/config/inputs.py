"""Values that a person is asked for: the ``inputs`` of a file, and ``${input:id}``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Dict, Mapping, Optional, Tuple

from mcpsync.config.diagnose import Report, kind

__all__ = ["Asking", "Input"]

_KINDS = {"promptString": "text", "pickString": "choice", "command": "command"}


@dataclass(frozen=True)
class Input:
    """One of the ``inputs`` of a file.

    :ivar id: its name in ``${input:id}``
    :ivar kind: ``text``, ``choice``, or ``command``: one of the program that the file was written for
    :ivar description: what to ask; it comes from the file
    :ivar password: the answer is a secret
    :ivar default: what to offer, None for nothing
    :ivar options: of a choice
    :ivar command: of a command: its name, which is never run from here
    """

    id: str
    kind: str = "text"
    description: str = ""
    password: bool = False
    default: Optional[str] = None
    options: Tuple[str, ...] = ()
    command: Optional[str] = None


class Asking:
    """Asks for each input once.

    :param answer: gives the value; None: there is none. Without it defaults are taken, and what has none is missing
    """

    def __init__(self, answer: Optional[Callable[[Input], Optional[str]]]) -> None:
        self._answer = answer
        self._known: Dict[str, Input] = {}
        self._given: Dict[str, Optional[str]] = {}

    def read(self, inputs: Any, report: Report) -> None:
        """Take the inputs of a file; what is wrong with one is a warning."""
        if inputs is None:
            return
        if not isinstance(inputs, list):
            report.add("warning", ("inputs",), "must be a list of inputs, and is %s: not used" % kind(inputs))
            return
        for index, each in enumerate(inputs):
            name = each.get("id") if isinstance(each, Mapping) else None
            if not isinstance(each, Mapping) or not isinstance(name, str):
                report.add("warning", ("inputs", index), 'must be a map with an "id": not used')
                continue
            if each.get("type") not in _KINDS:
                report.add("warning", ("inputs", index, "type"), "must be one of %s: not used" % ", ".join(_KINDS))
                continue
            self._known[name] = _input(name, each)

    def __call__(self, name: str) -> str:
        """The value of an input.

        :raises ValueError: there is none, with the reason
        """
        asked = self._known.get(name)
        if asked is None:
            raise ValueError("${input:%s} is not among the inputs of this file" % name)
        if name not in self._given:
            self._given[name] = self._value(asked)
        value = self._given[name]
        if value is None:
            if asked.kind == "command":
                raise ValueError(
                    "${input:%s} is a command of the program that the file was written for: answer it with inputs="
                    % name
                )
            raise ValueError("${input:%s} has to be asked for: answer it with inputs=" % name)
        return value

    def _value(self, asked: Input) -> Optional[str]:
        if self._answer is not None:
            return self._answer(asked)
        return None if asked.password else asked.default


def _input(name: str, said: Mapping[str, Any]) -> Input:
    options = said.get("options")
    return Input(
        id=name,
        kind=_KINDS[said["type"]],
        description=_text(said.get("description")) or "",
        password=said.get("password") is True,
        default=_text(said.get("default")),
        options=tuple(map(_option, options)) if isinstance(options, list) else (),
        command=_text(said.get("command")),
    )


def _option(option: Any) -> str:
    return str(option.get("value", "")) if isinstance(option, Mapping) else str(option)


def _text(value: Any) -> Optional[str]:
    return value if isinstance(value, str) else None
