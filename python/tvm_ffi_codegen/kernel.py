"""The kernels that functions call."""

from __future__ import annotations

import builtins
from _ctypes import CFuncPtr
from collections.abc import Iterable, Mapping
from typing import Any, Union

from . import _check
from ._check import Extents
from ._launch import launch_text
from ._native import function
from ._text import quoted
from .prototype import Call, Prototype, prototype_of, symbol_kernel
from .signature import Signature, as_signature

_check_only = function("kernel_check_only")
_object = function("kernel_object")
_llvm_ir = function("kernel_llvm_ir")
_bitcode = function("kernel_bitcode")
_address = function("kernel_address")
_launch = function("kernel_launch")
_launch_on_cpu = function("kernel_launch_on_cpu")
_prepare = function("kernel_prepare")
_host = function("kernel_host")
_with_symbols = function("kernel_with_symbols")
_header = function("kernel_header")

#: An address of this process: a number, or a ``ctypes`` function.
Address = Union[int, CFuncPtr]


class Kernel:
    """The kernel of a function, made by one of the constructors below.

    A native kernel is a C function. Its ``convention`` says how it takes its arguments: ``flat`` (the default),
    ``dltensor``, ``memref`` or ``packed``. It ``returns`` ``"nothing"``, ``"value"`` or ``"status"`` (an ``int32_t``, 0
    for success); the default follows from the signature. ``args`` replace the C parameters of ``flat``, and are written
    as in a launch's text: ``["x", "int32(n)", "x.device_id"]``. An integer that doesn't fit is a ``ValueError``.
    :meth:`prototype` shows the resulting C prototype. When you pass a kernel you guarantee that it has this prototype,
    and accesses only its arguments' memory.

    If you pass a kernel's code, ``symbols`` maps names in it to addresses, for example of functions of its compiler's
    runtime. An address is a number, or a ``ctypes`` function. Such a function lives as long as a function that calls
    the kernel.

    A kernel is pickled as it was specified. Pickling one with an address of this process is a ``TypeError``.
    """

    __slots__ = ("_made", "_native")

    def __init__(self, _native: object, _made: tuple[str, tuple[Any, ...], dict[str, Any]]) -> None:
        self._native = _native
        #: The constructor's name and arguments.
        self._made = _made

    @staticmethod
    def check_only() -> Kernel:
        """No kernel: the function only checks its arguments."""
        return Kernel(_check_only(), ("check_only", (), {}))

    @staticmethod
    def symbol(
        name: str, *, convention: str | None = None, returns: str | None = None, args: Iterable[str] | None = None
    ) -> Kernel:
        """The C function with the symbol ``name``, defined by an object, or in this process by any library."""
        name, call = _check.text("name", name), Call(convention, returns, args)
        return Kernel(symbol_kernel(name, *call.native), ("symbol", (name,), call.stated))

    @staticmethod
    def object(
        objects: bytes | Iterable[bytes],
        symbol: str,
        *,
        convention: str | None = None,
        returns: str | None = None,
        args: Iterable[str] | None = None,
        symbols: Mapping[str, Address] | None = None,
    ) -> Kernel:
        """The C function with this symbol, for this process. Pass the objects and archives that define it."""
        objects, symbol = _check.several_data("objects", objects), _check.text("symbol", symbol)
        call = Call(convention, returns, args)
        kernel = Kernel(_object(objects, symbol, *call.native), ("object", (objects, symbol), call.stated))
        return kernel._with_symbols(symbols)

    @staticmethod
    def llvm_ir(
        text: str,
        symbol: str,
        *,
        convention: str | None = None,
        returns: str | None = None,
        args: Iterable[str] | None = None,
        symbols: Mapping[str, Address] | None = None,
    ) -> Kernel:
        """The C function with this symbol in textual LLVM IR. This machine's LLVM compiles it: see
        :func:`llvm_version`.
        """
        text, symbol = _check.text("text", text), _check.text("symbol", symbol)
        call = Call(convention, returns, args)
        kernel = Kernel(_llvm_ir(text, symbol, *call.native), ("llvm_ir", (text, symbol), call.stated))
        return kernel._with_symbols(symbols)

    @staticmethod
    def bitcode(
        bitcode: bytes,
        symbol: str,
        *,
        convention: str | None = None,
        returns: str | None = None,
        args: Iterable[str] | None = None,
        symbols: Mapping[str, Address] | None = None,
    ) -> Kernel:
        """The C function with this symbol in bitcode of LLVM 22 or older. This machine's LLVM compiles it."""
        bitcode, symbol = _check.data("bitcode", bitcode), _check.text("symbol", symbol)
        call = Call(convention, returns, args)
        kernel = Kernel(_bitcode(bitcode, symbol, *call.native), ("bitcode", (bitcode, symbol), call.stated))
        return kernel._with_symbols(symbols)

    @staticmethod
    def address(
        address: Address,
        *,
        keep_alive: builtins.object = None,
        convention: str | None = None,
        returns: str | None = None,
        args: Iterable[str] | None = None,
    ) -> Kernel:
        """The C function at an address of this process: a number, or a ``ctypes`` function.

        ``keep_alive`` is any object that owns the code. It lives as long as a function that calls the kernel.
        """
        signed, call = _check.address("address", address), Call(convention, returns, args)
        native = _address(signed, _Owner((address, keep_alive)), *call.native)
        return Kernel(native, ("address", (address,), call.stated))

    @staticmethod
    def launch(launch: str, images: bytes | Iterable[bytes]) -> Kernel:
        """A device kernel, specified by the text of its launch, ``launch ENTRY grid=...``
        (``docs/reference/launches.md``), with its images: cubins, fatbins, PTX, or AMD code objects.
        """
        launch, images = _check.text("launch", launch), _check.several_data("images", images)
        return Kernel(_launch(launch, images), ("launch", (launch, images), {}))

    @staticmethod
    def cuda(
        images: bytes | Iterable[bytes],
        entry: str,
        *,
        grid: Extents = 1,
        block: Extents = 1,
        args: Iterable[str] | None = None,
        cluster: Extents | None = None,
        preferred_cluster: Extents | None = None,
        shared_memory: int | str = 0,
        stream: str | None = None,
        priority: int | None = None,
        cluster_scheduling: str | None = None,
        memory_sync_domain: str | None = None,
        shared_memory_carveout: int | None = None,
        completion_event: str | None = None,
        globals: Mapping[str, str] | None = None,
        on_load: str | None = None,
        on_unload: str | None = None,
        cooperative: bool = False,
        programmatic_dependent_launch: bool = False,
        non_portable_cluster: bool = False,
    ) -> Kernel:
        """A kernel of a CUDA device, specified by the parts of its launch.

        ``entry`` is the kernel's name in the ``images``: cubins, fatbins or PTX. ``grid`` and ``block`` have up to
        three extents, x first, ``cluster`` and ``preferred_cluster`` too, in blocks. An extent is a number, or an
        expression as a str. Pass several as a list. ``shared_memory`` is the dynamic shared memory of a block, in
        bytes: a number or an expression. ``priority`` is that of a stream. ``cooperative``,
        ``programmatic_dependent_launch`` and ``non_portable_cluster`` (for more than 8 blocks) are attributes of the
        driver. ``docs/reference/launches.md`` explains each of them.

        ``args`` are the kernel's parameters, written as in a launch's text: ``["x", "y", "int32(n)"]``. The default is
        those of convention ``flat``. ``stream`` names a parameter of type ``Stream``, ``EnvStream`` or ``handle``; the
        default is the environment's stream. ``completion_event`` names a parameter that is an event.
        ``globals`` are global variables of the image, by names, each with the value that the launch writes, as in
        ``args``. ``on_load`` and ``on_unload`` are global functions that get an image and a device.
        ``cluster_scheduling`` is ``"spread"`` or ``"load_balancing"``, ``memory_sync_domain`` ``"default"`` or
        ``"remote"``, and ``shared_memory_carveout`` a percentage.
        """
        items = {
            "grid": grid,
            "block": block,
            "cluster": cluster,
            "preferred_cluster": preferred_cluster,
            "shared_memory": None if shared_memory == 0 else shared_memory,
            "args": args,
            "stream": stream,
            "priority": priority,
            "cluster_scheduling": cluster_scheduling,
            "memory_sync_domain": memory_sync_domain,
            "shared_memory_carveout": shared_memory_carveout,
            "completion_event": completion_event,
            "globals": globals,
            "on_load": on_load,
            "on_unload": on_unload,
            "cooperative": cooperative,
            "programmatic_dependent_launch": programmatic_dependent_launch,
            "non_portable_cluster": non_portable_cluster,
        }
        return Kernel.launch(launch_text(quoted(_check.text("entry", entry)), items), images)

    @staticmethod
    def launch_on_cpu(launch: str, function: Kernel) -> Kernel:
        """A launch on the CPU, specified by its text: the native kernel is called for each block of the grid."""
        launch, function = _check.text("launch", launch), as_kernel("function", function)
        return Kernel(_launch_on_cpu(launch, function._native), ("launch_on_cpu", (launch, function), {}))

    @staticmethod
    def prepare(kernels: Iterable[Kernel]) -> Kernel:
        """A separate function ``NAME(device: device)`` that does the one-time work of the kernels' first launches on a
        device.
        """
        kernels = _check.listed("kernels", kernels, "Kernels", as_kernel)
        return Kernel(_prepare([kernel._native for kernel in kernels]), ("prepare", (kernels,), {}))

    @staticmethod
    def host(text: str, *, images: Mapping[str, bytes] | None = None, objects: bytes | Iterable[bytes] = ()) -> Kernel:
        """A body as host text, the block of a function (``docs/reference/host-text.md``): ``"{ return n + 1; }"``.

        ``images`` are those that its launches may use, by names. ``objects`` are objects and archives with functions
        that it calls by their symbols, for this process; a library gets them when it is linked.

        Mistakes of the text's grammar are raised here, and mistakes of names, types and ownership when a function is
        compiled: all together, as one :class:`KernelError`. Its ``errors`` have line, column and span.
        """
        text, objects = _check.text("text", text), _check.several_data("objects", objects)
        given = _check.images("images", images)
        options: dict[str, Any] = {**({"images": given} if given else {}), **({"objects": objects} if objects else {})}
        return Kernel(_host(text, list(given), list(given.values()), objects), ("host", (text,), options))

    def prototype(self, signature: Signature | str) -> Prototype:
        """The prototype that the kernel's C function must have for a signature."""
        return prototype_of(as_signature(signature)._native, self._native)

    def header(self, signature: Signature | str) -> str:
        """The prototype that the kernel's C function must have, as a C header."""
        return str(_header(as_signature(signature)._native, self._native))

    def _with_symbols(self, symbols: Mapping[str, Address] | None) -> Kernel:
        """The same kernel, with addresses for symbols that its code refers to."""
        given = _check.mapping("symbols", symbols, "addresses by names")
        if not given:
            return self
        names = [_check.text("symbols", name) for name in given]
        addresses = [_check.address(f"symbols[{name!r}]", of) for name, of in given.items()]
        constructor, values, options = self._made
        native = _with_symbols(self._native, names, addresses, _Owner(list(given.values())))
        return Kernel(native, (constructor, values, {**options, "symbols": dict(given)}))

    def __reduce__(self) -> tuple[Any, ...]:
        constructor, _, options = self._made
        if constructor == "address" or "symbols" in options:
            raise TypeError(
                f"{self!r} has an address of this process, which means nothing in another: it can't be pickled"
            )
        return _remade, self._made

    def __copy__(self) -> Kernel:
        return self

    def __deepcopy__(self, memo: builtins.object) -> Kernel:
        return self

    def __repr__(self) -> str:
        constructor, values, options = self._made
        shown = [*map(_shown, values), *(f"{name}={_shown(value)}" for name, value in options.items())]
        return f"Kernel.{constructor}({', '.join(shown)})"


def _remade(constructor: str, values: tuple[Any, ...], options: dict[str, Any]) -> Kernel:
    """Restores a kernel from its pickled form."""
    kernel: Kernel = getattr(Kernel, constructor)(*values, **options)
    return kernel


def _shown(value: object) -> str:
    """A value for ``repr``. Code is shown as its size."""
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name!r}: {_shown(of)}' for name, of in value.items())}}}"
    shown = repr(value)
    return shown if len(shown) <= 200 else f"{shown[:180]}...<{len(shown)} characters>"


def as_kernel(what: str, kernel: object) -> Kernel:
    """Accepts a kernel, but no symbol's name."""
    return _check.instance(what, kernel, Kernel, "a Kernel, such as Kernel.symbol(name)")


class _Owner:
    """Wraps an object that the native library keeps alive without converting it."""

    __slots__ = ("owned",)

    def __init__(self, owned: object) -> None:
        self.owned = owned
