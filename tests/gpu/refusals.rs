//! Launches that don't fit their images or signatures: compiling them is an error.

use tvm_ffi_codegen::diagnostic::{Diagnostic, DiagnosticKind};
use tvm_ffi_codegen::image::Image;
use tvm_ffi_codegen::lower::{RuntimeHelpers, lower};
use tvm_ffi_codegen::spec::{KernelArg, Launch};
use tvm_ffi_codegen::{ArgProblem, Engine, Kernel, LaunchProblem, LowerError, dim};

use super::launches::ADD;
use super::standin::{bundle, fatbin, ptx};
use crate::support::sig;

pub fn refusal(signature: &str, launch: Launch, images: Vec<Image>) -> String {
    let engine = Engine::new().unwrap();
    // SAFETY: nothing is compiled.
    unsafe { engine.compile(&sig(signature), &Kernel::launch(launch, images)) }.unwrap_err().to_string()
}

#[test]
fn mismatches_are_told_when_compiling() {
    let image = || vec![ptx("sm_80", 80)];
    for (launch, expected) in [
        (
            Launch::new("sub"),
            "is `sub`, and the PTX of compute_80 has `add`, `affine`, `affine_globals`, `copy`, `matmul`, `staged`, `sum`, `tma`, `which`",
        ),
        (
            Launch::new("copy"),
            "doesn't fit: in the PTX of compute_80, kernel `copy` takes 5 parameters (of 8, 8, 4, 4, 4 bytes), and 4 are \
             passed (of 8, 8, 8, 8)",
        ),
        (
            Launch::new("add").args([KernelArg::Param("w".to_owned())]),
            "has w among its args, but this isn't a tensor or scalar parameter of the function",
        ),
        (
            Launch::new("add").grid([dim("q")]).block([2048]),
            "has grid[0] = q, and `q` isn't a dimension variable or an integer parameter of the function; has block[0] = 2048, expected 1 to \
             1024; has blocks of 2048 threads, expected at most 1024",
        ),
        (Launch::new("add").grid([1, 1, 1, 1]), "has a grid of 4 extents, expected 1 to 3"),
        (
            Launch::new("add").shared_memory(200 << 10),
            "takes 204800 bytes of shared memory in the PTX of compute_80 (0 static, 204800 dynamic), and the architecture \
             has 166912",
        ),
        (Launch::new("add").grid([5]).cluster([2]), "has grid[0] = 5, but cluster[0] = 2 doesn't divide it"),
    ] {
        let entry = launch.entry().to_owned();
        assert_eq!(
            refusal(ADD, launch, image()),
            format!("the launch of kernel `{entry}` by function `add` {expected}")
        );
    }
    // the kernel is in the fatbin once for each architecture
    let images = vec![fatbin(&[("sm_80", 80), ("sm_90", 90)], false)];
    assert_eq!(
        refusal(ADD, Launch::new("copy"), images),
        "the launch of kernel `copy` by function `add` doesn't fit: in the fatbin of compute_80, compute_90, kernel `copy` takes 5 \
         parameters (of 8, 8, 4, 4, 4 bytes), and 4 are passed (of 8, 8, 8, 8)"
    );
    let cpu = "f(x: Tensor([n], float32))";
    assert!(
        refusal(cpu, Launch::new("which"), image())
            .contains("needs a tensor parameter on a CUDA device that isn't optional")
    );
    assert!(refusal(ADD, Launch::new("add"), vec![]).contains("has no image"));
    assert!(refusal(ADD, Launch::new("add"), vec![ptx("sm_80", 80), bundle()]).contains(
        "needs a tensor parameter on a HIP device that isn't optional; has a PTX for an image, but HIP doesn't load it"
    ));
}

#[test]
fn problems_are_values_that_tell_what_was_expected() {
    let launch = Launch::new("add").grid([dim("q")]).block([2048]);
    let kernel = Kernel::launch(launch, [ptx("sm_80", 80)]);
    let error = lower(&sig(ADD), &kernel, RuntimeHelpers::Import).unwrap_err();
    let LowerError::Launch { problems, .. } = &error else { panic!("{error}") };
    let [unknown, extent, threads] = &problems[..] else { panic!("{problems:?}") };
    assert!(
        matches!(unknown, LaunchProblem::Arg(ArgProblem::UnknownName { what, name, .. }) if what == "grid[0]" && name == "q")
    );
    assert_eq!(*extent, LaunchProblem::Extent { part: "block", number: 0, value: 2048, min: 1, max: 1024 });
    assert_eq!(*threads, LaunchProblem::BlockThreads { threads: 2048, max: 1024 });
    // the error lists them, and each tells the same by itself
    let all = Diagnostic::of(&error);
    let told: Vec<_> =
        all.errors.iter().map(|part| (part.path.as_deref(), part.expected.as_deref(), part.got.as_deref())).collect();
    let function = Some("add");
    assert_eq!(
        told,
        [
            (function, None, None),
            (function, Some("1 to 1024"), Some("2048")),
            (function, Some("at most 1024"), Some("2048"))
        ]
    );
    for (problem, part) in problems.iter().zip(&all.errors) {
        let alone = Diagnostic::of(problem);
        assert_eq!((alone.kind, &alone.message), (DiagnosticKind::Kernel, &part.message));
        assert_eq!((&alone.errors[0].expected, &alone.errors[0].got), (&part.expected, &part.got));
    }
}

/// The product of extents may exceed 32 bits.
#[test]
fn blocks_of_any_size_are_compared_with_a_kernels_limit() {
    let text =
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry f(.param .u64 x) .maxntid 256, 1, 1 { ret; }\n";
    let image = Image::from_bytes(text.as_bytes()).unwrap();
    for (block, threads) in [([1 << 16, 1 << 16, 1], "4294967296"), ([(1_i64 << 32) - 1; 3], "18446744073709551615")] {
        let launch = Launch::new("f").block(block).args([KernelArg::Param("x".to_owned())]);
        let text = refusal("f(x: Tensor([n], float32, device=\"cuda\"))", launch, vec![image.clone()]);
        let expected = format!("is made for at most 256 threads a block in the PTX of compute_80, got {threads}");
        assert!(text.ends_with(&expected), "{text}");
    }
}
