//! A checked signature.

use std::fmt;

use super::builder::SignatureBuilder;
use super::types::{Dim, Layout, ScalarType, TensorType};

/// The type of a parameter.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ParamType {
    /// A number, truth value or opaque pointer.
    Scalar(ScalarType),
    /// A tensor: an `ffi.Tensor` or a `DLTensor*`.
    Tensor(TensorType),
}

impl From<ScalarType> for ParamType {
    fn from(ty: ScalarType) -> Self {
        ParamType::Scalar(ty)
    }
}

impl From<TensorType> for ParamType {
    fn from(ty: TensorType) -> Self {
        ParamType::Tensor(ty)
    }
}

impl fmt::Display for ParamType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParamType::Scalar(ty) => ty.fmt(f),
            ParamType::Tensor(ty) => ty.fmt(f),
        }
    }
}

/// A named parameter.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Param {
    /// Its name, unique in the signature.
    pub name: String,
    /// Its type.
    pub ty: ParamType,
}

/// A function's interface, free of mistakes. Made by [`Signature::builder`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Signature {
    pub(super) name: String,
    pub(super) params: Vec<Param>,
    pub(super) ret: Option<ScalarType>,
}

impl Signature {
    /// Starts a signature.
    ///
    /// ```
    /// use tvm_ffi_codegen::{DLDataType, Signature, TensorType};
    ///
    /// let sig = Signature::builder("add_one")
    ///     .param("x", TensorType::new(["n"], DLDataType::FLOAT32))
    ///     .param("y", TensorType::new(["n"], DLDataType::FLOAT32))
    ///     .build()?;
    /// assert_eq!(sig.to_string(), "add_one(x: Tensor([n], float32), y: Tensor([n], float32))");
    /// # Ok::<(), tvm_ffi_codegen::SignatureError>(())
    /// ```
    pub fn builder(name: impl Into<String>) -> SignatureBuilder {
        SignatureBuilder::new(name.into())
    }

    /// The function's name; its symbol is `__tvm_ffi_<name>`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The exported symbol, by the convention of `tvm/ffi/function.h`.
    pub fn symbol(&self) -> String {
        format!("__tvm_ffi_{}", self.name)
    }

    /// Parameters, in order.
    pub fn params(&self) -> &[Param] {
        &self.params
    }

    /// What the function returns; `None` for nothing.
    pub fn ret(&self) -> Option<ScalarType> {
        self.ret
    }

    /// The symbols of dimensions and strides, in order of first appearance.
    pub fn symbols(&self) -> Vec<&str> {
        let mut symbols: Vec<&str> = Vec::new();
        for param in &self.params {
            let ParamType::Tensor(tensor) = &param.ty else { continue };
            let strides = match &tensor.layout {
                Layout::Contiguous => &[][..],
                Layout::Strides(strides) => strides,
            };
            for dim in tensor.shape.iter().chain(strides) {
                if let Dim::Symbol(name) = dim
                    && !symbols.contains(&name.as_str())
                {
                    symbols.push(name);
                }
            }
        }
        symbols
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.name)?;
        for (i, param) in self.params.iter().enumerate() {
            let sep = if i == 0 { "" } else { ", " };
            write!(f, "{sep}{}: {}", param.name, param.ty)?;
        }
        f.write_str(")")?;
        match self.ret {
            Some(ret) => write!(f, " -> {ret}"),
            None => Ok(()),
        }
    }
}
