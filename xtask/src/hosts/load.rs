//! Loads the library in hosts in Python, C, C++ and Rust.

use std::path::Path;

use super::*;
use crate::tools::{ML_DTYPES, NUMPY, TYPING_EXTENSIONS};

/// Runs each host with the library of each backend.
pub fn load() -> Result<Tests> {
    let folder = folder("load")?;
    let programs = Programs::build(&folder)?;
    let kernels = folder.join("kernels.o");
    compile("cc", &[], &source("kernels.c"), &kernels)?;
    let mut tests = Tests::default();
    for backend in BACKENDS {
        let library = text(&emit_linked(&folder.join(backend), "library.so", backend, &[], &kernels)?);
        for (host, command) in programs.hosts(&library) {
            expect(&mut tests, &format!("{backend}, {host}"), command, EXPECTED)?;
        }
        let checks = ["--quiet", "--leak-check=full", "--errors-for-leak-kinds=definite", "--error-exitcode=9"];
        let checked = cmd("valgrind", &[&checks[..], &[&*programs.c_ours, &library]].concat());
        expect(&mut tests, &format!("{backend}, C on ours, under valgrind"), checked, EXPECTED)?;
    }
    super::on_both::on_both(&mut tests, &programs.rust_values, &programs.python_path)?;
    super::graph::graph(&mut tests, &programs.kind, &programs.python_path)?;
    super::dsl::compilers(&mut tests, &programs.kind, &programs.python_path)?;
    Ok(tests)
}

/// The hosts, built.
struct Programs {
    /// In C, on upstream's runtime and on ours.
    c_upstream: String,
    c_ours: String,
    cpp: String,
    /// The library with the kind of module, to load beforehand in hosts other than C++.
    kind: String,
    rust_upstream: String,
    /// A program on upstream's crate that isn't a host of the library.
    rust_values: String,
    rust_bundled: String,
    /// The directories where Python finds packages.
    python_path: String,
    library_path: String,
}

impl Programs {
    fn build(folder: &Path) -> Result<Self> {
        let at = |name: &str| folder.join(name);
        let upstream_library = library_in(&upstream().join("lib"), "tvm_ffi");
        let upstream_library = upstream_library.each_ref().map(String::as_str);

        let c = c_host("cc", folder)?;
        link_program("cc", &c, &upstream_library, &at("c_upstream"))?;
        let ours = library_in(&runtime_library(None)?, "tvm_ffi_runtime");
        link_program("cc", &c, &ours.each_ref().map(String::as_str), &at("c_ours"))?;

        let kind = kind_library(folder)?;
        compile("g++", &["-std=c++17"], &source("cpp/main.cc"), &at("cpp_main.o"))?;
        let cpp = ["cpp_main.o", "cpp_prices.o", "allocator.o"].map(|name| text(&at(name)));
        link_program("g++", &cpp, &upstream_library, &at("cpp"))?;

        cargo(&["build", "--package", "host-bundled"]).run()?;
        let python_path = [&UPSTREAM, &NUMPY, &ML_DTYPES, &TYPING_EXTENSIONS].map(python_package).map(|p| text(&p));
        let python_path = python_path.join(":");
        // upstream's crate runs a program of upstream's Python package to find libtvm_ffi
        let config = text(&python_package(&UPSTREAM).join("bin"));
        let path = format!("{config}:{}", std::env::var("PATH").unwrap_or_default());
        let target = text(&target_folder().join("rust-upstream"));
        cargo(&["build", "--manifest-path", &source("rust_upstream/Cargo.toml"), "--target-dir", &target, "--locked"])
            .env("PATH", &path)
            .env("PYTHONPATH", &python_path)
            .run()?;

        Ok(Programs {
            c_upstream: text(&at("c_upstream")),
            c_ours: text(&at("c_ours")),
            cpp: text(&at("cpp")),
            kind,
            rust_upstream: format!("{target}/debug/host-rust-upstream"),
            rust_values: format!("{target}/debug/values"),
            rust_bundled: text(&target_folder().join("debug/host-bundled")),
            python_path,
            library_path: text(&upstream().join("lib")),
        })
    }

    fn hosts(&self, library: &str) -> [(&'static str, Cmd); 6] {
        let python = cmd("python3", &[&*source("python/main.py"), library, &self.kind]);
        let rust_upstream = cmd(&self.rust_upstream, &[library, &self.kind]);
        [
            (UPSTREAM.name, python.env("PYTHONPATH", &self.python_path)),
            ("C on upstream's runtime", cmd(&self.c_upstream, &[library])),
            ("C on ours", cmd(&self.c_ours, &[library])),
            ("C++", cmd(&self.cpp, &[library])),
            ("upstream's Rust crate", rust_upstream.env("LD_LIBRARY_PATH", &self.library_path)),
            ("the bundled runtime", cmd(&self.rust_bundled, &[library])),
        ]
    }
}
