//! An executable that contains the runtime has to export its C API to the libraries that it loads. On Windows the
//! exports need no linker option.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_CFG_UNIX").is_some() {
        println!("cargo::rustc-link-arg-bins=-rdynamic");
    }
}
