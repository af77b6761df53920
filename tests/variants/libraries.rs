//! Dispatches in libraries, which the runtime loads: fixed ones, and those that grow in the process that loads them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use tvm_ffi_codegen::artifact::{Cache, CacheKey, LibraryBuilder};
use tvm_ffi_codegen::dispatch::DispatchTable;
use tvm_ffi_codegen::runtime::{Error, Function, Module, error::kind, registry};
use tvm_ffi_codegen::{Backend, DLDataType, Kernel, KernelReturn};

use super::{KEYS, PICK, ROWS, call, calls_of_rows_run_their_variants, library_of, pick, variant};
use crate::support::{compiler, host_linker, sig};

fn backends() -> Vec<Backend> {
    vec![
        #[cfg(feature = "cranelift")]
        Backend::Cranelift,
        #[cfg(feature = "_llvm")]
        Backend::Llvm,
    ]
}

/// Loads a library, and returns a function of it.
fn loaded(path: &Path, function: &str) -> Function {
    // SAFETY: the functions of the tests read no memory, and return numbers.
    let module = unsafe {
        let module = Module::load_from_file(path).unwrap();
        module.unload_when_unused().unwrap();
        module
    };
    module.get_function(function).unwrap().unwrap()
}

/// Links a library, and loads its function `pick`.
fn linked(library: LibraryBuilder, backend: Backend, path: &Path, objects: &[PathBuf]) -> Function {
    let object = library.backend(backend).emit().unwrap();
    let linker = host_linker().object(object.as_bytes());
    objects.iter().fold(linker, |linker, object| linker.file(object)).link(path).unwrap();
    loaded(path, "pick")
}

#[test]
#[cfg_attr(all(target_env = "musl", target_feature = "crt-static"), ignore = "a static executable loads no library")]
fn a_library_has_all_variants() {
    let folder = tempfile::tempdir().unwrap();
    let (source, object) = (folder.path().join("native.c"), folder.path().join("native.o"));
    std::fs::write(&source, "long long native(void* x, long long block, long long n) { return 1000 * block + n; }")
        .unwrap();
    assert!(compiler::c().arg("-c").arg("-fPIC").arg(&source).arg("-o").arg(&object).status().unwrap().success());
    for backend in backends() {
        // a symbol of the same library
        let signature = sig("pick_native(x: Tensor([n], uint8), BLOCK: int64) -> int64");
        let kernel = Kernel::symbol("native").returns(KernelReturn::Value);
        let dispatch = pick(&ROWS).variant("uint8, _, range(0, 1000)", &signature, &kernel);
        let path = folder.path().join(format!("{backend}.so"));
        let function = linked(library_of(&dispatch), backend, &path, std::slice::from_ref(&object));
        calls_of_rows_run_their_variants(&function);
        assert_eq!(call(&function, DLDataType::UINT8, 7, 3), Ok(3007));
        let error = call(&function, DLDataType::UINT8, 7, 1000).unwrap_err();
        assert!(error.contains("(int8, _, 1), (uint8, _, range(0, 1000)); each key fits"), "{error}");
    }
}

/// The global function to which the library of these tests forwards.
const MORE: &str = "tests.variants.more";

/// A table that looks for its functions in a cache, and compiles those that aren't there. Its second value counts what
/// was compiled.
fn cached(folder: &Path) -> (DispatchTable, Arc<AtomicI64>) {
    let cache = Cache::open(folder, 1 << 24).unwrap();
    let compiled = Arc::new(AtomicI64::new(0));
    let counted = Arc::clone(&compiled);
    let make =
        move |dtype: DLDataType, is_multiple: bool, block: i64| -> Result<Function, Box<dyn std::error::Error>> {
            let key = CacheKey::builder()
                .part("function", PICK)
                .part("dtype", dtype.to_string())
                .part("n % 16 == 0", is_multiple.to_string())
                .part("BLOCK", block.to_string());
            let library =
                cache.get_or_make(&key.finish(), ".so", |path| -> Result<(), Box<dyn std::error::Error>> {
                    let number = 100 * block + counted.fetch_add(1, Ordering::SeqCst);
                    let (signature, kernel) = variant("made", &dtype.to_string(), number);
                    let object = LibraryBuilder::new().function(&signature, &kernel).emit()?;
                    Ok(host_linker().object(object.as_bytes()).link(path)?)
                })?;
            Ok(loaded(&library.keep(), "made"))
        };
    let on_miss = Function::from_packed(move |args| {
        let function = make(args[0].cast()?, args[1].cast()?, args[2].cast()?);
        function.map(Into::into).map_err(|error| Error::new(kind::RUNTIME_ERROR, &error.to_string()))
    });
    (DispatchTable::new("pick", KEYS, on_miss, None).unwrap(), compiled)
}

/// Set in a child process, to the folder of the library and the cache.
const FOLDER: &str = "TVM_FFI_CODEGEN_TEST_VARIANTS";

/// The process that loads the library after the first one: it has no function of its own, and compiles none.
fn in_a_later_process(folder: &Path) {
    let function = loaded(&folder.join("pick.so"), "pick");
    let (table, compiled) = cached(&folder.join("cache"));
    registry::set_global(MORE, table.function().clone(), false).unwrap();
    calls_of_rows_run_their_variants(&function);
    assert_eq!(call(&function, DLDataType::FLOAT64, 1, 7), Ok(700));
    assert_eq!(call(&function, DLDataType::FLOAT64, 16, 7), Ok(701));
    assert_eq!((compiled.load(Ordering::SeqCst), table.stats().misses), (0, 2));
    // a key that the first process didn't have
    assert_eq!(call(&function, DLDataType::FLOAT64, 16, 8), Ok(800));
    assert_eq!(compiled.load(Ordering::SeqCst), 1);
    assert!(registry::remove_global(MORE));
}

#[test]
#[cfg_attr(all(target_env = "musl", target_feature = "crt-static"), ignore = "a static executable loads no library")]
fn a_library_grows_in_its_process_and_the_next_one_finds_that() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return in_a_later_process(Path::new(&folder));
    }
    for backend in backends() {
        let folder = tempfile::tempdir().unwrap();
        let dispatch = pick(&ROWS).or_global(MORE);
        let function = linked(library_of(&dispatch), backend, &folder.path().join("pick.so"), &[]);
        // the variants of the library need no table
        calls_of_rows_run_their_variants(&function);
        let error = call(&function, DLDataType::FLOAT64, 1, 7).unwrap_err();
        assert!(error.contains(&format!("global function `{MORE}`")) && error.contains("is not registered"), "{error}");
        let (table, compiled) = cached(&folder.path().join("cache"));
        registry::set_global(MORE, table.function().clone(), false).unwrap();
        for _ in 0..2 {
            assert_eq!(call(&function, DLDataType::FLOAT64, 1, 7), Ok(700));
            assert_eq!(call(&function, DLDataType::FLOAT64, 16, 7), Ok(701));
            calls_of_rows_run_their_variants(&function);
        }
        assert_eq!((compiled.load(Ordering::SeqCst), table.stats().misses, table.stats().hits), (2, 2, 2));
        assert!(registry::remove_global(MORE));
        let test = "variants::libraries::a_library_grows_in_its_process_and_the_next_one_finds_that";
        let mut child = Command::new(std::env::current_exe().unwrap());
        let output = child.args(["--exact", test]).env(FOLDER, folder.path()).output().unwrap();
        let (printed, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && printed.contains("1 passed"), "{printed}{errors}");
    }
}
