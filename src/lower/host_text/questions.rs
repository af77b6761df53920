//! Questions about what a signature leaves open, and what their answers narrow.

use std::collections::HashSet;

use super::driver::Driver;
use super::value::Val;
use crate::host::Word;
use crate::host::tree::{At, BinaryOp, Block, Expr as Tree, ExprKind, Input, Pattern, Span, Statement, StatementKind};
use crate::host::walk::names;
use crate::lower::body::{DTypeValue, DeviceValue, Expr, TensorFact, TensorRef, ValueKind};
use crate::spec::{CompareOp, Device, DeviceId, ParamType, did_you_mean, named_dtype};
use tvm_ffi_runtime::abi::DLDeviceType;

/// A fact that holds for a tensor where a condition is true.
#[derive(Debug)]
pub(super) struct Fact {
    /// The name of the tensor.
    name: At<String>,
    fact: TensorFact,
}

/// The facts that hold where a condition is true: those of a question, and of questions joined with `and`.
pub(super) fn facts(condition: &Tree) -> Vec<Fact> {
    let mut found = Vec::new();
    add_facts(condition, &mut found);
    found
}

/// The facts that hold where the left side of an operand of `and` is true.
pub(super) fn facts_of_chain(first: &Tree, rest: &[(At<BinaryOp>, Tree)], operand: &Tree) -> Vec<Fact> {
    let before = rest.iter().map(|(_, right)| right).take_while(|right| !std::ptr::eq(*right, operand));
    std::iter::once(first).chain(before).flat_map(facts).collect()
}

fn add_facts(condition: &Tree, found: &mut Vec<Fact>) {
    match &*condition.kind {
        // a chain has operators of one precedence, and `and` is alone in its own
        ExprKind::Chain(first, rest) if rest.iter().all(|(op, _)| op.value == BinaryOp::And) => {
            add_facts(first, found);
            rest.iter().for_each(|(_, right)| add_facts(right, found));
        }
        ExprKind::Compare(left, op, right) if op.value == CompareOp::Eq => {
            found.extend(fact_of_comparison(left, right));
        }
        ExprKind::Word(word, inputs) => found.extend(fact_of_word(*word, inputs)),
        _ => {}
    }
}

/// The name that a value is, with its place.
fn name_of(tree: &Tree) -> Option<At<String>> {
    match &*tree.kind {
        ExprKind::Name(name) => Some(At { span: tree.span.clone(), value: name.clone() }),
        _ => None,
    }
}

fn fact_of_comparison(left: &Tree, right: &Tree) -> Option<Fact> {
    let ExprKind::Part(value, part) = &*left.kind else { return None };
    let (name, fact) = match (part.value.as_str(), &*value.kind, &*right.kind) {
        ("dtype", _, ExprKind::Name(dtype)) => (name_of(value)?, TensorFact::DType(named_dtype(dtype).ok()?)),
        ("dtype", _, ExprKind::Word(Word::DType, inputs)) => match &*inputs.first()?.value.kind {
            ExprKind::Name(dtype) => (name_of(value)?, TensorFact::DType(named_dtype(dtype).ok()?)),
            _ => return None,
        },
        ("ndim", _, ExprKind::Int(rank)) => (name_of(value)?, TensorFact::Rank(usize::try_from(*rank).ok()?)),
        ("kind", ExprKind::Part(tensor, device), ExprKind::Text(kind)) if device.value == "device" => {
            (name_of(tensor)?, TensorFact::DeviceKind(kind_named(std::str::from_utf8(kind).ok()?)?))
        }
        _ => return None,
    };
    Some(Fact { name, fact })
}

fn fact_of_word(word: Word, inputs: &[Input]) -> Option<Fact> {
    let fact = match (word, inputs) {
        (Word::IsContiguous, _) => TensorFact::Contiguous,
        (Word::IsAligned, [_, bytes]) => match &*bytes.value.kind {
            ExprKind::Int(bytes) => TensorFact::Aligned(u32::try_from(*bytes).ok()?),
            _ => return None,
        },
        _ => return None,
    };
    Some(Fact { name: name_of(&inputs.first()?.value)?, fact })
}

/// The facts that hold where a key of a `match` fits a pattern.
pub(super) fn facts_of_pattern(key: &Tree, pattern: &Pattern) -> Vec<Fact> {
    let constant = match pattern {
        Pattern::Bool(true) => return facts(key),
        Pattern::Name(name) => ExprKind::Name(name.clone()),
        Pattern::Int(value) => ExprKind::Int(*value),
        Pattern::Text(text) => ExprKind::Text(text.clone()),
        Pattern::Any | Pattern::Bool(false) | Pattern::Range(..) => return Vec::new(),
    };
    let constant = Tree { span: 0..0, depth: 0, kind: Box::new(constant) };
    fact_of_comparison(key, &constant).into_iter().collect()
}

/// The facts that a row's block may use. A row that only forwards uses those about its inputs.
pub(super) fn used_facts(facts: Vec<Fact>, block: &Block) -> Vec<Fact> {
    let [Statement { kind: StatementKind::Forward(_), .. }] = &block.statements[..] else { return facts };
    let mut used = HashSet::new();
    names(&mut block.clone(), &mut |name| _ = used.insert(name.clone()));
    facts.into_iter().filter(|fact| used.contains(&fact.name.value)).collect()
}

/// The kind of device with that name.
pub(super) fn kind_named(name: &str) -> Option<DLDeviceType> {
    DLDeviceType::ALL.iter().copied().find(|kind| kind.name() == Some(name))
}

impl<'b, 'a> Driver<'b, 'a, '_> {
    /// Writes the inside of a block where facts hold.
    pub(super) fn knowing<R>(&self, facts: &[Fact], end: usize, write: impl FnOnce() -> R) -> R {
        self.inside(end, || {
            self.learn(facts);
            write()
        })
    }

    /// Narrows tensors up to the end of the block.
    pub(super) fn learn(&self, facts: &[Fact]) {
        for Fact { name, fact } in facts {
            let known = self.narrowed(&name.value).or_else(|| self.named_tensor(name));
            // a question that is never true narrows nothing: its branch doesn't run
            if let Some(tensor) = known.filter(|tensor| tensor.may_have(*fact)) {
                self.at(&name.span);
                self.narrow(&name.value, tensor.assume(*fact));
            }
        }
    }

    /// The tensor with that name; `None` for another value, since the question itself has recorded the error.
    fn named_tensor(&self, name: &At<String>) -> Option<TensorRef<'b>> {
        if name.value == "result" {
            return Some(self.body.result());
        }
        match self.named(&name.span, &name.value) {
            Val::Tensor(tensor) => Some(tensor),
            Val::Param(param) if is_tensor(param.ty()) => Some(param.tensor()),
            Val::Result(result) if is_tensor(result.ty()) => Some(result.tensor()),
            _ => None,
        }
    }

    /// `x.dtype`, `x.ndim`, `x.device`, `d.id`, `d.capability`
    pub(super) fn asked(&self, value: &Tree, part: &At<String>) -> Val<'b, 'a> {
        let name = part.value.as_str();
        if let "id" | "capability" = name {
            let of = self.value(value);
            let Some(device) = self.as_device(&of) else {
                if !matches!(of, Val::Missing) {
                    self.error(&part.span, name, format!("only a device has one: `x.device.{name}`"));
                }
                return Val::Missing;
            };
            self.at(&part.span);
            return Val::Expr(match name {
                "id" => self.body.device_id(device),
                _ => self.body.device_capability(device),
            });
        }
        let tensor = self.tensor(value);
        self.at(&part.span);
        match name {
            "dtype" => Val::DType(DTypeValue::Of(tensor)),
            "device" => Val::Device(DeviceValue::Of(tensor)),
            _ => Val::Expr(tensor.ndim()),
        }
    }

    /// A value as a device, if it is one.
    pub(super) fn as_device(&self, value: &Val<'b, 'a>) -> Option<DeviceValue<'b>> {
        match value {
            Val::Device(device) => Some(*device),
            Val::Param(param) if param.ty() == Some(&ParamType::Device) => Some((*param).into()),
            Val::Result(result) if result.ty() == Some(&ParamType::Device) => Some((*result).into()),
            _ => None,
        }
    }

    fn as_dtype(&self, value: &Val<'b, 'a>) -> Option<DTypeValue<'b>> {
        match value {
            Val::DType(dtype) => Some(*dtype),
            Val::Param(param) if param.ty() == Some(&ParamType::DType) => Some((*param).into()),
            Val::Result(result) if result.ty() == Some(&ParamType::DType) => Some((*result).into()),
            _ => None,
        }
    }

    /// A dtype: a value, or the name of one. A name of a value comes first.
    pub(super) fn dtype_value(&self, tree: &Tree) -> Option<DTypeValue<'b>> {
        let is_name = match &*tree.kind {
            ExprKind::Name(name) => !self.is_known(name),
            _ => false,
        };
        if is_name {
            return self.dtype(tree).map(DTypeValue::Stated);
        }
        let value = self.value(tree);
        let dtype = self.as_dtype(&value);
        if dtype.is_none() && !matches!(value, Val::Missing) {
            self.error(&tree.span, "dtype", "expected a dtype, such as `float32` or `x.dtype`");
        }
        dtype
    }

    /// A device: a value, or a text.
    pub(super) fn device_value(&self, tree: &Tree) -> Option<DeviceValue<'b>> {
        if let ExprKind::Text(_) = &*tree.kind {
            return self.device(tree).map(DeviceValue::Stated);
        }
        let value = self.value(tree);
        let device = self.as_device(&value);
        if device.is_none() && !matches!(value, Val::Missing) {
            self.error(&tree.span, "device", "expected a device, such as `\"cuda:1\"` or `x.device`");
        }
        device
    }

    /// `x.dtype == float16`, `x.device == d`; `None` if the left side is neither a dtype nor a device.
    pub(super) fn compare_dtypes(
        &self,
        (span, left): (&Span, &Val<'b, 'a>),
        op: &At<CompareOp>,
        right: &Tree,
    ) -> Option<Expr<'b>> {
        let (dtype, device) = (self.as_dtype(left), self.as_device(left));
        if dtype.is_none() && device.is_none() {
            return None;
        }
        if !matches!(op.value, CompareOp::Eq | CompareOp::Ne) {
            self.error(span, op.value.sign(), "dtypes and devices are compared by `==` or `!=`");
            return Some(self.body.missing());
        }
        let same = match (dtype, device) {
            (Some(dtype), _) => self.dtype_value(right).map(|right| {
                self.at(&op.span);
                self.body.same_dtype(dtype, right)
            }),
            (_, Some(device)) => self.device_value(right).map(|right| {
                self.at(&op.span);
                self.body.same_device(device, right)
            }),
            _ => None,
        };
        let Some(same) = same else { return Some(self.body.missing()) };
        Some(if op.value == CompareOp::Eq { same } else { !same })
    }

    /// `x.device.kind == "cuda"`
    pub(super) fn is_device_kind(&self, device: DeviceValue<'b>, kind: &str, (op, span): (&Span, &Span)) -> Expr<'b> {
        match kind_named(kind) {
            Some(kind) => {
                self.at(op);
                self.body.is_device_kind(device, kind)
            }
            None => {
                let names: Vec<&str> = DLDeviceType::ALL.iter().filter_map(|kind| kind.name()).collect();
                let problem = format!("no kind of device is called `{kind}`{}", did_you_mean(kind, &names));
                self.error(span, "kind", problem);
                self.body.missing()
            }
        }
    }

    /// `v is str`
    pub(super) fn is_kind(&self, value: &Tree, kind: &At<String>) -> Expr<'b> {
        let of = self.value(value);
        let Ok(known) = kind.value.parse::<ValueKind>() else {
            let names: Vec<&str> = ValueKind::ALL.iter().map(|kind| kind.name()).collect();
            let suggestion = did_you_mean(&kind.value, &names);
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            let problem = format!("`{}` is no kind of values{suggestion}; kinds are {}", kind.value, names.join(", "));
            self.error(&kind.span, "is", problem);
            return self.body.missing();
        };
        self.at(&value.span);
        match of {
            Val::Param(param) => param.is_kind(known),
            Val::Result(result) => result.is_kind(known),
            Val::Variable(variable) => variable.get().is_kind(known),
            of => self.no_any(&value.span, "is", &of),
        }
    }

    /// The error for a question about a value that has a type.
    fn no_any(&self, span: &Span, operation: &str, value: &Val<'b, 'a>) -> Expr<'b> {
        if !matches!(value, Val::Missing) {
            self.error(span, operation, "expected a value of type `Any` or a variable");
        }
        self.body.missing()
    }

    /// `is_contiguous(x)`, `is_aligned(x, 16)`, `is_object(v, "my.Type")`
    pub(super) fn question(&self, span: &Span, word: Word, all: &[&Tree]) -> Expr<'b> {
        match word {
            Word::IsObject => {
                let (of, key) = (self.value(all[0]), self.text(all[1]));
                self.at(span);
                match of {
                    Val::Param(param) => param.is_object(&key),
                    Val::Result(result) => result.is_object(&key),
                    Val::Variable(variable) => variable.get().is_object(&key),
                    of => self.no_any(&all[0].span, word.name(), &of),
                }
            }
            Word::IsAligned => {
                let (tensor, bytes) = (self.tensor(all[0]), self.small(all[1]));
                self.at(span);
                tensor.is_aligned(bytes)
            }
            _ => {
                let tensor = self.tensor(all[0]);
                self.at(span);
                tensor.is_contiguous()
            }
        }
    }

    /// `assume(x, dtype=float16)`
    pub(super) fn assume(&self, span: &Span, tensor: &Tree, inputs: &[Input]) -> TensorRef<'b> {
        let tensor = self.tensor(tensor);
        let missing = || TensorRef::missing_in(self.body);
        let named = inputs.iter().filter_map(|input| Some((input.name.as_ref()?.value.as_str(), &input.value)));
        let stated: Vec<(&str, &Tree)> = named.collect();
        let &[(name, value)] = stated.as_slice() else {
            let names: Vec<String> = Word::Assume.keywords().iter().map(|name| format!("`{name}=`")).collect();
            self.error(span, "assume", format!("expected one of {}", names.join(", ")));
            return missing();
        };
        let fact = match name {
            "dtype" => self.dtype(value).map(TensorFact::DType),
            "ndim" => Some(TensorFact::Rank(self.small(value) as usize)),
            "align" => Some(TensorFact::Aligned(self.small(value))),
            "contiguous" => {
                let is_true = matches!(&*value.kind, ExprKind::Bool(true));
                if !is_true {
                    self.error(&value.span, "assume", "expected `contiguous=True`");
                }
                is_true.then_some(TensorFact::Contiguous)
            }
            _ => self.stated_kind(value).map(TensorFact::DeviceKind),
        };
        self.at(span);
        fact.map_or_else(missing, |fact| tensor.assume(fact))
    }

    /// The kind of a device that a text states without a number.
    fn stated_kind(&self, tree: &Tree) -> Option<DLDeviceType> {
        let kind = match &*tree.kind {
            ExprKind::Text(text) => match std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()) {
                Some(Device::Kind(kind, DeviceId::Shared)) => Some(kind),
                _ => None,
            },
            _ => None,
        };
        if kind.is_none() {
            self.error(&tree.span, "device", "expected a kind of device in quotes, such as `\"cuda\"`");
        }
        kind
    }
}

fn is_tensor(ty: Option<&ParamType>) -> bool {
    let tensor = |ty: &ParamType| matches!(ty, ParamType::Tensor(_));
    ty.is_some_and(|ty| tensor(ty) || matches!(ty, ParamType::Optional(inner) if tensor(inner)))
}
