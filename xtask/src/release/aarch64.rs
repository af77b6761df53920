//! The wheel for aarch64 Linux, in Debian's Python for that machine on an emulator.

use std::fs;

use super::{failed, folder, text, wheels};
use crate::command::{Tests, cmd, target_folder};
use crate::run::Failure;

/// The packages of a Python, with the libraries that it and NumPy's wheel need.
const PACKAGES: &str = "python3.11-minimal libpython3.11-minimal libpython3.11-stdlib libc6 libgcc-s1 libstdc++6 \
    libexpat1 zlib1g libffi8 libbz2-1.0 liblzma5 libssl3 libuuid1 libsqlite3-0";
/// A wheel of NumPy states the oldest C library that it needs.
const PLATFORMS: &str = "--platform manylinux_2_28_aarch64 --platform manylinux_2_27_aarch64 \
    --platform manylinux2014_aarch64 --python-version 3.11 --implementation cp";

/// Installs the wheel beside that Python, and runs the package's tests. Their C and C++ compilers are for aarch64 too.
pub fn check() -> Result<Tests, Failure> {
    let root = target_folder().join("release-aarch64");
    let (system, site, programs) = (root.join("system"), root.join("site"), root.join("bin"));
    // left by an earlier run
    let _ = fs::remove_dir_all(&root);
    fs::create_dir_all(&system).map_err(|e| failed(e.to_string()))?;
    let packages = PACKAGES.split_whitespace().map(|name| format!("{name}:arm64")).collect::<Vec<_>>().join(" ");
    let python = text(&programs.join("python3"));
    // The kernel can't start programs for aarch64, so Python starts itself by a script.
    let set_up = format!(
        "dpkg --add-architecture arm64; apt-get update -q; apt-get download -q {packages}
         for package in *.deb; do dpkg -x $package system; done
         mkdir bin; ln -s $(command -v aarch64-linux-gnu-gcc) bin/cc; ln -s $(command -v aarch64-linux-gnu-g++) bin/c++
         echo '#!/bin/sh' > {python}
         echo 'exec qemu-aarch64 -0 {python} -L {system} {system}/usr/bin/python3.11 \"$@\"' >> {python}
         chmod +x {python}",
        system = text(&system),
    );
    cmd("bash", &["-ec", &set_up]).within(&text(&root)).run()?;
    let install = ["-m", "pip", "install", "--quiet", "--only-binary", ":all:", "--target", &text(&site)];
    let platforms: Vec<&str> = PLATFORMS.split_whitespace().collect();
    cmd("python3", &[&install[..], &platforms, &wheels::PACKAGES].concat())
        .env("PIP_FIND_LINKS", &text(&folder()))
        .run()?;
    let path = format!("{}:{}", text(&programs), std::env::var("PATH").unwrap_or_default());
    wheels::tests(&python, |command| {
        command.env("PYTHONPATH", &text(&site)).env("PYTHONHOME", &text(&system.join("usr"))).env("PATH", &path)
    })
}
