"""A graph compiler: a model becomes one host function that calls all others. ``examples/graph_compiler.rs`` is the same
compiler in Rust.

Its kernels are host text, ``kernels.tfh``. The host function calls them by symbol. ``host.clip`` is a global function
that the program running the model registers. Prices are in a module that the host function's module imports.
"""

from __future__ import annotations

from pathlib import Path

# begin: TVM FFI
import tvm_ffi_codegen as tfc
from tvm_ffi_codegen import host

from graph import Graph, Node

KERNELS = Path(__file__).with_name("kernels.tfh").read_text()

#: The signature of the model.
SIGNATURE = (
    "forward(x: Tensor([m, k], float32), w: Tensor([k, n], float32), bias: Tensor([n], float32)) -> "
    "Tensor([m, n], float32)"
)


def lower(graph: Graph) -> tfc.Program:
    """The functions of the graph's module: the host function, and the kernels that it calls."""
    program = host.Program()
    program.register(graph.name, f"model.{graph.name}")
    # an error about an argument is attributed to the line that names the argument
    b = program.function(SIGNATURE, location=place(graph, graph.nodes[0]))
    tensors: list[host.Value] = []
    for node in graph.nodes:
        b.at(place(graph, node))
        tensors.append(call(b, node, tensors, is_result=node is graph.nodes[-1]))
    return tfc.program(str(program) + KERNELS)


def place(graph: Graph, node: Node) -> tfc.SourceLocation:
    return tfc.SourceLocation(graph.file, node.line, graph.name)


def call(b: host.Body, node: Node, tensors: list[host.Value], is_result: bool) -> host.Value:
    """Emits the call of a node, and returns its tensor. The text states no checks, releases and error handling."""

    def to() -> host.Value:
        # the last node writes into the result, any other into a tensor that the body owns
        return b.result if is_result else b.alloc([b.arg("m"), b.arg("n")], "float32", like=b.arg("x"))

    args = [tensors[of] if isinstance(of, int) else of for of in node.operands]
    if node.function is None:
        return b.arg(node.name)
    if node.function.startswith("host."):
        return b.call(host.global_(node.function), *args, returns="Tensor([m, n], float32)")
    function = node.function
    if function == "priced":
        x, item = args
        function, args = "scale", [x, b.call(host.import_("price_of"), item, returns="float32")]
    tensor = to()
    b.call(host.symbol(function), *args, tensor)
    return tensor
# end: TVM FFI
