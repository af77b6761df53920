"""Functions with many kernels, which are made when their keys are first needed."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path

import numpy as np
import pytest
import tvm_ffi
import tvm_ffi_codegen as tfc

SUM = "sum(x: Tensor([n], any), by: int32 = 1) -> float64"
#: The sum of the elements, times `by`.
BODY = "{ for i in range(0, n) with s = float64(0) { continue s + float64(x[i]) * float64(by); } return s; }"


def of_dtype(dtype):
    return SUM.replace("any", str(dtype)), tfc.Kernel.host(BODY)


def counted(keys=("x.dtype",), signature=SUM, **options):
    """A dispatch by keys, and the keys for which its callback was run."""
    missed = []

    @tfc.specialize(signature, keys=keys, **options)
    def dispatch(key):
        missed.append(key)
        return of_dtype(key["x.dtype"])

    return dispatch, missed


def ones(dtype, count=4):
    return np.ones(count, dtype)


def test_a_variant_is_made_once_for_each_key():
    dispatch, missed = counted(["x.dtype", "n % 2 == 0", "by"])
    for _ in range(3):
        assert dispatch(ones("float32"), 2) == 8
        assert dispatch(ones("int8", 3)) == 3
    assert [dict(key) for key in missed] == [
        {"x.dtype": "float32", "n % 2 == 0": True, "by": 2},
        {"x.dtype": "int8", "n % 2 == 0": False, "by": 1},
    ]
    assert isinstance(missed[0]["x.dtype"], tvm_ffi.dtype) and missed[0]["n % 2 == 0"] is True
    stats = dispatch.stats()
    assert (stats["hits"], stats["misses"], stats["entries"]) == (4, 2, 2)
    assert stats["on_miss_ns"] > 0
    assert set(dispatch.entries()) == set(missed)
    assert dispatch.entries()[missed[1]](ones("int8", 3), 5) == 15
    assert isinstance(dispatch, tvm_ffi.Function) and isinstance(dispatch, tfc.Dispatch)
    assert dispatch.keys == ("x.dtype", "n % 2 == 0", "by")


def test_a_dispatch_is_described_by_its_signature():
    @tfc.specialize(SUM, keys={"dtype": "x.dtype"})
    def dispatch(key):
        """The sum of a vector."""
        return of_dtype(key.dtype)

    assert dispatch.signature.text == SUM and dispatch.__name__ == "sum"
    assert dispatch.__doc__ == f"The sum of a vector.\n\n{SUM}"
    assert repr(dispatch) == f"<Dispatch {SUM} by dtype>"
    assert tfc.python_callable(dispatch)(by=3, x=ones("float64")) == 12
    with pytest.raises(ValueError, match=r"Mismatched x\.ndim on argument #0 when calling: `sum\("):
        dispatch(np.ones((2, 2)))
    with pytest.raises(TypeError, match="expected a tensor|expected Tensor"):
        dispatch(3)
    assert dispatch.stats()["misses"] == 1


def test_keys_are_mappings_with_attributes():
    dispatch, missed = counted({"x.dtype": "x.dtype", "even": "n % 2 == 0"})
    dispatch(ones("float32"))
    (key,) = missed
    assert list(key) == ["x.dtype", "even"] and len(key) == 2 and key.even is True
    assert repr(key) == "Key(x.dtype: float32, even: True)"
    assert key == tfc.Key(("x.dtype", "even"), (tvm_ffi.dtype("float32"), True))
    assert key != tfc.Key(("x.dtype", "even"), (tvm_ffi.dtype("float32"), 1))
    with pytest.raises(KeyError):
        key["odd"]
    with pytest.raises(AttributeError, match=r"no key has the name `odd`; the keys are x\.dtype, even"):
        key.odd


def test_all_kinds_of_values_are_keys():
    signature = "f(x: Tensor([n], any), t: dtype, s: str, b: bool, r: float64, o: Optional[int64] = None) -> int64"
    keys = [
        "x.ndim", "n", "t", "s", "b", "r", "o.given", "x.device", 'x.device.kind == "cpu"', "x.device.id",
        "is_aligned(x, 4)", "is_contiguous(x)", "(n + 1) % 16", "x.dtype == float32",
    ]  # fmt: skip
    made = []

    @tfc.specialize(signature, keys=keys)
    def dispatch(key):
        made.append(key)
        return signature, tfc.Kernel.host(f"{{ return {len(made)}; }}")

    args = (ones("float32"), "int8", "text", True, 0.5)
    assert [dispatch(*args), dispatch(*args, None), dispatch(*args, 3), dispatch(*args)] == [1, 1, 2, 1]
    assert list(made[0].values()) == [
        1, 4, "int8", "text", True, 0.5, False, tvm_ffi.device("cpu:0"), True, 0, True, True, 5, True
    ]  # fmt: skip
    values = [1, 4, np.int8, "text", True, 0.5, True, "cpu:0", True, 0, True, True, 5, True]
    assert dispatch.remove(values) and dispatch.remove(made[0]) and not dispatch.remove(values)
    assert dispatch(*args) == 3


@pytest.mark.parametrize(
    "key, values",
    [
        ("b.dtype == float32", [True, False]),
        ("b.ndim", [2, 0]),
        ("is_aligned(b, 16)", [True]),
        ("is_contiguous(b)", [False, True]),
        ("b.given", [True, False]),
    ],
)
def test_keys_of_an_absent_tensor_are_zeros(key, values):
    signature = "f(b: Optional[Tensor([...], any, strides=any)])"
    missed = []

    @tfc.specialize(signature, keys=[key])
    def dispatch(found):
        missed.append(found[key])
        return signature, tfc.Kernel.check_only()

    memory = np.zeros(64, "float32")
    start = -memory.ctypes.data % 64 // 4
    dispatch(memory[start : start + 16].reshape(4, 4).T)
    dispatch(None)
    assert missed == values


def test_keys_that_are_wrong():
    for keys, error, message in [
        ([], ValueError, "keys: expected at least one expression"),
        ("x.dtype", TypeError, "keys: expected a list of str"),
        (["x.dtype", " x.dtype"], ValueError, r"keys: `x\.dtype` is stated twice"),
        ([3], TypeError, r"keys\[0\]: expected a str"),
        (["y.dtype"], tfc.KernelError, "`y`"),
        (["x.dtype", "n %"], tfc.KernelError, "line 5: expected a value"),
    ]:
        with pytest.raises(error, match=message):
            counted(keys)
    dispatch, _ = counted({"x.dtype": "x.dtype", "by": "by"})
    for key, error, message in [
        (("float32",), ValueError, r"expected 2 values \(x\.dtype, by\), got 1"),
        ({"x.dtype": "float32"}, ValueError, "it has no `by`"),
        ({"x.dtype": "float32", "by": 1, "n": 2}, ValueError, "there is no key `n`"),
        (("float32", "1"), TypeError, r"\['by'\]: expected a value of type int, got '1'"),
        (("float32", True), TypeError, "expected a value of type int, got True"),
        ((1, 1), TypeError, r"\['x\.dtype'\]: expected a value of type dtype, got 1"),
    ]:
        changes = (dispatch.remove, lambda key: dispatch.insert(key, dispatch), lambda key: dispatch.prewarm([key]))
        for change in changes:
            with pytest.raises(error, match=message):
                change(key)
    assert dispatch.entries() == {}


def test_an_error_of_the_callback_is_the_callers_and_is_not_kept():
    class Broken(Exception):
        pass

    failures = [Broken("no such kernel"), ValueError("line 1\nline 2"), KeyError("tile")]

    @tfc.specialize(SUM, keys=["x.dtype"])
    def dispatch(key):
        if failures:
            raise failures.pop(0)
        return of_dtype(key["x.dtype"])

    # upstream's package raises errors of kinds that it doesn't know as a RuntimeError
    for kind, message in [(RuntimeError, "no such kernel"), (ValueError, "line 1\nline 2"), (KeyError, "tile")]:
        with pytest.raises(kind) as caught:
            dispatch(ones("float32"))
        assert message in str(caught.value)
        assert dispatch.entries() == {}
    assert dispatch(ones("float32")) == 4
    stats = dispatch.stats()
    assert (stats["misses"], stats["entries"]) == (4, 1)


def test_what_a_callback_returns():
    made: list[object] = []

    @tfc.specialize(SUM, keys=["x.dtype"])
    def dispatch(key):
        return made[0]

    short = "sum(x: Tensor([n], float32)) -> float64"
    for value, error, message in [
        (None, TypeError, r"the variant of `sum` for Key\(x\.dtype: float32\): expected \(signature, kernel\)"),
        ((SUM,), TypeError, "expected .signature, kernel."),
        ((SUM, "saxpy"), TypeError, "expected a Kernel"),
        (("sum(", tfc.Kernel.check_only()), ValueError, "expected"),
        ((short, tfc.Kernel.check_only()), ValueError, "takes 1 arguments, and the dispatch passes 2"),
        ((SUM, tfc.Kernel.symbol("no_such_symbol")), LookupError, "no_such_symbol"),
    ]:
        made[:] = [value]
        with pytest.raises(error, match=message):
            dispatch(ones("float32"))
    made[:] = [tvm_ffi.convert(lambda *args: 7)]
    assert dispatch(ones("float32")) == 7


def test_kernels_come_with_their_objects(cc, tmp_path):
    signature = "twice(x: int64, kind: str) -> int64"
    objects = {name: cc.object(f"#include <stdint.h>\nint64_t {name}(int64_t x) {{ return {by} * x; }}")
               for name, by in (("two", 2), ("three", 3))}  # fmt: skip

    @tfc.specialize(signature, keys=["kind"])
    def twice(key):
        if key.kind == "two":
            return signature, tfc.Kernel.object(objects["two"], "two", args=["x"])
        return signature, tfc.Kernel.symbol("three", args=["x"]), [objects["three"]]

    assert [twice(5, "two"), twice(5, "three")] == [10, 15]
    twice.export(tmp_path / "twice.so")
    module = tvm_ffi.load_module(str(tmp_path / "twice.so"))
    assert [module.twice(7, "two"), module.twice(7, "three")] == [14, 21]
    with pytest.raises(ValueError, match='for `kind` = four; the rows are "two", "three"; no row takes this `kind`'):
        module.twice(7, "four")


def test_entries_are_replaced_removed_and_cleared():
    dispatch, missed = counted()
    x = ones("float32")
    assert dispatch(x) == 4
    old = dispatch.entries()[missed[0]]
    dispatch.insert("float32", tvm_ffi.convert(lambda *args: 7))
    assert (dispatch(x), old(x)) == (7, 4)
    dispatch.insert({"x.dtype": np.float32}, (SUM, tfc.Kernel.host("{ return 1.5; }")))
    assert dispatch(x) == 1.5
    assert dispatch.remove("float32") and not dispatch.remove("float32")
    assert dispatch(x) == 4 and len(missed) == 2
    dispatch.clear()
    assert dispatch.entries() == {} and dispatch(x) == 4 and len(missed) == 3
    assert old(x) == 4


def test_the_variants_that_were_used_longest_ago_go_first():
    dispatch, missed = counted(max_entries=2)
    # int8 is used after float32 has come
    for dtype in ("int8", "float32", "int8", "float64", "int8"):
        dispatch(ones(dtype))
    assert [str(key["x.dtype"]) for key in missed] == ["int8", "float32", "float64"]
    assert {str(key["x.dtype"]) for key in dispatch.entries()} == {"int8", "float64"}
    assert dispatch.stats()["evictions"] == 1
    for wrong, error in [(0, ValueError), (-1, ValueError), ("2", TypeError), (True, TypeError)]:
        with pytest.raises(error, match="max_entries: expected"):
            counted(max_entries=wrong)


def test_what_evicted_variants_were_made_of_is_forgotten():
    dispatch, missed = counted(["x.dtype", "n"], max_entries=3)
    for n in range(50):
        dispatch(ones("float32", n))
    assert len(missed) == 50 and len(dispatch.entries()) == 3
    assert len(dispatch._variants._known) <= 7


def test_prewarm_makes_variants_without_calls(tmp_path):
    threads = set()
    arguments = []

    @tfc.specialize(SUM, keys=["x.dtype"])
    def dispatch(key):
        threads.add(threading.get_ident())
        arguments.append(key.arguments)
        if key["x.dtype"] == "int16":
            raise ValueError("int16 is not wanted")
        time.sleep(0.05)
        return of_dtype(key["x.dtype"])

    dispatch.prewarm(["float32", "float64", np.int8, tvm_ffi.dtype("int32")])
    assert len(dispatch.entries()) == 4 and arguments == [None] * 4 and threading.get_ident() not in threads
    with pytest.raises(ValueError, match="int16 is not wanted"):
        dispatch.prewarm(["int16", "uint8"])
    assert len(dispatch.entries()) == 5
    before = dispatch.stats()["misses"]
    assert dispatch(ones("uint8")) == 4 and dispatch.stats()["misses"] == before
    # a call passes its arguments, for measurements
    dispatch(ones("uint16"), 3)
    x, by = arguments[-1]
    assert (x.shape, by) == ((4,), 3)


def test_a_callback_may_call_its_own_dispatch():
    @tfc.specialize(SUM, keys=["x.dtype"])
    def dispatch(key):
        dtype = str(key["x.dtype"])
        if dtype == "float32":
            assert dispatch(ones("float64")) == 4
        if dtype == "int8":
            dispatch(ones("int8"))
        return of_dtype(dtype)

    assert dispatch(ones("float32")) == 4 and len(dispatch.entries()) == 2
    with pytest.raises(RuntimeError, match="int8"):
        dispatch(ones("int8"))
    assert len(dispatch.entries()) == 2


def test_threads_wait_for_their_key_alone():
    started, go = threading.Event(), threading.Event()
    made, results = [], []

    @tfc.specialize(SUM, keys=["x.dtype"])
    def dispatch(key):
        made.append(str(key["x.dtype"]))
        if key["x.dtype"] == "float32":
            started.set()
            assert go.wait(30)
        return of_dtype(key["x.dtype"])

    threads = [threading.Thread(target=lambda: results.append(dispatch(ones("float32")))) for _ in range(8)]
    for thread in threads:
        thread.start()
    assert started.wait(30)
    # a key whose callback hangs doesn't hold up another one
    assert dispatch(ones("float64")) == 4 and dispatch(ones("float64")) == 4
    assert results == []
    go.set()
    for thread in threads:
        thread.join(30)
    assert results == [4] * 8 and sorted(made) == ["float32", "float64"]


def test_a_dispatch_that_is_gone_lets_its_callback_go():
    class Compiler:
        def __call__(self, key):
            return of_dtype(key["x.dtype"])

    compiler = Compiler()
    dispatch = tfc.specialize(SUM, keys=["x.dtype"])(compiler)
    assert dispatch(ones("float32")) == 4
    function = dispatch.entries().popitem()[1]
    known = weakref.ref(compiler)
    del compiler, dispatch
    gc.collect()
    assert known() is None and function(ones("float32")) == 4


def test_results_are_the_variants():
    signature = "double(x: Tensor([n], any)) -> Tensor([n], x.dtype)"
    signature = "double(x: Tensor([n], any), *, by: int64 = 2) -> Tensor([n], float32)"
    tfc.install_cpu_allocator()

    @tfc.specialize(signature, keys=["x.dtype"])
    def double(key):
        body = "{ for i in range(0, n) { result[i] = float32(x[i]) * float32(by); } }"
        return signature.replace("any", str(key["x.dtype"])), tfc.Kernel.host(body)

    call = tfc.python_callable(double)
    assert np.from_dlpack(call(np.arange(3, dtype="int8"))).tolist() == [0, 2, 4]
    assert np.from_dlpack(call(np.arange(3, dtype="float64"), by=3)).tolist() == [0, 3, 6]


CACHED = """
import sys, numpy as np, tvm_ffi_codegen as tfc
signature = "sum(x: Tensor([n], any)) -> float64"
body = "{ for i in range(0, n) with s = float64(0) { continue s + float64(x[i]); } return s; }"

@tfc.specialize(signature, keys=["x.dtype", "n % 2 == 0"], cache=tfc.Cache(sys.argv[1]), version=sys.argv[2])
def dispatch(key):
    print("made", key["x.dtype"])
    return signature.replace("any", str(key["x.dtype"])), tfc.Kernel.host(body)

for dtype in ("float32", "int8"):
    assert dispatch(np.ones(4, dtype)) == 4
if len(sys.argv) > 3:
    dispatch.export(sys.argv[3])
"""


def test_a_later_process_has_the_variants_from_the_cache(tmp_path):
    def run(*words):
        command = [sys.executable, "-c", CACHED, str(tmp_path / "cache"), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()

    made = ["made float32", "made int8"]
    assert run("1") == made
    assert run("1") == []
    # another version is another compiler
    assert run("2") == made
    # an export asks the callback for what the cache has as code alone
    assert run("1", str(tmp_path / "sum.so")) == made
    assert tvm_ffi.load_module(str(tmp_path / "sum.so")).sum(ones("int8")) == 4
    with pytest.raises(ValueError, match="version: expected a str with a cache"):
        counted(cache=tfc.Cache(tmp_path / "cache"))
    with pytest.raises(TypeError, match="cache: expected a Cache"):
        counted(cache=str(tmp_path), version="1")


PLAIN = """
import sys
import tvm_ffi

module = tvm_ffi.load_module(sys.argv[1])
assert [module.pick(n, "float16", True) for n in range(20)] == list(range(20))
assert [module.pick(n, "float16", False) for n in range(20)] == list(range(100, 120))
try:
    module.pick(20, "float16", True)
except ValueError as error:
    print(error)
assert "tvm_ffi_codegen" not in sys.modules
"""


def test_an_exported_library_needs_neither_compiler_nor_package(tmp_path):
    signature = "pick(n: int64, t: dtype, big: bool) -> int64"

    @tfc.specialize(signature, keys=["t", "n", "big"])
    def pick(key):
        # the callback isn't part of the library
        return signature, tfc.Kernel.host(f"{{ return {key.n if key.big else 100 + key.n}; }}")

    pick.prewarm([("float16", n, big) for n in range(20) for big in (True, False)])
    path = tmp_path / "pick.so"
    pick.export(path)
    (one, most) = (tmp_path / "one.so", path)
    for key in list(pick.entries())[1:]:
        pick.remove(key)
    pick.export(one)
    size = (os.path.getsize(most) - os.path.getsize(one)) / 39
    print(f"{size:.0f} bytes for each variant")
    assert size < 4096
    told = tfc.inspect(path.read_bytes())
    assert told["needed_libraries"] == []
    assert len(told["functions"]) == 41
    site = os.pathsep.join(str(Path(package.__file__).parents[1]) for package in (tvm_ffi, np))
    typing = [of for of in sys.path if (Path(of) / "typing_extensions.py").exists()][:1]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([site, *typing])}
    ran = subprocess.run([sys.executable, "-c", PLAIN, str(path)], env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    got, _, rows = ran.stdout.strip().partition("; the rows are ")
    assert got.endswith("holds for `t` = float16, `n` = 20, `big` = True") and "`pick(" in got
    assert len(re.findall(r"\(float16, \d+, (?:True|False)\)", rows)) == 8 and "no row takes this `n`" in rows


def test_what_cannot_be_exported(tmp_path):
    dispatch, _ = counted()
    with pytest.raises(tfc.KernelError, match="`sum` has no variants to export"):
        dispatch.export(tmp_path / "k.so")
    dispatch.insert("float32", tvm_ffi.convert(lambda *args: 0))
    message = r"given as functions can't be exported: Key\(x\.dtype: float32\)"
    with pytest.raises(tfc.KernelError, match=message):
        dispatch.export(tmp_path / "k.so")

    @tfc.specialize("half(x: float64) -> float64", keys=["x"])
    def half(key):
        return "half(x: float64) -> float64", tfc.Kernel.host("{ return x; }")

    half(0.5)
    with pytest.raises(tfc.KernelError, match=r"the key `x` has the value 0\.5, which a fixed dispatch can't compare"):
        half.export(tmp_path / "k.so")

    assert not (tmp_path / "k.so").exists()


def test_names_of_a_signature_may_be_those_of_the_dispatch():
    signature = "call(grow: Tensor([dispatch], any), make: int64, args: int64) -> int64"

    @tfc.specialize(signature, keys=["grow.dtype", "dispatch"])
    def call(key):
        return signature, tfc.Kernel.host("{ return dispatch + make + args; }")

    assert call(ones("int8"), 10, 100) == 114
