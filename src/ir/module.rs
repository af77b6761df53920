//! Modules and functions: containers of instructions, static data and imports.
//!
//! A [`Module`] is what lowering makes and a backend takes, after [`verify`](super::verify). It is plain
//! data: everything in it can be read, and only the builder and the verifier know rules.

use std::collections::HashMap;

use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{PrimaryMap, SecondaryMap};

use super::inst::{Block, DataRef, FuncRef, Inst, LocationRef, Op, SigRef, StackSlot, Terminator, Value};
use super::types::{FuncSig, PointerFacts, Type};
use target_lexicon::Endianness;

/// The linkage of a function: who defines and who sees it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Linkage {
    /// Defined elsewhere; found by name.
    Import,
    /// Defined here, not seen outside.
    Local,
    /// Defined here and exported by its name.
    Export,
}

/// A function of a module: its declaration and, unless imported, its body.
#[derive(Clone, Debug)]
pub struct FuncDecl {
    /// The symbol's name.
    pub name: String,
    /// Parameters and result.
    pub signature: FuncSig,
    /// The function's linkage.
    pub linkage: Linkage,
    /// The code; `None` for an import.
    pub body: Option<Function>,
    /// Hardly ever called; placed and optimised accordingly.
    pub cold: bool,
    /// The facts of each parameter; empty where nothing is known of any.
    pub param_facts: Vec<PointerFacts>,
}

/// The use of static data.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum DataKind {
    /// Read-only, not seen outside.
    #[default]
    Constant,
    /// Written while the program runs, and exported by its name. Modules that are linked together and have one of the same name share
    /// it.
    Variable,
    /// Written while the program runs, and not seen outside. All zeros at first.
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
    /// Whether it changes, and who sees it.
    pub kind: DataKind,
    /// The places in it that hold addresses of functions, 8 bytes each. An import may be data in truth: an address says nothing of what is there.
    /// In object files only.
    pub addresses: Vec<(u32, FuncRef)>,
}

/// A line of the source that code was made from.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SourceLocation {
    /// The file, as the compiler calls it.
    pub file: String,
    /// The line, counted from 1.
    pub line: u32,
    /// The function that the line is in.
    pub function: String,
}

/// A unit of code: functions and data, known to each other by name.
#[derive(Clone, Debug)]
pub struct Module {
    /// The byte order of the targets that it is for: data and constants are written for it. A backend refuses any other.
    pub endianness: Endianness,
    /// Functions, imported ones among them; [`declare`](Self::declare) adds them.
    pub functions: PrimaryMap<FuncRef, FuncDecl>,
    /// Static data.
    pub data: PrimaryMap<DataRef, Data>,
    /// Functions `()` that run when the program or library is loaded. In object files only.
    pub constructors: Vec<FuncRef>,
    /// Functions `()` that run when the code goes: as its library is unloaded, as the program ends, or as a JIT's code is dropped.
    pub destructors: Vec<FuncRef>,
    /// The source locations that instructions have.
    pub locations: PrimaryMap<LocationRef, SourceLocation>,
    /// The first function of each name, as declared.
    by_name: HashMap<String, FuncRef>,
    by_location: HashMap<SourceLocation, LocationRef>,
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

    /// Declares a function whose body follows, or comes from elsewhere.
    pub fn declare(&mut self, name: impl Into<String>, signature: FuncSig, linkage: Linkage) -> FuncRef {
        let name = name.into();
        let func = self.functions.next_key();
        self.by_name.entry(name.clone()).or_insert(func);
        self.functions.push(FuncDecl { name, signature, linkage, body: None, cold: false, param_facts: Vec::new() })
    }

    /// The import of that name, declared if it is not yet there.
    pub fn import(&mut self, name: &str, signature: FuncSig) -> FuncRef {
        let known = self.function_named(name).filter(|(_, f)| f.linkage == Linkage::Import);
        match known {
            Some((func, _)) => func,
            None => self.declare(name, signature, Linkage::Import),
        }
    }

    /// Declares a function that is exported from here. An import of that name becomes it.
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

    /// Takes back the declarations after the first `count` functions.
    pub(crate) fn truncate_functions(&mut self, count: usize) {
        // not touching those that stay: a library has many, and takes back often
        let mut functions = Vec::from(std::mem::take(&mut self.functions));
        for decl in functions.drain(count.min(functions.len())..) {
            if self.by_name.get(&decl.name).is_some_and(|func| func.as_u32() as usize >= count) {
                self.by_name.remove(&decl.name);
            }
        }
        self.functions = functions.into();
    }

    /// Takes back the data after the first `count`, which no function refers to any more.
    pub(crate) fn truncate_data(&mut self, count: usize) {
        let mut data = Vec::from(std::mem::take(&mut self.data));
        data.truncate(count);
        self.data = data.into();
    }

    /// Adds constant data.
    pub fn add_data(&mut self, name: impl Into<String>, bytes: Vec<u8>, align: u32) -> DataRef {
        let (name, addresses) = (name.into(), Vec::new());
        self.data.push(Data { name, bytes, align, kind: DataKind::Constant, addresses })
    }

    /// A source location, stored once.
    pub fn location(&mut self, location: SourceLocation) -> LocationRef {
        let Module { by_location, locations, .. } = self;
        *by_location.entry(location).or_insert_with_key(|location| locations.push(location.clone()))
    }

    /// Takes all source locations away.
    pub(super) fn clear_locations(&mut self) {
        self.locations.clear();
        self.by_location.clear();
        for body in self.functions.values_mut().filter_map(|decl| decl.body.as_mut()) {
            body.locations.clear();
            body.end_locations.clear();
        }
    }

    /// Adds writable data that nobody sees outside: `size` zeros.
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

    /// The part of the module that only an object file can have, in words.
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
    /// Parameter number `.1` of the block; the entry block's are the function's.
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
    /// Parameters, given by every branch to the block.
    pub params: Vec<Value>,
    /// Instructions, in order.
    pub insts: Vec<Inst>,
    /// The end; `None` only while the block is being built.
    pub terminator: Option<Terminator>,
    /// Hardly ever runs: a backend moves it out of the way.
    pub cold: bool,
}

/// A piece of the frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlotData {
    /// Size in bytes.
    pub size: u32,
    /// Alignment in bytes, a power of two.
    pub align: u32,
}

/// The code of a function. Block 0 is the entry; blocks are laid out in order of creation.
#[derive(Clone, Debug, Default)]
pub struct Function {
    /// Every value.
    pub values: PrimaryMap<Value, ValueData>,
    /// Every block.
    pub blocks: PrimaryMap<Block, BlockData>,
    /// Every instruction.
    pub insts: PrimaryMap<Inst, InstData>,
    /// The frame.
    pub slots: PrimaryMap<StackSlot, SlotData>,
    /// Signatures of indirect calls.
    pub signatures: PrimaryMap<SigRef, FuncSig>,
    /// The source location of each instruction that has one.
    pub locations: SecondaryMap<Inst, PackedOption<LocationRef>>,
    /// The source location of each block's end that has one of its own. Any other has that of the block's last instruction.
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

    /// Whether any block can be reached from itself on the usual path: cold blocks are not entered.
    pub fn has_loop(&self) -> bool {
        // Depth first; a block is on the path while it is entered and not left.
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
