"""Helion kernels: launches of the Triton code that Helion generates, with its host code's sizes as expressions.

Helion generates a Triton kernel and a host function. The host function allocates the outputs and launches the kernel.
This module runs it once, with tensors without memory. Their sizes are symbols, so the grid and the arguments become
expressions of the signature's sizes. Host code that needs the value of a size is an error.

Importing this module imports Helion and PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

import helion
import sympy
import torch
from helion.runtime.kernel import BoundKernel
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from . import _check
from ._structure import align_of, contiguous_strides, dim_text
from .errors import KernelError
from .kernel import Kernel
from .signature import Signature, as_signature
from .triton.compiled import ELEMENTS, constraint, is_multiple, launch_of
from .triton.jit import as_arch, target_of
from .triton.multiples import Dim, factor

__all__ = ["kernel"]

#: A configuration of Helion, or several with the conditions under which each of them runs.
Configs = Union[Any, Sequence["tuple[str | None, Any]"]]

#: Triton's names of the elements that a pointer points to, by their dtypes.
_POINTERS = {dtype: name for name, dtype in ELEMENTS.items() if name not in ("u1", "f32")}
#: The options that a launch passes on to Triton's compilation.
_OPTIONS = {
    "launch_cooperative_grid", "matrix_instr_nonkdim", "maxnreg", "num_ctas", "num_stages", "num_warps", "ptx_options",
    "waves_per_eu",
}  # fmt: skip
#: The allocations of host code that leave the memory as it is.
_ALLOCATIONS = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"}
#: The assumptions of Helion that a signature can't state, by their names in Helion's environment.
_UNSTATED = (
    "tensor_descriptor_layout_guards", "tensor_descriptor_alignment_guards", "specialized_strides",
    "runtime_input_specializations",
)  # fmt: skip
_MOST = 2**31 - 1


def kernel(
    kernel: Any,
    signature: Signature | str,
    *,
    config: Configs = None,
    arguments: Mapping[str, Any] | None = None,
    sizes: Mapping[str, int] | None = None,
    archs: Iterable[int | str],
) -> Kernel:
    """Makes launches from a kernel under ``@helion.kernel``, or from one that is bound for the same arguments.

    The signature has the kernel's parameters by their names, and after that the tensors that the kernel allocates and
    returns, by the names they have there. ``arguments`` are values for parameters that the signature doesn't have, such
    as constants. ``config`` is a configuration of Helion; the default is the kernel's only one. It may be a list of
    conditions with their configurations: ``[("n >= 65536", large), (None, small)]``. A call uses the first one that
    holds, and the last condition is None. ``archs`` are compute capabilities such as 90, or names such as ``"gfx942"``.

    ``sizes`` are values of the signature's sizes for which Helion binds the kernel. They decide nothing: state
    Helion's assumptions about them in the signature, such as ``where n >= 2``.
    """
    signature = as_signature(signature)
    targets = _check.listed("archs", archs, "int or str", as_arch)
    if not targets:
        raise ValueError("archs: expected at least one, got none")
    bound_for = None
    if isinstance(kernel, BoundKernel):
        bound_for, kernel = kernel, kernel.kernel
    if not isinstance(kernel, helion.Kernel):
        raise _check._wrong("kernel", "a kernel under @helion.kernel", kernel)
    given = dict(_check.mapping("arguments", arguments, "values by names"))
    host = _Host(kernel, signature, given)
    bound = host.bind(dict(_check.mapping("sizes", sizes, "int by names")))
    if bound_for is not None and bound_for is not bound:
        raise KernelError("the kernel is bound for other arguments than the signature has")
    chosen = _configs(config, bound)
    made = [[_compiled(of, host, targets) for of in host.launches(bound, each)] for _, each in chosen]
    if len(made) == 1 and len(made[0]) == 1:
        return made[0][0]
    images: dict[str, bytes] = {}
    text = ""
    for (condition, _), launches in reversed(list(zip(chosen, made))):
        block = "".join(f" {_named(of, images)};" for of in launches)
        text = f"{{{block} }}" if condition is None else f"{{ if {condition} {{{block} }} else {text} }}"
    return Kernel.host(text, images=images)


def _named(launch: Kernel, images: dict[str, bytes]) -> str:
    """A launch's text with the names of its images, which it adds."""
    _, (text, own), _ = launch._made
    names = [f"image{len(images) + number}" for number in range(len(own))]
    images.update(zip(names, own))
    return f"{text} image=[{', '.join(names)}]"


def _configs(config: Configs, bound: Any) -> list[tuple[str | None, Any]]:
    """The conditions and their configurations."""
    if config is None:
        if len(bound.configs) != 1:
            raise KernelError(f"config: expected one, since the kernel has {len(bound.configs)}")
        return [(None, bound.configs[0])]
    if isinstance(config, Mapping):
        return [(None, config)]
    listed = [(of[0], of[1]) for of in _check.listed("config", config, "pairs of a condition and a config", _pair)]
    if not listed or listed[-1][0] is not None or any(condition is None for condition, _ in listed[:-1]):
        raise ValueError("config: expected None as the last condition, and there alone")
    return listed


def _pair(what: str, value: object) -> tuple[str | None, Any]:
    if not isinstance(value, tuple) or len(value) != 2 or not isinstance(value[1], Mapping):
        raise _check._wrong(what, "a condition and a helion.Config", value)
    return _check.optional_text(f"{what}[0]", value[0]), value[1]


@dataclass
class _Launch:
    """A launch of the host code."""

    kernel: Any
    #: The extents as text.
    grid: list[str]
    #: The signature's tensors by the names of the kernel's parameters.
    tensors: dict[str, str]
    #: Triton's types of numbers, and their expressions or values.
    scalars: dict[str, tuple[str, Any]]
    constants: dict[str, Any]
    options: dict[str, Any]


class _Host:
    """The host function of a Helion kernel, run with symbols for the signature's sizes and numbers."""

    def __init__(self, kernel: Any, signature: Signature, given: dict[str, Any]) -> None:
        self.kernel, self.signature, self.given = kernel, signature, given
        self.types = {of["name"]: of["type"] for of in signature.structure["parameters"]}
        self.texts = {of.name: of.type for of in signature.parameters}
        self.names = list(kernel.signature.parameters)
        stray = [name for name in given if name not in self.names]
        if stray:
            raise KernelError(f"arguments: the kernel has no parameter `{stray[0]}` (it has {', '.join(self.names)})")
        for name, parameter in kernel.signature.parameters.items():
            if name not in given and name not in self.types and parameter.default is parameter.empty:
                raise KernelError(f"expected `{name}` in the signature or in arguments, got {signature}")
        #: The signature's names by the symbols of the run.
        self.symbols: dict[Any, str] = {}
        self.environment = ShapeEnv()
        self.mode = FakeTensorMode(shape_env=self.environment, allow_non_fake_inputs=True)
        self.values: dict[str, Any] = {}
        self.integers = "i32"

    def bind(self, sizes: dict[str, int]) -> Any:
        """The kernel bound for tensors with these sizes, or others."""
        free = self.signature.dim_vars
        if self.kernel.settings.static_shapes and free:
            raise KernelError(
                f"the kernel is compiled for constant sizes, and the signature has {', '.join(free)}: state "
                "static_shapes=False, or numbers"
            )
        known = {name: 128 * (number + 2) for number, name in enumerate(free)}
        # powers of two, and no numbers that Triton or Helion treats in a special way
        known.update({name: 64 for name, of in self.types.items() if of["kind"] == "scalar" and "int" in of["name"]})
        known.update({_check.text("sizes", name): _check.integer(f"sizes[{name!r}]", of) for name, of in sizes.items()})
        examples = self._arguments(lambda name: known[name], lambda name: 2.0)
        return self.kernel.bind(self.kernel.normalize_args(*examples))

    def launches(self, bound: Any, config: Any) -> list[_Launch]:
        """The launches of the host function with a configuration."""
        function = bound.compile_config(config)
        called: list[tuple[Any, Any, tuple[Any, ...], dict[str, Any]]] = []

        def launcher(kernel: Any, grid: Any, *args: Any, **options: Any) -> None:
            called.append((kernel, grid, args, options))

        operations = _Operations()
        try:
            with self.mode:
                inputs = self._arguments(self._symbol, self._float)
                with operations:
                    function(*inputs, _launcher=launcher)
        except KernelError:
            raise
        except Exception as error:
            cause = str(error).partition("\n")[0][:200]
            raise KernelError(
                f"Helion's host code needs a value that only a call knows: state it in the signature ({cause})"
            ) from error
        # numbers are as wide as Helion's own indices
        self.integers = "i64" if bound.env.index_dtype == torch.int64 else "i32"
        names = {of.untyped_storage()._cdata: name for name, of in zip(self.names, inputs) if _is_tensor(of)}
        if not called:
            raise KernelError("Helion's host code launches no kernel")
        made = [self._launch(names, operations.allocated, *of) for of in called]
        self._check_facts(bound, dict(zip(self.names, inputs)), made)
        return made

    def _arguments(self, size: Callable[[str], Any], number: Callable[[str], Any]) -> list[Any]:
        """Arguments for the kernel's parameters, with values for the signature's sizes and numbers."""
        values = []
        for name, parameter in self.kernel.signature.parameters.items():
            type = self.types.get(name)
            if name in self.given or type is None:
                values.append(self.given[name] if name in self.given else parameter.default)
            elif type["kind"] == "tensor":
                shape, strides = self._layout(name, size)
                values.append(torch.empty_strided(shape, strides, dtype=_dtype(name, type["dtype"])))
            elif type["kind"] == "scalar" and "int" in type["name"]:
                values.append(size(name))
            elif type["kind"] == "scalar" and "float" in type["name"]:
                values.append(number(name))
            elif type["kind"] in ("int", "bool"):
                values.append(type["value"])
            elif type["kind"] == "none":
                values.append(None)
            else:
                raise KernelError(f"`{name}`: expected a tensor, an integer or a float, got {self.texts[name]}")
        return values

    def _layout(self, name: str, size: Callable[[str], Any]) -> tuple[list[Any], list[Any]]:
        """The sizes and strides of a tensor of the signature."""
        type = self.types[name]
        if type["shape"] is None or type["strides"] == "any":
            raise KernelError(f"`{name}`: expected stated sizes and strides, got {self.texts[name]}")
        shape = [_computed(of, size) for of in type["shape"]]
        if type["strides"] is not None:
            return shape, [_computed(of, size) for of in type["strides"]]
        return shape, contiguous_strides(shape)

    def _symbol(self, name: str) -> Any:
        if name not in self.values:
            value = self.environment.create_unbacked_symint()
            if name in self.signature.dim_vars:
                torch._check(value >= 0)
            self.values[name] = value
            self.symbols[value.node.expr] = name
        return self.values[name]

    def _float(self, name: str) -> Any:
        if name not in self.values:
            self.values[name] = self.environment.create_unbacked_symfloat()
            self.symbols[self.values[name].node.expr] = name
        return self.values[name]

    def _launch(
        self, names: dict[int, str], allocated: dict[int, Any], kernel: Any, grid: Any, args: Any, options: Any
    ) -> _Launch:
        parameters = {of.name: of for of in kernel.params}
        values = dict(zip(kernel.arg_names, args))
        values.update({name: options.pop(name) for name in list(options) if name in parameters})
        options = {name: of for name, of in options.items() if of}
        stray = sorted(set(options) - _OPTIONS)
        if stray:
            raise KernelError(f"Helion's host code launches with options that are not known: {', '.join(stray)}")
        launch = _Launch(kernel, [self._text(of) for of in grid], {}, {}, {}, options)
        # a tensor without elements has no use for its strides
        tensors = [of for of in values.values() if _is_tensor(of)]
        strides = {stride.node.expr for of in tensors for stride in of.stride() if _is_symbolic(stride)}
        for name, value in values.items():
            if _is_tensor(value):
                launch.tensors[name] = self._tensor(name, value, names, allocated)
            elif _is_symbolic(value):
                if parameters[name].is_constexpr:
                    text = self._text(value)
                    raise KernelError(f"`{name}` is a constant of Helion's kernel: expected a number, got {text}")
                if isinstance(value, torch.SymFloat):
                    launch.scalars[name] = ("fp32", self._text(value))
                else:
                    stride = value.node.expr in strides
                    launch.scalars[name] = (
                        self.integers,
                        self._text(_without_max(value.node.expr) if stride else value),
                    )
            elif isinstance(value, float) and not parameters[name].is_constexpr:
                launch.scalars[name] = ("fp32", value)
            elif type(value) is int and not parameters[name].is_constexpr and value != 1:
                launch.scalars[name] = ("i32" if -_MOST - 1 <= value <= _MOST else "i64", value)
            else:
                launch.constants[name] = value
        return launch

    def _tensor(self, name: str, value: Any, names: dict[int, str], allocated: dict[int, Any]) -> str:
        """The signature's name for a tensor of a launch."""
        storage = value.untyped_storage()._cdata
        if not isinstance(value.storage_offset(), int) or value.storage_offset() != 0:
            raise KernelError(f"`{name}` doesn't begin where its tensor does, which no launch passes")
        if storage in names:
            return names[storage]
        if self.types.get(name, {}).get("kind") != "tensor":
            raise KernelError(f"Helion's host code allocates `{name}`: expected a tensor of this name in the signature")
        made = allocated[storage]
        with self.mode:
            shape, strides = self._layout(name, self._symbol)
        expected = (_dtype(name, self.types[name]["dtype"]), _plain(shape), _plain(strides))
        got = (made.dtype, _plain(made.shape), _plain(made.stride()))
        if expected != got:
            shown = f"{str(made.dtype)[len('torch.'):]} of sizes ({', '.join(map(self._text, made.shape))})"
            raise KernelError(f"`{name}`: expected {shown} as Helion's host code allocates it, got {self.texts[name]}")
        return name

    def _check_facts(self, bound: Any, inputs: dict[str, Any], launches: list[_Launch]) -> None:
        """Checks that the signature states what Helion has assumed for the tensors of the binding."""
        environment = bound.env
        for attribute in _UNSTATED:
            if getattr(environment, attribute, None):
                raise KernelError(f"Helion assumes what a signature can't state ({attribute}): choose another config")
        if environment.index_dtype == torch.int32:
            # the launch checks these
            passed = {text for of in launches for kind, text in of.scalars.values() if kind == "i32"}
            for name, value in inputs.items():
                if _is_tensor(value):
                    self._check_elements(name, passed)
        for symbol in environment.specialized_vars:
            for source in environment.shape_env.var_to_sources.get(symbol, ()):
                value = _property(source, inputs)
                if value is None or _is_symbolic(value):
                    shown = source.name if isinstance(source.name, str) else source.name()
                    raise KernelError(f"Helion has compiled for one value of {shown}: state it in the signature")
        for extractor in bound._guarded_input_facts():
            self._check_fact(extractor.extractor, inputs)

    def _check_elements(self, name: str, passed: set[Any]) -> None:
        """Checks that a tensor's elements are numbered by 32 bits."""
        bound: int | None = 1
        product = []
        for of in self.types[name]["shape"]:
            most = of if isinstance(of, int) else self._most(of, passed)
            bound = None if bound is None or most is None else bound * most
            product.append(dim_text(of))
        total = " * ".join(product)
        if bound is not None and bound <= _MOST:
            return
        stated = constraint(self.signature, f"{total} <= {_MOST}")
        if stated not in self.signature.where:
            raise KernelError(
                f"Helion numbers the elements of `{name}` with 32 bits: state `where {stated}` in the signature, or "
                "index_dtype=torch.int64"
            )

    def _most(self, of: Dim, passed: set[Any]) -> int | None:
        """The greatest value of a size that the signature or the launch allows; None if it is not known."""
        bounds = [_MOST] if isinstance(of, str) and of in passed else []
        for relation, left, right in self.signature.structure["where"]:
            if left == of and isinstance(right, int) and relation in ("<=", "==", "<"):
                bounds.append(right - (relation == "<"))
        return min(bounds, default=None)

    def _check_fact(self, fact: Any, inputs: dict[str, Any]) -> None:
        values = {symbol: _property(source, inputs) for symbol, source in fact.sources}
        plain = {symbol: of.node.expr if _is_symbolic(of) else of for symbol, of in values.items()}
        left, right = (sympy.sympify(of).xreplace(plain) for of in (fact.lhs, fact.rhs))
        if fact.block:
            holds = left.is_Integer and (helion.next_power_of_2(int(left)) == right) == fact.equal
            stated = f"a number for {self._text(left)}"
        else:
            stated = f"where {self._text(left)} {'==' if fact.equal else '!='} {self._text(right)}"
            if left.is_Integer and right.is_Integer:
                holds = (left == right) == fact.equal
            elif fact.equal:
                holds = left == right or self._states(left, "==", right)
            else:
                holds = right.is_Integer and (self._excludes(left, int(right)) or self._states(left, "!=", right))
        if not holds:
            raise KernelError(f"Helion has compiled for sizes that the signature doesn't state: state `{stated}` in it")

    def _states(self, left: Any, relation: str, right: Any) -> bool:
        return constraint(self.signature, f"{self._text(left)} {relation} {self._text(right)}") in self.signature.where

    def _excludes(self, left: Any, value: int) -> bool:
        """True if the signature states that an expression is never this value."""
        text = self._text(left)
        known = Signature(f"{self.signature.text}{', ' if self.signature.where else ' where '}{text} != {value}")
        dim = known.structure["where"][-1][1]
        divisor = factor(dim, self.signature)
        if divisor > 1 and value % divisor != 0:
            return True
        return any(
            of == dim and isinstance(bound, int) and (bound > value if relation == ">=" else bound >= value)
            for relation, of, bound in self.signature.structure["where"]
            if relation in (">=", ">")
        )

    def _text(self, of: Any) -> str:
        """A number or an expression of the run as text of the signature's names."""
        return _printed(of.node.expr if _is_symbolic(of) else sympy.sympify(of), self.symbols)


class _Operations(TorchDispatchMode):
    """Sees the operations of host code on tensors, and keeps the tensors that it allocates."""

    def __init__(self) -> None:
        super().__init__()
        self.allocated: dict[int, Any] = {}

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        before = {of.untyped_storage()._cdata for of in tree_leaves((args, kwargs)) if _is_tensor(of)}
        name = function.overloadpacket.__name__
        made = [of for of in tree_leaves(result) if _is_tensor(of)]
        fresh = [of for of in made if of.untyped_storage()._cdata not in before]
        if function._schema.is_mutable or (fresh and name not in _ALLOCATIONS):
            raise KernelError(
                f"Helion's host code computes {function} outside its kernel, which no launch does: expected "
                "allocations by torch.empty and views alone"
            )
        self.allocated.update({of.untyped_storage()._cdata: of for of in fresh})
        return result


def _compiled(launch: _Launch, host: _Host, archs: list[int | str]) -> Kernel:
    """The launch with the kernel's images."""
    import triton
    from triton.backends.compiler import GPUTarget

    signature = host.signature
    names = launch.kernel.arg_names
    types: dict[str, str] = dict.fromkeys(names, "constexpr")
    attributes: dict[Any, Any] = {}
    wide = {of.name for of in launch.kernel.params if of.annotation_type == "i64"}
    for name, tensor in launch.tensors.items():
        types[name] = f"*{_POINTERS[host.types[tensor]['dtype']]}"
        if align_of(host.texts[tensor]) % 16 == 0:
            attributes[(names.index(name),)] = [["tt.divisibility", 16]]
    bind: dict[str, Any] = dict(launch.tensors)
    for name, (kind, value) in launch.scalars.items():
        types[name], bind[name] = "i64" if name in wide else kind, value
        if kind in ("i32", "i64") and is_multiple(signature, value, 16):
            attributes[(names.index(name),)] = [["tt.divisibility", 16]]
    source = triton.compiler.ASTSource(
        launch.kernel,
        signature=types,
        constexprs={(names.index(name),): value for name, value in launch.constants.items()},
        attrs=attributes,
    )
    compiled = [triton.compile(source, target=GPUTarget(*target_of(of)), options=launch.options) for of in archs]
    return launch_of(compiled, signature, launch.grid, bind, frozenset(launch.constants))


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _is_symbolic(value: Any) -> bool:
    return isinstance(value, (torch.SymInt, torch.SymFloat))


def _dtype(name: str, dtype: str) -> Any:
    """PyTorch's dtype for one of the signature."""
    found = getattr(torch, dtype, None)
    if dtype not in _POINTERS or not isinstance(found, torch.dtype):
        raise KernelError(f"`{name}`: expected a dtype that PyTorch and Triton have, got {dtype}")
    return found


def _computed(of: Dim, size: Callable[[str], Any]) -> Any:
    """A size of the signature, with values for its names."""
    if isinstance(of, int):
        return of
    if isinstance(of, str):
        return size(of)
    operator, *operands = of
    left, right = (_computed(operand, size) for operand in operands)
    if operator == "ceil_div":
        return (left + right - 1) // right
    if operator in ("min", "max"):
        return (torch.sym_min if operator == "min" else torch.sym_max)(left, right)
    operations = {
        "+": lambda: left + right, "-": lambda: left - right, "*": lambda: left * right, "//": lambda: left // right,
        "%": lambda: left % right,
    }  # fmt: skip
    return operations[operator]()


def _without_max(of: Any) -> Any:
    """A stride without its minimum of 1, which PyTorch gives the strides of tensors without elements."""
    of = of.node.expr if _is_symbolic(of) else sympy.sympify(of)

    def is_max(part: Any) -> bool:
        return type(part).__name__ == "Max" and len(part.args) == 2 and sympy.Integer(1) in part.args

    return of.replace(is_max, lambda part: next(other for other in part.args if other != 1))


def _plain(values: Iterable[Any]) -> list[Any]:
    return [sympy.expand(_without_max(of)) for of in values]


def _property(source: Any, inputs: dict[Any, Any]) -> Any:
    """The value of an input, of a size or of a stride; None for another source."""
    base = getattr(source, "base", None)
    if base is None:
        return inputs.get(getattr(source, "local_name", None))
    tensor = inputs.get(getattr(base, "local_name", None))
    kind = getattr(getattr(source, "prop", None), "name", None)
    if tensor is None or not _is_tensor(tensor) or kind not in ("SIZE", "STRIDE"):
        return None
    return (tensor.size() if kind == "SIZE" else tensor.stride())[source.idx]


def _printed(of: Any, names: Mapping[Any, str]) -> str:
    """An expression of SymPy as text of a launch."""
    if of in names:
        return names[of]
    if of.is_Integer:
        return str(int(of)) if of >= 0 else f"(0 - {-int(of)})"
    kind = type(of).__name__
    operands = [_printed(part, names) for part in of.args]
    if kind == "Add":
        return f"({' + '.join(operands)})"
    if kind == "Mul":
        return f"({' * '.join(operands)})"
    if kind == "Pow" and of.exp.is_Integer and of.exp > 0:
        return f"({' * '.join([operands[0]] * int(of.exp))})"
    if kind in ("FloorDiv", "CleanDiv"):
        return f"({operands[0]} // {operands[1]})"
    if kind in ("Mod", "PythonMod"):
        return f"({operands[0]} % {operands[1]})"
    if kind in ("Max", "Min"):
        text, *rest = operands
        for part in rest:
            text = f"{kind.lower()}({text}, {part})"
        return text
    raise KernelError(f"expected an expression of sizes with + - * // % min and max, got {of}")
