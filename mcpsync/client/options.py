"""What a client can be made with, checked, and turned into the settings of its connection."""

from __future__ import annotations

import os
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    FrozenSet,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    Union,
)

from mcpsync.client.caching import Caching, caching_for
from mcpsync.client.extending import extending
from mcpsync.client.handlers import (
    capabilities_for,
    elicitation_handler,
    roots_handler,
    sampling_handler,
)
from mcpsync.client.held import Held
from mcpsync.client.listeners import LOG_LEVELS, ChangeListener, Listeners
from mcpsync.client.option_checks import check_options
from mcpsync.client.signing import Signing, signing_for
from mcpsync.client.target import factory_for, is_http, name_of, verdict_key
from mcpsync.connection.backoff import Backoff
from mcpsync.connection.connection import Connection
from mcpsync.connection.dispatch import Callbacks
from mcpsync.connection.observer import KEEPS_NOTHING
from mcpsync.connection.questions import Handler
from mcpsync.connection.settings import Limits, Settings
from mcpsync.core.cache import ResponseCache
from mcpsync.core.era import LEGACY
from mcpsync.core.subscriptions import LIST_CHANGES
from mcpsync.deadline import Timeouts
from mcpsync.errors import ConfigError

if TYPE_CHECKING:
    import requests

    from mcpsync.client.extending import ExtensionsOption
    from mcpsync.client.handlers import ElicitationHandler, Roots, SamplingHandler
    from mcpsync.client.target import Target
    from mcpsync.client.validating import Definitions, Validation
    from mcpsync.connection.hooks import Hook
    from mcpsync.connection.observer import Observer
    from mcpsync.transport.http.endpoint import HeaderSource
    from mcpsync.types import Implementation, LogMessage, Prompt, Resource, Tool

__all__ = ["Options", "build"]

_EXCHANGE_SENDERS = 8


class Options(NamedTuple):
    """The keyword arguments of :class:`~mcpsync.Client`, which documents them."""

    name: Optional[str] = None
    protocol: str = "auto"
    timeouts: Timeouts = Timeouts()
    client_info: Optional[Implementation] = None
    # callbacks
    elicitation: Optional[ElicitationHandler] = None
    elicitation_modes: Sequence[str] = ("form", "url")
    sampling: Optional[SamplingHandler] = None
    sampling_tools: bool = False
    roots: Optional[Roots] = None
    on_log: Optional[Callable[[LogMessage], Any]] = None
    on_tools_changed: Optional[Callable[[List[Tool]], Any]] = None
    on_prompts_changed: Optional[Callable[[List[Prompt]], Any]] = None
    on_resources_changed: Optional[Callable[[List[Resource]], Any]] = None
    on_notification: Optional[Callable[[str, Dict[str, Any]], Any]] = None
    on_state: Optional[Callable[[str], Any]] = None
    observer: Optional[Observer] = None
    hooks: Sequence[Hook] = ()
    callbacks: Callbacks = "pool"
    # protocol
    log_level: Optional[str] = None
    cache: Union[bool, ResponseCache] = True
    extensions: Optional[ExtensionsOption] = None
    result_types: FrozenSet[str] = frozenset()
    validate: Union[str, Validation] = "off"
    # bounds
    limits: Limits = Limits()
    backoff: Backoff = Backoff()
    page_limit: int = 100
    debounce: float = 0.3
    max_message: int = 64 * 1024 * 1024
    # HTTP
    transport: str = "auto"
    auth: Any = None
    headers: HeaderSource = None
    verify: Union[bool, str, None] = None
    cert: Union[str, Tuple[str, str], None] = None
    proxies: Optional[Mapping[str, str]] = None
    session: Optional[requests.Session] = None
    connections: int = 64
    max_connections: Optional[int] = None
    # stdio
    env: Optional[Mapping[str, str]] = None
    env_mode: str = "safe"
    cwd: Union[str, os.PathLike[str], None] = None
    path_prepend: Sequence[str] = ()
    stderr: Optional[Callable[[str], Any]] = None

    def __repr__(self) -> str:
        # names alone: env, headers and a proxy's URL hold secrets
        return "Options(%s)" % ", ".join(key for key, value in self._asdict().items() if value != _DEFAULTS[key])


_DEFAULTS = Options._field_defaults


def watched(validate: Union[str, Validation]) -> Tuple[Optional[Definitions], Optional[Validation]]:
    """What remembers the schemas of tools, and what is held against them; both None where nothing is.

    :raises ConfigError: the option is not what it has to be
    """
    if validate == "off":
        return None, None
    from mcpsync.client.validating import OFF, Definitions, validation_of

    validation = validation_of(validate)
    return (None, None) if validation == OFF else (Definitions(), validation)


def build(
    target: Target, options: Options, held: Held, definitions: Optional[Definitions] = None
) -> Tuple[Connection, Signing, Optional[Caching]]:
    """The connection to a target, who signs its requests, and what keeps its results.

    :param held: takes the user's functions
    :param definitions: remembers the schemas of tools
    :raises ConfigError: an option, or the target, is not what it has to be
    """
    check_options(options)
    check_level(options.log_level)
    name = options.name or name_of(target)
    signing = signing_for(target, name, options)
    handlers = _handlers(options, held)
    extensions = extending(options.extensions, options.result_types, held)
    listeners = _listeners(options, held, definitions)
    caching = caching_for(options, signing)
    listens = isinstance(options.cache, ResponseCache) and options.cache.listen
    try:
        connection = Connection(
            Settings(
                name=name,
                factory=factory_for(target, name, options, held, listeners.stderr_line, signing.auth),
                protocol=_checked_protocol(target, options),
                timeouts=options.timeouts,
                client_info=_client_info(options.client_info),
                capabilities=capabilities_for(
                    handlers,
                    options.elicitation_modes,
                    options.sampling_tools,
                    {**signing.extensions, **extensions.declared},
                ),
                handlers=handlers,
                callbacks=held.loop(options.callbacks) if callable(options.callbacks) else options.callbacks,
                notified=listeners.notified,
                gap=listeners.gap,
                log_level=options.log_level,
                verdict_key=verdict_key(target, options),
                lists=frozenset(LIST_CHANGES.values()) if listens else listeners.lists,
                result_types=extensions.result_types,
                hooks=tuple((held.handle(hook.before), held.handle(hook.after)) for hook in options.hooks),
                senders=_EXCHANGE_SENDERS if is_http(target, options.transport) else 1,
                on_state=held.optional(options.on_state),
                keeper=KEEPS_NOTHING if caching is None else caching,
                observer=None if options.observer is None else _HeldObserver(options.observer, held),
                signed_in=None if signing.account is None else signing.account.session.look,
                limits=options.limits,
                backoff=options.backoff,
            )
        )
    except ValueError as error:
        raise ConfigError(str(error), server=name) from None
    listeners.attach(connection)
    connection.listeners = listeners
    signing.attach(connection)
    return connection, signing, caching


def check_level(level: Optional[str]) -> None:
    """
    :raises ConfigError: it is no log level of MCP
    """
    if level is not None and level not in LOG_LEVELS:
        raise ConfigError("a log level is one of %s, not %r" % (", ".join(LOG_LEVELS), level))


def _checked_protocol(target: Target, options: Options) -> str:
    from mcpsync.core.negotiation import offered_revisions

    try:
        offered = offered_revisions(options.protocol)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    if is_http(target, options.transport) and options.transport == "sse":
        if not set(LEGACY) & set(offered):
            raise ConfigError("transport 'sse' is older than protocol %r: give one of the two" % options.protocol)
        return "legacy" if options.protocol == "auto" else options.protocol
    return options.protocol


def _client_info(given: Optional[Implementation]) -> Dict[str, Any]:
    from mcpsync import __version__

    return {"name": "mcpsync", "version": __version__} if given is None else given.to_wire()


class _HeldObserver:
    def __init__(self, observer: Observer, held: Held) -> None:
        self.state_changed = held.handle(observer.state_changed)
        self.tools_changed = held.handle(observer.tools_changed)


def _handlers(options: Options, held: Held) -> Dict[str, Handler]:
    handlers: Dict[str, Handler] = {}
    if options.elicitation is not None:
        handlers["elicitation/create"] = elicitation_handler(
            held.handle(options.elicitation), options.elicitation_modes
        )
    if options.sampling is not None:
        handlers["sampling/createMessage"] = sampling_handler(held.handle(options.sampling))
    if options.roots is not None:
        handlers["roots/list"] = roots_handler(held.handle(options.roots) if callable(options.roots) else options.roots)
    return handlers


def _listeners(options: Options, held: Held, definitions: Optional[Definitions]) -> Listeners:
    changes: Dict[str, ChangeListener] = {}
    if options.on_tools_changed is not None:
        from mcpsync.types import Tool

        changes["toolsListChanged"] = ChangeListener(held.handle(options.on_tools_changed), Tool.from_wire)
    if options.on_prompts_changed is not None:
        from mcpsync.types import Prompt

        changes["promptsListChanged"] = ChangeListener(held.handle(options.on_prompts_changed), Prompt.from_wire)
    if options.on_resources_changed is not None:
        from mcpsync.types import Resource

        changes["resourcesListChanged"] = ChangeListener(held.handle(options.on_resources_changed), Resource.from_wire)
    return Listeners(
        changes,
        held.optional(options.on_log),
        held.optional(options.on_notification),
        options.debounce,
        options.page_limit,
        None if options.observer is None else held.handle(options.observer.tools_changed),
        held.optional(options.stderr),
        definitions,
    )
