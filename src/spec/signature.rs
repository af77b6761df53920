//! A checked signature.

use std::collections::HashSet;
use std::fmt;

use super::dim::{Constraint, Dim};
use super::location::{Aside, Origin, SourceLocation};
use super::param::{Param, ParamType};
use super::path::Part;
use super::policy::DTypePolicy;
use super::tensor::TensorType;
use tvm_ffi_runtime::abi::symbol;

/// A function's interface without errors, made with [`Signature::builder`] or parsed from its text form.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Signature {
    pub(super) name: String,
    pub(super) params: Vec<Param>,
    /// The number of parameters before the first that is keyword-only; `None` without one.
    pub(super) positional: Option<usize>,
    pub(super) ret: Option<ParamType>,
    pub(super) constraints: Vec<Constraint>,
    pub(super) dtype_policy: DTypePolicy,
    /// The locations of the signature itself and of its result.
    pub(super) origin: Origin,
    pub(super) ret_origin: Origin,
    /// The function's documentation.
    pub(super) doc: Aside<String>,
}

impl Signature {
    /// The signature with additional parameters after its own, and without constraints. A value with the name of a
    /// parameter replaces it. A result is kept only if it consists of tensors. Nothing is checked: the values are known
    /// to have their types.
    pub(crate) fn with_values(&self, values: impl IntoIterator<Item = (String, ParamType)>) -> Self {
        let mut params = self.params.clone();
        for (name, ty) in values {
            match params.iter_mut().find(|param| param.name == name) {
                Some(param) => param.ty = ty,
                None => params.push(Param { name, ty, default: None, origin: Origin::default() }),
            }
        }
        Signature {
            params,
            positional: None,
            ret: self.ret.clone().filter(|_| !self.returned_tensors().is_empty()),
            constraints: Vec::new(),
            ..self.clone()
        }
    }

    /// The signature of a function that forwards its calls: the callee checks its own result.
    pub(crate) fn of_forwarding(&self) -> Self {
        Signature { ret: self.ret.as_ref().map(|_| ParamType::Any), ..self.clone() }
    }

    /// The function's name; its symbol is `__tvm_ffi_<name>`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The function's documentation, which libraries carry and hosts show; see [`SignatureBuilder::doc`].
    ///
    /// [`SignatureBuilder::doc`]: super::SignatureBuilder::doc
    pub fn doc(&self) -> Option<&str> {
        self.doc.0.as_deref().map(String::as_str)
    }

    /// The exported symbol, by the convention of `tvm/ffi/function.h`.
    pub fn symbol(&self) -> String {
        format!("{}{}", symbol::FUNCTION, self.name)
    }

    /// The parameters, in order.
    pub fn params(&self) -> &[Param] {
        &self.params
    }

    /// The type of a parameter, an item of a tuple or a field of a record, by its path: `x`, `t[0]` or `cfg.alpha`.
    pub(crate) fn type_at(&self, path: &str) -> Option<&ParamType> {
        let name = path.split(['.', '[']).next()?;
        let param = self.params.iter().find(|param| param.name == name)?;
        param.ty.member_at(&path[name.len()..])
    }

    /// Whether any parameter is a record or has one inside.
    pub(crate) fn has_records(&self) -> bool {
        self.params.iter().any(|param| param.ty.has_record())
    }

    /// The parameters after `*`, which callers in Python may only pass by name. In a call of the ABI they are
    /// positional like the others.
    pub fn keyword_only(&self) -> &[Param] {
        self.positional.and_then(|number| self.params.get(number..)).unwrap_or_default()
    }

    /// The parameters for which a call passes arguments, in order: all except [`ParamType::EnvStream`] and
    /// [`ParamType::EnvState`].
    pub fn passed(&self) -> impl Iterator<Item = &Param> {
        self.params.iter().filter(|param| param.is_passed())
    }

    /// The minimum and maximum number of arguments of a call.
    pub fn arity(&self) -> (usize, usize) {
        let min = self.passed().filter(|param| param.default.is_none()).count();
        (min, self.passed().count())
    }

    /// The type of the function's result; `None` if it returns nothing.
    pub fn ret(&self) -> Option<&ParamType> {
        self.ret.as_ref()
    }

    /// The tensors that the function returns: one, or those of a `Tuple` in order. The wrapper allocates them before
    /// the kernel runs.
    pub fn returned_tensors(&self) -> Vec<&TensorType> {
        match &self.ret {
            Some(ParamType::Tensor(tensor)) => vec![tensor],
            Some(ParamType::Tuple(items)) => items.iter().filter_map(ParamType::as_tensor).collect(),
            _ => Vec::new(),
        }
    }

    /// The path of the returned tensor with this index: `result`, or `result[1]` in a `Tuple`.
    pub(crate) fn returned_path(&self, number: usize) -> String {
        match &self.ret {
            Some(ParamType::Tuple(_)) => format!("result[{number}]"),
            _ => "result".to_owned(),
        }
    }

    /// The comparisons that must hold once all dimension variables are bound.
    pub fn constraints(&self) -> &[Constraint] {
        &self.constraints
    }

    /// The dtypes that tensors may have instead of the stated ones.
    pub fn dtype_policy(&self) -> DTypePolicy {
        self.dtype_policy
    }

    /// The location of a part, or else of the signature. It ends the backtrace of errors that a wrapper raises for the
    /// part.
    pub fn location(&self, part: Part) -> Option<&SourceLocation> {
        self.origin(part).and_then(|origin| origin.0.as_deref()).or(self.origin.0.as_deref())
    }

    pub(super) fn set_location(&mut self, part: Part, location: SourceLocation) {
        let origin = match part {
            Part::Signature => Some(&mut self.origin),
            Part::Param(number) => self.params.get_mut(number).map(|param| &mut param.origin),
            Part::Result => Some(&mut self.ret_origin),
            Part::Constraint(number) => self.constraints.get_mut(number).map(|constraint| &mut constraint.origin),
        };
        if let Some(origin) = origin {
            *origin = location.into();
        }
    }

    fn origin(&self, part: Part) -> Option<&Origin> {
        match part {
            Part::Signature => Some(&self.origin),
            Part::Param(number) => self.params.get(number).map(|param| &param.origin),
            Part::Result => Some(&self.ret_origin),
            Part::Constraint(number) => self.constraints.get(number).map(|constraint| &constraint.origin),
        }
    }

    /// The parts with a place of their own, and these locations.
    pub(crate) fn own_locations(&self) -> impl Iterator<Item = (Part, &SourceLocation)> {
        let params = (0..self.params.len()).map(Part::Param);
        let constraints = (0..self.constraints.len()).map(Part::Constraint);
        let parts = [Part::Signature].into_iter().chain(params).chain([Part::Result]).chain(constraints);
        parts.filter_map(|part| Some((part, self.origin(part)?.0.as_deref()?)))
    }

    /// Whether any part has a location.
    pub(crate) fn has_locations(&self) -> bool {
        self.own_locations().next().is_some()
    }

    /// The names in dimensions, strides and constraints, in order of first appearance: dimension variables, and integer
    /// parameters and fields of records that are used as such.
    pub fn names_in_dims(&self) -> Vec<&str> {
        let mut names = Names::default();
        for param in &self.params {
            param.ty.for_each_dim(&mut |dim| names.add(dim));
        }
        for constraint in &self.constraints {
            names.add(&constraint.left);
            names.add(&constraint.right);
        }
        if let Some(ret) = &self.ret {
            ret.for_each_dim(&mut |dim| names.add(dim));
        }
        names.ordered
    }

    /// The variables of dimensions and strides that are neither parameters nor fields of them, in order of first
    /// appearance.
    pub fn dim_vars(&self) -> Vec<&str> {
        let params: HashSet<&str> = self.params.iter().map(|param| param.name.as_str()).collect();
        let mut names = self.names_in_dims();
        names.retain(|name| {
            let is_inside = || name.contains(['.', '[']) && self.type_at(name).is_some();
            !params.contains(name) && !is_inside()
        });
        names
    }
}

#[derive(Default)]
struct Names<'a> {
    ordered: Vec<&'a str>,
    seen: HashSet<&'a str>,
}

impl<'a> Names<'a> {
    fn add(&mut self, dim: &'a Dim) {
        dim.for_each_var(&mut |name| {
            if self.seen.insert(name) {
                self.ordered.push(name);
            }
        });
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.name)?;
        let mut sep = "";
        for (number, param) in self.params.iter().enumerate() {
            if self.positional == Some(number) {
                write!(f, "{sep}*")?;
                sep = ", ";
            }
            write!(f, "{sep}{param}")?;
            sep = ", ";
        }
        if self.dtype_policy != DTypePolicy::EXACT {
            write!(f, "{sep}dtype_policy=\"{}\"", self.dtype_policy)?;
        }
        f.write_str(")")?;
        if let Some(ret) = &self.ret {
            write!(f, " -> {ret}")?;
        }
        for (i, constraint) in self.constraints.iter().enumerate() {
            let sep = if i == 0 { " where " } else { ", " };
            write!(f, "{sep}{constraint}")?;
        }
        Ok(())
    }
}
