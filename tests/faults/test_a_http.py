"""A1 to A4, A6 to A13 and A16 over HTTP: a client that blocks, wherever it is used."""

from __future__ import annotations

import gc
import os
import pickle
import resource
import ssl
import sys
import threading
import time
import warnings
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional

import pytest

import mcpsync
from mcpsync import ClientClosed, ConnectFailed, ConnectRejected, Limits, Timeouts
from tests.conftest import our_threads
from tests.faults.program import run
from tests.faults.test_a_callbacks import MainLoop
from tests.faults.test_a_fork import QUIET, wait_for
from tests.faults.watch import Seen, took
from tests.peers.authority import Authority
from tests.peers.http import HttpPeer, blackhole
from tests.peers.http_servers import Older
from tests.peers.http_tools import ERAS, serving

WAYS = ["plain", "tls"]
NARROW = Limits(handlers=1, callbacks=1, submitted=1)


def context(way: str, authority: Authority) -> Optional[ssl.SSLContext]:
    return authority.server() if way == "tls" else None


@pytest.fixture(params=[(era, way) for era in ERAS for way in WAYS], ids="-".join)
def served(request: pytest.FixtureRequest, authority: Authority) -> Iterator[Any]:
    """Tools of a server of each era, plain and over TLS, and how to connect to it."""
    era, way = request.param
    tools = serving(era)
    with HttpPeer(tools.server, context(way, authority)) as peer:

        def connect(**options: Any) -> mcpsync.Client:
            return mcpsync.connect(peer.url, protocol=era, verify=authority.ca, name="peer", **options)

        yield tools, peer, connect


# -- A1, A2 ----------------------------------------------------------------------------------------------------


def lives_without_asyncio(folder: str, urls: List[str], ca: str) -> None:
    import sys

    class NoAsyncio:
        def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
            if name.partition(".")[0] == "asyncio":
                raise ImportError("there is no asyncio")

    sys.meta_path.insert(0, NoAsyncio())  # type: ignore[arg-type]
    import mcpsync

    for url in urls:
        with mcpsync.connect(url, verify=ca) as client:
            assert client.list_tools()
            assert client.call_tool("echo", {"text": "yes"}).text in ("yes", "done")
            assert client.submit("echo", {"text": "yes"}).result().text in ("yes", "done")
    assert "asyncio" not in sys.modules


def test_a1_without_asyncio(tmp_path: Path, authority: Authority) -> None:
    with ExitStack() as stack:
        peers = [
            HttpPeer(serving("legacy").server),
            HttpPeer(serving("modern").server),
            HttpPeer(serving("modern").server, authority.server()),
            HttpPeer(Older()),
        ]
        urls = [stack.enter_context(peer).url for peer in peers]
        run(lives_without_asyncio, str(tmp_path), urls, authority.ca).check()


def works_inside_a_loop(folder: str, url: str) -> None:
    import asyncio

    import mcpsync

    async def main() -> None:
        with mcpsync.connect(url) as client:
            assert client.call_tool("echo", {"text": "loop"}).text == "loop"
            awaited = await asyncio.wrap_future(client.submit("echo", {"text": "awaited"}))
            assert awaited.text == "awaited"
            loop = asyncio.get_running_loop()
            there = await loop.run_in_executor(None, client.call_tool, "echo", {"text": "executor"})
            assert there.text == "executor"

    asyncio.run(main())


@pytest.mark.parametrize("era", ERAS)
def test_a2_inside_a_running_loop(tmp_path: Path, era: str) -> None:
    with HttpPeer(serving(era).server) as peer:
        run(works_inside_a_loop, str(tmp_path), peer.url).check()


# -- A3, A4, A6 ------------------------------------------------------------------------------------------------


def test_a3_use_after_the_with_block(served: Any) -> None:
    _, _, connect = served
    with connect() as client:
        call = client.call_tool
        assert call("echo", {"text": "x"}).text == "x"
    with took() as measured, pytest.raises(ClientClosed):
        call("echo", {"text": "x"})
    assert measured.seconds < 0.1


@pytest.mark.once  # the table of calls is the same over stdio, which is tried everywhere
@pytest.mark.parametrize("tool", ["echo", "streamed"])
def test_a4_each_caller_gets_its_own_answer(served: Any, tool: str) -> None:
    _, _, connect = served
    wrong = Seen()
    slow = {"slow": True} if tool == "echo" else {"progress": 2}
    with connect() as client:

        def use(number: int) -> None:
            for count in range(50):
                text = "%d-%d" % (number, count)
                got = client.call_tool(tool, {"text": text, **slow}).text
                if got != text:
                    wrong((text, got))

        threads = [threading.Thread(target=use, args=(number,)) for number in range(32)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong.items == []


def test_a6_closed_in_another_order_by_other_threads(served: Any) -> None:
    _, _, connect = served
    clients = [connect() for _ in range(3)]
    for position in (0, 2, 1):
        thread = threading.Thread(target=clients[position].close)
        with took() as measured:
            thread.start()
            thread.join()
        assert measured.seconds < 2
        clients[position].close()
    assert [client.state for client in clients] == ["closed"] * 3


@pytest.mark.parametrize("streams", [False, True])
def test_a6_closed_while_ten_calls_wait(served: Any, streams: bool) -> None:
    tools, _, connect = served
    outcomes = Seen()
    with connect() as client:

        def call() -> None:
            try:
                client.call_tool("silent", {"streams": streams})
            except ClientClosed as error:
                outcomes(error)

        threads = [threading.Thread(target=call) for _ in range(5)]
        for thread in threads:
            thread.start()
        futures = [client.submit("silent", {"streams": streams}) for _ in range(5)]
        tools.wait_begun(10)
        with took() as measured:
            client.close()
            outcomes.wait_count(5)
            for future in futures:
                assert isinstance(future.exception(5), ClientClosed)
        assert measured.seconds < 2
        for thread in threads:
            thread.join()
    tools.wait_ended(10)


# -- A7 --------------------------------------------------------------------------------------------------------


def failure(url: str, **options: Any) -> ConnectFailed:
    with pytest.raises(ConnectFailed) as caught:
        mcpsync.connect(url, name="peer", timeouts=Timeouts(connect=5), **options)
    text = str(caught.value)
    assert text.startswith("server 'peer': ") and "\n" not in text
    return caught.value


def test_a7_one_flat_error(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    def unknown(*arguments: Any, **keywords: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    with HttpPeer(None) as peer:
        pass
    assert "cannot connect to 127.0.0.1:%d: connection refused" % peer.port in str(failure(peer.url))
    with HttpPeer(lambda exchange: exchange.respond(401, "who are you", "text/plain")) as peer:
        refused = failure(peer.url)
        assert isinstance(refused, ConnectRejected) and refused.status == 401
        assert "HTTP 401 (not signed in: see the options auth and headers): who are you" in str(refused)
    with HttpPeer(serving("modern").server, authority.server()) as peer:
        assert "its certificate is not accepted" in str(failure(peer.url))
        text = str(failure(peer.url.replace("https", "http")))
        assert "it was closed before an answer came" in text or "connection reset by peer" in text
    with HttpPeer(serving("modern").server) as peer:
        assert "TLS failed" in str(failure(peer.url.replace("http", "https")))
    with monkeypatch.context() as patched:
        patched.setattr(socket, "getaddrinfo", unknown)
        assert "cannot connect to mcp.example.org: the name cannot be resolved" in str(
            failure("http://mcp.example.org/mcp")
        )


def test_a7_a_black_hole() -> None:
    with blackhole() as port, took() as measured, pytest.raises(mcpsync.ConnectTimeout):
        mcpsync.connect("http://127.0.0.1:%d/mcp" % port, timeouts=Timeouts(connect=0.5))
    assert measured.seconds < 1.2


# -- A8 --------------------------------------------------------------------------------------------------------


def reopens_in_a_child(folder: str, url: str, ca: str, era: str, ending: str) -> None:
    import builtins
    import os
    import sys

    import mcpsync

    client = mcpsync.connect(url, protocol=era, verify=ca, name="peer")
    assert client.call_tool("echo", {"text": "parent"}).text == "parent"
    pid = os.fork()
    if pid == 0:
        if ending != "untouched":
            assert client.call_tool("echo", {"text": "child"}).text == "child"
            assert client.submit("echo", {"text": "child"}).result().text == "child"
        if ending == "closed":
            client.close()
        elif ending == "at once":
            os._exit(0)
        builtins.kept = client  # type: ignore[attr-defined]
        sys.exit(0)
    wait_for(pid)
    assert client.call_tool("echo", {"text": "on"}).text == "on"
    client.close()


@pytest.mark.parametrize("ending", ["closed", "left open", "at once", "untouched"])
def test_a8_fork_the_child_reopens_and_the_parents_session_lives_on(
    served: Any, tmp_path: Path, authority: Authority, ending: str
) -> None:
    tools, peer, _ = served
    era = "legacy" if hasattr(tools.server, "known") else "modern"
    arguments = (str(tmp_path), peer.url, authority.ca, era, ending)
    run(reopens_in_a_child, *arguments, helpers=[wait_for], options=QUIET).check()
    if era == "legacy":
        assert tools.server.initialized == (1 if ending == "untouched" else 2)
        deleted = tools.server.deleted
        assert deleted.count("session-1") == 1 and deleted[-1] == "session-1"  # by the parent, at its end
        assert deleted.count("session-2") <= 1


def shares_nothing_of_the_stream(folder: str, url: str) -> None:
    import os
    import sys

    import mcpsync

    client = mcpsync.connect(url, transport="sse", name="peer")
    assert client.call_tool("work").text == "done"
    pid = os.fork()
    if pid == 0:
        assert client.call_tool("work").text == "done"
        assert client.submit("work").result().text == "done"
        client.close()
        sys.exit(0)
    wait_for(pid)
    assert client.call_tool("work").text == "done"
    client.close()


@pytest.mark.parametrize("way", WAYS)
def test_a8_fork_over_the_older_transport(way: str, tmp_path: Path, authority: Authority) -> None:
    server = Older()
    with HttpPeer(server, context(way, authority)) as peer:
        env = {**os.environ, "REQUESTS_CA_BUNDLE": authority.ca}
        run(shares_nothing_of_the_stream, str(tmp_path), peer.url, helpers=[wait_for], options=QUIET, env=env).check()
        assert len(server.streams) == 2
        assert len(peer.of("GET")) == 2  # none was opened again


def works_in_a_pool(folder: str, url: str, method: str) -> None:
    import multiprocessing

    context = multiprocessing.get_context(method)
    with context.Pool(2) as pool:
        assert sorted(pool.map(calls_from_a_worker, [(url, number) for number in range(6)])) == list(range(6))
        pool.close()
        pool.join()  # leaving the block would end them with SIGTERM, in whatever they are doing


def calls_from_a_worker(task: Any) -> int:
    import mcpsync

    url, number = task
    with mcpsync.connect(url) as client:
        return int(client.call_tool("echo", {"text": str(number)}).text)


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_a8_process_pools(method: str, tmp_path: Path) -> None:
    with HttpPeer(serving("legacy").server) as peer:
        run(works_in_a_pool, str(tmp_path), peer.url, method, helpers=[calls_from_a_worker], options=QUIET).check()


def leaves_no_thread_behind_at_a_fork(folder: str, url: str, ca: str) -> None:
    import os
    import threading

    import mcpsync

    for _ in range(10):
        client = mcpsync.connect(url, verify=ca, protocol="modern")
        client.call_tool("echo", {"text": "x"})
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        there = {int(name) for name in os.listdir("/proc/self/task")}
        assert there <= {thread.native_id for thread in threading.enumerate()}
        wait_for(pid)
        client.close()


@pytest.mark.skipif(sys.platform != "linux", reason="looks at the threads of the system")
def test_a8_no_fork_meets_a_thread_that_is_leaving_openssl(tmp_path: Path, authority: Authority) -> None:
    with HttpPeer(serving("modern").server, authority.server()) as peer:
        arguments = (str(tmp_path), peer.url, authority.ca)
        run(leaves_no_thread_behind_at_a_fork, *arguments, helpers=[wait_for], options=QUIET).check()


# -- A9 to A12 -------------------------------------------------------------------------------------------------


def test_a9_a_dispatcher_that_only_pumps_on_the_main_thread(served: Any) -> None:
    _, _, connect = served
    loop, seen = MainLoop(), []
    with connect(callbacks=loop) as client:

        def progress(each: Any) -> None:
            assert threading.current_thread() is threading.main_thread()
            seen.append(each.progress)

        future = client.submit("streamed", {"text": "x", "progress": 20}, on_progress=progress)
        assert future.result(10).text == "x"
        assert seen == []
        loop.pump(lambda: len(seen) == 20)
    assert seen == list(range(1, 21))


def test_a11_callbacks_that_call_the_client_again_and_raise(served: Any, caplog: pytest.LogCaptureFixture) -> None:
    _, _, connect = served
    texts: List[str] = []

    def progress(each: Any) -> None:
        if each.progress == 1:
            texts.append(client.call_tool("echo", {"text": "inside"}).text)
        raise ValueError("of the user")

    def answer(request: Any) -> bool:
        texts.append(client.call_tool("echo", {"text": "asked"}).text)
        return True

    with connect(elicitation=answer, callbacks="caller") as client:
        assert client.call_tool("streamed", {"text": "x", "progress": 2}, on_progress=progress).text == "x"
        assert '"accept"' in client.call_tool("asks").text
    assert texts == ["inside", "asked"]
    assert "of the user" in caplog.text


@pytest.mark.parametrize("mode", ["pool", "caller"])
def test_a12_eight_calls_all_elicit_with_all_limits_one(served: Any, mode: str) -> None:
    _, _, connect = served

    def answer(request: Any) -> bool:
        assert client.call_tool("echo", {"text": "inside"}, timeout=20).text == "inside"
        return True

    with connect(elicitation=answer, limits=NARROW, connections=1, callbacks=mode) as client:
        futures = [client.submit("asks", {"times": 2}, timeout=20) for _ in range(8)]
        assert '"accept"' in client.call_tool("asks", timeout=20).text
        for future in futures:
            assert '"accept"' in future.result(20).text


# -- A10, A13, A16 ---------------------------------------------------------------------------------------------


def test_a10_an_unopened_client_pickles_and_an_open_one_says_why_not(authority: Authority) -> None:
    with HttpPeer(serving("modern").server, authority.server()) as peer:
        client = pickle.loads(pickle.dumps(mcpsync.Client(peer.url, verify=authority.ca, headers={"X-A": "b"})))
        with client:
            assert client.call_tool("echo", {"text": "x"}).text == "x"
            with pytest.raises(TypeError, match="has been opened"):
                pickle.dumps(client)
        assert {request.headers["x-a"] for request in peer.requests} == {"b"}


@pytest.fixture
def warned(monkeypatch: pytest.MonkeyPatch) -> Iterator[Seen]:
    seen = Seen()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        monkeypatch.setattr(warnings, "showwarning", lambda message, category, *rest: seen((category, str(message))))
        yield seen


@pytest.mark.parametrize("server", ["legacy", "modern", "older"])
def test_a13_dropped(server: str, warned: Seen) -> None:
    before = our_threads()
    serve: Callable[..., None] = Older() if server == "older" else serving(server, **_long_stream(server)).server
    with HttpPeer(serve) as peer:
        client = mcpsync.connect(peer.url, name="peer")
        client.call_tool("echo")
        del client
        gc.collect()
        warned.wait_count(1)
        if server == "legacy":
            peer.wait_requests(1, "DELETE")
        end = time.monotonic() + 2
        while our_threads() - before:
            assert time.monotonic() < end, our_threads()
            time.sleep(0.005)  # threads tell nobody when they have ended
    assert warned.items == [(ResourceWarning, "a client for server 'peer' was never closed")]


def _long_stream(era: str) -> Dict[str, Any]:
    return {"stream": True} if era == "legacy" else {}


@pytest.mark.skipif(sys.platform == "win32", reason="no such limit there")
def test_a16_more_than_1024_descriptors(served: Any) -> None:
    _, _, connect = served
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2000:
        pytest.skip("this system allows no more")
    resource.setrlimit(resource.RLIMIT_NOFILE, (2000 if hard == resource.RLIM_INFINITY else min(hard, 4000), hard))
    held = []
    try:
        held = [open("/dev/null") for _ in range(1050)]  # noqa: SIM115 - they are what is tested
        with connect(callbacks="caller") as client:
            assert client.call_tool("echo", {"text": "x"}).text == "x"
            assert client.submit("streamed", {"text": "y", "progress": 1}, on_progress=print).result(10).text == "y"
            with pytest.raises(mcpsync.RequestTimeout):
                client.call_tool("silent", timeout=0.2)
    finally:
        for each in held:
            each.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
