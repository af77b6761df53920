//! Explained sequences of launches, compared with the calls that the emitted code makes on the stand-in driver.

use std::collections::{BTreeMap, HashSet};
use std::ffi::c_void;

use tvm_ffi_codegen::explain::{Stage, explain};
use tvm_ffi_codegen::image::Image;
use tvm_ffi_codegen::lower::{LaunchValue, RuntimeHelpers, lower};
use tvm_ffi_codegen::runtime::{Any, DLDevice, Function, registry, with_stream};
use tvm_ffi_codegen::spec::LaunchedSignature;
use tvm_ffi_codegen::{Backend, DLDeviceType, Kernel, OptLevel, Signature, dim};

use super::devices::{elements, on};
use super::engines;
use super::explained::{Call, Sequence, Situation, compare, functions};
use super::launches::{call3, load, vectors};
use super::standin::{Driver, bundle, fatbin, ptx};
use crate::support::allocator;

/// A function that launches, and its calls.
struct Case<'c> {
    signature: Signature,
    kernel: Kernel,
    own_shared: i64,
    /// Calls the function with tensors on a device. Their sizes depend on a number, as the values do.
    call: &'c dyn Fn(&Function, DLDevice, i64) -> Result<(), String>,
    values: &'c dyn Fn(i64) -> BTreeMap<&'static str, i64>,
    size: i64,
    kind: DLDeviceType,
    /// The driver's version.
    version: i32,
}

impl Case<'_> {
    fn explained(&self) -> String {
        explain(&self.signature, &self.kernel, Stage::Launch, Backend::default(), OptLevel::None).unwrap()
    }

    /// Compares calls of the function, by the code of each backend, with the explanation.
    fn check(&self, driver: &Driver, capability: u32) {
        self.check_text(&self.explained(), driver, capability);
    }

    fn check_text(&self, text: &str, driver: &Driver, capability: u32) {
        let head = format!("\n\n{}(", self.signature.name());
        let starts: Vec<usize> = [0].into_iter().chain(text.match_indices(&head).map(|(at, _)| at + 2)).collect();
        let ends = starts.iter().skip(1).copied().chain([text.len()]);
        let sequences: Vec<&str> = starts.iter().zip(ends).map(|(start, end)| text[*start..end].trim_end()).collect();
        let is_cuda = self.kind == DLDeviceType::CUDA;
        for engine in engines() {
            let module = lower(&self.signature, &self.kernel, RuntimeHelpers::Define).unwrap();
            let function = load(&engine, module, &self.signature);
            let mut done = HashSet::new();
            // the first use on a device, then more calls, and another device
            let runs = [(1, -1, true, 0), (1, -1, true, 1), (1, -1, true, 1), (1, 0, true, 1), (1, 1, true, 1)];
            let others = [(1, 0, false, 1), (0, 1, true, 1), (0, 0, true, 0)];
            for (device, current, is_on_null, times) in runs.into_iter().chain(others) {
                driver.reset();
                driver.version(self.version);
                (0..2).for_each(|device| driver.capability(device, capability as i32));
                let (current, size) = (if is_cuda { current } else { driver.hip_device() }, self.size * times);
                driver.make_current(if is_cuda { current } else { -1 });
                let values = (self.values)(size);
                let tells_params = self.version >= 12040;
                let own_shared = self.own_shared;
                let situation =
                    Situation { device, capability, current, is_on_null, tells_params, own_shared, values: &values };
                let mut noted = Vec::new();
                let calls = |text: &&str| Sequence { text, situation }.calls(&mut done, &mut noted);
                let expected: Vec<Call> = sequences.iter().flat_map(calls).collect();
                let on_device = DLDevice::new(self.kind, device);
                let call = || (self.call)(&function, on_device, size);
                // streams of the stand-in have their device's number in the lowest bit
                let stream = (0x1000 + device as usize) as *mut std::ffi::c_void;
                let result = match is_on_null {
                    true => call(),
                    // SAFETY: the stand-in doesn't dereference the address.
                    false => unsafe { with_stream(on_device, stream, call) }.unwrap(),
                };
                result.unwrap();
                compare(text, &expected, &driver.log());
                assert_eq!(expected.is_empty(), times == 0);
            }
            driver.make_current(-1);
        }
    }
}

const TENSOR: &str = "Tensor([n], float32, device=\"cuda\")";

/// A launch of kernel `add` of kernels.c.
fn add(launch: &str, images: Vec<Image>) -> Case<'static> {
    let text = format!("add(x: {TENSOR}, y: {TENSOR}, z: {TENSOR}) @ launch add {launch}");
    Case { call: &|function, device, n| call3(function, &vectors(device, n as usize)), ..case(&text, images) }
}

/// A launch of a kernel of kernels.c. Its only symbol is `n`, which is 20.
fn case(text: &str, images: Vec<Image>) -> Case<'static> {
    let LaunchedSignature { signature, launch } = text.parse().unwrap();
    Case {
        signature,
        kernel: Kernel::launch(launch, images),
        own_shared: 0,
        call: &|_, _, _| Ok(()),
        values: &|n| [("n", n)].into(),
        size: 20,
        kind: DLDeviceType::CUDA,
        version: 12080,
    }
}

fn called<T>(result: Result<T, tvm_ffi_codegen::runtime::Error>) -> Result<(), String> {
    result.map(drop).map_err(|error| error.message().to_owned())
}

#[test]
fn launches_call_the_driver_as_explained() {
    let driver = Driver::cuda();
    let both = || vec![ptx("sm_80", 80), ptx("sm_90", 90)];
    add("grid=ceil_div(n, 8) block=8", both()).check(&driver, 90);
    add("grid=(n, 2, 3) block=(4, 2)", both()).check(&driver, 80);
    // parameters and the kernel's own shared memory are asked for
    let every = "grid=(8, n) block=16 cluster=(2, 1) shared_memory=65536 priority=-3 cooperative \
                 programmatic_dependent_launch non_portable_cluster cluster_scheduling=spread memory_sync_domain=remote";
    let newer = format!("{every} preferred_cluster=(4, 1) shared_memory_carveout=30");
    let compressed = || vec![fatbin(&[("sm_90", 90)], true)];
    add(&newer, compressed()).check(&driver, 90);
    Case { version: 12030, ..add(every, compressed()) }.check(&driver, 90);
    // an event that is a parameter
    for (event, value) in [("handle", 0x3000), ("int64", 0x3000), ("int64", 0)] {
        let text = format!(
            "add(x: {TENSOR}, y: {TENSOR}, z: {TENSOR}, e: {event}) @ launch add grid=n memory_sync_domain=default \
             completion_event=e args=[x, y, z, int64(n)]"
        );
        let call = |function: &Function, device, n: i64| {
            let [x, y, z] = vectors(device, n as usize);
            // SAFETY: the address is never dereferenced.
            let opaque = || unsafe { Any::from_opaque_ptr(value as *mut c_void) };
            called(function.call((&x, &y, &z, if event == "handle" { opaque() } else { Any::from(value) })))
        };
        Case { values: &|n| [("n", n), ("e", value)].into(), call: &call, ..case(&text, both()) }.check(&driver, 90);
    }
    // with what is the kernel's own, the launch's shared memory needs no asking, or does
    let staged = |shared: &str| {
        let text =
            format!("staged(out: {TENSOR}, bytes: int64) @ launch staged grid=n shared_memory={shared} args=[out]");
        Case {
            own_shared: 1024,
            call: &|function, device, n| called(function.call((&on(device, vec![0.0_f32; n as usize], &[n]), 512))),
            values: &|n| [("n", n), ("bytes", 512)].into(),
            size: 2,
            ..case(&text, both())
        }
    };
    for shared in ["bytes", "49152", "48128", "0"] {
        staged(shared).check(&driver, 90);
    }
}

#[test]
fn functions_of_images_are_called_as_explained() {
    let name = "gpu.sequences.hook";
    let hook = Function::from_typed(|_: Any, _: DLDevice| ());
    registry::set_global(name, hook, true).unwrap();
    let driver = Driver::cuda();
    let case = add(&format!("grid=n on_load={name} on_unload={name}"), vec![ptx("sm_80", 80)]);
    assert_eq!(case.explained().matches(&format!("the global function `{name}`\n")).count(), 2, "{}", case.explained());
    case.check(&driver, 90);
    registry::remove_global(name);
}

#[test]
fn globals_are_written_as_explained() {
    for (driver, kind, capability) in
        [(Driver::cuda as fn() -> Driver, DLDeviceType::CUDA, 90), (Driver::hip, DLDeviceType::ROCM, 94)]
    {
        let driver = driver();
        let text = format!(
            "f(x: {TENSOR}, tag: Tensor([6], uint8, device=\"cuda\"), k: int32) @ launch affine_globals grid=n args=[x, tag, int64(n)] \
             globals=[scale=float32(1.5), tag=struct(size=6, align=2, 0: k), bias=null]"
        );
        let (text, image) = match kind {
            DLDeviceType::CUDA => (text, ptx("sm_80", 80)),
            _ => (text.replace("cuda", "rocm"), bundle()),
        };
        let call = |function: &Function, device, n: i64| {
            let x = on(device, vec![1.0_f32; n as usize], &[n]);
            called(function.call((&x, &on(device, vec![0_u8; 6], &[6]), 3)))
        };
        let case = Case { kind, call: &call, values: &|n| [("n", n), ("k", 3)].into(), ..case(&text, vec![image]) };
        assert!(case.explained().contains("tag=struct(size=6, align=2, 0: k): "), "{}", case.explained());
        case.check(&driver, capability);
    }
}

/// Each call of an explanation counts, and their order too.
#[test]
fn other_explanations_are_refused() {
    let driver = Driver::cuda();
    let launch = "grid=(8, n) block=16 cluster=(2, 1) shared_memory=65536 priority=-3 cooperative non_portable_cluster";
    let case = add(launch, vec![fatbin(&[("sm_90", 90)], true)]);
    let text = refuses_others(&case, &driver, 14);
    for (is, other) in [
        ("97:", "96:"),
        ("75 and 76", "76 and 75"),
        ("\"add\"", "\"sum\""),
        ("[8, 8, 8, 8]", "[8, 8, 8]"),
        ("[8, 8, 8, 8]", "[8, 8, 8, 4]"),
        ("8: 65536", "8: 65535"),
        ("grid[0] = 8", "grid[0] = 7"),
        ("grid[1] = n", "grid[1] = n + 1"),
        ("block[0] = 16", "block[0] = 8"),
        ("cluster[0] = 2", "cluster[0] = 4"),
        ("shared_memory = 65536", "shared_memory = 4"),
        (", cooperative", ""),
        ("priority=-3", "priority=-2"),
    ] {
        assert!(text.contains(is), "{is}: {text}");
        refuses(&case, &driver, &text.replace(is, other));
    }
}

/// Checks that an explanation isn't the one of a case.
fn refuses(case: &Case<'_>, driver: &Driver, text: &str) {
    let check = std::panic::AssertUnwindSafe(|| case.check_text(text, driver, 90));
    assert!(std::panic::catch_unwind(check).is_err(), "{text}");
}

/// Checks that each call of a case's explanation counts, and that their order does. There are at least `least` of them.
/// Returns the explanation.
fn refuses_others(case: &Case<'_>, driver: &Driver, least: usize) -> String {
    let text = case.explained();
    let lines: Vec<&str> = text.lines().collect();
    let is_call = |number: usize| number > 0 && lines.get(number).is_some_and(|line| !functions(line).is_empty());
    let refused = |lines: &[&str]| refuses(case, driver, &lines.join("\n"));
    case.check_text(&lines.join("\n"), driver, 90);
    let calls: Vec<usize> = (0..lines.len()).filter(|number| is_call(*number)).collect();
    assert!(calls.len() >= least, "{text}");
    for &number in &calls {
        let mut others = lines.clone();
        others.remove(number);
        refused(&others);
        let indent = |line: &str| line.len() - line.trim_start().len();
        if is_call(number + 1) && indent(lines[number]) == indent(lines[number + 1]) {
            let mut others = lines.clone();
            others.swap(number, number + 1);
            refused(&others);
        }
    }
    text
}

#[test]
fn tensor_maps_and_scratch_memory_are_made_as_explained() {
    let driver = Driver::cuda();
    allocator::install();
    allocator::install_for_devices();
    let tma = "tma(x: Tensor([m, n], float32, device=\"cuda\"), y: Tensor([m, n], float32, device=\"cuda\")) \
               @ launch tma grid=(ceil_div(n, 8), ceil_div(m, 4)) args=[tensor_map(x, box=(4, 8)), y, int32(m), int32(n)]";
    let tma = Case {
        call: &|function, device, n| {
            let [x, y] = [0, 1].map(|_| on(device, vec![0.0_f32; 5 * n as usize], &[5, n]));
            // `malloc` aligns as a tensor map demands
            assert!(n == 0 || (x.as_dl_tensor().data as usize).is_multiple_of(16));
            called(function.call((&x, &y)))
        },
        values: &|n| [("m", 5), ("n", n)].into(),
        size: 12,
        ..case(tma, vec![ptx("sm_90", 90)])
    };
    tma.check(&driver, 90);
    let text = format!(
        "sum(x: {TENSOR}, out: {TENSOR}) @ launch sum grid=n args=[x, out, int64(n), scratch(128, align=128), null]"
    );
    let sum = Case {
        call: &|function, device, n| {
            let live = allocator::live();
            let [x, out] = [1.0_f32, 0.0].map(|value| on(device, vec![value; n as usize], &[n]));
            called(function.call((&x, &out)))?;
            drop([x, out]);
            assert_eq!(allocator::live(), live);
            Ok(())
        },
        size: 3,
        ..case(&text, vec![ptx("sm_80", 80)])
    };
    assert!(sum.explained().contains("scratch(128, align=128): TVMFFIEnvTensorAlloc"), "{}", sum.explained());
    sum.check(&driver, 90);
}

/// The image that is loaded is the first of the explanation that is for the device.
#[test]
fn the_explained_image_is_loaded() {
    let driver = Driver::cuda();
    for (capability, expected) in [(80, 80), (90, 901), (75, 70)] {
        let text = "which(out: Tensor([n], int32, device=\"cuda\")) @ launch which grid=n args=[out]";
        let call = move |function: &Function, device, n| {
            let out = on(device, vec![0_i32; n as usize], &[n]);
            called(function.call((&out,)))?;
            assert!(elements::<i32>(&out).first().is_none_or(|which| *which == expected));
            Ok(())
        };
        let images = vec![ptx("sm_70", 70), ptx("sm_90a", 901), ptx("sm_80", 80)];
        let bytes = |which: usize| images[which].bytes().len();
        let case = Case { call: &call, size: 1, ..case(text, images.clone()) };
        let order = format!(
            "\n  for 9.0 alone: cuLibraryLoadData of {} bytes\n  for 8.0 and later: cuLibraryLoadData of {} bytes\n  \
             for 7.0 and later: cuLibraryLoadData of {} bytes\n",
            bytes(1),
            bytes(2),
            bytes(0)
        );
        assert!(case.explained().contains(&order), "{}", case.explained());
        case.check(&driver, capability);
    }
}

/// The launches of a body share what is done once. The second knows a value of the body.
#[test]
fn the_launches_of_a_body_call_the_driver_as_explained() {
    let driver = Driver::cuda();
    let text = format!(
        "add(x: {TENSOR}, y: {TENSOR}, z: {TENSOR}) @ launch add grid=ceil_div(n, 8) block=8 args=[x, y, z, int64(n)]"
    );
    let LaunchedSignature { signature, launch } = text.parse().unwrap();
    let kernel = Kernel::body(move |b| {
        let twice = LaunchValue::from(b.dim("n") * 2);
        b.launch(launch.clone(), [ptx("sm_80", 80)]);
        b.launch_with(launch.clone().grid([dim("m")]), [ptx("sm_80", 80)], [("m", twice)]);
    });
    let case = Case {
        signature,
        kernel,
        values: &|n| [("n", n), ("m", 2 * n)].into(),
        ..add("grid=1", vec![ptx("sm_80", 80)])
    };
    let explained = case.explained();
    assert_eq!(explained.matches("each call:").count(), 2, "{explained}");
    assert!(explained.contains("m: int64") && explained.contains("grid=m"), "{explained}");
    case.check(&driver, 90);
}

/// A graph has the launches before it as nodes, with their attributes. All of its launches happen, or none.
#[test]
fn graphs_call_the_driver_as_explained() {
    let driver = Driver::cuda();
    let kernel = Kernel::text(
        "{
          graph {
            launch add grid=2 * n block=8 cluster=2 cooperative args=[x, y, z, int64(n)];
            launch add grid=(n, 2) block=16 cooperative priority=-3 args=[x, y, z, int64(n)];
          }
        }",
        [("k", ptx("sm_90", 90))],
    );
    let case = Case { kernel: kernel.unwrap(), ..add("grid=1", vec![ptx("sm_90", 90)]) };
    let text = refuses_others(&case, &driver, 20);
    assert!(text.contains(" @ graph of add, add\n"), "{text}");
    for (is, other) in [
        ("grid[0] = 2 * n", "grid[0] = n"),
        ("block[0] = 16", "block[0] = 8"),
        (", priority=-3", ""),
        ("graph of add, add", "graph of add, sum"),
    ] {
        assert!(text.contains(is), "{is}: {text}");
        refuses(&case, &driver, &text.replace(is, other));
    }
}

#[test]
fn hip_is_called_as_explained() {
    let driver = Driver::hip();
    for launch in ["grid=ceil_div(n, 8) block=8", "grid=(4, n) block=(2, 2) shared_memory=512 cooperative"] {
        let text = format!("add(x: {TENSOR}, y: {TENSOR}, z: {TENSOR}) @ launch add {launch}").replace("cuda", "rocm");
        let case = Case { kind: DLDeviceType::ROCM, call: add("grid=1", vec![]).call, ..case(&text, vec![bundle()]) };
        case.check(&driver, 94);
    }
    // a graph launches singly
    let text = format!("add(x: {TENSOR}, y: {TENSOR}, z: {TENSOR}) @ launch add grid=1").replace("cuda", "rocm");
    let launches = "{ graph { launch add grid=n block=8; launch add grid=ceil_div(n, 8) block=16; } }";
    let kernel = Kernel::text(launches, [("k", bundle())]).unwrap();
    let graph =
        Case { kernel, kind: DLDeviceType::ROCM, call: add("grid=1", vec![]).call, ..case(&text, vec![bundle()]) };
    graph.check(&driver, 94);
    for (is, other) in [("grid[0] = n,", "grid[0] = n + 1,"), ("\n  hipModuleLaunchKernel\n", "\n  hipSetDevice\n")] {
        let text = graph.explained();
        assert!(text.contains(is), "{is}: {text}");
        let check = std::panic::AssertUnwindSafe(|| graph.check_text(&text.replace(is, other), &driver, 94));
        assert!(std::panic::catch_unwind(check).is_err(), "{is}");
    }
}
