//! Phase 2 for a file: writes compiled code into an object file.

use std::panic::{AssertUnwindSafe, catch_unwind};

use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::isa::unwind::UnwindInfo;
use cranelift_module::default_libcall_names;
use cranelift_object::{ObjectBuilder, ObjectModule};
use object::write::{Object, Relocation, SymbolId, SymbolSection};
use object::{
    BinaryFormat, RelocationEncoding, RelocationFlags, RelocationKind, SectionFlags, SectionKind, elf, macho,
};
use target_lexicon::{Architecture, Environment, Triple};

use super::debug::{self, Described};
use super::recorder::endian_of;
use super::unwind::UnwindTables;
use super::{Bindings, CompiledFunction, CompiledModule, Error};
use crate::backend::Lines;
use crate::ir::{FuncRef, LocationRef};

const COFF: target_lexicon::BinaryFormat = target_lexicon::BinaryFormat::Coff;

impl CompiledModule {
    /// Writes an object file: ELF, Mach-O or COFF, depending on the target. It contains unwind tables if the code was
    /// compiled with [`Options::unwind`](super::Options::unwind). [`libcalls`](Self::libcalls) lists the C library
    /// functions that Cranelift's code calls.
    ///
    /// # Errors
    /// The code was compiled for another target, or the target's object format can't hold it.
    pub fn into_object(self, isa: OwnedTargetIsa) -> Result<Vec<u8>, Error> {
        let triple = isa.triple().clone();
        if let (Architecture::Aarch64(_), target_lexicon::BinaryFormat::Coff) =
            (triple.architecture, triple.binary_format)
        {
            let reason = "Cranelift's relocations have no form in COFF for this CPU; LLVM's do".to_owned();
            return Err(refused(&triple, reason));
        }
        // `cranelift-object` panics on some errors. No panic may leave this library.
        let done = catch_unwind(AssertUnwindSafe(|| self.write(isa)));
        done.unwrap_or_else(|payload| {
            let text = payload.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("unknown");
            Err(refused(&triple, format!("panic: {text}")))
        })
    }

    fn write(mut self, isa: OwnedTargetIsa) -> Result<Vec<u8>, Error> {
        let triple = isa.triple().clone();
        let mut builder = ObjectBuilder::new(isa.clone(), "tvm_ffi", default_libcall_names())?;
        // linkers take the code of a library as a whole
        builder.per_function_section(false);
        let mut module = ObjectModule::new(builder);
        let ids = self.place(&mut module, &Bindings::new(), true)?.ids;
        let mut unwind = UnwindTables::new(&*isa);
        let tables: Vec<_> = self.functions.iter_mut().map(Tables::take).collect();
        let locations = std::mem::take(&mut self.locations);
        let constructors = std::mem::take(&mut self.constructors);
        let destructors = std::mem::take(&mut self.destructors);
        let variables = if triple.binary_format == COFF { self.zeros(&triple)? } else { Vec::new() };
        let exports: Vec<(String, bool)> = if triple.binary_format == COFF {
            self.exports().map(|(name, is_data)| (name.to_owned(), is_data)).collect()
        } else {
            Vec::new()
        };
        drop(self);

        let mut product = module.finish();
        let mut described = Vec::new();
        for (&id, Tables { unwind: info, size, lines, first }) in ids.iter().zip(tables) {
            if let Some(info) = info {
                unwind.add(product.function_symbol(id), info, size);
            }
            if let Some(first) = first {
                described.extend(Described::new(product.function_symbol(id), size, lines, first));
            }
        }
        let object = &mut product.object;
        debug::write(object, endian_of(&*isa), &locations, &described).map_err(|reason| refused(&triple, reason))?;
        let failed = |e: object::write::Error| refused(&triple, e.to_string());
        unwind.write(object).map_err(|reason| refused(&triple, reason))?;
        let symbols = |functions: &[FuncRef]| -> Vec<SymbolId> {
            functions.iter().filter_map(|f| product.functions[ids[f.as_u32() as usize]]).map(|(id, _)| id).collect()
        };
        add_constructors(object, &symbols(&constructors)).map_err(failed)?;
        add_destructors(object, &symbols(&destructors)).map_err(failed)?;
        share_variables(object, &variables);
        add_exports(object, &triple, &exports);
        object.write().map_err(failed)
    }
}

/// The data of a function that its tables are built from.
struct Tables {
    unwind: Option<UnwindInfo>,
    size: u32,
    lines: Vec<Lines>,
    first: Option<LocationRef>,
}

impl Tables {
    fn take(function: &mut CompiledFunction) -> Self {
        let (unwind, lines) = (function.unwind.take(), std::mem::take(&mut function.lines));
        Tables { unwind, size: function.code.len() as u32, lines, first: function.first_location }
    }
}

impl CompiledModule {
    /// Variables with their sizes. They must be zero-initialised.
    fn zeros(&self, triple: &Triple) -> Result<Vec<(String, u64)>, Error> {
        let mut out = Vec::new();
        for data in &self.data {
            let Some(name) = &data.variable else { continue };
            if !data.is_zero() {
                return Err(refused(triple, format!("the variable `{name}` is not zero")));
            }
            out.push((name.clone(), data.description.init.size() as u64));
        }
        Ok(out)
    }
}

fn refused(triple: &Triple, reason: String) -> Error {
    Error::Object { target: triple.to_string(), reason }
}

/// A section of function addresses: segment, name, kind and flags.
type Functions = (&'static [u8], &'static [u8], SectionKind, Option<SectionFlags>);

/// ELF's section of function addresses.
fn elf_functions(name: &'static [u8], sh_type: u32) -> Functions {
    let flags = SectionFlags::Elf { sh_flags: u64::from(elf::SHF_ALLOC | elf::SHF_WRITE) };
    (b"", name, SectionKind::Elf(sh_type), Some(flags))
}

/// Stores the addresses of constructors where start-up code finds them.
fn add_constructors(object: &mut Object<'_>, functions: &[SymbolId]) -> object::write::Result<()> {
    let place = match object.format() {
        BinaryFormat::MachO => {
            let flags = SectionFlags::MachO { flags: macho::S_MOD_INIT_FUNC_POINTERS };
            (&b"__DATA"[..], &b"__mod_init_func"[..], SectionKind::Data, Some(flags))
        }
        // The C library runs the entries between .CRT$XCA and .CRT$XCZ; U is reserved for user code.
        BinaryFormat::Coff => (&b""[..], &b".CRT$XCU"[..], SectionKind::ReadOnlyData, None),
        _ => elf_functions(b".init_array", elf::SHT_INIT_ARRAY),
    };
    add_functions(object, place, functions)
}

/// Stores the addresses of destructors where the code that ends a program or unloads a library finds them. COFF has no
/// such section: there, constructors register destructors.
fn add_destructors(object: &mut Object<'_>, functions: &[SymbolId]) -> object::write::Result<()> {
    let place = match object.format() {
        BinaryFormat::MachO => {
            let flags = SectionFlags::MachO { flags: macho::S_MOD_TERM_FUNC_POINTERS };
            (&b"__DATA"[..], &b"__mod_term_func"[..], SectionKind::Data, Some(flags))
        }
        BinaryFormat::Coff => return Ok(()),
        _ => elf_functions(b".fini_array", elf::SHT_FINI_ARRAY),
    };
    add_functions(object, place, functions)
}

fn add_functions(object: &mut Object<'_>, place: Functions, functions: &[SymbolId]) -> object::write::Result<()> {
    if functions.is_empty() {
        return Ok(());
    }
    let (segment, name, kind, flags) = place;
    let section = object.add_section(segment.to_vec(), name.to_vec(), kind);
    if let Some(flags) = flags {
        object.section_mut(section).flags = flags;
    }
    for &symbol in functions {
        let offset = object.append_section_data(section, &[0; 8], 8);
        let (kind, encoding, size) = (RelocationKind::Absolute, RelocationEncoding::Generic, 64);
        let flags = RelocationFlags::Generic { kind, encoding, size };
        object.add_relocation(section, Relocation { offset, symbol, addend: 0, flags })?;
    }
    Ok(())
}

/// Turns COFF's variables into common symbols. From all objects that have such a symbol, the linker makes one
/// zero-initialised variable.
fn share_variables(object: &mut Object<'_>, variables: &[(String, u64)]) {
    for (name, size) in variables {
        if let Some(symbol) = object.symbol_id(name.as_bytes()) {
            let symbol = object.symbol_mut(symbol);
            (symbol.section, symbol.size, symbol.scope) = (SymbolSection::Common, *size, object::SymbolScope::Dynamic);
        }
    }
}

/// Tells the linker what a library exports. COFF needs options in a section for that, in Microsoft's or GNU's syntax.
fn add_exports(object: &mut Object<'_>, triple: &Triple, exports: &[(String, bool)]) {
    if exports.is_empty() {
        return;
    }
    let (option, data) = match triple.environment {
        Environment::Gnu | Environment::GnuLlvm => ("-export:", ",data"),
        _ => ("/EXPORT:", ",DATA"),
    };
    let text: String =
        exports.iter().map(|(name, is_data)| format!(" {option}{name}{}", if *is_data { data } else { "" })).collect();
    let section = object.add_section(Vec::new(), b".drectve".to_vec(), SectionKind::Linker);
    object.append_section_data(section, text.as_bytes(), 1);
}
