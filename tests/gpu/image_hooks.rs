//! Global functions that are called for each image and device.

use std::ffi::c_void;
use std::sync::{Arc, Mutex};

use tvm_ffi_codegen::runtime::{Any, DLDevice, Error, Function, registry};
use tvm_ffi_codegen::spec::Launch;
use tvm_ffi_codegen::{DLDeviceType, Kernel};

use super::calls::fail_in_turn;
use super::devices::{cuda, elements};
use super::engines;
use super::launches::{ADD, call3, compile, compile_alone, sums, vectors};
use super::refusals::refusal;
use super::standin::{Driver, bundle, current_device, ptx};
use crate::support::sig;

/// A global function for the time of a test, which notes its calls.
struct Hook {
    name: String,
    calls: Calls,
}

/// The handles and devices of calls, and the device that was current.
type Calls = Arc<Mutex<Vec<(usize, DLDevice, i32)>>>;

impl Hook {
    /// A function that fails with this message unless it is empty. It returns an object.
    fn new(name: &str, failure: &Arc<Mutex<String>>) -> Self {
        let name = format!("gpu.image_hooks.{name}");
        let calls = Calls::default();
        let (noted, failure) = (Arc::clone(&calls), Arc::clone(failure));
        let called = move |image: Any, device: DLDevice| -> Result<String, Error> {
            let handle = image.cast::<*mut c_void>().unwrap() as usize;
            noted.lock().unwrap().push((handle, device, current_device(device.device_type)));
            let text = failure.lock().unwrap().clone();
            if text.is_empty() {
                Ok("a string that needs an object".to_owned())
            } else {
                Err(Error::new("KeyError", &text))
            }
        };
        registry::set_global(&name, Function::from_typed(called), true).unwrap();
        Hook { name, calls }
    }

    fn take(&self) -> Vec<(usize, DLDevice, i32)> {
        std::mem::take(&mut self.calls.lock().unwrap())
    }
}

impl Drop for Hook {
    fn drop(&mut self) {
        registry::remove_global(&self.name);
    }
}

/// A launch of `add` that states functions.
fn launch(items: &str) -> Launch {
    format!("launch add grid=n block=1 {items}").parse().unwrap()
}

fn succeeds() -> Arc<Mutex<String>> {
    Arc::default()
}

#[test]
fn functions_are_called_for_each_image_and_device() {
    let driver = Driver::cuda();
    let (load, unload) = (Hook::new("each_load", &succeeds()), Hook::new("each_unload", &succeeds()));
    let launch = launch(&format!("on_load={} on_unload={}", load.name, unload.name));
    for engine in engines() {
        for alone in [false, true] {
            driver.reset();
            let images = vec![ptx("sm_80", 80), ptx("sm_90", 90)];
            let compile = if alone { compile_alone } else { compile };
            let function = compile(&engine, ADD, launch.clone(), images);
            // device 0 gets the first image, device 1 the second one
            for device in [0, 1, 0, 1] {
                let tensors = vectors(cuda(device), 5);
                call3(&function, &tensors).unwrap();
                assert_eq!(elements::<f32>(&tensors[2]), sums(5));
            }
            let loaded = load.take();
            let told: Vec<_> = loaded.iter().map(|(_, device, current)| (*device, *current)).collect();
            assert_eq!(told, [(cuda(0), 0), (cuda(1), 1)]);
            assert!(loaded[0].0 != loaded[1].0 && loaded.iter().all(|(handle, ..)| *handle != 0));
            assert_eq!((driver.current(), driver.depth(), unload.take()), (-1, 0, vec![]));
            // the function's order: after the image is loaded, before its kernel is looked up
            let log = driver.log();
            let at = |text: &str| log.lines().position(|line| line.starts_with(text)).unwrap();
            assert!(
                at("cuLibraryLoadData") < at("cuCtxPushCurrent(0)")
                    && at("cuCtxPushCurrent(0)") < at("cuLibraryGetKernel")
            );
            drop(function);
            // the image for devices of 9.0 is the first one
            assert_eq!(unload.take(), [loaded[1], loaded[0]]);
            assert_eq!((driver.libraries(), driver.retained(0), driver.retained(1), driver.depth()), (0, 0, 0, 0));
        }
    }
}

/// One image for two devices, and two launches of it. Each function is called once per device.
#[test]
fn launches_share_the_functions_of_an_image() {
    let driver = Driver::cuda();
    let (load, unload) = (Hook::new("shared_load", &succeeds()), Hook::new("shared_unload", &succeeds()));
    for engine in engines() {
        driver.reset();
        let hooked = |entry: &str, items: &str| {
            let text = format!("launch {entry} grid=1 {items} on_load={} on_unload={}", load.name, unload.name);
            Kernel::launch(text.parse().unwrap(), [ptx("sm_80", 80)])
        };
        let plain = Kernel::launch("launch which grid=1 priority=1".parse().unwrap(), [ptx("sm_80", 80)]);
        let which = |name: &str| sig(&format!("{name}(out: Tensor([1], int32, device=\"cuda\"))"));
        let functions = [
            (sig(ADD), hooked("add", "args=[x, y, z, int64(n)]")),
            (which("hooked"), hooked("which", "")),
            (which("plain"), plain),
            (sig("prepare(device: device)"), Kernel::prepare([&hooked("which", "")])),
        ];
        // SAFETY: the kernels of kernels.c have these parameters.
        let module = unsafe { engine.compile_module(functions.iter().map(|(of, kernel)| (of, kernel))) }.unwrap();
        let function = |name: &str| module.get_function(name).unwrap().unwrap();
        let out = super::devices::on(cuda(1), vec![0_i32], &[1]);
        function("plain").call((&out,)).unwrap();
        assert_eq!(load.take(), [], "this launch states no function");
        function("prepare").call((cuda(1),)).unwrap();
        assert_eq!(load.take().len(), 1);
        function("hooked").call((&out,)).unwrap();
        call3(&function("add"), &vectors(cuda(1), 1)).unwrap();
        assert_eq!(load.take(), []);
        call3(&function("add"), &vectors(cuda(0), 1)).unwrap();
        let [(handle, device, _)] = load.take()[..] else { panic!() };
        assert_eq!((device, driver.calls_of("cuLibraryLoadData").len()), (cuda(0), 1));
        drop((functions, module));
        let unloaded = unload.take();
        assert_eq!(unloaded, [(handle, cuda(0), 0), (handle, cuda(1), 1)]);
    }
}

#[test]
fn an_error_of_a_function_is_the_launchs() {
    let driver = Driver::cuda();
    let failure = Arc::new(Mutex::new(String::new()));
    let (load, unload) = (Hook::new("fails_load", &failure), Hook::new("fails_unload", &failure));
    let launch = launch(&format!("on_load={} on_unload={}", load.name, unload.name));
    for engine in engines() {
        driver.reset();
        let function = compile(&engine, ADD, launch.clone(), vec![ptx("sm_80", 80)]);
        let tensors = vectors(cuda(1), 5);
        for text in ["no heap", "still no heap"] {
            *failure.lock().unwrap() = text.to_owned();
            assert_eq!(call3(&function, &tensors).unwrap_err(), format!("KeyError: {text}"));
            assert_eq!((load.take().len(), driver.depth(), driver.calls_of("cuLaunch")), (1, 0, vec![]));
        }
        failure.lock().unwrap().clear();
        call3(&function, &tensors).unwrap();
        assert_eq!(load.take().len(), 1);
        // an error of the other function is dropped
        *failure.lock().unwrap() = "too late".to_owned();
        drop(function);
        failure.lock().unwrap().clear();
        assert_eq!((unload.take().len(), driver.libraries()), (1, 0));
        // a function that was never called successfully isn't called at the end
        *failure.lock().unwrap() = "no".to_owned();
        let function = compile(&engine, ADD, launch.clone(), vec![ptx("sm_80", 80)]);
        call3(&function, &tensors).unwrap_err();
        drop(function);
        failure.lock().unwrap().clear();
        assert_eq!((load.take().len(), unload.take(), driver.libraries()), (1, vec![], 0));
    }
}

#[test]
fn a_function_has_to_be_registered() {
    let driver = Driver::cuda();
    for engine in engines() {
        for part in ["on_load", "on_unload"] {
            driver.reset();
            let name = format!("gpu.image_hooks.missing_{part}");
            let function = compile(&engine, ADD, launch(&format!("{part}={name}")), vec![ptx("sm_80", 80)]);
            let tensors = vectors(cuda(1), 5);
            for _ in 0..2 {
                let expected = format!(
                    "RuntimeError: Cannot launch kernel `add` when calling: `{ADD}`: the global function `{name}` isn't registered"
                );
                assert_eq!(call3(&function, &tensors).unwrap_err(), expected);
            }
            let hook = Hook::new(&format!("missing_{part}"), &succeeds());
            call3(&function, &tensors).unwrap();
            drop(function);
            assert_eq!(hook.take().len(), 1);
        }
    }
}

#[test]
fn every_call_of_the_driver_may_fail_around_functions() {
    let driver = Driver::cuda();
    let (load, unload) = (Hook::new("turn_load", &succeeds()), Hook::new("turn_unload", &succeeds()));
    let both = launch(&format!("on_load={} on_unload={}", load.name, unload.name));
    let launch = launch(&format!("on_load={}", load.name));
    for engine in engines() {
        let make = || compile_alone(&engine, ADD, launch.clone(), vec![ptx("sm_80", 80)]);
        load.take();
        fail_in_turn(&driver, make, "add", &|function| {
            let tensors = vectors(cuda(0), 5);
            call3(function, &tensors)?;
            assert_eq!(elements::<f32>(&tensors[2]), sums(5));
            Ok(())
        });
        assert!(load.take().len() > 25);
        // where a context can't be entered at the end, the other function isn't called
        for (name, expected) in [("cuCtxGetCurrent", 0), ("cuCtxPushCurrent", 0), ("cuCtxPopCurrent", 1)] {
            driver.reset();
            let function = compile_alone(&engine, ADD, both.clone(), vec![ptx("sm_80", 80)]);
            call3(&function, &vectors(cuda(0), 5)).unwrap();
            driver.fail_name(name, 4);
            drop(function);
            assert_eq!((unload.take().len(), driver.libraries(), driver.depth()), (expected, 0, 0), "{name}");
            driver.fail_name("", 0);
        }
    }
}

#[test]
fn hip_calls_functions() {
    let driver = Driver::hip();
    let (load, unload) = (Hook::new("hip_load", &succeeds()), Hook::new("hip_unload", &succeeds()));
    let launch = launch(&format!("on_load={} on_unload={}", load.name, unload.name));
    for engine in engines() {
        driver.reset();
        let function = compile(&engine, &ADD.replace("cuda", "rocm"), launch.clone(), vec![bundle()]);
        let device = |number| DLDevice::new(DLDeviceType::ROCM, number);
        for number in [1, 0, 1] {
            call3(&function, &vectors(device(number), 5)).unwrap();
        }
        let mut loaded = load.take();
        let told: Vec<_> = loaded.iter().map(|(_, device, current)| (*device, *current)).collect();
        assert_eq!(told, [(device(1), 1), (device(0), 0)]);
        assert_ne!(loaded[0].0, loaded[1].0);
        assert_eq!(driver.hip_device(), 0);
        drop(function);
        loaded.reverse();
        assert_eq!((unload.take(), driver.libraries()), (loaded, 0));
    }
}

#[test]
fn functions_that_cant_be_are_refused() {
    let expected = "the launch of kernel `add` by function `add` states on_load=\"\", but this isn't the name of a global function";
    assert_eq!(refusal(ADD, launch("on_load=\"\""), vec![ptx("sm_80", 80)]), expected);
    let built = Launch::new("add").grid([tvm_ffi_codegen::dim("n")]).on_load("a.b").on_unload("c d");
    assert_eq!(built, launch("on_load=a.b on_unload=\"c d\""));
    assert_eq!((built.stated_on_load(), built.stated_on_unload()), (Some("a.b"), Some("c d")));
}
