"""Asking somebody before a tool is called, where its level of risk demands that.

``exec`` is asked once per definition and remembered, ``dangerous`` is asked for each call. Threads that need the same
answer at the same time share one question. The time to answer is not the call's: it has a limit of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import get_ident
from typing import Any, Callable, Dict, Mapping, Optional

from mcpsync.config.model import ServerConfig
from mcpsync.connection.threads import Condition
from mcpsync.deadline import Deadline
from mcpsync.errors import ApprovalRefused, described
from mcpsync.host.pins import PinStore, definition_hash, pin_key
from mcpsync.host.risk import needs_approval
from mcpsync.types import Tool

__all__ = ["ApprovalRequest", "Approvals", "approve_all"]

#: What the callback may answer: yes and remember it, yes this once, no.
ALWAYS, ONCE = "always", "once"


@dataclass(frozen=True)
class ApprovalRequest:
    """A call that somebody is to agree to.

    :ivar name: of the tool, as the model sees it
    :ivar server: the server's name in the config
    :ivar tool: the tool's own name there
    :ivar risk: ``exec`` or ``dangerous``, or ``write`` where the policy is strict
    :ivar definition: all that the server says of the tool: data, not instructions
    :ivar arguments: what the model wants to call it with
    :ivar trusted: the config trusts the server
    :ivar changed: it was approved before, with another definition
    """

    name: str
    server: str
    tool: str
    risk: str
    definition: Tool
    arguments: Mapping[str, Any]
    trusted: bool
    changed: bool


Approve = Callable[[ApprovalRequest], Any]


def approve_all(request: ApprovalRequest) -> str:
    """An ``approve`` callback that agrees to everything and remembers nothing, for programs that check elsewhere."""
    return ONCE


class _Question:
    """One that is being asked.

    :ivar owner: the thread that asks
    :ivar answer: None until there is one; then what it was, or why there is none
    """

    def __init__(self) -> None:
        self.owner = get_ident()
        self.answer: Any = None
        self.answered = False


class Approvals:
    """Who agreed to what.

    :param approve: gets an :class:`ApprovalRequest` on the thread that makes the call, and gives True or ``"always"``
        (agreed, and remembered where the level allows that), ``"once"`` (agreed, this call alone), or False
    :param pins: where it is remembered
    :param seconds: how long a thread waits for the answer to another one's question
    """

    def __init__(self, approve: Optional[Approve], pins: PinStore, seconds: float) -> None:
        self._approve = approve
        self._pins = pins
        self._seconds = seconds
        self.after_fork()

    def after_fork(self) -> None:
        """In a forked child, and at first: nobody is asking."""
        self._changed = Condition()  # guards the questions
        self._asking: Dict[str, _Question] = {}
        self._pins.after_fork()

    def check(
        self,
        server: ServerConfig,
        name: str,
        definition: Tool,
        risk: str,
        arguments: Optional[Mapping[str, Any]],
        mode: str = "",
    ) -> None:
        """Return when the call may be made.

        :param mode: the config's: ``strict`` asks before each tool that is not read-only, ``deny`` agrees to nothing
            that has to be asked; anything else changes nothing

        :raises ApprovalRefused: it may not; the message says why and what would help
        """
        if not needs_approval(risk) and not (mode == "strict" and risk != "read_only"):
            return
        if mode == "deny":
            raise _refusal(name, server.name, risk, "the config's permissions.approval.mode is deny")
        key, digest = pin_key(server, definition.name), definition_hash(definition)
        known = self._pins.find(key)
        request = ApprovalRequest(
            name, server.name, definition.name, risk, definition, dict(arguments or {}),
            server.trust_level == "trusted", known is not None and known != digest,
        )  # fmt: skip
        if risk == "dangerous":
            self._settle(request, self._asked(request))
        elif known != digest:
            self._ask_for_pin(request, key, digest)

    def _ask_for_pin(self, request: ApprovalRequest, key: str, digest: str) -> None:
        deadline = Deadline(self._seconds)
        while True:
            with self._changed:
                question = self._asking.get(digest + key)
                mine = question is None
                if question is None:
                    question = self._asking[digest + key] = _Question()
            if mine:
                self._ask(request, key, digest, question)
                return
            answer = self._await(request, question, deadline)
            if answer != ONCE:
                self._settle(request, answer)
                return
            # that answer was for the other one's arguments

    def _ask(self, request: ApprovalRequest, key: str, digest: str, question: _Question) -> None:
        answer: Any = False
        try:
            if self._pins.find(key) == digest:
                answer = ALWAYS  # it was given between the look and the question
                return
            answer = self._asked(request)
            self._settle(request, answer)
            if answer == ALWAYS:
                self._pins.add(key, digest)
        finally:
            with self._changed:
                question.answer, question.answered = answer, True
                del self._asking[digest + key]
                self._changed.notify_all()

    def _await(self, request: ApprovalRequest, question: _Question, deadline: Deadline) -> Any:
        if question.owner == get_ident():
            raise _refused(request, "its approval is being asked for, and the callback itself calls it")
        with self._changed:
            while not question.answered:
                if not self._changed.wait(deadline.remaining()):
                    raise _refused(request, "nobody answered within %g s" % self._seconds)
        return question.answer

    def _asked(self, request: ApprovalRequest) -> Any:
        """What the callback says: ``always``, ``once`` or False."""
        if self._approve is None:
            raise _refused(request, _remedy(request))
        try:
            answer = self._approve(request)
        except Exception as error:  # the callback is the user's: whatever it raises is no agreement
            raise _refused(request, "the approve callback raised %s" % described(error)) from error
        if answer is True:
            return ALWAYS
        if answer in (ALWAYS, ONCE):
            return answer
        if answer in (False, None):
            return False
        raise _refused(request, "the approve callback gives True, 'always', 'once' or False, not %.60r" % (answer,))

    def _settle(self, request: ApprovalRequest, answer: Any) -> None:
        if answer is False:
            raise _refused(request, "the answer was no")


def _remedy(request: ApprovalRequest) -> str:
    text = "nobody can be asked: give the host an approve callback"
    if not request.trusted and request.risk == "exec":
        text += ", or set trust_level to trusted for this server if it is your own"
    return text


def _refused(request: ApprovalRequest, why: str) -> ApprovalRefused:
    return _refusal(request.name, request.server, request.risk, why)


def _refusal(name: str, server: str, risk: str, why: str) -> ApprovalRefused:
    return ApprovalRefused("%s (%s) needs approval: %s" % (name, risk, why), server=server, method="tools/call")
