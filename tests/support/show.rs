//! Printed values: results, and arguments of kernels.

use tvm_ffi_codegen::runtime::abi::{DLDataType, DLDevice, DLDeviceType, DLTensor, TVMFFIAny, TypeIndex};
use tvm_ffi_codegen::runtime::{Any, AnyView, Array, Dict, List, Map, Shape, Tensor};

use super::element::{self, Show};
use super::names::{device_name, dtype_name, type_name};

/// Tensors with more elements are printed without them.
pub const MOST_ELEMENTS: usize = 1024;

/// A value with all of its contents: `int 3`, `str "abc"`, `Tensor([3], float32, cpu) = [1, 2, 3]`.
pub fn value(any: &Any) -> String {
    if let Ok(array) = any.cast::<Array>()
        && array.iter().any(|item| item.cast::<Tensor>().is_ok())
    {
        return sequence("Array", &array.iter().map(value).collect::<Vec<_>>());
    }
    match any.cast::<Tensor>() {
        Ok(tensor) => format!("{}{}", tensor_type(tensor.as_dl_tensor()), elements(&tensor)),
        Err(_) => brief(any.as_view()),
    }
}

/// A value, without the elements of tensors.
pub fn brief(view: AnyView<'_>) -> String {
    let raw = view.as_raw();
    if let Some(plain) = plain(raw.type_index, raw.bits()) {
        return plain;
    }
    if let Some(bytes) = view.str_bytes() {
        return text("str", bytes);
    }
    if let Some(bytes) = view.as_bytes() {
        return text("bytes", bytes);
    }
    let all = |values: &[Any]| values.iter().map(|any| brief(any.as_view())).collect::<Vec<_>>();
    let pair = |(key, value): (&Any, &Any)| (brief(key.as_view()), brief(value.as_view()));
    match view.type_index() {
        TypeIndex::SHAPE => shape(&view.cast::<Shape>().unwrap()),
        TypeIndex::ARRAY => sequence("Array", &all(&view.cast::<Array>().unwrap())),
        TypeIndex::LIST => sequence("List", &all(&view.cast::<List>().unwrap().to_vec())),
        TypeIndex::MAP => mapping("Map", view.cast::<Map>().unwrap().iter().map(pair)),
        TypeIndex::DICT => mapping("Dict", view.cast::<Dict>().unwrap().to_map().iter().map(pair)),
        TypeIndex::OBJECT_RVALUE_REF => "rvalue reference".to_owned(),
        index => type_name(index.0),
    }
}

/// The arguments of a packed call.
///
/// # Safety
/// `args` points to `num_args` valid values.
pub unsafe fn arguments(args: *const TVMFFIAny, num_args: i32) -> Vec<String> {
    // SAFETY: the caller's promise.
    (0..num_args.max(0) as usize).map(|i| brief(unsafe { AnyView::from_raw(args.add(i).read()) })).collect()
}

/// A value that is fully determined by its type index and payload.
pub fn plain(index: i32, payload: u64) -> Option<String> {
    Some(match TypeIndex(index) {
        TypeIndex::NONE => "None".to_owned(),
        TypeIndex::INT => format!("int {}", payload as i64),
        TypeIndex::BOOL if payload < 2 => format!("bool {}", payload == 1),
        TypeIndex::BOOL => format!("bool {payload}"),
        TypeIndex::FLOAT => format!("float {}", f64::from_bits(payload).show()),
        TypeIndex::OPAQUE_PTR => format!("handle {payload:#x}"),
        TypeIndex::DATA_TYPE => {
            let dtype = DLDataType::new(payload as u8, (payload >> 8) as u8, (payload >> 16) as u16);
            format!("dtype {}", dtype_name(dtype))
        }
        TypeIndex::DEVICE => {
            let device = DLDevice::new(DLDeviceType(payload as i32), (payload >> 32) as i32);
            format!("device {}", device_name(device))
        }
        TypeIndex::SMALL_STR | TypeIndex::SMALL_BYTES => return None,
        _ if payload == 0 => format!("NULL {}", type_name(index)),
        _ => return None,
    })
}

pub fn text(kind: &str, bytes: &[u8]) -> String {
    format!("{kind} \"{}\"", bytes.escape_ascii())
}

pub fn shape(extents: &[i64]) -> String {
    format!("Shape({extents:?})")
}

pub fn sequence(kind: &str, items: &[String]) -> String {
    format!("{kind}[{}]", items.join(", "))
}

pub fn mapping(kind: &str, entries: impl Iterator<Item = (String, String)>) -> String {
    let entries: Vec<String> = entries.map(|(key, value)| format!("{key}: {value}")).collect();
    format!("{kind}{{{}}}", entries.join(", "))
}

/// `Tensor([3], float32, cpu)`
fn tensor_type(tensor: &DLTensor) -> String {
    // SAFETY: a well-formed tensor has `ndim` sizes.
    let shape = unsafe { list(tensor.shape, tensor.ndim) };
    format!("Tensor({shape:?}, {}, {})", dtype_name(tensor.dtype), device_name(tensor.device))
}

/// A tensor as passed to kernels: sizes, dtype, device and strides.
///
/// # Safety
/// The tensor is well-formed.
pub unsafe fn descriptor(tensor: &DLTensor) -> String {
    // `strides` may be NULL if there are no dimensions
    let strides = match tensor.strides.is_null() && tensor.ndim > 0 {
        true => "NULL".to_owned(),
        // SAFETY: there are `ndim` strides.
        false => format!("{:?}", unsafe { list(tensor.strides, tensor.ndim) }),
    };
    format!("{}, strides {strides}", tensor_type(tensor))
}

/// # Safety
/// `numbers` points to `count` numbers.
unsafe fn list(numbers: *const i64, count: i32) -> Vec<i64> {
    // SAFETY: the caller's promise.
    (0..count.max(0) as usize).map(|i| unsafe { numbers.add(i).read() }).collect()
}

/// The elements of a contiguous tensor that the CPU can read.
fn elements(tensor: &Tensor) -> String {
    let readable = tensor.device().device_type == DLDeviceType::CPU && tensor.is_contiguous();
    if !readable || tensor.numel() > MOST_ELEMENTS {
        return String::new();
    }
    let (dtype, size) = (tensor.dtype(), tensor.dtype().itemsize());
    let first = tensor.data_ptr().cast::<u8>().wrapping_add(tensor.byte_offset() as usize);
    let one = |i: usize| {
        // SAFETY: the memory contains all elements, which generated code may have written.
        let bytes: Vec<u8> = (i * size..(i + 1) * size).map(|at| unsafe { first.add(at).read_volatile() }).collect();
        element::show(dtype, &bytes)
    };
    // elements smaller than a byte are packed, and not printed
    if dtype.bits % 8 != 0 {
        return String::new();
    }
    format!(" = [{}]", (0..tensor.numel()).map(one).collect::<Vec<_>>().join(", "))
}
