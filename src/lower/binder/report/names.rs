//! Names of types, dtypes and devices in messages, and lists of them.

use crate::lower::constants::ConstantPool;
use tvm_ffi_runtime::abi::{
    DLDataType, DLDeviceType, TypeIndex, kDLBool, kDLFloat4_e2m1fn, kDLFloat8_e3m4, kDLOpaqueHandle,
};

/// The names of static types in the signature language, by type index.
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

const FLOAT: &str = "float";
/// The first type code whose name includes the number of bits. The names from this code on begin with [`FLOAT`].
pub(super) const FIRST_FIXED_WIDTH_CODE: i64 = kDLFloat8_e3m4 as i64;
/// The last type code of DLPack 1.x.
const LAST_CODE: u8 = kDLFloat4_e2m1fn;
pub(super) const FIXED_WIDTH_CODES: i64 = LAST_CODE as i64 + 1 - FIRST_FIXED_WIDTH_CODE;
pub(super) const HANDLE_CODE: i64 = kDLOpaqueHandle as i64;
pub(super) const BOOL_CODE: i64 = kDLBool as i64;

/// Marks an entry without a name in a list. An empty name ends the list.
pub(super) const NONE: u8 = 1;
const NONE_TEXT: &str = "\u{1}";

/// The number of types that are not objects; they have the first indices.
pub(super) const FEW: i64 = TYPES.len() as i64 - OBJECTS;
const OBJECTS: i64 = (TypeIndex::BIG_INT.0 - TypeIndex::STATIC_OBJECT_BEGIN.0) as i64 + 1;
const _: () = assert!(TYPES[FEW as usize].0.0 == TypeIndex::STATIC_OBJECT_BEGIN.0);
const _: () = assert!(TYPES[FEW as usize - 1].0.0 as i64 == FEW - 1);

/// Adds the names of types: a list for the first indices, and one for objects.
pub(super) fn types(pool: &mut ConstantPool) -> [u32; 2] {
    let names = TYPES.map(|(_, name)| name);
    let (few, objects) = names.split_at(FEW as usize);
    [few, objects].map(|names| pool.list(names))
}

/// Names of dtypes by code.
pub(super) struct DTypes {
    pub list: u32,
    /// The prefix that the names of fixed-width dtypes begin with and the list leaves out.
    pub float: u32,
}

pub(super) fn dtypes(pool: &mut ConstantPool) -> DTypes {
    let names: Vec<_> = (0..=LAST_CODE).map(dtype).collect();
    let list = pool.list(&names);
    let before = names.iter().take_while(|name| **name != FLOAT);
    DTypes { list, float: list + before.map(|name| name.len() as u32 + 1).sum::<u32>() }
}

/// The name of a type code; for fixed-width codes, without [`FLOAT`].
fn dtype(code: u8) -> &'static str {
    match DLDataType::code_name(code) {
        Some(name) if i64::from(code) >= FIRST_FIXED_WIDTH_CODE => name.strip_prefix(FLOAT).unwrap_or(name),
        Some(name) => name,
        // upstream has no name for this code
        None => "complex",
    }
}

/// Names of devices by type.
pub(super) fn devices(pool: &mut ConstantPool) -> u32 {
    let last = DLDeviceType::ALL.iter().map(|kind| kind.0).max().unwrap_or_default();
    let names: Vec<_> = (0..=last).map(|kind| DLDeviceType(kind).name().unwrap_or(NONE_TEXT)).collect();
    pool.list(&names)
}
