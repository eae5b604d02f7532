"""A1 to A7, A10, A15, A16: a client that blocks, wherever it is used."""

from __future__ import annotations

import json
import logging
import os
import pickle
import random
import resource
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable, Iterator, List

import pytest

import mcpsync
from mcpsync import ClientClosed, ConnectFailed, ConnectionLost, ProcessExited, Timeouts
from tests.faults.program import run
from tests.faults.watch import took
from tests.peers.scripted import peer

ERAS = ["legacy", "modern"]


# -- A1 --------------------------------------------------------------------------------------------------------


def lives_without_asyncio(folder: str, command: List[str]) -> None:
    import json
    import sys

    class NoAsyncio:
        def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
            if name.partition(".")[0] == "asyncio":
                raise ImportError("there is no asyncio")

    sys.meta_path.insert(0, NoAsyncio())  # type: ignore[arg-type]
    import mcpsync
    from mcpsync.transport.memory import ExchangeServer, StreamServer

    def answer(data: bytes, send: Any) -> None:
        message = json.loads(data)
        results = {
            "server/discover": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}},
            "tools/list": {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [{"type": "text", "text": "yes"}]},
        }
        if "id" in message:
            result = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **results[message["method"]]}
            send(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode())

    def serve(client: Any) -> None:
        for data in client:
            answer(data, client.send)

    def checked(target: Any, **options: Any) -> None:
        with mcpsync.connect(target, **options) as client:
            assert client.list_tools()
            assert client.call_tool("echo", {"text": "yes"}).text == "yes"
            assert client.submit("echo", {"text": "yes"}).result().text == "yes"

    for era in ("legacy", "modern"):
        checked(command, protocol=era)
        checked([sys.executable, "-m", "mcpsync.demo"], protocol=era)
    checked(StreamServer(serve))
    checked(ExchangeServer(lambda exchange: answer(exchange.request.data, exchange.send)))
    assert "asyncio" not in sys.modules


def test_a1_without_asyncio(tmp_path: Path) -> None:
    run(lives_without_asyncio, str(tmp_path), peer(tmp_path).command).check()


# -- A2 --------------------------------------------------------------------------------------------------------


def works_inside_a_loop(folder: str, command: List[str]) -> None:
    import asyncio
    import threading

    import mcpsync

    class Cell:
        """Calls when it is collected, on whatever thread that happens."""

        def __init__(self, client: Any, out: List[str]) -> None:
            self.client, self.out, self.itself = client, out, self

        def __del__(self) -> None:
            self.out.append(self.client.call_tool("echo", {"text": "del"}).text)

    async def kernel(cells: List[str]) -> None:
        """As an IPython kernel runs them: compiled, on the thread of its running loop."""
        names = {"command": command}
        for cell in cells:
            exec(compile(cell, "<cell>", "exec"), names)
            await asyncio.sleep(0)

    async def main() -> None:
        with mcpsync.connect(command) as client:
            assert client.call_tool("echo", {"text": "loop"}).text == "loop"
            assert client.submit("echo", {"text": "loop"}).result().text == "loop"
            awaited = await asyncio.wrap_future(client.submit("echo", {"text": "awaited"}))
            assert awaited.text == "awaited"
            loop = asyncio.get_running_loop()
            there = await loop.run_in_executor(None, client.call_tool, "echo", {"text": "executor"})
            assert there.text == "executor"

    asyncio.run(main())
    asyncio.run(
        kernel(
            [
                "import mcpsync; client = mcpsync.connect(command)",
                "assert client.call_tool('echo', {'text': 'cell'}).text == 'cell'",
                "tools = client.list_tools()",
                "client.close()",
            ]
        )
    )
    with mcpsync.connect(command) as client:
        out: List[str] = []

        def collect() -> None:
            import gc

            Cell(client, out)
            gc.collect()

        collect()
        thread = threading.Thread(target=collect)
        thread.start()
        thread.join()
        assert out == ["del", "del"]


def test_a2_inside_a_running_loop(tmp_path: Path) -> None:
    run(works_inside_a_loop, str(tmp_path), peer(tmp_path).command).check()


def collects_in_the_middle_of_everything(folder: str, command: List[str], mode: str) -> None:
    import gc
    import sys
    import threading

    import mcpsync

    class Late:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            try:
                if client.call_tool("echo", {"text": "late"}).text != "late":
                    failures.append("another answer")
                client.submit("echo", {"text": "later"}, timeout=30)
                made.append(1)
            except RuntimeError as error:  # the collector ran on a thread of the connection
                refused.append(str(error))

    failures: List[str] = []
    refused: List[str] = []
    made: List[int] = []
    client = mcpsync.connect(command, name="peer", callbacks=mode)
    gc.set_threshold(7)

    def use() -> None:
        for number in range(60):
            Late()
            text = str(number)
            got = []
            if client.call_tool("echo", {"text": text}, on_progress=got.append).text != text:
                failures.append("another answer")
            if client.submit("echo", {"text": text}).result().text != text:
                failures.append("another answer")

    users = [threading.Thread(target=use) for _ in range(6)]
    for user in users:
        user.start()
    for user in users:
        user.join()
    gc.set_threshold(700)
    gc.collect()
    client.close()
    assert failures == [], failures
    assert len(made) + len(refused) == 360
    assert all("must never wait" in each for each in refused)
    sys.exit(0)


@pytest.mark.parametrize("mode", ["pool", "caller"])
def test_a2_del_in_the_middle_of_any_call(tmp_path: Path, mode: str) -> None:
    """With a collection every few allocations, __del__ runs under each lock that there is."""
    run(collects_in_the_middle_of_everything, str(tmp_path), peer(tmp_path).command, mode).check()


def test_a2_del_on_a_thread_of_the_connection(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    """It cannot wait there: it raises at once, and the connection goes on."""
    outcome: List[BaseException] = []
    threads: List[str] = []

    class Late:
        def __del__(self) -> None:
            threads.append(threading.current_thread().name)
            try:
                client.call_tool("echo")
            except RuntimeError as error:
                outcome.append(error)
            client.close()

    late: List[Any] = [Late()]
    heard = threading.Event()

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:  # the reader logs the lines of stderr
            late.clear()
            heard.set()

    log, listener = logging.getLogger("mcpsync.server.peer"), Listener()
    log.addHandler(listener)
    log.setLevel(logging.DEBUG)
    client = mcpsync.connect(peer(tmp_path).command, name="peer")
    with suppress(ClientClosed):  # it may be closed before the answer comes
        client.call_tool("write_stderr", {"size": 80})
    assert heard.wait(10)
    log.removeHandler(listener)
    log.setLevel(logging.NOTSET)
    assert threads == ["mcpsync-peer-reader"]
    assert [type(error) for error in outcome] == [RuntimeError]
    with took() as closed:
        client.close()  # with the one that __del__ asked for, whichever is first: neither waits for the other's thread
    assert closed.seconds < 5
    assert client.state == "closed"


# -- A3 --------------------------------------------------------------------------------------------------------


def uses(client: mcpsync.Client) -> Iterator[Callable[[], Any]]:
    yield lambda: client.call_tool("echo")
    yield lambda: client.submit("echo")
    yield client.list_tools
    yield lambda: next(client.iter_tools())
    yield client.list_resources
    yield client.list_resource_templates
    yield client.list_prompts
    yield lambda: client.read_resource("item:1")
    yield lambda: client.get_prompt("item")
    yield lambda: client.complete(mcpsync.types.PromptReference(name="x"), "a", "b")
    yield lambda: client.subscribe_resource("item:1")
    yield lambda: client.set_logging_level("info")
    yield client.ping
    yield client.roots_changed
    yield lambda: client.request("tools/list")
    yield lambda: client.notify("notifications/x")
    yield client.open
    yield client.reconnect


@pytest.mark.timed
def test_a3_use_after_the_with_block(tmp_path: Path) -> None:
    with mcpsync.connect(peer(tmp_path).command, name="peer") as client:
        call_tool = client.call_tool
        tools = client.iter_tools()
    for use in (lambda: call_tool("echo"), lambda: next(tools), *uses(client)):
        start = time.monotonic()
        with pytest.raises(ClientClosed, match=r"'peer': .*client is closed"):
            use()
        assert time.monotonic() - start < 0.1
    with pytest.raises(ClientClosed), client:
        pytest.fail("it was opened again")


def test_a3_a_call_that_close_overtakes(tmp_path: Path) -> None:
    """Whatever moment a call is in when the client is closed: it answers, or it raises ClientClosed."""
    for round in range(10):
        client = mcpsync.connect(peer(tmp_path).command, name="peer")
        ended: List[object] = []

        def use(client: mcpsync.Client = client, ended: List[object] = ended) -> None:
            try:
                while True:
                    client.call_tool("echo")
            except Exception as error:
                ended.append(error)

        users = [threading.Thread(target=use) for _ in range(4)]
        for user in users:
            user.start()
        time.sleep(0.002 * round)  # the moment is what is tried
        client.close()
        for user in users:
            user.join()
        assert [type(each) for each in ended] == [ClientClosed] * 4, ended


# -- A4 --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("interval", [0.005, 1e-6])
@pytest.mark.parametrize("mode", ["pool", "caller"])
@pytest.mark.parametrize("era", ERAS)
def test_a4_each_caller_gets_its_own_answer(tmp_path: Path, era: str, mode: str, interval: float) -> None:
    wrong: List[object] = []
    before = sys.getswitchinterval()
    sys.setswitchinterval(interval)
    try:
        with mcpsync.connect(peer(tmp_path, era=era).command, callbacks=mode) as client:

            def use(number: int) -> None:
                for at in range(50):
                    text = "%d/%d" % (number, at)
                    try:
                        if at % 5 == 4:
                            got = client.submit("jumbled", {"text": text}).result()
                        else:
                            got = client.call_tool("jumbled", {"text": text})
                        if got.text != text:
                            wrong.append((text, got.text))
                    except Exception as error:
                        wrong.append(error)

            users = [threading.Thread(target=use, args=(number,)) for number in range(32)]
            for user in users:
                user.start()
            for user in users:
                user.join()
    finally:
        sys.setswitchinterval(before)
    assert wrong == []


# -- A6 --------------------------------------------------------------------------------------------------------


@pytest.mark.timed
@pytest.mark.parametrize("interval", [0.005, 1e-6])
def test_a6_closed_in_another_order_by_other_threads(tmp_path: Path, interval: float) -> None:
    servers = [peer(tmp_path) for _ in range(3)]
    clients = [mcpsync.connect(server.command) for server in servers]
    ended: List[object] = []

    def wait_for_an_answer() -> None:
        try:
            clients[1].call_tool("silent")
        except Exception as error:
            ended.append(error)

    waiting = [threading.Thread(target=wait_for_an_answer) for _ in range(8)]
    for thread in waiting:
        thread.start()
    futures = [clients[1].submit("silent") for _ in range(2)]
    servers[1].wait_for("tools/call", 10)
    before = sys.getswitchinterval()
    sys.setswitchinterval(interval)
    start = time.monotonic()
    try:
        closing = [threading.Thread(target=clients[number].close) for number in (0, 2, 1)]
        closing.append(threading.Thread(target=clients[1].close))
        for thread in closing:
            thread.start()
        for thread in (*waiting, *closing):
            thread.join(5)
    finally:
        sys.setswitchinterval(before)
    assert time.monotonic() - start < 2
    assert [type(error) for error in ended] == [ClientClosed] * 8
    assert [type(future.exception(0)) for future in futures] == [ClientClosed] * 2
    assert [each for server in servers for each in server.alive()] == []
    start = time.monotonic()
    for client in clients:
        client.close()
    assert time.monotonic() - start < 0.1


def test_a6_closed_while_it_connects(tmp_path: Path) -> None:
    server = peer(tmp_path, opening={"server/discover": "silent", "initialize": "silent"})
    client = mcpsync.Client(server.command)
    ended: List[object] = []

    def connect() -> None:
        try:
            client.open()
        except Exception as error:
            ended.append(error)

    connecting = [threading.Thread(target=connect) for _ in range(3)]
    for thread in connecting:
        thread.start()
    server.wait_event("started")
    client.close()
    for thread in connecting:
        thread.join(5)
    assert [type(error) for error in ended] == [ClientClosed] * 3, ended
    assert server.alive() == []


def test_a6_closed_by_its_own_callbacks(tmp_path: Path) -> None:
    for mode in ("pool", "caller"):
        closed = threading.Event()
        server = peer(tmp_path, era="legacy")

        def close(argument: Any, closed: threading.Event = closed) -> bool:
            client.close()
            closed.set()
            return False

        client = mcpsync.connect(server.command, callbacks=mode, elicitation=close)
        params = {"mode": "form", "message": "?", "requestedSchema": {"type": "object", "properties": {}}}
        with pytest.raises(ClientClosed):
            client.call_tool("ask", {"method": "elicitation/create", "params": params})
        assert closed.wait(10)
        assert server.alive() == []


# -- A7 --------------------------------------------------------------------------------------------------------


def flat(error: Any) -> str:
    """The text of an error that a user can read: one line, no chain of causes to dig in."""
    text = str(error)
    assert "\n" not in text
    assert text.startswith("server '")
    assert error.server is not None
    return text


@pytest.mark.timed
def test_a7_missing_command() -> None:
    start = time.monotonic()
    with pytest.raises(ConnectFailed) as caught:
        mcpsync.connect(["no-such-command-anywhere"])
    assert time.monotonic() - start < 1
    assert "cannot start the server: command 'no-such-command-anywhere' not found" in flat(caught.value)
    with pytest.raises(ConnectFailed) as caught:
        mcpsync.connect(["./nowhere/server"], name="web")
    assert flat(caught.value).startswith("server 'web': cannot start the server: there is no file")


def test_a7_no_execute_bit(tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text("#!/bin/sh\n")
    with pytest.raises(ConnectFailed) as caught:
        mcpsync.connect([str(script)])
    assert "is not executable; set its execute bit" in flat(caught.value)


def test_a7_interpreter_of_the_script_is_missing(tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    with pytest.raises(ConnectFailed) as caught:
        mcpsync.connect([str(script)])
    assert "the interpreter that its first line names does not exist" in flat(caught.value)


def test_a7_dead_child(tmp_path: Path) -> None:
    with pytest.raises(ProcessExited) as caught:
        mcpsync.connect(peer(tmp_path, stderr=b"no license\n", exit_at_start=7).command)
    assert caught.value.exit_code == 7
    assert "exited with code 7; stderr: no license" in flat(caught.value)
    with mcpsync.connect(peer(tmp_path).command, backoff=mcpsync.Backoff(())) as client:
        with pytest.raises(ProcessExited) as caught:
            client.call_tool("die", {"code": 5, "stderr": "out of luck\n"})
        assert "tools/call (request " in flat(caught.value)
        assert "exited with code 5; stderr: out of luck" in flat(caught.value)


def test_a7_first_call_of_a_client_that_cannot_connect() -> None:
    client = mcpsync.Client(["no-such-command-anywhere"])
    for use in (client.list_tools, lambda: client.call_tool("x"), lambda: client.submit("x"), client.ping):
        with pytest.raises(ConnectFailed) as caught:
            use()
        assert "not found" in flat(caught.value)
    assert client.state == "new"
    client.close()


# -- A10 -------------------------------------------------------------------------------------------------------


def unpickles(folder: str, hexed: str) -> None:
    import pickle

    with pickle.loads(bytes.fromhex(hexed)) as client:
        print(client.name, client.call_tool("echo", {"text": "unpickled"}).text, client.protocol_version)


def answer(request: Any) -> bool:
    return True


def test_a10_an_unopened_client_is_pickled(tmp_path: Path) -> None:
    client = mcpsync.Client(
        peer(tmp_path).command, name="web", protocol="2025-06-18", timeouts=Timeouts(call=20), env={"A": "b"}
    )
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        hexed = pickle.dumps(client, protocol).hex()
    run(unpickles, str(tmp_path), hexed).check("web unpickled 2025-06-18")
    assert client.state == "new"


def test_a10_one_that_failed_to_connect_is_as_good_as_unopened() -> None:
    client = mcpsync.Client(["no-such-command-anywhere"], elicitation=answer)
    with pytest.raises(ConnectFailed):
        client.open()
    assert isinstance(pickle.loads(pickle.dumps(client)), mcpsync.Client)
    client.close()


def test_a10_an_open_or_closed_client_is_not_pickled(tmp_path: Path) -> None:
    client = mcpsync.connect(peer(tmp_path).command, name="web")
    with pytest.raises(TypeError, match="client 'web' has been opened: only a client that never was"):
        pickle.dumps(client)
    client.close()
    with pytest.raises(TypeError, match="has been opened"):
        pickle.dumps(client)


def test_a10_results_and_errors_are_pickled(tmp_path: Path) -> None:
    with mcpsync.connect(peer(tmp_path).command, name="web") as client:
        result = client.call_tool("echo", {"text": "kept"})
        assert pickle.loads(pickle.dumps(result)).text == "kept"
        with pytest.raises(mcpsync.RpcError) as caught:
            client.call_tool("error", {"code": -32000, "message": "no", "data": {"why": 1}})
        again = pickle.loads(pickle.dumps(caught.value))
        assert (str(again), again.data) == (str(caught.value), {"why": 1})
        with pytest.raises(ProcessExited) as died:
            client.call_tool("die", {"code": 3, "stderr": "reason"})
        again = pickle.loads(pickle.dumps(died.value))
        assert (str(again), again.exit_code, again.stderr_tail) == (str(died.value), 3, "reason")


# -- A15 -------------------------------------------------------------------------------------------------------


def runs_in_an_odd_host(folder: str, command: List[str], executable: Any) -> None:
    import json
    import os
    import sys
    import warnings
    from contextlib import suppress

    sys.stderr = None  # type: ignore[assignment]
    sys.stdout, out = None, sys.stdout  # type: ignore[assignment]
    sys.executable = executable
    os.environ["PYTHONHOME"] = os.environ["LD_LIBRARY_PATH"] = os.environ["DYLD_LIBRARY_PATH"] = "/of/the/host"
    os.environ["PYTHONSTARTUP"] = os.environ["LD_PRELOAD"] = "/of/the/host"
    import mcpsync

    def fail(argument: Any) -> None:
        raise ValueError("a callback that fails")

    warnings.simplefilter("always")
    with mcpsync.connect(command, on_notification=fail, on_state=fail, elicitation=fail) as client:
        client.call_tool("noise", {"kinds": ["banner", "log", "half"]})
        client.call_tool("changed")
        theirs = json.loads(client.call_tool("environment").text)["env"]
        again = client.submit("echo")
        again.add_done_callback(fail)
        again.result()
    client = mcpsync.connect(command)
    client.call_tool("echo")
    del client
    client = mcpsync.connect(command)
    with suppress(mcpsync.ProcessExited):
        client.call_tool("die")
    sys.stdout = out
    host = ("PYTHONHOME", "PYTHONPATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONSTARTUP", "LD_PRELOAD")
    print(json.dumps([name for name in host if name in theirs]))


@pytest.mark.parametrize("executable", [None, "", "/usr/bin/maya", "/bin/false"])
def test_a15_frozen_and_embedding_hosts(tmp_path: Path, executable: Any) -> None:
    run(runs_in_an_odd_host, str(tmp_path), peer(tmp_path).command, executable).check("[]")


def test_a15_nothing_of_the_hosts_leaks_but_what_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "MY_SECRET_TOKEN"):
        monkeypatch.setenv(name, "/of/the/host")
    given = {"PYTHONPATH": "/given", "EXTRA": "1"}
    with mcpsync.connect(peer(tmp_path).command, env=given) as client:
        theirs = json.loads(client.call_tool("environment").text)["env"]
    assert (theirs["PYTHONPATH"], theirs["EXTRA"], theirs["PATH"]) == ("/given", "1", os.environ["PATH"])
    assert not {"PYTHONHOME", "LD_LIBRARY_PATH", "MY_SECRET_TOKEN"} & set(theirs)


# -- A16 -------------------------------------------------------------------------------------------------------


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 3000 if hard == resource.RLIM_INFINITY else min(hard, 3000)
    assert wanted > 2000, "the system lets no process have so many descriptors"
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(1500)]
    try:
        yield
    finally:
        for descriptor in opened:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_descriptors")
@pytest.mark.parametrize("command_name", ["command", "through_sh"])
def test_a16_more_than_1024_descriptors(tmp_path: Path, command_name: str) -> None:
    server = peer(tmp_path, grandchild="fork")
    before = len(os.listdir("/proc/self/fd"))
    with mcpsync.connect(getattr(server, command_name), name="peer") as client:
        assert client.call_tool("echo", {"text": "x"}).text == "x"
        assert client.call_tool("length", {"text": "y" * 300_000}).text == "300000"
        assert len(client.call_tool("large", {"size": 300_000}).text) == 300_000
        with pytest.raises(mcpsync.RequestTimeout):
            client.call_tool("silent", timeout=0.1)
        client.call_tool("write_stderr", {"size": 100_000})
        future = client.submit("silent")
        future.cancel()
    with mcpsync.connect(server.command, name="peer") as client, pytest.raises(ConnectionLost):
        client.call_tool("die")
    assert server.alive() == []
    assert len(os.listdir("/proc/self/fd")) == before


def test_a16_no_descriptor_left(tmp_path: Path) -> None:
    """The other end of it: what cannot be opened is one flat error, and the next attempt works."""
    server = peer(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    client = mcpsync.Client(server.command, name="peer")
    lowest = os.open(os.devnull, os.O_RDONLY)
    os.close(lowest)
    refused = 0
    for spare in range(40):
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + spare, hard))
        try:
            client.open()
            break
        except ConnectFailed as error:
            refused += 1
            flat(error)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert 5 < refused < 40
    assert client.call_tool("echo", {"text": "x"}).text == "x"
    client.close()
    server.wait_ended()


def test_everything_ends_in_random_order(tmp_path: Path) -> None:
    """A neighbour of A6: opening, calling and closing of several clients at once by several threads."""
    servers = [peer(tmp_path) for _ in range(3)]
    wrong: List[object] = []

    def use(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(4):
            client = mcpsync.Client(chance.choice(servers).command)
            try:
                others = [threading.Thread(target=client.close) for _ in range(chance.randrange(3))]
                for number in range(chance.randrange(1, 6)):
                    if client.call_tool("echo", {"text": str(number)}).text != str(number):
                        wrong.append(number)
                for other in others:
                    other.start()
                client.close()
                for other in others:
                    other.join()
            except Exception as error:
                wrong.append(error)

    users = [threading.Thread(target=use, args=(seed,)) for seed in range(4)]
    for user in users:
        user.start()
    for user in users:
        user.join()
    assert wrong == []
    assert [each for server in servers for each in server.alive()] == []
