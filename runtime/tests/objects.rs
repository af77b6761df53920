use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tvm_ffi_runtime::abi::*;
use tvm_ffi_runtime::capi::*;
use tvm_ffi_runtime::{Function, Module, ObjectRef, Shape};

use crate::support::*;

fn opaque(counter: &AtomicUsize) -> ObjectRef {
    let mut out = std::ptr::null_mut();
    let index = TypeIndex::OPAQUE_PY_OBJECT.0;
    // SAFETY: the counter outlives the object in every test.
    let code = unsafe { TVMFFIObjectCreateOpaque(counter_ptr(counter), index, Some(count_up), &mut out) };
    assert_eq!(code, 0);
    own(out)
}

#[test]
fn opaque_deleter_runs_once_with_the_last_reference() {
    let counter = AtomicUsize::new(0);
    let object = opaque(&counter);
    assert_eq!(object.type_key(), "ffi.OpaquePyObject");
    // SAFETY: the object is alive.
    unsafe {
        assert_eq!(TVMFFIObjectIncRef(object.as_ptr().cast()), 0);
        assert_eq!(object.strong_count(), 2);
        assert_eq!(TVMFFIObjectDecRef(object.as_ptr().cast()), 0);
    }
    let other = object.clone();
    drop(object);
    assert_eq!(counter.load(Ordering::SeqCst), 0);
    drop(other);
    assert_eq!(counter.load(Ordering::SeqCst), 1);
}

#[test]
fn opaque_takes_one_type_only() {
    let mut out = std::ptr::null_mut();
    // SAFETY: no deleter, nothing to uphold.
    let code = unsafe { TVMFFIObjectCreateOpaque(std::ptr::null_mut(), TypeIndex::TENSOR.0, None, &mut out) };
    assert_eq!(raised(code).kind(), "RuntimeError");
}

#[test]
fn weak_references_keep_storage_not_the_object() {
    let counter = AtomicUsize::new(0);
    let object = opaque(&counter);
    let weak = object.downgrade();
    let weak2 = weak.clone();
    assert_eq!((object.strong_count(), object.weak_count()), (1, 2));
    assert!(!object.is_unique());
    let strong = weak.upgrade().unwrap();
    assert!(strong.ptr_eq(&object));
    drop((object, strong));
    assert_eq!(counter.load(Ordering::SeqCst), 1);
    assert!(weak.upgrade().is_none());
    drop(weak);
    assert!(weak2.upgrade().is_none());
}

#[test]
fn counts_have_the_abi_layout() {
    let shape = Shape::new(&[1]);
    let object = ObjectRef::from(shape);
    // SAFETY: the object is alive.
    let count = || unsafe { (*object.as_ptr()).combined_ref_count.load(Ordering::SeqCst) };
    assert_eq!(count(), 1 | 1 << 32);
    let weak = object.downgrade();
    assert_eq!(count(), 1 | 2 << 32);
    let other = object.clone();
    assert_eq!(count(), 2 | 2 << 32);
    drop((weak, other));
    assert!(object.is_unique());
}

#[test]
fn upgrades_race_with_the_last_drop() {
    for _ in 0..rounds(200) {
        let counter = AtomicUsize::new(0);
        let object = opaque(&counter);
        let weak = object.downgrade();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                let weak = weak.clone();
                scope.spawn(move || {
                    for _ in 0..20 {
                        drop(weak.upgrade());
                    }
                });
            }
            scope.spawn(move || drop(object));
        });
        assert!(weak.upgrade().is_none());
        assert_eq!(counter.load(Ordering::SeqCst), 1);
    }
}

#[test]
fn every_object_has_its_alloc_header() {
    // SAFETY: the header precedes every object body.
    let header = |object: &ObjectRef| unsafe { object.as_ptr().cast::<TVMFFIObjectAllocHeader>().sub(1).read() };
    assert!(header(&Shape::new(&[1, 2]).into()).delete_space.is_some());
    let function = Function::from_packed(|_| Ok(().into()));
    assert!(header(&function.into()).delete_space.is_some());
}

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);
static FREED: AtomicUsize = AtomicUsize::new(0);
const MARK: i32 = TypeIndex::MODULE.0;

unsafe extern "C" fn counting_delete(body: *mut c_void) {
    FREED.fetch_add(1, Ordering::SeqCst);
    // SAFETY: the block starts 64 bytes before the body, and its first word is its size.
    unsafe {
        let block = body.cast::<u8>().sub(64);
        let size = block.cast::<usize>().read();
        std::alloc::dealloc(block, std::alloc::Layout::from_size_align_unchecked(size, 64));
    }
}

/// Serves modules, which only this test makes meanwhile. Fails for all other types.
unsafe extern "C" fn counting_allocate(
    size: usize,
    alignment: usize,
    type_index: i32,
    _context: *mut c_void,
) -> *mut c_void {
    if type_index != MARK || alignment > 64 {
        return std::ptr::null_mut();
    }
    ALLOCATED.fetch_add(1, Ordering::SeqCst);
    let layout = std::alloc::Layout::from_size_align(size + 64, 64).unwrap();
    // SAFETY: the layout's size is not zero, and 64 bytes hold the size and the header.
    unsafe {
        let block = std::alloc::alloc(layout);
        block.cast::<usize>().write(size + 64);
        let body = block.add(64);
        body.cast::<TVMFFIObjectAllocHeader>()
            .sub(1)
            .write(TVMFFIObjectAllocHeader { delete_space: Some(counting_delete) });
        body.cast()
    }
}

#[test]
fn custom_allocator_serves_and_frees() {
    let builtin = TVMFFIGetCustomAllocator();
    assert!(!builtin.is_null());
    let custom =
        leak(Box::new(TVMFFICustomAllocator { allocate: Some(counting_allocate), context: std::ptr::null_mut() }));
    let custom = std::ptr::from_ref(custom).cast_mut();
    // SAFETY: the allocator is leaked and follows the contract.
    assert_eq!(unsafe { TVMFFISetCustomAllocator(custom) }, 0);
    let before = ALLOCATED.load(Ordering::SeqCst);
    let module = Module::new("test", []);
    let shape = Shape::new(&[3]);
    // SAFETY: NULL restores the builtin allocator.
    assert_eq!(unsafe { TVMFFISetCustomAllocator(std::ptr::null_mut()) }, 0);
    assert_eq!(TVMFFIGetCustomAllocator(), builtin);
    assert!(ALLOCATED.load(Ordering::SeqCst) > before);
    assert_eq!(*shape, [3]);
    let freed = FREED.load(Ordering::SeqCst);
    drop(module);
    assert!(FREED.load(Ordering::SeqCst) > freed);
}

#[test]
fn modules_hand_out_their_functions() {
    let alive = Arc::new(());
    let module = Module::builder("jit")
        .function("one", Function::from_packed(|_| Ok(1.into())))
        .keep_alive(alive.clone())
        .build();
    assert_eq!(module.kind(), "jit");
    assert_eq!(module.function_names().unwrap(), ["one"]);
    assert!(module.get_function("two").unwrap().is_none());
    let one = module.get_function("one").unwrap().unwrap();
    assert_eq!(one.call(()).unwrap().cast::<i32>().unwrap(), 1);
    // the function keeps the values that the module keeps
    drop(module);
    assert_eq!(Arc::strong_count(&alive), 2);
    assert_eq!(one.call(()).unwrap().cast::<i32>().unwrap(), 1);
    drop(one);
    assert_eq!(Arc::strong_count(&alive), 1);
}

static INITS: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn init_handle(result: *mut *mut c_void) -> i32 {
    INITS.fetch_add(1, Ordering::SeqCst);
    // SAFETY: the caller passes a writable place.
    unsafe { result.write(std::ptr::without_provenance_mut(8)) };
    0
}

unsafe extern "C" fn deinit_handle(handle: *mut c_void) -> i32 {
    handle.addr() as i32
}

unsafe extern "C" fn init_nothing(_result: *mut *mut c_void) -> i32 {
    0
}

#[test]
fn handles_are_made_once() {
    let place = AtomicUsize::new(0);
    let address: usize = place.as_ptr().expose_provenance();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let place = std::ptr::with_exposed_provenance_mut(address);
                // SAFETY: all threads use this API only, and the place outlives them.
                assert_eq!(unsafe { TVMFFIHandleInitOnce(place, Some(init_handle)) }, 0);
            });
        }
    });
    assert_eq!(INITS.load(Ordering::SeqCst), 1);
    let place = std::ptr::with_exposed_provenance_mut(address);
    // SAFETY: as above.
    unsafe {
        assert_eq!(TVMFFIHandleDeinitOnce(place, Some(deinit_handle)), 8);
        assert_eq!(TVMFFIHandleDeinitOnce(place, Some(deinit_handle)), 0);
        let code = TVMFFIHandleInitOnce(place, Some(init_nothing));
        assert_eq!(raised(code).kind(), "RuntimeError");
    }
}

/// Handles with initialisations that need each other.
static LINKED: [AtomicUsize; 7] = [const { AtomicUsize::new(0) }; 7];

/// Makes a handle of [`LINKED`], and returns the code.
fn make_linked(index: usize, init: unsafe extern "C" fn(*mut *mut c_void) -> i32) -> i32 {
    // SAFETY: all threads use this API only, and the places are never freed.
    unsafe { TVMFFIHandleInitOnce(LINKED[index].as_ptr().cast(), Some(init)) }
}

#[test]
fn a_handle_may_need_another() {
    unsafe extern "C" fn outer(result: *mut *mut c_void) -> i32 {
        // SAFETY: the caller passes a writable place.
        unsafe { result.write(std::ptr::without_provenance_mut(16)) };
        make_linked(1, init_handle_of_its_own)
    }
    assert_eq!(make_linked(0, outer), 0);
    assert_eq!([&LINKED[0], &LINKED[1]].map(|handle| handle.load(Ordering::SeqCst)), [16, 8]);
}

unsafe extern "C" fn init_handle_of_its_own(result: *mut *mut c_void) -> i32 {
    // SAFETY: the caller passes a writable place.
    unsafe { result.write(std::ptr::without_provenance_mut(8)) };
    0
}

#[test]
fn a_failed_initialisation_is_tried_again() {
    static TRIES: AtomicUsize = AtomicUsize::new(0);
    unsafe extern "C" fn third_time(result: *mut *mut c_void) -> i32 {
        // A result with a code other than 0 is ignored.
        // SAFETY: the caller passes a writable place.
        unsafe { result.write(std::ptr::without_provenance_mut(8)) };
        [7, -2, 0][TRIES.fetch_add(1, Ordering::SeqCst)]
    }
    assert_eq!(make_linked(2, third_time), 7);
    assert_eq!(make_linked(2, third_time), -2);
    assert_eq!(LINKED[2].load(Ordering::SeqCst), 0);
    assert_eq!(make_linked(2, third_time), 0);
    assert_eq!(make_linked(2, third_time), 0);
    assert_eq!(TRIES.load(Ordering::SeqCst), 3);
}

#[test]
fn handles_that_need_each_other_are_an_error() {
    static BEGUN: AtomicUsize = AtomicUsize::new(0);
    static BOTH: std::sync::Barrier = std::sync::Barrier::new(2);
    /// Waits until both threads are inside an initialisation. Later ones need not wait.
    fn until_both_have_begun() {
        if BEGUN.fetch_add(1, Ordering::SeqCst) < 2 {
            BOTH.wait();
        }
    }
    unsafe extern "C" fn third(result: *mut *mut c_void) -> i32 {
        until_both_have_begun();
        // SAFETY: the caller passes a writable place.
        unsafe { result.write(std::ptr::without_provenance_mut(24)) };
        make_linked(4, fourth)
    }
    unsafe extern "C" fn fourth(result: *mut *mut c_void) -> i32 {
        until_both_have_begun();
        // SAFETY: the caller passes a writable place.
        unsafe { result.write(std::ptr::without_provenance_mut(32)) };
        make_linked(3, third)
    }
    let run = |index: usize, init: unsafe extern "C" fn(*mut *mut c_void) -> i32| {
        move || match make_linked(index, init) {
            0 => None,
            code => Some(raised(code).message().to_owned()),
        }
    };
    let (one, other) = std::thread::scope(|scope| {
        let (one, other) = (scope.spawn(run(3, third)), scope.spawn(run(4, fourth)));
        (one.join().unwrap(), other.join().unwrap())
    });
    let message = "the initialisation of a handle needs this handle itself";
    // The refused thread fails its own handle. The other thread then tries to make that handle, which needs its own
    // one.
    assert_eq!([one.as_deref(), other.as_deref()], [Some(message); 2]);
}

#[test]
fn an_initialisation_holds_up_no_other_handle() {
    static OTHER_IS_MADE: std::sync::Barrier = std::sync::Barrier::new(2);
    unsafe extern "C" fn slow(result: *mut *mut c_void) -> i32 {
        OTHER_IS_MADE.wait();
        // SAFETY: the caller passes a writable place.
        unsafe { init_handle_of_its_own(result) }
    }
    std::thread::scope(|scope| {
        scope.spawn(|| assert_eq!(make_linked(5, slow), 0));
        assert_eq!(make_linked(6, init_handle_of_its_own), 0);
        OTHER_IS_MADE.wait();
    });
}
