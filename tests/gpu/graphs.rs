//! Graphs of a body's launches: their results, on the stand-in or on real devices.

use tvm_ffi_codegen::lower::{RuntimeHelpers, lower};
use tvm_ffi_codegen::runtime::{DLDevice, Function, Tensor};
use tvm_ffi_codegen::spec::{KernelArg, Launch, ScalarType};
use tvm_ffi_codegen::{Engine, HostProgram, Kernel, dim};

use super::devices::{Devices, elements, image, on};
use super::engines;
use super::launches::load;
use crate::support::sig;
use crate::support::text::reads_back;

/// Kernels whose order matters: each reads what the one before it has written.
pub const CHAIN: &str = "chain(x: Tensor([n], float32, device=\"cuda\"), y: Tensor([n], float32, device=\"cuda\"), \
                         z: Tensor([n], float32, device=\"cuda\"), w: Tensor([n], float32, device=\"cuda\"), \
                         double: bool, m: int64)";
/// z = x + y; if wanted, z = z + z; then the first m elements of w are z + y.
pub const GRAPH: &str = "{
  graph {
    launch add grid=ceil_div(n, 128) block=128 args=[x, y, z, int64(n)];
    if double {
      launch add grid=ceil_div(n, 64) block=64 args=[z, z, z, int64(n)];
    }
    launch add grid=ceil_div(m, 128) block=128 args=[z, y, w, int64(m)];
  }
}";

pub fn chain() -> Kernel {
    Kernel::text(GRAPH, [("kernels", image("sm_80", 80))]).unwrap()
}

pub fn compile(engine: &Engine) -> Function {
    // SAFETY: the kernels have these parameters.
    unsafe { engine.compile(&sig(CHAIN), &chain()) }.unwrap()
}

/// The function with its own helpers, so it looks up the driver anew.
pub fn compile_alone(engine: &Engine, kernel: &Kernel) -> Function {
    let signature = sig(CHAIN);
    load(engine, lower(&signature, kernel, RuntimeHelpers::Define).unwrap(), &signature)
}

/// The tensors of a call.
pub fn tensors(device: DLDevice, n: usize, scale: f32) -> [Tensor; 4] {
    let x: Vec<f32> = (0..n).map(|i| scale * i as f32).collect();
    [x, vec![1.0; n], vec![0.0; n], vec![-1.0; n]].map(|elements| on(device, elements, &[n as i64]))
}

/// Calls the function, and compares what its kernels have written.
pub fn call(
    function: &Function,
    device: DLDevice,
    (n, scale): (usize, f32),
    double: bool,
    m: usize,
) -> Result<(), String> {
    let [x, y, z, w] = tensors(device, n, scale);
    let called = function.call((&x, &y, &z, &w, double, m as i64));
    called.map_err(|error| format!("{}: {}", error.kind(), error.message()))?;
    let sum = |i: usize| (scale * i as f32 + 1.0) * if double { 2.0 } else { 1.0 };
    assert_eq!(elements::<f32>(&z), (0..n).map(sum).collect::<Vec<_>>());
    let last = (0..n).map(|i| if i < m { sum(i) + 1.0 } else { -1.0 });
    assert_eq!(elements::<f32>(&w), last.collect::<Vec<_>>());
    Ok(())
}

#[test]
fn a_graph_is_replayed_with_other_arguments() {
    let devices = Devices::cuda();
    for engine in engines() {
        devices.reset();
        let function = compile(&engine);
        devices.assert_calls(0);
        let device = devices.device(0);
        call(&function, device, (300, 1.0), true, 300).unwrap();
        devices.assert_calls_of("cuLaunch", &[]);
        devices.assert_calls_of(
            "cuGraph",
            &[
                "cuGraphCreate",
                "cuGraphAddKernelNode(add, grid 3 1 1, block 128 1 1, shared 0)",
                "cuGraphAddKernelNode(add, grid 5 1 1, block 64 1 1, shared 0, behind 0)",
                "cuGraphAddKernelNode(add, grid 3 1 1, block 128 1 1, shared 0, behind 1)",
                "cuGraphInstantiateWithFlags(3)",
                "cuGraphExecKernelNodeSetParams(add, grid 3 1 1, block 128 1 1, shared 0)",
                "cuGraphExecKernelNodeSetParams(add, grid 5 1 1, block 64 1 1, shared 0)",
                "cuGraphExecKernelNodeSetParams(add, grid 3 1 1, block 128 1 1, shared 0)",
                "cuGraphLaunch(add, add, add)",
            ],
        );
        devices.reset();
        call(&function, device, (500, 2.0), true, 129).unwrap();
        devices.assert_calls_of(
            "cu",
            &[
                "cuCtxGetCurrent",
                "cuCtxPushCurrent(0)",
                "cuStreamIsCapturing",
                "cuGraphExecKernelNodeSetParams(add, grid 4 1 1, block 128 1 1, shared 0)",
                "cuGraphExecKernelNodeSetParams(add, grid 8 1 1, block 64 1 1, shared 0)",
                "cuGraphExecKernelNodeSetParams(add, grid 2 1 1, block 128 1 1, shared 0)",
                "cuGraphLaunch(add, add, add)",
                "cuCtxPopCurrent",
            ],
        );
        devices.assert_held(1, [1, 0]);
        drop(function);
        devices.assert_held(0, [0, 0]);
    }
}

/// Launches under conditions and launches of empty grids come and go. A launch that happens for the first time gets its
/// place among those that the graph has.
#[test]
fn launches_of_a_graph_may_not_happen() {
    let devices = Devices::cuda();
    let all = [(true, 200), (true, 0), (false, 200), (false, 0)];
    for engine in engines() {
        for first in all {
            devices.reset();
            let function = compile(&engine);
            for (double, m) in [first].into_iter().chain(all).chain(all.into_iter().rev()) {
                for number in 0..2 {
                    call(&function, devices.device(number), (200, 0.5), double, m).unwrap();
                }
            }
            // a call without elements launches nothing
            call(&function, devices.device(0), (0, 1.0), true, 0).unwrap();
        }
    }
}

#[test]
fn a_node_is_changed_only_when_its_launch_is() {
    let devices = Devices::cuda();
    for engine in engines() {
        devices.reset();
        let function = compile(&engine);
        let device = devices.device(0);
        let calls = |double: bool, m: usize, expected: &[&str]| {
            devices.reset();
            call(&function, device, (100, 1.0), double, m).unwrap();
            let Some(driver) = &devices.standin else { return };
            let changes = driver.calls_of("cuGraph").into_iter().filter(|call| !call.contains("SetParams"));
            let changes: Vec<String> = changes.map(|call| call.replace(", block 128 1 1, shared 0", "")).collect();
            assert_eq!(changes, expected, "{}", driver.log());
        };
        let first = ["cuGraphCreate", "cuGraphAddKernelNode(add, grid 1 1 1)", "cuGraphInstantiateWithFlags(1)"];
        calls(false, 0, &[&first[..], &["cuGraphLaunch(add)"]].concat());
        calls(false, 0, &["cuGraphLaunch(add)"]);
        // the last launch is added, then the one in the middle
        let last = ["cuGraphAddKernelNode(add, grid 1 1 1, behind 0)", "cuGraphExecDestroy"];
        calls(false, 100, &[&last[..], &["cuGraphInstantiateWithFlags(2)", "cuGraphLaunch(add, add)"]].concat());
        let middle = "cuGraphAddKernelNode(add, grid 2 1 1, block 64 1 1, shared 0, behind 0)";
        let middle = [middle, "cuGraphAddDependencies(2, 1)", "cuGraphExecDestroy", "cuGraphInstantiateWithFlags(3)"];
        // the last launch has a node, and doesn't happen
        calls(true, 0, &[&middle[..], &["cuGraphNodeSetEnabled(1, 0)", "cuGraphLaunch(add, add)"]].concat());
        calls(true, 0, &["cuGraphLaunch(add, add)"]);
        calls(false, 0, &["cuGraphNodeSetEnabled(2, 0)", "cuGraphLaunch(add)"]);
        let both = ["cuGraphNodeSetEnabled(2, 1)", "cuGraphNodeSetEnabled(1, 1)", "cuGraphLaunch(add, add, add)"];
        calls(true, 100, &both);
    }
}

/// A graph in a loop is one graph, with other launches in each turn. An error inside of it launches nothing, and leaves
/// nothing for the next turn.
#[test]
fn a_graph_in_a_loop_begins_anew_in_each_turn() {
    let devices = Devices::cuda();
    let signature = "sum(x: Tensor([n], float32, device=\"cuda\"), z: Tensor([n], float32, device=\"cuda\"), \
                     turns: int64, wrong: int64) -> int64";
    // each turn adds x to z, and even turns add x twice more
    let text = "{
      for i in range(0, turns) with failed = 0 {
        var error;
        try {
          let threads = if i == wrong { 1025 } else { 128 };
          graph {
            match i % 2 {
              0 => {
                launch add grid=ceil_div(n, 128) block=128 args=[x, z, z, int64(n)];
                launch add grid=ceil_div(n, 64) block=64 args=[x, z, z, int64(n)];
              }
              _ => { let unused = i; }
            }
            launch add grid=ceil_div(n, 128) block=threads args=[x, z, z, int64(n)];
          }
        } catch e {
          error = e;
        }
        continue failed + (if error is None { 0 } else { 1 });
      }
      return failed;
    }";
    let kernel = Kernel::text(text, [("kernels", image("sm_80", 80))]).unwrap();
    for engine in engines() {
        devices.reset();
        // SAFETY: the kernels have these parameters.
        let function = unsafe { engine.compile(&sig(signature), &kernel) }.unwrap();
        let device = devices.device(0);
        // without the turn that fails, whichever it is
        for (turns, wrong, added) in [(1, -1, 3), (4, -1, 8), (5, 0, 8), (5, 1, 10), (0, 0, 0)] {
            let x: Vec<f32> = (0..300).map(|i| i as f32).collect();
            let sums: Vec<f32> = x.iter().map(|x| x * added as f32).collect();
            let [x, z] = [x, vec![0.0; 300]].map(|elements| on(device, elements, &[300]));
            let failed: i64 = function.call((&x, &z, turns, wrong)).unwrap().cast().unwrap();
            assert_eq!(
                (failed, elements::<f32>(&z)),
                (i64::from(wrong >= 0 && wrong < turns), sums),
                "{turns}, {wrong}"
            );
        }
        devices.assert_calls_of("cuLaunch", &[]);
        devices.assert_calls_of("cuGraphCreate", &["cuGraphCreate"]);
    }
}

/// The tensor maps of a graph's launches lie beside each other until the graph is launched.
#[test]
fn launches_of_a_graph_have_tensor_maps_of_their_own() {
    let devices = Devices::cuda();
    let matrix = "Tensor([m, n], float32, device=\"cuda\")";
    let signature = format!("tma(x: {matrix}, y: {matrix}, z: {matrix})");
    let launch = |from: &str, to: &str| {
        format!(
            "launch tma grid=(ceil_div(n, 8), ceil_div(m, 4)) \
             args=[tensor_map({from}, box=(4, 8)), {to}, int32(m), int32(n)];"
        )
    };
    let text = format!("{{ graph {{ {} {} }} }}", launch("x", "y"), launch("y", "z"));
    let kernel = Kernel::text(&text, [("kernels", image("sm_90", 90))]).unwrap();
    for engine in engines() {
        devices.reset();
        // SAFETY: the kernels have these parameters.
        let function = unsafe { engine.compile(&sig(&signature), &kernel) }.unwrap();
        for size in [8, 12] {
            let x: Vec<f32> = (0..5 * size).map(|i| i as f32).collect();
            let zeros = vec![0.0; x.len()];
            let all = [x.clone(), zeros.clone(), zeros].map(|elements| on(devices.device(1), elements, &[5, size]));
            function.call((&all[0], &all[1], &all[2])).unwrap();
            all.iter().for_each(|tensor| assert_eq!(elements::<f32>(tensor), x));
        }
        devices.assert_calls_of("cuGraphLaunch", &["cuGraphLaunch(tma, tma)"; 2]);
    }
}

/// Launches that can't be part of a graph.
#[test]
fn launches_of_graphs_have_limits() {
    let signature = CHAIN.replace("m: int64)", "m: int64, a: Stream, b: Stream, e: handle)");
    let text = "{
      graph {
        launch add grid=n block=128 args=[x, y, z, int64(n)] stream=a;
        launch add grid=n block=128 args=[x, y, z, int64(n)] stream=b;
        launch add grid=n block=128 args=[x, y, z, int64(n)];
        launch add grid=n block=128 args=[x, y, z, int64(n)] stream=a cluster=m;
        launch add grid=n block=128 args=[x, y, z, int64(n)] stream=a preferred_cluster=(2, n);
        launch sum grid=n args=[x, y, int64(n), scratch(128), null] stream=a;
        launch add grid=n block=128 args=[x, y, z, int64(n)] stream=a programmatic_dependent_launch shared_memory_carveout=50;
        launch add grid=n block=128 args=[x, y, z, int64(n)] stream=a completion_event=e;
        launch add grid=n block=128 args=[x, y, z, int64(n)] stream=a globals=[factor=int64(n)];
      }
    }";
    let kernel = Kernel::text(text, [("kernels", image("sm_90", 90))]).unwrap();
    let error = lower(&sig(&signature), &kernel, RuntimeHelpers::Import).unwrap_err().to_string();
    let found: Vec<&str> = error.lines().filter(|line| line.contains("launch of")).collect();
    let expected = [
        "line 4: launch of `add`: states stream=b, and a launch before it in the graph stream=a",
        "line 5: launch of `add`: states no stream, and a launch before it in the graph stream=a",
        "line 6: launch of `add`: has cluster = m in a graph, which keeps its clusters; expected constants",
        "line 7: launch of `add`: has preferred_cluster = n in a graph, which keeps its clusters; expected constants",
        "line 8: launch of `sum`: passes scratch memory in a graph, whose kernels run only after it is released; \
         allocate it before the graph",
        "line 9: launch of `add`: states programmatic_dependent_launch, which the kernels of a graph don't have",
        "line 9: launch of `add`: states shared_memory_carveout, which the kernels of a graph don't have",
        "line 10: launch of `add`: states completion_event, which the kernels of a graph don't have",
        "line 11: launch of `add`: writes global variables in a graph, whose kernels run only after all values are written",
    ];
    assert_eq!(found.iter().map(|line| line.trim()).collect::<Vec<_>>(), expected, "{error}");
}

/// The Rust builder and the text make the same graph, which prints and reads back.
#[test]
fn graphs_are_built_and_print() {
    let built = Kernel::body(|b| {
        let launch = |names: [&str; 3], count: &str, block: i64| {
            let args = names.map(|name| KernelArg::Param(name.to_owned()));
            let args = args.into_iter().chain([KernelArg::Int(dim(count), ScalarType::Int64)]);
            Launch::new("add").grid([dim(count).ceil_div(block)]).block([block]).args(args)
        };
        b.graph(|| {
            b.launch(launch(["x", "y", "z"], "n", 128), [image("sm_80", 80)]);
            b.if_(b.arg("double"), || b.launch(launch(["z", "z", "z"], "n", 64), [image("sm_80", 80)]));
            b.launch(launch(["z", "y", "w"], "m", 128), [image("sm_80", 80)]);
        });
    });
    let text = |kernel: &Kernel| HostProgram::of([(&sig(CHAIN), kernel)]).unwrap().to_string();
    assert_eq!(text(&built).replace(" image=image0", ""), format!("{CHAIN} {GRAPH}\n"));
    reads_back(&[(sig(CHAIN), built)]);
    reads_back(&[(sig(CHAIN), chain())]);
}
