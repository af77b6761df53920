//! Questions of a body about tensors whose types a signature leaves open, and about dtypes and devices.

use super::args::TensorVars;
use super::builder::Body;
use super::calls::CallResult;
use super::dtype_device::{DTypeBits, DTypeValue, DeviceValue};
use super::expr::{Expr, Ops};
use super::function::BodyLowerer;
use super::tensor::{Known, TensorRef};
use crate::ir::{BinaryOp, ConvertOp, IntCC, Type, Value};
use crate::lower::abi::fields;
use crate::lower::abi::tensor::NDIM;
use crate::lower::device_api::{APIS, Api};
use crate::lower::encode::{Subject, shown};
use crate::spec::{Device, DeviceId, Layout, ScalarType};
use tvm_ffi_runtime::abi::DLDeviceType;

impl<'b> From<CallResult<'b>> for DTypeValue<'b> {
    fn from(result: CallResult<'b>) -> Self {
        (*result).into()
    }
}

impl<'b> From<CallResult<'b>> for DeviceValue<'b> {
    fn from(result: CallResult<'b>) -> Self {
        (*result).into()
    }
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
        self.expr(same, ScalarType::Bool).recorded(|recorder| recorder.same_dtype(a, b))
    }

    /// Whether two devices are the same: of one kind and with one id.
    pub fn same_device<'b>(&'b self, a: impl Into<DeviceValue<'b>>, b: impl Into<DeviceValue<'b>>) -> Expr<'b> {
        const OPERATION: &str = "same_device";
        let (a, b) = (a.into(), b.into());
        let (Some(left), Some(right)) = (a.bits(self, OPERATION), b.bits(self, OPERATION)) else {
            return self.placeholder(ScalarType::Bool);
        };
        let same = self.value(|l| l.b.icmp(IntCC::Eq, left, right));
        self.expr(same, ScalarType::Bool).recorded(|recorder| recorder.same_device(a, b))
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
        self.expr(same, ScalarType::Bool).recorded(|recorder| recorder.is_device_kind(device, kind))
    }

    /// The id of a device among the devices of its kind, an `int64`.
    pub fn device_id<'b>(&'b self, device: impl Into<DeviceValue<'b>>) -> Expr<'b> {
        let device = device.into();
        if let Device::Kind(_, DeviceId::Fixed(id)) = device.stated() {
            let id = self.value(|l| l.b.i64(i64::from(id)));
            return self.expr(id, ScalarType::Int64).recorded(|recorder| recorder.device_id(device));
        }
        let Some(bits) = device.bits(self, "device_id") else { return self.placeholder(ScalarType::Int64) };
        let id = self.value(|l| {
            let id = fields::second(&mut l.b, bits);
            l.b.convert(ConvertOp::SExt, Type::I64, id)
        });
        self.expr(id, ScalarType::Int64).recorded(|recorder| recorder.device_id(device))
    }

    /// The compute capability of a device of CUDA or ROCm, an `int64`: ten times the major number, plus the minor one.
    /// Launches choose images by it. The kind of the device must be known.
    ///
    /// The first question does a device's first-use work, as a launch does. If it fails, such as on a machine without
    /// the driver, the function releases what the body owns and raises the error.
    pub fn device_capability<'b>(&'b self, device: impl Into<DeviceValue<'b>>) -> Expr<'b> {
        const OPERATION: &str = "device_capability";
        let device = device.into();
        let Some(bits) = device.bits(self, OPERATION) else { return self.placeholder(ScalarType::Int64) };
        let Some(api) = self.api_of(OPERATION, device) else { return self.placeholder(ScalarType::Int64) };
        let capability = self.value(|l| l.capability(api, bits));
        self.expr(capability, ScalarType::Int64).recorded(|recorder| recorder.device_capability(device))
    }

    /// The API of a device that has a compute capability; otherwise records an error.
    fn api_of(&self, operation: &str, device: DeviceValue<'_>) -> Option<&'static Api> {
        let kind = match (device.stated().kind(), device) {
            (Some(kind), _) => kind,
            (None, DeviceValue::Of(tensor)) => {
                tensor.knows_device(operation);
                return None;
            }
            (None, _) => {
                self.error(operation, "the kind of the device is open; ask for the device of a tensor");
                return None;
            }
        };
        let api = Api::of(kind);
        if api.is_none() {
            let known: Vec<String> = APIS.iter().map(|api| api.device.to_string()).collect();
            let known = known.join(" or ");
            self.error(operation, format!("expected a device of {known}, got {}", Device::of(kind)));
        }
        api
    }
}

impl BodyLowerer<'_> {
    /// The compute capability of a device of an API, an `I64`. Leaves the body with the error if the driver fails.
    fn capability(&mut self, api: &'static Api, device: Value) -> Value {
        let called = shown(self.signature, Subject::Call);
        let (module, pool) = (self.b.module(), &mut *self.pool);
        let questions = self.drivers.questions(module, &mut pool.constants, pool.data, api);
        let caller = format!("Cannot ask for the compute capability of a device when calling: `{called}`");
        let caller = (pool.data, pool.constants.text(&caller));
        let number = fields::second(&mut self.b, device);
        let failed = self.b.cold_block();
        let code = self.b.block_param(failed, Type::I32);
        let capability = self.b.structured(|c| questions.capability(c.val(number), caller, failed).value());
        let here = self.b.current();
        self.b.switch_to(failed);
        self.exit(code);
        self.b.switch_to(here);
        capability
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
        Expr::new(self.body, ndim, ScalarType::Int64).recorded(|recorder| recorder.ndim(self))
    }

    /// Whether the elements are contiguous and row-major. The strides of dimensions of size 1 don't matter, nor do
    /// those of a tensor without elements.
    pub fn is_contiguous(self) -> Expr<'b> {
        let Some(Known { vars, .. }) = self.alive("is_contiguous") else { return self.body.zero(ScalarType::Bool) };
        let contiguous = self.body.value(|l| match vars.ty.layout {
            Layout::Contiguous => l.b.bconst(true),
            _ => l.is_contiguous(vars),
        });
        Expr::new(self.body, contiguous, ScalarType::Bool).recorded(|recorder| recorder.is_contiguous(self))
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
        Expr::new(self.body, aligned, ScalarType::Bool).recorded(|recorder| recorder.is_aligned(self, bytes))
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
