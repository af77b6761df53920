//! Wrappers of many tensors: their code grows with their number, and no faster.

use tvm_ffi_codegen::{Backend, Engine, Kernel};

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
