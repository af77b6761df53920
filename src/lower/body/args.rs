//! What a body sees of its parameters: values by path.

use std::collections::HashMap;

use crate::ir::Value;
use crate::spec::{ScalarType, TensorType};

/// A parameter, or an item of a tuple.
pub(super) enum Arg {
    /// Its value: for `bool` a `Bool`, else of the C type.
    Scalar(ScalarType, Value),
    Tensor(TensorVars),
}

/// A tensor.
pub(super) struct TensorVars {
    pub ty: TensorType,
    /// Address of the first element, `byte_offset` added; on a device with opaque handles the bare handle.
    pub data: Value,
    /// Sizes, `I64`.
    pub shape: Vec<Value>,
    /// Strides in elements, `I64`, where the signature states them.
    pub strides: Option<Vec<Value>>,
}

/// All of them.
#[derive(Default)]
pub(super) struct Args {
    by_path: HashMap<String, Arg>,
    /// Whether what is optional is there, a `Bool`.
    pub given: HashMap<String, Value>,
    /// The tensor that the function returns.
    pub result: Option<Arg>,
}

impl Args {
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
