//! Graphs of objects as JSON: `ffi.ToJSONGraph`, `ffi.FromJSONGraph`. Each value is a node `{"type": ..., "data": ...}`
//! of the list `nodes`, where values that contain others have the numbers of their nodes. An object that is reached
//! twice is one node. Neither direction recurses with the depth of a graph.
//! No header section: upstream's `extra/serialization.cc`.

mod enums;
mod read;
mod write;

pub(super) use read::from_json;
pub(super) use write::to_json;

use crate::abi::*;
use crate::any::Any;
use crate::error::{Result, value_error};
use crate::reflect::accessors::convert;
use crate::reflect::field;
use crate::string::{Str, raw_str_from_bytes};
use crate::type_table::fields;

/// How a field of a declared type stands in the data of its object.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Place {
    /// As itself.
    Inline,
    /// As the name of a data type.
    DataType,
    /// As the number of a node.
    Node,
}

/// A field of an object.
struct Member {
    info: &'static TVMFFIFieldInfo,
    place: Place,
    name: Any,
}

impl Member {
    fn new(info: &'static TVMFFIFieldInfo) -> Self {
        let place = match TypeIndex(info.field_static_type_index) {
            TypeIndex::NONE | TypeIndex::BOOL | TypeIndex::INT | TypeIndex::FLOAT => Place::Inline,
            TypeIndex::DATA_TYPE => Place::DataType,
            _ => Place::Node,
        };
        // SAFETY: the value is a new one.
        let name = unsafe { Any::from_raw(raw_str_from_bytes(field::name(info))) };
        Self { info, place, name }
    }

    /// The fields of a type.
    ///
    /// # Errors
    /// `InternalError` for an unknown type.
    fn all(index: TypeIndex) -> Result<Vec<Self>> {
        Ok(fields(index)?.into_iter().map(Self::new).collect())
    }

    /// The value of a field that stands in the data as itself.
    ///
    /// # Errors
    /// `TypeError` for a value of another type than the field's.
    fn inline(&self, value: &Any) -> Result<Any> {
        Ok(match TypeIndex(self.info.field_static_type_index) {
            TypeIndex::BOOL => convert::<bool>(value.as_view(), "bool")?.into(),
            TypeIndex::INT => convert::<i64>(value.as_view(), "int")?.into(),
            TypeIndex::FLOAT => convert::<f64>(value.as_view(), "float")?.into(),
            _ => Any::none(),
        })
    }
}

/// The name of a data type. Upstream has none for complex types.
fn name_of_dtype(value: &Any) -> Result<Any> {
    let dtype: DLDataType = value.cast()?;
    let name = if dtype.code == kDLComplex { Ok(dtype.to_string()) } else { dtype.name() };
    name.map(|name| name.as_str().into()).map_err(|error| value_error(&error.to_string()))
}

fn dtype_of_name(name: &Any) -> Result<Any> {
    let dtype = convert::<Str>(name.as_view(), "str")?.as_str().parse::<DLDataType>();
    dtype.map(Any::from).map_err(|error| value_error(&error.to_string()))
}
