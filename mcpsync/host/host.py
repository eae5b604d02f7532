"""The host: many servers from one config, their tools for one model."""

from __future__ import annotations

import difflib
import os
import weakref
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Mapping, Optional, Union

from mcpsync.client.features import DEFAULT
from mcpsync.client.options import Options
from mcpsync.config import Config, ServerConfig, load
from mcpsync.connection import lifetime
from mcpsync.connection.threads import Workers, forbid_blocking
from mcpsync.deadline import Deadline, Timeouts
from mcpsync.errors import ClientClosed, ConfigError, McpError, RequestTimeout
from mcpsync.host.catalog import Catalog, HostTool
from mcpsync.host.crew import Announcer, Crew
from mcpsync.host.filters import Rules, ToolFilter
from mcpsync.host.member import Member
from mcpsync.host.names import exposed_name
from mcpsync.host.render import render_result
from mcpsync.host.status import ServerStatus

if TYPE_CHECKING:
    from types import TracebackType

    from mcpsync.client import Client
    from mcpsync.client.features import Timeout
    from mcpsync.export import ToolCall
    from mcpsync.types import Progress, ToolResult

__all__ = ["Host"]

_OF_THE_CONFIG = ("name", "env", "cwd", "transport")
_OF_THE_HOST = ("on_tools_changed", "observer")
_OF_ONE_SERVER = ("on_state", "on_prompts_changed", "on_resources_changed", "on_notification", "headers")
"""What is of no use without knowing the server, or would tell a secret to all: only ``for_server`` can give it."""


class Host:
    """The servers of one config, connected at the same time, and their tools under names for a model.

    A server that cannot be started or reached takes no other down: :meth:`status` says what is wrong with it, and it
    is tried again in the background. Any number of threads may use a host. One that is not open is opened by its
    first use.

    :param config: from :func:`mcpsync.config.load`
    :param connect_timeout: seconds that :meth:`open` waits for all servers together; by default the longest that one
        of them may take to connect
    :param include: the tools to use, by the names that the model sees: names, globs or functions; none: all. The
        config's own ``tools_include`` and ``tools_exclude`` apply too, to the names on the server
    :param exclude: of these, the ones not to use
    :param reserved: names that no tool may get, because the program has tools of its own
    :param on_tools_changed: gets the new :attr:`revision` some time after tools came, went or changed, or a server
        became ready or stopped being so
    :param for_server: gives further options for the client of the server with this name, callbacks that must know
        their server above all
    :param options: those of :class:`~mcpsync.Client` that suit all servers: ``protocol``, ``timeouts`` (what the config
        says for a server goes before ``call`` and ``connect``), ``client_info``, ``elicitation``, ``sampling``,
        ``roots``, ``on_log``, ``callbacks``, ``backoff``, ``env_mode``, ``verify``, ``proxies`` and the like
    :raises ConfigError: an option is wrong
    """

    def __init__(
        self,
        config: Config,
        *,
        connect_timeout: Optional[float] = None,
        include: Rules = (),
        exclude: Rules = (),
        reserved: Iterable[str] = (),
        on_tools_changed: Optional[Callable[[int], Any]] = None,
        for_server: Optional[Callable[[str], Mapping[str, Any]]] = None,
        **options: Any,
    ) -> None:
        _check_options(options, (*_OF_THE_CONFIG, *_OF_THE_HOST, *_OF_ONE_SERVER))
        self.config = config
        taken = frozenset(reserved)
        self._arguments = {
            "connect_timeout": connect_timeout,
            "include": include,
            "exclude": exclude,
            "reserved": taken,
            "on_tools_changed": on_tools_changed,
            "for_server": for_server,
            **options,
        }
        self._timeouts = options.get("timeouts", Timeouts())
        if not isinstance(self._timeouts, Timeouts):
            raise ConfigError("timeouts takes a mcpsync.Timeouts, not %s" % type(self._timeouts).__name__)
        started = [server for server in config.servers.values() if _obstacle(server) is None]
        self._crew = Crew(len(started), options.get("callbacks", "pool"))
        self._announcer = None if on_tools_changed is None else Announcer(self._crew, on_tools_changed)
        self._catalog = Catalog(
            [server.name for server in started],
            taken,
            _announcing(self._announcer, weakref.ref(self)),
        )
        allows = ToolFilter(include, exclude).allows
        self._members = {
            server.name: Member(
                server,
                self._client_options(server, options, for_server),
                _by_exposed_name(allows, server.name),
                self._catalog,
                self._crew,
            )
            for server in started
        }
        self._connect_seconds = self._checked_connect_timeout(connect_timeout)
        self._opened = self._closed = self._closing = False
        self._finalizer = self._crew.end_with(self)

    @classmethod
    def from_config(
        cls,
        source: Union[str, os.PathLike[str], Mapping[str, Any]],
        *,
        environ: Optional[Mapping[str, str]] = None,
        **options: Any,
    ) -> Host:
        """A host of the servers in a config file.

        :param source: path of a JSON or YAML file, or the same content as a mapping; see :func:`mcpsync.config.load`
        :param environ: where the variables of ``${NAME}`` come from; by default this process's
        :param options: those of :class:`Host`
        :raises ConfigError: the file cannot be read, or has no servers, or an option is wrong
        """
        return cls(load(source, environ=os.environ if environ is None else environ), **options)

    def _client_options(
        self,
        server: ServerConfig,
        options: Mapping[str, Any],
        for_server: Optional[Callable[[str], Mapping[str, Any]]],
    ) -> Dict[str, Any]:
        own = {} if for_server is None else dict(for_server(server.name))
        _check_options(own, (*_OF_THE_CONFIG, *_OF_THE_HOST), server.name)
        merged = {**options, **own}
        timeouts = merged.get("timeouts", self._timeouts)
        said = {"call": server.timeout, "connect": server.connect_timeout}
        merged["timeouts"] = timeouts.override(**{name: value for name, value in said.items() if value is not None})
        return merged

    def _checked_connect_timeout(self, seconds: Optional[float]) -> float:
        if seconds is None:
            return max((member.connect_seconds for member in self._members.values()), default=0.0)
        try:
            return Timeouts(connect=seconds).connect
        except ValueError:
            raise ConfigError("connect_timeout must be a positive number of seconds, not %r" % (seconds,)) from None

    # -- life --------------------------------------------------------------------------------------------------

    def open(self) -> Host:
        """Connect all servers at the same time and fetch their tools. On an open host: those that are not ready.

        Returns when each has been tried once, or when ``connect_timeout`` is over; attempts that are not over then go
        on in the background. No server's failure is raised: see :meth:`status`.

        :raises ClientClosed: the host is closed
        """
        forbid_blocking()
        changed = self._crew.changed
        with changed:
            self._refuse_closed()
        lifetime.register(self)
        self._crew.start()
        deadline = Deadline(self._connect_seconds)
        wanted = [member for member in self._members.values() if not member.is_ready()]
        for member in wanted:
            member.want(fresh=True)
        with changed:
            while not self._closed and any(member.pending for member in wanted):
                if not changed.wait(deadline.remaining()):
                    break
            self._refuse_closed()
            self._opened = True
        for member in wanted:
            member.overdue(self._connect_seconds)
        return self

    def _refuse_closed(self) -> None:
        if self._closed:
            raise ClientClosed("the host is closed")

    def _ensure_open(self) -> None:
        self._refuse_closed()
        if not self._opened:
            self.open()

    def close(self, timeout: Optional[float] = None) -> None:
        """Close all clients at the same time: calls in flight fail at once, all processes are ended.

        A second call does nothing, or waits for the first.

        :param timeout: seconds for all of it; ``Timeouts.close`` if not given
        """
        deadline = Deadline(self._timeouts.close if timeout is None else timeout)
        with self._crew.changed:
            if self._closed:
                while self._closing and self._crew.changed.wait(deadline.remaining()):
                    pass
                return
            self._closed = self._closing = True
            self._crew.changed.notify_all()
        self._finalizer.detach()
        try:
            self._close_clients(deadline)
            self._crew.stop(deadline)
        finally:
            lifetime.unregister(self)
            with self._crew.changed:
                self._closing = False
                self._crew.changed.notify_all()

    def _close_clients(self, deadline: Deadline) -> None:
        clients = [member.client for member in self._members.values()]
        closers = Workers("mcpsync-host-close", max(1, len(clients)))
        for client in clients:

            def close(client: Client = client) -> None:
                client.close(deadline.remaining())

            if len(clients) == 1 or not closers.submit(close):
                close()
        closers.stop()
        closers.drain(deadline.remaining())

    def __enter__(self) -> Host:
        try:
            return self.open()
        except BaseException:  # Ctrl-C among them: there will be no __exit__
            self.close()
            raise

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        ready = sum(member.is_ready() for member in self._members.values())
        state = "closed" if self._closed else "%d of %d servers ready" % (ready, len(self.config.servers))
        return "<mcpsync.Host: %s>" % state

    def __reduce__(self) -> Any:
        if self._opened or self._closed or any(member.client.state != "new" for member in self._members.values()):
            raise TypeError("the host has been opened: only a host that never was can be pickled")
        return _unpickled, (self.config, self._arguments)

    def after_fork(self) -> None:
        """In a forked child: threads and attempts are the parent's; servers are connected anew by their next use."""
        self._crew.build()
        self._catalog.after_fork()
        for member in self._members.values():
            member.after_fork()
        if self._announcer is not None:
            self._announcer.after_fork()
        self._closing = False
        self._finalizer.detach()
        self._finalizer = self._crew.end_with(self)

    def at_exit(self, seconds: float = 0.0) -> None:
        """At interpreter exit: nothing is tried again. Connections look after themselves."""
        self._crew.watchdog.stop()

    # -- what there is -----------------------------------------------------------------------------------------

    def status(self) -> List[ServerStatus]:
        """A row for each server of the config, those that are disabled or wrong too. Connects nothing."""
        source = self.config.source
        rows = []
        for server in self.config.servers.values():
            member = self._members.get(server.name)
            rows.append(_unstarted(server, source) if member is None else member.status(source))
        return rows

    @property
    def revision(self) -> int:
        """Grows when tools come, go or change, and when a server becomes ready or stops being so."""
        return self._catalog.revision

    def newest_revision(self) -> Optional[int]:
        """The revision to tell of; None once the host is closed."""
        return None if self._closed else self._catalog.revision

    def tools(self, ready_only: bool = False) -> List[HostTool]:
        """The tools of all servers.

        :param ready_only: leave out those of servers that are not connected now
        :raises ClientClosed: the host is closed
        """
        self._ensure_open()
        ready = {name: member.is_ready() for name, member in self._members.items()}
        return [tool for tool in self._catalog.table.rows(ready) if tool.ready or not ready_only]

    def client(self, server: str) -> Client:
        """The client of a server, for everything that is not a tool call.

        :param server: its name in the config
        :raises ConfigError: there is no such server, or it is not started
        """
        member = self._members.get(server)
        if member is not None:
            return member.client
        config = self.config.servers.get(server)
        if config is None:
            near = difflib.get_close_matches(server, self.config.servers, 1)
            raise ConfigError(
                "there is no server %r" % server, file=self.config.source, nearest=near[0] if near else None
            )
        row = _unstarted(config, self.config.source)
        raise ConfigError("server %r is not started: %s" % (server, row.error or row.state), file=self.config.source)

    # -- calls -------------------------------------------------------------------------------------------------

    def call_tool(
        self,
        name: str,
        arguments: Optional[Mapping[str, Any]] = None,
        *,
        timeout: Timeout = DEFAULT,
        on_progress: Optional[Callable[[Progress], Any]] = None,
        check: bool = True,
    ) -> ToolResult:
        """Call a tool by the name that the model sees. Otherwise as :meth:`Client.call_tool`.

        :param timeout: seconds, or a :class:`~mcpsync.Timeouts`; by default what the config says for the server
        :raises ConfigError: there is no such tool; the message names those that are near
        :raises ToolError: the tool failed, and ``check`` is set
        :raises ConnectionLost: its server is not connected
        :raises ClientClosed: the host is closed
        """
        self._ensure_open()
        table = self._catalog.table
        key = table.find(name)
        if key is None:
            raise ConfigError(self._unknown_tool(name))
        return self._members[key.server].client.call_tool(
            key.tool, arguments, timeout=timeout, on_progress=on_progress, check=check
        )

    def _unknown_tool(self, name: str) -> str:
        near = self._catalog.table.nearest(name)
        hint = "; did you mean %s?" % " or ".join(near) if near else ""
        return "there is no tool %.100r%s" % (name, hint)

    def export_tools(self, format: str) -> List[Dict[str, Any]]:
        """The tools that can be called now, as definitions for a model's API.

        :param format: ``"openai"``
        :raises ValueError: the format is not known
        :raises ClientClosed: the host is closed
        """
        from mcpsync.export import get_format

        form = get_format(format)
        return [
            form.tool(tool.name, tool.definition.description, tool.definition.input_schema)
            for tool in self.tools(ready_only=True)
        ]

    def dispatch(self, format: str, tool_call: Any, *, timeout: Timeout = DEFAULT) -> Dict[str, Any]:
        """Make one tool call of a model, and give the message that answers it.

        What the model or a server did wrong (an unknown tool, broken arguments, a tool that fails, a call that takes
        too long, a server that is gone) becomes an error message for the model.

        :param format: ``"openai"``
        :param tool_call: one tool call of the model's answer, as a dict or as an object of the API's package
        :param timeout: seconds, or a :class:`~mcpsync.Timeouts`; by default what the config says for the server
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

    def _answer(self, call: ToolCall, timeout: Timeout) -> tuple[str, bool]:
        """The text for the model, and whether it tells of an error."""
        if call.problem is not None:
            return call.problem, True
        key = self._catalog.table.find(call.name)
        if key is None:
            return self._unknown_tool(call.name), True
        try:
            client = self._members[key.server].client
            result = client.call_tool(key.tool, call.arguments, timeout=timeout, check=False)
        except ClientClosed:
            raise
        except ValueError as error:  # the model's JSON could be read, but not written again: nested too deeply, say
            return "The arguments cannot be sent: %s" % error, True
        except RequestTimeout as error:
            return "%s; the call was cancelled" % error, True
        except McpError as error:
            return str(error), True
        return render_result(result), result.is_error


def _unpickled(config: Config, arguments: Dict[str, Any]) -> Host:
    return Host(config, **arguments)


def _check_options(given: Mapping[str, Any], barred: Iterable[str], server: Optional[str] = None) -> None:
    allowed = [name for name in Options._fields if name not in barred]
    for name in given:
        if name in _OF_THE_CONFIG:
            raise ConfigError("the option %r is not for a host: the config says it for each server" % name)
        if name in _OF_ONE_SERVER and name in barred:
            raise ConfigError("the option %r must know its server: give it by for_server" % name)
        if name not in allowed:
            near = difflib.get_close_matches(name, allowed, 1)
            raise ConfigError("unknown option %r" % name, nearest=near[0] if near else None, server=server)


def _obstacle(server: ServerConfig) -> Optional[str]:
    """The state of a server that is not started; None if it is."""
    if server.error is not None:
        return "invalid"
    return None if server.enabled else "disabled"


def _unstarted(server: ServerConfig, source: Optional[str]) -> ServerStatus:
    state = _obstacle(server) or ""
    error = None if server.error is None else str(server.error)
    return ServerStatus(server.name, state, False, server.transport, None, 0, error, None, (), server, source)


def _by_exposed_name(allows: Callable[[str], bool], server: str) -> Callable[[str], bool]:
    return lambda tool: allows(exposed_name(server, tool))


def _announcing(announcer: Optional[Announcer], host: Callable[[], Optional[Host]]) -> Callable[[], None]:
    """What the catalog calls after a change; it holds the host weakly, so that a forgotten one can go."""

    def changed() -> None:
        alive = host()
        if announcer is not None and alive is not None:
            announcer.changed(alive.newest_revision)

    return changed
