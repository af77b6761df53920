//! The global variables of images that launches write. Their addresses are found at a kernel's first use on a device.
//!
//! Each launch writes its values on its stream, by calls that take a value and not an address of host memory. So a
//! captured launch writes them at each replay.

use super::api::Call;
use super::driver::Driver;
use super::images::field_of;
use super::outcome::Failed;
use super::state::row;
use super::steps::Steps;
use crate::ir::{FuncRef, FuncSig, Module, Type, Val};
use crate::lower::protocol::launch_table::{GlobalRecord, KernelRecord};
use crate::lower::protocol::{Encode, field};

/// A global's cell for a device: the address, then the size in bytes.
mod cell {
    pub(super) const SIZE: i64 = 16;
    pub(super) const ADDRESS: i32 = 0;
    pub(super) const BYTES: i32 = 8;
}

/// The number of words of a global's cells for `devices` devices.
pub(super) const fn words(devices: u32) -> u32 {
    devices * (cell::SIZE as u32 / 8)
}

/// The offset of the value of a global in a launch's block of values, which follows the size in bytes. The next global
/// is after the value, aligned to 8.
pub(in crate::lower) const VALUE: u32 = 8;

/// `CUDA_ERROR_NOT_FOUND` (cuda.h) and `hipErrorNotFound` (hip_runtime_api.h).
const NOT_FOUND: i64 = 500;

/// The global variables of a kernel.
struct Globals<'c> {
    table: Val<'c>,
    state: Val<'c>,
    device: Val<'c>,
    count: Val<'c>,
    first: Val<'c>,
}

impl<'c> Globals<'c> {
    fn of(table: Val<'c>, kernel: Val<'c>, state: Val<'c>, device: Val<'c>) -> Self {
        let count = field_of(kernel, field!(KernelRecord, globals));
        let first = table + field_of(kernel, field!(KernelRecord, first_global));
        Globals { table, state, device, count, first }
    }

    /// Emits the code for each global, given the offset of its name in the table, and the cell for the device.
    fn each(&self, body: impl FnOnce(Val<'c>, Val<'c>)) {
        self.table.emitter().for_up(self.count, |number| {
            let global = self.first + number * GlobalRecord::SIZE as i64;
            let cells = self.state + field_of(global, field!(GlobalRecord, cells));
            body(field_of(global, field!(GlobalRecord, name)), row(cells, self.device, cell::SIZE));
        });
    }
}

/// `int64_t find(const void* table, const void* kernel, void* image, void* state, int32_t device)`: finds the addresses
/// of a kernel's globals in a loaded image; returns an outcome.
pub(super) fn find(module: &mut Module, driver: &Driver) -> FuncRef {
    let sig = FuncSig::c([Type::Ptr, Type::Ptr, Type::Ptr, Type::Ptr, Type::I32], Some(Type::I64));
    driver.in_context(module, "find_globals", (sig, [3, 4]), |module, name, sig| {
        module.cold_local(name, sig, |c| {
            let [table, kernel, image, state, device] = c.params();
            let steps = Steps::new(c);
            let (address, bytes) = (steps.place(), steps.place());
            Globals::of(table, kernel, state, device).each(|name, cell| {
                let status = driver.call(c, Call::GetGlobal, &[address, bytes, image, table + name]);
                steps.require(status.is_not(NOT_FOUND), Failed::NoGlobal, name.truncate());
                steps.require_success(Call::GetGlobal, status);
                cell.store(cell::ADDRESS, address.load(Type::I64, 0));
                cell.store(cell::BYTES, bytes.load(Type::I64, 0));
            });
            steps.finish(|| {});
        })
    })
}

/// `int64_t write(const void* table, uint32_t kernel, void* state, int32_t device, const void* values, void* stream)`
pub(super) fn signature() -> FuncSig {
    FuncSig::c([Type::Ptr, Type::I32, Type::Ptr, Type::I32, Type::Ptr, Type::Ptr], Some(Type::I64))
}

/// A function that writes the values of a kernel's globals on a stream; returns an outcome.
pub(super) fn write(module: &mut Module, driver: &Driver) -> FuncRef {
    driver.in_context(module, "write_globals", (signature(), [2, 3]), |module, name, sig| {
        module.local(name, sig, |c| {
            let [table, kernel, state, device, values, stream] = c.params();
            let steps = Steps::new(c);
            let next = c.var(Type::Ptr);
            next.set(values);
            let one = c.i64(1);
            Globals::of(table, table + kernel.zext(), state, device).each(|name, cell| {
                let block = next.get();
                let (bytes, from) = (block.load(Type::I64, 0), block + i64::from(VALUE));
                let (address, size) = (cell.load(Type::I64, cell::ADDRESS), cell.load(Type::I64, cell::BYTES));
                steps.require(size.is(bytes), Failed::GlobalSize, name.truncate());
                let words = (address & 3_i64).is(0).select(bytes >> 2, c.i64(0));
                c.for_up(words, |number| {
                    let at = number * 4;
                    let value = (from + at).load(Type::I32, 0);
                    steps.call(driver, Call::SetWord, &[address + at, value, one, stream]);
                });
                let done = words * 4;
                c.for_up(bytes - done, |number| {
                    let at = done + number;
                    let value = (from + at).load(Type::I8, 0).zext().truncate();
                    steps.call(driver, Call::SetByte, &[address + at, value, one, stream]);
                });
                next.set(from + ((bytes + 7) & -8_i64));
            });
            steps.finish(|| {});
        })
    })
}
