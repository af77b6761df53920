//! Launch hooks: their arguments, and their errors.

use std::ffi::c_void;
use std::sync::{Arc, Mutex};

use tvm_ffi_codegen::runtime::abi::TVMFFIAny;
use tvm_ffi_codegen::runtime::{Any, AnyView, DLDevice, Error, Function, Module, Shape, with_stream};
use tvm_ffi_codegen::{Backend, DLDeviceType, set_launch_hook};

use super::calls::fail_in_turn;
use super::devices::{cuda, elements};
use super::engines;
use super::launches::{ADD, add, add_alone, call3, compile, launch_of_add, sums, vectors};
use super::libraries::library;
use super::standin::{Driver, bundle};

/// The calls of the hooks with their arguments, in order.
#[derive(Clone, Default)]
pub struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    /// A hook that notes its call, and fails with an error of this kind.
    fn hook(&self, what: &'static str, fails: Option<&'static str>) -> Function {
        let seen = Arc::clone(&self.0);
        Function::from_packed(move |args| {
            seen.lock().unwrap().push(format!("{what} {}", shown(args)?));
            match fails {
                Some(kind) => Err(Error::new(kind, what)),
                None => Ok(Any::from(())),
            }
        })
    }

    pub fn set(&self) {
        set_launch_hook(Some(&self.hook("enter", None)), Some(&self.hook("exit", None))).unwrap();
    }

    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

fn shown(args: &[AnyView<'_>]) -> Result<String, Error> {
    let [name, grid, block, shared, stream, device] = args else { panic!("{} arguments", args.len()) };
    let (grid, block): (Shape, Shape) = (grid.cast()?, block.cast()?);
    let (name, shared, device): (String, i64, DLDevice) = (name.cast()?, shared.cast()?, device.cast()?);
    let stream: *mut c_void = stream.cast()?;
    Ok(format!("{name} {grid:?} {block:?} {shared} {:#x} {device}", stream.addr()))
}

/// Removes the hook at the end of a test. One test at a time uses the driver, and so the hook.
pub struct Unset;

impl Drop for Unset {
    fn drop(&mut self) {
        set_launch_hook(None, None).unwrap();
    }
}

/// Both ways to the driver: on a stream that has a context, and on one that hasn't.
const STREAMS: [usize; 2] = [0x1001, 0];

fn call_on(function: &Function, device: DLDevice, stream: usize, n: usize) -> Result<(), String> {
    let tensors = vectors(device, n);
    // SAFETY: the stand-in doesn't dereference the address.
    unsafe { with_stream(device, stream as *mut _, || call3(function, &tensors)) }.unwrap()?;
    assert_eq!(elements::<f32>(&tensors[2]), sums(n));
    Ok(())
}

#[test]
fn hooks_see_launches() {
    let driver = Driver::cuda();
    let (seen, _unset) = (Seen::default(), Unset);
    for engine in engines() {
        driver.reset();
        // a hook may be set before the first launch and after it
        let [early, late] = [0, 1].map(|_| add(&engine));
        call_on(&early, cuda(1), 0, 300).unwrap();
        assert_eq!(seen.take(), [""; 0]);
        seen.set();
        for (stream, function) in STREAMS.into_iter().flat_map(|stream| [(stream, &early), (stream, &late)]) {
            call_on(function, cuda(1), stream, 300).unwrap();
            let launch = format!("add [3, 1, 1] [128, 1, 1] 0 {stream:#x} cuda:1");
            assert_eq!(seen.take(), [format!("enter {launch}"), format!("exit {launch}")]);
        }
        // a second device fills the state anew
        call_on(&late, cuda(0), 0x1000, 1).unwrap();
        assert_eq!(seen.take().len(), 2);
        // a grid of nothing isn't launched
        call_on(&late, cuda(1), 0, 0).unwrap();
        assert_eq!(seen.take(), [""; 0]);
        // each function alone
        for (enter, exit) in [(true, false), (false, true)] {
            let function = |what, is_set: bool| is_set.then(|| seen.hook(what, None));
            set_launch_hook(function("enter", enter).as_ref(), function("exit", exit).as_ref()).unwrap();
            call_on(&early, cuda(1), 0x1001, 3).unwrap();
            let seen = seen.take();
            assert_eq!((seen.len(), seen[0].starts_with("enter")), (1, enter));
        }
        set_launch_hook(None, None).unwrap();
        for stream in STREAMS {
            call_on(&early, cuda(1), stream, 3).unwrap();
        }
        assert_eq!(seen.take(), [""; 0]);
    }
}

#[test]
fn hooks_see_launches_of_hip() {
    let driver = Driver::hip();
    let (seen, _unset) = (Seen::default(), Unset);
    let device = DLDevice::new(DLDeviceType::ROCM, 1);
    for (engine, cooperative) in engines().iter().flat_map(|engine| [(engine, false), (engine, true)]) {
        driver.reset();
        let launch = if cooperative { launch_of_add().cooperative() } else { launch_of_add() };
        let function = compile(engine, &ADD.replace("cuda", "rocm"), launch, vec![bundle()]);
        seen.set();
        call_on(&function, device, 0x1001, 300).unwrap();
        let launch = "add [3, 1, 1] [128, 1, 1] 0 0x1001 rocm:1";
        assert_eq!(seen.take(), [format!("enter {launch}"), format!("exit {launch}")]);
        set_launch_hook(Some(&seen.hook("enter", Some("KeyError"))), None).unwrap();
        assert_eq!(call_on(&function, device, 0x1001, 300).unwrap_err(), "KeyError: enter");
        assert_eq!(seen.take().len(), 1);
        set_launch_hook(None, None).unwrap();
    }
}

#[test]
fn an_error_of_a_hook_fails_the_call() {
    let driver = Driver::cuda();
    let (seen, _unset) = (Seen::default(), Unset);
    for (engine, stream) in engines().iter().flat_map(|engine| STREAMS.map(|stream| (engine, stream))) {
        driver.reset();
        let function = add(engine);
        let [good, bad] = [None, Some("KeyError")];
        set_launch_hook(Some(&seen.hook("enter", bad)), Some(&seen.hook("exit", good))).unwrap();
        assert_eq!(call_on(&function, cuda(1), stream, 3).unwrap_err(), "KeyError: enter");
        assert_eq!(driver.calls_of("cuLaunch"), [""; 0]);
        assert_eq!(seen.take().len(), 1, "what isn't launched doesn't end");
        set_launch_hook(Some(&seen.hook("enter", good)), Some(&seen.hook("exit", bad))).unwrap();
        assert_eq!(call_on(&function, cuda(1), stream, 3).unwrap_err(), "KeyError: exit");
        assert_eq!((driver.calls_of("cuLaunch").len(), seen.take().len()), (1, 2));
        // the driver's error goes before that of `exit`
        driver.fail_name("cuLaunchKernelEx", 719);
        let error = call_on(&function, cuda(1), stream, 3).unwrap_err();
        assert!(error.contains("`cuLaunchKernelEx` failed with CUDA_ERROR_LAUNCH_FAILED (719)"), "{error}");
        assert_eq!((seen.take().len(), driver.depth()), (2, 0));
        // a code without an error, as `tvm_ffi` returns for Python's
        // SAFETY: the function may be called from any thread.
        let interrupted = unsafe { Function::from_code(interrupted, ()) };
        set_launch_hook(Some(&interrupted), None).unwrap();
        let tensors = vectors(cuda(1), 3).map(|tensor| Any::from(tensor).into_raw());
        let mut result = Any::none().into_raw();
        // SAFETY: the arguments are three tensors, and the result is None.
        assert_eq!(unsafe { function.call_raw(&tensors, &mut result) }, -2);
        // SAFETY: the values are owned here.
        tensors.into_iter().for_each(|tensor| drop(unsafe { Any::from_raw(tensor) }));
        set_launch_hook(None, None).unwrap();
    }
}

/// Returns the code for an error that the environment has set.
unsafe extern "C" fn interrupted(_: *mut c_void, _: *const TVMFFIAny, _: i32, _: *mut TVMFFIAny) -> i32 {
    -2
}

/// With a hook, failures of the driver are as without.
#[test]
fn every_call_of_the_driver_may_fail_under_a_hook() {
    let driver = Driver::cuda();
    let (seen, _unset) = (Seen::default(), Unset);
    for engine in engines() {
        seen.set();
        fail_in_turn(&driver, || add_alone(&engine), "add", &|function| call_on(function, cuda(0), 0, 5));
        let seen = seen.take();
        let count = |what: &str| seen.iter().filter(|seen| seen.starts_with(what)).count();
        assert_eq!(count("enter"), count("exit"));
        assert!(count("enter") > 20);
    }
}

/// A library that is unloaded is forgotten: setting a hook afterwards writes nothing where it was.
#[test]
fn libraries_come_and_go() {
    let driver = Driver::cuda();
    let (seen, _unset) = (Seen::default(), Unset);
    for backend in Backend::ALL {
        let folder = tempfile::tempdir().unwrap();
        let path = library(folder.path(), *backend);
        for _ in 0..3 {
            // SAFETY: the library is one of ours.
            let module = unsafe { Module::load_from_file(&path) }.unwrap();
            let function = module.get_function("add").unwrap().unwrap();
            call_on(&function, cuda(1), 0x1001, 3).unwrap();
            assert_eq!(seen.take(), [""; 0]);
            seen.set();
            call_on(&function, cuda(1), 0x1001, 3).unwrap();
            assert_eq!(seen.take().len(), 2);
            // SAFETY: nothing is left of what the library's code has made.
            unsafe { module.unload_when_unused() }.unwrap();
            drop((module, function));
            assert_eq!((driver.libraries(), driver.retained(1)), (0, 0));
            set_launch_hook(None, None).unwrap();
        }
    }
}
