//! Decoding a tensor argument: contract 1 to 5 and 7.
//!
//! The order of checks is that of the contract: type index, NULL pointer, ndim (before any shape is read), dtype,
//! device, shape, strides, data and its alignment.

use super::messages::{Part, Tag};
use super::wrapper::{Bound, BoundDevice, Failure, Lowerer, TYPE_ERROR, VALUE_ERROR};
use crate::ir::{BinaryOp, Block, ConvertOp, Hint, IntCC, MemFlags, Type, Value};
use crate::spec::{Dim, Layout, TensorType};
use std::mem::offset_of;
use tvm_ffi_runtime::abi::{DLDataType, DLDevice, DLTensor, TVMFFIObject, TypeIndex};

const DATA: i32 = offset_of!(DLTensor, data) as i32;
const DEVICE: i32 = offset_of!(DLTensor, device) as i32;
const DEVICE_TYPE: i32 = DEVICE + offset_of!(DLDevice, device_type) as i32;
const DEVICE_ID: i32 = DEVICE + offset_of!(DLDevice, device_id) as i32;
const NDIM: i32 = offset_of!(DLTensor, ndim) as i32;
const DTYPE: i32 = offset_of!(DLTensor, dtype) as i32;
const SHAPE: i32 = offset_of!(DLTensor, shape) as i32;
const STRIDES: i32 = offset_of!(DLTensor, strides) as i32;
const BYTE_OFFSET: i32 = offset_of!(DLTensor, byte_offset) as i32;

/// What the checks leave of a tensor.
pub(super) struct TensorVars {
    /// Address of the first element, `byte_offset` added; on a device with opaque handles the bare handle.
    pub data: Value,
    /// The offset in bytes, where `data` is an opaque handle.
    pub byte_offset: Option<Value>,
    /// Sizes, `I64`.
    pub shape: Vec<Value>,
    /// Strides in elements, `I64`, where the signature states them.
    pub strides: Option<Vec<Value>>,
}

/// A `DLDataType` as the 32 bits that a little-endian load of it gives.
fn dtype_word(dtype: DLDataType) -> i64 {
    i64::from(u32::from(dtype.code) | u32::from(dtype.bits) << 8 | u32::from(dtype.lanes) << 16)
}

/// The tensor at hand.
struct Tensor<'a> {
    arg: usize,
    name: &'a str,
    ty: &'a TensorType,
    /// Its `DLTensor`.
    base: Value,
    shape: Vec<Value>,
}

/// Checks argument `i`, binds its symbols and gives its parts.
pub(super) fn decode(l: &mut Lowerer<'_>, arg: usize, name: &str, ty: &TensorType) -> TensorVars {
    let base = dl_tensor(l, arg, name);
    let mut t = Tensor { arg, name, ty, base, shape: Vec::new() };
    t.ndim(l);
    t.dtype(l);
    t.device(l);
    t.shape(l);
    t.element_count(l);
    let strides = match &ty.layout {
        Layout::Contiguous => {
            t.contiguous(l);
            None
        }
        Layout::Strides(strides) => Some(t.strides(l, strides)),
    };
    let (data, byte_offset) = t.data(l);
    TensorVars { data, byte_offset, shape: t.shape, strides }
}

/// The `DLTensor` of an `ffi.Tensor` or a `DLTensor*`.
fn dl_tensor(l: &mut Lowerer<'_>, arg: usize, name: &str) -> Value {
    let type_index = l.type_index(arg);
    let ok = l.is_one_of(type_index, &[TypeIndex::TENSOR, TypeIndex::DL_TENSOR_PTR]);
    l.check_type(ok, arg, name, "Tensor", type_index);
    let payload = l.payload(arg, Type::Ptr);
    let there = l.b.icmp_imm(IntCC::Ne, payload, 0);
    l.check(there, |l| {
        let expected = ["Tensor, got a NULL pointer to one".into()];
        Failure::new(l.mismatch(TYPE_ERROR, &format!("type of {name}"), arg, &expected))
    });
    // an object's DLTensor follows its header (c_api.h, kTVMFFITensor)
    let inside = l.b.ptr_add_imm(payload, size_of::<TVMFFIObject>() as i64);
    let is_object = l.b.icmp_imm(IntCC::Eq, type_index, i64::from(TypeIndex::TENSOR.0));
    l.b.select(is_object, inside, payload)
}

impl Tensor<'_> {
    fn load(&self, l: &mut Lowerer<'_>, ty: Type, offset: i32) -> Value {
        l.b.load(ty, self.base, offset, MemFlags::READONLY)
    }

    /// A row for this tensor: `Mismatched {name}.{field} ..., expected {expected}`.
    fn row(&self, l: &mut Lowerer<'_>, field: &str, expected: &[Part]) -> u32 {
        l.mismatch(VALUE_ERROR, &format!("{}.{field}", self.name), self.arg, expected)
    }

    fn ndim(&self, l: &mut Lowerer<'_>) {
        let rank = self.ty.shape.len();
        let ndim = self.load(l, Type::I32, NDIM);
        let ok = l.b.icmp_imm(IntCC::Eq, ndim, rank as i64);
        l.check(ok, |l| {
            let row = self.row(l, "ndim", &[Part::Number(rank as u32), ", got ".into(), Tag::First.into()]);
            let got = l.b.convert(ConvertOp::SExt, Type::I64, ndim);
            Failure::got(row, got)
        });
    }

    fn dtype(&self, l: &mut Lowerer<'_>) {
        let dtype = self.load(l, Type::I32, DTYPE);
        let ok = l.b.icmp_imm(IntCC::Eq, dtype, dtype_word(self.ty.dtype));
        l.check(ok, |l| {
            let expected = [Part::from(format!("{}, got ", self.ty.dtype)), Tag::FirstDType.into()];
            let row = self.row(l, "dtype", &expected);
            let got = l.b.convert(ConvertOp::ZExt, Type::I64, dtype);
            Failure::got(row, got)
        });
    }

    /// The kind of device, then its id: as stated, or that of the first tensor on such a device.
    fn device(&self, l: &mut Lowerer<'_>) {
        let wanted = self.ty.device;
        let device_type = self.load(l, Type::I32, DEVICE_TYPE);
        let ok = l.b.icmp_imm(IntCC::Eq, device_type, i64::from(wanted.device_type.0));
        l.check(ok, |l| {
            let expected = [Part::from(format!("{wanted}, got ")), Tag::FirstDevice.into()];
            let row = self.row(l, "device", &expected);
            let got = self.load(l, Type::I64, DEVICE);
            Failure::got(row, got)
        });
        let id = self.load(l, Type::I32, DEVICE_ID);
        let first = l.devices.iter().find(|d| d.device_type == wanted.device_type).map(|d| (d.id, d.origin.clone()));
        let expected = match (wanted.id, &first) {
            (Some(id), _) => Some(l.b.iconst(Type::I32, i64::from(id))),
            (None, Some((id, _))) => Some(*id),
            (None, None) => None,
        };
        if let Some(expected) = expected {
            let ok = l.b.icmp(IntCC::Eq, id, expected);
            l.check(ok, |l| {
                let parts = match (wanted.id, first) {
                    (None, Some((_, origin))) => {
                        vec![format!("{wanted}:").into(), Tag::Second.into(), format!(" (from {origin}), got ").into()]
                    }
                    _ => vec![format!("{wanted}, got ").into()],
                };
                let parts = [parts, vec![Tag::FirstDevice.into()]].concat();
                let row = self.row(l, "device", &parts);
                let got = self.load(l, Type::I64, DEVICE);
                let second = l.b.convert(ConvertOp::SExt, Type::I64, expected);
                Failure { row, first: Some(got), second: Some(second) }
            });
        } else {
            let origin = format!("{}.device", self.name);
            l.devices.push(BoundDevice { device_type: wanted.device_type, id, origin });
        }
    }

    fn shape(&mut self, l: &mut Lowerer<'_>) {
        if self.ty.shape.is_empty() {
            return;
        }
        let shape = self.load(l, Type::Ptr, SHAPE);
        let there = l.b.icmp_imm(IntCC::Ne, shape, 0);
        l.check(there, |l| {
            let rank = self.ty.shape.len() as u32;
            let parts = ["a non-NULL pointer to ".into(), Part::Number(rank), " sizes, got NULL".into()];
            Failure::new(self.row(l, "shape", &parts))
        });
        for (d, dim) in self.ty.shape.iter().enumerate() {
            let size = l.b.load(Type::I64, shape, 8 * d as i32, MemFlags::READONLY);
            self.match_dim(l, &format!("shape[{d}]"), dim, size);
            self.shape.push(size);
        }
    }

    /// Compares a size with a constant or a bound symbol, or binds the symbol.
    fn match_dim(&self, l: &mut Lowerer<'_>, field: &str, dim: &Dim, size: Value) {
        let name = match dim {
            Dim::Const(expected) => {
                let ok = l.b.icmp_imm(IntCC::Eq, size, *expected);
                l.check(ok, |l| {
                    let parts = [Part::from(format!("{expected}, got ")), Tag::First.into()];
                    Failure::got(self.row(l, field, &parts), size)
                });
                return;
            }
            Dim::Symbol(name) => name,
        };
        let Some(bound) = l.symbol(name) else {
            let ok = l.b.icmp_imm(IntCC::SGe, size, 0);
            l.check(ok, |l| {
                let parts = [Part::from("a size of at least 0, got "), Tag::First.into()];
                Failure::got(self.row(l, field, &parts), size)
            });
            self.bind(l, name, field, size);
            return;
        };
        let expected = bound.value;
        let origin = bound.origin.clone();
        let ok = l.b.icmp(IntCC::Eq, size, expected);
        l.check(ok, |l| self.symbol_failure(l, field, name, &origin, size, expected));
    }

    fn bind(&self, l: &mut Lowerer<'_>, symbol: &str, field: &str, value: Value) {
        let origin = format!("{}.{field}", self.name);
        l.bound.push(Bound { name: symbol.to_owned(), value, origin });
    }

    /// `expected 10 (n, from x.shape[0]), got 11`
    fn symbol_failure(
        &self,
        l: &mut Lowerer<'_>,
        field: &str,
        symbol: &str,
        origin: &str,
        got: Value,
        expected: Value,
    ) -> Failure {
        let from = Part::from(format!(" ({symbol}, from {origin}), got "));
        let row = self.row(l, field, &[Tag::Second.into(), from, Tag::First.into()]);
        Failure { row, first: Some(got), second: Some(expected) }
    }

    /// Whether any extent is 0.
    fn is_empty(&self, l: &mut Lowerer<'_>) -> Value {
        let mut any = None;
        for size in &self.shape {
            let zero = l.b.icmp_imm(IntCC::Eq, *size, 0);
            any = Some(match any {
                None => zero,
                Some(before) => l.b.binary(BinaryOp::Or, before, zero),
            });
        }
        any.unwrap_or_else(|| l.b.bconst(false))
    }

    /// Fails unless `ok` or the tensor is empty.
    fn check_unless_empty(&self, l: &mut Lowerer<'_>, ok: Value, failure: impl FnOnce(&mut Lowerer<'_>) -> Failure) {
        let (go_on, odd) = (l.b.block(), l.b.cold_block());
        l.b.branch(ok, go_on, odd, Hint::Likely);
        l.b.switch_to(odd);
        let empty = self.is_empty(l);
        let bad = l.b.cold_block();
        l.b.branch(empty, go_on, bad, Hint::None);
        l.b.switch_to(bad);
        let failure = failure(l);
        l.raise(failure);
        l.b.switch_to(go_on);
    }

    /// Contract 4: the number of elements fits in 64 bits, so that no product of sizes wraps. An empty tensor has none.
    fn element_count(&self, l: &mut Lowerer<'_>) {
        let symbolic = self.ty.shape.iter().any(|d| matches!(d, Dim::Symbol(_)));
        if self.shape.len() < 2 || !symbolic {
            return;
        }
        // a product of non-negative factors fits where its upper half is 0 and its lower half not negative
        let mut count = self.shape[self.shape.len() - 1];
        let mut upper: Option<Value> = None;
        let mut lower: Option<Value> = None;
        for size in self.shape.iter().rev().skip(1) {
            let high = l.b.binary(BinaryOp::SMulHi, count, *size);
            count = l.b.binary(BinaryOp::Mul, count, *size);
            upper = Some(upper.map_or(high, |u| l.b.binary(BinaryOp::Or, u, high)));
            lower = Some(lower.map_or(count, |s| l.b.binary(BinaryOp::Or, s, count)));
        }
        let (Some(upper), Some(lower)) = (upper, lower) else { return };
        let shift = l.b.i64(63);
        let sign = l.b.binary(BinaryOp::LShr, lower, shift);
        let either = l.b.binary(BinaryOp::Or, upper, sign);
        let ok = l.b.icmp_imm(IntCC::Eq, either, 0);
        self.check_unless_empty(l, ok, |l| {
            let parts = ["a number of elements of less than 2^63, got a product of sizes that overflows".into()];
            Failure::new(self.row(l, "shape", &parts))
        });
    }

    /// Sizes of the dimensions after `d`, multiplied: the compact stride of dimension `d`.
    fn compact_strides(&self, l: &mut Lowerer<'_>) -> Vec<Value> {
        let mut strides = Vec::new();
        let mut stride = l.b.i64(1);
        for (d, size) in self.shape.iter().enumerate().rev() {
            strides.push(stride);
            if d > 0 {
                stride = if d == self.shape.len() - 1 { *size } else { l.b.binary(BinaryOp::Mul, stride, *size) };
            }
        }
        strides.reverse();
        strides
    }

    /// Contract 3 and 4: NULL strides mean compact; a size of 1 takes any stride; an empty tensor any strides.
    fn contiguous(&self, l: &mut Lowerer<'_>) {
        if self.shape.is_empty() {
            return;
        }
        let strides = self.load(l, Type::Ptr, STRIDES);
        let (given, done) = (l.b.block(), l.b.block());
        let has = l.b.icmp_imm(IntCC::Ne, strides, 0);
        l.b.branch(has, given, done, Hint::None);
        l.b.switch_to(given);
        let compact = self.compact_strides(l);
        for d in (0..self.shape.len()).rev() {
            let stride = l.b.load(Type::I64, strides, 8 * d as i32, MemFlags::READONLY);
            self.check_stride(l, d, stride, compact[d], done, |l| {
                let expected = [Tag::Second.into(), " (contiguous), got ".into(), Tag::First.into()];
                let row = self.row(l, &format!("strides[{d}]"), &expected);
                Failure { row, first: Some(stride), second: Some(compact[d]) }
            });
        }
        l.b.jump(done, &[]);
        l.b.switch_to(done);
    }

    /// Goes on where the stride is as expected or doesn't matter; to `empty` where the tensor has no elements.
    fn check_stride(
        &self,
        l: &mut Lowerer<'_>,
        d: usize,
        stride: Value,
        expected: Value,
        empty: Block,
        failure: impl FnOnce(&mut Lowerer<'_>) -> Failure,
    ) {
        let ok = l.b.icmp(IntCC::Eq, stride, expected);
        let (go_on, odd, many, bad) = (l.b.block(), l.b.cold_block(), l.b.cold_block(), l.b.cold_block());
        l.b.branch(ok, go_on, odd, Hint::Likely);
        l.b.switch_to(odd);
        let one = l.b.icmp_imm(IntCC::Eq, self.shape[d], 1);
        l.b.branch(one, go_on, many, Hint::None);
        l.b.switch_to(many);
        let is_empty = self.is_empty(l);
        l.b.branch(is_empty, empty, bad, Hint::None);
        l.b.switch_to(bad);
        let failure = failure(l);
        l.raise(failure);
        l.b.switch_to(go_on);
    }

    /// Stated strides: those in memory, or the compact ones where there are none.
    fn strides(&self, l: &mut Lowerer<'_>, wanted: &[Dim]) -> Vec<Value> {
        if self.shape.is_empty() {
            return Vec::new();
        }
        let pointer = self.load(l, Type::Ptr, STRIDES);
        let (given, absent, join) = (l.b.block(), l.b.cold_block(), l.b.block());
        let strides: Vec<Value> = wanted.iter().map(|_| l.b.block_param(join, Type::I64)).collect();
        let has = l.b.icmp_imm(IntCC::Ne, pointer, 0);
        l.b.branch(has, given, absent, Hint::Likely);
        l.b.switch_to(given);
        let loaded: Vec<Value> =
            (0..wanted.len()).map(|d| l.b.load(Type::I64, pointer, 8 * d as i32, MemFlags::READONLY)).collect();
        l.b.jump(join, &loaded);
        l.b.switch_to(absent);
        let compact = self.compact_strides(l);
        l.b.jump(join, &compact);
        l.b.switch_to(join);
        for (d, dim) in wanted.iter().enumerate() {
            let field = format!("strides[{d}]");
            let stride = strides[d];
            let go_on = match dim {
                Dim::Const(expected) => {
                    let go_on = l.b.block();
                    let value = l.b.i64(*expected);
                    self.check_stride(l, d, stride, value, go_on, |l| {
                        let parts = [Part::from(format!("{expected}, got ")), Tag::First.into()];
                        Failure::got(self.row(l, &field, &parts), stride)
                    });
                    go_on
                }
                Dim::Symbol(name) => match l.symbol(name) {
                    None => {
                        self.bind(l, name, &field, stride);
                        continue;
                    }
                    Some(bound) => {
                        let (value, origin) = (bound.value, bound.origin.clone());
                        let go_on = l.b.block();
                        self.check_stride(l, d, stride, value, go_on, |l| {
                            self.symbol_failure(l, &field, name, &origin, stride, value)
                        });
                        go_on
                    }
                },
            };
            l.b.jump(go_on, &[]);
            l.b.switch_to(go_on);
        }
        strides
    }

    /// Contract 2: the address of the first element, there and aligned unless there are no elements.
    fn data(&self, l: &mut Lowerer<'_>) -> (Value, Option<Value>) {
        let data = self.load(l, Type::Ptr, DATA);
        let byte_offset = self.load(l, Type::I64, BYTE_OFFSET);
        let there = l.b.icmp_imm(IntCC::Ne, data, 0);
        self.check_unless_empty(l, there, |l| {
            let count = self.shape.iter().copied().reduce(|a, b| l.b.binary(BinaryOp::Mul, a, b));
            let count = count.unwrap_or_else(|| l.b.i64(1));
            let expected = ["a non-NULL pointer to ".into(), Tag::First.into(), " elements, got NULL".into()];
            Failure::got(self.row(l, "data", &expected), count)
        });
        let (start, address) = if self.ty.is_opaque() {
            (data, byte_offset)
        } else {
            let start = l.b.ptr_add(data, byte_offset);
            (start, l.b.convert(ConvertOp::PtrToInt, Type::I64, start))
        };
        let align = self.ty.alignment();
        if align > 1 {
            let mask = l.b.i64(i64::from(align) - 1);
            let rest = l.b.binary(BinaryOp::And, address, mask);
            let aligned = l.b.icmp_imm(IntCC::Eq, rest, 0);
            self.check_unless_empty(l, aligned, |l| {
                let what = if self.ty.is_opaque() { "byte_offset" } else { "data + byte_offset" };
                let parts = [
                    Part::from(format!("{what} to be a multiple of {align}, got one that is off by ")),
                    Tag::First.into(),
                ];
                Failure::got(self.row(l, "data", &parts), rest)
            });
        }
        (start, self.ty.is_opaque().then_some(byte_offset))
    }
}
