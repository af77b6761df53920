//! Shared memory of blocks: the kernels' static memory, the launches' dynamic memory, and the amount that kernels
//! request.

use tvm_ffi_codegen::image::Image;
use tvm_ffi_codegen::runtime::{DLDevice, Function};
use tvm_ffi_codegen::spec::{Dim, KernelArg, Launch};
use tvm_ffi_codegen::{Engine, Kernel, dim};

use super::devices::{Devices, cuda, elements, image, on};
use super::launches::{compile, compile_alone};
use super::refusals::refusal;
use super::{engines, rtc};
use crate::support::sig;

const STAGED: &str = "staged(out: Tensor([1], int32, device=\"cuda\"), bytes: int64)";

/// A launch of a kernel with 1,024 bytes of static shared memory. It returns the size of its dynamic shared memory.
fn launch_of_staged(shared: Dim) -> Launch {
    Launch::new("staged").shared_memory(shared).args([KernelArg::Param("out".to_owned())])
}

fn staged(engine: &Engine, shared: Dim) -> Function {
    compile(engine, STAGED, launch_of_staged(shared), vec![image("sm_80", 80)])
}

/// The function with its own helpers, so it looks up the driver anew.
pub fn staged_alone(engine: &Engine, shared: Dim) -> Function {
    compile_alone(engine, STAGED, launch_of_staged(shared), vec![image("sm_80", 80)])
}

pub fn call_staged(function: &Function, device: DLDevice, bytes: i64) -> Result<i32, String> {
    let out = on(device, vec![0_i32], &[1]);
    function.call((&out, bytes)).map_err(|error| format!("{}: {}", error.kind(), error.message()))?;
    Ok(elements::<i32>(&out)[0])
}

/// PTX doesn't state a kernel's static shared memory; it is known once the driver has compiled the PTX.
#[test]
fn a_kernel_of_ptx_asks_when_its_own_memory_and_the_launches_are_more_than_48_kib() {
    let devices = Devices::cuda();
    for engine in engines() {
        for (bytes, set) in [(48 << 10, Some("cuKernelSetAttribute(8, 49152, 0)")), (47 << 10, None), (0, None)] {
            devices.reset();
            let function = staged(&engine, bytes.into());
            assert_eq!(call_staged(&function, devices.device(0), 0), Ok(bytes));
            assert_eq!(call_staged(&function, devices.device(0), 0), Ok(bytes));
            let asked = if bytes == 0 { vec![] } else { vec!["cuKernelGetAttribute(1, 0)"] };
            devices.assert_calls_of("cuKernelGetAttribute", &asked);
            devices.assert_calls_of("cuKernelSetAttribute", set.as_slice());
        }
    }
}

/// Launches of one kernel share its limit, so each requests what the largest launch needs, whichever comes first.
#[test]
fn launches_of_one_kernel_ask_for_what_the_largest_needs() {
    let devices = Devices::cuda();
    let sizes: [i64; 4] = [60 << 10, 100 << 10, 48 << 10, 0];
    let signatures: Vec<_> =
        (0..sizes.len()).map(|number| sig(&STAGED.replacen("staged", &format!("f{number}"), 1))).collect();
    let kernels: Vec<_> =
        sizes.iter().map(|bytes| Kernel::launch(launch_of_staged((*bytes).into()), [image("sm_80", 80)])).collect();
    for engine in engines() {
        for order in [[0, 1, 2, 3], [1, 0, 3, 2], [3, 2, 1, 0]] {
            devices.reset();
            // SAFETY: the kernel has this parameter.
            let module = unsafe { engine.compile_module(signatures.iter().zip(&kernels)) }.unwrap();
            for number in order.into_iter().chain(order) {
                let function = module.get_function(&format!("f{number}")).unwrap().unwrap();
                assert_eq!(call_staged(&function, devices.device(0), 0), Ok(sizes[number] as i32), "{order:?}");
            }
        }
    }
}

#[test]
fn memory_that_differs_from_call_to_call_leaves_room_for_the_kernels_own() {
    let devices = Devices::cuda();
    for engine in engines() {
        devices.reset();
        let function = staged(&engine, dim("bytes"));
        for bytes in [0, 1000, 48 << 10, 96 << 10] {
            assert_eq!(call_staged(&function, devices.device(0), bytes), Ok(bytes as i32));
        }
        devices.assert_calls_of("cuKernelGetAttribute", &["cuKernelGetAttribute(1, 0)"]);
        devices.assert_calls_of("cuKernelSetAttribute", &["cuKernelSetAttribute(8, 165888, 0)"]);
        // a limit that only the driver knows is checked with the driver
        let error = call_staged(&function, devices.device(0), 1 << 20).unwrap_err();
        assert!(
            error.starts_with("ValueError") && error.contains("shared_memory = 1048576 (bytes), expected at most "),
            "{error}"
        );
    }
}

/// The stand-in reads cubins, and compares launches with them.
#[test]
fn cubins_tell_what_kernels_have_of_their_own() {
    let source = "extern \"C\" __global__ void f(int* out) {
        __shared__ volatile int own[256]; extern __shared__ volatile int more[];
        own[threadIdx.x] = more[threadIdx.x] = 1; __syncthreads(); *out = own[0] + more[0];
    }";
    let devices = Devices::cuda();
    if devices.standin.is_none() {
        return;
    }
    let Some(cubins) =
        ["sm_80", "sm_90"].map(|name| rtc::compile(source, name, &[])).into_iter().collect::<Option<Vec<_>>>()
    else {
        return;
    };
    let launch = |shared: Dim| Launch::new("f").shared_memory(shared).args([KernelArg::Param("out".to_owned())]);
    for engine in engines() {
        for number in [0, 1] {
            for (bytes, set) in [(48 << 10, true), (47 << 10, false)] {
                devices.reset();
                call_staged(&compile(&engine, STAGED, launch(bytes.into()), cubins.clone()), cuda(number), 0).unwrap();
                devices.assert_calls_of("cuKernelGetAttribute", &[]);
                let call = format!("cuKernelSetAttribute(8, {bytes}, {number})");
                devices.assert_calls_of("cuKernelSetAttribute", &[call.as_str()][..usize::from(set)]);
            }
            let max = [162 << 10, 226 << 10][number as usize];
            let function = compile(&engine, STAGED, launch(dim("bytes")), cubins.clone());
            call_staged(&function, cuda(number), max).unwrap();
            let error = call_staged(&function, cuda(number), max + 1).unwrap_err();
            let expected = format!("shared_memory = {} (bytes), expected at most {max} bytes on this device", max + 1);
            assert!(error.starts_with("ValueError") && error.contains(&expected), "{error}");
        }
    }
}

/// A kernel with the attributes that make NVIDIA's launcher of tile kernels use a block of one thread.
#[test]
fn tile_kernels_are_launched_by_a_block_of_one() {
    let source = "extern \"C\" __global__ __launch_bounds__(128) void f(int* out) { out[threadIdx.x] = 1; }";
    let devices = Devices::cuda();
    if devices.standin.is_none() {
        return;
    }
    let Some(cubin) = rtc::compile(source, "sm_80", &[]) else { return };
    assert!(!cubin.entry("f").unwrap().is_tile);
    let mut bytes = cubin.bytes().to_vec();
    // EIATTR_CUDA_API_VERSION, which isn't read here, becomes EIATTR_LANGUAGE with TILEIR, which this compiler doesn't
    // write. The maximum block becomes a required one.
    let replace = |bytes: &mut [u8], from: &[u8], to: &[u8]| {
        let at = bytes.windows(from.len()).position(|window| window == from).unwrap();
        bytes[at..at + to.len()].copy_from_slice(to);
    };
    replace(&mut bytes, &[4, 0x37, 4, 0], &[4, 0x66, 4, 0, 7, 0, 0, 0]);
    replace(&mut bytes, &[4, 0x05, 12, 0], &[4, 0x10, 12, 0]);
    let tile = Image::from_bytes(bytes).unwrap();
    let entry = tile.entry("f").unwrap();
    assert_eq!((entry.is_tile, entry.required_block), (true, Some([128, 1, 1])));
    let launch = |block: Dim| Launch::new("f").block([block]).args([KernelArg::Param("out".to_owned())]);
    for engine in engines() {
        devices.reset();
        call_staged(&compile(&engine, STAGED, launch(1.into()), vec![tile.clone()]), cuda(0), 0).unwrap();
        devices.assert_calls_of("cuLaunch", &["cuLaunchKernelEx(grid 1 1 1, block 1 1 1, shared 0, device 0)"]);
    }
    for (launch, expected) in [
        (launch(128.into()), "whose block the driver sets: expected block=1, got [128, 1, 1]"),
        (launch(dim("bytes")), "whose block the driver sets: expected block=1, got one that differs from call to call"),
        (launch(1.into()).shared_memory(64), "whose shared memory the driver sets: expected shared_memory=0, got 64"),
    ] {
        let error = refusal(STAGED, launch, vec![tile.clone()]);
        assert!(error.contains(&format!("is of a tile kernel in the cubin of sm_80, {expected}")), "{error}");
    }
    let ptx = ".version 8.8\n.target sm_80\n.visible .entry f(.param .u64 out)\n.reqntid 128\n.language 7\n{ ret; }\n";
    assert!(Image::from_bytes(ptx.as_bytes().to_vec()).unwrap().entry("f").unwrap().is_tile);
}
