//! Sets the library's SONAME: the name under which the loader searches for it when a linked program starts.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    match std::env::var("CARGO_CFG_TARGET_OS").as_deref() {
        Ok("macos") => println!("cargo::rustc-link-arg-cdylib=-Wl,-install_name,@rpath/libtvm_ffi.dylib"),
        Ok("windows") => {}
        _ => println!("cargo::rustc-link-arg-cdylib=-Wl,-soname,libtvm_ffi.so"),
    }
}
