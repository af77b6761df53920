//! Objects of a library in memory: all exports, and the functions that run when the library is loaded and unloaded.

use object::{Architecture, Object, ObjectSection, ObjectSymbol, SymbolSection};

use super::layout::Resolution;
use super::load::{Linker, link};
use super::read::{LISTS, refused};
use super::unit::Unit;
use crate::engine::{EngineError, KeepAlive};

/// A library in memory.
pub(in crate::engine) struct LoadedLibrary {
    /// The exported symbols, with their addresses.
    pub(in crate::engine) exports: Vec<(String, u64)>,
    /// The constructors and destructors, in the order of their lists.
    pub(in crate::engine) constructors: Vec<usize>,
    pub(in crate::engine) destructors: Vec<usize>,
    /// Generated functions `()` that call the requested functions with an argument.
    pub(in crate::engine) hooks: [usize; 2],
    pub(in crate::engine) owner: KeepAlive,
}

/// The size of a hook in bytes.
const HOOK: usize = 32;

/// The code of a function `()` that tail-calls `function(argument)`.
fn hook(architecture: Architecture, function: usize, argument: usize) -> [u8; HOOK] {
    let mut code = [0; HOOK];
    let [function, argument] = [function, argument].map(|word| (word as u64).to_le_bytes());
    match architecture {
        Architecture::Aarch64 => {
            // ldr x0, .+16; ldr x16, .+20; br x16; nop
            let instructions = [0x5800_0080u32, 0x5800_00b0, 0xd61f_0200, 0xd503_201f];
            for (place, instruction) in code.chunks_exact_mut(4).zip(instructions) {
                place.copy_from_slice(&instruction.to_le_bytes());
            }
            code[16..24].copy_from_slice(&argument);
            code[24..].copy_from_slice(&function);
        }
        _ => {
            // endbr64; movabs $argument, %rdi; movabs $function, %rax; jmp *%rax
            code[..6].copy_from_slice(&[0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0xbf]);
            code[6..14].copy_from_slice(&argument);
            code[14..16].copy_from_slice(&[0x48, 0xb8]);
            code[16..24].copy_from_slice(&function);
            code[24..26].copy_from_slice(&[0xff, 0xe0]);
        }
    }
    code
}

/// Links a library's unit into memory. `addresses` are those of its imports. `hooks` are functions, which the generated
/// hooks call with `argument`.
///
/// # Errors
/// The errors for kernels' objects, or a list of functions has other contents.
pub(in crate::engine) fn load_library(
    unit: &Unit<'_>,
    addresses: &[usize],
    hooks: [extern "C" fn(usize); 2],
    argument: usize,
) -> Result<LoadedLibrary, EngineError> {
    let finish = |linker: &Linker<'_, '_>, memory: &mut [u8]| {
        let [constructors, destructors] = LISTS.map(|list| linker.functions_of(list, memory));
        let places = [0, 1].map(|number| linker.layout.room + number * HOOK);
        for (place, function) in places.iter().zip(hooks) {
            let room = memory.get_mut(*place..place + HOOK);
            let room = room.ok_or_else(|| EngineError::internal("a hook outside of its memory"))?;
            room.copy_from_slice(&hook(linker.architecture(), function as *const () as usize, argument));
        }
        let hooks = places.map(|place| linker.base as usize + place);
        Ok((linker.exports()?, constructors?, destructors?, hooks))
    };
    let ((exports, constructors, destructors, hooks), owner) = link(unit, addresses, 2 * HOOK, finish)?;
    Ok(LoadedLibrary { exports, constructors, destructors, hooks, owner })
}

impl Linker<'_, '_> {
    fn exports(&self) -> Result<Vec<(String, u64)>, EngineError> {
        let mut exports = Vec::new();
        for (&name, global) in self.unit.globals.iter().filter(|(_, global)| global.is_exported) {
            let object = &self.unit.objects[global.object];
            let symbol =
                object.file.symbol_by_index(global.symbol).map_err(|e| refused(&object.label, e.to_string()))?;
            let address = match symbol.section() {
                SymbolSection::Section(section) if self.layout.sections.contains_key(&(global.object, section)) => {
                    self.address(Resolution::Section(global.object, section, symbol.address()))?
                }
                // common and absolute symbols are not exported
                _ => continue,
            };
            exports.push((name.to_owned(), address));
        }
        exports.sort_unstable();
        Ok(exports)
    }

    /// The functions of a list, in the order in which a linker concatenates the objects' parts of it.
    fn functions_of(&self, list: &str, memory: &[u8]) -> Result<Vec<usize>, EngineError> {
        let mut parts = Vec::new();
        for (index, object) in self.unit.objects.iter().enumerate() {
            for section in object.file.sections() {
                let Some(rest) = section.name().ok().and_then(|name| name.strip_prefix(list)) else { continue };
                let Some(&place) = self.layout.sections.get(&(index, section.index())) else { continue };
                // entries without a priority come last
                let priority = rest.strip_prefix('.').and_then(|number| number.parse::<u32>().ok()).unwrap_or(u32::MAX);
                parts.push((priority, index, place, section.size() as usize));
            }
        }
        parts.sort_by_key(|&(priority, ..)| priority);
        let mut functions = Vec::new();
        for (_, index, place, size) in parts {
            let broken = || refused(&self.unit.objects[index].label, format!("section `{list}` is broken"));
            let words = memory.get(place..place + size).ok_or_else(broken)?;
            for word in words.chunks(8) {
                let address = u64::from_le_bytes(word.try_into().map_err(|_| broken())?);
                if !self.code_of(index).iter().any(|code| code.contains(&address)) {
                    return Err(broken());
                }
                functions.push(address as usize);
            }
        }
        Ok(functions)
    }
}
