//! Makes the linker check that the library defines every LLVM function it calls, in builds that locate LLVM at run
//! time.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let set = |name: &str| std::env::var_os(name).is_some();
    // By default a shared library may have undefined symbols; it would then fail to load.
    if set("CARGO_FEATURE_LLVM22_1_LOADED") && std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,defs");
    }
}
