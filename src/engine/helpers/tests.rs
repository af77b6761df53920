//! Tests which helpers are compiled and when, and the error of a call whose helpers can't be compiled.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::ffi::CStr;

use super::*;
use crate::{Engine, Kernel, Signature};
use tvm_ffi_runtime::ToAnyView;
use tvm_ffi_runtime::abi::{TVMFFIAny, TVMFFISafeCallType};

#[test]
fn helpers_import_what_is_resolved_for_them() {
    let symbols: Vec<_> = HelperSet::ALL.into_iter().flat_map(HelperSet::symbols).copied().collect();
    let module = helpers_module(&symbols, Capabilities::ALL, HOST_ENDIANNESS);
    // the helpers of launches also call the system
    let of_runtime = |name: &&str| name.starts_with("TVMFFI");
    let mut imports: Vec<_> = module.imports().map(|(_, import)| import.name.as_str()).filter(of_runtime).collect();
    let mut resolved = IMPORTS;
    imports.sort_unstable();
    resolved.sort_unstable();
    assert_eq!(imports, resolved);
}

/// A wrapper in this process.
struct Wrapper(TVMFFISafeCallType, Arc<Code>);

fn compile_in(engine: &Engine, text: &str) -> Wrapper {
    let signature: Signature = text.parse().unwrap();
    let code = engine.compile_code([(&signature, &Kernel::check_only())]).unwrap();
    let address = code.function(&signature.symbol()).unwrap();
    // SAFETY: every wrapper has this type.
    Wrapper(unsafe { std::mem::transmute::<*const u8, TVMFFISafeCallType>(address) }, code)
}

impl Wrapper {
    fn call(&self, args: &[&dyn ToAnyView]) -> i32 {
        let args: Vec<_> = args.iter().map(|arg| arg.to_arg()).collect();
        let args: Vec<_> = args.iter().map(|arg| arg.as_view().as_raw()).collect();
        let mut result = TVMFFIAny::none();
        // SAFETY: a packed call with an empty result; `self` owns the code.
        unsafe { (self.0)(std::ptr::null_mut(), args.as_ptr(), args.len() as i32, &raw mut result) }
    }
}

/// The bundled runtime's functions with another function for raising errors, so it counts as a different runtime.
fn table(raise: *const u8) -> Vec<(&'static str, *const u8)> {
    let table = capi::symbols().iter().map(|(name, address)| (*name, address.as_ptr().cast()));
    table.map(|(name, address)| (name, if name == RAISE { raise } else { address })).collect()
}

fn engine(backend: Backend, raise: *const u8) -> Engine {
    // SAFETY: the functions are those of the bundled runtime, except for one, which has the same prototype or is never
    // called.
    unsafe { Engine::builder().backend(backend).external_runtime(table(raise)) }.build().unwrap()
}

/// The capabilities of each `bind` set of the runtime, and its code size in bytes, which is 0 until it is compiled.
fn sets(runtime: &Runtime) -> Vec<(Capabilities, usize)> {
    let sets = lock(&SETS_OF_PROCESS);
    let ours = sets.iter().filter(|set| set.runtime == *runtime && set.unit == HelperSet::Bind);
    ours.map(|set| (set.capabilities, set.code.as_ref().map_or(0, |code| code.code_size()))).collect()
}

thread_local! {
    static RAISED: std::cell::RefCell<String> = const { std::cell::RefCell::new(String::new()) };
}

/// Notes what is raised on this thread. Each `WHICH` makes a different function.
unsafe extern "C" fn note<const WHICH: usize>(kind: *const c_char, parts: *const *const c_char, count: i32) {
    // SAFETY: the array has the stated number of C strings.
    let text = |part: *const c_char| unsafe { CStr::from_ptr(part) }.to_str().unwrap().to_owned();
    // SAFETY: as above.
    let parts: String = (0..count as usize).map(|i| text(unsafe { *parts.add(i) })).collect();
    std::hint::black_box(WHICH);
    RAISED.set(format!("{}: {parts}", text(kind)));
}

fn raised() -> String {
    RAISED.take()
}

/// A single test, because the slots belong to the process.
#[test]
fn sets_are_compiled_when_needed_and_grow() {
    #[cfg(feature = "cranelift")]
    check::<0>(Backend::Cranelift);
    #[cfg(feature = "_llvm")]
    check::<100>(Backend::Llvm);
    slots_run_out(Backend::default());
}

fn check<const WHICH: usize>(backend: Backend) {
    let raise = note::<WHICH> as *const u8;
    let (first, second) = (engine(backend, raise), engine(backend, raise));
    let runtime = Helpers::new(first.jit(), false).unwrap().runtime;

    // the fast path needs no helper
    let int = compile_in(&first, "f(a: int64)");
    assert_eq!((int.call(&[&1]), raised()), (0, String::new()));
    assert_eq!(sets(&runtime).len(), 1);
    assert_eq!(sets(&runtime)[0].1, 0);
    // before they are compiled, sets grow
    let float = compile_in(&second, "g(a: float32)");
    let [(capabilities, 0)] = sets(&runtime)[..] else { panic!("{:?}", sets(&runtime)) };

    // an invalid call compiles them once, with all capabilities requested from engines of this runtime
    assert_eq!(int.call(&[&"a"]), -1);
    assert_eq!(
        raised(),
        "TypeError: Mismatched type of a on argument #0 when calling: `f(a: int64)`, expected int64, got str"
    );
    let [(same, size @ 1..)] = sets(&runtime)[..] else { panic!("{:?}", sets(&runtime)) };
    assert_eq!(same, capabilities);
    assert_eq!(float.call(&[&"a"]), -1);
    assert!(raised().ends_with("expected float32, got str"));
    assert_eq!(float.call(&[&1]), 0);
    assert_eq!(sets(&runtime), [(same, size)]);

    // new wrappers link directly to compiled helpers, not to stubs
    let again = compile_in(&first, "f(a: int64)");
    assert_eq!((again.call(&[&"a"]), raised().is_empty()), (-1, false));
    assert_eq!(sets(&runtime), [(same, size)]);

    // more capabilities need another set, and the third set has all of them
    let tensor = compile_in(&first, "t(x: Tensor([n], float32))");
    assert_eq!((tensor.call(&[&1]), raised().ends_with("expected Tensor, got int")), (-1, true));
    assert_eq!(sets(&runtime).len(), 2);
    assert!(sets(&runtime)[1].0.covers(capabilities));
    let map = compile_in(&first, "m(x: Map[str, int64])");
    let [.., (all, size)] = sets(&runtime)[..] else { panic!("{:?}", sets(&runtime)) };
    assert_eq!((sets(&runtime).len(), all), (SETS, Capabilities::ALL));
    assert!(size > 0, "a wrapper that binds in every call is linked to the helper itself");
    assert_eq!((map.call(&[&1]), raised().ends_with("expected Map, got int")), (-1, true));
    // earlier wrappers still work
    assert_eq!((int.call(&[&"a"]), raised().ends_with("expected int64, got str")), (-1, true));

    // if they can't be compiled, each call reports that and can retry
    let missing = Runtime {
        addresses: runtime.addresses.map(|address| if address == raise.addr() { address } else { 0 }),
        ..runtime
    };
    let slot = slot_for(&missing, HelperSet::Bind, Capabilities::ALL).unwrap();
    for _ in 0..2 {
        // SAFETY: the helpers aren't called, and nothing reads the arguments before.
        let code = unsafe { (STUBS[slot].report)(std::ptr::null(), 0, std::ptr::null()) };
        assert_eq!(code, -1);
        let text = raised();
        assert!(text.starts_with("RuntimeError: can't compile the runtime helpers: unresolved symbol"), "{text}");
    }
}

/// Even many runtimes can't use up all slots: those for the bundled runtime stay free.
fn slots_run_out(backend: Backend) {
    let never_called = |i: usize| std::ptr::without_provenance::<u8>(0x1000 + i);
    let engines: Vec<_> = (0..SLOTS).map(|i| engine(backend, never_called(i))).collect();
    let wrappers: Vec<_> = engines.iter().map(|engine| compile_in(engine, "f(a: int64)")).collect();
    assert!(lock(&SETS_OF_PROCESS).iter().filter(|set| !set.runtime.bundled).count() <= FOREIGN_SLOTS);
    assert!(wrappers[0].1.keep_alive().is_empty(), "its helpers are the process's");
    assert_eq!(wrappers[SLOTS - 1].1.keep_alive().len(), 1, "its helpers are the engine's");
    assert!(wrappers.iter().all(|wrapper| wrapper.call(&[&1]) == 0));

    let late = engine(backend, note::<7> as *const u8);
    let wrapper = compile_in(&late, "f(a: int64)");
    assert_eq!((wrapper.call(&[&"a"]), raised().ends_with("expected int64, got str")), (-1, true));
    // the bundled runtime still has free slots
    let bundled = Helpers::new(Engine::builder().backend(backend).build().unwrap().jit(), true).unwrap();
    assert!(slot_for(&bundled.runtime, HelperSet::Bind, Capabilities::ALL).is_some());
}
