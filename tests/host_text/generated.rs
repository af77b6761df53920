//! Generated programs: each is printed, read back to the same object, and runs alike on every executor.
//!
//! `PROPTEST_CASES` sets the number of programs, and `TVM_FFI_CODEGEN_SEED` repeats a run.

use proptest::collection::vec;
use proptest::prelude::any;
use tvm_ffi_codegen::artifact::LibraryBuilder;
use tvm_ffi_codegen::{Kernel, Signature};

use crate::fuzz::targets::bodies;
use crate::property;

/// The number of programs in a default run.
const PROGRAMS: u32 = 150;

fn object(signature: &Signature, kernel: &Kernel) -> Vec<u8> {
    LibraryBuilder::new().function(signature, kernel).emit().unwrap().as_bytes().to_vec()
}

#[test]
fn programs_are_read_back_to_the_same_objects_and_run_alike() {
    let statements = std::cell::Cell::new(0);
    property::run(property::stated_or(PROGRAMS), &vec(any::<u8>(), 0..400), |mut input| {
        // programs that break the rules have no text
        input.insert(0, 1);
        let (signature, kernel) = bodies::function(&input, bodies::keeps_rules(&input));
        let (read, text) = bodies::read_back(&signature, &kernel);
        assert!(object(&signature, &kernel) == object(&signature, &read), "{text}");
        bodies::run(&input);
        statements.set(statements.get() + text.lines().count());
        Ok(())
    });
    println!("{} lines", statements.get());
    assert!(statements.get() > 500, "{} lines", statements.get());
}
