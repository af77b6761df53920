//! Tensors in a body: sizes, and loads and stores by index or by pointer.

use std::fmt;

use super::args::TensorVars;
use super::expr::{Expr, Operand, Ops};
use super::function::BodyLowerer;
use super::scope::Scope;
use super::types::memory_type;
use crate::ir::{BinaryOp, ConvertOp, IntCC, MemFlags, Type, Value};
use crate::spec::ScalarType;

/// A tensor parameter in a body.
///
/// Indices are not checked: the body keeps within the shape.
#[derive(Clone, Copy)]
pub struct TensorRef<'b> {
    pub(super) body: &'b dyn Ops,
    /// `None` after a mistake.
    pub(super) known: Option<Known<'b>>,
}

#[derive(Clone, Copy)]
pub(super) struct Known<'b> {
    pub name: &'b str,
    pub vars: &'b TensorVars,
}

impl<'b> TensorRef<'b> {
    pub(super) fn new(body: &'b dyn Ops, name: &'b str, vars: &'b TensorVars) -> Self {
        TensorRef { body, known: Some(Known { name, vars }) }
    }

    pub(super) fn missing(body: &'b dyn Ops) -> Self {
        TensorRef { body, known: None }
    }

    /// The type of an element; noted as a mistake where bodies have none for the dtype.
    fn element_type(self, operation: &str) -> ScalarType {
        let Some(t) = self.known else { return ScalarType::Int64 };
        t.vars.ty.exact_dtype().and_then(ScalarType::of_dtype).unwrap_or_else(|| {
            self.body.note(operation, format!("{} has dtype {}, which bodies can't hold", t.name, t.vars.ty.dtype));
            ScalarType::Int64
        })
    }

    /// Size of dimension `d`, an `int64`.
    pub fn size(self, d: usize) -> Expr<'b> {
        self.part("size", d, self.known.map(|t| t.vars.shape.as_slice()))
    }

    /// Stride of dimension `d` in elements, an `int64`, where the signature states strides.
    pub fn stride(self, d: usize) -> Expr<'b> {
        self.part("stride", d, self.known.and_then(|t| t.vars.strides.as_deref()))
    }

    fn part(self, operation: &str, d: usize, values: Option<&[Value]>) -> Expr<'b> {
        let value = values.and_then(|v| v.get(d)).copied();
        if let Some(value) = value {
            let scope = self.known.map_or(Scope::BODY, |t| t.vars.scope);
            return Expr::known_in(self.body, value, ScalarType::Int64, scope);
        }
        if let Some(t) = self.known {
            self.body.note(operation, format!("{} has none for dimension {d}: {}", t.name, t.vars.ty));
        }
        self.body.zero(ScalarType::Int64)
    }

    /// The address of the first element, `byte_offset` added.
    pub fn ptr(self) -> Expr<'b> {
        let Some(t) = self.known else { return self.body.zero(ScalarType::Handle) };
        if t.vars.ty.is_opaque() {
            self.body.note("ptr", format!("{} is on {}, whose data has no address", t.name, t.vars.ty.device));
        }
        Expr::known_in(self.body, t.vars.data, ScalarType::Handle, t.vars.scope)
    }

    /// The address of an element; one index for each dimension.
    pub fn element_ptr<O: Into<Operand<'b>>>(self, index: impl IntoIterator<Item = O>) -> Expr<'b> {
        let base = self.ptr();
        let Some(t) = self.known else { return base };
        let element = memory_type(self.element_type("element_ptr"));
        let index = index.into_iter().map(|i| self.body.coerce("index", ScalarType::Int64, i.into()).value);
        let index: Vec<Value> = index.collect();
        if index.len() != t.vars.shape.len() {
            let problem = format!("expected {} indices into {}, got {}", t.vars.shape.len(), t.name, index.len());
            self.body.note("index", problem);
        }
        let address = self.body.value(|l| {
            let linear = match &t.vars.strides {
                Some(strides) => sum_of_products(l, &index, strides),
                None => row_major(l, &index, &t.vars.shape),
            };
            match linear {
                Some(linear) => l.b.element(base.value, linear, element),
                None => base.value,
            }
        });
        Expr::new(self.body, address, ScalarType::Handle)
    }

    fn flags(self, element: ScalarType) -> MemFlags {
        let aligned = self.known.is_some_and(|t| t.vars.ty.alignment() * 8 >= element.bits());
        if aligned { MemFlags::ALIGNED } else { MemFlags::UNALIGNED }
    }

    /// Reads an element; one index for each dimension.
    pub fn load<O: Into<Operand<'b>>>(self, index: impl IntoIterator<Item = O>) -> Expr<'b> {
        let ty = self.element_type("load");
        let address = self.element_ptr(index);
        load(self.body, ty, address, self.flags(ty))
    }

    /// Writes an element; one index for each dimension.
    pub fn store<O: Into<Operand<'b>>>(self, index: impl IntoIterator<Item = O>, value: impl Into<Operand<'b>>) {
        let ty = self.element_type("store");
        let address = self.element_ptr(index);
        store(self.body, ty, address, value.into(), self.flags(ty));
    }
}

impl fmt::Debug for TensorRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.known {
            Some(t) => write!(f, "TensorRef({}: {})", t.name, t.vars.ty),
            None => f.write_str("TensorRef(missing)"),
        }
    }
}

pub(super) fn load<'b>(body: &'b dyn Ops, ty: ScalarType, address: Expr<'b>, flags: MemFlags) -> Expr<'b> {
    let value = body.value(|l| {
        let value = l.b.load(memory_type(ty), address.value, 0, flags);
        if ty == ScalarType::Bool { l.b.icmp_imm(IntCC::Ne, value, 0) } else { value }
    });
    Expr::new(body, value, ty)
}

pub(super) fn store<'b>(body: &'b dyn Ops, ty: ScalarType, address: Expr<'b>, value: Operand<'b>, flags: MemFlags) {
    let value = body.coerce("store", ty, value).value;
    body.run(&mut |l| {
        let value = if ty == ScalarType::Bool { l.b.convert(ConvertOp::ZExt, Type::I8, value) } else { value };
        l.b.store(value, address.value, 0, flags);
    });
}

/// `(i0 * d1 + i1) * d2 + i2 ...`; `None` for no indices.
fn row_major(l: &mut BodyLowerer<'_>, index: &[Value], shape: &[Value]) -> Option<Value> {
    let mut linear = None;
    for (i, size) in index.iter().zip(shape) {
        linear = Some(match linear {
            None => *i,
            Some(before) => {
                let scaled = l.b.binary(BinaryOp::Mul, before, *size);
                l.b.binary(BinaryOp::Add, scaled, *i)
            }
        });
    }
    linear
}

fn sum_of_products(l: &mut BodyLowerer<'_>, index: &[Value], strides: &[Value]) -> Option<Value> {
    let mut linear = None;
    for (i, stride) in index.iter().zip(strides) {
        let product = l.b.binary(BinaryOp::Mul, *i, *stride);
        linear = Some(match linear {
            None => product,
            Some(before) => l.b.binary(BinaryOp::Add, before, product),
        });
    }
    linear
}
