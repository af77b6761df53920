//! Global variables, functions of an image, attributes with values, and hooks, on real devices.

use std::ffi::c_void;
use std::sync::{Arc, Mutex};

use tvm_ffi_codegen::runtime::{Any, DLDevice, Function, registry, with_stream};
use tvm_ffi_codegen::spec::Launch;

use super::super::devices::{cuda, elements, image, on};
use super::super::hooks::{Seen, Unset};
use super::super::launches::{ADD, add, call3, compile, compile_alone, sums, vectors};
use super::super::{engines, globals, real};
use super::{OUT, real_devices};

#[test]
fn global_variables_are_written() {
    let Some(driver) = real_devices() else { return };
    for engine in engines() {
        let images = vec![image("sm_80", 80)];
        let function = compile(&engine, globals::SIGNATURE, globals::launch(globals::ALL), images);
        let call = |bias, alpha, k| globals::call(&function, cuda(0), bias, alpha, k);
        assert_eq!(call(Some(0.5), 2.0, -7), Ok(globals::expected(0.5, 2.0, -7)));
        assert_eq!(call(None, 4.0, 258), Ok(globals::expected(0.0, 4.0, 258)));
        driver.with_new_stream(0, |stream| {
            // SAFETY: the stream is alive.
            let done = unsafe { with_stream(cuda(0), stream, || call(Some(1.5), 1.0, 5)) }.unwrap();
            assert_eq!(done, Ok(globals::expected(1.5, 1.0, 5)));
        });
    }
}

/// A captured launch has its values in the graph's own nodes.
#[test]
fn global_variables_are_captured() {
    let Some(driver) = real_devices() else { return };
    for engine in engines() {
        let images = vec![image("sm_80", 80)];
        let function = compile(&engine, globals::SIGNATURE, globals::launch(globals::ALL), images);
        globals::call(&function, cuda(0), None, 1.0, 1).unwrap();
        let x = on(cuda(0), vec![1.0_f32, 2.0, 3.0], &[3]);
        let tag = on(cuda(0), vec![0_u8; 6], &[6]);
        driver.with_new_stream(0, |stream| {
            driver.captured(0, stream, 3, || {
                // SAFETY: the stream is alive.
                unsafe { with_stream(cuda(0), stream, || function.call((&x, &tag, (), 2.0, 9)).map(drop)) }
                    .unwrap()
                    .unwrap();
            });
        });
        assert_eq!(elements::<f32>(&x), [8.0, 16.0, 24.0]);
        assert_eq!(elements::<u8>(&tag), [9, 0, 0, 0, 3, 0]);
    }
}

/// The function gets a `CUlibrary` that the driver knows, in the device's context.
#[test]
fn functions_of_an_image_get_its_library() {
    let Some(driver) = real_devices() else { return };
    // the function, the library's address, and the device
    type Call = (&'static str, usize, DLDevice);
    let calls = Arc::new(Mutex::new(Vec::<Call>::new()));
    let hook = |name: &'static str| {
        let calls = Arc::clone(&calls);
        let called = move |image: Any, device: DLDevice| {
            let library = image.cast::<*mut c_void>().unwrap();
            let module = real::driver().unwrap().module_of(library);
            assert!(!module.is_null());
            calls.lock().unwrap().push((name, library as usize, device));
        };
        registry::set_global(&format!("gpu.on_devices.{name}"), Function::from_typed(called), true).unwrap();
    };
    hook("load");
    hook("unload");
    let text = "launch add grid=n block=1 on_load=gpu.on_devices.load on_unload=gpu.on_devices.unload";
    for engine in engines() {
        let before = driver.current();
        let function = compile_alone(&engine, ADD, text.parse().unwrap(), vec![image("sm_80", 80)]);
        for _ in 0..2 {
            let tensors = vectors(cuda(0), 300);
            call3(&function, &tensors).unwrap();
            assert_eq!(elements::<f32>(&tensors[2]), sums(300));
        }
        drop(function);
        let calls = std::mem::take(&mut *calls.lock().unwrap());
        assert_eq!(calls, [("load", calls[0].1, cuda(0)), ("unload", calls[0].1, cuda(0))]);
        assert_eq!(driver.current(), before);
    }
    for name in ["load", "unload"] {
        registry::remove_global(&format!("gpu.on_devices.{name}"));
    }
}

#[test]
fn attributes_with_values_are_taken() {
    let Some(driver) = real_devices() else { return };
    if driver.capability(0) < 90 {
        eprintln!("skipped: the attributes need compute capability 9.0");
        return;
    }
    for engine in engines() {
        let sizes = |stated: &str| {
            let launch: Launch = format!("launch clusters grid=n block=32 args=[out] {stated}").parse().unwrap();
            let out = on(cuda(0), vec![0_i32; 16], &[16]);
            let called = compile(&engine, &format!("clusters{OUT}"), launch, vec![image("sm_90", 1)]).call((&out,));
            called.map(|_| elements::<i32>(&out)).map_err(|error| error.message().to_owned())
        };
        for (stated, size) in [
            ("cluster=4 cluster_scheduling=spread", 4),
            ("cluster=2 cluster_scheduling=load_balancing", 2),
            ("memory_sync_domain=default", 1),
            ("memory_sync_domain=remote", 1),
            ("shared_memory_carveout=0", 1),
            ("shared_memory_carveout=100 priority=-1", 1),
            ("cluster=2 shared_memory_carveout=50 memory_sync_domain=remote", 2),
        ] {
            assert_eq!(sizes(stated), Ok(vec![size; 16]), "{stated}");
        }
        // this attribute needs compute capability 10.0
        eprintln!("preferred_cluster: {:?}", sizes("cluster=2 preferred_cluster=4"));
    }
}

#[test]
fn an_event_is_recorded() {
    let Some(driver) = real_devices() else { return };
    let signature = format!("{}, event: Optional[int64])", ADD.strip_suffix(')').unwrap());
    for engine in engines() {
        let launch = "launch add grid=n block=1 args=[x, y, z, int64(n)] completion_event=event".parse().unwrap();
        let function = compile(&engine, &signature, launch, vec![image("sm_80", 80)]);
        let [x, y, z] = &vectors(cuda(0), 300);
        driver.with_new_event(|event| function.call((x, y, z, event as usize as i64)).map(drop)).unwrap();
        assert_eq!(elements::<f32>(z), sums(300));
        function.call((x, y, z, ())).unwrap();
    }
}

/// Other tests launch at the same time, so the hook sees more than this test's launches.
#[test]
fn hooks_see_launches_on_a_device() {
    let Some(driver) = real_devices() else { return };
    let (seen, _unset) = (Seen::default(), Unset);
    for engine in engines() {
        let function = add(&engine);
        seen.set();
        let tensors = vectors(cuda(0), 300);
        let launch = driver.with_new_stream(0, |stream| {
            // SAFETY: the stream is alive.
            unsafe { with_stream(cuda(0), stream, || call3(&function, &tensors)) }.unwrap().unwrap();
            format!("add [3, 1, 1] [128, 1, 1] 0 {:#x} cuda:0", stream.addr())
        });
        assert_eq!(elements::<f32>(&tensors[2]), sums(300));
        let seen: Vec<_> = seen.take().into_iter().filter(|line| line.ends_with(&launch)).collect();
        assert_eq!(seen, [format!("enter {launch}"), format!("exit {launch}")]);
    }
}
