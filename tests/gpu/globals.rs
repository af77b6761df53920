//! Global variables of images that launches write.

use std::ffi::c_void;

use tvm_ffi_codegen::runtime::{DLDevice, Function, Tensor, with_stream};
use tvm_ffi_codegen::spec::{KernelArg, Launch};
use tvm_ffi_codegen::{DLDeviceType, HostProgram, Kernel};

use super::calls::fail_in_turn;
use super::devices::{cuda, elements, on};
use super::engines;
use super::launches::{compile, compile_alone};
use super::refusals::refusal;
use super::standin::{Driver, bundle, ptx};
use crate::support::sig;

pub const SIGNATURE: &str = "affine_globals(x: Tensor([n], float32, device=\"cuda\"), \
                         tag: Tensor([6], uint8, device=\"cuda\"), b: Optional[Tensor([1], float32, device=\"cuda\")], alpha: float64, k: int32)";

/// A launch of `affine_globals` that writes three global variables: a float, an address, and a struct of six bytes.
pub fn launch(globals: &str) -> Launch {
    format!("launch affine_globals grid=n block=6 args=[x, tag, int64(n)] globals=[{globals}]").parse().unwrap()
}

pub const ALL: &str = "scale=float32(alpha), bias=b, tag=struct(size=6, align=2, 0: int32(k), 4: int16(n))";

/// Calls the function with these arguments; returns the elements of `x` and `tag`.
pub fn call(
    function: &Function,
    device: DLDevice,
    bias: Option<f32>,
    alpha: f64,
    k: i32,
) -> Result<(Vec<f32>, Vec<u8>), String> {
    let x = on(device, vec![1.0_f32, 2.0, 3.0], &[3]);
    let tag = on(device, vec![0_u8; 6], &[6]);
    let bias: Option<Tensor> = bias.map(|bias| on(device, vec![bias], &[1]));
    let called = function.call((&x, &tag, bias.as_ref(), alpha, k));
    called.map(|_| (elements(&x), elements(&tag))).map_err(|error| format!("{}: {}", error.kind(), error.message()))
}

pub fn expected(bias: f32, alpha: f32, k: i32) -> (Vec<f32>, Vec<u8>) {
    let x = [1.0, 2.0, 3.0].map(|x| x * alpha + bias);
    (x.to_vec(), [&k.to_le_bytes()[..], &[3, 0]].concat())
}

#[test]
fn a_launch_writes_globals_before_its_kernel() {
    let driver = Driver::cuda();
    for engine in engines() {
        driver.reset();
        let function = compile(&engine, SIGNATURE, launch(ALL), vec![ptx("sm_80", 80)]);
        assert_eq!(call(&function, cuda(1), Some(0.5), 2.0, -7), Ok(expected(0.5, 2.0, -7)));
        // each device has its own variables, which are found once
        for device in [0, 1, 0, 1] {
            assert_eq!(call(&function, cuda(device), None, 4.0, 258), Ok(expected(0.0, 4.0, 258)));
        }
        let names =
            |device| ["scale", "bias", "tag"].map(|name| format!("cuLibraryGetGlobal({name}, device {device})"));
        assert_eq!(driver.calls_of("cuLibraryGetGlobal("), [names(1), names(0)].concat());
        // a launch on a stream writes there
        driver.reset();
        let stream = 0x1001 as *mut c_void;
        // SAFETY: the stand-in doesn't dereference the address.
        let result = unsafe { with_stream(cuda(1), stream, || call(&function, cuda(1), None, 1.0, 5)) }.unwrap();
        assert_eq!(result, Ok(expected(0.0, 1.0, 5)));
        let log: Vec<String> = driver.log().lines().map(str::to_owned).collect();
        let set = |size: &str, what: &str, value: u32| {
            format!("cuMemset{size}Async({what} = {value}, stream 4097, device 1)")
        };
        assert_eq!(
            log[..9],
            [
                "cuCtxGetCurrent".to_owned(),
                "cuCtxPushCurrent(1)".to_owned(),
                set("D32", "scale + 0", 1.0_f32.to_bits()),
                set("D32", "bias + 0", 0),
                set("D32", "bias + 4", 0),
                set("D32", "tag + 0", 5),
                set("D8", "tag + 4", 3),
                set("D8", "tag + 5", 0),
                "cuCtxPopCurrent".to_owned(),
            ]
        );
        assert!(log[9].starts_with("cuLaunchKernelEx("), "{log:?}");
        assert_eq!((log.len(), driver.current()), (10, -1));
    }
}

/// A captured launch has its values in the captured calls, and finds no variables.
#[test]
fn a_captured_stream_takes_globals() {
    let driver = Driver::cuda();
    for engine in engines() {
        driver.reset();
        let function = compile(&engine, SIGNATURE, launch(ALL), vec![ptx("sm_80", 80)]);
        call(&function, cuda(0), None, 1.0, 1).unwrap();
        driver.capture(1);
        assert_eq!(call(&function, cuda(0), None, 2.0, 2), Ok(expected(0.0, 2.0, 2)));
        driver.capture(0);
    }
}

#[test]
fn every_call_of_the_driver_may_fail_for_globals() {
    let driver = Driver::cuda();
    for engine in engines() {
        let make = || compile_alone(&engine, SIGNATURE, launch(ALL), vec![ptx("sm_80", 80)]);
        let check = |function: &Function| {
            assert_eq!(call(function, cuda(0), None, 2.0, 3)?, expected(0.0, 2.0, 3));
            Ok(())
        };
        for current in [-1, 0] {
            driver.make_current(current);
            fail_in_turn(&driver, make, "affine_globals", &check_depth(&driver, current, &check));
            driver.make_current(-1);
        }
    }
}

/// A call after which the thread's context is what it was. The depth of contexts is 0 for `fail_in_turn`.
fn check_depth<'c>(
    driver: &'c Driver,
    current: i32,
    check: &'c dyn Fn(&Function) -> Result<(), String>,
) -> impl Fn(&Function) -> Result<(), String> + 'c {
    move |function| {
        driver.make_current(current);
        let result = check(function);
        assert_eq!(driver.current(), current);
        driver.make_current(-1);
        result
    }
}

#[test]
fn a_variable_has_to_be_there_with_its_size() {
    let driver = Driver::cuda();
    let beginning = format!("RuntimeError: Cannot launch kernel `affine_globals` when calling: `{SIGNATURE}`: ");
    for engine in engines() {
        for (globals, message) in [
            ("scale=float32(alpha), nothing=int32(k)", "the image has no global variable `nothing`"),
            ("scale=float64(alpha)", "the global variable `scale` has another size than the value that is written"),
            ("bias=int32(k)", "the global variable `bias` has another size than the value that is written"),
        ] {
            driver.reset();
            let function = compile(&engine, SIGNATURE, launch(globals), vec![ptx("sm_80", 80)]);
            for _ in 0..2 {
                assert_eq!(call(&function, cuda(1), None, 2.0, 3).unwrap_err(), format!("{beginning}{message}"));
            }
            assert_eq!((driver.calls_of("cuLaunch"), driver.depth()), (vec![], 0));
        }
    }
}

/// A function of first uses finds the variables, so that a captured launch needn't.
#[test]
fn first_uses_find_globals() {
    let driver = Driver::cuda();
    for engine in engines() {
        driver.reset();
        let kernel = Kernel::launch(launch(ALL), [ptx("sm_80", 80)]);
        let first_use = Kernel::prepare([&kernel]);
        let functions = [(sig("prepare(device: device)"), first_use), (sig(SIGNATURE), kernel)];
        // SAFETY: the kernel of kernels.c has these parameters.
        let module = unsafe { engine.compile_module(functions.iter().map(|(of, kernel)| (of, kernel))) }.unwrap();
        let function = |name: &str| module.get_function(name).unwrap().unwrap();
        function("prepare").call((cuda(1),)).unwrap();
        assert_eq!(driver.calls_of("cuLibraryGetGlobal(").len(), 3);
        driver.capture(1);
        assert_eq!(call(&function("affine_globals"), cuda(1), None, 2.0, 2), Ok(expected(0.0, 2.0, 2)));
        driver.capture(0);
        // without the variable, preparing fails
        let missing = Kernel::launch(launch("nothing=int32(k)"), [ptx("sm_80", 80)]);
        // SAFETY: nothing is launched.
        let prepare = unsafe { engine.compile(&sig("prepare(device: device)"), &Kernel::prepare([&missing])) }.unwrap();
        let error = prepare.call((cuda(1),)).unwrap_err();
        assert!(error.message().ends_with("`: the image has no global variable `nothing`"), "{}", error.message());
    }
}

#[test]
fn hip_writes_globals() {
    let driver = Driver::hip();
    let device = DLDevice::new(DLDeviceType::ROCM, 1);
    for engine in engines() {
        driver.reset();
        let function = compile(&engine, &SIGNATURE.replace("cuda", "rocm"), launch(ALL), vec![bundle()]);
        for alpha in [2.0, 3.0] {
            assert_eq!(call(&function, device, Some(1.0), f64::from(alpha), 9), Ok(expected(1.0, alpha, 9)));
        }
        assert_eq!(driver.calls_of("hipModuleGetGlobal").len(), 3);
        assert_eq!(driver.calls_of("hipMemset").len(), 2 * 6);
        assert_eq!(driver.hip_device(), 0);
        drop(function);
        for name in ["hipModuleGetGlobal", "hipMemsetD32Async", "hipMemsetD8Async", "hipGetDevice", "hipSetDevice"] {
            driver.reset();
            driver.fail_name(name, 2);
            let function = compile(&engine, &SIGNATURE.replace("cuda", "rocm"), launch(ALL), vec![bundle()]);
            let error = call(&function, device, None, 1.0, 9).unwrap_err();
            assert!(error.contains(&format!("`{name}` failed with")), "{error}");
            driver.reset();
            assert_eq!(call(&function, device, None, 1.0, 9), Ok(expected(0.0, 1.0, 9)));
        }
    }
}

/// In a body, values of the body are written.
#[test]
fn a_body_writes_globals() {
    let _driver = Driver::cuda();
    let text = format!(
        "{SIGNATURE} {{
          let twice = k * 2;
          launch affine_globals grid=n block=6 args=[x, tag, int64(n)] globals=[scale=float32(alpha), bias=b,
            tag=struct(size=6, align=2, 0: int32(twice), 4: int16(n))];
        }}"
    );
    let program = HostProgram::parse_with(&text, [("image", ptx("sm_80", 80))]).unwrap();
    assert!(program.to_string().contains("globals=[scale=cast(alpha, float32), bias=b, tag="), "{program}");
    for engine in engines() {
        let (signature, kernel) = program.functions().next().unwrap();
        // SAFETY: the kernel of kernels.c has these parameters.
        let function = unsafe { engine.compile(signature, kernel) }.unwrap();
        assert_eq!(call(&function, cuda(1), None, 2.0, 4), Ok(expected(0.0, 2.0, 8)));
    }
}

#[test]
fn globals_that_cant_be_are_refused() {
    let image = || vec![ptx("sm_80", 80)];
    let subject = "the launch of kernel `affine_globals` by function `affine_globals` ";
    for (globals, expected) in [
        ("scale=w", "has w among its args, but this isn't a tensor or scalar parameter of the function"),
        ("scale=float32(alpha), scale=int32(k)", "writes the global variable `scale` twice"),
        ("\"\"=int32(k)", "has a global variable with the name \"\""),
        (
            "scale=scratch(8)",
            "writes scratch(8, align=16) to the global variable `scale`, but a global variable takes neither scratch memory nor tensor maps",
        ),
        (
            "scale=struct(size=128, align=64, 0: tensor_map(x, box=16))",
            "writes struct(size=128, align=64, 0: tensor_map(x, box=16)) to the global variable `scale`, but a \
             global variable takes neither scratch memory nor tensor maps",
        ),
    ] {
        assert_eq!(refusal(SIGNATURE, launch(globals), image()), format!("{subject}{expected}"));
    }
    let built = launch("").global("scale", "float32(alpha)".parse::<KernelArg>().unwrap());
    assert_eq!(built, launch("scale=float32(alpha)"));
    assert_eq!(launch("").globals(), []);
}
