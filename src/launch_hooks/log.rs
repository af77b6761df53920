//! A line on the standard error stream for each launch.

use std::ffi::c_int;
use std::io::Write;
use std::sync::{Arc, LazyLock};

use super::launch::{Hook, Launch};

/// The environment variable that turns the log on: any value but `0` and an empty one.
const VARIABLE: &str = "TVM_FFI_CODEGEN_LOG_LAUNCHES";

/// The hook, if the environment asks for it.
pub(super) fn hook() -> Option<Arc<dyn Hook>> {
    static IS_ON: LazyLock<bool> =
        LazyLock::new(|| std::env::var_os(VARIABLE).is_some_and(|value| !value.is_empty() && value != "0"));
    IS_ON.then(|| Arc::new(Log) as Arc<dyn Hook>)
}

struct Log;

impl Hook for Log {
    fn enter(&self, launch: &Launch<'_>) -> Result<(), c_int> {
        // a program without a standard error stream has no log
        let _ = std::io::stderr().write_all(line(launch).as_bytes());
        Ok(())
    }

    fn exit(&self, _: &Launch<'_>) -> Result<(), c_int> {
        Ok(())
    }
}

/// The line of a launch. Parameters are hexadecimal numbers, in the machine's byte order.
fn line(launch: &Launch<'_>) -> String {
    let [grid, block] = [launch.config.grid, launch.config.block].map(|[x, y, z]| format!("({x}, {y}, {z})"));
    let (name, shared, stream) = (&launch.name, launch.config.shared_memory, launch.config.stream.addr());
    let device = launch.device;
    let mut line = format!(
        "tvm_ffi_codegen: launch {name} grid={grid} block={block} shared_memory={shared} stream={stream:#x} \
         device={device}"
    );
    if let Some(params) = launch.param_bytes() {
        let shown: Vec<String> = params.into_iter().map(number).collect();
        line += &format!(" params=[{}]", shown.join(", "));
    }
    line + "\n"
}

/// The bytes of a parameter as one number.
fn number(bytes: &[u8]) -> String {
    let digits = |bytes: &mut dyn Iterator<Item = &u8>| bytes.map(|byte| format!("{byte:02x}")).collect::<String>();
    match cfg!(target_endian = "little") {
        true => format!("0x{}", digits(&mut bytes.iter().rev())),
        false => format!("0x{}", digits(&mut bytes.iter())),
    }
}
