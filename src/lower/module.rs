//! Assembles the wrappers of one module.

use std::collections::HashMap;

use super::convention::KernelReturn;
use super::device_api::System;
use super::error::{BodyError, LowerError};
use super::kernel::Kernel;
use super::unit::{OWN_SYMBOLS, Unit};
use super::{binder, constants, wrapper};
use crate::ir;
use crate::spec::Signature;
use target_lexicon::Triple;

/// Where the runtime helpers come from that all wrappers share.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum RuntimeHelpers {
    /// Imported as [`BIND_SYMBOL`](super::BIND_SYMBOL), [`TAKE_RESULT_SYMBOL`](super::TAKE_RESULT_SYMBOL) and
    /// [`REPORT_SYMBOL`](super::REPORT_SYMBOL), and the launch helpers as [`LAUNCH_SYMBOLS`](super::LAUNCH_SYMBOLS).
    /// One copy serves many modules, as in a JIT.
    #[default]
    Import,
    /// Launch helpers are defined in the module, the others imported: for a module that is loaded next to a copy of the
    /// others.
    DefineForLaunches,
    /// Defined in the completed module with local linkage, if its wrappers use them: for objects and modules without
    /// other modules.
    Define,
}

/// Lowers functions into one IR module with shared message strings.
#[derive(Debug)]
pub(super) struct Lowering {
    pub(super) unit: Unit,
    helpers: RuntimeHelpers,
}

impl Lowering {
    /// An empty module for a target. Only two properties of the target matter: its byte order, and whether it is
    /// Windows, which has other functions for loading device drivers. An unknown byte order counts as this machine's.
    pub(super) fn new(target: &Triple, prefix: &str, helpers: RuntimeHelpers) -> Self {
        let mut unit = Unit::new(target.endianness().unwrap_or(ir::HOST_ENDIANNESS));
        unit.drivers.system = System::of(target);
        unit.drivers.imports_helpers = helpers == RuntimeHelpers::Import;
        prefix.clone_into(&mut unit.prefix);
        Lowering { unit, helpers }
    }

    /// Adds a wrapper, exported as [`Signature::symbol`].
    ///
    /// # Errors
    /// The name is taken, the kernel doesn't fit the signature, or its body has errors. Afterwards you can only use the
    /// module to find further errors.
    pub(super) fn add(&mut self, signature: &Signature, kernel: &Kernel) -> Result<ir::FuncRef, LowerError> {
        let symbol = self.unit.symbol(signature);
        if self.unit.module.function_named(&symbol).is_some_and(|(_, known)| known.linkage != ir::Linkage::Import) {
            return Err(LowerError::DuplicateName { name: signature.name().to_owned() });
        }
        // some of these are defined only after all wrappers
        if symbol.starts_with(OWN_SYMBOLS) {
            return Err(LowerError::ReservedName { name: signature.name().to_owned(), symbol });
        }
        kernel.check(signature)?;
        kernel.check_symbol(signature, &symbol, &self.unit.module)?;
        self.in_reach(signature, |unit| wrapper::lower(unit, signature, kernel))
    }

    /// Adds a [body](Kernel::body) as a C function, exported under the signature's own name. Native code calls it in
    /// the same way as a kernel of convention `flat`. It returns a status, and writes a scalar to its last parameter:
    /// `int32_t name(const char* s, size_t s_size, double* result)`. It doesn't check its arguments. A tensor or
    /// container among them can't be passed on to a callee, because the device or the object isn't known.
    ///
    /// # Errors
    /// The same as for [`add`](Self::add), or the kernel isn't a body.
    pub(super) fn add_c_function(&mut self, signature: &Signature, body: &Kernel) -> Result<ir::FuncRef, LowerError> {
        let symbol = self.unit.c_symbol(signature);
        let known = self.unit.module.function_named(&symbol);
        if known.is_some_and(|(_, known)| known.linkage != ir::Linkage::Import) {
            return Err(LowerError::DuplicateName { name: symbol });
        }
        body.check(signature)?;
        // from the module's point of view, the name is a kernel's
        let native = Kernel::symbol(symbol.clone()).returns(KernelReturn::Status);
        native.check(signature)?;
        native.check_symbol(signature, &self.unit.symbol(signature), &self.unit.module)?;
        self.in_reach(signature, |unit| wrapper::lower_c_function(unit, signature, body))
    }

    /// Lowers a function. Fails if the module's messages then exceed what its tables can address.
    fn in_reach(
        &mut self,
        signature: &Signature,
        lower: impl FnOnce(&mut Unit) -> Result<ir::FuncRef, LowerError>,
    ) -> Result<ir::FuncRef, LowerError> {
        self.unit.launches.clear();
        let func = lower(&mut self.unit)?;
        if self.unit.pool.constants.is_in_reach() {
            return Ok(func);
        }
        Err(LowerError::TooManyMessages { function: signature.name().to_owned(), max: constants::MAX_BYTES })
    }

    /// Checks calls by symbol of functions in the module: the callee must be able to accept each call. `signatures` are
    /// those of the wrappers. An error is reported for the calling body.
    pub(super) fn check_calls<'s>(&self, signatures: impl IntoIterator<Item = &'s Signature>) -> Vec<LowerError> {
        if self.unit.symbol_calls.is_empty() {
            return Vec::new();
        }
        let by_name: HashMap<&str, &Signature> = signatures.into_iter().map(|s| (s.name(), s)).collect();
        let mut errors: Vec<LowerError> = Vec::new();
        for call in &self.unit.symbol_calls {
            let problem = by_name.get(call.callee.as_str()).and_then(|callee| call.problem(callee));
            let Some(problem) = problem else { continue };
            let operation = format!("call of `{}`", call.callee);
            let error = BodyError { operation, problem, location: call.location.clone(), place: None };
            let known = errors.iter_mut().find_map(|error| match error {
                LowerError::Body { function, errors } if *function == call.caller => Some(errors),
                _ => None,
            });
            match known {
                Some(errors) => errors.push(error),
                None => errors.push(LowerError::Body { function: call.caller.clone(), errors: vec![error] }),
            }
        }
        errors
    }

    /// The completed module.
    pub(super) fn finish(mut self) -> ir::Module {
        if self.helpers == RuntimeHelpers::Define {
            let Unit { module, pool, .. } = &mut self.unit;
            binder::define(module, ir::Linkage::Local, pool.data, &mut pool.constants);
        }
        self.unit.finish()
    }
}
