//! The wrapper of one function: the order of checks, the way out for errors, the call and the result.

use super::body;
use super::error::LowerError;
use super::kernel::{self, Kernel, KernelReturn, Kind};
use super::messages::{Messages, Part, Tag};
use super::tensor::TensorVars;
use super::{Lowering, scalar, tensor};
use crate::ir::{
    Block, ConvertOp, DataRef, FuncRef, FuncSig, FunctionBuilder, Hint, IntCC, Linkage, MemFlags, Type, Value,
};
use crate::spec::{ParamType, ScalarType, Signature};
use tvm_ffi_runtime::abi::{DLDeviceType, TVMFFIAny, TypeIndex};

/// Size of an argument in the packed array.
pub(super) const ANY_SIZE: i32 = size_of::<TVMFFIAny>() as i32;
/// Where its payload is.
pub(super) const PAYLOAD: i32 = std::mem::offset_of!(TVMFFIAny, v) as i32;
/// Where its type index is.
pub(super) const TYPE_INDEX: i32 = std::mem::offset_of!(TVMFFIAny, type_index) as i32;

/// Kinds of errors, by the contract's point 8.
pub(super) const TYPE_ERROR: &str = "TypeError";
pub(super) const VALUE_ERROR: &str = "ValueError";

/// A symbol with its value and where it came from.
pub(super) struct Bound {
    pub name: String,
    pub value: Value,
    /// The path of the first occurrence: `x.shape[0]`.
    pub origin: String,
    /// Bound by a size, and so not negative; a stride may be.
    pub is_size: bool,
}

/// A device id that later tensors on that kind of device have to share, unless both are stated.
pub(super) struct BoundDevice {
    pub device_type: DLDeviceType,
    pub id: Value,
    pub origin: String,
    pub stated: bool,
}

/// What the checks leave of a parameter.
pub(super) enum Arg {
    /// Its value: for `bool` a `Bool`, else of the C type.
    Scalar(ScalarType, Value),
    Tensor(TensorVars),
}

/// One value of an error message: computed in the cold block of a check.
pub(super) struct Failure {
    pub row: u32,
    pub first: Option<Value>,
    pub second: Option<Value>,
}

impl Failure {
    pub(super) fn new(row: u32) -> Self {
        Failure { row, first: None, second: None }
    }

    pub(super) fn got(row: u32, first: Value) -> Self {
        Failure { row, first: Some(first), second: None }
    }
}

/// The state of lowering one wrapper.
pub(super) struct Lowerer<'m> {
    pub b: FunctionBuilder<'m>,
    pub texts: &'m mut Messages,
    /// `` when calling: `add_one(...)`, expected ``: every message has it.
    calling: String,
    report: FuncRef,
    messages: DataRef,
    /// Takes (row, first, second); raises and returns -1.
    fail: Block,
    pub bound: Vec<Bound>,
    pub devices: Vec<BoundDevice>,
}

impl Lowerer<'_> {
    /// Goes on where `cond` holds; elsewhere `failure`, run in a cold block, says what to raise.
    pub(super) fn check(&mut self, cond: Value, failure: impl FnOnce(&mut Self) -> Failure) {
        let (ok, bad) = (self.b.block(), self.b.cold_block());
        self.b.branch(cond, ok, bad, Hint::Likely);
        self.b.switch_to(bad);
        let failure = failure(self);
        self.raise(failure);
        self.b.switch_to(ok);
    }

    /// Ends the current block by raising.
    pub(super) fn raise(&mut self, failure: Failure) {
        let row = self.b.iconst(Type::I32, i64::from(failure.row));
        let zero = |v: Option<Value>, b: &mut FunctionBuilder<'_>| v.unwrap_or_else(|| b.i64(0));
        let first = zero(failure.first, &mut self.b);
        let second = zero(failure.second, &mut self.b);
        let fail = self.fail;
        self.b.jump(fail, &[row, first, second]);
    }

    /// The row of a mismatch: `` Mismatched {what} on argument #{arg} when calling: `...`, expected {expected} ``.
    pub(super) fn mismatch(&mut self, kind: &str, what: &str, arg: usize, expected: &[Part]) -> u32 {
        let mut parts = vec![
            Part::from("Mismatched "),
            Part::from(what),
            Part::from(" on argument #"),
            Part::Number(arg as u32),
            Part::from(self.calling.as_str()),
        ];
        parts.extend_from_slice(expected);
        self.texts.row(kind, &parts)
    }

    /// The value of a symbol that the signature names somewhere.
    pub(super) fn symbol(&self, name: &str) -> Option<&Bound> {
        self.bound.iter().find(|b| b.name == name)
    }
}

/// Lowers a wrapper into the module.
pub(super) fn lower(into: &mut Lowering, signature: &Signature, kernel: &Kernel) -> Result<FuncRef, LowerError> {
    let sig = FuncSig {
        ret: Some(crate::ir::AbiParam::signed(Type::I32)),
        ..FuncSig::new([Type::Ptr, Type::Ptr, Type::I32, Type::Ptr], None)
    };
    let func = into.module.declare(signature.symbol(), sig, Linkage::Export);
    let mut b = FunctionBuilder::new(&mut into.module, func);
    let fail = b.cold_block();
    let mut l = Lowerer {
        b,
        texts: &mut into.texts,
        calling: format!(" when calling: `{signature}`, expected "),
        report: into.report,
        messages: into.messages,
        fail,
        bound: Vec::new(),
        devices: Vec::new(),
    };
    l.fail_block();
    l.argument_array(signature.params().len());
    let mut args = Vec::new();
    for (i, param) in signature.params().iter().enumerate() {
        args.push(match &param.ty {
            ParamType::Scalar(ty) => Arg::Scalar(*ty, scalar::decode(&mut l, i, &param.name, *ty)),
            ParamType::Tensor(ty) => Arg::Tensor(tensor::decode(&mut l, i, &param.name, ty)),
        });
    }
    match &kernel.0 {
        Kind::CheckOnly => l.succeed(),
        Kind::Body(build) => body::lower(&mut l, signature, &args, &**build)?,
        Kind::Symbol { name, .. } => {
            let returns = kernel.returns(signature).unwrap_or(KernelReturn::Nothing);
            let callee = l.b.module().import(name, kernel::flat_signature(signature, returns));
            let values = l.flat_args(&args);
            let result = l.b.call(callee, &values);
            l.kernel_result(signature, returns, result);
        }
        Kind::Address { address, .. } => {
            let returns = kernel.returns(signature).unwrap_or(KernelReturn::Nothing);
            let sig = l.b.signature(kernel::flat_signature(signature, returns));
            let values = l.flat_args(&args);
            let callee = l.b.ptr_const(*address);
            let result = l.b.call_indirect(sig, callee, &values);
            l.kernel_result(signature, returns, result);
        }
    }
    Ok(l.b.finish())
}

impl Lowerer<'_> {
    /// The one way out for errors.
    fn fail_block(&mut self) {
        let entry = self.b.current();
        let fail = self.fail;
        let row = self.b.block_param(fail, Type::I32);
        let first = self.b.block_param(fail, Type::I64);
        let second = self.b.block_param(fail, Type::I64);
        self.b.switch_to(fail);
        let messages = self.b.data_addr(self.messages, 0);
        let report = self.report;
        let code = self.b.call(report, &[messages, row, first, second]);
        self.b.ret(code);
        self.b.switch_to(entry);
    }

    /// Contract 1: `num_args`, then `args`.
    fn argument_array(&mut self, count: usize) {
        let (args, num_args) = (self.b.param(1), self.b.param(2));
        let enough = self.b.icmp_imm(IntCC::Eq, num_args, count as i64);
        self.check(enough, |l| {
            let parts = [
                Part::from("Mismatched number of arguments"),
                Part::from(l.calling.as_str()),
                Part::Number(count as u32),
                Part::from(", got "),
                Tag::First.into(),
            ];
            let row = l.texts.row(TYPE_ERROR, &parts);
            let got = l.b.convert(ConvertOp::SExt, Type::I64, num_args);
            Failure::got(row, got)
        });
        if count == 0 {
            return;
        }
        let there = self.b.icmp_imm(IntCC::Ne, args, 0);
        self.check(there, |l| {
            let parts = [
                Part::from("Mismatched argument array"),
                Part::from(l.calling.as_str()),
                Part::from("a non-NULL pointer to "),
                Part::Number(count as u32),
                Part::from(if count == 1 { " argument, got NULL" } else { " arguments, got NULL" }),
            ];
            Failure::new(l.texts.row(TYPE_ERROR, &parts))
        });
    }

    /// The type index of argument `i`.
    pub(super) fn type_index(&mut self, i: usize) -> Value {
        let args = self.b.param(1);
        self.b.load(Type::I32, args, ANY_SIZE * i as i32 + TYPE_INDEX, MemFlags::READONLY)
    }

    /// The payload of argument `i`, read as `ty`.
    pub(super) fn payload(&mut self, i: usize, ty: Type) -> Value {
        let args = self.b.param(1);
        self.b.load(ty, args, ANY_SIZE * i as i32 + PAYLOAD, MemFlags::READONLY)
    }

    /// Whether `type_index` is one of those.
    pub(super) fn is_one_of(&mut self, type_index: Value, accepted: &[TypeIndex]) -> Value {
        let mut any = None;
        for index in accepted {
            let is = self.b.icmp_imm(IntCC::Eq, type_index, i64::from(index.0));
            any = Some(match any {
                None => is,
                Some(before) => self.b.binary(crate::ir::BinaryOp::Or, before, is),
            });
        }
        any.unwrap_or_else(|| self.b.bconst(false))
    }

    /// Fails unless `ok`: argument `i` should have been of type `expected`.
    pub(super) fn check_type(&mut self, ok: Value, i: usize, name: &str, expected: &str, type_index: Value) {
        self.check(ok, |l| {
            let what = format!("type of {name}");
            let row = l.mismatch(TYPE_ERROR, &what, i, &[expected.into(), ", got ".into(), Tag::FirstType.into()]);
            let first = l.b.convert(ConvertOp::SExt, Type::I64, type_index);
            let second = l.payload(i, Type::I64);
            Failure { row, first: Some(first), second: Some(second) }
        });
    }

    /// The arguments of a kernel of convention `flat`.
    fn flat_args(&mut self, args: &[Arg]) -> Vec<Value> {
        let mut values = Vec::new();
        for arg in args {
            match arg {
                Arg::Scalar(ScalarType::Bool, value) => values.push(self.b.convert(ConvertOp::ZExt, Type::I8, *value)),
                Arg::Scalar(_, value) => values.push(*value),
                Arg::Tensor(tensor) => {
                    values.push(tensor.data);
                    values.extend(tensor.byte_offset);
                }
            }
        }
        values.extend(self.bound.iter().map(|b| b.value));
        values
    }

    /// Contract 9: a status is passed up untouched; a value becomes the result.
    fn kernel_result(&mut self, signature: &Signature, returns: KernelReturn, result: Option<Value>) {
        match (returns, result, signature.ret()) {
            (KernelReturn::Status, Some(code), _) => self.b.ret(Some(code)),
            (KernelReturn::Value, Some(value), Some(ty)) => {
                let value = match ty {
                    ScalarType::Bool => self.b.icmp_imm(IntCC::Ne, value, 0),
                    _ => value,
                };
                self.store_result(ty, value);
                self.succeed();
            }
            _ => self.succeed(),
        }
    }

    /// Returns 0.
    pub(super) fn succeed(&mut self) {
        let zero = self.b.iconst(Type::I32, 0);
        self.b.ret(Some(zero));
    }

    /// Writes the result: type index and zero padding in one store, then the whole payload (contract 6).
    pub(super) fn store_result(&mut self, ty: ScalarType, value: Value) {
        let result = self.b.param(3);
        let (index, payload) = match ty {
            ScalarType::Bool => (TypeIndex::BOOL, self.b.convert(ConvertOp::ZExt, Type::I64, value)),
            ScalarType::Float64 => (TypeIndex::FLOAT, value),
            ScalarType::Float32 => (TypeIndex::FLOAT, self.b.convert(ConvertOp::FPromote, Type::F64, value)),
            ScalarType::Handle => (TypeIndex::OPAQUE_PTR, value),
            _ if ty.bits() == 64 => (TypeIndex::INT, value),
            _ if ty.is_signed_int() => (TypeIndex::INT, self.b.convert(ConvertOp::SExt, Type::I64, value)),
            _ => (TypeIndex::INT, self.b.convert(ConvertOp::ZExt, Type::I64, value)),
        };
        let index = self.b.i64(i64::from(index.0));
        self.b.store(index, result, TYPE_INDEX, MemFlags::ALIGNED);
        self.b.store(payload, result, PAYLOAD, MemFlags::ALIGNED);
    }
}
