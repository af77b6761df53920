//! The inputs of recorded operations as trees.

use super::{Known, Recorder, at, named, tree};
use crate::host::RESERVED;
use crate::host::Word;
use crate::host::tree::{Call as CallTree, Callee as CalleeTree, Expr as Tree, ExprKind, Input, UnaryOp};
use crate::ir::{Op, Value};
use crate::lower::body::calls::{ArgKind, Call, CallArg, CallTarget, Callee, KnownOwned, Owned};
use crate::lower::body::expr::{Expr, Operand};
use crate::lower::body::param::ParamRef;
use crate::lower::body::tensor::TensorRef;
use crate::spec::{ParamType, ScalarType};

/// An operation before `(`, with its inputs.
pub(super) fn word(word: Word, inputs: impl IntoIterator<Item = Tree>) -> ExprKind {
    let input = |value| Input { name: None, value };
    ExprKind::Word(word, inputs.into_iter().map(input).collect())
}

pub(super) fn input(name: &str, value: Tree) -> Input {
    Input { name: Some(at(name.to_owned())), value }
}

pub(super) fn text(text: &str) -> Tree {
    tree(ExprKind::Text(text.as_bytes().to_vec()))
}

pub(super) fn integer(value: impl Into<i128>) -> Tree {
    tree(ExprKind::Int(value.into()))
}

pub(super) fn type_name(ty: impl ToString) -> Tree {
    tree(ExprKind::Name(ty.to_string()))
}

pub(super) fn part(value: Tree, part: &str) -> Tree {
    tree(ExprKind::Part(value, at(part.to_owned())))
}

pub(super) fn index(value: Tree, number: usize) -> Tree {
    tree(ExprKind::Index(value, vec![integer(number as u64)]))
}

/// The value at a path of a signature: `cfg[1][0]`, `name.size`.
pub(super) fn at_path(path: &str) -> Tree {
    let end = path.find(['[', '.']).unwrap_or(path.len());
    let (name, rest) = path.split_at(end);
    let root = tree(ExprKind::Name(name.to_owned()));
    let is_reserved = RESERVED.contains(&name) || name == "result";
    let root = if is_reserved { tree(word(Word::Param, [root])) } else { root };
    with_items(root, rest)
}

/// A value with the end of a path: `[1][0]`, `.size`, `.tile[0]`.
fn with_items(root: Tree, rest: &str) -> Tree {
    let steps = rest.split(['[', '.']).map(|step| step.trim_end_matches(']')).filter(|step| !step.is_empty());
    steps.fold(root, |value, step| match step.parse() {
        Ok(number) => index(value, number),
        Err(_) => part(value, step),
    })
}

/// A constant of the code as a literal.
fn literal(op: &Op, ty: ScalarType) -> Option<ExprKind> {
    Some(match *op {
        Op::IntConst { value, .. } if ty.is_unsigned_int() => {
            let unused = 64 - ty.bits();
            ExprKind::Int(i128::from((value as u64) << unused >> unused))
        }
        Op::IntConst { value, .. } => {
            let unused = 64 - ty.bits();
            ExprKind::Int(i128::from(value << unused >> unused))
        }
        Op::BoolConst(value) => ExprKind::Bool(value),
        Op::FloatConst { bits, .. } if ty == ScalarType::Float32 => {
            let value = f32::from_bits(bits as u32);
            // the digits of a `float32` are read as a `float64` first
            let digits: f64 = format!("{value:?}").parse().unwrap_or(f64::NAN);
            let fewest = if digits as f32 == value { digits } else { f64::from(value) };
            float(fewest, value.to_bits() == f32::NAN.to_bits()).unwrap_or_else(|| bits_of(bits, ty))
        }
        Op::FloatConst { bits, .. } => {
            let value = f64::from_bits(bits);
            float(value, bits == f64::NAN.to_bits()).unwrap_or_else(|| bits_of(bits, ty))
        }
        _ => return None,
    })
}

/// A float as a literal; `None` for a NaN with other bits than the literal's.
fn float(value: f64, is_plain_nan: bool) -> Option<ExprKind> {
    match value {
        _ if value.is_nan() => is_plain_nan.then_some(ExprKind::Float(f64::NAN)),
        _ if value.is_sign_negative() => Some(ExprKind::Unary(UnaryOp::Neg, tree(ExprKind::Float(-value)))),
        _ => Some(ExprKind::Float(value)),
    }
}

/// A constant with these bits.
fn bits_of(bits: u64, ty: ScalarType) -> ExprKind {
    word(Word::Bitcast, [integer(bits), type_name(ty)])
}

impl Recorder {
    fn known(&self, value: Expr<'_>) -> Option<Known> {
        self.state.borrow().values.get(&(value.value, value.ty())).cloned()
    }

    fn constant(&self, value: Expr<'_>) -> Option<ExprKind> {
        let op = value.body.emit(|l| l.b.op_of(value.value).cloned())?;
        literal(&op, value.ty())
    }

    /// A value with its type.
    pub(super) fn expr(&self, value: Expr<'_>) -> Tree {
        if let Some(known) = self.known(value) {
            return known.tree;
        }
        let constant = self.constant(value).unwrap_or_else(|| self.unknown());
        match constant {
            ExprKind::Word(..) | ExprKind::None => tree(constant),
            constant => tree(ExprKind::Cast(value.ty(), tree(constant))),
        }
    }

    /// A value in a place that has its type: a literal needs none.
    pub(super) fn coerced(&self, value: Expr<'_>) -> Tree {
        match self.known(value) {
            Some(known) => known.tree,
            None => tree(self.constant(value).unwrap_or_else(|| self.unknown())),
        }
    }

    /// A constant of the body, with its type.
    pub(in crate::lower::body) fn constant_of(&self, value: Expr<'_>) -> ExprKind {
        match self.constant(value) {
            Some(constant @ ExprKind::Word(..)) => constant,
            constant => ExprKind::Cast(value.ty(), tree(constant.unwrap_or(ExprKind::None))),
        }
    }

    pub(super) fn operand(&self, operand: Operand<'_>) -> Tree {
        let float = |value: f64| {
            let is_plain_nan = value.to_bits() == f64::NAN.to_bits();
            float(value, is_plain_nan).unwrap_or_else(|| bits_of(value.to_bits(), ScalarType::Float64))
        };
        match operand {
            Operand::Expr(value) => self.expr(value),
            Operand::Int(value) => integer(value),
            Operand::Float(value) => tree(float(value)),
            Operand::Bool(value) => tree(ExprKind::Bool(value)),
        }
    }

    pub(super) fn operands<'b>(&self, operands: &[Operand<'b>]) -> Vec<Tree> {
        operands.iter().map(|operand| self.operand(*operand)).collect()
    }

    pub(super) fn exprs(&self, values: &[Expr<'_>]) -> Vec<Tree> {
        values.iter().map(|value| self.expr(*value)).collect()
    }

    /// A parameter, a result, or an item of one.
    pub(in crate::lower::body) fn param(&self, param: ParamRef<'_>) -> Tree {
        let result = self.state.borrow().results.get(&std::ptr::from_ref(param.args)).cloned();
        match result {
            None => at_path(param.path()),
            Some((root, path)) => with_items(root, param.path().strip_prefix(path.as_str()).unwrap_or_default()),
        }
    }

    /// Whether a value is a parameter of the function itself, which no operation can move.
    pub(super) fn is_own(&self, param: ParamRef<'_>) -> bool {
        !self.state.borrow().results.contains_key(&std::ptr::from_ref(param.args))
    }

    pub(super) fn tensor(&self, tensor: TensorRef<'_>) -> Tree {
        let known =
            tensor.known.and_then(|known| self.state.borrow().tensors.get(&std::ptr::from_ref(known.vars)).cloned());
        known.unwrap_or_else(|| tree(self.unknown()))
    }

    pub(in crate::lower::body) fn owned(&self, owned: Owned<'_>) -> Tree {
        self.owned_at(owned.any)
    }

    pub(super) fn owned_at(&self, any: Value) -> Tree {
        let known = self.state.borrow().owned.get(&any).cloned();
        known.unwrap_or_else(|| tree(self.unknown()))
    }

    pub(super) fn args(&self, args: &[CallArg<'_>]) -> Vec<Tree> {
        args.iter().map(|arg| self.arg(arg)).collect()
    }

    pub(in crate::lower::body) fn arg(&self, arg: &CallArg<'_>) -> Tree {
        let kind = match &arg.0 {
            ArgKind::None => ExprKind::None,
            ArgKind::Scalar(Operand::Expr(value)) => match self.known(*value) {
                Some(known) if known.is_other_argument => ExprKind::Cast(value.ty(), known.tree),
                _ => return self.expr(*value),
            },
            ArgKind::Scalar(operand) => return self.operand(*operand),
            ArgKind::Str(text) => ExprKind::Text(text.as_bytes().to_vec()),
            ArgKind::Bytes(bytes) => word(Word::Bytes, [tree(ExprKind::Text(bytes.clone()))]),
            ArgKind::DType(dtype) => return self.dtype_arg(*dtype),
            ArgKind::Device(device) => return self.device_arg(*device),
            ArgKind::Shape(sizes) => word(Word::Shape, [tree(ExprKind::List(self.operands(sizes)))]),
            ArgKind::Array(items) => word(Word::Array, self.args(items)),
            ArgKind::Param(param) => {
                let value = self.param(*param);
                match param.ty() {
                    Some(ParamType::Scalar(_)) => word(Word::Param, [value]),
                    _ => return value,
                }
            }
            ArgKind::Tensor(tensor) => return self.tensor(*tensor),
            // the name of a scalar would pass its value
            ArgKind::Owned(owned) if matches!(owned.known, KnownOwned::Type(ParamType::Scalar(_))) => {
                word(Word::Param, [self.owned(*owned)])
            }
            ArgKind::Owned(owned) => return self.owned(*owned),
            ArgKind::Moved(owned) => word(Word::Move, [self.owned(*owned)]),
        };
        tree(kind)
    }

    /// A call, and the type of its result.
    pub(in crate::lower::body) fn call(&self, call: &Call<'_>, returns: Option<&ParamType>) -> ExprKind {
        let callee = match &call.target {
            CallTarget::Global { name, uncached } => CalleeTree::Global { name: name.clone(), uncached: *uncached },
            CallTarget::Import { name } => CalleeTree::Import(name.clone()),
            CallTarget::Symbol { name } => CalleeTree::Symbol(name.clone()),
            CallTarget::Value(Callee::Param(param)) => CalleeTree::Value(self.param(*param)),
            CallTarget::Value(Callee::Owned(owned)) => CalleeTree::Value(self.owned(*owned)),
        };
        let unnamed = call.args.iter().map(|arg| Input { name: None, value: self.arg(arg) });
        let inputs = unnamed.chain(call.kwargs.iter().map(|(name, arg)| input(name, self.arg(arg)))).collect();
        ExprKind::Call(Box::new(CallTree { callee, inputs, returns: returns.cloned() }))
    }

    /// A local name of a tree; gives the value one if it has none.
    pub(super) fn local_name(&self, value: Tree) -> String {
        match *value.kind {
            ExprKind::Name(name) => name,
            kind => {
                let id = self.let_(kind);
                match *named(id).kind {
                    ExprKind::Name(name) => name,
                    _ => String::new(),
                }
            }
        }
    }
}
