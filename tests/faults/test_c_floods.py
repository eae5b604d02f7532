"""FAULTS.md C9, C13: too much comes in, and nothing goes out."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Any, List

import pytest

import mcpsync
from mcpsync import Overloaded, RequestCancelled, RequestTimeout, Timeouts
from tests.faults.watch import took
from tests.peers.scripted import peer

FLOOD = 10_000
MEGABYTE = 1_000_000


@pytest.mark.alone
@pytest.mark.timed
@pytest.mark.parametrize("progress", [False, True])
@pytest.mark.parametrize("handler", ["none", "slow"])
def test_c9_ten_thousand_notifications_before_the_answer(tmp_path: Path, handler: str, progress: bool) -> None:
    release = threading.Event()

    def slow(*anything: Any) -> None:
        release.wait(0.05)

    server = peer(tmp_path)
    options = {} if handler == "none" or progress else {"on_log": slow, "on_notification": slow}
    with mcpsync.connect(server.command, **options) as client:
        on_progress = slow if progress and handler == "slow" else None
        with took() as answered:
            result = client.call_tool("flood", {"count": FLOOD, "progress": progress}, on_progress=on_progress)
        assert result.text == "flooded"
        assert answered.seconds < 4  # 500 s of handlers wait
        with took() as other:
            client.call_tool("echo")
        assert other.seconds < 0.5
        release.set()


def test_c9_all_progress_arrives_in_order(tmp_path: Path) -> None:
    seen: List[float] = []
    done = threading.Event()

    def note(progress: mcpsync.types.Progress) -> None:
        seen.append(progress.progress)
        if progress.progress == FLOOD:
            done.set()

    server = peer(tmp_path)
    with mcpsync.connect(server.command) as client:
        client.call_tool("flood", {"count": FLOOD, "progress": True}, on_progress=note)
        assert done.wait(10)
    assert seen == list(range(1, FLOOD + 1))


def test_c9_what_waits_is_bounded_and_the_latest_wins(tmp_path: Path) -> None:
    gate, seen = threading.Event(), []
    last = threading.Event()

    def note(progress: mcpsync.types.Progress) -> None:
        gate.wait(10)
        seen.append(progress.progress)
        if progress.progress == 1_000:
            last.set()

    server = peer(tmp_path)
    with mcpsync.connect(server.command, limits=mcpsync.Limits(waiting=10)) as client:
        client.call_tool("flood", {"count": 1_000, "progress": True}, on_progress=note)
        gate.set()
        assert last.wait(5)
    assert len(seen) <= 12 and seen == sorted(seen)


@pytest.mark.timed
@pytest.mark.parametrize("size", [10, 3_000, 200_000])
def test_c13_full_pipe_and_a_timeout_of_one_second(tmp_path: Path, size: int) -> None:
    server = peer(tmp_path)
    with mcpsync.connect(server.command) as client:
        client.call_tool("stop_reading")
        filler = client.submit("length", {"text": "x" * 300_000})
        with took() as late, pytest.raises(RequestTimeout):
            client.call_tool("length", {"text": "y" * size}, timeout=1)
        assert 1 <= late.seconds < 1.2
        assert not filler.done()


@pytest.mark.timed
def test_c13_frames_are_whole_when_the_pipe_revives(tmp_path: Path) -> None:
    server = peer(tmp_path)
    with mcpsync.connect(server.command) as client:
        client.call_tool("stop_reading", {"seconds": 1.5})
        sizes = [200_000, 10, 5_000, 100_000, 1]
        calls = [client.submit("length", {"text": "x" * size}) for size in sizes]
        with pytest.raises(RequestTimeout):
            client.call_tool("echo", {"text": "never begun"}, timeout=0.3)
        with pytest.raises(RequestTimeout):
            client.call_tool("length", {"text": "z" * 100_000}, timeout=0.3)
        assert [call.result(timeout=10).text for call in calls] == [str(size) for size in sizes]
        assert client.call_tool("echo", {"text": "whole"}).text == "whole"
    assert server.events("torn") == []
    assert server.received("notifications/cancelled") == []  # neither of the two ever began
    texts = [call["params"]["arguments"].get("text", "") for call in server.received("tools/call")]
    assert [len(text) for text in texts if text] == [*sizes, len("whole")]


@pytest.mark.timed
def test_c13_a_frame_that_had_begun_is_finished_and_cancelled(tmp_path: Path) -> None:
    server = peer(tmp_path)
    with mcpsync.connect(server.command) as client:
        client.call_tool("stop_reading", {"seconds": 1.0})
        with took() as late, pytest.raises(RequestTimeout):
            client.call_tool("length", {"text": "x" * 300_000}, timeout=0.3)
        assert late.seconds < 0.5
        (cancelled,) = server.wait_for("notifications/cancelled")
        assert client.call_tool("echo", {"text": "whole"}).text == "whole"
    assert server.events("torn") == []
    (big,) = [call for call in server.received("tools/call") if call["params"]["name"] == "length"]
    assert cancelled["params"]["requestId"] == big["id"]


@pytest.mark.timed
def test_c13_submit_never_waits_for_room(tmp_path: Path) -> None:
    server = peer(tmp_path)
    with mcpsync.connect(server.command, timeouts=Timeouts(close=2)) as client:
        client.call_tool("stop_reading")
        text = "x" * 10 * MEGABYTE
        calls = [client.submit("length", {"text": text}) for _ in range(6)]
        with took() as refused, pytest.raises(Overloaded, match="does not read its input") as error:
            client.submit("length", {"text": text})
        assert refused.seconds < 1.5  # the encoding of 10 MB, no wait
        assert error.value.method == "tools/call"
        with took() as late, pytest.raises((RequestTimeout, Overloaded)):
            client.call_tool("length", {"text": text}, timeout=0.5)
        assert late.seconds < 0.8
        with took() as late, pytest.raises((RequestTimeout, Overloaded)):
            client.call_tool("length", {"text": text}, timeout=Timeouts(call=30, total=0.5))
        assert late.seconds < 0.8
        assert calls[-1].cancel()  # makes room
        again = client.submit("length", {"text": text})
        assert again.cancel()
        with pytest.raises(RequestCancelled):
            again.result(timeout=0)


@pytest.mark.timed
def test_c13_interrupted_while_it_waits_for_room(tmp_path: Path) -> None:
    server = peer(tmp_path)
    with mcpsync.connect(server.command, timeouts=Timeouts(close=2)) as client:
        client.call_tool("stop_reading", {"seconds": 1.5})
        calls = [client.submit("length", {"text": "x" * 10 * MEGABYTE}) for _ in range(6)]
        main = threading.main_thread().ident
        assert main is not None
        timer = threading.Timer(0.3, lambda: signal.pthread_kill(main, signal.SIGINT))
        timer.start()
        with took() as interrupted, pytest.raises(KeyboardInterrupt):
            client.call_tool("length", {"text": "y" * 10 * MEGABYTE}, timeout=20)
        timer.join()
        assert interrupted.seconds < 1
        assert [call.result(timeout=20).text for call in calls] == [str(10 * MEGABYTE)] * 6
        assert client.call_tool("echo", {"text": "whole"}).text == "whole"
    assert server.events("torn") == []


@pytest.mark.timed
@pytest.mark.own_methods("notifications/example")
def test_c13_notifications_are_bounded_too(tmp_path: Path) -> None:
    server = peer(tmp_path)
    with mcpsync.connect(server.command, timeouts=Timeouts(call=0.5, close=2)) as client:
        client.call_tool("stop_reading")
        big = {"data": "x" * 30 * MEGABYTE}
        client.notify("notifications/example", big)
        client.notify("notifications/example", big)
        with took() as refused, pytest.raises(Overloaded):
            client.notify("notifications/example", big)
        assert refused.seconds < 1


@pytest.mark.timed
def test_c13_a_server_that_writes_and_does_not_read_is_still_read(tmp_path: Path) -> None:
    """Both pipes full at once must not be a deadlock."""
    server = peer(tmp_path)
    with mcpsync.connect(server.command) as client:
        calls = [client.submit("length", {"text": "x" * 100_000}) for _ in range(20)]
        calls += [client.submit("large", {"size": 1_000_000}) for _ in range(10)]
        calls += [client.submit("length", {"text": "x" * 100_000}) for _ in range(20)]
        assert [len(call.result(timeout=20).text) for call in calls] == [6] * 20 + [1_000_000] * 10 + [6] * 20
