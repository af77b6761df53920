use cranelift_codegen::ir::{self as clif, InstBuilder, types};
use cranelift_frontend::{FunctionBuilder as ClifBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage as ClifLinkage, Module as _, default_libcall_names};

use crate::backend::cranelift::{Bindings, CompiledModule, Error, IsaOptions, compile, host_isa};
use crate::ir::testing::module_of;
use crate::ir::*;

fn jit_module() -> JITModule {
    let isa = host_isa(&IsaOptions::default()).unwrap();
    JITModule::new(JITBuilder::with_isa(isa, default_libcall_names()))
}

/// The caller's own kernel, built with Cranelift: adds `n`.
fn kernel(module: &mut JITModule, n: i64) -> FuncId {
    let mut context = module.make_context();
    context.func.signature.params.push(clif::AbiParam::new(types::I64));
    context.func.signature.returns.push(clif::AbiParam::new(types::I64));
    let id = module.declare_anonymous_function(&context.func.signature).unwrap();
    let mut frontend = FunctionBuilderContext::new();
    let mut b = ClifBuilder::new(&mut context.func, &mut frontend);
    let block = b.create_block();
    b.append_block_params_for_function_params(block);
    b.switch_to_block(block);
    let x = b.block_params(block)[0];
    let r = b.ins().iadd_imm_s(x, n);
    b.ins().return_(&[r]);
    b.seal_all_blocks();
    b.finalize(module.target_config());
    module.define_function(id, &mut context).unwrap();
    id
}

/// `name(x)` computes `kernel(helper(x))`; the local `helper` doubles `x` with a factor from static data.
fn wrapper(name: &str, module: &JITModule) -> CompiledModule {
    let sig = FuncSig::new([Type::I64], Some(Type::I64));
    let module_ir = {
        let mut m = Module::new();
        let data = m.add_data("numbers", (0..8u64).flat_map(|i| (i * 2).to_le_bytes()).collect(), 8);
        let f = m.declare(name, sig.clone(), Linkage::Export);
        let helper = m.declare("helper", sig.clone(), Linkage::Local);
        let kernel = m.import("kernel", sig);
        let mut b = FunctionBuilder::new(&mut m, f);
        let v = b.call(helper, &[b.param(0)]).unwrap();
        let v = b.call(kernel, &[v]).unwrap();
        b.ret(Some(v));
        b.finish();
        let mut b = FunctionBuilder::new(&mut m, helper);
        let base = b.data_addr(data, 0);
        let at = b.element(base, b.param(0), Type::I64);
        let v = b.load(Type::I64, at, 0, MemFlags::READONLY);
        b.ret(Some(v));
        b.finish();
        verify(m).unwrap()
    };
    compile(&module_ir, module.isa()).unwrap()
}

fn call(module: &JITModule, id: FuncId, x: i64) -> i64 {
    // SAFETY: the function has this signature, and the module is alive.
    let f: extern "C" fn(i64) -> i64 = unsafe { std::mem::transmute(module.get_finalized_function(id)) };
    f(x)
}

fn free(module: JITModule) {
    // SAFETY: none of the module's code runs any more, and no pointer to it is used again.
    unsafe { module.free_memory() }
}

#[test]
fn a_wrapper_calls_the_callers_own_kernel() {
    let mut module = jit_module();
    let (one, two) = (kernel(&mut module, 100), kernel(&mut module, 200));
    // Two wrappers whose local functions and data have the same names, each with its own kernel.
    let a = wrapper("a", &module).add_to(&mut module, &Bindings::new().bind("kernel", one)).unwrap();
    let b = wrapper("b", &module).add_to(&mut module, &Bindings::new().bind("kernel", two)).unwrap();
    module.finalize_definitions().unwrap();
    let (a, b) = (a.function("a").unwrap(), b.function("b").unwrap());
    assert_eq!(call(&module, a, 3), 106);
    assert_eq!(call(&module, b, 3), 206);
    free(module);
}

#[test]
fn an_import_is_found_by_its_name_in_the_callers_module() {
    let mut module = jit_module();
    let inner = wrapper("kernel_of_b", &module);
    let k = kernel(&mut module, 5);
    inner.add_to(&mut module, &Bindings::new().bind("kernel", k)).unwrap();
    let sig = FuncSig::new([Type::I64], Some(Type::I64));
    let outer = module_of("b", sig.clone(), |b| {
        let known = b.module().import("kernel_of_b", sig);
        let v = b.call(known, &[b.param(0)]).unwrap();
        b.ret(Some(v));
    });
    let outer = compile(&outer, module.isa()).unwrap().add_to(&mut module, &Bindings::new()).unwrap();
    module.finalize_definitions().unwrap();
    assert_eq!(call(&module, outer.function("b").unwrap(), 7), 19);
    free(module);
}

/// Every refusal comes before anything is declared, so the module stays usable.
#[test]
fn an_error_leaves_the_module_as_it_was() {
    let mut module = jit_module();
    let k = kernel(&mut module, 1);
    let bindings = Bindings::new().bind("kernel", k);
    let a = wrapper("a", &module).add_to(&mut module, &bindings).unwrap().function("a").unwrap();
    let i32_sig = {
        let mut sig = module.make_signature();
        sig.params.push(clif::AbiParam::new(types::I32));
        sig
    };
    let odd = module.declare_function("odd", ClifLinkage::Import, &i32_sig).unwrap();
    module.declare_data("data", ClifLinkage::Import, false, false).unwrap();

    let count = |m: &JITModule| (m.declarations().get_functions().count(), m.declarations().get_data_objects().count());
    let before = count(&module);
    let mut refused = |name: &str, bindings: &Bindings| {
        let e = wrapper(name, &module).add_to(&mut module, bindings).unwrap_err();
        assert_eq!(count(&module), before, "{e}");
        e
    };
    let e = refused("a", &bindings);
    assert!(matches!(&e, Error::Duplicate { name } if name == "a"), "{e}");
    let e = refused("odd", &bindings);
    assert!(
        matches!(&e, Error::SignatureConflict { name, expected, found }
        if name == "odd" && expected.contains("i64") && found.contains("i32")),
        "{e}"
    );
    let e = refused("data", &bindings);
    assert!(matches!(&e, Error::NotAFunction { name } if name == "data"), "{e}");
    let e = refused("b", &Bindings::new().bind("kernel", odd));
    assert!(matches!(&e, Error::SignatureConflict { name, .. } if name == "kernel"), "{e}");
    let e = refused("b", &Bindings::new().bind("kernel", FuncId::from_u32(999)));
    assert!(matches!(&e, Error::UnknownBinding { name } if name == "kernel"), "{e}");

    let other = host_isa(&IsaOptions { pic: true, ..IsaOptions::default() }).unwrap();
    let pic = module_of("pic", FuncSig::new([], None), |b| b.ret(None));
    let e = compile(&pic, &*other).unwrap().add_to(&mut module, &bindings).unwrap_err();
    assert!(matches!(&e, Error::IsaMismatch { compiled, .. } if compiled.contains("pic")), "{e}");

    let b = wrapper("b", &module).add_to(&mut module, &bindings).unwrap().function("b").unwrap();
    module.finalize_definitions().unwrap();
    assert_eq!(call(&module, a, 2), 5);
    assert_eq!(call(&module, b, 4), 9);
    free(module);
}

/// A caller that was compiled first has declared the wrapper only as an import.
#[test]
fn a_declaration_may_come_before() {
    let mut module = jit_module();
    let mut sig = module.make_signature();
    sig.params.push(clif::AbiParam::new(types::I64));
    sig.returns.push(clif::AbiParam::new(types::I64));
    let declared = module.declare_function("a", ClifLinkage::Import, &sig).unwrap();
    let k = kernel(&mut module, 1);
    let defined = wrapper("a", &module).add_to(&mut module, &Bindings::new().bind("kernel", k)).unwrap();
    assert_eq!(defined.function("a"), Some(declared));
    module.finalize_definitions().unwrap();
    assert_eq!(call(&module, declared, 1), 3);
    free(module);
}

/// `name()` increments its own state and the variable `shared`, and returns their sum.
fn counter(name: &str, module: &JITModule) -> CompiledModule {
    let mut ir = module_of(name, FuncSig::new([Type::I64], Some(Type::I64)), |b| {
        let state = b.module().add_state("state", 8, 8);
        let shared = b.module().add_state("shared", 8, 8);
        b.module().data[shared].kind = DataKind::Variable;
        let [own, all] = [state, shared].map(|data| b.data_addr(data, 0));
        let [own, all] = [own, all].map(|at| b.atomic_add(at, b.param(0)));
        let r = b.binary(BinaryOp::Add, own, all);
        b.ret(Some(r));
    })
    .into_inner();
    let gone = ir.declare("gone", FuncSig::default(), Linkage::Local);
    let mut b = FunctionBuilder::new(&mut ir, gone);
    b.ret(None);
    b.finish();
    ir.destructors.push(gone);
    compile(&verify(ir).unwrap(), module.isa()).unwrap()
}

#[test]
fn variables_are_shared_and_state_is_not() {
    let mut module = jit_module();
    let [a, b] = ["a", "b"].map(|name| {
        let defined = counter(name, &module).add_to(&mut module, &Bindings::new()).unwrap();
        assert_eq!(defined.variables().map(|(name, _)| name).collect::<Vec<_>>(), ["shared"]);
        defined.function(name).unwrap()
    });
    module.finalize_definitions().unwrap();
    assert_eq!([call(&module, a, 1), call(&module, a, 1), call(&module, b, 1), call(&module, b, 1)], [0, 2, 2, 4]);
    free(module);
}

#[test]
fn a_variable_of_the_callers_is_used_if_it_can_be() {
    let mut module = jit_module();
    let shared = module.declare_data("shared", ClifLinkage::Local, true, false).unwrap();
    let mut contents = cranelift_module::DataDescription::new();
    contents.define(100u64.to_ne_bytes().into());
    module.define_data(shared, &contents).unwrap();
    let a = counter("a", &module).add_to(&mut module, &Bindings::new()).unwrap().function("a").unwrap();
    module.finalize_definitions().unwrap();
    assert_eq!(call(&module, a, 1), 100);
    free(module);

    for is_function in [false, true] {
        let mut module = jit_module();
        match is_function {
            true => drop(module.declare_function("shared", ClifLinkage::Import, &module.make_signature()).unwrap()),
            false => drop(module.declare_data("shared", ClifLinkage::Import, false, false).unwrap()),
        }
        let e = counter("a", &module).add_to(&mut module, &Bindings::new()).unwrap_err();
        assert!(matches!(&e, Error::NotAVariable { name } if name == "shared"), "{e}");
        assert!(module.get_name("a").is_none());
        free(module);
    }
}
