//! Modules of code in this process. The module owns the code, the code refers to the module, and the module exposes its
//! functions.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Arc, OnceLock};

use tvm_ffi_runtime::abi::TVMFFISafeCallType;
use tvm_ffi_runtime::module::PropertyMask;
use tvm_ffi_runtime::{self as runtime, AsObject, Function, Module, ModuleImpl, WeakRef};

use super::code::Code;
use crate::lower::{LaunchDescription, metadata_with};
use crate::spec::Signature;

/// The kind of an engine's modules.
const KIND: &str = "jit";

/// A function of a module.
pub(crate) struct ModuleFunction {
    pub(crate) safe_call: TVMFFISafeCallType,
    pub(crate) signature: Signature,
    pub(crate) launches: Vec<LaunchDescription>,
}

/// The data of a module object. While this value lives, the code's context variable contains the module's address.
struct Contents {
    functions: BTreeMap<String, ModuleFunction>,
    module: OnceLock<WeakRef>,
    code: Arc<Code>,
}

struct JitModule(Arc<Contents>);

/// A module of these functions. Each function keeps the module alive.
///
/// # Safety
/// The functions are defined by the code, and may be called with any arguments. The code's library context is set only
/// here.
pub(crate) unsafe fn module(code: Arc<Code>, functions: impl IntoIterator<Item = ModuleFunction>) -> Module {
    let named = |function: ModuleFunction| (function.signature.name().to_owned(), function);
    let functions = functions.into_iter().map(named).collect();
    let contents = Arc::new(Contents { functions, module: OnceLock::new(), code });
    let module = Module::from_impl(JitModule(Arc::clone(&contents)));
    contents.module.get_or_init(|| module.as_object().downgrade());
    // SAFETY: the code runs only through the module's functions, so only while the module lives; after that `Contents`
    // resets the address.
    unsafe { contents.code.set_library_context(module.as_object().as_ptr().cast::<c_void>()) };
    module
}

impl Drop for Contents {
    fn drop(&mut self) {
        // The module is gone, but destructors still run.
        // SAFETY: null is always allowed.
        unsafe { self.code.set_library_context(std::ptr::null_mut()) };
    }
}

impl ModuleImpl for JitModule {
    fn kind(&self) -> &str {
        KIND
    }

    fn get_function(&self, name: &str) -> runtime::Result<Option<Function>> {
        let Some(function) = self.0.functions.get(name) else { return Ok(None) };
        // the module is being dropped, so it has no functions any more
        let Some(module) = self.0.module.get().and_then(WeakRef::upgrade) else { return Ok(None) };
        // SAFETY: as promised to `module`; the function owns the module, which owns the code.
        Ok(Some(unsafe { Function::from_code(function.safe_call, module) }))
    }

    fn implements_function(&self, name: &str) -> runtime::Result<bool> {
        Ok(self.0.functions.contains_key(name))
    }

    fn function_metadata(&self, name: &str) -> runtime::Result<Option<String>> {
        Ok(self.0.functions.get(name).map(|function| metadata_with(&function.signature, &function.launches)))
    }

    fn function_doc(&self, name: &str) -> runtime::Result<Option<String>> {
        Ok(self.0.functions.get(name).and_then(|function| function.signature.doc().map(str::to_owned)))
    }

    fn function_names(&self) -> Option<Vec<String>> {
        Some(self.0.functions.keys().cloned().collect())
    }

    fn property_mask(&self) -> PropertyMask {
        PropertyMask::RUNNABLE
    }
}
