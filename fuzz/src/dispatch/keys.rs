//! Key values in all their forms, and what they are equal by.

use std::ffi::CString;

use arbitrary::{Result as Read, Unstructured};
use tvm_ffi_codegen::runtime::abi::{DLDataType, DLDevice, TVMFFIAny, TVMFFIByteArray};
use tvm_ffi_codegen::runtime::{Any, AnyView, Array, Bytes, ObjectRef, Str, TypeIndex};

/// Texts that differ in one byte, in the byte that ends them, or at the limits of small strings and of words.
const TEXTS: [&[u8]; 10] = [
    b"",
    b"a",
    b"seven b",
    b"seven c",
    b"eight by",
    b"eight bz",
    b"a text of more than seven bytes",
    b"a text of more than seven bytez",
    b"7654321\x008",
    b"\xff",
];

/// The identity of a key value: its kind and its bytes. `None` for a value that can't be a part of a key.
pub type Identity = Option<(u8, Vec<u8>)>;

/// A key value, with what it points to.
pub struct Value {
    raw: TVMFFIAny,
    pub identity: Identity,
    _owned: Any,
    _text: Option<Box<(CString, Vec<u8>)>>,
    _array: Option<Box<TVMFFIByteArray>>,
    _reference: Option<Box<Option<ObjectRef>>>,
}

impl Value {
    fn plain(any: impl Into<Any>, identity: Identity) -> Self {
        let owned = any.into();
        Value { raw: *owned.as_raw(), identity, _owned: owned, _text: None, _array: None, _reference: None }
    }

    fn raw(index: TypeIndex, bits: u64, identity: Identity) -> Self {
        Value { raw: TVMFFIAny::from_bits(index, bits), ..Value::plain((), identity) }
    }

    pub fn view(&self) -> AnyView<'_> {
        // SAFETY: it points to memory of this value.
        unsafe { AnyView::from_raw(self.raw) }
    }

    /// The value that an input chooses.
    pub fn of(input: &mut Unstructured<'_>) -> Read<Self> {
        let plain = |kind: u8, bits: u64| Some((kind, bits.to_le_bytes().to_vec()));
        let number = i64::from(input.arbitrary::<i8>()? % 4);
        Ok(match input.int_in_range(0..=15)? {
            0..=3 => Value::plain(number, plain(1, number as u64)),
            4 => Value::plain((), plain(0, 0)),
            // a truth value is any number but 0
            5 => Value::raw(TypeIndex::BOOL, number as u64, plain(2, u64::from(number != 0))),
            6 => {
                let float = *input.choose(&[0.0, -0.0, 1.0, f64::NAN, -f64::NAN, f64::INFINITY])?;
                Value::plain(float, plain(3, float.to_bits()))
            }
            7 => {
                let dtype = *input.choose(&[DLDataType::FLOAT32, DLDataType::FLOAT16, DLDataType::INT8])?;
                let bits = u64::from(dtype.code) | u64::from(dtype.bits) << 8 | u64::from(dtype.lanes) << 16;
                // the rest of the payload means nothing
                Value::raw(TypeIndex::DATA_TYPE, bits | (number as u64) << 32, plain(4, bits))
            }
            8 => {
                let device = DLDevice { device_id: number as i32, ..DLDevice::CPU };
                Value::plain(device, plain(5, (number as u32).into()))
            }
            9..=11 => Self::text(input, true)?,
            12..=13 => Self::text(input, false)?,
            14 => Value::plain(<Array>::default(), None),
            _ => Value::raw(TypeIndex::OPAQUE_PTR, number as u64, None),
        })
    }

    /// A str or bytes in one of its forms.
    fn text(input: &mut Unstructured<'_>, is_str: bool) -> Read<Self> {
        let text: &[u8] = input.choose(&TEXTS)?;
        let identity = Some((if is_str { 6 } else { 7 }, text.to_vec()));
        let any = || match (is_str, std::str::from_utf8(text)) {
            (true, Ok(text)) => Some(Any::from(Str::new(text))),
            (true, Err(_)) => None,
            (false, _) => Some(Bytes::new(text).into()),
        };
        let form = input.int_in_range(0..=2)?;
        if let (0, Some(any)) = (form, any()) {
            return Ok(Value::plain(any, identity));
        }
        if let (1, Some(mut object)) =
            (form, any().and_then(|any| any.cast::<ObjectRef>().ok()).map(|object| Box::new(Some(object))))
        {
            // a reference through which a callee may take the object over
            let raw = TVMFFIAny::from_ptr(TypeIndex::OBJECT_RVALUE_REF, (&raw mut *object).cast());
            return Ok(Value { raw, _reference: Some(object), ..Value::plain((), identity) });
        }
        match (is_str, CString::new(text)) {
            (true, Ok(c)) => {
                let raw = TVMFFIAny::from_ptr(TypeIndex::RAW_STR, c.as_ptr().cast_mut().cast());
                Ok(Value { raw, _text: Some(Box::new((c, Vec::new()))), ..Value::plain((), identity) })
            }
            // a C string ends before a byte of 0
            (true, Err(_)) => Ok(Value::plain(String::from_utf8_lossy(text).into_owned(), identity)),
            (false, _) => {
                let held = Box::new((CString::default(), text.to_vec()));
                let array = Box::new(TVMFFIByteArray::from_slice(&held.1));
                let raw = TVMFFIAny::from_ptr(TypeIndex::BYTE_ARRAY_PTR, (&raw const *array).cast_mut().cast());
                Ok(Value { raw, _text: Some(held), _array: Some(array), ..Value::plain((), identity) })
            }
        }
    }
}

/// The identity of a value in a table's entry.
pub fn identity(value: &Any) -> Identity {
    let bits = value.as_raw().bits();
    let plain = |kind: u8, bits: u64| Some((kind, bits.to_le_bytes().to_vec()));
    match value.type_index() {
        TypeIndex::NONE => plain(0, 0),
        TypeIndex::INT => plain(1, bits),
        TypeIndex::BOOL => plain(2, u64::from(bits != 0)),
        TypeIndex::FLOAT => plain(3, bits),
        TypeIndex::DATA_TYPE => plain(4, bits & u64::from(u32::MAX)),
        TypeIndex::DEVICE => plain(5, bits >> 32),
        _ => match value.as_view().str_bytes() {
            Some(text) => Some((6, text.to_vec())),
            None => Some((7, value.as_view().as_bytes()?.to_vec())),
        },
    }
}
