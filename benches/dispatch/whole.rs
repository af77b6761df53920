//! Functions with variants, as compilers generate them: `f(x, y, block)`, whose variants differ in `block`.

use std::hint::black_box;
use std::path::Path;

use tempfile::TempDir;
use tvm_ffi_codegen::artifact::{LibraryBuilder, Linker, Triple};
use tvm_ffi_codegen::dispatch::DispatchTable;
use tvm_ffi_codegen::runtime::abi::TVMFFIAny;
use tvm_ffi_codegen::runtime::{Any, DLDevice, Function, Module, Tensor, registry};
use tvm_ffi_codegen::{DLDataType, Dispatch, Engine, Kernel, Signature};

/// The result of a benchmark, with an error of any type.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The first is what tells the variants apart.
const KEYS: [&str; 8] =
    ["block", "x.dtype", "n % 16 == 0", "y.dtype", "n == 1", "is_aligned(x, 16)", "is_aligned(y, 16)", "x.device.id"];
/// The patterns of these keys behind the first.
const PATTERNS: [&str; 7] = ["float32", "True", "float32", "False", "_", "_", "0"];
const SIGNATURE: &str = "f(x: Tensor([n], any), y: Tensor([n], any), block: int64)";
/// The global function that a library forwards to.
const TABLE: &str = "bench.dispatch.table";

/// How a call finds its variant.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// The variant itself is called.
    Directly,
    /// By a `match` over the rows of the variants.
    ByRows,
    /// In a table that grows.
    InTable,
}

impl Found {
    pub const ALL: [Self; 3] = [Self::Directly, Self::ByRows, Self::InTable];

    pub fn name(self) -> &'static str {
        match self {
            Self::Directly => "direct",
            Self::ByRows => "rows",
            Self::InTable => "table",
        }
    }
}

/// A function, and calls that find up to 64 variants in turn.
pub struct Whole {
    pub function: Function,
    pub calls: Vec<Vec<TVMFFIAny>>,
    _tensors: [Tensor; 2],
    _library: Option<TempDir>,
}

/// Makes a function whose dispatch has some of the keys, in this process or as a library.
pub fn whole(found: Found, keys: usize, variants: usize, as_library: bool) -> Result<Whole> {
    let signature: Signature = SIGNATURE.parse()?;
    let own: Signature = SIGNATURE.replace("any", "float32").parse()?;
    let kernel = Kernel::check_only();
    let engine = Engine::new()?;
    let mut dispatch = Dispatch::new(&signature, KEYS.iter().take(keys).copied());
    let mut table = None;
    match found {
        Found::Directly => {}
        Found::ByRows => {
            let patterns: String = PATTERNS.iter().take(keys - 1).map(|pattern| format!(", {pattern}")).collect();
            for block in 0..variants {
                let named = own.to_string().replacen('f', &format!("f{block}"), 1).parse()?;
                dispatch = dispatch.variant(format!("{block}{patterns}"), &named, &kernel);
            }
        }
        Found::InTable => {
            // SAFETY: the kernel does nothing.
            let variant = unsafe { engine.compile(&own, &kernel)? };
            let on_miss = Function::from_packed(move |_| Ok(variant.clone().into()));
            table = Some(DispatchTable::new("f", KEYS.iter().take(keys).copied(), on_miss, None)?);
        }
    }
    let mut library = None;
    let function = if as_library {
        if let Some(table) = &table {
            registry::set_global(TABLE, table.function().clone(), true)?;
            dispatch = dispatch.or_global(TABLE);
        }
        let functions = if found == Found::Directly { vec![(own, kernel)] } else { dispatch.functions()? };
        load(&functions, library.insert(tempfile::tempdir()?).path())?
    } else {
        // SAFETY: the kernels do nothing.
        unsafe {
            match &table {
                Some(table) => dispatch.compile_growing(&engine, table)?,
                None if found == Found::Directly => engine.compile(&own, &kernel)?,
                None => dispatch.compile(&engine)?,
            }
        }
    };
    let tensor = || Tensor::zeros(&[64], DLDataType::FLOAT32, DLDevice::CPU);
    let tensors = [tensor()?, tensor()?];
    let [x, y] = tensors.each_ref().map(|tensor| *Any::from(tensor.clone()).as_raw());
    let calls = (0..variants.min(64)).map(|block| vec![x, y, *Any::from(block as i64).as_raw()]).collect();
    // The table makes its variants, and a library looks the table up.
    for block in 0..variants as i64 {
        function.call((&tensors[0], &tensors[1], block))?;
    }
    Ok(Whole { function, calls, _tensors: tensors, _library: library })
}

/// Links functions, and returns the first of the library.
fn load(functions: &[(Signature, Kernel)], folder: &Path) -> Result<Function> {
    let path = folder.join("f.so");
    let builder = functions.iter().fold(LibraryBuilder::new(), |all, (sig, kernel)| all.function(sig, kernel));
    Linker::new(Triple::host()).object(builder.emit()?.as_bytes()).link(&path)?;
    // SAFETY: the linker has written the library, whose kernels do nothing.
    let module = unsafe { Module::load_from_file(&path)? };
    Ok(module.get_function("f")?.ok_or("the library has no f")?)
}

/// A call as C makes it: the argument array is ready, the result None.
pub fn call(function: &Function, args: &[TVMFFIAny]) -> i32 {
    let mut result = TVMFFIAny::none();
    // SAFETY: the arguments are numbers, or views of texts and tensors that the caller keeps; the result owns nothing.
    unsafe { function.call_raw(black_box(args), &mut result) }
}
