//! The driver calls that the stand-in logs, and the effect of a failing call.

use tvm_ffi_codegen::runtime::{DLDevice, Function, with_stream};
use tvm_ffi_codegen::spec::{KernelArg, Launch, ScalarType};
use tvm_ffi_codegen::{DLDeviceType, Kernel, dim};

use super::devices::{cuda, elements, on};
use super::engines;
use super::launches::{ADD, add, add_alone, call3, compile, compile_alone, sums, vectors};
use super::shared::{call_staged, staged_alone};
use super::standin::{Driver, bundle, fatbin, ptx};
use crate::support::sig;

#[test]
fn the_streams_and_the_threads_contexts_are_left_as_they_are() {
    let driver = Driver::cuda();
    for engine in engines() {
        let function = add(&engine);
        let tensors = vectors(cuda(1), 10);
        call3(&function, &tensors).unwrap();
        // a stream of the stand-in has its device's number in the lowest bit
        let stream = 0x1001 as *mut std::ffi::c_void;
        for current in [-1, 0, 1] {
            driver.make_current(current);
            driver.reset();
            // SAFETY: the stand-in doesn't dereference the address.
            unsafe { with_stream(cuda(1), stream, || call3(&function, &tensors)) }.unwrap().unwrap();
            assert_eq!(driver.calls(), 1, "the stream tells the context: {}", driver.log());
            assert_eq!(driver.current(), current);
            driver.reset();
            call3(&function, &tensors).unwrap();
            assert_eq!(driver.calls(), if current == 1 { 2 } else { 4 }, "{}", driver.log());
            assert_eq!(driver.current(), current);
        }
        driver.make_current(-1);
    }
}

/// cuda.h's special streams don't determine a context; they belong to the current one.
#[test]
fn special_streams_are_of_the_devices_context() {
    let driver = Driver::cuda();
    for engine in engines() {
        let function = add(&engine);
        let tensors = vectors(cuda(1), 10);
        call3(&function, &tensors).unwrap();
        for stream in [1, 2] {
            driver.reset();
            // SAFETY: the stand-in doesn't dereference the address.
            let call =
                || unsafe { with_stream(cuda(1), stream as *mut std::ffi::c_void, || call3(&function, &tensors)) };
            call().unwrap().unwrap();
            assert_eq!(driver.calls_of("cuCtx"), ["cuCtxGetCurrent", "cuCtxPushCurrent(1)", "cuCtxPopCurrent"]);
        }
    }
}

#[test]
fn hip_launches_by_the_same_lowering() {
    let driver = Driver::hip();
    let signature = ADD.replace("cuda", "rocm");
    let device = DLDevice::new(DLDeviceType::ROCM, 1);
    for engine in engines() {
        driver.reset();
        let launch = Launch::new("add").grid([(dim("n") + 127) / 128]).block([128]);
        let function = compile(&engine, &signature, launch, vec![bundle()]);
        let tensors = vectors(device, 300);
        call3(&function, &tensors).unwrap();
        assert_eq!(elements::<f32>(&tensors[2]), sums(300));
        assert_eq!(driver.hip_device(), 0);
        assert_eq!(driver.calls_of("hipModuleLoad"), ["hipModuleLoadData(device 1)"]);
        assert_eq!(
            driver.calls_of("hipModuleLaunch"),
            ["hipModuleLaunchKernel(grid 3 1 1, block 128 1 1, shared 0, device 1)"]
        );
        drop(function);
        assert_eq!(driver.libraries(), 0);
    }
}

#[test]
fn the_devices_capability_chooses_the_image() {
    let driver = Driver::cuda();
    let signature = "which(out: Tensor([1], int32, device=\"cuda\"))";
    let images = || vec![ptx("sm_70", 70), ptx("sm_90a", 901), ptx("sm_80", 80)];
    for engine in engines() {
        for (capability, expected) in [(80, 80), (90, 901), (75, 70), (100, 80)] {
            driver.reset();
            driver.capability(1, capability);
            let function = compile(&engine, signature, Launch::new("which"), images());
            let out = on(cuda(1), vec![0_i32], &[1]);
            function.call((&out,)).unwrap();
            // SAFETY: the tensor has one element, in memory of the host.
            assert_eq!(unsafe { *out.as_dl_tensor().data.cast::<i32>() }, expected, "{capability}");
        }
        driver.reset();
        driver.capability(1, 61);
        let function = compile(&engine, signature, Launch::new("which"), images());
        let error = function.call((&on(cuda(1), vec![0_i32], &[1]),)).unwrap_err();
        assert_eq!(
            error.message(),
            "Cannot launch kernel `which` when calling: `which(out: Tensor([1], int32, device=\"cuda\"))`: no image is for cuda:1, \
             which has compute capability 6.1; there are images for 7.0 and later, 9.0 alone, 8.0 and later"
        );
    }
}

/// If an image doesn't describe its kernels' parameters, they are compared with the launch after the driver has loaded
/// it.
#[test]
fn parameters_of_compressed_images_are_compared_at_the_first_use() {
    let driver = Driver::cuda();
    let image = || vec![fatbin(&[("sm_80", 80)], true)];
    let launch = || Launch::new("add").grid([(dim("n") + 127) / 128]).block([128]);
    let [x, y, z] = ["x", "y", "z"].map(|name| KernelArg::Param(name.to_owned()));
    let n = |ty| KernelArg::Int(dim("n"), ty);
    let cases = [
        (
            vec![x.clone(), y.clone(), z.clone(), n(ScalarType::Int32)],
            "parameter 3 of the kernel takes 8 bytes, and not as many are passed",
        ),
        (vec![x.clone(), y.clone(), z.clone()], "the kernel takes more parameters than the 3 that are passed"),
        (vec![x, y, z, n(ScalarType::Int64), KernelArg::Null], "the kernel takes 4 parameters, and more are passed"),
    ];
    for engine in engines() {
        driver.reset();
        let function = compile(&engine, ADD, launch(), image());
        let tensors = vectors(cuda(0), 300);
        call3(&function, &tensors).unwrap();
        assert_eq!(elements::<f32>(&tensors[2]), sums(300));
        let asked: Vec<_> = (0..4).map(|number| format!("cuKernelGetParamInfo({number}, 8)")).collect();
        assert_eq!(driver.calls_of("cuKernelGetParamInfo("), asked);
        for (args, expected) in &cases {
            let function = compile(&engine, ADD, launch().args(args.clone()), image());
            let error = call3(&function, &tensors).unwrap_err();
            assert!(error.starts_with("RuntimeError: Cannot launch kernel `add` when calling: `add("), "{error}");
            assert!(error.ends_with(&format!(": {expected}")), "{error}");
            // nothing is launched, and the next call queries the kernel again
            assert_eq!(call3(&function, &tensors).unwrap_err(), error);
        }
        // an older driver doesn't report parameters, so this launches without the comparison
        driver.reset();
        driver.version(12030);
        let function = compile_alone(&engine, ADD, launch(), image());
        call3(&function, &tensors).unwrap();
        assert_eq!(driver.calls_of("cuKernelGetParamInfo("), [""; 0]);
        driver.version(12080);
        // each failing call is reported
        driver.reset();
        driver.fail_name("cuKernelGetParamInfo", 719);
        let function = compile(&engine, ADD, launch(), image());
        let error = call3(&function, &tensors).unwrap_err();
        assert!(error.contains("`cuKernelGetParamInfo` failed with CUDA_ERROR_LAUNCH_FAILED (719)"), "{error}");
        driver.reset();
        call3(&function, &tensors).unwrap();
    }
}

#[test]
fn launch_attributes_reach_the_driver() {
    let driver = Driver::cuda();
    let launch = Launch::new("add")
        .grid([dim("n") / 2])
        .block([2])
        .cluster([dim(2)])
        .preferred_cluster([4])
        .cooperative()
        .programmatic_dependent_launch()
        .priority(-3);
    for engine in engines() {
        driver.reset();
        let function = compile(&engine, ADD, launch.clone(), vec![ptx("sm_90", 90)]);
        call3(&function, &vectors(cuda(1), 16)).unwrap();
        assert_eq!(
            driver.calls_of("cuLaunch"),
            [
                "cuLaunchKernelEx(grid 8 1 1, block 2 1 1, shared 0, device 1, attribute 4 = 2 1 1, attribute 11 = 4 1 1, \
              attribute 2, attribute 6, attribute 8 = -3)"
            ]
        );
        let error = call3(&function, &vectors(cuda(1), 6)).unwrap_err();
        assert!(error.ends_with(", grid[0] = 3, expected a multiple of cluster[0], which is 2"), "{error}");
    }
}

/// Makes each call of the driver fail in turn. The error names the call, and no resource is left behind. The next call
/// does the missing work.
#[test]
fn every_call_of_the_driver_may_fail() {
    let driver = Driver::cuda();
    for engine in engines() {
        fail_in_turn(&driver, || add_alone(&engine), "add", &|function| {
            let tensors = vectors(cuda(0), 5);
            call3(function, &tensors)?;
            assert_eq!(elements::<f32>(&tensors[2]), sums(5));
            Ok(())
        });
        // the driver is queried for the kernel's static shared memory, and the kernel requests more
        fail_in_turn(&driver, || staged_alone(&engine, (48 << 10).into()), "staged", &|function| {
            assert_eq!(call_staged(function, cuda(0), 0)?, 48 << 10);
            Ok(())
        });
        assert_eq!(driver.calls_of("cuKernelSetAttribute"), ["cuKernelSetAttribute(8, 49152, 0)"]);
    }
}

/// Makes each driver call in a function's first call fail, one after the other.
pub(super) fn fail_in_turn(
    driver: &Driver,
    make: impl Fn() -> Function,
    entry: &str,
    call: &dyn Fn(&Function) -> Result<(), String>,
) {
    {
        driver.reset();
        call(&make()).unwrap();
        // calls that release resources at the end have no caller to report errors to
        let calls = driver.log().lines().filter(|line| !line.contains("Release") && !line.contains("Unload")).count();
        assert!(calls > 25, "{}", driver.log());
        // this function is optional for drivers
        let optional = driver.log().lines().position(|line| line.contains("(cuKernelGetParamInfo,")).unwrap() + 1;
        for number in (1..=calls as i32).filter(|number| *number != optional as i32) {
            driver.reset();
            let function = make();
            driver.fail(number, 2);
            let error = call(&function).unwrap_err();
            let failed = driver.log().lines().last().unwrap().to_owned();
            let failed = driver.log().lines().find(|line| line.ends_with(" -> 2")).map_or(failed, str::to_owned);
            let name = failed.trim_end_matches(" -> 2");
            let beginning = format!("RuntimeError: Cannot launch kernel `{entry}` when calling: `{entry}(");
            assert!(error.starts_with(&beginning), "{error}");
            match name {
                "cuGetProcAddress_v2" => {
                    assert!(error.contains("the CUDA driver is too old, as it has no `cu"), "{error}")
                }
                name => {
                    let text = format!("`{name}` failed with CUDA_ERROR_OUT_OF_MEMORY (2), out of memory");
                    assert!(error.contains(&text), "{text}\n{error}");
                }
            }
            assert!(error.contains("cuda:0") || name == "cuGetProcAddress_v2", "{error}");
            assert_eq!((driver.depth(), driver.unbalanced()), (0, 0), "after {name}");
            driver.fail(0, 0);
            call(&function).unwrap();
            drop(function);
            assert_eq!((driver.libraries(), driver.retained(0)), (0, 0), "after {name}");
        }
    }
}

#[test]
fn an_error_of_a_launch_tells_all_of_it() {
    let driver = Driver::cuda();
    for engine in engines() {
        let function = add(&engine);
        let tensors = vectors(cuda(1), 300);
        call3(&function, &tensors).unwrap();
        driver.fail_name("cuLaunchKernelEx", 719);
        let error = call3(&function, &tensors).unwrap_err();
        assert_eq!(
            error,
            format!(
                "RuntimeError: Cannot launch kernel `add` when calling: `{ADD}`: `cuLaunchKernelEx` failed with \
                 CUDA_ERROR_LAUNCH_FAILED (719), unspecified launch failure; grid (3, 1, 1), block (128, 1, 1), 0 bytes of \
                 dynamic shared memory, stream 0, on cuda:1"
            )
        );
        driver.fail_name("", 0);
    }
}

/// First-use work isn't possible while a stream is captured, so an earlier call has to do it.
#[test]
fn a_captured_stream_takes_launches() {
    let driver = Driver::cuda();
    for engine in engines() {
        driver.reset();
        let function = add(&engine);
        let tensors = vectors(cuda(0), 5);
        driver.capture(1);
        assert!(call3(&function, &tensors).unwrap_err().contains("`cuDevicePrimaryCtxRetain` failed"));
        driver.capture(0);
        call3(&function, &tensors).unwrap();
        driver.capture(1);
        call3(&function, &tensors).unwrap();
        driver.capture(0);
    }
}

/// A separate function of the same library does the first-use work.
#[test]
fn first_uses_are_a_function_of_their_own() {
    let driver = Driver::cuda();
    for engine in engines() {
        driver.reset();
        let launch = Launch::new("add").grid([(dim("n") + 127) / 128]).block([128]);
        let kernel = Kernel::launch(launch, [ptx("sm_80", 80)]);
        let first_use = Kernel::prepare([&kernel]);
        let functions = [(sig(ADD), kernel), (sig("prepare(device: device)"), first_use)];
        // SAFETY: the kernel of kernels.c has these parameters.
        let module =
            unsafe { engine.compile_module(functions.iter().map(|(signature, kernel)| (signature, kernel))) }.unwrap();
        let function = |name: &str| module.get_function(name).unwrap().unwrap();
        let (add, prepare) = (function("add"), function("prepare"));
        prepare.call((cuda(1),)).unwrap();
        let first = driver.calls();
        driver.capture(1);
        let tensors = vectors(cuda(1), 5);
        call3(&add, &tensors).unwrap();
        assert_eq!(elements::<f32>(&tensors[2]), sums(5));
        assert_eq!(driver.calls() - first, 4, "{}", driver.log());
        driver.capture(0);
        prepare.call((cuda(1),)).unwrap();
        assert_eq!(driver.calls() - first, 4);
        let error = prepare.call((DLDevice::new(DLDeviceType::CPU, 0),)).unwrap_err();
        assert_eq!(
            error.message(),
            "Cannot prepare kernels when calling: `prepare(device: device)`, expected a device of CUDA"
        );
        let error = prepare.call((cuda(70),)).unwrap_err();
        assert!(
            error
                .message()
                .starts_with("Cannot prepare kernel `add` when calling: `prepare(device: device)`: the device is")
        );
    }
}

#[test]
fn an_old_driver_is_told_which_version_is_needed() {
    let driver = Driver::cuda();
    for engine in engines() {
        driver.reset();
        driver.version(11080);
        let error = call3(&add_alone(&engine), &vectors(cuda(0), 1)).unwrap_err();
        assert!(
            error.ends_with("the CUDA driver is too old, as it has no `cuLibraryLoadData`; it has to be one of version 12.0 or later"),
            "{error}"
        );
    }
}

#[test]
fn devices_beyond_those_that_are_served_are_refused() {
    let driver = Driver::cuda();
    for engine in engines() {
        driver.reset();
        let error = call3(&add(&engine), &vectors(cuda(64), 1)).unwrap_err();
        assert!(error.ends_with(": the device is cuda:64; a library serves cuda:0 to cuda:63"), "{error}");
        let error = call3(&add(&engine), &vectors(cuda(7), 1)).unwrap_err();
        assert!(error.contains("`cuDeviceGet` failed with an unknown error (101)"), "{error}");
    }
}

#[test]
fn a_driver_that_has_shut_down_is_no_error_when_unloading() {
    let driver = Driver::cuda();
    for engine in engines() {
        driver.reset();
        let function = add(&engine);
        call3(&function, &vectors(cuda(0), 1)).unwrap();
        driver.deinitialise(1);
        drop(function);
        assert_eq!(driver.calls_of("cuLibraryUnload").len(), 1);
        driver.deinitialise(0);
    }
}
