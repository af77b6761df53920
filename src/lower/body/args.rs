//! The parameters of a body: values by path, and paths by index.

use std::collections::{BTreeMap, HashMap};

use super::life::Life;
use crate::ir::Value;
use crate::spec::{ParamType, ScalarType, Signature, TensorType};

/// The values of a parameter, a tuple's item or a record's field.
pub(super) enum Arg {
    /// A value: a `Bool` for `bool`, otherwise a value of the C type.
    Scalar(ScalarType, Value),
    Tensor(Box<TensorVars>),
}

/// The values of a tensor.
#[derive(Clone)]
pub(super) struct TensorVars {
    pub ty: TensorType,
    /// Address of the first element, including `byte_offset`; on a device with opaque handles, the bare handle. `None`
    /// if only the descriptor has it.
    pub data: Option<Value>,
    /// Sizes, `I64`; empty if the number of dimensions is open.
    pub shape: Vec<Value>,
    /// Strides in elements, `I64`; `None` if the tensor is contiguous, or if only the descriptor has them.
    pub strides: Option<Vec<Value>>,
    /// The address of the tensor's `DLTensor`. A tensor whose type is open has one.
    pub descriptor: Option<Value>,
    /// The tensor is optional, so the address may be NULL.
    pub may_be_absent: bool,
    pub origin: Origin,
    /// The time for which the values are usable.
    pub life: Life,
}

/// Where a tensor comes from. This determines how it is passed on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Origin {
    /// An argument of the function; its path is the tensor's name.
    Argument,
    /// The tensor that the wrapper has allocated for the result. It can't be passed on.
    Result,
    /// The object in the `TVMFFIAny` at this address in the frame, which the body owns.
    Object(Value),
    /// The tensor in the `TVMFFIAny` at this address, which the body doesn't own.
    Value(Value),
    /// A view of another tensor.
    View(View),
}

/// The parts of a view's `DLTensor` that can't be derived from the tensor itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct View {
    /// The data pointer of the viewed tensor.
    pub base: Value,
    /// The distance of the first element from `base`, in bytes, an `I64`.
    pub byte_offset: Value,
    /// The device, an `I64` as loaded from a `DLDevice`.
    pub device: Value,
}

/// The path and type of a parameter, a tuple's item or a record's field.
pub(super) struct Node {
    pub path: String,
    pub ty: ParamType,
    pub items: Vec<Node>,
}

impl Node {
    fn new(path: String, ty: &ParamType) -> Self {
        let tuple = if let ParamType::Optional(inner) = ty { inner } else { ty };
        let items = tuple.members().into_iter().map(|(step, member)| Node::new(format!("{path}{step}"), member));
        let items = items.collect();
        Node { path, ty: ty.clone(), items }
    }
}

/// All parameters of a body and its result, or the value returned by a call.
pub(super) struct Args {
    /// The time for which the values are usable.
    pub life: Life,
    by_path: BTreeMap<String, Arg>,
    /// The parameters in order.
    pub params: Vec<Node>,
    /// For each optional parameter, whether it is given, a `Bool`.
    pub given: HashMap<String, Value>,
    /// The tensors returned by the function, with their paths.
    pub results: Vec<(String, TensorVars)>,
    /// The address of the value, if a call has returned it.
    pub any: Option<Value>,
    /// Whether the value is one that a closure keeps.
    pub is_captured: bool,
}

impl Args {
    /// The parameters of a signature, without values yet.
    pub(super) fn new(signature: &Signature) -> Self {
        let params = signature.params().iter().map(|param| Node::new(param.name.clone(), &param.ty)).collect();
        Args {
            life: Life::BODY,
            by_path: BTreeMap::new(),
            params,
            given: HashMap::new(),
            results: Vec::new(),
            any: None,
            is_captured: false,
        }
    }

    /// A single value of a type, with its own path and without values yet.
    pub(super) fn of_value(path: &str, ty: &ParamType, life: Life) -> Self {
        let params = vec![Node::new(path.to_owned(), ty)];
        Args {
            life,
            by_path: BTreeMap::new(),
            params,
            given: HashMap::new(),
            results: Vec::new(),
            any: None,
            is_captured: false,
        }
    }

    pub(super) fn add(&mut self, path: String, arg: Arg) {
        self.by_path.insert(path, arg);
    }

    /// The argument at a path, with the stored copy of the path.
    pub(super) fn find(&self, path: &str) -> Option<(&str, &Arg)> {
        self.by_path.get_key_value(path).map(|(path, arg)| (path.as_str(), arg))
    }

    /// The type of a parameter, a tuple's item or a record's field.
    pub(super) fn type_at(&self, path: &str) -> Option<&ParamType> {
        fn find<'n>(nodes: &'n [Node], path: &str) -> Option<&'n ParamType> {
            let node = nodes.iter().find(|node| is_in(path, &node.path))?;
            if node.path == path { Some(&node.ty) } else { find(&node.items, path) }
        }
        find(&self.params, path)
    }

    /// Whether the value at a path may be absent, since the caller may leave it out or a tuple or record around it.
    pub(super) fn may_be_absent(&self, path: &str) -> bool {
        self.given.keys().any(|optional| is_in(path, optional))
    }

    /// All tensors with their paths.
    pub(super) fn tensors_mut(&mut self) -> impl Iterator<Item = (&str, &mut TensorVars)> {
        let inputs = self.by_path.iter_mut().filter_map(|(path, arg)| match arg {
            Arg::Tensor(vars) => Some((path.as_str(), &mut **vars)),
            Arg::Scalar(..) => None,
        });
        inputs.chain(self.results.iter_mut().map(|(path, result)| (path.as_str(), result)))
    }
}

/// Whether a path is that of a value, or of a part of it.
fn is_in(path: &str, whole: &str) -> bool {
    path.strip_prefix(whole).is_some_and(|rest| rest.is_empty() || rest.starts_with(['[', '.']))
}
