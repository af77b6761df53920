//! Wrappers of one module, put together.

use super::error::LowerError;
use super::kernel::Kernel;
use super::protocol::Capabilities;
use super::unit::{OWN_SYMBOLS, Unit};
use super::{binder, constants, wrapper};
use crate::ir;
use crate::spec::Signature;
use target_lexicon::Endianness;

/// The origin of the runtime helpers that all wrappers share.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum RuntimeHelpers {
    /// Imported as [`BIND_SYMBOL`](super::BIND_SYMBOL), [`TAKE_RESULT_SYMBOL`](super::TAKE_RESULT_SYMBOL) and
    /// [`REPORT_SYMBOL`](super::REPORT_SYMBOL): one copy serves many modules, as in a JIT.
    #[default]
    Import,
    /// Defined in the module itself once it is complete, as far as its wrappers use them, and unseen outside: for objects and modules that
    /// stand alone.
    Define,
}

/// Lowers wrappers into one IR module, in which they share their message texts.
#[derive(Debug)]
pub struct Lowering {
    pub(super) unit: Unit,
    helpers: RuntimeHelpers,
}

impl Lowering {
    /// An empty module for this machine, or another of its byte order.
    pub fn new(helpers: RuntimeHelpers) -> Self {
        Self::for_endianness(helpers, ir::HOST_ENDIANNESS)
    }

    /// An empty module for a target of this byte order (`Triple::endianness` tells it).
    pub fn for_endianness(helpers: RuntimeHelpers, endianness: Endianness) -> Self {
        Lowering { unit: Unit::new(endianness), helpers }
    }

    /// Adds a wrapper, exported as [`Signature::symbol`].
    ///
    /// # Errors
    /// The name is taken, the kernel doesn't fit the signature, or its body has mistakes. The module is then as it was,
    /// but for imports and message texts that nothing uses.
    pub fn add(&mut self, signature: &Signature, kernel: &Kernel) -> Result<ir::FuncRef, LowerError> {
        let symbol = self.unit.symbol(signature);
        if self.unit.module.function_named(&symbol).is_some() {
            return Err(LowerError::DuplicateName { name: signature.name().to_owned() });
        }
        // some of these are defined only once all wrappers are there
        if symbol.starts_with(OWN_SYMBOLS) {
            return Err(LowerError::ReservedName { name: signature.name().to_owned(), symbol });
        }
        kernel.check(signature)?;
        kernel.check_symbol(signature, &symbol, &self.unit.module)?;
        let declared = self.unit.module.functions.len();
        let mut result = wrapper::lower(&mut self.unit, signature, kernel);
        if !self.unit.pool.constants.is_in_reach() {
            let function = signature.name().to_owned();
            result = Err(LowerError::TooManyMessages { function, most: constants::MAX_BYTES });
        }
        if result.is_err() {
            // functions are only ever appended, so that this takes back what the wrapper declared
            self.unit.module.truncate_functions(declared);
        }
        result
    }

    /// The capabilities that the wrappers so far need of the runtime helpers.
    pub fn capabilities(&self) -> Capabilities {
        self.unit.pool.constants.capabilities()
    }

    /// Whether a wrapper so far calls `bind` in every call, and not only on its slow path.
    pub fn always_binds(&self) -> bool {
        self.unit.always_binds
    }

    /// The module, complete.
    pub fn finish(mut self) -> ir::Module {
        if self.helpers == RuntimeHelpers::Define {
            let Unit { module, pool, .. } = &mut self.unit;
            binder::define(module, ir::Linkage::Local, pool.data, &mut pool.constants);
        }
        self.unit.finish()
    }
}

/// Lowers one wrapper to a module of its own.
///
/// # Errors
/// As [`Lowering::add`].
pub fn lower(signature: &Signature, kernel: &Kernel, helpers: RuntimeHelpers) -> Result<ir::Module, LowerError> {
    let mut lowering = Lowering::new(helpers);
    lowering.add(signature, kernel)?;
    Ok(lowering.finish())
}
