//! Tensors in a body: sizes, and loads and stores by index or by pointer.

use std::fmt;

use super::args::TensorVars;
use super::expr::{Expr, Operand, Ops};
use super::function::BodyLowerer;
use super::life::{Ended, Life};
use super::types::{memory_type, value_type};
use crate::ir::{BinaryOp, ConvertOp, IntCC, MemFlags, Type, Value};
use crate::lower::half;
use crate::spec::{Layout, ScalarKind, ScalarType};

/// A tensor in a body: a parameter, a result, or a tensor that the body has created.
///
/// Indices are not checked: the body must stay within the shape.
#[derive(Clone, Copy)]
pub struct TensorRef<'b> {
    pub(super) body: &'b dyn Ops,
    /// `None` after an error.
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

    /// The type of an element; `None` after an error. A dtype that bodies don't support is recorded as an error.
    fn element_type(self, operation: &str) -> Option<ScalarType> {
        let t = self.known.filter(|_| self.knows_dtype(operation))?;
        let ty = t.vars.ty.exact_dtype().and_then(ScalarType::of_element);
        if ty.is_none() {
            self.body.note(operation, format!("{} has dtype {}, which bodies can't hold", t.name, t.vars.ty.dtype));
        }
        ty
    }

    /// Whether the tensor has that name, the path of a parameter.
    pub(super) fn is_named(self, name: &str) -> bool {
        self.known.is_some_and(|known| known.name == name)
    }

    /// The tensor's type and values, if it is usable here; otherwise records an error.
    pub(super) fn alive(self, operation: &str) -> Option<Known<'b>> {
        let t = self.known?;
        let Some(ended) = self.ended() else { return Some(t) };
        const BLOCK: &str = "it was made inside of a loop or conditional that has ended";
        self.body.note(operation, format!("{}: {}", t.name, ended.problem(BLOCK)));
        None
    }

    /// Why it can't be used here; `None` if it can.
    pub(super) fn ended(self) -> Option<Ended> {
        self.body.use_of(self.known?.vars.life)
    }

    /// Size of dimension `d`, an `int64`.
    pub fn size(self, d: usize) -> Expr<'b> {
        let Some(t) = self.dimension("size", d) else { return self.body.zero(ScalarType::Int64) };
        self.known_part("shape", t, d, t.vars.shape[d])
    }

    /// A size or a stride that is known, with its text for the recorder.
    fn known_part(self, part: &str, t: Known<'b>, d: usize, value: Value) -> Expr<'b> {
        let value = Expr::known_in(self.body, value, ScalarType::Int64, t.vars.life);
        self.body.recorder().inspect(|recorder| recorder.tensor_part(self, part, d, value));
        value
    }

    /// Stride of dimension `d` in elements, an `int64`.
    pub fn stride(self, d: usize) -> Expr<'b> {
        let Some(t) = self.dimension("stride", d) else { return self.body.zero(ScalarType::Int64) };
        if let Some(value) = t.vars.strides.as_ref().and_then(|strides| strides.get(d)) {
            return self.known_part("strides", t, d, *value);
        }
        // `dimension` has checked that there is a stride with this number
        let value = self.body.value(|l| l.strides_of(t.vars).swap_remove(d));
        Expr::new(self.body, value, ScalarType::Int64).recorded(|recorder| recorder.stride(self, d))
    }

    /// The tensor, if it has a dimension with that number; otherwise records an error.
    fn dimension(self, operation: &str, d: usize) -> Option<Known<'b>> {
        let t = self.alive(operation).filter(|_| self.knows_rank(operation))?;
        if d < t.vars.shape.len() {
            return Some(t);
        }
        self.body.note(operation, format!("{} has none for dimension {d}: {}", t.name, t.vars.ty));
        None
    }

    /// The address of the first element, including `byte_offset`.
    pub fn ptr(self) -> Expr<'b> {
        let data = self.data("ptr").unwrap_or_else(|| self.body.zero(ScalarType::Handle));
        if self.known.is_some_and(|t| t.vars.data.is_none()) {
            return data.recorded(|recorder| recorder.loaded_data(self));
        }
        self.body.recorder().inspect(|recorder| recorder.tensor_data(self, data));
        data
    }

    /// The address of the first element, `None` after an error.
    pub(super) fn data(self, operation: &str) -> Option<Expr<'b>> {
        let t = self.alive(operation).filter(|_| self.knows_device(operation))?;
        if t.vars.ty.is_opaque() {
            self.body.note(operation, format!("{} is on {}, whose data has no address", t.name, t.vars.ty.device));
        }
        Some(match t.vars.data {
            Some(data) => Expr::known_in(self.body, data, ScalarType::Handle, t.vars.life),
            None => {
                let data = self.body.value(|l| l.data_of(t.vars));
                let life = Life { part_of: t.vars.life.part_of, ..self.body.life() };
                Expr::known_in(self.body, data, ScalarType::Handle, life)
            }
        })
    }

    /// The address of an element; pass one index per dimension.
    pub fn element_ptr<O: Into<Operand<'b>>>(self, index: impl IntoIterator<Item = O>) -> Expr<'b> {
        let index: Vec<Operand<'b>> = index.into_iter().map(Into::into).collect();
        let address = self.element("element_ptr", &index).map(|(address, _)| address);
        let address = address.unwrap_or_else(|| self.body.zero(ScalarType::Handle));
        address.recorded(|recorder| recorder.address(self, &index))
    }

    /// The address and the type of an element, `None` after an error.
    fn element(self, operation: &str, index: &[Operand<'b>]) -> Option<(Expr<'b>, ScalarType)> {
        let (t, base) = (self.known.filter(|_| self.knows_rank(operation))?, self.data(operation)?);
        let ty = self.element_type(operation)?;
        let element = memory_type(ty);
        let index = index.iter().map(|i| self.body.coerce("index", ScalarType::Int64, *i).value);
        let index: Vec<Value> = index.collect();
        if index.len() != t.vars.shape.len() {
            let problem = format!("expected {} indices into {}, got {}", t.vars.shape.len(), t.name, index.len());
            self.body.note("index", problem);
            return None;
        }
        let address = self.body.value(|l| {
            let linear = match t.vars.ty.layout {
                Layout::Contiguous => row_major(l, &index, &t.vars.shape),
                _ => {
                    let strides = l.strides_of(t.vars);
                    sum_of_products(l, &index, &strides)
                }
            };
            match linear {
                Some(linear) => l.b.element(base.value, linear, element),
                None => base.value,
            }
        });
        Some((Expr::known_in(self.body, address, ScalarType::Handle, base.life_beside()), ty))
    }

    fn flags(self, element: ScalarType) -> MemFlags {
        let aligned = self.known.is_some_and(|t| t.vars.ty.alignment() * 8 >= element.bits());
        if aligned { MemFlags::ALIGNED } else { MemFlags::UNALIGNED }
    }

    /// Reads an element; pass one index per dimension.
    pub fn load<O: Into<Operand<'b>>>(self, index: impl IntoIterator<Item = O>) -> Expr<'b> {
        let index: Vec<Operand<'b>> = index.into_iter().map(Into::into).collect();
        match self.element("load", &index) {
            Some((address, ty)) => {
                load(self.body, ty, address, self.flags(ty)).recorded(|recorder| recorder.element(self, &index))
            }
            None => self.missing_element(),
        }
    }

    /// Writes an element; pass one index per dimension.
    pub fn store<O: Into<Operand<'b>>>(self, index: impl IntoIterator<Item = O>, value: impl Into<Operand<'b>>) {
        let (index, value): (Vec<Operand<'b>>, _) = (index.into_iter().map(Into::into).collect(), value.into());
        if let Some((address, ty)) = self.element("store", &index) {
            store(self.body, ty, address, value, self.flags(ty));
            self.body.record(|recorder| recorder.store_element(self, &index, value));
        }
    }

    /// Placeholder for an element after an error; it has the element's type if the tensor's type is known.
    fn missing_element(self) -> Expr<'b> {
        let ty = self.known.and_then(|t| t.vars.ty.exact_dtype()).and_then(ScalarType::of_element);
        ty.map_or_else(|| self.body.missing(), |ty| self.body.zero(value_type(ty)))
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
        match ty.kind() {
            ScalarKind::Bool => l.b.icmp_imm(IntCC::Ne, value, 0),
            ScalarKind::Half(half) => half::to_float32(&mut l.b, half, value),
            ScalarKind::Signed
            | ScalarKind::Unsigned
            | ScalarKind::Float32
            | ScalarKind::Float64
            | ScalarKind::Handle => value,
        }
    });
    Expr::new(body, value, value_type(ty))
}

pub(super) fn store<'b>(body: &'b dyn Ops, ty: ScalarType, address: Expr<'b>, value: Operand<'b>, flags: MemFlags) {
    let value = body.coerce("store", value_type(ty), value).value;
    body.run(&mut |l| {
        let value = match ty.kind() {
            ScalarKind::Bool => l.b.convert(ConvertOp::ZExt, Type::I8, value),
            ScalarKind::Half(half) => half::of_float32(&mut l.b, half, value),
            ScalarKind::Signed
            | ScalarKind::Unsigned
            | ScalarKind::Float32
            | ScalarKind::Float64
            | ScalarKind::Handle => value,
        };
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
