//! Modules: a named set of functions behind one object.
//! The header fixes only the type index; what is inside is this crate's own.
//! Header section: `kTVMFFIModule`.

use std::collections::BTreeMap;
use std::fmt;

use crate::abi::*;
use crate::function::Function;
use crate::object::{ObjectLayout, ObjectRef, make_object, object_wrapper};

#[repr(C)]
struct ModuleObject {
    header: TVMFFIObject,
    kind: String,
    functions: BTreeMap<String, Function>,
    keep_alive: Vec<Box<dyn Send + Sync>>,
}

// SAFETY: repr(C) with the header first.
unsafe impl ObjectLayout for ModuleObject {
    const TYPE_INDEX: TypeIndex = TypeIndex::MODULE;
}

/// A set of functions, `ffi.Module`. It never changes once built.
#[derive(Clone)]
#[repr(transparent)]
pub struct Module(ObjectRef);

object_wrapper!(Module, TypeIndex::MODULE);

impl Module {
    /// A module of `kind` with these functions; a later function of the same name wins.
    pub fn new(kind: &str, functions: impl IntoIterator<Item = (String, Function)>) -> Self {
        let mut builder = Self::builder(kind);
        builder.functions.extend(functions);
        builder.build()
    }

    /// Starts a module of `kind`.
    pub fn builder(kind: &str) -> ModuleBuilder {
        ModuleBuilder { kind: kind.to_owned(), functions: BTreeMap::new(), keep_alive: Vec::new() }
    }

    fn object(&self) -> &ModuleObject {
        // SAFETY: objects with the module's type index are made by this module only, and live as
        // long as their references.
        unsafe { &*self.0.as_ptr().cast() }
    }

    /// The kind, such as `jit`.
    pub fn kind(&self) -> &str {
        &self.object().kind
    }

    /// The function called `name`.
    pub fn get_function(&self, name: &str) -> Option<Function> {
        self.object().functions.get(name).cloned()
    }

    /// The names of all functions, sorted.
    pub fn function_names(&self) -> Vec<String> {
        self.object().functions.keys().cloned().collect()
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module").field("kind", &self.kind()).field("functions", &self.function_names()).finish()
    }
}

/// Collects the functions of a [`Module`].
pub struct ModuleBuilder {
    kind: String,
    functions: BTreeMap<String, Function>,
    keep_alive: Vec<Box<dyn Send + Sync>>,
}

impl ModuleBuilder {
    /// Adds a function; a later one of the same name wins.
    #[must_use]
    pub fn function(mut self, name: &str, function: Function) -> Self {
        self.functions.insert(name.to_owned(), function);
        self
    }

    /// Keeps a value, such as the memory of the code, for as long as the module lives. It is
    /// dropped after the module's functions.
    #[must_use]
    pub fn keep_alive(mut self, value: impl Send + Sync + 'static) -> Self {
        self.keep_alive.push(Box::new(value));
        self
    }

    /// The module.
    pub fn build(self) -> Module {
        let object = make_object(0, |header, _| ModuleObject {
            header,
            kind: self.kind,
            functions: self.functions,
            keep_alive: self.keep_alive,
        });
        // SAFETY: `make_object` hands out the object's one strong reference.
        Module(unsafe { ObjectRef::from_non_null(object) })
    }
}

impl fmt::Debug for ModuleBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModuleBuilder")
            .field("kind", &self.kind)
            .field("functions", &self.functions.keys())
            .finish_non_exhaustive()
    }
}
