//! The driver calls of graphs that the stand-in logs: streams, captures, failures, drivers without graphs, threads.

use std::ffi::c_void;
use std::sync::Barrier;
use std::thread;

use tvm_ffi_codegen::runtime::{Any, DLDevice, Function, with_stream};
use tvm_ffi_codegen::{DLDeviceType, Engine, Kernel};

use super::devices::{cuda, elements};
use super::engines;
use super::graphs::{CHAIN, GRAPH, call, chain, compile, compile_alone, tensors};
use super::launches::launch_of_add;
use super::standin::{Driver, bundle, ptx};
use crate::support::sig;

/// The driver's functions that only graphs need.
const FUNCTIONS: [&str; 11] = [
    "cuStreamIsCapturing",
    "cuGraphCreate",
    "cuGraphAddKernelNode",
    "cuGraphKernelNodeSetAttribute",
    "cuGraphAddDependencies",
    "cuGraphInstantiateWithFlags",
    "cuGraphExecKernelNodeSetParams",
    "cuGraphNodeSetEnabled",
    "cuGraphLaunch",
    "cuGraphExecDestroy",
    "cuGraphDestroy",
];

/// Single launches of all kernels.
const SINGLE: [&str; 3] = [
    "cuLaunchKernelEx(grid 3 1 1, block 128 1 1, shared 0, device 0)",
    "cuLaunchKernelEx(grid 5 1 1, block 64 1 1, shared 0, device 0)",
    "cuLaunchKernelEx(grid 3 1 1, block 128 1 1, shared 0, device 0)",
];

/// A stream of the stand-in, with its device's number in the lowest bit.
fn stream(number: usize) -> *mut c_void {
    number as *mut c_void
}

/// Runs `f` while the environment has a stream.
fn on_stream<R>(number: usize, f: impl FnOnce() -> R) -> R {
    // SAFETY: the stand-in doesn't dereference the address.
    unsafe { with_stream(cuda((number & 1) as i32), stream(number), f) }.unwrap()
}

#[test]
fn a_driver_without_a_function_of_graphs_gets_single_launches() {
    let driver = Driver::cuda();
    for engine in engines() {
        for lacking in FUNCTIONS {
            driver.reset();
            driver.lacks(lacking);
            let function = compile_alone(&engine, &chain());
            for _ in 0..2 {
                call(&function, cuda(0), (300, 1.0), true, 300).unwrap();
            }
            assert_eq!(driver.calls_of("cuLaunchKernelEx"), [SINGLE, SINGLE].concat(), "{lacking}");
            assert_eq!(driver.calls_of("cuGraph").len() + driver.calls_of("cuStream").len(), 0, "{}", driver.log());
            drop(function);
            assert_eq!((driver.graphs(), driver.libraries(), driver.retained(0)), (0, 0, 0));
        }
    }
}

/// Launches of a library without graphs look up none of their functions.
#[test]
fn only_libraries_with_graphs_look_their_functions_up() {
    let driver = Driver::cuda();
    let looked_up = |name: &str| driver.calls_of(&format!("cuGetProcAddress_v2({name},")).len();
    let plain = Kernel::text(&GRAPH.replacen("graph {", "if True {", 1), [("k", ptx("sm_80", 80))]).unwrap();
    for engine in engines() {
        for (kernel, count) in [(plain.clone(), 0), (chain(), 1)] {
            driver.reset();
            call(&compile_alone(&engine, &kernel), cuda(0), (300, 1.0), true, 300).unwrap();
            assert_eq!(looked_up("cuLaunchKernelEx"), 1);
            FUNCTIONS.iter().for_each(|name| assert_eq!(looked_up(name), count, "{name}"));
        }
    }
}

/// Makes each driver call fail, one after the other, that a call makes after `before`. The error names the failing
/// call, and nothing is left behind. The next call does all that is missing.
fn fail_each(
    driver: &Driver,
    engine: &Engine,
    before: &dyn Fn(&Function),
    call: &dyn Fn(&Function) -> Result<(), String>,
) -> usize {
    let ready = || {
        driver.reset();
        let function = compile_alone(engine, &chain());
        before(&function);
        (driver.log(), function)
    };
    let (begin, function) = ready();
    call(&function).unwrap();
    let log = driver.log();
    drop(function);
    let calls: Vec<&str> = log[begin.len()..].lines().collect();
    let mut names = 0;
    for (number, line) in (1..).zip(&calls) {
        // a driver may lack these, and a call that releases something at the end has no caller to report errors to
        let is_optional =
            FUNCTIONS.iter().chain(&["cuKernelGetParamInfo"]).any(|name| line.contains(&format!("({name},")));
        if is_optional {
            continue;
        }
        names += 1;
        let (_, function) = ready();
        driver.fail(number, 2);
        let error = call(&function).unwrap_err();
        let name = line.split(['(', ' ']).next().unwrap();
        let of = if error.contains(" launch a graph ") { "a graph" } else { "kernel `add`" };
        assert!(error.starts_with(&format!("RuntimeError: Cannot launch {of} when calling: `chain(")), "{error}");
        let expected = match name {
            "cuGetProcAddress_v2" => "the CUDA driver is too old, as it has no `cu".to_owned(),
            _ => format!("`{name}` failed with CUDA_ERROR_OUT_OF_MEMORY (2), out of memory"),
        };
        assert!(error.contains(&expected), "{expected}\n{error}\n{}", driver.log());
        assert_eq!((driver.depth(), driver.unbalanced()), (0, 0), "after {name}");
        driver.fail(0, 0);
        call(&function).unwrap();
        drop(function);
        assert_eq!((driver.graphs(), driver.libraries(), driver.retained(0)), (0, 0, 0), "after {name}");
    }
    names
}

/// Each call of the driver fails in turn: in a first call, in one that adds a launch between two others, in one that
/// disables launches, and in single launches.
#[test]
fn every_call_of_a_graph_may_fail() {
    let driver = Driver::cuda();
    for engine in engines() {
        let all = |function: &Function| call(function, cuda(0), (300, 1.0), true, 300);
        let some = |function: &Function| call(function, cuda(0), (300, 1.0), false, 300);
        let one = |function: &Function| call(function, cuda(0), (300, 1.0), false, 0);
        let captured = |function: &Function| {
            driver.capture(1);
            let called = all(function);
            driver.capture(0);
            called
        };
        assert!(fail_each(&driver, &engine, &|_| {}, &all) > 40);
        // with contexts, the question for a capture, the new node, its edge and the graphs
        assert_eq!(fail_each(&driver, &engine, &|function| some(function).unwrap(), &all), 12);
        assert_eq!(fail_each(&driver, &engine, &|function| all(function).unwrap(), &one), 8);
        assert_eq!(fail_each(&driver, &engine, &|function| all(function).unwrap(), &captured), 16);
    }
}

#[test]
fn errors_of_a_graph_tell_the_launch_or_the_graph() {
    let driver = Driver::cuda();
    for engine in engines() {
        for (name, of) in [
            ("cuGraphAddKernelNode", "kernel `add`"),
            ("cuGraphExecKernelNodeSetParams", "kernel `add`"),
            ("cuGraphLaunch", "a graph"),
            ("cuStreamIsCapturing", "a graph"),
        ] {
            driver.reset();
            driver.fail_name(name, 719);
            let error = call(&compile(&engine), cuda(1), (300, 1.0), true, 300).unwrap_err();
            let expected = format!(
                "RuntimeError: Cannot launch {of} when calling: `{CHAIN}`: `{name}` failed with \
                 CUDA_ERROR_LAUNCH_FAILED (719), unspecified launch failure, on cuda:1"
            );
            assert_eq!(error, expected);
        }
        // a launch that goes out singly tells its configuration
        driver.reset();
        driver.lacks("cuGraphLaunch");
        driver.fail_name("cuLaunchKernelEx", 719);
        let error = call(&compile_alone(&engine, &chain()), cuda(1), (300, 1.0), true, 300).unwrap_err();
        assert!(
            error.ends_with(
                "; grid (3, 1, 1), block (128, 1, 1), 0 bytes of dynamic shared memory, stream 0, on cuda:1"
            )
        );
        assert_eq!(driver.calls_of("cuLaunch").len(), 1);
    }
}

/// While its stream is captured, a graph's launches become nodes of the capture, whether the graph is built already or
/// not. The graph stays as it was.
#[test]
fn a_captured_stream_takes_the_launches_of_a_graph() {
    let driver = Driver::cuda();
    for engine in engines() {
        for is_built in [true, false] {
            driver.reset();
            let first_use = Kernel::prepare([&Kernel::launch(launch_of_add(), [ptx("sm_80", 80)])]);
            let functions = [(sig(CHAIN), chain()), (sig("prepare(device: device)"), first_use)];
            let functions = functions.iter().map(|(signature, kernel)| (signature, kernel));
            // SAFETY: the kernels have these parameters.
            let module = unsafe { engine.compile_module(functions) }.unwrap();
            let function = |name: &str| module.get_function(name).unwrap().unwrap();
            let (function, prepare) = (function("chain"), function("prepare"));
            let call = |scale| on_stream(0x1000, || call(&function, cuda(0), (300, scale), true, 300));
            match is_built {
                true => call(1.0).unwrap(),
                false => drop(prepare.call((cuda(0),)).unwrap()),
            }
            assert_eq!(driver.graphs(), if is_built { 2 } else { 0 });
            driver.reset();
            let [x, y, z, w] = tensors(cuda(0), 300, 2.0);
            driver.begin_capture(stream(0x1000));
            on_stream(0x1000, || function.call((&x, &y, &z, &w, true, 300))).unwrap();
            assert_eq!(elements::<f32>(&w), vec![-1.0; 300]);
            // another stream isn't captured
            on_stream(0x2000, || super::graphs::call(&function, cuda(0), (300, 3.0), false, 300)).unwrap();
            assert_eq!(driver.end_capture(), 3, "{}", driver.log());
            assert_eq!(driver.calls_of("cuLaunchKernelEx"), SINGLE);
            let doubled: Vec<f32> = (0..300).map(|i| 4.0 * i as f32 + 3.0).collect();
            driver.replay();
            assert_eq!(elements::<f32>(&w), doubled);
            driver.reset();
            call(4.0).unwrap();
            assert_eq!(driver.calls_of("cuGraphLaunch"), ["cuGraphLaunch(add, add, add)"]);
            assert_eq!(driver.calls_of("cuLaunch"), [""; 0]);
            // the graph has other arguments now, and the capture has its own
            driver.replay();
            assert_eq!(elements::<f32>(&w), doubled);
        }
    }
}

/// The legacy stream can't be used while another stream is captured.
#[test]
fn the_default_stream_beside_a_captured_one_is_an_error() {
    let driver = Driver::cuda();
    for engine in engines() {
        driver.reset();
        let function = compile(&engine);
        call(&function, cuda(0), (300, 1.0), true, 300).unwrap();
        driver.begin_capture(stream(0x1000));
        let error = call(&function, cuda(0), (300, 1.0), true, 300).unwrap_err();
        driver.end_capture();
        assert!(error.contains("`cuStreamIsCapturing` failed with an unknown error (906)"), "{error}");
        call(&function, cuda(0), (300, 1.0), true, 300).unwrap();
    }
}

/// The streams of the environment, a stated one, and the default one.
#[test]
fn a_graph_is_launched_on_its_stream() {
    let driver = Driver::cuda();
    let signature = CHAIN.replace("m: int64)", "m: int64, stream: Stream = None)");
    let stated =
        GRAPH.replace("int64(n)];", "int64(n)] stream=stream;").replace("int64(m)];", "int64(m)] stream=stream;");
    let opaque = |address: usize| {
        // SAFETY: the stand-in doesn't dereference the address.
        unsafe { Any::from_opaque_ptr(stream(address)) }
    };
    for engine in engines() {
        let compile = |text: &str| {
            let kernel = Kernel::text(text, [("k", ptx("sm_80", 80))]).unwrap();
            // SAFETY: the kernels have these parameters.
            unsafe { engine.compile(&sig(&signature), &kernel) }.unwrap()
        };
        let (environments, stated) = (compile(GRAPH), compile(&stated));
        for (function, passed, expected) in [
            (&environments, Any::from(()), 0x1001),
            (&environments, opaque(0x2001), 0x1001),
            (&stated, ().into(), 0x1001),
            (&stated, opaque(0x2001), 0x2001),
            (&stated, (0x2001_i64).into(), 0x2001),
            // the default stream, not the environment's
            (&stated, (0_i64).into(), 0),
            (&stated, opaque(0), 0),
            (&stated, (2_i64).into(), 2),
        ] {
            for _ in 0..2 {
                driver.reset();
                let [x, y, z, w] = tensors(cuda(1), 300, 1.0);
                on_stream(0x1001, || function.call((&x, &y, &z, &w, true, 300, passed.clone()))).unwrap();
                assert_eq!(elements::<f32>(&w), (0..300).map(|i| 2.0 * i as f32 + 3.0).collect::<Vec<_>>());
                assert_eq!(driver.stream(), expected);
                assert_eq!(driver.calls_of("cuGraphLaunch").len(), 1, "{}", driver.log());
                assert_eq!((driver.depth(), driver.current()), (0, -1));
            }
        }
        // a thread whose device is current needs no change of it
        driver.make_current(1);
        driver.reset();
        let [x, y, z, w] = tensors(cuda(1), 300, 1.0);
        stated.call((&x, &y, &z, &w, true, 300, 0)).unwrap();
        assert_eq!(driver.calls_of("cuCtx"), ["cuCtxGetCurrent"]);
        driver.make_current(-1);
    }
}

#[test]
fn attributes_are_those_of_the_nodes() {
    let driver = Driver::cuda();
    let text = GRAPH.replacen(
        "grid=ceil_div(n, 128) block=128",
        "grid=2 * ceil_div(n, 256) block=128 cluster=2 preferred_cluster=4 cooperative priority=-3 \
         cluster_scheduling=spread memory_sync_domain=remote",
        1,
    );
    let text = text.replace("block=64", "block=64 priority=5");
    for engine in engines() {
        driver.reset();
        let kernel = Kernel::text(&text, [("k", ptx("sm_90", 90))]).unwrap();
        // SAFETY: the kernels have these parameters.
        let function = unsafe { engine.compile(&sig(CHAIN), &kernel) }.unwrap();
        for _ in 0..2 {
            // four blocks, which the preferred cluster divides
            call(&function, cuda(1), (512, 1.0), true, 300).unwrap();
        }
        assert_eq!(
            driver.calls_of("cuGraphKernelNodeSetAttribute"),
            [
                "cuGraphKernelNodeSetAttribute(attribute 4 = 2 1 1)",
                "cuGraphKernelNodeSetAttribute(attribute 11 = 4 1 1)",
                "cuGraphKernelNodeSetAttribute(attribute 2 = 1)",
                "cuGraphKernelNodeSetAttribute(attribute 8 = -3)",
                "cuGraphKernelNodeSetAttribute(attribute 5 = 1)",
                "cuGraphKernelNodeSetAttribute(attribute 10 = 1)",
                "cuGraphKernelNodeSetAttribute(attribute 8 = 5)",
            ]
        );
    }
}

/// Threads that launch one graph at the same time: one has the graph, and the others launch singly.
#[test]
fn threads_share_a_graph() {
    let driver = Driver::cuda();
    for engine in engines() {
        driver.reset();
        let function = compile(&engine);
        let (threads, turns) = (8, 40);
        let start = Barrier::new(threads);
        thread::scope(|scope| {
            for thread in 0..threads {
                let (function, start) = (&function, &start);
                scope.spawn(move || {
                    start.wait();
                    for turn in 0..turns {
                        let scale = (thread * turns + turn) as f32;
                        let device = cuda((turn % 2) as i32);
                        call(function, device, (100 + thread, scale), turn % 3 == 0, 50 * (turn % 3)).unwrap();
                    }
                });
            }
        });
        let graphs = driver.calls_of("cuGraphLaunch").len();
        assert!(graphs > 0 && graphs <= threads * turns, "{graphs}");
        drop(function);
        assert_eq!((driver.graphs(), driver.libraries()), (0, 0));
    }
}

/// Nothing of a graph is left when its library is unloaded, nor is a driver that has shut down an error.
#[test]
fn graphs_end_with_their_library() {
    let driver = Driver::cuda();
    for engine in engines() {
        driver.reset();
        let function = compile(&engine);
        for device in [0, 1, 0] {
            call(&function, cuda(device), (300, 1.0), true, 300).unwrap();
        }
        assert_eq!(driver.graphs(), 4);
        drop(function);
        // graphs go before the images whose kernels they have
        let ends: Vec<String> = driver
            .log()
            .lines()
            .filter(|call| call.contains("Destroy") || call.contains("Unload"))
            .map(str::to_owned)
            .collect();
        let both = ["cuGraphExecDestroy", "cuGraphDestroy"];
        assert_eq!(ends, [&both[..], &both, &["cuLibraryUnload"]].concat());
        let function = compile(&engine);
        call(&function, cuda(0), (300, 1.0), true, 300).unwrap();
        driver.deinitialise(1);
        drop(function);
        driver.deinitialise(0);
    }
}

/// HIP's launches go out singly, where the graph ends.
#[test]
fn hip_launches_singly() {
    let driver = Driver::hip();
    let signature = CHAIN.replace("cuda", "rocm");
    for engine in engines() {
        for (cooperative, name) in [("", "hipModuleLaunchKernel"), (" cooperative", "hipModuleLaunchCooperativeKernel")]
        {
            driver.reset();
            let text = GRAPH.replace("block=128", &format!("block=128{cooperative}"));
            let kernel = Kernel::text(&text, [("k", bundle())]).unwrap();
            // SAFETY: the kernels have these parameters.
            let function = unsafe { engine.compile(&sig(&signature), &kernel) }.unwrap();
            let device = DLDevice::new(DLDeviceType::ROCM, 1);
            for double in [true, false] {
                driver.reset();
                call(&function, device, (300, 1.0), double, 300).unwrap();
                assert_eq!(
                    driver.calls_of(name).len(),
                    if cooperative.is_empty() { 2 + usize::from(double) } else { 2 }
                );
            }
            assert_eq!(driver.hip_device(), 0);
        }
    }
}
