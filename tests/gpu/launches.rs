//! The results of launched kernels, on the stand-in or on real devices.

use tvm_ffi_codegen::image::Image;
use tvm_ffi_codegen::lower::{Purpose, Recipe, RuntimeHelpers};
use tvm_ffi_codegen::runtime::abi::TVMFFISafeCallType;
use tvm_ffi_codegen::runtime::{DLDevice, Function, Tensor};
use tvm_ffi_codegen::spec::{KernelArg, Launch, ScalarType, TensorMap};
use tvm_ffi_codegen::{Engine, Kernel, Signature, dim, ir};

use super::devices::{Devices, elements, image, on, view};
use super::engines;
use crate::support::{allocator, sig};

pub const ADD: &str = "add(x: Tensor([n], float32, device=\"cuda\"), y: Tensor([n], float32, device=\"cuda\"), z: Tensor([n], float32, device=\"cuda\"))";

pub fn compile(engine: &Engine, signature: &str, launch: Launch, images: Vec<Image>) -> Function {
    // SAFETY: the kernels of kernels.c have these parameters.
    unsafe { engine.compile(&sig(signature), &Kernel::launch(launch, images)) }.unwrap()
}

/// A function whose module contains the helpers of launches, as in a library, so it looks up the driver anew. The
/// engine's own functions share the helpers.
pub fn compile_alone(engine: &Engine, signature: &str, launch: Launch, images: Vec<Image>) -> Function {
    let (signature, kernel) = (sig(signature), Kernel::launch(launch, images));
    let recipe = Recipe { purpose: Purpose::Process, helpers: RuntimeHelpers::Define, ..Recipe::default() };
    let module = recipe.function(&signature, &kernel).lower().unwrap().module;
    load(engine, module, &signature)
}

/// The function with a signature in a module that launches a kernel of kernels.c.
pub fn load(engine: &Engine, module: ir::Module, signature: &Signature) -> Function {
    let code = engine.jit().load(&ir::verify(module).unwrap()).unwrap();
    let address = code.function(&signature.symbol()).unwrap();
    // SAFETY: that is the address of a wrapper, which the code keeps there. The kernels of kernels.c have these
    // parameters, and the destructors of launches may run wherever the function is dropped.
    unsafe {
        code.run_destructors_on_drop();
        Function::from_code(std::mem::transmute::<*const u8, TVMFFISafeCallType>(address), code)
    }
}

pub fn launch_of_add() -> Launch {
    Launch::new("add").grid([(dim("n") + 127) / 128]).block([128])
}

pub fn add(engine: &Engine) -> Function {
    compile(engine, ADD, launch_of_add(), vec![image("sm_80", 80)])
}

pub fn add_alone(engine: &Engine) -> Function {
    compile_alone(engine, ADD, launch_of_add(), vec![image("sm_80", 80)])
}

pub fn vectors(device: DLDevice, n: usize) -> [Tensor; 3] {
    let x: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let y: Vec<f32> = (0..n).map(|i| 0.5 * i as f32).collect();
    [x, y, vec![0.0; n]].map(|elements| on(device, elements, &[n as i64]))
}

pub fn call3(function: &Function, [x, y, z]: &[Tensor; 3]) -> Result<(), String> {
    function.call((x, y, z)).map(drop).map_err(|error| format!("{}: {}", error.kind(), error.message()))
}

pub fn sums(n: usize) -> Vec<f32> {
    (0..n).map(|i| 1.5 * i as f32).collect()
}

#[test]
fn a_vector_is_added() {
    let devices = Devices::cuda();
    for engine in engines() {
        devices.reset();
        let function = add(&engine);
        devices.assert_calls(0);
        let tensors = vectors(devices.device(0), 300);
        call3(&function, &tensors).unwrap();
        assert_eq!(elements::<f32>(&tensors[2]), sums(300));
        devices.assert_calls_of("cuLaunch", &["cuLaunchKernelEx(grid 3 1 1, block 128 1 1, shared 0, device 0)"]);
        devices.assert_calls_of("cuCtx", &["cuCtxGetCurrent", "cuCtxPushCurrent(0)", "cuCtxPopCurrent"]);
        devices.reset();
        call3(&function, &tensors).unwrap();
        devices.assert_calls(4);
        devices.assert_held(1, [1, 0]);
        drop(function);
        devices.assert_held(0, [0, 0]);
    }
}

#[test]
fn a_grid_of_nothing_launches_nothing() {
    let devices = Devices::cuda();
    for engine in engines() {
        devices.reset();
        call3(&add(&engine), &vectors(devices.device(0), 0)).unwrap();
        devices.assert_calls(0);
    }
}

/// The wrapper allocates a returned tensor, passes it to the kernel as a parameter, and releases it if the launch
/// fails.
#[test]
fn a_returned_tensor_is_filled() {
    let devices = Devices::cuda();
    devices.install_allocator();
    let signature = "add(x: Tensor([n], float32, device=\"cuda\"), y: Tensor([n], float32, device=\"cuda\")) \
                     -> Tensor([n], float32, device=\"cuda\")";
    let launch = Launch::new("add").grid([(dim("n") + 127) / 128]).block([128]);
    for engine in engines() {
        devices.reset();
        let function = compile(&engine, signature, launch.clone(), vec![image("sm_80", 80)]);
        let [x, y, _] = vectors(devices.device(0), 300);
        let sum = Tensor::try_from(function.call((&x, &y)).unwrap()).unwrap();
        assert_eq!(elements::<f32>(&sum), sums(300));
        drop(sum);
        let Some(driver) = &devices.standin else { continue };
        let live = allocator::live();
        driver.fail_name("cuLaunchKernelEx", 719);
        let error = function.call((&x, &y)).unwrap_err();
        assert!(error.message().contains("CUDA_ERROR_LAUNCH_FAILED"), "{}", error.message());
        drop(error);
        assert_eq!(allocator::live(), live, "the tensor is given up");
        driver.fail_name("", 0);
    }
}

#[test]
fn rows_with_strides_are_copied() {
    let devices = Devices::cuda();
    let signature = "copy(x: Tensor([m, n], float32, device=\"cuda\", strides=[s, 1]), y: Tensor([m, n], float32, device=\"cuda\"))";
    let int = |value: tvm_ffi_codegen::Dim| KernelArg::Int(value, ScalarType::Int32);
    let args = [
        KernelArg::Param("x".to_owned()),
        KernelArg::Param("y".to_owned()),
        int(dim("m")),
        int(dim("n")),
        KernelArg::Stride("x".to_owned(), 0, ScalarType::Int32),
    ];
    let launch = Launch::new("copy").grid([(dim("n") + 7) / 8, (dim("m") + 3) / 4]).block([8, 4]).args(args);
    for engine in engines() {
        devices.reset();
        let function = compile(&engine, signature, launch.clone(), vec![image("sm_80", 80)]);
        let source = on(devices.device(0), (0..60).map(|i| i as f32).collect::<Vec<_>>(), &[6, 10]);
        let x = view(devices.device(0), &source, &[5, 9], Some(&[10, 1]));
        let y = on(devices.device(0), vec![0.0_f32; 45], &[5, 9]);
        function.call((&x, &y)).unwrap();
        let expected: Vec<f32> = (0..5).flat_map(|i| (0..9).map(move |j| (10 * i + j) as f32)).collect();
        assert_eq!(elements::<f32>(&y), expected);
        devices.assert_calls_of("cuLaunch", &["cuLaunchKernelEx(grid 2 2 1, block 8 4 1, shared 0, device 0)"]);
    }
}

#[test]
fn matrices_are_multiplied_in_shared_memory() {
    let devices = Devices::cuda();
    let signature = "matmul(a: Tensor([m, k], float32, device=\"cuda\"), b: Tensor([k, n], float32, device=\"cuda\"), c: Tensor([m, n], float32, device=\"cuda\"), \
         tile: int64)";
    let args = ["a", "b", "c"].map(|name| KernelArg::Param(name.to_owned()));
    let sizes = ["n", "k"].map(|name| KernelArg::Int(dim(name), ScalarType::UInt32));
    let tile = || dim("tile");
    let launch = Launch::new("matmul")
        .grid([dim("n") / tile(), dim("m") / tile()])
        .block([tile(), tile()])
        .shared_memory(8 * tile() * tile())
        .args(args.into_iter().chain(sizes));
    for engine in engines() {
        devices.reset();
        let function = compile(&engine, signature, launch.clone(), vec![image("sm_80", 80)]);
        let a: Vec<f32> = (0..64).map(|i| (i % 7) as f32).collect();
        let b: Vec<f32> = (0..128).map(|i| (i % 5) as f32).collect();
        let mut expected = vec![0.0_f32; 128];
        for (at, sum) in expected.iter_mut().enumerate() {
            *sum = (0..8).map(|k| a[at / 16 * 8 + k] * b[k * 16 + at % 16]).sum();
        }
        let (a, b) = (on(devices.device(1), a, &[8, 8]), on(devices.device(1), b, &[8, 16]));
        let c = on(devices.device(1), vec![0.0_f32; 128], &[8, 16]);
        function.call((&a, &b, &c, 4)).unwrap();
        assert_eq!(elements::<f32>(&c), expected);
        devices.assert_calls_of("cuLaunch", &["cuLaunchKernelEx(grid 4 2 1, block 4 4 1, shared 128, device 1)"]);
        // shared memory varies between launches, so the kernel requests the device's maximum
        devices.assert_calls_of("cuKernelSet", &["cuKernelSetAttribute(8, 232448, 1)"]);
    }
}

#[test]
fn structs_are_passed_by_value() {
    let devices = Devices::cuda();
    let signature = "affine(x: Tensor([n], float32, device=\"cuda\"), out: Tensor([n], float32, device=\"cuda\"), scale: float64, shift: float64)";
    let fields = vec![
        (0, KernelArg::Cast("scale".to_owned(), ScalarType::Float32)),
        (4, KernelArg::Int(dim("n"), ScalarType::Int32)),
        (8, KernelArg::Param("shift".to_owned())),
        (16, KernelArg::Param("out".to_owned())),
    ];
    let args = [KernelArg::Param("x".to_owned()), KernelArg::Struct { size: 24, align: 8, fields }];
    let launch = Launch::new("affine").grid([(dim("n") + 31) / 32]).block([32]).args(args);
    for engine in engines() {
        devices.reset();
        let function = compile(&engine, signature, launch.clone(), vec![image("sm_80", 80)]);
        let x = on(devices.device(0), (0..40).map(|i| i as f32).collect::<Vec<_>>(), &[40]);
        let out = on(devices.device(0), vec![0.0_f32; 40], &[40]);
        function.call((&x, &out, 0.5, 3.0)).unwrap();
        assert_eq!(elements::<f32>(&out), (0..40).map(|i| 0.5 * i as f32 + 3.0).collect::<Vec<_>>());
    }
}

#[test]
fn boxes_are_copied_by_a_tensor_map() {
    let devices = Devices::cuda();
    let signature = "tma(x: Tensor([m, n], float32, device=\"cuda\"), y: Tensor([m, n], float32, device=\"cuda\"))";
    let int = |name: &str| KernelArg::Int(dim(name), ScalarType::Int32);
    let args =
        [KernelArg::TensorMap(TensorMap::new("x", [4, 8])), KernelArg::Param("y".to_owned()), int("m"), int("n")];
    let launch = Launch::new("tma").grid([(dim("n") + 7) / 8, (dim("m") + 3) / 4]).args(args);
    for engine in engines() {
        devices.reset();
        let function = compile(&engine, signature, launch.clone(), vec![image("sm_90", 90)]);
        let values: Vec<f32> = (0..60).map(|i| i as f32).collect();
        // a tensor map requires addresses aligned to 16 bytes, and vectors may not be
        let x = on(devices.device(1), values.clone(), &[5, 12]);
        let y = on(devices.device(1), vec![0.0_f32; 60], &[5, 12]);
        match x.as_dl_tensor().data as usize % 16 {
            0 => {
                function.call((&x, &y)).unwrap();
                assert_eq!(elements::<f32>(&y), values);
                let address = x.as_dl_tensor().data as usize;
                let call = format!(
                    "cuTensorMapEncodeTiled(type 7, rank 2, dims 12 5, strides 48, box 8 4, steps 1 1, interleave 0, \
                     swizzle 0, l2 0, fill 0, address {address})"
                );
                devices.assert_calls_of("cuTensor", &[&call]);
            }
            _ => assert!(function.call((&x, &y)).unwrap_err().message().contains("expected a multiple of 16")),
        }
        let narrow = [0, 1].map(|_| on(devices.device(1), vec![0.0_f32; 10], &[2, 5]));
        let error = function.call((&narrow[0], &narrow[1])).unwrap_err();
        assert!(error.message().contains("expected a multiple of 16"), "{}", error.message());
    }
}

#[test]
fn scratch_memory_is_the_environments() {
    let devices = Devices::cuda();
    let signature = "sum(x: Tensor([n], float32, device=\"cuda\"), out: Tensor([b], float32, device=\"cuda\"))";
    let args = [
        KernelArg::Param("x".to_owned()),
        KernelArg::Param("out".to_owned()),
        KernelArg::Int(dim("n"), ScalarType::Int64),
        KernelArg::Scratch { bytes: dim(128), align: 128 },
        KernelArg::Null,
    ];
    let launch = Launch::new("sum").grid([dim("b")]).args(args);
    devices.install_allocator();
    for engine in engines() {
        devices.reset();
        let function = compile(&engine, signature, launch.clone(), vec![image("sm_80", 80)]);
        let x = on(devices.device(0), (0..10).map(|i| i as f32).collect::<Vec<_>>(), &[10]);
        let out = on(devices.device(0), vec![0.0_f32; 3], &[3]);
        let live = allocator::live();
        function.call((&x, &out)).unwrap();
        assert_eq!(elements::<f32>(&out), [18.0, 12.0, 15.0]);
        assert_eq!(allocator::live(), live);
    }
}

#[test]
fn extents_beyond_the_limits_name_their_dimensions() {
    let devices = Devices::cuda();
    let launch = Launch::new("add").grid([dim(1), dim("n")]).block([128]);
    let two = Launch::new("add").grid([dim("n") * (1_i64 << 62)]);
    for engine in engines() {
        devices.reset();
        let error =
            call3(&compile(&engine, ADD, launch.clone(), vec![image("sm_80", 80)]), &vectors(devices.device(0), 70000));
        assert_eq!(
            error.unwrap_err(),
            format!(
                "ValueError: Cannot launch kernel `add` when calling: `{ADD}`, grid[1] = 70000 (n, from x.shape[0]), expected \
                 0 to 65535"
            )
        );
        let error =
            call3(&compile(&engine, ADD, two.clone(), vec![image("sm_80", 80)]), &vectors(devices.device(0), 2));
        assert_eq!(
            error.unwrap_err(),
            format!(
                "ValueError: Cannot launch kernel `add` when calling: `{ADD}`, grid = n * 4611686018427387904 can't be \
                 computed in 64 bits with n from x.shape[0]"
            )
        );
        let block = Launch::new("add").block([dim(2), dim("n")]);
        let function = compile(&engine, ADD, block, vec![image("sm_80", 80)]);
        for (n, expected) in [
            (600, ", the threads of a block = 1200, expected at most 1024"),
            (1025, ", block[1] = 1025 (n, from x.shape[0]), expected 1 to 1024"),
            (0, ", block[1] = 0 (n, from x.shape[0]), expected 1 to 1024"),
        ] {
            let error = call3(&function, &vectors(devices.device(0), n)).unwrap_err();
            assert!(error.starts_with("ValueError: ") && error.ends_with(expected), "{error}");
        }
        devices.assert_calls(0);
    }
}

/// First-use work is done once, whichever thread comes first.
#[test]
fn eight_threads_do_the_first_uses_once() {
    let devices = Devices::cuda();
    for (alone, function) in engines().iter().flat_map(|engine| [(false, add(engine)), (true, add_alone(engine))]) {
        devices.reset();
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (function, devices) = (&function, &devices);
                scope.spawn(move || {
                    for round in 0..20 {
                        let tensors = vectors(devices.device((thread + round) % 2), 100);
                        call3(function, &tensors).unwrap();
                        assert_eq!(elements::<f32>(&tensors[2]), sums(100));
                    }
                });
            }
        });
        let Some(driver) = &devices.standin else { continue };
        for (name, times) in [("cuLibraryLoadData", 1), ("cuDevicePrimaryCtxRetain", 2), ("cuLibraryGetKernel", 2)] {
            assert_eq!(driver.calls_of(name).len(), times, "{name}");
        }
        // the engine's functions share the driver, which an earlier test may have opened
        let opened = driver.calls_of("cuInit").len();
        assert!(if alone { opened == 1 } else { opened <= 1 }, "{opened}");
        assert_eq!(driver.calls_of("cuLaunch").len(), 160);
    }
}
