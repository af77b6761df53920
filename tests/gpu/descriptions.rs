//! Descriptions of launches in metadata, and functions that have no sequence of driver calls. These tests launch
//! nothing.

use serde_json::{Value, json};
use tvm_ffi_codegen::artifact::{LibraryBuilder, inspect};
use tvm_ffi_codegen::explain::{ExplainError, Stage, explain};
use tvm_ffi_codegen::image::Image;
use tvm_ffi_codegen::spec::{Launch, LaunchedSignature};
use tvm_ffi_codegen::{Backend, Kernel, LowerError, OptLevel, Signature};

use super::{engines, rtc};
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

/// The `launches` in a function's metadata.
fn launches(metadata: &str) -> Value {
    serde_json::from_str::<Value>(metadata).unwrap()["launches"].clone()
}

#[test]
fn metadata_tells_launches_and_their_images() {
    let (signature, launch) = parse(ADD);
    let launched = Kernel::launch(launch.clone(), [ptx()]);
    // a body makes two launches; a function without launches describes none
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
    let Some(cubin) = rtc::compile(source, "sm_90a", &[]) else { return };
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
