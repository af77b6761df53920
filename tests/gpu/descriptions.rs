//! Descriptions of launches: in metadata, and as sequences of driver calls. These tests launch nothing.

use serde_json::{Value, json};
use tvm_ffi_codegen::artifact::{LibraryBuilder, inspect};
use tvm_ffi_codegen::explain::{ExplainError, Stage, explain};
use tvm_ffi_codegen::image::Image;
use tvm_ffi_codegen::spec::{Launch, LaunchedSignature};
use tvm_ffi_codegen::{Backend, Kernel, LowerError, OptLevel, Signature, dim};

use super::{engines, nvrtc};
use crate::support::sig;

const ADD: &str = "add(x: Tensor([n], float32, device=\"cuda\"), y: Tensor([n], float32, device=\"cuda\")) \
                   @ launch add grid=ceil_div(n, 128) block=128 args=[x, y, uint32(n)]";

const PTX: &str = ".version 8.0\n.target sm_80\n.address_size 64\n\
                   .visible .entry add(.param .u64 x, .param .u64 y, .param .u32 n) .maxntid 256, 1, 1 { ret; }\n";

fn ptx() -> Image {
    Image::from_bytes(PTX.as_bytes()).unwrap()
}

fn parse(text: &str) -> (Signature, Launch) {
    let LaunchedSignature { signature, launch } = text.parse().unwrap();
    (signature, launch)
}

/// The `launches` of a function's metadata.
fn launches(metadata: &str) -> Value {
    serde_json::from_str::<Value>(metadata).unwrap()["launches"].clone()
}

#[test]
fn metadata_tells_launches_and_their_images() {
    let (signature, launch) = parse(ADD);
    let launched = Kernel::launch(launch.clone(), [ptx()]);
    // a body makes two launches, and a function without one describes none
    let body = Kernel::body(move |b| (0..2).for_each(|_| b.launch(launch.clone(), [ptx()])));
    let (twice, plain) = (sig(&signature.to_string().replace("add(", "twice(")), sig("plain(n: int64)"));
    let all = [(&signature, &launched), (&twice, &body), (&plain, &Kernel::check_only())];
    let entry = json!({
        "name": "add", "static_shared": 0, "registers": null, "required_block": null, "is_tile": false, "max_threads": 256, "cluster": null,
        "parameters": [{ "offset": 0, "size": 8 }, { "offset": 8, "size": 8 }, { "offset": 16, "size": 4 }],
    });
    let expected = json!({
        "launch": "launch add grid=ceil_div(n, 128) block=128 args=[x, y, uint32(n)]",
        "api": "CUDA",
        "images": [{ "kind": "PTX", "size": PTX.len(), "targets": ["compute_80"], "entry": entry }],
    });
    let expected = [json!([expected]), json!([expected, expected]), Value::Null];
    let library =
        all.iter().fold(LibraryBuilder::new(), |library, (signature, kernel)| library.function(signature, kernel));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("all.o");
    std::fs::write(&path, library.emit().unwrap().into_bytes()).unwrap();
    let seen = inspect(&path).unwrap();
    for (name, expected, count) in [("add", &expected[0], 1), ("twice", &expected[1], 2), ("plain", &expected[2], 0)] {
        let function = seen.functions.iter().find(|function| function.name == name).unwrap();
        assert_eq!(launches(function.metadata.as_deref().unwrap()), *expected, "{name}");
        assert_eq!(function.launches.len(), count);
        for launch in &function.launches {
            assert_eq!(launch.api, "CUDA");
            assert_eq!(launch.images[0].entry, ptx().entry("add").cloned());
        }
    }
    for engine in engines() {
        // SAFETY: nothing is called.
        let module = unsafe { engine.compile_module(all) }.unwrap();
        for ((signature, _), expected) in all.iter().zip(&expected) {
            let metadata = module.function_metadata(signature.name(), false).unwrap().unwrap();
            assert_eq!(launches(&metadata), *expected);
        }
    }
}

#[cfg(feature = "cranelift")]
#[test]
fn modules_of_the_caller_tell_launches() {
    use tvm_ffi_codegen::embed::cranelift::{Wrappers, finish, host_isa, jit_module};

    let (signature, launch) = parse(ADD);
    let mut module = jit_module(host_isa().unwrap()).unwrap();
    let kernel = Kernel::launch(launch, [ptx()]);
    let added = Wrappers::in_process().function(&signature, kernel).add_to(&mut module).unwrap();
    // SAFETY: nothing is called.
    let module = unsafe { finish(module, [added], ()) }.unwrap();
    let metadata = module.function_metadata("add", false).unwrap().unwrap();
    assert_eq!(launches(&metadata)[0]["images"][0]["kind"], "PTX");
}

#[test]
fn cubins_tell_registers() {
    let source =
        "extern \"C\" __global__ void add(float* x, float* y, unsigned n) { if (threadIdx.x < n) y[0] += x[0]; }";
    let Some(cubin) = nvrtc::compile(source, "sm_90a", &[]) else { return };
    let (signature, launch) = parse(ADD);
    let library = LibraryBuilder::new().function(&signature, &Kernel::launch(launch, [cubin.clone(), ptx()]));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("add.o");
    std::fs::write(&path, library.emit().unwrap().into_bytes()).unwrap();
    let seen = inspect(&path).unwrap();
    let [image, _] = seen.functions[0].launches[0].images.as_slice() else { panic!("{seen:?}") };
    assert_eq!((image.kind.as_str(), image.targets.as_slice()), ("cubin", &["sm_90a".to_owned()][..]));
    assert_eq!(image.size, cubin.bytes().len() as u64);
    assert!(image.entry.as_ref().unwrap().registers.is_some_and(|count| count > 0));
}

#[test]
fn sequences_name_the_calls_of_a_launch() {
    let told = |text: &str, images: Vec<Image>| {
        let (signature, launch) = parse(text);
        explain(&signature, &Kernel::launch(launch, images), Stage::Launch, Backend::default(), OptLevel::None)
    };
    let expected = format!(
        "{ADD}

once for each library, at its first launch:
  dlopen libcuda.so.1, cuGetProcAddress_v2 for the functions below
  cuInit

once for each device:
  cuDeviceGet
  cuDeviceGetAttribute 75 and 76: the compute capability
  cuDeviceGetAttribute 1, 2, 3 and 4: the most threads of a block, and in x, y and z
  cuDeviceGetAttribute 97: the most shared memory of a block
  cuDevicePrimaryCtxRetain

once for each library, the first image that is for the device:
  for 8.0 and later: cuLibraryLoadData of {} bytes

once for each device and kernel:
  cuLibraryGetKernel \"add\"

each call:
  grid[0] = ceil_div(n, 128), 0 to 2147483647
    where one is 0, nothing more
  block[0] = 128
    together at most 1024 threads
  the kernel's parameters:
    x
    y
    uint32(n)
  the stream: TVMFFIEnvGetStream for the tensors' device
  cuLaunchKernelEx
    on a stream that is NULL or belongs to the thread: cuCtxGetCurrent, and cuCtxPushCurrent and cuCtxPopCurrent around the launch where \
another context than the device's is current
",
        PTX.len()
    );
    assert_eq!(told(ADD, vec![ptx()]).unwrap(), expected);
    // all optional parts of a launch; the image for fewer devices comes first
    let every = "f(x: Tensor([m, n], float32, device=\"cuda\"), s: int64) @ launch f grid=(m, n) block=32 cluster=(2, 1) shared_memory=s \
                 args=[tensor_map(x, box=(8, 8)), scratch(n, align=16), null] priority=1 cooperative non_portable_cluster";
    let entry = ".visible .entry f(.param .align 64 .b8 m[128], .param .u64 s, .param .u64 p) { ret; }";
    let image = |target| {
        let text = format!(".version 8.0\n.target {target}\n.address_size 64\n{entry}\n");
        Image::from_bytes(text.into_bytes()).unwrap()
    };
    let text = told(every, vec![image("sm_80"), image("sm_90a")]).unwrap();
    for part in [
        "  for 9.0 alone: cuLibraryLoadData of ",
        "  cuKernelGetAttribute 1: the kernel's own shared memory\n",
        "  cuKernelSetAttribute 8: all dynamic shared memory that a block may have beside the kernel's own\n",
        "  cuKernelSetAttribute 14: clusters of more than 8 blocks\n",
        "  grid[1] = n, 0 to 65535\n",
        "  cluster[0] = 2\n",
        "  shared_memory = s bytes of dynamic shared memory\n",
        "    tensor_map(x, box=(8, 8)): cuTensorMapEncodeTiled\n",
        "    scratch(n, align=16): TVMFFIEnvTensorAlloc on the tensors' device, given up behind the launch\n",
        "  cuLaunchKernelEx, cooperative, priority=1\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.find("9.0 alone") < text.find("8.0 and later"));
}

#[test]
fn the_launches_of_a_body_have_sequences() {
    let (signature, launch) = parse(ADD);
    let body = Kernel::body(move |b| {
        let values = tvm_ffi_codegen::lower::LaunchValue::from(b.dim("n") + 1);
        b.launch(launch.clone(), [ptx()]);
        b.launch_with(launch.clone().grid([dim("m")]), [ptx()], [("m", values)]);
    });
    let text = explain(&signature, &body, Stage::Launch, Backend::default(), OptLevel::None).unwrap();
    let (first, second) = text.split_once("\n\nadd(").unwrap();
    assert!(first.starts_with("add(") && first.contains("grid=ceil_div(n, 128)"), "{first}");
    // the second knows a value of the body, as a parameter of its own
    assert!(second.contains("m: int64") && second.contains("grid=m"), "{second}");
    for sequence in [first, second] {
        assert!(sequence.contains("cuLaunchKernelEx"), "{sequence}");
    }
}

#[test]
fn sequences_are_of_launches() {
    let told = |kernel: &Kernel, signature: &str| {
        explain(&sig(signature), kernel, Stage::Launch, Backend::default(), OptLevel::None).unwrap_err()
    };
    let error = told(&Kernel::symbol("f"), "f(n: int64)");
    assert!(matches!(&error, ExplainError::NoLaunch { function } if function == "f"));
    assert_eq!(error.to_string(), "`f` launches nothing");
    told(&Kernel::body(|_| {}), "f(n: int64)");
    let error = told(&Kernel::launch(Launch::new("add"), [ptx()]), "f(n: int64)");
    assert!(matches!(error, ExplainError::Lower(LowerError::Launch { .. })));
}
