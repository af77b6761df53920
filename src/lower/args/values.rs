//! The call's values that arguments are computed from, and the errors for values that can't be passed.

use crate::ir::{Block, FunctionBuilder, Hint, MemFlags, Type, Value};
use crate::lower::convention::c_type::CType;
use crate::lower::convention::param::KernelParam;
use crate::lower::protocol::{Directive, Piece, helpers};
use crate::lower::unit::ModulePool;
use crate::spec::Signature;

/// The call's values that arguments are computed from.
pub(in crate::lower) struct Inputs<'a> {
    /// The parameters of convention `flat`, with their values.
    pub params: Vec<(&'a KernelParam, Value)>,
    /// The device numbers of tensors, each an `I32`, with the tensors' names.
    pub device_ids: Vec<(String, Value)>,
}

/// Arguments under construction.
pub(in crate::lower) struct Values<'e, 'm> {
    pub b: &'e mut FunctionBuilder<'m>,
    pub pool: &'e mut ModulePool,
    pub signature: &'e Signature,
    pub inputs: &'e Inputs<'e>,
    /// The offset of `Cannot launch kernel ...` or `Cannot call kernel ...` in the constant pool, a C string.
    pub caller: u32,
    /// The block that handles an error; its parameter is the code.
    pub failed: Block,
    /// A value that was missing.
    pub missing: Option<String>,
}

impl Values<'_, '_> {
    /// Continues if a condition holds; otherwise raises a `ValueError` about a value, an `I64`. The message has a
    /// string before the value and one after it.
    pub(in crate::lower) fn require(
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

    /// Raises a `ValueError`. Its first field is the caller.
    pub(in crate::lower) fn raise(&mut self, pieces: &[Piece<'_>], fields: &[Option<Value>]) {
        let template = self.pool.constants.template("ValueError", pieces);
        let slot = self.b.slot(24, 8);
        let context = self.b.stack_addr(slot);
        let caller = self.b.data_addr(self.pool.data, self.caller);
        for (at, value) in (0..).step_by(8).zip([Some(caller)].iter().chain(fields)) {
            if let Some(value) = value {
                self.b.store(*value, context, at, MemFlags::ALIGNED);
            }
        }
        let (table, template) = (self.b.data_addr(self.pool.data, 0), self.b.iconst(Type::I32, i64::from(template)));
        let report = helpers::report(self.b.module());
        let none = self.b.iconst(Type::I32, -1);
        let code = self.b.call(report, &[table, template, context]).unwrap_or(none);
        self.b.jump(self.failed, &[code]);
    }

    /// A parameter of the signature that convention `flat` passes as one value.
    pub(in crate::lower) fn named(&self, name: &str) -> Option<(CType, Value)> {
        self.inputs
            .params
            .iter()
            .find(|(param, _)| param.is_value_of(name))
            .map(|(param, value)| (param.c_type, *value))
    }

    /// Records a missing value, and returns a placeholder.
    pub(in crate::lower) fn missing_value(&mut self, what: String, ty: Type) -> Value {
        self.missing.get_or_insert(what);
        match ty {
            Type::F32 => self.b.f32(0.0),
            Type::F64 => self.b.f64(0.0),
            Type::Ptr => self.b.ptr_const(0),
            ty => self.b.iconst(ty, 0),
        }
    }
}
