"""The host: many servers from one config, their tools for one model."""

from __future__ import annotations

import difflib
import os
import weakref
from functools import partial
from typing import TYPE_CHECKING, Any, Callable, Dict, FrozenSet, Iterable, List, Mapping, Optional, Sequence, Union

from mcpsync.config import Config, ServerConfig, load
from mcpsync.config.inputs import Input
from mcpsync.config.model import Policy
from mcpsync.connection import lifetime
from mcpsync.connection.threads import forbid_blocking
from mcpsync.deadline import Deadline
from mcpsync.errors import ClientClosed, ConfigError, McpError
from mcpsync.host.approval import ApprovalRequest
from mcpsync.host.catalog import Catalog
from mcpsync.host.context_tools import ContextTools, context_kinds
from mcpsync.host.crew import Announcer, Crew
from mcpsync.host.filters import Rules, ToolFilter
from mcpsync.host.fleet import Fleet, close_all
from mcpsync.host.gate import Gate, ServerRequest
from mcpsync.host.kept import Kept
from mcpsync.host.member import Member
from mcpsync.host.names import exposed_name
from mcpsync.host.render import DEFAULT_LIMIT
from mcpsync.host.roster import Changes, Entry, Servers, entries_of, joined, replaced
from mcpsync.host.safety import Safety
from mcpsync.host.schema_cache import SchemaCache
from mcpsync.host.serving import Serving
from mcpsync.host.settings import ClientOptions, checked_connect_timeout
from mcpsync.host.status import ServerStatus

if TYPE_CHECKING:
    from types import TracebackType

    from mcpsync.client import Client

__all__ = ["Host"]


class Host(Serving):
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
    :param schema_cache: keep the tools of each server on disk, so that :meth:`tools` can show them before it is up
    :param context_tools: give the model tools of the host's own: True or ``"shared"`` for ``mcp_resources``,
        ``mcp_prompts`` and ``mcp_result``, which read resources, prompts and long results; ``"per_server"`` for a pair
        ``mcp__<server>__list_resources`` and ``..._read_resource`` of each server with resources; ``"all"``
    :param result_limit: characters of a result that a model gets at a time; the rest is kept, see :meth:`kept_result`
    :param policy: in place of what the config says of safety
    :param approve: asked before calls of tools whose ``risk`` is ``exec`` (once per definition) or ``dangerous`` (each
        time); gets an :class:`~mcpsync.host.ApprovalRequest` on the thread that calls, and gives True or ``"always"``,
        ``"once"``, or False. Without it such calls raise :class:`~mcpsync.errors.ApprovalRefused`
    :param approve_request: asked before requests of servers pass a gate that is to ask; gets a
        :class:`~mcpsync.host.ServerRequest` on a thread for handlers, and gives True or False
    :param on_server_request: shown each request of a server for sampling or elicitation, and whether it passed
    :param gates: a :class:`~mcpsync.host.Gate` each for ``"sampling"`` (by default each request is asked about) and
        ``"elicitation"`` (by default 100 an hour and server)
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
        schema_cache: bool = True,
        context_tools: Union[bool, str] = False,
        result_limit: int = DEFAULT_LIMIT,
        policy: Optional[Policy] = None,
        approve: Optional[Callable[[ApprovalRequest], Any]] = None,
        approve_request: Optional[Callable[[ServerRequest], Any]] = None,
        on_server_request: Optional[Callable[[ServerRequest, bool], Any]] = None,
        gates: Optional[Mapping[str, Gate]] = None,
        **options: Any,
    ) -> None:
        if not isinstance(config, Config):
            raise ConfigError(
                "a host takes a mcpsync.config.Config, not %s: see Host.from_config" % type(config).__name__
            )
        self._client_options = ClientOptions(options, for_server)
        self.config = config
        taken = frozenset(reserved)
        self._arguments = {
            "connect_timeout": connect_timeout,
            "include": include,
            "exclude": exclude,
            "reserved": taken,
            "on_tools_changed": on_tools_changed,
            "for_server": for_server,
            "schema_cache": schema_cache,
            "context_tools": context_tools,
            "result_limit": result_limit,
            "policy": policy,
            "approve": approve,
            "approve_request": approve_request,
            "on_server_request": on_server_request,
            "gates": gates,
            **options,
        }
        self._connect_timeout = checked_connect_timeout(connect_timeout)
        self._schemas = SchemaCache(schema_cache)
        self._crew = Crew(options.get("callbacks", "pool"))
        self._announcer = None if on_tools_changed is None else Announcer(self._crew, on_tools_changed)
        kinds = context_kinds(context_tools)
        self._kept = Kept(result_limit, "mcp_result" if "shared" in kinds else None)
        self._given_policy = policy
        self._safety = Safety(
            config.policy if policy is None else policy,
            approve,
            approve_request,
            on_server_request,
            gates,
            self._client_options.timeouts.ask,
        )
        self._own = ContextTools(kinds, self._kept, _marking(self._safety, weakref.ref(self)))
        self._catalog = Catalog(partial(_reserved, taken, self._own), _announcing(self._announcer, weakref.ref(self)))
        chosen = ToolFilter(include, exclude)
        make = partial(_member, self._client_options, chosen, self._catalog, self._crew, self._schemas, self._safety)
        self._fleet = Fleet(make, self._crew, self._catalog)
        self._opened = self._closing = False
        self._load: Callable[..., Config] = load
        self._finalizer = self._crew.end_with(self)
        given = self._safety.admitted(entries_of(config))
        self._fleet.change(lambda _: given)

    @classmethod
    def from_config(
        cls,
        source: Union[str, os.PathLike[str], Mapping[str, Any]],
        *,
        environ: Optional[Mapping[str, str]] = None,
        dialect: Optional[str] = None,
        workspace: Optional[str] = None,
        inputs: Optional[Callable[[Input], Optional[str]]] = None,
        on_missing: Optional[str] = None,
        approved: Optional[Callable[[str, str], bool]] = None,
        **options: Any,
    ) -> Host:
        """A host of the servers in a config file.

        The file is read in the same way when :meth:`apply_config` reads it again.

        :param source: path of a JSON, YAML or TOML file, or the same content as a mapping
        :param environ: where the variables of ``${NAME}`` come from; by default this process's
        :param dialect: the name of the file's layout, where it is not to be recognised
        :param workspace: the project's folder, for ``${workspaceFolder}``
        :param inputs: gives the value of an ``${input:id}``; None for none
        :param on_missing: what becomes of a variable that is not set: ``error``, ``empty`` or ``keep``
        :param approved: for a file that was found, not named: whether it may be used, by path and SHA-256; see
            :func:`mcpsync.config.load`, which takes all of these
        :param options: those of :class:`Host`
        :raises ConfigError: the file cannot be read, or has no servers, or an option is wrong
        """
        read = partial(
            load, dialect=dialect, workspace=workspace, inputs=inputs, on_missing=on_missing, approved=approved
        )
        host = cls(read(source, environ=os.environ if environ is None else environ), **options)
        host._load = read
        return host

    @property
    def _members(self) -> Mapping[str, Member]:
        return self._fleet.members

    @property
    def _closed(self) -> bool:
        return self._fleet.closed

    # -- life --------------------------------------------------------------------------------------------------

    def open(self) -> Host:
        """Connect all servers at the same time and fetch their tools. On an open host: those that are not ready.

        Returns when each has been tried once, or when ``connect_timeout`` is over; attempts that are not over then go
        on in the background. No server's failure is raised: see :meth:`status`.

        :raises ClientClosed: the host is closed
        """
        forbid_blocking()
        with self._crew.changed:
            self._refuse_closed()
        lifetime.register(self)
        self._crew.start()
        self._connect([member for member in self._members.values() if not member.is_ready()])
        self._opened = True
        return self

    def _connect(self, wanted: Sequence[Member]) -> None:
        """Have an attempt made for each, and wait until it is over, or their time is."""
        patience = self._connect_timeout
        if patience is None:
            patience = max((member.connect_seconds for member in wanted), default=0.0)
        deadline = Deadline(patience)
        for member in wanted:
            member.show_remembered()
            member.want(fresh=True)
        changed = self._crew.changed
        with changed:
            while not self._closed and any(member.pending for member in wanted):
                if not changed.wait(deadline.remaining()):
                    break
            self._refuse_closed()
        for member in wanted:
            member.overdue(patience)

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
        deadline = Deadline(self._client_options.timeouts.close if timeout is None else timeout)
        with self._crew.changed:
            if self._closed:
                while self._closing and self._crew.changed.wait(deadline.remaining()):
                    pass
                return
            self._fleet.closed = self._closing = True
            self._crew.changed.notify_all()
        self._finalizer.detach()
        try:
            close_all([member.client for member in self._members.values()], deadline)
            self._crew.stop(deadline)
        finally:
            lifetime.unregister(self)
            with self._crew.changed:
                self._closing = False
                self._crew.changed.notify_all()

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
        if "_fleet" not in self.__dict__:
            return "<mcpsync.Host: its options were refused>"
        ready = sum(member.is_ready() for member in self._members.values())
        state = "closed" if self._closed else "%d of %d servers ready" % (ready, len(self._fleet.entries))
        return "<mcpsync.Host: %s>" % state

    def __reduce__(self) -> Any:
        if self._opened or self._closed or any(member.client.state != "new" for member in self._members.values()):
            raise TypeError("the host has been opened: only a host that never was can be pickled")
        if any(entry.factory is not None or entry.source != "user" for entry in self._fleet.entries.values()):
            raise TypeError("servers were added to the host: only one of a config alone can be pickled")
        return _unpickled, (self.config, self._arguments, self._load)

    def after_fork(self) -> None:
        """In a forked child: threads and attempts are the parent's; servers are connected anew by their next use."""
        self._crew.build()
        self._catalog.after_fork()
        self._schemas.after_fork()
        self._kept.after_fork()
        self._safety.after_fork()
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

    # -- servers that come and go ------------------------------------------------------------------------------

    def connect_all(
        self,
        servers: Servers,
        source: str = "user",
        *,
        namespace: Optional[str] = None,
        environ: Optional[Mapping[str, str]] = None,
    ) -> List[ServerStatus]:
        """Add servers and connect them, as :meth:`open` does; others are not touched.

        One that is there already is started anew if its entry differs.

        :param servers: a config, the path of a file, or a mapping from names to entries, to
            :class:`~mcpsync.config.ServerConfig`, or to factories of transports for servers in this process
        :param source: ``"user"``, ``"host"`` (the program brings them) or ``"plugin"``
        :param namespace: of the program's part or the plugin: the servers are called ``<namespace>__<server>``, of
            letters, digits, ``_`` and ``-``; needed unless the source is ``"user"``
        :param environ: where the variables of ``${NAME}`` come from; by default this process's
        :returns: the rows of these servers
        :raises ConfigError: a name or the source is wrong, a name is taken by a server of another source, or a file
            cannot be read
        :raises ClientClosed: the host is closed
        """
        given = self._safety.admitted(entries_of(servers, source, namespace, environ))
        self._change(lambda old: joined(old, given))
        return [row for row in self.status() if row.name in given]

    def disconnect(self, name: str) -> None:
        """Have a server no longer: close it, withdraw its tools, forget its schemas. Others are not touched.

        :raises ConfigError: there is no such server
        :raises ClientClosed: the host is closed
        """
        self._known(name)
        self._change(lambda old: {each: entry for each, entry in old.items() if each != name}, forgotten=name)

    def reconnect(self, name: str) -> ServerStatus:
        """Close a server, forget its schemas, and connect it anew by the same entry.

        :returns: its row afterwards
        :raises ConfigError: there is no such server
        :raises ClientClosed: the host is closed
        """
        self._known(name)
        self._change(lambda old: old, renewed=[name], forgotten=name)
        return next(row for row in self.status() if row.name == name)

    def apply_config(self, source: Optional[Servers] = None, *, environ: Optional[Mapping[str, str]] = None) -> Changes:
        """Have the user's servers as this config says now, and touch no connection whose entry is the same.

        Servers of the sources ``host`` and ``plugin`` are not concerned.

        :param source: as for :meth:`connect_all`; by default the file that the host was made of, read again
        :param environ: where the variables of ``${NAME}`` come from; by default this process's
        :returns: what was added, changed, removed and kept
        :raises ConfigError: the file cannot be read, or a name is taken by a server of another source; then nothing
            has changed
        :raises ClientClosed: the host is closed
        """
        again = self.config.source if source is None else source
        if again is None:
            raise ConfigError("the host was not made of a file: give apply_config() the new config")
        if isinstance(again, (str, os.PathLike)):
            again = self._load(again, environ=os.environ if environ is None else environ)
        given = entries_of(again, environ=environ)
        before = self._safety.policy
        renewed = isinstance(again, Config) and self._given_policy is None and self._safety.adopt(again.policy)
        try:
            changes = self._change(lambda old: self._safety.admitted(replaced(old, given)))
        except McpError:
            self._safety.adopt(before)
            raise
        if isinstance(again, Config):
            self.config = again
        if renewed:
            for name in changes.kept:
                if name in self._members:
                    self._members[name].tools_changed()  # looked at anew, by the new policy
        return changes

    def config_of(self, name: str) -> ServerConfig:
        """The entry that a server runs by now.

        :raises ConfigError: there is no such server
        """
        return self._known(name).config

    def _known(self, name: str) -> Entry:
        entry = self._fleet.entries.get(name)
        if entry is None:
            near = difflib.get_close_matches(name, self._fleet.entries, 1)
            raise ConfigError(
                "there is no server %r" % name, file=self.config.source, nearest=near[0] if near else None
            )
        return entry

    def _change(
        self,
        edit: Callable[[Mapping[str, Entry]], Mapping[str, Entry]],
        renewed: Sequence[str] = (),
        forgotten: Optional[str] = None,
    ) -> Changes:
        """Have other entries; close who is gone, and connect who is new if the host is open."""
        forbid_blocking()
        changes, retired = self._fleet.change(edit, renewed)
        for member in retired:
            if member.name == forgotten:
                member.forget_tools()
        if retired:
            close_all([member.client for member in retired], Deadline(self._client_options.timeouts.close))
        members = self._members
        new = [members[name] for name in (*changes.added, *changes.changed) if name in members]
        if self._opened:
            self._connect(new)
        elif new:
            self.open()
        return changes

    # -- what there is -----------------------------------------------------------------------------------------

    def status(self) -> List[ServerStatus]:
        """A row for each server, those that are disabled or wrong too. Connects nothing."""
        members = self._members
        return [
            members[name].status() if name in members else _unstarted(entry)
            for name, entry in self._fleet.entries.items()
        ]

    @property
    def revision(self) -> int:
        """Grows when tools come, go or change, and when a server becomes ready or stops being so."""
        return self._catalog.revision

    def newest_revision(self) -> Optional[int]:
        """The revision to tell of; None once the host is closed."""
        return None if self._closed else self._catalog.revision

    def client(self, server: str) -> Client:
        """The client of a server, for everything that is not a tool call.

        :param server: its name in the config
        :raises ConfigError: there is no such server, or it is not started
        """
        member = self._members.get(server)
        if member is not None:
            return member.client
        row = _unstarted(self._known(server))
        raise ConfigError("server %r is not started: %s" % (server, row.error or row.state), file=row.file)


def _unpickled(config: Config, arguments: Dict[str, Any], load_again: Callable[..., Config]) -> Host:
    host = Host(config, **arguments)
    host._load = load_again
    return host


def _unstarted(entry: Entry) -> ServerStatus:
    server = entry.config
    error = entry.denied if server.error is None else str(server.error)
    return ServerStatus(
        server.name,
        entry.obstacle or "",
        False,
        server.transport,
        None,
        0,
        error,
        None,
        (),
        server,
        entry.source,
        entry.file,
    )


def _member(
    options: ClientOptions,
    chosen: ToolFilter,
    catalog: Catalog,
    crew: Crew,
    schemas: SchemaCache,
    safety: Safety,
    entry: Entry,
) -> Member:
    server = entry.config.name

    def allows(tool: str) -> bool:
        return chosen.allows(exposed_name(server, tool))

    return Member(entry, options.of(entry.config), allows, catalog, crew, schemas, safety)


def _reserved(taken: FrozenSet[str], own: ContextTools, server: str) -> FrozenSet[str]:
    return taken | own.reserved(server)


def _marking(safety: Safety, host: Callable[[], Optional[Host]]) -> Callable[[str, str, str, Any], str]:
    """Puts a notice over what is suspicious, unless the server is trusted; one that is gone is not."""

    def mark(text: str, server: str, what: str, shown: Any) -> str:
        alive = host()
        entry = None if alive is None else alive._fleet.entries.get(server)
        return safety.mark(text, ServerConfig(server) if entry is None else entry.config, what, shown)

    return mark


def _announcing(announcer: Optional[Announcer], host: Callable[[], Optional[Host]]) -> Callable[[], None]:
    """What the catalog calls after a change; it holds the host weakly, so that a forgotten one can go."""

    def changed() -> None:
        alive = host()
        if announcer is not None and alive is not None:
            announcer.changed(alive.newest_revision)

    return changed
