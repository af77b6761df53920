//! Names of types, dtypes and devices in messages, and lists of them.

use super::super::messages::Messages;
use tvm_ffi_runtime::abi::{DLDeviceType, TypeIndex};

/// What an argument of a static type is called, by type index, in the words of the signature language.
const TYPES: [(TypeIndex, &str); 28] = [
    (TypeIndex::NONE, "None"),
    (TypeIndex::INT, "int"),
    (TypeIndex::BOOL, "bool"),
    (TypeIndex::FLOAT, "float"),
    (TypeIndex::OPAQUE_PTR, "handle"),
    (TypeIndex::DATA_TYPE, "dtype"),
    (TypeIndex::DEVICE, "device"),
    (TypeIndex::DL_TENSOR_PTR, "Tensor"),
    (TypeIndex::RAW_STR, "str"),
    (TypeIndex::BYTE_ARRAY_PTR, "bytes"),
    (TypeIndex::OBJECT_RVALUE_REF, "rvalue reference"),
    (TypeIndex::SMALL_STR, "str"),
    (TypeIndex::SMALL_BYTES, "bytes"),
    (TypeIndex::OBJECT, "Object"),
    (TypeIndex::STR, "str"),
    (TypeIndex::BYTES, "bytes"),
    (TypeIndex::ERROR, "Error"),
    (TypeIndex::FUNCTION, "Function"),
    (TypeIndex::SHAPE, "Shape"),
    (TypeIndex::TENSOR, "Tensor"),
    (TypeIndex::ARRAY, "Array"),
    (TypeIndex::MAP, "Map"),
    (TypeIndex::MODULE, "Module"),
    (TypeIndex::OPAQUE_PY_OBJECT, "Python object"),
    (TypeIndex::LIST, "List"),
    (TypeIndex::DICT, "Dict"),
    (TypeIndex::VISIT_INTERRUPT, "VisitInterrupt"),
    (TypeIndex::BIG_INT, "int of more than 64 bits"),
];

/// Names of `DLDataTypeCode`, by code (`dlpack.h`).
const DTYPES: [&str; 18] = [
    "int",
    "uint",
    "float",
    "handle",
    "bfloat",
    "complex",
    "bool",
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
/// From this code on the name tells the number of bits.
pub(super) const FIRST_FIXED_WIDTH_CODE: i64 = 7;
pub(super) const HANDLE_CODE: i64 = 3;
pub(super) const BOOL_CODE: i64 = 6;

/// Device types end here (`DLDeviceType` of DLPack 1.3).
const LAST_DEVICE_TYPE: i32 = 18;

/// Names one behind the other, empty where there is none; an empty one is behind the last.
#[derive(Clone, Copy)]
pub(super) struct NameList {
    pub offset: u32,
    pub len: i64,
}

fn list(texts: &mut Messages, names: &[&str]) -> NameList {
    NameList { offset: texts.list(names), len: names.len() as i64 }
}

/// How many types are no objects: those of the first indices. Objects' names come before theirs.
pub(super) const FEW: i64 = TYPES.len() as i64 - OBJECTS;
pub(super) const OBJECTS: i64 = (TypeIndex::BIG_INT.0 - TypeIndex::STATIC_OBJECT_BEGIN.0) as i64 + 1;
const _: () = assert!(TYPES[FEW as usize].0.0 == TypeIndex::STATIC_OBJECT_BEGIN.0);
const _: () = assert!(TYPES[FEW as usize - 1].0.0 as i64 == FEW - 1);

/// Names of types: of objects in the order of their indices, then of the others.
pub(super) fn types(texts: &mut Messages) -> NameList {
    let mut names = TYPES.map(|(_, name)| name);
    names.rotate_left(FEW as usize);
    list(texts, &names)
}

/// Names of dtypes by code.
pub(super) fn dtypes(texts: &mut Messages) -> NameList {
    list(texts, &DTYPES)
}

/// Names of devices by type.
pub(super) fn devices(texts: &mut Messages) -> NameList {
    let names: Vec<_> = (0..=LAST_DEVICE_TYPE).map(|code| DLDeviceType(code).name().unwrap_or("")).collect();
    list(texts, &names)
}
