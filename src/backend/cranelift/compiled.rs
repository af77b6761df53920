//! Machine code of a module with relocations, in separate buffers.

use std::fmt;
use std::num::NonZeroUsize;

use cranelift_codegen::binemit::Reloc;
use cranelift_codegen::ir as clif;
use cranelift_codegen::isa::unwind::UnwindInfo;
use cranelift_entity::PrimaryMap;
use cranelift_module::{DataDescription, Init, ModuleReloc, ModuleRelocTarget};

use super::translate::FUNCTIONS;
use crate::backend::Lines;
use crate::ir::{FuncRef, Linkage, LocationData, LocationRef};

/// Optional outputs of [`Compiler::compile`](super::Compiler::compile), and its limits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Keep each function's CLIF and the listing of its machine code.
    pub disasm: bool,
    /// Keep each function's unwind information, for writing `.eh_frame` or similar tables.
    pub unwind: bool,
    /// The maximum number of threads; by default the machine's number of CPUs. Additional threads are used only for
    /// modules with enough instructions. The result doesn't depend on the number.
    pub threads: Option<NonZeroUsize>,
}

/// A function of a [`CompiledModule`].
#[non_exhaustive]
pub struct CompiledFunction {
    /// The symbol's name.
    pub name: String,
    /// The symbol's linkage.
    pub linkage: Linkage,
    /// The signature, as Cranelift knows it.
    pub signature: clif::Signature,
    /// Machine code with its constants, not relocated; empty for an import.
    pub code: Vec<u8>,
    /// Alignment of the code in bytes.
    pub align: u32,
    /// Whether the module's code refers to it.
    pub used: bool,
    /// Whether the function is rarely called.
    pub cold: bool,
    /// CLIF and machine code as text, if asked for.
    pub disasm: Option<String>,
    /// Unwind information, if asked for.
    pub unwind: Option<UnwindInfo>,
    /// The code ranges that have source locations, in address order.
    pub lines: Vec<Lines>,
    /// The first source location in the function.
    pub first_location: Option<LocationRef>,
    /// Names are provisional: functions of the IR in namespace 0, the module's data in namespace 1.
    pub(super) relocs: Vec<ModuleReloc>,
}

impl fmt::Debug for CompiledFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompiledFunction")
            .field("name", &self.name)
            .field("linkage", &self.linkage)
            .field("signature", &self.signature)
            .field("size", &self.code.len())
            .finish_non_exhaustive()
    }
}

/// A contiguous object of static data.
pub(super) struct CompiledData {
    /// The symbol, for a variable; other data has none.
    pub(super) variable: Option<String>,
    /// Whether it is written while the code lives.
    pub(super) writable: bool,
    /// Contents and alignment.
    pub(super) description: DataDescription,
    /// The offsets at which addresses of functions are stored, and these functions.
    pub(super) addresses: Vec<(u32, FuncRef)>,
}

impl CompiledData {
    pub(super) fn new(bytes: Vec<u8>, align: u32) -> Self {
        let mut description = DataDescription::new();
        description.define(bytes.into_boxed_slice());
        description.set_align(u64::from(align));
        CompiledData { variable: None, writable: false, description, addresses: Vec::new() }
    }

    /// Zero-initialised local data that code writes.
    pub(super) fn state(size: usize, align: u32) -> Self {
        let mut data = Self::new(Vec::new(), align);
        data.description.init = Init::Zeros { size };
        data.writable = true;
        data
    }

    fn size(&self) -> usize {
        self.description.init.size()
    }

    pub(super) fn is_zero(&self) -> bool {
        match &self.description.init {
            Init::Bytes { contents } => contents.iter().all(|byte| *byte == 0),
            Init::Zeros { .. } | Init::Uninitialized => true,
        }
    }
}

/// Machine code of a whole module, independent of where it will be loaded.
pub struct CompiledModule {
    /// One for each function of the IR, including imports, with the IR's index.
    pub(super) functions: Vec<CompiledFunction>,
    /// All static data. Code refers to offsets in these objects.
    pub(super) data: Vec<CompiledData>,
    /// The source locations that the code has.
    pub locations: PrimaryMap<LocationRef, LocationData>,
    /// Functions that run at start-up.
    pub(super) constructors: Vec<FuncRef>,
    /// Functions that run when the code is unloaded.
    pub(super) destructors: Vec<FuncRef>,
    /// The part of the module that only an object file supports, in words.
    pub(super) only_in_objects: Option<String>,
    pub(super) libcalls: Vec<clif::LibCall>,
    /// The target that the code was compiled for; see [`isa_identity`](super::isa_identity).
    pub(super) isa: String,
}

impl fmt::Debug for CompiledModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.functions.iter().map(|function| function.name.as_str()).collect();
        f.debug_struct("CompiledModule").field("functions", &names).finish_non_exhaustive()
    }
}

impl CompiledModule {
    /// All functions, including imports, in the IR's order.
    pub fn functions(&self) -> &[CompiledFunction] {
        &self.functions
    }

    /// Bytes of machine code, without alignment.
    pub fn code_size(&self) -> usize {
        self.functions.iter().map(|f| f.code.len()).sum()
    }

    /// Bytes of static data.
    pub fn data_size(&self) -> usize {
        self.data.iter().map(CompiledData::size).sum()
    }

    /// Imports that the code or the data refers to.
    pub fn imports(&self) -> impl Iterator<Item = &CompiledFunction> {
        self.functions.iter().filter(|f| f.linkage == Linkage::Import && f.used)
    }

    /// Exported symbols, functions before variables. The flag says whether the symbol is a variable.
    pub(super) fn exports(&self) -> impl Iterator<Item = (&str, bool)> {
        let functions = self.functions.iter().filter(|f| f.linkage == Linkage::Export);
        let variables = self.data.iter().filter_map(|data| data.variable.as_deref());
        functions.map(|f| (f.name.as_str(), false)).chain(variables.map(|name| (name, true)))
    }

    /// Functions that Cranelift's code calls, such as `floor` where the CPU has no instruction for it.
    pub fn libcalls(&self) -> &[clif::LibCall] {
        &self.libcalls
    }

    /// An upper bound of the contiguous memory for code and constant data, including alignment and veneers.
    pub fn loaded_size(&self) -> usize {
        // `cranelift-jit` reserves this space after a function, for each call that may be out of range
        const VENEER: usize = 24;
        let code: usize = self
            .functions
            .iter()
            .map(|f| {
                let calls = f.relocs.iter().filter(|r| r.kind == Reloc::Arm64Call).count();
                f.code.len() + calls * VENEER + f.align as usize
            })
            .sum();
        code + self.room(false)
    }

    /// An upper bound of the memory for variables and state, alignment included; 0 if there are none.
    pub fn writable_size(&self) -> usize {
        self.room(true)
    }

    fn room(&self, writable: bool) -> usize {
        let data = self.data.iter().filter(|data| data.writable == writable);
        data.map(|d| d.size().max(1) + d.description.align.unwrap_or(1) as usize).sum()
    }

    /// Marks the functions and library calls that the code uses, and the functions that the data uses.
    pub(super) fn note_references(&mut self) {
        let mut used = vec![false; self.functions.len()];
        for reloc in self.functions.iter().flat_map(|f| &f.relocs) {
            match reloc.name {
                ModuleRelocTarget::User { namespace: FUNCTIONS, index } => used[index as usize] = true,
                ModuleRelocTarget::LibCall(call) if !self.libcalls.contains(&call) => self.libcalls.push(call),
                _ => {}
            }
        }
        self.data.iter().flat_map(|data| &data.addresses).for_each(|&(_, func)| used[func.as_u32() as usize] = true);
        for (function, used) in self.functions.iter_mut().zip(used) {
            function.used = used;
        }
    }
}
