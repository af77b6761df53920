//! Loads a library with a large module on the bundled runtime: `payload LIBRARY FILE`. The module's bytes are those of
//! FILE, and loading copies none of them.

use std::error::Error;
use std::fs::{self, File};
use std::io::Read;
use std::time::Instant;

use tvm_ffi_runtime::module::{ModuleImpl, register_module_loader};
use tvm_ffi_runtime::{Bytes, Function, Module};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The maximum growth of resident memory when the library is loaded, in KiB.
const MAX_GROWTH_KIB: u64 = 16 << 10;

struct Payload(Bytes);

impl ModuleImpl for Payload {
    fn kind(&self) -> &str {
        "payload"
    }

    fn get_function(&self, _: &str) -> tvm_ffi_runtime::Result<Option<Function>> {
        Ok(None)
    }

    fn save_to_bytes(&self) -> tvm_ffi_runtime::Result<Option<Bytes>> {
        Ok(Some(self.0.clone()))
    }
}

/// Resident memory in KiB (Linux).
fn resident() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS in /proc/self/status")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().collect();
    let [_, library, file] = &args[..] else { return Err("usage: payload LIBRARY FILE".into()) };
    register_module_loader("payload", |bytes| Ok(Module::from_impl(Payload(bytes))))?;

    let before = resident()?;
    let start = Instant::now();
    // SAFETY: the library is one of this test's.
    let module = unsafe { Module::load_from_file(library) }?;
    let time = start.elapsed();
    let after = resident()?;
    let payload = module.imports().first().ok_or("nothing is imported")?.save_to_bytes()?.ok_or("no bytes")?;
    println!("loaded {} bytes in {:.1} ms", payload.len(), time.as_secs_f64() * 1e3);
    println!("resident before {before} KiB, then {after} KiB");
    if after > before + MAX_GROWTH_KIB {
        return Err("loading takes memory for the payload".into());
    }

    let (mut file, mut expected) = (File::open(file)?, vec![0; 1 << 20]);
    let mut left = payload.as_bytes();
    loop {
        let len = file.read(&mut expected)?;
        if len == 0 {
            break;
        }
        let (bytes, rest) = left.split_at_checked(len).ok_or("the payload is shorter than its file")?;
        if bytes != &expected[..len] {
            return Err("the payload has other bytes than its file".into());
        }
        left = rest;
    }
    match left.is_empty() {
        true => Ok(()),
        false => Err("the payload is longer than its file".into()),
    }
}
