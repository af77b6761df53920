//! A function whose body has source locations. You can see them in `gdb`, in `perf` and in the backtrace of an error;
//! `docs/howto/debugging.md` shows the output. With an argument, the example writes the function to an object file
//! of that name instead.
//!
//! The source of a DSL would be `model.dsl`:
//!
//! ```text
//! 1  def average(a, b):
//! 2      total = host.add(a, b)
//! 3      return host.halve(total)
//! ```

use std::error::Error;
use std::hint::black_box;

use tvm_ffi_codegen::artifact::LibraryBuilder;
use tvm_ffi_codegen::runtime::{self, Function, registry};
use tvm_ffi_codegen::{Backend, Engine, Kernel, ScalarType, Signature};

/// The host's function, where a debugger may stop. `gdb` finds this name even without Rust's debug information.
#[inline(never)]
#[unsafe(no_mangle)]
fn debugging_halve(n: i64) -> runtime::Result<i64> {
    if n % 2 != 0 {
        return Err(runtime::Error::new("ValueError", &format!("{n} is odd")));
    }
    black_box(Ok(n / 2))
}

fn main() -> Result<(), Box<dyn Error>> {
    registry::set_global("host.add", Function::from_typed(|a: i64, b: i64| a + b), true)?;
    registry::set_global("host.halve", Function::from_typed(debugging_halve), true)?;
    let signature: Signature = "average(a: int64, b: int64) -> int64".parse()?;
    let kernel = Kernel::body(|b| {
        b.set_location("model.dsl", 2, "average");
        let total = b.call_global("host.add", (b.arg("a"), b.arg("b"))).returns(ScalarType::Int64).value();
        b.set_location("model.dsl", 3, "average");
        b.ret(b.call_global("host.halve", (total,)).returns(ScalarType::Int64).value());
    });
    if let Some(path) = std::env::args_os().nth(1) {
        LibraryBuilder::new().function(&signature, &kernel).emit()?.write(path)?;
        return Ok(());
    }
    for &backend in Backend::ALL {
        let engine = Engine::builder().backend(backend).build()?;
        // SAFETY: the body reads no memory.
        let average = unsafe { engine.compile(&signature, &kernel)? };
        assert_eq!(average.call((20, 22))?.cast::<i64>()?, 21);
        let error = average.call((20, 23)).err().ok_or("43 is odd")?;
        println!("with {backend}: {error}");
        print!("{}", error.backtrace());
    }
    Ok(())
}
