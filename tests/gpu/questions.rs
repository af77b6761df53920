//! Questions about devices, which a driver answers.

use std::process::Command;

use tvm_ffi_codegen::artifact::LibraryBuilder;
use tvm_ffi_codegen::runtime::{Any, DLDevice, Module, Tensor};
use tvm_ffi_codegen::spec::{KernelArg, Launch, ScalarType};
use tvm_ffi_codegen::{Backend, DLDeviceType, Kernel, dim};

use super::devices::{Devices, cuda, elements, image, on, view};
use super::standin::Driver;
use super::{engines, real};
use crate::calls::callees;
use crate::support::library::{Library, Loaded, Prepared};
use crate::support::{allocator, host_linker, sig};

const SIGNATURE: &str = "capability(x: Tensor([n], float32, device=any)) -> int64";
const TEXT: &str = "{
  if x.device.kind == \"cuda\" { return x.device.capability; }
  if x.device.kind == \"rocm\" { return x.device.capability; }
  return 0;
}";

/// A function of host text without images.
fn text(text: &str) -> Kernel {
    Kernel::text(text, std::iter::empty::<(String, _)>()).unwrap()
}

fn library(signature: &str, block: &str) -> Library {
    Library::new(vec![(sig(signature), text(block))]).unwrap()
}

/// The result of a function for a tensor on a device, or its error.
fn ask(loaded: &mut Loaded<'_>, name: &str, device: DLDevice) -> Result<i64, String> {
    let memory = Tensor::from_slice(&[0.0_f32], &[1]).unwrap();
    let x = view(device, &memory, &[1], None);
    let reply = loaded.call(name, &[Any::from(x)]);
    match reply.error {
        Some(error) => Err(error.to_string()),
        None => Ok(reply.value.cast::<i64>().unwrap()),
    }
}

/// Runs a library on every executor, then its destructors.
fn on_each_executor<T: PartialEq + std::fmt::Debug>(library: &Library, run: impl Fn(&mut Loaded<'_>) -> T) -> T {
    callees::register();
    let found = Prepared::new(library).unwrap().run(|loaded| {
        let found = run(loaded);
        loaded.unload();
        found
    });
    found.unwrap_or_else(|problem| panic!("{problem}"))
}

#[test]
fn bodies_ask_for_the_capability_of_a_device() {
    if real::driver().is_some() {
        return eprintln!("skipped: these are the devices of the stand-in");
    }
    let driver = Driver::cuda();
    let library = library(SIGNATURE, TEXT);
    let found = on_each_executor(&library, |loaded| {
        driver.reset();
        let answers = [cuda(0), cuda(1), cuda(0), DLDevice::CPU].map(|device| ask(loaded, "capability", device));
        // a device's first use happens once, and loads no image
        assert_eq!(driver.calls_of("cuDevicePrimaryCtxRetain").len(), 2, "{}", driver.log());
        assert_eq!((driver.libraries(), driver.retained(0), driver.retained(1)), (0, 1, 1));
        let made = driver.calls();
        assert_eq!(ask(loaded, "capability", cuda(1)), Ok(90));
        assert_eq!(driver.calls(), made, "{}", driver.log());
        answers
    });
    assert_eq!(found, [Ok(80), Ok(90), Ok(80), Ok(0)]);
    assert_eq!((driver.retained(0), driver.retained(1)), (0, 0));
}

#[test]
fn hip_tells_the_capability() {
    if real::driver().is_some() {
        return eprintln!("skipped: these are the devices of the stand-in");
    }
    let _driver = Driver::hip();
    let library = library(SIGNATURE, TEXT);
    let device = DLDevice::new(DLDeviceType::ROCM, 1);
    assert_eq!(on_each_executor(&library, |loaded| ask(loaded, "capability", device)), Ok(94));
}

#[test]
fn a_failure_is_the_bodys_error() {
    if real::driver().is_some() {
        return eprintln!("skipped: these are the devices of the stand-in");
    }
    let driver = Driver::cuda();
    allocator::install();
    let block = "{
  let y = alloc([n], float32, device=\"cpu\");
  try { if x.device.id == 1 { return x.device.capability; } }
  catch e { ensure e.kind == \"RuntimeError\", ValueError(\"{}\", e); return -1; }
  return x.device.capability + int64(y[0]) * 0;
}";
    let library = library("asks(x: Tensor([n], float32, device=\"cuda\")) -> int64", block);
    let found = on_each_executor(&library, |loaded| {
        driver.reset();
        let outside = ask(loaded, "asks", cuda(64));
        driver.fail_name("cuDevicePrimaryCtxRetain", 2);
        let failed = ask(loaded, "asks", cuda(0));
        let caught = ask(loaded, "asks", cuda(1));
        driver.reset();
        // a device's first use is tried again
        [outside, failed, caught, ask(loaded, "asks", cuda(0))]
    });
    let caller = "RuntimeError: Cannot ask for the compute capability of a device when calling: \
                  `asks(x: Tensor([n], float32, device=\"cuda\")) -> int64`";
    let outside = format!("{caller}: the device is cuda:64; a library serves cuda:0 to cuda:63");
    let failed = format!(
        "{caller}: `cuDevicePrimaryCtxRetain` failed with CUDA_ERROR_OUT_OF_MEMORY (2), out of memory, on cuda:0"
    );
    assert_eq!(found, [Err(outside), Err(failed), Ok(-1), Ok(80)]);
}

/// A question and a launch of one module share the device's first use.
#[test]
fn launches_are_chosen_by_the_capability() {
    let devices = Devices::cuda();
    let signature = sig("add2(x: Tensor([n], float32, device=\"cuda\"), y: Tensor([n], float32, device=\"cuda\"))");
    let kernel = Kernel::body(|b| {
        let args = |names: [&str; 3]| {
            let names = names.map(|name| KernelArg::Param(name.to_owned()));
            names.into_iter().chain([KernelArg::Int(dim("n"), ScalarType::Int64)])
        };
        let add = |names| Launch::new("add").grid([(dim("n") + 127) / 128]).block([128]).args(args(names));
        let is_new = b.device_capability(b.tensor("x")).ge(90);
        let images = || [image("sm_80", 80)];
        b.if_else(is_new, || b.launch(add(["x", "x", "y"]), images()), || b.launch(add(["x", "y", "y"]), images()));
    });
    for engine in engines() {
        devices.reset();
        // SAFETY: the kernel has these parameters.
        let function = unsafe { engine.compile(&signature, &kernel) }.unwrap();
        for number in 0..2 {
            let device = devices.device(number);
            let (x, y) = (on(device, vec![1.0_f32; 200], &[200]), on(device, vec![5.0_f32; 200], &[200]));
            function.call((&x, &y)).unwrap();
            let expected = match &devices.standin {
                Some(_) => [6.0, 2.0][number as usize],
                None => elements::<f32>(&y)[0],
            };
            assert_eq!(elements::<f32>(&y), [expected; 200]);
        }
        devices.assert_calls_of("cuDeviceGet(", &["cuDeviceGet(0)", "cuDeviceGet(1)"]);
        devices.assert_held(1, [1, 1]);
    }
}

#[test]
fn a_library_without_launches_asks() {
    let devices = Devices::cuda();
    for backend in Backend::ALL {
        devices.reset();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("capability.so");
        let library = LibraryBuilder::new().backend(*backend).function(&sig(SIGNATURE), &text(TEXT));
        host_linker().object(library.emit().unwrap().into_bytes()).link(&path).unwrap();
        // SAFETY: the library is one of ours.
        let module = unsafe { Module::load_from_file(&path) }.unwrap();
        let function = module.get_function("capability").unwrap().unwrap();
        let x = on(devices.device(1), vec![1.0_f32], &[1]);
        let found = function.call((&x,)).unwrap().cast::<i64>().unwrap();
        match &devices.standin {
            Some(_) => assert_eq!(found, 90),
            None => assert!((50..1000).contains(&found), "{found}"),
        }
        devices.assert_held(0, [0, 1]);
        drop(function);
        // SAFETY: nothing is left of what the library's code has made.
        unsafe { module.unload_when_unused() }.unwrap();
        drop(module);
        devices.assert_held(0, [0, 0]);
    }
}

#[cfg(feature = "cranelift")]
#[test]
fn c_functions_ask_for_the_capability() {
    let devices = Devices::cuda();
    let text = format!("extern {} {TEXT}", SIGNATURE.replace("capability", "c_capability"));
    let functions = crate::c_functions::of_text(&text);
    for (device, expected) in [(devices.device(1), 90), (DLDevice::CPU, 0)] {
        let memory = Tensor::from_slice(&[1.0_f32], &[1]).unwrap();
        let x = if device == DLDevice::CPU { memory } else { on(device, vec![1.0_f32], &[1]) };
        let found = functions[0].call((&x,)).unwrap().cast::<i64>().unwrap();
        match &devices.standin {
            None if expected > 0 => assert!((50..1000).contains(&found), "{found}"),
            _ => assert_eq!(found, expected),
        }
    }
    let Some(driver) = &devices.standin else { return };
    let text = "Cannot ask for the compute capability of a device when calling: `c_capability(";
    driver.fail_name("cuDevicePrimaryCtxRetain", 2);
    let error = functions[0].call((&on(devices.device(0), vec![1.0_f32], &[1]),)).unwrap_err();
    assert!(error.message().starts_with(text), "{error}");
}

const CHILD: &str = "TEST_OF_A_QUESTION_WITHOUT_A_DRIVER";

/// In its own process, because the stand-in is loaded in this one.
#[test]
fn a_machine_without_a_driver_is_told_at_the_question() {
    if real::driver().is_some() {
        return eprintln!("skipped: this machine has a driver");
    }
    if std::env::var_os(CHILD).is_none() {
        let done = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "gpu::questions::a_machine_without_a_driver_is_told_at_the_question"])
            .env(CHILD, "1")
            .output()
            .unwrap();
        return assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
    }
    let library = library(SIGNATURE, TEXT);
    let found = on_each_executor(&library, |loaded| ask(loaded, "capability", cuda(0)));
    let error = found.unwrap_err();
    assert!(error.starts_with("RuntimeError: Cannot ask for the compute capability of a device when"), "{error}");
    // if the machine has a driver but no device, the driver reports that
    let is_told =
        error.contains(": there is no CUDA driver on this machine: ") || error.contains("`cuInit` failed with");
    assert!(is_told, "{error}");
    assert_eq!(on_each_executor(&library, |loaded| ask(loaded, "capability", DLDevice::CPU)), Ok(0));
}
