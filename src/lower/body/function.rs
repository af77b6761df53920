//! The function that a body is compiled to: what the wrapper's checks leave comes in as parameters, as for a kernel of
//! convention `flat`, with the facts that the signature vouches for.

use std::collections::HashMap;

use crate::ir::{
    AbiParam, Block, DataRef, FuncRef, FunctionBuilder, Hint, IntCC, Linkage, MemFlags, Module, PointerFacts, Type,
    Value,
};
use crate::lower::Lowering;
use crate::lower::kernel::{KernelReturn, flat_signature};
use crate::lower::messages::Messages;
use crate::lower::support::Support;
use crate::lower::tensor::TensorVars;
use crate::lower::wrapper::{self, Arg};
use crate::spec::{Device, Dim, Layout, ParamType, ScalarType, Signature, TensorType};

/// What a body reports: a row of the table and up to two values for it.
pub(super) struct Failure {
    pub row: u32,
    pub values: [Option<Value>; 2],
}

/// The state of lowering one body.
pub(super) struct Lowerer<'m> {
    pub b: FunctionBuilder<'m>,
    pub texts: &'m mut Messages,
    support: Support,
    messages: DataRef,
    symbols: HashMap<String, Value>,
    /// Where the result goes, if the function has one.
    result: Option<Value>,
    /// Where the body raises: takes (row, first, second).
    fail: Option<Block>,
}

/// A name that no signature gives a wrapper.
pub(super) fn symbol(signature: &Signature) -> String {
    format!("{}-body", signature.symbol())
}

/// Declares the function. It gives a status, and takes the result's address last if there is a result.
fn declare(module: &mut Module, signature: &Signature) -> FuncRef {
    let mut sig = flat_signature(signature, KernelReturn::Status);
    let mut facts = Vec::new();
    for param in signature.params() {
        match &param.ty {
            ParamType::Scalar(_) => facts.push(PointerFacts::NONE),
            ParamType::Tensor(ty) => {
                facts.push(tensor_facts(ty));
                facts.extend(ty.is_opaque().then_some(PointerFacts::NONE));
            }
        }
    }
    facts.resize(sig.params.len(), PointerFacts::NONE);
    if signature.ret().is_some() {
        sig.params.push(AbiParam::new(Type::Ptr));
        facts.push(wrapper::result_facts());
    }
    let func = module.declare(symbol(signature), sig, Linkage::Local);
    module.functions[func].param_facts = facts;
    func
}

/// What the good path and the contract say of a tensor's data pointer.
fn tensor_facts(ty: &TensorType) -> PointerFacts {
    if ty.is_opaque() {
        // A handle, of which only the byte offset is checked.
        return PointerFacts { nonnull: true, ..PointerFacts::NONE };
    }
    let here = ty.device.device_type == Device::CPU.device_type;
    let dereferenceable = if here { constant_bytes(ty) } else { None };
    PointerFacts {
        nonnull: true,
        noalias: ty.noalias,
        align: ty.alignment(),
        dereferenceable: dereferenceable.unwrap_or(0),
        ..PointerFacts::NONE
    }
}

/// How many bytes there are from the first element on, where the sizes are constant and the tensor compact.
fn constant_bytes(ty: &TensorType) -> Option<u32> {
    let bits = u64::from(ty.dtype.bits) * u64::from(ty.dtype.lanes);
    let element = if bits.is_multiple_of(8) { bits / 8 } else { return None };
    if ty.layout != Layout::Contiguous {
        return None;
    }
    let bytes = ty.shape.iter().try_fold(element, |bytes, dim| match dim {
        Dim::Const(size) => bytes.checked_mul(u64::try_from(*size).ok()?),
        Dim::Symbol(_) => None,
    });
    u32::try_from(bytes?).ok()
}

/// Defines the function that `build` describes.
pub(super) fn define<R>(
    into: &mut Lowering,
    signature: &Signature,
    build: impl FnOnce(&mut Lowerer<'_>, &[Arg]) -> R,
) -> (FuncRef, R) {
    let func = declare(&mut into.module, signature);
    let mut l = Lowerer {
        b: FunctionBuilder::new(&mut into.module, func),
        texts: &mut into.texts,
        support: into.support,
        messages: into.messages,
        symbols: HashMap::new(),
        result: None,
        fail: None,
    };
    let args = l.args(signature);
    let built = build(&mut l, &args);
    (l.b.finish(), built)
}

impl Lowerer<'_> {
    /// Gives the function's parameters their meaning.
    fn args(&mut self, signature: &Signature) -> Vec<Arg> {
        let mut at = 0..;
        let mut next = |l: &Self| l.b.param(at.next().unwrap_or(0));
        let mut args = Vec::new();
        for param in signature.params() {
            args.push(match &param.ty {
                ParamType::Scalar(ScalarType::Bool) => {
                    let value = next(self);
                    Arg::Scalar(ScalarType::Bool, self.b.icmp_imm(IntCC::Ne, value, 0))
                }
                ParamType::Scalar(ty) => Arg::Scalar(*ty, next(self)),
                ParamType::Tensor(ty) => {
                    let (data, byte_offset) = (next(self), ty.is_opaque().then(|| next(self)));
                    Arg::Tensor(TensorVars { data, byte_offset, shape: Vec::new(), strides: None })
                }
            });
        }
        for symbol in signature.symbols() {
            let value = next(self);
            self.symbols.insert(symbol.to_owned(), value);
        }
        self.result = signature.ret().map(|_| next(self));
        for (arg, param) in args.iter_mut().zip(signature.params()) {
            let (Arg::Tensor(vars), ParamType::Tensor(ty)) = (arg, &param.ty) else { continue };
            vars.shape = self.dims(&ty.shape);
            if let Layout::Strides(strides) = &ty.layout {
                vars.strides = Some(self.dims(strides));
            }
        }
        args
    }

    /// Sizes or strides. The good path has compared every one with its constant or symbol.
    fn dims(&mut self, dims: &[Dim]) -> Vec<Value> {
        let value = |dim: &Dim| match dim {
            Dim::Const(value) => self.b.i64(*value),
            // every symbol of the signature is there
            Dim::Symbol(name) => self.symbol(name).unwrap_or_else(|| self.b.i64(0)),
        };
        dims.iter().map(value).collect()
    }

    /// The value of a symbol.
    pub(super) fn symbol(&self, name: &str) -> Option<Value> {
        self.symbols.get(name).copied()
    }

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
        let [first, second] = failure.values.map(|value| value.unwrap_or_else(|| self.b.i64(0)));
        let fail = self.fail_block();
        self.b.jump(fail, &[row, first, second]);
    }

    /// The one way out for errors.
    fn fail_block(&mut self) -> Block {
        if let Some(fail) = self.fail {
            return fail;
        }
        let here = self.b.current();
        let fail = self.b.cold_block();
        let row = self.b.block_param(fail, Type::I32);
        let values = [self.b.block_param(fail, Type::I64), self.b.block_param(fail, Type::I64)];
        self.b.switch_to(fail);
        let context = self.b.slot(16, 8);
        let context = self.b.stack_addr(context);
        for (i, value) in values.into_iter().enumerate() {
            self.b.store(value, context, 8 * i as i32, MemFlags::ALIGNED);
        }
        let messages = self.b.data_addr(self.messages, 0);
        let code = self.b.call(self.support.report, &[messages, row, context]);
        self.b.ret(code);
        self.b.switch_to(here);
        self.fail = Some(fail);
        fail
    }

    /// Returns 0, with the function's value.
    pub(super) fn succeed_with(&mut self, ty: ScalarType, value: Value) {
        if let Some(result) = self.result {
            wrapper::store_result(&mut self.b, result, ty, value);
        }
        self.succeed();
    }

    /// Returns 0.
    pub(super) fn succeed(&mut self) {
        wrapper::succeed(&mut self.b);
    }
}
