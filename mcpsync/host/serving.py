"""What a host does for a model: shows its tools, makes its calls, gives it prompts."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Callable, ContextManager, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from mcpsync.client.features import DEFAULT
from mcpsync.deadline import Timeouts
from mcpsync.errors import ClientClosed, ConfigError, McpError, RequestTimeout, ToolBlocked, ToolError
from mcpsync.host.catalog import Catalog, HostTool
from mcpsync.host.context_tools import ContextTools
from mcpsync.host.crew import Crew
from mcpsync.host.exporting import export_table
from mcpsync.host.fleet import Fleet
from mcpsync.host.kept import Kept
from mcpsync.host.member import Member
from mcpsync.host.prompts import HostPrompt, gathered_prompts
from mcpsync.host.render import render_result
from mcpsync.host.safety import Safety
from mcpsync.host.together import Together

if TYPE_CHECKING:
    from mcpsync.client.features import Timeout
    from mcpsync.client.validating import Validation
    from mcpsync.export import ToolCall
    from mcpsync.types import Progress, PromptResult, ToolResult

    Answer = Tuple[str, bool]

__all__ = ["Serving"]


class Serving:
    """The methods of a host that are about tools and prompts; see :class:`~mcpsync.Host`."""

    _catalog: Catalog
    _crew: Crew
    _fleet: Fleet
    _kept: Kept
    _own: ContextTools
    _safety: Safety

    def _ensure_open(self) -> None:
        raise NotImplementedError

    # -- tools -------------------------------------------------------------------------------------------------

    def tools(self, ready_only: bool = False) -> List[HostTool]:
        """The tools of all servers, then the host's own.

        A server that is not up yet shows the tools that it had the last time, which are not ready.

        :param ready_only: leave out those of servers that are not connected now
        :raises ClientClosed: the host is closed
        """
        self._ensure_open()
        ready = self._ready()
        rows = [*self._catalog.table.rows(ready), *self._own_tools(ready)]
        return [tool for tool in rows if tool.ready or not ready_only]

    def _own_tools(self, ready: Mapping[str, bool]) -> List[HostTool]:
        """The host's own, as far as the policy allows them."""
        own = self._own.tools(ready, self._fleet.connected())
        return [tool for tool in own if self._safety.allows(tool.name)]

    def _ready(self) -> Dict[str, bool]:
        return {name: member.is_ready() for name, member in self._fleet.members.items()}

    def export_tools(self, format: str, *, ready_only: bool = True) -> List[Any]:
        """The tools as definitions for a model's API, or as tools of an agent framework.

        :param format: ``"openai"`` (chat completions), ``"openai-responses"``, ``"anthropic"`` or ``"gemini"``: dicts,
            which are the caller's; ``"langchain"`` or ``"smolagents"``: objects of these packages
        :param ready_only: leave out those of servers that are not connected now
        :raises ValueError: the format is not known
        :raises ConfigError: the framework is not installed
        :raises ClientClosed: the host is closed
        """
        from mcpsync.export import FRAMEWORKS, framework_tools, get_format

        if format in FRAMEWORKS:
            definitions = [
                (tool.name, tool.definition.description, tool.definition.input_schema)
                for tool in self.tools(ready_only)
            ]
            return framework_tools(format, definitions, self._called)
        form = get_format(format)
        self._ensure_open()
        ready = self._ready()
        own = [tool for tool in self._own_tools(ready) if tool.ready or not ready_only]
        shown = ready if ready_only else dict.fromkeys(ready, True)
        return [
            *export_table(self._catalog.table, shown, form, lambda name: True),
            *(form.tool(tool.name, tool.definition.description, tool.definition.input_schema) for tool in own),
        ]

    def call_tool(
        self,
        name: str,
        arguments: Optional[Mapping[str, Any]] = None,
        *,
        timeout: Timeout = DEFAULT,
        on_progress: Optional[Callable[[Progress], Any]] = None,
        check: bool = True,
        validate: Union[str, Validation, None] = None,
    ) -> ToolResult:
        """Call a tool by the name that the model sees. Otherwise as :meth:`Client.call_tool`.

        Where the tool's level needs approval, ``approve`` is asked first, on this thread; its time is not the call's.
        Calls of a server whose config has ``supports_parallel`` off wait for one another, within their time.

        :param timeout: seconds, or a :class:`~mcpsync.Timeouts`; by default what the config says for the server
        :raises ConfigError: there is no such tool; the message names those that are near
        :raises ToolBlocked: the tool is refused, or the policy denies it; the message says why
        :raises ApprovalRefused: it needs an approval that was not given; the message names the remedy
        :raises ToolError: the tool failed, and ``check`` is set
        :raises SchemaMismatch, ArgumentsMismatch: as for :meth:`Client.call_tool`
        :raises ConnectionLost: its server is not connected
        :raises ClientClosed: the host is closed
        """
        self._ensure_open()
        own = self._own.find(name, self._fleet.connected)
        if own is not None:
            self._safety.check_name(name)
            result = own(arguments or {}, timeout)
            if check and result.is_error:
                raise ToolError(result.text, result=result, tool=name)
            return result
        member, tool = self._cleared(name, arguments)
        with _turn(member, timeout, name):
            return member.client.call_tool(
                tool, arguments, timeout=timeout, on_progress=on_progress, check=check, validate=validate
            )

    def _cleared(self, name: str, arguments: Optional[Mapping[str, Any]]) -> Tuple[Member, str]:
        """Whose tool it is, and its name there, if the call may be made; asks if need be, on this thread.

        :raises McpError: there is no such tool, or it may not be called
        """
        table = self._catalog.table
        key = table.find(name)
        member = None if key is None else self._fleet.members.get(key.server)
        if key is None or member is None:
            raise self._unknown_tool(name)
        self._safety.check_call(member.config, name, table.definition(key), arguments)
        return member, key.tool

    def _unknown_tool(self, name: str) -> McpError:
        refusal = self._catalog.table.refusal(name)
        if refusal is not None:
            return ToolBlocked("the tool %.100s is not used: %s" % (name, refusal), method="tools/call")
        near = self._catalog.table.nearest(name)
        hint = "; did you mean %s?" % " or ".join(near) if near else ""
        return ConfigError("there is no tool %.100r%s" % (name, hint))

    # -- a model's calls ---------------------------------------------------------------------------------------

    def dispatch(self, format: str, tool_call: Any, *, timeout: Timeout = DEFAULT) -> Dict[str, Any]:
        """Make one tool call of a model, and give what answers it.

        What the model or a server did wrong (an unknown tool, broken arguments, a tool that fails, a call that takes
        too long, a server that is gone) becomes an error message for the model.

        :param format: ``"openai"``, ``"openai-responses"``, ``"anthropic"`` or ``"gemini"``
        :param tool_call: one tool call of the model's answer, as a dict or as an object of the API's package
        :param timeout: seconds, or a :class:`~mcpsync.Timeouts`; by default what the config says for the server
        :returns: a message of the role ``tool``, an item ``function_call_output``, a block ``tool_result``, or a part
            with a ``functionResponse``
        :raises TypeError: that is no tool call
        :raises ValueError: format or timeout are wrong
        :raises ClientClosed: the host is closed
        """
        from mcpsync.export import get_format

        form = get_format(format)
        call = form.parse_call(tool_call)
        Timeouts().for_call(timeout if timeout is not DEFAULT else None)  # a wrong one is not the model's mistake
        self._ensure_open()
        text, failed = self._answer(call, timeout)
        return form.result(call, text, is_error=failed)

    def dispatch_all(
        self, format: str, tool_calls: Sequence[Any], *, timeout: Timeout = DEFAULT
    ) -> List[Dict[str, Any]]:
        """Make all tool calls of one turn of a model at the same time, and give the messages to go on with.

        As :meth:`dispatch`, but whole messages: Anthropic and Gemini want all results of a turn in one. Up to 16 calls
        are on their way at a time. One after the other, in the order given, are the calls of a server whose config has
        ``supports_parallel`` off, those of the host's own tools, and where callbacks run on the thread that waits or on
        that of a UI (the option ``callbacks``). ``approve`` is asked in order on this thread; meanwhile calls before go
        on. Ctrl-C ends all of them.

        :returns: what is appended to the conversation, in the order of the calls; empty without calls
        :raises TypeError: one of them is no tool call; then none is made
        """
        from mcpsync.export import get_format

        form = get_format(format)
        calls = [form.parse_call(call) for call in tool_calls]
        Timeouts().for_call(timeout if timeout is not DEFAULT else None)
        self._ensure_open()
        answers = self._answers(calls, timeout)
        return form.messages([form.result(call, text, is_error=failed) for call, (text, failed) in zip(calls, answers)])

    def _answers(self, calls: Sequence[ToolCall], timeout: Timeout) -> List[Answer]:
        if len(calls) == 1:  # needs no other thread
            return [self._answer(calls[0], timeout)]
        with Together(self._crew.callers) as group:
            waiting = [self._begun(call, timeout, group) for call in calls]
            return [wait() for wait in waiting]

    def _begun(self, call: ToolCall, timeout: Timeout, group: Together) -> Callable[[], Answer]:
        """Have a call made, if it can be while others are; gives what waits for its answer, or makes the call."""
        key = self._catalog.table.find(call.name)
        member = None if key is None else self._fleet.members.get(key.server)
        if call.problem is not None or member is None or not member.calls_elsewhere:
            return lambda: self._answer(call, timeout)
        try:
            member, tool = self._cleared(call.name, call.arguments)
        except (McpError, ValueError) as error:
            return partial(self._answered, partial(_raise, error))
        made = partial(_made, member, tool, call, timeout, group)
        return group.start(partial(self._answered, made), None if member.turnstile is None else member)

    def _called(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        """A call of an agent framework."""
        from mcpsync.export import ToolCall

        self._ensure_open()
        return self._answer(ToolCall("", name, dict(arguments)), DEFAULT)

    def _answer(self, call: ToolCall, timeout: Timeout) -> Answer:
        """The text for the model, and whether it tells of an error."""
        if call.problem is not None:
            return call.problem, True
        return self._answered(partial(self.call_tool, call.name, call.arguments, timeout=timeout, check=False))

    def _answered(self, make: Callable[[], ToolResult]) -> Answer:
        try:
            result = make()
        except ClientClosed:
            raise
        except ValueError as error:  # the model's JSON could be read, but not written again: nested too deeply, say
            return "The arguments cannot be sent: %s" % error, True
        except RequestTimeout as error:
            return "%s; the call was cancelled" % error, True
        except McpError as error:
            return str(error), True
        return self._kept.fit(render_result(result, limit=sys.maxsize)), result.is_error

    def kept_result(self, id: str) -> Optional[str]:
        """The whole text of a result that was too long for a model: the note at its end says under which id.

        :returns: None if it is not kept any more: the latest 64 are, of 16 million characters together
        """
        return self._kept.get(id)

    # -- prompts -----------------------------------------------------------------------------------------------

    def list_prompts(self, server: Optional[str] = None, *, timeout: Timeout = DEFAULT) -> List[HostPrompt]:
        """The prompts of all servers that are connected. One whose listing fails is left out, with a warning.

        :param server: of this one alone; then what goes wrong is raised
        :raises ConfigError: there is no such server connected
        :raises ClientClosed: the host is closed
        """
        self._ensure_open()
        return gathered_prompts(self._fleet.connected(), server, timeout)

    def get_prompt(
        self,
        name: str,
        arguments: Optional[Mapping[str, str]] = None,
        *,
        server: Optional[str] = None,
        timeout: Timeout = DEFAULT,
    ) -> PromptResult:
        """A prompt, filled in.

        :param server: that has it; needed if several servers have one of this name
        :raises ConfigError: there is no such prompt or server, or there are several
        :raises RpcError: what the server has to say against it
        :raises ClientClosed: the host is closed
        """
        self._ensure_open()
        clients = self._fleet.connected()
        if server is None:
            having = [row.server for row in gathered_prompts(clients, None, timeout) if row.prompt.name == name]
            if len(having) != 1:
                which = "servers %s have" % ", ".join(sorted(having)) if having else "no server has"
                raise ConfigError("%s a prompt %.100r" % (which, name) + ("; say which server" if having else ""))
            server = having[0]
        if server not in clients:
            raise ConfigError("there is no server %.100r connected" % server)
        return clients[server].get_prompt(name, arguments, timeout=timeout)


def _made(member: Member, tool: str, call: ToolCall, timeout: Timeout, group: Together) -> ToolResult:
    with _turn(member, timeout, call.name):
        return group.call(partial(member.client.submit, tool, call.arguments, timeout=timeout, check=False))


def _raise(error: Exception) -> ToolResult:
    raise error


def _turn(member: Member, timeout: Timeout, tool: str) -> ContextManager[None]:
    if member.turnstile is None:
        return nullcontext()
    timeouts = member.timeouts if timeout is DEFAULT else member.timeouts.for_call(timeout)
    return member.turnstile.turn(timeouts, tool)
