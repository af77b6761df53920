//! Modules that C++ code has made: objects of subclasses of upstream's `ModuleObj`.

use super::super::implementation::ModuleImpl;
use super::super::kinds::interned;
use super::super::property::PropertyMask;
use super::attached::{Methods, methods};
use crate::container::Array;
use crate::error::{Result, runtime_error};
use crate::function::Function;
use crate::heap::ObjectRef;
use crate::string::Bytes;

/// A C++ module. Its methods are the virtual ones of its class.
#[repr(transparent)]
pub(in crate::module) struct CxxModule(ObjectRef);

impl CxxModule {
    /// Views an object that is a C++ module.
    pub(in crate::module) fn of(object: &ObjectRef) -> &Self {
        // SAFETY: the type is transparent over the handle.
        unsafe { &*std::ptr::from_ref(object).cast() }
    }

    fn methods(&self) -> Result<&'static Methods> {
        // Without a C++ part, no object of another layout becomes a `Module`.
        methods().ok_or_else(|| runtime_error("no C++ part"))
    }

    pub(in crate::module) fn import_module(&self, other: &ObjectRef) -> Result<()> {
        self.methods()?.import_module.call((&self.0, other)).map(drop)
    }

    pub(in crate::module) fn clear_imports(&self) -> Result<()> {
        self.methods()?.clear_imports.call((&self.0,)).map(drop)
    }

    /// The function that the module keeps under this name: the given one, unless it has one already.
    pub(in crate::module) fn keep_function(&self, name: &str, function: Option<&Function>) -> Result<Option<Function>> {
        self.methods()?.keep_function.call((&self.0, name, function.cloned()))?.cast()
    }
}

impl ModuleImpl for CxxModule {
    /// Empty if the module's method fails.
    fn kind(&self) -> &str {
        let kind = self.methods().and_then(|methods| methods.kind.call((&self.0,)));
        kind.and_then(|kind| kind.cast()).map_or("", interned)
    }

    fn get_function(&self, name: &str) -> Result<Option<Function>> {
        self.methods()?.get_function.call((&self.0, name))?.cast()
    }

    fn implements_function(&self, name: &str) -> Result<bool> {
        self.methods()?.implements_function.call((&self.0, name))?.cast()
    }

    fn function_metadata(&self, name: &str) -> Result<Option<String>> {
        self.methods()?.function_metadata.call((&self.0, name))?.cast()
    }

    fn function_doc(&self, name: &str) -> Result<Option<String>> {
        self.methods()?.function_doc.call((&self.0, name))?.cast()
    }

    fn property_mask(&self) -> PropertyMask {
        let mask = self.methods().and_then(|methods| methods.property_mask.call((&self.0,)));
        mask.and_then(|mask| mask.cast()).map_or(PropertyMask::NONE, PropertyMask)
    }

    fn save_to_bytes(&self) -> Result<Option<Bytes>> {
        match self.property_mask().contains(PropertyMask::BINARY_SERIALIZABLE) {
            true => self.methods()?.save_to_bytes.call((&self.0,))?.cast().map(Some),
            false => Ok(None),
        }
    }

    fn inspect_source(&self, format: &str) -> Result<String> {
        self.methods()?.inspect_source.call((&self.0, format))?.cast()
    }

    fn write_formats(&self) -> Vec<String> {
        let formats = self.methods().and_then(|methods| methods.write_formats.call((&self.0,)));
        let formats = formats.and_then(|formats| formats.cast::<Array>());
        formats.map_or_else(|_| Vec::new(), |formats| formats.iter().filter_map(|format| format.cast().ok()).collect())
    }

    fn write_to_file(&self, file_name: &str, format: &str) -> Result<()> {
        self.methods()?.write_to_file.call((&self.0, file_name, format)).map(drop)
    }
}
