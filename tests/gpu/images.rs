//! Images of CUDA's own compiler (NVRTC), which runs without a device.

use tvm_ffi_codegen::image::{ArchFeatures, EntryParam, Image, ImageKind};
use tvm_ffi_codegen::spec::{KernelArg, Launch, ScalarType, TensorMap};
use tvm_ffi_codegen::{Engine, Kernel, dim};

use super::{nvfatbin, rtc};
use crate::support::sig;

const SOURCE: &str = r#"
struct affine { float scale; int n; double shift; float* out; };
struct alignas(64) map { unsigned long long words[16]; };

extern "C" __global__ void add(const float* x, const float* y, float* z, long long n) {
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < n) z[i] = x[i] + y[i];
}
extern "C" __global__ __launch_bounds__(256) void kinds(float* x, affine a, char c, short s, int i, double d) {
  x[threadIdx.x] = a.scale + c + s + i + d;
}
extern "C" __global__ void shared(float* x) {
  __shared__ float tile[1024];
  extern __shared__ float more[];
  tile[threadIdx.x] = x[threadIdx.x];
  more[threadIdx.x] = tile[threadIdx.x ^ 1];
  __syncthreads();
  x[threadIdx.x] = more[threadIdx.x ^ 2] + tile[threadIdx.x];
}
extern "C" __global__ void tma(const __grid_constant__ map m, float* y) { y[0] = m.words[0]; }
#if __CUDA_ARCH__ >= 900
extern "C" __global__ __cluster_dims__(2, 1, 1) void clustered(float* x) { x[threadIdx.x] = 1; }
#endif
"#;

fn compiled(architecture: &str) -> Option<Image> {
    rtc::compile(SOURCE, architecture, &[])
}

#[test]
fn cubins_and_ptx_tell_of_their_kernels() {
    for (architecture, kind) in [
        ("sm_80", ImageKind::Cubin),
        ("sm_90a", ImageKind::Cubin),
        ("sm_100a", ImageKind::Cubin),
        ("sm_120", ImageKind::Cubin),
        ("compute_80", ImageKind::Ptx),
        ("compute_90a", ImageKind::Ptx),
    ] {
        let Some(image) = compiled(architecture) else { return };
        assert_eq!(image.kind(), kind);
        let [target] = image.targets() else { panic!("{image:?}") };
        assert_eq!(target.to_string(), architecture);
        let target = target.cuda().unwrap();
        assert_eq!(target.features == ArchFeatures::Architecture, architecture.ends_with('a'));
        let is_90 = target.capability >= 90;
        let mut names: Vec<_> = image.entries().unwrap().iter().map(|entry| entry.name.as_str()).collect();
        names.sort_unstable();
        let expected = ["add", "clustered", "kinds", "shared", "tma"];
        assert_eq!(names, expected.into_iter().filter(|name| *name != "clustered" || is_90).collect::<Vec<_>>());
        let params = |name: &str| {
            let params = image.entry(name).unwrap().params.clone().unwrap();
            params.iter().map(|EntryParam { offset, size }| (*offset, *size)).collect::<Vec<_>>()
        };
        assert_eq!(params("add"), [(0, 8), (8, 8), (16, 8), (24, 8)], "{architecture}");
        assert_eq!(params("kinds"), [(0, 8), (8, 24), (32, 1), (34, 2), (36, 4), (40, 8)], "{architecture}");
        // In a cubin, a parameter with 64-byte alignment is aligned in the constant bank, where parameters begin at an
        // architecture-specific address.
        let tma = params("tma");
        assert_eq!((tma[0].1, tma[1]), (128, (tma[0].0 + 128, 8)), "{architecture}");
        assert_eq!(image.entry("shared").unwrap().static_shared, 4096, "{architecture}");
        assert_eq!(image.entry("kinds").unwrap().max_threads, Some(256), "{architecture}");
        assert_eq!(image.entry("add").unwrap().registers.is_some(), kind == ImageKind::Cubin);
        if is_90 {
            assert_eq!(image.entry("clustered").unwrap().cluster, Some([2, 1, 1]), "{architecture}");
        }
    }
}

#[test]
fn fatbins_tell_of_what_is_not_compressed() {
    let architectures = ["sm_80", "sm_90a", "compute_90a", "compute_100f"];
    let Some(images) = architectures.iter().map(|name| compiled(name)).collect::<Option<Vec<_>>>() else { return };
    let images: Vec<&Image> = images.iter().collect();
    for (options, cubins_are_read, ptx_is_read) in [
        (&["-compress=false"][..], true, true),
        (&[], true, false),
        (&["-compress-all"], false, false),
        (&["-compress-mode=size"], false, false),
    ] {
        let Some(fatbin) = nvfatbin::pack(&images, options) else { return };
        assert_eq!(fatbin.kind(), ImageKind::Fatbin);
        let targets: Vec<_> = fatbin.targets().iter().map(ToString::to_string).collect();
        assert_eq!(targets, architectures, "{options:?}");
        // the fatbin reports the same as the images that it was packed from
        let read = images.iter().filter(|image| match image.kind() {
            ImageKind::Cubin => cubins_are_read,
            _ => ptx_is_read,
        });
        let expected: Vec<_> = read.map(|image| image.entry("kinds").unwrap()).collect();
        assert_eq!(fatbin.entries_of("kinds").collect::<Vec<_>>(), expected, "{options:?}");
        assert_eq!(fatbin.entries().is_some(), ptx_is_read);
        assert_eq!(fatbin.tells_params_of("kinds"), ptx_is_read);
        for at in (0..fatbin.bytes().len()).step_by(37) {
            let _ = Image::from_bytes(&fatbin.bytes()[..at]);
            let mut changed = fatbin.bytes().to_vec();
            changed[at] ^= 1 << (at % 8);
            let _ = Image::from_bytes(changed);
        }
    }
}

/// A truncated or modified image is an error or another image; reading it never panics.
#[test]
fn damage_is_survived() {
    for architecture in ["sm_80", "compute_80"] {
        let Some(image) = compiled(architecture) else { return };
        let bytes = image.bytes();
        for length in (0..bytes.len()).step_by(7) {
            let _ = Image::from_bytes(&bytes[..length]);
        }
        for at in (0..bytes.len()).step_by(5) {
            let mut changed = bytes.to_vec();
            changed[at] ^= 1 << (at % 8);
            let _ = Image::from_bytes(changed);
        }
    }
}

#[test]
fn launches_are_compared_with_cubins() {
    let Some(cubin) = compiled("sm_90a") else { return };
    let engine = Engine::new().unwrap();
    let refusal = |signature: &str, launch: Launch| {
        // SAFETY: the code isn't run.
        let result = unsafe { engine.compile(&sig(signature), &Kernel::launch(launch, [cubin.clone()])) };
        result.err().map(|error| error.to_string())
    };
    let one = "f(x: Tensor([n], float32, device=\"cuda\"))";
    let two = "f(x: Tensor([m, n], float32, device=\"cuda\"), y: Tensor([n], float32, device=\"cuda\"))";
    let param = |name: &str| KernelArg::Param(name.to_owned());
    assert_eq!(refusal(one, Launch::new("shared").block([1024]).args([param("x")])), None);
    let tma = Launch::new("tma").args([KernelArg::TensorMap(TensorMap::new("x", [8, 8])), param("y")]);
    assert_eq!(refusal(two, tma), None);
    let clustered = || Launch::new("clustered").args([param("x")]);
    assert_eq!(refusal(one, clustered().grid([4]).cluster([2])), None);
    for (launch, expected) in [
        (
            Launch::new("add").args([param("x")]),
            "kernel `add` takes 4 parameters (of 8, 8, 8, 8 bytes), and 1 are passed (of 8)",
        ),
        (
            Launch::new("shared").args([KernelArg::Int(dim("n"), ScalarType::Int32)]),
            "kernel `shared` takes parameters of 8 bytes, and those of 4 are passed",
        ),
        (
            Launch::new("shared").args([param("x")]).shared_memory(229 << 10),
            "takes 238592 bytes of shared memory in the cubin of sm_90a (4096 static, 234496 dynamic), and the architecture \
             has 232448",
        ),
        (
            clustered().grid([4]).cluster([4]),
            "is made for clusters of [2, 1, 1] blocks in the cubin of sm_90a, got [4, 1, 1]",
        ),
    ] {
        let error = refusal(one, launch).unwrap();
        assert!(error.contains(expected), "{error}");
    }
}
