//! The run-time compilers NVRTC and hiprtc, which run without a device.

use std::sync::LazyLock;

use tvm_ffi_codegen::image::rtc::{Hiprtc, KernelSource, Nvrtc, RtcError, Severity};
use tvm_ffi_codegen::image::{Image, ImageKind};

use super::brought;

/// The compiler; `None` if the test step brings none.
fn nvrtc() -> Option<&'static Nvrtc> {
    static NVRTC: LazyLock<Option<Nvrtc>> = LazyLock::new(|| {
        let path = brought("TVM_FFI_CODEGEN_NVRTC")?;
        // SAFETY: the step names NVIDIA's library.
        Some(unsafe { Nvrtc::open(path) }.unwrap())
    });
    NVRTC.as_ref()
}

/// Compiles an image for an architecture: a cubin for `sm_80`, PTX for `compute_80`. `None` without NVRTC.
pub fn compile(source: &str, architecture: &str, options: &[&str]) -> Option<Image> {
    let source = options.iter().fold(KernelSource::new(source), |source, option| source.option(*option));
    let compiled = nvrtc()?.compile(&source, &[architecture]).unwrap();
    Some(compiled.images()[0].clone())
}

const TEMPLATE: &str = r#"
#include "types.h"
namespace lib {
template <class T> __global__ void scale(T* x, index n, T by) {
  index i = blockIdx.x * (index)blockDim.x + threadIdx.x;
  if (i < n) x[i] *= by;
}
}
extern "C" __global__ void plain(float* x) { *x = FILL; }
"#;

#[test]
fn a_template_becomes_images_of_several_architectures() {
    let Some(nvrtc) = nvrtc() else { return };
    assert!(nvrtc.version().unwrap() >= (12, 0));
    assert!(nvrtc.capabilities().unwrap().contains(&90));
    let source = KernelSource::new(TEMPLATE)
        .header("types.h", "typedef long index;")
        .option("-DFILL=3.0f")
        .kernel("lib::scale<float>")
        .kernel("lib::scale<int>");
    let compiled = nvrtc.compile(&source, &["sm_80", "sm_90a", "compute_80"]).unwrap();
    assert_eq!((compiled.log(), compiled.messages()), ("", Vec::new()));
    let kinds = compiled.images().iter().map(Image::kind).collect::<Vec<_>>();
    assert_eq!(kinds, [ImageKind::Cubin, ImageKind::Cubin, ImageKind::Ptx]);
    let targets: Vec<String> =
        compiled.images().iter().map(|image| image.targets().iter().map(ToString::to_string).collect()).collect();
    assert_eq!(targets, ["sm_80", "sm_90a", "compute_80"]);
    let [of_float, of_int] = compiled.entries() else { panic!("{:?}", compiled.entries()) };
    assert_ne!(of_float, of_int);
    for image in compiled.images() {
        for name in [of_float, of_int] {
            let entry = image.entry(name).unwrap();
            let sizes: Vec<u32> = entry.params.iter().flatten().map(|param| param.size).collect();
            assert_eq!(sizes, [8, 8, 4], "{name} in {image:?}");
        }
        assert!(image.entry("plain").is_some());
    }
}

#[test]
fn mistakes_in_source_have_lines() {
    let Some(nvrtc) = nvrtc() else { return };
    let source = KernelSource::new("__global__ void f(int* x) {\n  int unused;\n  *x = y;\n}").file("dir/k.cu");
    let error = nvrtc.compile(&source, &["compute_80"]).unwrap_err();
    let found: Vec<_> =
        error.messages().into_iter().map(|found| (found.file, found.line, found.severity, found.text)).collect();
    let expected = ("dir/k.cu".to_owned(), 3, Severity::Error, "identifier \"y\" is undefined".to_owned());
    assert!(found.contains(&expected), "{found:?}");
    let text = error.to_string();
    assert!(text.starts_with("can't compile dir/k.cu for compute_80:\ndir/k.cu("), "{text}");
    assert!(!text.ends_with('\n'), "{text:?}");

    // a warning is no failure
    let source = KernelSource::new("__global__ void f(int* x) {\n  int unused;\n  *x = 1;\n}");
    let compiled = nvrtc.compile(&source, &["sm_80", "sm_90"]).unwrap();
    let [message] = &compiled.messages()[..] else { panic!("{}", compiled.log()) };
    assert_eq!((&*message.file, message.line, message.severity), ("kernels.cu", 2, Severity::Warning));
}

/// hiprtc; `None` if the test step brings none.
fn hiprtc() -> Option<Hiprtc> {
    let path = brought("TVM_FFI_CODEGEN_HIPRTC")?;
    // SAFETY: the step names AMD's library.
    Some(unsafe { Hiprtc::open(path) }.unwrap())
}

#[test]
fn hip_source_becomes_code_objects() {
    let Some(hiprtc) = hiprtc() else { return };
    assert!(hiprtc.version().unwrap() >= (5, 0));
    let source = KernelSource::new(TEMPLATE)
        .file("scale.hip")
        .header("types.h", "typedef long index;")
        .option("-DFILL=3.0f")
        .kernel("lib::scale<float>");
    let compiled = hiprtc.compile(&source, &["gfx90a", "gfx1030"]).unwrap();
    let [entry] = compiled.entries() else { panic!("{:?}", compiled.entries()) };
    for (image, target) in compiled.images().iter().zip(["gfx90a", "gfx1030"]) {
        assert_eq!(image.kind(), ImageKind::CodeObject);
        assert!(image.targets()[0].to_string().starts_with(target), "{image:?}");
        let sizes: Vec<u32> = image.entry(entry).unwrap().params.iter().flatten().map(|param| param.size).collect();
        assert_eq!(sizes, [8, 8, 4], "{image:?}");
        assert!(image.entry("plain").is_some());
    }
    let wrong = KernelSource::new("__global__ void f(int* x) {\n  *x = y;\n}").file("dir/k.hip");
    let error = hiprtc.compile(&wrong, &["gfx90a"]).unwrap_err();
    let [found] = &error.messages()[..] else { panic!("{error}") };
    assert_eq!((&*found.file, found.line, found.severity), ("dir/k.hip", 2, Severity::Error));
    assert_eq!(
        hiprtc.compile(&wrong, &["sm_90"]).unwrap_err().to_string(),
        "unknown architecture `sm_90`, expected one such as `gfx942` or `gfx90a:xnack-`"
    );
}

#[test]
fn other_mistakes_are_named() {
    let Some(nvrtc) = nvrtc() else { return };
    let source = || KernelSource::new("__global__ void f() {}");
    let problem = |source: KernelSource, architecture| nvrtc.compile(&source, &[architecture]).unwrap_err().to_string();
    assert_eq!(
        problem(source(), "gfx90a"),
        "unknown architecture `gfx90a`, expected one such as `sm_90a` or `compute_80`"
    );
    assert_eq!(
        nvrtc.compile(&source(), &[]).unwrap_err().to_string(),
        "no architectures are stated, expected one or more such as `sm_90a` or `compute_80`"
    );
    assert!(problem(source(), "sm_11").starts_with("can't compile kernels.cu for sm_11:\n"));
    let text = problem(source().option("--no-such-option"), "sm_80");
    assert!(text.contains("no-such-option"), "{text}");
    let text = problem(source().kernel("g<int>"), "sm_80");
    assert!(text.contains("g<int>") || text.contains("\"g\""), "{text}");
    assert_eq!(problem(source().option("a\0b"), "sm_80"), "an option has a NUL byte");
    assert_eq!(problem(source().header("a.h", "\0"), "sm_80"), "a header has a NUL byte");
    assert_eq!(problem(KernelSource::new("\0"), "sm_80"), "the source has a NUL byte");
}

#[test]
fn threads_compile_at_the_same_time() {
    let Some(nvrtc) = nvrtc() else { return };
    std::thread::scope(|scope| {
        let names: Vec<String> = (0..4).map(|number| format!("f{number}")).collect();
        let compile = |name: String| {
            let source = KernelSource::new(format!("extern \"C\" __global__ void {name}() {{}}"));
            let compiled = nvrtc.compile(&source, &["sm_80"]).unwrap();
            assert!(compiled.images()[0].entry(&name).is_some());
        };
        names.into_iter().for_each(|name| _ = scope.spawn(move || compile(name)));
    });
}

#[test]
fn what_is_no_compiler_is_refused() {
    // SAFETY: the file doesn't exist, so no code runs.
    let error = unsafe { Nvrtc::open("there/is/no/libnvrtc.so") }.unwrap_err();
    let RtcError::NotFound { problems, .. } = &error else { panic!("{error:?}") };
    assert_eq!(problems.len(), 1);
    assert!(error.to_string().starts_with("NVRTC can't be loaded: "), "{error}");
    assert!(error.messages().is_empty());
}
