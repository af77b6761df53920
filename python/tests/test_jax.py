"""Functions in JAX. Skipped unless JAX and jax-tvm-ffi are installed."""

from __future__ import annotations

import inspect
import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="JAX is not installed: no functions in it are tested")
pytest.importorskip("jax_tvm_ffi", reason="jax-tvm-ffi is not installed: no functions in JAX are tested")

import jax.numpy as jnp  # noqa: E402
import tvm_ffi_codegen as tfc  # noqa: E402
import tvm_ffi_codegen.jax as tfc_jax  # noqa: E402

from conftest import Compiler  # noqa: E402
from operators import OUTPUTS, SIGNATURES, SOURCE  # noqa: E402

#: By default JAX has no 64-bit arrays.
TELL_32 = """
void tell32(int32_t* y, int64_t big, double number, uint8_t on, const char* name, int64_t name_len, Device to,
            DType kind, double limit) {
  int64_t y64[7];
  tell(y64, big, number, on, name, name_len, to, kind, limit);
  for (int i = 0; i < 7; ++i) y[i] = (int32_t)(i == 0 ? y64[0] >> 20 : i == 1 ? y64[1] / 1000000 : y64[i]);
}
"""
TELL = SIGNATURES[-1].replace("tell(", "tell32(").replace("int64)", "int32)", 1)


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    library = tfc.Library()
    for text in (*SIGNATURES, TELL):
        library.add(text, tfc.Kernel.symbol(tfc.Signature(text).name))
    return library.load(objects=Compiler(tmp_path_factory.mktemp("jax")).object(SOURCE + TELL_32))


@pytest.fixture(scope="module")
def functions(module):
    made = {
        name: tfc_jax.register(module, name, outputs=outputs) for name, outputs in OUTPUTS.items() if name != "tell"
    }
    made["add_to"] = tfc_jax.register(module, "add_to", inouts=["y"])
    made["tell"] = tfc_jax.register(module, "tfc_test.tell", outputs=["y"], function="tell32")
    return made


X = np.arange(4, dtype="float32")


def test_outputs_are_results_under_jit(functions):
    assert functions["scale"](2.0, X).tolist() == [0, 2, 4, 6]
    assert jax.jit(lambda x: functions["scale"](3.0, x=x) + 1)(X).tolist() == [1, 4, 7, 10]
    low, high = jax.jit(functions["split"])(X)
    assert (low.tolist(), high.tolist()) == ([0, 1], [2, 3])
    assert jax.jit(functions["pool"])(jnp.ones((6, 2))).tolist() == [[4] * 4, [2] * 4]
    assert jax.jit(lambda: functions["fill"](3, value=0.5))().tolist() == [0.5] * 3


def test_functions_have_the_signatures_parameters(functions):
    assert str(inspect.signature(functions["add_to"])) == "(x, y, by=1.0)"
    assert str(inspect.signature(functions["sub"])) == "(x, z)"
    assert functions["sub"].__name__ == "sub" and functions["sub"].__doc__ == SIGNATURES[2]
    with pytest.raises(TypeError, match="missing a required argument: 'z'"):
        functions["sub"](X)


def test_an_output_stands_anywhere(functions):
    assert jax.jit(functions["sub"])(X, 3 * X).tolist() == [0, -2, -4, -6]
    assert functions["tell"](big=1).shape == (7,)


def test_what_is_read_and_written_is_an_alias(functions):
    x, y = jnp.asarray(X), jnp.ones(4)
    assert functions["add_to"](x, y).tolist() == [1, 2, 3, 4] and y.tolist() == [1] * 4
    both = jax.jit(lambda x, y: (functions["add_to"](x, y, by=2.0), y + 0))
    assert [of.tolist() for of in both(x, y)] == [[1, 3, 5, 7], [1, 1, 1, 1]]
    donating = jax.jit(functions["add_to"], donate_argnums=1, static_argnames="by")
    before = y.unsafe_buffer_pointer()
    z = donating(x, y, by=1.0)
    assert z.tolist() == [1, 2, 3, 4] and y.is_deleted() and z.unsafe_buffer_pointer() == before
    assert "output_operand_alias" in donating.lower(x, jnp.ones(4), by=1.0).as_text()


def test_returned_tensors_are_results(functions):
    assert jax.jit(functions["twice"])(X).tolist() == [0, 2, 4, 6]
    assert functions["twice"](jnp.zeros(0)).shape == (0,)
    signs = jax.jit(functions["signs"])(X - 1)
    assert signs.tolist() == [True, False, False, False] and signs.dtype == np.bool_
    first, second = jax.jit(functions["both"])(X)
    assert first.tolist() == [1, 2, 3, 4] and second.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


def test_marks_say_what_is_written(functions):
    written, read_and_written = jax.jit(lambda x, z: functions["marked"](0.5, x, z=z))(X, jnp.ones(4))
    assert (written.tolist(), read_and_written.tolist()) == ([0, 0.5, 1, 1.5], [1, 2, 3, 4])


def test_attributes_constants_and_their_defaults(functions):
    tell = functions["tell"]
    assert tell(2**40).tolist() == [2**20, 10**8, 1, ord("a"), 21, 416, 1]
    told = jax.jit(lambda: tell(2**40, 2.0, False, "", "cpu", np.float32, 1.0))()
    assert told.tolist() == [2**20, 2 * 10**9, 0, 0, 10, 232, 0]
    assert tell(2**21, kind="int8", name="z").tolist() == [2, 10**8, 1, ord("z"), 21, 8, 1]
    biased = functions["biased"]
    assert biased(X, None).tolist() == X.tolist() and biased(X, jnp.ones(4)).tolist() == (X + 1).tolist()
    assert biased(X, None).tolist() == X.tolist()


def test_vmap_is_what_was_asked_for(module, functions):
    batch = jnp.arange(6.0).reshape(2, 3)
    with pytest.raises(NotImplementedError, match="vmap_method"):
        jax.vmap(functions["twice"])(batch)
    one_by_one = tfc_jax.register(module, "tfc_test.pool", outputs=["y"], function="pool", vmap_method="sequential")
    pooled = jax.vmap(one_by_one)(jnp.ones((3, 5, 1)))
    assert pooled.shape == (3, 2, 2) and pooled[0].tolist() == [[4, 4], [1, 1]]


def test_errors_of_calls_are_errors(functions):
    with pytest.raises(ValueError, match=r"expected 4 for `z.shape\[0\]`, n, got 5"):
        jax.jit(functions["sub"])(X, jnp.ones(5))
    with pytest.raises(ValueError, match="expected c > 0, got 0 and 0"):
        functions["pool"](jnp.ones((4, 0)))
    with pytest.raises(ValueError, match="expected 1 dimensions for `x`, got 2"):
        functions["twice"](jnp.ones((4, 1)))
    with pytest.raises(Exception, match="Mismatched z.dtype on argument #2"):
        functions["sub"](X, jnp.ones(4, "int32"))
    with pytest.raises(TypeError, match="`by` of `add_to` isn.t a tensor"):
        jax.jit(functions["add_to"])(X, X, 2.0)


def test_functions_that_xla_cannot_call_are_refused(module):
    def register(text, **access):
        tfc_jax.register(tfc.compile(text, tfc.Kernel.check_only()), "tfc_test.refused", text, **access)

    with pytest.raises(ValueError, match="nothing says which tensors `scale` writes"):
        tfc_jax.register(module, "scale")
    with pytest.raises(ValueError, match="XLA allocates what `f` writes, and the rank of `y` is open"):
        register("f(y: Tensor([...], float32))", outputs=["y"])
    with pytest.raises(TypeError, match="doesn.t return a tensor"):
        tfc_jax.register(module.scale, "tfc_test.refused", "f(n: int64) -> int64")
    with pytest.raises(TypeError, match="`xs` of `f` holds tensors"):
        register("f(xs: Array[Tensor([4], float32)])", inouts=["xs"])
    wide = tfc_jax.register(module, "tfc_test.wide", outputs=["y"], function="tell")
    with pytest.raises(TypeError, match="`tell` has a tensor of int64, which JAX has with `jax_enable_x64` alone"):
        wide(1)
    with pytest.raises(TypeError, match="`f` is of a kind that XLA's calls don't have: map"):
        text = "f(m: Map[str, int64], y: Tensor([1], float32))"
        tfc_jax.register(tfc.compile(text, tfc.Kernel.check_only()), "tfc_test.map", text, outputs=["y"])({})


def test_dtypes_are_types():
    types = {"a": jnp.float32, "b": jnp.bfloat16, "c": jnp.zeros(1).dtype}
    built = tfc.Signature.build("f", types, defaults={"c": jnp.float32(2)})
    assert [of.type for of in built.parameters] == ["float32", "bfloat16", "float32"]
    assert built.parameters[-1].default == "2.0"
