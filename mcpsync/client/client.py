"""The client of one server: what a user writes code against."""

from __future__ import annotations

import weakref
from functools import partial
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, Mapping, Optional, TypeVar

from mcpsync.client.features import DEFAULT, Features, Timeout
from mcpsync.client.held import Held
from mcpsync.client.options import Options, build, watched
from mcpsync.client.paging import Listing, list_tools_anew
from mcpsync.connection.call import Wanted
from mcpsync.connection.threads import forbid_blocking
from mcpsync.deadline import Deadline
from mcpsync.errors import ConfigError, InvalidMessage, McpError

if TYPE_CHECKING:
    from types import TracebackType

    from mcpsync.auth.credentials import Credentials
    from mcpsync.client.target import Target
    from mcpsync.connection.connection import Connection
    from mcpsync.types import Implementation, Progress

__all__ = ["Client", "connect"]

T = TypeVar("T")


def connect(target: Target, **options: Any) -> Client:
    """Connect to a server.

    :param target: the command of a stdio server as a list of strings, the URL of an HTTP one, or a factory of
        transports
    :param options: the keyword arguments of :class:`Client`
    :returns: an open client; close it, or use it in a ``with`` statement
    :raises ConfigError: target or options are wrong
    :raises ConnectFailed: the server cannot be reached, or its process ended (:class:`~mcpsync.ProcessExited`)
    :raises VersionMismatch: no protocol revision in common
    :raises AuthError: signing in failed; :class:`~mcpsync.NeedsLogin` where nobody may be asked to
    """
    client = Client(target, **options)
    try:
        client.open(interactive=True)
    except BaseException:
        client.close()
        raise
    return client


class Client(Features):
    """One MCP server, through methods that block. Any number of threads may use it.

    A client that is not open is opened by its first call. Methods raise
    :class:`~mcpsync.McpError`: :class:`~mcpsync.RequestTimeout`, :class:`~mcpsync.ConnectionLost`,
    :class:`~mcpsync.RpcError` (what the server answered) and :class:`~mcpsync.ClientClosed` above all.
    Each ``timeout`` is a number of seconds (in place of ``Timeouts.call``), a :class:`~mcpsync.Timeouts`, or
    None for no limit.

    :param target: the command of a stdio server as a list of strings, the URL of an HTTP one, or a factory of
        transports
    :param name: of the server, for errors, logs and threads; by default the program's
    :param protocol: ``"auto"``, ``"legacy"``, ``"modern"`` or a revision, as ``"2025-11-25"``
    :param timeouts: how long things may take
    :param client_info: how this program introduces itself
    :param elicitation: answers questions to the user: gets an :class:`~mcpsync.types.ElicitationRequest`, gives an
        :class:`~mcpsync.types.ElicitationResult`, a mapping (accept, with this content) or a bool. Defaults of the
        schema are filled in, and the content is checked. May return a Future.
    :param elicitation_modes: ``"form"``, ``"url"`` or both
    :param sampling: answers requests for a completion by a model: gets a
        :class:`~mcpsync.types.SamplingRequest`, gives a :class:`~mcpsync.types.SamplingResult` or a str
    :param sampling_tools: it can deal with requests that carry tools
    :param roots: folders for the server to work in: a list of paths, URIs or :class:`~mcpsync.types.Root`, or a
        function that gives one
    :param on_log: gets each :class:`~mcpsync.types.LogMessage`; else they go to ``logging``
    :param on_tools_changed: gets the whole new list some time after it changed; so ``on_prompts_changed`` and
        ``on_resources_changed``
    :param on_notification: gets method and params of every notification
    :param on_state: gets each new state of the connection: ``connecting``, ``ready``, ``waiting`` (for the next
        attempt), ``down``, ``dormant``, ``needs_login`` (connecting again would not help), ``closed``
    :param observer: for a host of several clients: told of states and changed tools at once, see
        :class:`~mcpsync.connection.observer.Observer`
    :param hooks: each a :class:`~mcpsync.Hook`, told of each request before it is sent and when it is over; on the
        thread that makes the call, or on one of the library's that may block
    :param callbacks: where all of these run, but for observer and hooks: ``"pool"`` (threads of the library),
        ``"caller"`` (the thread that waits in a call), or a function that has a UI loop run a callable soon
    :param log_level: from which the server shall log, as ``"info"``
    :param cache: whether listings and resources are kept for as long as the server says that they stay fresh
        (2026-07-28), or a :class:`~mcpsync.ResponseCache` with other bounds. What is kept is shared, so it cannot be
        changed
    :param extensions: extensions to declare: their settings by name, an :class:`~mcpsync.types.Extension`, or a list
        of both
    :param result_types: values of ``resultType`` that they add, for results that are given as they come
    :param validate: hold results of tools against the schemas that the server gave for them: ``"off"``, ``"warn"``
        (log a warning), ``"strict"`` (raise :class:`~mcpsync.SchemaMismatch`), or a :class:`~mcpsync.Validation`,
        which can have the arguments looked at too. Needs the extra ``schema``
    :param limits: threads and queues
    :param backoff: when a lost connection is tried again
    :param page_limit: the most pages of a listing
    :param debounce: seconds of quiet before a changed listing is fetched
    :param max_message: bytes; a longer message ends the connection
    :param transport: for a URL: ``"http"`` (Streamable HTTP), ``"sse"`` (the HTTP+SSE before it), or ``"auto"``: the
        former, and the latter where a server has only that; found out once per URL
    :param auth: signs requests over HTTP: ``"oauth"``, an :class:`~mcpsync.OAuth`, or an object with the methods of
        :class:`~mcpsync.transport.http.authorization.Auth`
    :param headers: HTTP headers for each request: a mapping, or a function that gives one and is called for each
    :param verify: path of a CA bundle for HTTPS, or False; by default as the environment has it
    :param cert: path of a client certificate, or of certificate and key
    :param proxies: by scheme; by default as the environment has it
    :param session: a ``requests.Session`` of yours, whose adapters, auth and hooks see every request
    :param connections: HTTP connections that are kept open
    :param max_connections: calls over HTTP that are on their way at a time; the rest wait, within their time. None: any
        number. Answers to questions, cancellations and pings never wait; calls that a handler makes do
    :param env: variables for the server's process, beside those of ``env_mode``
    :param env_mode: ``"safe"`` (no secrets, no library paths), ``"inherit"`` or ``"none"``
    :param cwd: folder to start it in
    :param path_prepend: folders to look its program up in first
    :param stderr: gets each line that it writes to stderr; else they go to ``logging``
    :raises ConfigError: target or options are wrong
    """

    def __init__(self, target: Target, **options: Any) -> None:
        unknown = sorted(set(options) - set(Options._fields))
        if unknown:
            import difflib

            nearest = difflib.get_close_matches(unknown[0], Options._fields, 1)
            raise ConfigError("unknown option %r" % unknown[0], nearest=nearest[0] if nearest else None)
        self._target = target
        self._options = Options(**options)
        self._held = Held()
        self._definitions, self._validation = watched(self._options.validate)
        self._connection, self._signing, self._caching = build(target, self._options, self._held, self._definitions)
        self._connection.list_tools = partial(
            list_tools_anew, self._connection, self._options.page_limit, self._caching
        )
        self._wanted = Wanted(self._connection.timeouts)
        self._closed = False
        self._finalizer = weakref.finalize(self, _forgotten, self._connection)
        self._finalizer.atexit = False  # connections look after themselves then

    # -- life --------------------------------------------------------------------------------------------------

    def open(self, *, interactive: bool = False) -> Client:
        """Connect, unless connected; one attempt.

        :param interactive: with ``auth``: have a person sign in if that is necessary, as :func:`connect` does
        :raises ConnectFailed: with phase and cause
        :raises VersionMismatch: no protocol revision in common
        :raises NeedsLogin: somebody has to sign in
        """
        if interactive:
            self._signing.open(self._connection)
        else:
            self._connection.open()
        return self

    def close(self, timeout: Optional[float] = None) -> None:
        """End everything: calls in flight fail at once, the server's process is ended with all its children.

        A second call does nothing, or waits for the first.

        :param timeout: seconds for all of it; ``Timeouts.close`` if not given
        """
        self._closed = True
        self._finalizer.detach()
        deadline = Deadline(self._options.timeouts.close if timeout is None else timeout)
        self._connection.close(timeout)
        if self._caching is not None:
            self._caching.clear()
        if self._signing.account is not None:
            self._signing.account.session.close(deadline)

    def reconnect(self) -> None:
        """Close the connection and make a new one now.

        :raises ConnectFailed: with phase and cause; attempts go on in the background
        """
        self._connection.reconnect()

    def login(self, timeout: Optional[float] = None) -> None:
        """Have a person sign in now, for more than before where the server has asked for more.

        A connection that waits for that goes on. Threads that want it at the same time share one sign-in.

        :param timeout: seconds for all of it; that of the :class:`~mcpsync.OAuth` options if not given
        :raises AuthError: it failed, or took too long
        :raises ConfigError: the client has no ``auth`` that can

        Specification: `basic/authorization`.
        """
        forbid_blocking()
        self._signing.required_account(self.name).login(None if timeout is None else Deadline(timeout))
        self._connection.login.look()

    def logout(self) -> bool:
        """Forget the tokens here, for all processes, and at the authorization server.

        :returns: whether that was told; not all have a way to
        :raises AuthError: the stored tokens could not be removed
        :raises ConfigError: the client has no ``auth`` that can
        """
        forbid_blocking()
        account = self._signing.required_account(self.name)
        try:
            return account.logout()
        finally:
            if self._caching is not None:
                self._caching.clear()

    @property
    def credentials(self) -> Optional[Credentials]:
        """What is stored for this server and account; None: nothing, or the client has no ``auth`` that stores."""
        account = self._signing.account
        return None if account is None else account.session.vault.current()

    def __enter__(self) -> Client:
        self.open()
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        if "_connection" not in self.__dict__:
            return "<mcpsync.Client: its options were refused>"
        return "<mcpsync.Client %r: %s>" % (self.name, self.state)

    def __reduce__(self) -> Any:
        if self.state != "new":
            raise TypeError("client %r has been opened: only a client that never was can be pickled" % self.name)
        return _unpickled, (self._target, self._options._asdict())

    # -- what the server is ------------------------------------------------------------------------------------

    @property
    def state(self) -> str:
        """State of the connection: see ``on_state``."""
        return self._signing.state_of(self._connection)

    @property
    def last_error(self) -> Optional[McpError]:
        """Why it is not connected, as far as that is known; None while it is."""
        return self._connection.last_error

    @property
    def sessions(self) -> int:
        """How many connections it has made so far: what was listed in an earlier one may be out of date."""
        return self._connection.sessions

    @property
    def server_info(self) -> Optional[Implementation]:
        """How the server introduces itself: for display, not for decisions. None if it does not, or does it wrongly."""
        info: Any = self._connection.server.get("serverInfo")
        from mcpsync.types import Implementation

        try:
            return Implementation.from_wire(info)
        except InvalidMessage:
            return None

    @property
    def extensions(self) -> Mapping[str, Any]:
        """The extensions that the server declares, by name, each with its settings. Empty before the first connection.

        Specification: `basic/versioning`, "Extension Negotiation" (2026-07-28).
        """
        return self.capabilities.extensions

    @property
    def instructions(self) -> Optional[str]:
        """Guidance for a model, if the server gives any."""
        text = self._connection.server.get("instructions")
        return text if isinstance(text, str) else None

    # -- the way down ------------------------------------------------------------------------------------------

    def request(
        self,
        method: str,
        params: Optional[Mapping[str, Any]] = None,
        *,
        timeout: Timeout = DEFAULT,
        on_progress: Optional[Callable[[Progress], Any]] = None,
        meta: Optional[Mapping[str, Any]] = None,
    ) -> Dict[str, Any]:
        """The way down: any request, its result object as it came.

        :raises RpcError: what the server answered
        """
        own = dict(params or {})
        inner = own.pop("_meta", None)
        if isinstance(inner, dict):
            meta = {**inner, **(meta or {})}
        return self._connection.request(method, own, self._wants(timeout, on_progress, meta))

    def ask(self, method: str, requests: Mapping[str, Any]) -> Dict[str, Any]:
        """The way down for extensions: have the handlers of this client answer an ``inputRequests`` object.

        :param method: of the request that will carry the answers, for errors
        :returns: the ``inputResponses``
        :raises RpcError: there is no handler for it, or the one there is has refused
        :raises InvalidMessage: it asks for something that no client answers

        Specification: `basic/patterns/mrtr` (2026-07-28).
        """
        return self._connection.ask(method, requests, self._wanted)

    def iterate(
        self,
        method: str,
        key: str,
        read: Callable[[Any], T],
        params: Optional[Mapping[str, Any]] = None,
        *,
        timeout: Timeout = DEFAULT,
    ) -> Iterator[T]:
        """The way down for listings: any request whose result comes in pages, each fetched when it is needed.

        :param key: of the items in a result
        :param read: makes something of each item; one that it refuses with
            :class:`~mcpsync.InvalidMessage` is left out, with a warning
        :param timeout: for each page; ``Timeouts.total`` bounds all of them together
        :raises RpcError: what the server answered
        :raises PageLimit: with what was collected

        Specification: `server/utilities/pagination`.
        """
        return self._paged(Listing(method, key, params=params), read, timeout, "bypass")

    def notify(self, method: str, params: Optional[Mapping[str, Any]] = None) -> None:
        """Send any notification."""
        self._connection.notify(method, params)


def _forgotten(connection: Connection) -> None:
    # runs in the garbage collector, under whatever lock: it only posts
    connection.abandon()


def _unpickled(target: Any, options: Dict[str, Any]) -> Client:
    return Client(target, **options)
