//! Phase 1: compiles every function of a module to machine code with relocations, in separate buffers.

use std::fmt;

use cranelift_codegen::isa::TargetIsa;

use super::compiled::{CompiledData, CompiledModule, Options};
use super::error::Error;
use super::isa::{ByLoops, isa_identity};
use super::translate::{self, DataLocation, TargetAbi};
use super::worker::Worker;
use crate::backend::OptLevel;
use crate::ir::{Data, DataKind, FuncDecl, FuncRef, Function, Module, VerifiedModule};
use crate::parallel;

/// Compiles a module for a target.
pub fn compile(module: &VerifiedModule, isa: &dyn TargetIsa) -> Result<CompiledModule, Error> {
    Compiler::new().compile(module, isa, Options::default())
}

/// A reusable compiler of modules. It keeps its memory between modules; use one per thread.
#[derive(Default)]
pub struct Compiler {
    worker: Worker,
    places: Vec<DataLocation>,
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

    /// Whether the compiler's memory is too large to keep, or its last failure left it in an unknown state.
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

    /// Like [`compile`](Self::compile), but picks the target of each function by its loops and by whether it is cold.
    pub fn compile_by_loops(
        &mut self,
        module: &VerifiedModule,
        isas: &ByLoops,
        options: Options,
    ) -> Result<CompiledModule, Error> {
        self.compile_observed(module, isas, options, &|| {})
    }

    /// Like [`compile_by_loops`](Self::compile_by_loops), and calls `compiled` once after each function.
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

    /// Compiles each function for the target chosen for it. `isa` is one of these targets.
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
        let target = TargetAbi::of(isa);
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

    /// Puts all constants of a module into one object, and all state into another. That needs fewer symbols, and taking
    /// an address still costs one instruction. Exported data, and data that a loader relocates, gets an object of its
    /// own.
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
                self.places.push(DataLocation {
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
                self.places.push(DataLocation { object: state_object, offset: offset as u32, near: true });
                state = offset + data.bytes.len();
                continue;
            }
            bytes.resize(place_behind(bytes.len(), data)?, 0);
            self.places.push(DataLocation { object: 0, offset: bytes.len() as u32, near: true });
            bytes.extend_from_slice(&data.bytes);
        }
        if let Some(align) = align {
            out[0] = CompiledData::new(bytes, align);
        }
        Ok(out)
    }
}

/// The offset of `data` after `bytes` bytes, aligned.
fn place_behind(bytes: usize, data: &Data) -> Result<usize, Error> {
    let offset = bytes.checked_next_multiple_of(data.align.max(1) as usize);
    offset.filter(|&offset| i32::try_from(offset).is_ok()).ok_or_else(|| Error::TooLarge {
        function: data.name.clone(),
        message: "static data of one module exceeds 2 GiB".to_owned(),
    })
}
