//! A launch under construction.

use super::super::args::{self, Values};
use super::super::device_api::{Failures, LaunchForm, Launchable, Texts};
use super::super::unit::ModulePool;
use super::blocks::Blocks;
use super::scratch::Memory;
use super::shot::Shot;
use crate::ir::{Block, FunctionBuilder, Value};
use crate::spec::{Launch, Signature};

/// A launch of a module, ready for the code that performs it.
pub(in crate::lower) struct Prepared<'a> {
    pub(super) launch: &'a Launch,
    pub(super) signature: &'a Signature,
    pub(super) code: PreparedCode,
    /// The offset of `Cannot launch kernel ...` in the constant pool, a C string.
    pub(super) caller: u32,
}

/// The code of a launched kernel, in the module.
#[derive(Clone, Copy)]
pub(super) enum PreparedCode {
    /// A kernel of a device.
    Device(DeviceCode),
    /// A function that is called for each block, on the CPU.
    Blocks(Blocks),
}

/// A kernel of a device, with the data that its launches need.
#[derive(Clone, Copy)]
pub(super) struct DeviceCode {
    pub launchable: Launchable,
    pub form: LaunchForm,
    pub texts: Texts,
}

impl Prepared<'_> {
    /// Whether the launch runs on the CPU, which has one device and no streams.
    pub(in crate::lower) fn is_on_cpu(&self) -> bool {
        matches!(self.code, PreparedCode::Blocks(_))
    }
}

impl PreparedCode {
    /// The kernel of a device; `None` for a launch on the CPU.
    pub(super) fn on_device(&self) -> Option<DeviceCode> {
        match self {
            PreparedCode::Device(code) => Some(*code),
            PreparedCode::Blocks(_) => None,
        }
    }
}

/// The values of a call that a launch uses.
pub(in crate::lower) struct Inputs<'a> {
    pub args: args::Inputs<'a>,
    /// The `DLDevice` of the tensors, as one `I64`.
    pub device: Value,
    /// Its first half: the kind, an `I32`; `None` for a device without streams.
    pub kind: Option<Value>,
    /// Its second half: the number, an `I32`.
    pub number: Value,
    /// Where the launch is noted, if it is one of a graph.
    pub shot: Option<Shot>,
}

/// A launch under construction.
pub(super) struct LaunchEmitter<'e, 'm> {
    pub(super) values: Values<'e, 'm>,
    pub(super) prepared: &'e Prepared<'e>,
    pub(super) inputs: &'e Inputs<'e>,
    /// The block that the code continues in.
    pub(super) done: Block,
    /// The block that handles failures of the driver.
    pub(super) failures: Option<Failures>,
    pub(super) memory: Memory,
}

impl<'e, 'm> LaunchEmitter<'e, 'm> {
    /// A launch that continues in the block `done`, or after an error in the block `failed`.
    pub(super) fn new(
        b: &'e mut FunctionBuilder<'m>,
        pool: &'e mut ModulePool,
        prepared: &'e Prepared<'e>,
        inputs: &'e Inputs<'e>,
        [done, failed]: [Block; 2],
    ) -> Self {
        let Prepared { signature, caller, .. } = *prepared;
        let values = Values { b, pool, signature, inputs: &inputs.args, caller, failed, missing: None };
        LaunchEmitter { values, prepared, inputs, done, failures: None, memory: Memory::new(inputs.device) }
    }
}
