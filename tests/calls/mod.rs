//! Bodies that call: on every executor, with every call of the runtime on record.

pub mod callees;
mod cases;

use tvm_ffi_codegen::runtime::AnyView;

use crate::support::library::{Loaded, Reply, on_all};
use crate::support::recording::{Trace, record};
use cases::Case;

impl Case {
    /// Calls the function.
    fn call(&self, loaded: &mut Loaded<'_>) -> Reply {
        let args = (self.args)();
        let views: Vec<AnyView<'_>> = args.iter().map(|arg| arg.as_view()).collect();
        if self.imports {
            let (own, imported) = (callees::module(), callees::module());
            own.import_module(&imported).unwrap();
            loaded.set_context(&own);
        }
        loaded.call(self.name, &views)
    }
}

/// What generated code did, and what came of it.
fn traced(run: impl FnOnce() -> Reply) -> (String, Trace) {
    let (reply, trace) = record(run);
    (reply.to_string(), trace)
}

/// Tries something on all cases, and tells of every one that fails.
fn on_each_case(test: impl Fn(&Case) -> Result<(), String>) {
    let problems: Vec<String> =
        cases::all().iter().filter_map(|case| test(case).err().map(|e| format!("{}: {e}", case.name))).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}

#[test]
fn every_case_runs_alike_on_every_executor() {
    on_each_case(|case| {
        let (text, trace) = on_all(&case.library, |loaded| traced(|| case.call(loaded)))?;
        println!("{}: {text}\n{trace}", case.name);
        Ok(())
    });
}
