//! Wrappers of many tensors: their code grows with their number, and no faster. Objects: what they carry beside wrappers is what these use.

use tvm_ffi_codegen::lower::{RuntimeHelpers, lower};
use tvm_ffi_codegen::{Backend, Engine, Kernel, ir};

use crate::support::sig;

/// Tensors of four dimensions, whose symbols are the same ones, or each its own.
fn signature(count: usize, shared: bool) -> String {
    let tensor = |i: usize| {
        let own = if shared { String::new() } else { i.to_string() };
        format!("x{i}: Tensor([a{own}, b{own}, c{own}, d{own}], float32)")
    };
    format!("f({})", (0..count).map(tensor).collect::<Vec<_>>().join(", "))
}

extern "C" fn never_called() {}

#[test]
fn code_and_data_grow_with_the_number_of_tensors() {
    let kernel = Kernel::address(never_called as *const std::ffi::c_void);
    for &backend in Backend::ALL {
        let engine = Engine::builder().backend(backend).build().unwrap();
        for shared in [true, false] {
            let size = |count: usize| {
                let signature = sig(&signature(count, shared));
                let code = engine.compile_code([(&signature, &kernel)]).unwrap();
                [code.code_size() as f64 / count as f64, code.data_size() as f64 / count as f64]
            };
            let sizes: Vec<_> = [1, 2, 4, 8, 16, 32, 64].map(|count| (count, size(count))).into();
            println!("{backend}, shared symbols: {shared}, bytes of code and data for each tensor: {sizes:?}");
            let few = sizes[3].1;
            for (count, many) in &sizes[4..] {
                for (many, few) in many.iter().zip(few) {
                    assert!(*many < 1.15 * few, "{backend}, {count} tensors, shared symbols: {shared}: {sizes:?}");
                }
            }
        }
    }
}

/// A chain of tensors: in the size of each are two symbols, of which the last tensor alone tells one, and a parameter.
fn chain(count: usize, forward: bool) -> String {
    let link = |i: usize| format!("x{i}: Tensor([3 * k + s{i} + s{}], int8)", i + 1);
    let mut links: Vec<String> = (0..count - 1).map(link).collect();
    links.push(format!("x{}: Tensor([s{}], int8)", count - 1, count - 1));
    if forward {
        links.reverse();
    }
    format!("f(k: int64, {})", links.join(", "))
}

/// Each dimension but the last waits for the one behind it.
#[test]
fn code_of_dimensions_that_wait_is_that_of_dimensions_that_do_not() {
    for count in [8, 50, 700] {
        let size = |forward: bool| {
            let signature = sig(&chain(count, forward));
            let start = std::time::Instant::now();
            let module = lower(&signature, &Kernel::check_only(), RuntimeHelpers::Import).unwrap();
            let time = start.elapsed();
            let wrapper = module.functions.values().find(|f| f.name == "__tvm_ffi_f").unwrap();
            let body = wrapper.body.as_ref().unwrap();
            let insts: usize = body.blocks.values().map(|block| block.insts.len()).sum();
            println!("{count} tensors, forward: {forward}: {insts} instructions, {time:?}");
            insts
        };
        let (forward, reverse) = (size(true), size(false));
        assert!(
            reverse <= forward + forward / 50 + 2,
            "{count} tensors: {reverse} instructions, {forward} in forward order"
        );
    }
}

/// A module that stands alone, as for an object.
fn alone(signature: &str) -> ir::Module {
    lower(&sig(signature), &Kernel::check_only(), RuntimeHelpers::Define).unwrap()
}

#[test]
fn objects_have_the_routines_that_their_signatures_use() {
    for (signature, expected) in [
        ("f(a: int64, b: float64, c: bool, h: handle)", &[][..]),
        ("f(x: Tensor([n], float32), y: Tensor([n], float32))", &[]),
        ("f(x: Tensor([n], float32, strides=[s]))", &["dim"]),
        ("f(x: Tensor([n], float32), y: Tensor([2 * n], float32))", &["copy_place", "dim", "eval"]),
        ("f(n: int64, m: int64) where n < m", &["eval"]),
        ("f(x: Optional[int64])", &["check"]),
        ("f(xs: Array[int64])", &["check", "copy_place"]),
    ] {
        let module = alone(signature);
        let defined = module.functions.values().filter(|f| f.body.is_some());
        let mut names: Vec<_> = defined.filter_map(|f| f.name.strip_prefix("__tvm_ffi_codegen_")).collect();
        names.sort_unstable();
        let mut expected = [&["bind", "report"], expected].concat();
        expected.sort_unstable();
        assert_eq!(names, expected, "{signature}");
    }
}

#[test]
fn objects_have_the_names_that_their_messages_may_tell() {
    let has = |module: &ir::Module, name: &str| {
        module.data.values().any(|data| data.bytes.windows(name.len()).any(|bytes| bytes == name.as_bytes()))
    };
    let (scalars, tensors) = (alone("f(a: int64)"), alone("f(x: Tensor([n], float32))"));
    for (name, of_scalars) in [("VisitInterrupt", true), ("bfloat", false), ("vulkan", false)] {
        assert_eq!(has(&scalars, name), of_scalars, "{name}");
        assert!(has(&tensors, name), "{name}");
    }
}

/// Bytes of code and data with Cranelift, for this machine; bounds have some head-room.
#[cfg(feature = "cranelift")]
#[test]
fn objects_are_small() {
    use tvm_ffi_codegen::OptLevel;
    use tvm_ffi_codegen::backend::cranelift::{IsaOptions, compile, host_isa};

    let isa = host_isa(&IsaOptions { opt_level: OptLevel::Full, pic: true, ..IsaOptions::default() }).unwrap();
    for (signature, most) in [
        ("scalars(a: int64, b: float64, c: bool, h: handle)".to_owned(), 3_000),
        ("add_one(x: Tensor([n], float32), y: Tensor([n], float32))".to_owned(), 5_900),
        (signature(16, true), 10_500),
    ] {
        let module = ir::verify(alone(&signature)).unwrap();
        let compiled = compile(&module, &*isa).unwrap();
        let [code, data] = [compiled.code_size(), compiled.data_size()];
        println!("{signature}: {code} bytes of code, {data} of data");
        assert!(code + data < most, "{signature}: {code} bytes of code, {data} of data");
    }
}
