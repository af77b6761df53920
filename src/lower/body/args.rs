//! The parameters of a body: values by path, and the paths by number.

use std::collections::HashMap;

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
    /// Strides in elements, `I64`, where the signature states them.
    pub strides: Option<Vec<Value>>,
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

/// All parameters of a body, and its result.
pub(super) struct Args {
    by_path: HashMap<String, Arg>,
    /// The parameters in order.
    pub params: Vec<Node>,
    /// Whether what is optional is there, a `Bool`.
    pub given: HashMap<String, Value>,
    /// The tensor that the function returns.
    pub result: Option<Arg>,
}

impl Args {
    /// Those of a signature, without values yet.
    pub(super) fn new(signature: &Signature) -> Self {
        let params = signature.params().iter().map(|param| Node::new(param.name.clone(), &param.ty)).collect();
        Args { by_path: HashMap::new(), params, given: HashMap::new(), result: None }
    }

    pub(super) fn add(&mut self, path: String, arg: Arg) {
        self.by_path.insert(path, arg);
    }

    /// What is at a path, with the path as it is kept.
    pub(super) fn find(&self, path: &str) -> Option<(&str, &Arg)> {
        self.by_path.get_key_value(path).map(|(path, arg)| (path.as_str(), arg))
    }

    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut Arg> {
        self.by_path.values_mut().chain(&mut self.result)
    }
}
