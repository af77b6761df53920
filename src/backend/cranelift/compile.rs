//! Phase 1: every function of a module becomes machine code with relocations, in memory of its own.

use std::fmt;
use std::num::NonZeroUsize;

use cranelift_codegen::binemit::Reloc;
use cranelift_codegen::ir as clif;
use cranelift_codegen::isa::TargetIsa;
use cranelift_codegen::isa::unwind::UnwindInfo;
use cranelift_entity::PrimaryMap;
use cranelift_module::{DataDescription, Init, ModuleReloc, ModuleRelocTarget};

use super::translate::{self, DataPlace, FUNCTIONS, Target};
use super::worker::Worker;
use super::{ByLoops, Error};
use crate::backend::{Lines, OptLevel};
use crate::ir::{
    Data, DataKind, FuncDecl, FuncRef, Function, Linkage, LocationRef, Module, SourceLocation, VerifiedModule,
};
use crate::parallel;

/// The further outputs of [`Compiler::compile`], and its limits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Keep each function's CLIF and the listing of its machine code.
    pub disasm: bool,
    /// Keep each function's unwind information, for whoever writes `.eh_frame` or the like.
    pub unwind: bool,
    /// The most threads to compile on, where a module has instructions enough that others than the caller's are worth it; as many as the
    /// machine has, unless stated. The result doesn't depend on it.
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
    /// Whether code of the module refers to it.
    pub used: bool,
    /// Whether it is hardly ever called.
    pub cold: bool,
    /// CLIF and machine code as text, if asked for.
    pub disasm: Option<String>,
    /// Unwind information, if asked for.
    pub unwind: Option<UnwindInfo>,
    /// The code that was made from lines of a source, in the order of addresses.
    pub lines: Vec<Lines>,
    /// The source location that comes first in the function.
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

/// Static data that stays in one piece.
pub(super) struct CompiledData {
    /// The symbol of a variable; nothing else has one.
    pub(super) variable: Option<String>,
    /// Whether it is written while the code lives.
    pub(super) writable: bool,
    /// Contents and alignment.
    pub(super) description: DataDescription,
    /// Where the addresses of which functions stand.
    pub(super) addresses: Vec<(u32, FuncRef)>,
}

impl CompiledData {
    fn new(bytes: Vec<u8>, align: u32) -> Self {
        let mut description = DataDescription::new();
        description.define(bytes.into_boxed_slice());
        description.set_align(u64::from(align));
        CompiledData { variable: None, writable: false, description, addresses: Vec::new() }
    }

    /// Zeros that are written while the code lives, and not seen outside.
    fn state(size: usize, align: u32) -> Self {
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

/// Machine code of a whole module, independent of where it will go.
pub struct CompiledModule {
    /// One for each function of the IR, imports among them, under the IR's index.
    pub(super) functions: Vec<CompiledFunction>,
    /// All static data. What code refers to is a place in one of these.
    pub(super) data: Vec<CompiledData>,
    /// The source locations that the code has.
    pub locations: PrimaryMap<LocationRef, SourceLocation>,
    /// Functions that run at start-up.
    pub(super) constructors: Vec<FuncRef>,
    /// Functions that run when the code goes.
    pub(super) destructors: Vec<FuncRef>,
    /// What of it only an object file can have.
    pub(super) only_in_objects: Option<String>,
    libcalls: Vec<clif::LibCall>,
    /// What the code was compiled for; see [`isa_identity`].
    pub(super) isa: String,
}

impl fmt::Debug for CompiledModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.functions.iter().map(|function| function.name.as_str()).collect();
        f.debug_struct("CompiledModule").field("functions", &names).finish_non_exhaustive()
    }
}

impl CompiledModule {
    /// Every function, imports among them, in the IR's order.
    pub fn functions(&self) -> &[CompiledFunction] {
        &self.functions
    }

    /// Bytes of machine code, alignment not counted.
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

    /// What is exported, functions and then variables; whether it is a variable.
    pub(super) fn exports(&self) -> impl Iterator<Item = (&str, bool)> {
        let functions = self.functions.iter().filter(|f| f.linkage == Linkage::Export);
        let variables = self.data.iter().filter_map(|data| data.variable.as_deref());
        functions.map(|f| (f.name.as_str(), false)).chain(variables.map(|name| (name, true)))
    }

    /// Functions that Cranelift itself calls, such as `floor` where the CPU has no instruction for it.
    pub fn libcalls(&self) -> &[clif::LibCall] {
        &self.libcalls
    }

    /// An upper bound of the memory that code and constant data take in one piece, alignment and veneers included.
    pub fn loaded_size(&self) -> usize {
        // What `cranelift-jit` reserves behind a function for each call that may not reach.
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

    /// An upper bound of the memory that variables and state take, alignment included; 0 without such.
    pub fn writable_size(&self) -> usize {
        self.room(true)
    }

    fn room(&self, writable: bool) -> usize {
        let data = self.data.iter().filter(|data| data.writable == writable);
        data.map(|d| d.size().max(1) + d.description.align.unwrap_or(1) as usize).sum()
    }
}

/// Triple and settings that code depends on; two ISAs with the same text make code that can be mixed.
pub(crate) fn isa_identity(isa: &dyn TargetIsa) -> String {
    use std::fmt::Write;
    let flags = isa.flags();
    let mut out = isa.triple().to_string();
    if flags.is_pic() {
        out.push_str(" pic");
    }
    if flags.use_colocated_libcalls() {
        out.push_str(" colocated-libcalls");
    }
    for value in isa.isa_flags() {
        if value.as_bool() == Some(true) {
            let _ = write!(out, " {}", value.name);
        }
    }
    out
}

/// Compiles a module for a target.
pub fn compile(module: &VerifiedModule, isa: &dyn TargetIsa) -> Result<CompiledModule, Error> {
    Compiler::new().compile(module, isa, Options::default())
}

/// A compiler of modules, one after the other, that keeps its memory between them. One per thread.
#[derive(Default)]
pub struct Compiler {
    worker: Worker,
    places: Vec<DataPlace>,
}

impl fmt::Debug for Compiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compiler").finish_non_exhaustive()
    }
}

impl Compiler {
    /// A compiler that has compiled nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether it compiled something so large, or failed in such a way, that it should rather not be kept.
    pub fn is_bloated(&self) -> bool {
        self.worker.is_bloated()
    }

    /// Compiles a module for a target.
    pub fn compile(
        &mut self,
        module: &VerifiedModule,
        isa: &dyn TargetIsa,
        options: Options,
    ) -> Result<CompiledModule, Error> {
        self.compile_with(module, isa, |_| isa, options, &|| {})
    }

    /// As [`compile`](Self::compile), each function for the target that its loops call for, or that it is hardly ever called.
    pub fn compile_by_loops(
        &mut self,
        module: &VerifiedModule,
        isas: &ByLoops,
        options: Options,
    ) -> Result<CompiledModule, Error> {
        self.compile_observed(module, isas, options, &|| {})
    }

    /// As [`compile_by_loops`](Self::compile_by_loops), and calls `compiled` once for each function that is compiled.
    pub(super) fn compile_observed(
        &mut self,
        module: &VerifiedModule,
        isas: &ByLoops,
        options: Options,
        compiled: &(dyn Fn() + Sync),
    ) -> Result<CompiledModule, Error> {
        let choose = |decl: &FuncDecl| match (OptLevel::gains(decl), decl.cold) {
            (true, _) => &*isas.looping,
            (false, true) if !decl.body.as_ref().is_some_and(Function::has_loop) => &*isas.cold,
            (false, _) => &*isas.straight,
        };
        self.compile_with(module, &*isas.straight, choose, options, compiled)
    }

    /// Compiles each function for the target that is chosen for it; of all of them `isa` is one.
    fn compile_with<'i>(
        &mut self,
        module: &VerifiedModule,
        isa: &dyn TargetIsa,
        choose: impl Fn(&FuncDecl) -> &'i (dyn TargetIsa + 'i) + Sync,
        options: Options,
        compiled: &(dyn Fn() + Sync),
    ) -> Result<CompiledModule, Error> {
        let module: &Module = module;
        if isa.triple().endianness() != Ok(module.endianness) {
            return Err(Error::Endianness { target: isa.triple().to_string(), module: module.endianness });
        }
        let target = Target::of(isa);
        let mut out = CompiledModule {
            functions: Vec::new(),
            data: self.lay_out_data(module)?,
            locations: module.locations.clone(),
            constructors: module.constructors.clone(),
            destructors: module.destructors.clone(),
            only_in_objects: module.only_in_objects(),
            libcalls: Vec::new(),
            isa: isa_identity(isa),
        };
        let bodies = module.functions.values().filter_map(|decl| decl.body.as_ref());
        let (bodies, instructions) = bodies.fold((0, 0), |(n, all), body| (n + 1, all + body.insts.len()));
        let threads = parallel::threads_for(bodies, instructions, options.threads);
        let cx = translate::Context { module, target, data: &self.places };
        let work = |worker: &mut Worker, index| {
            let func = FuncRef::from_u32(index as u32);
            let decl = &module.functions[func];
            let function = worker.compile(cx, func, choose(decl), options);
            if decl.body.is_some() {
                compiled();
            }
            function
        };
        let count = module.functions.len();
        out.functions = parallel::in_order(count, threads, &mut self.worker, Worker::default, work)?;
        out.note_references();
        Ok(out)
    }

    /// Puts all constants of a module into one object, and all state into another: fewer symbols, and an address is one instruction all the
    /// same. What is exported, or relocated by a loader, stands alone.
    fn lay_out_data(&mut self, module: &Module) -> Result<Vec<CompiledData>, Error> {
        self.places.clear();
        let alone = |data: &Data| data.kind == DataKind::Variable || !data.addresses.is_empty();
        let mut out = Vec::new();
        let together = || module.data.values().filter(|data| data.kind == DataKind::Constant && !alone(data));
        let states = || module.data.values().filter(|data| data.kind == DataKind::State);
        let state_align = states().map(|data| data.align).max();
        let state_size = states()
            .try_fold(0, |size: usize, data| place_behind(size, data).map(|offset| offset + data.bytes.len()))?;
        let mut bytes = Vec::with_capacity(together().map(|d| d.bytes.len() + d.align as usize).sum());
        let align = together().map(|d| d.align).max();
        if align.is_some() {
            out.push(CompiledData::new(Vec::new(), 1));
        }
        let state_object = out.len() as u32;
        if let Some(align) = state_align {
            out.push(CompiledData::state(state_size, align));
        }
        let mut state = 0;
        for data in module.data.values() {
            if alone(data) {
                self.places.push(DataPlace {
                    object: out.len() as u32,
                    offset: 0,
                    near: data.kind != DataKind::Variable,
                });
                out.push(CompiledData {
                    variable: (data.kind == DataKind::Variable).then(|| data.name.clone()),
                    writable: data.kind == DataKind::Variable,
                    addresses: data.addresses.clone(),
                    ..CompiledData::new(data.bytes.clone(), data.align)
                });
                continue;
            }
            if data.kind == DataKind::State {
                let offset = place_behind(state, data)?;
                self.places.push(DataPlace { object: state_object, offset: offset as u32, near: true });
                state = offset + data.bytes.len();
                continue;
            }
            bytes.resize(place_behind(bytes.len(), data)?, 0);
            self.places.push(DataPlace { object: 0, offset: bytes.len() as u32, near: true });
            bytes.extend_from_slice(&data.bytes);
        }
        if let Some(align) = align {
            out[0] = CompiledData::new(bytes, align);
        }
        Ok(out)
    }
}

/// Where data goes behind as many bytes.
fn place_behind(bytes: usize, data: &Data) -> Result<usize, Error> {
    let offset = bytes.checked_next_multiple_of(data.align.max(1) as usize);
    offset.filter(|&offset| i32::try_from(offset).is_ok()).ok_or_else(|| Error::TooLarge {
        function: data.name.clone(),
        message: "static data of one module exceeds 2 GiB".to_owned(),
    })
}

impl CompiledModule {
    /// Notes which functions and library calls are needed by the code, and functions by the data.
    fn note_references(&mut self) {
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
