//! What types are called: in messages, and in the metadata that binding generators read.
//! Names and schemas are those of upstream's `TypeTraits<T>::TypeStr()` and `TypeSchema()`.

use std::ffi::c_void;

use crate::abi::{DLDataType, DLDevice, DLTensor};
use crate::any::{Any, AnyView};
use crate::container::{Array, Dict, List, Map};
use crate::error::Error;
use crate::function::Function;
use crate::heap::ObjectRef;
use crate::module::Module;
use crate::shape::Shape;
use crate::string::{Bytes, Str};
use crate::tensor::Tensor;

/// What a type is called by TVM FFI.
pub trait TypeSchema {
    /// Its name in messages, such as `int` or `Optional<str>`.
    fn type_name() -> String;

    /// Its schema, a JSON text such as `{"type":"int"}`, which `tvm_ffi.core.TypeSchema.from_json_str` reads.
    fn type_schema() -> String;
}

macro_rules! named {
    ($($name:literal, $schema:literal: $($ty:ty),*;)*) => {$($(
        impl TypeSchema for $ty {
            fn type_name() -> String {
                $name.to_owned()
            }

            fn type_schema() -> String {
                concat!("{\"type\":\"", $schema, "\"}").to_owned()
            }
        }
    )*)*};
}
named! {
    "None", "None": ();
    "int", "int": i8, i16, i32, i64, u8, u16, u32, u64, isize, usize;
    "float", "float": f32, f64;
    "bool", "bool": bool;
    "str", "ffi.String": Str, String, &str;
    "bytes", "ffi.Bytes": Bytes, &[u8];
    "DataType", "DataType": DLDataType;
    "Device", "Device": DLDevice;
    "void*", "void*": *mut c_void;
    "DLTensor*", "DLTensor*": *mut DLTensor;
    "Any", "Any": Any, AnyView<'_>;
    "ffi.Object", "ffi.Object": ObjectRef;
    "ffi.Error", "ffi.Error": Error;
    "ffi.Function", "ffi.Function": Function;
    "ffi.Module", "ffi.Module": Module;
    "ffi.Shape", "ffi.Shape": Shape;
    "ffi.Tensor", "ffi.Tensor": Tensor;
    "ffi.Array", "ffi.Array": Array;
    "ffi.List", "ffi.List": List;
    "ffi.Map", "ffi.Map": Map;
    "ffi.Dict", "ffi.Dict": Dict;
}

impl<T: TypeSchema> TypeSchema for Option<T> {
    fn type_name() -> String {
        format!("Optional<{}>", T::type_name())
    }

    fn type_schema() -> String {
        format!("{{\"type\":\"Optional\",\"args\":[{}]}}", T::type_schema())
    }
}

/// The metadata of what has that schema: a JSON object.
pub(crate) fn metadata(schema: &str) -> String {
    format!("{{\"type_schema\":{}}}", json_string(schema))
}

/// A text as JSON writes it.
fn json_string(text: &str) -> String {
    let mut json = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => json.extend(['\\', c]),
            c if c < ' ' => json.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => json.push(c),
        }
    }
    json.push('"');
    json
}
