"""Every way in which two sides can come to an agreement, or not: always an end, never a wait for nothing.

The cases follow the compatibility matrix of `basic/versioning` and `basic/transports/stdio`, "Backward
Compatibility", of 2026-07-28.
"""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpsync.core.era import LEGACY, MODERN, REVISIONS
from mcpsync.core.negotiation import Agreed, Fail, Negotiation, Restart, Send, offered_revisions
from mcpsync.errors import InvalidMessage, McpError, NeedsLogin, ProcessExited, ProtocolError, RpcError, VersionMismatch

DISCOVER, INITIALIZE = "server/discover", "initialize"
INFO_KEY = "io.modelcontextprotocol/serverInfo"


class Answer(NamedTuple):
    """What comes back for a request of this method."""

    method: str
    result: Optional[Dict[str, Any]] = None
    failure: Optional[McpError] = None


class Death(NamedTuple):
    """The process ends."""


class Silence(NamedTuple):
    """The time that the probe may be unanswered is over."""


def discovered(*versions, **more):
    return Answer(DISCOVER, {"supportedVersions": list(versions), "capabilities": {}, **more})


def initialized(version, **more):
    return Answer(INITIALIZE, {"protocolVersion": version, "capabilities": {}, **more})


def refused(method, code, data=None):
    return Answer(method, None, RpcError.of(code, "no", data))


def supported(method, *versions, code=-32022):
    return refused(method, code, {"supported": list(versions), "requested": "?"})


DEATH = Death()
SILENCE = Silence()
NO_PROBE = refused(DISCOVER, -32601)


class Play:
    """The connection's part: what is in flight, and what the negotiation wanted."""

    def __init__(self, protocol="auto", remembered=None):
        self.negotiation = Negotiation(protocol, {"name": "t"}, {"roots": {}}, remembered=remembered, silence=2.0)
        self.in_flight: List[str] = []
        self.silence_pending = False
        self.trace: List[str] = []
        self.sent: List[Send] = []
        self.end = None
        self.take(self.negotiation.start())

    def take(self, step):
        if isinstance(step, Restart):
            self.trace.append("restart")
            self.in_flight.clear()
            step = step.then
        if isinstance(step, Send):
            assert step.method not in self.in_flight, "at most one of each is in flight"
            self.trace.append(step.method)
            self.sent.append(step)
            self.in_flight.append(step.method)
            self.silence_pending = step.silence is not None
            assert step.silence in (None, 2.0)
            assert step.revision is (REVISIONS[MODERN[-1]] if step.method == DISCOVER else None)
        elif step is None:
            assert self.in_flight, "a wait for nothing"
        else:
            assert isinstance(step, (Agreed, Fail))
            self.end = step

    def happens(self, event):
        assert self.end is None, "it had ended"
        if event is DEATH:
            self.silence_pending = False
            self.take(self.negotiation.died(ProcessExited("the server ended", exit_code=1)))
        elif event is SILENCE:
            assert self.silence_pending
            self.silence_pending = False
            self.take(self.negotiation.silent())
        else:
            self.in_flight.remove(event.method)
            self.take(self.negotiation.answered(*event))


def play(*events, protocol="auto", remembered=None):
    played = Play(protocol, remembered)
    for event in events:
        played.happens(event)
    return played


def agreed(*events, **how):
    played = play(*events, **how)
    assert isinstance(played.end, Agreed), played.end
    assert played.end.handshake is played.end.revision.handshake
    return played, played.end


def failed(*events, **how):
    played = play(*events, **how)
    assert isinstance(played.end, Fail), played.end
    return played, played.end.error


def fails_for(answer, error):
    """The error is the server's own, or says what is wrong with its answer."""
    return error is answer.failure if answer.failure is not None else isinstance(error, ProtocolError)


# --- what is sent


def test_the_probe():
    step = Play().sent[0]
    assert step == Send(DISCOVER, {}, REVISIONS["2026-07-28"], silence=2.0)
    assert Play("modern").sent[0] == Send(DISCOVER, {}, REVISIONS["2026-07-28"], silence=None)


@pytest.mark.parametrize(("protocol", "version"), [("legacy", "2025-11-25"), ("2025-03-26", "2025-03-26")])
def test_the_handshake(protocol, version):
    (step,) = Play(protocol).sent
    params = {"protocolVersion": version, "capabilities": {"roots": {}}, "clientInfo": {"name": "t"}}
    assert step == Send(INITIALIZE, params, None)


def test_what_a_protocol_argument_offers():
    assert offered_revisions("auto") == LEGACY + MODERN
    assert offered_revisions("legacy") == LEGACY
    assert offered_revisions("modern") == MODERN
    assert offered_revisions("2024-11-05") == ["2024-11-05"]
    with pytest.raises(ValueError, match=r"'auto', 'legacy', 'modern' or one of 2024-11-05, .*, not '1900-01-01'"):
        Negotiation("1900-01-01", {}, {})


# --- a modern server


@pytest.mark.parametrize("protocol", ["auto", "modern", "2026-07-28"])
def test_modern(protocol):
    info = {"name": "s", "version": "1"}
    answer = discovered("1900-01-01", "2026-07-28", "2025-11-25", instructions="i", _meta={INFO_KEY: info})
    played, end = agreed(answer, protocol=protocol)
    assert played.trace == [DISCOVER]
    assert end.revision.name == "2026-07-28"
    assert end.certain
    assert end.server["serverInfo"] == info
    assert end.server["instructions"] == "i"
    assert "serverInfo" not in answer.result, "what came in is not altered"


@pytest.mark.parametrize("meta", [None, 5, {}])
def test_modern_without_server_info(meta):
    _, end = agreed(discovered("2026-07-28", _meta=meta))
    assert "serverInfo" not in end.server


def test_modern_that_refuses_the_version_it_names_is_asked_once_more():
    played, end = agreed(supported(DISCOVER, "2026-07-28"), discovered("2026-07-28"))
    assert played.trace == [DISCOVER, DISCOVER]
    assert played.sent[1].silence is None, "it has shown to be modern: initialize is no way out"
    assert end.revision.name == "2026-07-28"


def test_modern_that_refuses_it_again_fails_with_its_own_error():
    played, error = failed(supported(DISCOVER, "2026-07-28"), supported(DISCOVER, "2026-07-28"))
    assert played.trace == [DISCOVER, DISCOVER]
    assert isinstance(error, RpcError)
    assert error.code == -32022


def test_modern_that_refuses_it_again_and_names_a_legacy_one():
    both = supported(DISCOVER, "2026-07-28", "2025-06-18")
    played, end = agreed(both, both, initialized("2025-06-18"))
    assert played.trace == [DISCOVER, DISCOVER, INITIALIZE]
    assert played.sent[-1].params["protocolVersion"] == "2025-06-18"
    assert end.certain


def test_modern_that_dies_of_the_second_probe():
    _, error = failed(supported(DISCOVER, "2026-07-28"), DEATH)
    assert isinstance(error, ProcessExited)


@pytest.mark.parametrize("protocol", ["auto", "modern"])
@pytest.mark.parametrize("answer", [discovered, lambda *names: supported(DISCOVER, *names)])
def test_modern_of_other_revisions_only(answer, protocol):
    played, error = failed(answer("2099-01-01", "2098-01-01"), protocol=protocol)
    assert played.trace == [DISCOVER]
    assert isinstance(error, VersionMismatch)
    assert error.theirs == ["2099-01-01", "2098-01-01"]
    assert error.ours == (LEGACY + MODERN if protocol == "auto" else MODERN)
    assert "2099-01-01, 2098-01-01" in str(error)
    assert "2026-07-28" in str(error)


@pytest.mark.parametrize("answer", [discovered, lambda *names: supported(DISCOVER, *names)])
def test_a_list_of_legacy_revisions_leads_to_the_newest_of_them(answer):
    played, end = agreed(answer("2024-11-05", "2025-03-26"), initialized("2025-03-26"))
    assert played.sent[-1].params["protocolVersion"] == "2025-03-26"
    assert end.revision.name == "2025-03-26"


def deep(depth):
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("answer", [discovered, lambda *names: supported(DISCOVER, *names)])
def test_a_list_of_nonsense_is_shown_bounded(answer):
    _, error = failed(answer(None, {"a": 1}, deep(100_000), "x" * 10_000, *range(1_000)))
    assert isinstance(error, VersionMismatch)
    assert len(error.theirs) == 20
    assert error.theirs[:4] == ["None", "an object", "an array", "x" * 40]
    assert len(str(error)) < 2_000
    _, error = failed(answer())
    assert "the server speaks none" in str(error)


@pytest.mark.parametrize("code", [-32020, -32021, -32022])
@pytest.mark.parametrize("data", [None, 5, [], {}, {"supported": "2025-11-25"}, {"supported": None}])
def test_a_modern_error_is_no_reason_to_fall_back(code, data):
    played, error = failed(refused(DISCOVER, code, data))
    assert played.trace == [DISCOVER]
    assert error.code == code


@pytest.mark.parametrize("code", [-32020, -32021])
def test_a_list_of_versions_counts_for_its_own_error_only(code):
    _, error = failed(supported(DISCOVER, "2025-11-25", code=code))
    assert error.code == code


# --- a legacy server


@pytest.mark.parametrize("code", [-32601, -32602, -32600, -32603, -32700, -32000, -32001, -32002, -32042, 0, 1, 404])
def test_any_other_error_leads_to_the_handshake(code):
    played, end = agreed(refused(DISCOVER, code), initialized("2025-11-25", instructions="i"))
    assert played.trace == [DISCOVER, INITIALIZE]
    assert end.server["instructions"] == "i"
    assert end.certain


@pytest.mark.parametrize(
    "answer",
    [
        Answer(DISCOVER, {}),
        Answer(DISCOVER, {"supportedVersions": "2026-07-28"}),
        Answer(DISCOVER, {"supportedVersions": {"2026-07-28": 1}}),
        discovered("2026-07-28", resultType="input_required"),
        discovered("2026-07-28", resultType=None),
        Answer(DISCOVER, None, InvalidMessage("neither result nor error")),
        Answer(DISCOVER, None, None),
    ],
)
def test_an_answer_that_is_no_discovery_leads_to_the_handshake(answer):
    played, _ = agreed(answer, initialized("2024-11-05"))
    assert played.trace == [DISCOVER, INITIALIZE]
    _, error = failed(answer, protocol="modern")
    assert isinstance(error, ProtocolError)


@pytest.mark.parametrize("version", LEGACY)
def test_the_server_chooses_the_legacy_revision(version):
    assert agreed(NO_PROBE, initialized(version))[1].revision.name == version
    assert agreed(initialized(version), protocol="legacy")[1].revision.name == version
    assert agreed(initialized(version), protocol=version)[1].revision.name == version


def test_a_legacy_client_learns_nothing_for_a_client_that_speaks_both_eras():
    assert not agreed(initialized("2025-11-25"), protocol="legacy")[1].certain
    assert not agreed(initialized("2025-06-18"), protocol="2025-06-18")[1].certain


def test_a_modern_client_and_a_legacy_server():
    played, error = failed(NO_PROBE, protocol="modern")
    assert played.trace == [DISCOVER]
    assert isinstance(error, VersionMismatch)
    assert (error.ours, error.theirs) == (["2026-07-28"], [])
    assert "only an earlier revision" in str(error) and "(error -32601)" in str(error)
    _, error = failed(DEATH, protocol="2026-07-28")
    assert isinstance(error, ProcessExited)
    assert Play("modern").negotiation.silent() is None


def test_a_legacy_client_and_a_modern_server():
    _, error = failed(refused(INITIALIZE, -32601), protocol="legacy")
    assert error.code == -32601
    _, error = failed(supported(INITIALIZE, "2026-07-28"), protocol="legacy")
    assert isinstance(error, VersionMismatch)
    assert (error.ours, error.theirs) == (LEGACY, ["2026-07-28"])


def test_a_dual_client_and_a_modern_server_without_discovery():
    """What it says to ``initialize`` is more use than "no revision in common", which would be wrong."""
    _, error = failed(NO_PROBE, supported(INITIALIZE, "2026-07-28"))
    assert error.code == -32022


@pytest.mark.parametrize("code", [-32022, -32602, -32000])
def test_a_refused_handshake_that_names_a_revision_is_tried_once_more(code):
    first = supported(INITIALIZE, "1900-01-01", "2024-11-05", code=code)
    played, end = agreed(first, initialized("2024-11-05"), protocol="legacy")
    assert [step.params["protocolVersion"] for step in played.sent] == ["2025-11-25", "2024-11-05"]
    assert end.revision.name == "2024-11-05"
    _, error = failed(first, first, protocol="legacy")
    assert error.code == code


@pytest.mark.parametrize("answer", [Answer(INITIALIZE), refused(INITIALIZE, -32603, {"supported": 7})])
def test_a_refused_handshake_that_names_nothing(answer):
    _, error = failed(NO_PROBE, answer)
    assert fails_for(answer, error)


@pytest.mark.parametrize("version", ["1900-01-01", "2099-01-01", "latest", ""])
def test_a_legacy_server_that_chooses_an_unknown_revision(version):
    _, error = failed(NO_PROBE, initialized(version))
    assert isinstance(error, VersionMismatch)
    assert error.theirs == [version]


@pytest.mark.parametrize("protocol", LEGACY)
def test_a_pinned_revision_that_the_server_does_not_choose(protocol):
    other = next(name for name in LEGACY if name != protocol)
    _, error = failed(initialized(other), protocol=protocol)
    assert (error.ours, error.theirs) == ([protocol], [other])


@pytest.mark.parametrize("version", [None, 20251125, ["2025-11-25"], {}, True, deep(100_000), "2026-07-28"])
def test_a_handshake_without_a_usable_revision(version):
    _, error = failed(NO_PROBE, initialized(version))
    assert isinstance(error, InvalidMessage)
    assert "no usable protocolVersion" in str(error)
    assert len(str(error)) < 200


def test_a_handshake_without_any_revision():
    _, error = failed(NO_PROBE, Answer(INITIALIZE, {}))
    assert "no usable protocolVersion: None" in str(error)


# --- a server that is slow


def test_silence_then_the_handshake():
    played, end = agreed(SILENCE, initialized("2025-11-25"))
    assert played.trace == [DISCOVER, INITIALIZE]
    assert not end.certain, "a verdict by silence is not remembered"


def test_silence_then_a_refused_probe_then_the_handshake():
    _, end = agreed(SILENCE, NO_PROBE, initialized("2025-11-25"))
    assert end.certain, "it has said so itself"


def test_silence_then_the_probe():
    played, end = agreed(SILENCE, discovered("2026-07-28"))
    assert played.trace == [DISCOVER, INITIALIZE]
    assert end.revision.name == "2026-07-28"
    assert end.certain


@pytest.mark.parametrize(
    "bad", [refused(INITIALIZE, -32601), initialized("2026-07-28"), initialized("1900-01-01"), Answer(INITIALIZE, {})]
)
def test_silence_then_a_failed_handshake_waits_for_the_probe(bad):
    """A slow modern server: the first good answer of the two decides."""
    assert agreed(SILENCE, bad, discovered("2026-07-28"))[1].revision.name == "2026-07-28"
    _, error = failed(SILENCE, bad, NO_PROBE)
    assert fails_for(bad, error)
    assert fails_for(bad, failed(SILENCE, NO_PROBE, bad)[1])


@pytest.mark.parametrize("answer", [discovered, lambda *names: supported(DISCOVER, *names)])
def test_silence_then_a_refused_handshake_then_a_list_of_legacy_revisions(answer):
    """The handshake is not in flight any more, so it has to be sent again: nothing else would end this."""
    played, end = agreed(SILENCE, refused(INITIALIZE, -32602), answer("2025-03-26"), initialized("2025-03-26"))
    assert played.trace == [DISCOVER, INITIALIZE, INITIALIZE]
    assert played.sent[-1].params["protocolVersion"] == "2025-03-26"
    assert end.certain
    refusal = refused(INITIALIZE, -32602)
    _, error = failed(SILENCE, refusal, answer("2025-03-26"), refused(INITIALIZE, -32000))
    assert error.code == -32000
    played, _ = failed(SILENCE, refusal, answer("2025-03-26"), supported(INITIALIZE, "2024-11-05"))
    assert played.trace == [DISCOVER, INITIALIZE, INITIALIZE], "twice is enough"


def test_silence_then_the_handshake_twice_refused():
    first = supported(INITIALIZE, "2024-11-05")
    again = supported(DISCOVER, "2025-03-26")
    played, error = failed(SILENCE, again, first, first)
    assert played.trace == [DISCOVER, INITIALIZE, INITIALIZE]
    assert error.code == -32022


def test_a_probe_that_is_asked_again_while_the_handshake_is_refused():
    """The refusal must not end it while the second probe is in flight."""
    again = supported(DISCOVER, "2026-07-28")
    played, end = agreed(SILENCE, again, refused(INITIALIZE, -32601), discovered("2026-07-28"))
    assert played.trace == [DISCOVER, INITIALIZE, DISCOVER]
    assert end.revision.name == "2026-07-28"


def test_no_second_handshake_by_silence():
    played = play(SILENCE)
    assert played.negotiation.silent() is None
    played = play(NO_PROBE)
    assert played.negotiation.silent() is None


# --- a server that dies


def test_death_of_the_probe():
    played, end = agreed(DEATH, initialized("2025-11-25"))
    assert played.trace == [DISCOVER, "restart", INITIALIZE]
    assert end.certain


def test_a_slow_server_that_dies_of_the_probe():
    """It reads the probe after the silence was over, with the handshake behind it."""
    played, end = agreed(SILENCE, DEATH, initialized("2025-11-25"))
    assert played.trace == [DISCOVER, INITIALIZE, "restart", INITIALIZE]
    assert end.certain


@pytest.mark.parametrize(
    "events",
    [
        (DEATH, DEATH),
        (SILENCE, DEATH, DEATH),
        (NO_PROBE, DEATH),
        (SILENCE, NO_PROBE, DEATH),
    ],
)
def test_death_of_anything_else(events):
    played, error = failed(*events)
    assert isinstance(error, ProcessExited)
    assert played.trace.count("restart") <= 1


def test_death_after_a_refusal():
    """What the first life refused says nothing of the second."""
    refusal = refused(INITIALIZE, -32603)
    assert agreed(SILENCE, refusal, DEATH, initialized("2025-11-25"))[1].certain
    assert failed(SILENCE, refusal, DEATH, refused(INITIALIZE, -32000))[1].code == -32000


# --- what was found earlier


def test_a_remembered_legacy_server_is_not_probed():
    played, end = agreed(initialized("2025-11-25"), remembered="legacy")
    assert played.trace == [INITIALIZE]
    assert end.certain


@pytest.mark.parametrize("remembered", ["modern", "nonsense", None])
def test_any_other_server_is(remembered):
    assert Play(remembered=remembered).trace == [DISCOVER]


@pytest.mark.parametrize("bad", [refused(INITIALIZE, -32601), initialized("2026-07-28"), Answer(INITIALIZE, {})])
def test_a_remembered_verdict_that_fails_is_probed_again(bad):
    played, end = agreed(bad, discovered("2026-07-28"), remembered="legacy")
    assert played.trace == [INITIALIZE, DISCOVER]
    assert end.revision.name == "2026-07-28"
    _, error = failed(bad, NO_PROBE, remembered="legacy")
    assert fails_for(bad, error)
    _, error = failed(bad, SILENCE, remembered="legacy")
    assert fails_for(bad, error)
    played, _ = agreed(bad, DEATH, initialized("2025-11-25"), remembered="legacy")
    assert played.trace == [INITIALIZE, DISCOVER, "restart", INITIALIZE]


@pytest.mark.parametrize(("method", "remembered"), [(DISCOVER, None), (INITIALIZE, "legacy")])
def test_who_is_not_signed_in_asks_no_other_way(method, remembered):
    refusal = Answer(method, None, NeedsLogin("sign in"))
    played, error = failed(refusal, remembered=remembered)
    assert error is refusal.failure
    assert played.trace == [method]


def test_a_remembered_verdict_with_nothing_to_fall_back_on():
    assert failed(refused(INITIALIZE, -32601), protocol="legacy", remembered="legacy")[1].code == -32601
    assert Play("modern", remembered="legacy").trace == [DISCOVER]
    assert isinstance(failed(DEATH, remembered="legacy")[1], ProcessExited)


# --- any server at all

names = st.sampled_from([*REVISIONS, "1900-01-01", None, 7])
data = st.none() | st.fixed_dictionaries({"supported": st.lists(names, max_size=3) | st.just("x")})
errors = st.builds(RpcError.of, st.sampled_from([-32601, -32020, -32021, -32022, -32602]), st.just("no"), data)
results = {
    DISCOVER: st.fixed_dictionaries({}, optional={"supportedVersions": st.lists(names, max_size=3) | st.none()}),
    INITIALIZE: st.fixed_dictionaries({}, optional={"protocolVersion": names}),
}


@given(
    st.sampled_from(["auto", "legacy", "modern", *REVISIONS]),
    st.sampled_from([None, "legacy", "modern"]),
    st.data(),
)
def test_any_server_comes_to_an_end(protocol, remembered, draw):
    """Whatever is answered in whatever order, there is an end, and something in flight until then."""
    played = Play(protocol, remembered)
    for _ in range(12):
        if played.end is not None:
            break
        choices = [*played.in_flight, DEATH, *([SILENCE] if played.silence_pending else [])]
        event = draw.draw(st.sampled_from(choices))
        if event in (DISCOVER, INITIALIZE):
            answer = draw.draw(results[event].map(lambda result: (result, None)) | errors.map(lambda e: (None, e)))
            event = Answer(event, *answer)
        played.happens(event)
    assert played.end is not None, played.trace
    assert len(played.trace) <= 7
    assert played.trace.count("restart") <= 1
    if isinstance(played.end, Agreed):
        assert played.end.revision.name in offered_revisions(protocol)
    else:
        assert len(str(played.end.error)) < 500
