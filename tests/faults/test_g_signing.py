"""FAULTS, section G: staying signed in, over processes that share a store, with refresh tokens that work once."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, Tuple

import pytest

import mcpsync
from mcpsync import OAuth
from mcpsync.auth.credentials import Credentials
from mcpsync.auth.store import FileStore
from mcpsync.auth.vault import Vault
from tests.peers.authorization import AuthorizationServer, ProtectedServer, browse
from tests.peers.http import Exchange
from tests.peers.http_servers import Modern

WORKER = Path(__file__).with_name("signed_worker.py")
PATIENCE = 180.0
Servers = Tuple[AuthorizationServer, ProtectedServer]


class OneToken(AuthorizationServer):
    """With a refresh, the access token before it is worth nothing, too."""

    def _issue(self, granted: Dict[str, str], form: Mapping[str, str]) -> Dict[str, Any]:
        self.access = {key: value for key, value in self.access.items() if value["family"] != granted["family"]}
        return super()._issue(granted, form)


def signed_in(resource: ProtectedServer, folder: Path) -> None:
    """Leave a sign-in in the store."""
    auth = OAuth(way=browse, store=FileStore(str(folder)), account="shared")
    mcpsync.connect(resource.url, auth=auth).close()


def stored(resource: ProtectedServer, folder: Path) -> Credentials:
    found = Vault(FileStore(str(folder)), resource.url, "shared").current()
    assert found is not None
    return found


def expire(resource: ProtectedServer, folder: Path) -> None:
    """The access token is over, by the clock and at the server."""
    found = stored(resource, folder)
    assert found.tokens is not None
    FileStore(str(folder)).save(found.key, replace(found, tokens=replace(found.tokens, expires_at=time.time() - 1)))
    for server in resource.trusted:
        server.expire_access()


class Worker:
    """A process that makes calls."""

    def __init__(self, resource: ProtectedServer, folder: Path, **how: Any) -> None:
        told = json.dumps({"url": resource.url, "folder": str(folder), **how})
        command = [sys.executable, "-W", "error", str(WORKER), told]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: Any) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def begun(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "calling\n"

    def outcome(self) -> Dict[str, Any]:
        out, err = self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == 0, err
        found: Dict[str, Any] = json.loads(out.splitlines()[-1])
        return found

    def was_killed(self) -> bool:
        self.process.communicate(timeout=PATIENCE)
        return self.process.returncode == -9


def refreshes(server: AuthorizationServer) -> int:
    return sum(each["grant_type"] == "refresh_token" for each in server.token_requests)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "credentials"


def test_g1_a_restart_with_an_expired_token_refreshes_once_and_asks_nobody(folder: Path) -> None:
    with AuthorizationServer() as server, ProtectedServer(server, behaviour=Modern()) as resource:
        signed_in(resource, folder)
        expire(resource, folder)
        count = len(resource.requests)
        with Worker(resource, folder) as worker:
            assert worker.outcome()["good"] == 1
        assert refreshes(server) == 1
        assert len(server.authorizations) == 1
        assert all("authorization" in each.headers for each in resource.requests[count:])
        with Worker(resource, folder) as worker:  # and the next start finds what that one left
            assert worker.outcome()["good"] == 1
        assert refreshes(server) == 1


def _stress(folder: Path, make: Callable[..., AuthorizationServer], seconds: float, life: int) -> None:
    with make(expires_in=life) as server, ProtectedServer(server, behaviour=Modern()) as resource:
        signed_in(resource, folder)
        with ExitStack() as stack:
            workers = [
                stack.enter_context(Worker(resource, folder, threads=4, lasts=seconds, seconds=30)) for _ in range(5)
            ]
            outcomes = [worker.outcome() for worker in workers]
        errors: Counter[str] = Counter()
        for each in outcomes:
            errors.update(each["errors"])
        assert not errors
        assert all(each["good"] >= 4 for each in outcomes)
        assert server.refused == []
        assert len(server.authorizations) == 1
        assert refreshes(server) >= max(1, seconds / life / 4)
        left = stored(resource, folder).tokens
        assert left is not None
        assert set(server.refresh) == {left.refresh_token}  # the one that works is the one that is kept


@pytest.mark.parametrize("make", [AuthorizationServer, OneToken])
def test_g2_five_processes_of_four_threads_on_one_use_refresh_tokens(
    folder: Path, make: Callable[..., AuthorizationServer]
) -> None:
    _stress(folder, make, 3.0, 1)


@pytest.mark.soak
@pytest.mark.timeout(300)
@pytest.mark.parametrize("make", [AuthorizationServer, OneToken])
def test_g2_a_minute_of_that(folder: Path, make: Callable[..., AuthorizationServer]) -> None:
    _stress(folder, make, 60.0, 1)


class Killing:
    """A token endpoint that kills the process whose refresh comes first, once the others have begun."""

    def __init__(self, processed: bool) -> None:
        self.victim: Any = None
        self.came = threading.Event()
        self.go = threading.Event()
        self._processed = processed

    def __call__(self, exchange: Exchange) -> bool:
        if self.victim is None or self.came.is_set():
            return True
        self.came.set()
        assert self.go.wait(PATIENCE)
        self.victim.process.kill()
        self.victim.process.wait()
        if not self._processed:
            exchange.close()
        return self._processed


@pytest.fixture
def others() -> Iterator[List[Worker]]:
    workers: List[Worker] = []
    yield workers
    for each in workers:
        each.__exit__()


def _kill_the_holder(folder: Path, others: List[Worker], processed: bool) -> Tuple[List[Dict[str, Any]], Any]:
    killing = Killing(processed)
    with (
        AuthorizationServer(routes={"/token": killing}) as server,
        ProtectedServer(server, behaviour=Modern()) as resource,
    ):
        signed_in(resource, folder)
        expire(resource, folder)
        killing.victim = Worker(resource, folder, threads=4)
        with killing.victim:
            assert killing.came.wait(PATIENCE)
            others.extend(Worker(resource, folder, threads=4) for _ in range(4))
            for each in others:
                each.begun()
            killing.go.set()
            outcomes = [each.outcome() for each in others]
        return outcomes, server


def test_g2_the_holder_is_killed_before_anything_is_sent(folder: Path, others: List[Worker]) -> None:
    outcomes, server = _kill_the_holder(folder, others, processed=False)
    assert [each["good"] for each in outcomes] == [4] * 4
    assert server.refused == []
    assert max(each["longest"] for each in outcomes) < 10


def test_g2_the_holder_is_killed_between_the_answer_and_the_store(folder: Path, others: List[Worker]) -> None:
    outcomes, server = _kill_the_holder(folder, others, processed=True)
    for each in outcomes:
        assert each["good"] == 0
        assert all(error.startswith("NeedsLogin") for error in each["errors"]), each["errors"]
        assert sum(each["errors"].values()) == 4
    assert server.refused == ["invalid_grant"]  # one of them asked, and all know
    assert max(each["longest"] for each in outcomes) < 10


def test_g2_the_holder_is_killed_after_storing(folder: Path) -> None:
    with AuthorizationServer() as server, ProtectedServer(server, behaviour=Modern()) as resource:
        signed_in(resource, folder)
        expire(resource, folder)
        with Worker(resource, folder, threads=4, dies=True) as victim:
            assert victim.was_killed()
        with ExitStack() as stack:
            workers = [stack.enter_context(Worker(resource, folder, threads=4)) for _ in range(4)]
            assert [each.outcome()["good"] for each in workers] == [4] * 4
        assert server.refused == []
        assert refreshes(server) == 1


def test_a_program_that_ends_in_the_middle_of_a_refresh_keeps_what_it_brings(folder: Path) -> None:
    asked, go = threading.Event(), threading.Event()

    def slowly(exchange: Exchange) -> bool:
        if b"refresh_token" in exchange.request.body:
            asked.set()
            assert go.wait(PATIENCE)
        return True

    with (
        AuthorizationServer(routes={"/token": slowly}) as server,
        ProtectedServer(server, behaviour=Modern()) as resource,
    ):
        signed_in(resource, folder)
        found = stored(resource, folder)
        assert found.tokens is not None
        soon = replace(found.tokens, expires_at=time.time() + 50, extra={"obtained_at": time.time() - 3000})
        FileStore(str(folder)).save(found.key, replace(found, tokens=soon))
        with Worker(resource, folder, leaves=True) as worker:
            worker.begun()
            assert asked.wait(PATIENCE)
            assert worker.process.stdout is not None
            assert json.loads(worker.process.stdout.readline())["good"] == 1  # with the old token; it is at its end
            go.set()
            worker.process.communicate(timeout=PATIENCE)
            assert worker.process.returncode == 0
        left = stored(resource, folder).tokens
        assert left is not None
        assert set(server.refresh) == {left.refresh_token}


def test_g5_a_401_on_one_tool_alone_and_a_403_for_more_scope(folder: Path) -> None:
    def work(exchange: Exchange, message: Dict[str, Any]) -> None:
        if message["params"]["name"] == "forbidden":
            exchange.respond(401, WWW_Authenticate='Bearer error="invalid_token"')
        else:
            exchange.result({"resultType": "complete", "content": [{"type": "text", "text": "done"}]})

    def needs(message: Any) -> List[str]:
        return ["write"] if message and (message.get("params") or {}).get("name") == "write" else []

    auth = OAuth(way=browse, store=FileStore(str(folder)))
    with (
        AuthorizationServer() as server,
        ProtectedServer(server, behaviour=Modern(work), needs=needs, challenge_scope="read") as resource,
        mcpsync.connect(resource.url, auth=auth) as client,
    ):
        count = len(resource.requests)
        with pytest.raises(mcpsync.NeedsLogin, match="invalid_token"):
            client.call_tool("forbidden")
        assert len(resource.requests) - count == 2
        assert client.call_tool("work").text == "done"
        with pytest.raises(mcpsync.InsufficientScope, match="write"):
            client.call_tool("write")
        client.login()
        assert client.call_tool("write").text == "done"
        assert [each["scope"] for each in server.authorizations] == ["read", "read write"]
