//! The native code of kernels in one compilation: identified, compiled if it is LLVM IR, and linked.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use tvm_ffi_runtime::abi::symbol::FUNCTION;

use super::code::KeepAlive;
use super::error::EngineError;
use super::jit::Jit;
use super::objects::{Input, LoadedObjects, Unit};
use crate::ir::FuncDecl;
use crate::lower::{Kernel, NativeCode};

/// The native code of the kernels in one compilation.
#[derive(Default)]
pub(super) struct Natives {
    /// Each piece of code once, with the kernels that it contains.
    brought: Vec<(NativeCode, Vec<String>)>,
    /// The symbols of kernels whose code may lie in objects beside them.
    wanted: Vec<String>,
    /// Addresses of symbols that the code refers to.
    given: BTreeMap<String, u64>,
    /// A symbol for which two kernels give different addresses.
    contradicted: Option<(String, [u64; 2])>,
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
        for (name, address) in kernel.given_symbols() {
            let known = *self.given.entry(name.clone()).or_insert(*address);
            if known != *address {
                self.contradicted.get_or_insert_with(|| (name.clone(), [known, *address]));
            }
        }
        for beside in kernel.code_beside() {
            if self.brought.iter().all(|(known, _)| known != beside) {
                self.brought.push((beside.clone(), Vec::new()));
            }
        }
        if !kernel.code_beside().is_empty() {
            self.wanted.extend(kernel.symbol_name().map(str::to_owned));
        }
        let Some((code, symbol)) = kernel.native_code() else { return };
        match self.brought.iter_mut().find(|(known, _)| known == code) {
            Some((_, kernels)) if kernels.iter().any(|known| known == symbol) => {}
            Some((_, kernels)) => kernels.push(symbol.to_owned()),
            None => self.brought.push((code.clone(), vec![symbol.to_owned()])),
        }
    }

    /// Loads the code. `imports` are the functions that the wrappers import. Symbols in `known` take precedence over
    /// the JIT's.
    ///
    /// # Errors
    /// Code is rejected, or symbols are missing. Missing symbols of the code and of the wrappers' imports are reported
    /// together.
    pub(super) fn link(
        self,
        jit: &Jit,
        imports: &[&FuncDecl],
        known: &dyn Fn(&str) -> Option<(*const u8, KeepAlive)>,
    ) -> Result<LinkedNatives, EngineError> {
        if let Some((symbol, [first, second])) = self.contradicted {
            let [first, second] = [first, second].map(|address| format!("the address {address:#x}"));
            return Err(EngineError::DuplicateSymbol { symbol, first, second });
        }
        let given =
            |name: &str| self.given.get(name).map(|address| std::ptr::with_exposed_provenance::<u8>(*address as usize));
        let mut linked = LinkedNatives { symbols: Vec::new(), keep_alive: self.owners };
        if self.brought.is_empty() {
            linked.symbols.extend(self.given.keys().filter_map(|name| Some((name.clone(), given(name)?))));
            return Ok(linked);
        }
        let objects = self.brought.iter().map(|(code, kernels)| {
            let of_code = imports.iter().copied().filter(|import| kernels.contains(&import.name)).collect::<Vec<_>>();
            object(jit, code, &of_code, &label(code, kernels))
        });
        let objects = objects.collect::<Result<Vec<Cow<'_, [u8]>>, EngineError>>()?;
        // bodies call functions by their symbols
        let is_called = |name: &str| name.starts_with(FUNCTION) || self.wanted.iter().any(|wanted| wanted == name);
        let wanted = imports.iter().map(|import| import.name.as_str()).filter(|name| is_called(name));
        let wanted: Vec<&str> = wanted.collect();
        let inputs: Vec<Input<'_>> = self
            .brought
            .iter()
            .zip(&objects)
            .map(|((code, kernels), bytes)| Input {
                label: label(code, kernels),
                bytes,
                kernels: kernels.iter().map(String::as_str).collect(),
                wanted: wanted.clone(),
            })
            .collect();
        let unit = Unit::read(&inputs)?;
        let mut missing = Vec::new();
        let mut addresses = Vec::with_capacity(unit.imports.len());
        for import in &unit.imports {
            let of_kernels = given(import.name).map(|address| (address, None));
            let of_engine = || jit.symbols().resolve(import.name).map(|address| (address, None));
            let compiled = || known(import.name).map(|(address, keep)| (address, Some(keep)));
            match of_kernels.or_else(compiled).or_else(of_engine) {
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
            // report the wrappers' missing symbols now, rather than in a later error
            let unknown =
                |name: &str| given(name).is_none() && jit.symbols().resolve(name).is_none() && known(name).is_none();
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
        // the code's own definitions take precedence
        linked.symbols.extend(self.given.keys().filter_map(|name| Some((name.clone(), given(name)?))));
        linked.keep_alive.push(owner);
        Ok(linked)
    }
}

/// Describes the code for messages.
fn label(code: &NativeCode, kernels: &[String]) -> String {
    if kernels.is_empty() {
        return format!("the {} beside the kernels' code", code.name());
    }
    let names: Vec<String> = kernels.iter().map(|name| format!("`{name}`")).collect();
    let plural = if names.len() == 1 { "" } else { "s" };
    format!("the {} of kernel{plural} {}", code.name(), names.join(", "))
}

/// The code as a relocatable object or an archive. In LLVM IR, the kernels must have the prototypes with which wrappers
/// call them.
#[cfg_attr(not(feature = "_llvm"), allow(unused_variables))] // only LLVM compiles
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
