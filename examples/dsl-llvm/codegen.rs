//! The code generator: kernels to functions of an LLVM module.
//!
//! A kernel is a function `int32_t kernel(params..., T* result)`, whose status is 0, or that of a function outside
//! which has failed. A parameter has a key: `n` for a symbol, `a.value` for a scalar, `x.data` for a tensor, `s.data`
//! and `s.size` for a text or a list. `a.given` is whether an optional scalar is there, and `x.argument` a parameter as
//! it came. An item of a tuple is `p[0]`. The result is written to `->.value`; tensors that are returned are `->.data`,
//! or `->[0].data`.

use std::collections::HashMap;

use inkwell::basic_block::BasicBlock;
use inkwell::builder::{Builder, BuilderError};
use inkwell::context::{Context, ContextRef};
use inkwell::intrinsics::Intrinsic;
use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::support::LLVMString;
use inkwell::targets::{CodeModel, FileType, InitializationConfig, RelocMode, Target, TargetMachine};
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValue, BasicValueEnum, FunctionValue, IntValue, PointerValue};
use inkwell::{FloatPredicate, IntPredicate, OptimizationLevel};

use super::dsl::program::{
    Access, Argument, Comparison, Expr, ExprKind, Kernel, Math, Operator, Reduction, Scalar, Statement, Type,
};

type Result<T> = std::result::Result<T, BuilderError>;

/// A module under construction, and the machine that it is for: this one.
pub struct Unit<'ctx> {
    pub module: Module<'ctx>,
    pub machine: TargetMachine,
}

impl<'ctx> Unit<'ctx> {
    pub fn new(context: &'ctx Context) -> std::result::Result<Self, Box<dyn std::error::Error>> {
        Target::initialize_native(&InitializationConfig::default())?;
        let triple = TargetMachine::get_default_triple();
        let (cpu, features) = (TargetMachine::get_host_cpu_name(), TargetMachine::get_host_cpu_features());
        let (cpu, features) = (cpu.to_string_lossy(), features.to_string_lossy());
        let (level, code) = (OptimizationLevel::Default, CodeModel::Default);
        let target = Target::from_triple(&triple)?;
        let machine = target.create_target_machine(&triple, &cpu, &features, level, RelocMode::PIC, code);
        let machine = machine.ok_or("no code generator for this machine")?;
        let module = context.create_module("kernels");
        module.set_triple(&triple);
        module.set_data_layout(&machine.get_target_data().get_data_layout());
        Ok(Unit { module, machine })
    }

    /// Runs LLVM's passes over the module, which is complete.
    pub fn optimise(&self) -> std::result::Result<(), LLVMString> {
        self.module.verify()?;
        self.module.run_passes("default<O2>", &self.machine, PassBuilderOptions::create())
    }

    /// Optimises the module, and compiles it to an object file.
    pub fn object(&self) -> std::result::Result<Vec<u8>, LLVMString> {
        self.optimise()?;
        Ok(self.machine.write_to_memory_buffer(&self.module, FileType::Object)?.as_slice().to_vec())
    }
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
pub fn define<'ctx>(
    module: &Module<'ctx>,
    kernel: &Kernel,
    function: FunctionValue<'ctx>,
    params: impl Iterator<Item = String>,
    outside: &[FunctionValue<'ctx>],
    cells: Cells,
) -> Result<()> {
    let context = module.get_context();
    let b = context.create_builder();
    b.position_at_end(context.append_basic_block(function, "entry"));
    let (values, slots) = (HashMap::new(), Vec::new());
    let mut emitter = Emitter { b, context, module, function, values, outside, slots, cells };
    for (key, value) in params.zip(function.get_param_iter()) {
        let name = if key == RESULT { key } else { key.trim_end_matches(".value").to_owned() };
        let is_bool = value.is_int_value() && value.into_int_value().get_type().get_bit_width() == 8;
        let value = if is_bool { emitter.is_not_zero(value.into_int_value())?.into() } else { value };
        emitter.values.insert(name, value);
    }
    for outside in &kernel.outside {
        emitter.slots.push(match outside.result {
            Some(Type::Scalar(result)) => Some(emitter.b.build_alloca(emitter.stored_as(result), "")?),
            Some(_) => Some(emitter.values[RESULT].into_pointer_value()),
            None => None,
        });
    }
    emitter.statements(&kernel.body)?;
    emitter.b.build_return(Some(&emitter.status(0)))?;
    Ok(())
}

struct Emitter<'a, 'ctx> {
    b: Builder<'ctx>,
    context: ContextRef<'ctx>,
    module: &'a Module<'ctx>,
    function: FunctionValue<'ctx>,
    /// Scalars by name (each name has one meaning), and parts of other parameters by key. Truth values are of type
    /// `i1`.
    values: HashMap<String, BasicValueEnum<'ctx>>,
    outside: &'a [FunctionValue<'ctx>],
    /// The places for the results of functions outside. A result that is no scalar is the kernel's own.
    slots: Vec<Option<PointerValue<'ctx>>>,
    cells: Cells,
}

/// A value, if there is one.
type Carried<'ctx> = Option<BasicValueEnum<'ctx>>;

impl<'ctx> Emitter<'_, 'ctx> {
    fn type_of(&self, scalar: Scalar) -> BasicTypeEnum<'ctx> {
        match scalar {
            Scalar::Bool => self.context.bool_type().into(),
            Scalar::Int64 => self.context.i64_type().into(),
            Scalar::Float32 => self.context.f32_type().into(),
            Scalar::Float64 => self.context.f64_type().into(),
        }
    }

    /// The type in memory and in arguments.
    fn stored_as(&self, scalar: Scalar) -> BasicTypeEnum<'ctx> {
        if scalar == Scalar::Bool { self.context.i8_type().into() } else { self.type_of(scalar) }
    }

    fn to_stored(&self, value: BasicValueEnum<'ctx>, scalar: Scalar) -> Result<BasicValueEnum<'ctx>> {
        match scalar {
            Scalar::Bool => Ok(self.b.build_int_z_extend(value.into_int_value(), self.context.i8_type(), "")?.into()),
            _ => Ok(value),
        }
    }

    fn load(&self, scalar: Scalar, address: PointerValue<'ctx>) -> Result<BasicValueEnum<'ctx>> {
        let value = self.b.build_load(self.stored_as(scalar), address, "")?;
        if scalar == Scalar::Bool { Ok(self.is_not_zero(value.into_int_value())?.into()) } else { Ok(value) }
    }

    fn is_not_zero(&self, value: IntValue<'ctx>) -> Result<IntValue<'ctx>> {
        self.b.build_int_compare(IntPredicate::NE, value, value.get_type().const_zero(), "")
    }

    fn int(&self, value: i64) -> IntValue<'ctx> {
        self.context.i64_type().const_int(value.cast_unsigned(), true)
    }

    fn status(&self, value: u64) -> IntValue<'ctx> {
        self.context.i32_type().const_int(value, false)
    }

    fn block(&self) -> BasicBlock<'ctx> {
        self.context.append_basic_block(self.function, "")
    }

    /// The block that is being written. There is one from the beginning on.
    fn here(&self) -> Result<BasicBlock<'ctx>> {
        self.b.get_insert_block().ok_or(BuilderError::UnsetPosition)
    }

    fn statements(&mut self, statements: &[Statement]) -> Result<()> {
        statements.iter().try_for_each(|statement| self.statement(statement))
    }

    fn statement(&mut self, statement: &Statement) -> Result<()> {
        match statement {
            Statement::For { index, end, body } => {
                let end = self.expr(end)?.into_int_value();
                self.repeat(index, end, None, |emitter, _| emitter.statements(body).map(|()| None))?;
            }
            Statement::Let { name, value } => {
                let value = self.expr(value)?;
                self.values.insert(name.clone(), value);
            }
            Statement::If { condition, then, otherwise } => {
                let condition = self.expr(condition)?.into_int_value();
                let effect = |statements| move |emitter: &mut Self| emitter.statements(statements).map(|()| None);
                self.choose(condition, effect(then), effect(otherwise))?;
            }
            Statement::Store { access, value } => {
                let stored = self.expr(value)?;
                let address = self.address(access)?;
                self.b.build_store(address, self.to_stored(stored, value.ty)?)?;
            }
            Statement::Raise { outside, args } => {
                let status = self.call(*outside, args)?;
                self.leave(status)?;
            }
            Statement::Return(value) => {
                let result = self.expr(value)?;
                let place = self.values[RESULT].into_pointer_value();
                self.b.build_store(place, self.to_stored(result, value.ty)?)?;
                self.leave(self.status(0))?;
            }
            Statement::ReturnCall { outside, args } => {
                let status = self.call(*outside, args)?;
                self.leave(status)?;
            }
        }
        Ok(())
    }

    /// Returns. Code that is emitted after it is in an unreachable block.
    fn leave(&mut self, status: IntValue<'ctx>) -> Result<()> {
        self.b.build_return(Some(&status))?;
        self.b.position_at_end(self.block());
        Ok(())
    }

    /// A loop from 0 to `end`, with a value that goes from turn to turn.
    fn repeat(
        &mut self,
        index: &str,
        end: IntValue<'ctx>,
        start: Carried<'ctx>,
        turn: impl FnOnce(&mut Self, Carried<'ctx>) -> Result<Carried<'ctx>>,
    ) -> Result<Carried<'ctx>> {
        let (before, head, body, after) = (self.here()?, self.block(), self.block(), self.block());
        self.b.build_unconditional_branch(head)?;
        self.b.position_at_end(head);
        let i = self.b.build_phi(self.context.i64_type(), "")?;
        let carried = start.map(|start| self.b.build_phi(start.get_type(), "")).transpose()?;
        let number = i.as_basic_value().into_int_value();
        let goes_on = self.b.build_int_compare(IntPredicate::SLT, number, end, "")?;
        self.b.build_conditional_branch(goes_on, body, after)?;
        self.b.position_at_end(body);
        self.values.insert(index.to_owned(), number.into());
        let next = turn(self, carried.map(|carried| carried.as_basic_value()))?;
        let next_number = self.b.build_int_nsw_add(number, self.int(1), "")?;
        let turned = self.here()?;
        self.b.build_unconditional_branch(head)?;
        i.add_incoming(&[(&self.int(0), before), (&next_number, turned)]);
        if let (Some(carried), Some(start), Some(next)) = (carried, start, next) {
            carried.add_incoming(&[(&start, before), (&next, turned)]);
        }
        self.b.position_at_end(after);
        Ok(carried.map(|carried| carried.as_basic_value()))
    }

    /// One of two values, or of two effects.
    fn choose(
        &mut self,
        condition: IntValue<'ctx>,
        then: impl FnOnce(&mut Self) -> Result<Carried<'ctx>>,
        otherwise: impl FnOnce(&mut Self) -> Result<Carried<'ctx>>,
    ) -> Result<Carried<'ctx>> {
        let (yes, no, join) = (self.block(), self.block(), self.block());
        self.b.build_conditional_branch(condition, yes, no)?;
        self.b.position_at_end(yes);
        let (then, from_yes) = (then(self)?, self.here()?);
        self.b.build_unconditional_branch(join)?;
        self.b.position_at_end(no);
        let (otherwise, from_no) = (otherwise(self)?, self.here()?);
        self.b.build_unconditional_branch(join)?;
        self.b.position_at_end(join);
        let (Some(then), Some(otherwise)) = (then, otherwise) else { return Ok(None) };
        let joined = self.b.build_phi(then.get_type(), "")?;
        joined.add_incoming(&[(&then, from_yes), (&otherwise, from_no)]);
        Ok(Some(joined.as_basic_value()))
    }

    /// The status of a function outside, which has its place for a result behind the arguments.
    fn call(&mut self, outside: usize, args: &[Argument]) -> Result<IntValue<'ctx>> {
        let mut values = Vec::new();
        for arg in args {
            match arg {
                Argument::Scalar(expr) => {
                    let value = self.expr(expr)?;
                    values.push(self.to_stored(value, expr.ty)?);
                }
                Argument::Text(name) => values.extend(self.text(name)),
                Argument::Whole(name) => values.push(self.values[&format!("{name}.argument")]),
            }
        }
        values.extend(self.slots[outside].map(|slot| slot.as_basic_value_enum()));
        self.status_of(outside, &values)
    }

    fn status_of(&self, outside: usize, args: &[BasicValueEnum<'ctx>]) -> Result<IntValue<'ctx>> {
        let args: Vec<_> = args.iter().map(|arg| (*arg).into()).collect();
        let call = self.b.build_call(self.outside[outside], &args, "")?;
        Ok(call.try_as_basic_value().unwrap_basic().into_int_value())
    }

    /// The address of a tensor's elements.
    fn tensor(&self, name: &str) -> PointerValue<'ctx> {
        // no parameter is called so
        let key = match name.strip_prefix("result") {
            Some(item) if item.is_empty() || item.starts_with('[') => format!("->{item}.data"),
            _ => format!("{name}.data"),
        };
        self.values[&key].into_pointer_value()
    }

    /// The address of a text's bytes, and their number.
    fn text(&self, name: &str) -> [BasicValueEnum<'ctx>; 2] {
        ["data", "size"].map(|part| self.values[&format!("{name}.{part}")])
    }

    fn address(&mut self, access: &Access) -> Result<PointerValue<'ctx>> {
        let mut offset = None;
        for (axis, index) in access.index.iter().enumerate() {
            let value = self.expr(&index.value)?.into_int_value();
            let size = self.expr(&access.of.shape[axis])?.into_int_value();
            if let Some(outside) = index.checked {
                let is_outside = self.b.build_int_compare(IntPredicate::UGE, value, size, "")?;
                let raise = |emitter: &mut Self| {
                    let status = emitter.status_of(outside, &[value.into(), size.into()])?;
                    emitter.leave(status).map(|()| None)
                };
                self.choose(is_outside, raise, |_| Ok(None))?;
            }
            offset = Some(match (&access.of.strides, offset) {
                (Some(strides), before) => {
                    let stride = self.expr(&strides[axis])?.into_int_value();
                    let step = self.b.build_int_mul(value, stride, "")?;
                    match before {
                        Some(before) => self.b.build_int_add(before, step, "")?,
                        None => step,
                    }
                }
                (None, Some(before)) => {
                    let rows = self.b.build_int_mul(before, size, "")?;
                    self.b.build_int_add(rows, value, "")?
                }
                (None, None) => value,
            });
        }
        let data = self.tensor(&access.tensor);
        let Some(offset) = offset else { return Ok(data) };
        let (element, offset) = match access.is_list {
            true => {
                let bytes = self.b.build_int_mul(offset, self.int(self.cells.size as i64), "")?;
                (self.context.i8_type().into(), self.b.build_int_add(bytes, self.int(self.cells.value as i64), "")?)
            }
            false => (self.stored_as(access.of.element), offset),
        };
        // SAFETY: the front end has let the index be checked, or knows that it is within the tensor.
        unsafe { self.b.build_in_bounds_gep(element, data, &[offset], "") }
    }

    fn expr(&mut self, expr: &Expr) -> Result<BasicValueEnum<'ctx>> {
        Ok(match &expr.kind {
            ExprKind::Int(value) => self.int(*value).into(),
            ExprKind::Float(value) => self.type_of(expr.ty).into_float_type().const_float(*value).into(),
            ExprKind::Name(name) => self.values[name],
            ExprKind::Negative(inner) => match self.expr(inner)? {
                BasicValueEnum::FloatValue(inner) => self.b.build_float_neg(inner, "")?.into(),
                inner => self.b.build_int_neg(inner.into_int_value(), "")?.into(),
            },
            ExprKind::Not(inner) => {
                let inner = self.expr(inner)?.into_int_value();
                self.b.build_not(inner, "")?.into()
            }
            ExprKind::Binary(operator, left, right) => {
                let (left, right) = (self.expr(left)?, self.expr(right)?);
                self.binary(*operator, left, right)?
            }
            ExprKind::Compare(comparison, left, right) => {
                let (left, right) = (self.expr(left)?, self.expr(right)?);
                self.compare(*comparison, left, right)?.into()
            }
            ExprKind::And(left, right) => {
                let (left, right) = (self.expr(left)?.into_int_value(), self.expr(right)?.into_int_value());
                self.b.build_and(left, right, "")?.into()
            }
            ExprKind::Or(left, right) => {
                let (left, right) = (self.expr(left)?.into_int_value(), self.expr(right)?.into_int_value());
                self.b.build_or(left, right, "")?.into()
            }
            ExprKind::Choose { condition, then, otherwise } => {
                let condition = self.expr(condition)?.into_int_value();
                let value = self.choose(condition, |e| e.expr(then).map(Some), |e| e.expr(otherwise).map(Some))?;
                value.unwrap_or(condition.into())
            }
            ExprKind::Reduce { how, index, end, value } => {
                let end = self.expr(end)?.into_int_value();
                let start = self.start(*how, expr.ty);
                let reduced = self.repeat(index, end, Some(start), |emitter, carried| {
                    let value = emitter.expr(value)?;
                    carried.map(|carried| emitter.binary(how.operator(), carried, value)).transpose()
                })?;
                reduced.unwrap_or(start)
            }
            ExprKind::Math(math, inner) => {
                let name = match math {
                    Math::Sqrt => "llvm.sqrt",
                    Math::Abs => "llvm.fabs",
                };
                let intrinsic =
                    Intrinsic::find(name).and_then(|i| i.get_declaration(self.module, &[self.type_of(expr.ty)]));
                let inner = self.expr(inner)?;
                let Some(intrinsic) = intrinsic else { return Ok(inner) };
                self.b.build_call(intrinsic, &[inner.into()], "")?.try_as_basic_value().unwrap_basic()
            }
            ExprKind::Convert(inner) => {
                let to = self.type_of(expr.ty).into_float_type();
                match self.expr(inner)? {
                    BasicValueEnum::FloatValue(inner) => self.b.build_float_cast(inner, to, "")?.into(),
                    inner => self.b.build_signed_int_to_float(inner.into_int_value(), to, "")?.into(),
                }
            }
            ExprKind::Load(access) => {
                let address = self.address(access)?;
                self.load(expr.ty, address)?
            }
            ExprKind::Given(name) => match self.values.get(&format!("{name}.given")) {
                Some(given) => *given,
                None => self.b.build_is_not_null(self.tensor(name), "")?.into(),
            },
            ExprKind::Length(list) => self.values[&format!("{list}.size")],
            ExprKind::TextIs(name, text) => self.text_is(name, text)?,
            ExprKind::Call { outside, args } => {
                let status = self.call(*outside, args)?;
                let failed = self.is_not_zero(status)?;
                self.choose(failed, |emitter| emitter.leave(status).map(|()| None), |_| Ok(None))?;
                match self.slots[*outside] {
                    Some(slot) => self.load(expr.ty, slot)?,
                    None => status.into(),
                }
            }
        })
    }

    /// The reduction of nothing.
    fn start(&self, how: Reduction, ty: Scalar) -> BasicValueEnum<'ctx> {
        let (int, float) = match how {
            Reduction::Sum => (0, 0.0),
            Reduction::Max => (i64::MIN, f64::NEG_INFINITY),
            Reduction::Min => (i64::MAX, f64::INFINITY),
        };
        match self.type_of(ty) {
            BasicTypeEnum::FloatType(ty) => ty.const_float(float).into(),
            _ => self.int(int).into(),
        }
    }

    fn binary(
        &self,
        operator: Operator,
        left: BasicValueEnum<'ctx>,
        right: BasicValueEnum<'ctx>,
    ) -> Result<BasicValueEnum<'ctx>> {
        if let Operator::Min | Operator::Max = operator {
            let comparison = if operator == Operator::Min { Comparison::Lt } else { Comparison::Gt };
            let is_left = self.compare(comparison, left, right)?;
            return self.b.build_select(is_left, left, right, "");
        }
        if let (BasicValueEnum::FloatValue(left), BasicValueEnum::FloatValue(right)) = (left, right) {
            let value = match operator {
                Operator::Add => self.b.build_float_add(left, right, ""),
                Operator::Sub => self.b.build_float_sub(left, right, ""),
                Operator::Mul => self.b.build_float_mul(left, right, ""),
                _ => self.b.build_float_div(left, right, ""),
            };
            return Ok(value?.into());
        }
        let (left, right) = (left.into_int_value(), right.into_int_value());
        let value = match operator {
            Operator::Add => self.b.build_int_add(left, right, ""),
            Operator::Sub => self.b.build_int_sub(left, right, ""),
            Operator::Mul => self.b.build_int_mul(left, right, ""),
            Operator::Rem => {
                let rest = self.b.build_int_signed_rem(left, right, "")?;
                let is_below = self.b.build_int_compare(IntPredicate::SLT, rest, self.int(0), "")?;
                let above = self.b.build_int_add(rest, right, "")?;
                return self.b.build_select(is_below, above.as_basic_value_enum(), rest.into(), "");
            }
            _ => {
                let rest = self.binary(Operator::Rem, left.into(), right.into())?.into_int_value();
                let multiple = self.b.build_int_sub(left, rest, "")?;
                self.b.build_int_signed_div(multiple, right, "")
            }
        };
        Ok(value?.into())
    }

    fn compare(
        &self,
        comparison: Comparison,
        left: BasicValueEnum<'ctx>,
        right: BasicValueEnum<'ctx>,
    ) -> Result<IntValue<'ctx>> {
        let (float, int) = match comparison {
            Comparison::Eq => (FloatPredicate::OEQ, IntPredicate::EQ),
            Comparison::Ne => (FloatPredicate::UNE, IntPredicate::NE),
            Comparison::Lt => (FloatPredicate::OLT, IntPredicate::SLT),
            Comparison::Le => (FloatPredicate::OLE, IntPredicate::SLE),
            Comparison::Gt => (FloatPredicate::OGT, IntPredicate::SGT),
            Comparison::Ge => (FloatPredicate::OGE, IntPredicate::SGE),
        };
        match (left, right) {
            (BasicValueEnum::FloatValue(left), BasicValueEnum::FloatValue(right)) => {
                self.b.build_float_compare(float, left, right, "")
            }
            _ => self.b.build_int_compare(int, left.into_int_value(), right.into_int_value(), ""),
        }
    }

    /// The text's bytes are read only if there are as many.
    fn text_is(&mut self, name: &str, text: &str) -> Result<BasicValueEnum<'ctx>> {
        let [data, size] = self.text(name);
        let (data, size) = (data.into_pointer_value(), size.into_int_value());
        let length = size.get_type().const_int(text.len() as u64, false);
        let fits = self.b.build_int_compare(IntPredicate::EQ, size, length, "")?;
        let bytes = self.context.i8_type();
        let compare = |emitter: &mut Self| {
            let mut all = emitter.context.bool_type().const_all_ones();
            for (offset, byte) in text.bytes().enumerate() {
                let offset = emitter.int(offset as i64);
                // SAFETY: the text has as many bytes.
                let address = unsafe { emitter.b.build_in_bounds_gep(bytes, data, &[offset], "") }?;
                let found = emitter.b.build_load(bytes, address, "")?.into_int_value();
                let expected = bytes.const_int(byte.into(), false);
                let is = emitter.b.build_int_compare(IntPredicate::EQ, found, expected, "")?;
                all = emitter.b.build_and(all, is, "")?;
            }
            Ok(Some(all.into()))
        };
        Ok(self.choose(fits, compare, |_| Ok(Some(fits.into())))?.unwrap_or(fits.into()))
    }
}
