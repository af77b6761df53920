//! One function with several variants: `Dispatch` in this process, in libraries, and with a table.

mod errors;
#[path = "../../examples/dispatch.rs"]
mod example;
mod growing;
mod libraries;

use tvm_ffi_codegen::artifact::LibraryBuilder;
use tvm_ffi_codegen::runtime::{DLDevice, Function, Tensor};
use tvm_ffi_codegen::{Backend, DLDataType, Dispatch, Engine, HostProgram, Kernel, OptLevel, Signature, image::Image};

use crate::support::sig;

/// The signature of the dispatches of these tests. Each variant returns a number of its own.
const PICK: &str = "pick(x: Tensor([n], any), BLOCK: int64) -> int64";
const KEYS: [&str; 3] = ["x.dtype", "n % 16 == 0", "BLOCK"];

/// A variant that returns a number.
fn variant(name: &str, dtype: &str, number: i64) -> (Signature, Kernel) {
    let signature = sig(&format!("{name}(x: Tensor([n], {dtype}), BLOCK: int64) -> int64"));
    (signature, text(&format!("{{ return {number}; }}")))
}

fn text(block: &str) -> Kernel {
    Kernel::text(block, [] as [(&str, Image); 0]).unwrap()
}

/// A dispatch with rows, each with a dtype and with the number that its variant returns.
fn pick(rows: &[(&str, &str)]) -> Dispatch {
    rows.iter().zip(1..).fold(Dispatch::new(&sig(PICK), KEYS), |dispatch, ((row, dtype), number)| {
        let (signature, kernel) = variant(&format!("pick_{number}"), dtype, number);
        dispatch.variant(*row, &signature, &kernel)
    })
}

const ROWS: [(&str, &str); 4] = [
    ("float16, True, 128", "float16"),
    ("float32, True, range(64, 256)", "float32"),
    ("float32, False, _", "float32"),
    ("int8, _, 1", "int8"),
];

/// Calls with the number of the variant that runs.
const CALLS: [(DLDataType, i64, i64, i64); 6] = [
    (DLDataType::FLOAT16, 32, 128, 1),
    (DLDataType::FLOAT32, 16, 64, 2),
    (DLDataType::FLOAT32, 0, 255, 2),
    (DLDataType::FLOAT32, 17, 1000, 3),
    (DLDataType::INT8, 16, 1, 4),
    (DLDataType::INT8, 17, 1, 4),
];

fn call(function: &Function, dtype: DLDataType, size: i64, block: i64) -> Result<i64, String> {
    let x = Tensor::zeros(&[size], dtype, DLDevice::CPU).unwrap();
    function.call_as((&x, block)).map_err(|error| error.to_string())
}

fn calls_of_rows_run_their_variants(function: &Function) {
    for (dtype, size, block, number) in CALLS {
        assert_eq!(call(function, dtype, size, block), Ok(number), "{dtype}, {size}, {block}");
    }
}

fn engines() -> Vec<Engine> {
    let backends = [
        #[cfg(feature = "cranelift")]
        Backend::Cranelift,
        #[cfg(feature = "_llvm")]
        Backend::Llvm,
    ];
    let levels = [OptLevel::None, OptLevel::Speed];
    let all = backends.into_iter().flat_map(|backend| levels.map(|level| (backend, level)));
    all.map(|(backend, level)| Engine::builder().backend(backend).opt_level(level).build().unwrap()).collect()
}

fn library_of(dispatch: &Dispatch) -> LibraryBuilder {
    let functions = dispatch.functions().unwrap();
    functions.iter().fold(LibraryBuilder::new(), |library, (signature, kernel)| library.function(signature, kernel))
}

#[test]
fn calls_run_the_variants_of_their_rows() {
    for engine in engines() {
        // SAFETY: the bodies read no memory.
        let function = unsafe { pick(&ROWS).compile(&engine) }.unwrap();
        calls_of_rows_run_their_variants(&function);
        // the variant checks what the dispatch leaves open
        let error = function.call((Tensor::zeros(&[1, 1], DLDataType::INT8, DLDevice::CPU).unwrap(), 1)).unwrap_err();
        assert!(error.message().starts_with("Mismatched x.ndim on argument #0 when calling: `pick("), "{error}");
    }
}

/// C19.10
#[test]
fn a_call_without_a_row_lists_the_variants() {
    for engine in engines() {
        // SAFETY: the bodies read no memory.
        let function = unsafe { pick(&ROWS).compile(&engine) }.unwrap();
        let of = "ValueError: no row of `pick(x: Tensor([n], any), BLOCK: int64) -> Any` holds for";
        let rows =
            "the rows are (float16, True, 128), (float32, True, range(64, 256)), (float32, False, _), (int8, _, 1)";
        assert_eq!(
            call(&function, DLDataType::FLOAT64, 32, 1).unwrap_err(),
            format!("{of} `x.dtype` = float64, `n % 16 == 0` = True, `BLOCK` = 1; {rows}; no row takes this `x.dtype`")
        );
        assert_eq!(
            call(&function, DLDataType::FLOAT16, 17, 128).unwrap_err(),
            format!(
                "{of} `x.dtype` = float16, `n % 16 == 0` = False, `BLOCK` = 128; {rows}; \
                 each key fits a row, but all together fit none"
            )
        );
    }
}

#[test]
fn forty_variants() {
    let dtypes = ["float16", "float32", "float64", "int8", "int32"];
    let rows = dtypes.iter().flat_map(|dtype| (0..8).map(move |block| (format!("{dtype}, _, {block}"), *dtype)));
    let rows: Vec<(String, &str)> = rows.collect();
    let rows: Vec<(&str, &str)> = rows.iter().map(|(row, dtype)| (row.as_str(), *dtype)).collect();
    assert_eq!(rows.len(), 40);
    for engine in engines() {
        // SAFETY: the bodies read no memory.
        let function = unsafe { pick(&rows).compile(&engine) }.unwrap();
        for ((number, (_, dtype)), block) in (1..).zip(&rows).zip((0..8).cycle()) {
            assert_eq!(call(&function, dtype.parse().unwrap(), 3, block), Ok(number));
        }
        let error = call(&function, DLDataType::INT8, 3, 8).unwrap_err();
        let end = "(float16, _, 7) and 32 more; no row takes this `BLOCK`";
        assert!(error.ends_with(end), "{error}");
    }
}

/// Names of keys stand in messages, and the functions print as one program.
#[test]
fn functions_are_a_program() {
    let (signature, kernel) = variant("pick_one", "float32", 1);
    let dispatch = Dispatch::new(&sig(PICK), ["dtype = x.dtype", "rest = (n + 1) % 16"])
        .variant("float32, range(0, 8)", &signature, &kernel)
        .or_global("tests.variants.a name");
    let functions = dispatch.functions().unwrap();
    let program = HostProgram::of(functions.iter().map(|(signature, kernel)| (signature, kernel))).unwrap();
    let expected = "\
pick(x: Tensor([n], any), BLOCK: int64) -> Any {
  match dtype = x.dtype, rest = (n + 1) % 16 {
    float32, range(0, 8) => forward symbol pick_one();
    else => forward global \"tests.variants.a name\"(x.dtype, (n + 1) % 16);
  }
}

pick_one(x: Tensor([n], float32), BLOCK: int64) -> int64 {
  return 1;
}
";
    assert_eq!(program.to_string(), expected);
    let documented = Dispatch::new(&sig(PICK).with_doc("Picks."), KEYS).or_global("g").functions().unwrap();
    assert_eq!((documented.len(), documented[0].0.doc()), (1, Some("Picks.")));
}

/// Launches, native code and check-only kernels are variants as well.
#[test]
fn variants_have_any_kernel() {
    let scale = sig("scale(x: Tensor([n], any))");
    let (checks, closes) = (sig("checks(x: Tensor([n], int8))"), sig("halves(x: Tensor([n], float32))"));
    let dispatch = Dispatch::new(&scale, ["x.dtype"]).variant("int8", &checks, &Kernel::check_only()).variant(
        "float32",
        &closes,
        &Kernel::body(|b| {
            let x = b.tensor("x");
            b.for_range(0, b.dim("n"), |i| x.store([i], x.load([i]) * 0.5));
        }),
    );
    for engine in engines() {
        // SAFETY: the body stays within `0..n`, the shape of `x`.
        let function = unsafe { dispatch.compile(&engine) }.unwrap();
        let x = Tensor::from_slice(&[1f32, 2.0], &[2]).unwrap();
        function.call((&x,)).unwrap();
        assert_eq!(x.to_vec::<f32>().unwrap(), [0.5, 1.0]);
        assert!(function.call((Tensor::from_slice(&[1i8], &[1]).unwrap(),)).unwrap().is_none());
    }
}

/// The example, whose second run finds in the cache what the first one has made.
#[test]
#[cfg_attr(all(target_env = "musl", target_feature = "crt-static"), ignore = "a static executable loads no library")]
fn the_example_runs() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let table = example::run(folder.path(), crate::support::host_linker).unwrap();
        assert_eq!((table.stats().entries, table.stats().misses), (2, 2));
        assert!(tvm_ffi_codegen::runtime::registry::remove_global(example::TABLE));
    }
}
