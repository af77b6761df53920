//! Loaded machine code and its lifetime.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use tvm_ffi_runtime::abi::symbol::LIBRARY_CTX;

#[cfg(feature = "_engine")]
use super::debug::Told;

/// An owner of something that code calls or refers to. It lives as long as the code.
pub type KeepAlive = Arc<dyn Any + Send + Sync>;

/// Machine code in this process. Dropping it frees the memory.
///
/// A function's address is valid only as long as the `Code` lives, so keep an `Arc<Code>` next to the address. Loaded
/// code is immutable and therefore `Send` and `Sync`.
///
/// Dropping the code runs the module's destructors if you have called
/// [`run_destructors_on_drop`](Self::run_destructors_on_drop).
pub struct Code {
    symbols: CodeAddresses,
    /// Whether the destructors run.
    destroys: AtomicBool,
    code_size: usize,
    data_size: usize,
    // Drop order: first the registrations with debuggers and unwinders, then the code (`Some` until then), then what it
    // refers to.
    #[cfg(feature = "_engine")]
    told: Told,
    memory: Option<Box<dyn Memory>>,
    keep_alive: Vec<KeepAlive>,
}

/// Addresses in loaded code.
#[derive(Default)]
pub(crate) struct CodeAddresses {
    /// Exported functions by name.
    pub(crate) functions: Vec<(Box<str>, usize)>,
    /// Variables by name.
    pub(crate) variables: Vec<(Box<str>, usize)>,
    /// Destructors, functions `()` that run when the code is unloaded.
    pub(crate) destructors: Vec<usize>,
}

fn address_of(symbols: &[(Box<str>, usize)], name: &str) -> Option<*const u8> {
    let index = symbols.binary_search_by(|(known, _)| (**known).cmp(name)).ok()?;
    Some(std::ptr::with_exposed_provenance(symbols[index].1))
}

/// The memory of loaded code; dropping it unmaps the code.
pub(crate) trait Memory: Send + Sync {
    /// Whether the address is known to be in the module's code or data.
    fn contains(&self, address: usize) -> bool;
}

impl Code {
    #[cfg(feature = "_engine")] // unused without a backend
    pub(super) fn new(
        mut symbols: CodeAddresses,
        sizes: (usize, usize),
        memory: Box<dyn Memory>,
        told: Told,
        keep_alive: Vec<KeepAlive>,
    ) -> Self {
        symbols.functions.sort_unstable();
        symbols.variables.sort_unstable();
        let (code_size, data_size) = sizes;
        Code { symbols, destroys: AtomicBool::new(false), code_size, data_size, told, memory: Some(memory), keep_alive }
    }

    /// Takes over code that another loader has loaded. It isn't registered with debuggers or unwinders.
    #[cfg(feature = "_engine")]
    pub(crate) fn adopt(symbols: CodeAddresses, memory: Box<dyn Memory>, keep_alive: Vec<KeepAlive>) -> Arc<Self> {
        Arc::new(Self::new(symbols, (0, 0), memory, Told::default(), keep_alive))
    }

    /// The address of an exported function.
    pub fn function(&self, name: &str) -> Option<*const u8> {
        address_of(&self.symbols.functions, name)
    }

    /// The address of an exported variable. Code reads and writes it on any thread.
    pub fn variable(&self, name: &str) -> Option<*mut u8> {
        address_of(&self.symbols.variables, name).map(<*const u8>::cast_mut)
    }

    /// Sets the module in whose imports the code looks up functions (`__tvm_ffi__library_ctx`); null, the initial
    /// value, for none. Returns `false` if the code doesn't use it. An engine calls this for the functions and modules
    /// of the bundled runtime.
    ///
    /// The address must be the one that the runtime's own loader would write there. On the bundled runtime it is the
    /// module's handle. On upstream's runtime it differs from the handle. It is the address of the C++ object
    /// (`tvm::ffi::ModuleObj`), and the handle points past that object's vtable pointer.
    ///
    /// # Safety
    /// The address is null, or that of a module of the runtime that the code is bound to. The module lives as long as
    /// the code runs with this address.
    pub unsafe fn set_library_context(&self, module: *mut c_void) -> bool {
        let Some(variable) = self.variable(LIBRARY_CTX) else { return false };
        // SAFETY: lowering defines the variable as a pointer, and code that runs concurrently only reads it.
        unsafe { AtomicPtr::from_ptr(variable.cast()) }.store(module, Ordering::Release);
        true
    }

    /// Makes the module's destructors run when the code is dropped, before its memory and owners are freed. They don't
    /// run otherwise. An engine calls this for the wrappers that it compiles.
    ///
    /// # Safety
    /// The destructors may be called once, on any thread, when none of the code's other functions run any more.
    /// Everything that they call is still valid then.
    pub unsafe fn run_destructors_on_drop(&self) {
        self.destroys.store(true, Ordering::Release);
    }

    /// Every exported function with its address, sorted by name.
    pub fn functions(&self) -> impl Iterator<Item = (&str, *const u8)> {
        self.symbols.functions.iter().map(|(name, address)| (&**name, std::ptr::with_exposed_provenance(*address)))
    }

    /// The size of the machine code in bytes.
    pub fn code_size(&self) -> usize {
        self.code_size
    }

    /// The size of the static data in bytes.
    pub fn data_size(&self) -> usize {
        self.data_size
    }

    /// Whether an address lies in this code or its data. For code from LLVM, data isn't tracked.
    pub fn contains(&self, address: *const u8) -> bool {
        self.memory.as_ref().is_some_and(|memory| memory.contains(address.addr()))
    }

    /// The owners that this code keeps alive.
    pub fn keep_alive(&self) -> &[KeepAlive] {
        &self.keep_alive
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        // in reverse order, as for a library
        let destructors = self.symbols.destructors.iter().rev();
        for &address in destructors.take_while(|_| self.destroys.load(Ordering::Acquire)) {
            let address: *const () = std::ptr::with_exposed_provenance(address);
            // SAFETY: the verifier guarantees a destructor's signature, and its code is alive. The caller of
            // `run_destructors_on_drop` has guaranteed that it may run.
            unsafe { std::mem::transmute::<*const (), extern "C" fn()>(address)() }
        }
        #[cfg(feature = "_engine")]
        drop(std::mem::take(&mut self.told));
        self.memory = None;
        release(std::mem::take(&mut self.keep_alive));
    }
}

/// Drops owners without recursion, however long a chain of code that keeps other code is: owners released during a drop
/// are queued.
fn release(owners: Vec<KeepAlive>) {
    thread_local! {
        /// Owners queued while others are being dropped.
        static WAITING: RefCell<Option<Vec<KeepAlive>>> = const { RefCell::new(None) };
    }
    if owners.is_empty() {
        return;
    }
    let mut owners = Some(owners);
    // While a thread ends the list no longer exists; the owners are then dropped immediately.
    let first = WAITING.try_with(|waiting| match &mut *waiting.borrow_mut() {
        Some(waiting) => {
            waiting.extend(owners.take().unwrap_or_default());
            false
        }
        none => {
            *none = owners.take();
            true
        }
    });
    if first != Ok(true) {
        return;
    }
    // The list isn't borrowed while an owner is dropped.
    while let Ok(Some(owner)) = WAITING.try_with(|waiting| waiting.borrow_mut().as_mut().and_then(Vec::pop)) {
        drop(owner);
    }
    let _ = WAITING.try_with(|waiting| waiting.take());
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Code")
            .field("functions", &self.symbols.functions.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .field("code_size", &self.code_size)
            .field("data_size", &self.data_size)
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, feature = "_engine"))]
pub(super) mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    struct Nowhere;

    impl Memory for Nowhere {
        fn contains(&self, _: usize) -> bool {
            false
        }
    }

    /// Code without functions.
    pub(in crate::engine) fn empty(keep_alive: Vec<KeepAlive>) -> Arc<Code> {
        Arc::new(Code::new(CodeAddresses::default(), (0, 0), Box::new(Nowhere), Told::default(), keep_alive))
    }

    struct Counts(Arc<AtomicUsize>);

    impl Drop for Counts {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_long_chain_of_code_goes_without_a_deep_stack() {
        let gone = Arc::new(AtomicUsize::new(0));
        let mut last: Option<KeepAlive> = None;
        for _ in 0..200_000 {
            let counts: KeepAlive = Arc::new(Counts(Arc::clone(&gone)));
            last = Some(empty(last.into_iter().chain([counts]).collect()));
        }
        assert_eq!(gone.load(Ordering::SeqCst), 0);
        drop(last);
        assert_eq!(gone.load(Ordering::SeqCst), 200_000);
    }
}
