//! The parts of a value, by the type that a body states.

use super::args::{Args, Origin};
use super::calls::Owned;
use super::function::{BodyLowerer, FlatValues};
use super::scope::Scope;
use crate::ir::Value;
use crate::lower::encode::{Subject, shown};
use crate::lower::value::{self, Expected, Known};
use crate::spec::ParamType;

impl BodyLowerer<'_> {
    /// The parts of an owned value, by the type that it has to have. `relation` stands between the path and the function in messages.
    pub(super) fn checked_value(
        &mut self,
        owned: Owned<'_>,
        path: &str,
        relation: &str,
        ty: &ParamType,
    ) -> Result<Args, String> {
        let expected = Expected {
            values: vec![(path.to_owned(), ty.clone())],
            place: format!("{relation} `{}`", shown(self.signature, Subject::Call)),
            dtype_policy: self.signature.dtype_policy(),
            known: Vec::new(),
        };
        self.checked_values(expected, owned.any, path, ty, owned.scope)
    }

    /// The parts of the value at an address, by the type that it has to have, in a function that knows its own symbols.
    pub(super) fn checked_values(
        &mut self,
        expected: Expected<'static>,
        any: Value,
        path: &str,
        ty: &ParamType,
        scope: Scope,
    ) -> Result<Args, String> {
        let mut args = Args::of_value(path, ty, scope);
        args.any = Some(any);
        if *ty == ParamType::Any {
            self.bind_value(path, ty, vec![any], Vec::new(), &mut args);
            return Ok(args);
        }
        let known = self.known_symbols(ty);
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
        let bound = checked.symbols.into_iter().map(|bound| (bound.name, bound.value)).collect();
        self.bind_value(path, ty, checked.values.concat(), bound, &mut args);
        Ok(args)
    }

    /// Gives a part its meaning: as of a parameter, with the symbols that it has bound.
    pub(super) fn bind_value(
        &mut self,
        path: &str,
        ty: &ParamType,
        values: Vec<Value>,
        bound: Vec<(String, Value)>,
        args: &mut Args,
    ) {
        let before: Vec<_> = bound.iter().map(|(name, _)| (name.clone(), self.symbol(name))).collect();
        for (name, value) in bound {
            self.set_symbol(&name, Some(value));
        }
        self.arg(path, ty, &mut FlatValues::new(values), args);
        self.shapes(args);
        // the symbols of a value are known by its sizes
        for (name, value) in before {
            self.set_symbol(&name, value);
        }
        if let Some(any) = args.any {
            args.whole_tensor_is(Origin::Object(any));
        }
    }

    /// The symbols that a type mentions and that the body knows: name, origin, value.
    pub(super) fn known_symbols(&self, ty: &ParamType) -> Vec<(String, String, Value)> {
        let mut names: Vec<String> = Vec::new();
        ty.for_each_dim(&mut |dim| {
            dim.for_each_symbol(&mut |symbol| {
                if !names.iter().any(|name| *name == symbol) {
                    names.push(symbol.to_owned());
                }
            });
        });
        let known = |name: String| {
            let value = self.symbol(&name)?;
            let origin = value::origin(self.signature, &name);
            Some((name, origin, value))
        };
        names.into_iter().filter_map(known).collect()
    }
}
