//! The wrapper of one function: the good path, the way out for doubts, the call and the result.

use super::Lowering;
use super::body::{self, Code};
use super::decode::{self, Deferred, SeenDevice};
use super::doubt::{Doubt, Entry, Way};
use super::error::LowerError;
use super::fast::Gathered;
use super::fields::{self, pair};
use super::kernel::convention::writes_result;
use super::kernel::{Convention, Kernel, KernelReturn, Kind};
use super::messages::{Messages, Part};
use super::program::{self, Devices, Options};
use super::result::Allocated;
use super::support;
use crate::ir::{
    AbiParam, Block, ConvertOp, DataRef, FuncRef, FuncSig, FunctionBuilder, Hint, IntCC, Linkage, MemFlags,
    PointerFacts, SigRef, StackSlot, Type, Value,
};
use crate::spec::{Dim, ParamType, ScalarType, Signature, TensorType};
use std::mem::offset_of;
use tvm_ffi_runtime::abi::{TVMFFIAny, TypeIndex};

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
    pub value: Held,
    /// Bound by a size, and so not negative; a stride may be.
    pub is_size: bool,
}

/// What is known of dimensions once a tensor has been checked.
pub(super) struct KnownDims {
    pub dims: Vec<Dim>,
    pub sizes: Vec<Value>,
    /// The strides of a compact tensor.
    pub compact: Vec<Value>,
    /// Where the sizes are.
    pub shape: Value,
    /// Where compact strides are.
    pub strides: Option<Value>,
}

/// A value that is used later. Where there are many, they wait in the frame, so that a register allocator has nothing to do with them.
#[derive(Clone, Copy)]
pub(super) enum Held {
    Value(Value),
    /// In the frame, at an offset.
    Slot(StackSlot, i32, Type),
}

/// The state of lowering one wrapper.
pub(super) struct Lowerer<'m> {
    pub b: FunctionBuilder<'m>,
    pub texts: &'m mut Messages,
    pub messages: DataRef,
    /// The packed arguments: the caller's, or those that `bind` has made of them.
    pub args: Value,
    /// Where all checks are left to `bind`: the memory that it writes to.
    pub from_bind: Option<StackSlot>,
    /// The size of `bind`'s notes.
    pub note_size: i64,
    pub convention: Convention,
    /// Conditions of the good path that are still to be branched on.
    pub gathered: Gathered,
    /// Somebody takes what the arguments give.
    pub takes_values: bool,
    /// Ranks with dtypes as a `DLTensor` has them, and where they have been found.
    pub kinds: Vec<(i64, Value)>,
    /// Tensors whose dimensions others may have too.
    pub known: Vec<KnownDims>,
    /// Where a condition doesn't hold.
    pub doubt: Block,
    pub bound: Vec<Bound>,
    /// There are many symbols.
    pub many_symbols: bool,
    /// There are many parameters and symbols.
    pub many_values: bool,
    pub deferred: Vec<Deferred>,
    /// Which tensors share a device.
    pub shared_devices: &'m Devices,
    /// The first `DLDevice` of each slot, as one `I64`.
    pub devices: Vec<(usize, Value)>,
    /// All tensors in order and their devices, where somebody asks for these: a stream or a result.
    pub tensors: Vec<&'m TensorType>,
    pub seen_devices: Vec<SeenDevice>,
}

/// Lowers a wrapper into the module.
pub(super) fn lower(into: &mut Lowering, signature: &Signature, kernel: &Kernel) -> Result<FuncRef, LowerError> {
    let sig = FuncSig {
        ret: Some(AbiParam::signed(Type::I32)),
        ..FuncSig::new([Type::Ptr, Type::Ptr, Type::I32, Type::Ptr], None)
    };
    let devices = Devices::of(signature);
    let convention = kernel.called_by();
    let verbatim = convention == Convention::Packed;
    let options = Options { fold_all: convention == Convention::DlTensor, verbatim };
    let program = program::encode(&mut into.texts, signature, &devices, options);
    if program.scratch.bytes > MOST_SCRATCH {
        let function = signature.name().to_owned();
        return Err(LowerError::TooLarge { function, bytes: program.scratch.bytes, most: MOST_SCRATCH });
    }
    let body = match &kernel.0 {
        Kind::Body(build) => Some(body::lower(into, signature, &**build)?),
        _ => None,
    };
    let always_binds = decode::needs_bind(signature);
    into.always_binds |= always_binds;
    let func = into.module.declare(into.symbol(signature), sig, Linkage::Export);
    into.module.functions[func].param_facts = facts(signature);
    let Lowering { module, messages, texts, .. } = into;
    let passed = signature.passed().count();
    let has_result = signature.ret().is_some();
    let doubt = Doubt { program, messages: *messages, bind: support::bind(module), passed, has_result };
    let way = match (always_binds, verbatim) {
        (true, _) => Way::AskFirst,
        (false, true) => Way::AskInside,
        (false, false) => Way::Leave(doubt.define(module, func)),
    };
    let mut b = FunctionBuilder::new(module, func);
    let entry = Entry::new(&mut b, &doubt, way);
    let (many_symbols, many_values) = decode::has_many(signature);
    let mut l = Lowerer {
        b,
        texts,
        messages: *messages,
        args: entry.given.args,
        from_bind: entry.asked,
        note_size: program.note_size,
        convention,
        takes_values: match &body {
            Some(Code::Straight(body)) => body.has_effects(),
            Some(Code::Function(_)) => true,
            None => !verbatim && !matches!(kernel.0, Kind::CheckOnly),
        },
        gathered: Gathered::default(),
        kinds: Vec::new(),
        known: Vec::new(),
        doubt: entry.doubt,
        bound: Vec::new(),
        many_symbols,
        many_values,
        deferred: Vec::new(),
        shared_devices: &devices,
        devices: Vec::new(),
        tensors: tensors_with_devices(signature),
        seen_devices: Vec::new(),
    };
    if entry.asked.is_none() {
        l.arity(passed, entry.given.num_args);
    }
    if verbatim {
        // where `bind` has been asked, the kernel needs no values of the arguments
        if entry.asked.is_none() {
            l.decode(signature);
        }
        let given = entry.join(&mut l.b);
        let args = vec![l.b.param(0), given.args, given.num_args];
        l.call_native(signature, kernel, args, None);
        return Ok(l.b.finish());
    }
    let mut values = l.decode(signature);
    let sizes = l.result_sizes(signature);
    l.streams(signature, &mut values);
    let allocated = sizes.map(|sizes| l.allocate(signature, &values, &sizes));
    let mut args: Vec<Value> = values.into_iter().flatten().collect();
    args.extend(allocated.iter().flat_map(|allocated| allocated.passed.iter().copied()));
    if convention == Convention::Flat {
        args.extend(signature.symbols().into_iter().map(|symbol| l.symbol(symbol)));
    }
    match (&kernel.0, body) {
        (Kind::Symbol { .. } | Kind::Address { .. }, _) => l.call_native(signature, kernel, args, allocated),
        (_, Some(body)) => l.call_body(body, signature, args, allocated),
        (_, None) => l.success(allocated),
    }
    Ok(l.b.finish())
}

/// All tensors in order, where somebody asks for their devices.
fn tensors_with_devices(signature: &Signature) -> Vec<&TensorType> {
    let streams = signature.params().iter().any(|param| !param.is_passed());
    let mut tensors = Vec::new();
    if streams || matches!(signature.ret(), Some(ParamType::Tensor(_))) {
        signature.params().iter().for_each(|param| param.ty.for_each_tensor(&mut |tensor| tensors.push(tensor)));
    }
    tensors
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

/// Writes a result: type index and zero padding in one store, then the whole payload (contract 6).
pub(super) fn store_any(b: &mut FunctionBuilder<'_>, result: Value, index: TypeIndex, payload: Value) {
    let order = b.module().endianness;
    let index = b.i64(pair(order, index.0 as u32, 0));
    b.store(index, result, TYPE_INDEX, MemFlags::ALIGNED);
    b.store(payload, result, PAYLOAD, MemFlags::ALIGNED);
}

/// Writes a scalar as the result.
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
    store_any(b, result, index, payload);
}

impl Lowerer<'_> {
    /// As many arguments as parameters that are passed, defaults filled in, and an array that has them.
    fn arity(&mut self, passed: usize, num_args: Value) {
        let count = self.b.iconst(Type::I32, passed as i64);
        self.require_equal(num_args, count);
        if passed > 0 {
            self.require_there(self.args);
        }
    }

    pub(super) fn import(&mut self, name: &str, params: &[Type], ret: Option<Type>) -> FuncRef {
        self.b.module().import(name, FuncSig::c(params.iter().copied(), ret))
    }

    /// Raises where no tensor has a device whose stream could be asked for.
    pub(super) fn require_stream(&mut self, there: Value, signature: &Signature, name: &str) {
        let text = format!(
            "Mismatched {name} when calling: `{signature}`, expected a tensor whose device has the stream, got None for each"
        );
        let row = self.texts.row("ValueError", &[Part::Text(&text)]);
        let (next, bad) = (self.b.block(), self.b.cold_block());
        self.b.branch(there, next, bad, Hint::Likely);
        self.b.switch_to(bad);
        let table = self.b.data_addr(self.messages, 0);
        let row = self.b.iconst(Type::I32, i64::from(row));
        // the row takes nothing from a context
        let report = support::report(self.b.module());
        let code = self.b.call(report, &[table, row, table]);
        self.b.ret(code);
        self.b.switch_to(next);
    }

    /// Calls a native kernel and passes on what it gives back.
    fn call_native(
        &mut self,
        signature: &Signature,
        kernel: &Kernel,
        mut args: Vec<Value>,
        allocated: Option<Allocated>,
    ) {
        let packed = self.convention == Convention::Packed;
        let ret = signature.ret().or(packed.then_some(&ParamType::None));
        let written = ret.filter(|ret| packed || writes_result(ret));
        let written = written.map(|ret| (ret, self.owned_slot()));
        args.extend(written.map(|(_, slot)| slot));
        let returns = kernel.returns(signature).unwrap_or(KernelReturn::Nothing);
        let sig = kernel.func_sig(signature);
        let result = match &kernel.0 {
            Kind::Symbol { name, .. } => {
                let callee = self.b.module().import(name, sig);
                self.b.call(callee, &args)
            }
            Kind::Address { address, .. } => {
                let sig: SigRef = self.b.signature(sig);
                let callee = self.b.ptr_const(*address);
                self.b.call_indirect(sig, callee, &args)
            }
            Kind::CheckOnly | Kind::Body(_) => None,
        };
        match (returns, result) {
            (KernelReturn::Status, Some(code)) => self.status(signature, code, written, allocated),
            (KernelReturn::Value, Some(value)) => self.value_result(signature, value),
            _ => self.success(allocated),
        }
    }

    /// A body writes a scalar itself; its status is passed up.
    fn call_body(&mut self, body: Code, signature: &Signature, mut args: Vec<Value>, allocated: Option<Allocated>) {
        if signature.ret().is_some_and(|ret| ret.as_scalar().is_some()) {
            args.push(self.b.param(3));
        }
        let code = match body {
            Code::Function(body) => self.b.call(body, &args),
            Code::Straight(body) => self.b.inline(&body, &args),
        };
        let Some(code) = code else { return };
        match allocated {
            Some(_) => self.status(signature, code, None, allocated),
            None => self.b.ret(Some(code)),
        }
    }

    /// A value that the kernel has returned becomes the result.
    fn value_result(&mut self, signature: &Signature, value: Value) {
        let result = self.b.param(3);
        match signature.ret() {
            Some(ParamType::Scalar(ScalarType::Bool)) => {
                let value = self.b.icmp_imm(IntCC::Ne, value, 0);
                store_result(&mut self.b, result, ScalarType::Bool, value);
            }
            Some(ParamType::Scalar(ty)) => store_result(&mut self.b, result, *ty, value),
            Some(ParamType::DType) => {
                let value = fields::before_zeros(&mut self.b, value);
                store_any(&mut self.b, result, TypeIndex::DATA_TYPE, value);
            }
            Some(ParamType::Device) => store_any(&mut self.b, result, TypeIndex::DEVICE, value),
            // nothing else is returned as a value
            _ => {}
        }
        succeed(&mut self.b);
    }
}
