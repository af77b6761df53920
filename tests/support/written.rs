//! Kernels that write their result: the value whose name they receive, valid or invalid.

use std::ffi::c_void;
use std::sync::Arc;

use tvm_ffi_codegen::runtime::abi::{DLDevice, DLTensor, TVMFFIAny, TVMFFIByteArray, TypeIndex};
use tvm_ffi_codegen::runtime::error::set_raised;
use tvm_ffi_codegen::runtime::{
    Any, AnyView, Array, Bytes, Dict, Element, Error, Function, List, Map, Shape, Str, Tensor,
};
use tvm_ffi_codegen::{DLDataType, DLDeviceType};

use super::args::new_object;
use super::modules;
use super::value::Thing;

thread_local! {
    /// Functions created by these kernels keep a reference to this until they are released.
    static ALIVE: Arc<()> = Arc::new(());
}

/// Whether all values of these kernels have been released.
pub fn all_released() -> bool {
    ALIVE.with(|alive| Arc::strong_count(alive) == 1)
}

/// A function whose release [`all_released`] detects. It must be released exactly once, alone or in a container.
fn function() -> Function {
    let token = ALIVE.with(Arc::clone);
    Function::from_packed(move |_| {
        let _ = &token;
        Ok(().into())
    })
}

const LONG: &str = "a text that is too long for the value";

/// The value with this name.
fn named(name: &str) -> Option<TVMFFIAny> {
    let owned: Any = match name {
        "None" => Any::none(),
        "int" => Any::from(7),
        "300" => Any::from(300),
        "float" => Any::from(1.5),
        "0.1" => Any::from(0.1),
        "bool" => Any::from(true),
        "dtype" => Any::from(DLDataType::FLOAT32),
        "device" => Any::from(DLDevice::new(DLDeviceType::CUDA, 1)),
        "short str" => Any::from(Str::new("short")),
        "long str" => Any::from(Str::new(LONG)),
        "short bytes" => Any::from(Bytes::new(b"\0s")),
        "long bytes" => Any::from(Bytes::new(LONG.as_bytes())),
        "Function" => Any::from(function()),
        "Module" => Any::from(modules::empty("test")),
        "Shape" => Any::from(Shape::new(&[1, 2])),
        "Error" => Any::from(Error::new("ValueError", "a result")),
        "Thing" => new_object(Thing::Base),
        "Sub" => new_object(Thing::Sub),
        "Tensor" => Any::from(Tensor::from_slice(&[1f32, 2.0], &[2]).ok()?),
        "Array" => Any::from(Array::from(vec![Any::from(1), function().into()])),
        "List" => Any::from([Any::from(1), function().into()].into_iter().collect::<List>()),
        "Map" => Any::from(Map::try_from_entries([("a", function())]).ok()?),
        "Dict" => Any::from(Dict::try_from_entries([("a", function())]).ok()?),
        _ => return borrowed_or_broken(name),
    };
    Some(owned.into_raw())
}

fn pointer<T>(index: TypeIndex, to: *const T) -> TVMFFIAny {
    TVMFFIAny::from_bits(index, to.expose_provenance() as u64)
}

/// A value that is invalid as a result, or must be converted. Its memory is never freed.
fn borrowed_or_broken(name: &str) -> Option<TVMFFIAny> {
    Some(match name {
        "const char*" => pointer(TypeIndex::RAW_STR, c"from C".as_ptr()),
        "long const char*" => pointer(TypeIndex::RAW_STR, c"a text of C that is too long for the value".as_ptr()),
        "TVMFFIByteArray*" => {
            let bytes = Box::leak(Box::new(TVMFFIByteArray { data: LONG.as_ptr().cast(), size: 6 }));
            pointer(TypeIndex::BYTE_ARRAY_PTR, bytes)
        }
        "DLTensor*" => {
            let (element, shape, strides): (&mut f32, _, _) =
                (Box::leak(Box::new(1.0)), Box::leak(Box::new(1)), Box::leak(Box::new(1)));
            let tensor = DLTensor {
                data: (&raw mut *element).cast(),
                device: DLDevice::CPU,
                ndim: 1,
                dtype: <f32 as Element>::DTYPE,
                shape,
                strides,
                byte_offset: 0,
            };
            pointer(TypeIndex::DL_TENSOR_PTR, Box::leak(Box::new(tensor)))
        }
        "rvalue reference" => TVMFFIAny::from_bits(TypeIndex::OBJECT_RVALUE_REF, 0),
        "bool 7" => TVMFFIAny::from_bits(TypeIndex::BOOL, 7),
        "padded int" => TVMFFIAny { zero_padding: 0xa5a5, ..TVMFFIAny::from_bits(TypeIndex::INT, 7) },
        "handle" => TVMFFIAny::from_bits(TypeIndex::OPAQUE_PTR, 0x1000),
        "NULL const char*" => TVMFFIAny::from_bits(TypeIndex::RAW_STR, 0),
        "NULL TVMFFIByteArray*" => TVMFFIAny::from_bits(TypeIndex::BYTE_ARRAY_PTR, 0),
        "NULL str" => TVMFFIAny::from_bits(TypeIndex::STR, 0),
        "NULL Function" => TVMFFIAny::from_bits(TypeIndex::FUNCTION, 0),
        "NULL Array" => TVMFFIAny::from_bits(TypeIndex::ARRAY, 0),
        "unknown" => TVMFFIAny::from_bits(TypeIndex(60), 5),
        _ => return None,
    })
}

/// Writes the value with this name, unless it is "nothing"; also raises an error if `code` is negative.
///
/// # Safety
/// `result` is a valid place for a value.
unsafe fn write_named(name: &[u8], code: i32, result: *mut TVMFFIAny) -> i32 {
    let name = String::from_utf8_lossy(name);
    if name != "nothing" {
        let Some(value) = named(&name) else {
            set_raised(Error::new("KeyError", &format!("the kernel knows no `{name}`")));
            return -1;
        };
        // SAFETY: the caller's promise.
        unsafe { result.write(value) };
    }
    if code < 0 {
        set_raised(Error::new("KeyError", "the kernel's own words"));
    }
    code
}

/// (what: str, code: int32) -> T, returns the code
pub unsafe extern "C" fn write(what: *const u8, size: usize, code: i32, result: *mut TVMFFIAny) -> i32 {
    // SAFETY: the arguments are those of the convention.
    unsafe { write_named(std::slice::from_raw_parts(what, size), code, result) }
}

/// The same, `packed`
pub unsafe extern "C" fn write_packed(_: *mut c_void, args: *const TVMFFIAny, _: i32, result: *mut TVMFFIAny) -> i32 {
    // SAFETY: the arguments are those of the convention.
    unsafe {
        let what = AnyView::from_raw(args.read());
        let code = args.add(1).read().bits() as i32;
        write_named(what.str_bytes().unwrap_or_default(), code, result)
    }
}
