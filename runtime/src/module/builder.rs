//! Modules of functions in memory.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::implementation::ModuleImpl;
use super::object::Module;
use super::property::PropertyMask;
use crate::error::Result;
use crate::function::Function;

/// Collects the functions of a [`Module`].
#[must_use = "a builder makes no module before `build`"]
pub struct ModuleBuilder {
    kind: String,
    functions: BTreeMap<String, Function>,
    keep_alive: Vec<Box<dyn Send + Sync>>,
}

impl ModuleBuilder {
    fn new(kind: &str) -> Self {
        Self { kind: kind.to_owned(), functions: BTreeMap::new(), keep_alive: Vec::new() }
    }

    /// Adds a function; a later one of the same name wins.
    pub fn function(mut self, name: &str, function: Function) -> Self {
        self.functions.insert(name.to_owned(), function);
        self
    }

    /// Keeps a value, such as the memory of the code, for as long as the module or a function obtained from it lives.
    /// The value is dropped after the functions. To keep it, each function becomes a wrapper that calls the added one.
    pub fn keep_alive(mut self, value: impl Send + Sync + 'static) -> Self {
        self.keep_alive.push(Box::new(value));
        self
    }

    /// Builds the module.
    pub fn build(mut self) -> Module {
        if !self.keep_alive.is_empty() {
            let owners = Arc::new(std::mem::take(&mut self.keep_alive));
            let keeping = |(name, function): (String, Function)| (name, function.keeping(Arc::clone(&owners)));
            self.functions = self.functions.into_iter().map(keeping).collect();
            self.keep_alive.push(Box::new(owners));
        }
        Module::from_impl(self)
    }
}

impl Module {
    /// A module of functions in memory; a later function of the same name wins.
    pub fn new(kind: &str, functions: impl IntoIterator<Item = (String, Function)>) -> Self {
        let add = |builder: ModuleBuilder, (name, function): (String, _)| builder.function(&name, function);
        functions.into_iter().fold(Self::builder(kind), add).build()
    }

    /// A builder of a module of functions in memory.
    pub fn builder(kind: &str) -> ModuleBuilder {
        ModuleBuilder::new(kind)
    }
}

impl ModuleImpl for ModuleBuilder {
    fn kind(&self) -> &str {
        &self.kind
    }

    fn get_function(&self, name: &str) -> Result<Option<Function>> {
        Ok(self.functions.get(name).cloned())
    }

    fn function_names(&self) -> Option<Vec<String>> {
        Some(self.functions.keys().cloned().collect())
    }

    fn property_mask(&self) -> PropertyMask {
        PropertyMask::RUNNABLE
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
