//! Tensors that a body creates (views and tensors of the environment's allocator), and scratch memory in the frame.

use super::args::{Origin, TensorVars, View};
use super::builder::Body;
use super::calls::{KnownOwned, new_owned};
use super::descriptor::device_of;
use super::dtype_device::{DTypeBits, DTypeValue, DeviceValue};
use super::expr::{Expr, Operand, Ops};
use super::function::{BodyLowerer, Failure};
use super::life::Life;
use super::tensor::{Known, TensorRef};
use crate::ir::{BinaryOp, IntCC, MemFlags, SlotData, Type, Value};
use crate::lower::abi::tensor::{BYTE_OFFSET, DATA, DEVICE, DTYPE, NDIM, SHAPE, STRIDES};
use crate::lower::abi::{HEADER, store_any};
use crate::lower::capi;
use crate::lower::encode::{Subject, shown};
use crate::lower::protocol::{Directive, Piece};
use crate::lower::symbol_call::{KnownArg, KnownTensor};
use crate::spec::{Dim, Layout, ScalarType, TensorType, dim};
use tvm_ffi_runtime::abi::{DLTensor, TypeIndex};

/// The maximum total bytes of [`Body::scratch`] in one body.
const MOST_SCRATCH: u64 = 64 << 10;
/// The maximum number of dimensions of a tensor that a body allocates: NumPy's limit.
const MOST_DIMENSIONS: usize = 64;

impl Body<'_> {
    /// Allocates an uninitialized, contiguous tensor with the environment's allocator (`TVMFFIEnvTensorAlloc`). The
    /// body owns it: it is released at the end of the current block, unless you move it with [`TensorRef::owned`].
    pub fn alloc_tensor<'b, O: Into<Operand<'b>>>(
        &'b self,
        shape: impl IntoIterator<Item = O>,
        dtype: impl Into<DTypeValue<'b>>,
        device: impl Into<DeviceValue<'b>>,
    ) -> TensorRef<'b> {
        let sizes: Vec<Operand<'b>> = shape.into_iter().map(Into::into).collect();
        let (shape, device) = (self.sizes("alloc_tensor", &sizes), device.into());
        let dtype = dtype.into();
        let tensor = self.allocate(shape, None, dtype, device);
        self.recorder().inspect(|r| r.made_tensor(tensor, r.alloc(&sizes, None, dtype, device)));
        tensor
    }

    /// Like [`alloc_tensor`](Self::alloc_tensor), with strides in elements. The tensor is a view of contiguous memory
    /// that has room for all of its elements. The strides must not be negative.
    pub fn alloc_strided<'b, O: Into<Operand<'b>>, S: Into<Operand<'b>>>(
        &'b self,
        shape: impl IntoIterator<Item = O>,
        strides: impl IntoIterator<Item = S>,
        dtype: impl Into<DTypeValue<'b>>,
        device: impl Into<DeviceValue<'b>>,
    ) -> TensorRef<'b> {
        let sizes: Vec<Operand<'b>> = shape.into_iter().map(Into::into).collect();
        let steps: Vec<Operand<'b>> = strides.into_iter().map(Into::into).collect();
        let (shape, strides) = (self.sizes("alloc_strided", &sizes), self.sizes("alloc_strided", &steps));
        if shape.len() != strides.len() {
            let problem = format!("got {} sizes and {} strides", shape.len(), strides.len());
            self.error("alloc_strided", problem);
            return TensorRef::missing(self);
        }
        let (dtype, device) = (dtype.into(), device.into());
        let tensor = self.allocate(shape, Some(strides), dtype, device);
        self.recorder().inspect(|r| r.made_tensor(tensor, r.alloc(&sizes, Some(&steps), dtype, device)));
        tensor
    }

    /// The address of uninitialized memory in the function's frame, valid until the function returns. In a loop each
    /// turn uses the same memory. The alignment is a power of two, at most 4096. All scratch memory of a body together
    /// takes at most 64 KiB, including alignment padding.
    pub fn scratch(&self, bytes: u32, align: u32) -> Expr<'_> {
        if !align.is_power_of_two() || align > 4096 {
            self.error("scratch", format!("expected a power of two of at most 4096 for the alignment, got {align}"));
            return self.placeholder(ScalarType::Handle);
        }
        let taken = self.emit(|l| {
            let slot = SlotData { size: bytes.max(1), align };
            l.scratch_bytes = l.scratch_bytes.saturating_add(slot.frame_bytes());
            l.scratch_bytes
        });
        if taken > MOST_SCRATCH {
            self.error("scratch", format!("the body takes {taken} bytes of its frame, of {MOST_SCRATCH} that it may"));
            return self.placeholder(ScalarType::Handle);
        }
        let address = self.value(|l| {
            let slot = l.b.slot(bytes.max(1), align);
            l.b.stack_addr(slot)
        });
        self.expr(address, ScalarType::Handle).recorded(|recorder| recorder.scratch(bytes, align))
    }

    fn sizes<'b>(&'b self, operation: &str, sizes: &[Operand<'b>]) -> Vec<Value> {
        sizes.iter().map(|size| self.coerce(operation, ScalarType::Int64, *size).value).collect()
    }

    fn allocate<'b>(
        &'b self,
        shape: Vec<Value>,
        strides: Option<Vec<Value>>,
        dtype: DTypeValue<'b>,
        device: DeviceValue<'b>,
    ) -> TensorRef<'b> {
        const OPERATION: &str = "alloc_tensor";
        self.is_in_graph(OPERATION);
        if shape.len() > MOST_DIMENSIONS {
            let problem = format!("expected at most {MOST_DIMENSIONS} dimensions, got {}", shape.len());
            self.error(OPERATION, problem);
            return TensorRef::missing(self);
        }
        let ops: &'b dyn Ops = self;
        let Some(on) = device.bits(ops, OPERATION) else { return TensorRef::missing(self) };
        let Some(bits) = dtype.bits(ops, OPERATION) else { return TensorRef::missing(self) };
        let owned = new_owned(self, KnownOwned::Nothing);
        let names: Vec<Dim> = (0..shape.len()).map(|d| dim(format!("d{d}"))).collect();
        let mut ty = TensorType::new(names.clone(), dtype.stated()).with_device(device.stated());
        if strides.is_some() {
            ty.layout = Layout::Strides(names);
        }
        let address = self.emit(|l| {
            l.check_sizes(&shape, strides.as_deref());
            l.check_memory(&shape, strides.as_deref(), bits);
            let object = l.allocated(&shape, strides.as_deref(), bits, on, owned.any);
            let descriptor = l.b.ptr_add_imm(object, i64::from(HEADER));
            let data = l.b.load(Type::Ptr, descriptor, DATA, MemFlags::ALIGNED);
            let offset = l.b.load(Type::I64, descriptor, BYTE_OFFSET, MemFlags::ALIGNED);
            Some((l.b.ptr_add(data, offset), descriptor))
        });
        let Some((data, descriptor)) = address else { return TensorRef::missing(self) };
        let (life, origin) = (ops.life_of_part(owned.any), Origin::Object(owned.any));
        let (data, descriptor) = (Some(data), Some(descriptor));
        let vars =
            self.arena.tensor(TensorVars { ty, data, shape, strides, descriptor, may_be_absent: false, origin, life });
        TensorRef::new(self, "an allocated tensor", vars)
    }
}

impl BodyLowerer<'_> {
    /// Raises an error if a size or a stride is negative.
    fn check_sizes(&mut self, shape: &[Value], strides: Option<&[Value]>) {
        for (what, values) in [("size", shape), ("stride", strides.unwrap_or_default())] {
            for (d, value) in values.iter().enumerate() {
                if self.b.as_int_const(*value).is_some_and(|value| value >= 0) {
                    continue;
                }
                let fine = self.b.icmp_imm(IntCC::SGe, *value, 0);
                let text =
                    format!("`{}` allocates a tensor whose {what} {d} is ", shown(self.signature, Subject::Call));
                let value = *value;
                self.check(fine, |l| {
                    let pieces = [Piece::Text(&text), Piece::Value(Directive::Number, 0)];
                    Failure { template: l.pool.constants.template("ValueError", &pieces), values: vec![value] }
                });
            }
        }
    }

    /// Raises an error if a tensor's byte count doesn't fit in 63 bits. A tensor without elements needs no bytes.
    fn check_memory(&mut self, shape: &[Value], strides: Option<&[Value]>, dtype: DTypeBits) {
        let mut all = Product { value: dtype.bytes(self), fits: self.b.bconst(true) };
        let mut empty = self.b.bconst(false);
        match strides {
            None => shape.iter().for_each(|size| all = self.times(all, *size)),
            Some(strides) => {
                let one = all;
                for (size, stride) in shape.iter().zip(strides) {
                    let last = self.b.binary_imm(BinaryOp::Sub, *size, 1);
                    let far = self.times(one, last);
                    let far = self.times(far, *stride);
                    let value = self.b.binary(BinaryOp::Add, all.value, far.value);
                    let positive = self.b.icmp_imm(IntCC::SGe, value, 0);
                    let fits = self.b.binary(BinaryOp::And, all.fits, far.fits);
                    all = Product { value, fits: self.b.binary(BinaryOp::And, fits, positive) };
                }
            }
        }
        for size in shape {
            let none = self.b.icmp_imm(IntCC::Eq, *size, 0);
            empty = self.b.binary(BinaryOp::Or, empty, none);
        }
        let fine = self.b.binary(BinaryOp::Or, empty, all.fits);
        let text =
            format!("`{}` allocates a tensor of more bytes than 63 bits count", shown(self.signature, Subject::Call));
        self.check(fine, |l| Failure {
            template: l.pool.constants.template("ValueError", &[Piece::Text(&text)]),
            values: Vec::new(),
        });
    }

    /// The product of nonnegative numbers, and whether it fits in 63 bits.
    fn times(&mut self, product: Product, factor: Value) -> Product {
        let value = self.b.binary(BinaryOp::Mul, product.value, factor);
        let high = self.b.binary(BinaryOp::UMulHi, product.value, factor);
        let no_more = self.b.icmp_imm(IntCC::Eq, high, 0);
        let positive = self.b.icmp_imm(IntCC::SGe, value, 0);
        let fits = self.b.binary(BinaryOp::And, no_more, positive);
        Product { value, fits: self.b.binary(BinaryOp::And, product.fits, fits) }
    }

    /// Creates the object of a new tensor; the `TVMFFIAny` at `any` owns it from now on.
    fn allocated(
        &mut self,
        shape: &[Value],
        strides: Option<&[Value]>,
        dtype: DTypeBits,
        device: Value,
        any: Value,
    ) -> Value {
        let null = self.b.ptr_const(0);
        let Some(strides) = strides else {
            let prototype = self.dl_tensor(null, None, shape, None, dtype, device);
            return self.call_for_tensor(capi::ENV_TENSOR_ALLOC, &[prototype], any);
        };
        // allocate one dimension with room up to the last element
        let mut span = self.b.i64(1);
        let mut empty = self.b.bconst(false);
        for (size, stride) in shape.iter().zip(strides) {
            let last = self.b.binary_imm(BinaryOp::Sub, *size, 1);
            let far = self.b.binary(BinaryOp::Mul, last, *stride);
            span = self.b.binary(BinaryOp::Add, span, far);
            let none = self.b.icmp_imm(IntCC::Eq, *size, 0);
            empty = self.b.binary(BinaryOp::Or, empty, none);
        }
        let zero = self.b.i64(0);
        let span = self.b.select(empty, zero, span);
        let memory = self.any_slot();
        let flat = self.dl_tensor(null, None, &[span], None, dtype, device);
        let object = self.call_for_tensor(capi::ENV_TENSOR_ALLOC, &[flat], memory);
        let depth = self.exits.depth();
        self.hold(super::held::Held::Value(memory));
        let descriptor = self.b.ptr_add_imm(object, i64::from(HEADER));
        let data = self.b.load(Type::Ptr, descriptor, DATA, MemFlags::ALIGNED);
        let offset = self.b.load(Type::I64, descriptor, BYTE_OFFSET, MemFlags::ALIGNED);
        let view = self.dl_tensor(data, Some(offset), shape, Some(strides), dtype, device);
        let object = self.call_for_tensor(capi::TENSOR_CREATE_UNSAFE_VIEW, &[object, view], any);
        // the view keeps the memory alive
        self.let_go(depth);
        object
    }

    /// Calls a C function that creates a tensor and writes its address through the last parameter.
    fn call_for_tensor(&mut self, function: capi::CFunction, args: &[Value], any: Value) -> Value {
        let out = self.b.slot(8, 8);
        let out = self.b.stack_addr(out);
        let null = self.b.ptr_const(0);
        self.b.store(null, out, 0, MemFlags::ALIGNED);
        let function = capi::import(self.b.module(), function);
        if let Some(code) = self.b.call(function, &[args, &[out]].concat()) {
            self.exit_unless_zero(code);
        }
        let object = self.b.load(Type::Ptr, out, 0, MemFlags::ALIGNED);
        store_any(&mut self.b, any, TypeIndex::TENSOR, object);
        object
    }

    /// A `DLTensor` in the frame.
    fn dl_tensor(
        &mut self,
        data: Value,
        byte_offset: Option<Value>,
        shape: &[Value],
        strides: Option<&[Value]>,
        dtype: DTypeBits,
        device: Value,
    ) -> Value {
        let sizes = self.numbers(shape);
        let steps = match strides {
            Some(strides) => self.numbers(strides),
            None => self.b.ptr_const(0),
        };
        let slot = self.b.slot(size_of::<DLTensor>() as u32, 8);
        let tensor = self.b.stack_addr(slot);
        let ndim = self.b.iconst(Type::I32, shape.len() as i64);
        let dtype = dtype.word(self);
        let byte_offset = byte_offset.unwrap_or_else(|| self.b.i64(0));
        for (offset, value) in [
            (DATA, data),
            (DEVICE, device),
            (NDIM, ndim),
            (DTYPE, dtype),
            (SHAPE, sizes),
            (STRIDES, steps),
            (BYTE_OFFSET, byte_offset),
        ] {
            self.b.store(value, tensor, offset, MemFlags::ALIGNED);
        }
        tensor
    }

    /// Stores integers consecutively in the frame.
    pub(super) fn numbers(&mut self, values: &[Value]) -> Value {
        let slot = self.b.slot(8 * values.len().max(1) as u32, 8);
        let array = self.b.stack_addr(slot);
        for (i, value) in (0i32..).zip(values) {
            self.b.store(*value, array, 8 * i, MemFlags::ALIGNED);
        }
        array
    }
}

/// A product, an `I64`, and whether it fits in 63 bits.
#[derive(Clone, Copy)]
struct Product {
    value: Value,
    fits: Value,
}

/// The argument for passing a tensor on: a type index with its payload, or the address of a `TVMFFIAny`.
pub(super) fn evaluate(tensor: TensorRef<'_>, operation: &str) -> Option<(Option<TypeIndex>, Value)> {
    let (body, known) = (tensor.body, tensor.alive(operation)?);
    let (base, offset, device) = match known.vars.origin {
        Origin::Object(any) | Origin::Value(any) => return Some((None, any)),
        Origin::Argument => {
            // a C function has no argument of TVM FFI, and for a tensor with an open type a `DLTensor*`
            let passed = known.vars.descriptor.filter(|_| body.emit(|l| l.is_c));
            if let Some(descriptor) = passed {
                return Some((Some(TypeIndex::DL_TENSOR_PTR), descriptor));
            }
            let found = body.emit(|l| Some(l.original(known.name)))?;
            return match found {
                Ok(any) => Some((None, any)),
                Err(problem) => {
                    body.note(operation, problem);
                    None
                }
            };
        }
        Origin::View(View { base, byte_offset, device }) => (base, Some(byte_offset), device),
        Origin::Result => {
            if let Some(descriptor) = known.vars.descriptor {
                return Some((Some(TypeIndex::DL_TENSOR_PTR), descriptor));
            }
            (body.value(|l| l.data_of(known.vars)), None, device_of(tensor, operation)?)
        }
    };
    if !tensor.knows_dtype(operation) {
        return None;
    }
    let dtype = DTypeBits::Stated(known.vars.ty.exact_dtype()?);
    let descriptor = body.value(|l| {
        let vars = known.vars;
        l.dl_tensor(base, offset, &vars.shape, vars.strides.as_deref(), dtype, device)
    });
    Some((Some(TypeIndex::DL_TENSOR_PTR), descriptor))
}

#[expect(clippy::return_self_not_must_use, reason = "a body may leave a value unused")]
impl<'b> TensorRef<'b> {
    /// The tensor as far as it is known at compile time.
    pub(super) fn known_arg(self) -> KnownArg {
        let Some(Known { vars, .. }) = self.known else { return KnownArg::Unknown };
        let ty = &vars.ty;
        KnownArg::Tensor(KnownTensor { rank: ty.shape.rank(), dtype: ty.exact_dtype(), device: ty.device.kind() })
    }

    /// A view of `len` indices of dimension `d`, from `start` on. If the tensor has fewer, the function raises an
    /// `IndexError`.
    ///
    /// A view is passed to callees as a `DLTensor*` in the frame. Its `byte_offset` is the distance from the tensor's
    /// own data pointer. A view is valid until the function returns, and only as long as its tensor is.
    pub fn slice(self, d: usize, start: impl Into<Operand<'b>>, len: impl Into<Operand<'b>>) -> TensorRef<'b> {
        const OPERATION: &str = "slice";
        let Some(Known { name, vars }) = self.ranked(OPERATION) else { return TensorRef::missing(self.body) };
        let given = [start.into(), len.into()];
        let [start, len] = given.map(|size| self.body.coerce(OPERATION, ScalarType::Int64, size).value);
        let Some(&size) = vars.shape.get(d) else {
            self.body.note(OPERATION, format!("{name} has no dimension {d}: {}", vars.ty));
            return TensorRef::missing(self.body);
        };
        let view = self.view(OPERATION, |l, strides| {
            let mut fine = l.b.icmp_imm(IntCC::SGe, start, 0);
            let enough = l.b.icmp_imm(IntCC::SGe, len, 0);
            fine = l.b.binary(BinaryOp::And, fine, enough);
            // the subtraction overflows only for a negative `start`, and then the first check fails
            let left = l.b.binary(BinaryOp::Sub, size, start);
            let inside = l.b.icmp(IntCC::SLe, len, left);
            fine = l.b.binary(BinaryOp::And, fine, inside);
            let before = l.b.icmp(IntCC::SLe, start, size);
            fine = l.b.binary(BinaryOp::And, fine, before);
            let text = format!("`{}` takes a slice of dimension {d} of {name} of ", shown(l.signature, Subject::Call));
            l.check(fine, |l| {
                let number = |field| Piece::Value(Directive::Number, field);
                let pieces = [
                    Piece::Text(&text),
                    number(0),
                    Piece::Text(" indices from "),
                    number(1),
                    Piece::Text(" on, and its size is "),
                    number(2),
                ];
                let template = l.pool.constants.template("IndexError", &pieces);
                Failure { template, values: vec![len, start, size] }
            });
            let offset = l.b.binary(BinaryOp::Mul, start, strides[d]);
            let mut shape = vars.shape.clone();
            shape[d] = len;
            // slicing the outermost dimension keeps a contiguous tensor contiguous
            let strides = (d > 0 || vars.ty.layout != Layout::Contiguous).then(|| strides.to_vec());
            (offset, shape, strides)
        });
        self.body.recorder().inspect(|recorder| recorder.made_tensor(view, recorder.slice(self, d, given)));
        view
    }

    /// A view with permuted dimensions: dimension `i` of the view is dimension `order[i]` of the tensor.
    pub fn transpose(self, order: impl IntoIterator<Item = usize>) -> TensorRef<'b> {
        const OPERATION: &str = "transpose";
        let Some(Known { name, vars }) = self.ranked(OPERATION) else { return TensorRef::missing(self.body) };
        let order: Vec<usize> = order.into_iter().collect();
        let mut sorted = order.clone();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..vars.shape.len()) {
            self.body
                .note(OPERATION, format!("{order:?} isn't an order of the {} dimensions of {name}", vars.shape.len()));
            return TensorRef::missing(self.body);
        }
        let view = self.view(OPERATION, |l, strides| {
            let zero = l.b.i64(0);
            let shape = order.iter().map(|d| vars.shape[*d]).collect();
            (zero, shape, Some(order.iter().map(|d| strides[*d]).collect()))
        });
        self.body.recorder().inspect(|recorder| recorder.made_tensor(view, recorder.transpose(self, &order)));
        view
    }

    /// A view of a contiguous tensor with another shape and the same number of elements. A tensor with strides is an
    /// error in the body. If the number of elements differs, the function raises a `ValueError`.
    pub fn reshape<O: Into<Operand<'b>>>(self, shape: impl IntoIterator<Item = O>) -> TensorRef<'b> {
        const OPERATION: &str = "reshape";
        let Some(Known { name, vars }) = self.ranked(OPERATION) else { return TensorRef::missing(self.body) };
        if vars.ty.layout != Layout::Contiguous {
            self.body.note(OPERATION, format!("{name} isn't compact: {}", vars.ty));
            return TensorRef::missing(self.body);
        }
        let sizes: Vec<Operand<'b>> = shape.into_iter().map(Into::into).collect();
        let shape: Vec<Value> =
            sizes.iter().map(|size| self.body.coerce(OPERATION, ScalarType::Int64, *size).value).collect();
        let view = self.view(OPERATION, |l, _| {
            let product = |l: &mut BodyLowerer<'_>, sizes: &[Value]| {
                let one = Product { value: l.b.i64(1), fits: l.b.bconst(true) };
                sizes.iter().fold(one, |all, size| l.times(all, *size))
            };
            let before = product(l, &vars.shape).value;
            let Product { value: after, fits } = product(l, &shape);
            let same = l.b.icmp(IntCC::Eq, before, after);
            let mut fine = l.b.binary(BinaryOp::And, same, fits);
            for size in &shape {
                let positive = l.b.icmp_imm(IntCC::SGe, *size, 0);
                fine = l.b.binary(BinaryOp::And, fine, positive);
            }
            let text = format!("`{}` gives {name} of ", shown(l.signature, Subject::Call));
            l.check(fine, |l| {
                let pieces = [
                    Piece::Text(&text),
                    Piece::Value(Directive::Number, 0),
                    Piece::Text(" elements a shape of "),
                    Piece::Value(Directive::Number, 1),
                ];
                let template = l.pool.constants.template("ValueError", &pieces);
                Failure { template, values: vec![before, after] }
            });
            let zero = l.b.i64(0);
            (zero, shape.clone(), None)
        });
        self.body.recorder().inspect(|recorder| recorder.made_tensor(view, recorder.reshape(self, &sizes)));
        view
    }

    /// Placeholder for a tensor after an error.
    pub(in crate::lower) fn missing_in(body: &'b Body<'_>) -> Self {
        TensorRef::missing(body)
    }

    /// The value that owns the tensor. The tensor is from [`Body::alloc_tensor`], or is the result of a call.
    pub fn owned(self) -> super::calls::Owned<'b> {
        let any = self.known.and_then(|known| match known.vars.origin {
            Origin::Object(any) => Some((any, known.vars.life)),
            _ => None,
        });
        let Some((any, life)) = any else {
            if self.known.is_some() {
                self.body.note("owned", "the tensor isn't one that the body owns".to_owned());
            }
            return new_owned(self.body, KnownOwned::Nothing);
        };
        let loops = life.part_of.map(|part| part.loops);
        super::calls::Owned { body: self.body, any, scope: life.scope, known: KnownOwned::Nothing, loops }
    }

    /// The tensor, if its number of dimensions is known; otherwise records an error.
    fn ranked(self, operation: &str) -> Option<Known<'b>> {
        self.known.filter(|_| self.knows_rank(operation))
    }

    /// Creates a view. `change` takes the strides and returns the distance of the first element in elements, the shape,
    /// and the strides (`None` if contiguous).
    fn view(
        self,
        operation: &str,
        change: impl FnOnce(&mut BodyLowerer<'_>, &[Value]) -> (Value, Vec<Value>, Option<Vec<Value>>),
    ) -> TensorRef<'b> {
        let (body, Some(Known { name, vars })) = (self.body, self.known) else { return self };
        let known = self.knows_dtype(operation) && self.knows_device(operation);
        let Some(dtype) = vars.ty.exact_dtype().filter(|_| known) else { return TensorRef::missing(body) };
        let bits = i64::from(dtype.bits) * i64::from(dtype.lanes);
        if bits % 8 != 0 {
            body.note(operation, format!("elements of {dtype} aren't whole bytes"));
            return TensorRef::missing(body);
        }
        if vars.ty.is_opaque() && !matches!(vars.origin, Origin::View(_) | Origin::Object(_)) {
            body.note(operation, format!("{name} is on {}, whose data has no address", vars.ty.device));
            return TensorRef::missing(body);
        }
        let Some(device) = device_of(self, operation) else { return TensorRef::missing(body) };
        let made = body.emit(|l| {
            let strides = l.strides_of(vars);
            let (elements, shape, strides) = change(l, &strides);
            let further = l.b.binary_imm(BinaryOp::Mul, elements, bits / 8);
            let (base, byte_offset) = match vars.origin {
                Origin::View(view) => (view.base, l.b.binary(BinaryOp::Add, view.byte_offset, further)),
                _ => (l.data_of(vars), further),
            };
            let data = l.b.ptr_add(base, byte_offset);
            Some((data, shape, strides, View { base, byte_offset, device }))
        });
        let Some((data, shape, strides, view)) = made else { return TensorRef::missing(body) };
        let names: Vec<Dim> = (0..shape.len()).map(|d| dim(format!("d{d}"))).collect();
        let mut ty = TensorType::new(names.clone(), dtype).with_device(vars.ty.device.clone());
        if strides.is_some() {
            ty.layout = Layout::Strides(names);
        }
        // a slice can begin at any element, so no alignment is known
        ty.align = None;
        let (arena, origin, data) = (body.arena(), Origin::View(view), Some(data));
        // the view is part of the same owner, and is computed here
        let life = Life { part_of: vars.life.part_of, ..body.life() };
        let name = arena.name(format!("a view of {name}"));
        TensorRef::new(
            body,
            name,
            arena.tensor(TensorVars { ty, data, shape, strides, descriptor: None, may_be_absent: false, origin, life }),
        )
    }
}
