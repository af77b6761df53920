//! Prints values in the format of all hosts.

use tvm_ffi_runtime::{Any, Array, DLDataType, DLDevice, Map, Shape, Tensor, TryFromAny, TypeIndex};

fn list<T>(items: impl IntoIterator<Item = T>, show: impl FnMut(T) -> String) -> String {
    items.into_iter().map(show).collect::<Vec<_>>().join(", ")
}

/// Converts a value that has this type.
fn cast<T: TryFromAny>(value: &Any) -> T {
    value.cast().expect("a value is what its type index says")
}

fn tensor(tensor: &Tensor) -> String {
    let elements = tensor.to_vec::<f32>().expect("float32");
    format!("Tensor({:?}, {}, [{}])", tensor.shape(), tensor.dtype(), list(&elements, f32::to_string))
}

/// A value in the format of all hosts.
pub fn show(value: &Any) -> String {
    match value.type_index() {
        TypeIndex::NONE => "None".to_owned(),
        TypeIndex::INT => cast::<i64>(value).to_string(),
        TypeIndex::BOOL => if cast(value) { "True" } else { "False" }.to_owned(),
        TypeIndex::FLOAT => cast::<f64>(value).to_string(),
        TypeIndex::OPAQUE_PTR => "handle".to_owned(),
        TypeIndex::DATA_TYPE => cast::<DLDataType>(value).to_string(),
        TypeIndex::DEVICE => cast::<DLDevice>(value).to_string(),
        TypeIndex::SMALL_STR | TypeIndex::STR => format!("\"{}\"", cast::<String>(value)),
        TypeIndex::SMALL_BYTES | TypeIndex::BYTES => {
            format!("b\"{}\"", String::from_utf8_lossy(value.as_bytes().unwrap_or_default()))
        }
        TypeIndex::SHAPE => format!("Shape({})", list(cast::<Shape>(value).as_slice(), i64::to_string)),
        TypeIndex::TENSOR => tensor(&cast(value)),
        TypeIndex::ARRAY => format!("[{}]", list(cast::<Array>(value).as_slice(), show)),
        TypeIndex::MAP => {
            let entry = |(key, value): (&Any, &Any)| format!("{}: {}", show(key), show(value));
            format!("{{{}}}", list(cast::<Map>(value).iter(), entry))
        }
        TypeIndex::FUNCTION => "Function".to_owned(),
        TypeIndex::MODULE => "Module".to_owned(),
        index => format!("type index {}", index.0),
    }
}
