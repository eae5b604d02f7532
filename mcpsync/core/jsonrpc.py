"""JSON-RPC 2.0 messages as bytes: encode, decode, and the error codes of MCP.

Specification: `basic/index`, "Messages" and "Error Codes" of every revision.

Encoding and decoding are the two most expensive steps of a call, so both go straight to the C parts of the
standard library's ``json`` (``JSONEncoder.encode`` builds a new C encoder each time, ``json.loads`` guesses the
encoding each time), or to ``orjson`` where the ``speed`` extra is installed. Both give the same values, but for one
case that cannot be told cheaply: ``orjson`` reads an integer of more than 64 bits as a float.
"""

from __future__ import annotations

import enum
import gc
import json
import json.encoder
import sys
from functools import lru_cache
from typing import Any, Callable, Dict, Optional

from mcpsync.errors import InvalidMessage

__all__ = [
    "HEADER_MISMATCH",
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "METHOD_NOT_FOUND",
    "MISSING_CAPABILITY",
    "PARSE_ERROR",
    "UNSUPPORTED_VERSION",
    "URL_ELICITATION_REQUIRED",
    "after_fork",
    "decode",
    "encode",
    "error_answer",
    "excerpt",
    "notification",
    "request",
    "result_answer",
    "shown",
]

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022
URL_ELICITATION_REQUIRED = -32042


def _default(value: Any) -> Any:
    """What orjson encodes unasked is encoded without it as well, so that the extra changes the speed alone."""
    if isinstance(value, enum.Enum):
        return value.value
    uuid = sys.modules.get("uuid")  # whoever has a UUID has imported it
    if uuid is not None and isinstance(value, uuid.UUID):
        return str(value)
    raise ValueError("%s is not one of JSON's types" % type(value).__name__)


_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False, default=_default)
_ASCII_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False, default=_default)
_UNCOLLECTED = 1024 * 1024 if sys.version_info < (3, 12) else sys.maxsize
"""From so many bytes on a text is decoded by :func:`_uncollected`."""
_DECODER = json.JSONDecoder()
_scan_once = getattr(_DECODER, "scan_once")  # noqa: B009 - absent from the type stubs


def _text_encoder() -> Callable[[Any], str]:
    """``_ENCODER.encode`` without building a C encoder per call, where the interpreter has one to keep."""
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return _ENCODER.encode
    quote = getattr(json.encoder, "encode_basestring")  # noqa: B009 - absent from the type stubs
    # no table of markers: a circular structure ends in RecursionError, and threads share this encoder
    chunks = make(None, _default, quote, None, ":", ",", False, False, False)

    def encode_text(value: Any) -> str:
        return "".join(chunks(value, 0))

    return encode_text


_encode_text = _text_encoder()


def _encode_plain(value: Any) -> bytes:
    try:
        text = _encode_text(value)
        try:
            return text.encode()
        except UnicodeEncodeError:  # a lone surrogate: legal in JSON only as an escape
            return _ASCII_ENCODER.encode(value).encode()
    except TypeError as error:  # a key that is no text
        raise ValueError(str(error)) from None
    except RecursionError:
        raise ValueError("it is nested too deeply, or contains itself") from None


def _decode_plain(data: bytes) -> Any:
    if len(data) >= _UNCOLLECTED and gc.isenabled():
        return _uncollected(_decode_plain, data)
    try:
        text = data.decode()
        try:
            value, end = _scan_once(text, 0)
            if end == len(text):
                return value
        except (StopIteration, json.JSONDecodeError):
            pass  # a BOM or white space at the start is legal enough: the slow way tells
        return _DECODER.decode(text.lstrip("\ufeff"))
    except (RecursionError, ValueError) as error:
        raise _invalid(data, error) from None


_collector_paused = False


def _uncollected(decode_it: Callable[[bytes], Any], data: bytes) -> Any:
    """What ``decode_it`` makes of a large text, without the garbage collector in between.

    Up to Python 3.11 the collector runs whenever enough objects came to life, and walks a growing value again and again
    to find nothing: a quarter of the time of 10 MB. Later interpreters collect between bytecodes only, so never within.
    """
    global _collector_paused
    _collector_paused = True
    gc.disable()
    try:
        return decode_it(data)
    finally:
        gc.enable()
        _collector_paused = False


def after_fork() -> None:
    """In a forked child: a thread that decoded at that moment is not there to start the collector again."""
    global _collector_paused
    if _collector_paused:
        gc.enable()
        _collector_paused = False


def _invalid(data: bytes, error: Exception) -> InvalidMessage:
    if isinstance(error, RecursionError):
        return InvalidMessage("JSON nested too deeply: %s" % excerpt(data))
    if isinstance(error, UnicodeDecodeError):
        return InvalidMessage("invalid UTF-8 at byte %d: %s" % (error.start, excerpt(data)))
    return InvalidMessage("invalid JSON (%s): %s" % (error, excerpt(data)))


encode: Callable[[Any], bytes] = _encode_plain
"""JSON text in UTF-8; raises :exc:`ValueError` for what has no JSON form: NaN, a circular structure, an object that is
none of JSON's types."""
decode: Callable[[bytes], Any] = _decode_plain
"""The value of a JSON text in UTF-8; raises :exc:`~mcpsync.errors.InvalidMessage` for what is no JSON, or no UTF-8: the
text says where."""


def _use_orjson() -> None:
    global encode, decode
    try:
        import orjson
    except ImportError:
        return
    # what orjson would encode and the standard library would not is refused by both
    strict = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS
    dumps, loads = orjson.dumps, orjson.loads

    def encode_fast(value: Any) -> bytes:
        try:
            data: bytes = dumps(value, None, strict)
        except TypeError:  # a wide integer, a key that is no text, a lone surrogate: the standard library decides
            return _encode_plain(value)
        # orjson writes NaN as null and says nothing: where there is a null, the standard library decides as well
        return _encode_plain(value) if data.partition(b"null")[1] else data

    def decode_fast(data: bytes) -> Any:
        try:
            if len(data) >= _UNCOLLECTED and gc.isenabled():
                return _uncollected(loads, data)
            return loads(data)
        except ValueError:  # a lone surrogate, NaN, a BOM: the standard library decides
            return _decode_plain(data)

    encode, decode = encode_fast, decode_fast


_use_orjson()


def excerpt(data: bytes, limit: int = 200) -> str:
    """The start of a message for a log or an error: bounded, on one line, control characters escaped."""
    text = data[:limit].decode("utf-8", "replace")
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return shown if len(data) <= limit else "%s... (%d bytes)" % (shown, len(data))


def shown(value: Any, limit: int = 100) -> str:
    """A decoded value for a log or an error: bounded, on one line; of a structure only that it is one.

    Its ``repr`` would be as long as the message, and fails on one that is nested deeply.
    """
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "an array"
    return repr(value[:limit]) if isinstance(value, str) else repr(value)[:limit]


@lru_cache(maxsize=256)
def _quoted(method: str) -> bytes:
    return encode(method)


def request(request_id: int, method: str, params: bytes, meta: bytes = b"") -> bytes:
    """A request whose parameters are JSON already, and so is ``_meta``, which is none of them."""
    if meta:
        if len(params) == 2:  # {}
            params = b'{"_meta":%s}' % meta
        else:
            return b'{"jsonrpc":"2.0","id":%d,"method":%s,"params":%s,"_meta":%s}}' % (
                request_id,
                _quoted(method),
                params[:-1],
                meta,
            )
    return b'{"jsonrpc":"2.0","id":%d,"method":%s,"params":%s}' % (request_id, _quoted(method), params)


def notification(method: str, params: Optional[Dict[str, Any]] = None) -> bytes:
    """A notification."""
    message: Dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        message["params"] = params
    return encode(message)


def result_answer(request_id: Any, result: Any) -> bytes:
    """The answer to a request of the peer, with the peer's id as it came."""
    return encode({"jsonrpc": "2.0", "id": request_id, "result": result})


def error_answer(request_id: Any, code: int, message: str, data: Any = None) -> bytes:
    """The refusal of a request of the peer."""
    error: Dict[str, Any] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return encode({"jsonrpc": "2.0", "id": request_id, "error": error})
