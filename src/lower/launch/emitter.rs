//! A launch under construction: what it is made of, and the errors that it raises.

use super::super::convention::param::KernelParam;
use super::super::device_api::{Failures, Launchable, Texts};
use super::super::protocol::{Directive, Piece, helpers};
use super::super::unit::Pool;
use super::blocks::Blocks;
use crate::ir::{Block, FunctionBuilder, Hint, MemFlags, StackSlot, Type, Value};
use crate::spec::{Dim, Launch, Layout, ParamType, Signature, TensorType, dim};

/// A launch of a module, ready for the code that makes it.
pub(in crate::lower) struct Prepared<'a> {
    pub(super) launch: &'a Launch,
    pub(super) signature: &'a Signature,
    pub(super) code: PreparedCode,
    /// The offset of `Cannot launch kernel ...` in the constant pool, a C string.
    pub(super) caller: u32,
}

/// The code of a launched kernel, in the module.
#[derive(Clone, Copy)]
pub(super) enum PreparedCode {
    /// A kernel of a device.
    Device(DeviceCode),
    /// A function that is called for each block, on the CPU.
    Blocks(Blocks),
    /// A function that is called once, without a launch.
    Called,
}

/// A kernel of a device, with what its launches need.
#[derive(Clone, Copy)]
pub(super) struct DeviceCode {
    pub launchable: Launchable,
    pub has_contexts: bool,
    pub texts: Texts,
}

impl Prepared<'_> {
    /// Whether the launch is one on the CPU, which has one device and no streams.
    pub(in crate::lower) fn is_on_cpu(&self) -> bool {
        matches!(self.code, PreparedCode::Blocks(_))
    }
}

impl PreparedCode {
    /// The kernel of a device.
    pub(super) fn on_device(&self) -> Option<DeviceCode> {
        match self {
            PreparedCode::Device(code) => Some(*code),
            PreparedCode::Blocks(_) | PreparedCode::Called => None,
        }
    }
}

/// The values of a call that a launch is made of.
pub(in crate::lower) struct Inputs<'a> {
    /// The parameters of convention `flat`, with their values.
    pub params: Vec<(&'a KernelParam, Value)>,
    /// The `DLDevice` of the tensors, as one `I64`.
    pub device: Value,
    /// The first half of it: the kind, an `I32`; `None` for a device without streams.
    pub kind: Option<Value>,
    /// The second half of it: the number, an `I32`.
    pub number: Value,
    /// The numbers of tensors' devices, each an `I32`, by the names of the tensors.
    pub device_ids: Vec<(String, Value)>,
}

/// The blocks behind a launch.
#[derive(Clone, Copy)]
pub(super) struct Exits {
    /// Where the code goes on.
    pub done: Block,
    /// Where an error goes, whose code the block takes.
    pub failed: Block,
}

/// A launch under construction.
pub(super) struct Emitter<'e, 'm> {
    pub(super) b: &'e mut FunctionBuilder<'m>,
    pub(super) pool: &'e mut Pool,
    pub(super) prepared: &'e Prepared<'e>,
    pub(super) inputs: &'e Inputs<'e>,
    pub(super) exits: Exits,
    /// Where failures of the driver go.
    pub(super) failures: Option<Failures>,
    /// The extents of the grid, once they are computed.
    pub(super) blocks: Vec<Value>,
    /// Objects that are given up behind the launch.
    pub(super) owned: Vec<StackSlot>,
    /// A value that isn't there.
    pub(super) missing: Option<String>,
}

impl<'e, 'm> Emitter<'e, 'm> {
    pub(super) fn new(
        b: &'e mut FunctionBuilder<'m>,
        pool: &'e mut Pool,
        prepared: &'e Prepared<'e>,
        inputs: &'e Inputs<'e>,
        exits: Exits,
    ) -> Self {
        let (blocks, owned) = (Vec::new(), Vec::new());
        Emitter { b, pool, prepared, inputs, exits, failures: None, blocks, owned, missing: None }
    }

    /// Goes on where a condition holds; else raises a `ValueError` about a value, an `I64`: the text before it and the text behind it.
    pub(super) fn require(
        &mut self,
        holds: Value,
        value: Value,
        before: &str,
        behind: &[Piece<'_>],
        more: Option<Value>,
    ) {
        let (next, bad) = (self.b.block(), self.b.cold_block());
        self.b.branch(holds, next, bad, Hint::Likely);
        self.b.switch_to(bad);
        let pieces =
            [&[Piece::Value(Directive::String, 0), Piece::Text(before), Piece::Value(Directive::Number, 1)], behind];
        self.raise(&pieces.concat(), &[Some(value), more]);
        self.b.switch_to(next);
    }

    /// Raises a `ValueError`, whose first field is the caller.
    pub(super) fn raise(&mut self, pieces: &[Piece<'_>], fields: &[Option<Value>]) {
        let template = self.pool.constants.template("ValueError", pieces);
        let slot = self.b.slot(24, 8);
        let context = self.b.stack_addr(slot);
        let caller = self.b.data_addr(self.pool.data, self.prepared.caller);
        for (at, value) in (0..).step_by(8).zip([Some(caller)].iter().chain(fields)) {
            if let Some(value) = value {
                self.b.store(*value, context, at, MemFlags::ALIGNED);
            }
        }
        let (table, template) = (self.b.data_addr(self.pool.data, 0), self.b.iconst(Type::I32, i64::from(template)));
        let report = helpers::report(self.b.module());
        let none = self.b.iconst(Type::I32, -1);
        let code = self.b.call(report, &[table, template, context]).unwrap_or(none);
        self.b.jump(self.exits.failed, &[code]);
    }

    /// A parameter of the signature that convention `flat` passes as one value.
    pub(super) fn named(&self, name: &str) -> Option<(&KernelParam, Value)> {
        self.inputs.params.iter().find(|(param, _)| param.is_value_of(name)).map(|(param, value)| (*param, *value))
    }

    /// The tensor that a parameter is.
    pub(super) fn tensor(&self, name: &str) -> Option<&TensorType> {
        let param = self.prepared.signature.params().iter().find(|param| param.name == name)?;
        match &param.ty {
            ParamType::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }

    /// A stride of a tensor parameter, as an expression.
    pub(super) fn stride(&self, name: &str, number: usize) -> Option<Dim> {
        let tensor = self.tensor(name)?;
        match &tensor.layout {
            Layout::Strides(strides) => strides.get(number).cloned(),
            Layout::Contiguous => {
                let sizes = tensor.shape.dims()?.get(number + 1..)?;
                Some(sizes.iter().cloned().reduce(|x, y| x * y).unwrap_or_else(|| dim(1)))
            }
            _ => None,
        }
    }

    /// Notes a value that isn't there, and gives another in its place.
    pub(super) fn missing_value(&mut self, what: String, ty: Type) -> Value {
        self.missing.get_or_insert(what);
        match ty {
            Type::F32 => self.b.f32(0.0),
            Type::F64 => self.b.f64(0.0),
            Type::Ptr => self.b.ptr_const(0),
            ty => self.b.iconst(ty, 0),
        }
    }
}
