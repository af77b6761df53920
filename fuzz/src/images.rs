//! Images of device code of any content: PTX, cubins, fatbins, AMD code objects and bundles. Reading gives an error or
//! an image, in memory that the input's size bounds. A launch of the image's kernels has errors or valid code.

use tvm_ffi_codegen::image::{AmdTarget, CudaTarget, EntryParam, GpuTarget, Image, ImageEntry};
use tvm_ffi_codegen::ir;
use tvm_ffi_codegen::lower::{RuntimeHelpers, lower};
use tvm_ffi_codegen::spec::{KernelArg, Launch};
use tvm_ffi_codegen::{Dim, Kernel, ScalarType, Signature};

use super::{accesses, memory};

/// The maximum size of an input in bytes.
const LONGEST: usize = 1 << 16;
/// The memory that reading may take for a byte of the input, and for any input.
const BYTES_EACH: usize = 256;
const BYTES_FOR_ANY: usize = 1 << 20;
/// The maximum number of kernels to launch, and of parameters of each.
const MOST: usize = 4;
const MOST_PARAMS: usize = 16;

/// Reads an input as an image, and lowers launches of its kernels.
///
/// # Panics
/// Reading panics or takes too much memory, or the code of a launch is invalid.
pub fn run(input: &[u8]) {
    let input = &input[..input.len().min(LONGEST)];
    targets(input);
    let mut read = None;
    let peak = memory::peak(|| read = Some(Image::from_bytes(input)));
    let most = BYTES_EACH * input.len() + BYTES_FOR_ANY;
    assert!(peak <= most, "{peak} bytes of memory for {} bytes", input.len());
    match read.expect("it is read") {
        Ok(image) => check(&image, input),
        Err(error) => assert!(!error.to_string().is_empty(), "an error without a message"),
    }
}

/// Reads the input as the name of an architecture.
fn targets(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Ok(target) = text.parse::<GpuTarget>() {
        assert_eq!(target.to_string().parse(), Ok(target), "{text:?}");
    }
    if let Ok(target) = text.parse::<CudaTarget>() {
        assert_eq!(target.to_string().parse(), Ok(target), "{text:?}");
    }
    if let Ok(target) = text.parse::<AmdTarget>() {
        assert_eq!(target.to_string().parse(), Ok(target), "{text:?}");
    }
}

fn check(image: &Image, input: &[u8]) {
    assert!(**image.bytes() == *input && !format!("{image:?}").is_empty());
    for target in image.targets() {
        assert!(!target.to_string().is_empty());
    }
    let Some(entries) = image.entries() else { return };
    for entry in entries.iter().take(MOST) {
        assert!(image.entries_of(&entry.name).any(|other| other == entry), "{}", entry.name);
        assert!(image.entry(&entry.name).is_some());
        if let Some(params) = &entry.params {
            let sizes: Vec<u32> = params.iter().map(|param| param.size).collect();
            assert!(entry.check_params(&sizes).is_ok(), "the kernel takes its own parameters");
            assert!(entry.check_params(&[&sizes[..], &[1]].concat()).is_err(), "the kernel takes one more");
        }
        for device in ["cuda", "rocm"] {
            launch(image, entry, device);
        }
    }
}

/// Lowers a launch of a kernel, with parameters of the sizes that it states.
fn launch(image: &Image, entry: &ImageEntry, device: &str) {
    let params = entry.params.as_deref().unwrap_or_default();
    let args: Vec<KernelArg> = params.iter().take(MOST_PARAMS).filter_map(arg).collect();
    let signature: Signature = format!("f(x: Tensor([n], float32, device=\"{device}\"))").parse().expect("a signature");
    let launch = Launch::new(&*entry.name).grid([Dim::from("n")]).block([32]).args(args);
    match lower(&signature, &Kernel::launch(launch, [image.clone()]), RuntimeHelpers::Import) {
        Ok(module) => {
            accesses::prove(&module).unwrap_or_else(|error| panic!("an access isn't allowed: {error}\n{module}"));
            ir::verify(module).unwrap_or_else(|error| panic!("lowering made invalid IR: {error}"));
        }
        Err(error) => assert!(!error.to_string().is_empty(), "an error without a message"),
    }
}

/// A value of a parameter's size; `None` if no value has that size.
fn arg(EntryParam { size, .. }: &EntryParam) -> Option<KernelArg> {
    let ty = match size {
        1 => ScalarType::Int8,
        2 => ScalarType::Int16,
        4 => ScalarType::Int32,
        8 => ScalarType::Int64,
        &size if size.is_multiple_of(4) && (1..=4096).contains(&size) => {
            let first = KernelArg::Int(Dim::from("n"), ScalarType::Int32);
            return Some(KernelArg::Struct { size, align: 4, fields: vec![(0, first)] });
        }
        _ => return None,
    };
    Some(KernelArg::Int(Dim::from("n"), ty))
}
