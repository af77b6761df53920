//! Destructors for object formats that have no place for them.

use crate::ir::{FuncSig, FunctionBuilder, Linkage, Module, Type};

/// Lets a constructor register the module's destructors by the C library's `atexit`. In a DLL that is a function of the DLL's own start-up
/// code, whose list is run when the DLL is unloaded.
pub(super) fn register_destructors(module: &mut Module) {
    let destructors = std::mem::take(&mut module.destructors);
    if destructors.is_empty() {
        return;
    }
    let at_exit = module.import("atexit", FuncSig::new([Type::Ptr], Some(Type::I32)));
    let func = module.declare("__tvm_ffi_codegen_at_exit", FuncSig::default(), Linkage::Local);
    module.functions[func].cold = true;
    let mut b = FunctionBuilder::new(module, func);
    for destructor in destructors {
        let address = b.func_addr(destructor);
        // the last first, as in other formats; nobody is there to be told of a failure
        b.call(at_exit, &[address]);
    }
    b.ret(None);
    let func = b.finish();
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
            let func = module.declare(name, FuncSig::default(), Linkage::Local);
            let mut b = FunctionBuilder::new(&mut module, func);
            b.ret(None);
            let func = b.finish();
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
