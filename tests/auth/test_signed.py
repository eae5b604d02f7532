"""When a token is replaced."""

from __future__ import annotations

import pytest

from mcpsync.auth.credentials import Tokens
from mcpsync.auth.signed import skew_of


@pytest.mark.parametrize(
    ("life", "skew"), [(3600.0, 60.0), (300.0, 60.0), (100.0, 20.0), (5.0, 1.0), (3.0, 1.0), (2.0, 1.0), (1.0, 0.5)]
)
def test_a_token_is_replaced_before_a_server_that_counts_whole_seconds_refuses_it(life: float, skew: float) -> None:
    tokens = Tokens("token", expires_at=1000.0 + life, extra={"obtained_at": 1000.0})
    assert skew_of(tokens) == pytest.approx(skew)


@pytest.mark.parametrize("tokens", [Tokens("token"), Tokens("token", expires_at=1000.0)])
def test_a_token_of_unknown_life_is_replaced_half_a_minute_before(tokens: Tokens) -> None:
    assert skew_of(tokens) == 30
