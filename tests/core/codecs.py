"""Both ways in which messages are encoded and decoded, side by side."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple, Optional

from mcpsync.core import jsonrpc


class Codec(NamedTuple):
    """One way: the standard library's ``json``, or ``orjson``."""

    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]


STDLIB = Codec(jsonrpc._encode_plain, jsonrpc._decode_plain)


def orjson_codec() -> Optional[Codec]:
    """What the library uses where ``orjson`` is installed; None where it is not."""
    before = jsonrpc.encode, jsonrpc.decode
    try:
        jsonrpc.encode, jsonrpc.decode = STDLIB
        jsonrpc._use_orjson()
        found = Codec(jsonrpc.encode, jsonrpc.decode)
    finally:
        jsonrpc.encode, jsonrpc.decode = before
    return None if found == STDLIB else found
