//! Loads code from Cranelift: `cranelift-jit` links it into one mapping, which this crate owns.

use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use cranelift_codegen::isa::TargetIsa;
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{DataDescription, DataId, Module as _, ModuleError, default_libcall_names};
use target_lexicon::Triple;

use super::code::{Code, CodeAddresses, KeepAlive};
use super::debug::{Debugging, Described, Frames, Told, Wanted, placed};
use super::error::EngineError;
use super::loader::{Loader, Resolve};
use super::memory::Arena;
#[cfg(unix)]
use super::objects;
use super::objects::{LoadedObjects, Unit};
use super::options::Options;
use super::pool::ObjectPool;
use crate::backend::CodegenError;
use crate::backend::cranelift::{
    Bindings, ByLoops, CompiledModule, Compiler, IsaOptions, Options as CompileOptions, host_isa, isa_for,
};
use crate::ir::{Linkage, VerifiedModule};

/// Compiles with Cranelift and loads the code.
pub(super) struct CraneliftJit {
    isas: ByLoops,
    threads: Option<NonZeroUsize>,
    pool: ObjectPool<Box<Compiler>>,
    debugging: Debugging,
}

impl CraneliftJit {
    pub(super) fn new(options: &Options) -> Result<Self, EngineError> {
        let &Options { opt_level, verifier, threads, baseline, debugging, .. } = options;
        // code size doesn't matter here
        let mut options = IsaOptions { single_pass: true, ..IsaOptions::default() };
        options.verifier = verifier.unwrap_or(options.verifier);
        let isas = ByLoops::new(opt_level, &options, |options| match baseline {
            true => isa_for(&Triple::host(), options),
            false => host_isa(options),
        })
        .map_err(CodegenError::from)?;
        Ok(CraneliftJit { isas, threads, pool: ObjectPool::default(), debugging })
    }

    /// Compiles a module without loading it, with a compiler from the pool. Not inlined, so a suppression for a tool
    /// that doesn't understand the pool's lock can name this frame (xtask/valgrind.supp).
    #[inline(never)]
    pub(super) fn compile(
        &self,
        module: &VerifiedModule,
        options: CompileOptions,
    ) -> Result<CompiledModule, EngineError> {
        let mut compiler = self.pool.take().unwrap_or_default();
        let compiled = compiler.compile_by_loops(module, &self.isas, options);
        if !compiler.is_bloated() {
            self.pool.give(compiler);
        }
        Ok(compiled.map_err(CodegenError::from)?)
    }

    /// Loads the result of [`compile`](Self::compile). You can load it any number of times.
    pub(super) fn link(
        &self,
        compiled: &CompiledModule,
        resolve: Resolve<'_>,
        keep_alive: Vec<KeepAlive>,
        wanted: Wanted,
    ) -> Result<Code, EngineError> {
        let libcall_name = default_libcall_names();
        let libcalls = compiled.libcalls().iter().map(|&call| libcall_name(call));
        let names: Vec<String> = compiled.imports().map(|f| f.name.clone()).chain(libcalls).collect();
        let addresses = resolve(&names)?;

        // Windows requires these tables near the code
        let infos = if wanted.frames { compiled.unwind_infos() } else { Vec::new() };
        let size =
            compiled.loaded_size() + infos.iter().map(|(_, info)| info.len() + INFO_ALIGN as usize).sum::<usize>();
        let state = compiled.writable_size();
        let memory = |source| EngineError::Memory { size: size.saturating_add(state), source };
        let (arena, finished) = Arena::new(size, state).map_err(memory)?;

        // `JITModule` panics on errors. All known reasons are excluded by now; any remaining panic must not leave this
        // library.
        let (symbols, places) = catch_unwind(AssertUnwindSafe(|| {
            let mut builder = JITBuilder::with_isa(Arc::clone(&self.isas.straight), default_libcall_names());
            builder.symbols(names.into_iter().zip(addresses));
            builder.memory_provider(Box::new(arena));
            let mut module = JITModule::new(builder);
            let placed = compiled.place(&mut module, &Bindings::new(), false).map_err(CodegenError::from)?;
            let infos = place_infos(&mut module, infos)?;
            module.finalize_definitions().map_err(|error| match error {
                // the code is complete, and the system can't make it executable
                ModuleError::Allocation { err } => memory(err),
                other => CodegenError::Cranelift(other.into()).into(),
            })?;
            let address = |id| module.get_finalized_function(id).expose_provenance();
            let data = |id| module.get_finalized_data(id).0.expose_provenance();
            let all = compiled.functions().iter().zip(placed.ids).filter(|_| wanted.any());
            let all = all.map(|(function, id)| (function.linkage != Linkage::Import).then(|| address(id)));
            let info = |(index, id)| (index, data(id));
            let places = Places { functions: all.collect(), infos: infos.into_iter().map(info).collect() };
            let symbols = CodeAddresses {
                functions: placed.defined.functions().map(|(name, id)| (name.into(), address(id))).collect(),
                variables: placed.defined.variables().map(|(name, id)| (name.into(), data(id))).collect(),
                destructors: placed.destructors.into_iter().map(address).collect(),
            };
            Ok::<_, EngineError>((symbols, places))
            // The module's tables are dropped here. The code itself stays in the mapping, which `finished` owns now.
        }))
        .map_err(|_| EngineError::internal("Cranelift's JIT panicked while linking"))??;

        let mapping = finished.take().ok_or_else(|| EngineError::internal("the code was not finalized"))?;
        let sizes = (compiled.code_size(), compiled.data_size());
        let told = match wanted.any() {
            true => self.tell(wanted, compiled, mapping.bytes(), &places)?,
            false => Told::default(),
        };
        Ok(Code::new(symbols, sizes, Box::new(mapping), told, keep_alive))
    }

    /// Registers loaded code with debuggers and unwinders.
    fn tell(
        &self,
        wanted: Wanted,
        compiled: &CompiledModule,
        mapping: &[u8],
        places: &Places,
    ) -> Result<Told, EngineError> {
        let addresses = &places.functions[..];
        let isa = &*self.isas.straight;
        let functions = compiled.functions().iter().zip(addresses);
        let described = functions.filter_map(|(function, address)| {
            Some(Described {
                name: function.name.clone(),
                address: (*address)?,
                size: function.code.len(),
                first: function.first_location,
                lines: function.lines.clone(),
            })
        });
        let base = mapping.as_ptr().addr();
        let image = || {
            let image = compiled.image(isa, base, mapping, addresses).map_err(CodegenError::from)?;
            placed(image, |name| (name == ".text").then_some((base, true)))
        };
        let frames = match wanted.frames {
            true => register_frames(compiled, isa, base, places),
            false => None,
        };
        Told::new(wanted, &described.collect::<Vec<_>>(), &compiled.locations, image, frames)
    }
}

/// The alignment of an `UNWIND_INFO`.
const INFO_ALIGN: u64 = 4;

/// The addresses of the parts of loaded code.
struct Places {
    /// The defined functions, in the order of [`CompiledModule::functions`].
    functions: Vec<Option<usize>>,
    /// The `UNWIND_INFO`s (Windows), with the functions' indices.
    #[cfg_attr(not(all(windows, target_arch = "x86_64")), expect(dead_code, reason = "other systems have none"))]
    infos: Vec<(usize, usize)>,
}

/// Places `UNWIND_INFO`s next to the code.
fn place_infos(module: &mut JITModule, infos: Vec<(usize, Vec<u8>)>) -> Result<Vec<(usize, DataId)>, EngineError> {
    let failed = |e: ModuleError| CodegenError::Cranelift(e.into());
    let mut ids = Vec::with_capacity(infos.len());
    for (index, bytes) in infos {
        let mut description = DataDescription::new();
        description.define(bytes.into_boxed_slice());
        description.set_align(INFO_ALIGN);
        let id = module.declare_anonymous_data(false, false).map_err(failed)?;
        module.define_data(id, &description).map_err(failed)?;
        ids.push((index, id));
    }
    Ok(ids)
}

/// Registers functions with the unwinder, by the offsets of their `UNWIND_INFO`s.
#[cfg(all(windows, target_arch = "x86_64"))]
fn register_frames(compiled: &CompiledModule, _: &dyn TargetIsa, base: usize, places: &Places) -> Option<Frames> {
    let offset = |address: usize| u32::try_from(address.checked_sub(base)?).ok();
    let functions: Option<Vec<[u32; 3]>> = places
        .infos
        .iter()
        .map(|&(index, info)| {
            let begin = offset(places.functions[index]?)?;
            Some([begin, begin + u32::try_from(compiled.functions()[index].code.len()).ok()?, offset(info)?])
        })
        .collect();
    // SAFETY: the `UNWIND_INFO`s are in the code's mapping, and `Code` drops the table before it.
    unsafe { Frames::register(base, &functions?) }
}

/// Does nothing: this platform has no tables.
#[cfg(not(any(unix, all(windows, target_arch = "x86_64"))))]
fn register_frames(_: &CompiledModule, _: &dyn TargetIsa, _: usize, _: &Places) -> Option<Frames> {
    None
}

/// Registers functions with the unwinder.
#[cfg(unix)]
fn register_frames(compiled: &CompiledModule, isa: &dyn TargetIsa, _: usize, places: &Places) -> Option<Frames> {
    let table = compiled.eh_frame(isa, &places.functions)?;
    // SAFETY: gimli wrote the table, for functions at their addresses, and `Code` drops it before them.
    Some(unsafe { Frames::register(&table) })
}

impl Loader for CraneliftJit {
    fn load(
        &self,
        module: &VerifiedModule,
        resolve: Resolve<'_>,
        keep_alive: Vec<KeepAlive>,
    ) -> Result<Code, EngineError> {
        let wanted = self.debugging.of(module);
        let options = CompileOptions { threads: self.threads, unwind: wanted.frames, ..CompileOptions::default() };
        let compiled = self.compile(module, options)?;
        self.link(&compiled, resolve, keep_alive, wanted)
    }

    #[cfg(unix)]
    fn load_objects(&self, unit: &Unit<'_>, addresses: &[usize]) -> Result<LoadedObjects, EngineError> {
        objects::load(unit, addresses)
    }

    #[cfg(not(unix))]
    fn load_objects(&self, unit: &Unit<'_>, _: &[usize]) -> Result<LoadedObjects, EngineError> {
        let object = unit.objects.first().map_or_else(|| "an object".to_owned(), |object| object.label.clone());
        let problem = "the backend Cranelift links objects of ELF alone; the backend LLVM links others".to_owned();
        Err(EngineError::Object { object, problem })
    }
}
