//! What a body can ask about values whose types a signature leaves open: the dtype, device, number of dimensions,
//! strides and alignment of a tensor, and the bits of `dtype` and `device` parameters.

use super::args::{Origin, TensorVars, View};
use super::builder::Body;
use super::calls::CallResult;
use super::expr::{Expr, Ops};
use super::function::BodyLowerer;
use super::param::ParamRef;
use super::tensor::{Known, TensorRef};
use crate::ir::{BinaryOp, ConvertOp, FuncRef, FuncSig, Hint, IntCC, MemFlags, Module, Type, Value};
use crate::lower::abi::fields::{self, DTypeField, before_zeros, dtype_word, pair};
use crate::lower::abi::tensor::{DATA, DEVICE, DTYPE, NDIM, SHAPE, STRIDES};
use crate::lower::abi::{HEADER, PAYLOAD};
use crate::spec::{DType, Device, DeviceId, Layout, ParamType, ScalarType};
use tvm_ffi_runtime::abi::{DLDataType, DLDevice, DLDeviceType};

/// A dtype in a body.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum DTypeValue<'b> {
    /// A stated dtype.
    Stated(DLDataType),
    /// The dtype of a tensor.
    Of(TensorRef<'b>),
    /// The bits of a dtype, as [`Body::arg`] returns them for a parameter of type `dtype`.
    Bits(Expr<'b>),
}

/// A device in a body.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum DeviceValue<'b> {
    /// A stated device.
    Stated(DLDevice),
    /// The device of a tensor.
    Of(TensorRef<'b>),
    /// The bits of a device, as [`Body::arg`] returns them for a parameter of type `device`.
    Bits(Expr<'b>),
}

impl From<DLDataType> for DTypeValue<'_> {
    fn from(dtype: DLDataType) -> Self {
        DTypeValue::Stated(dtype)
    }
}

impl From<DLDevice> for DeviceValue<'_> {
    fn from(device: DLDevice) -> Self {
        DeviceValue::Stated(device)
    }
}

macro_rules! values_from {
    ($($Value:ident $kind:ident;)*) => {$(
        impl<'b> From<TensorRef<'b>> for $Value<'b> {
            fn from(tensor: TensorRef<'b>) -> Self {
                $Value::Of(tensor)
            }
        }

        impl<'b> From<ParamRef<'b>> for $Value<'b> {
            fn from(param: ParamRef<'b>) -> Self {
                match param.ty() {
                    Some(ParamType::$kind) => $Value::Bits(param.value()),
                    _ => $Value::Of(param.tensor()),
                }
            }
        }

        impl<'b> From<CallResult<'b>> for $Value<'b> {
            fn from(result: CallResult<'b>) -> Self {
                (*result).into()
            }
        }
    )*};
}
values_from! {
    DTypeValue DType;
    DeviceValue Device;
}

/// The bits of a dtype, which are computed where they are used.
#[derive(Clone, Copy)]
pub(super) enum DTypeBits {
    Stated(DLDataType),
    /// An `I32` as loaded from a `DLDataType`.
    Computed(Value),
}

impl DTypeBits {
    /// The bits, an `I32` as loaded from a `DLDataType`.
    pub(super) fn word(self, l: &mut BodyLowerer<'_>) -> Value {
        match self {
            DTypeBits::Stated(dtype) => {
                let word = dtype_word(l.b.module().endianness, dtype);
                l.b.iconst(Type::I32, i64::from(word as i32))
            }
            DTypeBits::Computed(word) => word,
        }
    }

    /// The number of bytes of an element, rounded up, an `I64`.
    pub(super) fn bytes(self, l: &mut BodyLowerer<'_>) -> Value {
        match self {
            DTypeBits::Stated(dtype) => l.b.i64((i64::from(dtype.bits) * i64::from(dtype.lanes) + 7) / 8),
            DTypeBits::Computed(word) => {
                let word = l.b.convert(ConvertOp::ZExt, Type::I64, word);
                let [bits, lanes] = [DTypeField::Bits, DTypeField::Lanes].map(|field| field.of(&mut l.b, word));
                let bits = l.b.binary(BinaryOp::Mul, bits, lanes);
                let bits = l.b.binary_imm(BinaryOp::Add, bits, 7);
                let shift = l.b.i64(3);
                l.b.binary(BinaryOp::LShr, bits, shift)
            }
        }
    }
}

impl<'b> DTypeValue<'b> {
    /// The dtype, if it is known at compile time.
    fn exact(self) -> Option<DLDataType> {
        match self {
            DTypeValue::Stated(dtype) => Some(dtype),
            DTypeValue::Of(tensor) => tensor.known?.vars.ty.exact_dtype(),
            DTypeValue::Bits(_) => None,
        }
    }

    /// What is known of the dtype at compile time.
    pub(super) fn stated(self) -> DType {
        self.exact().map_or(DType::Any, DType::Exact)
    }

    /// The bits. Records an error if the value isn't usable here.
    pub(super) fn bits(self, body: &'b dyn Ops, operation: &str) -> Option<DTypeBits> {
        let computed = match self {
            DTypeValue::Stated(dtype) => return Some(DTypeBits::Stated(dtype)),
            DTypeValue::Of(tensor) => {
                let vars = tensor.alive(operation)?.vars;
                match vars.ty.exact_dtype() {
                    Some(dtype) => return Some(DTypeBits::Stated(dtype)),
                    None => body.value(|l| l.field_of(vars, Type::I32, DTYPE)),
                }
            }
            DTypeValue::Bits(bits) => expect_bits(body, operation, bits, ScalarType::UInt32, "dtype")?,
        };
        Some(DTypeBits::Computed(computed))
    }
}

impl<'b> DeviceValue<'b> {
    /// What is known of the device at compile time.
    pub(super) fn stated(self) -> Device {
        match self {
            DeviceValue::Stated(device) => Device::numbered(device.device_type, device.device_id),
            DeviceValue::Of(tensor) => match tensor.known.map(|known| &known.vars.ty.device) {
                Some(device @ Device::Kind(..)) => device.clone(),
                _ => Device::Any,
            },
            DeviceValue::Bits(_) => Device::Any,
        }
    }

    /// The bits, an `I64` as loaded from a `DLDevice`. Records an error if the value isn't usable here.
    pub(super) fn bits(self, body: &'b dyn Ops, operation: &str) -> Option<Value> {
        match self {
            DeviceValue::Stated(device) => Some(body.value(|l| {
                let order = l.b.module().endianness;
                l.b.i64(pair(order, device.device_type.0 as u32, device.device_id as u32))
            })),
            DeviceValue::Of(tensor) => device_of(tensor, operation),
            DeviceValue::Bits(bits) => expect_bits(body, operation, bits, ScalarType::UInt64, "device"),
        }
    }
}

/// The bits of a dtype or a device, which have the type of such a parameter.
fn expect_bits(body: &dyn Ops, operation: &str, bits: Expr<'_>, ty: ScalarType, what: &str) -> Option<Value> {
    if bits.ty() == ty {
        return Some(bits.used(operation).value);
    }
    if !bits.is_missing() {
        body.note(operation, format!("expected the bits of a {what}, a {ty}, got {}", bits.ty()));
    }
    None
}

impl Body<'_> {
    /// Whether two dtypes are the same.
    ///
    /// ```
    /// use tvm_ffi_codegen::lower::TensorFact;
    /// use tvm_ffi_codegen::{DLDataType, Kernel, Signature};
    ///
    /// let signature: Signature = "first(x: Tensor([n], any)) -> float64".parse()?;
    /// let kernel = Kernel::body(|b| {
    ///     let x = b.tensor("x");
    ///     b.if_(b.same_dtype(x, DLDataType::FLOAT64), || {
    ///         b.ret(x.assume(TensorFact::DType(DLDataType::FLOAT64)).load([0]));
    ///     });
    ///     b.raise("TypeError", "expected float64", ());
    /// });
    /// # tvm_ffi_codegen::lower::lower(&signature, &kernel, Default::default())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn same_dtype<'b>(&'b self, a: impl Into<DTypeValue<'b>>, b: impl Into<DTypeValue<'b>>) -> Expr<'b> {
        const OPERATION: &str = "same_dtype";
        let (a, b) = (a.into(), b.into());
        let (Some(left), Some(right)) = (a.bits(self, OPERATION), b.bits(self, OPERATION)) else {
            return self.placeholder(ScalarType::Bool);
        };
        let same = self.value(|l| match (left, right) {
            (DTypeBits::Stated(left), DTypeBits::Stated(right)) => l.b.bconst(left == right),
            _ => {
                let [left, right] = [left, right].map(|bits| bits.word(l));
                l.b.icmp(IntCC::Eq, left, right)
            }
        });
        self.expr(same, ScalarType::Bool)
    }

    /// Whether two devices are the same: of one kind and with one id.
    pub fn same_device<'b>(&'b self, a: impl Into<DeviceValue<'b>>, b: impl Into<DeviceValue<'b>>) -> Expr<'b> {
        const OPERATION: &str = "same_device";
        let (a, b) = (a.into(), b.into());
        let (Some(left), Some(right)) = (a.bits(self, OPERATION), b.bits(self, OPERATION)) else {
            return self.placeholder(ScalarType::Bool);
        };
        self.expr(self.value(|l| l.b.icmp(IntCC::Eq, left, right)), ScalarType::Bool)
    }

    /// Whether a device is of that kind.
    pub fn is_device_kind<'b>(&'b self, device: impl Into<DeviceValue<'b>>, kind: DLDeviceType) -> Expr<'b> {
        let device = device.into();
        let same = match device.stated().kind() {
            Some(known) => self.value(|l| l.b.bconst(known == kind)),
            None => {
                let Some(bits) = device.bits(self, "is_device_kind") else {
                    return self.placeholder(ScalarType::Bool);
                };
                self.value(|l| {
                    let found = fields::first(&mut l.b, bits);
                    l.b.icmp_imm(IntCC::Eq, found, i64::from(kind.0))
                })
            }
        };
        self.expr(same, ScalarType::Bool)
    }

    /// The id of a device among the devices of its kind, an `int64`.
    pub fn device_id<'b>(&'b self, device: impl Into<DeviceValue<'b>>) -> Expr<'b> {
        let device = device.into();
        if let Device::Kind(_, DeviceId::Fixed(id)) = device.stated() {
            return self.i64(i64::from(id));
        }
        let Some(bits) = device.bits(self, "device_id") else { return self.placeholder(ScalarType::Int64) };
        let id = self.value(|l| {
            let id = fields::second(&mut l.b, bits);
            l.b.convert(ConvertOp::SExt, Type::I64, id)
        });
        self.expr(id, ScalarType::Int64)
    }
}

impl<'b> TensorRef<'b> {
    /// The number of dimensions, an `int64`.
    pub fn ndim(self) -> Expr<'b> {
        let Some(Known { vars, .. }) = self.alive("ndim") else { return self.body.zero(ScalarType::Int64) };
        let ndim = self.body.value(|l| match vars.ty.shape.rank() {
            Some(rank) => l.b.i64(rank as i64),
            None => {
                let ndim = l.field_of(vars, Type::I32, NDIM);
                l.b.convert(ConvertOp::SExt, Type::I64, ndim)
            }
        });
        Expr::new(self.body, ndim, ScalarType::Int64)
    }

    /// Whether the elements are contiguous and row-major. The strides of dimensions of size 1 don't matter, nor do
    /// those of a tensor without elements.
    pub fn is_contiguous(self) -> Expr<'b> {
        let Some(Known { vars, .. }) = self.alive("is_contiguous") else { return self.body.zero(ScalarType::Bool) };
        let contiguous = self.body.value(|l| match vars.ty.layout {
            Layout::Contiguous => l.b.bconst(true),
            _ => l.is_contiguous(vars),
        });
        Expr::new(self.body, contiguous, ScalarType::Bool)
    }

    /// Whether the address of the first element is a multiple of that many bytes, a power of two.
    pub fn is_aligned(self, bytes: u32) -> Expr<'b> {
        const OPERATION: &str = "is_aligned";
        let missing = || self.body.zero(ScalarType::Bool);
        if !is_alignment(self.body, OPERATION, bytes) {
            return missing();
        }
        let Some(address) = self.data(OPERATION) else { return missing() };
        let known = self.known.is_some_and(|known| known.vars.ty.alignment() >= bytes);
        let aligned = self.body.value(|l| {
            if known {
                return l.b.bconst(true);
            }
            let address = l.b.convert(ConvertOp::PtrToInt, Type::I64, address.value);
            let rest = l.b.binary_imm(BinaryOp::And, address, i64::from(bytes) - 1);
            l.b.icmp_imm(IntCC::Eq, rest, 0)
        });
        Expr::new(self.body, aligned, ScalarType::Bool)
    }

    /// Records an error and returns `false` if the number of dimensions is open.
    pub(super) fn knows_rank(self, operation: &str) -> bool {
        self.knows(operation, "number of dimensions", |vars| vars.ty.shape.rank().is_some())
    }

    /// Records an error and returns `false` if the dtype is open.
    pub(super) fn knows_dtype(self, operation: &str) -> bool {
        self.knows(operation, "dtype", |vars| vars.ty.exact_dtype().is_some())
    }

    /// Records an error and returns `false` if the kind of device is open.
    pub(super) fn knows_device(self, operation: &str) -> bool {
        self.knows(operation, "kind of device", |vars| vars.ty.device.kind().is_some())
    }

    fn knows(self, operation: &str, what: &str, known: impl FnOnce(&TensorVars) -> bool) -> bool {
        let Some(Known { name, vars }) = self.known else { return false };
        let known = known(vars);
        if !known {
            self.body.note(operation, format!("the {what} of {name} is open; ask for it before: {}", vars.ty));
        }
        known
    }
}

/// Whether an alignment is a power of two that types may state; otherwise records an error.
pub(super) fn is_alignment(body: &dyn Ops, operation: &str, bytes: u32) -> bool {
    let fits = bytes.is_power_of_two() && bytes <= MOST_ALIGN;
    if !fits {
        let problem = format!("expected a power of two of at most {MOST_ALIGN} for the alignment, got {bytes}");
        body.note(operation, problem);
    }
    fits
}

/// The greatest alignment that a body asks for: a page.
const MOST_ALIGN: u32 = 4096;

impl BodyLowerer<'_> {
    /// Loads a field of a tensor's descriptor. A tensor with a closed type has no descriptor, and all of its fields are
    /// known otherwise.
    pub(super) fn field_of(&mut self, vars: &TensorVars, ty: Type, offset: i32) -> Value {
        let Some(descriptor) = vars.descriptor else {
            return if ty == Type::Ptr { self.b.ptr_const(0) } else { self.b.iconst(ty, 0) };
        };
        self.b.load(ty, descriptor, offset, descriptor_flags(vars))
    }

    /// Loads integers that a descriptor has a pointer to.
    pub(super) fn entries_of(&mut self, vars: &TensorVars, offset: i32, count: usize) -> Vec<Value> {
        let array = self.field_of(vars, Type::Ptr, offset);
        let flags = descriptor_flags(vars);
        (0..count as i32).map(|d| self.b.load(Type::I64, array, 8 * d, flags)).collect()
    }

    /// The address of a tensor's first element.
    pub(super) fn data_of(&mut self, vars: &TensorVars) -> Value {
        vars.data.unwrap_or_else(|| self.field_of(vars, Type::Ptr, DATA))
    }

    /// The strides of a tensor, in elements. The number of dimensions must be known.
    pub(super) fn strides_of(&mut self, vars: &TensorVars) -> Vec<Value> {
        if let Some(strides) = &vars.strides {
            return strides.clone();
        }
        if vars.ty.layout != Layout::Contiguous {
            return self.entries_of(vars, STRIDES, vars.shape.len());
        }
        let mut strides = Vec::with_capacity(vars.shape.len());
        let mut step = self.b.i64(1);
        for size in vars.shape.iter().rev() {
            strides.push(step);
            step = self.b.binary(BinaryOp::Mul, step, *size);
        }
        strides.reverse();
        strides
    }

    /// Whether a tensor with strides is contiguous, a `Bool`.
    fn is_contiguous(&mut self, vars: &TensorVars) -> Value {
        let [shape, strides, ndim] = match vars.ty.shape.rank() {
            None => {
                let ndim = self.field_of(vars, Type::I32, NDIM);
                let ndim = self.b.convert(ConvertOp::SExt, Type::I64, ndim);
                [self.field_of(vars, Type::Ptr, SHAPE), self.field_of(vars, Type::Ptr, STRIDES), ndim]
            }
            Some(rank) => {
                let strides = self.strides_of(vars);
                let [shape, strides] = [&vars.shape, &strides].map(|values| self.numbers(values));
                [shape, strides, self.b.i64(rank as i64)]
            }
        };
        let function = contiguous(self.b.module());
        match self.b.call(function, &[shape, strides, ndim]) {
            Some(contiguous) => self.b.icmp_imm(IntCC::Ne, contiguous, 0),
            None => self.b.bconst(false),
        }
    }
}

/// How a tensor's descriptor is read. That of an argument doesn't change during the call. That of another value may be
/// in memory that the next turn of a loop writes.
fn descriptor_flags(vars: &TensorVars) -> MemFlags {
    match vars.origin {
        Origin::Argument | Origin::Result => MemFlags::READONLY,
        Origin::Object(_) | Origin::Value(_) | Origin::View(_) => MemFlags::ALIGNED,
    }
}

/// `int32_t contiguous(const int64_t* shape, const int64_t* strides, int64_t ndim)`: returns 1 if strides are those of
/// a contiguous tensor, or don't matter.
fn contiguous(module: &mut Module) -> FuncRef {
    const NAME: &str = "__tvm_ffi_codegen_contiguous";
    let sig = FuncSig::c([Type::Ptr, Type::Ptr, Type::I64], Some(Type::I32));
    module.local_once(NAME, sig, |c| {
        let [shape, strides, ndim] = c.params();
        let [head, look, next, same, differ] = c.blocks();
        let (left, step) = (c.block_param(head, Type::I64), c.block_param(head, Type::I64));
        let wrong = c.block_param(head, Type::I64);
        c.jump(head, &[ndim, c.i64(1), c.i64(0)]);
        c.switch_to(head);
        let done = c.block();
        c.branch(left.gt(0), look, done, Hint::None);
        c.switch_to(look);
        let dim = left - 1;
        let size = shape.element(dim, Type::I64).load(Type::I64, 0);
        // no stride of a tensor without elements matters, whatever the other dimensions are
        c.branch(size.is(0), same, next, Hint::None);
        c.switch_to(next);
        let differs = strides.element(dim, Type::I64).load(Type::I64, 0).is_not(step) & size.is_not(1);
        c.jump(head, &[dim, step * size, wrong | differs.zext()]);
        c.switch_to(done);
        c.branch(wrong.is(0), same, differ, Hint::None);
        for (block, result) in [(differ, 0), (same, 1)] {
            c.switch_to(block);
            c.ret(c.i32(result));
        }
    })
}

/// The device of a tensor, an `I64` as loaded from a `DLDevice`. Records an error if the device isn't known.
pub(super) fn device_of(tensor: TensorRef<'_>, operation: &str) -> Option<Value> {
    let (body, known) = (tensor.body, tensor.alive(operation)?);
    let found = body.emit(|l| Some(l.device_of(known)))?;
    match found {
        Ok(device) => Some(device),
        Err(problem) => {
            body.note(operation, problem);
            None
        }
    }
}

impl BodyLowerer<'_> {
    fn device_of(&mut self, Known { name, vars }: Known<'_>) -> Result<Value, String> {
        Ok(match vars.origin {
            Origin::View(View { device, .. }) => device,
            Origin::Object(any) => {
                let object = self.b.load(Type::Ptr, any, PAYLOAD, MemFlags::ALIGNED);
                self.b.load(Type::I64, object, HEADER + DEVICE, MemFlags::ALIGNED)
            }
            _ if vars.descriptor.is_some() => self.field_of(vars, Type::I64, DEVICE),
            Origin::Value(any) => {
                let descriptor = self.descriptor_of(any);
                self.b.load(Type::I64, descriptor, DEVICE, MemFlags::ALIGNED)
            }
            Origin::Argument => {
                let any = self.original(name)?;
                let descriptor = self.descriptor_of(any);
                self.b.load(Type::I64, descriptor, DEVICE, MemFlags::ALIGNED)
            }
            Origin::Result => match vars.ty.device {
                Device::Kind(kind, id) if kind == DLDeviceType::CPU || matches!(id, DeviceId::Fixed(_)) => {
                    let number = if let DeviceId::Fixed(id) = id { id } else { 0 };
                    let order = self.b.module().endianness;
                    self.b.i64(pair(order, kind.0 as u32, number as u32))
                }
                _ => {
                    let problem =
                        "the number of the result's device isn't known to the body; state it in the signature";
                    return Err(problem.to_owned());
                }
            },
        })
    }

    /// The payload of a `TVMFFIAny` that holds a dtype.
    pub(super) fn dtype_payload(&mut self, bits: DTypeBits) -> Value {
        let word = bits.word(self);
        before_zeros(&mut self.b, word)
    }
}
