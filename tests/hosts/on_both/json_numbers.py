"""Numbers of JSON: reads 10,000 texts and writes 10,000 numbers, and compares the results with Python's `json`.

Leaves out two differences from upstream's library, which docs/reference/runtime.md lists: upstream writes subnormal
numbers but refuses to read them, and it writes whole floats as integers.
"""

import json
import random
import struct
import sys

import tvm_ffi

parse = tvm_ffi.get_global_func("ffi.json.Parse")
stringify = tvm_ffi.get_global_func("ffi.json.Stringify")
dice = random.Random(21)


def digits(count):
    return "".join(dice.choice("0123456789") for _ in range(count))


def number():
    """A number, with errors in some of the texts."""
    whole = dice.choice(
        ["0", str(dice.getrandbits(dice.randrange(1, 70))), dice.choice("123456789") + digits(dice.randrange(25))]
    )
    fraction = dice.choice(["", "", "." + digits(dice.randrange(1, 20))])
    exponent = dice.choice("eE") + dice.choice(["", "+", "-"]) + str(dice.randrange(dice.choice([3, 20, 330])))
    text = dice.choice(["", "-"]) + whole + fraction + dice.choice(["", exponent])
    for _ in range(dice.choice([0, 0, 0, 0, 0, 1, 2])):
        place = dice.randrange(len(text) + 1)
        text = text[:place] + dice.choice(["", dice.choice("0123456789eE+-.")]) + text[place + dice.randrange(2) :]
    return text


def python(text):
    """The number as Python reads it; `None` if it is invalid. An integer over 64 bits becomes a float."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        value = float(value)
    return value


def is_subnormal(value):
    return value is not None and 0 < abs(value) < sys.float_info.min


for _ in range(10_000):
    text = number()
    wanted = python(text)
    if is_subnormal(wanted):
        continue
    try:
        value = parse(text)
        assert wanted is None or (type(value), value) == (type(wanted), wanted), (text, value, wanted)
        print(text, type(value).__name__, repr(value))
    except ValueError as error:
        assert wanted in (None, 0, float("inf"), float("-inf")), (text, wanted)
        print(text, error)

for _ in range(10_000):
    value = dice.choice(
        [
            lambda: struct.unpack("<d", struct.pack("<Q", dice.getrandbits(64)))[0],
            lambda: float(dice.getrandbits(dice.randrange(1, 80))),
            lambda: dice.randrange(-(10**6), 10**6) / 1000,
            lambda: float(f"{dice.randrange(1, 10**9)}e{dice.randrange(-330, 300)}"),
            lambda: dice.getrandbits(63) >> dice.randrange(63),
        ]
    )()
    text = stringify(value, None)
    if isinstance(value, float) and value == value:
        if not set(text) & set(".eI"):
            text += ".0"
        assert json.loads(text) == value and type(json.loads(text)) is float, (value, text)
    print(repr(value), text, python(text) == value)
