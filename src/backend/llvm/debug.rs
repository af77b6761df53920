//! Source locations as LLVM debug information, from which LLVM generates line tables.
//!
//! A function with source locations gets a subprogram. A function without any gets none: LLVM would attribute its code
//! to the line of the code before it, in another function. In a function with a subprogram, LLVM requires a location
//! for each call that it may inline; code without a location has line 0.

use std::collections::HashMap;

use inkwell::context::ContextRef;
use inkwell::debug_info::{
    AsDIScope, DICompileUnit, DIFile, DIFlags, DIFlagsConstants, DILocation, DIScope, DISubprogram, DISubroutineType,
    DWARFEmissionKind, DWARFSourceLanguage, DebugInfoBuilder, debug_metadata_version,
};
use inkwell::module::{FlagBehavior, Module as LlvmModule};
use inkwell::values::FunctionValue;

use super::types::Types;
use crate::ir::{FuncDecl, Function, Linkage, LocationData, LocationRef, Module};

/// The same version as in the Cranelift backend.
const DWARF_VERSION: u64 = 4;

/// The debug information of a module under construction.
pub(super) struct DebugInfo<'a, 'ctx> {
    ir: &'a Module,
    context: ContextRef<'ctx>,
    builder: DebugInfoBuilder<'ctx>,
    unit: DICompileUnit<'ctx>,
    /// The type of all functions. It describes nothing.
    ty: DISubroutineType<'ctx>,
    files: HashMap<&'a str, DIFile<'ctx>>,
}

impl<'a, 'ctx> DebugInfo<'a, 'ctx> {
    /// Creates the debug information of a module; `None` without source locations.
    pub(super) fn new(ir: &'a Module, module: &LlvmModule<'ctx>, types: &Types<'ctx>) -> Option<Self> {
        let main = ir.locations.values().next()?;
        for (name, value) in
            [("Debug Info Version", u64::from(debug_metadata_version())), ("Dwarf Version", DWARF_VERSION)]
        {
            // in a caller's module, keep the caller's own flag
            if module.get_flag(name).is_none() {
                module.add_basic_value_flag(name, FlagBehavior::Warning, types.i32.const_int(value, false));
            }
        }
        let (builder, unit) = module.create_debug_info_builder(
            false,
            // DWARF has no number for the source's language, and debuggers print the names of C unchanged
            DWARFSourceLanguage::C99,
            &text(&main.file),
            "",
            concat!("tvm-ffi-codegen ", env!("CARGO_PKG_VERSION")),
            true,
            "",
            0,
            "",
            DWARFEmissionKind::Full,
            0,
            false,
            false,
            "",
            "",
        );
        let ty = builder.create_subroutine_type(unit.get_file(), None, &[], DIFlags::ZERO);
        Some(DebugInfo { ir, context: module.get_context(), builder, unit, ty, files: HashMap::new() })
    }

    fn file(&mut self, location: &'a LocationData) -> DIFile<'ctx> {
        let builder = &self.builder;
        *self.files.entry(&location.file).or_insert_with_key(|file| builder.create_file(&text(file), ""))
    }

    /// Names the source function of a function: that of its first location.
    pub(super) fn define(
        &mut self,
        decl: &FuncDecl,
        body: &Function,
        function: FunctionValue<'ctx>,
    ) -> Option<Scope<'ctx>> {
        let first = &self.ir.locations[body.first_location()?];
        let (file, line) = (self.file(first), first.line);
        let subprogram = self.builder.create_function(
            self.unit.as_debug_info_scope(),
            &text(&first.function),
            // no linkage name, because `addr2line` would print it instead of the name
            Some(""),
            file,
            line,
            self.ty,
            decl.linkage == Linkage::Local,
            true,
            line,
            DIFlags::ZERO,
            true,
        );
        function.set_subprogram(subprogram);
        Some(Scope { subprogram, file, blocks: HashMap::new() })
    }

    /// The debug location of code in a function.
    pub(super) fn location(&mut self, scope: &mut Scope<'ctx>, location: Option<LocationRef>) -> DILocation<'ctx> {
        let (line, at) = match location.map(|location| &self.ir.locations[location]) {
            // line 0 means that the code has no line
            None => (0, scope.subprogram.as_debug_info_scope()),
            Some(location) => {
                let file = self.file(location);
                (location.line, self.scope_of(scope, file))
            }
        };
        self.builder.create_debug_location(self.context, line, 0, at, None)
    }

    /// The scope of code. Code from a file other than the function's gets a lexical block of that file.
    fn scope_of(&self, scope: &mut Scope<'ctx>, file: DIFile<'ctx>) -> DIScope<'ctx> {
        let subprogram = scope.subprogram.as_debug_info_scope();
        if file == scope.file {
            return subprogram;
        }
        let new = || self.builder.create_lexical_block(subprogram, file, 0, 0).as_debug_info_scope();
        *scope.blocks.entry(file.as_mut_ptr() as usize).or_insert_with(new)
    }

    /// Completes the debug information, as LLVM's verifier requires.
    pub(super) fn finish(&self) {
        self.builder.finalize();
    }
}

/// The scope of one function.
pub(super) struct Scope<'ctx> {
    subprogram: DISubprogram<'ctx>,
    file: DIFile<'ctx>,
    /// The lexical blocks of other files, by file.
    blocks: HashMap<usize, DIScope<'ctx>>,
}

/// A string as debug information allows it: not empty, and without a NUL.
fn text(text: &str) -> String {
    if text.is_empty() { "?".to_owned() } else { text.replace('\0', "\u{fffd}") }
}
