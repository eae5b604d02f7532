"""Which servers a command line means, and a client for each."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    TypeVar,
    Union,
)

from mcpsync.cli.arguments import Invocation, closest
from mcpsync.cli.asking import Asker
from mcpsync.cli.output import Output
from mcpsync.client import Client
from mcpsync.client.option_checks import foreign_to
from mcpsync.client.target import is_http, kind_of
from mcpsync.config import Config, ServerConfig, load
from mcpsync.deadline import Timeouts
from mcpsync.errors import ConfigError, ConnectFailed, InvalidMessage, McpError, RpcError
from mcpsync.host.filters import ToolFilter
from mcpsync.host.reach import reach

if TYPE_CHECKING:
    from mcpsync.auth.oauth import OAuth
    from mcpsync.client.target import Target

__all__ = ["Server", "closed_after", "find_servers", "for_each", "make_client", "the_one", "uninterrupted"]

T = TypeVar("T")

CLOSE_SECONDS = 5.0
HASTY_CLOSE_SECONDS = 2.0
_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Server:
    """A server that is meant.

    :ivar client: not opened yet; None if it cannot be started
    :ivar error: why it cannot
    :ivar asker: answers what it asks
    :ivar tools: which of its tools the config file allows
    """

    def __init__(
        self,
        name: str,
        client: Optional[Client],
        asker: Optional[Asker] = None,
        error: Optional[McpError] = None,
        tools: Optional[ToolFilter] = None,
    ) -> None:
        self.name = name
        self.client = client
        self.asker = asker
        self.error = error
        self.tools = tools or ToolFilter()

    def open(self) -> Client:
        """The client, connected.

        :raises McpError: why it is not
        """
        if self.client is None:
            raise self.error or ConfigError("cannot be started", server=self.name)
        return opened(self.client)


def opened(client: Client) -> Client:
    """The client, connected.

    :raises ConnectFailed: also where the server's answer to the first request was an error, or no answer at all
    """
    try:
        return client.open()
    except (RpcError, InvalidMessage) as error:
        text = "the server did not agree to talk: %s" % error.message
        raise ConnectFailed(text, server=client.name, method=error.method) from None


def find_servers(invocation: Invocation, output: Output) -> List[Server]:
    """The servers that a command line means, in the order of the file; those that are switched off are left out.

    :raises ConfigError: the file is wrong, or has no such server
    """
    if invocation.url is not None:
        client, asker = make_client(
            invocation.url,
            invocation,
            output,
            headers=invocation.headers or None,
            transport=invocation.transport,
            auth=_signing(invocation, output) if is_http(invocation.url, invocation.transport) else None,
        )
        return [Server(client.name, client, asker)]
    if invocation.config is None:
        assert invocation.server_command is not None
        client, asker = make_client(invocation.server_command, invocation, output)
        return [Server(client.name, client, asker)]
    config = load(invocation.config)
    servers = _chosen(config, invocation)
    for diagnostic in config.diagnostics:
        concerned = diagnostic.server is None or any(each.name == diagnostic.server for each in servers)
        if concerned and (invocation.verbose or diagnostic.severity == "warning"):
            output.note(str(diagnostic))
    return [_of_config(each, invocation, output) for each in servers]


def _chosen(config: Config, invocation: Invocation) -> List[ServerConfig]:
    if invocation.server is not None:
        chosen = config.servers.get(invocation.server)
        if chosen is None:
            raise ConfigError(
                "has no server %r" % invocation.server,
                file=config.source,
                nearest=closest(invocation.server, config.servers),
            )
        if not chosen.enabled and chosen.error is None:
            raise ConfigError("server %r is disabled" % chosen.name, file=config.source)
        return [chosen]
    servers = [each for each in config.servers.values() if each.enabled or each.error is not None]
    if not servers:
        raise ConfigError("no server is enabled", file=config.source)
    return servers


def _of_config(server: ServerConfig, invocation: Invocation, output: Output) -> Server:
    if server.error is not None:
        return Server(server.name, None, error=server.error)
    try:
        target, options = reach(server, {"auth": _signing(invocation, output)})
        client, asker = make_client(
            target, invocation, output, connect=server.connect_timeout, call=server.timeout, **options
        )
    except ConfigError as error:
        return Server(server.name, None, error=error.located(server.name))
    return Server(server.name, client, asker, tools=ToolFilter(server.tools_include, server.tools_exclude))


def _signing(invocation: Invocation, output: Output) -> Optional[OAuth]:
    """How to sign in, if the requests are not signed by headers of the command line."""
    from mcpsync.auth.oauth import OAuth

    if any(name.lower() == "authorization" for name in invocation.headers):
        return None
    if invocation.command != "login":
        return OAuth(interactive=False)
    from mcpsync.cli.signing import oauth_of

    return oauth_of(invocation, output)


def make_client(
    target: Target,
    invocation: Invocation,
    output: Output,
    *,
    name: Optional[str] = None,
    env: Optional[Mapping[str, str]] = None,
    connect: Optional[float] = None,
    call: Optional[float] = None,
    asker: Optional[Asker] = None,
    **options: Any,
) -> Tuple[Client, Asker]:
    """A client as this command uses it: what the server asks is answered on the thread that waits.

    :param connect: seconds for connecting; ``--timeout`` wins
    :param call: seconds for a call; ``--timeout`` wins
    :raises ConfigError: target or options are wrong
    """
    usual = Timeouts()
    asker = asker or Asker(name or "", output)
    if invocation.verbose:
        options.update(_told_about(name, output), log_level="debug")
    if invocation.validate:
        from mcpsync.client.validating import Validation

        options["validate"] = Validation("strict", arguments=True)
    options["env"] = {**(env or {}), **invocation.env}
    # what one command line says for servers of several kinds; what it says for one is refused where it does not fit
    foreign = {"auth", "env", "stderr"}.intersection(foreign_to(kind_of(target, options.get("transport") or "auto")))
    client = Client(
        target,
        name=name,
        protocol=invocation.protocol,
        timeouts=usual.override(
            connect=invocation.timeout or connect or usual.connect,
            call=invocation.timeout or call or usual.call,
            close=CLOSE_SECONDS,
        ),
        elicitation=asker,
        callbacks="caller",
        **{option: value for option, value in options.items() if option not in foreign},
    )
    asker.server = client.name
    return client, asker


def _told_about(name: Optional[str], output: Output) -> Dict[str, Callable[..., None]]:
    named = "server" if name is None else "server %r" % name

    def logged(message: Any) -> None:
        output.note("%s logs (%s): %s" % (named, message.level, message.data))

    return {"on_log": logged, "stderr": lambda line: output.note("%s writes: %s" % (named, line))}


def the_one(servers: List[Server], invocation: Invocation) -> Server:
    """The single server that a command needs.

    :raises ConfigError: there are several
    """
    if len(servers) > 1:
        names = ", ".join(each.name for each in servers)
        raise ConfigError(
            "%s needs one server: say which with --server NAME (%s)" % (invocation.command, names),
            file=invocation.config,
        )
    return servers[0]


def for_each(servers: List[Server], work: Callable[[Server], T]) -> List[Union[T, McpError]]:
    """What the work gives for each server, all at the same time; an error stands for the one that it is of."""
    if len(servers) == 1:
        return [_outcome(servers[0], work)]
    outcomes: Dict[int, Union[T, McpError]] = {}

    def run(index: int) -> None:
        outcomes[index] = _outcome(servers[index], work)

    threads = [
        threading.Thread(target=run, args=(index,), name="mcpsync-cli-%s" % server.name, daemon=True)
        for index, server in enumerate(servers)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [outcomes[index] for index in range(len(servers))]


def _outcome(server: Server, work: Callable[[Server], T]) -> Union[T, McpError]:
    try:
        return work(server)
    except McpError as error:
        return error.located(server.name)


@contextmanager
def closed_after(clients: Sequence[Client]) -> Iterator[None]:
    """Close them all at the end, in haste if it is an early end. No signal interrupts that."""
    seconds = HASTY_CLOSE_SECONDS
    try:
        yield
        seconds = CLOSE_SECONDS
    finally:
        with uninterrupted():
            closing = [
                threading.Thread(target=client.close, args=(seconds,), name="mcpsync-cli-close") for client in clients
            ]
            for thread in closing:
                thread.start()
            for thread in closing:
                thread.join()


@contextmanager
def uninterrupted() -> Iterator[None]:
    """While signals that would end this process wait for nothing and are dropped."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ours = [number for number in _SIGNALS if signal.getsignal(number) is not None]  # None: not Python's to restore
    before = {number: signal.signal(number, signal.SIG_IGN) for number in ours}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
