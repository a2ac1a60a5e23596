"""Which bits of an instruction say what its opcode is called: the table of profiler/sass/opcode_masks.json.

    python bench/opcode_masks.py FILE_OR_FOLDER… --write      learn it from machine code, and write it
    python bench/opcode_masks.py FILE_OR_FOLDER… --check      how often it is wrong on other machine code
    python bench/opcode_masks.py SOURCE.cu --arch sm_90a …    the same of a source, which nvcc compiles

nvdisasm is asked about instructions of the files with each bit turned round: a bit is left out where that
never changes the name. Bits that were always the same, or make an instruction illegal, stay. Of IMAD (224,
424, 824) the numbers of registers are left out by hand too: `--check` found no name wrong.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from random import Random

import numpy as np

from profiler.build.instruction_text import read_line, split_instruction
from profiler.build.toolchain import require_tool
from profiler.evidence.gpu_arch import FIRST_OF_128_BITS, arch_number, disassembled_as
from profiler.sass.binary_functions import BinaryFunction, read_functions_of
from profiler.sass.disassembly import NEUTRAL_SCHEDULE
from profiler.sass.opcode_classes import TABLE_FILE, OpcodeMasks, class_keys, load_masks, mixed

_LAST_BIT = 105
_NOP = 0x7918
_SAMPLES = 24  # instructions of one opcode whose bits are turned round
_ROUNDS = 6  # of turning many bits at once
_CONTROL = frozenset(["BRA", "JMP", "BRX", "BRXU", "JMX", "JMXU", "EXIT", "RET", "KILL", "CALL"])
_ILLEGAL = re.compile(r"at address (0x[0-9a-f]+)")
Words = dict[str, np.ndarray]  # by architecture, instructions as two numbers of 64 bits


def texts_of(arch: str, words: Sequence[int]) -> list[str | None]:
    """What nvdisasm prints for each of some instructions of 128 bits; None where it knows none."""
    found: list[str | None] = []
    for begin in range(0, len(words), 200_000):
        found += _texts_of(arch, list(words[begin : begin + 200_000]))
    return found


def _texts_of(arch: str, words: list[int]) -> list[str | None]:
    illegal = set[int]()
    command = [str(require_tool("nvdisasm").path), "--binary", disassembled_as(arch).replace("sm_", "SM")]
    for _ in range(20):
        with tempfile.NamedTemporaryFile(suffix=".bin") as file:
            file.write(b"".join((word | NEUTRAL_SCHEDULE << 64).to_bytes(16, "little") for word in words))
            file.flush()
            done = subprocess.run([*command, file.name], capture_output=True, text=True, check=False)
        if not done.returncode:
            lines = dict(line for text in done.stdout.splitlines() if (line := read_line(text)))
            return [None if place in illegal else lines.get(16 * place) for place in range(len(words))]
        places = {int(address, 16) // 16 for address in _ILLEGAL.findall(done.stderr)}
        assert places - illegal, done.stderr[:500]
        illegal |= places
        for place in places:
            words[place] = _NOP
    raise AssertionError("nvdisasm finds ever more illegal instructions")


def name_of(text: str | None) -> str | None:
    """The opcode with its modifiers."""
    words = split_instruction(text) if text else None
    return words.opcode if words else None


def read_words(
    paths: Iterable[Path], most: int, random: Random, share: float = 1.0, arches: Sequence[str] = ()
) -> Words:
    """Different instructions of files by architecture, without their schedule; `most` of each opcode."""
    by_arch: dict[str, list[np.ndarray]] = defaultdict(list)
    seen = set[bytes]()
    for path in paths:
        for function in _functions_of(path, arches):
            code = function.code.code
            if arches and function.arch not in arches:
                continue
            if arch_number(function.arch) < FIRST_OF_128_BITS or code in seen or random.random() > share:
                continue
            seen.add(code)
            by_arch[function.arch].append(_different(np.frombuffer(code, np.uint64).reshape(-1, 2)))
    found = {}
    for arch in sorted(by_arch, key=arch_number):
        words = _different(np.concatenate(by_arch.pop(arch)))
        words = words[np.random.default_rng(1).permutation(len(words))]
        codes = (words[:, 0] & np.uint64(0xFFF)).astype(np.intp)
        order = np.argsort(codes, kind="stable")
        starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
        place = np.arange(len(order)) - np.repeat(starts, np.diff([*starts, len(order)]))
        found[arch] = words[order[place < most]]
    return found


def _functions_of(path: Path, arches: Sequence[str]) -> Iterator[BinaryFunction]:
    if path.suffix != ".cu":
        yield from read_functions_of(path)
        return
    with tempfile.TemporaryDirectory() as folder:
        cubin = Path(folder, "compiled.cubin")
        for arch in arches:
            nvcc = str(require_tool("nvcc").path)
            subprocess.run([nvcc, f"-arch={arch}", "-cubin", "-o", str(cubin), str(path)], check=True)
            yield from read_functions_of(cubin)


def _different(words: np.ndarray) -> np.ndarray:
    words = words.copy()
    words[:, 1] &= np.uint64((1 << (_LAST_BIT - 64)) - 1)
    return words[np.unique(mixed(words[:, 0], words[:, 1]), return_index=True)[1]]


def learn(words: Words, random: Random) -> dict[int, list[int]]:
    """By opcode of 12 bits the mask, and whether the name follows from values of operands too."""
    masks: dict[int, int] = {}
    special = set[int]()
    for arch, some in words.items():
        by_code: dict[int, list[int]] = defaultdict(list)
        for low, high in some.tolist():
            by_code[low & 0xFFF].append(low | high << 64)
        flat = [word for code in by_code.values() for word in code]
        names = dict(zip(flat, map(name_of, texts_of(arch, flat)), strict=True))
        for code, own in by_code.items():
            known = [word for word in own if names[word]]
            bases = {str(names[word]).partition(".")[0] for word in known}
            if not known or bases & _CONTROL:
                masks[code] = -1
        chosen = {
            code: _diverse([word for word in own if names[word]], names, random)
            for code, own in by_code.items()
            if masks.get(code) != -1
        }
        flips = [
            (code, word, bit) for code, own in chosen.items() for word in own for bit in range(12, _LAST_BIT)
        ]
        flipped = texts_of(arch, [word ^ 1 << bit for _, word, bit in flips])
        alike, other = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
        for (code, word, bit), text in zip(flips, flipped, strict=True):
            if text is not None:
                (alike if name_of(text) == names[word] else other)[code, bit] += 1
        for code in chosen:
            keep = 0xFFF
            for bit in range(12, _LAST_BIT):
                if other[code, bit] or not alike[code, bit]:
                    keep |= 1 << bit
            masks[code] = masks.get(code, 0) | keep
    for arch, some in words.items():
        _turn_many(arch, some, masks, special, random)
    return {code: [mask, int(code in special)] for code, mask in sorted(masks.items()) if mask != -1}


def _diverse(own: list[int], names: dict[int, str | None], random: Random) -> list[int]:
    """Some of the instructions of one opcode, of each name as many as can be."""
    by_name: dict[str, list[int]] = defaultdict(list)
    for word in own:
        by_name[str(names[word])].append(word)
    found: list[int] = []
    pools = [random.sample(some, len(some)) for some in by_name.values()]
    while len(found) < _SAMPLES and any(pools):
        for pool in pools:
            if pool:
                found.append(pool.pop())
    return found[: max(_SAMPLES, len(pools))]


def _turn_many(arch: str, some: np.ndarray, masks: dict[int, int], special: set[int], random: Random) -> None:
    """Keep the bits that count only together with others: what is left out is given any values."""
    words = [low | high << 64 for low, high in some.tolist() if masks[low & 0xFFF] != -1]
    whole = (1 << _LAST_BIT) - 1
    for _ in range(_ROUNDS):
        changed = []
        for word in words:
            free = whole & ~masks[word & 0xFFF] & ~0xFFF
            changed.append(word & ~free | _any_value(word, random) & free)
        first, then = texts_of(arch, words), texts_of(arch, changed)
        wrong = [
            (word, other, name_of(text))
            for word, other, text, new in zip(words, changed, first, then, strict=True)
            if new is not None and text is not None and name_of(text) != name_of(new)
        ]
        wrong = [one for one in wrong if one[0] & 0xFFF not in special or _alike(*one[:2], masks)]
        if not wrong:
            continue
        for code in {word & 0xFFF for word, _, _ in wrong}:
            if code not in special:
                special.add(code)
            else:
                masks[code] = -1
    return


def _alike(word: int, other: int, masks: dict[int, int]) -> bool:
    """Whether the keys of two instructions are one though the values of operands count."""
    table = OpcodeMasks({word & 0xFFF: (masks[word & 0xFFF], True)})
    pair = np.array([[one & (1 << 64) - 1, one >> 64] for one in (word, other)], dtype=np.uint64)
    a, b = class_keys(pair, table).tolist()
    return bool(a == b)


def _any_value(word: int, random: Random) -> int:
    """Bits for what is left out: registers and numbers as they occur, the last register more often."""
    value = random.getrandbits(128)
    for at, width in ((16, 8), (24, 8), (32, 8), (64, 8)):
        if random.random() < 0.25:
            value |= ((1 << width) - 1) << at
    choice = random.random()
    if choice < 0.5:
        number = 0 if choice < 0.1 else 1 << random.randrange(32)
        value = value & ~(0xFFFFFFFF << 32) | number << 32
    return value


def wrong_names(words: Words, table: OpcodeMasks) -> tuple[int, int, Counter[str]]:
    """Instructions, how many of them are called by another's name, and as what instead of what."""
    total, wrong, kinds = 0, 0, Counter[str]()
    unread = 0
    for arch, some in words.items():
        names = list(map(name_of, texts_of(arch, [low | high << 64 for low, high in some.tolist()])))
        by_key: dict[int, str | None] = {}
        for key, name in zip(class_keys(some, table).tolist(), names, strict=True):
            total += 1
            unread += name is None
            if by_key.setdefault(key, name) != name:
                wrong += 1
                kinds[f"{arch} {by_key[key]} for {name}"] += 1
    kinds["of which nvdisasm reads nothing"] = unread
    return total, wrong, kinds


def main() -> None:
    """Learn, or check."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--most", type=int, default=400, help="instructions of an opcode and architecture")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--share", type=float, default=1.0, help="of the functions that are read")
    parser.add_argument("--arch", action="append", default=[], help="of the code that is read")
    options = parser.parse_args()
    random = Random(1)
    words = read_words(options.paths, options.most, random, options.share, options.arch)
    for arch, some in words.items():
        print(
            f"{arch}: {len(some):,} instructions of {len(np.unique(some[:, 0] & np.uint64(0xFFF)))} opcodes"
        )
    if options.write:
        learned = learn(words, random)
        table = {
            "architectures": sorted(words, key=arch_number),
            "opcodes": {f"{code:03x}": [f"{mask:x}", special] for code, (mask, special) in learned.items()},
        }
        lines = json.dumps(table, indent=None).replace('], "', '],\n"')
        TABLE_FILE.write_text(lines + "\n")
    if options.check:
        total, wrong, kinds = wrong_names(words, load_masks())
        keys = sum(len(np.unique(class_keys(some, load_masks()))) for some in words.values())
        print(f"{wrong:,} of {total:,} different instructions have another's name; {keys:,} keys")
        for kind, count in kinds.most_common(30):
            print(f"{count:6} {kind}")


if __name__ == "__main__":
    main()
