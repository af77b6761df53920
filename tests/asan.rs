//! The build of `cargo xtask soak --only asan`: AddressSanitizer checks the accesses of generated code.

use std::process::Command;

use tvm_ffi_codegen::runtime::Tensor;
use tvm_ffi_codegen::{Backend, Engine, HostProgram, OptLevel};

/// Set in the process that reads past the end.
const READER: &str = "TVM_FFI_CODEGEN_READS_PAST_THE_END";
const NAME: &str = "asan::reading_past_the_end_of_a_tensor_stops_the_process";

fn item(level: OptLevel, index: i64) -> i64 {
    let program = HostProgram::parse("item(x: Tensor([n], int32), i: int64) -> int32 { return x[i]; }").unwrap();
    let (signature, kernel) = program.functions().next().unwrap();
    let engine = Engine::builder().backend(Backend::Llvm).opt_level(level).build().unwrap();
    // SAFETY: a body has no kernel. One test reads past the end in a process of its own, which must stop there.
    let item = unsafe { engine.compile(signature, kernel) }.unwrap();
    let x = Tensor::from_vec(vec![7_i32; 16], &[16]).unwrap();
    item.call((&x, index)).unwrap().cast::<i64>().unwrap()
}

#[test]
fn reading_past_the_end_of_a_tensor_stops_the_process() {
    if let Ok(level) = std::env::var(READER) {
        let level = if level == "none" { OptLevel::None } else { OptLevel::Speed };
        println!("read {}", item(level, 16));
        return;
    }
    for (name, level) in [("none", OptLevel::None), ("speed", OptLevel::Speed)] {
        assert_eq!(item(level, 15), 7);
        let reader = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", NAME, "--nocapture"])
            .env(READER, name)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&reader.stderr);
        assert!(!reader.status.success() && said.contains("heap-buffer-overflow"), "{name}: {reader:?}");
    }
}
