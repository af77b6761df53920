//! Phase 2: adds compiled code to a module that the caller owns.

use std::collections::HashMap;

use cranelift_codegen::ir as clif;
use cranelift_module::{
    DataDescription, DataId, FuncId, FuncOrDataId, Linkage as ClifLinkage, Module, ModuleReloc, ModuleRelocTarget,
};

use super::compiled::{CompiledData, CompiledFunction, CompiledModule};
use super::error::Error;
use super::isa::isa_identity;
use super::translate::{DATA, FUNCTIONS};
use crate::backend::local_symbol;
use crate::ir::{FuncRef, Linkage};

/// Maps names of imports to functions of the caller's module.
///
/// An import without a binding is looked up in the caller's module by its name, and declared there if it is new.
#[derive(Clone, Debug, Default)]
pub struct Bindings {
    functions: HashMap<String, FuncId>,
}

impl Bindings {
    /// No bindings: every import is resolved by its name.
    pub fn new() -> Self {
        Self::default()
    }

    /// Binds the import `name` to a function of the caller's module. The function may be local or anonymous.
    #[must_use]
    pub fn bind(mut self, name: impl Into<String>, function: FuncId) -> Self {
        self.functions.insert(name.into(), function);
        self
    }
}

/// The exported functions that were defined, and the variables that code uses, with their ids in the caller's module.
#[derive(Clone, Debug, Default)]
pub struct Defined {
    functions: Vec<(String, FuncId)>,
    variables: Vec<(String, DataId)>,
}

impl Defined {
    /// An exported function by its name.
    pub fn function(&self, name: &str) -> Option<FuncId> {
        self.functions.iter().find(|(known, _)| known == name).map(|&(_, id)| id)
    }

    /// All exported functions.
    pub fn functions(&self) -> impl Iterator<Item = (&str, FuncId)> {
        self.functions.iter().map(|(name, id)| (name.as_str(), *id))
    }

    /// All variables: the newly defined ones and those that the module already had.
    pub fn variables(&self) -> impl Iterator<Item = (&str, DataId)> {
        self.variables.iter().map(|(name, id)| (name.as_str(), *id))
    }
}

/// The result of [`CompiledModule::place`].
pub(crate) struct Placed {
    pub(crate) defined: Defined,
    /// Each function's id. An import has one only if it is used.
    pub(crate) ids: Vec<FuncId>,
    /// The functions that run when the code is loaded.
    pub(crate) constructors: Vec<FuncId>,
    /// The functions that run when the code is unloaded.
    pub(crate) destructors: Vec<FuncId>,
}

/// The action for a data object, decided before the module is touched.
#[derive(Clone, Copy)]
enum DataPlan {
    /// A variable that the module has already.
    Known(DataId),
    /// A variable that is new to the module.
    Variable,
    /// Local data. It has no name and so can't clash.
    Local,
}

/// The action for a function, decided before the module is touched.
#[derive(Clone, Copy)]
enum Plan {
    /// An import that no code refers to.
    Skip,
    /// An import that the module has already.
    Known(FuncId),
    /// An import that is new to the module.
    Import,
    /// A function defined here and exported by its name.
    Export,
    /// A local function defined here. It has no name and so can't clash.
    Local,
}

impl CompiledModule {
    /// Adds the code to `module`: exported functions and variables under their names, everything else without names. A
    /// variable that the module already has is reused. The IR's destructors are left out: a caller's module doesn't
    /// report when its code is unloaded.
    ///
    /// All problems with the request are found before the module is touched, so such an error leaves the module
    /// unchanged. Only [`Error::Module`] can occur later: the module ran out of memory.
    ///
    /// A name that the module declares with a linkage other than `Linkage::Import` counts as defined, since a
    /// `cranelift_module::Module` doesn't report definitions.
    pub fn add_to<M: Module + ?Sized>(&self, module: &mut M, bindings: &Bindings) -> Result<Defined, Error> {
        if let Some(what) = &self.only_in_objects {
            return Err(Error::OnlyInObjects { what: what.clone() });
        }
        Ok(self.place(module, bindings, false)?.defined)
    }

    /// Checks a request to add the code, without touching the module. Imports that are neither bound nor present in the
    /// module can still be bound later.
    pub(crate) fn check<M: Module + ?Sized>(&self, module: &M, bindings: &Bindings) -> Result<(), Error> {
        self.plan(module, bindings)?;
        self.data.iter().try_for_each(|data| plan_data(module, data).map(drop))
    }

    /// Adds the code of local functions under their names, and returns the names with their ids.
    pub(crate) fn add_named<M: Module + ?Sized>(&self, module: &mut M) -> Result<Vec<(&str, FuncId)>, Error> {
        let ids = self.place(module, &Bindings::new(), true)?.ids;
        let named = self.functions.iter().zip(ids).filter(|(function, _)| function.linkage == Linkage::Local);
        Ok(named.map(|(function, id)| (function.name.as_str(), id)).collect())
    }

    /// Like [`add_to`](Self::add_to), for code of any kind. With `whole`, the module is an object file that contains
    /// nothing else; local functions then have names too, for debuggers.
    pub(crate) fn place<M: Module + ?Sized>(
        &self,
        module: &mut M,
        bindings: &Bindings,
        whole: bool,
    ) -> Result<Placed, Error> {
        let plans = self.plan(module, bindings)?;
        let data_plans = self.data.iter().map(|data| plan_data(module, data)).collect::<Result<Vec<_>, _>>()?;

        let mut ids = Vec::with_capacity(plans.len());
        let mut defined = Defined::default();
        for (function, plan) in self.functions.iter().zip(&plans) {
            let CompiledFunction { name, signature, .. } = function;
            ids.push(match plan {
                // Nothing refers to it.
                Plan::Skip => FuncId::from_u32(u32::MAX - 1),
                Plan::Known(id) => *id,
                Plan::Import => module.declare_function(name, ClifLinkage::Import, signature)?,
                Plan::Local if whole => module.declare_function(&local_symbol(name), ClifLinkage::Local, signature)?,
                Plan::Local => module.declare_anonymous_function(signature)?,
                Plan::Export => {
                    let id = module.declare_function(name, ClifLinkage::Export, signature)?;
                    defined.functions.push((name.clone(), id));
                    id
                }
            });
        }
        let mut data = Vec::with_capacity(self.data.len());
        for (one, plan) in self.data.iter().zip(data_plans) {
            let id = place_data(module, one, plan, &ids, whole)?;
            defined.variables.extend(one.variable.clone().map(|name| (name, id)));
            data.push(id);
        }

        let mut relocs: Vec<ModuleReloc> = Vec::new();
        // Put rarely executed functions after the others.
        for cold in [false, true] {
            for (index, function) in self.functions.iter().enumerate() {
                if function.linkage == Linkage::Import || function.cold != cold {
                    continue;
                }
                relocs.clear();
                relocs.extend(function.relocs.iter().map(|reloc| {
                    let mut reloc = reloc.clone();
                    match &mut reloc.name {
                        ModuleRelocTarget::User { namespace: FUNCTIONS, index } => {
                            *index = ids[*index as usize].as_u32();
                        }
                        ModuleRelocTarget::User { namespace: DATA, index } => *index = data[*index as usize].as_u32(),
                        ModuleRelocTarget::FunctionOffset(id, _) => *id = ids[index],
                        _ => {}
                    }
                    reloc
                }));
                module.define_function_bytes(ids[index], u64::from(function.align), &function.code, &relocs)?;
            }
        }
        let ids_of = |functions: &[FuncRef]| functions.iter().map(|func| ids[func.as_u32() as usize]).collect();
        let (constructors, destructors) = (ids_of(&self.constructors), ids_of(&self.destructors));
        Ok(Placed { defined, ids, constructors, destructors })
    }

    /// Checks the request without touching the module.
    fn plan<M: Module + ?Sized>(&self, module: &M, bindings: &Bindings) -> Result<Vec<Plan>, Error> {
        let found = isa_identity(module.isa());
        if self.isa != found {
            return Err(Error::IsaMismatch { compiled: self.isa.clone(), module: found });
        }
        let mut plans = Vec::with_capacity(self.functions.len());
        for function in &self.functions {
            plans.push(match function.linkage {
                Linkage::Local => Plan::Local,
                Linkage::Export => plan_export(module, function)?,
                Linkage::Import if !function.used => Plan::Skip,
                Linkage::Import => plan_import(module, function, bindings)?,
            });
        }
        Ok(plans)
    }
}

fn plan_data<M: Module + ?Sized>(module: &M, data: &CompiledData) -> Result<DataPlan, Error> {
    let Some(name) = &data.variable else { return Ok(DataPlan::Local) };
    match module.get_name(check_name(name)?) {
        None => Ok(DataPlan::Variable),
        Some(FuncOrDataId::Data(id)) => {
            let known = module.declarations().get_data_decl(id);
            if known.writable && !known.tls { Ok(DataPlan::Known(id)) } else { Err(not_a_variable(name)) }
        }
        Some(FuncOrDataId::Func(_)) => Err(not_a_variable(name)),
    }
}

fn not_a_variable(name: &str) -> Error {
    Error::NotAVariable { name: name.to_owned() }
}

fn place_data<M: Module + ?Sized>(
    module: &mut M,
    data: &CompiledData,
    plan: DataPlan,
    ids: &[FuncId],
    whole: bool,
) -> Result<DataId, Error> {
    let coff = module.isa().triple().binary_format == target_lexicon::BinaryFormat::Coff;
    let id = match (plan, &data.variable) {
        (DataPlan::Known(id), _) => return Ok(id),
        (DataPlan::Variable, Some(name)) => match (coff, whole) {
            // COFF can't export weak symbols; `into_object` turns the variable into a common symbol
            (true, true) => return Ok(module.declare_data(name, ClifLinkage::Import, true, false)?),
            (true, false) => module.declare_data(name, ClifLinkage::Export, true, false)?,
            (false, _) => module.declare_data(name, ClifLinkage::Preemptible, true, false)?,
        },
        _ => module.declare_anonymous_data(data.writable, false)?,
    };
    if data.addresses.is_empty() {
        module.define_data(id, &data.description)?;
        return Ok(id);
    }
    let mut description = data.description.clone();
    for &(offset, func) in &data.addresses {
        let function = module.declare_func_in_data(ids[func.as_u32() as usize], &mut description);
        description.write_function_addr(offset, function);
    }
    module.define_data(id, &description)?;
    Ok(id)
}

fn plan_export<M: Module + ?Sized>(module: &M, function: &CompiledFunction) -> Result<Plan, Error> {
    let name = check_name(&function.name)?;
    match module.get_name(name) {
        None => Ok(Plan::Export),
        Some(FuncOrDataId::Data(_)) => Err(Error::NotAFunction { name: name.to_owned() }),
        Some(FuncOrDataId::Func(id)) => {
            let known = module.declarations().get_function_decl(id);
            if known.linkage != ClifLinkage::Import {
                return Err(Error::Duplicate { name: name.to_owned() });
            }
            // Callers were compiled against the declaration, extensions included, so the definition must match it
            // exactly.
            if known.signature != function.signature {
                return Err(conflict(name, &function.signature, &known.signature));
            }
            Ok(Plan::Export)
        }
    }
}

fn plan_import<M: Module + ?Sized>(
    module: &M,
    function: &CompiledFunction,
    bindings: &Bindings,
) -> Result<Plan, Error> {
    let name = &function.name;
    let id = match bindings.functions.get(name) {
        Some(&id) => {
            let declared = module.declarations().get_functions().size_hint().0;
            if id.as_u32() as usize >= declared {
                return Err(Error::UnknownBinding { name: name.clone() });
            }
            id
        }
        None => match module.get_name(check_name(name)?) {
            None => return Ok(Plan::Import),
            Some(FuncOrDataId::Func(id)) => id,
            Some(FuncOrDataId::Data(_)) => return Err(Error::NotAFunction { name: name.clone() }),
        },
    };
    let known = &module.declarations().get_function_decl(id).signature;
    if !callable_as(&function.signature, known) {
        return Err(conflict(name, &function.signature, known));
    }
    Ok(Plan::Known(id))
}

/// Checks that a name can be a symbol: it is not empty and contains no NUL.
fn check_name(name: &str) -> Result<&str, Error> {
    if name.is_empty() || name.contains('\0') {
        return Err(Error::InvalidName { name: name.to_owned() });
    }
    Ok(name)
}

/// Whether a call compiled for `ours` may call a function declared as `theirs`. Extensions may differ: our call extends
/// as the IR says, and functions compiled by Cranelift don't rely on extension.
fn callable_as(ours: &clif::Signature, theirs: &clif::Signature) -> bool {
    let same = |a: &[clif::AbiParam], b: &[clif::AbiParam]| {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.value_type == b.value_type && a.purpose == b.purpose)
    };
    ours.call_conv == theirs.call_conv && same(&ours.params, &theirs.params) && same(&ours.returns, &theirs.returns)
}

fn conflict(name: &str, expected: &clif::Signature, found: &clif::Signature) -> Error {
    Error::SignatureConflict { name: name.to_owned(), expected: expected.to_string(), found: found.to_string() }
}

/// Stores the addresses of constructors and destructors in the sections where the loader of an object file expects
/// them. COFF has no such section for destructors.
pub(crate) fn list_functions<M: Module + ?Sized>(
    module: &mut M,
    first: &[FuncId],
    last: &[FuncId],
) -> Result<(), Error> {
    use target_lexicon::BinaryFormat::{Coff, Macho};
    let places = match module.isa().triple().binary_format {
        Macho => [Some("__DATA,__mod_init_func,mod_init_funcs"), Some("__DATA,__mod_term_func,mod_term_funcs")],
        // The C library runs the entries between .CRT$XCA and .CRT$XCZ; U is reserved for user code.
        Coff => [Some(".CRT$XCU"), None],
        _ => [Some(".init_array"), Some(".fini_array")],
    };
    for (section, functions) in places.into_iter().zip([first, last]) {
        let Some(section) = section else { continue };
        for &function in functions {
            let mut description = DataDescription::new();
            description.define(Box::new([0; 8]));
            description.set_align(8);
            description.set_used(true);
            description.set_custom_section(section);
            let address = module.declare_func_in_data(function, &mut description);
            description.write_function_addr(0, address);
            let id = module.declare_anonymous_data(true, false)?;
            module.define_data(id, &description)?;
        }
    }
    Ok(())
}
