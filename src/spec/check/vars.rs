//! Checks constraints and variables.

use std::collections::{HashMap, HashSet};

use super::super::dim::Dim;
use super::super::param::ParamType;
use super::super::path::{Part, Step, Way};
use super::super::tensor::Layout;
use super::{Checker, is_identifier, parts};

impl Checker<'_> {
    pub(super) fn constraints(&mut self) {
        for (i, constraint) in self.signature.constraints.iter().enumerate() {
            let at = Way::to(Part::Constraint(i));
            self.dim(at, &constraint.left);
            self.dim(at, &constraint.right);
            let mut vars = 0;
            constraint.left.for_each_var(&mut |_| vars += 1);
            constraint.right.for_each_var(&mut |_| vars += 1);
            if vars == 0 {
                self.error(at, format!("expected a dimension variable in `{constraint}`, which no call can change"));
            }
        }
    }

    /// Checks that the value of every variable can be determined. Some dimension must be the variable itself, or be
    /// solvable for it once the other variables are known.
    pub(super) fn determined(&mut self) {
        let signature = self.signature;
        let mut dims = Vec::new();
        for param in &signature.params {
            param.ty.for_each_dim(&mut |dim| dims.push(dim));
        }
        let mut known: HashSet<&str> = self.params.keys().copied().collect();
        known.extend(signature.names_in_dims().into_iter().filter(|name| self.is_integer_inside(name)));
        // per dimension, the number of its unknown variables; per unknown variable, the dimensions that contain it
        let mut unknown = vec![0; dims.len()];
        let mut occurrences: HashMap<&str, Vec<usize>> = HashMap::new();
        for (d, dim) in dims.iter().enumerate() {
            dim.for_each_var(&mut |name| {
                if !known.contains(name) {
                    unknown[d] += 1;
                    occurrences.entry(name).or_default().push(d);
                }
            });
        }
        let mut solvable: Vec<usize> = (0..dims.len()).filter(|d| unknown[*d] == 1).collect();
        while let Some(d) = solvable.pop() {
            let mut last = None;
            dims[d].for_each_var(&mut |name| last = Some(name).filter(|name| !known.contains(name)).or(last));
            if let Some(name) = last
                && dims[d].solved_for(name, Dim::Const(0)).is_some()
            {
                known.insert(name);
                for d in occurrences.remove(name).unwrap_or_default() {
                    unknown[d] -= 1;
                    if unknown[d] == 1 {
                        solvable.push(d);
                    }
                }
            }
        }
        for name in signature.names_in_dims() {
            if !known.contains(name) && is_identifier(name) {
                self.undetermined(name);
            }
        }
    }

    /// Reports a variable without a value at its first occurrence.
    fn undetermined(&mut self, var: &str) {
        let problem = format!(
            "nothing says the value of `{var}`: expected a dimension that is it alone, or that can be solved for it"
        );
        let signature = self.signature;
        let mut first = |at: Way<'_>, dim: &Dim| {
            let mut is_here = false;
            dim.for_each_var(&mut |name| is_here |= name == var);
            if is_here {
                self.error(at, problem.as_str());
            }
            is_here
        };
        let mut types = signature.params.iter().enumerate().map(|(i, param)| (Part::Param(i), &param.ty));
        let mut constraints = signature.constraints.iter().enumerate();
        let _ = types.any(|(part, ty)| any_dim(Way::to(part), ty, &mut first))
            || constraints.any(|(i, constraint)| {
                let at = Way::to(Part::Constraint(i));
                first(at, &constraint.left) || first(at, &constraint.right)
            })
            || signature.ret.as_ref().is_some_and(|ret| any_dim(Way::to(Part::Result), ret, &mut first));
    }
}

/// Whether `is` holds for a size or stride of the type. Stops at the first one for which it holds.
fn any_dim(at: Way<'_>, ty: &ParamType, is: &mut dyn FnMut(Way<'_>, &Dim) -> bool) -> bool {
    let mut any = |dims: &[Dim], step: fn(usize) -> Step| (0..).zip(dims).any(|(d, dim)| is(at.then(step(d)), dim));
    match ty {
        ParamType::Tensor(tensor) => {
            tensor.shape.dims().is_some_and(|dims| any(dims, Step::Size))
                || matches!(&tensor.layout, Layout::Strides(strides) if any(strides, Step::Stride))
        }
        ParamType::Shape(Some(dims)) => any(dims, Step::Item),
        ParamType::Optional(inner) => any_dim(at, inner, is),
        ParamType::Tuple(items) => (0..).zip(items).any(|(i, item)| any_dim(at.then(Step::Item(i)), item, is)),
        ParamType::Record { fields, .. } => {
            (0..).zip(fields).any(|(i, (_, ty))| any_dim(at.then(Step::Field(i)), ty, is))
        }
        _ => parts(ty).into_iter().any(|(step, inner)| any_dim(at.then(step), inner, is)),
    }
}
