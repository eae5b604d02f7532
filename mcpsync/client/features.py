"""What a server offers, as blocking methods: tools, resources, prompts, completion, logging, roots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple, TypeVar, Union

from mcpsync.client.caching import Caching, check_use
from mcpsync.client.listeners import skipped
from mcpsync.client.options import Options, check_level
from mcpsync.client.paging import PROMPTS, RESOURCES, TEMPLATES, TOOLS, Listing, pages
from mcpsync.connection.call import Wanted
from mcpsync.connection.future import CallFuture
from mcpsync.core.jsonrpc import METHOD_NOT_FOUND
from mcpsync.deadline import Deadline, Timeouts
from mcpsync.errors import InvalidMessage, InvalidParams, McpError, RpcError, ToolError
from mcpsync.types.result import ToolResult

if TYPE_CHECKING:
    from mcpsync.client.held import Held
    from mcpsync.client.validating import Definitions, Judge, Validation
    from mcpsync.connection.connection import Connection
    from mcpsync.types import (
        Completion,
        Progress,
        Prompt,
        PromptReference,
        PromptResult,
        ReadResult,
        Resource,
        ResourceTemplate,
        ResourceTemplateReference,
        ServerCapabilities,
        Tool,
    )

__all__ = ["DEFAULT", "Features", "Timeout"]

T = TypeVar("T")
Timeout = Union[float, Timeouts, None]


class _Default(float):
    """The value of ``timeout`` that stands for the client's own timeouts."""

    def __repr__(self) -> str:
        return "<the client's>"


DEFAULT = _Default(0)


class Features:
    """The methods of a client that a server has to answer; see :class:`~mcpsync.Client`."""

    _connection: Connection
    _options: Options
    _held: Held
    _wanted: Wanted
    _definitions: Optional[Definitions] = None
    _validation: Optional[Validation] = None
    _caching: Optional[Caching]

    @property
    def name(self) -> str:
        """Name of the server, as this side calls it."""
        return self._connection.name

    @property
    def protocol_version(self) -> Optional[str]:
        """The revision that was agreed on; None while not connected."""
        revision = self._connection.revision
        return None if revision is None else revision.name

    @property
    def capabilities(self) -> ServerCapabilities:
        """What the server offers."""
        from mcpsync.types import ServerCapabilities

        capabilities = self._connection.server.get("capabilities")
        return ServerCapabilities(capabilities if isinstance(capabilities, dict) else {})

    # -- tools -------------------------------------------------------------------------------------------------

    def list_tools(self, *, timeout: Timeout = DEFAULT, cache: str = "use") -> List[Tool]:
        """All tools, from all pages. Empty if the server has none.

        :param timeout: for each page; ``Timeouts.total`` bounds all of them together
        :param cache: ``"use"`` what the server said is fresh still (2026-07-28), ``"refresh"`` it, or ``"bypass"``:
            ask, and keep nothing of the answer. The same for the other listings
        :raises PageLimit: with what was collected

        Specification: `server/tools`, "Listing Tools".
        """
        from mcpsync.types import Tool

        return self._list(TOOLS, Tool.from_wire, timeout, cache)

    def iter_tools(self, *, timeout: Timeout = DEFAULT, cache: str = "use") -> Iterator[Tool]:
        """As :meth:`list_tools`, each page fetched when it is needed."""
        from mcpsync.types import Tool

        return self._paged(TOOLS, Tool.from_wire, timeout, cache)

    def call_tool(
        self,
        name: str,
        arguments: Optional[Mapping[str, Any]] = None,
        *,
        timeout: Timeout = DEFAULT,
        on_progress: Optional[Callable[[Progress], Any]] = None,
        meta: Optional[Mapping[str, Any]] = None,
        log_level: Optional[str] = None,
        check: bool = True,
        validate: Union[str, Validation, None] = None,
    ) -> ToolResult:
        """Call a tool and wait for its result.

        :param arguments: by name, of JSON's types
        :param on_progress: gets each :class:`~mcpsync.types.Progress`, in order; the result does not wait for it
        :param meta: further keys for ``_meta``
        :param log_level: from which the server shall log about this call (2026-07-28)
        :param check: raise :class:`~mcpsync.ToolError` if the result says that the tool failed
        :param validate: in place of the client's ``validate``
        :raises ToolError: it does, and ``check`` is set
        :raises SchemaMismatch: the structured content breaks the tool's output schema, where that is looked at strictly
        :raises ArgumentsMismatch: the arguments break its input schema, where that is looked at
        :raises ValueError: the arguments have no JSON form

        Specification: `server/tools`, "Calling Tools".
        """
        wanted = self._wanted
        if timeout is not DEFAULT or on_progress is not None or meta is not None or log_level is not None:
            wanted = self._wants(timeout, on_progress, meta, log_level)
        params = {"name": name, "arguments": arguments} if arguments is not None else {"name": name}
        if validate is not None or self._validation is not None:
            judge, wanted = self._judge(name, arguments, validate, wanted)
            result = ToolResult(self._connection.request("tools/call", params, wanted))
            if check and result.is_error:
                raise _tool_error(self.name, name, result)
            if judge is not None:
                judge(result)
            return result
        raw = self._connection.request("tools/call", params, wanted)
        result = ToolResult(raw)
        if check and "isError" in raw and result.is_error:
            raise _tool_error(self.name, name, result)
        return result

    def submit(
        self,
        name: str,
        arguments: Optional[Mapping[str, Any]] = None,
        *,
        timeout: Timeout = DEFAULT,
        on_progress: Optional[Callable[[Progress], Any]] = None,
        meta: Optional[Mapping[str, Any]] = None,
        log_level: Optional[str] = None,
        check: bool = True,
        validate: Union[str, Validation, None] = None,
    ) -> CallFuture[ToolResult]:
        """Call a tool without waiting: as :meth:`call_tool`, but a Future of its result.

        Where a schema is needed that was not listed yet (``validate``), the tools are listed first, and waited for.

        :returns: a ``concurrent.futures.Future`` whose ``cancel()`` ends the call and tells the server
        :raises Overloaded: there is no room for the request now
        """
        wanted = self._wants(timeout, on_progress, meta, log_level)
        params = {"name": name, "arguments": arguments} if arguments is not None else {"name": name}
        judge: Optional[Judge] = None
        if validate is not None or self._validation is not None:
            judge, wanted = self._judge(name, arguments, validate, wanted)

        def convert(raw: Dict[str, Any]) -> ToolResult:
            result = ToolResult(raw)
            if check and result.is_error:
                raise _tool_error(server, name, result)
            if judge is not None:
                judge(result)
            return result

        server = self.name
        return self._connection.submit("tools/call", params, convert, wanted)

    # -- resources ---------------------------------------------------------------------------------------------

    def list_resources(self, *, timeout: Timeout = DEFAULT, cache: str = "use") -> List[Resource]:
        """All resources, from all pages. Empty if the server has none.

        Specification: `server/resources`, "Listing Resources".
        """
        from mcpsync.types import Resource

        return self._list(RESOURCES, Resource.from_wire, timeout, cache)

    def iter_resources(self, *, timeout: Timeout = DEFAULT, cache: str = "use") -> Iterator[Resource]:
        """As :meth:`list_resources`, each page fetched when it is needed."""
        from mcpsync.types import Resource

        return self._paged(RESOURCES, Resource.from_wire, timeout, cache)

    def list_resource_templates(self, *, timeout: Timeout = DEFAULT, cache: str = "use") -> List[ResourceTemplate]:
        """All templates of resources, from all pages. Empty if the server has none.

        Specification: `server/resources`, "Resource Templates".
        """
        from mcpsync.types import ResourceTemplate

        return self._list(TEMPLATES, ResourceTemplate.from_wire, timeout, cache)

    def iter_resource_templates(self, *, timeout: Timeout = DEFAULT, cache: str = "use") -> Iterator[ResourceTemplate]:
        """As :meth:`list_resource_templates`, each page fetched when it is needed."""
        from mcpsync.types import ResourceTemplate

        return self._paged(TEMPLATES, ResourceTemplate.from_wire, timeout, cache)

    def read_resource(
        self,
        uri: str,
        *,
        timeout: Timeout = DEFAULT,
        on_progress: Optional[Callable[[Progress], Any]] = None,
        meta: Optional[Mapping[str, Any]] = None,
        cache: str = "use",
    ) -> ReadResult:
        """Read a resource.

        :param meta: further keys for ``_meta``; the cache is bypassed then
        :param cache: ``"use"``, ``"refresh"`` or ``"bypass"``, as in :meth:`list_tools`
        :raises ResourceNotFound, InvalidParams: there is none (by revision)

        Specification: `server/resources`, "Reading Resources".
        """
        from mcpsync.types import ReadResult

        caching, method, key = self._caching, "resources/read", ("resources/read", uri)
        check_use(cache)
        if caching is None or meta is not None or cache == "bypass":
            return self._typed(ReadResult.from_wire, method, {"uri": uri}, timeout, on_progress, meta)
        if cache == "use":
            kept: Optional[ReadResult] = caching.fresh(key)
            if kept is not None:
                return kept
        wanted = self._wants(timeout, on_progress)
        ticket = caching.begin(key, wanted)
        try:
            result = self._connection.request(method, {"uri": uri}, wanted)
            read = ReadResult.from_wire(result)
        except McpError as error:
            error.located(self.name, method)
            stale: Optional[ReadResult] = caching.stale(error, key) if cache == "use" else None
            if stale is not None:
                return stale
            raise
        return caching.keep(self._connection, ticket, wanted, result, read)  # type: ignore[no-any-return]

    def subscribe_resource(
        self, uri: str, function: Optional[Callable[[str], Any]] = None, *, timeout: Optional[float] = None
    ) -> None:
        """Be told when a resource changes, until :meth:`unsubscribe_resource`; kept over reconnects.

        :param function: called with the URI each time; without it, ``on_notification`` alone is told
        :param timeout: seconds; by default ``Timeouts.call``
        :raises MethodNotFound: the server offers no subscriptions
        :raises ProtocolError: it grants none for this resource

        Specification: `basic/patterns/subscriptions` (2026-07-28); `server/resources`, "Subscriptions" (earlier).
        """
        link = self._connection.ready_link("resources/subscribe")
        if not self.capabilities.resources_subscribe:
            raise RpcError.of(METHOD_NOT_FOUND, "the server offers no subscriptions to resources").located(self.name)
        listeners, held = self._connection.listeners, None if function is None else self._held.handle(function)
        if held is not None:
            listeners.add_update(uri, held)
        try:
            self._connection.subscriptions.add(link, uri, self._deadline(timeout))
        except BaseException:
            if held is not None:
                listeners.remove_update(uri, held)
            raise

    def unsubscribe_resource(self, uri: str, *, timeout: Optional[float] = None) -> None:
        """Undo :meth:`subscribe_resource`.

        :param timeout: seconds; by default ``Timeouts.call``
        """
        self._connection.listeners.remove_updates(uri)
        self._connection.subscriptions.remove(self._connection.link, uri, self._deadline(timeout))

    # -- prompts and completion --------------------------------------------------------------------------------

    def list_prompts(self, *, timeout: Timeout = DEFAULT, cache: str = "use") -> List[Prompt]:
        """All prompts, from all pages. Empty if the server has none.

        Specification: `server/prompts`, "Listing Prompts".
        """
        from mcpsync.types import Prompt

        return self._list(PROMPTS, Prompt.from_wire, timeout, cache)

    def iter_prompts(self, *, timeout: Timeout = DEFAULT, cache: str = "use") -> Iterator[Prompt]:
        """As :meth:`list_prompts`, each page fetched when it is needed."""
        from mcpsync.types import Prompt

        return self._paged(PROMPTS, Prompt.from_wire, timeout, cache)

    def get_prompt(
        self,
        name: str,
        arguments: Optional[Mapping[str, str]] = None,
        *,
        timeout: Timeout = DEFAULT,
        on_progress: Optional[Callable[[Progress], Any]] = None,
        meta: Optional[Mapping[str, Any]] = None,
    ) -> PromptResult:
        """Have a prompt filled in.

        :param arguments: texts by name

        Specification: `server/prompts`, "Getting a Prompt".
        """
        from mcpsync.types import PromptResult

        params: Dict[str, Any] = {"name": name}
        if arguments is not None:
            params["arguments"] = arguments
        return self._typed(PromptResult.from_wire, "prompts/get", params, timeout, on_progress, meta)

    def complete(
        self,
        ref: Union[PromptReference, ResourceTemplateReference],
        argument: str,
        value: str,
        context: Optional[Mapping[str, str]] = None,
        *,
        timeout: Timeout = DEFAULT,
    ) -> Completion:
        """Suggestions for an argument of a prompt or a template.

        :param ref: what it is an argument of
        :param argument: its name
        :param value: what has been typed so far
        :param context: arguments that are settled already (2025-06-18 and later)
        :returns: no values if the server offers no completion

        Specification: `server/utilities/completion`.
        """
        from mcpsync.types import Completion, CompletionResult

        self._connection.ready_link("completion/complete")
        revision = self._connection.revision
        if revision is not None and revision.completions_declared and not self.capabilities.completions:
            return Completion(values=[])
        params: Dict[str, Any] = {"ref": ref.to_wire(), "argument": {"name": argument, "value": value}}
        if context is not None:
            params["context"] = {"arguments": dict(context)}
        return self._typed(CompletionResult.from_wire, "completion/complete", params, timeout).completion

    # -- the rest ----------------------------------------------------------------------------------------------

    def ping(self, *, timeout: Timeout = DEFAULT) -> None:
        """Ask for a sign of life. Where the revision has no ping, ``server/discover`` stands in.

        Specification: `basic/utilities/ping` (2025-11-25 and earlier).
        """
        revision = self._connection.ready_link("ping").session.revision
        method = "ping" if revision is None or revision.ping else "server/discover"
        self._connection.request(method, {}, self._wants(timeout))

    def set_logging_level(self, level: str, *, timeout: Timeout = DEFAULT) -> None:
        """From now on have the server log from this level; kept over reconnects.

        :param level: one of debug, info, notice, warning, error, critical, alert, emergency

        Specification: `server/utilities/logging`.
        """
        check_level(level)
        revision = self._connection.ready_link("logging/setLevel").session.revision
        if revision is not None and not revision.log_per_request:
            self._connection.request("logging/setLevel", {"level": level}, self._wants(timeout))
        self._connection.set_log_level(level)

    def roots_changed(self) -> None:
        """Tell the server that the roots are others now; it asks again if it cares. Where the revision has no such
        notification, the next question gets the new ones anyway.

        Specification: `client/roots`, "Root List Changes" (2025-11-25 and earlier).
        """
        revision = self._connection.ready_link("notifications/roots/list_changed").session.revision
        if revision is None or revision.roots_changed:
            self._connection.notify("notifications/roots/list_changed")

    # -- helpers -----------------------------------------------------------------------------------------------

    def _wants(
        self,
        timeout: Timeout,
        on_progress: Optional[Callable[[Progress], Any]] = None,
        meta: Optional[Mapping[str, Any]] = None,
        log_level: Optional[str] = None,
    ) -> Wanted:
        check_level(log_level)
        progress = None if on_progress is None else _typed_progress(self._connection, on_progress)
        return Wanted(self._timeouts(timeout), progress, meta, log_level)

    def _judge(
        self,
        name: str,
        arguments: Optional[Mapping[str, Any]],
        validate: Union[str, Validation, None],
        wanted: Wanted,
    ) -> Tuple[Optional[Judge], Wanted]:
        from mcpsync.client.validating import OFF, Definitions, prepared, validation_of

        validation = (self._validation or OFF) if validate is None else validation_of(validate)
        if validation == OFF:
            return None, wanted
        definitions = self._definitions
        if definitions is None:
            definitions = self._connection.listeners.watch_tools(Definitions())
            self._definitions = definitions
        return prepared(definitions, self._connection, self._options.page_limit, name, arguments, validation, wanted)

    def _timeouts(self, timeout: Timeout) -> Timeouts:
        own = self._connection.timeouts
        return own if timeout is DEFAULT else own.for_call(timeout)

    def _deadline(self, timeout: Optional[float]) -> Deadline:
        return Deadline(self._connection.timeouts.call if timeout is None else timeout)

    def _typed(
        self,
        read: Callable[[Dict[str, Any]], T],
        method: str,
        params: Dict[str, Any],
        timeout: Timeout,
        on_progress: Optional[Callable[[Progress], Any]] = None,
        meta: Optional[Mapping[str, Any]] = None,
    ) -> T:
        result = self._connection.request(method, params, self._wants(timeout, on_progress, meta))
        try:
            return read(result)
        except McpError as error:
            error.located(self.name, method)
            raise

    def _list(self, listing: Listing, read: Callable[[Any], T], timeout: Timeout, cache: str) -> List[T]:
        """All items of a listing."""
        caching, limit, method = self._caching, self._options.page_limit, listing.method
        if caching is None or cache != "use":
            return list(self._paged(listing, read, timeout, cache))
        kept = caching.listed(method, limit)
        if kept is not None:
            return kept
        begun = caching.fresh((method, None)) is not None
        try:
            try:
                return list(self._paged(listing, read, timeout, cache))
            except InvalidParams:
                if not begun:
                    raise
                # a kept page named a cursor that the server does not know any more
                return list(self._paged(listing, read, timeout, "refresh"))
        except McpError as error:
            stale = caching.stale_list(error, method, limit)
            if stale is None:
                raise
            return stale

    def _paged(self, listing: Listing, read: Callable[[Any], T], timeout: Timeout, cache: str) -> Iterator[T]:
        """The items of a listing, each page of which is got when it is needed."""
        check_use(cache)
        caching = None if cache == "bypass" else self._caching
        own, limit = self._timeouts(timeout), self._options.page_limit
        found = pages(self._connection, listing, read, limit, own, caching, cache == "use")
        items = (item for page in found for item in page)
        if self._definitions is None or listing is not TOOLS:
            return items
        return self._definitions.noted(items, self._connection)  # type: ignore[arg-type,return-value]


def _typed_progress(connection: Connection, on_progress: Callable[[Progress], Any]) -> Callable[[Dict[str, Any]], Any]:
    read: Optional[Callable[[Dict[str, Any]], Progress]] = None

    def tell(params: Dict[str, Any]) -> None:
        nonlocal read
        if read is None:  # the types are loaded when they are needed
            from mcpsync.types import Progress

            read = Progress.from_wire
        try:
            progress = read(params)
        except InvalidMessage as error:
            skipped(connection, "unreadable progress", error)
        else:
            on_progress(progress)

    return tell


def _tool_error(server: str, name: str, result: ToolResult) -> ToolError:
    text = result.text or "the tool reported an error with no detail"
    return ToolError(text, result=result, server=server, tool=name)
