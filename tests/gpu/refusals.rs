//! Launches that don't fit their images or signatures: compiling them is an error.

use tvm_ffi_codegen::image::Image;
use tvm_ffi_codegen::spec::{KernelArg, Launch};
use tvm_ffi_codegen::{Engine, Kernel, dim};

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
            "is `sub`, and the PTX of compute_80 has `add`, `affine`, `copy`, `matmul`, `staged`, `sum`, `tma`, `which`",
        ),
        (
            Launch::new("copy"),
            "doesn't fit: in the PTX of compute_80, kernel `copy` takes 5 parameters (of 8, 8, 4, 4, 4 bytes), and 4 are \
             passed (of 8, 8, 8, 8)",
        ),
        (
            Launch::new("add").args([KernelArg::Param("w".to_owned())]),
            "has w among its args, which is no tensor or scalar parameter of the function",
        ),
        (
            Launch::new("add").grid([dim("q")]).block([2048]),
            "has grid[0] = q, and `q` is no dimension variable or integer parameter of the function; has block[0] = 2048, expected 1 to \
             1024; has blocks of 2048 threads, expected at most 1024",
        ),
        (Launch::new("add").grid([1, 1, 1, 1]), "has a grid of 4 extents, expected 1 to 3"),
        (
            Launch::new("add").shared_memory(200 << 10),
            "takes 204800 bytes of shared memory in the PTX of compute_80 (0 static, 204800 dynamic), and the architecture \
             has 166912",
        ),
        (Launch::new("add").grid([5]).cluster([2]), "has grid[0] = 5, which cluster[0] = 2 doesn't divide"),
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
            .contains("needs a tensor parameter that is on a CUDA device and isn't optional")
    );
    assert!(refusal(ADD, Launch::new("add"), vec![]).contains("has no image"));
    assert!(
        refusal(ADD, Launch::new("add"), vec![ptx("sm_80", 80), bundle()])
            .contains("needs a tensor parameter that is on a HIP device and isn't optional, which tells the device; has a PTX for an image, which HIP doesn't load")
    );
}
