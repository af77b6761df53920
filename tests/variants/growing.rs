//! Dispatches that forward to a table of the process.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};

use tvm_ffi_codegen::dispatch::DispatchTable;
use tvm_ffi_codegen::runtime::{Any, AsObject, Error, Function, WeakRef, error::kind};
use tvm_ffi_codegen::{DLDataType, Dispatch, Engine};

use super::{KEYS, PICK, ROWS, call, calls_of_rows_run_their_variants, engines, pick, variant};
use crate::support::sig;

/// An `on_miss` that compiles: its functions return 100, 101 and so on. Its second value counts its calls.
fn compiling(engine: Engine) -> (Function, Arc<AtomicI64>) {
    let made = Arc::new(AtomicI64::new(0));
    let counted = Arc::clone(&made);
    let on_miss = Function::from_packed(move |args| {
        let dtype: DLDataType = args[0].cast()?;
        // the values of the keys, and the arguments unless it is called by `prewarm`
        assert!(args.len() == 3 || args.len() == 5, "{}", args.len());
        assert!(args[1].cast::<bool>().is_ok() && args[2].cast::<i64>().is_ok());
        let number = 100 + counted.fetch_add(1, Ordering::SeqCst);
        let (signature, kernel) = variant("made", &dtype.to_string(), number);
        // SAFETY: the body reads no memory.
        let function = unsafe { engine.compile(&signature, &kernel) };
        function.map(Into::into).map_err(|error| Error::new(kind::RUNTIME_ERROR, &error.to_string()))
    });
    (on_miss, made)
}

#[test]
fn a_dispatch_without_variants_grows() {
    for engine in engines() {
        let (on_miss, made) = compiling(engine.clone());
        let table = DispatchTable::new("pick", KEYS, on_miss, None).unwrap();
        // SAFETY: the variants read no memory.
        let function = unsafe { Dispatch::new(&sig(PICK), KEYS).compile_growing(&engine, &table) }.unwrap();
        drop(engine);
        for _ in 0..3 {
            assert_eq!(call(&function, DLDataType::FLOAT32, 32, 1), Ok(100));
            assert_eq!(call(&function, DLDataType::FLOAT32, 33, 1), Ok(101));
            // the same values of the keys
            assert_eq!(call(&function, DLDataType::FLOAT32, 48, 1), Ok(100));
        }
        table.prewarm([(DLDataType::INT8, true, 1i64)]).unwrap();
        assert_eq!(call(&function, DLDataType::INT8, 16, 1), Ok(102));
        assert_eq!((made.load(Ordering::SeqCst), table.stats().misses, table.stats().hits), (3, 3, 8));
        // the dispatch's own checks come first, and it knows no table for them
        assert!(function.call((1, 2)).unwrap_err().message().contains("`pick(x: Tensor([n], any), BLOCK: int64)"));
    }
}

/// Fixed variants first, and a table for all other calls.
#[test]
fn a_dispatch_with_variants_grows_beyond_them() {
    for engine in engines() {
        let (on_miss, made) = compiling(engine.clone());
        let table = DispatchTable::new("pick", KEYS, on_miss, Some(1)).unwrap();
        // SAFETY: the variants read no memory.
        let function = unsafe { pick(&ROWS).or_global("unused").compile_growing(&engine, &table) }.unwrap();
        drop(engine);
        calls_of_rows_run_their_variants(&function);
        assert_eq!(made.load(Ordering::SeqCst), 0);
        assert_eq!(call(&function, DLDataType::FLOAT64, 1, 1), Ok(100));
        assert_eq!(call(&function, DLDataType::FLOAT64, 1, 1), Ok(100));
        assert_eq!(call(&function, DLDataType::FLOAT16, 1, 1), Ok(101));
        // it was evicted
        assert_eq!(call(&function, DLDataType::FLOAT64, 1, 1), Ok(102));
        calls_of_rows_run_their_variants(&function);
    }
}

/// The function keeps its code and the table, and lets go of both.
#[test]
fn the_function_keeps_its_table_and_nothing_stays() {
    let engine = Engine::new().unwrap();
    let (on_miss, made) = compiling(engine.clone());
    let table = DispatchTable::new("pick", KEYS, on_miss, None).unwrap();
    // SAFETY: the variants read no memory.
    let function = unsafe { pick(&ROWS).compile_growing(&engine, &table) }.unwrap();
    drop((engine, table));
    calls_of_rows_run_their_variants(&function);
    assert_eq!(call(&function, DLDataType::FLOAT64, 1, 1), Ok(100));
    assert_eq!(Arc::strong_count(&made), 2);
    drop(function);
    assert_eq!(Arc::strong_count(&made), 1);
}

/// Parameters and variants may have the names that the dispatch would use for its own.
#[test]
fn names_of_the_author_are_free() {
    let signature = sig("made(grow: int64, code: Tensor([grow_], any)) -> int64");
    let (variant, kernel) =
        (sig("make(grow: int64, code: Tensor([k], int8)) -> int64"), super::text("{ return grow; }"));
    let engine = Engine::new().unwrap();
    let on_miss = Function::from_packed(|args| {
        let sum = args[0].cast::<i64>()? + args[2].cast::<i64>()?;
        Ok(Function::from_packed(move |_| Ok(sum.into())).into())
    });
    let table = DispatchTable::new("made", ["size", "dtype", "grow"], on_miss, None).unwrap();
    let dispatch =
        Dispatch::new(&signature, ["size = grow_", "code.dtype", "grow"]).variant("_, int8, _", &variant, &kernel);
    // SAFETY: the variant reads no memory.
    let function = unsafe { dispatch.compile_growing(&engine, &table) }.unwrap();
    let zeros =
        |dtype| tvm_ffi_codegen::runtime::Tensor::zeros(&[3], dtype, tvm_ffi_codegen::runtime::DLDevice::CPU).unwrap();
    assert_eq!(function.call_as::<i64>((5, &zeros(DLDataType::INT8))).unwrap(), 5);
    assert_eq!(function.call_as::<i64>((5, &zeros(DLDataType::FLOAT64))).unwrap(), 8);
}

/// An `on_miss` that holds its table weakly may call it, and doesn't keep it.
#[test]
fn a_table_that_its_callback_holds_weakly_is_freed() {
    let (own, alive) = (Arc::new(OnceLock::<WeakRef>::new()), Arc::new(()));
    let (of_table, kept) = (Arc::clone(&own), Arc::clone(&alive));
    let on_miss = Function::from_packed(move |args| {
        let _kept = &kept;
        let depth: i64 = args[0].cast()?;
        let table = of_table.get().and_then(WeakRef::upgrade).map(|table| Any::from(table).cast::<Function>());
        let deeper = match table {
            Some(table) if depth > 0 => table?.call_as::<i64>((depth - 1,))?,
            _ => 0,
        };
        Ok(Function::from_packed(move |_| Ok((deeper + 1).into())).into())
    });
    let table = DispatchTable::new("deep", ["depth"], on_miss, None).unwrap();
    assert!(own.set(table.function().as_object().downgrade()).is_ok());
    assert_eq!(table.function().call_as::<i64>((3,)).unwrap(), 4);
    assert_eq!(table.stats().entries, 4);
    drop(table);
    assert_eq!(Arc::strong_count(&alive), 1);
}
