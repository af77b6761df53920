//! Destructors for object formats that have no section for them.

use crate::ir::{FuncSig, Module, Type};

/// Adds a constructor that registers the module's destructors with the C library's `atexit`. In a DLL, `atexit` belongs
/// to the DLL's own start-up code, which runs the registered functions when the DLL is unloaded.
pub(super) fn register_destructors(module: &mut Module) {
    let destructors = std::mem::take(&mut module.destructors);
    if destructors.is_empty() {
        return;
    }
    let at_exit = module.import("atexit", FuncSig::new([Type::Ptr], Some(Type::I32)));
    let func = module.cold_local("__tvm_ffi_codegen_at_exit", FuncSig::default(), |c| {
        for destructor in destructors {
            // `atexit` runs the last registered function first, as other formats do with destructors. A constructor
            // can't report a failure.
            c.call(at_exit, &[c.func_addr(destructor)]);
        }
        c.ret(None);
    });
    module.constructors.push(func);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::ir::verify;

    #[test]
    fn destructors_become_a_constructor() {
        let mut module = Module::new();
        register_destructors(&mut module);
        assert!(module.functions.is_empty() && module.constructors.is_empty());
        for name in ["one", "two"] {
            let func = module.local(name, FuncSig::default(), |c| c.ret(None));
            module.destructors.push(func);
        }
        register_destructors(&mut module);
        let text = verify(module).unwrap().to_string();
        assert!(text.contains("constructor @__tvm_ffi_codegen_at_exit"), "{text}");
        assert!(!text.contains("\ndestructor "), "{text}");
        let (one, two) = (text.find("func_addr @one").unwrap(), text.find("func_addr @two").unwrap());
        assert!(one < two, "{text}");
    }
}
