//! The code generator: kernels to functions of a Cranelift module.
//!
//! A kernel is a function `int32_t kernel(params..., T* result)`, whose status is 0, or that of a function outside
//! which has failed. A parameter has a key: `n` for a symbol, `a.value` for a scalar, `x.data` for a tensor, `s.data`
//! and `s.size` for a text or a list. `a.given` is whether an optional scalar is there, and `x.argument` a parameter as
//! it came. An item of a tuple is `p[0]`. The result is written to `->.value`; tensors that are returned are `->.data`,
//! or `->[0].data`.

use std::collections::HashMap;

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{
    self, Block, BlockArg, FuncRef, InstBuilder, MemFlagsData, StackSlotData, StackSlotKind, Type, Value, types,
};
use cranelift_codegen::{Context, settings, settings::Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_module::{FuncId, Module, default_libcall_names};
use cranelift_object::{ObjectBuilder, ObjectModule};

use super::dsl::program::{
    Access, Argument, Comparison, Expr, ExprKind, Kernel, Math, Operator, Reduction, Scalar, Statement,
};

/// A module that becomes an object file of a shared library for this machine.
pub fn object_module() -> Result<ObjectModule, Box<dyn std::error::Error>> {
    let mut flags = settings::builder();
    flags.set("is_pic", "true")?;
    flags.set("opt_level", "speed")?;
    let isa = cranelift_native::builder()?.finish(settings::Flags::new(flags))?;
    Ok(ObjectModule::new(ObjectBuilder::new(isa, "kernels", default_libcall_names())?))
}

/// The key of the place for a result.
const RESULT: &str = "->.value";

/// How a list has its elements in memory.
#[derive(Clone, Copy)]
pub struct Cells {
    /// The distance between elements, in bytes.
    pub size: usize,
    /// The offset of an element's value, in bytes.
    pub value: usize,
}

/// Defines a kernel that is declared. `params` are the keys of its function's parameters, `outside` the functions that
/// it calls.
pub fn define(
    module: &mut impl Module,
    kernel: &Kernel,
    id: FuncId,
    params: impl Iterator<Item = String>,
    outside: &[FuncId],
    cells: Cells,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut context = Context::new();
    context.func.signature = module.declarations().get_function_decl(id).signature.clone();
    let outside = outside.iter().map(|id| module.declare_func_in_func(*id, &mut context.func)).collect();
    let mut frontend = FunctionBuilderContext::new();
    let mut b = FunctionBuilder::new(&mut context.func, &mut frontend);
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    b.seal_block(entry);
    let names = params.map(|key| if key == RESULT { key } else { key.trim_end_matches(".value").to_owned() });
    let values = names.zip(b.block_params(entry).iter().copied()).collect();
    let exit = b.create_block();
    b.append_block_param(exit, types::I32);
    let pointer = module.target_config().pointer_type();
    let mut emitter = Emitter { b, pointer, values, outside, exit, cells };
    emitter.statements(&kernel.body);
    let done = emitter.b.ins().iconst(types::I32, 0);
    emitter.leave(done);
    emitter.b.switch_to_block(exit);
    let status = emitter.b.block_params(exit)[0];
    emitter.b.ins().return_(&[status]);
    emitter.b.seal_all_blocks();
    emitter.b.finalize(module.target_config());
    Ok(module.define_function(id, &mut context)?)
}

struct Emitter<'a> {
    b: FunctionBuilder<'a>,
    /// The type of addresses.
    pointer: Type,
    /// Scalars by name (each name has one meaning), and parts of other parameters by key.
    values: HashMap<String, Value>,
    outside: Vec<FuncRef>,
    /// Returns the status that it gets.
    exit: Block,
    cells: Cells,
}

fn type_of(scalar: Scalar) -> Type {
    match scalar {
        Scalar::Bool => types::I8,
        Scalar::Int64 => types::I64,
        Scalar::Float32 => types::F32,
        Scalar::Float64 => types::F64,
    }
}

impl Emitter<'_> {
    fn statements(&mut self, statements: &[Statement]) {
        statements.iter().for_each(|statement| self.statement(statement));
    }

    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::For { index, end, body } => {
                let end = self.expr(end);
                self.repeat(index, end, None, |emitter, _| {
                    emitter.statements(body);
                    None
                });
            }
            Statement::Let { name, value } => {
                let value = self.expr(value);
                self.values.insert(name.clone(), value);
            }
            Statement::If { condition, then, otherwise } => {
                let condition = self.expr(condition);
                self.choose(
                    condition,
                    |emitter| {
                        emitter.statements(then);
                        None
                    },
                    |emitter| {
                        emitter.statements(otherwise);
                        None
                    },
                );
            }
            Statement::Store { access, value } => {
                let value = self.expr(value);
                let address = self.address(access);
                self.b.ins().store(MemFlagsData::trusted(), value, address, 0);
            }
            Statement::Raise { outside, args } => {
                let status = self.call(*outside, args, None);
                self.leave(status);
            }
            Statement::Return(value) => {
                let value = self.expr(value);
                let result = self.values[RESULT];
                self.b.ins().store(MemFlagsData::trusted(), value, result, 0);
                let done = self.b.ins().iconst(types::I32, 0);
                self.leave(done);
            }
            Statement::ReturnCall { outside, args } => {
                let status = self.call(*outside, args, Some(self.values[RESULT]));
                self.leave(status);
            }
        }
    }

    /// Returns. Code that is emitted after it is in an unreachable block.
    fn leave(&mut self, status: Value) {
        self.b.ins().jump(self.exit, &[status.into()]);
        let unreachable = self.b.create_block();
        self.b.switch_to_block(unreachable);
    }

    /// Returns the status if it isn't 0.
    fn leave_if(&mut self, status: Value) {
        let next = self.b.create_block();
        self.b.ins().brif(status, self.exit, &[status.into()], next, &[]);
        self.b.switch_to_block(next);
    }

    /// A loop from 0 to `end`, with a value that goes from turn to turn.
    fn repeat(
        &mut self,
        index: &str,
        end: Value,
        start: Option<Value>,
        turn: impl FnOnce(&mut Self, Option<Value>) -> Option<Value>,
    ) -> Option<Value> {
        let (head, body, after) = (self.b.create_block(), self.b.create_block(), self.b.create_block());
        let i = self.b.append_block_param(head, types::I64);
        let carried = start.map(|start| {
            let ty = self.b.func.dfg.value_type(start);
            self.b.append_block_param(head, ty)
        });
        let zero = self.b.ins().iconst(types::I64, 0);
        let args: Vec<BlockArg> = [zero].into_iter().chain(start).map(BlockArg::from).collect();
        self.b.ins().jump(head, &args);
        self.b.switch_to_block(head);
        let goes_on = self.b.ins().icmp(IntCC::SignedLessThan, i, end);
        self.b.ins().brif(goes_on, body, &[], after, &[]);
        self.b.switch_to_block(body);
        self.values.insert(index.to_owned(), i);
        let next = turn(self, carried);
        let i = self.b.ins().iadd_imm_s(i, 1);
        let args: Vec<BlockArg> = [i].into_iter().chain(next).map(BlockArg::from).collect();
        self.b.ins().jump(head, &args);
        self.b.switch_to_block(after);
        carried
    }

    /// One of two values, or of two effects.
    fn choose(
        &mut self,
        condition: Value,
        then: impl FnOnce(&mut Self) -> Option<Value>,
        otherwise: impl FnOnce(&mut Self) -> Option<Value>,
    ) -> Option<Value> {
        let (yes, no, join) = (self.b.create_block(), self.b.create_block(), self.b.create_block());
        self.b.ins().brif(condition, yes, &[], no, &[]);
        self.b.switch_to_block(yes);
        let value = then(self);
        let joined = value.map(|value| {
            let ty = self.b.func.dfg.value_type(value);
            self.b.append_block_param(join, ty)
        });
        self.b.ins().jump(join, value.map(BlockArg::from).as_slice());
        self.b.switch_to_block(no);
        let value = otherwise(self);
        self.b.ins().jump(join, value.map(BlockArg::from).as_slice());
        self.b.switch_to_block(join);
        joined
    }

    /// The status of a function outside.
    fn call(&mut self, outside: usize, args: &[Argument], result: Option<Value>) -> Value {
        let mut values = Vec::new();
        for arg in args {
            match arg {
                Argument::Scalar(expr) => values.push(self.expr(expr)),
                Argument::Text(name) => values.extend(self.text(name)),
                Argument::Whole(name) => values.push(self.values[&format!("{name}.argument")]),
            }
        }
        values.extend(result);
        let call = self.b.ins().call(self.outside[outside], &values);
        self.b.inst_results(call)[0]
    }

    /// The address of a tensor's elements.
    fn tensor(&self, name: &str) -> Value {
        // no parameter is called so
        let key = match name.strip_prefix("result") {
            Some(item) if item.is_empty() || item.starts_with('[') => format!("->{item}.data"),
            _ => format!("{name}.data"),
        };
        self.values[&key]
    }

    /// The address of a text's bytes, and their number.
    fn text(&self, name: &str) -> [Value; 2] {
        ["data", "size"].map(|part| self.values[&format!("{name}.{part}")])
    }

    fn address(&mut self, access: &Access) -> Value {
        let mut offset = None;
        for (axis, index) in access.index.iter().enumerate() {
            let value = self.expr(&index.value);
            let size = self.expr(&access.of.shape[axis]);
            if let Some(outside) = index.checked {
                let is_outside = self.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, value, size);
                let function = self.outside[outside];
                let raise = |emitter: &mut Self| {
                    let call = emitter.b.ins().call(function, &[value, size]);
                    let status = emitter.b.inst_results(call)[0];
                    emitter.leave(status);
                    None
                };
                self.choose(is_outside, raise, |_| None);
            }
            offset = Some(match (&access.of.strides, offset) {
                (Some(strides), before) => {
                    let stride = self.expr(&strides[axis]);
                    let step = self.b.ins().imul(value, stride);
                    before.map_or(step, |before| self.b.ins().iadd(before, step))
                }
                (None, Some(before)) => {
                    let rows = self.b.ins().imul(before, size);
                    self.b.ins().iadd(rows, value)
                }
                (None, None) => value,
            });
        }
        let data = self.tensor(&access.tensor);
        let Some(offset) = offset else { return data };
        let (size, first) = match access.is_list {
            true => (self.cells.size as i64, self.cells.value as i64),
            false => (i64::from(type_of(access.of.element).bytes()), 0),
        };
        let bytes = self.b.ins().imul_imm_s(offset, size);
        let bytes = if self.pointer == types::I64 { bytes } else { self.b.ins().ireduce(self.pointer, bytes) };
        let address = self.b.ins().iadd(data, bytes);
        self.b.ins().iadd_imm_s(address, first)
    }

    fn expr(&mut self, expr: &Expr) -> Value {
        let is_float = expr.ty.is_float();
        match &expr.kind {
            ExprKind::Int(value) => self.b.ins().iconst(types::I64, *value),
            ExprKind::Float(value) => self.float(*value, expr.ty),
            ExprKind::Name(name) => self.values[name],
            ExprKind::Negative(inner) => {
                let inner = self.expr(inner);
                if is_float { self.b.ins().fneg(inner) } else { self.b.ins().ineg(inner) }
            }
            ExprKind::Not(inner) => {
                let inner = self.expr(inner);
                self.b.ins().icmp_imm_s(IntCC::Equal, inner, 0)
            }
            ExprKind::Binary(operator, left, right) => {
                let (left, right) = (self.expr(left), self.expr(right));
                self.binary(*operator, left, right, is_float)
            }
            ExprKind::Compare(comparison, left, right) => {
                let is_float = left.ty.is_float();
                let (left, right) = (self.expr(left), self.expr(right));
                self.compare(*comparison, left, right, is_float)
            }
            ExprKind::And(left, right) => {
                let (left, right) = (self.expr(left), self.expr(right));
                self.b.ins().band(left, right)
            }
            ExprKind::Or(left, right) => {
                let (left, right) = (self.expr(left), self.expr(right));
                self.b.ins().bor(left, right)
            }
            ExprKind::Choose { condition, then, otherwise } => {
                let condition = self.expr(condition);
                let value = self.choose(condition, |e| Some(e.expr(then)), |e| Some(e.expr(otherwise)));
                value.unwrap_or(condition)
            }
            ExprKind::Reduce { how, index, end, value } => {
                let end = self.expr(end);
                let start = self.start(*how, expr.ty);
                let reduced = self.repeat(index, end, Some(start), |emitter, carried| {
                    let value = emitter.expr(value);
                    carried.map(|carried| emitter.binary(how.operator(), carried, value, is_float))
                });
                reduced.unwrap_or(start)
            }
            ExprKind::Math(math, inner) => {
                let inner = self.expr(inner);
                match math {
                    Math::Sqrt => self.b.ins().sqrt(inner),
                    Math::Abs => self.b.ins().fabs(inner),
                }
            }
            ExprKind::Convert(inner) => {
                let (from, to) = (inner.ty, type_of(expr.ty));
                let inner = self.expr(inner);
                match (from, expr.ty) {
                    (Scalar::Int64 | Scalar::Bool, _) => self.b.ins().fcvt_from_sint(to, inner),
                    (Scalar::Float32, Scalar::Float64) => self.b.ins().fpromote(to, inner),
                    (Scalar::Float64, Scalar::Float32) => self.b.ins().fdemote(to, inner),
                    (Scalar::Float32 | Scalar::Float64, _) => inner,
                }
            }
            ExprKind::Load(access) => {
                let address = self.address(access);
                self.b.ins().load(type_of(expr.ty), MemFlagsData::trusted(), address, 0)
            }
            ExprKind::Given(name) => {
                let given = self.values.get(&format!("{name}.given")).copied();
                let given = given.unwrap_or_else(|| self.tensor(name));
                self.b.ins().icmp_imm_s(IntCC::NotEqual, given, 0)
            }
            ExprKind::Length(list) => self.values[&format!("{list}.size")],
            ExprKind::TextIs(name, text) => self.text_is(name, text),
            ExprKind::Call { outside, args } => {
                let slot = StackSlotData::new(StackSlotKind::ExplicitSlot, 8, 3);
                let slot = self.b.create_sized_stack_slot(slot);
                let place = self.b.ins().stack_addr(self.pointer, slot, 0);
                let status = self.call(*outside, args, Some(place));
                self.leave_if(status);
                self.b.ins().load(type_of(expr.ty), MemFlagsData::trusted(), place, 0)
            }
        }
    }

    fn float(&mut self, value: f64, ty: Scalar) -> Value {
        match ty {
            Scalar::Float32 => self.b.ins().f32const(value as f32),
            _ => self.b.ins().f64const(value),
        }
    }

    /// The reduction of nothing.
    fn start(&mut self, how: Reduction, ty: Scalar) -> Value {
        let (int, float) = match how {
            Reduction::Sum => (0, 0.0),
            Reduction::Max => (i64::MIN, f64::NEG_INFINITY),
            Reduction::Min => (i64::MAX, f64::INFINITY),
        };
        if ty.is_float() { self.float(float, ty) } else { self.b.ins().iconst(types::I64, int) }
    }

    fn binary(&mut self, operator: Operator, left: Value, right: Value, is_float: bool) -> Value {
        match (operator, is_float) {
            (Operator::Add, true) => self.b.ins().fadd(left, right),
            (Operator::Add, false) => self.b.ins().iadd(left, right),
            (Operator::Sub, true) => self.b.ins().fsub(left, right),
            (Operator::Sub, false) => self.b.ins().isub(left, right),
            (Operator::Mul, true) => self.b.ins().fmul(left, right),
            (Operator::Mul, false) => self.b.ins().imul(left, right),
            (Operator::Div, _) => self.b.ins().fdiv(left, right),
            (Operator::Rem, _) => {
                let rest = self.b.ins().srem(left, right);
                let is_below = self.b.ins().icmp_imm_s(IntCC::SignedLessThan, rest, 0);
                let above = self.b.ins().iadd(rest, right);
                self.b.ins().select(is_below, above, rest)
            }
            (Operator::FloorDiv, _) => {
                let rest = self.binary(Operator::Rem, left, right, false);
                let multiple = self.b.ins().isub(left, rest);
                self.b.ins().sdiv(multiple, right)
            }
            (Operator::Min | Operator::Max, _) => {
                let comparison = if operator == Operator::Min { Comparison::Lt } else { Comparison::Gt };
                let is_left = self.compare(comparison, left, right, is_float);
                self.b.ins().select(is_left, left, right)
            }
        }
    }

    fn compare(&mut self, comparison: Comparison, left: Value, right: Value, is_float: bool) -> Value {
        let (float, int) = match comparison {
            Comparison::Eq => (FloatCC::Equal, IntCC::Equal),
            Comparison::Ne => (FloatCC::NotEqual, IntCC::NotEqual),
            Comparison::Lt => (FloatCC::LessThan, IntCC::SignedLessThan),
            Comparison::Le => (FloatCC::LessThanOrEqual, IntCC::SignedLessThanOrEqual),
            Comparison::Gt => (FloatCC::GreaterThan, IntCC::SignedGreaterThan),
            Comparison::Ge => (FloatCC::GreaterThanOrEqual, IntCC::SignedGreaterThanOrEqual),
        };
        if is_float { self.b.ins().fcmp(float, left, right) } else { self.b.ins().icmp(int, left, right) }
    }

    /// The text's bytes are read only if there are as many.
    fn text_is(&mut self, name: &str, text: &str) -> Value {
        let [data, size] = self.text(name);
        let fits = self.b.ins().icmp_imm_s(IntCC::Equal, size, text.len() as i64);
        let compared = self.choose(
            fits,
            |emitter| {
                let mut all = emitter.b.ins().iconst(types::I8, 1);
                for (offset, byte) in (0..).zip(text.bytes()) {
                    let found = emitter.b.ins().load(
                        types::I8,
                        MemFlagsData::trusted(),
                        data,
                        ir::immediates::Offset32::new(offset),
                    );
                    let is = emitter.b.ins().icmp_imm_s(IntCC::Equal, found, i64::from(byte));
                    all = emitter.b.ins().band(all, is);
                }
                Some(all)
            },
            |_| Some(fits),
        );
        compared.unwrap_or(fits)
    }
}
