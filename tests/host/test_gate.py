"""The gates that requests of servers pass: off, ask, allow; limits; what is shown."""

from __future__ import annotations

import pickle
from typing import Any, Dict, List, Tuple

import pytest

from mcpsync.errors import ConfigError, RpcError
from mcpsync.host.gate import Gate, Gatekeeper, ServerRequest
from mcpsync.types import ElicitationRequest, ElicitationResult, SamplingRequest


def sampling(max_tokens: int = 100, text: str = "Summarize this") -> SamplingRequest:
    message = {"role": "user", "content": {"type": "text", "text": text}}
    return SamplingRequest.from_wire({"messages": [message], "maxTokens": max_tokens, "systemPrompt": "Be brief"})


def elicitation() -> ElicitationRequest:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    return ElicitationRequest.from_wire({"message": "Which city?", "requestedSchema": schema})


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Host:
    """What stands before and behind the gates."""

    def __init__(self, gates: Dict[str, Gate], answer: Any = True) -> None:
        self.clock = Clock()
        self.answer = answer
        self.asked: List[ServerRequest] = []
        self.shown: List[Tuple[ServerRequest, bool]] = []
        self.handled: List[Any] = []
        approve = None if answer == "nobody" else self._approve
        self.keeper = Gatekeeper(gates, approve, lambda *each: self.shown.append(each), self.clock)

    def _approve(self, request: ServerRequest) -> Any:
        self.asked.append(request)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    def behind(self, kind: str, server: str = "files") -> Any:
        def handle(request: Any) -> str:
            self.handled.append(request)
            return "done"

        return self.keeper.gated(server, False, {kind: handle, "other": 1}).get(kind)


def test_off_declares_nothing() -> None:
    host = Host({"sampling": Gate("off"), "elicitation": Gate("off")})
    assert host.behind("sampling") is None
    assert host.behind("elicitation") is None


def test_options_without_handlers_stay_as_they_are() -> None:
    assert Gatekeeper({}).gated("files", False, {"other": 1}) == {"other": 1}


def test_ask_shows_server_and_content() -> None:
    host = Host({})
    assert host.behind("sampling")(sampling()) == "done"
    (asked,) = host.asked
    assert (asked.server, asked.kind, asked.trusted) == ("files", "sampling", False)
    assert asked.text == "[system] Be brief\n[user] Summarize this\n[at most 100 tokens]"
    assert host.shown == [(asked, True)]


def test_allow_asks_nobody_and_shows_all_the_same() -> None:
    host = Host({}, "nobody")
    assert host.behind("elicitation")(elicitation()) == "done"
    assert host.shown[0][0].text == "Which city?\nasks for: city"


def test_the_text_of_a_url_question_has_the_url() -> None:
    asked = ElicitationRequest.from_wire({"message": "Sign in", "mode": "url", "url": "https://evil.example/in"})
    assert ServerRequest("files", "elicitation", asked, False).text == "Sign in\nURL: https://evil.example/in"


@pytest.mark.parametrize("answer", [False, None, "yes", 1, ValueError("secret of the host"), "nobody"])
def test_only_true_lets_a_request_pass(answer: Any) -> None:
    host = Host({"sampling": Gate("ask"), "elicitation": Gate("ask")}, answer)
    with pytest.raises(RpcError) as refused:
        host.behind("sampling")(sampling())
    assert (refused.value.code, refused.value.message) == (-1, "the user rejected the sampling request")
    assert host.behind("elicitation")(elicitation()) == ElicitationResult.decline()
    assert not host.handled
    assert [passed for _, passed in host.shown] == [False, False]


def test_calls_within_a_time() -> None:
    host = Host({"elicitation": Gate("allow", calls=2, seconds=60)})
    ask = host.behind("elicitation")
    assert [ask(elicitation()) for _ in range(2)] == ["done", "done"]
    assert ask(elicitation()) == ElicitationResult.decline()
    assert host.behind("elicitation", "another")(elicitation()) == "done"
    host.clock.now = 60.0
    assert ask(elicitation()) == "done"


def test_tokens_within_a_time() -> None:
    host = Host({"sampling": Gate("allow", tokens=1000, seconds=60)})
    ask = host.behind("sampling")
    ask(sampling(600))
    with pytest.raises(RpcError):
        ask(sampling(401))
    ask(sampling(400))
    host.clock.now = 60.0
    ask(sampling(1000))


def test_limits_hold_for_what_is_asked_too() -> None:
    host = Host({"sampling": Gate("ask", calls=1)})
    ask = host.behind("sampling")
    ask(sampling())
    with pytest.raises(RpcError):
        ask(sampling())
    assert len(host.asked) == 1  # nobody is bothered by what is over the limit


def test_what_cannot_be_shown_does_not_pass() -> None:
    def shown(request: ServerRequest, passed: bool) -> None:
        raise RuntimeError("no window")

    behind = Gatekeeper({}, lambda request: True, shown).gated("files", False, {"sampling": lambda request: "done"})
    with pytest.raises(RpcError):
        behind["sampling"](sampling())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"mode": "maybe"}, "off, ask or allow"),
        ({"calls": 0}, "calls is a positive number"),
        ({"tokens": -1}, "tokens is a positive number"),
        ({"seconds": None}, "seconds is a positive number"),
        ({"calls": True}, "calls is a positive number"),
    ],
)
def test_wrong_gates(arguments: Dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Gate(**arguments)


@pytest.mark.parametrize("gates", [{"roots": Gate()}, {"sampling": "off"}])
def test_gates_that_there_are_not(gates: Any) -> None:
    with pytest.raises(ConfigError, match="gate"):
        Gatekeeper(gates)


def test_a_gate_pickles() -> None:
    gate = Gate("allow", calls=3)
    assert pickle.loads(pickle.dumps(gate)) == gate
