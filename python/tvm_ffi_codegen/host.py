"""A builder of host text (``docs/reference/host-text.md``). It prints text, and checks nothing else.

    program = host.Program()
    b = program.function("squares(n: int64) -> int64")
    with b.fold(0, b.arg("n"), 0) as (i, sum):
        b.continue_(sum + i * i)
    b.ret(sum)
    functions = tfc.program(str(program)).compile()

A :class:`Value` is an expression: it is computed where a statement uses it, and each time. :meth:`Body.let` computes
it once, and names it. Python values stand for literals: numbers, truth values, None, ``str`` and ``bytes``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Union, overload

from . import _check
from ._launch import launch_text
from ._text import quoted
from .signature import Signature, SourceLocation

__all__ = [
    "ANY", "Body", "Callee", "Passed", "Program", "Value", "and_", "as_", "cast", "choose", "global_", "import_",
    "move", "not_", "op", "or_", "quoted", "symbol", "type_",
]  # fmt: skip

#: The words that can't be names.
RESERVED = frozenset(
    "let var if else match for while break continue return forward try catch raise ensure call closure launch and or "
    "not is as True False None inf nan result".split()
)

# How tightly expressions bind.
_ALONE, _OR, _AND, _COMPARISON, _SHIFT, _SUM, _PRODUCT, _UNARY, _POSTFIX = -1, 0, 1, 2, 6, 7, 8, 9, 10


_NAME = r"[A-Za-z_][A-Za-z0-9_$]*"


def _label(name: str) -> str:
    """A name, in quotes if it has other characters."""
    is_name = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.$]*", _check.text("name", name), re.ASCII)
    return name if is_name else quoted(name)


def _function_name(name: str) -> str:
    if not re.fullmatch(_NAME, _check.text("function", name), re.ASCII):
        raise ValueError(f"function: expected a name of letters, digits, `_` and `$`, got {name!r}")
    return name


def _new_name(what: str, name: str) -> str:
    if not re.fullmatch(_NAME, _check.text(what, name), re.ASCII) or name in RESERVED:
        raise ValueError(f"{what}: expected a name of letters, digits, `_` and `$` that isn't a word, got {name!r}")
    return name


class Value:
    """An expression. Operators make other ones; they print parentheses where they are needed.

    ``x[i, j]`` is an element or an item. Attributes are parts: ``x.shape[0]``, ``s.size``, ``k.given``, ``e.kind``.
    """

    __slots__ = ("_level", "_text")

    def __init__(self, _text: str, _level: int = _POSTFIX) -> None:
        self._text, self._level = _text, _level

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<Value {self._text}>"

    def __bool__(self) -> bool:
        raise TypeError(
            f"`{self._text}` is known when the function runs: use `with b.if_(...)`, `and_`, `or_` and `not_`, and no "
            "chained comparisons"
        )

    def __iter__(self) -> Iterator[Value]:
        raise TypeError(f"`{self._text}` has items only when the function runs: use `b.for_range`")

    def __getattr__(self, name: str) -> Value:
        if name.startswith("_"):
            raise AttributeError(name)
        return Value(f"{_in(self, _POSTFIX)}.{name}")

    def __getitem__(self, index: Passed) -> Value:
        indices = index if isinstance(index, tuple) else (index,)
        return Value(f"{_in(self, _POSTFIX)}[{', '.join(map(_text, indices))}]")

    __hash__ = None  # type: ignore[assignment]  # `==` makes a value

    # fmt: off
    def __add__(self, other: Passed) -> Value: return _binary(self, "+", other, _SUM)
    def __radd__(self, other: Passed) -> Value: return _binary(other, "+", self, _SUM)
    def __sub__(self, other: Passed) -> Value: return _binary(self, "-", other, _SUM)
    def __rsub__(self, other: Passed) -> Value: return _binary(other, "-", self, _SUM)
    def __mul__(self, other: Passed) -> Value: return _binary(self, "*", other, _PRODUCT)
    def __rmul__(self, other: Passed) -> Value: return _binary(other, "*", self, _PRODUCT)
    def __truediv__(self, other: Passed) -> Value: return _binary(self, "/", other, _PRODUCT)
    def __rtruediv__(self, other: Passed) -> Value: return _binary(other, "/", self, _PRODUCT)
    def __floordiv__(self, other: Passed) -> Value: return _binary(self, "//", other, _PRODUCT)
    def __rfloordiv__(self, other: Passed) -> Value: return _binary(other, "//", self, _PRODUCT)
    def __mod__(self, other: Passed) -> Value: return _binary(self, "%", other, _PRODUCT)
    def __rmod__(self, other: Passed) -> Value: return _binary(other, "%", self, _PRODUCT)
    def __or__(self, other: Passed) -> Value: return _binary(self, "|", other, 3)
    def __ror__(self, other: Passed) -> Value: return _binary(other, "|", self, 3)
    def __xor__(self, other: Passed) -> Value: return _binary(self, "^", other, 4)
    def __rxor__(self, other: Passed) -> Value: return _binary(other, "^", self, 4)
    def __and__(self, other: Passed) -> Value: return _binary(self, "&", other, 5)
    def __rand__(self, other: Passed) -> Value: return _binary(other, "&", self, 5)
    def __lshift__(self, other: Passed) -> Value: return _binary(self, "<<", other, _SHIFT)
    def __rlshift__(self, other: Passed) -> Value: return _binary(other, "<<", self, _SHIFT)
    def __rshift__(self, other: Passed) -> Value: return _binary(self, ">>", other, _SHIFT)
    def __rrshift__(self, other: Passed) -> Value: return _binary(other, ">>", self, _SHIFT)
    def __lt__(self, other: Passed) -> Value: return _compared(self, "<", other)
    def __le__(self, other: Passed) -> Value: return _compared(self, "<=", other)
    def __gt__(self, other: Passed) -> Value: return _compared(self, ">", other)
    def __ge__(self, other: Passed) -> Value: return _compared(self, ">=", other)
    def __eq__(self, other: object) -> Value: return _compared(self, "==", other)  # type: ignore[override]
    def __ne__(self, other: object) -> Value: return _compared(self, "!=", other)  # type: ignore[override]
    def __neg__(self) -> Value: return Value(f"-{_in(self, _UNARY)}", _UNARY)
    def __invert__(self) -> Value: return Value(f"~{_in(self, _UNARY)}", _UNARY)
    # fmt: on


#: The pattern of a row of a ``match`` that each value fits.
ANY = Value("_")

#: The inputs of statements and operations: a value, or a literal of Python. A list is an Array for a call or a
#: variable, and a list of sizes, strides or dimensions for an operation.
Passed = Union[Value, None, bool, int, float, str, bytes, Sequence["Passed"]]


class Callee:
    """The function of a call that isn't a value: see :func:`symbol`, :func:`global_` and :func:`import_`."""

    __slots__ = ("_text",)

    def __init__(self, _text: str) -> None:
        self._text = _text


def _value(of: object) -> Value:
    """A value, also of a literal."""
    if isinstance(of, Value):
        return of
    if of is None or isinstance(of, bool):
        return Value(str(of))
    if isinstance(of, str):
        return Value(quoted(of))
    if isinstance(of, bytes):
        return Value(f"bytes({quoted(of)})")
    if isinstance(of, (list, tuple)):
        return op("array", *of)
    # plain numbers, and those of NumPy
    number = float(of) if isinstance(of, float) else _check.integer("value", of)
    text = "nan" if math.isnan(number) else repr(number)
    return Value(text, _UNARY if text.startswith("-") else _POSTFIX)


def _text(of: object) -> str:
    return _value(of)._text


def _in(of: object, level: int) -> str:
    """A value as an operand of something that binds that tightly."""
    value = _value(of)
    return value._text if value._level >= level else f"({value._text})"


def _binary(left: object, sign: str, right: object, level: int) -> Value:
    return Value(f"{_in(left, level)} {sign} {_in(right, level + 1)}", level)


def _compared(left: object, sign: str, right: object) -> Value:
    return Value(f"{_in(left, _COMPARISON + 1)} {sign} {_in(right, _COMPARISON + 1)}", _COMPARISON)


def and_(first: Passed, second: Passed, *more: Passed) -> Value:
    """True if ``first``, ``second`` and all of ``more`` are true. Each is computed only if those before it are true."""
    value = _binary(first, "and", second, _AND)
    return and_(value, *more) if more else value


def or_(first: Passed, second: Passed, *more: Passed) -> Value:
    """True if ``first``, ``second`` or any of ``more`` is true. Each is computed only if those before it are false."""
    value = _binary(first, "or", second, _OR)
    return or_(value, *more) if more else value


def not_(value: Passed) -> Value:
    """True if the value is false."""
    return Value(f"not {_in(value, _COMPARISON)}", _COMPARISON)


def op(name: str, *inputs: Passed, **named: Passed) -> Value:
    """The operation with the word ``name``: ``op("max", a, b)``, ``op("slice", x, 0, start, size)``,
    ``op("shape", [n, 2])``, ``op("load", type_("float32"), pointer)``. ``inputs`` are those without a name, and
    ``named`` the others: ``op("scratch", 64, align=16)``. ``docs/reference/host-text.md`` lists them.
    """
    all = [*map(_input, inputs), *(f"{of}={_input(value)}" for of, value in named.items())]
    return Value(f"{_new_name('name', name)}({', '.join(all)})")


def _input(of: Passed) -> str:
    """An input of an operation, which may be a list of sizes or the like."""
    return f"[{', '.join(map(_text, of))}]" if isinstance(of, (list, tuple)) else _text(of)


def type_(type: Any) -> Value:
    """A type as an input of an operation: in the text form, or a dtype of a framework."""
    return Value(_check.type_text("type", type))


def cast(type: Any, value: Passed) -> Value:
    """A number converted to a scalar type: ``int32(value)``. Integers wrap, floats saturate."""
    return Value(f"{type_(type)}({_text(value)})")


def as_(value: Value, type: str) -> Value:
    """A value of any type as one of a stated type. The function checks that when it runs."""
    return Value(f"{_in(value, _OR)} as {type_(type)}", _ALONE)


def choose(condition: Passed, then: Passed, otherwise: Passed) -> Value:
    """The value ``then`` if the condition is true, and ``otherwise`` if not. Only that one is computed."""
    return Value(f"(if {_text(condition)} {{ {_text(then)} }} else {{ {_text(otherwise)} }})")


def move(value: Value) -> Value:
    """An owned value, given away: to a callee, to a variable, or as the result."""
    return op("move", value)


def symbol(name: str) -> Callee:
    """The function ``name`` of the same program, or of an object that is linked with it."""
    return Callee(f"symbol {_label(name)}")


def global_(name: str, *, uncached: bool = False) -> Callee:
    """The global function ``name``. It is looked up once, at the first call, or at each call with ``uncached``."""
    return Callee(f"global {'uncached ' if uncached else ''}{_label(name)}")


def import_(name: str) -> Callee:
    """The function ``name`` of the modules that the library imports."""
    return Callee(f"import {_label(name)}")


class Body:
    """The statements of a function. ``str`` is the block in braces, which :meth:`Kernel.host` takes."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._indent = 1
        self._closed = ""
        self._names = 0

    def __str__(self) -> str:
        return "\n".join(["{", *self._lines, "}"])

    def _line(self, text: str) -> None:
        self._lines.append("  " * self._indent + text)
        self._closed = ""

    def _fresh(self, name: str | None) -> str:
        if name is not None:
            return _new_name("name", name)
        self._names += 1
        return f"_{self._names}"

    @contextmanager
    def _block(self, head: str, kind: str = "", end: str = "}") -> Iterator[None]:
        self._line(f"{head} {{")
        self._indent += 1
        try:
            yield
        finally:
            self._indent -= 1
            self._line(end)
            self._closed = kind

    def _after(self, kind: str, method: str) -> None:
        """Reopens the block that has just been closed."""
        if self._closed != kind:
            raise ValueError(f"{method}: expected it directly behind the block of `{kind}_`")
        self._lines.pop()

    def arg(self, name: str) -> Value:
        """A parameter, a dimension variable, a captured value, or a local by its name."""
        return op("param", Value(name)) if name in RESERVED else Value(_new_name("name", name))

    def dim(self, name: str) -> Value:
        """A dimension variable, also where a parameter has its name."""
        return op("dim", Value(_new_name("name", name)))

    @property
    def result(self) -> Value:
        """The returned tensor. ``result[1]`` is the second one of a Tuple."""
        return Value("result")

    def let(self, value: Passed, name: str | None = None) -> Value:
        """Computes a value now, once, and names it: by the given name, or by one that this builder makes."""
        named = self._fresh(name)
        self._line(f"let {named} = {_text(value)};")
        return Value(named)

    def var(self, name: str | None = None) -> Value:
        """A variable for values of any type; None at first. Assign with :meth:`set`, read with :func:`as_`. ``name`` is
        its name in the text, as in :meth:`let`.
        """
        named = self._fresh(name)
        self._line(f"var {named};")
        return Value(named)

    def set(self, place: Value, value: Passed) -> None:
        """Assigns a ``value`` to a ``place``: an element, such as ``x[i, j]``, or a variable."""
        self._line(f"{place} = {_text(value)};")

    def alloc(self, sizes: Sequence[Passed], dtype: Any, *, like: Value | None = None, device: str | None = None,
              strides: Sequence[Passed] | None = None, name: str | None = None) -> Value:  # fmt: skip
        """A new tensor of these ``sizes`` and this ``dtype``, which the block owns. It is on the device of the tensor
        ``like``, or on a stated ``device``. ``strides`` are in elements; without them the tensor is contiguous.
        ``name`` is its name in the text, as in :meth:`let`.
        """
        stated = {"like": like, "device": device, "strides": strides}
        named = {of: value for of, value in stated.items() if value is not None}
        return self.let(op("alloc", sizes, type_(dtype), **named), name)

    def do(self, value: Value) -> None:
        """An operation without a value: ``op("store", pointer, 1)``, ``op("check_signals_every", 1000)``."""
        self._line(f"{value};")

    # fmt: off
    @overload
    def call(self, callee: Callee | Value, *args: Passed, keywords: Mapping[str, Passed] | None = None,
             returns: None = None, name: None = None) -> None: ...
    @overload
    def call(self, callee: Callee | Value, *args: Passed, keywords: Mapping[str, Passed] | None = None, returns: Any,
             name: str | None = None) -> Value: ...
    # fmt: on

    def call(self, callee: Callee | Value, *args: Passed, keywords: Mapping[str, Passed] | None = None,
             returns: Any = None, name: str | None = None) -> Value | None:  # fmt: skip
        """Calls a function now. ``callee`` is a value, or made by :func:`symbol`, :func:`global_` or :func:`import_`.
        ``args`` are the positional arguments, and ``keywords`` the others by their names. With ``returns``, the type of
        its result, the result is the value, and ``name`` is its name in the text, as in :meth:`let`. Without, the
        result is released.
        """
        named = _check.mapping("keywords", keywords, "values by names").items()
        all = [*map(_text, args), *(f"{_new_name('keywords', of)}={_text(value)}" for of, value in named)]
        text = f"call {_callee(callee)}({', '.join(all)})"
        if returns is not None:
            return self.let(Value(f"{text} -> {type_(returns)}"), name)
        self._line(f"{text};")
        return None

    def forward(self, callee: Callee | Value, *args: Passed) -> None:
        """Calls the function ``callee`` and ends this one with its outcome. The callee gets ``args``, and after them
        all arguments of this function.
        """
        self._line(f"forward {_callee(callee)}({', '.join(map(_text, args))});")

    def launch(
        self, entry: str, *, image: str | Sequence[str] | None = None, values: Iterable[Value] = (), **items: Any
    ) -> None:
        """Launches the kernel that has the name ``entry`` in its image. ``items`` are those of :meth:`Kernel.cuda`;
        values may stand in them. ``image`` names one of the images, or several. ``values`` are the named values of a
        launch without ``args``.
        """
        text = launch_text(_label(entry), {of: _item(value) for of, value in items.items()})
        names = [] if image is None else [_label(image)] if isinstance(image, str) else list(map(_label, image))
        text += f" image={', '.join(names)}" if len(names) == 1 else f" image=[{', '.join(names)}]" if names else ""
        listed = ", ".join(map(str, values))
        self._line(f"{text}{f' values=[{listed}]' if listed else ''};")

    def ret(self, value: Passed = None) -> None:
        """Returns a value, or nothing. To return a tensor, write it through :attr:`result`."""
        self._line("return;" if value is None else f"return {_text(value)};")

    def break_(self) -> None:
        """Leaves the loop."""
        self._line("break;")

    def continue_(self, *next: Passed) -> None:
        """Goes on with the next turn of the loop, with the next values that it carries."""
        self._line(f"continue {', '.join(map(_text, next))}".rstrip() + ";")

    def raise_(self, kind: str, message: str, *values: Passed, cause: Value | None = None) -> None:
        """Raises an error of a ``kind``, such as ``"ValueError"``. The ``message`` has a ``{}`` for each of the
        ``values``. ``cause`` is a caught error.
        """
        self._line(f"raise {_error(kind, message, values)}{'' if cause is None else f' from {cause}'};")

    def raise_again(self, error: Value) -> None:
        """Raises a caught error again."""
        self._line(f"raise {error};")

    def ensure(self, condition: Passed, kind: str, message: str, *values: Passed) -> None:
        """Raises an error unless the condition is true. ``kind``, ``message`` and ``values`` are those of
        :meth:`raise_`.
        """
        self._line(f"ensure {_text(condition)}, {_error(kind, message, values)};")

    def at(self, location: SourceLocation | int | None) -> None:
        """The location of the following statements up to the end of the block: whole, another line, or none."""
        self._line(f"@ {'none' if location is None else location if isinstance(location, int) else _place(location)};")

    @contextmanager
    def if_(self, condition: Passed) -> Iterator[None]:
        """Statements that run if a condition is true. :meth:`elif_` and :meth:`else_` may follow."""
        with self._block(f"if {_text(condition)}", "if"):
            yield

    @contextmanager
    def graph(self) -> Iterator[None]:
        """Launches that go out together, as a graph of the driver. Conditions and values may stand among them."""
        with self._block("graph"):
            yield

    @contextmanager
    def elif_(self, condition: Passed) -> Iterator[None]:
        """Statements that run if all conditions before are false and this ``condition`` is true."""
        self._after("if", "elif_")
        with self._block(f"}} else if {_text(condition)}", "if"):
            yield

    @contextmanager
    def else_(self) -> Iterator[None]:
        """Statements that run if all conditions before are false."""
        self._after("if", "else_")
        with self._block("} else"):
            yield

    @contextmanager
    def match_(self, *keys: Passed, **named: Passed) -> Iterator[None]:
        """Runs the first :meth:`row` whose patterns all hold for the keys. Without :meth:`otherwise`, no such row is an
        error. Messages print the text of a key, or for ``named`` keys their names.
        """
        all = [*map(_text, keys), *(f"{of} = {_text(value)}" for of, value in named.items())]
        with self._block(f"match {', '.join(all)}"):
            yield

    @contextmanager
    def row(self, *patterns: Passed | range) -> Iterator[None]:
        """A row of a :meth:`match_`, with a pattern for each key: a constant, a ``range``, a dtype by :func:`type_`, or
        :data:`ANY`.
        """
        with self._row(", ".join(map(_pattern, patterns))):
            yield

    @contextmanager
    def otherwise(self) -> Iterator[None]:
        """The last part of a :meth:`match_`: runs if no row holds."""
        with self._row("else"):
            yield

    @contextmanager
    def _row(self, head: str) -> Iterator[None]:
        start = len(self._lines)
        with self._block(f"{head} =>"):
            yield
        # the canonical form has a single statement without braces
        if len(self._lines) == start + 3 and self._lines[start + 1].endswith(";"):
            self._lines[start:] = [f"{self._lines[start][:-1]}{self._lines[start + 1].lstrip()}"]

    @contextmanager
    def for_range(self, start: Passed, end: Passed, step: Passed = 1, *, name: str | None = None) -> Iterator[Value]:
        """A loop over the numbers from ``start`` to ``end``, which is excluded, by ``step``. Its value is the index,
        and ``name`` is the name of the index in the text, as in :meth:`let`.
        """
        index = self._fresh(name)
        with self._block(_range(index, start, end, step)):
            yield Value(index)

    @contextmanager
    def fold(self, start: Passed, end: Passed, *init: Passed, step: Passed = 1) -> Iterator[tuple[Value, ...]]:
        """A loop over the numbers of :meth:`for_range` that carries values. ``init`` are their initial ones. The values
        of the loop are the index, and the carried ones, which are the final ones after it. Each turn ends with
        :meth:`continue_` and the next values.
        """
        index, names = self._fresh(None), [self._fresh(None) for _ in init]
        with self._block(_range(index, start, end, step) + _carried(names, init)):
            yield (Value(index), *map(Value, names))

    @contextmanager
    def while_(self, condition: Passed) -> Iterator[None]:
        """A loop that runs as long as a condition is true."""
        with self._block(f"while {_text(condition)}"):
            yield

    @contextmanager
    def while_loop(self, condition: Callable[..., Passed], *init: Passed) -> Iterator[tuple[Value, ...]]:
        """A loop that carries values as :meth:`fold` does. ``condition`` makes the condition of the carried values."""
        names = [self._fresh(None) for _ in init]
        values = tuple(map(Value, names))
        with self._block(f"while {_text(condition(*values))}{_carried(names, init)}"):
            yield values

    @contextmanager
    def try_(self) -> Iterator[None]:
        """Statements with errors that the :meth:`catch` behind it handles."""
        with self._block("try", "try"):
            yield

    @contextmanager
    def catch(self, name: str | None = None) -> Iterator[Value]:
        """The handler of a :meth:`try_`. Its value is the error: compare its ``kind``, pass it on or raise it again.
        ``name`` is the name of the error in the text, as in :meth:`let`.
        """
        self._after("try", "catch")
        error = self._fresh(name)
        with self._block(f"}} catch {error}"):
            yield Value(error)

    @contextmanager
    def closure(self, signature: Signature | str, captures: Mapping[str, tuple[Any, Passed]] | None = None,
                *, name: str | None = None) -> Iterator[Value]:  # fmt: skip
        """A function that keeps values. ``captures`` maps their names to types and values. The block is its body.
        ``name`` is its name in the text, as in :meth:`let`.
        """
        given = _check.mapping("captures", captures, "types and values by names").items()
        kept = ", ".join(f"{_new_name('captures', of)}: {type_(type)} = {_text(value)}" for of, (type, value) in given)
        function = self._fresh(name)
        with self._block(f"let {function} = closure [{kept}] {signature}", end="};"):
            yield Value(function)


class Program:
    """Functions of a file. ``str`` is its text, which :func:`tvm_ffi_codegen.program` takes."""

    def __init__(self) -> None:
        self._items: list[tuple[str, Body | None]] = []

    def __str__(self) -> str:
        text, before = "", None
        for head, body in self._items:
            # an empty line stands around each body
            text += "\n" if text and (body or before) else ""
            text += f"{head} {body}\n" if body else f"{head};\n"
            before = body
        return text

    def function(self, signature: Signature | str, *, doc: str | None = None, extern: bool = False,
                 location: SourceLocation | None = None) -> Body:  # fmt: skip
        """Adds a function with the documentation ``doc``, and returns its body. ``extern`` makes a C function.
        ``location`` is the signature's.
        """
        place = "" if location is None else f"@ {_place(location)}\n"
        body = Body()
        self._items.append((f"{_doc(doc)}{place}{'extern ' if extern else ''}{signature}", body))
        return body

    def kernel(self, signature: Signature | str, kernel: str | None = None, *, doc: str | None = None) -> None:
        """Adds a function with a kernel in the text form, such as ``"gemm_f32"``, ``"f packed args=[x]"`` or
        ``"launch f grid=n"``; without one the function only checks its arguments. ``doc`` is its
        documentation.
        """
        self._items.append((f"{_doc(doc)}{signature}{'' if kernel is None else f' @ {kernel}'}", None))

    def register(self, function: str, name: str) -> None:
        """Registers a function of the program under the global ``name`` while a library of it is loaded."""
        self._items.append((f"register {_function_name(function)} as {quoted(name)}", None))


def _pattern(of: Passed | range) -> str:
    if not isinstance(of, range):
        return _text(of)
    if of.step != 1:
        raise ValueError(f"patterns: expected a range with a step of 1, got {of!r}")
    return f"range({of.start}, {of.stop})"


def _callee(callee: Callee | Value) -> str:
    expected = "a Value, symbol(...), global_(...) or import_(...)"
    called = callee if isinstance(callee, Value) else _check.instance("callee", callee, Callee, expected)
    return called._text


def _item(value: Any) -> Any:
    """An item of a launch, with the text in place of each value."""
    if isinstance(value, (list, tuple)):
        return [_item(of) for of in value]
    return str(value) if isinstance(value, Value) else value


def _error(kind: str, message: str, values: tuple[Passed, ...]) -> str:
    return f"{_label(kind)}({', '.join([quoted(message), *map(_text, values)])})"


def _place(location: SourceLocation) -> str:
    at = _check.instance("location", location, SourceLocation, "a tvm_ffi_codegen.SourceLocation")
    return f"{quoted(at.file)}:{at.line} {quoted(at.function)}"


def _range(index: str, start: Passed, end: Passed, step: Passed) -> str:
    stated = [start, end] if isinstance(step, int) and step == 1 else [start, end, step]
    return f"for {index} in range({', '.join(map(_text, stated))})"


def _carried(names: Sequence[str], init: Sequence[Passed]) -> str:
    return " with " + ", ".join(f"{name} = {_text(value)}" for name, value in zip(names, init)) if init else ""


def _doc(doc: str | None) -> str:
    return "" if doc is None else "".join(f"## {line}".rstrip() + "\n" for line in _check.text("doc", doc).split("\n"))
