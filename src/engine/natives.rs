//! The code that kernels come with, for one compilation: told apart, compiled where it is LLVM's IR, and linked.

use std::borrow::Cow;
use std::sync::Arc;

use super::code::KeepAlive;
use super::error::EngineError;
use super::jit::Jit;
use super::objects::{Input, LoadedObjects, Unit};
use crate::ir::FuncDecl;
use crate::lower::{Kernel, NativeCode};

/// The code that the kernels of one compilation come with.
#[derive(Default)]
pub(super) struct Natives {
    /// Code with the kernels that it has, each piece once.
    brought: Vec<(NativeCode, Vec<String>)>,
    owners: Vec<KeepAlive>,
}

/// Symbols and owners for the wrappers' code.
#[derive(Default)]
pub(super) struct LinkedNatives {
    pub(super) symbols: Vec<(String, *const u8)>,
    pub(super) keep_alive: Vec<KeepAlive>,
}

impl Natives {
    pub(super) fn add(&mut self, kernel: &Kernel) {
        self.owners.extend(kernel.owners().iter().map(Arc::clone));
        let Some((code, symbol)) = kernel.native_code() else { return };
        match self.brought.iter_mut().find(|(known, _)| known == code) {
            Some((_, kernels)) if kernels.iter().any(|known| known == symbol) => {}
            Some((_, kernels)) => kernels.push(symbol.to_owned()),
            None => self.brought.push((code.clone(), vec![symbol.to_owned()])),
        }
    }

    /// Loads the code. `imports` are the functions that the wrappers import, and `known` gives symbols that come before the JIT's.
    ///
    /// # Errors
    /// Code is refused, or symbols are missing: those of the code, and with them those that the wrappers import.
    pub(super) fn link(
        self,
        jit: &Jit,
        imports: &[&FuncDecl],
        known: &dyn Fn(&str) -> Option<(*const u8, KeepAlive)>,
    ) -> Result<LinkedNatives, EngineError> {
        let mut linked = LinkedNatives { symbols: Vec::new(), keep_alive: self.owners };
        if self.brought.is_empty() {
            return Ok(linked);
        }
        let objects = self.brought.iter().map(|(code, kernels)| {
            let of_code = imports.iter().copied().filter(|import| kernels.contains(&import.name)).collect::<Vec<_>>();
            object(jit, code, &of_code, &label(code, kernels))
        });
        let objects = objects.collect::<Result<Vec<Cow<'_, [u8]>>, EngineError>>()?;
        let inputs: Vec<Input<'_>> = self
            .brought
            .iter()
            .zip(&objects)
            .map(|((code, kernels), bytes)| Input {
                label: label(code, kernels),
                bytes,
                kernels: kernels.iter().map(String::as_str).collect(),
            })
            .collect();
        let unit = Unit::read(&inputs)?;
        let mut missing = Vec::new();
        let mut addresses = Vec::with_capacity(unit.imports.len());
        for import in &unit.imports {
            let given = || jit.symbols().resolve(import.name).map(|address| (address, None));
            let found = known(import.name).map(|(address, keep)| (address, Some(keep)));
            match found.or_else(given) {
                Some((address, keep)) => {
                    addresses.push(address.expose_provenance());
                    linked.keep_alive.extend(keep);
                }
                None if import.weak => addresses.push(0),
                None => missing.push(import.name.to_owned()),
            }
        }
        if !missing.is_empty() {
            let references = unit.referrers(&missing);
            // the wrappers' own wait for the next error otherwise
            let unknown = |name: &str| jit.symbols().resolve(name).is_none() && known(name).is_none();
            let own = imports.iter().map(|import| &import.name).filter(|name| !unit.kernels.contains(&name.as_str()));
            let own: Vec<String> = own.filter(|name| unknown(name) && !missing.contains(name)).cloned().collect();
            return Err(EngineError::Unresolved {
                names: [missing, own].concat(),
                callers: Default::default(),
                references,
            });
        }
        let LoadedObjects { symbols, owner } = jit.load_objects(&unit, &addresses)?;
        let symbol = |(name, address)| (name, std::ptr::with_exposed_provenance(address));
        linked.symbols = symbols.into_iter().map(symbol).collect();
        linked.keep_alive.push(owner);
        Ok(linked)
    }
}

/// The code in words.
fn label(code: &NativeCode, kernels: &[String]) -> String {
    let names: Vec<String> = kernels.iter().map(|name| format!("`{name}`")).collect();
    let plural = if names.len() == 1 { "" } else { "s" };
    format!("the {} of kernel{plural} {}", code.name(), names.join(", "))
}

/// The code as a relocatable object or an archive. LLVM's IR has to have the kernels by the prototypes that wrappers call them by.
#[cfg_attr(not(feature = "_llvm"), allow(unused_variables))] // LLVM compiles
fn object<'c>(
    jit: &Jit,
    code: &'c NativeCode,
    kernels: &[&FuncDecl],
    label: &str,
) -> Result<Cow<'c, [u8]>, EngineError> {
    match code {
        NativeCode::Object(bytes) => Ok(Cow::Borrowed(bytes)),
        #[cfg(feature = "_llvm")]
        NativeCode::LlvmIr(text) => jit.compile_llvm(text.as_bytes(), kernels, label).map(Cow::Owned),
        #[cfg(feature = "_llvm")]
        NativeCode::Bitcode(bytes) => jit.compile_llvm(bytes, kernels, label).map(Cow::Owned),
    }
}
