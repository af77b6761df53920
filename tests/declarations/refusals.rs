//! Every error that `embed` reports before it adds anything, with its message.

use cranelift_codegen::ir::{AbiParam, ArgumentPurpose, Signature as ClifSignature, types};
use cranelift_codegen::isa::CallConv;
use cranelift_module::{Linkage, Module};

use tvm_ffi_codegen::artifact::LibraryBuilder;
use tvm_ffi_codegen::spec::KernelArg;
use tvm_ffi_codegen::{Backend, Kernel, KernelReturn, Signature, embed};

use super::cranelift::own_module;
use crate::support::sig;

fn store() -> Signature {
    sig("store(x: Tensor([n], float32), v: int8)")
}

/// The message for a kernel of [`store`] with a problem.
fn of_store(problem: &str) -> String {
    format!("the kernel `k` of function `store` {problem}; its prototype is `void k(float* x, int8_t v, int64_t n);`")
}

/// The message for a kernel of `half(a: float64) -> float64`.
fn of_half(problem: &str, prototype: &str) -> String {
    format!("the kernel `k` of function `half` {problem}; its prototype is `{prototype}`")
}

/// The error of a Cranelift module for a kernel whose declaration was changed.
fn cranelift(signature: &Signature, returns: Option<KernelReturn>, change: impl FnOnce(&mut ClifSignature)) -> String {
    let mut module = own_module();
    let kernel = returns.into_iter().fold(Kernel::symbol("k"), Kernel::returns);
    let mut declared = embed::cranelift::kernel_signature(module.isa(), signature, &kernel).unwrap();
    change(&mut declared);
    let id = module.declare_function("k", Linkage::Import, &declared).unwrap();
    let linked = embed::cranelift::add_wrapper(&mut module, signature, kernel).unwrap_err().to_string();
    // for a function passed by its id, the message is the same
    let bound =
        embed::cranelift::add_wrapper(&mut module, signature, embed::cranelift::KernelSource::Function(id, returns))
            .unwrap_err();
    assert_eq!(bound.to_string(), linked);
    linked
}

#[test]
fn a_cranelift_module_refuses() {
    let host = own_module().isa().default_call_conv();
    let special = |purpose| AbiParam::special(types::I64, purpose);
    let purpose = |name: &str| {
        format!(
            "has parameter `float* x` for a special purpose, `{name}`, and wrappers pass plain values: declare an `AbiParam::new`"
        )
    };
    type Change<'a> = Box<dyn FnOnce(&mut ClifSignature) + 'a>;
    let table: [(Change<'_>, String); 11] = [
        (
            Box::new(|s| s.call_conv = CallConv::Fast),
            format!(
                "has the calling convention `fast`, and wrappers call by C's, which is `{host}` here (`Module::make_signature` begins with it)"
            ),
        ),
        (Box::new(|s| s.params[0] = special(ArgumentPurpose::StructArgument(8))), purpose("sarg(8)")),
        (Box::new(|s| s.params[0] = special(ArgumentPurpose::StructReturn)), purpose("sret")),
        (Box::new(|s| s.params[0] = special(ArgumentPurpose::VMContext)), purpose("vmctx")),
        (
            Box::new(|s| s.params.truncate(2)),
            "takes 2 parameters, and 3 are passed: `int64_t n` (n, from x.shape[0]) is missing".to_owned(),
        ),
        (Box::new(|s| s.params.push(AbiParam::new(types::I8))), "takes 4 parameters, and 3 are passed".to_owned()),
        (
            Box::new(|s| s.params[1] = AbiParam::new(types::I32)),
            "has parameter `int8_t v` as `i32`, and it is passed as `i8`".to_owned(),
        ),
        (
            Box::new(|s| s.params[1] = AbiParam::new(types::I8).uext()),
            "has parameter `int8_t v` zero-extended, and it is passed sign-extended".to_owned(),
        ),
        (
            Box::new(|s| s.returns.push(AbiParam::new(types::I32))),
            "returns `i32` in place of nothing; it fits if you state `KernelReturn::Status`".to_owned(),
        ),
        (Box::new(|s| s.returns.push(AbiParam::new(types::F64))), "returns `f64` in place of nothing".to_owned()),
        (
            Box::new(|s| s.returns = vec![AbiParam::new(types::I32); 2]),
            "returns `i32`, `i32` in place of nothing".to_owned(),
        ),
    ];
    for (change, problem) in table {
        assert_eq!(cranelift(&store(), None, change), of_store(&problem));
    }
    // the declaration need not extend narrow integers
    let mut module = own_module();
    let mut declared = embed::cranelift::kernel_signature(module.isa(), &store(), &Kernel::symbol("k")).unwrap();
    declared.params[1] = AbiParam::new(types::I8);
    module.declare_function("k", Linkage::Import, &declared).unwrap();
    embed::cranelift::add_wrapper(&mut module, &store(), Kernel::symbol("k")).unwrap();
}

/// A kernel that returns a status in addition to its result is taken for one that returns the value, and vice versa.
#[test]
fn a_cranelift_module_says_which_result_would_fit() {
    let half = sig("half(a: float64) -> float64");
    let value = "double k(double a);";
    let found = cranelift(&half, None, |s| {
        s.params.push(AbiParam::new(types::I64));
        s.returns = vec![AbiParam::new(types::I32)];
    });
    let problem = "takes 2 parameters, and 1 are passed; it fits if you state `KernelReturn::Status`";
    assert_eq!(found, of_half(problem, value));
    let found = cranelift(&half, Some(KernelReturn::Status), |s| {
        s.params.pop();
        s.returns = vec![AbiParam::new(types::F64)];
    });
    let problem = "takes 1 parameters, and 2 are passed: `double* result` (result) is missing; it fits if you state \
                   `KernelReturn::Value`";
    assert_eq!(found, of_half(problem, "int32_t k(double a, double* result);"));
}

/// A kernel that takes a struct of 16 bytes by value, and its signature.
fn of_struct() -> (Signature, Kernel) {
    let args = KernelArg::list("struct(size=16, align=8, 0: a, 8: float32(1)), a").unwrap();
    (sig("f(a: float64)"), Kernel::symbol("k").args(args))
}

#[test]
fn a_cranelift_module_calls_kernels_outside_that_take_structs() {
    let (signature, kernel) = of_struct();
    let mut module = own_module();
    let refused = embed::cranelift::kernel_signature(module.isa(), &signature, &kernel).unwrap_err().to_string();
    assert!(refused.contains("takes a struct by value, but only functions outside of your module can"), "{refused}");
    // two wrappers call the same one
    embed::cranelift::add_wrapper(&mut module, &signature, kernel.clone()).unwrap();
    embed::cranelift::add_wrapper(&mut module, &sig("g(a: float64)"), kernel.clone()).unwrap();
    let mut module = own_module();
    let mut declared = module.make_signature();
    declared.params.push(AbiParam::special(types::I64, ArgumentPurpose::StructArgument(16)));
    declared.params.push(AbiParam::new(types::F64));
    module.declare_function("k", Linkage::Import, &declared).unwrap();
    let refused = embed::cranelift::add_wrapper(&mut module, &signature, kernel).unwrap_err().to_string();
    if cfg!(windows) {
        // a struct of 16 bytes is an address there, so the declaration is just another one
        assert!(refused.contains("has another signature in the module: expected (i64, f64)"), "{refused}");
    } else {
        assert!(refused.contains("its structs are passed by value as to"), "{refused}");
        assert!(refused.contains("link the kernel from an object"), "{refused}");
    }
}

#[test]
fn names_that_mean_something_else_are_refused() {
    let mut module = own_module();
    module.declare_data("k", Linkage::Import, false, false).unwrap();
    let refused = |module: &mut _, signature: &Signature| {
        embed::cranelift::add_wrapper(module, signature, Kernel::symbol("k")).unwrap_err().to_string()
    };
    assert_eq!(refused(&mut module, &store()), "`k` is data in the module, but a function is needed");
    let mut module = own_module();
    embed::cranelift::add_wrapper(&mut module, &store(), Kernel::symbol("k")).unwrap();
    assert_eq!(
        refused(&mut module, &store()),
        "`__tvm_ffi_store` is already defined in the module, or declared as defined there; declare it with `Linkage::Import` if only \
         its callers come first, or give the function another name"
    );
    // an id belongs to one module
    let (mut module, mut other) = (own_module(), own_module());
    let declared = embed::cranelift::kernel_signature(module.isa(), &store(), &Kernel::symbol("k")).unwrap();
    let id = other.declare_function("k", Linkage::Import, &declared).unwrap();
    assert_eq!(
        embed::cranelift::add_wrapper(&mut module, &store(), id).unwrap_err().to_string(),
        "`kernel of store` is bound to a function id that the module doesn't know; ids belong to one module"
    );
}

/// Objects for machines that can't run wrappers are rejected.
#[test]
fn objects_for_a_gpu_are_refused() {
    for &backend in Backend::ALL {
        for triple in ["nvptx64-nvidia-cuda", "amdgcn-amd-amdhsa"] {
            let library = LibraryBuilder::new().backend(backend).target(triple.parse().unwrap());
            let error = library.function(&store(), &Kernel::symbol("k")).emit().unwrap_err();
            let problem = "a GPU runs no wrappers; make them for the host, where a kernel launches the GPU's";
            assert_eq!(error.to_string(), format!("can't generate code for target `{triple}`: {problem}"));
        }
    }
}

#[cfg(feature = "_llvm")]
mod llvm {
    use inkwell::AddressSpace;
    use inkwell::attributes::{Attribute, AttributeLoc};
    use inkwell::context::Context;
    use inkwell::module::Module as LlvmModule;
    use inkwell::targets::{TargetData, TargetTriple};
    use inkwell::values::FunctionValue;

    use super::*;

    const GPU: &str = "a GPU runs no wrappers; make them for the host, where a kernel launches the GPU's";
    const NARROW: &str = "its pointers have 32 bits, and wrappers need pointers of 64";
    const BIG: &str = "it is big-endian, and LLVM is used for little-endian machines";
    const OTHER: &str = "wrappers are for x86-64, AArch64 and 64-bit RISC-V";

    /// The error of a module for a machine; `None` if the module accepts the wrapper.
    fn machine(triple: &str, layout: Option<&str>) -> Option<String> {
        let context = Context::create();
        let module = context.create_module("mine");
        module.set_triple(&TargetTriple::create(triple));
        if let Some(layout) = layout {
            module.set_data_layout(&TargetData::create(layout).get_data_layout());
        }
        let before = module.print_to_string().to_string();
        let refused = embed::llvm::add_wrapper(&module, &store(), Kernel::symbol("k")).err();
        assert!(refused.is_none() || module.print_to_string().to_string() == before);
        refused.map(|error| error.to_string())
    }

    #[test]
    fn an_llvm_module_for_another_machine_is_refused() {
        for (triple, problem) in [
            ("nvptx64-nvidia-cuda", GPU),
            ("nvptx-nvidia-cuda", GPU),
            ("amdgcn-amd-amdhsa", GPU),
            ("spirv64-unknown-unknown", GPU),
            ("i686-unknown-linux-gnu", NARROW),
            ("armv7-unknown-linux-gnueabihf", NARROW),
            ("wasm32-unknown-unknown", NARROW),
            ("s390x-unknown-linux-gnu", BIG),
            ("powerpc64-unknown-linux-gnu", BIG),
            ("powerpc64le-unknown-linux-gnu", OTHER),
            ("unknown-unknown-unknown", OTHER),
            ("mycpu-none", OTHER),
        ] {
            let expected = format!("wrappers can't be added to a module for `{triple}`: {problem}");
            assert_eq!(machine(triple, None), Some(expected));
        }
        let by_layout = |problem: &str| format!("by the data layout {problem}");
        for (triple, layout, problem) in [
            ("x86_64-unknown-linux-gnux32", "e-p:32:32-i64:64", by_layout(NARROW)),
            ("aarch64-unknown-linux-gnu", "E-i64:64", by_layout(BIG)),
        ] {
            let expected = format!("wrappers can't be added to a module for `{triple}`: {problem}");
            assert_eq!(machine(triple, Some(layout)), Some(expected));
        }
        // without a triple, the layout determines the machine
        let refused = machine("", Some("e-p:32:32")).unwrap();
        assert!(refused.ends_with(&by_layout(NARROW)), "{refused}");
        for triple in [
            "",
            "x86_64-pc-linux-gnu",
            "arm64-apple-macosx11.0.0",
            "riscv64-unknown-linux-gnu",
            "x86_64-pc-windows-msvc",
        ] {
            assert_eq!(machine(triple, None), None);
        }
    }

    /// The error of a module for a kernel that `make` has added.
    fn kernel<'ctx>(
        context: &'ctx Context,
        signature: &Signature,
        make: impl FnOnce(&LlvmModule<'ctx>) -> FunctionValue<'ctx>,
    ) -> String {
        let module = context.create_module("mine");
        let function = make(&module);
        let before = module.print_to_string().to_string();
        let linked = embed::llvm::add_wrapper(&module, signature, Kernel::symbol("k")).unwrap_err().to_string();
        let bound = embed::llvm::add_wrapper(&module, signature, function).unwrap_err().to_string();
        assert_eq!(linked, bound);
        assert_eq!(module.print_to_string().to_string(), before);
        linked
    }

    #[test]
    fn an_llvm_module_refuses_kernels_that_c_would_call_otherwise() {
        let context = Context::create();
        let changed = |change: &dyn Fn(FunctionValue<'_>)| {
            kernel(&context, &store(), |module| {
                let function = embed::llvm::declare_kernel(module, None, &store(), &Kernel::symbol("k")).unwrap();
                change(function);
                function
            })
        };
        let float = context.f32_type();
        let plain = |name: &str| context.create_enum_attribute(Attribute::get_named_enum_kind_id(name), 0);
        let typed = |name: &str| context.create_type_attribute(Attribute::get_named_enum_kind_id(name), float.into());
        let attributes = ["byval", "byref", "sret", "inalloca", "preallocated"].map(|name| (name, typed(name)));
        let others = ["inreg", "nest", "swiftself", "swifterror", "swiftasync"].map(|name| (name, plain(name)));
        for (name, attribute) in attributes.into_iter().chain(others) {
            let found = changed(&|function| function.add_attribute(AttributeLoc::Param(0), attribute));
            let problem = format!(
                "has the attribute `{name}` on parameter `float* x`, by which it isn't passed as C passes a plain value: leave the \
                 attribute out"
            );
            assert_eq!(found, of_store(&problem));
        }
        let found = changed(&|function| function.add_attribute(AttributeLoc::Return, plain("inreg")));
        assert_eq!(found, of_store("has the attribute `inreg` on its result, which C's results don't have"));
        let found = changed(&|function| function.set_call_conventions(8));
        assert_eq!(found, of_store("has LLVM's calling convention 8, and wrappers call by C's, which is 0"));
        let found = changed(&|function| {
            let here = AttributeLoc::Param(1);
            function.remove_enum_attribute(here, Attribute::get_named_enum_kind_id("signext"));
            function.add_attribute(here, plain("zeroext"));
        });
        assert_eq!(found, of_store("has parameter `int8_t v` zero-extended, and it is passed sign-extended"));
    }

    #[test]
    fn an_llvm_module_calls_kernels_outside_that_take_structs() {
        let (signature, stated) = super::of_struct();
        let context = Context::create();
        let refused = embed::llvm::kernel_type(&context, &signature, &stated).unwrap_err().to_string();
        assert!(refused.contains("takes a struct by value"), "{refused}");
        let module = context.create_module("mine");
        embed::llvm::add_wrapper(&module, &signature, stated.clone()).unwrap();
        embed::llvm::add_wrapper(&module, &sig("g(a: float64)"), stated.clone()).unwrap();
        let module = context.create_module("mine");
        let double = context.f64_type();
        let ty = context.void_type().fn_type(&[context.ptr_type(AddressSpace::default()).into(), double.into()], false);
        module.add_function("k", ty, None);
        let refused = embed::llvm::add_wrapper(&module, &signature, stated).unwrap_err().to_string();
        assert!(refused.contains("is `void (ptr, double)`, and its structs are passed by value as to"), "{refused}");
    }

    #[test]
    fn an_llvm_module_refuses_kernels_of_other_types() {
        let context = Context::create();
        let [ptr, far] = [0u16, 3].map(|space| context.ptr_type(AddressSpace::from(space)));
        let (i8_type, i64_type, i32_type) = (context.i8_type(), context.i64_type(), context.i32_type());
        let void = context.void_type();
        let all = [ptr.into(), i8_type.into(), i64_type.into()];
        let missing = "takes 2 parameters, and 3 are passed: `int64_t n` (n, from x.shape[0]) is missing";
        for (ty, problem) in [
            (void.fn_type(&all, true), "takes a variable number of arguments, which wrappers don't pass"),
            (void.fn_type(&all[..2], false), missing),
            (
                void.fn_type(&[far.into(), i8_type.into(), i64_type.into()], false),
                "has parameter `float* x` as `ptr addrspace(3)`, and it is passed as `ptr`; cast it to the other address space inside \
                 of the kernel (`addrspacecast`)",
            ),
            (
                void.fn_type(&[i64_type.into(), i8_type.into(), i64_type.into()], false),
                "has parameter `float* x` as `i64`, and it is passed as `ptr`",
            ),
            (
                i32_type.fn_type(&all, false),
                "returns `i32` in place of nothing; it fits if you state `KernelReturn::Status`",
            ),
            (context.f64_type().fn_type(&all, false), "returns `double` in place of nothing"),
        ] {
            let found = kernel(&context, &store(), |module| module.add_function("k", ty, None));
            assert_eq!(found, of_store(problem));
        }
        let half = sig("half(a: float64) -> float64");
        let status = i32_type.fn_type(&[context.f64_type().into(), ptr.into()], false);
        let found = kernel(&context, &half, |module| module.add_function("k", status, None));
        let problem = "takes 2 parameters, and 1 are passed; it fits if you state `KernelReturn::Status`";
        assert_eq!(found, of_half(problem, "double k(double a);"));
    }
}
