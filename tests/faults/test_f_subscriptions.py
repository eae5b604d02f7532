"""FAULTS.md B12, F: subscriptions of both eras, their loss and return; listings that change in storms."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any, Dict, List

import pytest

import mcpsync
from mcpsync import Backoff, McpError, ProtocolError, RequestTimeout, RpcError
from tests.faults.watch import Seen, sleeps, took
from tests.peers.scripted import Peer, peer

ERAS = ["legacy", "modern"]
SOON = Backoff((0.05,) * 5)
LISTEN = "subscriptions/listen"


def _kill(server: Peer) -> None:
    os.kill(server.alive()[-1], signal.SIGKILL)


def _filters(server: Peer) -> List[Dict[str, Any]]:
    return [each["params"]["notifications"] for each in server.received(LISTEN)]


def _told(server: Peer) -> List[Dict[str, Any]]:
    return [each for each in server.received() if each.get("method") in (LISTEN, "notifications/cancelled")]


def _ignore(items: Any) -> None:
    pass


@pytest.mark.parametrize("era", ERAS)
def test_f_updates_arrive_until_unsubscribed(tmp_path: Path, era: str) -> None:
    server = peer(tmp_path, era=era)
    seen = Seen()
    with mcpsync.connect(server.command) as client:
        client.subscribe_resource("file:///a", seen)
        client.call_tool("updated", {"uri": "file:///a"})
        client.call_tool("updated", {"uri": "file:///other"})
        seen.wait_count(1)
        client.unsubscribe_resource("file:///a")
        client.call_tool("updated", {"uri": "file:///a"})
        client.call_tool("echo")
    assert seen.items == ["file:///a"]


def test_f_modern_union_of_filters_and_its_successors(tmp_path: Path) -> None:
    server = peer(tmp_path, era="modern")
    with mcpsync.connect(server.command, on_tools_changed=_ignore) as client:
        client.subscribe_resource("file:///a")
        client.subscribe_resource("file:///b")
        client.subscribe_resource("file:///b")
        client.unsubscribe_resource("file:///a")
        client.call_tool("echo")
        lists = {"toolsListChanged": True}
        assert _filters(server) == [
            lists,
            {**lists, "resourceSubscriptions": ["file:///a"]},
            {**lists, "resourceSubscriptions": ["file:///a", "file:///b"]},
            {**lists, "resourceSubscriptions": ["file:///b"]},
        ]
        listens = [each["id"] for each in server.received(LISTEN)]
        cancels = [each["params"]["requestId"] for each in server.wait_for("notifications/cancelled", 3)]
        assert cancels == listens[:-1]
        # each is ended after its successor was opened, so that nothing is missed
        order = [each.get("id", each.get("params", {}).get("requestId")) for each in _told(server)]
        for one, next_one in zip(listens, listens[1:]):
            ended = len(order) - 1 - order[::-1].index(one)
            assert order.index(next_one) < ended


def test_f_modern_nothing_wanted_means_no_stream(tmp_path: Path) -> None:
    server = peer(tmp_path, era="modern")
    with mcpsync.connect(server.command) as client:
        client.call_tool("echo")
        assert server.received(LISTEN) == []
        client.subscribe_resource("file:///a")
        client.unsubscribe_resource("file:///a")
        server.wait_for("notifications/cancelled")
        assert len(server.received(LISTEN)) == 1


@pytest.mark.parametrize("era", ERAS)
def test_f_many_threads_subscribe_at_once(tmp_path: Path, era: str) -> None:
    server = peer(tmp_path, era=era)
    seen, failures = Seen(), Seen()
    gate = threading.Barrier(8)

    def subscribe(number: int) -> None:
        gate.wait()
        try:
            client.subscribe_resource("file:///%d" % number, seen)
        except McpError as error:
            failures(error)

    with mcpsync.connect(server.command) as client:
        threads = [threading.Thread(target=subscribe, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures.items == []
        client.call_tool("echo")
        if era == "modern":
            listens = {each["id"]: each["params"]["notifications"] for each in server.received(LISTEN)}
            for cancel in server.wait_for("notifications/cancelled", len(listens) - 1):
                del listens[cancel["params"]["requestId"]]
            (standing,) = listens.values()
            assert len(standing["resourceSubscriptions"]) == 8
        for number in range(8):
            client.call_tool("updated", {"uri": "file:///%d" % number})
        seen.wait_count(8)
    assert sorted(seen.items) == ["file:///%d" % number for number in range(8)]


def test_f_modern_partial_acknowledgement(tmp_path: Path) -> None:
    def only_a(server: Any, request: Any, notifications: Any) -> None:
        granted = dict(notifications)
        granted["resourceSubscriptions"] = [
            uri for uri in notifications.get("resourceSubscriptions", []) if uri.endswith("a")
        ]
        server.acknowledge(request, granted)

    server = peer(tmp_path, era="modern", handlers={LISTEN: only_a})
    seen = Seen()
    with mcpsync.connect(server.command) as client:
        client.subscribe_resource("file:///a", seen)
        for _ in range(2):
            with pytest.raises(ProtocolError, match="grants no subscription to file:///b"):
                client.subscribe_resource("file:///b", seen)
        client.call_tool("updated", {"uri": "file:///a"})
        client.call_tool("updated", {"uri": "file:///b"})
        seen.wait_count(1)
        client.call_tool("echo")
    assert seen.items == ["file:///a"]


def test_f_modern_refused_subscription(tmp_path: Path) -> None:
    def refuse(server: Any, request: Any, notifications: Any) -> None:
        server.error(request, -32000, "no subscriptions today")

    server = peer(tmp_path, era="modern", handlers={LISTEN: refuse})
    with mcpsync.connect(server.command, on_tools_changed=_ignore) as client:
        with pytest.raises(RpcError, match="no subscriptions today"):
            client.subscribe_resource("file:///a")
        assert client.call_tool("echo", {"text": "on"}).text == "on"


@pytest.mark.timed
def test_f_modern_no_acknowledgement_in_time(tmp_path: Path) -> None:
    server = peer(tmp_path, era="modern", handlers={LISTEN: "silent_method"})
    with mcpsync.connect(server.command) as client:
        with took() as ended, pytest.raises(RequestTimeout, match="not acknowledged in time"):
            client.subscribe_resource("file:///a", timeout=0.3)
        assert 0.3 <= ended.seconds < 0.5
        (cancelled,) = server.wait_for("notifications/cancelled")
        assert cancelled["params"]["requestId"] == server.received(LISTEN)[0]["id"]


def test_f_modern_server_ends_the_stream(tmp_path: Path) -> None:
    def end_all(server: Any, request: Any) -> str:
        for request_id in list(server.subscriptions):
            server.end_subscription(request_id)
        return "ended"

    server = peer(tmp_path, end_all, era="modern")
    seen, tools = Seen(), Seen()
    with mcpsync.connect(server.command, on_tools_changed=tools, debounce=0.05, backoff=SOON) as client:
        client.subscribe_resource("file:///a", seen)
        client.call_tool("end_all")
        tools.wait_count(1)  # the gap counts as a change
        assert _filters(server)[-1] == {"toolsListChanged": True, "resourceSubscriptions": ["file:///a"]}
        client.call_tool("updated", {"uri": "file:///a"})
        seen.wait_count(1)


def test_f_modern_server_that_ends_each_stream_is_given_up(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    server = peer(tmp_path, era="modern", handlers={LISTEN: "listen_and_end"})
    five = Backoff((0.2,) * 5)
    with mcpsync.connect(server.command, on_tools_changed=_ignore, backoff=five) as client:
        server.wait_for(LISTEN, 6)
        threading.Event().wait(0.5)
        client.call_tool("echo")
        assert len(server.received(LISTEN)) == 6
    assert any("again and again" in record.getMessage() for record in caplog.records)


def test_f_modern_server_cancels_the_stream(tmp_path: Path) -> None:
    def cancel_all(server: Any, request: Any) -> str:
        for request_id in list(server.subscriptions):
            del server.subscriptions[request_id]
            server.notify("notifications/cancelled", {"requestId": request_id})
        return "cancelled"

    server = peer(tmp_path, cancel_all, era="modern")
    with mcpsync.connect(server.command, on_tools_changed=_ignore, backoff=SOON) as client:
        client.call_tool("cancel_all")
        server.wait_for(LISTEN, 2)


def test_f_modern_a_notification_before_the_acknowledgement(tmp_path: Path) -> None:
    server = peer(tmp_path, era="modern", handlers={LISTEN: "listen_too_early"})
    tools = Seen()
    with mcpsync.connect(server.command, on_tools_changed=tools, debounce=0.05) as client:
        tools.wait_count(1)
        assert client.call_tool("echo", {"text": "on"}).text == "on"


@pytest.mark.parametrize("era", ERAS)
def test_f_subscriptions_are_restored_after_a_loss(tmp_path: Path, era: str) -> None:
    server = peer(tmp_path, era=era)
    seen, tools, states = Seen(), Seen(), Seen()
    with mcpsync.connect(
        server.command, on_tools_changed=tools, on_state=states, debounce=0.05, backoff=SOON
    ) as client:
        client.subscribe_resource("file:///a", seen)
        _kill(server)
        tools.wait_count(1)  # the gap counts as a change: listed anew
        states.wait_for("ready", 2)
        client.call_tool("updated", {"uri": "file:///a"})
        seen.wait_for("file:///a")
        client.call_tool("changed", {"tool": "brand-new"})
        tools.wait(lambda lists: any("brand-new" in [tool.name for tool in each] for each in lists))


def test_f_legacy_one_refused_restore_does_not_stop_the_others(tmp_path: Path) -> None:
    def refuse_b_later(server: Any, request: Any, uri: str) -> Any:
        import os

        mark = os.path.join(os.path.dirname(server._bell), "second-life-" + uri[-1])
        if uri.endswith("b") and os.path.exists(mark):
            server.error(request, -32002, "gone")
            return None
        open(mark, "w").close()
        return {}

    server = peer(tmp_path, era="legacy", handlers={"resources/subscribe": refuse_b_later})
    seen, states = Seen(), Seen()
    with mcpsync.connect(server.command, on_state=states, backoff=SOON) as client:
        for name in "abc":
            client.subscribe_resource("file:///" + name, seen)
        _kill(server)
        server.wait_for("resources/subscribe", 6)
        client.call_tool("updated", {"uri": "file:///c"})
        seen.wait_for("file:///c")


@pytest.mark.parametrize("era", ERAS)
def test_f_a_server_without_subscriptions(tmp_path: Path, era: str) -> None:
    server = peer(tmp_path, era=era, capabilities={"tools": {}, "resources": {}})
    with mcpsync.connect(server.command, on_tools_changed=_ignore) as client:
        with pytest.raises(mcpsync.MethodNotFound):
            client.subscribe_resource("file:///a")
        assert server.received(LISTEN) == []


# -- listings that change --------------------------------------------------------------------------------------


@pytest.mark.parametrize("era", ERAS)
def test_f_a_storm_of_changes_is_one_listing(tmp_path: Path, era: str) -> None:
    server = peer(tmp_path, era=era)
    tools = Seen()
    with mcpsync.connect(server.command, on_tools_changed=tools, debounce=0.5) as client:
        woken = sum(sleeps("watchdog").values())
        client.call_tool("changed", {"count": 2_000, "tool": "brand-new"})
        (listed,) = tools.wait_count(1)
        assert "brand-new" in [tool.name for tool in listed]
        client.call_tool("sleep", {"seconds": 1.2})
        assert len(tools.items) == 1
        assert len(server.received("tools/list")) == 1
        assert sum(sleeps("watchdog").values()) - woken < 20


@pytest.mark.timed
def test_f_changes_without_end_do_not_put_the_listing_off_for_ever(tmp_path: Path) -> None:
    def restless(server: Any, request: Any, seconds: float) -> None:
        import time

        end = time.monotonic() + seconds

        def tick() -> None:
            server.announce("notifications/tools/list_changed")
            if time.monotonic() < end:
                server.after(0.02, tick)
            else:
                server.text(request, "calm")

        tick()

    server = peer(tmp_path, restless)
    tools = Seen()
    with mcpsync.connect(server.command, on_tools_changed=tools, debounce=0.05) as client:
        client.call_tool("restless", {"seconds": 2.0})
        assert 2 <= len(tools.items) <= 6


def test_f_the_newest_listing_comes_last(tmp_path: Path) -> None:
    """A first fetch that is slow must not overtake, or be overtaken by, a second."""

    def slow_first(server: Any, request: Any, cursor: Any = None) -> None:
        number = server.memory["listings"] = server.memory.get("listings", 0) + 1
        names = ["listing-%d" % number]
        result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}
        server.after(0.5 if number == 1 else 0.0, lambda: server.result(request, result))

    server = peer(tmp_path, handlers={"tools/list": slow_first})
    tools = Seen()
    with mcpsync.connect(server.command, on_tools_changed=tools, debounce=0.05) as client:
        client.call_tool("changed")
        server.wait_for("tools/list")
        client.call_tool("changed")
        tools.wait_count(2)
        assert [[tool.name for tool in each] for each in tools.items] == [["listing-1"], ["listing-2"]]


@pytest.mark.timed
def test_f_listings_are_fetched_off_the_reader(tmp_path: Path) -> None:
    """Neither a listing that hangs nor a callback that blocks delays an answer."""
    release = threading.Event()
    server = peer(tmp_path, handlers={"prompts/list": "silent_method"})
    threads = Seen()

    def block(items: Any) -> None:
        threads(threading.current_thread().name)
        release.wait(10)

    with mcpsync.connect(server.command, on_tools_changed=block, on_prompts_changed=_ignore, debounce=0.02) as client:
        client.call_tool("changed", {"what": "prompts"})
        client.call_tool("changed", {"what": "tools"})
        server.wait_for("prompts/list")
        (name,) = threads.wait_count(1)
        assert "reader" not in name and "watchdog" not in name
        with took() as answered:
            client.call_tool("echo")
        assert answered.seconds < 0.2
        release.set()


def test_f_a_listing_that_fails_is_logged_and_forgotten(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def refuse(server: Any, request: Any) -> None:
        server.error(request, -32603, "cannot list")

    server = peer(tmp_path, handlers={"tools/list": refuse})
    tools = Seen()
    logged = threading.Event()
    with mcpsync.connect(server.command, on_tools_changed=tools, debounce=0.02) as client:
        client.call_tool("changed")
        end = time.monotonic() + 5
        while not any("cannot list" in record.getMessage() for record in caplog.records):
            assert time.monotonic() < end
            logged.wait(0.01)
        client.call_tool("changed")
        server.wait_for("tools/list", 2)
    assert tools.items == []
