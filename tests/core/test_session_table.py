"""The table of calls in flight: whatever comes, in whatever order, each call completes exactly once."""

from __future__ import annotations

import itertools
import json
import sys
import threading
import time
from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from mcpsync.core.era import REVISIONS
from mcpsync.core.session import Answered, Asked, Oddity, Progressed, Session, Withdrawn
from mcpsync.errors import InvalidMessage, RpcError

LISTEN = "subscriptions/listen"

strange_ids = st.sampled_from(
    [None, True, False, "", "0", "1", "2", 0.5, -1, -0.5, 10**9, 2**70, 1e300, [], [0], {}, {"0": 0}]
)
server_ids = st.sampled_from([0, 1, "0", "1", 0.5])
bodies = st.sampled_from([{"result": {}}, {"error": {"code": -1, "message": "no"}}, {}, {"result": None, "error": 7}])


class Call:
    """A call as the session sees it, with the outcomes of each of its requests."""

    def __init__(self, method):
        self.method = method
        self.request_id = -1
        self.outcomes = Counter()


class Table(RuleBasedStateMachine):
    """Requests opened, answered, retired and cancelled in any order, against a dictionary as the model."""

    requests = Bundle("requests")  # every id that was ever given out
    waiting = Bundle("waiting")  # messages that the server has ready

    @initialize(revision=st.sampled_from([None, *REVISIONS]))
    def start(self, revision):
        self.revision = REVISIONS.get(revision)
        self.session = Session(itertools.count(), {"name": "t"}, {})
        self.session.adopt(self.revision)
        self.in_flight = {}
        self.watched = set()
        self.ended = Counter()
        self.asked = {}

    # -- this side

    @rule(target=requests, progress=st.booleans(), method=st.sampled_from(["tools/call", LISTEN]))
    def open(self, progress, method):
        return self._send(Call(method), progress)

    @rule(target=requests, request_id=requests, progress=st.booleans())
    def go_on(self, request_id, progress):
        """The next request of a call whose last one is over, as in rounds of input."""
        over = [each for each in self._calls() if each.request_id not in self.in_flight]
        call = over[0] if over else Call("tools/call")
        return self._send(call, progress)

    def _calls(self):
        return getattr(self, "calls", [])

    def _send(self, call, progress):
        self.calls = [*(each for each in self._calls() if each is not call), call]
        data = self.session.request(call, call.method, {}, progress=progress)
        request_id = json.loads(data)["id"]
        assert request_id == call.request_id
        assert request_id not in self.in_flight
        assert request_id not in self.ended
        self.in_flight[request_id] = call
        if progress:
            self.watched.add(request_id)
        return request_id

    @rule(request_id=requests)
    def retire(self, request_id):
        """A timeout, a cancel or Ctrl-C."""
        call = next((each for each in self._calls() if each.request_id == request_id), None)
        if call is not None:
            won = self.session.retire(call)
            assert won == (request_id in self.in_flight)
            if won:
                self._end(request_id)

    @rule()
    def retire_all(self):
        """The connection is lost."""
        retired = self.session.retire_all()
        assert {each.request_id: each for each in retired} == self.in_flight
        for request_id in list(self.in_flight):
            self._end(request_id)

    def _end(self, request_id):
        del self.in_flight[request_id]
        self.watched.discard(request_id)
        self.ended[request_id] += 1

    # -- the server

    @rule(target=waiting, request_id=requests, body=bodies, form=st.sampled_from([int, float, str]))
    def answer(self, request_id, body, form):
        return {"id": form(request_id), **body, **({"result": {"to": request_id}} if "result" in body else {})}

    @rule(target=waiting, request_id=strange_ids, body=bodies)
    def strange_answer(self, request_id, body):
        return {"id": request_id, **body}

    @rule(target=waiting, token=requests | strange_ids)
    def progress(self, token):
        return {"method": "notifications/progress", "params": {"progressToken": token}}

    @rule(target=waiting, request_id=requests | strange_ids)
    def cancel(self, request_id):
        return {"method": "notifications/cancelled", "params": {"requestId": request_id}}

    @rule(target=waiting, request_id=server_ids)
    def ask(self, request_id):
        return {"id": request_id, "method": "ping"}

    @rule(request_id=server_ids)
    def reply(self, request_id):
        data = self.session.answer(request_id, {})
        assert (data is not None) == (self.asked.pop(request_id, None) is not None)

    @rule(message=waiting)
    def deliver_and_keep(self, message):
        """What stays ready comes again: a duplicate."""
        self._deliver([message])

    @rule(message=consumes(waiting))
    def deliver(self, message):
        self._deliver([message])

    @rule(messages=st.lists(waiting | st.sampled_from([5, None, "x"]), max_size=5))
    def deliver_batch(self, messages):
        self._deliver(messages, batch=True)

    def _deliver(self, messages, batch=False):
        events = self.session.receive(json.dumps(messages if batch else messages[0]).encode())
        if batch and (not messages or (self.revision is not None and not self.revision.batching)):
            assert isinstance(events.pop(0), Oddity)
        if batch and not messages and events:
            assert isinstance(events.pop(0), Oddity)
        assert len(events) == len(messages)
        for message, event in zip(messages, events):
            self._check(message, event)

    def _check(self, message, event):
        if not isinstance(message, dict):
            assert isinstance(event, Oddity)
        elif message.get("method") == "notifications/progress":
            token = message["params"]["progressToken"]
            expected = self.in_flight[token] if type(token) is int and token in self.watched else None
            assert (event.call if isinstance(event, Progressed) else None) is expected
        elif message.get("method") == "notifications/cancelled":
            self._check_cancelled(message["params"]["requestId"], event)
        elif message.get("method") == "ping":
            allowed = (self.revision is None or self.revision.server_requests) and message["id"] not in self.asked
            assert isinstance(event, Asked) == allowed
            if allowed:
                self.asked[message["id"]] = event
        else:
            self._check_answer(message, event)

    def _check_cancelled(self, request_id, event):
        is_id = type(request_id) in (int, float, str)
        if self.revision is None or self.revision.server_requests:
            open_ask = is_id and self.asked.pop(request_id, None) is not None
            assert isinstance(event, Withdrawn if open_ask else Oddity)
            return
        call = self.in_flight.get(request_id) if type(request_id) is int else None
        if call is not None and call.method == LISTEN:
            assert event == Answered(call, {}, None)
            self._end(request_id)
        else:
            assert isinstance(event, Oddity)

    def _check_answer(self, message, event):
        request_id = message["id"]
        if type(request_id) not in (int, float) or request_id not in self.in_flight:
            assert isinstance(event, Oddity)
            return
        assert isinstance(event, Answered)
        assert event.call is self.in_flight[request_id]
        if isinstance(message.get("result"), dict):
            assert event.result == message["result"]
            assert event.result.get("to", request_id) == request_id
            assert event.failure is None
        else:
            assert event.result is None
            expected = RpcError if isinstance(message.get("error"), dict) else InvalidMessage
            assert isinstance(event.failure, expected)
        self._end(int(request_id))

    @invariant()
    def the_tables_hold_what_is_in_flight_and_nothing_else(self):
        if hasattr(self, "session"):
            assert self.session._calls == self.in_flight
            assert set(self.session._watched) == self.watched
            assert set(self.session._asked) == set(self.asked)
            assert max(self.ended.values(), default=1) == 1

    def teardown(self):
        if hasattr(self, "session"):
            self.retire_all()
            assert all(count == 1 for count in self.ended.values())
            assert len(self.ended) == self.session.last_id + bool(self.ended)


TestTable = Table.TestCase
TestTable.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


class Id(int):
    """An id that lets another thread run whenever it is looked up, so that two steps on a table come apart."""

    def __hash__(self):
        time.sleep(0)
        return int.__hash__(self)

    def __eq__(self, other):
        time.sleep(0)
        return int.__eq__(self, other)


@pytest.fixture
def eager_switching():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def run_together(*bodies):
    """Run each on a thread of its own, all from the same moment; what one raises is raised here."""
    barrier = threading.Barrier(len(bodies))
    raised = []

    def run(body):
        barrier.wait()
        try:
            body()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(body,)) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]


@pytest.mark.usefixtures("eager_switching")
@pytest.mark.parametrize(("count", "kind"), [(4_000, int), (1_000, Id)])
def test_threads_race_to_end_the_same_calls(count, kind):
    """Timeouts, answers, duplicate answers and cancels at once: for each call exactly one of them wins."""
    if kind is int:  # with plain ids one thread may be through before the next one starts
        winners_of_a_race(count, kind)
    else:  # and on a busy machine with the others too, but not always
        assert any(winners_of_a_race(count, kind) > 1 for _ in range(20)), "the threads never met"


def winners_of_a_race(count, kind):
    session = Session(map(kind, itertools.count()), {"name": "t"}, {})
    session.adopt(REVISIONS["2025-11-25"])
    calls = [Call("tools/call") for _ in range(count)]
    for call in calls:
        session.request(call, call.method, {}, progress=True)
    frames = [b'{"jsonrpc":"2.0","id":%d,"result":{"to":%d}}' % (n, n) for n in range(count)]
    wins = {"timeout": [], "cancel": [], "answer": [], "duplicate": [], "loss": []}

    def retire(name, order):
        for call in order:
            if session.retire(call):
                wins[name].append(call.request_id)

    def receive(name, order):
        for frame in order:
            (event,) = session.receive(frame)
            if isinstance(event, Answered):
                assert event.call is calls[event.result["to"]]
                wins[name].append(event.call.request_id)
            else:
                assert event.kind == "late answer"

    def lose():
        while session.in_flight():
            for call in session.in_flight()[:100]:
                if session.retire(call):
                    wins["loss"].append(call.request_id)

    run_together(
        lambda: retire("timeout", calls),
        lambda: retire("cancel", calls[::-1]),
        lambda: receive("answer", frames),
        lambda: receive("duplicate", frames[::-1]),
        lose,
    )
    assert sorted(itertools.chain.from_iterable(wins.values())) == list(range(count))
    assert session._calls == session._watched == {}
    return len([name for name, won in wins.items() if won])


@pytest.mark.usefixtures("eager_switching")
def test_threads_open_and_answer_at_once():
    """Several callers on one session, each answered by another thread: every caller gets its own answers."""
    session = Session(itertools.count(), {"name": "t"}, {})
    session.adopt(REVISIONS["2026-07-28"])
    got = []

    def caller(name):
        for n in range(500):
            call = Call("tools/call")
            sent = json.loads(session.request(call, "tools/call", {"who": name, "n": n}))
            (event,) = session.receive(b'{"id":%d,"result":{"n":%d}}' % (sent["id"], n))
            assert event == Answered(call, {"n": n}, None)
            got.append(sent["id"])

    run_together(*[lambda name=name: caller(name) for name in range(4)])
    assert sorted(got) == list(range(2_000))


@pytest.mark.usefixtures("eager_switching")
def test_threads_deliver_the_same_request_of_the_server():
    """Two streams bring one request: it is asked once, and answered once."""
    session = Session(itertools.count(), {"name": "t"}, {})
    asked, answered = [], []

    def stream():
        for n in range(2_000):
            (event,) = session.receive(b'{"id":%d,"method":"ping"}' % n)
            if isinstance(event, Asked):
                asked.append(n)

    def handler():
        for n in range(2_000):
            if session.answer(n, {}) is not None:
                answered.append(n)

    run_together(stream, stream)
    assert sorted(asked) == list(range(2_000))
    run_together(handler, handler)
    assert sorted(answered) == list(range(2_000))
