//! Tensors in memory, well-formed or malformed as requested.

use std::ops::Range;
use std::sync::atomic::AtomicU64;

use tvm_ffi_codegen::runtime::abi::{DLTensor, TVMFFIObject, TypeIndex};

use super::Form;
use crate::support::value::{Data, Strides, TensorSpec};
use crate::support::{element, fence};

/// A manually built `ffi.Tensor`; its second part also serves as a bare `DLTensor`.
#[repr(C)]
pub struct TensorObject {
    pub header: TVMFFIObject,
    pub tensor: DLTensor,
}

/// The memory of a tensor's elements, with any alignment.
struct Buffer {
    bytes: Vec<u8>,
    /// The offset of the `data` pointer from the start of `bytes`.
    data: usize,
    /// The offsets of the tensor's whole memory, from its aligned start.
    memory: Range<usize>,
}

const ALIGN: usize = 256;
/// The maximum size of a buffer. Tensors that claim more are never read.
const MOST: i128 = 1 << 16;

impl Buffer {
    /// A buffer for elements that are between `low` and `high` bytes from the first one.
    fn new(low: i128, high: i128, shift: usize) -> Self {
        let (low, high) = if high - low > MOST { (0, 0) } else { (low, high) };
        let lead = (low.unsigned_abs() as usize).next_multiple_of(ALIGN) + ALIGN;
        // at a page's end, what is behind the elements is another page
        let behind = if fence::is_on() { 0 } else { 2 * ALIGN };
        let bytes = vec![0u8; ALIGN + lead + shift + high as usize + behind];
        let end = bytes.as_ptr().addr() + bytes.len();
        let size = lead + shift + high as usize + behind;
        let start = (end - size) / ALIGN * ALIGN - bytes.as_ptr().addr();
        Buffer { bytes, data: start + lead + shift, memory: start..start + size }
    }
}

/// A tensor argument.
pub struct Built {
    pub object: Box<TensorObject>,
    buffer: Option<Buffer>,
    /// The offsets of the elements in the buffer, in row-major order.
    places: Vec<usize>,
    _shape: Box<[i64]>,
    _strides: Box<[i64]>,
}

pub fn pointer<T>(to: *const T) -> u64 {
    to.expose_provenance() as u64
}

fn header(type_index: i32) -> TVMFFIObject {
    TVMFFIObject { combined_ref_count: AtomicU64::new(1 | 1 << 32), type_index, __padding: 0, deleter: None }
}

/// The byte offsets of all elements from the first, in row-major order; empty if there are too many.
fn offsets(spec: &TensorSpec, strides: &[i64]) -> Vec<i128> {
    let size = spec.dtype.itemsize() as i128;
    let bytes = spec.shape.iter().try_fold(size.max(1), |n, &d| n.checked_mul(i128::from(d.max(0))));
    if bytes.is_none_or(|n| n > MOST) || spec.shape.iter().any(|&d| d <= 0) {
        return Vec::new();
    }
    let mut all = vec![0i128];
    for (&extent, &stride) in spec.shape.iter().zip(strides) {
        let step = |base: &i128| {
            let base = *base;
            (0..i128::from(extent.max(0))).map(move |i| base + i * i128::from(stride) * size)
        };
        all = all.iter().flat_map(step).collect();
    }
    all
}

fn compact(shape: &[i64]) -> Vec<i64> {
    let mut strides = vec![1i64; shape.len()];
    for d in (1..shape.len()).rev() {
        strides[d - 1] = strides[d].wrapping_mul(shape[d]);
    }
    strides
}

pub fn build(spec: &TensorSpec, form: Form) -> Built {
    let given = match &spec.strides {
        // contiguous for the claimed rank, as with NULL strides
        Strides::Default if form == Form::Object => {
            let claimed = usize::try_from(spec.ndim.unwrap_or(i32::MAX)).unwrap_or(0).min(spec.shape.len());
            let mut strides = compact(&spec.shape[..claimed]);
            strides.extend(compact(&spec.shape[claimed..]));
            Some(strides)
        }
        Strides::Default | Strides::Null => None,
        Strides::Given(strides) => Some(strides.clone()),
    };
    let strides = match &spec.strides {
        Strides::Given(strides) => strides.clone(),
        Strides::Default | Strides::Null => compact(&spec.shape),
    };
    let offsets = offsets(spec, &strides);
    let start = i128::from(spec.byte_offset);
    let (mut buffer, mut places) = (None, Vec::new());
    let data = match &spec.data {
        Data::Address(address) => *address,
        data => {
            let size = spec.dtype.itemsize() as i128;
            let low = offsets.iter().min().copied().unwrap_or(0).min(0);
            let high = start + offsets.iter().max().copied().unwrap_or(0) + size;
            let mut memory = Buffer::new(low, high, spec.shift);
            if high - low <= MOST {
                places = offsets.iter().map(|o| (memory.data as i128 + start + o) as usize).collect();
            }
            if let Data::Values(values) = data {
                assert_eq!(values.len(), places.len(), "as many values as elements: {spec:?}");
                for (place, value) in places.iter().zip(values) {
                    let bytes = element::bytes(spec.dtype, *value);
                    memory.bytes[*place..*place + bytes.len()].copy_from_slice(&bytes);
                }
            }
            let data = pointer(memory.bytes.as_ptr()) + memory.data as u64;
            buffer = Some(memory);
            data
        }
    };
    let mut shape: Box<[i64]> = spec.shape.clone().into();
    let has_strides = given.is_some();
    let mut strides: Box<[i64]> = given.unwrap_or_default().into();
    let null = std::ptr::null_mut();
    let tensor = DLTensor {
        data: std::ptr::with_exposed_provenance_mut(data as usize),
        device: spec.device,
        ndim: spec.ndim.unwrap_or(spec.shape.len() as i32),
        dtype: spec.dtype,
        shape: if spec.null_shape { null } else { shape.as_mut_ptr() },
        strides: if has_strides { strides.as_mut_ptr() } else { null },
        byte_offset: spec.byte_offset,
    };
    let object = Box::new(TensorObject { header: header(TypeIndex::TENSOR.0), tensor });
    Built { object, buffer, places, _shape: shape, _strides: strides }
}

impl Built {
    /// The elements in printed form, in row-major order; `None` for a tensor without memory.
    pub fn elements(&self) -> Option<String> {
        let buffer = self.buffer.as_ref()?;
        let dtype = self.object.tensor.dtype;
        let one = |place: &usize| element::show(dtype, &read(buffer, *place, dtype.itemsize()));
        Some(format!("[{}]", self.places.iter().map(one).collect::<Vec<_>>().join(", ")))
    }

    /// The tensor's whole memory, from its aligned start.
    pub fn memory(&self) -> Option<Vec<u8>> {
        let buffer = self.buffer.as_ref()?;
        Some(read(buffer, buffer.memory.start, buffer.memory.len()))
    }

    /// The offset of an address from the tensor's data; `None` unless the address, with or without the byte offset, is
    /// in the tensor's memory.
    pub fn distance(&self, address: u64) -> Option<u64> {
        let buffer = self.buffer.as_ref()?;
        let start = pointer(buffer.bytes.as_ptr());
        // a tensor without elements may be at the end
        let memory = start..=start + buffer.bytes.len() as u64;
        let near = memory.contains(&address) || memory.contains(&address.wrapping_sub(self.object.tensor.byte_offset));
        near.then(|| address.wrapping_sub(start + buffer.data as u64))
    }
}

/// Reads bytes of a buffer that generated code may have written, which Rust doesn't know about.
fn read(buffer: &Buffer, start: usize, len: usize) -> Vec<u8> {
    let base: *const u8 = std::ptr::with_exposed_provenance(buffer.bytes.as_ptr().expose_provenance());
    let inside = start + len <= buffer.bytes.len();
    assert!(inside, "{start} + {len} in {}", buffer.bytes.len());
    // SAFETY: the range is inside of the buffer, which is alive.
    (0..len).map(|i| unsafe { base.add(start + i).read_volatile() }).collect()
}
