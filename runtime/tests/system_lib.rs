//! The system library: registered symbols, with and without prefix. Each test uses its own names, because all share one
//! table.

use std::ffi::{CString, c_void};

use tvm_ffi_runtime::abi::*;
use tvm_ffi_runtime::capi::{
    TVMFFIEnvModLookupFromImports, TVMFFIEnvModRegisterSystemLibSymbol, TVMFFIStringFromByteArray,
};
use tvm_ffi_runtime::module::register_module_loader;
use tvm_ffi_runtime::registry::get_global;
use tvm_ffi_runtime::unstable::library_bin::Node;
use tvm_ffi_runtime::{AsObject, Error, Function, Module};

use crate::library_bin::write;
use crate::support::*;

fn register(name: &str, symbol: *const c_void) {
    #[cfg(all(target_os = "linux", not(miri)))]
    crate::live::expect_system_libraries();
    let name = CString::new(name).unwrap();
    // SAFETY: tests register symbols that match their names.
    assert_eq!(unsafe { TVMFFIEnvModRegisterSystemLibSymbol(name.as_ptr(), symbol.cast_mut()) }, 0);
}

unsafe extern "C" fn gives<const N: i64>(
    _handle: *mut c_void,
    _args: *const TVMFFIAny,
    _num_args: i32,
    result: *mut TVMFFIAny,
) -> i32 {
    // SAFETY: the caller passes a writable result.
    unsafe { result.write(TVMFFIAny::from_bits(TypeIndex::INT, N as u64)) };
    0
}

unsafe extern "C" fn text(_: *mut c_void, _: *const TVMFFIAny, _: i32, result: *mut TVMFFIAny) -> i32 {
    // SAFETY: the text is static, and the caller passes a writable result.
    unsafe { TVMFFIStringFromByteArray(&bytes("a longer text"), result) }
}

fn value(function: Option<Function>) -> Option<i64> {
    function.map(|function| function.call(()).unwrap().cast().unwrap())
}

#[test]
fn symbols_are_found_with_and_without_prefix() {
    register("__tvm_ffi_syslib_a_f", gives::<1> as *const c_void);
    register("__tvm_ffi_syslib_g", gives::<2> as *const c_void);
    register("__tvm_ffi_syslib_a_syslib_g", gives::<3> as *const c_void);
    register("__tvm_ffi__doc_syslib_a_f", text as *const c_void);
    register("syslib_a___tvm_ffi__metadata_f", text as *const c_void);
    let module = Module::system_lib("syslib_a_").unwrap();
    assert_eq!(module.kind(), "library");
    assert_eq!(value(module.get_function("f").unwrap()), Some(1));
    // The one with the prefix is first.
    assert_eq!(value(module.get_function("syslib_g").unwrap()), Some(3));
    // The name may already have the prefix.
    assert_eq!(value(module.get_function("syslib_a_f").unwrap()), Some(1));
    assert!(module.get_function("syslib_none").unwrap().is_none());
    assert_eq!(module.function_doc("f", false).unwrap().unwrap(), "a longer text");
    assert_eq!(module.function_metadata("f", false).unwrap().unwrap(), "a longer text");
    // A later symbol replaces an earlier one, and is found at once.
    register("__tvm_ffi_syslib_a_f", gives::<4> as *const c_void);
    assert_eq!(value(module.get_function("f").unwrap()), Some(4));

    // One module for each prefix.
    let global = get_global("ffi.SystemLib").unwrap();
    let again: Module = global.call(("syslib_a_",)).unwrap().cast().unwrap();
    assert!(again.as_object().ptr_eq(module.as_object()));
    let plain: Module = global.call(()).unwrap().cast().unwrap();
    assert_eq!(value(plain.get_function("syslib_g").unwrap()), Some(2));
    assert!(!plain.as_object().ptr_eq(module.as_object()));
    assert!(plain.as_object().ptr_eq(Module::system_lib("").unwrap().as_object()));
}

#[test]
fn a_system_library_has_context_and_modules() {
    let variable: &'static mut *mut c_void = Box::leak(Box::new(std::ptr::null_mut()));
    let address: *mut *mut c_void = variable;
    register("syslib_c___tvm_ffi__library_ctx", address.cast());
    register_module_loader("syslib_test", |bytes| {
        let function = Function::from_packed(move |_| Ok(bytes.clone().into()));
        Ok(Module::new("syslib_test", [("imported".to_owned(), function)]))
    })
    .unwrap();
    let nodes = [Node::Library, Node::Module { kind: "syslib_test", payload: b"payload of the module" }];
    let blob = leak(write(&nodes, &[vec![1], vec![]]).unwrap().into_boxed_slice());
    register("syslib_c___tvm_ffi__library_bin", blob.as_ptr().cast());
    let module = Module::system_lib("syslib_c_").unwrap();
    assert_eq!(module.imports()[0].kind(), "syslib_test");
    // SAFETY: only the load above has written to the variable.
    let context = unsafe { address.read() };
    assert_eq!(context, module.as_object().as_ptr().cast());
    let mut out = std::ptr::null_mut();
    // SAFETY: the context is the module's.
    assert_eq!(unsafe { TVMFFIEnvModLookupFromImports(context, c"imported".as_ptr(), &mut out) }, 0);
    assert!(!out.is_null());
}

#[test]
#[cfg_attr(miri, ignore = "thousands of rounds")]
fn damaged_blobs_load_or_fail() {
    register_module_loader("syslib_any", |bytes| {
        let len = bytes.iter().fold(0, |sum, &byte| sum + i64::from(byte));
        Ok(Module::new("syslib_any", [("sum".to_owned(), Function::from_packed(move |_| Ok(len.into())))]))
    })
    .unwrap();
    let module = |payload| Node::Module { kind: "syslib_any", payload };
    let nodes = [module(b"outer"), Node::Library, module(b"inner"), module(b"a longer payload")];
    let good = write(&nodes, &[vec![1, 3], vec![2, 3], vec![3], vec![]]).unwrap();
    let mut count = 0;
    let mut load = |blob: Vec<u8>| {
        let blob = leak(blob.into_boxed_slice());
        let prefix = format!("syslib_damaged_{count}_");
        count += 1;
        register(&format!("{prefix}__tvm_ffi__library_bin"), blob.as_ptr().cast());
        let loaded = Module::system_lib(&prefix);
        register(&format!("{prefix}__tvm_ffi__library_bin"), std::ptr::null());
        if let Ok(module) = &loaded {
            // If the bytes were read, the result is a tree without cycles.
            assert!(module.get_function_from("syslib_nowhere", true).unwrap().is_none());
        }
        loaded.map(|_| ()).map_err(|error: Error| error.kind().to_string())
    };
    assert_eq!(load(good.clone()), Ok(()));
    for len in 8..good.len() {
        let mut cut = good[..len].to_vec();
        cut[..8].copy_from_slice(&(len as u64 - 8).to_le_bytes());
        assert_eq!(load(cut), Err("ValueError".to_owned()), "{len} of {} bytes", good.len());
    }
    let mut failures = 0;
    for place in 0..good.len() {
        // Changing higher bytes of `nbytes` would claim memory that doesn't exist, which a reader can't detect.
        if (2..8).contains(&place) {
            continue;
        }
        for change in [1, 0x80, 0xff] {
            let mut flipped = good.clone();
            flipped[place] ^= change;
            if place < 2 {
                // A larger `nbytes` of up to 16 bits reads zeros.
                flipped.resize(good.len() + (1 << 16), 0);
            }
            match load(flipped) {
                Ok(()) => {}
                Err(kind) => {
                    assert!(["ValueError", "RuntimeError"].contains(&kind.as_str()), "{kind}");
                    failures += 1;
                }
            }
        }
    }
    assert!(failures > good.len());
}

#[test]
fn a_system_library_may_ask_for_others_while_it_is_loaded() {
    register_module_loader("syslib_asks", |prefix| Module::system_lib(std::str::from_utf8(&prefix).unwrap())).unwrap();
    for (prefix, asks) in [("syslib_other_", "syslib_e_"), ("syslib_self_", "syslib_self_")] {
        let node = Node::Module { kind: "syslib_asks", payload: asks.as_bytes() };
        let blob = leak(write(&[Node::Library, node], &[vec![1], vec![]]).unwrap().into_boxed_slice());
        register(&format!("{prefix}__tvm_ffi__library_bin"), blob.as_ptr().cast());
    }
    let module = Module::system_lib("syslib_other_").unwrap();
    assert!(module.imports()[0].as_object().ptr_eq(Module::system_lib("syslib_e_").unwrap().as_object()));
    let error = Module::system_lib("syslib_self_").unwrap_err();
    assert_eq!(error.message(), "Loading the system library of prefix `syslib_self_` asks for that library itself");
    // A failed load can be repeated.
    register("syslib_self___tvm_ffi__library_bin", std::ptr::null());
    assert!(Module::system_lib("syslib_self_").unwrap().imports().is_empty());
}

#[test]
fn a_library_may_carry_a_long_chain() {
    register_module_loader("syslib_link", |_| Ok(Module::new("syslib_link", []))).unwrap();
    let mut nodes = vec![Node::Module { kind: "syslib_link", payload: b"" }; DEEP];
    nodes.push(Node::Library);
    // The root imports the last link, and each link the one before. This would be slow if each import searched all
    // modules below for a cycle.
    let library = nodes.len() - 1;
    let mut children: Vec<Vec<usize>> = (0..nodes.len()).map(|node| vec![node.saturating_sub(1)]).collect();
    children[0] = vec![library - 1];
    children[1] = vec![library];
    children[library].clear();
    let blob = leak(write(&nodes, &children).unwrap().into_boxed_slice());
    register("syslib_chain___tvm_ffi__library_bin", blob.as_ptr().cast());
    register("__tvm_ffi_syslib_chain_f", gives::<9> as *const c_void);
    on_a_small_stack(|| {
        let root = Module::system_lib("syslib_chain_").unwrap();
        assert_eq!(value(root.get_function_from("f", true).unwrap()), Some(9));
        root.clear_imports();
    });
}
