//! Modules in memory and of kinds written in Rust: functions, imports, lookups, global functions.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tvm_ffi_runtime::capi::TVMFFIEnvModLookupFromImports;
use tvm_ffi_runtime::module::{ModuleImpl, PropertyMask, register_module_loader};
use tvm_ffi_runtime::registry::{get_global, set_global};
use tvm_ffi_runtime::{Any, Array, AsObject, Bytes, CallArgs, Error, Function, Module, Result, Str};

use crate::support::*;

fn gives(value: i64) -> Function {
    Function::from_packed(move |_| Ok(value.into()))
}

/// A module of kind `k` with one function.
fn with(name: &str, value: i64) -> Module {
    Module::builder("k").function(name, gives(value)).build()
}

fn value(function: Option<Function>) -> Option<i64> {
    function.map(|function| function.call(()).unwrap().cast().unwrap())
}

fn global<A: CallArgs>(name: &str, args: A) -> Result<Any> {
    get_global(name).unwrap().call(args)
}

/// A module that implements every method, and counts its drops.
struct Talkative {
    drops: Arc<AtomicUsize>,
}

impl ModuleImpl for Talkative {
    fn kind(&self) -> &str {
        "talkative"
    }

    fn get_function(&self, name: &str) -> Result<Option<Function>> {
        match name {
            "seven" => Ok(Some(gives(7))),
            "bad" => Err(Error::new("ValueError", "no such code")),
            "panic" => panic!("get_function"),
            _ => Ok(None),
        }
    }

    fn implements_function(&self, name: &str) -> Result<bool> {
        Ok(["seven", "later"].contains(&name))
    }

    fn function_metadata(&self, name: &str) -> Result<Option<String>> {
        Ok((name == "seven").then(|| "{}".to_owned()))
    }

    fn function_doc(&self, name: &str) -> Result<Option<String>> {
        Ok((name == "seven").then(|| "Gives seven.".to_owned()))
    }

    fn function_names(&self) -> Option<Vec<String>> {
        Some(vec!["seven".to_owned(), "bad".to_owned()])
    }

    fn property_mask(&self) -> PropertyMask {
        PropertyMask::RUNNABLE | PropertyMask::COMPILATION_EXPORTABLE
    }

    fn save_to_bytes(&self) -> Result<Option<Bytes>> {
        Ok(Some(Bytes::new(b"talk")))
    }

    fn inspect_source(&self, format: &str) -> Result<String> {
        Ok(format!("source as {format}"))
    }

    fn write_formats(&self) -> Vec<String> {
        vec!["c".to_owned(), "o".to_owned()]
    }

    fn write_to_file(&self, file_name: &str, format: &str) -> Result<()> {
        Err(Error::new("OSError", &format!("{file_name} as {format}")))
    }
}

impl Drop for Talkative {
    fn drop(&mut self) {
        self.drops.fetch_add(1, Ordering::SeqCst);
    }
}

fn talkative() -> (Module, Arc<AtomicUsize>) {
    let drops = Arc::new(AtomicUsize::new(0));
    (Module::from_impl(Talkative { drops: drops.clone() }), drops)
}

#[test]
fn a_kind_of_ones_own_says_what_it_does() {
    let (module, drops) = talkative();
    assert_eq!(module.kind(), "talkative");
    assert_eq!(module.property_mask(), PropertyMask(0b110));
    assert!(module.property_mask().contains(PropertyMask::RUNNABLE));
    assert!(!module.property_mask().contains(PropertyMask::BINARY_SERIALIZABLE));
    assert_eq!(module.function_names().unwrap(), ["bad", "seven"]);
    assert_eq!(value(module.get_function("seven").unwrap()), Some(7));
    assert!(module.get_function("none").unwrap().is_none());
    assert_eq!(module.get_function("bad").unwrap_err().to_string(), "ValueError: no such code");
    assert!(module.implements_function("later", false).unwrap());
    assert_eq!(module.function_doc("seven", false).unwrap().unwrap(), "Gives seven.");
    assert_eq!(module.save_to_bytes().unwrap().unwrap(), *b"talk".as_slice());
    let object = module.into_object();
    let module: Module = object.downcast().unwrap();
    assert_eq!(module.clone().kind(), "talkative");
    assert_eq!(drops.load(Ordering::SeqCst), 0);
    drop(module);
    assert_eq!(drops.load(Ordering::SeqCst), 1);
}

#[test]
fn modules_in_memory_have_defaults() {
    let module = with("one", 1);
    assert_eq!(module.property_mask(), PropertyMask::RUNNABLE);
    assert!(module.implements_function("one", false).unwrap());
    assert!(!module.implements_function("two", false).unwrap());
    assert!(module.function_metadata("one", true).unwrap().is_none());
    assert!(module.function_doc("one", true).unwrap().is_none());
    assert!(module.save_to_bytes().unwrap().is_none());
    assert_eq!(module.inspect_source("").unwrap(), "");
    assert!(module.write_formats().is_empty());
    let error = module.write_to_file("out.o", "o").unwrap_err();
    assert_eq!(error.to_string(), "RuntimeError: Module[k] does not support WriteToFile");
}

#[test]
fn imports_are_searched_depth_first() {
    let (root, left, right, below) = (with("root", 0), with("f", 1), with("f", 2), with("f", 3));
    // Upstream's order: the imports of the first import come before the second import.
    let (first, _) = talkative();
    first.import_module(&below).unwrap();
    for module in [&first, &left, &right] {
        root.import_module(module).unwrap();
    }
    assert_eq!(root.imports().len(), 3);
    assert_eq!(value(root.get_function_from("f", true).unwrap()), Some(3));
    assert!(root.get_function_from("f", false).unwrap().is_none());
    assert_eq!(value(root.get_function_from("seven", true).unwrap()), Some(7));
    assert!(root.implements_function("later", true).unwrap());
    assert!(!root.implements_function("later", false).unwrap());
    assert_eq!(root.function_metadata("seven", true).unwrap().unwrap(), "{}");
    assert!(root.function_doc("seven", false).unwrap().is_none());
    // An error ends the search.
    assert_eq!(root.get_function_from("bad", true).unwrap_err().kind(), "ValueError");
    root.clear_imports();
    assert!(root.get_function_from("f", true).unwrap().is_none());
}

#[test]
fn imports_have_no_cycle() {
    let modules = [with("a", 0), with("b", 1), with("c", 2)];
    let cyclic = |from: usize, to: usize| {
        let error = modules[from].import_module(&modules[to]).unwrap_err();
        assert_eq!(error.to_string(), "RuntimeError: Cyclic dependency detected during import");
    };
    cyclic(0, 0);
    modules[0].import_module(&modules[1]).unwrap();
    modules[1].import_module(&modules[2]).unwrap();
    cyclic(1, 0);
    cyclic(2, 0);
    cyclic(2, 1);
    assert!(modules[2].imports().is_empty());
    // Importing twice makes no cycle.
    modules[0].import_module(&modules[2]).unwrap();
    modules[0].import_module(&modules[2]).unwrap();
}

#[test]
fn threads_make_no_cycle() {
    for _ in 0..rounds(50) {
        let (a, b) = (with("a", 0), with("b", 1));
        let results = std::thread::scope(|scope| {
            let (one, two) = (scope.spawn(|| a.import_module(&b).is_ok()), scope.spawn(|| b.import_module(&a).is_ok()));
            [one.join().unwrap(), two.join().unwrap()]
        });
        assert_eq!(results.iter().filter(|&&imported| imported).count(), 1);
    }
}

#[test]
fn threads_lose_no_import() {
    let importer = with("a", 0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..rounds(200) {
                    importer.import_module(&with("b", 1)).unwrap();
                    assert!(importer.imports().iter().all(|import| import.kind() == "k"));
                }
            });
        }
    });
    assert_eq!(importer.imports().len(), 4 * rounds(200));
    importer.clear_imports();
    assert!(importer.imports().is_empty());
}

#[test]
fn chains_of_imports_may_be_long() {
    on_a_small_stack(|| {
        let (last, drops) = talkative();
        let modules: Vec<Module> = (0..DEEP).map(|_| Module::new("k", [])).collect();
        for pair in modules.windows(2) {
            pair[0].import_module(&pair[1]).unwrap();
        }
        modules[modules.len() - 1].import_module(&last).unwrap();
        let root = modules[0].clone();
        drop(modules);
        assert_eq!(value(root.get_function_from("seven", true).unwrap()), Some(7));
        drop((root, last));
        assert_eq!(drops.load(Ordering::SeqCst), 1);
    });
}

fn lookup(module: &Module, name: &std::ffi::CStr) -> std::result::Result<*mut c_void, Error> {
    let mut out = null_mut();
    let context = module.as_object().as_ptr().cast();
    // SAFETY: the module is alive, the name ends with NUL.
    match unsafe { TVMFFIEnvModLookupFromImports(context, name.as_ptr(), &mut out) } {
        0 => Ok(out),
        code => Err(raised(code)),
    }
}

#[test]
fn lookups_are_kept_by_the_module() {
    let (module, import) = (with("own", 1), with("imported", 2));
    module.import_module(&import).unwrap();
    let function = import.get_function("imported").unwrap().unwrap();
    let before = function.as_object().strong_count();
    let handle = lookup(&module, c"imported").unwrap();
    assert_eq!(handle, function.as_raw_handle());
    // Not an owned reference: the new one is in the module's table.
    assert_eq!(function.as_object().strong_count(), before + 1);
    assert_eq!(lookup(&module, c"imported").unwrap(), handle);
    assert_eq!(function.as_object().strong_count(), before + 1);
    module.clear_imports();
    assert_eq!(lookup(&module, c"imported").unwrap(), handle);
    // The lookup skips the module's own functions, and finds global ones.
    let error = lookup(&module, c"own").unwrap_err();
    let message = "RuntimeError: Cannot find function own in the imported modules or global registry.";
    assert_eq!(error.to_string(), message);
    set_global("modules.test.global", gives(3), false).unwrap();
    lookup(&module, c"modules.test.global").unwrap();
    drop(module);
    assert_eq!(function.as_object().strong_count(), before);
}

#[test]
fn lookups_refuse_what_is_no_module() {
    let mut out = null_mut();
    let function = gives(1);
    // SAFETY: the object is alive, the name ends with NUL.
    let code = unsafe { TVMFFIEnvModLookupFromImports(function.as_raw_handle(), c"f".as_ptr(), &mut out) };
    assert_eq!(raised(code).to_string(), "TypeError: expected ffi.Module, got ffi.Function");
    let (module, _) = talkative();
    let outer = Module::new("k", []);
    outer.import_module(&module).unwrap();
    assert_eq!(lookup(&outer, c"bad").unwrap_err().to_string(), "ValueError: no such code");
    assert_eq!(lookup(&outer, c"panic").unwrap_err().to_string(), "InternalError: panic: get_function");
    assert!(out.is_null());
}

#[test]
fn modules_of_another_runtime_are_told_apart() {
    use tvm_ffi_runtime::ObjectRef;
    use tvm_ffi_runtime::abi::*;
    // A module in upstream's layout: a reference to the imports follows the header.
    #[repr(C)]
    struct Foreign(TVMFFIObject, *mut c_void, [usize; 4]);
    let header = TVMFFIObject {
        combined_ref_count: (1 << 32 | 1).into(),
        type_index: TypeIndex::MODULE.0,
        __padding: 0,
        deleter: None,
    };
    let mut foreign = Foreign(header, null_mut(), [0; 4]);
    // SAFETY: the object outlives the reference, and nothing frees it.
    let object = unsafe { ObjectRef::from_raw((&raw mut foreign).cast()) }.unwrap();
    let error = global("ffi.ModuleGetKind", (&object,)).unwrap_err();
    assert!(error.message().contains("laid out by another implementation"), "{error}");
}

#[test]
fn global_functions_of_modules_are_upstreams() {
    let (module, _) = talkative();
    let outer = Module::new("k", []);
    assert!(global("ffi.ModuleImportModule", (&outer, &module)).unwrap().is_none());
    assert_eq!(global("ffi.ModuleImportModule", (&module, &outer)).unwrap_err().kind(), "RuntimeError");
    let seven = |query_imports: bool| global("ffi.ModuleGetFunction", (&outer, "seven", query_imports)).unwrap();
    assert!(seven(false).is_none());
    assert_eq!(value(seven(true).cast().unwrap()), Some(7));
    let implements = |query_imports: bool| {
        global("ffi.ModuleImplementsFunction", (&outer, "later", query_imports)).unwrap().cast::<bool>().unwrap()
    };
    assert_eq!([implements(false), implements(true)], [false, true]);
    for (name, expected) in [("ffi.ModuleGetFunctionMetadata", "{}"), ("ffi.ModuleGetFunctionDoc", "Gives seven.")] {
        assert_eq!(global(name, (&outer, "seven", true)).unwrap().as_str(), Some(expected));
        assert!(global(name, (&outer, "seven", false)).unwrap().is_none());
    }
    assert_eq!(global("ffi.ModuleGetPropertyMask", (&module,)).unwrap().cast::<i64>().unwrap(), 6);
    assert_eq!(global("ffi.ModuleInspectSource", (&module, "ptx")).unwrap().as_str(), Some("source as ptx"));
    assert_eq!(global("ffi.ModuleGetKind", (&module,)).unwrap().as_str(), Some("talkative"));
    let formats: Array = global("ffi.ModuleGetWriteFormats", (&module,)).unwrap().cast().unwrap();
    let formats: Vec<Str> = formats.iter().map(|format| format.cast().unwrap()).collect();
    assert_eq!(formats, ["c", "o"]);
    let error = global("ffi.ModuleWriteToFile", (&module, "out.o", "o")).unwrap_err();
    assert_eq!(error.to_string(), "OSError: out.o as o");
    assert!(global("ffi.ModuleClearImports", (&outer,)).unwrap().is_none());
    assert!(outer.imports().is_empty());
    let error = global("ffi.ModuleGetFunction", (&outer, "panic")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "TypeError: Mismatched number of arguments when calling: `ffi.ModuleGetFunction(0: ffi.Module, 1: str, 2: \
         bool) -> \
         Optional<ffi.Function>`. Expected 3 but got 2 arguments"
    );
    let error = global("ffi.ModuleGetFunction", (&module, "panic", false)).unwrap_err();
    assert_eq!(error.to_string(), "InternalError: panic: get_function");
}

#[test]
fn reflection_shows_imports() {
    use tvm_ffi_runtime::abi::{TVMFFIAny, TypeIndex};
    let (outer, inner) = (with("outer", 1), with("inner", 2));
    outer.import_module(&inner).unwrap();
    // SAFETY: infos are never freed, and have as many fields as stated.
    let field = unsafe {
        let info = &*tvm_ffi_runtime::capi::TVMFFIGetTypeInfo(TypeIndex::MODULE.0);
        assert_eq!(info.num_fields, 1);
        &*info.fields
    };
    // SAFETY: the name is a static text.
    assert_eq!(unsafe { field.name.as_slice() }, b"imports_");
    let read = |object: *mut c_void| {
        let mut result = TVMFFIAny::none();
        // SAFETY: the object is alive. The result owns nothing before, and its new value is moved out.
        unsafe {
            let code = field.getter.unwrap()(object.byte_offset(field.offset as isize), &mut result);
            (code, Any::from_raw(result))
        }
    };
    let (code, imports) = read(outer.as_object().as_ptr().cast());
    assert_eq!(code, 0);
    let imports: Array = imports.cast().unwrap();
    assert!(imports[0].cast::<Module>().unwrap().as_object().ptr_eq(inner.as_object()));
    assert_eq!(imports.len(), 1);
    assert_eq!(raised(read(gives(1).as_raw_handle()).0).kind(), "TypeError");
    assert_eq!(raised(read(null_mut()).0).kind(), "ValueError");
}

#[test]
fn global_modules_stay_until_they_are_removed() {
    let (module, drops) = talkative();
    let weak = module.as_object().downgrade();
    global("ffi.ModuleGlobalsAdd", (&module,)).unwrap();
    global("ffi.ModuleGlobalsAdd", (&module,)).unwrap();
    drop(module);
    assert_eq!(drops.load(Ordering::SeqCst), 0);
    let module: Module = weak.upgrade().unwrap().downcast().unwrap();
    global("ffi.ModuleGlobalsRemove", (&module,)).unwrap();
    global("ffi.ModuleGlobalsRemove", (&module,)).unwrap();
    drop(module);
    assert_eq!(drops.load(Ordering::SeqCst), 1);
}

#[test]
fn a_loader_is_a_global_function() {
    let load = |bytes: Bytes| Ok(with("len", bytes.len() as i64));
    register_module_loader("modules_test_len", load).unwrap();
    assert_eq!(register_module_loader("modules_test_len", load).unwrap_err().kind(), "RuntimeError");
    let name = "ffi.Module.load_from_bytes.modules_test_len";
    let module: Module = global(name, (&b"12345678"[..],)).unwrap().cast().unwrap();
    assert_eq!(value(module.get_function("len").unwrap()), Some(8));
    assert_eq!(global(name, (1,)).unwrap_err().kind(), "TypeError");
}
