//! The order of a tensor map's lists: in launches and in the driver's arguments.

use std::collections::BTreeMap;

use tvm_ffi_codegen::Kernel;
use tvm_ffi_codegen::spec::LaunchedSignature;

use super::devices::{cuda, elements, on, view};
use super::engines;
use super::launches::load;
use super::standin::{Driver, ptx};
use tvm_ffi_codegen::lower::{RuntimeHelpers, lower};

/// The names of the driver's arguments in the documentation, with those in the stand-in's log.
const NAMES: [(&str, &str); 9] = [
    ("tensorRank", "rank"),
    ("globalDim", "dims"),
    ("globalStrides", "strides"),
    ("boxDim", "box"),
    ("elementStrides", "steps"),
    ("interleave", "interleave"),
    ("swizzle", "swizzle"),
    ("l2Promotion", "l2"),
    ("oobFill", "fill"),
];

/// The documented example: the launch, and the driver's arguments by name.
fn documented() -> (LaunchedSignature, BTreeMap<String, String>) {
    let page = include_str!("../../docs/reference/launches.md");
    let (_, section) = page.split_once("\n## Tensor maps\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let code = section.split("```text\n").nth(1).unwrap().split("```").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    let rows = rows.map(|(name, rest)| (name.to_owned(), rest.split(" | ").next().unwrap().to_owned()));
    (code.parse().unwrap(), rows.collect())
}

/// The arguments of the only call that encodes a map, by name.
fn encoded(driver: &Driver) -> BTreeMap<String, String> {
    let calls = driver.calls_of("cuTensorMapEncodeTiled(");
    let [call] = &calls[..] else { panic!("{calls:?}") };
    let (_, arguments) = call.strip_suffix(')').unwrap().split_once('(').unwrap();
    let pairs = arguments.split(", ").map(|argument| argument.split_once(' ').unwrap());
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[test]
fn lists_are_turned_around_as_documented() {
    let driver = Driver::cuda();
    let (LaunchedSignature { signature, launch }, stated) = documented();
    assert_eq!(stated.len(), NAMES.len(), "{stated:?}");
    let kernel = Kernel::launch(launch, [ptx("sm_90", 90)]);
    let values: Vec<f32> = (0..240).map(|i| i as f32).collect();
    for engine in engines() {
        let module = lower(&signature, &kernel, RuntimeHelpers::Define).unwrap();
        let function = load(&engine, module, &signature);
        for strides in [Some([120, 20, 1]), None] {
            driver.reset();
            let source = on(cuda(1), values.clone(), &[240]);
            let x = view(cuda(1), &source, &[2, 5, 12], strides.as_ref().map(|strides| &strides[..]));
            let y = on(cuda(1), vec![0.0_f32; 60], &[5, 12]);
            function.call((&x, &y)).unwrap();
            let made = encoded(&driver);
            for (name, logged) in NAMES {
                let expected = match (name, strides) {
                    ("globalStrides", None) => "48 240",
                    _ => &stated[name],
                };
                assert_eq!(made[logged], expected, "{name}");
            }
            assert_eq!(made["type"], "7");
            assert_eq!(made["address"], (x.as_dl_tensor().data as usize).to_string());
            // the kernel finds rows and columns where the map says
            let row = if strides.is_some() { 20 } else { 12 };
            let expected: Vec<f32> = (0..5).flat_map(|i| (0..12).map(move |j| (row * i + j) as f32)).collect();
            assert_eq!(elements::<f32>(&y), expected);
        }
    }
}
