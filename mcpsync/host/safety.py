"""What a host lets happen, in one place: which servers start, which tools there are, which calls are made.

Each question is answered by a module of its own; here they meet the config's policy and the program's callbacks.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from mcpsync.config.model import Policy, ServerConfig
from mcpsync.errors import ConfigError, ToolBlocked, flat
from mcpsync.extensions.apps import ui_of
from mcpsync.host.approval import ApprovalRequest, Approvals
from mcpsync.host.banner import marked
from mcpsync.host.gate import Gate, Gatekeeper, ServerRequest
from mcpsync.host.names import exposed_name
from mcpsync.host.pins import PinStore
from mcpsync.host.policy import check_policy, server_obstacle, tool_obstacle
from mcpsync.host.risk import risk_of
from mcpsync.host.scan import described, scan_tool
from mcpsync.host.schema_check import schema_problem
from mcpsync.types import Tool

if TYPE_CHECKING:
    from mcpsync.host.roster import Entry

__all__ = ["Safety", "Vetted"]

logger = logging.getLogger("mcpsync")


class Vetted(NamedTuple):
    """The tools of a server, looked at.

    :ivar tools: those that may be used
    :ivar refused: the names of the others, each with the reason
    :ivar risks: the levels of those that may be used, by name
    """

    tools: List[Tool]
    refused: Tuple[Tuple[str, str], ...]
    risks: Dict[str, str]


class Safety:
    """The policy of a host, and whom it asks.

    :param policy: from the config, or the program's own
    :param approve: asked before calls above the level that needs no approval; see
        :class:`~mcpsync.host.approval.Approvals`
    :param approve_request: asked before requests of servers pass a gate that is to ask
    :param on_server_request: shown each request of a server, and whether it passed
    :param gates: for ``sampling`` and ``elicitation``
    :param ask_seconds: how long a thread waits for the answer to another one's question
    :raises ConfigError: one of them is wrong
    """

    def __init__(
        self,
        policy: Policy,
        approve: Optional[Callable[[ApprovalRequest], Any]] = None,
        approve_request: Optional[Callable[[ServerRequest], Any]] = None,
        on_server_request: Optional[Callable[[ServerRequest, bool], Any]] = None,
        gates: Optional[Mapping[str, Gate]] = None,
        ask_seconds: float = 300.0,
    ) -> None:
        for name, function in (
            ("approve", approve),
            ("approve_request", approve_request),
            ("on_server_request", on_server_request),
        ):
            if function is not None and not callable(function):
                raise ConfigError("%s takes a function, not %s" % (name, type(function).__name__))
        check_policy(policy)
        self.policy = policy
        self._pins = PinStore()
        self._approvals = Approvals(approve, self._pins, ask_seconds)
        self._gates = Gatekeeper(gates or {}, approve_request, on_server_request)

    def after_fork(self) -> None:
        """In a forked child: nobody holds a lock or asks."""
        self._approvals.after_fork()
        self._gates.after_fork()

    def adopt(self, policy: Policy) -> bool:
        """Have another policy from now on; gives whether it differs.

        :raises ConfigError: a setting of it has a value that there is not
        """
        check_policy(policy)
        changed = policy != self.policy
        self.policy = policy
        return changed

    # -- servers -----------------------------------------------------------------------------------------------

    def admitted(self, entries: Mapping[str, Entry]) -> Dict[str, Entry]:
        """The entries, with what the policy has against starting some of them."""
        return {
            name: entry
            if entry.factory is not None
            else replace(entry, denied=server_obstacle(self.policy, entry.config))
            for name, entry in entries.items()
        }

    def gated(self, server: ServerConfig, options: Mapping[str, Any]) -> Dict[str, Any]:
        """The options of a server's client, with the handlers for its requests behind the gates."""
        return self._gates.gated(server.name, server.trust_level == "trusted", options)

    # -- tools -------------------------------------------------------------------------------------------------

    def vet(self, server: ServerConfig, tools: Sequence[Tool]) -> Vetted:
        """Which tools of a server may be used."""
        kept: List[Tool] = []
        refused: List[Tuple[str, str]] = []
        for tool in tools:
            if not ui_of(tool).for_model:
                refused.append((tool.name, "it is for the server's own app and not for a model"))
                continue
            reason = self._obstacle(server, tool)
            if reason is None:
                kept.append(tool)
            else:
                refused.append((tool.name, reason))
                logger.warning(
                    "mcpsync: host: server %r: the tool %s is refused: %s", server.name, _short(tool), reason
                )
        return Vetted(kept, tuple(refused), {tool.name: self.risk(server, tool) for tool in kept})

    def _obstacle(self, server: ServerConfig, tool: Tool) -> Optional[str]:
        reason = tool_obstacle(self.policy, exposed_name(server.name, tool.name)) or schema_problem(tool.input_schema)
        if reason is not None:
            return reason
        suspicion = described(scan_tool(tool))
        if suspicion is None:
            return None
        reason = "its texts look like orders to the model: %s" % suspicion
        if self.policy.suspicious == "block":
            return reason
        logger.warning("mcpsync: host: server %r: the tool %s is suspicious: %s", server.name, _short(tool), reason)
        return None

    def risk(self, server: ServerConfig, tool: Tool) -> str:
        """The level of a tool."""
        return risk_of(tool.annotations, server.trust_level == "trusted")

    def allows(self, name: str) -> bool:
        """Whether the policy lets the model use a tool, by the name that it sees."""
        return tool_obstacle(self.policy, name) is None

    def check_name(self, name: str) -> None:
        """Before any call, of the host's own tools too.

        :raises ToolBlocked: the policy denies this tool now
        """
        reason = tool_obstacle(self.policy, name)
        if reason is not None:
            raise ToolBlocked(reason, method="tools/call")

    def check_call(self, server: ServerConfig, name: str, tool: Tool, arguments: Optional[Mapping[str, Any]]) -> None:
        """Before a call of a server's tool; asks if need be, on this thread.

        :raises ToolBlocked: the policy denies this tool now
        :raises ApprovalRefused: it needs an approval that was not given
        """
        self.check_name(name)
        self._approvals.check(server, name, tool, self.risk(server, tool), arguments, self.policy.approval)

    # -- texts -------------------------------------------------------------------------------------------------

    def mark(self, text: str, server: ServerConfig, what: str, value: Any = None) -> str:
        """A resource, a prompt or a listing for the model, under a notice if it is suspicious."""
        return marked(text, server.name, what, server.trust_level == "trusted", value)


def _short(tool: Tool) -> str:
    return flat(tool.name[:100])
