//! The wrapper of one function: the good path's checks, the way out for doubts, the call and the result.

use super::body;
use super::error::LowerError;
use super::fast::Conditions;
use super::kernel::{self, Kernel, KernelReturn, Kind};
use super::program::{self, Devices, Scratch};
use super::support::Support;
use super::tensor::{Tensor, TensorVars};
use super::{Lowering, scalar};
use crate::ir::{
    AbiParam, Block, ConvertOp, DataRef, FuncRef, FuncSig, FunctionBuilder, Hint, IntCC, Linkage, MemFlags,
    PointerFacts, Type, Value,
};
use crate::spec::{ParamType, ScalarType, Signature};
use std::mem::offset_of;
use tvm_ffi_runtime::abi::{DLDeviceType, TVMFFIAny, TypeIndex};

/// Size of an argument in the packed array.
pub(super) const ANY_SIZE: i32 = size_of::<TVMFFIAny>() as i32;
/// Where its payload is.
pub(super) const PAYLOAD: i32 = offset_of!(TVMFFIAny, v) as i32;
/// Where its type index is.
pub(super) const TYPE_INDEX: i32 = offset_of!(TVMFFIAny, type_index) as i32;

/// The most memory that `bind` may have in the wrapper's frame, in bytes. A thread may have as little stack as 512 KiB.
const MOST_SCRATCH: u32 = 128 << 10;

/// A symbol with its value.
pub(super) struct Bound {
    pub name: String,
    pub value: Value,
    /// Bound by a size, and so not negative; a stride may be.
    pub is_size: bool,
}

/// What the checks leave of a parameter.
pub(super) enum Arg {
    /// Its value: for `bool` a `Bool`, else of the C type.
    Scalar(ScalarType, Value),
    Tensor(TensorVars),
}

/// The state of lowering one wrapper.
pub(super) struct Lowerer<'m> {
    pub b: FunctionBuilder<'m>,
    support: Support,
    messages: DataRef,
    /// The packed arguments: the caller's, or those that `bind` has made of them.
    args: Value,
    /// Conditions of the good path that are still to be branched on.
    pub conditions: Conditions,
    /// Where a condition doesn't hold.
    pub doubt: Block,
    pub bound: Vec<Bound>,
    /// The first `DLDevice` of each kind, as one `I64`.
    pub devices: Vec<(DLDeviceType, Value)>,
}

/// Lowers a wrapper into the module.
pub(super) fn lower(into: &mut Lowering, signature: &Signature, kernel: &Kernel) -> Result<FuncRef, LowerError> {
    let sig = FuncSig {
        ret: Some(AbiParam::signed(Type::I32)),
        ..FuncSig::new([Type::Ptr, Type::Ptr, Type::I32, Type::Ptr], None)
    };
    let devices = Devices::of(signature);
    let (program, scratch) = program::encode(&mut into.texts, signature, &devices);
    if scratch.bytes > MOST_SCRATCH {
        let function = signature.name().to_owned();
        return Err(LowerError::TooLarge { function, bytes: scratch.bytes, most: MOST_SCRATCH });
    }
    let body = match &kernel.0 {
        Kind::Body(build) => Some(body::lower(into, signature, &**build)?),
        _ => None,
    };
    let func = into.module.declare(signature.symbol(), sig, Linkage::Export);
    into.module.functions[func].param_facts = facts(signature);
    let mut b = FunctionBuilder::new(&mut into.module, func);
    // start(args, num_args): entered with the caller's arguments, and after a doubt with those that `bind` accepts
    let (start, doubt) = (b.block(), b.cold_block());
    let args = b.block_param(start, Type::Ptr);
    let num_args = b.block_param(start, Type::I32);
    let mut l = Lowerer {
        b,
        support: into.support,
        messages: into.messages,
        args,
        conditions: Conditions::default(),
        doubt,
        bound: Vec::new(),
        devices: Vec::new(),
    };
    let given = (l.b.param(1), l.b.param(2));
    l.b.jump(start, &[given.0, given.1]);
    l.on_doubt(program, scratch, start, num_args);
    l.b.switch_to(start);
    let args = l.decode(signature, &devices, num_args);
    match &kernel.0 {
        Kind::CheckOnly => succeed(&mut l.b),
        Kind::Body(_) => {
            if let Some(body) = body {
                l.call_body(body, signature, &args);
            }
        }
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

/// Size and alignment of a `TVMFFIAny`.
const ANY: PointerFacts = PointerFacts { align: align_of::<TVMFFIAny>() as u32, ..PointerFacts::NONE };

/// What the ABI says of the place for a value: it is there.
pub(super) fn result_facts() -> PointerFacts {
    PointerFacts { nonnull: true, dereferenceable: ANY_SIZE as u32, ..ANY }
}

/// What the ABI says of a wrapper's parameters. The arguments may be NULL where there are none.
fn facts(signature: &Signature) -> Vec<PointerFacts> {
    let result = if signature.ret().is_some() { result_facts() } else { PointerFacts::NONE };
    vec![PointerFacts::NONE, PointerFacts { readonly: true, ..ANY }, PointerFacts::NONE, result]
}

/// Returns 0.
pub(super) fn succeed(b: &mut FunctionBuilder<'_>) {
    let zero = b.iconst(Type::I32, 0);
    b.ret(Some(zero));
}

/// Writes the result: type index and zero padding in one store, then the whole payload (contract 6).
pub(super) fn store_result(b: &mut FunctionBuilder<'_>, result: Value, ty: ScalarType, value: Value) {
    let (index, payload) = match ty {
        ScalarType::Bool => (TypeIndex::BOOL, b.convert(ConvertOp::ZExt, Type::I64, value)),
        ScalarType::Float64 => (TypeIndex::FLOAT, value),
        ScalarType::Float32 => (TypeIndex::FLOAT, b.convert(ConvertOp::FPromote, Type::F64, value)),
        ScalarType::Handle => (TypeIndex::OPAQUE_PTR, value),
        _ if ty.bits() == 64 => (TypeIndex::INT, value),
        _ if ty.is_signed_int() => (TypeIndex::INT, b.convert(ConvertOp::SExt, Type::I64, value)),
        _ => (TypeIndex::INT, b.convert(ConvertOp::ZExt, Type::I64, value)),
    };
    let index = b.i64(i64::from(index.0));
    b.store(index, result, TYPE_INDEX, MemFlags::ALIGNED);
    b.store(payload, result, PAYLOAD, MemFlags::ALIGNED);
}

impl Lowerer<'_> {
    /// The good path's checks. The order in which errors are reported is not theirs but `bind`'s.
    fn decode(&mut self, signature: &Signature, devices: &Devices, num_args: Value) -> Vec<Arg> {
        enum Step<'a> {
            Scalar(ScalarType, Value),
            Tensor(Tensor<'a>),
        }
        let params = signature.params();
        let count = self.b.iconst(Type::I32, params.len() as i64);
        self.conditions.equal(num_args, count);
        if !params.is_empty() {
            let there = self.b.icmp_imm(IntCC::Ne, self.args, 0);
            self.conditions.holds(there);
        }
        self.branch();
        let mut steps = Vec::with_capacity(params.len());
        for (i, param) in params.iter().enumerate() {
            steps.push(match &param.ty {
                ParamType::Scalar(ty) => Step::Scalar(*ty, scalar::decode(self, i, *ty)),
                ParamType::Tensor(ty) => {
                    let (device, _) = devices.place(ty);
                    Step::Tensor(Tensor::argument(self, i, ty, device))
                }
            });
        }
        self.branch();
        for step in &mut steps {
            if let Step::Tensor(tensor) = step {
                tensor.header(self);
            }
        }
        self.branch();
        let mut args = Vec::with_capacity(params.len());
        for step in steps {
            args.push(match step {
                Step::Scalar(ty, value) => Arg::Scalar(ty, value),
                Step::Tensor(tensor) => Arg::Tensor(tensor.contents(self)),
            });
        }
        self.branch();
        args
    }

    fn branch(&mut self) {
        self.conditions.branch(&mut self.b, self.doubt);
    }

    /// Where a condition doesn't hold: `bind` raises what is wrong, or makes arguments with which to start again.
    fn on_doubt(&mut self, program: u32, scratch: Scratch, start: Block, num_args: Value) {
        self.b.switch_to(self.doubt);
        let table = self.b.data_addr(self.messages, 0);
        let program = self.b.iconst(Type::I32, i64::from(program));
        let slot = self.b.slot(scratch.bytes.max(1), 8);
        let scratch = self.b.stack_addr(slot);
        let wide = self.b.convert(ConvertOp::SExt, Type::I64, num_args);
        let Some(code) = self.b.call(self.support.bind, &[table, program, self.args, wide, scratch]) else { return };
        let refused = self.b.cold_block();
        let accepted = self.b.icmp_imm(IntCC::Eq, code, 0);
        self.b.branch_with(accepted, (start, &[scratch, num_args]), (refused, &[]), Hint::None);
        self.b.switch_to(refused);
        self.b.ret(Some(code));
    }

    /// The type index of argument `i`.
    pub(super) fn type_index(&mut self, i: usize) -> Value {
        self.b.load(Type::I32, self.args, ANY_SIZE * i as i32 + TYPE_INDEX, MemFlags::ALIGNED)
    }

    /// The payload of argument `i`, read as `ty`.
    pub(super) fn payload(&mut self, i: usize, ty: Type) -> Value {
        self.b.load(ty, self.args, ANY_SIZE * i as i32 + PAYLOAD, MemFlags::ALIGNED)
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
                let result = self.b.param(3);
                store_result(&mut self.b, result, ty, value);
                succeed(&mut self.b);
            }
            _ => succeed(&mut self.b),
        }
    }

    /// A body has written the result itself; its status is passed up.
    fn call_body(&mut self, body: FuncRef, signature: &Signature, args: &[Arg]) {
        let mut values = self.flat_args(args);
        values.extend(signature.ret().map(|_| self.b.param(3)));
        let code = self.b.call(body, &values);
        self.b.ret(code);
    }
}
