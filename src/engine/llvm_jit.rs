//! Loads code from LLVM: ORC's LLJIT links the object, with all addresses that it needs defined beforehand.

use std::ops::Range;
use std::sync::Arc;

use object::{Object, ObjectSection, ObjectSymbol, SectionKind};

use target_lexicon::Triple;

use super::code::{Code, CodeAddresses, KeepAlive, Memory};
#[cfg(target_os = "linux")]
use super::debug::{self, placed};
use super::debug::{Debugging, Told, Wanted};
use super::error::EngineError;
use super::loader::{Loader, Resolve};
use super::objects::{LoadedObjects, Unit};
use super::options::Options;
use super::orc::Session;
use super::pool::ObjectPool;
use crate::backend::llvm::{self, CompiledModule, Compiler, LlvmTarget, TargetOptions};
use crate::backend::{CodegenError, OptLevel};
use crate::ir::{DataKind, FuncDecl, Linkage, VerifiedModule};
use crate::object_symbols::c_name;

/// Compiles with LLVM and loads the code.
pub(super) struct LlvmJit {
    target: LlvmTarget,
    pool: ObjectPool<Compiler>,
    session: Session,
    debugging: Debugging,
}

impl LlvmJit {
    pub(super) fn new(options: &Options) -> Result<Self, EngineError> {
        Ok(LlvmJit {
            target: target(options.opt_level, options.baseline)?,
            pool: ObjectPool::default(),
            session: Session::of_process()?,
            debugging: options.debugging,
        })
    }
}

impl Loader for LlvmJit {
    fn load(
        &self,
        module: &VerifiedModule,
        resolve: Resolve<'_>,
        keep_alive: Vec<KeepAlive>,
    ) -> Result<Code, EngineError> {
        let mut compiler = self.pool.take().unwrap_or_else(|| Compiler::new(self.target.clone()));
        let wanted = self.debugging.of(module);
        let compiled =
            compiler.compile(module, llvm::Options { one_section: wanted.any(), ..llvm::Options::default() });
        self.pool.give(compiler);
        let CompiledModule { object, destructors, .. } = compiled.map_err(CodegenError::from)?;

        let contents = Contents::of(&object)?;
        let addresses = resolve(&contents.undefined)?;
        let symbols: Vec<(&str, usize)> =
            contents.undefined.iter().zip(addresses).map(|(name, a)| (name.as_str(), a.expose_provenance())).collect();
        let functions = module.functions.values().filter(|f| f.linkage == Linkage::Export).map(|f| f.name.as_str());
        let mut exports: Vec<&str> = functions.collect();
        let functions = exports.len();
        exports.extend(module.data.values().filter(|d| d.kind == DataKind::Variable).map(|d| d.name.as_str()));
        let variables = exports.len();
        exports.extend(destructors.iter().map(String::as_str));
        let loaded = self.session.load(&[&object], &symbols, &exports)?;
        let named = |range: Range<usize>| {
            let found = exports[range.clone()].iter().zip(&loaded.addresses[range]);
            found.map(|(name, &address)| (Box::from(*name), address)).collect::<Vec<_>>()
        };
        let symbols = CodeAddresses {
            functions: named(0..functions),
            variables: named(functions..variables),
            destructors: loaded.addresses[variables..].to_vec(),
        };
        let told = if wanted.any() { tell(wanted, object, module, &symbols.functions)? } else { Told::default() };
        let memory = loaded.memory(contents.sections_of(&symbols.functions));
        Ok(Code::new(symbols, (contents.code_size, contents.data_size), Box::new(memory), told, keep_alive))
    }

    fn load_objects(&self, unit: &Unit<'_>, addresses: &[usize]) -> Result<LoadedObjects, EngineError> {
        unit.check_reach()?;
        unit.check_frames()?;
        // an undefined weak symbol stays 0 by default
        let imports = unit.imports.iter().zip(addresses).filter(|(_, address)| **address != 0);
        let imports: Vec<(&str, usize)> = imports.map(|(import, &address)| (import.name, address)).collect();
        let objects: Vec<&[u8]> = unit.objects.iter().map(|object| object.bytes).collect();
        let loaded = self.session.load(&objects, &imports, &unit.kernels).map_err(|error| unit.blame(error))?;
        let names = unit.kernels.iter().map(|name| (*name).to_owned());
        let symbols = names.zip(loaded.addresses.iter().copied()).collect();
        Ok(LoadedObjects { symbols, owner: Arc::new(loaded) })
    }
}

/// A compiler of callers' LLVM IR for this machine.
pub(super) struct IrCompiler {
    opt_level: OptLevel,
    baseline: bool,
    pool: ObjectPool<Compiler>,
}

impl IrCompiler {
    /// LLVM objects are created only when needed.
    pub(super) fn new(options: &Options) -> Self {
        IrCompiler { opt_level: options.opt_level, baseline: options.baseline, pool: ObjectPool::default() }
    }

    /// Compiles a module, text or bitcode, to an object. `label` describes the module in messages, and `kernels` are
    /// functions of it.
    pub(super) fn compile(&self, module: &[u8], kernels: &[&FuncDecl], label: &str) -> Result<Vec<u8>, EngineError> {
        let mut compiler = match self.pool.take() {
            Some(compiler) => compiler,
            None => Compiler::new(target(self.opt_level, self.baseline)?),
        };
        let object = compiler.compile_source(module, kernels);
        self.pool.give(compiler);
        object.map_err(|error| EngineError::Object { object: label.to_owned(), problem: error.to_string() })
    }
}

/// The target for this machine.
fn target(opt_level: OptLevel, baseline: bool) -> Result<LlvmTarget, EngineError> {
    let options = TargetOptions { opt_level, ..TargetOptions::default() };
    let target = if baseline { LlvmTarget::new(&Triple::host(), &options) } else { LlvmTarget::host(&options) };
    Ok(target.map_err(CodegenError::from)?)
}

/// Registers code that ORC has linked with debuggers. ORC has registered it with the unwinder.
#[cfg(target_os = "linux")]
fn tell(
    wanted: Wanted,
    object: Vec<u8>,
    module: &VerifiedModule,
    functions: &[(Box<str>, usize)],
) -> Result<Told, EngineError> {
    let Some(contents) = debug::object::contents(&object, &module.locations, functions) else {
        return Ok(Told::default());
    };
    // Sections other than code are read from the object. Its unwind table has 32-bit distances to the code.
    let end = contents.start + contents.size.next_multiple_of(64);
    let image = || placed(object, |name| Some(if name == ".text" { (contents.start, true) } else { (end, false) }));
    Told::new(wanted, &contents.functions, &module.locations, image, None)
}

/// Does nothing: debuggers and profilers on this system use other formats.
#[cfg(not(target_os = "linux"))]
fn tell(_: Wanted, _: Vec<u8>, _: &VerifiedModule, _: &[(Box<str>, usize)]) -> Result<Told, EngineError> {
    Ok(Told::default())
}

/// Loads an object compiled for a caller of `embed`. Returns the addresses of its exports, and its memory.
pub(crate) fn load_object(
    object: &[u8],
    resolve: Resolve<'_>,
    exports: &[&str],
) -> Result<(Vec<usize>, Box<dyn Memory>), EngineError> {
    let contents = Contents::of(object)?;
    let addresses = resolve(&contents.undefined)?.into_iter().map(<*const u8>::expose_provenance);
    let symbols: Vec<(&str, usize)> = contents.undefined.iter().map(String::as_str).zip(addresses).collect();
    let mut loaded = Session::of_process()?.load(&[object], &symbols, exports)?;
    let addresses = std::mem::take(&mut loaded.addresses);
    Ok((addresses, Box::new(loaded.memory(Vec::new()))))
}

/// The relevant contents of an object file.
struct Contents {
    undefined: Vec<String>,
    /// The defined global symbols, each with its offset in its section and that section's size.
    defined: Vec<(String, u64, u64)>,
    code_size: usize,
    data_size: usize,
}

impl Contents {
    fn of(bytes: &[u8]) -> Result<Self, EngineError> {
        let malformed =
            |e: object::Error| EngineError::internal(format!("LLVM made an object that can't be read: {e}"));
        let file = object::File::parse(bytes).map_err(malformed)?;
        let plain = |name: &str| c_name(file.format(), name).to_owned();
        let mut out = Contents { undefined: Vec::new(), defined: Vec::new(), code_size: 0, data_size: 0 };
        for symbol in file.symbols() {
            let name = symbol.name().map_err(malformed)?;
            if symbol.is_undefined() && !name.is_empty() {
                out.undefined.push(plain(name));
            } else if symbol.is_global()
                && let Some(section) = symbol.section_index()
            {
                let section = file.section_by_index(section).map_err(malformed)?;
                out.defined.push((plain(name), symbol.address() - section.address(), section.size()));
            }
        }
        for section in file.sections() {
            match section.kind() {
                SectionKind::Text => out.code_size += section.size() as usize,
                SectionKind::Data
                | SectionKind::UninitializedData
                | SectionKind::ReadOnlyData
                | SectionKind::ReadOnlyString => {
                    out.data_size += section.size() as usize;
                }
                _ => {}
            }
        }
        Ok(out)
    }

    /// The address ranges of the sections that contain these functions.
    fn sections_of(&self, functions: &[(Box<str>, usize)]) -> Vec<std::ops::Range<usize>> {
        let mut ranges: Vec<std::ops::Range<usize>> = Vec::new();
        for (name, offset, size) in &self.defined {
            let Some((_, address)) = functions.iter().find(|(known, _)| **known == **name) else { continue };
            let start = address - *offset as usize;
            let range = start..start + *size as usize;
            if !ranges.contains(&range) {
                ranges.push(range);
            }
        }
        ranges
    }
}
