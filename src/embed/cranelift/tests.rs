#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use cranelift_codegen::ir::{AbiParam, InstBuilder, types};
use cranelift_codegen::settings;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{BranchProtection, JITMemoryKind, JITMemoryProvider, JITModule, SystemMemoryProvider};
use cranelift_module::{Linkage, ModuleResult, default_libcall_names};
use cranelift_object::{ObjectBuilder, ObjectModule};
use object::{Object, ObjectSection, ObjectSymbol};

use super::*;
use crate::Body;
use crate::backend::local_symbol;
use crate::lower::BIND_SYMBOL;

fn sig(text: &str) -> Signature {
    text.parse().unwrap()
}

/// The caller's own `int64_t triple(int64_t n)`.
fn triple<M: Module>(module: &mut M) -> FuncId {
    let mut context = module.make_context();
    context.func.signature.params.push(AbiParam::new(types::I64));
    context.func.signature.returns.push(AbiParam::new(types::I64));
    let id = module.declare_function("triple", Linkage::Local, &context.func.signature).unwrap();
    let mut frontend = FunctionBuilderContext::new();
    let mut b = FunctionBuilder::new(&mut context.func, &mut frontend);
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    b.seal_all_blocks();
    let n = b.block_params(entry)[0];
    let n = b.ins().imul_imm_s(n, 3);
    b.ins().return_(&[n]);
    b.finalize(module.target_config());
    module.define_function(id, &mut context).unwrap();
    id
}

/// The names of the module's copies of `bind`.
fn copies(module: &JITModule) -> Vec<String> {
    let names = module.declarations().get_functions().filter_map(|(_, known)| known.name.clone());
    names.filter(|name| name.starts_with(&local_symbol(&format!("{BIND_SYMBOL}.")))).collect()
}

#[test]
fn wrappers_of_a_module_share_helpers() {
    let mut module = jit_module(host_isa().unwrap()).unwrap();
    let ints: Vec<_> = (0..20).map(|i| sig(&format!("f{i}(n: int64)"))).collect();
    let ids: Vec<_> = ints.iter().map(|s| add_wrapper(&mut module, s, Kernel::check_only()).unwrap()).collect();
    assert_eq!(copies(&module).len(), 1);
    // wrappers that need more make another copy, at most twice
    let kinds = ["str", "Map[str, int64]", "Tensor([n + 1], float32)", "Tuple[int64, str]", "Array[bytes]", "device"];
    let others: Vec<_> = kinds.iter().enumerate().map(|(i, kind)| sig(&format!("g{i}(x: {kind})"))).collect();
    let more: Vec<_> = others.iter().map(|s| add_wrapper(&mut module, s, Kernel::check_only()).unwrap()).collect();
    assert_eq!(copies(&module).len(), 3);

    let added = Added {
        functions: ints
            .iter()
            .chain(&others)
            .cloned()
            .zip(ids.into_iter().chain(more))
            .map(|(signature, id)| library::Wrapper { id, signature, launches: Vec::new() })
            .collect(),
        destructors: Vec::new(),
        callers: Default::default(),
    };
    // SAFETY: the wrappers only check arguments.
    let functions = unsafe { finish_functions(module, [added], ()) }.unwrap();
    for (function, signature) in functions.iter().zip(ints.iter().chain(&others)) {
        let error = function.call((1.5f64,)).unwrap_err().to_string();
        assert!(error.starts_with("TypeError: Mismatched type of ") && error.contains(signature.name()), "{error}");
    }
    functions[7].call((7,)).unwrap();
}

/// Memory that records when it is freed.
struct Watched(SystemMemoryProvider, Arc<AtomicBool>);

impl JITMemoryProvider for Watched {
    fn allocate(&mut self, size: usize, align: u64, kind: JITMemoryKind) -> std::io::Result<*mut u8> {
        self.0.allocate(size, align, kind)
    }

    unsafe fn free_memory(&mut self) {
        self.1.store(true, Ordering::SeqCst);
        // SAFETY: the caller promises the same.
        unsafe { self.0.free_memory() }
    }

    fn finalize(&mut self, branch_protection: BranchProtection) -> ModuleResult<()> {
        self.0.finalize(branch_protection)
    }
}

fn watched() -> (JITModule, Arc<AtomicBool>) {
    let freed = Arc::new(AtomicBool::new(false));
    let mut builder = jit_builder(host_isa().unwrap());
    builder.memory_provider(Box::new(Watched(SystemMemoryProvider::new(), Arc::clone(&freed))));
    (JITModule::new(builder), freed)
}

#[test]
fn the_memory_goes_with_the_last_function() {
    let (mut module, freed) = watched();
    let kernel = triple(&mut module);
    let owner = Arc::new(());
    let added = Wrappers::in_process().function(&sig("three(n: int64) -> int64"), kernel).add_to(&mut module).unwrap();
    assert_eq!(copies(&module).len(), 0);
    // SAFETY: the kernel has the prototype for the signature.
    let functions = unsafe { finish_functions(module, [added], Arc::clone(&owner)) }.unwrap();
    let copy = functions[0].clone();
    drop(functions);
    assert_eq!(copy.call((5,)).unwrap().cast::<i64>().unwrap(), 15);
    let error = copy.call(("5",)).unwrap_err().to_string();
    assert!(error.contains("expected int64, got str"), "{error}");
    assert!(!freed.load(Ordering::SeqCst) && Arc::strong_count(&owner) == 2);
    drop(copy);
    assert!(freed.load(Ordering::SeqCst) && Arc::strong_count(&owner) == 1);
}

#[test]
fn a_missing_symbol_is_an_error() {
    let (mut module, freed) = watched();
    let kernel = Kernel::symbol("nobody_has_this_symbol");
    let added = Wrappers::in_process().function(&sig("f(n: int64)"), kernel).add_to(&mut module).unwrap();
    // SAFETY: it is never called.
    let error = unsafe { finish_functions(module, [added], ()) }.unwrap_err().to_string();
    let expected = "undefined symbol: `nobody_has_this_symbol` (referred to by f); define them in the module";
    assert!(error.starts_with(expected), "{error}");
    assert!(freed.load(Ordering::SeqCst));
    let isa = cranelift_native::builder().unwrap();
    let mut flags = settings::builder();
    settings::Configurable::enable(&mut flags, "is_pic").unwrap();
    assert!(jit_module(isa.finish(settings::Flags::new(flags)).unwrap()).is_err());
}

#[cfg(not(feature = "external-runtime"))]
#[test]
fn a_finished_module_has_imports_metadata_and_docs_and_gives_its_state_up() {
    use tvm_ffi_runtime::{Function, Module, registry};

    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let alive = Arc::new(());
    let kept = Arc::clone(&alive);
    let global = Function::from_packed(move |_| {
        CALLS.fetch_add(Arc::strong_count(&kept).min(1), Ordering::SeqCst);
        Ok(1.into())
    });
    registry::set_global("embed.counts", global, true).unwrap();
    let (mut module, freed) = watched();
    let body = |b: &Body<'_>| {
        b.call_global("embed.counts", ()).run();
        b.ret(b.call_import("imported", (b.arg("n"),)).returns(crate::ScalarType::Int64).value());
    };
    let signature = sig("f(n: int64) -> int64").with_doc("what it does");
    let added = Wrappers::in_process().function(&signature, Kernel::body(body)).add_to(&mut module);
    // SAFETY: the body reads no memory.
    let module = unsafe { finish(module, [added.unwrap()], ()) }.unwrap();
    assert_eq!(module.function_doc("f", false).unwrap().as_deref(), Some("what it does"));
    assert_eq!(module.function_metadata("f", false).unwrap(), Some(crate::lower::metadata(&signature)));
    assert_eq!(module.function_metadata("g", false).unwrap(), None);
    let ten = Function::from_packed(|args| Ok((args[0].cast::<i64>()? * 10).into()));
    module.import_module(&Module::new("k", [("imported".to_owned(), ten)])).unwrap();
    let f = module.get_function("f").unwrap().unwrap();
    drop(module);
    for _ in 0..3 {
        assert_eq!(f.call((4,)).unwrap().cast::<i64>().unwrap(), 40);
    }
    assert_eq!(CALLS.load(Ordering::SeqCst), 3);
    assert!(registry::remove_global("embed.counts"));
    // the code has looked the function up once, and keeps it as long as the code lives
    assert_eq!(Arc::strong_count(&alive), 2);
    drop(f);
    assert!(freed.load(Ordering::SeqCst));
    assert_eq!(Arc::strong_count(&alive), 1);
}

fn object_with(library: Wrappers) -> Vec<u8> {
    let mut flags = settings::builder();
    settings::Configurable::enable(&mut flags, "is_pic").unwrap();
    let isa = cranelift_native::builder().unwrap().finish(settings::Flags::new(flags)).unwrap();
    let mut module = ObjectModule::new(ObjectBuilder::new(isa, "mine", default_libcall_names()).unwrap());
    let kernel = triple(&mut module);
    library.function(&sig("three(n: int64) -> int64").with_doc("3n"), kernel).add_to(&mut module).unwrap();
    module.finish().emit().unwrap()
}

#[test]
fn an_object_has_what_a_library_has() {
    let names = |bytes: &[u8]| -> Vec<String> {
        let file = object::File::parse(bytes).unwrap();
        let exported = file.symbols().filter(|symbol| symbol.is_global() && symbol.is_definition());
        let mut names: Vec<_> =
            exported.map(|symbol| symbol.name().unwrap().trim_start_matches('_').to_owned()).collect();
        names.sort();
        names
    };
    let expected = ["tvm_ffi__doc_three", "tvm_ffi__library_ctx", "tvm_ffi__metadata_three", "tvm_ffi_three"];
    assert_eq!(names(&object_with(Wrappers::new())), expected);
    let without = object_with(Wrappers::new().metadata(false));
    assert_eq!(names(&without), [expected[0], expected[1], expected[3]]);

    let system = object_with(Wrappers::system("mine_"));
    assert!(names(&system).contains(&"tvm_ffi_mine_three".to_owned()), "{:?}", names(&system));
    let file = object::File::parse(&*system).unwrap();
    let lists = [".init_array", "__mod_init_func", ".CRT$XCU"];
    assert!(file.sections().any(|section| lists.contains(&section.name().unwrap()) && section.size() == 8));
}
