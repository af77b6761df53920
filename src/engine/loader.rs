//! A backend's interface for the JIT.

use super::code::{Code, KeepAlive};
use super::error::EngineError;
use super::objects::{LoadedObjects, Unit};
use crate::ir::VerifiedModule;

/// A backend in this process: compiles, requests addresses, and loads.
pub(super) trait Loader: Send + Sync {
    /// Compiles a module and loads it. `resolve` is called once, with all symbols that the code refers to.
    fn load(
        &self,
        module: &VerifiedModule,
        resolve: Resolve<'_>,
        keep_alive: Vec<KeepAlive>,
    ) -> Result<Code, EngineError>;

    /// Links objects into this process. `addresses` are those of the unit's imports; an undefined weak import has
    /// address 0.
    fn load_objects(&self, unit: &Unit<'_>, addresses: &[usize]) -> Result<LoadedObjects, EngineError>;
}

/// Returns the addresses of names, in their order, or says which are missing.
pub(crate) type Resolve<'a> = &'a dyn Fn(&[String]) -> Result<Vec<*const u8>, EngineError>;
