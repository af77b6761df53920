//! Declarations and static data of a translated module, and the symbols that other code sees.

use std::collections::HashMap;

use cranelift_entity::SecondaryMap;
use inkwell::DLLStorageClass;
use inkwell::comdat::ComdatSelectionKind;
use inkwell::context::ContextRef;
use inkwell::llvm_sys::core::{LLVMGetNumOperands, LLVMGetOperand};
use inkwell::module::{Linkage as LlvmLinkage, Module as LlvmModule};
use inkwell::types::AsTypeRef;
use inkwell::values::{
    ArrayValue, AsValueRef, BasicValueEnum, FunctionValue, GlobalValue, PointerValue, UnnamedAddress,
};
use target_lexicon::BinaryFormat;

use super::debug::DebugInfo;
use super::facts::Facts;
use super::types::Types;
use crate::backend::code::CACHE_LINE;
use crate::backend::{OptLevel, local_symbol};
use crate::ir::{Data, DataKind, DataRef, FuncDecl, FuncRef, Function, Linkage, Module, Op};

/// The translation of one module into an LLVM module, which may contain other code.
pub(super) struct ModuleTranslator<'a, 'ctx> {
    pub(super) ir: &'a Module,
    pub(super) module: &'a LlvmModule<'ctx>,
    pub(super) context: ContextRef<'ctx>,
    /// The maximum number of bytes that the target's code compares in one instruction.
    pub(super) widest_piece: u32,
    /// The target is x86-64, for which intrinsics are used.
    pub(super) x86_64: bool,
    pub(super) types: Types<'ctx>,
    pub(super) facts: Facts<'ctx>,
    /// The debug information, if the module has source locations.
    pub(super) debug: Option<DebugInfo<'a, 'ctx>>,
    pub(super) functions: SecondaryMap<FuncRef, Option<FunctionValue<'ctx>>>,
    data: SecondaryMap<DataRef, Option<PointerValue<'ctx>>>,
    /// Whether the object has to state what a library exports, as on Windows.
    exports: bool,
    /// Whether the object's format is ELF or COFF.
    elf: bool,
    coff: bool,
    /// Whether the code is written to a file; false if all of it is loaded into this process.
    in_file: bool,
    /// The symbols of destructors that the code's loader has to call.
    pub(super) destructors: Vec<String>,
    /// Globals that LLVM must not drop.
    kept: Vec<PointerValue<'ctx>>,
    /// Functions that were defined or declared.
    pub(super) added: Vec<FunctionValue<'ctx>>,
}

/// How to handle functions that run when the code is unloaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Destructors {
    /// Leave them out, since the caller's module is never unloaded.
    LeftOut,
    /// Export them under names with a known prefix, for the code's loader.
    Exported,
    /// List them where loaders of this object format find them.
    Listed(BinaryFormat),
}

/// The assumptions of a translation about the module that it writes to.
pub(super) struct Surroundings<'a, 'ctx> {
    /// Maps names of imports to functions.
    pub(super) bindings: &'a HashMap<String, FunctionValue<'ctx>>,
    /// Whether the module contains nothing else. Exported functions then can't be inlined into unknown code.
    pub(super) alone: bool,
    /// How to handle functions that run when the code is unloaded.
    pub(super) destructors: Destructors,
}

impl<'a, 'ctx> ModuleTranslator<'a, 'ctx> {
    pub(super) fn new(ir: &'a Module, module: &'a LlvmModule<'ctx>) -> Self {
        let context = module.get_context();
        let types = Types::of_module(module);
        ModuleTranslator {
            ir,
            module,
            context,
            widest_piece: 16,
            x86_64: false,
            types,
            facts: Facts::new(context, &types),
            debug: DebugInfo::new(ir, module, &types),
            functions: SecondaryMap::new(),
            data: SecondaryMap::new(),
            exports: false,
            elf: false,
            coff: false,
            in_file: true,
            destructors: Vec::new(),
            kept: Vec::new(),
            added: Vec::new(),
        }
    }

    /// Translates for an object file of this format. With `for_linker` the object is linked, and states what a library
    /// exports.
    pub(super) fn for_format(self, format: BinaryFormat, for_linker: bool) -> Self {
        let (elf, coff) = (format == BinaryFormat::Elf, format == BinaryFormat::Coff);
        ModuleTranslator {
            exports: for_linker && coff,
            in_file: for_linker,
            elf,
            coff,
            facts: self.facts.for_format(format),
            ..self
        }
    }

    /// Declares every function that has a body, and binds imports.
    pub(super) fn declare(&mut self, bindings: &HashMap<String, FunctionValue<'ctx>>) {
        for (func, decl) in &self.ir.functions {
            if decl.body.is_some() {
                self.define(func);
            } else if let Some(&bound) = bindings.get(&decl.name) {
                self.functions[func] = Some(bound);
            }
        }
    }

    /// Adds everything but functions: debug information, variables, constructors and destructors.
    pub(super) fn finish(&mut self, surroundings: &Surroundings<'_, 'ctx>) {
        if let Some(debug) = &self.debug {
            debug.finish();
        }
        for (data, _) in self.ir.data.iter().filter(|(_, data)| data.kind == DataKind::Variable) {
            self.data(data);
        }
        let ir = self.ir;
        self.listed(&ir.constructors, ".init_array", "constructors", "llvm.global_ctors");
        match surroundings.destructors {
            Destructors::LeftOut => {}
            Destructors::Exported => self.show_destructors(surroundings.alone),
            // COFF has no such list: constructors register destructors there
            Destructors::Listed(_) if self.coff => {}
            Destructors::Listed(_) => self.listed(&ir.destructors, ".fini_array", "destructors", "llvm.global_dtors"),
        }
        self.keep();
    }

    /// Exports the destructors for the code's loader. Other modules loaded with this one have destructors of the same
    /// names. So if the module contains other code, each name includes that of an exported function of the IR.
    fn show_destructors(&mut self, alone: bool) {
        let exported = self.ir.functions.values().find(|decl| decl.linkage == Linkage::Export);
        for &func in &self.ir.destructors {
            let function = self.function(func);
            if !alone && let Some(exported) = exported {
                let name = format!("{}.{}", function.get_name().to_string_lossy(), exported.name);
                function.as_global_value().set_name(&name);
            }
            function.set_linkage(LlvmLinkage::External);
            self.destructors.push(function.get_name().to_string_lossy().into_owned());
        }
    }

    /// Lists the addresses of functions where the C library finds them: in an ELF section, or in LLVM's own list for
    /// other formats.
    fn listed(&mut self, functions: &[FuncRef], section: &str, what: &str, llvm_list: &str) {
        let address = |m: &mut Self, func| m.function(func).as_global_value().as_pointer_value();
        let addresses: Vec<_> = functions.iter().map(|&func| address(self, func)).collect();
        if addresses.is_empty() {
            return;
        }
        if self.elf {
            // LLVM may put `llvm.global_ctors` into `.ctors`, which no current C library reads, and its C API lacks the
            // option for that.
            let list = self.types.ptr.const_array(&addresses);
            let global = self.module.add_global(list.get_type(), None, &format!("__tvm_ffi_codegen_{what}"));
            global.set_initializer(&list);
            global.set_linkage(LlvmLinkage::Internal);
            global.set_alignment(8);
            global.set_section(Some(section));
            self.kept.push(global.as_pointer_value());
            return;
        }
        // priority, function, associated data
        let (priority, none) = (self.types.i32.const_int(65535, false), self.types.ptr.const_null());
        let entry = |address: &PointerValue<'ctx>| {
            self.context.const_struct(&[priority.into(), (*address).into(), none.into()], false)
        };
        let entries: Vec<_> = addresses.iter().map(entry).collect();
        let Some(ty) = entries.first().map(|entry| entry.get_type()) else { return };
        self.special(llvm_list, ty.const_array(&entries));
    }

    /// Keeps LLVM from dropping globals that nothing in the module refers to.
    fn keep(&self) {
        if !self.kept.is_empty() {
            let list = self.types.ptr.const_array(&self.kept);
            self.special("llvm.compiler.used", list).set_section(Some("llvm.metadata"));
        }
    }

    /// Sets one of the arrays that LLVM knows by name, with the new elements after the module's existing ones.
    fn special(&self, name: &str, mut list: ArrayValue<'ctx>) -> GlobalValue<'ctx> {
        if let Some(known) = self.module.get_global(name) {
            if let Some(BasicValueEnum::ArrayValue(before)) = known.get_initializer() {
                list = joined(before, list);
            }
            // SAFETY: nothing refers to such an array.
            unsafe { known.delete() };
        }
        let global = self.module.add_global(list.get_type(), None, name);
        global.set_initializer(&list);
        global.set_linkage(LlvmLinkage::Appending);
        global
    }

    /// Functions that other functions of the module call.
    pub(super) fn called(&self) -> SecondaryMap<FuncRef, bool> {
        let mut called = SecondaryMap::new();
        for body in self.ir.functions.values().filter_map(|f| f.body.as_ref()) {
            for inst in body.insts.values() {
                if let Op::Call(callee, _) = inst.op {
                    called[callee] = true;
                }
            }
        }
        called
    }

    /// Exported functions without loops: wrappers, whose fast path would become slower with `simplifycfg` and the
    /// vectoriser. The passes may remove other functions.
    pub(super) fn without_loops(&self) -> Vec<FunctionValue<'ctx>> {
        let straight = |decl: &FuncDecl| {
            decl.linkage == Linkage::Export && !decl.cold && decl.body.is_some() && !OptLevel::gains(decl)
        };
        let wanted = self.ir.functions.iter().filter(|(_, decl)| straight(decl));
        wanted.filter_map(|(func, _)| self.functions[func]).collect()
    }

    /// Rarely called functions with loops, which do more than call another function.
    pub(super) fn cold_with_loops(&self) -> Vec<FunctionValue<'ctx>> {
        let loops = |decl: &FuncDecl| decl.cold && decl.body.as_ref().is_some_and(Function::has_loop);
        let wanted = self.ir.functions.iter().filter(|(_, decl)| loops(decl));
        wanted.filter_map(|(func, _)| self.functions[func]).collect()
    }

    fn define(&mut self, func: FuncRef) {
        let decl = &self.ir.functions[func];
        let ty = self.types.function(&decl.signature);
        let function = match decl.linkage {
            // If the name is taken, LLVM appends a number.
            Linkage::Local => {
                let name = if self.in_file { local_symbol(&decl.name) } else { decl.name.clone() };
                self.module.add_function(&name, ty, Some(LlvmLinkage::Internal))
            }
            // If the module already declares the function with the same type, this becomes its body.
            _ => self.module.get_function(&decl.name).unwrap_or_else(|| self.module.add_function(&decl.name, ty, None)),
        };
        self.facts.define(function, decl);
        if decl.linkage == Linkage::Export && !decl.cold {
            function.as_global_value().set_alignment(CACHE_LINE);
        }
        if self.exports && decl.linkage == Linkage::Export {
            function.as_global_value().set_dll_storage_class(DLLStorageClass::Export);
        }
        self.functions[func] = Some(function);
        self.added.push(function);
    }

    /// A function to call. Imports are declared when first needed.
    pub(super) fn function(&mut self, func: FuncRef) -> FunctionValue<'ctx> {
        if let Some(known) = self.functions[func] {
            return known;
        }
        let decl = &self.ir.functions[func];
        let function = self.module.get_function(&decl.name).unwrap_or_else(|| {
            let new = self.module.add_function(&decl.name, self.types.outside(&decl.signature), None);
            self.facts.declare(new, decl);
            self.added.push(new);
            new
        });
        self.functions[func] = Some(function);
        function
    }

    /// The address of static data. The data is added to the module when first needed.
    pub(super) fn data(&mut self, data: DataRef) -> PointerValue<'ctx> {
        if let Some(known) = self.data[data] {
            return known;
        }
        let content = &self.ir.data[data];
        if content.kind == DataKind::Variable
            && let Some(known) = self.module.get_global(&content.name)
        {
            let address = known.as_pointer_value();
            self.data[data] = Some(address);
            return address;
        }
        let initializer = self.initializer(content);
        let global = self.module.add_global(initializer.get_type(), None, &content.name);
        global.set_initializer(&initializer);
        match content.kind {
            DataKind::Constant => {
                global.set_constant(true);
                global.set_linkage(LlvmLinkage::Private);
                global.set_unnamed_address(UnnamedAddress::Global);
            }
            DataKind::State => global.set_linkage(LlvmLinkage::Internal),
            DataKind::Variable => {
                global.set_linkage(LlvmLinkage::WeakAny);
                // COFF can't export weak symbols, but several objects may contain the same COMDAT section.
                if self.coff {
                    let comdat = self.module.get_or_insert_comdat(&content.name);
                    comdat.set_selection_kind(ComdatSelectionKind::Any);
                    global.set_comdat(comdat);
                }
                if self.exports {
                    global.set_dll_storage_class(DLLStorageClass::Export);
                }
            }
        }
        global.set_alignment(content.align);
        let address = global.as_pointer_value();
        self.data[data] = Some(address);
        address
    }

    /// The contents of data: bytes interleaved with addresses of functions.
    fn initializer(&mut self, data: &Data) -> BasicValueEnum<'ctx> {
        if data.addresses.is_empty() {
            return self.context.const_string(&data.bytes, false).into();
        }
        let mut addresses = data.addresses.clone();
        addresses.sort_unstable();
        let mut fields: Vec<BasicValueEnum<'ctx>> = Vec::with_capacity(addresses.len());
        let mut at = 0;
        for (offset, func) in addresses {
            let offset = offset as usize;
            if offset > at {
                fields.push(self.context.const_string(&data.bytes[at..offset], false).into());
            }
            fields.push(self.function(func).as_global_value().as_pointer_value().into());
            at = offset + 8;
        }
        if at < data.bytes.len() {
            fields.push(self.context.const_string(&data.bytes[at..], false).into());
        }
        self.context.const_struct(&fields, true).into()
    }
}

/// Concatenates two constant arrays of one element type.
fn joined<'ctx>(first: ArrayValue<'ctx>, second: ArrayValue<'ctx>) -> ArrayValue<'ctx> {
    let elements = |list: ArrayValue<'ctx>| {
        let list = list.as_value_ref();
        // SAFETY: a constant array, whose operands are its elements.
        (0..unsafe { LLVMGetNumOperands(list) }).map(move |index| unsafe { LLVMGetOperand(list, index as u32) })
    };
    let all: Vec<_> = elements(first).chain(elements(second)).collect();
    // SAFETY: all elements are constants of the element type and of one context.
    unsafe { ArrayValue::new_raw_const_array(second.get_type().get_element_type().as_type_ref(), &all) }
}
