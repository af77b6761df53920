//! The functions that programs call, and a record of their calls.

use std::cell::RefCell;
use std::sync::LazyLock;

use tvm_ffi_codegen::runtime::abi::TypeIndex;
use tvm_ffi_codegen::runtime::registry::set_global;
use tvm_ffi_codegen::runtime::{Any, AnyView, Array, Error, Function, ObjectRef, Tensor};

/// Maximum number of recorded calls.
const MOST_CALLS: usize = 5_000;

thread_local! {
    static CALLS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Registers the functions, once.
pub fn register() {
    static REGISTERED: LazyLock<()> = LazyLock::new(|| {
        for (name, function) in functions() {
            set_global(name, function, true).expect("a function is registered");
        }
    });
    LazyLock::force(&REGISTERED);
}

/// Begins a new record.
pub fn forget() {
    CALLS.with_borrow_mut(Vec::clear);
}

/// Takes the record.
pub fn calls() -> Vec<String> {
    CALLS.take()
}

fn record(call: String) {
    CALLS.with_borrow_mut(|calls| {
        if calls.len() < MOST_CALLS {
            calls.push(call);
        }
    });
}

fn functions() -> Vec<(&'static str, Function)> {
    let packed = |name, function: fn(&[AnyView<'_>]) -> Result<Any, Error>| (name, Function::from_packed(function));
    vec![
        packed("fuzz.log", |args| {
            record(args.iter().map(show).collect::<Vec<_>>().join(" "));
            Ok(Any::none())
        }),
        packed("fuzz.int", |args| {
            let value: i64 = args[0].cast()?;
            record(format!("int {value}"));
            match value % 3 {
                0 => Err(Error::new("ValueError", &format!("refused {value}"))),
                _ => Ok(value.wrapping_mul(3).into()),
            }
        }),
        packed("fuzz.echo", |args| args[0].to_owned()),
        packed("fuzz.pair", |args| match args[0].cast::<i64>()? {
            // the caller then refuses it
            value if value % 7 == 3 => Ok(Any::none()),
            value => {
                let array = [Any::from(value), Any::from("the second, on the heap")].into_iter().collect::<Array>();
                Ok(array.into())
            }
        }),
        packed("fuzz.tensor", |args| {
            let value: i64 = args[0].cast()?;
            Ok(Tensor::from_slice(&[value, 1, 2, 3], &[4])?.into())
        }),
        packed("fuzz.function", |args| {
            let value: i64 = args[0].cast()?;
            let function = Function::from_packed(move |args| {
                record(format!("function {value}"));
                match value % 5 {
                    2 => Err(Error::new("KeyError", "refused by a function")),
                    _ => args.first().map_or(Ok(Any::none()), |first| first.to_owned()),
                }
            });
            Ok(function.into())
        }),
    ]
}

/// A value without addresses.
fn show(value: &AnyView<'_>) -> String {
    if let Ok(tensor) = value.cast::<Tensor>() {
        let first = tensor.to_vec::<i64>().map(|elements| elements.first().copied());
        return format!("tensor {:?} {:?}", tensor.shape(), first.unwrap_or_default());
    }
    if let Ok(error) = value.cast::<Error>() {
        return format!("error {error}");
    }
    if let Ok(array) = value.cast::<Array>() {
        return format!("[{}]", array.iter().map(|item| show(&item.as_view())).collect::<Vec<_>>().join(", "));
    }
    if let Some(bytes) = value.as_bytes() {
        return format!("bytes {bytes:?}");
    }
    match value.type_index() {
        TypeIndex::DL_TENSOR_PTR => "a DLTensor".to_owned(),
        // an argument that a body moves; this callee leaves it in place
        TypeIndex::OBJECT_RVALUE_REF => {
            value.cast::<Any>().map_or_else(|_| "a moved object".to_owned(), |moved| show(&moved.as_view()))
        }
        index if index >= TypeIndex::STATIC_OBJECT_BEGIN && value.cast::<String>().is_err() => {
            value.cast::<ObjectRef>().map_or_else(|_| "an object".to_owned(), |object| object.type_key().to_string())
        }
        _ => format!("{value:?}"),
    }
}
