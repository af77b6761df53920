//! ORC's LLJIT through LLVM's C API: takes an object file, returns addresses.
//!
//! One LLJIT serves all modules of a process. Each module has its own library (`JITDylib`), which links to no other:
//! names resolve only to the given addresses. This API can't delete a library, so cleared ones are reused.
//!
//! Threads: LLVM's `ExecutionSession`, its libraries and the linking layer are thread-safe, under the session's own
//! lock. This module adds a list of free libraries, with a lock. Each library belongs to one loaded module at a time.

use std::ffi::{CString, c_void};
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use inkwell::llvm_sys::core::LLVMCreateMemoryBufferWithMemoryRangeCopy;
use inkwell::llvm_sys::error::LLVMErrorRef;
use inkwell::llvm_sys::orc2::lljit::{
    LLVMOrcCreateLLJIT, LLVMOrcDisposeLLJIT, LLVMOrcLLJITAddObjectFile, LLVMOrcLLJITGetExecutionSession,
    LLVMOrcLLJITMangleAndIntern, LLVMOrcLLJITRef,
};
use inkwell::llvm_sys::orc2::*;

use super::code::Memory;
use super::error::EngineError;
use crate::backend::llvm::take_error;

/// The number of loads after which unused names are dropped.
const SWEEP: usize = 256;

/// An LLJIT for this machine. Clones are cheap.
#[derive(Clone)]
pub(super) struct Session(Arc<Inner>);

struct Inner {
    jit: LLVMOrcLLJITRef,
    free: Mutex<Vec<Dylib>>,
    libraries: AtomicUsize,
    loads: AtomicUsize,
    /// Errors that ORC reports through a callback instead of a return value. Boxed, because ORC has its address.
    reports: Box<Mutex<Vec<String>>>,
}

// SAFETY: LLJIT and its session do their own locking (see the head of this file); the rest is `Sync`.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

/// A library of the session.
#[derive(Clone, Copy)]
struct Dylib(LLVMOrcJITDylibRef);

// SAFETY: a `JITDylib` belongs to its session and is used under the session's lock.
unsafe impl Send for Dylib {}
// SAFETY: as above.
unsafe impl Sync for Dylib {}

/// A loaded module; dropping it frees its memory.
struct Loaded {
    session: Session,
    library: Dylib,
}

/// Loaded code, with the addresses of the requested exports in their order.
pub(super) struct LoadedObject {
    loaded: Loaded,
    pub(super) addresses: Vec<usize>,
}

/// The memory of a loaded module.
struct OrcMemory {
    _loaded: Loaded,
    sections: Vec<Range<usize>>,
}

impl Memory for OrcMemory {
    fn contains(&self, address: usize) -> bool {
        self.sections.iter().any(|range| range.contains(&address))
    }
}

impl LoadedObject {
    /// The memory for a [`Code`](super::Code), with the sections whose addresses are known.
    pub(super) fn memory(self, sections: Vec<Range<usize>>) -> impl Memory + use<> {
        OrcMemory { _loaded: self.loaded, sections }
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        let inner = &self.session.0;
        // SAFETY: only this module uses the library, and the session is alive.
        let cleared = check(unsafe { LLVMOrcJITDylibClear(self.library.0) });
        // A library that can't be cleared isn't reused: its memory is freed with the session.
        if cleared.is_ok() {
            inner.free.lock().unwrap_or_else(PoisonError::into_inner).push(self.library);
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: every module keeps the session alive, so none is left. A destructor can't report an error.
        let _ = check(unsafe { LLVMOrcDisposeLLJIT(self.jit) });
    }
}

/// Converts LLVM's error; null means success.
fn check(error: LLVMErrorRef) -> Result<(), EngineError> {
    take_error(error).map_err(|message| EngineError::Link { message })
}

extern "C" fn report(reports: *mut c_void, error: LLVMErrorRef) {
    // SAFETY: that is the pointer from `Session::new`, and it lives as long as the session.
    let reports = unsafe { &*reports.cast::<Mutex<Vec<String>>>() };
    if let Err(error) = check(error) {
        reports.lock().unwrap_or_else(PoisonError::into_inner).push(error.to_string());
    }
}

type Found = Result<Vec<(usize, u64)>, EngineError>;

/// Receives the result of a lookup: each symbol by the address of its entry in the string pool.
extern "C" fn found(error: LLVMErrorRef, pairs: LLVMOrcCSymbolMapPairs, count: usize, sender: *mut c_void) {
    // SAFETY: that is the box from `lookup`, and ORC calls this once.
    let sender = unsafe { Box::from_raw(sender.cast::<Sender<Found>>()) };
    let result = check(error).map(|()| {
        // SAFETY: without an error there are `count` pairs, which are alive during this call.
        (0..count).map(|i| unsafe { &*pairs.add(i) }).map(|pair| (pair.Name.addr(), pair.Sym.Address)).collect()
    });
    // The receiver is waiting, so sending can't fail.
    let _ = sender.send(result);
}

impl Session {
    /// The session of this process, created when first needed and never dropped. Creating one takes milliseconds, and
    /// modules in it can't see each other.
    pub(super) fn of_process() -> Result<Self, EngineError> {
        static SESSION: Mutex<Option<Session>> = Mutex::new(None);
        let mut session = SESSION.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = &*session {
            return Ok(session.clone());
        }
        Ok(session.insert(Session::new()?).clone())
    }

    fn new() -> Result<Self, EngineError> {
        let mut jit = ptr::null_mut();
        // SAFETY: without a builder, LLJIT is created with its defaults, for this machine.
        check(unsafe { LLVMOrcCreateLLJIT(&raw mut jit, ptr::null_mut()) })?;
        let reports = Box::<Mutex<Vec<String>>>::default();
        // SAFETY: the session is alive, and the reports live longer, since fields are dropped after `Inner::drop`.
        unsafe {
            let reports = ptr::from_ref(&*reports).cast_mut().cast();
            LLVMOrcExecutionSessionSetErrorReporter(LLVMOrcLLJITGetExecutionSession(jit), report, reports);
        }
        let (free, libraries, loads) = (Mutex::default(), AtomicUsize::new(0), AtomicUsize::new(0));
        Ok(Session(Arc::new(Inner { jit, free, libraries, loads, reports })))
    }

    /// Loads objects that are linked together. `symbols` are all other symbols that they refer to, and `exports` are
    /// functions that they define.
    pub(super) fn load(
        &self,
        objects: &[&[u8]],
        symbols: &[(&str, usize)],
        exports: &[&str],
    ) -> Result<LoadedObject, EngineError> {
        let inner = &*self.0;
        let loaded = Loaded { session: self.clone(), library: self.library()? };
        self.define(loaded.library, symbols)?;
        for object in objects {
            // SAFETY: the buffer is a copy, and ORC takes ownership of it even on failure.
            check(unsafe {
                let (start, len) = (object.as_ptr().cast(), object.len());
                let buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(start, len, c"tvm_ffi".as_ptr());
                LLVMOrcLLJITAddObjectFile(inner.jit, loaded.library.0, buffer)
            })?;
        }
        let addresses = self.lookup(loaded.library, exports)?;
        if inner.loads.fetch_add(1, Ordering::Relaxed) % SWEEP == SWEEP - 1 {
            // SAFETY: the session is alive, and entries that are still referred to are kept.
            unsafe {
                let session = LLVMOrcLLJITGetExecutionSession(inner.jit);
                LLVMOrcSymbolStringPoolClearDeadEntries(LLVMOrcExecutionSessionGetSymbolStringPool(session));
            }
        }
        Ok(LoadedObject { loaded, addresses })
    }

    /// An empty library.
    fn library(&self) -> Result<Dylib, EngineError> {
        let inner = &*self.0;
        if let Some(free) = inner.free.lock().unwrap_or_else(PoisonError::into_inner).pop() {
            return Ok(free);
        }
        let number = inner.libraries.fetch_add(1, Ordering::Relaxed);
        let name = CString::new(format!("module {number}")).unwrap_or_default();
        // SAFETY: the session is alive, and no other library has this name.
        let library = unsafe {
            LLVMOrcExecutionSessionCreateBareJITDylib(LLVMOrcLLJITGetExecutionSession(inner.jit), name.as_ptr())
        };
        Ok(Dylib(library))
    }

    fn intern(&self, name: &str) -> Result<LLVMOrcSymbolStringPoolEntryRef, EngineError> {
        let c_name = CString::new(name).map_err(|_| EngineError::internal(format!("a symbol {name:?}")))?;
        // SAFETY: LLJIT is alive; it copies the name.
        Ok(unsafe { LLVMOrcLLJITMangleAndIntern(self.0.jit, c_name.as_ptr()) })
    }

    /// Defines symbols at addresses.
    fn define(&self, library: Dylib, symbols: &[(&str, usize)]) -> Result<(), EngineError> {
        if symbols.is_empty() {
            return Ok(());
        }
        let mut pairs = Vec::with_capacity(symbols.len());
        for &(name, address) in symbols {
            let flags = LLVMJITSymbolFlags {
                GenericFlags: LLVMJITSymbolGenericFlags::LLVMJITSymbolGenericFlagsExported as u8
                    | LLVMJITSymbolGenericFlags::LLVMJITSymbolGenericFlagsCallable as u8,
                TargetFlags: 0,
            };
            let symbol = LLVMJITEvaluatedSymbol { Address: address as u64, Flags: flags };
            pairs.push(LLVMOrcCSymbolMapPair { Name: self.intern(name)?, Sym: symbol });
        }
        // SAFETY: the array has the stated length, and ORC takes ownership of the names. If `Define` fails, this code
        // still owns the unit and disposes of it.
        unsafe {
            let unit = LLVMOrcAbsoluteSymbols(pairs.as_mut_ptr(), pairs.len());
            let defined = check(LLVMOrcJITDylibDefine(library.0, unit));
            if defined.is_err() {
                LLVMOrcDisposeMaterializationUnit(unit);
            }
            defined
        }
    }

    /// The addresses of symbols. ORC links the objects that define them.
    fn lookup(&self, library: Dylib, names: &[&str]) -> Result<Vec<usize>, EngineError> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let mut wanted = Vec::with_capacity(names.len());
        for name in names {
            wanted.push(LLVMOrcCLookupSetElement {
                Name: self.intern(name)?,
                LookupFlags: LLVMOrcSymbolLookupFlags::LLVMOrcSymbolLookupFlagsRequiredSymbol,
            });
        }
        let order: Vec<usize> = wanted.iter().map(|w| w.Name.addr()).collect();
        let mut libraries = [LLVMOrcCJITDylibSearchOrderElement {
            JD: library.0,
            // a kernel may be hidden (`-fvisibility=hidden`)
            JDLookupFlags: LLVMOrcJITDylibLookupFlags::LLVMOrcJITDylibLookupFlagsMatchAllSymbols,
        }];
        let (sender, receiver) = channel::<Found>();
        // SAFETY: the arrays have the stated lengths, ORC takes ownership of the names, and `found` expects the sender.
        unsafe {
            LLVMOrcExecutionSessionLookup(
                LLVMOrcLLJITGetExecutionSession(self.0.jit),
                LLVMOrcLookupKind::LLVMOrcLookupKindStatic,
                libraries.as_mut_ptr(),
                libraries.len(),
                wanted.as_mut_ptr(),
                wanted.len(),
                found,
                Box::into_raw(Box::new(sender)).cast(),
            );
        }
        let lost = |_| EngineError::internal("ORC forgot a lookup");
        let pairs = receiver.recv().map_err(lost)?.map_err(|e| self.with_reports(e))?;
        let address = |entry: &usize| pairs.iter().find(|(name, _)| name == entry).map(|&(_, at)| at as usize);
        let missing = || EngineError::internal("ORC lost a symbol");
        order.iter().map(|entry| address(entry).ok_or_else(missing)).collect()
    }

    /// An error with the reasons that ORC has reported: the error itself only names symbols.
    fn with_reports(&self, error: EngineError) -> EngineError {
        let reports = std::mem::take(&mut *self.0.reports.lock().unwrap_or_else(PoisonError::into_inner));
        let message = reports.into_iter().chain([error.to_string()]).collect::<Vec<_>>().join("; ");
        EngineError::Link { message }
    }
}
