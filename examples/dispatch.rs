//! One function with several variants. A compiler builds a library with two of them, and a process that loads the
//! library makes further ones when a call first needs them. A cache keeps these for later processes.
//!
//! ```text
//! dispatch FOLDER   builds the library in a folder, loads it, and calls it; run it twice
//! ```

use std::error::Error;
use std::path::Path;

use tvm_ffi_codegen::artifact::{Cache, CacheKey, LibraryBuilder, Linker, Triple};
use tvm_ffi_codegen::dispatch::DispatchTable;
use tvm_ffi_codegen::image::Image;
use tvm_ffi_codegen::runtime::{self, Function, Module, Tensor, error::kind, registry};
use tvm_ffi_codegen::{DLDataType, Dispatch, Kernel, Signature};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The arguments of all variants, and what decides which variant a call needs.
const SIGNATURE: &str = "axpy(a: float64, x: Tensor([n], any), y: Tensor([n], any))";
const KEYS: [&str; 2] = ["x.dtype", "n % 4 == 0"];
/// The name by which the library finds the table of the process.
pub const TABLE: &str = "example.axpy.more";
/// Names what else decides a variant's code, for the cache.
const VERSION: &str = "1";

// The compiler.

/// The variant for values of the keys: y += a * x. Where the size allows it, the loop is unrolled.
fn variant(dtype: DLDataType, is_multiple: bool) -> Result<(Signature, Kernel)> {
    let step = if is_multiple { 4 } else { 1 };
    let signature = format!(
        "{}(a: {dtype}, x: Tensor([n], {dtype}), y: Tensor([n], {dtype})){}",
        name(dtype, is_multiple),
        if is_multiple { " where n % 4 == 0" } else { "" },
    );
    let lines: String = (0..step).map(|k| format!("y[i + {k}] = y[i + {k}] + a * x[i + {k}]; ")).collect();
    let text = format!("{{ for i in range(0, n, {step}) {{ {lines}}} }}");
    Ok((signature.parse()?, Kernel::text(&text, [] as [(&str, Image); 0])?))
}

fn name(dtype: DLDataType, is_multiple: bool) -> String {
    format!("axpy_{dtype}{}", if is_multiple { "_by_4" } else { "" })
}

/// Builds the library: the dispatch, and the variants for float32.
fn build(path: &Path, linker: fn() -> Linker) -> Result<()> {
    let (by_4, plain) = (variant(DLDataType::FLOAT32, true)?, variant(DLDataType::FLOAT32, false)?);
    let dispatch = Dispatch::new(&SIGNATURE.parse()?, KEYS)
        .variant("float32, True", &by_4.0, &by_4.1)
        .variant("float32, False", &plain.0, &plain.1)
        .or_global(TABLE);
    link(&dispatch.functions()?, path, linker)
}

fn link(functions: &[(Signature, Kernel)], path: &Path, linker: fn() -> Linker) -> Result<()> {
    let library =
        functions.iter().fold(LibraryBuilder::new(), |all, (signature, kernel)| all.function(signature, kernel));
    Ok(linker().object(library.emit()?.as_bytes()).link(path)?)
}

// The process that loads the library.

/// The function of a variant that the library lacks: from the cache, or compiled now.
fn make(cache: &Cache, linker: fn() -> Linker, dtype: DLDataType, is_multiple: bool) -> Result<Function> {
    let key = CacheKey::builder()
        .part("function", SIGNATURE)
        .part("version", VERSION)
        .part(KEYS[0], dtype.to_string())
        .part(KEYS[1], is_multiple.to_string());
    let mut from = "found";
    let library = cache.get_or_make(&key.finish(), ".so", |path| {
        from = "compiled";
        link(&[variant(dtype, is_multiple)?], path, linker)
    })?;
    println!("{from} {}", name(dtype, is_multiple));
    load(&library.keep(), &name(dtype, is_multiple))
}

/// A function of a library, which is unloaded when nobody has the function.
fn load(path: &Path, function: &str) -> Result<Function> {
    // SAFETY: `link` has written the library. Its kernels stay within `0..n`, and return nothing.
    let module = unsafe {
        let module = Module::load_from_file(path)?;
        module.unload_when_unused()?;
        module
    };
    module.get_function(function)?.ok_or_else(|| format!("the library has no {function}").into())
}

/// Builds and loads the library in a folder, calls its function, and returns the table with what it has counted.
pub fn run(folder: &Path, linker: fn() -> Linker) -> Result<DispatchTable> {
    let path = folder.join("axpy.so");
    build(&path, linker)?;
    let axpy = load(&path, "axpy")?;

    let cache = Cache::open(folder.join("cache"), 64 << 20)?;
    let on_miss = Function::from_packed(move |args| {
        let made = make(&cache, linker, args[0].cast()?, args[1].cast()?);
        made.map(Into::into).map_err(|error| runtime::Error::new(kind::RUNTIME_ERROR, &error.to_string()))
    });
    let table = DispatchTable::new("axpy", KEYS, on_miss, Some(256))?;
    registry::set_global(TABLE, table.function().clone(), true)?;

    for size in [3, 4] {
        let zeros = |dtype| Tensor::zeros(&[size], dtype, runtime::DLDevice::CPU);
        let (x, y) = (Tensor::from_slice(&vec![1.5f32; size as usize], &[size])?, zeros(DLDataType::FLOAT32)?);
        axpy.call((2, &x, &y))?;
        println!("float32: {:?}", y.to_vec::<f32>()?);
        let (x, y) = (Tensor::from_slice(&vec![1.5f64; size as usize], &[size])?, zeros(DLDataType::FLOAT64)?);
        axpy.call((2, &x, &y))?;
        println!("float64: {:?}", y.to_vec::<f64>()?);
    }
    Ok(table)
}

#[allow(dead_code)] // the tests call `run`
fn main() -> Result<()> {
    let folder = std::env::args().nth(1).ok_or("usage: dispatch FOLDER")?;
    let table = run(Path::new(&folder), || Linker::new(Triple::host()))?;
    println!("{} entries, {} misses", table.stats().entries, table.stats().misses);
    Ok(())
}
