"""What integer, predicate and floating-point instructions compute, lane by lane."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from profiler.model.instructions import PT, RZ, Instruction, Operand
from profiler.model.machine import (
    Action,
    BlockState,
    Lanes,
    Read,
    float_reader,
    float_writer,
    indexed_constant_reader,
    note_read,
    note_write,
    predicate_reader,
    predicate_writer,
    reader,
    wide_reader,
    wide_writer,
    writer,
)

Compile = Callable[[Instruction], Action]

_U32, _U64, _I32, _I64 = np.uint32, np.uint64, np.int32, np.int64
_TINY = np.float32(2.0**-126)  # the smallest normal fp32


def _require(instruction: Instruction, allowed: str) -> None:
    """Refuse modifiers that are not modelled."""
    unknown = instruction.modifiers - set(allowed.split())
    if unknown:
        raise instruction.no_model(f"modifier {', '.join(sorted(unknown))} is not known")


def _is_predicate(operand: Operand) -> bool:
    return operand.kind in ("predicate", "uniform predicate")


def _split(instruction: Instruction) -> tuple[Operand, list[Operand], list[Operand], list[Operand]]:
    """Destination, predicates written behind it, values read, predicates read behind those."""
    destination, *rest = instruction.operands
    written: list[Operand] = []
    while rest and _is_predicate(rest[0]):
        written.append(rest.pop(0))
    values = [operand for operand in rest if not _is_predicate(operand)]
    return destination, written, values, [operand for operand in rest if _is_predicate(operand)]


def _signed(value: Any) -> Any:
    return value.view(_I32)


def _as_i64(value: Any, signed: bool) -> Any:
    return _I64(value.view(_I32)) if signed else _I64(value)


# ---- integers


def _add3(instruction: Instruction) -> Action:
    _require(instruction, "X")
    destination, carries_out, values, carries_in = _split(instruction)
    if len(values) != 3:
        raise instruction.no_model("a sum of another form")
    write = writer(instruction, destination)
    with_carry = "X" in instruction.modifiers
    carry_reads = [predicate_reader(instruction, operand) for operand in carries_in] if with_carry else []
    carry_writes = [predicate_writer(instruction, operand) for operand in carries_out]
    if not carry_reads and not carry_writes:
        signed_reads = [reader(instruction, operand) for operand in values]

        def add(m: BlockState, s: Lanes) -> None:
            write(m, s, reduce(lambda x, y: x + y, (read(m, s) for read in signed_reads)))

        return add
    # With .X a negated value is complemented: the carry that comes in is what makes it the negation.
    plain = [
        replace(operand, negative=False, inverted=operand.inverted or (operand.negative and with_carry))
        for operand in values
    ]
    reads = [reader(instruction, operand) for operand in plain]

    def add_with_carry(m: BlockState, s: Lanes) -> None:
        total: Any = _U64(0)
        for read, operand in zip(reads, values, strict=True):
            value: Any = _U64(read(m, s))
            if operand.negative and not with_carry:  # ~x + 1, whose carry counts where x is 0
                value = _U64(0x100000000) - value
            total = total + value
        for carry_read in carry_reads:
            total = total + _U64(carry_read(m, s))
        write(m, s, (total & _U64(0xFFFFFFFF)).astype(_U32))
        for position, carry_write in enumerate(carry_writes):
            carry_write(m, s, total >> _U64(32) > position)

    return add_with_carry


def _viadd(instruction: Instruction) -> Action:
    _require(instruction, "")
    destination, a, b = instruction.operands
    read_a, read_b, write = (
        reader(instruction, a),
        reader(instruction, b),
        writer(instruction, destination),
    )
    return lambda m, s: write(m, s, read_a(m, s) + read_b(m, s))


def _iadd(instruction: Instruction) -> Action:
    """The sum of two values, with .64 of two register pairs, as Blackwell has it."""
    if not instruction.modifiers:
        return _viadd(instruction)
    _require(instruction, "64")
    destination, a, b = instruction.operands
    read_a, read_b = wide_reader(instruction, a), wide_reader(instruction, b)
    write = wide_writer(instruction, destination)
    return lambda m, s: write(m, s, read_a(m, s) + read_b(m, s))


def _imad(instruction: Instruction) -> Action:
    modifiers = instruction.modifiers
    _require(instruction, "MOV U32 IADD SHL X WIDE HI")
    destination, written, values, carries = _split(instruction)
    if written and not ("X" in modifiers or "WIDE" in modifiers):
        raise instruction.no_model("a carry of a multiplication")
    if len(values) != 3:
        raise instruction.no_model("a multiplication of another form")
    a, _, c = values
    signed = "U32" not in modifiers
    read_a, read_b, read_c = (reader(instruction, operand) for operand in values)
    if "WIDE" in modifiers:
        if carries or len(written) > 1:
            raise instruction.no_model("a carry of a multiplication")
        carry_out = predicate_writer(instruction, written[0]) if written else None
        read_wide, write_wide = wide_reader(instruction, c), wide_writer(instruction, destination)

        def wide(m: BlockState, s: Lanes) -> None:
            product = _as_i64(read_a(m, s), signed) * _as_i64(read_b(m, s), signed)
            result = product.view(_U64) + read_wide(m, s)
            write_wide(m, s, result)
            if carry_out:
                carry_out(m, s, result < product.view(_U64))

        return wide
    write = writer(instruction, destination)
    if "HI" in modifiers:
        read_addend = wide_reader(instruction, c)  # 64 bits: divisions add a register pair

        def high(m: BlockState, s: Lanes) -> None:
            product = _as_i64(read_a(m, s), signed) * _as_i64(read_b(m, s), signed)
            total = product.view(_U64) + read_addend(m, s)
            write(m, s, (total >> _U64(32)).astype(_U32))

        return high
    if "X" in modifiers:
        carry_reads = [predicate_reader(instruction, operand) for operand in carries]
        carry_writes = [predicate_writer(instruction, operand) for operand in written]
        if c.negative:
            read_c = reader(instruction, replace(c, negative=False, inverted=True))

        def with_carry(m: BlockState, s: Lanes) -> None:
            total = _U64(read_a(m, s) * read_b(m, s)) + _U64(read_c(m, s))
            for carry_read in carry_reads:
                total = total + _U64(carry_read(m, s))
            write(m, s, (total & _U64(0xFFFFFFFF)).astype(_U32))
            for carry_write in carry_writes:
                carry_write(m, s, total >> _U64(32) > 0)

        return with_carry
    if a.kind == "register" and a.number == RZ and not a.inverted:
        return lambda m, s: write(m, s, read_c(m, s))
    return lambda m, s: write(m, s, read_a(m, s) * read_b(m, s) + read_c(m, s))


def _lea(instruction: Instruction) -> Action:
    modifiers = instruction.modifiers
    _require(instruction, "HI X SX32")
    destination, written, values, carries = _split(instruction)
    write = writer(instruction, destination)
    carry_writes = [predicate_writer(instruction, operand) for operand in written]
    carry_reads = [predicate_reader(instruction, operand) for operand in carries]
    sign_extends = "SX32" in modifiers
    is_high = "HI" in modifiers
    expected = 4 if is_high and not sign_extends else 3
    if len(values) != expected or any(value.negative for value in values):
        raise instruction.no_model("an address of another form")
    shift = values[-1].number
    read_a, read_b = reader(instruction, values[0]), reader(instruction, values[1])
    read_upper = reader(instruction, values[2]) if expected == 4 else None

    def lea(m: BlockState, s: Lanes) -> None:
        low = read_a(m, s)
        if is_high:
            if read_upper is not None:
                upper = _U64(read_upper(m, s))
            else:
                upper = _U64((_signed(low) >> _I32(31)).view(_U32))
            value = (_U64(low) | upper << _U64(32)) << _U64(shift) >> _U64(32)
            value = value & _U64(0xFFFFFFFF)
        else:
            value = (_U64(low) << _U64(shift)) & _U64(0xFFFFFFFF)
        total = value + _U64(read_b(m, s))
        for carry_read in carry_reads:
            total = total + _U64(carry_read(m, s))
        write(m, s, (total & _U64(0xFFFFFFFF)).astype(_U32))
        for carry_write in carry_writes:
            carry_write(m, s, total >> _U64(32) > 0)

    return lea


def _shift(instruction: Instruction) -> Action:
    modifiers = instruction.modifiers
    _require(instruction, "L R U32 S32 U64 S64 HI W")
    if "W" in modifiers:
        raise instruction.no_model("a shift that wraps around")
    destination, low, amount, high = instruction.operands
    read_low, read_amount, read_high = (reader(instruction, operand) for operand in (low, amount, high))
    write = writer(instruction, destination)
    upper = "HI" in modifiers
    is_wide = bool(modifiers & {"U64", "S64"})
    limit = _U32(63 if is_wide else 32)
    signed = bool(modifiers & {"S32", "S64"})

    def shift(m: BlockState, s: Lanes) -> None:
        distance = _U64(np.minimum(read_amount(m, s), limit))
        x, y = read_low(m, s), read_high(m, s)
        if "L" in modifiers:
            if upper:  # the upper half of the 64 bits y:x
                value = (_U64(x) | _U64(y) << _U64(32)) << distance >> _U64(32)
            else:
                value = (_U64(x) << distance) & _U64(0xFFFFFFFF)
        elif upper and not is_wide:  # y alone is shifted
            if signed:
                value = (_I64(_signed(y)) >> distance.astype(_I64)).astype(_I32).view(_U32)
            else:
                value = _U64(y) >> distance
        else:
            wide = _U64(x) | _U64(y) << _U64(32)
            value = (wide.view(_I64) >> distance.astype(_I64)).view(_U64) if signed else wide >> distance
            value = value >> _U64(32) if upper else value & _U64(0xFFFFFFFF)
        write(m, s, value.astype(_U32))

    return shift


def _lop3(instruction: Instruction) -> Action:
    _require(instruction, "LUT")
    operands = list(instruction.operands)
    predicate = operands.pop(0) if _is_predicate(operands[0]) else None
    destination, a, b, c, table, _ = operands
    reads = [reader(instruction, operand) for operand in (a, b, c)]
    write = writer(instruction, destination)
    write_predicate = predicate_writer(instruction, predicate) if predicate else None
    compute = _logic(table.number)

    def lop3(m: BlockState, s: Lanes) -> None:
        value = compute(*(read(m, s) for read in reads))
        write(m, s, value)
        if write_predicate:
            write_predicate(m, s, value != 0)

    return lop3


# The tables of single operations on the truth tables 0xf0, 0xcc and 0xaa of a, b and c.
_COMMON_LOGIC: dict[int, Callable[[Any, Any, Any], Any]] = {
    0xC0: lambda a, b, c: a & b,
    0xFC: lambda a, b, c: a | b,
    0x3C: lambda a, b, c: a ^ b,
    0x30: lambda a, b, c: a & ~b,
    0x0C: lambda a, b, c: ~a & b,
    0x33: lambda a, b, c: ~b,
    0x0F: lambda a, b, c: ~a,
    0xF8: lambda a, b, c: a | (b & c),
    0xFE: lambda a, b, c: a | b | c,
    0x96: lambda a, b, c: a ^ b ^ c,
    0x80: lambda a, b, c: a & b & c,
}


def _logic(table: int) -> Callable[[Any, Any, Any], Any]:
    """The bitwise function of three values that a truth table says: its bit 4a + 2b + c is the value."""
    if table in _COMMON_LOGIC:
        return _COMMON_LOGIC[table]

    def compute(a: Any, b: Any, c: Any) -> Any:
        result: Any = a & ~a
        for row in range(8):
            if table >> row & 1:
                term = (a if row & 4 else ~a) & (b if row & 2 else ~b) & (c if row & 1 else ~c)
                result = result | term
        return result

    return compute


def _plop3(instruction: Instruction) -> Action:
    _require(instruction, "LUT")
    first, second, a, b, c, table_1, table_2 = instruction.operands
    reads = [predicate_reader(instruction, operand) for operand in (a, b, c)]
    writes = [predicate_writer(instruction, operand) for operand in (first, second)]
    functions = [_boolean_logic(table.number) for table in (table_1, table_2)]

    def plop3(m: BlockState, s: Lanes) -> None:
        values = [read(m, s) for read in reads]
        results = [function(*values) for function in functions]
        for write, result in zip(writes, results, strict=True):
            write(m, s, result)

    return plop3


def _boolean_logic(table: int) -> Callable[[Any, Any, Any], Any]:
    rows = np.array([bool(table >> row & 1) for row in range(8)])
    return lambda a, b, c: rows[a * 4 + b * np.int64(2) + c]


_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
    "EQ": np.equal,
    "NE": np.not_equal,
}
_COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "AND": np.logical_and,
    "OR": np.logical_or,
    "XOR": np.logical_xor,
}


def _one_of(instruction: Instruction, table: dict[str, Any]) -> Any:
    names = [name for name in instruction.opcode.split(".")[1:] if name in table]
    if len(names) != 1:
        raise instruction.no_model("its comparison is not known")
    return table[names[0]]


def _write_comparison(instruction: Instruction, compare: Callable[[BlockState, Lanes], Any]) -> Action:
    """The two predicates of a SETP: (comparison op c) and (its opposite op c)."""
    first, second = instruction.operands[:2]
    writes = predicate_writer(instruction, first), predicate_writer(instruction, second)
    combine = _one_of(instruction, _COMBINE)
    read_c = predicate_reader(instruction, instruction.operands[4])

    def setp(m: BlockState, s: Lanes) -> None:
        result, other = compare(m, s), read_c(m, s)
        writes[0](m, s, combine(result, other))
        if second.number != PT:
            writes[1](m, s, combine(~result, other))

    return setp


def _isetp(instruction: Instruction) -> Action:
    _require(instruction, "LT LE GT GE EQ NE U32 AND OR XOR EX")
    operands = instruction.operands
    signed = "U32" not in instruction.modifiers
    compare = _one_of(instruction, _COMPARE)
    read_a, read_b = reader(instruction, operands[2]), reader(instruction, operands[3])
    if "EX" not in instruction.modifiers:

        def compare_values(m: BlockState, s: Lanes) -> Any:
            a, b = read_a(m, s), read_b(m, s)
            return compare(_signed(a), _signed(b)) if signed else compare(a, b)

        return _write_comparison(instruction, compare_values)
    # The upper halves of 64-bit values: the last operand is what comparing the lower ones gave.
    if len(operands) != 6:
        raise instruction.no_model("a comparison of another form")
    read_lower = predicate_reader(instruction, operands[5])

    def compare_upper(m: BlockState, s: Lanes) -> Any:
        a, b = read_a(m, s), read_b(m, s)
        if signed:
            a, b = _signed(a), _signed(b)
        equal, lower = a == b, read_lower(m, s)
        if "NE" in instruction.modifiers:
            return ~equal | lower
        return np.where(equal, lower, compare(a, b))

    return _write_comparison(instruction, compare_upper)


def _select(instruction: Instruction) -> Action:
    _require(instruction, "FTZ")
    destination, a, b, predicate = instruction.operands
    if instruction.base == "FSEL":
        read_a, read_b = float_reader(instruction, a), float_reader(instruction, b)
        write = float_writer(instruction, destination)
    else:
        read_a, read_b = reader(instruction, a), reader(instruction, b)
        write = writer(instruction, destination)
    read_predicate = predicate_reader(instruction, predicate)
    return lambda m, s: write(m, s, np.where(read_predicate(m, s), read_a(m, s), read_b(m, s)))


def _integer_minimum(instruction: Instruction) -> Action:
    """IMNMX, VIMNMX: the minimum where the predicate is true. VIADDMNMX adds the first two first."""
    _require(instruction, "U32 S32 RELU")
    destination, *values, predicate = instruction.operands
    reads = [reader(instruction, operand) for operand in values]
    read_predicate = predicate_reader(instruction, predicate)
    write = writer(instruction, destination)
    signed = "U32" not in instruction.modifiers
    adds = instruction.base == "VIADDMNMX"
    if len(values) != (3 if adds else 2):
        raise instruction.no_model("a minimum of another form")

    def minimum(m: BlockState, s: Lanes) -> None:
        operands = [read(m, s) for read in reads]
        if adds:
            operands = [operands[0] + operands[1], operands[2]]
        a, b = (_signed(value) for value in operands) if signed else operands
        result = np.where(read_predicate(m, s), np.minimum(a, b), np.maximum(a, b))
        if "RELU" in instruction.modifiers:
            result = np.maximum(result, 0)
        write(m, s, result.view(_U32) if signed else result)

    return minimum


def _prmt(instruction: Instruction) -> Action:
    _require(instruction, "")
    destination, a, selector, b = instruction.operands
    read_a, read_b = reader(instruction, a), reader(instruction, b)
    write = writer(instruction, destination)
    if selector.kind != "number":
        raise instruction.no_model("bytes are chosen by a register")
    picks = [selector.number >> (4 * position) & 0xF for position in range(4)]

    def prmt(m: BlockState, s: Lanes) -> None:
        both = _U64(read_a(m, s)) | _U64(read_b(m, s)) << _U64(32)
        result: Any = _U64(0)
        for position, pick in enumerate(picks):
            byte = both >> _U64(8 * (pick & 7)) & _U64(0xFF)
            if pick & 8:  # its sign, eight times
                byte = (byte >> _U64(7)) * _U64(0xFF)
            result = result | byte << _U64(8 * position)
        write(m, s, result.astype(_U32))

    return prmt


def _predicates_from_register(instruction: Instruction) -> Action:
    """R2P: the predicates that a mask names become bits of one byte of a register."""
    _require(instruction, "")
    predicates, source, mask = instruction.operands
    if predicates.kind != "predicates" or mask.kind != "number":
        raise instruction.no_model("predicates of another form")
    first = 8 * int(source.half[1]) if source.half.startswith("B") else 0
    read = reader(instruction, replace(source, half=""))
    numbers = [number for number in range(PT) if mask.number >> number & 1]
    for number in numbers:
        note_write("P", number)

    def set_predicates(m: BlockState, s: Lanes) -> None:
        value = read(m, s)
        for number in numbers:
            m.P[number, s.index] = value >> _U32(first + number) & _U32(1) != 0

    return set_predicates


def _register_from_predicates(instruction: Instruction) -> Action:
    """P2R: the reverse; the other bits are those of a register."""
    _require(instruction, "B0 B1 B2 B3")
    destination, predicates, source, mask = instruction.operands
    if predicates.kind != "predicates" or mask.kind != "number":
        raise instruction.no_model("predicates of another form")
    first = 8 * _byte_of(instruction)
    read, write = reader(instruction, source), writer(instruction, destination)
    numbers = [number for number in range(PT) if mask.number >> number & 1]
    for number in numbers:
        note_read("P", number)
    kept = ~_U32((mask.number & 0xFF) << first)

    def pack(m: BlockState, s: Lanes) -> None:
        value = read(m, s) & kept
        for number in numbers:
            value = value | m.P[number, s.index].astype(_U32) << _U32(first + number)
        write(m, s, value)

    return pack


def _byte_of(instruction: Instruction) -> int:
    return next((byte for byte in range(4) if f"B{byte}" in instruction.modifiers), 0)


def _bit_mask(instruction: Instruction) -> Action:
    """BMSK: so many bits from a position on."""
    _require(instruction, "")
    destination, position, count = instruction.operands
    read_position, read_count = reader(instruction, position), reader(instruction, count)
    write = writer(instruction, destination)

    def mask(m: BlockState, s: Lanes) -> None:
        width = _U64(np.minimum(read_count(m, s), _U32(32)))
        start = _U64(np.minimum(read_position(m, s), _U32(32)))
        bits = ((_U64(1) << width) - _U64(1)) << start
        write(m, s, (bits & _U64(0xFFFFFFFF)).astype(_U32))

    return mask


def _sign_extend(instruction: Instruction) -> Action:
    """SGXT: the lowest bits of a value, so many, with their sign or with zeros above them."""
    _require(instruction, "U32")
    destination, source, count = instruction.operands
    if count.kind != "number" or not 0 < count.number < 32:
        raise instruction.no_model("a number of bits of another form")
    read, write = reader(instruction, source), writer(instruction, destination)
    shift = 32 - count.number
    signed = "U32" not in instruction.modifiers

    def extend(m: BlockState, s: Lanes) -> None:
        upper = read(m, s) << _U32(shift)
        write(m, s, (_signed(upper) >> _I32(shift)).view(_U32) if signed else upper >> _U32(shift))

    return extend


def _iabs(instruction: Instruction) -> Action:
    _require(instruction, "")
    destination, a = instruction.operands
    read, write = reader(instruction, a), writer(instruction, destination)
    return lambda m, s: write(m, s, np.abs(_signed(read(m, s))).view(_U32))


def _move(instruction: Instruction) -> Action:
    _require(instruction, "")
    destination, source = instruction.operands[:2]
    read, write = reader(instruction, source), writer(instruction, destination)
    return lambda m, s: write(m, s, read(m, s))


def _load_constant(instruction: Instruction) -> Action:
    _require(instruction, "64 128 U8 S8 U16 S16")
    destination, source = instruction.operands
    if source.kind != "constant":
        raise instruction.no_model("a constant at an address that is computed")
    narrow = instruction.modifiers & {"U8", "S8", "U16", "S16"}
    if narrow:
        return _load_narrow_constant(instruction, next(iter(narrow)))
    count = 2 if "64" in instruction.modifiers else 4 if "128" in instruction.modifiers else 1
    pairs = [
        (reader(instruction, source, extra), writer(instruction, destination, extra))
        for extra in range(count)
    ]

    def load(m: BlockState, s: Lanes) -> None:
        for read, write in pairs:
            write(m, s, read(m, s))

    return load


def _load_narrow_constant(instruction: Instruction, modifier: str) -> Action:
    """LDC.U8 and the like: one or two bytes of a constant bank, as 32 bits."""
    destination, source = instruction.operands
    bits = int(modifier[1:])
    if source.base is None and source.uniform_base is None:
        source = replace(source, base=RZ)
    read = indexed_constant_reader(instruction, source, source.number, bits // 8)
    write = writer(instruction, destination)
    sign = _U32(1 << (bits - 1)) if modifier[0] == "S" else _U32(0)

    def load(m: BlockState, s: Lanes) -> None:
        write(m, s, (read(m, s) ^ sign) - sign)

    return load


def _special(instruction: Instruction) -> Action:
    destination, source = instruction.operands
    name = source.name
    count = 2 if instruction.base == "CS2R" and "32" not in instruction.modifiers else 1
    writes = [writer(instruction, destination, extra) for extra in range(count)]

    def read_special(m: BlockState, s: Lanes) -> None:
        if name not in m.special:
            raise instruction.no_model(f"special register {name} is not known")
        if destination.kind == "uniform":
            writes[0](m, s, m.special[name][s.warp_ids * 32])
            return
        values = m.special[name][s.index]
        for position, write in enumerate(writes):
            write(m, s, values if position == 0 else _U32(0))

    return read_special


def _to_uniform(instruction: Instruction) -> Action:
    """R2UR: the value of a warp's first lane that takes part."""
    destination, source = instruction.operands
    if source.kind != "register" or source.negative or source.inverted:
        raise instruction.no_model("a value of another form")
    note_read("R", source.number)
    note_write("U", destination.number)

    def move(m: BlockState, s: Lanes) -> None:
        m.U[destination.number, s.warps] = m.R[source.number, s.first_of_warp] if source.number != RZ else 0

    return move


# ---- fp32


def _flushed(value: Any) -> Any:
    return np.where(np.abs(value) < _TINY, np.copysign(np.float32(0), value), value)


def _float_result(instruction: Instruction, exact: Read) -> Action:
    """An operation on fp32 whose result is rounded as its modifiers say."""
    _require(instruction, "FTZ SAT RM RP RZ RN")
    return _rounded(instruction, exact)


def _rounded(instruction: Instruction, exact: Read) -> Action:
    """Rounds what `exact` gives in fp64 to fp32, as the modifiers say, and writes it."""
    write = float_writer(instruction, instruction.operands[0])
    modifiers = instruction.modifiers
    rounds = modifiers & {"RM", "RP", "RZ"}

    def compute(m: BlockState, s: Lanes) -> None:
        value = exact(m, s)
        result = np.asarray(value, np.float32)
        if rounds:
            down, up = np.nextafter(result, np.float32(-np.inf)), np.nextafter(result, np.float32(np.inf))
            too_high, too_low = result > value, result < value
            if "RM" in modifiers:
                result = np.where(too_high, down, result)
            elif "RP" in modifiers:
                result = np.where(too_low, up, result)
            else:
                result = np.where(too_high & (value > 0), down, np.where(too_low & (value < 0), up, result))
        if "FTZ" in modifiers:
            result = _flushed(result)
        if "SAT" in modifiers:
            result = np.where(np.isnan(result), 0, np.clip(result, 0, 1)).astype(np.float32)
        write(m, s, result)

    return compute


def _fp32(instruction: Instruction) -> Action:
    reads = [float_reader(instruction, operand) for operand in instruction.operands[1:]]
    ftz = "FTZ" in instruction.modifiers

    def value(read: Read, m: BlockState, s: Lanes) -> Any:
        result = read(m, s)
        return (_flushed(result) if ftz else result).astype(np.float64)

    if instruction.base == "FFMA":
        if len(reads) != 3:
            raise instruction.no_model("a product of another form")
        a, b, c = reads
        return _float_result(instruction, lambda m, s: value(a, m, s) * value(b, m, s) + value(c, m, s))
    if len(reads) != 2:
        raise instruction.no_model("an operation of another form")
    a, b = reads
    if instruction.base == "FMUL":
        return _float_result(instruction, lambda m, s: value(a, m, s) * value(b, m, s))
    return _float_result(instruction, lambda m, s: value(a, m, s) + value(b, m, s))


def _float_minimum(instruction: Instruction) -> Action:
    _require(instruction, "FTZ")
    destination, a, b, predicate = instruction.operands
    read_a, read_b = float_reader(instruction, a), float_reader(instruction, b)
    read_predicate = predicate_reader(instruction, predicate)
    write = float_writer(instruction, destination)

    def minimum(m: BlockState, s: Lanes) -> None:
        x, y = read_a(m, s), read_b(m, s)  # of a number and a NaN the number
        write(m, s, np.where(read_predicate(m, s), np.fmin(x, y), np.fmax(x, y)))

    return minimum


def _fsetp(instruction: Instruction) -> Action:
    _require(instruction, "LT LE GT GE EQ NE LTU LEU GTU GEU EQU NEU NUM NAN FTZ AND OR XOR")
    a, b = instruction.operands[2:4]
    read_a, read_b = float_reader(instruction, a), float_reader(instruction, b)
    ftz = "FTZ" in instruction.modifiers
    words = [word for word in instruction.opcode.split(".")[1:] if word not in ("FTZ", *_COMBINE)]
    if len(words) != 1:
        raise instruction.no_model("its comparison is not known")
    word = words[0]
    unordered = word.endswith("U") and word[:-1] in _COMPARE

    def compare(m: BlockState, s: Lanes) -> Any:
        x, y = read_a(m, s), read_b(m, s)
        if ftz:
            x, y = _flushed(x), _flushed(y)
        is_nan = np.isnan(x) | np.isnan(y)
        if word in ("NUM", "NAN"):
            return is_nan if word == "NAN" else ~is_nan
        result = _COMPARE[word.removesuffix("U")](x, y)
        return result | is_nan if unordered else result & ~is_nan

    return _write_comparison(instruction, compare)


_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "EX2": np.exp2,
    "LG2": np.log2,
    "RCP": lambda x: np.float32(1) / x,
    "RSQ": lambda x: np.float32(1) / np.sqrt(x),
    "SQRT": np.sqrt,
    "TANH": np.tanh,
}


def _mufu(instruction: Instruction) -> Action:
    function = _one_of(instruction, _FUNCTIONS)
    _require(instruction, " ".join(_FUNCTIONS))
    destination, source = instruction.operands
    read, write = float_reader(instruction, source), float_writer(instruction, destination)
    # The unit takes fp32 that are too small to be normal for 0.
    return lambda m, s: write(m, s, function(_flushed(read(m, s))))


def _fchk(instruction: Instruction) -> Action:
    """Whether a division a / b needs the slow path, for the exponents that CUDA's fast path cannot take.

    Which those are is not published: here all from which the fast path might not come out right.
    """
    predicate, a, b = instruction.operands
    read_a, read_b = float_reader(instruction, a), float_reader(instruction, b)
    write = predicate_writer(instruction, predicate)

    def check(m: BlockState, s: Lanes) -> None:
        exponents = [
            (read(m, s).view(_U32) >> _U32(23) & _U32(0xFF)).astype(np.int64) for read in (read_a, read_b)
        ]
        x, y = exponents
        unsafe = (x < 25) | (x > 252) | (y < 3) | (y > 252) | (x - y > 124) | (x - y < -100)
        write(m, s, unsafe)

    return check


def _wide_to_float(instruction: Instruction) -> Action:
    """I2F from 64-bit integers, or to fp64."""
    _require(instruction, "F32 F64 S32 U32 S64 U64 RN")
    modifiers = instruction.modifiers
    destination, source = instruction.operands
    is_wide = bool(modifiers & {"S64", "U64"})
    read = wide_reader(instruction, source) if is_wide else reader(instruction, source)
    kind: Any = {(True, True): _U64, (True, False): _I64, (False, True): _U32, (False, False): _I32}[
        is_wide, bool(modifiers & {"U32", "U64"})
    ]
    to: Any = np.float64 if "F64" in modifiers else np.float32
    write = wide_writer(instruction, destination) if "F64" in modifiers else writer(instruction, destination)
    bits: Any = _U64 if "F64" in modifiers else _U32

    def convert(m: BlockState, s: Lanes) -> None:
        write(m, s, np.asarray(read(m, s)).view(kind).astype(to).view(bits))

    return convert


def _to_float(instruction: Instruction) -> Action:
    """I2F and I2FP: a 32-bit integer as fp32."""
    if instruction.modifiers & {"F64", "S64", "U64"}:
        return _wide_to_float(instruction)
    _require(instruction, "F32 S32 U32 RM RP RZ RN")
    _, source = instruction.operands
    read = reader(instruction, source)
    signed = "U32" not in instruction.modifiers

    def exact(m: BlockState, s: Lanes) -> Any:
        return np.asarray(_signed(read(m, s)) if signed else read(m, s), np.float64)

    return _rounded(instruction, exact)


_ROUND: dict[str, Callable[[Any], Any]] = {"TRUNC": np.trunc, "FLOOR": np.floor, "CEIL": np.ceil}


def _to_integer(instruction: Instruction) -> Action:
    """F2I: fp32 as a 32-bit integer, the nearest one there is; NaN is 0."""
    _require(instruction, "FTZ NTZ TRUNC FLOOR CEIL U32 S32")
    if "NTZ" not in instruction.modifiers:
        raise instruction.no_model("what it makes of NaN is not known")
    destination, source = instruction.operands
    read, write = float_reader(instruction, source), writer(instruction, destination)
    rounding = next((_ROUND[name] for name in _ROUND if name in instruction.modifiers), np.rint)
    least, most = (0, 2**32 - 1) if "U32" in instruction.modifiers else (-(2**31), 2**31 - 1)

    def convert(m: BlockState, s: Lanes) -> None:
        value = np.asarray(read(m, s), np.float64)
        rounded = np.clip(np.where(np.isnan(value), 0, rounding(value)), least, most)
        write(m, s, (rounded.astype(_I64) & 0xFFFFFFFF).astype(_U32))

    return convert


# ---- fp64


def _double_reader(instruction: Instruction, operand: Operand) -> Read:
    """Reads an operand as fp64, with its sign and absolute value."""
    if operand.kind == "number":
        value = np.float64(operand.number if operand.value is None else operand.value)
        return _constant_read(value)
    raw = wide_reader(instruction, replace(operand, negative=False, absolute=False))

    def read(m: BlockState, s: Lanes) -> Any:
        value = np.asarray(raw(m, s), _U64).view(np.float64)
        if operand.absolute:
            value = np.abs(value)
        return -value if operand.negative else value

    return read


def _fp64(instruction: Instruction) -> Action:
    """DADD, DMUL, DFMA; the last one rounds its product to 64 bits before the sum is rounded."""
    _require(instruction, "")
    destination, *operands = instruction.operands
    reads = [_double_reader(instruction, operand) for operand in operands]
    write = wide_writer(instruction, destination)
    if len(reads) != (3 if instruction.base == "DFMA" else 2):
        raise instruction.no_model("an operation of another form")

    def compute(m: BlockState, s: Lanes) -> None:
        values = [np.asarray(read(m, s), np.longdouble) for read in reads]
        if instruction.base == "DFMA":
            result = values[0] * values[1] + values[2]
        else:
            result = values[0] * values[1] if instruction.base == "DMUL" else values[0] + values[1]
        write(m, s, np.asarray(result, np.float64).view(_U64))

    return compute


def _float_to_float(instruction: Instruction) -> Action:
    """F2F between fp32 and fp64."""
    _require(instruction, "F32 F64")
    destination, source = instruction.operands
    kinds = instruction.opcode.split(".")[1:]
    if kinds == ["F32", "F64"]:
        read, write = _double_reader(instruction, source), float_writer(instruction, destination)
        return lambda m, s: write(m, s, read(m, s).astype(np.float32))
    if kinds == ["F64", "F32"]:
        read_narrow, write_wide = float_reader(instruction, source), wide_writer(instruction, destination)
        return lambda m, s: write_wide(m, s, np.asarray(read_narrow(m, s), np.float64).view(_U64))
    raise instruction.no_model("a conversion of another form")


# ---- fp16


def _halves(instruction: Instruction, operand: Operand) -> Read:
    """Reads a packed register as fp32, [lanes, 2], low half first."""
    if operand.kind == "number" or operand.half.startswith("B"):
        raise instruction.no_model("an operand that is not two halves")
    raw = reader(instruction, replace(operand, negative=False, absolute=False, half=""))

    def read(m: BlockState, s: Lanes) -> Any:
        bits = np.broadcast_to(raw(m, s), (s.size,))
        values = np.ascontiguousarray(bits).view(np.float16).reshape(-1, 2).astype(np.float32)
        if operand.half.startswith("H"):
            values = np.repeat(values[:, int(operand.half[1]) : int(operand.half[1]) + 1], 2, axis=1)
        if operand.absolute:
            values = np.abs(values)
        return -values if operand.negative else values

    return read


def _constant_read(values: Any) -> Read:
    return lambda m, s: values


def _half_operands(instruction: Instruction) -> list[Read]:
    """The values of an instruction on two halves; two numbers stand for one, the upper half first."""
    reads: list[Read] = []
    operands = [operand for operand in instruction.operands[1:] if not _is_predicate(operand)]
    position = 0
    while position < len(operands):
        if operands[position].kind == "number":
            pair = operands[position : position + 2]
            if len(pair) != 2 or pair[1].kind != "number":
                raise instruction.no_model("a number in the place of two halves")
            high, low = (operand.value if operand.value is not None else operand.number for operand in pair)
            values = np.array([[low, high]], np.float16).astype(np.float32)
            reads.append(_constant_read(values))
            position += 2
        else:
            reads.append(_halves(instruction, operands[position]))
            position += 1
    return reads


def _fp16(instruction: Instruction) -> Action:
    """HADD2, HMUL2, HFMA2: on both halves; HADD2.F32 widens one half."""
    _require(instruction, "F32 MMA FTZ SAT BF16_V2" if instruction.base == "HADD2" else "MMA")
    if "BF16_V2" in instruction.modifiers or "SAT" in instruction.modifiers:
        raise instruction.no_model("its arithmetic is not known")
    reads = _half_operands(instruction)
    destination = instruction.operands[0]
    write = writer(instruction, destination)
    base = instruction.base
    if len(reads) != (3 if base == "HFMA2" else 2):
        raise instruction.no_model("an operation of another form")

    def compute(m: BlockState, s: Lanes) -> None:
        values = [read(m, s).astype(np.float64) for read in reads]
        if base == "HFMA2":
            result = values[0] * values[1] + values[2]
        elif base == "HMUL2":
            result = values[0] * values[1]
        else:
            result = values[0] + values[1]
        if "F32" in instruction.modifiers:
            write(m, s, np.ascontiguousarray(result[:, 0]).astype(np.float32).view(_U32))
            return
        packed = np.ascontiguousarray(np.broadcast_to(result, (s.size, 2)).astype(np.float16))
        write(m, s, packed.view(_U32).reshape(-1))

    return compute


def _pack_halves(instruction: Instruction) -> Action:
    """F2FP: two fp32 as two halves, the first operand in the upper half."""
    _require(instruction, "F16 F32 PACK_AB")
    destination, upper, lower = instruction.operands
    read_upper, read_lower = float_reader(instruction, upper), float_reader(instruction, lower)
    write = writer(instruction, destination)

    def pack(m: BlockState, s: Lanes) -> None:
        high = np.asarray(read_upper(m, s), np.float16).view(np.uint16).astype(_U32)
        low = np.asarray(read_lower(m, s), np.float16).view(np.uint16).astype(_U32)
        write(m, s, low | high << _U32(16))

    return pack


def _nothing(instruction: Instruction) -> Action:
    """What orders accesses: here each one is done before the next instruction."""
    return lambda m, s: None


def _commit_copies(instruction: Instruction) -> Action:
    def commit(m: BlockState, s: Lanes) -> None:
        if m.memory_observer is not None:
            m.memory_observer.commit_copies(s)

    return commit


def _wait_copies(instruction: Instruction) -> Action:
    """Of all scoreboards the first alone counts groups of copies."""
    scoreboard, *left = instruction.operands or (None,)
    counts = instruction.opcode == "DEPBAR.LE" and scoreboard == Operand("scoreboard", 0)
    keep = left[0].number if counts and left else None

    def wait(m: BlockState, s: Lanes) -> None:
        if m.memory_observer is not None and keep is not None:
            m.memory_observer.wait_copies(s, keep)

    return wait


ARITHMETIC: dict[str, Compile] = {
    **dict.fromkeys(("IADD3", "UIADD3"), _add3),
    "VIADD": _viadd,
    **dict.fromkeys(("IMAD", "UIMAD"), _imad),
    **dict.fromkeys(("IADD", "UIADD"), _iadd),
    **dict.fromkeys(("LEA", "ULEA"), _lea),
    **dict.fromkeys(("SHF", "USHF"), _shift),
    **dict.fromkeys(("LOP3", "ULOP3"), _lop3),
    **dict.fromkeys(("PLOP3", "UPLOP3"), _plop3),
    **dict.fromkeys(("ISETP", "UISETP"), _isetp),
    **dict.fromkeys(("SEL", "USEL", "FSEL"), _select),
    **dict.fromkeys(("IMNMX", "VIMNMX", "VIADDMNMX"), _integer_minimum),
    **dict.fromkeys(("PRMT", "UPRMT"), _prmt),
    "IABS": _iabs,
    "R2P": _predicates_from_register,
    "P2R": _register_from_predicates,
    "BMSK": _bit_mask,
    **dict.fromkeys(("SGXT", "USGXT"), _sign_extend),
    "F2I": _to_integer,
    **dict.fromkeys(("MOV", "UMOV"), _move),
    **dict.fromkeys(("LDC", "ULDC"), _load_constant),
    **dict.fromkeys(("S2R", "S2UR", "CS2R"), _special),
    "R2UR": _to_uniform,
    **dict.fromkeys(("FADD", "FMUL", "FFMA"), _fp32),
    "FMNMX": _float_minimum,
    "FSETP": _fsetp,
    "MUFU": _mufu,
    "FCHK": _fchk,
    **dict.fromkeys(("I2F", "I2FP"), _to_float),
    **dict.fromkeys(("DADD", "DMUL", "DFMA"), _fp64),
    "F2F": _float_to_float,
    **dict.fromkeys(("HADD2", "HMUL2", "HFMA2"), _fp16),
    "F2FP": _pack_halves,
    **dict.fromkeys(("NOP", "MEMBAR", "ERRBAR"), _nothing),
    "LDGDEPBAR": _commit_copies,
    "DEPBAR": _wait_copies,
}
