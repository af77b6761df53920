//! Modules and functions: containers of instructions, static data and imports.
//!
//! Lowering generates a [`Module`], and a backend takes it after [`verify`](super::verify). It is plain data: all
//! fields are public, and only the builder and the verifier enforce rules.

use std::collections::HashMap;

use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{PrimaryMap, SecondaryMap};

use super::inst::{Block, DataRef, FuncRef, Inst, LocationRef, Op, SigRef, StackSlot, Terminator, Value};
use super::types::{FuncSig, PointerFacts, Type};
use target_lexicon::Endianness;

/// The linkage of a function: where it is defined, and where it is visible.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Linkage {
    /// Defined elsewhere; found by name.
    Import,
    /// Defined here, not visible outside.
    Local,
    /// Defined here and exported by its name.
    Export,
}

/// A function of a module: its declaration and, unless imported, its body.
#[derive(Clone, PartialEq, Debug)]
pub struct FuncDecl {
    /// The symbol's name.
    pub name: String,
    /// Parameters and result.
    pub signature: FuncSig,
    /// The function's linkage.
    pub linkage: Linkage,
    /// The code; `None` for an import.
    pub body: Option<Function>,
    /// Rarely called; placed and optimised accordingly.
    pub cold: bool,
    /// The facts of each parameter; empty if no facts are known.
    pub param_facts: Vec<PointerFacts>,
}

/// The use of static data.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum DataKind {
    /// Read-only, not visible outside.
    #[default]
    Constant,
    /// Written at run time, and exported by its name. Modules that are linked together share variables of the same
    /// name.
    Variable,
    /// Written at run time, and not visible outside. Initially all zeros.
    State,
}

/// Static data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Data {
    /// The symbol's name, unique in the module.
    pub name: String,
    /// The contents.
    pub bytes: Vec<u8>,
    /// Alignment in bytes, a power of two.
    pub align: u32,
    /// Whether it is written, and where it is visible.
    pub kind: DataKind,
    /// The offsets of function addresses in the data, 8 bytes each. An import may actually be data, since only its
    /// address is used. In object files only.
    pub addresses: Vec<(u32, FuncRef)>,
}

/// A source line that code was generated from.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LocationData {
    /// The file, as the compiler names it.
    pub file: String,
    /// The line, counted from 1.
    pub line: u32,
    /// The function that contains the line.
    pub function: String,
}

/// A unit of code: functions and data that refer to each other by name.
#[derive(Clone, Debug)]
pub struct Module {
    /// The byte order of the module's targets: data and constants have it. Backends reject modules of another byte
    /// order.
    pub endianness: Endianness,
    /// Functions, including imports; [`declare`](Self::declare) adds them.
    pub functions: PrimaryMap<FuncRef, FuncDecl>,
    /// Static data.
    pub data: PrimaryMap<DataRef, Data>,
    /// Functions `()` that run when the program or library is loaded. In object files only.
    pub constructors: Vec<FuncRef>,
    /// Functions `()` that run when the code is unloaded: with its library, at the program's end, or when a JIT's code
    /// is dropped.
    pub destructors: Vec<FuncRef>,
    /// The source locations of instructions.
    pub locations: PrimaryMap<LocationRef, LocationData>,
    /// The first declared function of each name.
    by_name: HashMap<String, FuncRef>,
    by_location: HashMap<LocationData, LocationRef>,
}

/// The byte order of this machine.
pub const HOST_ENDIANNESS: Endianness =
    if cfg!(target_endian = "little") { Endianness::Little } else { Endianness::Big };

impl Default for Module {
    fn default() -> Self {
        Self::new()
    }
}

impl Module {
    /// An empty module for targets with this machine's byte order.
    pub fn new() -> Self {
        Self::for_endianness(HOST_ENDIANNESS)
    }

    /// An empty module for targets with this byte order.
    pub fn for_endianness(endianness: Endianness) -> Self {
        Module {
            endianness,
            functions: PrimaryMap::new(),
            data: PrimaryMap::new(),
            constructors: Vec::new(),
            destructors: Vec::new(),
            locations: PrimaryMap::new(),
            by_name: HashMap::new(),
            by_location: HashMap::new(),
        }
    }

    /// Declares a function. Its body is added later or defined elsewhere.
    pub fn declare(&mut self, name: impl Into<String>, signature: FuncSig, linkage: Linkage) -> FuncRef {
        let name = name.into();
        let func = self.functions.next_key();
        self.by_name.entry(name.clone()).or_insert(func);
        self.functions.push(FuncDecl { name, signature, linkage, body: None, cold: false, param_facts: Vec::new() })
    }

    /// Declares a local function off the usual path.
    pub fn declare_cold(&mut self, name: impl Into<String>, signature: FuncSig) -> FuncRef {
        let func = self.declare(name, signature, Linkage::Local);
        self.functions[func].cold = true;
        func
    }

    /// The import of that name. Declares it if the module doesn't have it.
    pub fn import(&mut self, name: &str, signature: FuncSig) -> FuncRef {
        let known = self.function_named(name).filter(|(_, f)| f.linkage == Linkage::Import);
        match known {
            Some((func, _)) => func,
            None => self.declare(name, signature, Linkage::Import),
        }
    }

    /// Declares an exported function. An existing import of that name becomes the export.
    pub fn export(&mut self, name: impl Into<String>, signature: FuncSig) -> FuncRef {
        let name = name.into();
        let known =
            self.function_named(&name).filter(|(_, f)| f.linkage == Linkage::Import && f.signature == signature);
        match known.map(|(func, _)| func) {
            Some(func) => {
                self.functions[func].linkage = Linkage::Export;
                func
            }
            None => self.declare(name, signature, Linkage::Export),
        }
    }

    /// Removes the declarations after the first `count` functions.
    pub(crate) fn truncate_functions(&mut self, count: usize) {
        // without touching the remaining ones: a library has many functions and removes declarations often
        let mut functions = Vec::from(std::mem::take(&mut self.functions));
        for decl in functions.drain(count.min(functions.len())..) {
            if self.by_name.get(&decl.name).is_some_and(|func| func.as_u32() as usize >= count) {
                self.by_name.remove(&decl.name);
            }
        }
        self.functions = functions.into();
    }

    /// Adds constant data.
    pub fn add_data(&mut self, name: impl Into<String>, bytes: Vec<u8>, align: u32) -> DataRef {
        let (name, addresses) = (name.into(), Vec::new());
        self.data.push(Data { name, bytes, align, kind: DataKind::Constant, addresses })
    }

    /// Returns the reference of a source location, and adds it if it is new.
    pub fn location(&mut self, location: LocationData) -> LocationRef {
        let Module { by_location, locations, .. } = self;
        *by_location.entry(location).or_insert_with_key(|location| locations.push(location.clone()))
    }

    /// Removes all source locations.
    pub(super) fn clear_locations(&mut self) {
        self.locations.clear();
        self.by_location.clear();
        for body in self.functions.values_mut().filter_map(|decl| decl.body.as_mut()) {
            body.locations.clear();
            body.end_locations.clear();
        }
    }

    /// Adds local writable data: `size` zeros.
    pub fn add_state(&mut self, name: impl Into<String>, size: usize, align: u32) -> DataRef {
        let (name, bytes, addresses) = (name.into(), vec![0; size], Vec::new());
        self.data.push(Data { name, bytes, align, kind: DataKind::State, addresses })
    }

    /// Imports, in order of declaration.
    pub fn imports(&self) -> impl Iterator<Item = (FuncRef, &FuncDecl)> {
        self.functions.iter().filter(|(_, f)| f.linkage == Linkage::Import)
    }

    /// A function by the name that it was declared with.
    pub fn function_named(&self, name: &str) -> Option<(FuncRef, &FuncDecl)> {
        let func = *self.by_name.get(name)?;
        Some((func, self.functions.get(func)?))
    }

    /// The part of the module that only an object file supports, in words.
    pub fn only_in_objects(&self) -> Option<String> {
        if let Some(&func) = self.constructors.first() {
            let name = self.functions.get(func).map_or("?", |decl| &decl.name);
            return Some(format!("the constructor `{name}`"));
        }
        self.data.values().find_map(|data| match data.kind {
            DataKind::Constant if !data.addresses.is_empty() => {
                Some(format!("the addresses of functions in `{}`", data.name))
            }
            DataKind::Constant | DataKind::Variable | DataKind::State => None,
        })
    }
}

/// The definition of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ValueDef {
    /// Parameter number `.1` of the block; those of the entry block are the function's parameters.
    Param(Block, u32),
    /// The result of an instruction.
    Result(Inst),
}

/// Type and origin of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ValueData {
    /// The value's type.
    pub ty: Type,
    /// The value's definition.
    pub def: ValueDef,
}

/// An instruction with its result.
#[derive(Clone, PartialEq, Debug)]
pub struct InstData {
    /// The operation.
    pub op: Op,
    /// The value it defines, if any.
    pub result: Option<Value>,
}

/// A basic block.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct BlockData {
    /// Parameters. Every branch to the block passes their values.
    pub params: Vec<Value>,
    /// Instructions, in order.
    pub insts: Vec<Inst>,
    /// The terminator; `None` only while the block is being built.
    pub terminator: Option<Terminator>,
    /// Rarely executed: backends move it out of line.
    pub cold: bool,
}

/// A stack slot in the frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlotData {
    /// Size in bytes.
    pub size: u32,
    /// Alignment in bytes, a power of two.
    pub align: u32,
}

impl SlotData {
    /// The maximum size of the slot in a frame in bytes, including padding.
    pub fn frame_bytes(self) -> u64 {
        /// The alignment of frames. A larger alignment costs additional room to find an aligned address.
        const FRAME_ALIGN: u32 = 16;
        let room = if self.align > FRAME_ALIGN { self.align } else { 0 };
        u64::from(self.size.max(1)).next_multiple_of(8.max(u64::from(self.align.min(FRAME_ALIGN)))) + u64::from(room)
    }
}

/// The code of a function. Block 0 is the entry; blocks are laid out in order of creation.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Function {
    /// Every value.
    pub values: PrimaryMap<Value, ValueData>,
    /// Every block.
    pub blocks: PrimaryMap<Block, BlockData>,
    /// Every instruction.
    pub insts: PrimaryMap<Inst, InstData>,
    /// The stack slots of the frame.
    pub slots: PrimaryMap<StackSlot, SlotData>,
    /// Signatures of indirect calls.
    pub signatures: PrimaryMap<SigRef, FuncSig>,
    /// The source location of each instruction that has one.
    pub locations: SecondaryMap<Inst, PackedOption<LocationRef>>,
    /// The source location of each block end that has its own. Other ends have that of the block's last instruction.
    pub end_locations: SecondaryMap<Block, PackedOption<LocationRef>>,
}

impl Function {
    /// The entry block, if there is any block.
    pub fn entry(&self) -> Option<Block> {
        self.blocks.keys().next()
    }

    /// A value's type.
    pub fn type_of(&self, value: Value) -> Type {
        self.values[value].ty
    }

    /// The source location of the first instruction, in order of blocks, that has one.
    pub fn first_location(&self) -> Option<LocationRef> {
        let mut insts = self.blocks.values().flat_map(|block| &block.insts);
        insts.find_map(|&inst| self.locations[inst].expand())
    }

    /// Whether a block can be reached from itself on the usual path, which doesn't enter cold blocks.
    pub fn has_loop(&self) -> bool {
        // Depth first. A block is on the path from entering it until leaving it.
        #[derive(Clone, Copy, PartialEq)]
        enum State {
            New,
            OnPath,
            Left,
        }
        let mut states = vec![State::New; self.blocks.len()];
        let mut work: Vec<(Block, bool)> = self.entry().map(|entry| (entry, false)).into_iter().collect();
        while let Some((block, leave)) = work.pop() {
            let state = &mut states[block.as_u32() as usize];
            match (leave, *state) {
                (true, _) => *state = State::Left,
                (false, State::OnPath) => return true,
                (false, State::Left) => {}
                (false, State::New) if self.blocks[block].cold => {}
                (false, State::New) => {
                    *state = State::OnPath;
                    work.push((block, true));
                    let targets = self.blocks[block].terminator.iter().flat_map(Terminator::targets);
                    work.extend(targets.map(|to| (to.block, false)));
                }
            }
        }
        false
    }
}
