//! The helpers of launches: driver work other than the launch itself. Wrappers share them and call some of them by
//! symbol. The [state](super::state) has the addresses of the others once a device is in use.

use super::api::{APIS, Api, Call, Symbol};
use super::driver::Driver;
use super::image_hooks::HookFunctions;
use super::launch_hooks::LaunchHooks;
use super::start::start;
use super::state::InState;
use super::system::System;
use super::{first_use, globals, graph, launch, params, report, tensor_map, unload};
use crate::ir::{DataRef, FuncRef, FuncSig, Linkage, Module, Type};
use crate::lower::constants::ConstantPool;

/// The helpers of launches that wrappers call by their symbols, in a module. Questions also call
/// [another one](device_signature).
#[derive(Clone, Copy, Debug)]
pub(super) struct Called {
    pub first_use: FuncRef,
    pub report: FuncRef,
    pub launch: FuncRef,
}

/// `int64_t first_use(const void* table, uint32_t kernel, void* state, const void* images, int32_t device, void**
/// handle)`: does a kernel's first-use work and writes its handle on the device. `kernel` is the offset of its record
/// in the table. Returns an outcome.
fn first_use_signature() -> FuncSig {
    let params = [Type::Ptr, Type::I32, Type::Ptr, Type::Ptr, Type::I32, Type::Ptr];
    FuncSig::new(params, Some(Type::I64))
}

/// `int32_t report(const char* caller, const char* images, int64_t outcome, const CUlaunchConfig* config, int32_t
/// device)`: raises the error of a nonzero outcome. `images` lists the devices that have images. `config` is NULL if
/// nothing was launched.
fn report_signature() -> FuncSig {
    FuncSig::new([Type::Ptr, Type::Ptr, Type::I64, Type::Ptr, Type::I32], Some(Type::I32))
}

/// `int64_t device(void* state, int32_t device)`: does a device's first-use work, which writes the device's record.
/// Returns an outcome.
fn device_signature() -> FuncSig {
    FuncSig::new([Type::Ptr, Type::I32], Some(Type::I64))
}

impl Called {
    /// The helpers of an API, imported.
    pub(super) fn import(module: &mut Module, api: &Api) -> Self {
        let mut import = |symbol, sig| module.import(api.symbol(symbol), sig);
        Called {
            first_use: import(Symbol::FirstUse, first_use_signature()),
            report: import(Symbol::Report, report_signature()),
            launch: import(Symbol::Launch, launch::signature()),
        }
    }
}

/// The helper that does a device's first-use work, imported.
pub(super) fn import_device(module: &mut Module, api: &Api) -> FuncRef {
    module.import(api.symbol(Symbol::Device), device_signature())
}

/// Declares a helper that the module defines.
fn declare(module: &mut Module, name: &str, sig: FuncSig, linkage: Linkage) -> FuncRef {
    let func = module.declare(name, sig, linkage);
    module.functions[func].cold = true;
    func
}

/// The helpers of an API under construction, in the module that defines them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Defined {
    driver: Driver,
    launch_hooks: Option<LaunchHooks>,
    linkage: Linkage,
    pub called: Called,
    /// The helper that does a device's first-use work, if it is declared already.
    device: Option<FuncRef>,
}

/// The parts of the helpers that launches need.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub tensor_maps: bool,
    /// Kernel parameters are compared with the driver's.
    pub params: bool,
    pub graphs: bool,
    /// Kernels need a version of the driver.
    pub version: bool,
    /// Launches write global variables.
    pub globals: bool,
    /// Launches state functions for images.
    pub image_hooks: bool,
}

impl Defined {
    /// Declares the helpers of an API and defines the one that needs message templates. [`finish`](Self::finish)
    /// defines the rest.
    pub(super) fn new(
        module: &mut Module,
        api: &'static Api,
        system: System,
        has_hooks: bool,
        linkage: Linkage,
        constants: &mut ConstantPool,
        pool: DataRef,
    ) -> Self {
        let called = Called {
            first_use: declare(module, api.symbol(Symbol::FirstUse), first_use_signature(), linkage),
            report: declare(module, api.symbol(Symbol::Report), report_signature(), linkage),
            launch: declare(module, api.symbol(Symbol::Launch), launch::signature(), linkage),
        };
        let driver = Driver::new(module, api, system);
        report::define(module, &driver, constants, pool, called.report);
        launch::define(module, api, [called.first_use, called.report], called.launch);
        Defined { driver, launch_hooks: has_hooks.then(|| LaunchHooks::new(module)), linkage, called, device: None }
    }

    /// The helper that does a device's first-use work.
    pub(super) fn device(&mut self, module: &mut Module) -> FuncRef {
        let Defined { driver, linkage, device, .. } = self;
        *device.get_or_insert_with(|| declare(module, driver.api.symbol(Symbol::Device), device_signature(), *linkage))
    }

    /// Defines the helpers that launches need.
    pub(super) fn finish(mut self, module: &mut Module, asked: Asked) {
        let Defined { driver, launch_hooks, called, .. } = self;
        let image_hooks = asked.image_hooks.then(|| HookFunctions::define(module, &driver));
        let in_state = InState {
            start: start(module, &driver, false),
            start_cooperative: driver.api.function(Call::LaunchCooperative).map(|_| start(module, &driver, true)),
            tensor_map: if asked.tensor_maps { tensor_map::encode(module, &driver) } else { None },
            unload: unload::unload(module, &driver, launch_hooks, image_hooks),
            graphs: asked.graphs.then(|| graph::define(module, &driver, called.report)),
            write_globals: asked.globals.then(|| globals::write(module, &driver)),
        };
        driver.finish(module, asked.graphs && driver.api.has_graphs());
        let device = self.device(module);
        first_use::define_device(module, &driver, launch_hooks, &in_state, device);
        let compare = if asked.params { params::compare(module, &driver) } else { None };
        let find_globals = asked.globals.then(|| globals::find(module, &driver));
        let parts = first_use::Parts {
            device,
            launch_hooks,
            compare,
            version: asked.version,
            find_globals,
            loaded: image_hooks.map(|hooks| hooks.loaded),
        };
        first_use::define(module, &driver, parts, called.first_use);
    }
}

/// Defines an API's helpers in a module that exports them, if `symbol` is that of the first one. Ignores other symbols.
pub(in crate::lower) fn export(module: &mut Module, symbol: &str, constants: &mut ConstantPool, pool: DataRef) {
    if let Some(api) = APIS.into_iter().find(|api| api.symbol(Symbol::FirstUse) == symbol) {
        let helpers = Defined::new(module, api, System::default(), true, Linkage::Export, constants, pool);
        helpers.finish(
            module,
            Asked { tensor_maps: true, params: true, version: true, globals: true, image_hooks: true, graphs: true },
        );
    }
}
