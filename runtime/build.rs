//! The tests load libraries that use this crate's symbols, so their executable has to export them. For Windows it does
//! so by itself.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_CFG_UNIX").is_some() {
        println!("cargo::rustc-link-arg-tests=-rdynamic");
    }
}
