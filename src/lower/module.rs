//! Wrappers of one module, put together.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::convention::KernelReturn;
use super::device_api::System;
use super::error::{BodyMistake, LowerError};
use super::kernel::Kernel;
use super::launch;
use super::launch_description::LaunchDescription;
use super::protocol::Capabilities;
use super::unit::{OWN_SYMBOLS, Unit};
use super::{binder, constants, wrapper};
use crate::ir;
use crate::spec::Signature;
use target_lexicon::Endianness;
use tvm_ffi_runtime::abi::symbol;

/// The origin of the runtime helpers that all wrappers share.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum RuntimeHelpers {
    /// Imported as [`BIND_SYMBOL`](super::BIND_SYMBOL), [`TAKE_RESULT_SYMBOL`](super::TAKE_RESULT_SYMBOL) and
    /// [`REPORT_SYMBOL`](super::REPORT_SYMBOL), and those of launches as [`LAUNCH_SYMBOLS`](super::LAUNCH_SYMBOLS): one copy serves many modules, as in a JIT.
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
    pub(super) helpers: RuntimeHelpers,
    /// Whether threads of launches on the CPU stay from one launch to the next.
    pub(super) threads_stay: bool,
}

impl Lowering {
    /// An empty module for this machine, or another of its byte order.
    pub fn new(helpers: RuntimeHelpers) -> Self {
        Self::for_endianness(helpers, ir::HOST_ENDIANNESS)
    }

    /// An empty module for a target of this byte order (`Triple::endianness` tells it).
    pub fn for_endianness(helpers: RuntimeHelpers, endianness: Endianness) -> Self {
        let mut unit = Unit::new(endianness);
        unit.drivers.imports_helpers = helpers == RuntimeHelpers::Import;
        Lowering { unit, helpers, threads_stay: false }
    }

    /// Lets the module define the helpers of launches itself, whatever it does with the others. Without this call it is as with these.
    pub fn define_launch_helpers(&mut self) {
        self.unit.drivers.imports_helpers = false;
    }

    /// States whether the module's destructors run before its code goes. Then threads that help with launches on the CPU stay from one launch to the next, and a
    /// destructor ends them. Without this call they end with the launch.
    pub fn threads_stay(&mut self, yes: bool) {
        self.threads_stay = yes;
    }

    /// States whether the target is Windows, which has other functions for loading the drivers of devices. Without this call it is what this machine is.
    pub fn for_windows(&mut self, yes: bool) {
        self.unit.drivers.system = if yes { System::Windows } else { System::Posix };
    }

    /// Adds a wrapper, exported as [`Signature::symbol`].
    ///
    /// # Errors
    /// The name is taken, the kernel doesn't fit the signature, or its body has mistakes. The module is then as it was,
    /// but for imports and message texts that nothing uses.
    pub fn add(&mut self, signature: &Signature, kernel: &Kernel) -> Result<ir::FuncRef, LowerError> {
        let symbol = self.unit.symbol(signature);
        if self.unit.module.function_named(&symbol).is_some_and(|(_, known)| known.linkage != ir::Linkage::Import) {
            return Err(LowerError::DuplicateName { name: signature.name().to_owned() });
        }
        // some of these are defined only once all wrappers are there
        if symbol.starts_with(OWN_SYMBOLS) {
            return Err(LowerError::ReservedName { name: signature.name().to_owned(), symbol });
        }
        kernel.check(signature)?;
        kernel.check_symbol(signature, &symbol, &self.unit.module)?;
        self.all_or_nothing(signature, &symbol, |unit| wrapper::lower(unit, signature, kernel))
    }

    /// Adds a [body](Kernel::body) as a C function, exported under the signature's own name, for native code that calls it as a kernel is called
    /// by convention `flat`. It returns a status, and writes a scalar to its last parameter: `int32_t name(const char* s, size_t s_size, double* result)`.
    /// Its arguments are taken on trust. A tensor or container among them can't be passed on to a callee, as nothing tells the device
    /// or the object.
    ///
    /// # Errors
    /// As [`add`](Self::add), or the kernel is no body.
    pub fn add_c_function(&mut self, signature: &Signature, body: &Kernel) -> Result<ir::FuncRef, LowerError> {
        let symbol = signature.name();
        let known = self.unit.module.function_named(symbol);
        if known.is_some_and(|(_, known)| known.linkage != ir::Linkage::Import) {
            return Err(LowerError::DuplicateName { name: symbol.to_owned() });
        }
        body.check(signature)?;
        // the name is a kernel's, as far as the module sees
        let native = Kernel::symbol(symbol).returning(KernelReturn::Status);
        native.check(signature)?;
        native.check_symbol(signature, &self.unit.symbol(signature), &self.unit.module)?;
        self.all_or_nothing(signature, symbol, |unit| wrapper::lower_c_function(unit, signature, body))
    }

    /// Lowers a function; after an error, the module is as it was.
    fn all_or_nothing(
        &mut self,
        signature: &Signature,
        symbol: &str,
        lower: impl FnOnce(&mut Unit) -> Result<ir::FuncRef, LowerError>,
    ) -> Result<ir::FuncRef, LowerError> {
        // code before may call it already
        let imported = self.unit.module.function_named(symbol).map(|(func, _)| func);
        let before = self.unit.mark();
        self.unit.launches.clear();
        let mut result = lower(&mut self.unit);
        if !self.unit.pool.constants.is_in_reach() {
            let function = signature.name().to_owned();
            result = Err(LowerError::TooManyMessages { function, most: constants::MAX_BYTES });
        }
        if result.is_err() {
            self.unit.truncate(&before);
            if let Some(func) = imported {
                let decl = &mut self.unit.module.functions[func];
                (decl.linkage, decl.body, decl.param_facts) = (ir::Linkage::Import, None, Vec::new());
            }
        }
        result
    }

    /// The launches of the function that was added last: that of its kernel, or those of its body.
    pub fn launches(&self) -> &[LaunchDescription] {
        &self.unit.launches.described
    }

    /// The capabilities that the wrappers so far need of the runtime helpers.
    pub fn capabilities(&self) -> Capabilities {
        self.unit.pool.constants.capabilities()
    }

    /// Checks the calls by symbol of functions that the module has: each has to be one that the callee may accept. `signatures` are those of the
    /// wrappers. A mistake is told of the body that calls.
    pub fn check_calls<'s>(&self, signatures: impl IntoIterator<Item = &'s Signature>) -> Vec<LowerError> {
        if self.unit.symbol_calls.is_empty() {
            return Vec::new();
        }
        let by_name: HashMap<&str, &Signature> = signatures.into_iter().map(|s| (s.name(), s)).collect();
        let mut errors: Vec<LowerError> = Vec::new();
        for call in &self.unit.symbol_calls {
            let problem = by_name.get(call.callee.as_str()).and_then(|callee| call.problem(callee));
            let Some(problem) = problem else { continue };
            let mistake = BodyMistake { operation: format!("call of `{}`", call.callee), problem };
            let known = errors.iter_mut().find_map(|error| match error {
                LowerError::Body { function, mistakes } if *function == call.caller => Some(mistakes),
                _ => None,
            });
            match known {
                Some(mistakes) => mistakes.push(mistake),
                None => errors.push(LowerError::Body { function: call.caller.clone(), mistakes: vec![mistake] }),
            }
        }
        errors
    }

    /// The functions that bodies call by their symbols: each symbol, with the names of the functions that call it.
    pub fn called_symbols(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut called: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for call in &self.unit.symbol_calls {
            let symbol = format!("{}{}{}", symbol::FUNCTION, self.unit.prefix, call.callee);
            called.entry(symbol).or_default().insert(call.caller.clone());
        }
        called
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
        launch::define_threads(&mut self.unit.module, self.threads_stay);
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

/// The calls of a device's driver that the launches of a function are made of, in order, as text for people: that of its kernel, or those of its body. On the
/// CPU it is the prototype of the function that is called for each block. `None` for a function without launches.
///
/// # Errors
/// As [`Lowering::add`].
pub fn launch_sequence(signature: &Signature, kernel: &Kernel) -> Result<Option<String>, LowerError> {
    let mut lowering = Lowering::new(RuntimeHelpers::Import);
    lowering.unit.launches.sequences = Some(Vec::new());
    lowering.add(signature, kernel)?;
    let sequences = lowering.unit.launches.sequences.unwrap_or_default();
    Ok((!sequences.is_empty()).then(|| sequences.join("\n")))
}
