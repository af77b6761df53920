//! The wheel for aarch64 Linux, in Debian's Python for that machine on an emulator.

use std::fs;

use super::{failed, folder, text};
use crate::command::{Tests, cmd, target_folder, without_stacks};
use crate::run::Failure;

/// The packages of a Python, with the libraries that it and NumPy's wheel need.
const PACKAGES: &str = "python3.11-minimal libpython3.11-minimal libpython3.11-stdlib libc6 libgcc-s1 libstdc++6 \
    libexpat1 zlib1g libffi8 libbz2-1.0 liblzma5 libssl3 libuuid1 libsqlite3-0";
const PLATFORM: [&str; 4] = ["--platform", "manylinux_2_28_aarch64", "--python-version", "3.11"];

/// Installs the wheel beside that Python, and runs `python/tests/smoke.py`, which imports every module, compiles,
/// links, loads and calls.
pub fn check() -> Result<Tests, Failure> {
    let root = target_folder().join("release-aarch64");
    let (system, site) = (root.join("system"), root.join("site"));
    // left by an earlier run
    let _ = fs::remove_dir_all(&root);
    fs::create_dir_all(&system).map_err(|e| failed(e.to_string()))?;
    let packages = PACKAGES.split_whitespace().map(|name| format!("{name}:arm64")).collect::<Vec<_>>().join(" ");
    let unpack = format!(
        "dpkg --add-architecture arm64; apt-get update -q; apt-get download -q {packages}; \
         for package in *.deb; do dpkg -x $package system; done"
    );
    cmd("bash", &["-ec", &unpack]).within(&text(&root)).run()?;
    let install = ["-m", "pip", "install", "--quiet", "--only-binary", ":all:", "--target", &text(&site)];
    let install = [&install[..], &PLATFORM, &["--implementation", "cp", "tvm-ffi-codegen"]].concat();
    cmd("python3", &install).env("PIP_FIND_LINKS", &text(&folder())).run()?;
    let python = text(&system.join("usr/bin/python3.11"));
    let smoke = cmd("qemu-aarch64", &["-L", &text(&system), &python, "python/tests/smoke.py"]);
    without_stacks(smoke).env("PYTHONPATH", &text(&site)).env("PYTHONDONTWRITEBYTECODE", "1").run()?;
    Ok(Tests { passed: 1, ..Tests::default() })
}
