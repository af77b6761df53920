//! A signature as data: the program that [`super::support::bind`] runs when the good path has a doubt.
//!
//! A program is a run of 32-bit words in the module's message table: a header, then a record for each parameter. Numbers of 64
//! bits take two words, low half first. Texts are offsets in the table.

use super::messages::Messages;
use crate::spec::{Device, Dim, Layout, Param, ParamType, ScalarType, Signature, TensorType};
use tvm_ffi_runtime::abi::{DLDataType, DLDeviceType, DLTensor, TVMFFIAny};

/// Words of the header.
pub(super) mod header {
    /// Number of parameters.
    pub const PARAMS: i32 = 0;
    /// The text `` when calling: `...`, expected ``.
    pub const CALLING: i32 = 1;
    /// Number of symbols.
    pub const SYMBOLS: i32 = 2;
    /// Number of distinct device types.
    pub const DEVICES: i32 = 3;
    /// Where the first record is.
    pub const SIZE: i32 = 4;
}

/// Words that every record begins with.
pub(super) mod record {
    /// What follows; see [`super::Kind`].
    pub const KIND: i32 = 0;
    /// The parameter's name.
    pub const NAME: i32 = 1;
    /// What is expected, as text: a scalar's type.
    pub const TEXT: i32 = 2;
}

/// Words of a scalar's record, after the common ones.
pub(super) mod scalar {
    /// For a number, 64 less its width in bits.
    pub const UNUSED_BITS: i32 = 3;
    /// For a narrow integer, its type and range as text.
    pub const RANGE: i32 = 4;
    pub const SIZE: i32 = 5;
}

/// Words of a tensor's record, after the common ones; then an entry for each dimension, then one for each stated stride.
pub(super) mod tensor {
    /// See [`super::OPAQUE`] and [`super::STRIDED`].
    pub const FLAGS: i32 = 3;
    pub const RANK: i32 = 4;
    /// The `DLDataType`, as a little-endian load gives it.
    pub const DTYPE: i32 = 5;
    pub const DTYPE_TEXT: i32 = 6;
    pub const DEVICE_TYPE: i32 = 7;
    /// The device's id, or -1 for that of the first tensor in the same device slot.
    pub const DEVICE_ID: i32 = 8;
    pub const DEVICE_TEXT: i32 = 9;
    pub const DEVICE_SLOT: i32 = 10;
    pub const ALIGN: i32 = 11;
    /// `data + byte_offset`, or what else is aligned.
    pub const ALIGN_TEXT: i32 = 12;
    pub const SIZE: i32 = 13;
}

/// Words of an entry for a dimension or stride.
pub(super) mod entry {
    /// 0 for a constant, 1 for a symbol.
    pub const IS_SYMBOL: i32 = 0;
    /// The constant's low half, or the symbol's number.
    pub const VALUE: i32 = 1;
    /// The constant's high half, or the symbol's name.
    pub const HIGH_OR_NAME: i32 = 2;
    pub const SIZE: i32 = 3;
}

/// The data pointer is a handle that no byte offset can be added to.
pub(super) const OPAQUE: u32 = 1;
/// Strides are stated.
pub(super) const STRIDED: u32 = 2;

/// Kinds of records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(super) enum Kind {
    Signed,
    Unsigned,
    Float,
    Bool,
    Handle,
    Tensor,
}

/// The memory in the wrapper's frame that `bind` writes to: arguments that the good path accepts, then its own notes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scratch {
    pub bytes: u32,
}

/// Bytes of a symbol's or device's note: its value, and where it comes from.
pub(super) const NOTE: i64 = 32;

/// The layout after the arguments: symbols, devices, then for each tensor its `DLTensor` and its strides.
fn scratch(signature: &Signature, symbols: usize, devices: usize) -> Scratch {
    let mut bytes = signature.params().len() * size_of::<TVMFFIAny>() + (symbols + devices) * NOTE as usize;
    for param in signature.params() {
        if let ParamType::Tensor(tensor) = &param.ty {
            bytes += size_of::<DLTensor>() + 8 * tensor.shape.len();
        }
    }
    Scratch { bytes: bytes as u32 }
}

/// A `DLDataType` as the 32 bits that a little-endian load of it gives.
pub(super) fn dtype_word(dtype: DLDataType) -> u32 {
    u32::from(dtype.code) | u32::from(dtype.bits) << 8 | u32::from(dtype.lanes) << 16
}

/// The kinds of devices that a signature names, in order of appearance, each with the id that tensors without one share.
pub(super) struct Devices(Vec<(DLDeviceType, Shared)>);

/// What the stated ids of one kind of device say about the tensors without.
#[derive(Clone, Copy, PartialEq)]
enum Shared {
    /// None is stated: the first tensor says it.
    Open,
    /// All that state one state this one.
    Stated(i32),
    /// Different ones are stated: the tensors without share one among themselves.
    Mixed,
}

impl Devices {
    pub(super) fn of(signature: &Signature) -> Self {
        let mut kinds: Vec<(DLDeviceType, Shared)> = Vec::new();
        for param in signature.params() {
            let ParamType::Tensor(tensor) = &param.ty else { continue };
            let Device { device_type, id } = tensor.device;
            let at = kinds.iter().position(|(known, _)| *known == device_type).unwrap_or_else(|| {
                kinds.push((device_type, Shared::Open));
                kinds.len() - 1
            });
            let shared = &mut kinds[at].1;
            *shared = match (*shared, id) {
                (before, None) => before,
                (Shared::Open, Some(id)) => Shared::Stated(id),
                (Shared::Stated(known), Some(id)) if known == id => Shared::Stated(id),
                (_, Some(_)) => Shared::Mixed,
            };
        }
        Devices(kinds)
    }

    /// Where a tensor has to be, and the number of its kind of device.
    pub(super) fn place(&self, tensor: &TensorType) -> (Device, u32) {
        // every kind of the signature is there
        let slot = self.0.iter().position(|(kind, _)| *kind == tensor.device.device_type).unwrap_or(0);
        let shared = match self.0.get(slot) {
            Some((_, Shared::Stated(id))) => Some(*id),
            _ => None,
        };
        (Device { id: tensor.device.id.or(shared), ..tensor.device }, slot as u32)
    }
}

/// Writes a signature's program into the table; gives its offset and the scratch memory that it needs.
pub(super) fn encode(texts: &mut Messages, signature: &Signature, devices: &Devices) -> (u32, Scratch) {
    let symbols = signature.symbols();
    let calling = texts.text(&format!(" when calling: `{signature}`, expected "));
    let mut words = vec![signature.params().len() as u32, calling, symbols.len() as u32, devices.0.len() as u32];
    for param in signature.params() {
        match &param.ty {
            ParamType::Scalar(ty) => encode_scalar(texts, &mut words, param, *ty),
            ParamType::Tensor(ty) => encode_tensor(texts, &mut words, param, ty, devices.place(ty), &symbols),
        }
    }
    (texts.words(&words), scratch(signature, symbols.len(), devices.0.len()))
}

fn encode_scalar(texts: &mut Messages, words: &mut Vec<u32>, param: &Param, ty: ScalarType) {
    let kind = match ty {
        ScalarType::Bool => Kind::Bool,
        ScalarType::Handle => Kind::Handle,
        _ if ty.is_float() => Kind::Float,
        _ if ty.is_signed_int() => Kind::Signed,
        _ => Kind::Unsigned,
    };
    let name = texts.text(&param.name);
    let range = ty.narrow_range().map(|(least, greatest)| texts.text(&format!("{ty} ({least} to {greatest})")));
    words.extend([kind as u32, name, texts.text(ty.name()), 64 - ty.bits(), range.unwrap_or(0)]);
}

fn encode_tensor(
    texts: &mut Messages,
    words: &mut Vec<u32>,
    param: &Param,
    ty: &TensorType,
    (device, slot): (Device, u32),
    symbols: &[&str],
) {
    let strides = match &ty.layout {
        Layout::Contiguous => None,
        Layout::Strides(strides) => Some(strides),
    };
    let flags = if ty.is_opaque() { OPAQUE } else { 0 } | if strides.is_some() { STRIDED } else { 0 };
    let device_id = device.id.unwrap_or(-1) as u32;
    let aligned = if ty.is_opaque() { "byte_offset" } else { "data + byte_offset" };
    words.extend([
        Kind::Tensor as u32,
        texts.text(&param.name),
        texts.text("Tensor"),
        flags,
        ty.shape.len() as u32,
        dtype_word(ty.dtype),
        texts.text(&ty.dtype.to_string()),
        ty.device.device_type.0 as u32,
        device_id,
        texts.text(&device.to_string()),
        slot,
        ty.alignment(),
        texts.text(aligned),
    ]);
    for dim in ty.shape.iter().chain(strides.into_iter().flatten()) {
        match dim {
            Dim::Const(value) => words.extend([0, *value as u32, (*value >> 32) as u32]),
            Dim::Symbol(name) => {
                // every symbol of the signature is in the list
                let index = symbols.iter().position(|s| s == name).unwrap_or(0) as u32;
                words.extend([1, index, texts.text(name)]);
            }
        }
    }
}
