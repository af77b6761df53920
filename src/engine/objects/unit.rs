//! The objects that are linked together.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use object::SymbolIndex;

use super::archive::Archive;
use super::read::{ObjectFile, Strength, refused};
use crate::engine::EngineError;
use crate::lower::is_archive;
use crate::object_symbols::referrers;

/// An object or archive that kernels come with.
pub(in crate::engine) struct Input<'a> {
    /// The input in words, for messages.
    pub(in crate::engine) label: String,
    pub(in crate::engine) bytes: &'a [u8],
    /// The kernels that are taken from it.
    pub(in crate::engine) kernels: Vec<&'a str>,
}

/// Objects that are linked together.
pub(in crate::engine) struct Unit<'a> {
    pub(in crate::engine) objects: Vec<ObjectFile<'a>>,
    /// The kernels' symbols.
    pub(in crate::engine) kernels: Vec<&'a str>,
    /// The symbols that others have to define, in the order in which they are referred to.
    pub(in crate::engine) imports: Vec<Import<'a>>,
    /// The definitions of names that objects see of each other.
    pub(super) globals: HashMap<&'a str, Global>,
}

/// A symbol that no object of a unit defines.
pub(in crate::engine) struct Import<'a> {
    pub(in crate::engine) name: &'a str,
    /// Its address is 0 where nobody defines it.
    pub(in crate::engine) weak: bool,
}

/// The definition of a global symbol that counts.
#[derive(Clone, Copy)]
pub(super) struct Global {
    pub(super) object: usize,
    #[cfg_attr(not(all(feature = "cranelift", unix)), allow(dead_code))] // LLJIT finds it by its name
    pub(super) symbol: SymbolIndex,
    pub(super) strength: Strength,
    is_function: bool,
}

impl<'a> Unit<'a> {
    /// Reads the objects of kernels, and takes the members of archives that they need.
    ///
    /// # Errors
    /// An object is refused, it doesn't define its kernel, or two objects define one symbol.
    pub(in crate::engine) fn read(inputs: &[Input<'a>]) -> Result<Self, EngineError> {
        let kernels = inputs.iter().flat_map(|input| input.kernels.iter().copied()).collect();
        let mut unit = Unit { objects: Vec::new(), kernels, imports: Vec::new(), globals: HashMap::new() };
        // the objects of each input
        let mut origins = Vec::new();
        let mut archives = Vec::new();
        for (number, input) in inputs.iter().enumerate() {
            if is_archive(input.bytes) {
                archives.push((number, Archive::read(input.label.clone(), input.bytes)?));
            } else {
                unit.add(ObjectFile::read(input.label.clone(), input.bytes)?)?;
                origins.push(number);
            }
        }
        for (number, archive) in &mut archives {
            for kernel in &inputs[*number].kernels {
                if let Some(object) = archive.take(kernel)? {
                    unit.add(object)?;
                    origins.push(*number);
                }
            }
        }
        // a member may need others, of any archive
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
        for (number, input) in inputs.iter().enumerate() {
            input.kernels.iter().try_for_each(|kernel| unit.check_kernel(input, kernel, |o| origins[o] == number))?;
        }
        unit.find_imports();
        Ok(unit)
    }

    fn add(&mut self, object: ObjectFile<'a>) -> Result<(), EngineError> {
        let index = self.objects.len();
        for definition in &object.defined {
            let strength = definition.strength;
            let global =
                Global { object: index, symbol: definition.symbol, strength, is_function: definition.is_function };
            match self.globals.get_mut(definition.name) {
                None => {
                    self.globals.insert(definition.name, global);
                }
                Some(known) if known.strength == Strength::Strong && strength == Strength::Strong => {
                    return Err(EngineError::DuplicateSymbol {
                        symbol: definition.name.to_owned(),
                        first: self.objects[known.object].label.clone(),
                        second: object.label,
                    });
                }
                Some(known) if known.strength < strength => *known = global,
                Some(_) => {}
            }
        }
        self.objects.push(object);
        Ok(())
    }

    /// Whether an input defines a kernel.
    fn check_kernel(&self, input: &Input<'_>, kernel: &str, is_of: impl Fn(usize) -> bool) -> Result<(), EngineError> {
        /// The number of names that a message lists.
        const SHOWN: usize = 8;

        match self.globals.get(kernel) {
            Some(global) if is_of(global.object) && global.is_function => Ok(()),
            Some(global) if is_of(global.object) => {
                Err(refused(&input.label, format!("`{kernel}` is a variable there, and no function")))
            }
            _ => {
                let mut names: Vec<&str> = self
                    .globals
                    .iter()
                    .filter(|(_, global)| global.is_function && is_of(global.object))
                    .map(|(name, _)| *name)
                    .collect();
                names.sort_unstable();
                let more =
                    if names.len() > SHOWN { format!(" and {} more", names.len() - SHOWN) } else { String::new() };
                let names: Vec<String> = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
                let instead = match names.is_empty() {
                    true => "no function that others see".to_owned(),
                    false => format!("{}{more}", names.join(", ")),
                };
                Err(refused(&input.label, format!("it doesn't define `{kernel}`; it defines {instead}")))
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

    /// Who refers to symbols: for each name the functions and variables, with their objects.
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

#[cfg(feature = "_llvm")]
impl Unit<'_> {
    /// Refuses objects that have to be below 2 GiB, where LLJIT puts nothing.
    pub(in crate::engine) fn check_reach(&self) -> Result<(), EngineError> {
        use object::{Architecture, Object, ObjectSection, RelocationFlags, elf};

        for object in self.objects.iter().filter(|object| object.file.architecture() == Architecture::X86_64) {
            for section in object.file.sections().filter(|section| super::read::is_loaded(section.flags())) {
                let low = section.relocations().find_map(|(_, relocation)| match relocation.flags() {
                    RelocationFlags::Elf { r_type: elf::R_X86_64_32 } => Some("R_X86_64_32"),
                    RelocationFlags::Elf { r_type: elf::R_X86_64_32S } => Some("R_X86_64_32S"),
                    _ => None,
                });
                if let Some(name) = low {
                    let section = section.name().unwrap_or_default();
                    let problem = format!(
                        "section `{section}` has a relocation {name}, whose symbol has to be below 2 GiB, and the backend LLVM loads nothing there; \
                         compile the kernel with `-fPIC`"
                    );
                    return Err(refused(&object.label, problem));
                }
            }
        }
        Ok(())
    }

    /// An error of LLVM's linker with the objects that it is about.
    pub(in crate::engine) fn blame(&self, error: EngineError) -> EngineError {
        match error {
            EngineError::Link { message } => {
                let labels: Vec<&str> = self.objects.iter().map(|object| object.label.as_str()).collect();
                refused(&labels.join(", "), message)
            }
            other => other,
        }
    }
}
