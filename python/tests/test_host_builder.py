"""The builder of host text: what it prints, and that the text means what Python's operators mean."""

from __future__ import annotations

import random
import re
from pathlib import Path

import numpy as np
import pytest
import tvm_ffi
import tvm_ffi_codegen as tfc
from tvm_ffi_codegen import host

ROOT = Path(__file__).parents[2]


def compiled(program: host.Program):
    return tfc.program(str(program)).compile()


STATEMENTS = """\
## Calls what there is.
##
## In order.
@ "model.py":1 "forward"
forward(x: Tensor([n, k], float32), f: Function, by: Optional[float32], if: int64) -> Tensor([n, k], float32) {
  @ "model.py":2 "forward";
  let y = alloc([n, k], float32, like=x);
  let _1 = alloc([4], int8, device="cpu:0", strides=[2]);
  @ 3;
  for _2 in range(0, n) {
    check_signals_every(1000);
    for j in range(0, dim(k), 2) {
      y[_2, j] = x[_2, j] * (if by.given { by } else { float32(1.5) });
      if j > 2 {
        continue;
      } else if x.shape[0] == 3 or not j != 2 {
        break;
      } else {
        limit_recursion(100);
      }
    }
  }
  for _3 in range(0, 10) with _4 = 0, _5 = -1 {
    continue _4 + _3, _5;
  }
  while _4 > 3 {
    break;
  }
  while _6 < 100 with _6 = _4 {
    continue _6 * 2;
  }
  ensure _4 >= param(if), "My Error"("got {}, \\"{}\\"", _4, "a\\\\b");
  var v;
  v = call;
  try {
    let _7 = call f(y, None, True, 1.5, inf, array(n, 2), bytes("\\x00\\xff\\""), scale=0.5) -> Any;
    v = move(_7);
    call global host.log("done", v);
    call global uncached "a b"();
    call import price_of(dtype(float32), device("cuda:1"));
    store(scratch(8), float32(n), dtype=float16);
  } catch e {
    if e.kind == "KeyError" {
      raise RuntimeError("no {}", n) from e;
    }
    raise e;
  }
  let _8 = v as Tensor([n, k], float32);
  let add = closure [m: int64 = n, to: Function = f] add(i: int64) -> int64 {
    return i + m;
  };
  launch rows grid=n block=(128, 2) args=[x, y, int32(k)] cooperative image="a.cubin file" values=[_8, v];
  launch rows args=[x, y, int32(k)] image=[one, two];
  call symbol softmax(_8, result[0]);
  if n == 0 {
    forward symbol softmax(_8, "key", None);
  } else {
    forward f();
  }
  match x.dtype, n % 16 == 0, size = n {
    float16, True, -128 => forward symbol softmax();
    float32, _, range(256, 1024) => {
      break;
      return;
    }
    else => raise e;
  }
  @ none;
  return;
}

softmax(x: Tensor([n, k], float32), to: Tensor([n, k], float32)) @ softmax_f32;
register forward as "model.\\"forward\\"";
"""


def test_each_statement_prints_its_text():
    program = host.Program()
    place = tfc.SourceLocation("model.py", 1, "forward")
    signature = (
        "forward(x: Tensor([n, k], float32), f: Function, by: Optional[float32], if: int64) -> Tensor([n, k], float32)"
    )
    b = program.function(signature, doc="Calls what there is.\n\nIn order.", location=place)
    x, f, by, n, k = map(b.arg, ["x", "f", "by", "n", "k"])
    b.at(tfc.SourceLocation("model.py", 2, "forward"))
    y = b.alloc([n, k], "float32", like=x, name="y")
    b.alloc([4], np.int8, device="cpu:0", strides=[2])
    b.at(3)
    with b.for_range(0, n) as i:
        b.do(host.op("check_signals_every", 1000))
        with b.for_range(0, b.dim("k"), 2, name="j") as j:
            b.set(y[i, j], x[i, j] * host.choose(by.given, by, host.cast("float32", 1.5)))
            with b.if_(j > 2):
                b.continue_()
            with b.elif_(host.or_(x.shape[0] == 3, host.not_(j != 2))):
                b.break_()
            with b.else_():
                b.do(host.op("limit_recursion", 100))
    with b.fold(0, 10, 0, -1) as (i, sum, last):
        b.continue_(sum + i, last)
    with b.while_(sum > 3):
        b.break_()
    with b.while_loop(lambda s: s < 100, sum) as (s,):
        b.continue_(s * 2)
    b.ensure(sum >= b.arg("if"), "My Error", 'got {}, "{}"', sum, "a\\b")
    v = b.var("v")
    b.set(v, host.Value("call"))
    with b.try_():
        given = [y, None, True, 1.5, float("inf"), [n, 2], b'\x00\xff"']
        taken = b.call(f, *given, keywords={"scale": 0.5}, returns="Any")
        b.set(v, host.move(taken))
        assert b.call(host.global_("host.log"), "done", v) is None
        b.call(host.global_("a b", uncached=True))
        b.call(host.import_("price_of"), host.op("dtype", host.type_(np.float32)), host.op("device", "cuda:1"))
        b.do(host.op("store", host.op("scratch", 8), host.cast("float32", n), dtype=host.type_("float16")))
    with b.catch("e") as e:
        with b.if_(e.kind == "KeyError"):
            b.raise_("RuntimeError", "no {}", n, cause=e)
        b.raise_again(e)
    z = b.let(host.as_(v, "Tensor([n, k], float32)"))
    with b.closure("add(i: int64) -> int64", {"m": ("int64", n), "to": ("Function", f)}, name="add"):
        b.ret(b.arg("i") + b.arg("m"))
    args = [x, y, "int32(k)"]
    b.launch("rows", grid=n, block=(128, 2), args=args, cooperative=True, image="a.cubin file", values=[z, v])
    b.launch("rows", args=args, image=["one", "two"])
    b.call(host.symbol("softmax"), z, b.result[0])
    with b.if_(n == 0):
        b.forward(host.symbol("softmax"), z, "key", None)
    with b.else_():
        b.forward(f)
    with b.match_(x.dtype, n % 16 == 0, size=n):
        with b.row(host.type_(np.float16), True, -128):
            b.forward(host.symbol("softmax"))
        with b.row(host.type_("float32"), host.ANY, range(256, 1024)):
            b.break_()
            b.ret()
        with b.otherwise():
            b.raise_again(e)
    b.at(None)
    b.ret()
    program.kernel("softmax(x: Tensor([n, k], float32), to: Tensor([n, k], float32))", "softmax_f32")
    program.register("forward", 'model."forward"')
    assert str(program) == STATEMENTS
    # only `call` isn't a value
    text = str(program).replace("  v = call;\n", "")
    image = b".version 8.0\n.target sm_80\n.visible .entry rows(.param .u64 x, .param .u64 y, .param .u32 k) { ret; }\n"
    read = tfc.program(text, images={"a.cubin file": image, "one": image, "two": image})
    assert [of.name for of in read.signatures] == ["forward", "softmax"]
    # the builder prints the canonical form
    assert str(read) == text


def texts(count):
    """Strings with all kinds of characters."""
    rest = random.Random(7)
    yield from ["", '"', "\\", '\\"', "a\nb\r\t\0", "{ } ; # ## // é \u2028 \U0001f600", "\\x41", "\x7f\x80\xff"]
    pools = ['"\\nrtx0{}#', "".join(map(chr, range(256))), 'é\u3042\U0001f600\\"']
    for _ in range(count):
        pool = rest.choice(pools)
        yield "".join(rest.choice(pool) for _ in range(rest.randrange(20)))


def test_any_string_arrives_as_it_is():
    program, given = host.Program(), [of for text in texts(150) for of in (text, text.encode())]
    b = program.function("all(f: Function)")
    for value in given:
        b.call(b.arg("f"), value)
    b = program.function("message()")
    message = "".join(texts(20)).replace("{", "").replace("}", "").replace("\0", "")
    b.raise_('My"\\Error', message)
    functions, seen = compiled(program), []
    functions["all"](seen.append)
    assert seen == given
    with pytest.raises(Exception) as raised:
        functions["message"]()
    assert str(raised.value) == message and raised.value.__tvm_ffi_error__.kind == 'My"\\Error'
    b = host.Body()
    with pytest.raises(UnicodeEncodeError):
        b.call(b.arg("f"), "\udc80")


def random_expression(rest, names, depth):
    """A value of the builder, and its value in Python."""
    if depth == 0:
        name = rest.choice([*names, None])
        number = rest.randrange(-9, 10)
        return (host.Value(name), names[name]) if name else (number, number)
    left, right = (random_expression(rest, names, depth - rest.randrange(1, 3) if depth > 1 else 0) for _ in range(2))
    if isinstance(left[0], int) and isinstance(right[0], int):
        return left
    sign = rest.choice(["+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>", "neg", "invert", "choose", "not"])
    if sign == "neg":
        return -left[0], -left[1]
    if sign == "invert":
        return ~left[0], ~left[1]
    if sign in ("choose", "not"):
        compare = rest.choice(["<", "<=", "==", "!="])
        a, b = left[0], right[0]
        c, d = left[1], right[1]
        is_so = {"<": c < d, "<=": c <= d, "==": c == d, "!=": c != d}
        conditions = {"<": a < b, "<=": a <= b, "==": a == b, "!=": a != b}
        value, so = conditions[compare], is_so[compare]
        if sign == "not":
            value, so = host.and_(host.not_(value), host.or_(value, host.not_(value))), not so
        return host.choose(value, a, b), left[1] if so else right[1]
    if sign in ("<<", ">>"):
        right = (rest.randrange(3),) * 2
        if isinstance(left[0], int):
            left = (host.Value("p"), names["p"])
    if sign in ("//", "%") and right[1] == 0:
        sign = "+"
    functions = {
        "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "//": lambda a, b: a // b,
        "%": lambda a, b: a % b, "&": lambda a, b: a & b, "|": lambda a, b: a | b, "^": lambda a, b: a ^ b,
        "<<": lambda a, b: a << b, ">>": lambda a, b: a >> b,
    }  # fmt: skip
    return functions[sign](left[0], right[0]), functions[sign](left[1], right[1])


def test_operators_mean_what_they_mean_in_python():
    rest = random.Random(11)
    names = {"p": 7, "q": -3, "r": 12}
    program, expected = host.Program(), []
    while len(expected) < 200:
        value, number = random_expression(rest, names, 5)
        if isinstance(value, int) or not -(1 << 40) < number < 1 << 40:
            continue
        b = program.function(f"f{len(expected)}(p: int64, q: int64, r: int64) -> int64")
        b.ret(value)
        expected.append(number)
    assert max(len(str(body)) for _, body in program._items) > 100
    functions = compiled(program)
    wrong = [number for number, want in enumerate(expected) if functions[f"f{number}"](7, -3, 12) != want]
    assert wrong == []


def test_long_chains_are_flat():
    b = host.Body()
    value = b.arg("n")
    for number in range(1000):
        value = value + number
    b.ret(value)
    assert "(" not in str(b)
    assert tfc.compile("f(n: int64) -> int64", tfc.Kernel.host(str(b)))(1) == 1 + sum(range(1000))


def test_mistakes_in_python_are_errors_there():
    b = host.Body()
    n = b.arg("n")
    for wrong, error, message in [
        (lambda: 1 < n < 3, TypeError, "`n > 1` is known when the function runs: use `with b.if_"),
        (lambda: bool(n), TypeError, "`n` is known when the function runs"),
        (lambda: list(n), TypeError, "`n` has items only when the function runs: use `b.for_range`"),
        (lambda: n + object(), TypeError, "value: expected an int, got <object"),
        (lambda: {n: 1}, TypeError, "unhashable"),
        (lambda: b.let(n, "2m"), ValueError, "name: expected a name of letters"),
        (lambda: b.let(n, "let"), ValueError, "name: expected a name of letters"),
        (lambda: b.call("f", n), TypeError, "callee: expected a Value, symbol"),
        (lambda: b.else_().__enter__(), ValueError, "else_: expected it directly behind the block of `if_`"),
        (lambda: b.catch().__enter__(), ValueError, "catch: expected it directly behind the block of `try_`"),
        (lambda: b.launch("f", grids=1), TypeError, "unknown item 'grids' of a launch; the items are grid, block"),
        (lambda: b.at("model.py"), TypeError, "location: expected a tvm_ffi_codegen.SourceLocation"),
    ]:
        with pytest.raises(error, match=re.escape(message)):
            wrong()
    assert str(b) == "{\n}"


def test_the_words_are_those_of_the_language():
    source = (ROOT / "src/host/words.rs").read_text()
    words = re.findall(r'"(\w+)"', source[source.index("RESERVED") : source.index("];")])
    assert host.RESERVED == {*words, "result"}


def test_a_workspace_and_a_callback():
    tfc.install_cpu_allocator()
    program = host.Program()
    b = program.function("doubled(x: Tensor([n], float32), f: Function) -> Tensor([n], float32)")
    x, n = b.arg("x"), b.arg("n")
    y = b.alloc([n], "float32", like=x)
    with b.for_range(0, n) as i:
        b.set(y[i], x[i] * 2.0)
    z = b.call(b.arg("f"), y, returns="Tensor([n], float32)")
    with b.for_range(0, n) as i:
        b.set(b.result[i], z[i])
    x = np.arange(4, dtype="float32")
    result = compiled(program)["doubled"](x, lambda y: tvm_ffi.from_dlpack(np.from_dlpack(y) + np.float32(1)))
    assert np.from_dlpack(result).tolist() == [1, 3, 5, 7]


def test_the_example_of_the_documentation_compiles():
    page = (ROOT / "docs/howto/python.md").read_text()
    (example,) = re.findall(r"```python\n(from tvm_ffi_codegen import host\n.*?)```", page, re.DOTALL)
    entries = {"rows": 2, "first": 2, "second": 3}
    cubin = ".version 8.0\n.target sm_80\n"
    for name, pointers in entries.items():
        params = [f".param .u64 p{number}" for number in range(pointers)] + [".param .s32 k"]
        cubin += f".visible .entry {name}({', '.join(params)}) {{ ret; }}\n"
    names = {"tfc": tfc, "cubin": cubin.encode()}
    exec(example, names)
    assert list(names["functions"]) == ["softmax"]
