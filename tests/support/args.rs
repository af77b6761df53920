//! Arguments in memory: what a call's values become, and what they are afterwards.

use std::ffi::CString;
use std::sync::atomic::{AtomicU64, Ordering};

use tvm_ffi_codegen::runtime::abi::{DLTensor, TVMFFIAny, TVMFFIByteArray, TVMFFIObject, TypeIndex};
use tvm_ffi_codegen::runtime::type_table::{TypeRequest, get_or_alloc_index};
use tvm_ffi_codegen::runtime::{Any, Bytes, Error, Function, Module, Shape, Str};

use super::element;
use super::value::{Call, Data, Strides, TensorSpec, Value};

/// How a tensor is passed where the call leaves it open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    DlTensor,
    Object,
}

/// An `ffi.Tensor` made by hand; its second part also serves as a bare `DLTensor`.
#[repr(C)]
struct TensorObject {
    header: TVMFFIObject,
    tensor: DLTensor,
}

/// Memory of a tensor's elements, at any alignment.
struct Buffer {
    bytes: Vec<u8>,
    /// Where `data` points, from the start of `bytes`.
    data: usize,
}

const ALIGN: usize = 256;
/// No buffer is larger; tensors that claim more are never read.
const MOST: i128 = 1 << 16;

impl Buffer {
    /// Room for elements from `low` to `high` bytes around the first.
    fn new(low: i128, high: i128, shift: usize) -> Self {
        let (low, high) = if high - low > MOST { (0, 0) } else { (low, high) };
        let lead = (low.unsigned_abs() as usize).next_multiple_of(ALIGN) + ALIGN;
        let bytes = vec![0u8; lead + high as usize + shift + 3 * ALIGN];
        let data = bytes.as_ptr().addr().next_multiple_of(ALIGN) - bytes.as_ptr().addr() + lead + shift;
        Buffer { bytes, data }
    }
}

/// A tensor argument after it was built.
struct Built {
    object: Box<TensorObject>,
    buffer: Option<Buffer>,
    /// Places of the elements in the buffer, in row-major order.
    places: Vec<usize>,
    _shape: Box<[i64]>,
    _strides: Box<[i64]>,
}

/// Arguments of one call, alive.
pub struct Arguments {
    array: Vec<TVMFFIAny>,
    null_array: bool,
    num_args: i32,
    tensors: Vec<Option<Built>>,
    /// Boxed, since arguments point at them.
    #[allow(clippy::vec_box)]
    objects: Vec<Box<TensorObject>>,
    owned: Vec<(Any, u32)>,
    _strings: Vec<CString>,
    _byte_arrays: Vec<(Box<TVMFFIByteArray>, Box<[u8]>)>,
}

fn pointer<T>(to: *const T) -> u64 {
    to.expose_provenance() as u64
}

fn header(type_index: i32) -> TVMFFIObject {
    TVMFFIObject { combined_ref_count: AtomicU64::new(1 | 1 << 32), type_index, __padding: 0, deleter: None }
}

/// Byte offsets of all elements from the first, in row-major order; none where there are too many.
fn offsets(spec: &TensorSpec, strides: &[i64]) -> Vec<i128> {
    let size = spec.dtype.itemsize() as i128;
    let count = spec.shape.iter().try_fold(1i128, |n, &d| n.checked_mul(i128::from(d.max(0))));
    if count.is_none_or(|n| n * size.max(1) > MOST) || spec.shape.iter().any(|&d| d <= 0) {
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

fn build(spec: &TensorSpec, form: Form) -> Built {
    let given = match &spec.strides {
        Strides::Default if form == Form::Object => Some(compact(&spec.shape)),
        Strides::Default | Strides::Null => None,
        Strides::Given(strides) => Some(strides.clone()),
    };
    let strides = given.clone().unwrap_or_else(|| compact(&spec.shape));
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

impl Arguments {
    pub fn new(call: &Call, form: Form) -> Self {
        let num_args = call.num_args.unwrap_or(call.args.len() as i32);
        let mut all = Arguments {
            array: Vec::new(),
            null_array: call.null_array,
            num_args,
            tensors: Vec::new(),
            objects: Vec::new(),
            owned: Vec::new(),
            _strings: Vec::new(),
            _byte_arrays: Vec::new(),
        };
        for (_, value) in &call.args {
            let any = all.add(value, form);
            all.array.push(any);
            all.tensors.resize_with(all.array.len(), || None);
        }
        all
    }

    fn add(&mut self, value: &Value, form: Form) -> TVMFFIAny {
        let raw = |index: i32, bits: u64| TVMFFIAny::from_bits(TypeIndex(index), bits);
        match value {
            Value::Raw(index, payload) => raw(*index, *payload),
            Value::Float(v) => raw(TypeIndex::FLOAT.0, v.to_bits()),
            Value::DType(v) => {
                raw(TypeIndex::DATA_TYPE.0, u64::from(v.code) | u64::from(v.bits) << 8 | u64::from(v.lanes) << 16)
            }
            Value::Device(v) => {
                let (kind, id) = (v.device_type.0 as u32, v.device_id as u32);
                raw(TypeIndex::DEVICE.0, u64::from(kind) | u64::from(id) << 32)
            }
            Value::Str(text) => self.own(Any::from(Str::new(text))),
            Value::Bytes(text) => self.own(Any::from(Bytes::new(text.as_bytes()))),
            Value::RawStr(text) => {
                let text = CString::new(text.as_str()).unwrap();
                let any = raw(TypeIndex::RAW_STR.0, pointer(text.as_ptr()));
                self._strings.push(text);
                any
            }
            Value::ByteArray(text) => {
                let bytes: Box<[u8]> = text.as_bytes().into();
                let array = Box::new(TVMFFIByteArray::from_slice(&bytes));
                let any = raw(TypeIndex::BYTE_ARRAY_PTR.0, pointer(&raw const *array));
                self._byte_arrays.push((array, bytes));
                any
            }
            Value::Function => self.own(Any::from(Function::from_packed(|_| Ok(().into())))),
            Value::Module => self.own(Any::from(Module::new("test", []))),
            Value::Shape(extents) => self.own(Any::from(Shape::new(extents))),
            Value::Error => self.own(Any::from(Error::new("ValueError", "an argument"))),
            Value::Object => {
                let index = dynamic_type();
                // the tensor behind the header is never looked at
                let mut object = build(&TensorSpec::new(super::kernels::F32, Vec::new()), form).object;
                object.header.type_index = index;
                let any = raw(index, pointer(&raw const *object));
                self.objects.push(object);
                any
            }
            Value::Tensor(spec) => self.tensor(spec, spec.form.unwrap_or(form)),
        }
    }

    fn own(&mut self, value: Any) -> TVMFFIAny {
        let raw = *value.as_raw();
        let count = strong_count(&value);
        self.owned.push((value, count));
        raw
    }

    fn tensor(&mut self, spec: &TensorSpec, form: Form) -> TVMFFIAny {
        let built = build(spec, form);
        let (index, address) = match form {
            Form::DlTensor => (TypeIndex::DL_TENSOR_PTR, pointer(&raw const built.object.tensor)),
            Form::Object => (TypeIndex::TENSOR, pointer(&raw const *built.object)),
        };
        self.tensors.push(Some(built));
        TVMFFIAny::from_bits(index, if spec.null { 0 } else { address })
    }

    pub fn array(&self) -> *const TVMFFIAny {
        if self.null_array { std::ptr::null() } else { self.array.as_ptr() }
    }

    pub fn num_args(&self) -> i32 {
        self.num_args
    }

    /// The elements of each tensor as text; `None` for other arguments.
    pub fn elements(&self) -> Vec<Option<String>> {
        let show = |built: &Built| {
            let buffer = built.buffer.as_ref()?;
            let dtype = built.object.tensor.dtype;
            let one = |place: &usize| element::show(dtype, &read(buffer, *place, dtype.itemsize()));
            Some(format!("[{}]", built.places.iter().map(one).collect::<Vec<_>>().join(", ")))
        };
        self.tensors.iter().map(|t| t.as_ref().and_then(show)).collect()
    }

    /// The memory of each tensor, whole, from its aligned start.
    pub fn memory(&self) -> Vec<Vec<u8>> {
        let whole = |buffer: &Buffer| {
            let start = buffer.bytes.as_ptr().addr().next_multiple_of(ALIGN) - buffer.bytes.as_ptr().addr();
            read(buffer, start, buffer.bytes.len() - ALIGN)
        };
        self.tensors.iter().flatten().filter_map(|t| t.buffer.as_ref()).map(whole).collect()
    }

    /// Addresses that a kernel has seen, told by distance from the data of the tensor that they point into.
    pub fn relative(&self, received: Vec<u64>) -> Vec<u64> {
        let relative = |word: u64| {
            for buffer in self.tensors.iter().flatten().filter_map(|t| t.buffer.as_ref()) {
                let start = pointer(buffer.bytes.as_ptr());
                if (start..start + buffer.bytes.len() as u64).contains(&word) {
                    return word.wrapping_sub(start + buffer.data as u64);
                }
            }
            word
        };
        received.into_iter().map(relative).collect()
    }

    /// Whether every object has as many references as before the call.
    pub fn counts_kept(&self) -> bool {
        let by_hand = self.tensors.iter().flatten().map(|t| &t.object).chain(&self.objects);
        let mut counts = by_hand.map(|o| o.header.combined_ref_count.load(Ordering::Relaxed));
        counts.all(|count| count == 1 | 1 << 32) && self.owned.iter().all(|(any, count)| strong_count(any) == *count)
    }
}

/// Bytes of a buffer that generated code may have written behind Rust's back.
fn read(buffer: &Buffer, start: usize, len: usize) -> Vec<u8> {
    let base: *const u8 = std::ptr::with_exposed_provenance(buffer.bytes.as_ptr().expose_provenance());
    let inside = start + len <= buffer.bytes.len();
    assert!(inside, "{start} + {len} in {}", buffer.bytes.len());
    // SAFETY: the range is inside of the buffer, which is alive.
    (0..len).map(|i| unsafe { base.add(start + i).read_volatile() }).collect()
}

fn strong_count(any: &Any) -> u32 {
    match any.cast::<tvm_ffi_codegen::runtime::ObjectRef>() {
        Ok(object) => object.strong_count(),
        Err(_) => 0,
    }
}

/// The index of a type that only this process knows.
fn dynamic_type() -> i32 {
    get_or_alloc_index(TypeRequest {
        key: "test.Thing",
        static_index: -1,
        depth: 1,
        num_child_slots: 0,
        child_slots_can_overflow: true,
        parent: TypeIndex::OBJECT.0,
    })
    .unwrap()
}
