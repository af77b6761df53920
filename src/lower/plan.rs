//! Decisions about a signature that are made once, before any code is emitted for it.

use std::collections::{HashMap, HashSet};

use super::abi;
use super::convention::Convention;
use super::devices::{Devices, SharedId};
use super::protocol::TARGET;
use crate::ir::PointerFacts;
use crate::spec::{Device, Dim, ParamType, Signature, TensorShape, TensorType};

/// Dimension variables beyond this number are spilled until they are used.
const FEW_VARS: usize = 8;
/// Values of parameters and variables beyond this number are spilled until the kernel is called. They don't fit into
/// registers, and register allocation takes time quadratic in the number of simultaneously live values.
const FEW_VALUES: usize = 10;

/// The decisions about one signature.
pub(super) struct Plan<'a> {
    pub signature: &'a Signature,
    /// How the kernel takes its arguments.
    pub convention: Convention,
    /// The kernel takes the argument array itself, so the wrapper forwards it.
    pub forward_args: bool,
    /// The binder does all checks first, because the fast path can't do one of them.
    pub binds_first: bool,
    /// Number of arguments after defaults are filled in.
    pub passed: usize,
    /// Whether the function returns a value.
    pub has_result: bool,
    /// Which tensors share a device.
    pub devices: Devices,
    /// All tensors in order if the kernel, a stream or a result needs their devices; otherwise empty.
    pub tensors: Vec<&'a TensorType>,
    /// There are more than [`FEW_VARS`] variables.
    pub spills_vars: bool,
    /// There are more than [`FEW_VALUES`] values.
    pub spills_values: bool,
}

impl<'a> Plan<'a> {
    /// `needs_devices`: the kernel is launched on the tensors' device, or receives a device number.
    pub(super) fn new(signature: &'a Signature, convention: Convention, needs_devices: bool) -> Self {
        let vars = signature.names_in_dims().len();
        let devices = Devices::of(signature);
        Plan {
            signature,
            convention,
            forward_args: convention == Convention::Packed,
            binds_first: needs_binder(signature, &devices),
            passed: signature.passed().count(),
            has_result: signature.ret().is_some(),
            devices,
            tensors: tensors_with_devices(signature, needs_devices),
            spills_vars: vars > FEW_VARS,
            spills_values: vars + signature.params().len() > FEW_VALUES,
        }
    }

    /// Facts about a wrapper's parameters that the ABI guarantees. The argument array may be NULL if there are no
    /// arguments.
    pub(super) fn param_facts(&self) -> Vec<PointerFacts> {
        let result = if self.has_result { abi::result_facts() } else { PointerFacts::NONE };
        vec![PointerFacts::NONE, PointerFacts { readonly: true, ..abi::ANY }, PointerFacts::NONE, result]
    }
}

/// All tensors in order, if the kernel, a stream or a returned tensor needs their devices.
fn tensors_with_devices(signature: &Signature, needs_devices: bool) -> Vec<&TensorType> {
    let streams = needs_devices || signature.params().iter().any(|param| param.ty.is_stream());
    let mut tensors = Vec::new();
    if streams || !signature.returned_tensors().is_empty() {
        signature.params().iter().for_each(|param| param.ty.for_each_tensor(&mut |tensor| tensors.push(tensor)));
    }
    tensors
}

/// Whether the fast path can't do all checks of a signature.
fn needs_binder(signature: &Signature, devices: &Devices) -> bool {
    !can_decide(signature)
        || signature.params().iter().any(|param| has_slow_type(&param.ty))
        || has_loose_device(signature, devices)
}

/// Whether a type has a part that the fast path can't check.
fn has_slow_type(ty: &ParamType) -> bool {
    match ty {
        ParamType::Object(_) | ParamType::Record { .. } => true,
        ParamType::Array(inner) | ParamType::List(inner) => **inner != ParamType::Any,
        ParamType::Map(key, value) | ParamType::Dict(key, value) => {
            **key != ParamType::Any || **value != ParamType::Any
        }
        // A contiguous tensor needs one stride per dimension, so a stated rank. Some strides that are expressions are
        // neither compared nor solved. Whether a byte offset can be added depends on the device.
        ParamType::Tensor(tensor) => {
            let computed = |stride: &Dim| matches!(stride, Dim::Binary(..));
            tensor.shape == TensorShape::Any
                || tensor.device == Device::Any
                || tensor.strides().unwrap_or_default().iter().any(computed)
        }
        _ => ty.inner().into_iter().any(has_slow_type),
    }
}

/// Whether tensors share a device that no tensor is certain to determine, because only optional tensors have it.
/// Tensors that may be on any device determine it for the others of that kind.
fn has_loose_device(signature: &Signature, devices: &Devices) -> bool {
    let mut firm = vec![false; devices.slots()];
    let mut optional = vec![0; devices.slots()];
    for param in signature.params() {
        count_devices(&param.ty, devices, true, &mut firm, &mut optional);
    }
    firm.iter().zip(&optional).any(|(firm, optional)| !firm && *optional > 1)
}

fn count_devices(ty: &ParamType, devices: &Devices, always: bool, firm: &mut [bool], optional: &mut [usize]) {
    if let ParamType::Tensor(tensor) = ty
        && let (slot, SharedId::OfSlot) = devices.place(&tensor.device)
    {
        firm[slot] |= always;
        optional[slot] += usize::from(!always);
    }
    let always = always && ty.has_members();
    ty.inner().into_iter().for_each(|inner| count_devices(inner, devices, always, firm, optional));
}

/// Whether the fast path can compute an expression: each divisor is a positive constant, so nothing traps.
fn is_computable(dim: &Dim) -> bool {
    match dim {
        Dim::Const(_) | Dim::Var(_) => true,
        Dim::Binary(op, x, y) if op.is_division() => {
            is_computable(x) && matches!(y.eval(&|_| None), Some(1..)) && is_computable(y)
        }
        Dim::Binary(_, x, y) => is_computable(x) && is_computable(y),
    }
}

/// The only unbound variable of an expression, with the expression that solves for it. `None` if the fast path can't
/// compute that.
pub(super) fn solvable<'a>(dim: &'a Dim, known: &dyn Fn(&str) -> bool) -> Option<(&'a str, Dim)> {
    let mut unknown = Vec::new();
    dim.for_each_var(&mut |name| {
        if !known(name) && !unknown.contains(&name) {
            unknown.push(name);
        }
    });
    let [name] = unknown[..] else { return None };
    let solved = dim.solved_for(name, Dim::Var(TARGET.to_owned()))?;
    is_computable(&solved).then_some((name, solved))
}

/// Whether the fast path can bind every name in dimensions and compute all expressions needed for it. The tensors with
/// the variables must always be passed, and divisors must be positive constants.
fn can_decide(signature: &Signature) -> bool {
    let mut known: HashSet<&str> = HashSet::new();
    let mut dims: Vec<&Dim> = Vec::new();
    for param in signature.params() {
        if param.ty.as_scalar().is_some() {
            known.insert(&param.name);
        }
        firm_dims(&param.ty, &mut dims);
    }
    // the dimensions with each unbound variable; a dimension is revisited whenever one of its variables is bound
    let mut occurrences: HashMap<&str, Vec<&Dim>> = HashMap::new();
    for &dim in &dims {
        dim.for_each_var(&mut |name| {
            if !known.contains(name) {
                occurrences.entry(name).or_default().push(dim);
            }
        });
    }
    while let Some(dim) = dims.pop() {
        if let Some((name, _)) = solvable(dim, &|name| known.contains(name)) {
            known.insert(name);
            dims.extend(occurrences.remove(name).unwrap_or_default());
        }
    }
    let mut computable = signature.constraints().iter().all(|c| is_computable(&c.left) && is_computable(&c.right));
    let types = signature.params().iter().map(|param| &param.ty).chain(signature.ret());
    types.for_each(|ty| ty.for_each_dim(&mut |dim| computable &= is_computable(dim)));
    computable && signature.names_in_dims().into_iter().all(|name| known.contains(name))
}

/// The dimensions of values that a call always passes: neither optional nor in a container.
fn firm_dims<'a>(ty: &'a ParamType, dims: &mut Vec<&'a Dim>) {
    match ty {
        ParamType::Tensor(_) | ParamType::Shape(_) => ty.for_each_dim(&mut |dim| dims.push(dim)),
        ty if ty.has_members() => ty.inner().into_iter().for_each(|item| firm_dims(item, dims)),
        _ => {}
    }
}
