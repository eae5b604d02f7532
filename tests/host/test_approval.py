"""Who is asked, when, how often, and what an answer is worth."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, Callable, List, Optional

import pytest

from mcpsync.config import ServerConfig
from mcpsync.errors import ApprovalRefused
from mcpsync.host.approval import ApprovalRequest, Approvals, approve_all
from mcpsync.host.pins import PinStore
from mcpsync.types import Tool

SERVER = ServerConfig("files", "stdio", command=("files-server",))
NAME = "mcp__files__read"


def tool(description: str = "Reads.") -> Tool:
    return Tool.from_wire({"name": "read", "description": description, "inputSchema": {"type": "object"}})


class Asked:
    """An ``approve`` callback that answers in order, then as the last time."""

    def __init__(self, *answers: Any) -> None:
        self.requests: List[ApprovalRequest] = []
        self._answers = list(answers)

    def __call__(self, request: ApprovalRequest) -> Any:
        self.requests.append(request)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer


@pytest.fixture
def pins(tmp_path: Path) -> PinStore:
    return PinStore(str(tmp_path / "pins.json"))


Make = Callable[..., Approvals]


@pytest.fixture
def make(pins: PinStore) -> Make:
    def made(approve: Optional[Callable[[ApprovalRequest], Any]], seconds: float = 10.0) -> Approvals:
        return Approvals(approve, pins, seconds)

    return made


def call(approvals: Approvals, risk: str = "exec", definition: Optional[Tool] = None, mode: str = "") -> None:
    approvals.check(SERVER, NAME, definition or tool(), risk, {"path": "x"}, mode)


@pytest.mark.parametrize("risk", ["read_only", "write"])
def test_nobody_is_asked_where_no_approval_is_needed(make: Make, risk: str) -> None:
    call(make(None), risk)


def test_without_a_callback_the_refusal_names_the_remedy(make: Make) -> None:
    with pytest.raises(ApprovalRefused) as refused:
        call(make(None))
    assert str(refused.value) == (
        "server 'files': tools/call: mcp__files__read (exec) needs approval: nobody can be asked: give the host an "
        "approve callback, or set trust_level to trusted for this server if it is your own"
    )


def test_a_yes_is_remembered_across_hosts(make: Make) -> None:
    asked = Asked(True)
    call(make(asked))
    call(make(asked))
    call(make(None))
    assert len(asked.requests) == 1
    request = asked.requests[0]
    assert (request.name, request.server, request.tool, request.risk) == (NAME, "files", "read", "exec")
    assert (request.arguments, request.trusted, request.changed) == ({"path": "x"}, False, False)


def test_once_is_not_remembered(make: Make) -> None:
    asked = Asked("once")
    approvals = make(asked)
    call(approvals)
    call(approvals)
    assert len(asked.requests) == 2


def test_a_changed_definition_is_asked_again(make: Make) -> None:
    asked = Asked(True)
    approvals = make(asked)
    call(approvals)
    call(approvals, definition=tool("Reads, and sends."))
    call(approvals, definition=tool("Reads, and sends."))
    assert [request.changed for request in asked.requests] == [False, True]


def test_dangerous_is_asked_each_time(make: Make) -> None:
    asked = Asked(True)
    approvals = make(asked)
    call(approvals, "dangerous")
    call(approvals, "dangerous")
    assert len(asked.requests) == 2


@pytest.mark.parametrize("answer", [False, None])
def test_a_no_is_asked_again_the_next_time(make: Make, answer: Any) -> None:
    asked = Asked(answer, True)
    approvals = make(asked)
    with pytest.raises(ApprovalRefused, match="the answer was no"):
        call(approvals)
    call(approvals)
    assert len(asked.requests) == 2


@pytest.mark.parametrize("answer", [1, "yes", object(), 0.0, [], ["always"]])
def test_an_answer_that_is_none_is_no_yes(make: Make, answer: Any) -> None:
    with pytest.raises(ApprovalRefused):
        call(make(Asked(answer)))


def test_a_callback_that_raises_is_no_yes(make: Make) -> None:
    with pytest.raises(ApprovalRefused, match="the approve callback raised ValueError: window closed") as refused:
        call(make(Asked(ValueError("window closed"))))
    assert isinstance(refused.value.__cause__, ValueError)


def test_a_callback_that_is_interrupted_lets_the_next_one_ask(make: Make) -> None:
    asked = Asked(KeyboardInterrupt(), True)
    approvals = make(asked)
    with pytest.raises(KeyboardInterrupt):
        call(approvals)
    call(approvals)


def test_modes(make: Make) -> None:
    asked = Asked(True)
    call(make(asked), "read_only", mode="strict")
    assert not asked.requests
    call(make(asked), "write", mode="strict")
    assert len(asked.requests) == 1
    with pytest.raises(ApprovalRefused, match=r"permissions\.approval\.mode is deny"):
        call(make(asked), mode="deny")
    assert len(asked.requests) == 1


def test_a_damaged_pin_file_closes(make: Make, pins: PinStore) -> None:
    Path(pins.path).write_text("{", encoding="utf-8")
    asked = Asked(True)
    for risk in ("exec", "dangerous"):
        with pytest.raises(ApprovalRefused, match="cannot be trusted"):
            call(make(asked), risk)
    call(make(asked), "write")
    assert not asked.requests


def test_approve_all_remembers_nothing(make: Make, pins: PinStore) -> None:
    call(make(approve_all))
    assert not Path(pins.path).exists()


# -- several threads ---------------------------------------------------------------------------------------------


class Slow:
    """A callback that waits until it is told the answer."""

    def __init__(self) -> None:
        self.count = 0
        self.begun = threading.Event()
        self.go_on = threading.Event()
        self.answer: Any = True

    def __call__(self, request: ApprovalRequest) -> Any:
        self.count += 1
        self.begun.set()
        assert self.go_on.wait(20)
        return self.answer


class Caller(threading.Thread):
    def __init__(self, approvals: Approvals, risk: str = "exec") -> None:
        super().__init__()
        self._approvals, self._risk = approvals, risk
        self.error: Optional[BaseException] = None
        self.start()

    def run(self) -> None:
        try:
            call(self._approvals, self._risk)
        except ApprovalRefused as error:
            self.error = error


@pytest.mark.parametrize("answer", [True, False])
def test_threads_share_one_question(make: Make, answer: bool) -> None:
    slow = Slow()
    slow.answer = answer
    approvals = make(slow)
    first = Caller(approvals)
    assert slow.begun.wait(20)
    others = [Caller(approvals) for _ in range(7)]
    slow.go_on.set()
    for thread in (first, *others):
        thread.join(20)
    errors = [thread.error for thread in (first, *others)]
    assert all(error is None for error in errors) if answer else all(errors)
    if answer:
        assert slow.count == 1


def test_who_waits_for_an_answer_waits_no_longer_than_that(make: Make) -> None:
    slow = Slow()
    approvals = make(slow, 0.05)
    first = Caller(approvals)
    assert slow.begun.wait(20)
    second = Caller(approvals)
    second.join(20)
    assert "nobody answered within 0.05 s" in str(second.error)
    slow.go_on.set()
    first.join(20)
    assert first.error is None


def test_once_covers_one_caller(make: Make) -> None:
    slow = Slow()
    slow.answer = "once"
    approvals = make(slow)
    callers = [Caller(approvals) for _ in range(3)]
    slow.go_on.set()
    for thread in callers:
        thread.join(20)
    assert [thread.error for thread in callers] == [None] * 3
    assert slow.count == 3


def test_a_callback_that_calls_the_tool_itself_is_refused(make: Make) -> None:
    inner: List[str] = []

    def approve(request: ApprovalRequest) -> bool:
        with pytest.raises(ApprovalRefused) as refused:
            call(approvals)
        inner.append(str(refused.value))
        return True

    approvals = make(approve)
    call(approvals)
    assert "the callback itself calls it" in inner[0]
