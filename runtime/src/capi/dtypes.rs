//! Names of element types for C code. Beside those of [`DLDataType`] these are custom types, such as `custom[posit]8`.
//! Their owner registers two global functions, which turn names into type codes and back.

use crate::abi::*;
use crate::any::Any;
use crate::dtype::{DTypeParseError, custom_parts, with_code};
use crate::error::{Error, Result, value_error};
use crate::function::CallArgs;
use crate::registry::find;

const CODE_OF_NAME: &str = "dtype.get_custom_type_code";
const NAME_OF_CODE: &str = "dtype.get_custom_type_name";

/// The bits of a custom type whose name has none.
const DEFAULT_BITS: u8 = 32;

/// Reads a name.
pub(super) fn parse(text: &str) -> Result<DLDataType> {
    let unknown = match DLDataType::from_upstream_name(text) {
        Err(unknown @ DTypeParseError::Custom(_)) => unknown,
        dtype => return dtype.map_err(error),
    };
    let Some((name, rest)) = custom_parts(text) else { return Err(error(unknown)) };
    let code: i64 = call(CODE_OF_NAME, (name,), unknown)?.cast()?;
    let code = u8::try_from(code).map_err(|_| value_error(&format!("`{CODE_OF_NAME}` returned {code}")))?;
    with_code(text, rest, code, DEFAULT_BITS).map_err(error)
}

/// Writes a name.
pub(super) fn name(dtype: DLDataType) -> Result<String> {
    match dtype.name() {
        Err(unknown @ DTypeParseError::Custom(_)) => {
            let name: String = call(NAME_OF_CODE, (i64::from(dtype.code),), unknown)?.cast()?;
            Ok(dtype.name_with(&format!("custom[{name}]")))
        }
        name => name.map_err(error),
    }
}

/// Calls a global function. Without it, the type is unknown.
fn call(name: &str, args: impl CallArgs, unknown: DTypeParseError) -> Result<Any> {
    find(name.as_bytes()).ok_or_else(|| error(unknown))?.call(args)
}

fn error(error: DTypeParseError) -> Error {
    value_error(&error.to_string())
}
