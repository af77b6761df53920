//! Tests of this backend only; `op_tests` tests the operations in both backends.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::str::FromStr;

use target_lexicon::Triple;

use super::*;
use crate::backend::{Backend, OptLevel};
use crate::explain::{Stage, explain};
use crate::ir::testing::module_of;
use crate::ir::*;
use crate::{DLDataType, Kernel, ScalarType, Signature, TensorType};

/// `y[i] = a * x[i] + b`; the engine's tests use it too.
pub(crate) fn axpb() -> (Signature, Kernel) {
    let signature = Signature::builder("axpb")
        .param("a", ScalarType::Float32)
        .param("b", ScalarType::Float32)
        .param("x", TensorType::new(["n"], DLDataType::FLOAT32))
        .param("y", TensorType::new(["n"], DLDataType::FLOAT32))
        .build()
        .unwrap();
    let kernel = Kernel::body(|b| {
        let (x, y, p, q) = (b.tensor("x"), b.tensor("y"), b.arg("a"), b.arg("b"));
        b.for_range(0, b.dim("n"), |i| y.store([i], p * x.load([i]) + q));
    });
    (signature, kernel)
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_body_over_tensors_is_vectorised() {
    let (signature, kernel) = axpb();
    let asm = explain(&signature, &kernel, Stage::Asm, Backend::Llvm, OptLevel::Speed).unwrap();
    assert!(asm.contains("mulps") && asm.contains("addps"), "{asm}");
    // Contraction is not allowed: the interpreter rounds twice.
    assert!(!asm.contains("fmadd"), "{asm}");
}

/// `f(x, y)` over a matrix; `change` adapts the tensors' types.
fn matrix(change: impl Fn(TensorType) -> TensorType) -> (Signature, Kernel) {
    let tensor = || change(TensorType::new(["m", "n"], DLDataType::FLOAT32));
    let signature = Signature::builder("f").param("x", tensor()).param("y", tensor()).build().unwrap();
    let kernel = Kernel::body(|b| {
        let (x, y) = (b.tensor("x"), b.tensor("y"));
        b.for_range(0, b.dim("m"), |i| {
            b.for_range(0, b.dim("n"), |j| y.store([i, j], x.load([i, j]) * 2.0f32));
        });
    });
    (signature, kernel)
}

fn llvm_ir((signature, kernel): &(Signature, Kernel), level: OptLevel) -> String {
    explain(signature, kernel, Stage::Llvm, Backend::Llvm, level).unwrap()
}

/// Facts that a signature guarantees are known where the body is compiled.
#[test]
fn facts_of_tensors_reach_the_body() {
    // the attributes of the first parameter; LLVM versions order them differently and infer more
    let first =
        |line: &str| line.split(['(', '%']).nth(1).unwrap().split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let says = |line: &str, facts: &[&str]| facts.iter().all(|fact| first(line).iter().any(|word| word == fact));
    let text = llvm_ir(&matrix(|t| t), OptLevel::Speed);
    let body = text.lines().find(|line| line.contains("f-body") && line.contains("define")).unwrap();
    assert!(says(body, &["ptr", "nonnull", "readonly", "align", "4"]) && !body.contains("noalias"), "{body}");
    let text = llvm_ir(&matrix(|t| t.with_align(64).with_noalias()), OptLevel::Speed);
    let body = text.lines().find(|line| line.contains("f-body") && line.contains("define")).unwrap();
    assert!(says(body, &["ptr", "noalias", "nonnull", "readonly", "align", "64"]), "{body}");

    let tensor = TensorType::new([4, 4], DLDataType::FLOAT32);
    let signature = Signature::builder("g").param("x", tensor).returns(ScalarType::Float32).build().unwrap();
    // with a loop, because straight-line code would be inlined into the wrapper
    let kernel = Kernel::body(|b| {
        let x = b.tensor("x");
        b.ret(b.fold(0, 4, b.f32(0.0), |i, sum| sum + x.load([i, i])));
    });
    let text = llvm_ir(&(signature, kernel), OptLevel::None);
    let body = text.lines().find(|line| line.contains("g-body") && line.contains("define")).unwrap();
    assert!(body.contains("(ptr nonnull align 4 dereferenceable(64)"), "{body}");
    assert!(body.contains("ptr nonnull align 8 dereferenceable(16)"), "{body}");
    let wrapper = text.lines().find(|line| line.contains("@__tvm_ffi_g(") && line.contains("define")).unwrap();
    assert!(wrapper.contains("ptr readonly align 8 %1, i32 %2, ptr nonnull align 8 dereferenceable(16)"), "{wrapper}");
}

/// The vectoriser checks for overlaps at run time unless the signature rules them out.
#[test]
fn noalias_tensors_need_no_overlap_check() {
    for level in [OptLevel::Speed, OptLevel::Full] {
        let text = llvm_ir(&matrix(|t| t), level);
        assert!(text.contains("fmul <") && text.contains("diff.check"), "{text}");
        let text = llvm_ir(&matrix(TensorType::with_noalias), level);
        assert!(text.contains("fmul <") && !text.contains("diff.check") && !text.contains("memcheck"), "{text}");
    }
}

/// The fast path keeps its shape: branches, and loads no wider than the fields.
#[test]
fn a_wrapper_gains_nothing_from_vectors() {
    let (signature, kernel) = axpb();
    let text = llvm_ir(&(signature, kernel), OptLevel::Speed);
    let (_, wrapper) = text.split_once("i32 @__tvm_ffi_axpb(").unwrap();
    let (wrapper, _) = wrapper.split_once("\n}").unwrap();
    assert!(!wrapper.contains("masked.load") && !wrapper.contains(".peel"), "{wrapper}");
    assert!(!text.contains("optnone"), "{text}");
}

#[test]
fn each_stage_can_be_seen() {
    let (signature, kernel) = axpb();
    let show = |stage, level| explain(&signature, &kernel, stage, Backend::Llvm, level).unwrap();
    assert!(show(Stage::Ir, OptLevel::None).contains("__tvm_ffi_axpb"));
    assert!(show(Stage::Llvm, OptLevel::Speed).contains("fmul <"));
    assert!(!show(Stage::Llvm, OptLevel::None).contains("fmul <"));
    assert!(show(Stage::Asm, OptLevel::None).contains("__tvm_ffi_axpb:"));
    assert!(explain(&signature, &kernel, Stage::Clif, Backend::Llvm, OptLevel::None).is_err());
}

/// Facts reach LLVM: branch weights, cold functions, mergeable loads, typed addresses.
#[test]
fn facts_are_kept() {
    let mut module = Module::new();
    let cold = module.import("cold", FuncSig::new([], None));
    module.functions[cold].cold = true;
    let f = module.declare("f", FuncSig::new([Type::Ptr, Type::I64], Some(Type::F32)), Linkage::Export);
    let mut b = FunctionBuilder::new(&mut module, f);
    let (ok, bad) = (b.block(), b.cold_block());
    let c = b.icmp_imm(IntCC::SLt, b.param(1), 10);
    b.branch(c, ok, bad, Hint::None);
    b.switch_to(bad);
    b.call(cold, &[]);
    b.jump(ok, &[]);
    b.switch_to(ok);
    let at = b.element(b.param(0), b.param(1), Type::F32);
    let v = b.load(Type::F32, at, 0, MemFlags::READONLY);
    b.ret(Some(v));
    b.finish();
    let target = LlvmTarget::host(&TargetOptions { opt_level: OptLevel::None, ..TargetOptions::default() }).unwrap();
    let options = Options { llvm_ir: true, ..Options::default() };
    let compiled = Compiler::new(target).compile(&verify(module).unwrap(), options).unwrap();
    let (text, _) = compiled.llvm_ir.unwrap();
    for fact in [
        "getelementptr float",
        "!invariant.load",
        "!\"branch_weights\", i32 2000, i32 1",
        "cold",
        "nounwind",
        "align 4",
    ] {
        assert!(text.contains(fact), "{fact} in\n{text}");
    }
}

#[test]
fn other_targets_and_none() {
    let module = module_of("f", FuncSig::new([Type::F64], Some(Type::F64)), |b| {
        let v = b.unary(UnaryOp::Floor, b.param(0));
        b.ret(Some(v));
    });
    for (triple, magic) in [
        ("aarch64-unknown-linux-gnu", b"\x7fELF"),
        ("riscv64gc-unknown-linux-gnu", b"\x7fELF"),
        ("aarch64-apple-darwin", b"\xcf\xfa\xed\xfe"),
        ("x86_64-pc-windows-msvc", b"\x64\x86\x06\x00"),
    ] {
        let target = LlvmTarget::new(&Triple::from_str(triple).unwrap(), &TargetOptions::default()).unwrap();
        let object = compile(&module, &target).unwrap().object;
        assert_eq!(object[..2], magic[..2], "{triple}");
    }
    for triple in ["wasm32-unknown-unknown", "powerpc64-unknown-linux-gnu", "s390x-unknown-linux-gnu"] {
        let error = LlvmTarget::new(&Triple::from_str(triple).unwrap(), &TargetOptions::default()).unwrap_err();
        assert!(matches!(error, Error::UnsupportedTarget { .. }), "{error}");
    }
}
