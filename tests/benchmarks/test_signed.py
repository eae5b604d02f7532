"""What signing costs a call that needs no refresh: clients of one server in turns, one not signed in, one with a token,
one whose token is bound to a key (DPoP).

``python -m tests.benchmarks.test_signed`` prints the figures of sixty short rounds; pin it to a CPU, as with ``taskset -c 1``.
"""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Dict, List, NamedTuple

import pytest

import mcpsync
from mcpsync import Client, OAuth
from mcpsync.auth.credentials import ClientIdentity, Credentials, Tokens
from mcpsync.auth.keys import PrivateKey
from mcpsync.auth.store import MemoryStore
from mcpsync.auth.vault import Vault
from mcpsync.deadline import Deadline
from tests.benchmarks.test_short import CREDIBLE

MOST_SIGNED = 10.0  # microseconds more than without
MOST_BOUND = 150.0  # microseconds more than with a token that is not bound
SERVER = """
import sys
from tests.peers.http import HttpPeer
from tests.peers.http_servers import Modern
with HttpPeer(Modern()) as peer:
    print(peer.url, flush=True)
    sys.stdin.readline()
    print(len(peer.requests), sum("authorization" in each.headers for each in peer.requests), flush=True)
"""


class Figures(NamedTuple):
    """Microseconds that this process works for a call, the best round of each: what else the machine does only adds to
    it; and how many requests the server saw.
    """

    plain: float
    signed: float
    bound: float
    requests: int
    signed_requests: int


def measure(rounds: int, calls: int) -> Figures:
    """The three in turns, the order alternating from round to round."""
    server = subprocess.Popen([sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with server:
        assert server.stdin is not None and server.stdout is not None
        url = server.stdout.readline().strip()
        with (
            mcpsync.connect(url, protocol="modern") as plain,
            mcpsync.connect(url, protocol="modern", auth=OAuth(store=_signed_in(url), interactive=False)) as signed,
            mcpsync.connect(
                url, protocol="modern", auth=OAuth(store=_signed_in(url, True), interactive=False)
            ) as bound,
        ):
            clients: Dict[str, Client] = {"plain": plain, "signed": signed, "bound": bound}
            took: Dict[str, List[float]] = {name: [] for name in clients}
            for client in clients.values():
                _per_call(client, calls // 4)
            for turn in range(rounds):
                for name in list(clients) if turn % 2 == 0 else list(clients)[::-1]:
                    took[name].append(_per_call(clients[name], calls))
        server.stdin.write("\n")
        server.stdin.flush()
        requests, signed_requests = map(int, server.stdout.readline().split())
    best = {name: min(rounds_of) for name, rounds_of in took.items()}
    return Figures(best["plain"], best["signed"], best["bound"], requests, signed_requests)


def _signed_in(url: str, bound: bool = False) -> MemoryStore:
    store = MemoryStore()
    issuer = "https://as.example"
    tokens = Tokens(
        "a-token",
        token_type="DPoP" if bound else "Bearer",
        expires_at=time.time() + 3600,
        refresh_token="another",
        extra={"obtained_at": time.time()},
    )
    identity = ClientIdentity("x", issuer=issuer)
    key = PrivateKey.generate().to_pem() if bound else None
    Vault(store, url, "127.0.0.1").keep(
        Credentials(issuer, url, "127.0.0.1", identity, issuer + "/token", tokens=tokens, proof_key=key)
    )
    return store


def _per_call(client: Client, calls: int) -> float:
    worked = time.process_time()
    for _ in range(calls):
        client.call_tool("work")
    return (time.process_time() - worked) * 1_000_000 / calls


@pytest.mark.bench
def test_what_a_signed_call_costs_more_and_that_it_sends_no_request_more() -> None:
    rounds, calls = 60, 80
    tries = [measure(rounds, calls) for _ in range(3)]
    for each in tries:
        assert each.requests == 3 * (1 + calls // 4 + rounds * calls)
        assert each.signed_requests == each.requests // 3 * 2
    assert min(each.signed - each.plain for each in tries) < MOST_SIGNED, tries
    assert min(each.bound - each.signed for each in tries) < MOST_BOUND / CREDIBLE, tries


@pytest.mark.alone
@pytest.mark.timed
def test_the_headers_of_a_fresh_token_cost_next_to_nothing() -> None:
    client = Client("http://127.0.0.1:1/mcp", auth=OAuth(store=_signed_in("http://127.0.0.1:1/mcp")))
    auth = client._signing.auth
    assert auth is not None
    deadline = Deadline(None)
    assert auth.headers("POST", "http://127.0.0.1:1/mcp", deadline) == {"Authorization": "Bearer a-token"}
    rounds = []
    for _ in range(20):
        began = time.perf_counter()
        for _ in range(1000):
            auth.headers("POST", "http://127.0.0.1:1/mcp", deadline)
        rounds.append((time.perf_counter() - began) * 1000)
    client.close()
    assert min(rounds) < 2.0  # microseconds


if __name__ == "__main__":
    print(measure(60, 80))
