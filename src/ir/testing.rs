//! Modules for the backends' tests.

use super::{FuncSig, FunctionBuilder, Linkage, Module, VerifiedModule, verify};

/// A module with one exported function `name`, whose code `body` emits.
pub(crate) fn module_of(name: &str, sig: FuncSig, body: impl FnOnce(&mut FunctionBuilder<'_>)) -> VerifiedModule {
    let mut module = Module::new();
    let f = module.declare(name, sig, Linkage::Export);
    let mut b = FunctionBuilder::new(&mut module, f);
    body(&mut b);
    b.finish();
    verify(module).expect("a test builds valid IR")
}
