//! NVTX: the functions of the profiler that `NVTX_INJECTION64_PATH` names.
//!
//! NVTX has no library. A program gives the profiler's library a table of places, and that library writes the addresses
//! of its functions there (nvtxDetail/nvtxTypes.h and nvtxInit.h).

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering};

use super::profiler::{Ranges, open, text_of};

/// The environment variable of NVTX.
const VARIABLE: &str = "NVTX_INJECTION64_PATH";
/// The version of NVTX whose tables these are.
const VERSION: u32 = 3;
/// `NVTX_ETID_CALLBACKS` and `NVTX_ETID_VERSIONINFO`.
const CALLBACKS: u32 = 1;
const VERSION_INFO: u32 = 3;
/// `NVTX_CB_MODULE_CORE`, the number of its functions, and the numbers of two of them.
const CORE: c_uint = 1;
const CORE_SIZE: usize = 16;
const RANGE_PUSH_A: usize = 9;
const RANGE_POP: usize = 11;

/// The places for the addresses of the profiler's functions.
static PLACES: [AtomicPtr<c_void>; CORE_SIZE] = [const { AtomicPtr::new(null_mut()) }; CORE_SIZE];

/// `NvtxFunctionTable`: the addresses of the places. The first number has none, and NULL ends the table.
struct PlaceTable([*const AtomicPtr<c_void>; CORE_SIZE + 1]);

// SAFETY: it is constant.
unsafe impl Sync for PlaceTable {}

static PLACE_TABLE: PlaceTable = {
    let mut places = [null(); CORE_SIZE + 1];
    let mut number = 1;
    while number < CORE_SIZE {
        places[number] = &raw const PLACES[number];
        number += 1;
    }
    PlaceTable(places)
};

/// `NvtxExportTableCallbacks`.
#[repr(C)]
struct Callbacks {
    size: usize,
    module_functions: unsafe extern "C" fn(c_uint, *mut *const *const AtomicPtr<c_void>, *mut c_uint) -> c_int,
}

/// `NvtxExportTableVersionInfo`.
#[repr(C)]
struct VersionInfo {
    size: usize,
    version: u32,
    reserved: u32,
    set_profiler: extern "C" fn(u32),
}

/// Gives the profiler the places of a module's functions. Returns 1, or 0 for a module that isn't here.
///
/// # Safety
/// The addresses are those of places for the results, or NULL.
unsafe extern "C" fn module_functions(
    module: c_uint,
    table: *mut *const *const AtomicPtr<c_void>,
    size: *mut c_uint,
) -> c_int {
    if module != CORE {
        return 0;
    }
    let places = &PLACE_TABLE.0;
    // SAFETY: promised by the caller.
    unsafe {
        if !size.is_null() {
            size.write(CORE_SIZE as c_uint);
        }
        if !table.is_null() {
            table.write(places.as_ptr());
        }
    }
    1
}

extern "C" fn ignore_profiler(_version: u32) {}

/// The table with a number, for the profiler, or NULL.
extern "C" fn export_table(number: u32) -> *const c_void {
    static CALLBACK_TABLE: Callbacks = Callbacks { size: size_of::<Callbacks>(), module_functions };
    static VERSION_TABLE: VersionInfo =
        VersionInfo { size: size_of::<VersionInfo>(), version: VERSION, reserved: 0, set_profiler: ignore_profiler };
    match number {
        CALLBACKS => (&raw const CALLBACK_TABLE).cast(),
        VERSION_INFO => (&raw const VERSION_TABLE).cast(),
        _ => null(),
    }
}

/// The functions of the profiler; `None` if there is none, or if it doesn't trace ranges.
pub(super) fn ranges() -> Result<Option<Ranges>, String> {
    type Initialise = unsafe extern "C" fn(extern "C" fn(u32) -> *const c_void) -> c_int;
    let Some(path) = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) else { return Ok(None) };
    let library = open(&path)?;
    // SAFETY: NVTX states this prototype.
    let initialise = unsafe { library.get::<Initialise>(b"InitializeInjectionNvtx2") };
    // SAFETY: the tables are those of NVTX.
    if unsafe { initialise.map_err(|error| text_of(&error))?(export_table) } == 0 {
        return Err("the profiler failed to initialise".to_owned());
    }
    let [push, pop] = [RANGE_PUSH_A, RANGE_POP].map(|number| PLACES[number].load(Ordering::Acquire));
    if push.is_null() || pop.is_null() {
        return Ok(None);
    }
    // SAFETY: the profiler has written the address of `nvtxRangePushA` (nvToolsExt.h).
    let push = unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*const c_char) -> c_int>(push) };
    // SAFETY: as above, of `nvtxRangePop`.
    let pop = unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> c_int>(pop) };
    Ok(Some(Ranges { push, pop }))
}
