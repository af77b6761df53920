//! The streams that launches use: the environment's, and those that callers pass.

use std::ffi::c_void;

use tvm_ffi_codegen::runtime::{Any, DLDevice, Function, Tensor, with_stream};
use tvm_ffi_codegen::spec::{KernelArg, Launch, LaunchedSignature, ScalarType};
use tvm_ffi_codegen::{DLDeviceType, Engine, HostProgram, dim};

use super::calls::fail_in_turn;
use super::devices::{cuda, elements};
use super::engines;
use super::launches::{ADD, compile, compile_alone, launch_of_add, sums, vectors};
use super::refusals::refusal;
use super::standin::{Driver, bundle, ptx};

/// `add` with a stream that the caller may pass.
pub fn add_on() -> String {
    format!("{}, stream: Stream = None)", ADD.strip_suffix(')').unwrap())
}

/// Its launch, on the environment's stream.
pub fn launch() -> Launch {
    let args = ["x", "y", "z"].map(|name| KernelArg::Param(name.to_owned()));
    launch_of_add().args(args.into_iter().chain([KernelArg::Int(dim("n"), ScalarType::Int64)]))
}

/// Calls `add` with a stream while the environment has another one.
fn call(function: &Function, [x, y, z]: &[Tensor; 3], current: usize, stream: Any) -> Result<(), String> {
    let device = x.as_dl_tensor().device;
    let call = || function.call((x, y, z, stream));
    // SAFETY: the stand-in doesn't dereference the address.
    let result = unsafe { with_stream(device, current as *mut c_void, call) }.unwrap();
    result.map(drop).map_err(|error| format!("{}: {}", error.kind(), error.message()))
}

fn opaque(address: usize) -> Any {
    // SAFETY: nobody dereferences it.
    unsafe { Any::from_opaque_ptr(address as *mut c_void) }
}

/// Streams of the stand-in have their device's number in the lowest bit.
const CURRENT: usize = 0x1001;
const OTHER: usize = 0x2001;

/// The streams that a call can state, with the one that its launch is on.
fn cases() -> Vec<(Any, usize)> {
    vec![
        (().into(), CURRENT),
        ((OTHER as i64).into(), OTHER),
        (opaque(OTHER), OTHER),
        // the default stream, not the environment's
        (0_i64.into(), 0),
        (opaque(0), 0),
        (2_i64.into(), 2),
    ]
}

#[test]
fn a_call_states_its_stream() {
    let driver = Driver::cuda();
    for engine in engines() {
        let function = compile(&engine, &add_on(), launch().stream("stream"), vec![ptx("sm_80", 80)]);
        for (stream, expected) in cases() {
            driver.reset();
            let tensors = vectors(cuda(1), 5);
            call(&function, &tensors, CURRENT, stream).unwrap();
            assert_eq!(elements::<f32>(&tensors[2]), sums(5));
            assert_eq!(driver.stream(), expected);
            // a stream that is an object tells the context
            let context = driver.calls_of("cuCtx");
            match expected > 2 {
                true => assert_eq!(context, [""; 0]),
                false => assert_eq!(context, ["cuCtxGetCurrent", "cuCtxPushCurrent(1)", "cuCtxPopCurrent"]),
            }
        }
        // the default is None
        let tensors = vectors(cuda(1), 5);
        let [x, y, z] = &tensors;
        // SAFETY: the stand-in doesn't dereference the address.
        unsafe { with_stream(cuda(1), OTHER as *mut c_void, || function.call((x, y, z))) }.unwrap().unwrap();
        assert_eq!(driver.stream(), OTHER);
        // a launch that doesn't state the stream is on the environment's
        let function = compile(&engine, &add_on(), launch(), vec![ptx("sm_80", 80)]);
        call(&function, &tensors, CURRENT, opaque(OTHER)).unwrap();
        assert_eq!(driver.stream(), CURRENT);
        let error = call(&function, &tensors, CURRENT, true.into()).unwrap_err();
        let expected = format!(
            "TypeError: Mismatched type of stream on argument #3 when calling: `{}`, expected Stream, got bool",
            add_on()
        );
        assert_eq!(error, expected);
    }
}

#[test]
fn every_call_of_the_driver_may_fail_on_a_stated_stream() {
    let driver = Driver::cuda();
    for engine in engines() {
        for stream in [0, 0x2000] {
            let make = || compile_alone(&engine, &add_on(), launch().stream("stream"), vec![ptx("sm_80", 80)]);
            fail_in_turn(&driver, make, "add", &|function| {
                let tensors = vectors(cuda(0), 5);
                call(function, &tensors, 0x1000, opaque(stream))?;
                assert_eq!(elements::<f32>(&tensors[2]), sums(5));
                Ok(())
            });
        }
        // the error tells the stream
        let function = compile(&engine, &add_on(), launch().stream("stream"), vec![ptx("sm_80", 80)]);
        driver.reset();
        driver.fail_name("cuLaunchKernelEx", 719);
        let error = call(&function, &vectors(cuda(1), 5), CURRENT, opaque(OTHER)).unwrap_err();
        assert!(error.contains("stream 8193, on cuda:1"), "{error}");
        driver.reset();
    }
}

#[test]
fn hip_takes_a_stated_stream() {
    let driver = Driver::hip();
    for engine in engines() {
        driver.reset();
        let signature = add_on().replace("cuda", "rocm");
        let function = compile(&engine, &signature, launch().stream("stream"), vec![bundle()]);
        for (stream, expected) in cases() {
            let tensors = vectors(DLDevice::new(DLDeviceType::ROCM, 1), 5);
            call(&function, &tensors, CURRENT, stream).unwrap();
            assert_eq!((elements::<f32>(&tensors[2]), driver.stream()), (sums(5), expected));
        }
    }
}

/// In a body, a launch takes the stream of a parameter or of a value.
#[test]
fn a_body_launches_on_streams() {
    let driver = Driver::cuda();
    let text = format!(
        "{} {{
          let other = if n < 4 {{ s }} else {{ t }};
          launch add grid=1 block=128 args=[x, y, z, int64(n)] stream=s;
          launch add grid=1 block=128 args=[x, y, z, int64(n)] stream=other;
        }}",
        add_on().replace("stream: Stream = None", "s: Stream, t: handle")
    );
    let program = HostProgram::parse_with(&text, [("image", ptx("sm_80", 80))]).unwrap();
    // printing keeps the streams
    assert!(program.to_string().contains("stream=other"), "{program}");
    for engine in engines() {
        let function = body(&engine, &program);
        for (n, stream) in [(3, CURRENT), (5, OTHER)] {
            driver.reset();
            let tensors = vectors(cuda(1), n);
            let [x, y, z] = &tensors;
            let call = || function.call((x, y, z, (), opaque(OTHER)));
            // SAFETY: the stand-in doesn't dereference the address.
            unsafe { with_stream(cuda(1), CURRENT as *mut c_void, call) }.unwrap().unwrap();
            assert_eq!((elements::<f32>(&tensors[2]), driver.stream()), (sums(n), stream));
        }
    }
}

fn body(engine: &Engine, program: &HostProgram) -> Function {
    let (signature, kernel) = program.functions().next().unwrap();
    // SAFETY: the kernel of kernels.c has these parameters.
    unsafe { engine.compile(signature, kernel) }.unwrap()
}

#[test]
fn a_stream_has_to_be_one() {
    for name in ["n", "x", "w"] {
        let text =
            format!("has stream={name}, and the function has no parameter {name} of type Stream, EnvStream or handle");
        let error = refusal(&add_on(), launch().stream(name), vec![ptx("sm_80", 80)]);
        assert_eq!(error, format!("the launch of kernel `add` by function `add` {text}"));
    }
    let text = format!("{} @ {} stream=stream", add_on(), launch());
    let read: LaunchedSignature = text.parse().unwrap();
    assert_eq!((read.launch.stated_stream(), read.to_string()), (Some("stream"), text));
}
