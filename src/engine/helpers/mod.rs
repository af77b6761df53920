//! Runtime helpers in this process: compiled when a wrapper first needs them, and shared by all engines.
//!
//! Wrappers import three helpers ([`BIND_SYMBOL`](crate::lower::BIND_SYMBOL),
//! [`REPORT_SYMBOL`](crate::lower::REPORT_SYMBOL) and [`TAKE_RESULT_SYMBOL`](crate::lower::TAKE_RESULT_SYMBOL)), and
//! launches import [four more](crate::lower::LAUNCH_SYMBOLS). Compiling them takes longer than compiling a wrapper, and
//! most processes never leave the fast path. So a wrapper whose fast path needs no helper gets the addresses of
//! *stubs*. A stub is a function of this file that compiles the helpers at its first call, and then calls them. A
//! wrapper that calls a helper in every call gets the address of the helper itself, which is compiled with the wrapper.
//! Code that was lowered elsewhere ([`Jit::load`], callers' modules) gets stubs of all helpers, with every capability.
//!
//! Helpers have the [capabilities](Capabilities) that the wrappers so far need. Each compiled set has a *slot* and is
//! never unloaded; the number of slots bounds the memory. If no set of a runtime has what a wrapper needs, a new
//! set gets all capabilities requested so far. The last possible set gets every capability.

use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::code::{Code, KeepAlive};
use super::error::EngineError;
use super::jit::{Jit, LoadOptions};
use crate::backend::{Backend, verified};
use crate::ir::{HOST_ENDIANNESS, Module};
use crate::lower::{C_FUNCTIONS, Capabilities, HelperSet, Importer, helpers_module};
use tvm_ffi_runtime::capi;

/// The symbols of the runtime's functions that helpers call.
const IMPORTS: [&str; imported()] = {
    let mut symbols = [""; imported()];
    let (mut at, mut count) = (0, 0);
    while at < C_FUNCTIONS.len() {
        if matches!(C_FUNCTIONS[at].importer, Importer::Helper) {
            symbols[count] = C_FUNCTIONS[at].symbol;
            count += 1;
        }
        at += 1;
    }
    symbols
};

/// The number of functions that helpers call.
const fn imported() -> usize {
    let (mut at, mut count) = (0, 0);
    while at < C_FUNCTIONS.len() {
        count += matches!(C_FUNCTIONS[at].importer, Importer::Helper) as usize;
        at += 1;
    }
    count
}

/// The function that raises an error whose message is in parts.
const RAISE: &str = "TVMFFIErrorSetRaisedFromCStrParts";

/// The maximum number of sets per runtime, backend and [`HelperSet`]. The last set has every capability.
const SETS: usize = 3;
/// The maximum number of sets in a process.
const SLOTS: usize = 48;
/// The maximum number of sets for all foreign runtimes together, which leaves slots for the bundled one.
const FOREIGN_SLOTS: usize = SLOTS - HelperSet::ALL.len() * SETS * MOST_BACKENDS;
const MOST_BACKENDS: usize = 2;

/// The stack size in bytes of a thread that compiles helpers. The caller's stack may be small or nearly used up.
const STACK: usize = 4 << 20;

/// The functions that helpers call, and the backend that compiles the helpers. Equal runtimes share helpers, since
/// their code depends on nothing else.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Runtime {
    backend: Backend,
    /// The addresses of the functions in [`IMPORTS`], in its order.
    addresses: [usize; IMPORTS.len()],
    bundled: bool,
}

impl Runtime {
    /// The runtime's functions with their names. An address of 0 counts as missing.
    fn symbols(&self) -> Vec<(&'static str, *const u8)> {
        let known = IMPORTS.iter().zip(self.addresses).filter(|(_, address)| *address != 0);
        known.map(|(name, address)| (*name, std::ptr::with_exposed_provenance(address))).collect()
    }

    /// The address of a helper with every capability, by its symbol. It is a stub if the helper isn't compiled yet.
    fn helper(&self, symbol: &str) -> Option<*const u8> {
        let position = |unit: HelperSet| unit.symbols().iter().position(|known| *known == symbol);
        let (unit, index) = HelperSet::ALL.into_iter().find_map(|unit| Some((unit, position(unit)?)))?;
        let slot = slot_for(self, unit, Capabilities::ALL)?;
        let addresses = SLOTS_OF_PROCESS[slot].addresses().unwrap_or_else(|| STUBS[slot].addresses(unit));
        Some(addresses[index])
    }
}

/// The helpers for code of the bundled runtime that no engine loads, by symbol. They are stubs, which are never
/// unloaded; calling one compiles the helpers.
pub(crate) fn helpers_of_process() -> impl Iterator<Item = (&'static str, *const u8)> {
    let table = capi::symbols();
    let address = |name| table.iter().find(|(known, _)| *known == name).map(|(_, address)| address.as_ptr());
    let addresses = IMPORTS.map(|name| address(name).map_or(0, <*const c_void>::expose_provenance));
    let runtime = Runtime { backend: Backend::default(), addresses, bundled: true };
    let symbols = HelperSet::ALL.into_iter().flat_map(HelperSet::symbols);
    symbols.filter_map(move |symbol| Some((*symbol, runtime.helper(symbol)?)))
}

/// The helpers that a module's wrappers call, and when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Needs {
    pub capabilities: Capabilities,
    /// A wrapper calls `bind` in every call.
    pub always_binds: bool,
}

/// The helpers of an engine.
pub(super) struct Helpers {
    runtime: Runtime,
    /// Private helpers of the engine, for a process that has no free slot.
    own: Mutex<Option<Arc<Code>>>,
}

/// Addresses of the helpers for a module.
#[derive(Default)]
pub(super) struct Linked {
    pub symbols: Vec<(&'static str, *const u8)>,
    /// Owners of the helpers' code, which the module must keep alive.
    pub keep_alive: Vec<KeepAlive>,
}

impl std::fmt::Debug for Helpers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Helpers").finish_non_exhaustive()
    }
}

impl Helpers {
    /// The helpers for code of this JIT; none is compiled yet.
    ///
    /// # Errors
    /// The JIT doesn't know a function that the helpers call.
    pub(super) fn new(jit: &Jit, bundled: bool) -> Result<Self, EngineError> {
        let found = IMPORTS.map(|name| jit.symbols().resolve(name));
        let names = || IMPORTS.iter().zip(found).filter(|(_, address)| address.is_none());
        if names().next().is_some() {
            return Err(EngineError::Unresolved {
                names: names().map(|(name, _)| (*name).to_owned()).collect(),
                callers: BTreeMap::new(),
                references: BTreeMap::new(),
            });
        }
        let addresses = found.map(|address| address.map_or(0, <*const u8>::expose_provenance));
        let runtime = Runtime { backend: jit.backend(), addresses, bundled };
        Ok(Helpers { runtime, own: Mutex::default() })
    }

    /// The addresses of the helpers that a module imports.
    ///
    /// # Errors
    /// Compiling helpers for the module failed.
    pub(super) fn link(&self, jit: &Jit, module: &Module, needs: Needs) -> Result<Linked, EngineError> {
        let imports = |symbol: &&str| module.function_named(symbol).is_some();
        let mut linked = Linked::default();
        for unit in HelperSet::ALL {
            let at_once = match unit {
                HelperSet::Bind => needs.always_binds,
                HelperSet::TakeResult => true,
                // needed only at a first use
                HelperSet::Launches(_) => false,
            };
            if !unit.symbols().iter().any(imports) {
                continue;
            }
            let Some(slot) = slot_for(&self.runtime, unit, needs.capabilities) else {
                return self.link_own(jit);
            };
            if at_once {
                compile(slot)?;
            }
            let addresses = SLOTS_OF_PROCESS[slot].addresses().unwrap_or_else(|| STUBS[slot].addresses(unit));
            linked.symbols.extend(unit.symbols().iter().copied().zip(addresses));
        }
        Ok(linked)
    }

    /// The address of a helper with every capability, by its symbol. It is a stub if the helper isn't compiled yet.
    /// None for other symbols, and if the process has no free slot.
    pub(super) fn resolve(&self, symbol: &str) -> Option<*const u8> {
        self.runtime.helper(symbol)
    }

    /// The addresses of the engine's private helpers.
    #[cold]
    fn link_own(&self, jit: &Jit) -> Result<Linked, EngineError> {
        let symbols: Vec<_> = HelperSet::ALL.into_iter().flat_map(HelperSet::symbols).copied().collect();
        let mut own = lock(&self.own);
        let code = match &*own {
            Some(code) => code,
            None => own.insert(jit.load(&verified(
                helpers_module(&symbols, Capabilities::ALL, HOST_ENDIANNESS),
                cfg!(debug_assertions),
            )?)?),
        };
        let address = |name| Ok((name, code.function(name).ok_or_else(|| undefined(name))?));
        let symbols = symbols.into_iter().map(address).collect::<Result<_, EngineError>>()?;
        Ok(Linked { symbols, keep_alive: vec![code.clone()] })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn undefined(name: &str) -> EngineError {
    EngineError::internal(format!("{name} was not defined"))
}

/// A set of helpers.
struct Set {
    runtime: Runtime,
    unit: HelperSet,
    capabilities: Capabilities,
    /// The capabilities can't change any more: the set is compiled, or being compiled.
    fixed: bool,
    /// Never dropped, since wrappers contain its addresses.
    code: Option<Arc<Code>>,
}

/// All sets of the process, indexed by slot.
static SETS_OF_PROCESS: Mutex<Vec<Set>> = Mutex::new(Vec::new());

/// The maximum number of helpers in a set.
const MOST_HELPERS: usize = 4;

/// The addresses of a set's helpers, in the order of [`HelperSet::symbols`]; NULL behind the last helper.
type Addresses = [*const u8; MOST_HELPERS];

/// The part of a slot that calls read without a lock.
struct Slot {
    /// The helpers in the order of [`HelperSet::symbols`]. The first is written last.
    addresses: [AtomicPtr<c_void>; MOST_HELPERS],
    /// Held by the thread that compiles the set.
    compiling: Mutex<()>,
}

static SLOTS_OF_PROCESS: [Slot; SLOTS] = [const { Slot::new() }; SLOTS];

impl Slot {
    const fn new() -> Self {
        Slot { addresses: [const { AtomicPtr::new(std::ptr::null_mut()) }; MOST_HELPERS], compiling: Mutex::new(()) }
    }

    /// The helpers, if they are compiled.
    fn addresses(&self) -> Option<Addresses> {
        let is_filled = !self.addresses[0].load(Ordering::Acquire).is_null();
        let address = |address: &AtomicPtr<c_void>| address.load(Ordering::Relaxed).cast_const().cast();
        is_filled.then(|| self.addresses.each_ref().map(address))
    }

    fn fill(&self, addresses: Addresses) {
        for (place, address) in self.addresses.iter().zip(addresses).rev() {
            place.store(address.cast_mut().cast(), Ordering::Release);
        }
    }
}

/// The slot of a set that has the capabilities, preferably a compiled one. None if the process has no free slot.
fn slot_for(runtime: &Runtime, unit: HelperSet, asked: Capabilities) -> Option<usize> {
    let capabilities = if unit.has_capabilities() { asked } else { Capabilities::default() };
    let mut sets = lock(&SETS_OF_PROCESS);
    let ours = |set: &Set| set.unit == unit && set.runtime == *runtime;
    let covers = |set: &Set| ours(set) && set.capabilities.covers(capabilities);
    let compiled = sets.iter().position(|set| covers(set) && set.code.is_some());
    if let Some(slot) = compiled.or_else(|| sets.iter().position(covers)) {
        return Some(slot);
    }
    let last = sets.iter().rposition(ours);
    let all = last.map_or(capabilities, |last| sets[last].capabilities.union(capabilities));
    if let Some(last) = last.filter(|&last| !sets[last].fixed) {
        sets[last].capabilities = all;
        return Some(last);
    }
    let foreign = || sets.iter().filter(|set| !set.runtime.bundled).count();
    if sets.len() == SLOTS || !runtime.bundled && foreign() >= FOREIGN_SLOTS {
        return None;
    }
    let is_last = sets.iter().filter(|set| ours(set)).count() + 1 == SETS;
    let capabilities = if is_last { Capabilities::ALL } else { all };
    sets.push(Set { runtime: runtime.clone(), unit, capabilities, fixed: false, code: None });
    Some(sets.len() - 1)
}

/// Compiles the set of a slot unless it is compiled already.
fn compile(slot: usize) -> Result<(), EngineError> {
    let place = &SLOTS_OF_PROCESS[slot];
    if place.addresses().is_some() {
        return Ok(());
    }
    let _alone = lock(&place.compiling);
    if place.addresses().is_some() {
        return Ok(());
    }
    let (runtime, unit, capabilities) = {
        let mut sets = lock(&SETS_OF_PROCESS);
        let set = sets.get_mut(slot).ok_or_else(|| EngineError::internal("a slot has no set of helpers"))?;
        set.fixed = true;
        (set.runtime.clone(), set.unit, set.capabilities)
    };
    let module = verified(helpers_module(unit.symbols(), capabilities, HOST_ENDIANNESS), cfg!(debug_assertions))?;
    let jit = Jit::builder().backend(runtime.backend).build()?;
    let symbols = runtime.symbols();
    let code = jit.load_with(&module, LoadOptions { symbols: &symbols, keep_alive: Vec::new() })?;
    let mut addresses = [std::ptr::null(); MOST_HELPERS];
    for (address, name) in addresses.iter_mut().zip(unit.symbols()) {
        *address = code.function(name).ok_or_else(|| undefined(name))?;
    }
    if let Some(set) = lock(&SETS_OF_PROCESS).get_mut(slot) {
        set.code = Some(code);
    }
    place.fill(addresses);
    Ok(())
}

/// The helpers of a slot for a call through a stub. If compiling them fails, raises the reason as an error.
#[cold]
#[inline(never)]
fn compile_for_call(slot: usize) -> Option<Addresses> {
    let panicked = |_| Err(EngineError::internal("a panic while the runtime helpers were compiled"));
    let here = || catch_unwind(AssertUnwindSafe(|| compile(slot))).unwrap_or_else(panicked);
    let there = thread::Builder::new().name("tvm-ffi-codegen helpers".to_owned()).stack_size(STACK);
    // if the system can't start a thread, compile on this one
    let result = match there.spawn(move || compile(slot)) {
        Ok(thread) => thread.join().unwrap_or_else(panicked),
        Err(_) => here(),
    };
    match result {
        Ok(()) => SLOTS_OF_PROCESS[slot].addresses(),
        Err(error) => {
            raise(slot, &error);
            None
        }
    }
}

/// Raises an error with the runtime of a slot.
fn raise(slot: usize, error: &EngineError) {
    let address = IMPORTS
        .iter()
        .position(|name| *name == RAISE)
        .and_then(|raise| lock(&SETS_OF_PROCESS).get(slot).map(|set| set.runtime.addresses[raise]));
    let Some(address) = address.filter(|address| *address != 0) else { return };
    type Raise = unsafe extern "C" fn(*const c_char, *const *const c_char, i32);
    // SAFETY: the address is that of the function of this name and prototype (tvm/ffi/c_api.h), as the caller that
    // passed the runtime's table has guaranteed.
    let raise = unsafe { std::mem::transmute::<*const c_void, Raise>(std::ptr::with_exposed_provenance(address)) };
    let text = format!("can't compile the runtime helpers: {error}").replace('\0', "");
    let text = CString::new(text).unwrap_or_default();
    let parts = [text.as_ptr()];
    let kind = if matches!(error, EngineError::Memory { .. }) { c"MemoryError" } else { c"RuntimeError" };
    // SAFETY: the arguments are C strings and an array of one element; the runtime copies them.
    unsafe { raise(kind.as_ptr(), parts.as_ptr(), 1) }
}

/// `int32_t bind(const void* table, uint32_t descriptor, const TVMFFIAny* args, int64_t num_args, void* scratch)`
type Bind = unsafe extern "C" fn(*const c_void, u32, *const c_void, i64, *mut c_void) -> i32;
/// `int32_t report(const void* table, uint32_t template, const uint64_t* context)`
type Report = unsafe extern "C" fn(*const c_void, u32, *const c_void) -> i32;
/// `int32_t take_result(const void* table, uint32_t result, TVMFFIAny* from, TVMFFIAny* to)`
type TakeResult = unsafe extern "C" fn(*const c_void, u32, *mut c_void, *mut c_void) -> i32;
/// `int64_t first_use(const void* table, uint32_t kernel, void* state, const void* images, int32_t device, void**
/// handle)`
type FirstUse = unsafe extern "C" fn(*const c_void, u32, *mut c_void, *const c_void, i32, *mut c_void) -> i64;
/// `int32_t report(const char* caller, const char* images, int64_t outcome, const CUlaunchConfig* config, int32_t
/// device)`
type LaunchReport = unsafe extern "C" fn(*const c_char, *const c_char, i64, *const c_void, i32) -> i32;

/// `int64_t device(void* state, int32_t device)`
type Device = unsafe extern "C" fn(*mut c_void, i32) -> i64;

/// `int32_t launch(const void* pool, uint32_t launch, const void* table, void* state, const void* images, const
/// CUlaunchConfig* config, void** params, int64_t failed)`
type Launch = unsafe extern "C" fn(
    *const c_void,
    u32,
    *const c_void,
    *mut c_void,
    *const c_void,
    *const c_void,
    *mut c_void,
    i64,
) -> i32;

/// The outcome of a first use whose helpers couldn't be compiled. The error is already raised.
const RAISED: i64 = -1;

/// The stubs of a slot. A 32-bit number arrives in a 64-bit register whose upper half is arbitrary, since wrappers
/// don't extend it.
struct Stubs {
    bind: unsafe extern "C" fn(*const c_void, u64, *const c_void, i64, *mut c_void) -> i32,
    report: unsafe extern "C" fn(*const c_void, u64, *const c_void) -> i32,
    take_result: unsafe extern "C" fn(*const c_void, u64, *mut c_void, *mut c_void) -> i32,
    first_use: unsafe extern "C" fn(*const c_void, u64, *mut c_void, *const c_void, u64, *mut c_void) -> i64,
    launch_report: unsafe extern "C" fn(*const c_char, *const c_char, i64, *const c_void, u64) -> i32,
    device: unsafe extern "C" fn(*mut c_void, u64) -> i64,
    launch: unsafe extern "C" fn(
        *const c_void,
        u64,
        *const c_void,
        *mut c_void,
        *const c_void,
        *const c_void,
        *mut c_void,
        i64,
    ) -> i32,
}

impl Stubs {
    /// The stubs of a unit, in the order of [`HelperSet::symbols`].
    fn addresses(&self, unit: HelperSet) -> Addresses {
        let none = std::ptr::null();
        match unit {
            HelperSet::Bind => [self.bind as *const u8, self.report as *const u8, none, none],
            HelperSet::TakeResult => [self.take_result as *const u8, none, none, none],
            HelperSet::Launches(_) => [
                self.first_use as *const u8,
                self.launch_report as *const u8,
                self.device as *const u8,
                self.launch as *const u8,
            ],
        }
    }
}

/// The helpers of a slot; compiles them if necessary.
#[inline]
fn helpers(slot: usize) -> Option<Addresses> {
    SLOTS_OF_PROCESS[slot].addresses().or_else(|| compile_for_call(slot))
}

unsafe extern "C" fn bind<const SLOT: usize>(
    table: *const c_void,
    descriptor: u64,
    args: *const c_void,
    num_args: i64,
    scratch: *mut c_void,
) -> i32 {
    let Some([bind, ..]) = helpers(SLOT) else { return -1 };
    // SAFETY: that is the prototype of `bind`, which is never unloaded, and the wrapper passed these arguments for it.
    unsafe { std::mem::transmute::<*const u8, Bind>(bind)(table, descriptor as u32, args, num_args, scratch) }
}

unsafe extern "C" fn report<const SLOT: usize>(table: *const c_void, template: u64, context: *const c_void) -> i32 {
    let Some([_, report, ..]) = helpers(SLOT) else { return -1 };
    // SAFETY: as in `bind`.
    unsafe { std::mem::transmute::<*const u8, Report>(report)(table, template as u32, context) }
}

unsafe extern "C" fn take_result<const SLOT: usize>(
    table: *const c_void,
    result: u64,
    from: *mut c_void,
    to: *mut c_void,
) -> i32 {
    let Some([take_result, ..]) = helpers(SLOT) else { return -1 };
    // SAFETY: as in `bind`.
    unsafe { std::mem::transmute::<*const u8, TakeResult>(take_result)(table, result as u32, from, to) }
}

unsafe extern "C" fn first_use<const SLOT: usize>(
    table: *const c_void,
    kernel: u64,
    state: *mut c_void,
    images: *const c_void,
    device: u64,
    handle: *mut c_void,
) -> i64 {
    let Some([first_use, ..]) = helpers(SLOT) else { return RAISED };
    // SAFETY: that is the prototype of the first helper of launches, which is never unloaded, and the wrapper passed
    // these arguments for it.
    unsafe {
        let first_use = std::mem::transmute::<*const u8, FirstUse>(first_use);
        first_use(table, kernel as u32, state, images, device as i32, handle)
    }
}

unsafe extern "C" fn launch_report<const SLOT: usize>(
    caller: *const c_char,
    images: *const c_char,
    outcome: i64,
    config: *const c_void,
    device: u64,
) -> i32 {
    if outcome == RAISED {
        return -1;
    }
    let Some([_, report, ..]) = helpers(SLOT) else { return -1 };
    // SAFETY: as in `first_use`, for the second helper.
    unsafe {
        let report = std::mem::transmute::<*const u8, LaunchReport>(report);
        report(caller, images, outcome, config, device as i32)
    }
}

unsafe extern "C" fn device<const SLOT: usize>(state: *mut c_void, number: u64) -> i64 {
    let Some([_, _, device, _]) = helpers(SLOT) else { return RAISED };
    // SAFETY: as in `first_use`, for the third helper.
    unsafe { std::mem::transmute::<*const u8, Device>(device)(state, number as i32) }
}

unsafe extern "C" fn launch<const SLOT: usize>(
    pool: *const c_void,
    launch: u64,
    table: *const c_void,
    state: *mut c_void,
    images: *const c_void,
    config: *const c_void,
    params: *mut c_void,
    failed: i64,
) -> i32 {
    if failed == RAISED {
        return -1;
    }
    let Some([.., helper]) = helpers(SLOT) else { return -1 };
    // SAFETY: as in `first_use`, for the fourth helper.
    unsafe {
        let helper = std::mem::transmute::<*const u8, Launch>(helper);
        helper(pool, launch as u32, table, state, images, config, params, failed)
    }
}

macro_rules! stubs {
    ($($slot:literal)*) => {
        static STUBS: [Stubs; SLOTS] =
            [$(Stubs {
                bind: bind::<$slot>,
                report: report::<$slot>,
                take_result: take_result::<$slot>,
                first_use: first_use::<$slot>,
                launch_report: launch_report::<$slot>,
                device: device::<$slot>,
                launch: launch::<$slot>,
            }),*];
    };
}

stubs! {
     0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15
    16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
    32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47
}

#[cfg(test)]
mod tests;
