//! The function that a body is compiled to. Its parameters are those of a kernel of convention `flat`, after the
//! wrapper's checks, with the facts that the signature guarantees.

use std::collections::HashMap;

use crate::ir::{
    Block, ConvertOp, FuncRef, FunctionBuilder, Hint, IntCC, Linkage, LocationData, MemFlags, Module, PointerFacts,
    StackSlot, Type, Value,
};
use crate::lower::abi;
use crate::lower::abi::fields;
use crate::lower::arithmetic::{DimCode, extremum, lower_dim, total_division, wrapping};
use crate::lower::convention::params::func_sig;
use crate::lower::convention::{Convention, KernelReturn, TensorForm, has_null, returns_value, writes_result};
use crate::lower::device_api::Drivers;
use crate::lower::half;
use crate::lower::launch_description::NotedLaunches;
use crate::lower::once::Handles;
use crate::lower::protocol::{MAX_FIELDS, helpers};
use crate::lower::symbol_call::SymbolCall;
use crate::lower::unit::{ModulePool, Unit};
use crate::lower::value::ValueChecks;
use crate::spec::{
    Device, Dim, DimOp, Layout, ParamType, ScalarKind, ScalarType, Signature, SourceLocation, TensorType,
};
use tvm_ffi_runtime::abi::TypeIndex;

use super::args::{Arg, Args, Origin, TensorVars};
use super::held::Exits;
use super::life::{Life, Owners};
use super::open_graph::OpenGraph;
use super::types::value_type;

/// An error raised by a body: a template in the table, and the values that it prints.
pub(super) struct Failure {
    pub template: u32,
    /// At most [`MAX_FIELDS`].
    pub values: Vec<Value>,
}

/// Up to this many values are passed as arguments of the raising block; more are written to a slot in the frame.
const FEW_VALUES: usize = 2;

/// The state of lowering one body.
pub(super) struct BodyLowerer<'m> {
    pub b: FunctionBuilder<'m>,
    pub pool: &'m mut ModulePool,
    pub handles: &'m mut Handles,
    pub drivers: &'m mut Drivers,
    pub launches: &'m mut NotedLaunches,
    /// The symbol prefix of a system library.
    pub prefix: &'m str,
    /// The signature of the function that this body implements.
    pub signature: &'m Signature,
    dim_vars: HashMap<String, Value>,
    /// The result's address, if the function has a result.
    result: Option<Value>,
    /// The frame slot for that address, in a function that calls others.
    result_spilled: Option<StackSlot>,
    /// The held values, and the exits.
    pub exits: Exits,
    /// The calls of functions by symbol.
    pub symbol_calls: Vec<SymbolCall>,
    /// The symbol of the wrapper, the prefix of its parts' symbols.
    pub wrapper: &'m str,
    /// The types of the captured values; empty unless the function is a closure.
    pub captured: &'m [ParamType],
    /// Whether this is a C function: such a function has no TVM FFI arguments to pass on.
    pub is_c: bool,
    /// The function's last parameters, each added when the body first needs it.
    pub extras: Vec<(Extra, Value)>,
    /// The state of the owned values.
    pub owners: Owners,
    /// The checks of values returned by calls.
    pub checks: ValueChecks,
    /// The graph of launches under construction.
    pub graph: Option<OpenGraph>,
    /// The bytes taken by `scratch` so far.
    pub scratch_bytes: u64,
    /// Whether the function's result is the caller's own, since a callee writes it: see `forward`.
    pub writes_to_caller: bool,
    /// The copies of the caller's own arguments that are passed on, by index.
    pub arguments: Vec<(usize, Value)>,
    /// The argument array shared by all calls outside loops.
    pub packed: Option<StackSlot>,
    /// For each exit, the block that raises and then takes that exit: takes (template, first, second).
    fail: HashMap<Option<Block>, Block>,
    /// The same for errors with more values, which are in the slot: takes (template).
    fail_of_many: HashMap<Option<Block>, (Block, StackSlot)>,
}

/// A parameter that a body's function has only if the body needs it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::lower) enum Extra {
    /// The address of the caller's own arguments.
    Originals,
    /// The handle of the function object. For a closure it is the array of captured values.
    Handle,
    /// The address of the arguments that the binder has made, for the fields of records as they came.
    Bound,
}

/// The function that a body is lowered for.
#[derive(Clone, Copy)]
pub(in crate::lower) struct Enclosing<'a> {
    /// The symbol of its wrapper; for a C function, its own symbol.
    pub wrapper: &'a str,
    /// Whether it is a C function without a wrapper.
    pub is_c: bool,
    /// The types of the captured values; empty unless the function is a closure.
    pub captured: &'a [ParamType],
}

/// The changes of a body to its module, other than added functions.
pub(super) struct Built<R> {
    pub func: FuncRef,
    /// The function's last parameters, in addition to those of convention `flat`.
    pub extras: Vec<Extra>,
    /// Whether its result is the caller's own.
    pub writes_to_caller: bool,
    pub symbol_calls: Vec<SymbolCall>,
    /// Whether every path of the function calls `bind`.
    pub always_binds: bool,
    pub result: R,
}

/// The function's symbol: a name that no wrapper can have, or for a C function its own symbol.
pub(super) fn symbol(enclosing: Enclosing<'_>) -> String {
    if enclosing.is_c { enclosing.wrapper.to_owned() } else { format!("{}-body", enclosing.wrapper) }
}

/// Declares the function. It returns a status. If there is a result, its address is the last parameter.
fn declare(module: &mut Module, signature: &Signature, enclosing: Enclosing<'_>) -> FuncRef {
    let sig = func_sig(signature, Convention::Flat, KernelReturn::Status);
    if enclosing.is_c {
        // no wrapper checks its arguments, so it gets no facts
        return module.export(symbol(enclosing), sig);
    }
    let mut facts = Vec::new();
    // only for the leading parameters that are passed as one C parameter each: later ones have other indices
    for param in signature.params() {
        match &param.ty {
            ParamType::Scalar(_) => facts.push(PointerFacts::NONE),
            ParamType::Tensor(ty) if Convention::Flat.form(ty) == TensorForm::Data => {
                facts.push(tensor_facts(ty));
                facts.extend(ty.is_opaque().then_some(PointerFacts::NONE));
            }
            _ => break,
        }
    }
    facts.resize(sig.params.len(), PointerFacts::NONE);
    if let Some(last) = facts.last_mut().filter(|_| has_result(signature)) {
        *last = abi::result_facts();
    }
    let func = module.declare(symbol(enclosing), sig, Linkage::Local);
    module.functions[func].param_facts = facts;
    func
}

/// Whether the body writes a value as its result: anything but tensors that the wrapper has allocated.
pub(super) fn has_result(signature: &Signature) -> bool {
    signature.ret().is_some_and(|ret| returns_value(ret) || writes_result(ret))
}

/// Facts about a tensor's data pointer, guaranteed by the checks.
fn tensor_facts(ty: &TensorType) -> PointerFacts {
    if ty.is_opaque() {
        // An opaque handle; only its byte offset is checked.
        return PointerFacts { nonnull: true, ..PointerFacts::NONE };
    }
    let here = ty.device.kind() == Device::CPU.kind();
    let dereferenceable = if here { constant_bytes(ty) } else { None };
    PointerFacts {
        nonnull: true,
        noalias: ty.noalias,
        align: ty.alignment(),
        dereferenceable: dereferenceable.unwrap_or(0),
        ..PointerFacts::NONE
    }
}

/// The number of bytes from the first element to the end, if the sizes are constant and the tensor is contiguous.
fn constant_bytes(ty: &TensorType) -> Option<u32> {
    let dtype = ty.exact_dtype()?;
    let bits = u64::from(dtype.bits) * u64::from(dtype.lanes);
    let element = if bits.is_multiple_of(8) { bits / 8 } else { return None };
    if ty.layout != Layout::Contiguous {
        return None;
    }
    let bytes = ty.shape.dims()?.iter().try_fold(element, |bytes, dim| {
        let size = dim.eval(&|_| None)?;
        bytes.checked_mul(u64::try_from(size).ok()?)
    });
    u32::try_from(bytes?).ok()
}

/// A cursor over the flat values of parameters, in the order of convention `flat`.
pub(super) struct FlatValues {
    values: Vec<Value>,
    next: usize,
}

impl FlatValues {
    pub(super) fn new(values: Vec<Value>) -> Self {
        FlatValues { values, next: 0 }
    }

    fn peek(&self) -> Value {
        // the number of values matches the signature's types
        self.values.get(self.next).copied().unwrap_or(Value::from_u32(0))
    }

    fn next(&mut self) -> Value {
        let value = self.peek();
        self.next += 1;
        value
    }
}

/// Defines the function that `build` describes.
pub(super) fn define<R>(
    into: &mut Unit,
    signature: &Signature,
    enclosing: Enclosing<'_>,
    build: impl FnOnce(&mut BodyLowerer<'_>, &Args) -> R,
) -> Built<R> {
    let func = declare(&mut into.module, signature, enclosing);
    let mut l = BodyLowerer {
        b: FunctionBuilder::new(&mut into.module, func),
        pool: &mut into.pool,
        handles: &mut into.handles,
        drivers: &mut into.drivers,
        launches: &mut into.launches,
        prefix: &into.prefix,
        signature,
        dim_vars: HashMap::new(),
        result: None,
        result_spilled: None,
        exits: Exits::default(),
        symbol_calls: Vec::new(),
        wrapper: enclosing.wrapper,
        captured: enclosing.captured,
        is_c: enclosing.is_c,
        extras: Vec::new(),
        owners: Owners::default(),
        writes_to_caller: false,
        arguments: Vec::new(),
        checks: ValueChecks::default(),
        graph: None,
        scratch_bytes: 0,
        packed: None,
        fail: HashMap::new(),
        fail_of_many: HashMap::new(),
    };
    let args = l.args(signature);
    let result = build(&mut l, &args);
    let extras: Vec<Extra> = l.extras.iter().map(|(extra, _)| *extra).collect();
    let symbol_calls = std::mem::take(&mut l.symbol_calls);
    let (always_binds, writes_to_caller) = (l.checks.always_binds(), l.writes_to_caller);
    let func = l.b.finish();
    if !extras.is_empty() {
        let decl = &mut into.module.functions[func];
        decl.param_facts.resize(decl.signature.params.len(), PointerFacts::NONE);
    }
    Built { func, extras, writes_to_caller, symbol_calls, always_binds, result }
}

impl BodyLowerer<'_> {
    /// Sets the source location of the following operations; does nothing for `None`.
    pub(super) fn locate(&mut self, location: Option<&SourceLocation>) {
        let Some(location) = location else { return };
        let SourceLocation { file, line, function } = location.clone();
        let location = LocationData { file, line, function };
        let location = self.b.module().location(location);
        self.b.set_location(Some(location));
    }

    /// The source location of the current operations, if it is set.
    pub(super) fn location(&mut self) -> Option<SourceLocation> {
        let location = self.b.location()?;
        let LocationData { file, line, function } = &self.b.module().locations[location];
        Some(SourceLocation::new(file, *line, function))
    }

    /// Maps the function's C parameters to the signature's, in the order of convention `flat`.
    fn args(&mut self, signature: &Signature) -> Args {
        let func = self.b.func_ref();
        let declared = self.b.module().functions[func].signature.params.len();
        let mut params = FlatValues::new((0..declared).map(|i| self.b.param(i)).collect());
        let mut args = Args::new(signature);
        for param in signature.params() {
            self.arg(&param.name, &param.ty, &mut params, &mut args);
        }
        for (number, tensor) in signature.returned_tensors().into_iter().enumerate() {
            let result = self.tensor(tensor, &mut params, (Origin::Result, Life::BODY));
            args.results.push((signature.returned_path(number), result));
        }
        for name in signature.dim_vars() {
            let value = params.next();
            self.dim_vars.insert(name.to_owned(), value);
        }
        self.result = has_result(signature).then(|| params.next());
        self.shapes(&mut args);
        args
    }

    /// Adds a parameter, or the value inside an optional, tuple or record, under its path.
    pub(super) fn arg(&mut self, path: &str, ty: &ParamType, params: &mut FlatValues, args: &mut Args) {
        match ty {
            ParamType::Scalar(ty) => {
                let given = params.next();
                let value = match ty.kind() {
                    ScalarKind::Signed | ScalarKind::Unsigned => {
                        let wide = self.widened(*ty, given);
                        self.dim_vars.insert(path.to_owned(), wide);
                        given
                    }
                    ScalarKind::Half(half) => half::to_float32(&mut self.b, half, given),
                    ScalarKind::Float32 | ScalarKind::Float64 | ScalarKind::Handle => given,
                    ScalarKind::Bool => self.b.icmp_imm(IntCC::Ne, given, 0),
                };
                args.add(path.to_owned(), Arg::Scalar(value_type(*ty), value));
            }
            ParamType::Tensor(tensor) => {
                let mut tensor = self.tensor(tensor, params, (Origin::Argument, args.life));
                tensor.may_be_absent = args.may_be_absent(path);
                args.add(path.to_owned(), Arg::Tensor(Box::new(tensor)));
            }
            ParamType::Str | ParamType::Bytes | ParamType::Shape(_) | ParamType::Array(_) => {
                args.add(path.to_owned(), Arg::Scalar(ScalarType::Handle, params.next()));
                args.add(format!("{path}.size"), Arg::Scalar(ScalarType::Int64, params.next()));
            }
            ParamType::DType => args.add(path.to_owned(), Arg::Scalar(ScalarType::UInt32, params.next())),
            ParamType::Device => args.add(path.to_owned(), Arg::Scalar(ScalarType::UInt64, params.next())),
            ParamType::None | ParamType::Int(_) | ParamType::Bool(_) => {}
            ParamType::Any
            | ParamType::Function
            | ParamType::Module
            | ParamType::Object(_)
            | ParamType::List(_)
            | ParamType::Map(..)
            | ParamType::Dict(..)
            | ParamType::EnvStream
            | ParamType::Stream
            | ParamType::EnvState(_) => args.add(path.to_owned(), Arg::Scalar(ScalarType::Handle, params.next())),
            ParamType::Optional(inner) if has_null(inner) => {
                let given = self.b.icmp_imm(IntCC::Ne, params.peek(), 0);
                args.given.insert(path.to_owned(), given);
                self.arg(path, inner, params, args);
            }
            ParamType::Optional(inner) => {
                let flag = params.next();
                let given = self.b.icmp_imm(IntCC::Ne, flag, 0);
                args.given.insert(path.to_owned(), given);
                self.arg(path, inner, params, args);
            }
            ParamType::Tuple(_) | ParamType::Record { .. } => {
                for (step, member) in ty.members() {
                    self.arg(&format!("{path}{step}"), member, params, args);
                }
            }
        }
    }

    fn tensor(&mut self, ty: &TensorType, params: &mut FlatValues, (origin, life): (Origin, Life)) -> TensorVars {
        let (data, descriptor) = match Convention::Flat.form(ty) {
            TensorForm::Data => {
                let data = Some(params.next());
                if ty.is_opaque() {
                    // skip the offset, since no operation of a body uses it
                    params.next();
                }
                (data, None)
            }
            TensorForm::Descriptor | TensorForm::MemRef => (None, Some(params.next())),
        };
        let (shape, strides) = (Vec::new(), None);
        TensorVars { ty: ty.clone(), data, shape, strides, descriptor, may_be_absent: false, origin, life }
    }

    /// An integer as the value of a dimension variable, an `I64`.
    fn widened(&mut self, ty: ScalarType, value: Value) -> Value {
        match (ty.bits(), ty.is_signed_int()) {
            (64, _) => value,
            (_, true) => self.b.convert(ConvertOp::SExt, Type::I64, value),
            (_, false) => self.b.convert(ConvertOp::ZExt, Type::I64, value),
        }
    }

    /// Computes sizes and strides of all tensors. The dimension variables must be known.
    pub(super) fn shapes(&mut self, args: &mut Args) {
        for (_, vars) in args.tensors_mut() {
            vars.shape = self.dims(vars.ty.shape.dims().unwrap_or_default());
            vars.strides = vars.ty.strides().map(|strides| self.dims(strides));
        }
    }

    /// Computes sizes or strides. The checks have compared each with its expression.
    fn dims(&mut self, dims: &[Dim]) -> Vec<Value> {
        dims.iter().map(|dim| self.compute(dim)).collect()
    }

    /// Computes an expression. The checks guarantee that it has a value, except when an optional tensor that carries
    /// one of its variables is absent. Then the value isn't used, so any value is correct.
    fn compute(&mut self, dim: &Dim) -> Value {
        lower_dim(self, dim).unwrap_or_else(|| self.b.i64(0))
    }

    /// Sets the value of a dimension variable, or removes it.
    pub(super) fn set_var(&mut self, name: &str, value: Option<Value>) {
        match value {
            Some(value) => self.dim_vars.insert(name.to_owned(), value),
            None => self.dim_vars.remove(name),
        };
    }

    /// The value of a dimension variable.
    pub(super) fn var(&self, name: &str) -> Option<Value> {
        self.dim_vars.get(name).copied()
    }

    /// Continues if `cond` holds. Otherwise raises what `failure` returns; `failure` runs in a cold block.
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
        let template = self.b.iconst(Type::I32, i64::from(failure.template));
        let values = failure.values;
        if values.len() > FEW_VALUES {
            let (fail, slot) = self.fail_of_many_block();
            let context = self.b.stack_addr(slot);
            self.write_context(context, &values);
            return self.b.jump(fail, &[template]);
        }
        let [first, second] = [0, 1].map(|i| values.get(i).copied().unwrap_or_else(|| self.b.i64(0)));
        let fail = self.fail_block();
        self.b.jump(fail, &[template, first, second]);
    }

    /// The shared raising block for errors of few values.
    fn fail_block(&mut self) -> Block {
        let exit = self.exit_block();
        if let Some(fail) = self.fail.get(&exit).copied()
            && self.exits.takes_jump(fail)
        {
            return fail;
        }
        let here = self.b.current();
        let fail = self.b.cold_block();
        let template = self.b.block_param(fail, Type::I32);
        let values = [self.b.block_param(fail, Type::I64), self.b.block_param(fail, Type::I64)];
        self.b.switch_to(fail);
        let context = self.b.slot(8 * FEW_VALUES as u32, 8);
        let context = self.b.stack_addr(context);
        self.write_context(context, &values);
        self.report(template, context, exit);
        self.b.switch_to(here);
        self.fail.insert(exit, fail);
        self.exits.takes_jump(fail);
        fail
    }

    /// The shared raising block for errors of many values.
    fn fail_of_many_block(&mut self) -> (Block, StackSlot) {
        let exit = self.exit_block();
        if let Some((fail, slot)) = self.fail_of_many.get(&exit).copied()
            && self.exits.takes_jump(fail)
        {
            return (fail, slot);
        }
        let here = self.b.current();
        let fail = self.b.cold_block();
        let template = self.b.block_param(fail, Type::I32);
        let slot = self.b.slot(8 * MAX_FIELDS, 8);
        self.b.switch_to(fail);
        let context = self.b.stack_addr(slot);
        self.report(template, context, exit);
        self.b.switch_to(here);
        self.fail_of_many.insert(exit, (fail, slot));
        self.exits.takes_jump(fail);
        (fail, slot)
    }

    fn write_context(&mut self, context: Value, values: &[Value]) {
        for (i, value) in (0..MAX_FIELDS as i32).zip(values) {
            self.b.store(*value, context, 8 * i, MemFlags::ALIGNED);
        }
    }

    /// Ends the current block by raising a template's error and taking an exit.
    fn report(&mut self, template: Value, context: Value, exit: Option<Block>) {
        let pool = self.pool.data;
        let code = self.b.structured(|c| {
            let [template, context] = [template, context].map(|value| c.val(value));
            helpers::raise_computed(c, c.data(pool, 0), template, Some(context)).value()
        });
        match exit {
            Some(exit) => self.b.jump(exit, &[code]),
            None => self.b.ret(Some(code)),
        }
    }

    /// Keeps the result's address in the frame. In a register it would have to survive calls, and Cranelift would move
    /// it to and from that register in every turn of a loop.
    pub(super) fn spill_result(&mut self) {
        let Some(result) = self.result.filter(|_| self.result_spilled.is_none()) else { return };
        let slot = self.b.slot(8, 8);
        self.b.at_entry(|b| {
            let to = b.stack_addr(slot);
            b.store(result, to, 0, MemFlags::ALIGNED);
        });
        self.result_spilled = Some(slot);
    }

    /// The result's address, if the function has a result.
    pub(super) fn result_pointer(&mut self) -> Option<Value> {
        let result = self.result?;
        Some(match self.result_spilled {
            None => result,
            Some(slot) => {
                let from = self.b.stack_addr(slot);
                self.b.load(Type::Ptr, from, 0, MemFlags::ALIGNED)
            }
        })
    }

    /// Returns 0 after storing the function's result. The value has the type that values of `ty` have in a body.
    pub(super) fn succeed_with(&mut self, ty: ScalarType, value: Value) {
        let value = match ty.kind() {
            ScalarKind::Half(half) => half::of_float32(&mut self.b, half, value),
            ScalarKind::Signed
            | ScalarKind::Unsigned
            | ScalarKind::Float32
            | ScalarKind::Float64
            | ScalarKind::Bool
            | ScalarKind::Handle => value,
        };
        if let Some(result) = self.result_pointer() {
            match self.is_c {
                false => abi::store_result(&mut self.b, result, ty, value),
                true => {
                    let value =
                        if ty == ScalarType::Bool { self.b.convert(ConvertOp::ZExt, Type::I8, value) } else { value };
                    self.b.store(value, result, 0, MemFlags::ALIGNED);
                }
            }
        }
        self.succeed();
    }

    /// Returns 0 after storing a dtype or a device, given as the payload of a `TVMFFIAny`.
    pub(super) fn succeed_with_bits(&mut self, ty: &ParamType, payload: Value) {
        let index = if *ty == ParamType::DType { TypeIndex::DATA_TYPE } else { TypeIndex::DEVICE };
        if let Some(result) = self.result_pointer() {
            match (self.is_c, ty) {
                (false, _) => abi::store_any(&mut self.b, result, index, payload),
                (true, ParamType::DType) => {
                    let bits = fields::first(&mut self.b, payload);
                    self.b.store(bits, result, 0, MemFlags::ALIGNED);
                }
                // a `DLDevice` is aligned to 4 bytes
                (true, _) => self.b.store(payload, result, 0, MemFlags::UNALIGNED),
            }
        }
        self.succeed();
    }
}

/// Emits code for expressions that the checks have computed before, so no step overflows.
impl DimCode for BodyLowerer<'_> {
    type Number = Value;

    fn constant(&mut self, value: i64) -> Value {
        self.b.i64(value)
    }

    fn var(&mut self, name: &str) -> Option<Value> {
        self.dim_vars.get(name).copied()
    }

    fn operation(&mut self, op: DimOp, x: Value, y: Value, _: Option<i64>) -> Value {
        match op {
            DimOp::Add | DimOp::Sub | DimOp::Mul => wrapping(&mut self.b, op, x, y),
            // a divisor of 0 means that its value is absent
            DimOp::FloorDiv | DimOp::Mod | DimOp::CeilDiv => total_division(&mut self.b, op, x, y),
            DimOp::Min | DimOp::Max => extremum(&mut self.b, op, x, y),
        }
    }
}
