//! AMD code objects: compiled ones (`data/README.md`), and some that are built here.

use serde_json::{Value, json};
use tvm_ffi_codegen::artifact::{LibraryBuilder, inspect};
use tvm_ffi_codegen::image::{AmdProcessor, EntryParam, Image, ImageEntry, ImageKind};
use tvm_ffi_codegen::spec::{KernelArg, Launch, ScalarType};
use tvm_ffi_codegen::{Engine, Kernel, dim};

use super::made;
use super::refusals::refusal;
use crate::support::sig;

const OF_TRITON: &[u8] = include_bytes!("data/add.gfx942.hsaco");
const OF_LLVM: &[u8] = include_bytes!("data/kinds.gfx90a.hsaco");
const BUNDLE: &[u8] = include_bytes!("data/add.hipfb");

const ONE: &str = "f(x: Tensor([n], float32, device=\"rocm\"))";

fn read(bytes: &[u8]) -> Image {
    Image::from_bytes(bytes).unwrap()
}

fn targets(image: &Image) -> Vec<String> {
    image.targets().iter().map(ToString::to_string).collect()
}

fn params(entry: &ImageEntry) -> Vec<(u32, u32)> {
    entry.params.iter().flatten().map(|EntryParam { offset, size }| (*offset, *size)).collect()
}

fn param(name: &str) -> KernelArg {
    KernelArg::Param(name.to_owned())
}

/// A code object for a processor. It has a kernel `f` with one parameter, and the given static shared memory per block.
fn made(processor: &str, shared: u32) -> Vec<u8> {
    let args = json!([{ ".offset": 0, ".size": 8, ".value_kind": "global_buffer" }]);
    let kernel = json!({ ".name": "f", ".args": args, ".group_segment_fixed_size": shared });
    let target = format!("amdgcn-amd-amdhsa--{processor}");
    made::code_object(&json!({ "amdhsa.target": target, "amdhsa.kernels": [kernel] }))
}

#[test]
fn code_objects_tell_of_their_kernels() {
    let image = read(OF_TRITON);
    assert_eq!((image.kind(), targets(&image)), (ImageKind::CodeObject, vec!["gfx942".to_owned()]));
    let [add] = image.entries().unwrap() else { panic!("{image:?}") };
    assert_eq!(add.name, "add");
    assert_eq!(params(add), [(0, 8), (8, 8), (16, 8), (24, 4), (32, 8), (40, 8)]);
    assert_eq!((add.static_shared, add.max_threads, add.required_block), (0, Some(256), None));
    assert!(add.registers.is_some_and(|count| count > 0));

    // the runtime's own parameters, which begin with `hidden_`, don't belong to a launch
    let image = read(OF_LLVM);
    assert_eq!(targets(&image), ["gfx90a:sramecc+:xnack-"]);
    let target = image.targets()[0].amd().unwrap();
    assert_eq!(target.processor, AmdProcessor::One { major: 9, minor: 0, stepping: 10 });
    assert_eq!((target.sramecc, target.xnack), (Some(true), Some(false)));
    let kinds = image.entry("kinds").unwrap();
    assert_eq!(params(kinds), [(0, 8), (8, 24), (32, 1), (34, 2), (36, 4), (40, 8)]);
    assert_eq!((kinds.static_shared, kinds.max_threads, kinds.registers), (4096, Some(256), Some(2)));
    let fixed = image.entry("fixed").unwrap();
    assert_eq!((params(fixed), fixed.required_block, fixed.max_threads), (vec![(0, 8)], Some([64, 2, 1]), Some(128)));
    assert!(image.tells_params_of("kinds"));
}

#[test]
fn bundles_tell_of_each_architecture() {
    let image = read(BUNDLE);
    assert_eq!(
        (image.kind(), targets(&image)),
        (ImageKind::CodeObject, vec!["gfx942".to_owned(), "gfx1100".to_owned()])
    );
    let [of_942, of_1100] = image.entries().unwrap() else { panic!("{image:?}") };
    assert_eq!(Some(of_942), read(OF_TRITON).entry("add"));
    assert_eq!((params(of_1100), of_1100.max_threads), (params(of_942), Some(128)));

    // a code object of version 3 doesn't state its target, and SPIR-V has none
    let untold = made::code_object(&json!({ "amdhsa.kernels": [{ ".name": "f", ".group_segment_fixed_size": 0 }] }));
    assert_eq!(targets(&read(&untold)), Vec::<String>::new());
    let image = read(&made::bundle(&[("hip-amdgcn-amd-amdhsa-gfx906", &untold), ("host-x86_64--", b"")]));
    assert_eq!((targets(&image), image.entries().map(<[_]>::len)), (vec!["gfx906".to_owned()], Some(1)));
    let spirv: &[u8] = &[3, 2, 0x23, 7];
    let entries = [("hipv4-amdgcn-amd-amdhsa--gfx906", &untold[..]), ("hip-spirv64-amd-amdhsa--amdgcnspirv", spirv)];
    assert_eq!(read(&made::bundle(&entries)).entries(), None);
}

#[test]
fn launches_are_compared_with_code_objects() {
    let triton = || {
        [
            param("x"),
            param("x"),
            param("x"),
            KernelArg::Int(dim("n"), ScalarType::Int32),
            KernelArg::Null,
            KernelArg::Null,
        ]
    };
    let engine = Engine::new().unwrap();
    for (launch, bytes) in [
        (Launch::new("add").block([128]).args(triton()), OF_TRITON),
        (Launch::new("add").block([128]).args(triton()), BUNDLE),
        (Launch::new("fixed").block([64, 2]).args([param("x")]), OF_LLVM),
        (Launch::new("f").shared_memory(60 << 10).args([param("x")]), &made("gfx90a", 4096)),
        (Launch::new("f").shared_memory(150 << 10).args([param("x")]), &made("gfx950", 4096)),
        // for an unknown architecture, the limit isn't known either
        (Launch::new("f").shared_memory(500 << 10).args([param("x")]), &made("gfx1300", 4096)),
    ] {
        // SAFETY: the code isn't run.
        unsafe { engine.compile(&sig(ONE), &Kernel::launch(launch, [read(bytes)])) }.unwrap();
    }
    for (launch, bytes, expected) in [
        (
            Launch::new("sub").args([param("x")]),
            OF_LLVM,
            "is `sub`, and the code object of gfx90a:sramecc+:xnack- has `fixed`, `kinds`",
        ),
        (
            Launch::new("add").args(triton().into_iter().take(4)),
            OF_TRITON,
            "doesn't fit: in the code object of gfx942, kernel `add` takes 6 parameters (of 8, 8, 8, 4, 8, 8 bytes), and 4 are \
             passed (of 8, 8, 8, 4)",
        ),
        (
            Launch::new("fixed").block([64, 2]).args([KernelArg::Int(dim("n"), ScalarType::Int32)]),
            OF_LLVM,
            "doesn't fit: in the code object of gfx90a:sramecc+:xnack-, kernel `fixed` takes parameters of 8 bytes, and those of 4 \
             are passed",
        ),
        (
            Launch::new("fixed").block([128]).args([param("x")]),
            OF_LLVM,
            "is made for blocks of [64, 2, 1] threads in the code object of gfx90a:sramecc+:xnack-, got [128, 1, 1]",
        ),
        // the limit is that of the kernel for the other architecture
        (
            Launch::new("add").block([256]).args(triton()),
            BUNDLE,
            "is made for at most 128 threads a block in the code object of gfx942, gfx1100, got 256",
        ),
        (
            Launch::new("f").shared_memory(61 << 10).args([param("x")]),
            &made("gfx90a", 4096),
            "takes 66560 bytes of shared memory in the code object of gfx90a (4096 static, 62464 dynamic), and the architecture \
             has 65536",
        ),
        (
            Launch::new("f").shared_memory(160 << 10).args([param("x")]),
            &made("gfx950", 4096),
            "takes 167936 bytes of shared memory in the code object of gfx950 (4096 static, 163840 dynamic), and the \
             architecture has 163840",
        ),
        // each kernel is checked against its own architecture
        (
            Launch::new("f").shared_memory(100 << 10).args([param("x")]),
            &made::bundle(&[("hipv4--gfx950", &made("gfx950", 1)), ("hipv4--gfx942", &made("gfx942", 2))]),
            "takes 102402 bytes of shared memory in the code object of gfx950, gfx942 (2 static, 102400 dynamic), and the \
             architecture has 65536",
        ),
    ] {
        let entry = launch.entry().to_owned();
        assert_eq!(
            refusal(ONE, launch, vec![read(bytes)]),
            format!("the launch of kernel `{entry}` by function `f` {expected}")
        );
    }
}

#[test]
fn metadata_tells_code_objects() {
    let launch = Launch::new("fixed").block([64, 2]).args([param("x")]);
    let kernel = Kernel::launch(launch, [read(OF_LLVM)]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f.o");
    std::fs::write(&path, LibraryBuilder::new().function(&sig(ONE), &kernel).emit().unwrap().into_bytes()).unwrap();
    let seen = inspect(&path).unwrap();
    let [image] = seen.functions[0].launches[0].images.as_slice() else { panic!("{seen:?}") };
    assert_eq!(
        (image.kind.as_str(), image.targets.as_slice()),
        ("code object", &["gfx90a:sramecc+:xnack-".to_owned()][..])
    );
    assert_eq!(image.entry.as_ref(), read(OF_LLVM).entry("fixed"));
}

#[test]
fn broken_metadata_is_an_error() {
    let broken = |bytes: Vec<u8>| Image::from_bytes(bytes).unwrap_err().to_string();
    let kernels = |kernels: Value| broken(made::code_object(&json!({ "amdhsa.kernels": kernels })));
    let args = |args: Value| kernels(json!([{ ".name": "f", ".args": args, ".group_segment_fixed_size": 0 }]));
    let arg = |offset: i64, size: i64| json!({ ".offset": offset, ".size": size, ".value_kind": "by_value" });
    let long = i64::from(u32::MAX) + 1;
    for (error, expected) in [
        (broken(made::code_object(&json!([]))), "its metadata isn't a map"),
        (broken(made::code_object(&json!({}))), "its metadata has no `amdhsa.kernels`"),
        (kernels(json!(1)), "its `amdhsa.kernels` aren't an array"),
        (kernels(json!([1])), "its kernel 0 isn't a map"),
        (kernels(json!([{}])), "its kernel 0 has no `.name`"),
        (kernels(json!([{ ".name": 3 }])), "its kernel 0 has no `.name`"),
        (kernels(json!([{ ".name": "f" }])), "its kernel 0 has no `.group_segment_fixed_size`"),
        (
            kernels(json!([{ ".name": "f", ".group_segment_fixed_size": -1 }])),
            "its kernel 0 has a `.group_segment_fixed_size` that isn't a 32-bit number",
        ),
        (
            kernels(json!([{ ".name": "f", ".group_segment_fixed_size": 0, ".reqd_workgroup_size": [1, 2] }])),
            "its kernel 0 has a `.reqd_workgroup_size` of 2 extents, expected 3",
        ),
        (args(json!({})), "its kernel 0 has `.args` that aren't an array"),
        (args(json!([1])), "its kernel 0 has an item 0 of `.args` that isn't a map"),
        (args(json!([{}])), "its kernel 0 has an item 0 of `.args` without `.value_kind`"),
        (
            args(json!([{ ".value_kind": "by_value", ".size": 8 }])),
            "its kernel 0 has an item 0 of `.args` without `.offset` and `.size`",
        ),
        (args(json!([arg(0, long)])), "its kernel 0 has a `.size` that isn't a 32-bit number"),
        (
            args(json!([arg(long - 1, 8)])),
            "its kernel 0 has an item 0 of `.args` at offset 4294967295, which isn't behind the one before",
        ),
        (
            args(json!([arg(0, 8), arg(4, 4)])),
            "its kernel 0 has an item 1 of `.args` at offset 4, which isn't behind the one before",
        ),
        // an array of 2^32 - 1 items, and 100,000 nested arrays
        (
            broken(made::code_object_of(&[0xdd, 0xff, 0xff, 0xff, 0xff], 3)),
            "its metadata isn't MessagePack: I/O error while reading marker byte: failed to fill whole buffer",
        ),
        (broken(made::code_object_of(&[0x91; 100_000], 3)), "its metadata isn't MessagePack: depth limit exceeded"),
    ] {
        assert_eq!(error, format!("the code object is broken: {expected}"));
    }
    // without the note the metadata is unknown; version 2 stores it in another form
    let untold = |abi_version| {
        let mut bytes = made::code_object_of(&[], abi_version);
        bytes[128] = 33;
        read(&bytes)
    };
    assert_eq!(untold(3).entries(), Some(&[][..]));
    assert_eq!(untold(0).entries(), None);
}

#[test]
fn broken_bundles_are_errors() {
    let broken = |bytes: Vec<u8>| Image::from_bytes(bytes).unwrap_err().to_string();
    let code = made("gfx90a", 0);
    let id = "hipv4-amdgcn-amd-amdhsa--gfx90a";
    let changed = |at: usize, number: u64| {
        let mut bytes = made::bundle(&[(id, &code)]);
        bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
        broken(bytes)
    };
    let overlapping = |mut bytes: Vec<u8>| {
        let first: [u8; 8] = bytes[32..40].try_into().unwrap();
        let second = 32 + 24 + id.len();
        bytes[second..second + 8].copy_from_slice(&first);
        bytes.truncate(bytes.len() - code.len());
        broken(bytes)
    };
    let cut = "it ends before its contents do";
    for (error, expected) in [
        (broken(b"__CLANG_OFFLOAD_BUNDLE__".to_vec()), cut),
        // the number of entries, and of the first entry the offset, the size, and the length of its id
        (changed(24, u64::MAX), cut),
        (changed(32, u64::MAX), cut),
        (changed(40, u64::MAX), cut),
        (changed(48, u64::MAX), cut),
        (overlapping(made::bundle(&[(id, &code), (id, &code)])), "its entries overlap"),
        (broken(made::bundle(&[])), "it has no code for a device"),
        (broken(made::bundle(&[("host-x86_64-unknown-linux-gnu", b"")])), "it has no code for a device"),
        (
            broken(made::bundle(&[(id, b"")])),
            "in its entry `hipv4-amdgcn-amd-amdhsa--gfx90a`, the ELF file is broken: Invalid ELF header size or alignment",
        ),
        (
            broken(made::bundle(&[(id, &made::code_object(&json!({})))])),
            "in its entry `hipv4-amdgcn-amd-amdhsa--gfx90a`, the code object is broken: its metadata has no `amdhsa.kernels`",
        ),
    ] {
        assert_eq!(error, format!("the bundle is broken: {expected}"));
    }
}

/// A truncated or modified image is an error or another image; reading it never panics.
#[test]
fn damage_is_survived() {
    for bytes in [OF_TRITON, OF_LLVM, BUNDLE] {
        for length in 0..bytes.len() {
            let _ = Image::from_bytes(&bytes[..length]);
        }
        let mut changed = bytes.to_vec();
        for at in 0..bytes.len() {
            for value in [bytes[at] ^ 1 << (at % 8), 0, 0xff, 0xdd, 0x80] {
                changed[at] = value;
                let _ = Image::from_bytes(&changed[..]);
            }
            changed[at] = bytes[at];
        }
    }
}
