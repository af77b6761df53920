//! The Python package: builds the wheel, unpacks it, and tests it as users install it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::command::{Cmd, Tests, all_at_once, cmd, root, target_folder, without_stacks};
use crate::run::Failure;
use crate::tools::{
    CFFI, CUDA_13, CUTE, CUTILE, HELION, JAX, LLVMLITE, MATURIN, MYPY, NUMBA, NUMBA_CUDA, NUMPY, NVRTC, PYRIGHT,
    PYTEST, TILELANG, TORCH, TRITON, TYPING_EXTENSIONS, Tool, UPSTREAM, UPSTREAM_OF_TILELANG, WARP, npm_folder,
    python_package,
};

/// The packages that all tests import, in addition to ours.
const PACKAGES: [&Tool; 4] = [&UPSTREAM, &TYPING_EXTENSIONS, &NUMPY, &PYTEST];

/// The tests of an adapter.
struct Adapter {
    /// The name of the test's file.
    test: &'static str,
    /// The package `apache-tvm-ffi`.
    upstream: &'static Tool,
    /// The compiler and what it needs.
    packages: &'static [&'static Tool],
}

/// Neighbours run at the same time.
const ADAPTERS: [Adapter; 8] = [
    Adapter {
        test: "tilelang",
        upstream: &UPSTREAM_OF_TILELANG,
        // another package named `nvidia` has stand-ins for CUDA's libraries
        packages: &[&CUDA_13, &TILELANG, &TORCH],
    },
    Adapter { test: "numba", upstream: &UPSTREAM, packages: &[&NUMBA_CUDA, &NUMBA, &CUTILE, &NVRTC] },
    Adapter { test: "warp", upstream: &UPSTREAM, packages: &[&WARP] },
    Adapter { test: "helion", upstream: &UPSTREAM, packages: &[&TORCH, &TRITON, &HELION] },
    Adapter { test: "cutile", upstream: &UPSTREAM, packages: &[&CUTILE] },
    Adapter { test: "cute", upstream: &UPSTREAM, packages: &[&CUTE] },
    Adapter { test: "triton_versions", upstream: &UPSTREAM, packages: &[&TRITON] },
    Adapter { test: "c", upstream: &UPSTREAM, packages: &[] },
];

/// The directory of CuTe DSL's packages in that of [`CUTE`].
pub const CUTE_PACKAGES: &str = "nvidia_cutlass_dsl/dsl_packages";

/// The tests of functions in frameworks. Each has its own process.
const FRAMEWORKS: [&str; 2] = ["test_torch.py", "test_jax.py"];

/// Runs the package's tests without frameworks: `import tvm_ffi` imports PyTorch if it is installed.
pub fn python() -> Result<Tests, Failure> {
    crate::llvm_functions::check()?;
    let ignored = [FRAMEWORKS[0], FRAMEWORKS[1], "compilers"].map(|file| format!("--ignore=python/tests/{file}"));
    let tests =
        pytest(&site()?, &[&LLVMLITE, &TRITON, &NVRTC], "python/tests").args(&ignored.each_ref().map(String::as_str));
    Ok(tests.run()?.tests)
}

/// The annotations of the package, and those of a program that uses it.
pub fn types() -> Result<Tests, Failure> {
    let packages = [&MYPY, &UPSTREAM, &NUMPY, &TYPING_EXTENSIONS]
        .map(|tool| python_package(tool).to_string_lossy().into_owned())
        .join(":");
    let cache = target_folder().join("mypy");
    let mypy = ["-m", "mypy", "--cache-dir", &cache.to_string_lossy(), "tvm_ffi_codegen", "tests/typed.py"];
    cmd("python3", &mypy).within("python").env("PYTHONPATH", &packages).run()?;
    let pyright = npm_folder(&PYRIGHT).join("node_modules/pyright/index.js");
    cmd("node", &[&pyright.to_string_lossy(), "--project", "python"]).env("PYTHONPATH", &packages).run()?;
    Ok(Tests { passed: 2, ..Tests::default() })
}

/// Runs the tests of functions in frameworks.
pub fn frameworks() -> Result<Tests, Failure> {
    stand_ins()?;
    let site = site()?;
    let [with_torch, with_jax] = FRAMEWORKS.map(|file| format!("python/tests/{file}"));
    let cache = text(&root().join("target/python/inductor"));
    all_at_once([
        pytest(&site, &[&TORCH], &with_torch).env("TORCHINDUCTOR_CACHE_DIR", &cache),
        pytest(&site, &[&JAX], &with_jax).env("JAX_PLATFORMS", "cpu"),
    ])
}

/// Runs the tests of adapters with the compilers themselves, two at a time.
pub fn compilers() -> Result<Tests, Failure> {
    stand_ins()?;
    let site = site()?;
    let mut tests = Tests::default();
    for pair in ADAPTERS.chunks(2) {
        let runs = pair.iter().map(|Adapter { test, upstream, packages }| {
            let mut path = vec![text(&site), text(&python_package(upstream))];
            let common: [&Tool; 3] = [&TYPING_EXTENSIONS, &NUMPY, &PYTEST];
            path.extend(common.iter().chain(*packages).map(|tool| text(&python_package(tool))));
            if packages.iter().any(|tool| tool.name == CUTE.name) {
                path.push(text(&python_package(&CUTE).join(CUTE_PACKAGES)));
            }
            pytest_in(&path, &format!("python/tests/compilers/test_{test}.py"))
        });
        tests.add(all_at_once(runs)?);
    }
    Ok(tests)
}

/// The tests of HIP C++.
pub fn hip() -> Result<Cmd, Failure> {
    Ok(pytest(&site()?, &[], "python/tests/compilers/test_hip.py"))
}

/// PyTorch's package without CUDA's libraries, which it needs for nothing here.
fn stand_ins() -> Result<(), Failure> {
    if cfg!(target_os = "linux") {
        cmd("python3", &["python/tests/stand_ins.py", &text(&python_package(&TORCH))]).run()?;
    }
    Ok(())
}

/// Runs the tests on real devices, with the machine's own PyTorch and the packages that it needs.
pub fn devices() -> Result<Tests, Failure> {
    if cmd("python3", &["-c", "import torch"]).run().is_err() {
        println!("left out: this machine's Python has no PyTorch");
        return Ok(Tests::default());
    }
    let packages = [&UPSTREAM, &PYTEST, &NVRTC].map(|tool| text(&python_package(tool)));
    let path = [&[text(&site()?)], &packages[..]].concat().join(":");
    let python = |words: &[&str]| cmd("python3", words).env("PYTHONPATH", &path).env("PYTHONDONTWRITEBYTECODE", "1");
    let mut tests =
        without_stacks(python(&["-m", "pytest", "-q", "-p", "no:cacheprovider", "python/devices"])).run()?.tests;
    tests.add(python(&["python/devices/cost.py"]).run()?.tests);
    Ok(tests)
}

/// The directory of the package: the wheel of a debug build, unpacked once per run.
pub fn site() -> Result<PathBuf, Failure> {
    static SITE: OnceLock<PathBuf> = OnceLock::new();
    if let Some(site) = SITE.get() {
        return Ok(site.clone());
    }
    let (site, wheel) = (root().join("target/python/site"), wheel()?);
    let install = ["-m", "pip", "install", "--quiet", "--no-deps", "--target", &text(&site), &text(&wheel)];
    cmd("python3", &install).run()?;
    Ok(SITE.get_or_init(|| site).clone())
}

/// Builds the wheel, in debug mode.
fn wheel() -> Result<PathBuf, Failure> {
    let folder = root().join("target/python");
    let wheels = folder.join("wheels");
    // remove a wheel of another version, and modules that no longer exist
    let _ = fs::remove_dir_all(&folder);
    maturin(&["build", "--profile", "dev", "--out", &text(&wheels)]).run()?;
    let wheel = fs::read_dir(&wheels).ok().and_then(|mut wheels| wheels.next()?.ok());
    Ok(wheel.ok_or_else(|| failure("maturin has made no wheel"))?.path())
}

/// A command of maturin for the package, as on a machine without LLVM.
pub fn maturin(words: &[&str]) -> Cmd {
    cmd(&text(&python_package(&MATURIN).join("bin/maturin")), words)
        .within("python")
        .runs_cargo()
        .env("LLVM_SYS_221_PREFIX", "/nonexistent")
        .env("PYTHONPATH", &text(&python_package(&CFFI)))
}

/// The tests of a file or directory, with the package in `site` and the packages in `more`.
fn pytest(site: &Path, more: &[&Tool], tests: &str) -> Cmd {
    let packages = PACKAGES.iter().chain(more).map(|tool| text(&python_package(tool)));
    pytest_in(&std::iter::once(text(site)).chain(packages).collect::<Vec<_>>(), tests)
}

/// The tests of a file or directory, with these directories of packages.
fn pytest_in(path: &[String], tests: &str) -> Cmd {
    without_stacks(cmd("python3", &["-m", "pytest", "-q", "-p", "no:cacheprovider", tests]))
        .env("PYTHONPATH", &path.join(":"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        // otherwise it is in the user's home
        .env("TRITON_CACHE_DIR", &text(&root().join("target/python/triton")))
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn failure(what: &str) -> Failure {
    Failure { what: what.to_owned(), tests: Tests::default() }
}
