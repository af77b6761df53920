//! Cubins and fatbins, which the driver loads without compiling.

use tvm_ffi_codegen::image::{Image, ImageKind};
use tvm_ffi_codegen::runtime::Function;
use tvm_ffi_codegen::spec::{KernelArg, Launch};
use tvm_ffi_codegen::{Engine, dim};

use super::super::devices::{cuda, elements, on};
use super::super::launches::{ADD, call3, compile, compile_alone, sums, vectors};
use super::super::{engines, nvfatbin, rtc};
use super::{OUT, on_out, real_devices};

/// An image of the tests' kernels for `sm_90` (a cubin) or `compute_90` (PTX). Its kernel `which` returns the number.
fn image(target: &str, which: u32) -> Image {
    let image = rtc::compile(include_str!("../kernels.cu"), target, &[&format!("-DWHICH={which}")]);
    image.expect("TVM_FFI_CODEGEN_NVRTC has to name NVRTC's library")
}

fn fatbin(images: &[&Image], options: &[&str]) -> Image {
    nvfatbin::pack(images, options).expect("TVM_FFI_CODEGEN_NVFATBIN has to name nvFatbin's library")
}

/// The number that the kernel `which` of these images reports.
fn which(engine: &Engine, images: Vec<Image>) -> Result<i32, String> {
    let out = on(cuda(0), vec![0_i32], &[1]);
    let called = compile(engine, &format!("which{OUT}"), on_out("which"), images).call((&out,));
    called.map(|_| elements::<i32>(&out)[0]).map_err(|error| error.message().to_owned())
}

fn add(engine: &Engine, images: Vec<Image>) -> Function {
    compile_alone(engine, ADD, Launch::new("add").grid([(dim("n") + 127) / 128]).block([128]), images)
}

#[test]
fn cubins_and_fatbins_run() {
    let Some(driver) = real_devices() else { return };
    let capability = driver.capability(0);
    let [own, older] = [format!("sm_{capability}"), "sm_80".to_owned()];
    let [cubin, other] = [image(&own, 1), image(&older, 2)];
    let ptx = image("compute_80", 3);
    assert_eq!((cubin.kind(), ptx.kind()), (ImageKind::Cubin, ImageKind::Ptx));
    let plain = fatbin(&[&cubin, &other, &ptx], &["-64", "-host=linux"]);
    let compressed = fatbin(&[&cubin, &ptx], &["-64", "-host=linux", "-compress-all"]);
    let only_ptx = fatbin(&[&ptx], &["-64", "-host=linux"]);
    for engine in engines() {
        for images in [vec![cubin.clone()], vec![plain.clone()], vec![compressed.clone()], vec![only_ptx.clone()]] {
            let function = add(&engine, images);
            let tensors = vectors(cuda(0), 300);
            call3(&function, &tensors).unwrap();
            assert_eq!(elements::<f32>(&tensors[2]), sums(300));
        }
        // machine code for this device comes before PTX, in a fatbin and beside it
        assert_eq!(which(&engine, vec![cubin.clone(), ptx.clone()]), Ok(1));
        assert_eq!(which(&engine, vec![ptx.clone(), cubin.clone()]), Ok(1));
        assert_eq!(which(&engine, vec![plain.clone()]), Ok(1));
        assert_eq!(which(&engine, vec![compressed.clone()]), Ok(1));
        assert_eq!(which(&engine, vec![only_ptx.clone()]), Ok(3));
        // the driver runs no machine code of another major number
        if capability >= 90 {
            let error = which(&engine, vec![other.clone()]).unwrap_err();
            assert!(error.contains(": no image is for cuda:0, which has compute capability "), "{error}");
        }
    }
}

/// A compressed element tells no parameters, so the driver tells them at the first use (`cuKernelGetParamInfo`).
#[test]
fn the_driver_tells_the_parameters_of_compressed_code() {
    let Some(driver) = real_devices() else { return };
    let cubin = image(&format!("sm_{}", driver.capability(0)), 1);
    let compressed = fatbin(&[&cubin], &["-64", "-host=linux", "-compress-all"]);
    for engine in engines() {
        for (args, expected) in [
            (vec![KernelArg::Param("out".to_owned()), KernelArg::Null], "2"),
            (vec![KernelArg::DeviceId("out".to_owned())], "1"),
        ] {
            let launch = Launch::new("which").args(args);
            let function = compile(&engine, &format!("which{OUT}"), launch, vec![compressed.clone()]);
            let error = function.call((&on(cuda(0), vec![0_i32], &[1]),)).unwrap_err();
            eprintln!("{expected} parameters: {}", error.message());
            assert!(error.message().contains("parameter"), "{}", error.message());
        }
        let missing = compile(&engine, &format!("which{OUT}"), on_out("missing"), vec![compressed.clone()]);
        let error = missing.call((&on(cuda(0), vec![0_i32], &[1]),)).unwrap_err();
        eprintln!("a kernel that isn't there: {}", error.message());
        assert!(error.message().contains("CUDA_ERROR_NOT_FOUND (500)"), "{}", error.message());
    }
}

/// Static shared memory of a kernel whose code is compressed, with dynamic memory beside it: more than 48 KiB together.
#[test]
fn the_driver_tells_the_shared_memory_of_compressed_code() {
    let Some(driver) = real_devices() else { return };
    let cubin = image(&format!("sm_{}", driver.capability(0)), 1);
    let compressed = fatbin(&[&cubin], &["-64", "-host=linux", "-compress-all"]);
    for engine in engines() {
        for (images, bytes) in [(&cubin, 48_i32 << 10), (&compressed, 48 << 10), (&compressed, 64 << 10)] {
            let launch = on_out("staged").block([32]).shared_memory(i64::from(bytes));
            let out = on(cuda(0), vec![0_i32], &[1]);
            let function = compile(&engine, &format!("staged{OUT}"), launch, vec![images.clone()]);
            function.call((&out,)).unwrap();
            assert_eq!(elements::<i32>(&out), [bytes]);
        }
    }
}
