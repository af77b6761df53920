//! Attributes of launches, and the driver versions that have them.

use std::ffi::c_void;

use tvm_ffi_codegen::runtime::{Any, Tensor};
use tvm_ffi_codegen::spec::{KernelArg, Launch, LaunchedSignature, ScalarType};
use tvm_ffi_codegen::{HostProgram, Kernel, LaunchProblem, dim};

use super::calls::fail_in_turn;
use super::devices::{cuda, elements};
use super::engines;
use super::launches::{ADD, call3, compile, compile_alone, launch_of_add, sums, vectors};
use super::refusals::refusal;
use super::standin::{Driver, bundle, fatbin, ptx};

/// A launch of `add` with attributes as text.
fn launch(attributes: &str) -> Launch {
    format!("launch add grid=n block=2 args=[x, y, z, int64(n)] {attributes}").parse().unwrap()
}

/// `add` with an event that the caller may pass.
fn with_event(ty: &str) -> String {
    format!("{}, event: {ty})", ADD.strip_suffix(')').unwrap())
}

fn opaque(address: usize) -> Any {
    // SAFETY: the address is never dereferenced.
    unsafe { Any::from_opaque_ptr(address as *mut c_void) }
}

#[test]
fn attributes_with_values_reach_the_driver() {
    let driver = Driver::cuda();
    for (stated, expected) in [
        ("cluster=2 cluster_scheduling=spread", "attribute 4 = 2 1 1, attribute 5 = 1"),
        ("cluster=2 cluster_scheduling=load_balancing", "attribute 4 = 2 1 1, attribute 5 = 2"),
        ("memory_sync_domain=default", "attribute 10 = 0"),
        ("memory_sync_domain=remote", "attribute 10 = 1"),
        ("shared_memory_carveout=0", "attribute 14 = 0"),
        ("shared_memory_carveout=100 priority=2", "attribute 8 = 2, attribute 14 = 100"),
    ] {
        for engine in engines() {
            driver.reset();
            let function = compile(&engine, ADD, launch(stated), vec![ptx("sm_90", 90)]);
            let tensors = vectors(cuda(1), 16);
            call3(&function, &tensors).unwrap();
            assert_eq!(elements::<f32>(&tensors[2]), sums(16));
            let call = format!("cuLaunchKernelEx(grid 16 1 1, block 2 1 1, shared 0, device 1, {expected})");
            assert_eq!(driver.calls_of("cuLaunch"), [call]);
        }
    }
}

#[test]
fn an_event_is_a_parameter() {
    let driver = Driver::cuda();
    const EVENT: usize = 0x3000;
    let none = || Any::from(());
    let number = |event: i64| Any::from(event);
    for (ty, events) in [
        ("handle", vec![(opaque(EVENT), EVENT), (opaque(0), 0), (none(), 0)]),
        ("int64", vec![(number(EVENT as i64), EVENT), (number(0), 0)]),
        ("uint64", vec![(number(EVENT as i64), EVENT)]),
        ("Optional[int64]", vec![(number(EVENT as i64), EVENT), (number(0), 0), (none(), 0)]),
    ] {
        for engine in engines() {
            let launch = launch("completion_event=event");
            let function = compile(&engine, &with_event(ty), launch, vec![ptx("sm_90", 90)]);
            for (event, expected) in &events {
                driver.reset();
                let tensors = vectors(cuda(1), 4);
                let [x, y, z] = &tensors;
                function.call((x, y, z, event.clone())).unwrap();
                assert_eq!(elements::<f32>(z), sums(4));
                let attribute =
                    if *expected == 0 { "attribute 0".to_owned() } else { format!("attribute 12 = {EVENT}") };
                let call = format!("cuLaunchKernelEx(grid 4 1 1, block 2 1 1, shared 0, device 1, {attribute})");
                assert_eq!(driver.calls_of("cuLaunch"), [call], "{ty}");
            }
        }
    }
}

/// In a body, the event may be a value.
#[test]
fn an_event_of_a_body_is_a_value() {
    let driver = Driver::cuda();
    let text = format!(
        "{} {{
          let chosen = if n < 4 {{ event }} else {{ other }};
          launch add grid=n block=2 args=[x, y, z, int64(n)] completion_event=chosen;
        }}",
        with_event("int64, other: int64")
    );
    let program = HostProgram::parse_with(&text, [("image", ptx("sm_80", 80))]).unwrap();
    assert!(program.to_string().contains("completion_event=chosen"), "{program}");
    for engine in engines() {
        let (signature, kernel) = program.functions().next().unwrap();
        // SAFETY: the kernel of kernels.c has these parameters.
        let function = unsafe { engine.compile(signature, kernel) }.unwrap();
        for (n, event) in [(3, 100), (5, 200)] {
            driver.reset();
            let [x, y, z] = &vectors(cuda(1), n);
            function.call((x, y, z, 100_i64, 200_i64)).unwrap();
            assert!(driver.calls_of("cuLaunch")[0].ends_with(&format!("attribute 12 = {event})")), "{}", driver.log());
        }
    }
}

#[test]
fn an_old_driver_lacks_attributes() {
    let driver = Driver::cuda();
    for (stated, since, signature) in [
        ("shared_memory_carveout=50", 12050, ADD.to_owned()),
        ("completion_event=event", 12030, with_event("handle")),
        ("completion_event=event shared_memory_carveout=50", 12050, with_event("handle")),
        ("cluster=2 preferred_cluster=4", 12080, ADD.to_owned()),
    ] {
        for engine in engines() {
            let function = compile(&engine, &signature, launch(stated), vec![ptx("sm_90", 90)]);
            let plain = compile(&engine, ADD, launch(""), vec![ptx("sm_90", 90)]);
            let call = |tensors: &[Tensor; 3]| match signature == ADD {
                true => call3(&function, tensors),
                false => {
                    let [x, y, z] = tensors;
                    function.call((x, y, z, opaque(0x3000))).map(drop).map_err(|error| error.message().to_owned())
                }
            };
            driver.reset();
            driver.version(since - 10);
            let tensors = vectors(cuda(1), 4);
            let error = call(&tensors).unwrap_err();
            let expected = format!(
                "`: the CUDA driver is too old for the launch's attributes; it has to be one of version {}.{} or later",
                since / 1000,
                since % 1000 / 10
            );
            assert!(error.ends_with(&expected), "{error}");
            assert_eq!(driver.calls_of("cuLaunch"), [""; 0]);
            // a launch of the same kernel without these attributes works
            call3(&plain, &tensors).unwrap();
            assert_eq!(elements::<f32>(&tensors[2]), sums(4));
            // the next call asks again, and later ones don't
            driver.version(since);
            call(&tensors).unwrap();
            assert_eq!(driver.calls_of("cuDriverGetVersion").len(), 2);
            call(&tensors).unwrap();
            assert_eq!(driver.calls_of("cuDriverGetVersion").len(), 2);
        }
    }
}

/// Only libraries with such attributes ask for the version, and each failing call is reported.
#[test]
fn every_call_of_the_driver_may_fail_for_attributes() {
    let driver = Driver::cuda();
    for engine in engines() {
        let stated = launch("shared_memory_carveout=50 memory_sync_domain=remote");
        fail_in_turn(
            &driver,
            || compile_alone(&engine, ADD, stated.clone(), vec![ptx("sm_80", 80)]),
            "add",
            &|function| {
                let tensors = vectors(cuda(0), 5);
                call3(function, &tensors)?;
                assert_eq!(elements::<f32>(&tensors[2]), sums(5));
                Ok(())
            },
        );
        assert_eq!(driver.calls_of("cuDriverGetVersion"), ["cuDriverGetVersion(12080)"]);
        driver.reset();
        let stated = launch("memory_sync_domain=remote");
        call3(&compile_alone(&engine, ADD, stated, vec![ptx("sm_80", 80)]), &vectors(cuda(0), 5)).unwrap();
        assert_eq!(driver.calls_of("cuDriverGetVersion("), [""; 0]);
    }
}

#[test]
fn attributes_that_cant_be_are_refused() {
    let image = || vec![ptx("sm_90", 90)];
    let subject = "the launch of kernel `add` by function `add` ";
    let no_clusters = "states cluster_scheduling, and neither the launch nor its kernel has clusters";
    let no_event = "has completion_event=event, and the function has no parameter event of type handle, int64, \
                    uint64 or an Optional of these integers";
    for (signature, stated, expected) in [
        (ADD, "cluster_scheduling=spread", no_clusters),
        (ADD, "shared_memory_carveout=101", "has shared_memory_carveout=101, expected 0 to 100 percent"),
        (ADD, "completion_event=event", no_event),
        (&with_event("int32"), "completion_event=event", no_event),
        (&with_event("Optional[float64]"), "completion_event=event", no_event),
    ] {
        assert_eq!(refusal(signature, launch(stated), image()), format!("{subject}{expected}"));
    }
    // a compressed image doesn't tell whether its kernel has clusters
    let images = vec![fatbin(&[("sm_90", 90)], true)];
    let compiled = compile(&engines()[0], ADD, launch("cluster_scheduling=spread"), images);
    drop(compiled);
    let hip = ADD.replace("cuda", "rocm");
    for stated in [
        "cluster=2",
        "preferred_cluster=2",
        "memory_sync_domain=remote",
        "shared_memory_carveout=50",
        "completion_event=event",
    ] {
        let signature = format!("{}, event: handle)", hip.strip_suffix(')').unwrap());
        let part = stated.split('=').next().unwrap();
        let expected = format!("{subject}states {part}, but HIP doesn't support it");
        assert_eq!(refusal(&signature, launch(stated), vec![bundle()]), expected);
    }
    let problem = LaunchProblem::NotOnDevice { part: "cluster", api: "HIP" };
    assert_eq!(problem.to_string(), "states cluster, but HIP doesn't support it");
}

/// Where the image tells that its kernel is made for clusters, the launch needn't state them.
#[test]
fn a_kernel_with_clusters_of_its_own_is_scheduled() {
    let text = ".version 8.0\n.target sm_90\n.address_size 64\n\
                .visible .entry add(.param .u64 x) .explicitcluster .reqnctapercluster 2, 1, 1 { ret; }\n";
    let image = tvm_ffi_codegen::image::Image::from_bytes(text.as_bytes()).unwrap();
    let text = "add(x: Tensor([n], float32, device=\"cuda\")) @ launch add grid=n args=[x] cluster_scheduling=spread";
    let LaunchedSignature { signature, launch } = text.parse().unwrap();
    let kernel = Kernel::launch(launch, [image]);
    tvm_ffi_codegen::lower::lower(&signature, &kernel, tvm_ffi_codegen::lower::RuntimeHelpers::Import).unwrap();
}

#[test]
fn the_builder_states_what_the_text_states() {
    use tvm_ffi_codegen::spec::{ClusterScheduling, MemorySyncDomain};
    let built = launch_of_add()
        .grid([dim("n")])
        .block([2])
        .args(
            ["x", "y", "z"]
                .map(|name| KernelArg::Param(name.to_owned()))
                .into_iter()
                .chain([KernelArg::Int(dim("n"), ScalarType::Int64)]),
        )
        .cluster_scheduling(ClusterScheduling::LoadBalancing)
        .memory_sync_domain(MemorySyncDomain::Remote)
        .shared_memory_carveout(25)
        .completion_event("event");
    let text =
        "cluster_scheduling=load_balancing memory_sync_domain=remote shared_memory_carveout=25 completion_event=event";
    assert_eq!(launch(text), built);
    assert_eq!(built.stated_cluster_scheduling(), Some(ClusterScheduling::LoadBalancing));
    assert_eq!(built.stated_memory_sync_domain(), Some(MemorySyncDomain::Remote));
    assert_eq!(built.stated_shared_memory_carveout(), Some(25));
    assert_eq!(built.stated_completion_event(), Some("event"));
}
