"""The rounds of one call: input that a server asks for through results, and URLs that it wants visited first."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpsync.core import jsonrpc
from mcpsync.core.era import LEGACY, REVISIONS
from mcpsync.core.rounds import Ask, Done, Extended, Failed, Question, Rounds, Visit
from mcpsync.errors import InvalidMessage, InvalidParams, ProtocolError, RpcError, UrlElicitationRequired

MODERN = REVISIONS["2026-07-28"]
URL_ERROR = REVISIONS["2025-11-25"]
ELICIT = {"method": "elicitation/create", "params": {"message": "name?"}}
PARAMS = {"name": "tool", "arguments": {"a": 1}}


def rounds(method="tools/call", params=PARAMS, revision=MODERN, **more):
    return Rounds(method, params, revision, **more)


def input_required(**more):
    return {"resultType": "input_required", **more}


def asks(made, **more):
    step = made.step(input_required(**more), None)
    assert isinstance(step, Ask), step
    return step.questions


def fails(made, result, failure=None):
    step = made.step(result, failure)
    assert isinstance(step, Failed), step
    return step.error


# --- results


@pytest.mark.parametrize("result", [{}, {"resultType": "complete", "content": []}, {"inputRequests": {"a": ELICIT}}])
def test_a_complete_result_ends_the_call(result):
    assert rounds().step(result, None) == Done(result)


@pytest.mark.parametrize("kind", ["task", "", "Complete", None, 1, True, [], {}, ["complete"], "x" * 10_000])
def test_an_unknown_result_type_is_invalid(kind):
    error = fails(rounds(), {"resultType": kind})
    assert isinstance(error, InvalidMessage)
    assert "unknown resultType" in str(error)
    assert len(str(error)) < 200


def test_a_result_type_nested_deeply_is_invalid_too():
    kind = []
    for _ in range(100_000):
        kind = [kind]
    assert "an array" in str(fails(rounds(), {"resultType": kind}))


@pytest.mark.parametrize("method", ["tools/call", "tools/list", "resources/read"])
def test_a_result_type_of_a_declared_extension_is_told_from_others(method):
    made = rounds(method, result_types=frozenset(["task"]))
    assert made.step({"resultType": "task", "taskId": "1"}, None) == Extended(
        "task", {"resultType": "task", "taskId": "1"}
    )
    assert isinstance(fails(made, {"resultType": "other"}), InvalidMessage)


@pytest.mark.parametrize("revision", LEGACY)
def test_legacy_results_have_no_type(revision):
    result = input_required(inputRequests={"a": ELICIT})
    assert rounds(revision=REVISIONS[revision]).step(result, None) == Done(result)


@pytest.mark.parametrize("method", ["tools/list", "completion/complete", "subscriptions/listen", "server/discover"])
def test_only_three_methods_may_ask(method):
    error = fails(rounds(method), input_required(requestState="s"))
    assert isinstance(error, InvalidMessage)
    assert "not allowed" in str(error)


@pytest.mark.parametrize("method", ["tools/call", "resources/read", "prompts/get"])
def test_questions_and_the_next_request(method):
    made = rounds(method)
    sampling = {"method": "sampling/createMessage", "params": {"maxTokens": 1}}
    roots = {"method": "roots/list"}
    odd = {"method": "roots/list", "params": [1]}
    questions = asks(made, inputRequests={"e": ELICIT, "s": sampling, "r": roots, "": odd}, requestState="st")
    assert questions == {
        "e": Question("elicitation/create", {"message": "name?"}),
        "s": Question("sampling/createMessage", {"maxTokens": 1}),
        "r": Question("roots/list", {}),
        "": Question("roots/list", {}),
    }
    answers = {key: {"answer": key} for key in questions}
    assert made.next_params(answers) == {**PARAMS, "requestState": "st", "inputResponses": answers}
    assert PARAMS == {"name": "tool", "arguments": {"a": 1}}
    assert made.step({"content": []}, None) == Done({"content": []})


@pytest.mark.parametrize(
    "request_", [None, 7, [], {}, {"method": None}, {"method": "tools/call"}, {"method": ["roots/list"]}]
)
def test_a_question_that_no_client_answers(request_):
    error = fails(rounds(), input_required(inputRequests={"ok": ELICIT, "bad": request_}, requestState="s"))
    assert isinstance(error, InvalidMessage)
    assert "which no client answers" in str(error)


@pytest.mark.parametrize(
    "result", [{}, {"inputRequests": {}}, {"inputRequests": None, "requestState": "s"}, {"inputRequests": [ELICIT]}]
)
def test_a_result_that_asks_for_nothing(result):
    assert "neither inputRequests nor requestState" in str(fails(rounds(), input_required(**result)))


def test_an_answer_that_is_none():
    assert isinstance(fails(rounds(), None), InvalidMessage)
    error = InvalidParams("no", code=-32602)
    assert fails(rounds(), None, error) is error


# --- the server's state


@pytest.mark.usefixtures("codec")
@pytest.mark.parametrize(
    "state",
    ["", "s", "\ud800", "a\udfff\u0000\n\u2028\ufeff", "\\u0041", '{"a": 1 }', "e\u0301", "\u00e9", "x" * 1_000_000],
)
def test_the_state_comes_back_as_it_was(state):
    """`basic/patterns/mrtr`, client requirement 2: the exact value, through decoding and encoding too."""
    made = rounds()
    result = jsonrpc.decode(json.dumps(input_required(inputRequests={"a": ELICIT}, requestState=state)).encode())
    assert isinstance(made.step(result, None), Ask)
    sent = json.loads(jsonrpc.encode(made.next_params({"a": {}})))
    assert sent["requestState"] == state
    assert isinstance(sent["requestState"], str)


@pytest.mark.parametrize("state", [None, 0, {"a": [1]}, []])
def test_a_state_that_is_no_text_comes_back_too(state):
    made = rounds()
    asks(made, inputRequests={"a": ELICIT}, requestState=state)
    assert made.next_params({"a": {}})["requestState"] == state


def test_a_state_without_questions():
    made = rounds()
    assert asks(made, requestState="s") == {}
    for answers in (None, {}):
        assert made.next_params(answers) == {**PARAMS, "requestState": "s"}


def test_no_state_no_state():
    made = rounds()
    asks(made, inputRequests={"a": ELICIT})
    assert made.next_params({"a": {"x": 1}}) == {**PARAMS, "inputResponses": {"a": {"x": 1}}}


def test_a_state_is_for_the_next_request_alone():
    made = rounds()
    asks(made, inputRequests={"a": ELICIT}, requestState="one")
    made.next_params({"a": {}})
    asks(made, inputRequests={"b": ELICIT})
    assert made.next_params({"b": {}}) == {**PARAMS, "inputResponses": {"b": {}}}
    asks(made, requestState="two")
    assert made.next_params() == {**PARAMS, "requestState": "two"}


def test_what_the_caller_gave_by_hand_goes_with_the_first_request_alone():
    """A caller may have done the rounds before by hand; their state is not that of the rounds to come."""
    made = rounds(params={**PARAMS, "requestState": "old", "inputResponses": {"old": {}}})
    asks(made, inputRequests={"a": ELICIT})
    assert made.next_params({"a": {}}) == {**PARAMS, "inputResponses": {"a": {}}}
    asks(made, requestState="new")
    assert made.next_params() == {**PARAMS, "requestState": "new"}


def test_two_calls_share_nothing():
    one, other = rounds(), rounds()
    asks(one, inputRequests={"a": ELICIT}, requestState="one")
    asks(other, inputRequests={"a": ELICIT})
    assert "requestState" not in other.next_params({"a": {}})
    assert one.next_params({"a": {}})["requestState"] == "one"


states = st.none() | st.text(st.characters(blacklist_categories=()), max_size=5)
keys = st.lists(st.text(max_size=3), max_size=3, unique=True)


@given(st.lists(st.tuples(states, keys), min_size=1, max_size=10))
def test_each_request_carries_what_the_last_answer_gave(history):
    made = rounds()
    for state, asked in history:
        if state is None and not asked:
            continue
        result = input_required(**({} if state is None else {"requestState": state}))
        if asked:
            result["inputRequests"] = dict.fromkeys(asked, ELICIT)
        step = made.step(result, None)
        assert isinstance(step, Ask)
        assert sorted(step.questions) == sorted(asked)
        expected = dict(PARAMS)
        if state is not None:
            expected["requestState"] = state
        if asked:
            expected["inputResponses"] = {key: {"to": key} for key in asked}
        assert made.next_params({key: {"to": key} for key in asked}) == expected


# --- bounds


@pytest.mark.parametrize("limit", [0, 1, 10])
def test_the_rounds_are_bounded(limit):
    made = rounds(limit=limit)
    for _ in range(limit):
        asks(made, requestState="s")
    error = fails(made, input_required(requestState="s"))
    assert type(error) is ProtocolError
    assert "more than %d times" % limit in str(error)


def test_visits_count_as_rounds():
    made = rounds(revision=URL_ERROR, limit=2)
    for _ in range(2):
        assert isinstance(made.step(None, visit_error({"url": "https://x"})), Visit)
    assert type(fails(made, None, visit_error({"url": "https://x"}))) is ProtocolError


# --- URLs to visit


def visit_error(*elicitations, data=None):
    return RpcError.of(-32042, "visit first", {"elicitations": list(elicitations)} if data is None else data)


def test_a_url_to_visit():
    made = rounds(revision=URL_ERROR)
    first, second = {"mode": "url", "url": "https://a", "elicitationId": "1"}, {"url": "https://b"}
    assert made.step(None, visit_error(first, 7, second, None)) == Visit([first, second])
    assert made.next_params() == PARAMS
    assert made.step({"content": []}, None) == Done({"content": []})


@pytest.mark.parametrize(
    "data", [None, 7, [], {}, {"elicitations": None}, {"elicitations": {}}, {"elicitations": []}, {"elicitations": [7]}]
)
def test_nothing_to_visit(data):
    error = UrlElicitationRequired("visit first", code=-32042, data=data)
    assert fails(rounds(revision=URL_ERROR), None, error) is error


@pytest.mark.parametrize("revision", [name for name in REVISIONS if name != "2025-11-25"])
def test_the_error_means_that_in_one_revision_only(revision):
    error = visit_error({"url": "https://a"})
    assert fails(rounds(revision=REVISIONS[revision]), None, error) is error
