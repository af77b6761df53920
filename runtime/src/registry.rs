//! The table of global functions, with upstream's built-in ones.
//! Built-ins are registered when the table is first used.
//! Header sections: `TVMFFIFunctionGetGlobal`, `...SetGlobal`, `...SetGlobalFromMethodInfo`.

use std::collections::BTreeMap;
use std::sync::{OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::abi::TypeIndex;
use crate::any::{Any, AnyView};
use crate::error::{Result, runtime_error, type_mismatch, value_error};
use crate::function::Function;
use crate::shape::Shape;
use crate::string::{Bytes, Str};

struct Entry {
    function: Function,
    metadata: Str,
}

type Table = BTreeMap<String, Entry>;

fn table() -> &'static RwLock<Table> {
    static TABLE: OnceLock<RwLock<Table>> = OnceLock::new();
    TABLE.get_or_init(|| RwLock::new(builtins()))
}

fn read() -> RwLockReadGuard<'static, Table> {
    table().read().unwrap_or_else(PoisonError::into_inner)
}

fn write() -> RwLockWriteGuard<'static, Table> {
    table().write().unwrap_or_else(PoisonError::into_inner)
}

/// The global function called `name`.
pub fn get_global(name: &str) -> Option<Function> {
    read().get(name).map(|entry| entry.function.clone())
}

/// Registers a global function.
///
/// # Errors
/// `RuntimeError` when the name is taken and `allow_override` is false.
pub fn set_global(name: &str, function: Function, allow_override: bool) -> Result<()> {
    set_global_with_metadata(name, function, Str::new(""), allow_override)
}

/// Registers a global function with its metadata, a JSON text.
///
/// # Errors
/// As [`set_global`].
pub fn set_global_with_metadata(name: &str, function: Function, metadata: Str, allow_override: bool) -> Result<()> {
    let entry = Entry { function, metadata };
    let old = {
        let mut table = write();
        if !allow_override && table.contains_key(name) {
            return Err(runtime_error(&format!("Global Function `{name}` is already registered")));
        }
        table.insert(name.to_owned(), entry)
    };
    // Dropped after the lock: a destructor may use the table.
    drop(old);
    Ok(())
}

/// Removes a global function, and says whether it was there.
pub fn remove_global(name: &str) -> bool {
    let old = write().remove(name);
    old.is_some()
}

/// The names of all global functions, sorted.
pub fn list_global_names() -> Vec<String> {
    read().keys().cloned().collect()
}

/// Checks a built-in function's number of arguments.
fn expect_args(name: &str, args: &[AnyView<'_>], count: usize) -> Result<()> {
    if args.len() == count {
        return Ok(());
    }
    let got = args.len();
    Err(crate::error::Error::new(
        crate::error::kind::TYPE_ERROR,
        &format!("{name}: expected {count} arguments, got {got}"),
    ))
}

fn builtins() -> Table {
    let mut table = Table::new();
    let mut add = |name: &str, function: Function| {
        let metadata = Str::new("");
        table.insert(name.to_owned(), Entry { function, metadata });
    };
    add(
        "ffi.FunctionRemoveGlobal",
        Function::from_packed(|args| {
            expect_args("ffi.FunctionRemoveGlobal", args, 1)?;
            let name: String = args[0].cast()?;
            Ok(remove_global(&name).into())
        }),
    );
    add(
        "ffi.FunctionListGlobalNamesFunctor",
        Function::from_packed(|args| {
            expect_args("ffi.FunctionListGlobalNamesFunctor", args, 0)?;
            Ok(names_functor(list_global_names()).into())
        }),
    );
    add(
        "ffi.GetGlobalFuncMetadata",
        Function::from_packed(|args| {
            expect_args("ffi.GetGlobalFuncMetadata", args, 1)?;
            let name: String = args[0].cast()?;
            match read().get(&name) {
                Some(entry) => Ok(entry.metadata.clone().into()),
                None => Err(runtime_error(&format!("Global Function is not found: {name}"))),
            }
        }),
    );
    add(
        "ffi.String",
        Function::from_packed(|args| {
            expect_args("ffi.String", args, 1)?;
            if args[0].str_bytes().is_none() {
                return Err(type_mismatch("ffi.String", args[0].type_index()));
            }
            args[0].to_owned()
        }),
    );
    add(
        "ffi.Bytes",
        Function::from_packed(|args| {
            expect_args("ffi.Bytes", args, 1)?;
            args[0].cast::<Bytes>().map(Any::from)
        }),
    );
    add("ffi.Shape", Function::from_packed(make_shape));
    table
}

/// Upstream's way to hand out names without an array: -1 asks for their number, others for a name.
fn names_functor(names: Vec<String>) -> Function {
    Function::from_packed(move |args| {
        expect_args("names functor", args, 1)?;
        let index: i64 = args[0].cast()?;
        if index < 0 {
            return Ok(names.len().into());
        }
        match names.get(index as usize) {
            Some(name) => Ok(name.as_str().into()),
            None => Err(crate::error::Error::new(
                crate::error::kind::INDEX_ERROR,
                &format!("index {index} is out of bounds for {} names", names.len()),
            )),
        }
    })
}

fn make_shape(args: &[AnyView<'_>]) -> Result<Any> {
    let mut extents = Vec::with_capacity(args.len());
    for arg in args {
        match arg.type_index() {
            TypeIndex::INT | TypeIndex::BOOL => extents.push(arg.cast::<i64>()?),
            _ => {
                return Err(value_error("Expect shape to take list of int arguments"));
            }
        }
    }
    Ok(Shape::new(&extents).into())
}
