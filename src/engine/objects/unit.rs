//! The unit of linking: a set of objects.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use object::SymbolIndex;

use super::archive::Archive;
use super::read::{ObjectFile, RunsAtLoad, Strength, refused};
use crate::engine::{EngineError, UndefinedKernel};
use crate::lower::is_archive;
use crate::object_symbols::referrers;

/// A kernel's object or archive.
pub(in crate::engine) struct Input<'a> {
    /// The input in words, for messages.
    pub(in crate::engine) label: String,
    pub(in crate::engine) bytes: &'a [u8],
    /// The kernels that the input must define.
    pub(in crate::engine) kernels: Vec<&'a str>,
    /// Other functions that are taken from the input if it defines them.
    pub(in crate::engine) wanted: Vec<&'a str>,
}

/// Objects to link together.
pub(in crate::engine) struct Unit<'a> {
    pub(in crate::engine) objects: Vec<ObjectFile<'a>>,
    /// The symbols of the kernels, and of wanted functions that the objects define.
    pub(in crate::engine) kernels: Vec<&'a str>,
    /// The symbols that must be defined elsewhere, in the order of the references.
    pub(in crate::engine) imports: Vec<Import<'a>>,
    /// The definitions of global names.
    pub(super) globals: HashMap<&'a str, Global>,
}

/// A symbol that no object of a unit defines.
pub(in crate::engine) struct Import<'a> {
    pub(in crate::engine) name: &'a str,
    /// Its address is 0 if it is undefined.
    pub(in crate::engine) weak: bool,
}

/// The selected definition of a global symbol.
#[derive(Clone, Copy)]
pub(super) struct Global {
    pub(super) object: usize,
    #[cfg_attr(not(all(feature = "cranelift", unix)), allow(dead_code))] // LLJIT finds it by name
    pub(super) symbol: SymbolIndex,
    pub(super) strength: Strength,
    is_function: bool,
    #[cfg_attr(not(all(feature = "cranelift", target_os = "linux")), allow(dead_code))] // only libraries have exports
    pub(super) is_exported: bool,
}

impl<'a> Unit<'a> {
    /// Reads the objects of kernels, and takes the archive members that they need.
    ///
    /// # Errors
    /// An object is rejected, doesn't define its kernel, or defines a symbol that another object defines too.
    pub(in crate::engine) fn read(inputs: &[Input<'a>]) -> Result<Self, EngineError> {
        Self::read_with(inputs, RunsAtLoad::Nothing)
    }

    /// Reads the objects of a library, whose constructors and destructors run, and takes the archive members that they
    /// need.
    ///
    /// # Errors
    /// The errors of [`read`](Self::read).
    #[cfg(all(feature = "cranelift", target_os = "linux"))]
    pub(in crate::engine) fn of_library(inputs: &[Input<'a>]) -> Result<Self, EngineError> {
        Self::read_with(inputs, RunsAtLoad::Lists)
    }

    fn read_with(inputs: &[Input<'a>], runs: RunsAtLoad) -> Result<Self, EngineError> {
        let kernels = inputs.iter().flat_map(|input| input.kernels.iter().copied()).collect();
        let mut unit = Unit { objects: Vec::new(), kernels, imports: Vec::new(), globals: HashMap::new() };
        // the objects from each input
        let mut origins = Vec::new();
        let mut archives = Vec::new();
        for (number, input) in inputs.iter().enumerate() {
            if is_archive(input.bytes) {
                archives.push((number, Archive::read(input.label.clone(), input.bytes, runs)?));
            } else {
                unit.add(ObjectFile::read(input.label.clone(), input.bytes, runs)?)?;
                origins.push(number);
            }
        }
        for (number, archive) in &mut archives {
            for kernel in inputs[*number].kernels.iter().chain(&inputs[*number].wanted) {
                if let Some(object) = archive.take(kernel)? {
                    unit.add(object)?;
                    origins.push(*number);
                }
            }
        }
        // a member may need other members, of any archive
        let mut looked = 0;
        while let Some(object) = unit.objects.get(looked) {
            looked += 1;
            let names: Vec<&str> = object.undefined.iter().filter(|symbol| !symbol.weak).map(|s| s.name).collect();
            for name in names {
                for (number, archive) in &mut archives {
                    if !unit.globals.contains_key(name)
                        && let Some(object) = archive.take(name)?
                    {
                        unit.add(object)?;
                        origins.push(*number);
                    }
                }
            }
        }
        let mut undefined = Vec::new();
        for (number, input) in inputs.iter().enumerate() {
            for kernel in &input.kernels {
                undefined.extend(unit.check_kernel(input, kernel, |object| origins.get(object) == Some(&number))?);
            }
        }
        if !undefined.is_empty() {
            return Err(EngineError::UndefinedKernels { kernels: undefined });
        }
        for wanted in inputs.iter().flat_map(|input| &input.wanted) {
            let is_function = unit.globals.get(wanted).is_some_and(|global| global.is_function);
            if is_function && !unit.kernels.contains(wanted) {
                unit.kernels.push(wanted);
            }
        }
        unit.find_imports();
        Ok(unit)
    }

    fn add(&mut self, object: ObjectFile<'a>) -> Result<(), EngineError> {
        let index = self.objects.len();
        let label = |of: usize| self.objects.get(of).map_or(&object.label, |known| &known.label).clone();
        for definition in &object.defined {
            let strength = definition.strength;
            let global = Global {
                object: index,
                symbol: definition.symbol,
                strength,
                is_function: definition.is_function,
                is_exported: definition.is_exported,
            };
            match self.globals.get_mut(definition.name) {
                None => {
                    self.globals.insert(definition.name, global);
                }
                Some(known) if known.strength == Strength::Strong && strength == Strength::Strong => {
                    return Err(EngineError::DuplicateSymbol {
                        symbol: definition.name.to_owned(),
                        first: label(known.object),
                        second: label(index),
                    });
                }
                Some(known) if known.strength < strength => *known = global,
                Some(_) => {}
            }
        }
        self.objects.push(object);
        Ok(())
    }

    /// Describes a kernel that an input doesn't define, for the error.
    fn check_kernel(
        &self,
        input: &Input<'_>,
        kernel: &str,
        is_of: impl Fn(usize) -> bool,
    ) -> Result<Option<UndefinedKernel>, EngineError> {
        match self.globals.get(kernel) {
            Some(global) if is_of(global.object) && global.is_function => Ok(None),
            Some(global) if is_of(global.object) => {
                Err(refused(&input.label, format!("`{kernel}` is a variable there, not a function")))
            }
            _ => {
                let functions = self.globals.iter().filter(|(_, global)| global.is_function && is_of(global.object));
                let mut defined: Vec<String> = functions.map(|(name, _)| (*name).to_owned()).collect();
                defined.sort_unstable();
                Ok(Some(UndefinedKernel { symbol: kernel.to_owned(), object: input.label.clone(), defined }))
            }
        }
    }

    fn find_imports(&mut self) {
        let mut strong: HashSet<&str> = HashSet::new();
        let mut names = Vec::new();
        let mut seen: HashSet<&str> = HashSet::new();
        for symbol in self.objects.iter().flat_map(|object| &object.undefined) {
            if self.globals.contains_key(symbol.name) {
                continue;
            }
            if !symbol.weak {
                strong.insert(symbol.name);
            }
            if seen.insert(symbol.name) {
                names.push(symbol.name);
            }
        }
        self.imports = names.into_iter().map(|name| Import { name, weak: !strong.contains(name) }).collect();
    }

    /// The functions and variables that refer to each of these names, with their objects.
    pub(in crate::engine) fn referrers(&self, names: &[String]) -> BTreeMap<String, BTreeSet<String>> {
        let wanted: BTreeSet<&str> = names.iter().map(String::as_str).collect();
        let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for object in &self.objects {
            for (name, places) in referrers(&object.file, &wanted) {
                let places = places.into_iter().map(|place| format!("`{place}` of {}", object.label));
                all.entry(name).or_default().extend(places);
            }
        }
        all
    }
}
