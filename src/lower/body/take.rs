//! Access to the parts of a value, given the type that a body states.

use super::args::{Args, Origin};
use super::function::{BodyLowerer, FlatValues};
use super::life::Life;
use crate::ir::Value;
use crate::lower::encode::{Subject, shown};
use crate::lower::value::{self, Expected, Known};
use crate::spec::ParamType;

/// A value that a body takes from elsewhere.
#[derive(Clone, Copy)]
pub(super) struct Taken {
    /// The address of its `TVMFFIAny`.
    pub any: Value,
    /// The time for which its parts are usable.
    pub life: Life,
    /// Whether the body owns it.
    pub is_owned: bool,
}

impl BodyLowerer<'_> {
    /// Checks a value against a type and returns its parts. In messages, `relation` stands between the path and the
    /// function.
    pub(super) fn checked_value(
        &mut self,
        value: Taken,
        path: &str,
        relation: &str,
        ty: &ParamType,
    ) -> Result<Args, String> {
        let expected = Expected {
            values: vec![(path.to_owned(), ty.clone())],
            place: format!("{relation} `{}`", self.caller(|signature| shown(signature, Subject::Call))),
            dtype_policy: self.signature.dtype_policy(),
            known: Vec::new(),
        };
        self.checked_values(expected, value, path, ty)
    }

    /// Checks the value at an address against a type and returns its parts. The function's own variables are known to
    /// the checks.
    pub(super) fn checked_values(
        &mut self,
        expected: Expected<'static>,
        value: Taken,
        path: &str,
        ty: &ParamType,
    ) -> Result<Args, String> {
        let any = value.any;
        let mut args = Args::of_value(path, ty, value.life);
        args.any = Some(any);
        if *ty == ParamType::Any {
            self.bind_value((path, value), ty, vec![any], Vec::new(), &mut args);
            return Ok(args);
        }
        let known = self.known_vars(ty);
        let known = known.iter().map(|(name, origin, value)| Known { name, origin, value: *value });
        let expected = expected.knowing(known);
        let mut refused = None;
        let checked = self.checks.check(&mut self.b, self.pool, &expected, any, |b, code, copy| {
            refused = Some((b.current(), code, copy));
        })?;
        if let Some((block, code, copy)) = refused {
            let here = self.b.current();
            self.b.switch_to(block);
            self.exit_with_copy(any, copy, code);
            self.b.switch_to(here);
        }
        let bound = checked.vars.into_iter().map(|bound| (bound.name, bound.value)).collect();
        self.bind_value((path, value), ty, checked.values.concat(), bound, &mut args);
        Ok(args)
    }

    /// Adds a checked value like a parameter, with the variables that it has bound.
    fn bind_value(
        &mut self,
        (path, value): (&str, Taken),
        ty: &ParamType,
        values: Vec<Value>,
        bound: Vec<(String, Value)>,
        args: &mut Args,
    ) {
        let before: Vec<_> = bound.iter().map(|(name, _)| (name.clone(), self.var(name))).collect();
        for (name, value) in bound {
            self.set_var(&name, Some(value));
        }
        self.arg(path, ty, &mut FlatValues::new(values), args);
        self.shapes(args);
        // restore the function's own variables: those of the value are known only through its sizes
        for (name, value) in before {
            self.set_var(&name, value);
        }
        for (place, vars) in args.tensors_mut() {
            vars.origin = match place.strip_prefix(path).filter(|items| !items.is_empty()) {
                None if value.is_owned => Origin::Object(value.any),
                None => Origin::Value(value.any),
                // an item of an optional tuple has no address, so using it as an argument is an error
                Some(items) => self.item(value.any, items, ty).map_or(Origin::Argument, Origin::Value),
            };
        }
    }

    /// The variables that the type mentions and the body knows: name, origin, value.
    pub(super) fn known_vars(&self, ty: &ParamType) -> Vec<(String, String, Value)> {
        let mut names: Vec<String> = Vec::new();
        ty.for_each_dim(&mut |dim| {
            dim.for_each_var(&mut |var| {
                if !names.iter().any(|name| *name == var) {
                    names.push(var.to_owned());
                }
            });
        });
        let known = |name: String| {
            let value = self.var(&name)?;
            let origin = value::origin(self.signature, &name);
            Some((name, origin, value))
        };
        names.into_iter().filter_map(known).collect()
    }
}
