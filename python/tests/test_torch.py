"""Operators of PyTorch. Skipped unless PyTorch is installed."""

from __future__ import annotations

import shutil

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: no operators of it are tested")

import tvm_ffi_codegen as tfc  # noqa: E402
import tvm_ffi_codegen.torch as tfc_torch  # noqa: E402
from torch._dynamo.testing import CompileCounterWithBackend  # noqa: E402

from conftest import Compiler  # noqa: E402
from operators import OUTPUTS, SIGNATURES, SOURCE  # noqa: E402


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    library = tfc.Library()
    for text in SIGNATURES:
        library.add(text, tfc.Kernel.symbol(tfc.Signature(text).name))
    return library.load(objects=Compiler(tmp_path_factory.mktemp("torch")).object(SOURCE))


@pytest.fixture(scope="module")
def ops(module):
    made = {name: tfc_torch.register(module, f"tfc_test::{name}", outputs=outputs) for name, outputs in OUTPUTS.items()}
    return {**made, "add_to": tfc_torch.register(module, "tfc_test::add_to", inouts=["y"])}


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()


def test_schemas_tell_what_is_written(ops):
    assert str(ops["scale"].mutating._schema) == "tfc_test::scale(float a, Tensor x, Tensor(a2!) y) -> ()"
    assert str(ops["scale"].functional._schema) == "tfc_test::scale.functional(float a, Tensor x) -> Tensor"
    assert str(ops["add_to"].functional._schema) == (
        "tfc_test::add_to.functional(Tensor x, Tensor y, float by=1.) -> Tensor"
    )
    assert str(ops["split"].functional._schema) == "tfc_test::split.functional(Tensor x) -> (Tensor, Tensor)"
    assert str(ops["biased"].mutating._schema) == "tfc_test::biased(Tensor x, Tensor? bias, Tensor(a2!) y) -> ()"
    assert str(ops["tell"].mutating._schema) == (
        'tfc_test::tell(Tensor(a0!) y, SymInt big, float number=0.10000000000000001, bool on=True, str name="abc", '
        "Device? to=None, ScalarType? kind=None, float? limit=None) -> ()"
    )
    assert str(ops["marked"].mutating._schema) == (
        "tfc_test::marked(float half, Tensor x, Tensor(a2!) y, Tensor(a3!) z) -> ()"
    )
    assert str(ops["both"].mutating._schema) == "tfc_test::both(Tensor x) -> (Tensor, Tensor)"
    assert str(ops["twice"].mutating._schema) == "tfc_test::twice(Tensor x) -> Tensor"
    assert ops["twice"].functional is None and "writes no tensors" in ops["twice"].why_not_functional


def test_operators_call_the_function(ops):
    x, y = torch.arange(4.0), torch.zeros(4)
    version = y._version
    assert ops["scale"](2.0, x, y) is None and y.tolist() == [0, 2, 4, 6] and y._version > version
    assert ops["scale"].functional(3.0, x).tolist() == [0, 3, 6, 9]
    added = ops["add_to"].functional(x, y, by=2.0)
    assert added.tolist() == [0, 4, 8, 12] and y.tolist() == [0, 2, 4, 6]
    assert ops["sub"].functional(x, z=torch.ones(4)).tolist() == [-1, 0, 1, 2]
    low, high = ops["split"].functional(x)
    assert (low.tolist(), high.tolist()) == ([0, 1], [2, 3])
    assert ops["twice"](x).tolist() == [0, 2, 4, 6] and ops["signs"](x - 1).tolist() == [True, False, False, False]
    assert ops["fill"].functional(3, 0.5).tolist() == [0.5] * 3
    biased = ops["biased"].functional
    assert biased(x, None).tolist() == biased(x, torch.zeros(4)).tolist() == x.tolist()
    assert ops["pool"].functional(torch.ones(6, 2)).tolist() == [[4] * 4, [2] * 4]
    written, read_and_written = ops["marked"].functional(0.5, x, z=torch.ones(4))
    assert (written.tolist(), read_and_written.tolist()) == ([0, 0.5, 1, 1.5], [1, 2, 3, 4])


def test_several_tensors_are_returned(ops):
    x = torch.arange(2.0)
    first, second = ops["both"](x)
    assert (first.tolist(), second.tolist()) == ([1, 2], [0, 0, 1, 1])
    compiled = torch.compile(lambda x: ops["both"](x)[1] + 1, fullgraph=True, dynamic=True, backend="aot_eager")
    assert compiled(x).tolist() == [1, 1, 2, 2]


def test_arguments_of_all_kinds_and_their_defaults(ops):
    y = torch.zeros(7, dtype=torch.int64)
    ops["tell"](y, 2**40)
    assert y.tolist() == [2**40, 10**14, 1, ord("a"), 21, 416, 1]
    ops["tell"](y, -1, 2.0, False, "", torch.device("cpu"), torch.float32, 1.0)
    assert y.tolist() == [-1, 2 * 10**15, 0, 0, 10, 232, 0]
    ops["tell"](y, big=3, kind=torch.int8, name="z")
    assert y.tolist() == [3, 10**14, 1, ord("z"), 21, 8, 1]
    assert ops["tell"].functional(2**40).tolist() == [2**40, 10**14, 1, ord("a"), 21, 416, 1]


def test_errors_are_the_functions(ops):
    with pytest.raises(ValueError, match=r"Mismatched y.shape\[0\] on argument #2 when calling: `scale"):
        ops["scale"](2.0, torch.ones(4), torch.ones(5))
    with pytest.raises(ValueError, match="Mismatched x.dtype on argument #1"):
        ops["scale"].functional(2.0, torch.ones(4, dtype=torch.float64))


def program(ops, x, y):
    out = torch.empty_like(x)
    ops["scale"](2.0, x, out)
    ops["add_to"](x, out, 0.5)
    low, high = ops["split"].functional(out)
    pooled = ops["pool"].functional(torch.stack([low, high], 1) + 1)
    return ops["twice"](pooled.flatten()) + y


def expected(x, y):
    out = 2.5 * x
    low, high = out.chunk(2)
    rows = torch.stack([low, high], 1) + 1
    tiles = torch.nn.functional.pad(rows, (0, 0, 0, -rows.shape[0] % 4)).reshape(-1, 4, 2).sum(1)
    return 2 * torch.cat([tiles, tiles], 1).flatten() + y


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_compiled_program_has_no_graph_break(ops, backend):
    counter = CompileCounterWithBackend(backend)
    compiled = torch.compile(lambda x: program(ops, x, 1.0), fullgraph=True, backend=counter, dynamic=True)
    for size in (10, 12, 40, 18):
        x = torch.randn(size)
        torch.testing.assert_close(compiled(x), expected(x, 1.0))
    # one graph serves all sizes
    assert counter.frame_count == 1
    targets = [node.target for node in counter.graphs[0].graph.nodes if node.op == "call_function"]
    assert ops["scale"].mutating in targets and ops["pool"].functional in targets and ops["twice"].mutating in targets


@pytest.mark.skipif(shutil.which("c++") is None and shutil.which("g++") is None, reason="inductor needs a C++ compiler")
def test_inductor_compiles_operators(ops):
    def program(x):
        y = torch.empty_like(x)
        ops["scale"](2.0, x + 1, y)
        return ops["split"].functional(y)[0] * 3

    # one thread starts sooner than a pool of processes
    compiled = torch.compile(program, fullgraph=True, dynamic=True, options={"compile_threads": 1})
    for size in (10, 24):
        x = torch.randn(size)
        torch.testing.assert_close(compiled(x), 6 * (x + 1)[: size // 2])


def test_sizes_are_related_when_compiling(ops):
    compiled = torch.compile(lambda x, y: ops["sub"](x, y, x), fullgraph=True, backend="eager")
    with pytest.raises(Exception, match=r"expected 4 for `y.shape\[0\]`, n, got 5"):
        compiled(torch.ones(4), torch.ones(5))
    compiled = torch.compile(lambda x: ops["pool"].functional(x), fullgraph=True, backend="eager")
    with pytest.raises(Exception, match="expected c > 0"):
        compiled(torch.ones(4, 0))


def test_opcheck_accepts_the_operators(ops):
    x, y = torch.randn(8), torch.randn(8)
    for op, args in [
        (ops["scale"].mutating, (2.0, x, y)),
        (ops["scale"].functional, (2.0, x)),
        (ops["add_to"].mutating, (x, y)),
        (ops["add_to"].functional, (x, y, 2.0)),
        (ops["split"].functional, (x,)),
        (ops["pool"].functional, (torch.randn(9, 3),)),
        (ops["fill"].functional, (4, 1.0)),
        (ops["twice"].mutating, (x,)),
        (ops["biased"].functional, (x, None)),
        (ops["tell"].mutating, (torch.zeros(7, dtype=torch.int64), 5)),
    ]:
        result = torch.library.opcheck(op, args)
        assert set(result.values()) == {"SUCCESS"}, (op, result)


def test_gradients_are_registered_by_users(ops):
    op = ops["scale"].functional
    torch.library.register_autograd(
        op,
        # the function takes contiguous tensors, and the gradient of a sum isn't contiguous
        lambda ctx, grad: (None, op(ctx.by, grad.contiguous())),
        setup_context=lambda ctx, inputs, output: setattr(ctx, "by", inputs[0]),
    )
    x = torch.ones(3, requires_grad=True)
    op(3.0, x).sum().backward()
    assert x.grad.tolist() == [3, 3, 3]


def compiled_function(text):
    return tfc.compile(text, tfc.Kernel.check_only())


def test_what_is_written_has_to_be_known(module):
    with pytest.raises(ValueError, match="nothing says which tensors `scale` writes"):
        tfc_torch.register(module, "tfc_test::scale_1", function="scale")
    with pytest.raises(ValueError, match="`z` isn't a tensor of `scale`; its tensors are x, y"):
        tfc_torch.register(module, "tfc_test::scale_1", function="scale", outputs=["z"])
    with pytest.raises(ValueError, match="`y` is named twice"):
        tfc_torch.register(module, "tfc_test::scale_1", function="scale", outputs=["y"], inouts=["y"])
    with pytest.raises(TypeError, match="expected a list of str, got 'y'"):
        tfc_torch.register(module, "tfc_test::scale_1", function="scale", outputs="y")
    with pytest.raises(ValueError, match="`mylib::saxpy`"):
        tfc_torch.register(module, "scale", outputs=["y"])
    with pytest.raises(ValueError, match="a bare tvm_ffi.Function has no signature"):
        tfc_torch.register(module.scale, "tfc_test::scale_1", outputs=["y"])


def test_signatures_that_schemas_cannot_have_are_refused():
    for number, (text, message) in enumerate(
        [
            ("f(x: Map[str, int64])", "`x` of `f` is of a kind that PyTorch's schemas don't have: map"),
            ("f(x: handle)", "don't have: handle"),
            ("f(n: int64) -> int64", "`f` returns int64 .*: write it into a tensor"),
            ('f(d: Optional[device] = "cuda:1")', "default of `d` of `f` has no form"),
            ('f(t: dtype = "float6_e3m2fn")', "`f` uses float6_e3m2fn, which PyTorch has no dtype for"),
        ]
    ):
        with pytest.raises(TypeError, match=message):
            function = compiled_function(text) if "->" not in text else None
            tfc_torch.register(function, f"tfc_test::refused_{number}", text)


def test_outputs_of_open_types_have_no_functional_operator():
    for number, (type, why) in enumerate(
        [
            ("Tensor([...], float32)", "the rank of `y` is open"),
            ("Tensor([n], any)", "the dtype of `y` is open"),
            ("Tensor([m], float32)", "no input has `m`, a size of `y`"),
            ("Optional[Tensor([n], float32)]", "`y` isn't a plain tensor"),
        ]
    ):
        text = f"f(x: Tensor([n], float32), y: {type})"
        op = tfc_torch.register(compiled_function(text), f"tfc_test::open_{number}", text, outputs=["y"])
        assert op.functional is None and op.why_not_functional == why
        op(torch.ones(2), torch.ones(2))


def test_lists_and_strides_and_other_dtypes():
    text = (
        "f(xs: Array[Tensor([n], bfloat16)], k: Array[int64], s: Shape([2, n]), "
        "y: Tensor([n, 2], bfloat16, strides=[t, 1]), t: int64)"
    )
    op = tfc_torch.register(compiled_function(text), "tfc_test::lists", text, outputs=["y"])
    assert str(op.mutating._schema).startswith(
        "tfc_test::lists(Tensor[] xs, SymInt[] k, SymInt[] s, Tensor(a3!) y, SymInt t)"
    )
    xs = [torch.ones(3, dtype=torch.bfloat16)] * 2
    made = op.functional(xs, [1, 2], [2, 3], 7)
    assert (made.shape, made.stride(), made.dtype) == ((3, 2), (7, 1), torch.bfloat16)
    torch.library.opcheck(op.functional, (xs, [1, 2], [2, 3], 7), test_utils=["test_schema", "test_faketensor"])


def test_dtypes_are_types():
    types = {"a": torch.float32, "b": torch.bfloat16, "c": torch.bool, "d": torch.uint8}
    built = tfc.Signature.build("f", {**types, "t": "dtype"}, defaults={"t": torch.float16}, returns=torch.half)
    assert [of.type for of in built.parameters] == ["float32", "bfloat16", "bool", "uint8", "dtype"]
    assert built.returns == "float16" and built.parameters[-1].default == '"float16"'


def test_a_dispatch_has_variants_for_the_dtypes_of_tensors():
    signature = "sum(x: Tensor([n], any), by: int32 = 1) -> float64"
    body = "{ for i in range(0, n) with s = float64(0) { continue s + float64(x[i]); } return s * float64(by); }"
    passed = []

    @tfc.specialize(signature, keys={"dtype": "x.dtype"})
    def dispatch(key):
        passed.append(key.arguments)
        return signature.replace("any", str(key.dtype)), tfc.Kernel.host(body)

    for dtype in (torch.float32, torch.int8, torch.float32):
        assert dispatch(torch.ones(5, dtype=dtype), 2) == 10
    assert [(x.shape, by) for x, by in passed] == [((5,), 2)] * 2
    assert dispatch.remove(torch.int8) and dispatch.remove({"dtype": torch.float32}) and dispatch.entries() == {}
    dispatch.prewarm([torch.float64])
    assert passed[-1] is None and dispatch(torch.ones(5, dtype=torch.float64)) == 5
