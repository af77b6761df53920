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

/// An owner of what code calls into or refers to, which lives as long as the code.
pub type KeepAlive = Arc<dyn Any + Send + Sync>;

/// Machine code in this process. Dropping it gives the memory back.
///
/// A function's address is good for as long as the `Code` lives, and not a moment longer: whoever hands out the address
/// holds an `Arc<Code>` next to it. Everything here is immutable once loaded, so it is `Send` and `Sync` by itself.
///
/// A module's destructors run when its code is dropped, once somebody has vouched for them
/// ([`run_destructors_on_drop`](Self::run_destructors_on_drop)).
pub struct Code {
    symbols: Symbols,
    /// Whether the destructors run.
    destroys: AtomicBool,
    code_size: usize,
    data_size: usize,
    // Dropped in this order: first what others know of the code, the code (`Some` until then), then what it refers to.
    #[cfg(feature = "_engine")]
    told: Told,
    memory: Option<Box<dyn Memory>>,
    keep_alive: Vec<KeepAlive>,
}

/// Addresses in loaded code.
#[derive(Default)]
pub(crate) struct Symbols {
    /// Exported functions by name.
    pub(crate) functions: Vec<(Box<str>, usize)>,
    /// Variables by name.
    pub(crate) variables: Vec<(Box<str>, usize)>,
    /// Functions `()` that run when the code goes.
    pub(crate) destructors: Vec<usize>,
}

fn address_of(symbols: &[(Box<str>, usize)], name: &str) -> Option<*const u8> {
    let index = symbols.binary_search_by(|(known, _)| (**known).cmp(name)).ok()?;
    Some(std::ptr::with_exposed_provenance(symbols[index].1))
}

/// Where loaded code lies; dropping it unmaps.
pub(crate) trait Memory: Send + Sync {
    /// Whether code or data of the module is at the address, as far as is known.
    fn contains(&self, address: usize) -> bool;
}

impl Code {
    #[cfg(feature = "_engine")] // whoever loads code; without a backend nobody does
    pub(super) fn new(
        mut symbols: Symbols,
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

    /// Code that somebody else has loaded: nobody was told of it.
    #[cfg(feature = "_engine")]
    pub(crate) fn adopt(symbols: Symbols, memory: Box<dyn Memory>, keep_alive: Vec<KeepAlive>) -> Arc<Self> {
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

    /// Sets the module in whose imports the code looks functions up (`__tvm_ffi__library_ctx`); null, as at first, for none. `false` where the code
    /// doesn't look at it. An engine does it for the functions and modules of the bundled runtime.
    ///
    /// The address is the one that the runtime's own loader writes there. It is the module's handle on the bundled runtime. It isn't on upstream's: there
    /// it is the address of the C++ object (`tvm::ffi::ModuleObj`), whose handle points behind the object's pointer to its virtual functions.
    ///
    /// # Safety
    /// The address is null or that of a module of the runtime that the code is bound to, and the module lives for as long as the code runs and
    /// has this address.
    pub unsafe fn set_library_context(&self, module: *mut c_void) -> bool {
        let Some(variable) = self.variable(LIBRARY_CTX) else { return false };
        // SAFETY: lowering makes it a pointer, which code that may run meanwhile only reads.
        unsafe { AtomicPtr::from_ptr(variable.cast()) }.store(module, Ordering::Release);
        true
    }

    /// Lets the module's destructors run when the code is dropped, before its memory and its owners go. Without this they don't run. An
    /// engine does it for the wrappers that it compiles. Code whose threads [stay](crate::lower::Lowering::threads_stay) needs it.
    ///
    /// # Safety
    /// The destructors may be called once on any thread when nothing else of the code runs any more, and what they call is there then.
    pub unsafe fn run_destructors_on_drop(&self) {
        self.destroys.store(true, Ordering::Release);
    }

    /// Every exported function with its address, in order of names.
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

    /// Whether an address lies in this code or its data; of LLVM's data it is not known.
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
        // as a library's: the last first
        let destructors = self.symbols.destructors.iter().rev();
        for &address in destructors.take_while(|_| self.destroys.load(Ordering::Acquire)) {
            let address: *const () = std::ptr::with_exposed_provenance(address);
            // SAFETY: a destructor has this signature by the verifier's rules, and is code that is alive. Whoever asked for it vouches for the call.
            unsafe { std::mem::transmute::<*const (), extern "C" fn()>(address)() }
        }
        #[cfg(feature = "_engine")]
        drop(std::mem::take(&mut self.told));
        self.memory = None;
        release(std::mem::take(&mut self.keep_alive));
    }
}

/// Drops owners, however long a chain of code that keeps other code is: those that go meanwhile wait for their turn.
fn release(owners: Vec<KeepAlive>) {
    thread_local! {
        /// Owners that wait, while others are being dropped.
        static WAITING: RefCell<Option<Vec<KeepAlive>>> = const { RefCell::new(None) };
    }
    if owners.is_empty() {
        return;
    }
    let mut owners = Some(owners);
    // At the end of a thread there is no list any more; then they are dropped at once.
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
    // Nothing is borrowed while an owner is dropped.
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
        Arc::new(Code::new(Symbols::default(), (0, 0), Box::new(Nowhere), Told::default(), keep_alive))
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
