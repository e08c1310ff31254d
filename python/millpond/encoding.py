"""Payloads, results and progress as stores keep them. Cases: contract/vectors/encoding.json.

Bytes are kept as they are, what JSON carries without loss as JSON, all else as MessagePack. Python's own are: an
integer beyond ±(2^53 − 1) is a big integer, which JSON does not carry; an aware datetime becomes RFC 3339 text.
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Final, Literal, TypeAlias

import msgpack

from millpond.errors import MillpondError

Encoding = Literal["json", "msgpack", "bytes"]
Value: TypeAlias = "None | bool | int | float | str | bytes | list[Value] | dict[str, Value]"

DEEPEST: Final = 200
SAFE: Final = 2**53 - 1
LARGEST: Final = 16 * 1024 * 1024
"""Most bytes of an encoded value in a store."""
SEAL_MAGIC: Final = b"\xc1MPSeal\x01"
"""How a sealed payload begins: contract/seal.md."""
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Body:
    """An encoded value: text if the encoding is `json`, else bytes."""

    encoding: Encoding
    body: str | bytes


def encode(value: object, limit: int = LARGEST) -> Body:
    """Errors: `PayloadNotEncodable`; `PayloadTooLarge` if the encoded value has more bytes than `limit`."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        plain_bytes = bytes(value)
        # What looks sealed would not come back as it is.
        looks_sealed = plain_bytes.startswith(SEAL_MAGIC)
        encoded = Body("msgpack", _pack(plain_bytes)) if looks_sealed else Body("bytes", plain_bytes)
    else:
        plain = _plain(value, 0)
        half = _half_at(plain)
        if half is not None:
            where = f"the text at {'.'.join(half)}" if half else "the value"
            message = f"{where} holds half of a surrogate pair, such as a cut emoji: no encoding carries it"
            raise MillpondError("PayloadNotEncodable", message)
        encoded = Body("msgpack", _pack(plain)) if _needs_msgpack(plain) else Body("json", _json(plain))
    size = len(encoded.body.encode("utf-8")) if isinstance(encoded.body, str) else len(encoded.body)
    if size > limit:
        raise MillpondError("PayloadTooLarge", f"the value has {size} bytes; {limit} are allowed")
    return encoded


def decode(encoding: str, body: str | bytes) -> Value:
    """Errors: `PayloadNotDecodable`, `PayloadSealed`."""
    try:
        match encoding, body:
            case "json", str() | bytes():
                text = body if isinstance(body, str) else body.decode("utf-8")
                value: Value = json.loads(text, parse_constant=_refuse)
                # Other programs may have stored it. Few texts have such an escape at all.
                if "\\ud" in text.lower() and _half_at(value) is not None:
                    raise ValueError("half of a surrogate pair")
                return value
            case "bytes", bytes():
                if body.startswith(SEAL_MAGIC):
                    raise MillpondError("PayloadSealed", "the payload is sealed, and this client has no keys")
                return body
            case "msgpack", bytes():
                unpacked = msgpack.unpackb(body, strict_map_key=True, ext_hook=_refuse, object_pairs_hook=_object)
                return _unpacked(unpacked, 0)
        raise ValueError(f"{encoding} of {type(body).__name__}")
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException) as error:
        raise MillpondError("PayloadNotDecodable", f"the bytes are not {encoding}: {error}") from error


def _plain(value: object, depth: int) -> Value:
    """The value in the types that encodings carry, checked."""
    if isinstance(value, float):
        return value or 0  # minus zero loses its sign
    if value is None or isinstance(value, (bool, int, str, bytes)):
        return value
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if depth == DEEPEST:
        raise MillpondError("PayloadNotEncodable", f"the value is nested more than {DEEPEST} levels deep")
    if isinstance(value, (list, tuple)):
        return [_plain(each, depth + 1) for each in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _plain(each, depth + 1) for key, each in value.items()}
    what = "a dict with keys that are no text" if isinstance(value, dict) else type(value).__name__
    raise MillpondError("PayloadNotEncodable", f"no encoding carries {what}")


def well_formed(text: str) -> str:
    """The text with a replacement character for each half of a surrogate pair."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def _half_at(value: Value) -> list[str] | None:
    """The path to the first text or key with half of a surrogate pair; the key is shown with a replacement character."""
    match value:
        case str():
            return None if value.isascii() or _SURROGATE.search(value) is None else []
        case list():
            items: Iterable[tuple[str, Value]] = ((str(at), each) for at, each in enumerate(value))
        case dict():
            items = value.items()
        case _:
            return None
    for key, each in items:
        if _SURROGATE.search(key):
            return [_SURROGATE.sub("\ufffd", key)]
        below = _half_at(each)
        if below is not None:
            return [key, *below]
    return None


def _needs_msgpack(value: Value) -> bool:
    match value:
        case bytes():
            return True
        case float():
            return not math.isfinite(value)
        case int():
            return abs(value) > SAFE
        case list():
            return any(map(_needs_msgpack, value))
        case dict():
            return any(map(_needs_msgpack, value.values()))
    return False


def _json(value: Value) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _pack(value: Value) -> bytes:
    """MessagePack with the widths that the contract lays down, which no option of the library gives."""
    match value:
        case bool() | None | float() | bytes() | str():
            return msgpack.packb(value)
        case int():
            return _pack_integer(value)
        case list():
            return msgpack.Packer().pack_array_header(len(value)) + b"".join(map(_pack, value))
        case dict():
            if "__proto__" in value:
                raise MillpondError("PayloadNotEncodable", "MessagePack carries no key __proto__")
            pairs = (_pack(key) + _pack(each) for key, each in value.items())
            return msgpack.Packer().pack_map_header(len(value)) + b"".join(pairs)


def _pack_integer(value: int) -> bytes:
    if -(2**31) <= value < 2**32:
        return msgpack.packb(value)
    if abs(value) <= SAFE:
        # The 64-bit integers stand for big integers.
        return struct.pack(">Bd", 0xCB, value)
    if -(2**63) <= value < 2**63:
        return struct.pack(">Bq", 0xD3, value)
    if value < 2**64 and value > 0:
        return struct.pack(">BQ", 0xCF, value)
    raise MillpondError("PayloadNotEncodable", f"{value} has more than 64 bits")


def _unpacked(value: object, depth: int) -> Value:
    if depth > DEEPEST:
        raise ValueError(f"more than {DEEPEST} levels")
    match value:
        case list():
            return [_unpacked(each, depth + 1) for each in value]
        case dict():
            return {key: _unpacked(each, depth + 1) for key, each in value.items()}
        case float() if value.is_integer() and abs(value) <= SAFE and not -(2**31) <= value < 2**32:
            # It was a whole number past 32 bits: see `_pack_integer`.
            return int(value)
        case None | bool() | int() | float() | str() | bytes():
            return value
    raise ValueError(f"an extension: {type(value).__name__}")


def _object(pairs: list[tuple[object, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if not isinstance(key, str) or key == "__proto__":
            raise ValueError("a key that is no text, or __proto__")
        found[key] = value
    return found


def _refuse(*_: object) -> Value:
    raise ValueError("a constant or an extension")
