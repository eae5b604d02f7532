"""What a session makes of refusals, of the store and of refreshes, where two of these happen at the same moment."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Any, Callable, List, NamedTuple, Optional, Tuple

import pytest

from mcpsync.auth.credentials import ClientIdentity, Credentials, Tokens
from mcpsync.auth.session import Session, SignInEnded
from mcpsync.auth.store import MemoryStore
from mcpsync.auth.vault import Vault
from mcpsync.deadline import Deadline
from mcpsync.errors import AuthError, InsufficientScope, NeedsLogin

URL = "https://mcp.example/mcp"
PATIENCE = 20.0


class Refusal(NamedTuple):
    """A 401 or 403, as the transport tells of it."""

    token: str
    status: int = 401
    header: str = 'Bearer error="invalid_token"'
    method: str = "POST"
    earlier: Tuple[Any, ...] = ()

    @property
    def sent(self) -> Any:
        return {"Authorization": "Bearer " + self.token} if self.token else {}

    @property
    def headers(self) -> Any:
        return {"www-authenticate": self.header}


class Refreshes:
    """Gives numbered tokens; what happens before each is a function."""

    def __init__(self, before: Optional[Callable[[Credentials], None]] = None) -> None:
        self.asked: List[str] = []
        self._before = before

    def __call__(self, credentials: Credentials, deadline: Deadline) -> Tokens:
        assert credentials.tokens is not None
        self.asked.append(credentials.tokens.refresh_token or "")
        if self._before is not None:
            self._before(credentials)
        number = len(self.asked) + 1
        return Tokens("access-%d" % number, expires_at=time.time() + 3600, refresh_token="refresh-%d" % number)


def credentials(
    access: str = "access-1", refresh: Optional[str] = "refresh-1", issuer: str = "https://as.example", **more: Any
) -> Credentials:
    tokens = Tokens(access, expires_at=time.time() + 3600, refresh_token=refresh)
    return Credentials(
        issuer, URL, "me", ClientIdentity("x", issuer=issuer), issuer + "/token", tokens=replace(tokens, **more)
    )


class Made(NamedTuple):
    session: Session
    store: MemoryStore
    vault: Vault


def made(refresher: Any, kept: Optional[Credentials] = None) -> Made:
    store = MemoryStore()
    vault = Vault(store, URL, "me")
    if kept is not None:
        vault.keep(kept)
    return Made(Session(vault, refresher, "web"), store, vault)


def sent(session: Session, method: str = "POST") -> str:
    headers = session.headers(method, URL, Deadline(PATIENCE))
    return headers.get("Authorization", "").partition(" ")[2]


def again(session: Session, refusal: Any) -> bool:
    return session.challenged(refusal, Deadline(PATIENCE))


def test_a_refusal_of_a_token_that_was_replaced_costs_no_refresh() -> None:
    refreshes = Refreshes()
    session, *_ = made(refreshes, credentials())
    assert sent(session) == "access-1"
    assert again(session, Refusal("access-1"))
    assert again(session, Refusal("access-1"))
    assert sent(session) == "access-2"
    assert refreshes.asked == ["refresh-1"]


def test_a_fresh_token_that_is_refused_in_the_same_request_is_not_refreshed_once_more() -> None:
    refreshes = Refreshes()
    session, *_ = made(refreshes, credentials())
    assert sent(session) == "access-1"
    first = Refusal("access-1")
    assert again(session, first)
    with pytest.raises(NeedsLogin, match="refuses a token that is not expired: invalid_token"):
        again(session, Refusal("access-2", earlier=(first,)))
    assert len(refreshes.asked) == 1
    assert sent(session) == "access-2"  # other requests may have it taken
    assert not session.needs_login
    assert not session.look()  # but it is no news to one that waits for a sign-in


def test_a_server_that_repeats_the_token_puts_it_into_no_error() -> None:
    session, *_ = made(Refreshes(), credentials())
    assert sent(session) == "access-1"
    first = Refusal("access-1")
    assert again(session, first)
    header = 'Bearer error="invalid_token", error_description="access-2 is not known"'
    with pytest.raises(NeedsLogin, match="refuses a token that is not expired: invalid_token") as caught:
        again(session, Refusal("access-2", header=header, earlier=(first,)))
    assert "access-2" not in str(caught.value)


def test_the_end_of_a_session_is_worth_no_refresh() -> None:
    refreshes = Refreshes()
    session, *_ = made(refreshes, credentials(expires_at=time.time() - 1))
    assert sent(session, "DELETE") == ""
    assert not again(session, Refusal("access-1", method="DELETE"))
    assert refreshes.asked == []
    assert sent(session) == "access-2"


def test_what_another_process_refreshed_is_taken() -> None:
    refreshes = Refreshes()
    session, _, vault = made(refreshes, credentials())
    assert sent(session) == "access-1"
    vault.keep(credentials("from-elsewhere", "refresh-9"))
    assert again(session, Refusal("access-1"))
    assert sent(session) == "from-elsewhere"
    assert refreshes.asked == []


def test_what_another_process_signed_in_for_at_another_issuer_is_taken() -> None:
    def ended(_: Credentials) -> None:
        raise SignInEnded("over")

    session, _, vault = made(Refreshes(ended), credentials())
    assert sent(session) == "access-1"
    vault.keep(credentials("moved", issuer="https://other.example"))
    assert again(session, Refusal("access-1"))
    assert sent(session) == "moved"


def test_a_refresh_by_one_that_does_not_know_the_lock() -> None:
    def too_late(_: Credentials) -> None:
        vault.keep(credentials("by-another", "refresh-9"))
        raise SignInEnded("that one was used")

    session, _, vault = made(Refreshes(too_late), credentials())
    assert sent(session) == "access-1"
    assert again(session, Refusal("access-1"))
    assert sent(session) == "by-another"
    assert not session.needs_login


@pytest.mark.parametrize("client_gone", [False, True])
def test_the_end_of_a_sign_in(client_gone: bool) -> None:
    def ended(_: Credentials) -> None:
        raise SignInEnded("the server ended it", client_gone=client_gone)

    session, store, vault = made(Refreshes(ended), credentials())
    changes: List[bool] = []
    session.changed = lambda: changes.append(session.signed_out)
    assert sent(session) == "access-1"
    with pytest.raises(NeedsLogin, match="the server ended it; sign in") as caught:
        again(session, Refusal("access-1"))
    assert type(caught.value) is NeedsLogin
    with pytest.raises(NeedsLogin):
        sent(session)
    assert session.needs_login
    if client_gone:
        assert store.keys() == []
    else:
        kept = vault.current()
        assert kept is not None
        assert kept.tokens is None
    vault.keep(credentials("new"))
    assert not session.needs_login
    assert sent(session) == "new"
    assert changes == [True, False]


def test_a_sign_out_elsewhere() -> None:
    session, _, vault = made(Refreshes(), credentials())
    assert sent(session) == "access-1"
    vault.remove(credentials())
    with pytest.raises(NeedsLogin, match="somebody signed out"):
        again(session, Refusal("access-1"))


def test_a_sign_in_during_a_refresh_is_what_counts() -> None:
    asked, go = threading.Event(), threading.Event()

    def slowly(_: Credentials) -> None:
        asked.set()
        assert go.wait(PATIENCE)

    session, _, vault = made(Refreshes(slowly), credentials())
    assert sent(session) == "access-1"
    answers: List[bool] = []
    caller = threading.Thread(target=lambda: answers.append(again(session, Refusal("access-1"))))
    caller.start()
    assert asked.wait(PATIENCE)
    session.adopt(credentials("signed-in", issuer="https://other.example"))
    go.set()
    caller.join(PATIENCE)
    assert answers == [True]
    assert sent(session) == "signed-in"
    old = vault.at(credentials().key)
    assert old is not None and old.tokens is not None
    assert old.tokens.access_token == "access-2"  # what came is kept all the same, where it belongs


def test_the_end_of_the_old_sign_in_does_not_end_the_new_one() -> None:
    def ended_late(_: Credentials) -> None:
        session.adopt(credentials("signed-in", issuer="https://other.example"))
        raise SignInEnded("over")

    session, *_ = made(Refreshes(ended_late), credentials())
    assert sent(session) == "access-1"
    assert again(session, Refusal("access-1"))
    assert sent(session) == "signed-in"
    assert not session.needs_login


def test_a_refresh_that_fails_for_the_moment_changes_nothing() -> None:
    def down(_: Credentials) -> None:
        raise AuthError("cannot be reached")

    session, _, vault = made(Refreshes(down), credentials())
    assert sent(session) == "access-1"
    with pytest.raises(AuthError, match="cannot be reached"):
        again(session, Refusal("access-1"))
    assert sent(session) == "access-1"
    assert vault.current() == credentials(expires_at=vault.current().tokens.expires_at)  # type: ignore[union-attr]


def test_a_token_that_is_still_good_is_not_refreshed_again_and_again_in_vain() -> None:
    asked = threading.Semaphore(0)

    def down(_: Credentials) -> None:
        asked.release()
        raise AuthError("cannot be reached")

    refreshes = Refreshes(down)
    soon = credentials(expires_at=time.time() + 10, extra={"obtained_at": time.time() - 3000})
    session, *_ = made(refreshes, soon)
    assert sent(session) == "access-1"
    assert asked.acquire(timeout=PATIENCE)
    session.close(Deadline(PATIENCE))
    assert [sent(session) for _ in range(5)] == ["access-1"] * 5
    session.close(Deadline(PATIENCE))
    assert len(refreshes.asked) == 1


@pytest.mark.parametrize(
    ("life", "passed", "is_due"),
    [(3600, 3500, False), (3600, 3545, True), (100, 75, False), (100, 85, True), (2, 0.5, False), (2, 1.4, True)],
)
def test_when_a_token_is_replaced(life: float, passed: float, is_due: bool) -> None:
    asked = threading.Event()
    began = time.time() - passed
    kept = credentials(expires_at=began + life, extra={"obtained_at": began})
    session, *_ = made(Refreshes(lambda _: asked.set()), kept)
    assert sent(session) == "access-1"
    session.close(Deadline(PATIENCE))
    assert asked.is_set() is is_due


MORE = 'Bearer error="insufficient_scope", scope="a b"'


def test_more_scopes_are_remembered_for_the_sign_in() -> None:
    session, *_ = made(Refreshes(), credentials(scope=("a",)))
    assert sent(session) == "access-1"
    with pytest.raises(InsufficientScope, match="'a b'"):
        again(session, Refusal("access-1", 403, MORE))
    with pytest.raises(InsufficientScope):
        again(session, Refusal("access-1", 403, 'Bearer error="insufficient_scope", scope="c"'))
    assert session.wanted_scopes == ("a", "b", "c")
    assert not session.needs_login


def test_scopes_that_somebody_else_signed_in_for_are_used() -> None:
    session, _, vault = made(Refreshes(), credentials(scope=("a",)))
    assert sent(session) == "access-1"
    vault.keep(credentials("wider", scope=("a", "b")))
    assert again(session, Refusal("access-1", 403, MORE))
    assert sent(session) == "wider"
    with pytest.raises(InsufficientScope):
        again(session, Refusal("wider", 403, MORE))


@pytest.mark.parametrize("header", ["", "Bearer", 'Bearer error="access_denied"', "Basic realm=x"])
def test_another_403_is_not_about_scopes(header: str) -> None:
    session, *_ = made(Refreshes(), credentials())
    assert not again(session, Refusal("access-1", 403, header))


def test_nobody_has_ever_signed_in() -> None:
    session, _, vault = made(Refreshes())
    assert sent(session) == ""
    assert not session.needs_login
    with pytest.raises(NeedsLogin, match="HTTP 401"):
        again(session, Refusal(""))
    assert session.needs_login
    vault.keep(credentials())
    assert sent(session) == "access-1"
    assert again(session, Refusal(""))


def test_a_refresh_token_that_does_not_turn_is_kept() -> None:
    def same(found: Credentials, deadline: Deadline) -> Tokens:
        return Tokens("access-2", expires_at=None)

    session, _, vault = made(same, credentials(scope=("a",)))
    assert sent(session) == "access-1"
    assert again(session, Refusal("access-1"))
    kept = vault.current()
    assert kept is not None and kept.tokens is not None
    assert (kept.tokens.refresh_token, kept.tokens.scope) == ("refresh-1", ("a",))


def test_no_secret_is_shown() -> None:
    session, _, _ = made(Refreshes(), credentials())
    assert sent(session) == "access-1"
    assert "access-1" not in repr(session) + repr(session.vault) + repr(session.credentials)
