//! Generated programs: each is printed, read back to the same object, and runs alike on every executor.
//!
//! `PROPTEST_CASES` sets the number of programs, and `TVM_FFI_CODEGEN_SEED` repeats a run. A default run compares the
//! IR of all programs, and compiles one in [`COMPILED`].

use std::cell::Cell;

use proptest::collection::vec;
use proptest::prelude::any;
use tvm_ffi_codegen::artifact::LibraryBuilder;
use tvm_ffi_codegen::{Kernel, Signature};

use crate::fuzz::targets::bodies;
use crate::support::random::{run, stated_or};

/// The number of programs in a default run.
const PROGRAMS: u32 = 200;
/// The number of programs in a default run for each one that is compiled.
const COMPILED: u32 = 20;

fn object(signature: &Signature, kernel: &Kernel) -> Vec<u8> {
    LibraryBuilder::new().function(signature, kernel).emit().unwrap().as_bytes().to_vec()
}

#[test]
fn programs_are_read_back_to_the_same_objects_and_run_alike() {
    let (programs, statements) = (Cell::new(0), Cell::new(0));
    let every = if std::env::var_os("PROPTEST_CASES").is_some() { 1 } else { COMPILED };
    run(stated_or(PROGRAMS), &vec(any::<u8>(), 0..400), |mut input| {
        // programs that break the rules have no text
        input.insert(0, 1);
        let (signature, kernel) = bodies::function(&input, bodies::keeps_rules(&input));
        let (read, text) = bodies::read_back(&signature, &kernel);
        programs.set(programs.get() + 1);
        if programs.get() % every == 0 {
            assert!(object(&signature, &kernel) == object(&signature, &read), "{text}");
            bodies::run(&input);
        }
        statements.set(statements.get() + text.lines().count());
        Ok(())
    });
    println!("{} programs of {} lines", programs.get(), statements.get());
    // `PROPTEST_CASES` may ask for few programs, so the least number of lines follows from the number of programs.
    assert!(2 * statements.get() > 5 * programs.get() as usize, "{} lines", statements.get());
}
