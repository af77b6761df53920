//! Tests and an example load libraries that find the bundled runtime's C symbols in their executable: it has to export them. For Windows it
//! does so by itself.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_CFG_UNIX").is_some() {
        println!("cargo::rustc-link-arg-tests=-rdynamic");
        println!("cargo::rustc-link-arg-examples=-rdynamic");
    }
}
