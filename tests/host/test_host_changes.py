"""Servers that come, go and change while a host is open."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any, Callable, List

import pytest

from mcpsync import Backoff, ConfigError, ConnectionLost, Host, McpError, Timeouts
from tests.host.watching import DEMO, QUICK, Watch, entry, host_of, names, row
from tests.peers.scripted import peer


def guarded(gate: Path, command: List[str]) -> List[str]:
    """A command that starts the server while the gate exists, and else leaves a mark and exits with 5."""
    script = 'test -e "$0" || { echo x >> "$0.tried"; echo closed >&2; exit 5; }; exec "$@"'
    return ["/bin/sh", "-c", script, str(gate), *command]


def tries(gate: Path) -> int:
    """How often the server was started in vain."""
    mark = Path("%s.tried" % gate)
    return mark.read_text().count("x") if mark.exists() else 0


# --- tools/list_changed


@pytest.mark.parametrize("protocol", ["legacy", "modern"])
def test_a_changed_list_is_swapped_in(protocol: str) -> None:
    watch = Watch()
    with host_of({"demo": DEMO}, watch, protocol=protocol, debounce=0.01) as host:
        before = host.revision
        assert "mcp__demo__bonus" not in names(host)
        with pytest.raises(ConfigError, match="there is no tool"):
            host.call_tool("mcp__demo__bonus")
        host.call_tool("mcp__demo__toggle")
        watch.until(lambda: "mcp__demo__bonus" in names(host))
        assert host.revision == before + 1
        assert host.call_tool("mcp__demo__bonus").text == "a bonus"
        host.call_tool("mcp__demo__toggle")
        watch.until(lambda: "mcp__demo__bonus" not in names(host))
        assert host.revision == before + 2
        assert watch.revisions == sorted(set(watch.revisions))


def test_the_old_list_serves_while_the_new_one_is_fetched(tmp_path: Path) -> None:
    def growing(server: Any, request: Any, cursor: Any = None) -> Any:
        first = [{"name": "changed", "inputSchema": {"type": "object"}}]
        server.memory["listed"] = server.memory.get("listed", 0) + 1
        if server.memory["listed"] == 1:
            return {"tools": first}
        if cursor is None:
            return {"tools": first, "nextCursor": "2"}
        answer = {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}], "resultType": "complete"}
        server.after(0.3, lambda: server.send({"jsonrpc": "2.0", "id": request["id"], "result": answer}))
        return None

    server = peer(tmp_path, handlers={"tools/list": growing})
    watch = Watch()
    with host_of({"peer": entry(server.command)}, watch, debounce=0.01) as host:
        host.call_tool("mcp__peer__changed")
        server.wait_for("tools/list", 3)  # the second page is on its way
        assert names(host) == ["mcp__peer__changed"]
        watch.until(lambda: len(names(host)) == 2)


def test_a_list_that_comes_back_the_same_is_no_change(tmp_path: Path) -> None:
    server = peer(tmp_path)
    with host_of({"peer": entry(server.command)}, debounce=0.01) as host:
        before = host.revision
        host.call_tool("mcp__peer__changed", {"count": 5})
        server.wait_for("tools/list", 2)
        host.call_tool("mcp__peer__echo")
        assert host.revision == before
        assert len(server.received("tools/list")) == 2  # a burst is one change


def test_tools_are_swapped_and_withdrawn_while_the_users_loop_is_stuck(tmp_path: Path) -> None:
    stuck: List[Callable[[], None]] = []
    server = peer(tmp_path)
    with host_of({"peer": entry(server.command)}, callbacks=stuck.append, debounce=0.01, on_log=print) as host:
        host.call_tool("mcp__peer__changed", {"tool": "newcomer"})
        server.wait_for("tools/list", 2)
        while "mcp__peer__newcomer" not in names(host):  # nothing tells: the callbacks are stuck
            host.call_tool("mcp__peer__echo")
        os.kill(server.pids()[0], signal.SIGKILL)
        with pytest.raises(ConnectionLost):
            while True:
                host.call_tool("mcp__peer__echo")
        assert names(host) == []


# --- a server dies


@pytest.mark.timed
def test_b12_a_killed_server_is_withdrawn_and_comes_back_by_itself(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    watch = Watch()
    server = peer(tmp_path)
    servers = {"peer": entry(guarded(gate, server.command)), "demo": DEMO}
    with host_of(servers, watch, backoff=Backoff((0.3, 0.3, 0.3, 0.3, 0.3))) as host:
        everything = names(host)
        before = host.revision
        gate.unlink()
        os.kill(server.pids()[-1], signal.SIGKILL)
        watch.until(lambda: not row(host, "peer").ready)
        assert all(name.startswith("mcp__demo__") for name in names(host))
        assert [tool.name for tool in host.tools()] == everything  # known still, and not ready
        assert host.revision > before
        started = time.monotonic()
        with pytest.raises(ConnectionLost) as lost:
            host.call_tool("mcp__peer__echo", {"text": "x"})
        assert time.monotonic() - started < 0.1
        assert lost.value.next_attempt is None or lost.value.next_attempt <= 0.3
        status = row(host, "peer")
        assert status.state in ("waiting", "connecting")
        assert "peer" in str(status.error)
        assert host.call_tool("mcp__demo__echo", {"text": "unharmed"}).text == "unharmed"

        gate.touch()
        watch.until(lambda: names(host) == everything)
        assert host.call_tool("mcp__peer__echo", {"text": "back"}).text == "back"
        assert row(host, "peer").error is None


def test_after_a_restart_the_tools_are_fetched_anew(tmp_path: Path) -> None:
    def by_start(server: Any, request: Any, cursor: Any = None) -> Any:

        starts = (server._bell.parent / "record").read_text().count('"started"')
        return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("die", "start-%d" % starts)]}

    watch = Watch()
    server = peer(tmp_path, handlers={"tools/list": by_start})
    with host_of({"peer": entry(server.command)}, watch, backoff=QUICK) as host:
        assert names(host) == ["mcp__peer__die", "mcp__peer__start-1"]
        with pytest.raises(ConnectionLost):
            host.call_tool("mcp__peer__die")
        watch.until(lambda: names(host) == ["mcp__peer__die", "mcp__peer__start-2"])


@pytest.mark.parametrize("protocol", ["legacy", "modern"])
def test_a_dormant_server_keeps_its_tools_and_wakes_for_a_call(tmp_path: Path, protocol: str) -> None:
    server = peer(tmp_path)
    dormant = threading.Event()

    def for_server(name: str) -> Any:
        return {"on_state": lambda state: dormant.set() if state == "dormant" else None}

    timeouts = Timeouts(idle_disconnect=0.1)
    servers = {"peer": entry(server.command)}
    with host_of(servers, for_server=for_server, timeouts=timeouts, protocol=protocol) as host:
        assert dormant.wait(10)
        assert row(host, "peer").state == "dormant"
        assert "mcp__peer__echo" in names(host)
        assert host.call_tool("mcp__peer__echo", {"text": "awake"}).text == "awake"


def test_down_after_the_series_and_the_next_call_brings_it_back(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    watch, down = Watch(), threading.Event()

    def for_server(name: str) -> Any:
        return {"on_state": lambda state: down.set() if state == "down" else None}

    servers = {"peer": entry(guarded(gate, peer(tmp_path).command))}
    with host_of(servers, watch, backoff=Backoff((0.01, 0.01)), for_server=for_server, protocol="legacy") as host:
        gate.unlink()
        with pytest.raises(ConnectionLost):
            host.call_tool("mcp__peer__die")
        assert down.wait(10)
        status = row(host, "peer")
        assert (status.state, status.ready, status.next_attempt) == ("down", False, None)
        assert "code 5" in str(status.error)
        gate.touch()
        assert host.call_tool("mcp__peer__echo", {"text": "again"}).text == "again"
        watch.until(lambda: row(host, "peer").ready)


# --- the first connection


def test_a_first_connection_that_failed_is_tried_again(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    watch = Watch()
    servers = {"late": entry(guarded(gate, peer(tmp_path).command)), "good": DEMO}
    with host_of(servers, watch, backoff=Backoff((0.2,) * 5)) as host:
        status = row(host, "late")
        assert not status.ready
        assert "code 5; stderr: closed" in str(status.error)
        assert "may have executed" not in str(status.error)
        assert status.state == "connecting" or 0 <= (status.next_attempt or 0) <= 0.2
        gate.touch()
        watch.until(lambda: row(host, "late").ready)
        assert row(host, "late").error is None
        assert host.call_tool("mcp__late__echo", {"text": "better late"}).text == "better late"


def test_it_is_given_up_after_the_series_until_the_host_is_opened_again(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    gate_tried = threading.Event()
    lines: List[str] = []

    def stderr(line: str) -> None:
        lines.append(line)
        if len(lines) == 3:
            gate_tried.set()

    servers = {"late": entry(guarded(gate, peer(tmp_path).command))}
    with host_of(servers, backoff=Backoff((0.01, 0.01)), stderr=stderr, protocol="legacy") as host:
        assert gate_tried.wait(10)
        while row(host, "late").state != "down":  # the last attempt is ending: there is no event for that
            threading.Event().wait(0.01)
        assert tries(gate) == 3
        assert "code 5" in str(row(host, "late").error)
        assert row(host, "late").next_attempt is None
        gate.touch()
        host.open()
        assert row(host, "late").ready


def test_what_only_the_user_can_mend_is_not_tried_again(tmp_path: Path) -> None:
    plain = tmp_path / "server.py"
    plain.write_text("print()")
    servers = {
        "missing": {"command": "no-such-program"},
        "no-bit": {"command": str(plain)},
        "cwd": {**DEMO, "cwd": str(tmp_path / "nowhere")},
    }
    with host_of(servers, backoff=Backoff((0.01,))) as host:
        for status in host.status():
            assert (status.state, status.next_attempt) == ("down", None)
            assert status.error is not None
        plain.unlink()
        plain.symlink_to("/bin/true")
        host.open()
        assert "not executable" not in str(row(host, "no-bit").error)  # the user's own try is made


def test_a_revision_that_is_not_shared_is_not_tried_again(tmp_path: Path) -> None:
    server = peer(tmp_path, era="modern", supported=["2099-01-01"])
    with host_of({"peer": entry(server.command)}, backoff=Backoff((0.01,))) as host:
        status = row(host, "peer")
        assert (status.state, status.next_attempt) == ("down", None)
        assert "2099-01-01" in str(status.error)


def test_a_server_that_dies_while_it_connects_is_a_row(tmp_path: Path) -> None:
    server = peer(tmp_path, era="legacy", opening={"initialize": {"exit": 9}})
    with host_of({"peer": entry(server.command), "demo": DEMO}, protocol="legacy") as host:
        assert "code 9" in str(row(host, "peer").error)
        assert row(host, "demo").ready


def test_late_servers_join_when_open_has_returned() -> None:
    watch = Watch()
    late = entry(["/bin/sh", "-c", 'sleep 0.7; exec "$@"', "sh", DEMO["command"], *DEMO["args"]])
    with host_of({"late": late, "good": DEMO}, watch, connect_timeout=0.6) as host:
        assert not row(host, "late").ready
        watch.until(lambda: row(host, "late").ready)
        assert row(host, "late").error is None


# --- listings


def test_h2_pages_are_followed_and_what_never_ends_is_cut_and_explained(tmp_path: Path) -> None:
    servers = {
        kind: entry(peer(tmp_path, handlers={"tools/list": kind}).command)
        for kind in ("three_pages", "repeated_cursor", "endless_pages", "empty_cursor", "null_cursor")
    }
    with host_of(servers, page_limit=5) as host:
        rows = {status.name: status for status in host.status()}
        assert {name: status.tools for name, status in rows.items()} == {
            "three_pages": 6,
            "repeated_cursor": 1,
            "endless_pages": 5,
            "empty_cursor": 2,
            "null_cursor": 1,
        }
        assert all(status.ready for status in rows.values())
        assert "came back" in str(rows["repeated_cursor"].error)
        assert "more than 5 pages" in str(rows["endless_pages"].error)
        assert rows["repeated_cursor"].next_attempt is None
        assert rows["three_pages"].error is None


@pytest.mark.timed
def test_h2_a_page_that_hangs_is_bounded_and_tried_again(tmp_path: Path) -> None:
    server = peer(tmp_path, handlers={"tools/list": "page_two_hangs"})
    started = time.monotonic()
    with host_of({"peer": entry(server.command), "demo": DEMO}, timeouts=Timeouts(connect=1)) as host:
        assert time.monotonic() - started < 2
        assert row(host, "demo").ready
        status = row(host, "peer")
        assert (status.state, status.ready) == ("ready", False)
        assert "1 s" in str(status.error)


def test_a_listing_that_failed_is_tried_again(tmp_path: Path) -> None:
    def second_time(server: Any, request: Any, cursor: Any = None) -> Any:
        server.memory["asked"] = server.memory.get("asked", 0) + 1
        if server.memory["asked"] == 1:
            server.error(request, -32603, "not yet")
            return None
        return {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}

    watch = Watch()
    server = peer(tmp_path, handlers={"tools/list": second_time})
    with host_of({"peer": entry(server.command)}, watch, backoff=QUICK) as host:
        watch.until(lambda: names(host) == ["mcp__peer__echo"])
        assert len(server.events("started")) == 1


def test_a_server_without_tools_is_ready(tmp_path: Path) -> None:
    server = peer(tmp_path, capabilities={})
    with host_of({"peer": entry(server.command)}) as host:
        assert (row(host, "peer").ready, row(host, "peer").tools, row(host, "peer").error) == (True, 0, None)


def test_a_restart_during_the_listing_ends_with_the_tools_of_the_last_session(tmp_path: Path) -> None:
    def once_dead(server: Any, request: Any, cursor: Any = None) -> Any:
        import os

        starts = (server._bell.parent / "record").read_text().count('"started"')
        if starts == 1:
            os._exit(4)
        return {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}

    watch = Watch()
    server = peer(tmp_path, handlers={"tools/list": once_dead})
    with host_of({"peer": entry(server.command)}, watch, backoff=Backoff((0.001,) * 5)) as host:
        watch.until(lambda: names(host) == ["mcp__peer__echo"])


# --- what is told


def test_on_tools_changed_is_told_in_order_and_once_for_a_burst(tmp_path: Path) -> None:
    begun, go_on = threading.Event(), threading.Event()
    told: List[int] = []

    def slow(revision: int) -> None:
        told.append(revision)
        begun.set()
        assert go_on.wait(10)

    host = Host.from_config(
        {"mcpServers": {"a": DEMO, "b": DEMO, "c": DEMO, "d": DEMO}}, on_tools_changed=slow, approve=lambda _: "once"
    )
    try:
        host.open()
        assert begun.wait(10)
        assert len(told) == 1
        assert host.revision == 4
    finally:
        go_on.set()
        host.close()
    # The first is that of the moment at which the callback's thread ran. What came meanwhile is told at once, and
    # nothing once it is closed.
    assert 1 <= told[0] <= 4
    assert told[1:] in ([], [4])


def test_a_callback_that_raises_or_uses_the_host_harms_nothing() -> None:
    seen: List[Any] = []
    both = threading.Event()

    def careless(revision: int) -> None:
        try:
            seen.append(host.call_tool("mcp__demo__add", {"a": revision, "b": 0}).structured)
        except McpError as error:
            seen.append(error)
        if len(seen) == 2:
            both.set()
        raise RuntimeError("careless")

    host = Host.from_config(
        {"mcpServers": {"demo": DEMO}}, on_tools_changed=careless, debounce=0.01, approve=lambda _: "once"
    )
    with host:
        host.call_tool("mcp__demo__toggle")
        assert both.wait(10)
        assert host.call_tool("mcp__demo__echo", {"text": "fine"}).text == "fine"
    assert seen == [{"sum": 1}, {"sum": 2}]
