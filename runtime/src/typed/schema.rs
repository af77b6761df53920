//! The names of types in messages, and their schemas in the metadata that binding generators read.
//! Both match upstream's `TypeTraits<T>::TypeStr()` and `TypeSchema()`.

use std::ffi::c_void;

use crate::abi::{DLDataType, DLDevice, DLTensor};
use crate::any::{Any, AnyView, TryFromAny};
use crate::container::{Array, ContainerItem, Dict, List, Map};
use crate::error::Error;
use crate::function::Function;
use crate::heap::ObjectRef;
use crate::module::Module;
use crate::shape::Shape;
use crate::string::{Bytes, Str};
use crate::tensor::Tensor;

/// The name and schema of a type in TVM FFI.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no name in TVM FFI",
    label = "expected a type of TVM FFI",
    note = "numbers, `bool`, strings, `Option`, containers, `Tensor`, `Function`, `Obj<T>` and `Any` are such types"
)]
pub trait TypeSchema {
    /// Its name in messages, such as `int` or `Optional<str>`.
    fn type_name() -> String;

    /// Its schema, a JSON string such as `{"type":"int"}`. Python reads it with
    /// `tvm_ffi.core.TypeSchema.from_json_str`.
    fn type_schema() -> String;

    /// Describes a value that doesn't convert, for messages: its type key. For a container, the description includes
    /// the element that doesn't convert.
    fn mismatch(view: AnyView<'_>) -> String {
        view.type_key()
    }
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

    fn mismatch(view: AnyView<'_>) -> String {
        T::mismatch(view)
    }
}

macro_rules! sequences {
    ($($ty:ident: $name:literal;)*) => {$(
        impl<T: ContainerItem + TypeSchema> TypeSchema for $ty<T> {
            fn type_name() -> String {
                format!("{}<{}>", $name, T::type_name())
            }

            fn type_schema() -> String {
                format!("{{\"type\":\"ffi.{}\",\"args\":[{}]}}", $name, T::type_schema())
            }

            fn mismatch(view: AnyView<'_>) -> String {
                let values = container::<Array>(view).map(|array| array.to_vec()).unwrap_or_default();
                match values.iter().enumerate().find(|(_, value)| value.cast::<T>().is_err()) {
                    Some((index, value)) => format!("{}[index {index}: {}]", $name, T::mismatch(value.as_view())),
                    None => view.type_key(),
                }
            }
        }
    )*};
}
sequences! {
    Array: "Array";
    List: "List";
}

macro_rules! maps {
    ($($ty:ident: $name:literal;)*) => {$(
        impl<K: ContainerItem + TypeSchema, V: TryFromAny + Into<Any> + TypeSchema> TypeSchema for $ty<K, V> {
            fn type_name() -> String {
                format!("{}<{}, {}>", $name, K::type_name(), V::type_name())
            }

            fn type_schema() -> String {
                format!("{{\"type\":\"ffi.{}\",\"args\":[{},{}]}}", $name, K::type_schema(), V::type_schema())
            }

            fn mismatch(view: AnyView<'_>) -> String {
                for (key, value) in &container::<Map>(view).unwrap_or_default() {
                    if key.cast::<K>().is_err() {
                        return format!("{}[some key is {}, V]", $name, K::mismatch(key.as_view()));
                    }
                    if value.cast::<V>().is_err() {
                        return format!("{}[K, some value is {}]", $name, V::mismatch(value.as_view()));
                    }
                }
                view.type_key()
            }
        }
    )*};
}
maps! {
    Map: "Map";
    Dict: "Dict";
}

/// The container in a value. An r-value argument keeps it.
fn container<T: TryFromAny>(view: AnyView<'_>) -> Option<T> {
    Any::from(view.shared_object()?).cast().ok()
}

/// The metadata for a schema, as a JSON object.
pub(crate) fn metadata(schema: &str) -> String {
    format!("{{\"type_schema\":{}}}", json_string(schema))
}

/// Encodes a string as JSON.
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
