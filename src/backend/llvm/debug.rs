//! Source locations as LLVM's debug information, of which LLVM makes line tables.
//!
//! A function with source locations gets a subprogram. A function without any gets none: to code of no line, LLVM gives the line of the code before,
//! which would be another function's. In a function with a subprogram, LLVM wants a location for each call that it may inline; code of no line has
//! line 0.

use std::collections::HashMap;

use inkwell::context::ContextRef;
use inkwell::debug_info::{
    AsDIScope, DICompileUnit, DIFile, DIFlags, DIFlagsConstants, DILocation, DIScope, DISubprogram, DISubroutineType,
    DWARFEmissionKind, DWARFSourceLanguage, DebugInfoBuilder, debug_metadata_version,
};
use inkwell::module::{FlagBehavior, Module as LlvmModule};
use inkwell::values::FunctionValue;

use super::types::Types;
use crate::ir::{FuncDecl, Function, Linkage, LocationRef, Module, SourceLocation};

/// As the Cranelift backend has it.
const DWARF_VERSION: u64 = 4;

/// The debug information of a module under construction.
pub(super) struct DebugInfo<'a, 'ctx> {
    ir: &'a Module,
    context: ContextRef<'ctx>,
    builder: DebugInfoBuilder<'ctx>,
    unit: DICompileUnit<'ctx>,
    /// The type of every function: none is told.
    ty: DISubroutineType<'ctx>,
    files: HashMap<&'a str, DIFile<'ctx>>,
}

impl<'a, 'ctx> DebugInfo<'a, 'ctx> {
    /// That of a module with source locations.
    pub(super) fn new(ir: &'a Module, module: &LlvmModule<'ctx>, types: &Types<'ctx>) -> Option<Self> {
        let main = ir.locations.values().next()?;
        for (name, value) in
            [("Debug Info Version", u64::from(debug_metadata_version())), ("Dwarf Version", DWARF_VERSION)]
        {
            // the caller's own, if it is the caller's module
            if module.get_flag(name).is_none() {
                module.add_basic_value_flag(name, FlagBehavior::Warning, types.i32.const_int(value, false));
            }
        }
        let (builder, unit) = module.create_debug_info_builder(
            false,
            // the source's language has no number, and debuggers show the names of C as they are
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

    fn file(&mut self, location: &'a SourceLocation) -> DIFile<'ctx> {
        let builder = &self.builder;
        *self.files.entry(&location.file).or_insert_with_key(|file| builder.create_file(&text(file), ""))
    }

    /// Says which function of the source a function is: that of its first location.
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
            // no linkage name, which `addr2line` would print instead
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

    /// The location of code in a function.
    pub(super) fn location(&mut self, scope: &mut Scope<'ctx>, location: Option<LocationRef>) -> DILocation<'ctx> {
        let (line, at) = match location.map(|location| &self.ir.locations[location]) {
            // line 0 is code of no line
            None => (0, scope.subprogram.as_debug_info_scope()),
            Some(location) => {
                let file = self.file(location);
                (location.line, self.scope_of(scope, file))
            }
        };
        self.builder.create_debug_location(self.context, line, 0, at, None)
    }

    /// Code of another file than the function's stands in a block of that file.
    fn scope_of(&self, scope: &mut Scope<'ctx>, file: DIFile<'ctx>) -> DIScope<'ctx> {
        let subprogram = scope.subprogram.as_debug_info_scope();
        if file == scope.file {
            return subprogram;
        }
        let new = || self.builder.create_lexical_block(subprogram, file, 0, 0).as_debug_info_scope();
        *scope.blocks.entry(file.as_mut_ptr() as usize).or_insert_with(new)
    }

    /// Completes it. LLVM's verifier takes no less.
    pub(super) fn finish(&self) {
        self.builder.finalize();
    }
}

/// The scope of one function.
pub(super) struct Scope<'ctx> {
    subprogram: DISubprogram<'ctx>,
    file: DIFile<'ctx>,
    /// The blocks of other files, by the files.
    blocks: HashMap<usize, DIScope<'ctx>>,
}

/// A text as debug information can have it: not empty, and without a NUL.
fn text(text: &str) -> String {
    if text.is_empty() { "?".to_owned() } else { text.replace('\0', "\u{fffd}") }
}
