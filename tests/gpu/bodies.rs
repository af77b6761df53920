//! Launches in bodies: several per body, with workspaces between them, in conditionals and in loops.

use tvm_ffi_codegen::LaunchValue;
use tvm_ffi_codegen::artifact::LibraryBuilder;
use tvm_ffi_codegen::runtime::{Any, Array, Module, Tensor};
use tvm_ffi_codegen::spec::{KernelArg, Launch, ScalarType};
use tvm_ffi_codegen::{Backend, DLDataType, Engine, HostProgram, Kernel, dim};

use super::devices::{Devices, elements, image, on};
use super::engines;
use crate::support::text::reads_back;
use crate::support::{allocator, host_linker, sig};

const SUM: &str = "total(x: Tensor([n], float32, device=\"cuda\"), out: Tensor([1], float32, device=\"cuda\"))";

/// A launch of kernel `sum`: each block adds up elements of `from` and writes the sum to `to`.
fn sums(from: &str, to: &str, count: &str, blocks: impl Into<tvm_ffi_codegen::Dim>) -> Launch {
    let args = [
        KernelArg::Param(from.to_owned()),
        KernelArg::Param(to.to_owned()),
        KernelArg::Int(dim(count), ScalarType::Int64),
        KernelArg::Scratch { bytes: dim(128), align: 128 },
        KernelArg::Null,
    ];
    Launch::new("sum").grid([blocks]).args(args)
}

/// A reduction in two steps. Each block writes a partial sum to a workspace, and a second launch adds these up.
fn total() -> Kernel {
    Kernel::body(|b| {
        let blocks = (b.dim("n") + 99) / 100;
        let partial = b.alloc_tensor([blocks], DLDataType::FLOAT32, b.tensor("x"));
        let images = || [image("sm_80", 80)];
        b.launch_with(sums("x", "partial", "n", dim("partial.shape[0]")), images(), [("partial", partial)]);
        let values = [("partial", LaunchValue::from(partial)), ("blocks", blocks.into())];
        b.launch_with(sums("partial", "out", "blocks", 1), images(), values);
    })
}

#[test]
fn launches_print_with_their_values_and_images() {
    let (signature, kernel) = (sig(SUM), total());
    let program = HostProgram::of([(&signature, &kernel)]).unwrap();
    let expected = "  let v0 = div(n + 99, 100);
  let v1 = alloc([v0], float32, like=x);
  launch sum grid=partial.shape[0] args=[x, partial, int64(n), scratch(128, align=128), null] image=image0 \
                    values=[partial=v1];
  launch sum args=[partial, out, int64(blocks), scratch(128, align=128), null] image=image0 \
                    values=[partial=v1, blocks=v0];
";
    assert!(program.to_string().contains(expected), "{program}");
    assert_eq!(program.images().map(|(name, _)| name).collect::<Vec<_>>(), ["image0"]);
    // several images, and a kernel that is a launch
    let several = Kernel::body(|b| {
        b.launch(sums("x", "out", "n", 1), [image("sm_80", 80), image("sm_90", 90)]);
        b.launch(sums("x", "out", "n", 1), [image("sm_90", 90)]);
    });
    let launched = Kernel::launch(sums("x", "out", "n", 1), [image("sm_90", 90)]);
    let other = sig(&SUM.replace("total", "other"));
    let third = sig(&SUM.replace("total", "third"));
    reads_back(&[(signature, kernel), (other, several), (third, launched)]);
}

fn vector(devices: &Devices, n: usize) -> [Tensor; 2] {
    let x = on(devices.device(0), (0..n).map(|i| i as f32).collect::<Vec<_>>(), &[n as i64]);
    [x, on(devices.device(0), vec![0.0_f32], &[1])]
}

#[test]
fn two_kernels_have_a_workspace_between() {
    let devices = Devices::cuda();
    devices.install_allocator();
    for engine in engines() {
        devices.reset();
        // SAFETY: the kernel has these parameters.
        let function = unsafe { engine.compile(&sig(SUM), &total()) }.unwrap();
        let [x, out] = vector(&devices, 250);
        let live = allocator::live();
        function.call((&x, &out)).unwrap();
        assert_eq!(elements::<f32>(&out), [31125.0]);
        devices.assert_calls_of(
            "cuLaunch",
            &[
                "cuLaunchKernelEx(grid 3 1 1, block 1 1 1, shared 0, device 0)",
                "cuLaunchKernelEx(grid 1 1 1, block 1 1 1, shared 0, device 0)",
            ],
        );
        // both launches use the same kernel of the same image
        devices.assert_calls_of("cuLibraryGetKernel", &["cuLibraryGetKernel(sum)"]);
        let Some(driver) = &devices.standin else { continue };
        assert_eq!(allocator::live(), live);
        // the workspace is released, whichever launch fails
        let made = driver.calls();
        driver.reset();
        function.call((&x, &out)).unwrap();
        let each = driver.calls();
        assert!(each < made);
        for number in 1..=each {
            driver.reset();
            driver.fail(number, 2);
            let live = allocator::live();
            let error = function.call((&x, &out)).unwrap_err();
            let text = "Cannot launch kernel `sum` when calling: `total(";
            assert!(error.message().starts_with(text), "{}", error.message());
            drop(error);
            assert_eq!((allocator::live(), driver.depth()), (live, 0), "call {number}");
        }
        driver.reset();
    }
}

#[test]
fn launches_stand_under_conditions_and_in_loops() {
    let devices = Devices::cuda();
    let signature =
        "grow(x: Tensor([n], float32, device=\"cuda\"), y: Tensor([n], float32, device=\"cuda\"), times: int64)";
    let kernel = || {
        Kernel::body(|b| {
            let names = ["x", "y", "y"].map(|name| KernelArg::Param(name.to_owned()));
            let add = Launch::new("add").grid([(dim("n") + 127) / 128]).block([128]);
            let add = add.args(names.into_iter().chain([KernelArg::Int(dim("n"), ScalarType::Int64)]));
            b.if_(b.arg("times").gt(1), || {
                b.for_range(0, b.arg("times"), |_| b.launch(add.clone(), [image("sm_80", 80)]));
            });
        })
    };
    for engine in engines() {
        // SAFETY: the kernel has these parameters.
        let function = unsafe { engine.compile(&sig(signature), &kernel()) }.unwrap();
        let values: Vec<f32> = (0..200).map(|i| i as f32).collect();
        for times in [0, 1, 2, 1_000] {
            devices.reset();
            let (x, y) =
                (on(devices.device(1), values.clone(), &[200]), on(devices.device(1), vec![0.0_f32; 200], &[200]));
            function.call((&x, &y, times)).unwrap();
            let sum = if times > 1 { times as f32 } else { 0.0 };
            assert_eq!(elements::<f32>(&y), values.iter().map(|value| sum * value).collect::<Vec<_>>());
        }
    }
}

/// The first-use work of a body's launches can be done beforehand, given kernels with the same launches.
#[test]
fn first_uses_of_a_body_are_done_before() {
    let devices = Devices::cuda();
    devices.install_allocator();
    for backend in Backend::ALL {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("total.so");
        let launch = Kernel::launch(sums("x", "out", "n", dim("n")), [image("sm_80", 80)]);
        let library = LibraryBuilder::new().backend(*backend).function(&sig(SUM), &total());
        let library = library.function(&sig("prepare(device: device)"), &Kernel::prepare([&launch]));
        host_linker().object(library.emit().unwrap().into_bytes()).link(&path).unwrap();
        // SAFETY: the library is one of ours.
        let module = unsafe { Module::load_from_file(&path) }.unwrap();
        let function = |name: &str| module.get_function(name).unwrap().unwrap();
        function("prepare").call((devices.device(0),)).unwrap();
        devices.reset();
        let [x, out] = vector(&devices, 250);
        function("total").call((&x, &out)).unwrap();
        assert_eq!(elements::<f32>(&out), [31125.0]);
        devices.assert_calls_of("cuLibrary", &[]);
        // SAFETY: nothing is left of what the library's code has made.
        unsafe { module.unload_when_unused() }.unwrap();
    }
}

#[test]
fn errors_of_launches_are_the_bodys() {
    let engine = Engine::new().unwrap();
    let kernel = Kernel::body(|b| {
        let images = || [image("sm_80", 80)];
        let values = [("n", b.i64(1)), ("m", b.i64(2)), ("m", b.i64(3)), ("q", b.dim("k"))];
        b.launch_with(Launch::new("add").grid([dim("n")]).block([2048]).args([KernelArg::Null]), images(), values);
        b.launch(sums("partial", "out", "n", 1), images());
    });
    // SAFETY: nothing is compiled.
    let error = unsafe { engine.compile(&sig(SUM), &kernel) }.unwrap_err().to_string();
    for expected in [
        "the name `n` of a value is empty or has another meaning",
        "the name `m` of a value is empty or has another meaning",
        "binds no such dimension variable",
        "has block[0] = 2048, expected 1 to 1024",
        "kernel `add` takes 4 parameters (of 8, 8, 8, 8 bytes), and 1 are passed (of 8)",
        "has partial among its args, but this isn't a tensor or scalar parameter of the function",
    ] {
        assert!(error.contains(expected), "{expected}\n{error}");
    }
}

/// A launch takes a tensor whose type is open where its dtype and its kind of device are known.
#[test]
fn launches_take_narrowed_tensors() {
    let devices = Devices::cuda();
    devices.install_allocator();
    let signature =
        sig("sum2(x: Tensor([...], any, strides=any, device=any), y: Tensor([n], float32, device=\"cuda\"))");
    let text = "{
        ensure x.device.kind == \"cuda\" and x.ndim == 1 and is_contiguous(x), ValueError(\"{} dimensions on {}\",
            x.ndim, x.device);
        if x.dtype == float32 {
            let w = alloc([n], x.dtype, like=x);
            launch add grid=ceil_div(x.shape[0], 128) block=128 args=[x, y, w, int64(n)];
            launch add grid=ceil_div(n, 128) block=128 args=[w, w, y, int64(n)];
            return;
        }
        raise TypeError(\"no elements of {}\", x.dtype);
    }";
    let kernel = Kernel::text(text, [("kernels", image("sm_80", 80))]).unwrap();
    for engine in engines() {
        devices.reset();
        // SAFETY: the kernel has these parameters.
        let function = unsafe { engine.compile(&signature, &kernel) }.unwrap();
        let values: Vec<f32> = (0..200).map(|i| i as f32).collect();
        let cuda = |shape: &[i64]| on(devices.device(1), values.clone(), shape);
        let y = on(devices.device(1), vec![1.0_f32; 200], &[200]);
        function.call((&cuda(&[200]), &y)).unwrap();
        assert_eq!(elements::<f32>(&y), values.iter().map(|value| 2.0 * (value + 1.0)).collect::<Vec<_>>());
        let ints = on(devices.device(1), vec![1_i32; 200], &[200]);
        let here = Tensor::from_slice(&values, &[200]).unwrap();
        for (x, message) in [
            (ints, "no elements of int32".to_owned()),
            (cuda(&[100, 2]), format!("2 dimensions on {}", devices.device(1))),
            (here, "1 dimensions on cpu:0".to_owned()),
        ] {
            assert_eq!(function.call((&x, &y)).unwrap_err().message(), message);
        }
    }
    let open =
        Kernel::text("{ launch add grid=1 block=128 args=[x, y, y, int64(n)]; }", [("k", image("sm_80", 80))]).unwrap();
    // SAFETY: nothing is compiled.
    let error = unsafe { Engine::new().unwrap().compile(&signature, &open) }.unwrap_err().to_string();
    assert!(error.contains("has x among its args, but this isn't a tensor or scalar parameter"), "{error}");
}

/// A record's tensors determine the device, and its fields are the kernel's arguments.
#[test]
fn launches_take_fields_of_records() {
    let devices = Devices::cuda();
    devices.install_allocator();
    let tensor = |size: &str| format!("Tensor([{size}], float32, device=\"cuda\")");
    let signature = format!("total(args: Record(\"Args\", x: {}, more: Tuple[{}]))", tensor("n"), tensor("1"));
    let launch = || sums("args.x", "args.more[0]", "n", 1);
    let body = Kernel::body(move |b| b.launch(launch(), [image("sm_80", 80)]));
    for kernel in [body, Kernel::launch(launch(), [image("sm_80", 80)])] {
        for engine in engines() {
            devices.reset();
            // SAFETY: the kernel has these parameters.
            let function = unsafe { engine.compile(&sig(&signature), &kernel) }.unwrap();
            let [x, out] = vector(&devices, 80);
            let more = Array::from(vec![Any::from(out.clone())]);
            function.call((Array::from(vec![Any::from(x), more.into()]),)).unwrap();
            assert_eq!(elements::<f32>(&out), [3160.0]);
        }
    }
}
