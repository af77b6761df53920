//! The linker makes sure that the library has all functions of LLVM that it calls, where LLVM is found while it runs.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let set = |name: &str| std::env::var_os(name).is_some();
    // By default a shared library may refer to what it doesn't have, and would not load.
    if set("CARGO_FEATURE_LLVM22_1_LOADED") && std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,defs");
    }
}
