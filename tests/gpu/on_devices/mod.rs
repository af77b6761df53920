//! Launches that a stand-in can't test well. These tests need real devices.

mod features;
mod images;

use tvm_ffi_codegen::runtime::with_stream;
use tvm_ffi_codegen::spec::{KernelArg, Launch, ScalarType};
use tvm_ffi_codegen::{Kernel, dim};

use super::devices::{cuda, elements, image, on};
use super::engines;
use super::launches::{ADD, add, call3, compile, sums, vectors};
use super::real::{self, RealDriver};
use crate::support::sig;

/// The machine's driver. If the tests run on the stand-in, prints that this test is skipped and returns `None`.
fn real_devices() -> Option<&'static RealDriver> {
    let driver = real::driver();
    match driver {
        Some(driver) => eprintln!("on {}", driver.name(0)),
        None => eprintln!("skipped: these tests are for real devices; `cargo xtask gpu` runs them"),
    }
    driver
}

const OUT: &str = "(out: Tensor([n], int32, device=\"cuda\"))";

/// A launch of a kernel whose only parameter is the address of `out`.
fn on_out(entry: &str) -> Launch {
    Launch::new(entry).args([KernelArg::Param("out".to_owned())])
}

#[test]
fn streams_of_the_environment_are_used() {
    let Some(driver) = real_devices() else { return };
    for engine in engines() {
        let function = add(&engine);
        let tensors = vectors(cuda(0), 1 << 20);
        let before = driver.current();
        driver.with_new_stream(0, |stream| {
            // SAFETY: the stream is alive.
            unsafe { with_stream(cuda(0), stream, || call3(&function, &tensors)) }.unwrap().unwrap();
        });
        assert_eq!(driver.current(), before, "the thread's current context is left as it was");
        assert_eq!(elements::<f32>(&tensors[2]), sums(1 << 20));
        // CU_STREAM_LEGACY and CU_STREAM_PER_THREAD
        for special in [1, 2] {
            let tensors = vectors(cuda(0), 300);
            // SAFETY: cuda.h has these streams.
            unsafe { with_stream(cuda(0), special as *mut std::ffi::c_void, || call3(&function, &tensors)) }
                .unwrap()
                .unwrap();
            assert_eq!(elements::<f32>(&tensors[2]), sums(300));
        }
    }
}

/// While a thread captures a stream, it can't do first-use work. A function of the library does it before.
#[test]
fn launches_are_captured_as_graphs() {
    let Some(driver) = real_devices() else { return };
    for engine in engines() {
        let launch = Launch::new("add").grid([(dim("n") + 127) / 128]).block([128]);
        let kernel = Kernel::launch(launch, [image("sm_80", 80)]);
        let first_use = Kernel::prepare([&kernel]);
        let functions = [(sig(ADD), kernel), (sig("prepare(device: device)"), first_use)];
        // SAFETY: the kernel of kernels.cu has these parameters.
        let module =
            unsafe { engine.compile_module(functions.iter().map(|(signature, kernel)| (signature, kernel))) }.unwrap();
        let function = |name: &str| module.get_function(name).unwrap().unwrap();
        function("prepare").call((cuda(0),)).unwrap();
        let tensors = vectors(cuda(0), 300);
        driver.with_new_stream(0, |stream| {
            driver.captured(0, stream, 3, || {
                // z = x + y, then x = z + y
                let [x, y, z] = &tensors;
                let again = [z.clone(), y.clone(), x.clone()];
                // SAFETY: the stream is alive.
                unsafe {
                    with_stream(cuda(0), stream, || {
                        call3(&function("add"), &tensors).unwrap();
                        call3(&function("add"), &again).unwrap();
                    })
                }
                .unwrap();
            });
        });
        // each of the graph's three launches adds y twice
        let expected: Vec<f32> = (0..300).map(|i| i as f32 + 6.0 * 0.5 * i as f32).collect();
        assert_eq!(elements::<f32>(&tensors[0]), expected);
    }
}

#[test]
fn the_devices_own_image_is_chosen() {
    let Some(driver) = real_devices() else { return };
    let capability = driver.capability(0);
    let own = format!("sm_{capability}");
    for engine in engines() {
        let which = |images| {
            let out = on(cuda(0), vec![0_i32], &[1]);
            compile(&engine, &format!("which{OUT}"), on_out("which"), images).call((&out,)).unwrap();
            elements::<i32>(&out)[0]
        };
        assert_eq!(which(vec![image("sm_80", 1), image(&own, 2)]), 2);
        assert_eq!(which(vec![image(&own, 2), image("sm_80", 1)]), 2);
        assert_eq!(which(vec![image("sm_80", 1), image("sm_75", 3)]), 1);
        if capability == 90 {
            assert_eq!(which(vec![image("sm_80", 1), image("sm_90a", 4)]), 4);
        }
        let newer = match capability < 100 {
            true => image("sm_100", 5),
            false => return,
        };
        let out = on(cuda(0), vec![0_i32], &[1]);
        let error = compile(&engine, &format!("which{OUT}"), on_out("which"), vec![newer]).call((&out,));
        let error = error.unwrap_err();
        assert!(
            error.message().contains(": no image is for cuda:0, which has compute capability "),
            "{}",
            error.message()
        );
    }
}

#[test]
fn launch_attributes_are_taken() {
    let Some(driver) = real_devices() else { return };
    let plain = || on_out("clusters").grid([dim("n")]).block([32]);
    for engine in engines() {
        let sizes = |launch: Launch| {
            let images = vec![image(&format!("sm_{}", driver.capability(0)), 1)];
            let out = on(cuda(0), vec![0_i32; 16], &[16]);
            compile(&engine, &format!("clusters{OUT}"), launch, images).call((&out,)).unwrap();
            elements::<i32>(&out)
        };
        for launch in [plain(), plain().cooperative(), plain().programmatic_dependent_launch(), plain().priority(-1)] {
            assert_eq!(sizes(launch), [1; 16]);
        }
        if driver.capability(0) >= 90 {
            assert_eq!(sizes(plain().cluster([4])), [4; 16]);
            assert_eq!(sizes(plain().cluster([4]).programmatic_dependent_launch().priority(-2)), [4; 16]);
            assert_eq!(sizes(plain().cluster([16]).non_portable_cluster()), [16; 16]);
        }
    }
}

#[test]
fn kernels_have_more_shared_memory_than_48_kib() {
    let Some(driver) = real_devices() else { return };
    let signature = "dynamic(out: Tensor([1], int32, device=\"cuda\"), bytes: int64)";
    for engine in engines() {
        let images = || vec![image(&format!("sm_{}", driver.capability(0)), 1)];
        let fixed = |bytes: i64| on_out("dynamic").block([128]).shared_memory(bytes);
        let stated = on_out("dynamic").block([128]).shared_memory(dim("bytes"));
        let stated = compile(&engine, signature, stated, images());
        for bytes in [1000, 48 << 10, 96 << 10] {
            let out = on(cuda(0), vec![0_i32], &[1]);
            compile(&engine, signature, fixed(bytes), images()).call((&out, bytes)).unwrap();
            assert_eq!(elements::<i32>(&out), [bytes as i32]);
            let out = on(cuda(0), vec![0_i32], &[1]);
            stated.call((&out, bytes)).unwrap();
            assert_eq!(elements::<i32>(&out), [bytes as i32]);
        }
        let error = stated.call((&on(cuda(0), vec![0_i32], &[1]), 1 << 20)).unwrap_err();
        assert_eq!(error.kind(), "ValueError");
        assert!(error.message().contains("shared_memory = 1048576"), "{}", error.message());
    }
}

/// The error has the driver's own description, and the next launch works as before.
#[test]
fn errors_of_the_driver_go_up() {
    let Some(_) = real_devices() else { return };
    let signature = "bounded(x: Tensor([n], float32, device=\"cuda\"))";
    for engine in engines() {
        let launch = Launch::new("bounded").block([dim("n")]).args([KernelArg::Param("x".to_owned())]);
        let function = compile(&engine, signature, launch, vec![image("sm_80", 80)]);
        let call = |n: usize| {
            let x = on(cuda(0), vec![0.0_f32; n], &[n as i64]);
            function.call((&x,)).map(|_| elements::<f32>(&x)).map_err(|error| error.message().to_owned())
        };
        let error = call(128).unwrap_err();
        eprintln!("{error}");
        assert!(
            error.contains("`cuLaunchKernelEx` failed with CUDA_ERROR_INVALID_VALUE (1), invalid argument"),
            "{error}"
        );
        assert!(error.contains("grid (1, 1, 1), block (128, 1, 1)"), "{error}");
        assert_eq!(call(64).unwrap(), [1.0; 64]);
    }
}

/// Scalars are converted to other widths than the signature's.
#[test]
fn casts_reach_the_kernel() {
    let Some(_) = real_devices() else { return };
    let signature =
        "f(x: Tensor([m, n], float32, device=\"cuda\"), y: Tensor([m, n], float32, device=\"cuda\"), stride: int64)";
    let args = [
        KernelArg::Param("x".to_owned()),
        KernelArg::Param("y".to_owned()),
        KernelArg::Int(dim("m"), ScalarType::Int32),
        KernelArg::Int(dim("n"), ScalarType::Int32),
        KernelArg::Cast("stride".to_owned(), ScalarType::Int32),
    ];
    let launch = Launch::new("copy").grid([1]).block([32, 32]).args(args);
    for engine in engines() {
        let function = compile(&engine, signature, launch.clone(), vec![image("sm_80", 80)]);
        let values: Vec<f32> = (0..12).map(|i| i as f32).collect();
        let (x, y) = (on(cuda(0), values.clone(), &[3, 4]), on(cuda(0), vec![0.0_f32; 12], &[3, 4]));
        function.call((&x, &y, 4)).unwrap();
        assert_eq!(elements::<f32>(&y), values);
    }
}
