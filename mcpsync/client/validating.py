"""Results and arguments of tools held against the schemas that their server gave for them.

Specification: `server/tools`, "Output Schema" (2025-06-18 and later): servers must keep to it, clients should look.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, Mapping, NamedTuple, Optional, Tuple, Union

from mcpsync.client.paging import TOOLS, pages
from mcpsync.connection.call import Wanted
from mcpsync.errors import ArgumentsMismatch, ConfigError, SchemaMismatch

if TYPE_CHECKING:
    from mcpsync.connection.connection import Connection
    from mcpsync.schema.validator import Validator
    from mcpsync.types import Tool
    from mcpsync.types.result import ToolResult

__all__ = ["MODES", "OFF", "Definitions", "Judge", "Validation", "prepared", "validation_of"]

logger = logging.getLogger("mcpsync")

MODES = ("off", "warn", "strict")

Judge = Callable[["ToolResult"], None]


class Validation(NamedTuple):
    """What of a tool call is held against the tool's schemas.

    :ivar output: the structured content against ``outputSchema``: ``"strict"`` raises
        :class:`~mcpsync.SchemaMismatch`, ``"warn"`` logs a warning, ``"off"`` does not look
    :ivar arguments: the arguments against ``inputSchema``, before they are sent
    """

    output: str = "off"
    arguments: bool = False


OFF = Validation()


def validation_of(given: Union[str, Validation]) -> Validation:
    """What a user gives for ``validate``, checked.

    :raises ConfigError: it is nothing that can be given, or needs an extra that is not installed
    """
    wanted = Validation(given) if isinstance(given, str) else given
    if not isinstance(wanted, Validation) or wanted.output not in MODES or not isinstance(wanted.arguments, bool):
        raise ConfigError("validate takes 'off', 'warn', 'strict' or a mcpsync.Validation, not %.100r" % (given,))
    if wanted != OFF:
        from mcpsync.schema.dialects import is_installed

        if not is_installed():
            raise ConfigError(
                "validate=%r needs the package jsonschema: pip install 'mcpsync[schema]'" % (wanted.output,)
                if not wanted.arguments
                else "checking arguments needs the package jsonschema: pip install 'mcpsync[schema]'"
            )
    return wanted


class _Definition:
    """What a server says of one tool.

    :param mark: the session that it was said in, and how often the tools had changed by then
    """

    __slots__ = ("_made", "input_schema", "mark", "output_schema", "warned")

    def __init__(self, tool: Tool, mark: Tuple[int, int]) -> None:
        self.input_schema = tool.input_schema
        self.output_schema = tool.output_schema
        self.mark = mark
        self.warned = False
        self._made: Dict[str, Union[Validator, str]] = {}

    def says(self, tool: Tool) -> bool:
        return self.input_schema == tool.input_schema and self.output_schema == tool.output_schema

    def problem(self, which: str, schema: Any, value: Any) -> Optional[Tuple[str, str, str]]:
        """What is wrong with a value: the text, path and keyword; the latter are empty if it is the schema."""
        from mcpsync.schema.validator import Validator
        from mcpsync.schema.work import Unusable

        made = self._made.get(which)
        if made is None:
            try:
                made = Validator(schema)
            except Unusable as error:
                made = str(error)
            self._made[which] = made
        try:
            found = None if isinstance(made, str) else made.mismatch(value)
        except Unusable as error:
            return "its %s schema cannot be used: %s" % (which, error), "", ""
        if isinstance(made, str):
            return "its %s schema cannot be used: %s" % (which, made), "", ""
        return None if found is None else (str(found), found.path, found.keyword)


class Definitions:
    """The schemas of a server's tools, as they were listed last. Each is compiled when it is first needed.

    Holds nothing of the client. Without a lock: each step is one of a dict, and what two threads do twice is the same.
    """

    def __init__(self) -> None:
        self._tools: Dict[str, _Definition] = {}
        self._changes = 0
        self._complete: Optional[Tuple[int, int]] = None

    def changed(self) -> None:
        """The server may list other tools now. Any thread."""
        self._changes += 1

    def noted(self, tools: Iterator[Tool], connection: Connection) -> Iterator[Tool]:
        """The tools of a listing, each remembered on its way."""
        changes, session = self._changes, connection.sessions
        for tool in tools:
            self._note(tool, (connection.sessions, changes))
            yield tool
        if session in (0, connection.sessions):
            self._complete = (connection.sessions, changes)

    def _note(self, tool: Tool, mark: Tuple[int, int]) -> None:
        known = self._tools.get(tool.name)
        if known is not None and known.says(tool):
            known.mark = mark
        else:
            self._tools[tool.name] = _Definition(tool, mark)

    def latest(self, name: str) -> Optional[_Definition]:
        """What was said of a tool last."""
        return self._tools.get(name)

    def is_current(self, name: str, connection: Connection) -> bool:
        """Whether that was in this session, and no change was notified since; so for a tool that is not listed."""
        mark = (connection.sessions, self._changes)
        known = self._tools.get(name)
        return self._complete == mark if known is None else known.mark == mark


def prepared(
    definitions: Definitions,
    connection: Connection,
    page_limit: int,
    name: str,
    arguments: Optional[Mapping[str, Any]],
    validation: Validation,
    wanted: Wanted,
) -> Tuple[Judge, Wanted]:
    """What has to be done before a call: the tools listed if need be, within the call's time, the arguments checked.

    :returns: what judges its result, and what the call wants with the time that is left
    :raises ArgumentsMismatch: they break the tool's input schema
    """
    if (validation.output == "strict" or validation.arguments) and not definitions.is_current(name, connection):
        wanted = _list(definitions, connection, page_limit, wanted)
    definition = definitions.latest(name)
    if definition is None:
        return _nothing, wanted
    if validation.arguments:
        problem = definition.problem("input", definition.input_schema, {} if arguments is None else arguments)
        if problem is not None:
            text, path, keyword = problem
            text = "the arguments%s: %s" % (path and " at %s" % path, text) if keyword else text
            refusal = ArgumentsMismatch("tool %r: %s" % (name, text), server=connection.name)
            refusal.tool, refusal.path, refusal.keyword = name, path, keyword
            raise refusal
    if validation.output == "off" or definition.output_schema is None:
        return _nothing, wanted
    return lambda result: _judge(definition, connection.name, name, result, validation.output == "strict"), wanted


def _list(definitions: Definitions, connection: Connection, page_limit: int, wanted: Wanted) -> Wanted:
    from mcpsync.types import Tool

    started = time.monotonic()
    timeouts = wanted.timeouts
    limits = [each for each in (timeouts.total, timeouts.call if timeouts.idle is None else None) if each is not None]
    bounded = timeouts.override(total=min(limits)) if limits else timeouts
    listing = (tool for page in pages(connection, TOOLS, Tool.from_wire, page_limit, bounded) for tool in page)
    for _ in definitions.noted(listing, connection):
        pass
    return wanted.after(time.monotonic() - started)


def _nothing(result: ToolResult) -> None:
    pass


def _judge(definition: _Definition, server: str, name: str, result: ToolResult, strict: bool) -> None:
    """
    :raises SchemaMismatch: the result's structured content breaks the schema, and that is not only to be logged
    """
    raw = result.raw
    if result.is_error or raw.get("resultType", "complete") != "complete":
        return
    if "structuredContent" in raw:
        problem = definition.problem("output", definition.output_schema, raw["structuredContent"])
        if problem is None:
            return
        text, path, keyword = problem
        text = "structuredContent%s: %s" % (path and " at %s" % path, text) if keyword else text
    else:
        text, path, keyword = "the result has no structuredContent, although the tool has an output schema", "", ""
    error = SchemaMismatch(text, result=result, server=server, tool=name)
    error.path, error.keyword = path, keyword
    if strict:
        raise error
    # a schema that cannot be used is the same each time
    if keyword or not definition.warned:
        definition.warned = not keyword
        logger.warning("mcpsync: %s", error)
