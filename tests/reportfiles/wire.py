"""The protobuf wire format, as far as report files need it: fields go in, bytes come out."""

from __future__ import annotations

import struct

VARINT, FIXED64, LENGTH_DELIMITED = 0, 1, 2
_SHORT = [bytes([value]) for value in range(128)]


def varint(value: int) -> bytes:
    """A whole number, seven bits a byte, the lowest first; a negative one as its 64-bit two's complement."""
    if 0 <= value < 128:
        return _SHORT[value]
    value &= (1 << 64) - 1
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def field(number: int, value: int | float | str | bytes) -> bytes:
    """One field; the value's type chooses the wire type: whole number, double, or bytes with a length."""
    if isinstance(value, int):
        return varint(number << 3 | VARINT) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | FIXED64) + struct.pack("<d", value)
    content = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | LENGTH_DELIMITED) + varint(len(content)) + content


def message(*fields: tuple[int, int | float | str | bytes | None]) -> bytes:
    """A message of these fields, in this order; a field whose value is None is left out."""
    return b"".join(field(number, value) for number, value in fields if value is not None)
