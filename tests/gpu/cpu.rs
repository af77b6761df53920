//! Launches on the CPU: a C function that is called for each block of the grid.

use std::collections::HashSet;
use std::ffi::c_void;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread::{self, ThreadId};
use std::time::Duration;

use tvm_ffi_codegen::artifact::{LibraryBuilder, inspect};
use tvm_ffi_codegen::explain::{Stage, explain};
use tvm_ffi_codegen::runtime::{Function, Module, Tensor};
use tvm_ffi_codegen::spec::{KernelArg, Launch, LaunchedSignature, ScalarType};
use tvm_ffi_codegen::{Backend, Engine, Kernel, KernelReturn, OptLevel, dim};

use super::devices::elements;
use super::engines;
use crate::support::{compiler, host_linker, sig};

pub(super) const ADD: &str = "add(x: Tensor([n], float32), y: Tensor([n], float32), z: Tensor([n], float32))";

const ADD_IN_C: &str = "#include <stdint.h>\n\
    void add(const float* x, const float* y, float* z, int64_t n, uint32_t bx, uint32_t by, uint32_t bz,\n\
             uint32_t gx, uint32_t gy, uint32_t gz) {\n\
      for (int64_t i = bx * 128; i < n && i < (bx + 1) * 128; i++) z[i] = x[i] + y[i];\n\
    }\n";

pub(super) fn add_launch() -> Launch {
    Launch::new("add").grid([dim("n").ceil_div(128)]).block([128])
}

pub(super) fn object() -> Vec<u8> {
    object_of(ADD_IN_C)
}

pub(super) fn object_of(code: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let (source, object) = (folder.path().join("blocks.c"), folder.path().join("blocks.o"));
    std::fs::write(&source, code).unwrap();
    assert!(compiler::c().args(["-O2", "-fPIC", "-c"]).arg(&source).arg("-o").arg(&object).status().unwrap().success());
    std::fs::read(object).unwrap()
}

fn vector(count: usize, of: impl Fn(usize) -> f32) -> Tensor {
    Tensor::from_vec((0..count).map(of).collect::<Vec<_>>(), &[count as i64]).unwrap()
}

/// Calls `add` for vectors of several lengths.
pub(super) fn adds(function: &Function) {
    for count in [0, 1, 127, 128, 129, 10_000] {
        let [x, y, z] = [vector(count, |i| i as f32), vector(count, |i| 2.0 * i as f32), vector(count, |_| -1.0)];
        function.call((&x, &y, &z)).unwrap();
        assert_eq!(elements::<f32>(&z), (0..count).map(|i| 3.0 * i as f32).collect::<Vec<_>>());
    }
}

#[test]
fn the_same_launch_runs_on_the_cpu() {
    let object = object();
    for engine in engines() {
        let kernel = Kernel::launch_on_cpu(add_launch(), Kernel::object(object.clone(), "add"));
        // SAFETY: the function has the launch's parameters.
        adds(&unsafe { engine.compile(&sig(ADD), &kernel) }.unwrap());
    }
    for backend in Backend::ALL {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("add.so");
        let kernel = Kernel::launch_on_cpu(add_launch(), Kernel::symbol("add"));
        let library = LibraryBuilder::new().backend(*backend).function(&sig(ADD), &kernel).emit().unwrap();
        host_linker().object(library.into_bytes()).object(object.clone()).link(&path).unwrap();
        let seen = inspect(&path).unwrap();
        assert_eq!(seen.functions[0].launches[0].api, "CPU");
        assert!(seen.functions[0].launches[0].images.is_empty());
        // SAFETY: the library is one of ours.
        let module = unsafe { Module::load_from_file(&path) }.unwrap();
        // SAFETY: nothing is left of what the library's code has made.
        unsafe { module.unload_when_unused() }.unwrap();
        adds(&module.get_function("add").unwrap().unwrap());
    }
}

static BLOCKS: [AtomicI32; 24] = [const { AtomicI32::new(0) }; 24];

unsafe extern "C" fn count_block(x: u32, y: u32, z: u32, grid_x: u32, grid_y: u32, grid_z: u32) {
    assert!([grid_x, grid_y, grid_z] == [4, 3, 2] && x < grid_x && y < grid_y && z < grid_z);
    BLOCKS[(z * 12 + y * 4 + x) as usize].fetch_add(1, Ordering::Relaxed);
}

#[test]
fn each_block_is_called_once_with_its_place() {
    let signature = sig("count(x: Tensor([m, n, k], int8))");
    for engine in engines() {
        BLOCKS.iter().for_each(|count| count.store(0, Ordering::Relaxed));
        let launch = Launch::new("count").grid([dim("k"), dim("n"), dim("m")]).args([]);
        let kernel = Kernel::launch_on_cpu(launch, Kernel::address(count_block as *const u8));
        // SAFETY: the function has the launch's parameters, none.
        let function = unsafe { engine.compile(&signature, &kernel) }.unwrap();
        function.call((&Tensor::from_vec(vec![0_i8; 24], &[2, 3, 4]).unwrap(),)).unwrap();
        assert!(BLOCKS.iter().all(|count| count.load(Ordering::Relaxed) == 1), "{BLOCKS:?}");
        // a grid with an extent of 0 has no blocks
        function.call((&Tensor::from_vec(Vec::<i8>::new(), &[2, 0, 4]).unwrap(),)).unwrap();
        assert!(BLOCKS.iter().all(|count| count.load(Ordering::Relaxed) == 1), "{BLOCKS:?}");
        // this is checked before the limits
        function.call((&Tensor::from_vec(Vec::<i8>::new(), &[70_000, 0, 1]).unwrap(),)).unwrap();
        let error = function.call((&Tensor::from_vec(vec![0_i8; 70_000], &[1, 70_000, 1]).unwrap(),)).unwrap_err();
        let text = ", grid[1] = 70000 (n, from x.shape[1]), expected 0 to 65535";
        assert!(error.message().ends_with(text), "{}", error.message());
    }
}

static THREADS: Mutex<Option<HashSet<ThreadId>>> = Mutex::new(None);

unsafe extern "C" fn note_thread(_x: u32, _y: u32, _z: u32, _grid_x: u32, _grid_y: u32, _grid_z: u32) {
    THREADS.lock().unwrap().get_or_insert_default().insert(thread::current().id());
    thread::sleep(Duration::from_millis(5));
}

#[test]
fn blocks_run_on_the_processors() {
    let processors = thread::available_parallelism().unwrap().get();
    for engine in engines() {
        *THREADS.lock().unwrap() = None;
        let launch = Launch::new("note").grid([40]).args([]);
        let kernel = Kernel::launch_on_cpu(launch, Kernel::address(note_thread as *const u8));
        // SAFETY: the function has the launch's parameters, none.
        let function = unsafe { engine.compile(&sig("note(x: Tensor([1], int8))"), &kernel) }.unwrap();
        function.call((&Tensor::from_vec(vec![0_i8], &[1]).unwrap(),)).unwrap();
        let seen = THREADS.lock().unwrap().take().unwrap();
        assert!(seen.contains(&thread::current().id()), "the caller's thread is one of them");
        assert!(processors == 1 || seen.len() > 1, "{seen:?}");
    }
}

#[repr(C, align(16))]
struct Affine {
    scale: f32,
    count: i32,
    shift: f64,
    out: *mut f32,
}

unsafe extern "C" fn affine(
    x: *const f32,
    stated: *const Affine,
    scratch: *mut f32,
    null: *const c_void,
    narrow: i16,
    block: u32,
    _y: u32,
    _z: u32,
    blocks: u32,
    _grid_y: u32,
    _grid_z: u32,
) {
    // SAFETY: the launch passes addresses of what it states.
    unsafe {
        assert!(stated.is_aligned(), "{stated:?}");
        let stated = &*stated;
        assert!(null.is_null() && narrow == -7 && stated.count as u32 == blocks && scratch.addr().is_multiple_of(64));
        let mine = scratch.add(block as usize);
        *mine = *x.add(block as usize) * stated.scale;
        *stated.out.add(block as usize) = (f64::from(*mine) + stated.shift) as f32;
    }
}

#[test]
fn parameters_are_those_of_devices() {
    let text = "affine(x: Tensor([n], float32), out: Tensor([n], float32), shift: float64, k: int64) \
                @ launch affine grid=n args=[x, struct(size=32, align=16, 0: float32(2.0), 4: int32(n), 8: shift, \
                16: out), scratch(4, align=64), null, int16(k)]";
    let LaunchedSignature { signature, launch } = text.parse().unwrap();
    let kernel = Kernel::launch_on_cpu(launch, Kernel::address(affine as *const u8));
    for engine in engines() {
        // SAFETY: the function has the launch's parameters.
        let function = unsafe { engine.compile(&signature, &kernel) }.unwrap();
        let [x, out] = [vector(50, |i| i as f32), vector(50, |_| 0.0)];
        function.call((&x, &out, 0.5, -7)).unwrap();
        assert_eq!(elements::<f32>(&out), (0..50).map(|i| 2.0 * i as f32 + 0.5).collect::<Vec<_>>());
        let error = function.call((&x, &out, 0.5, 1 << 20)).unwrap_err();
        assert!(
            error.message().ends_with(", k = 1048576, which doesn't fit in the kernel's int16"),
            "{}",
            error.message()
        );
    }
}

/// Records the bits of three parameters in the first block.
unsafe extern "C" fn halves(
    out: *mut u16,
    own: u16,
    stated: u16,
    cast: u16,
    wide: f32,
    _x: u32,
    _y: u32,
    _z: u32,
    _grid_x: u32,
    _grid_y: u32,
    _grid_z: u32,
) {
    // SAFETY: the tensor has four elements.
    unsafe {
        [own, stated, cast, (wide == 0.5) as u16].into_iter().enumerate().for_each(|(i, bits)| *out.add(i) = bits);
    }
}

#[test]
fn parameters_of_16_bits_are_rounded() {
    let text = "halves(out: Tensor([4], uint16), h: float16, d: float64) @ launch halves grid=1 \
                args=[out, h, bfloat16(1.5), cast(d, float16), cast(h, float32)]";
    let LaunchedSignature { signature, launch } = text.parse().unwrap();
    let kernel = Kernel::launch_on_cpu(launch, Kernel::address(halves as *const u8));
    for engine in engines() {
        // SAFETY: the function has the launch's parameters.
        let function = unsafe { engine.compile(&signature, &kernel) }.unwrap();
        let out = Tensor::from_vec(vec![0_u16; 4], &[4]).unwrap();
        function.call((&out, 0.5, 0.1)).unwrap();
        assert_eq!(elements::<u16>(&out), [0x3800, 0x3fc0, 11878, 1]);
    }
}

#[test]
fn what_the_cpu_does_not_have_is_refused() {
    let engine = Engine::new().unwrap();
    let refusal = |signature: &str, launch: Launch, function: Kernel| {
        // SAFETY: nothing is compiled.
        let result = unsafe { engine.compile(&sig(signature), &Kernel::launch_on_cpu(launch, function)) };
        result.unwrap_err().to_string()
    };
    let add = || Kernel::symbol("add");
    for (launch, expected) in [
        (add_launch().cluster([2]), "states cluster, but launches on the CPU don't support it"),
        (
            add_launch().cooperative().shared_memory(16),
            "states cooperative, but launches on the CPU don't support it; states shared_memory, but launches on the CPU don't support it",
        ),
        (
            add_launch().block([2048]),
            "has block[0] = 2048, expected 1 to 1024; has blocks of 2048 threads, expected at most 1024",
        ),
        (
            add_launch().args([KernelArg::Int(dim("q"), ScalarType::Int32)]),
            "has int32(q) = q, and `q` isn't a dimension variable or an integer parameter of the function",
        ),
    ] {
        let text = format!("the launch of kernel `add` by function `add` {expected}");
        assert_eq!(refusal(ADD, launch, add()), text);
    }
    let no_function = "needs a native kernel of convention `flat` that returns void";
    for kernel in [Kernel::check_only(), Kernel::body(|_| ()), add().returns(KernelReturn::Status)] {
        assert!(refusal(ADD, add_launch(), kernel).ends_with(no_function));
    }
    let on_gpu = ADD.replace("float32", "float32, device=\"cuda\"");
    assert!(refusal(&on_gpu, add_launch(), add()).contains("needs a tensor parameter on a CPU device"));
    assert!(refusal(ADD, add_launch(), Kernel::symbol("")).contains("symbol"));
    // an address is only valid in this process
    let kernel = Kernel::launch_on_cpu(Launch::new("count").args([]), Kernel::address(count_block as *const u8));
    let error =
        LibraryBuilder::new().function(&sig("f(x: Tensor([1], int8))"), &kernel).emit().unwrap_err().to_string();
    assert!(error.contains("address"), "{error}");
}

#[test]
fn sequences_have_the_functions_prototype() {
    let kernel = Kernel::launch_on_cpu(add_launch(), Kernel::symbol("add"));
    let told = explain(&sig(ADD), &kernel, Stage::Launch, Backend::default(), OptLevel::None).unwrap();
    assert_eq!(
        told,
        format!(
            "{ADD} @ launch add grid=ceil_div(n, 128) block=128

once for each library, at its first launch:
  tvm_ffi_codegen.parallel_for: the threads' parallel-for, or a loop if none is registered

each call:
  grid[0] = ceil_div(n, 128), 0 to 2147483647
    where one is 0, nothing more
  block[0] = 128
    together at most 1024 threads
  the kernel's parameters:
    float* x: x.data
    float* y: y.data
    float* z: z.data
    int64_t n: n, from x.shape[0]
  the parallel-for, with add for each block: (ptr, ptr, ptr, i64, i32 zext, i32 zext, i32 zext, i32 zext, i32 zext, i32 zext)
"
        )
    );
}
