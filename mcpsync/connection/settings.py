"""What a connection is made with."""

from __future__ import annotations

from typing import Any, Callable, Dict, FrozenSet, Mapping, NamedTuple, Optional, Tuple

from mcpsync.connection.backoff import Backoff
from mcpsync.connection.dispatch import DEFAULT_WAITING, Callbacks
from mcpsync.connection.hooks import Pair
from mcpsync.connection.observer import KEEPS_NOTHING, Keeper, Observer
from mcpsync.connection.open_call import NO_RESULT_TYPES, ResultTypes
from mcpsync.connection.questions import Handler
from mcpsync.deadline import Timeouts
from mcpsync.transport.base import TransportFactory

__all__ = ["Limits", "Settings"]


class Limits(NamedTuple):
    """Bounds of one connection.

    :ivar handlers: request handlers that run at a time; more are refused
    :ivar callbacks: threads for other callbacks
    :ivar waiting: callbacks of one call that may wait; past it the latest replaces the one before
    :ivar submitted: threads for submitted calls that need more than one request
    :ivar rounds: requests for input in one call
    """

    handlers: int = 32
    callbacks: int = 4
    waiting: int = DEFAULT_WAITING
    submitted: int = 32
    rounds: int = 10


class Settings(NamedTuple):
    """What a connection is made with.

    :ivar name: of the server, for errors, logs and threads
    :ivar factory: builds a fresh transport
    :ivar protocol: ``auto``, ``legacy``, ``modern`` or a revision
    :ivar timeouts: how long things may take
    :ivar client_info: ``clientInfo`` as it travels
    :ivar capabilities: the client's capabilities as they travel
    :ivar handlers: for requests of the server
    :ivar callbacks: where user code runs
    :ivar log_level: from which the server shall log
    :ivar verdict_key: names the server in the memory of eras; None: nothing is remembered
    :ivar lists: the list changes that are wanted, as keys of the ``subscriptions/listen`` filter
    :ivar result_types: what declared extensions make of the values of ``resultType`` that they add
    :ivar notified: told of each notification on the reader's thread; must be quick
    :ivar gap: told that notifications may have been missed; on the control worker
    :ivar hooks: are told of requests
    :ivar senders: threads for what must travel without delaying anyone: one keeps the order, exchanges need several
    :ivar on_state: the user's callback for state changes
    :ivar observer: told of them at once
    :ivar keeper: told what makes results out of date
    :ivar signed_in: whether somebody has signed in since that was necessary; None: nothing would know
    """

    name: str
    factory: TransportFactory
    protocol: str
    timeouts: Timeouts
    client_info: Mapping[str, Any]
    capabilities: Mapping[str, Any]
    handlers: Mapping[str, Handler]
    callbacks: Callbacks
    notified: Callable[[str, Dict[str, Any]], None]
    gap: Callable[[FrozenSet[str]], None]
    log_level: Optional[str] = None
    verdict_key: Any = None
    lists: FrozenSet[str] = frozenset()
    result_types: ResultTypes = NO_RESULT_TYPES
    hooks: Tuple[Pair, ...] = ()
    senders: int = 1
    on_state: Optional[Callable[[str], Any]] = None
    observer: Optional[Observer] = None
    keeper: Keeper = KEEPS_NOTHING
    signed_in: Optional[Callable[[], bool]] = None
    limits: Limits = Limits()
    backoff: Backoff = Backoff()
