//! The parameters of a body: values by path, and the paths by number.

use std::collections::{BTreeMap, HashMap};

use super::scope::Scope;
use crate::ir::Value;
use crate::spec::{ParamType, ScalarType, Signature, TensorType};

/// The values of a parameter, or of an item of a tuple.
pub(super) enum Arg {
    /// A value: for `bool` a `Bool`, else of the C type.
    Scalar(ScalarType, Value),
    Tensor(TensorVars),
}

/// The values of a tensor.
pub(super) struct TensorVars {
    pub ty: TensorType,
    /// Address of the first element, `byte_offset` added; on a device with opaque handles the bare handle.
    pub data: Value,
    /// Sizes, `I64`.
    pub shape: Vec<Value>,
    /// Strides in elements, `I64`, where they are stated; the tensor is compact where they aren't.
    pub strides: Option<Vec<Value>>,
    pub origin: Origin,
    /// Where the values are known.
    pub scope: Scope,
}

/// Where a tensor comes from, which says how it is passed on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Origin {
    /// An argument of the function, by the path that is the tensor's name.
    Argument,
    /// The tensor that the wrapper has allocated for the result, which isn't passed on.
    Result,
    /// The object of the `TVMFFIAny` at this address of the frame.
    Object(Value),
    /// A view of another tensor.
    View(View),
}

/// The parts of a view's `DLTensor` that the tensor itself doesn't tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct View {
    /// The data pointer of the tensor that it is a view of.
    pub base: Value,
    /// The distance of the first element from there, in bytes, an `I64`.
    pub byte_offset: Value,
    /// The device, an `I64` as a load of the `DLDevice` gives it.
    pub device: Value,
}

/// The path and the type of a parameter, or of an item of a tuple.
pub(super) struct Node {
    pub path: String,
    pub ty: ParamType,
    pub items: Vec<Node>,
}

impl Node {
    fn new(path: String, ty: &ParamType) -> Self {
        let tuple = if let ParamType::Optional(inner) = ty { inner } else { ty };
        let items = match tuple {
            ParamType::Tuple(items) => {
                items.iter().enumerate().map(|(i, item)| Node::new(item_path(&path, i), item)).collect()
            }
            _ => Vec::new(),
        };
        Node { path, ty: ty.clone(), items }
    }
}

/// The path of a tuple's item.
pub(super) fn item_path(tuple: &str, index: usize) -> String {
    format!("{tuple}[{index}]")
}

/// All parameters of a body, and its result; or the value that a call has returned.
pub(super) struct Args {
    /// Where the values are known.
    pub scope: Scope,
    by_path: BTreeMap<String, Arg>,
    /// The parameters in order.
    pub params: Vec<Node>,
    /// Whether what is optional is there, a `Bool`.
    pub given: HashMap<String, Value>,
    /// The tensors that the function returns, with their paths.
    pub results: Vec<(String, Arg)>,
    /// The address of the value, where it is one that a call has returned.
    pub any: Option<Value>,
}

impl Args {
    /// Those of a signature, without values yet.
    pub(super) fn new(signature: &Signature) -> Self {
        let params = signature.params().iter().map(|param| Node::new(param.name.clone(), &param.ty)).collect();
        Args {
            scope: Scope::BODY,
            by_path: BTreeMap::new(),
            params,
            given: HashMap::new(),
            results: Vec::new(),
            any: None,
        }
    }

    /// A single value of a type, by a path of its own; without values yet.
    pub(super) fn of_value(path: &str, ty: &ParamType, scope: Scope) -> Self {
        let params = vec![Node::new(path.to_owned(), ty)];
        Args { scope, by_path: BTreeMap::new(), params, given: HashMap::new(), results: Vec::new(), any: None }
    }

    pub(super) fn add(&mut self, path: String, arg: Arg) {
        self.by_path.insert(path, arg);
    }

    /// What is at a path, with the path as it is kept.
    pub(super) fn find(&self, path: &str) -> Option<(&str, &Arg)> {
        self.by_path.get_key_value(path).map(|(path, arg)| (path.as_str(), arg))
    }

    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut Arg> {
        self.by_path.values_mut().chain(self.results.iter_mut().map(|(_, result)| result))
    }
}
