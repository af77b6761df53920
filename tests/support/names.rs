//! Names of types, dtypes and devices in messages.

use tvm_ffi_codegen::DLDeviceType;
use tvm_ffi_codegen::runtime::abi::{DLDataType, DLDevice};
use tvm_ffi_codegen::runtime::unstable::type_table::type_info;

use super::args::register_types;

/// The type of values with this index.
pub fn type_name(index: i32) -> String {
    let name = match index {
        0 => "None",
        1 => "int",
        2 => "bool",
        3 => "float",
        4 => "handle",
        5 => "dtype",
        6 => "device",
        7 | 70 => "Tensor",
        8 | 11 | 65 => "str",
        9 | 12 | 66 => "bytes",
        10 => "rvalue reference",
        64 => "Object",
        67 => "Error",
        68 => "Function",
        69 => "Shape",
        71 => "Array",
        72 => "Map",
        73 => "Module",
        74 => "Python object",
        75 => "List",
        76 => "Dict",
        77 => "VisitInterrupt",
        78 => "int of more than 64 bits",
        128.. => return type_key(index).unwrap_or_else(|| format!("type index {index}")),
        _ => return format!("type index {index}"),
    };
    name.to_owned()
}

/// The key of a type that was registered at runtime.
fn type_key(index: i32) -> Option<String> {
    register_types();
    let info = type_info(index)?;
    // SAFETY: infos are never freed.
    let key = unsafe { (*info).type_key.as_slice() };
    Some(String::from_utf8_lossy(key).into_owned())
}

/// The name of a dtype, as in NumPy and `ml_dtypes`, followed by the lanes; the numbers if it has no name.
pub fn dtype_name(dtype: DLDataType) -> String {
    let DLDataType { code, bits, lanes } = dtype;
    let fixed = |name: &str, width: u8| if bits == width { name.to_owned() } else { format!("{name}{bits}") };
    let (name, comma) = match code {
        0 => (format!("int{bits}"), ""),
        1 => (format!("uint{bits}"), ""),
        2 => (format!("float{bits}"), ""),
        3 => ("handle".to_owned(), ""),
        4 => (format!("bfloat{bits}"), ""),
        5 => (format!("complex{bits}"), ""),
        6 => (fixed("bool", 8), ""),
        7..=17 => {
            let names = [
                "float8_e3m4",
                "float8_e4m3",
                "float8_e4m3b11fnuz",
                "float8_e4m3fn",
                "float8_e4m3fnuz",
                "float8_e5m2",
                "float8_e5m2fnuz",
                "float8_e8m0fnu",
                "float6_e2m3fn",
                "float6_e3m2fn",
                "float4_e2m1fn",
            ];
            (names[usize::from(code) - 7].to_owned(), "")
        }
        _ => (format!("code {code}, {bits} bits"), ", "),
    };
    match lanes.cast_signed() {
        1 => name,
        lanes @ 0.. => format!("{name}{comma}x{lanes}"),
        scalable => format!("{name}{comma}xvscalex{}", -i32::from(scalable)),
    }
}

pub fn kind_name(kind: DLDeviceType) -> String {
    kind.name().map_or_else(|| format!("device type {}", kind.0), str::to_owned)
}

/// The name of a device; the first CPU has no number.
pub fn device_name(device: DLDevice) -> String {
    let kind = kind_name(device.device_type);
    if device == DLDevice::CPU { kind } else { format!("{kind}:{}", device.device_id) }
}
