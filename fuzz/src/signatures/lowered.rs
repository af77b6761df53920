//! The code of signatures, with and without a launch.

use std::sync::LazyLock;

use tvm_ffi_codegen::image::Image;
use tvm_ffi_codegen::ir;
use tvm_ffi_codegen::lower::{Convention, RuntimeHelpers, lower, metadata, type_schema};
use tvm_ffi_codegen::spec::LaunchedSignature;
use tvm_ffi_codegen::{Kernel, Signature};

use super::super::accesses;

/// Images of CUDA and AMD devices whose kernels can't be read, so a launch may state any kernel.
static IMAGES: LazyLock<[Image; 2]> = LazyLock::new(|| {
    // a fatbin with one compressed cubin for sm_90
    let header: [&[u8]; 3] = [&0xba55_ed50_u32.to_le_bytes(), &[1, 0, 16, 0], &72_u64.to_le_bytes()];
    let mut element = [0; 72];
    (element[0], element[2], element[4], element[8], element[28]) = (2, 1, 64, 8, 90);
    element[40..48].copy_from_slice(&0x2000_u64.to_le_bytes());
    let fatbin = [&header.concat()[..], &element].concat();
    // a bundle with SPIR-V
    let (id, code) = (b"hip-spirv64-amd-amdhsa--amdgcnspirv", [3, 2, 0x23, 7]);
    let numbers = [1, 56 + id.len() as u64, code.len() as u64, id.len() as u64].map(u64::to_le_bytes).concat();
    let bundle = [b"__CLANG_OFFLOAD_BUNDLE__", &numbers[..], id, &code].concat();
    [fatbin, bundle].map(|bytes| Image::from_bytes(bytes).expect("an image"))
});

/// Lowers a signature with kernels that take its own parameters.
pub fn alone(signature: &Signature) {
    let (_, _) = (metadata(signature), type_schema(signature));
    let symbol = || Kernel::symbol("k");
    check(signature, &Kernel::check_only());
    check(signature, &symbol());
    check(signature, &symbol().convention(Convention::Packed));
    let _ = symbol().header(signature);
}

/// Lowers a signature with its launch on each kind of device, on the CPU, and with a native kernel of its arguments.
pub fn launched(LaunchedSignature { signature, launch }: &LaunchedSignature) {
    for image in &*IMAGES {
        let kernel = Kernel::launch(launch.clone(), [image.clone()]);
        check(signature, &kernel);
    }
    check(signature, &Kernel::launch_on_cpu(launch.clone(), Kernel::symbol("k")));
    if let Some(args) = launch.stated_args() {
        check(signature, &Kernel::symbol("k").args(args.iter().cloned()));
    }
}

/// Lowers a function. It has errors, or valid code with proven accesses; so has the function that is read back.
fn check(signature: &Signature, kernel: &Kernel) {
    let code = |signature: &Signature| match lower(signature, kernel, RuntimeHelpers::Import) {
        Ok(module) => Ok(module),
        Err(error) => Err(error.to_string()),
    };
    let first = code(signature);
    match &first {
        Ok(module) => {
            ir::verify(module.clone()).unwrap_or_else(|error| panic!("lowering made invalid IR: {error}"));
            accesses::prove(module)
                .unwrap_or_else(|error| panic!("an access isn't allowed: {error}\n{signature}\n{module}"));
        }
        Err(error) => assert!(!error.is_empty(), "an error without a message"),
    }
    let read: Signature = signature.to_string().parse().expect("it is read back");
    let [first, again] = [first, code(&read)].map(|code| code.map(|module| module.to_string()));
    assert!(first == again, "the code of what is read back differs: {signature}");
}
