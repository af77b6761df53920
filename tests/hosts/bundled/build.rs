//! An executable that holds the runtime has to export its C API to the libraries that it loads. For Windows it does so by itself.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_CFG_UNIX").is_some() {
        println!("cargo::rustc-link-arg-bins=-rdynamic");
    }
}
