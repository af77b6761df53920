//! Calls from safe code that once reached undefined behaviour. Calls that no longer compile are doc tests, and those
//! with libraries are in `libraries`.

use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use tvm_ffi_runtime::abi::*;
use tvm_ffi_runtime::capi::*;
use tvm_ffi_runtime::error::take_raised;
use tvm_ffi_runtime::registry::{get_global, list_global_names, set_global};
use tvm_ffi_runtime::{
    Any, AnyView, Array, AsObject, Error, Function, List, Module, ObjectRef, Shape, Tensor, TensorView, ToAnyView,
};

use crate::support::*;

fn type_index(key: &[u8]) -> i32 {
    let key = TVMFFIByteArray::from_slice(key);
    // SAFETY: the key is valid.
    let index = unsafe { TVMFFITypeGetOrAllocIndex(&key, -1, 1, 0, 1, TypeIndex::OBJECT.0) };
    assert!(index >= TypeIndex::DYN_OBJECT_BEGIN.0);
    index
}

#[test]
fn borrowed_tensors_are_not_kept() {
    let refused =
        |error: Error| assert!(error.kind() == "TypeError" && error.message().contains("borrowed"), "{error}");
    let mut data = [1f32; 4];
    let view = TensorView::from_mut_slice(&mut data, &[4]).unwrap();
    refused(view.to_arg().as_view().to_owned().unwrap_err());
    let echo = Function::from_packed(|args| args[0].to_owned());
    refused(echo.call((&view,)).unwrap_err());
    refused(get_global("ffi.Array").unwrap().call((&view,)).unwrap_err());
    // SAFETY: the function writes its one argument as its result.
    let c_echo = unsafe { Function::from_extern_c(std::ptr::null_mut(), echo_in_c, None) };
    refused(c_echo.call((&view,)).unwrap_err());
    assert_eq!(c_echo.call((1,)).unwrap().cast::<i64>().unwrap(), 1);
    // A tensor keeps its own memory alive.
    let tensor = Tensor::from_slice(&[1f32], &[1]).unwrap();
    assert!(echo.call((&tensor,)).is_ok());
}

unsafe extern "C" fn echo_in_c(_: *mut c_void, args: *const TVMFFIAny, _: i32, result: *mut TVMFFIAny) -> i32 {
    // SAFETY: the test passes one argument and a place for the result.
    unsafe { result.write(*args) };
    0
}

/// One more than the maximum number of references.
#[cfg(all(unix, not(miri)))]
const MANY: u64 = u32::MAX as u64 / 2 + 1;

/// Runs a test in a separate process, with an object whose counts are as if most of its references had been forgotten.
/// The process aborts.
#[cfg(all(unix, not(miri)))]
fn aborts(test: &str, counts: u64, add_reference: impl FnOnce(ObjectRef)) {
    use std::os::unix::process::ExitStatusExt;
    let status = alone(test, || {
        let object = ObjectRef::from(Shape::new(&[1]));
        // SAFETY: the object is alive.
        unsafe { &*object.as_ptr() }.combined_ref_count.store(counts, Ordering::SeqCst);
        add_reference(object);
    });
    assert_eq!(status.signal(), Some(6), "{status}");
}

#[test]
#[cfg(all(unix, not(miri)))]
fn counts_that_would_wrap_end_the_process() {
    aborts("sound::counts_that_would_wrap_end_the_process", MANY | 1 << 32, |object| std::mem::forget(object.clone()));
}

#[test]
#[cfg(all(unix, not(miri)))]
fn weak_counts_that_would_wrap_end_the_process() {
    aborts("sound::weak_counts_that_would_wrap_end_the_process", 1 | MANY << 32, |object| {
        std::mem::forget(object.downgrade());
    });
}

#[test]
#[cfg(all(unix, not(miri)))]
fn upgrades_that_would_wrap_end_the_process() {
    aborts("sound::upgrades_that_would_wrap_end_the_process", MANY | 1 << 32, |object| {
        std::mem::forget(object.downgrade().upgrade());
    });
}

/// Bytes before a body of [`allocate_16`]. The size of the block is at their start, the header at their end.
const BEFORE: usize = 80;

/// Allocates bodies that are aligned to 16 bytes and never to more.
unsafe extern "C" fn allocate_16(size: usize, _alignment: usize, _index: i32, _context: *mut c_void) -> *mut c_void {
    let layout = std::alloc::Layout::from_size_align(size + BEFORE, 64).unwrap();
    // SAFETY: the block has room for the body and the bytes before it.
    unsafe {
        let block = std::alloc::alloc(layout);
        block.cast::<usize>().write(layout.size());
        let body = block.add(BEFORE);
        body.cast::<TVMFFIObjectAllocHeader>().sub(1).write(TVMFFIObjectAllocHeader { delete_space: Some(delete_16) });
        body.cast()
    }
}

static GIVEN_BACK: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn delete_16(body: *mut c_void) {
    GIVEN_BACK.fetch_add(1, Ordering::SeqCst);
    // SAFETY: the block is one of `allocate_16`.
    unsafe {
        let block = body.cast::<u8>().sub(BEFORE);
        let layout = std::alloc::Layout::from_size_align_unchecked(block.cast::<usize>().read(), 64);
        std::alloc::dealloc(block, layout);
    }
}

fn install(allocate: unsafe extern "C" fn(usize, usize, i32, *mut c_void) -> *mut c_void) {
    let allocator = TVMFFICustomAllocator { allocate: Some(allocate), context: std::ptr::null_mut() };
    // SAFETY: the allocator is leaked, and its functions follow the contract.
    assert_eq!(unsafe { TVMFFISetCustomAllocator(Box::leak(Box::new(allocator))) }, 0);
}

#[test]
#[cfg(not(miri))]
fn captures_are_aligned_whatever_the_allocator_gives() {
    #[repr(align(64))]
    struct Aligned(u8);
    let status = alone("sound::captures_are_aligned_whatever_the_allocator_gives", || {
        install(allocate_16);
        let capture = Aligned(7);
        let function = Function::from_packed(move |_| {
            let address = std::ptr::from_ref(&capture).addr();
            Ok(Any::from(address % 64 + usize::from(capture.0)))
        });
        assert_eq!(function.call(()).unwrap().cast::<i64>().unwrap(), 7);
        // The misaligned block went back to the allocator.
        assert_eq!(GIVEN_BACK.load(Ordering::SeqCst), 1);
        drop(Shape::new(&[1]));
        assert_eq!(GIVEN_BACK.load(Ordering::SeqCst), 2);
    });
    assert!(status.success(), "{status}");
}

#[test]
fn views_are_made_of_memory_that_may_be_written() {
    let add_one = Function::from_packed(|args| {
        let tensor: *mut DLTensor = args[0].cast()?;
        // SAFETY: the test passes two floats.
        unsafe { *(*tensor).data.cast::<f32>() += 1.0 };
        Ok(().into())
    });
    let mut data = [1f32, 2.0];
    add_one.call((TensorView::from_mut_slice(&mut data, &[2]).unwrap(),)).unwrap();
    assert_eq!(data, [2.0, 2.0]);
    // SAFETY: no function gets the view.
    let view = unsafe { TensorView::from_slice(&[true, false], &[2]) }.unwrap();
    assert_eq!(view.dtype().to_string(), "bool");
}

#[test]
fn elements_are_copied_while_others_write() {
    let tensor = Tensor::from_slice(&[0u32; 7], &[7]).unwrap();
    let stop = AtomicBool::new(false);
    // Begins within a word of eight bytes.
    let mut prototype = *tensor.as_dl_tensor();
    let (mut shape, mut strides) = ([6i64], [1i64]);
    (prototype.shape, prototype.strides, prototype.byte_offset) = (shape.as_mut_ptr(), strides.as_mut_ptr(), 4);
    // SAFETY: the prototype describes part of the source.
    let part = unsafe { Tensor::create_unsafe_view(&tensor, &prototype) }.unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let data = tensor.data_ptr().cast::<u32>();
            while !stop.load(Ordering::Relaxed) {
                for i in 0..7 {
                    // SAFETY: the tensor has seven elements. They are written as a kernel writes them.
                    let element = unsafe { std::sync::atomic::AtomicU32::from_ptr(data.add(i)) };
                    element.store(!element.load(Ordering::Relaxed), Ordering::Relaxed);
                }
            }
        });
        let copies: Vec<Vec<u32>> = (0..rounds(2000)).map(|_| part.to_vec().unwrap()).collect();
        stop.store(true, Ordering::Relaxed);
        for elements in copies {
            assert!(elements.iter().all(|&element| element == 0 || element == u32::MAX), "{elements:x?}");
        }
    });
}

#[test]
fn attributes_are_published_whole() {
    let count = if cfg!(miri) { 10 } else { 200 };
    let types: Vec<i32> = (0..count).map(|i| type_index(format!("sound.Published{i}").as_bytes())).collect();
    let name = bytes("sound.published");
    // SAFETY: all arguments are valid.
    unsafe { assert_eq!(TVMFFITypeRegisterAttr(TypeIndex::NONE.0, &name, &TVMFFIAny::none()), 0) };
    // SAFETY: as above.
    let column = unsafe { TVMFFIGetTypeAttrColumn(&name) }.expose_provenance();
    // Set last, in a column that has its full length from the first value on.
    let first = types[0] as usize;
    // Relaxed, so it orders nothing.
    let has_read = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Reads the column as C++ code does, in the required order.
        scope.spawn(|| {
            let column = std::ptr::with_exposed_provenance_mut::<TVMFFITypeAttrColumn>(column);
            loop {
                // SAFETY: the column's header is never freed, and all of its entries are readable.
                unsafe {
                    let size = std::sync::atomic::AtomicI32::from_ptr(&raw mut (*column).size).load(Ordering::Acquire);
                    let data =
                        std::sync::atomic::AtomicPtr::from_ptr((&raw mut (*column).data).cast::<*mut TVMFFIAny>());
                    let data = data.load(Ordering::Acquire);
                    for i in 0..size as usize {
                        let entry = data.add(i).cast::<u64>();
                        if AtomicU64::from_ptr(entry).load(Ordering::Acquire) != 0 {
                            assert_eq!(AtomicU64::from_ptr(entry.add(1)).load(Ordering::Relaxed), i as u64 + 1);
                        }
                    }
                    if size as usize > first && AtomicU64::from_ptr(data.add(first).cast()).load(Ordering::Acquire) != 0
                    {
                        break;
                    }
                }
                has_read.store(true, Ordering::Relaxed);
            }
        });
        for &index in types.iter().rev() {
            let value = Any::from(index + 1);
            // SAFETY: all arguments are valid.
            assert_eq!(unsafe { TVMFFITypeRegisterAttr(index, &name, value.as_raw()) }, 0);
            while !has_read.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
        }
    });
}

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

static CALLED_BACK: AtomicUsize = AtomicUsize::new(0);

/// An allocator that uses the runtime. It reads and writes each of the tables, and returns storage of the builtin
/// allocator.
unsafe extern "C" fn allocate_and_call_back(size: usize, align: usize, index: i32, _: *mut c_void) -> *mut c_void {
    if !INSIDE.replace(true) {
        let round = CALLED_BACK.fetch_add(1, Ordering::SeqCst);
        let mut out = std::ptr::null_mut();
        let mut found = 0;
        let key = format!("sound.CalledBack{round}");
        let index = type_index(key.as_bytes());
        // SAFETY: all arguments are valid.
        unsafe {
            TVMFFITypeKeyToIndex(&bytes(&key), &mut found);
            assert_eq!(found, index);
            assert_eq!(TVMFFITypeRegisterAttr(index, &bytes("sound.called_back"), &1.to_arg().as_view().as_raw()), 0);
            assert_eq!(TVMFFIFunctionGetGlobal(&bytes("ffi.Array"), &mut out), 0);
            let function = own::<Function>(out);
            assert_eq!(TVMFFIFunctionSetGlobal(&bytes(&key), function.as_raw_handle(), 0), 0);
            assert_eq!(TVMFFIEnvRegisterCAPI(c"PyErr_CheckSignals".as_ptr(), std::ptr::null_mut()), 0);
        }
        let module = Module::new("called_back", []);
        module.import_module(&Module::new("imported", [])).unwrap();
        INSIDE.set(false);
    }
    // SAFETY: the builtin allocator takes any size and alignment.
    unsafe {
        let builtin = std::ptr::with_exposed_provenance::<TVMFFICustomAllocator>(BUILTIN.load(Ordering::SeqCst));
        ((*builtin).allocate.unwrap())(size, align, index, (*builtin).context)
    }
}

static BUILTIN: AtomicUsize = AtomicUsize::new(0);

#[test]
#[cfg(not(miri))]
fn allocators_may_use_the_runtime() {
    let status = alone("sound::allocators_may_use_the_runtime", || {
        BUILTIN.store(TVMFFIGetCustomAllocator().expose_provenance(), Ordering::SeqCst);
        // From the start: the built-in functions are made when the table is first used.
        install(allocate_and_call_back);
        let failed = |code: i32| assert!(raised(code).message().len() > 1);
        let index = type_index(b"sound.Allocated");
        let value = c"a text of more than seven bytes".to_arg().as_view().as_raw();
        let name = bytes("sound.allocated");
        let field = field_with_default("sound.allocated", value, TypeIndex::STR);
        let method = TVMFFIMethodInfo {
            name,
            doc: TVMFFIByteArray::EMPTY,
            metadata: TVMFFIByteArray::EMPTY,
            flags: 0,
            method: value,
        };
        let metadata = TVMFFITypeMetadata { doc: name, creator: None, total_size: 8, structural_eq_hash_kind: 0 };
        // SAFETY: all arguments are valid.
        unsafe {
            assert_eq!(TVMFFITypeRegisterField(index, &field), 0);
            failed(TVMFFITypeRegisterField(index, &field));
            assert_eq!(TVMFFITypeRegisterMethod(index, &method), 0);
            assert_eq!(TVMFFITypeRegisterMetadata(index, &metadata), 0);
            failed(TVMFFITypeRegisterMetadata(index, &metadata));
            assert_eq!(TVMFFITypeRegisterAttr(index, &name, &value), 0);
            failed(TVMFFITypeRegisterAttr(index, &name, &value));
            failed(TVMFFITypeGetOrAllocIndex(&bytes("sound.NoParent"), -1, 1, 0, 0, 1 << 30));
            failed(TVMFFIEnvRegisterCAPI(c"no such function".as_ptr(), std::ptr::null_mut()));
        }
        let function = Function::from_packed(|_| Ok(().into()));
        set_global("sound.allocated", function.clone(), false).unwrap();
        assert!(set_global("sound.allocated", function, false).is_err());
        let module = Module::new("sound", []);
        assert!(module.import_module(&module).is_err());
        assert!(CALLED_BACK.load(Ordering::SeqCst) > 10);
    });
    assert!(status.success(), "{status}");
}

/// Memory of this process, in bytes.
#[cfg(all(target_os = "linux", not(miri)))]
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

#[test]
#[cfg(all(target_os = "linux", not(miri)))]
fn many_types_with_attributes_take_little_memory() {
    let status = alone("sound::many_types_with_attributes_take_little_memory", || {
        let names: Vec<String> = (0..6).map(|i| format!("sound.attr{i}")).collect();
        type_index(b"sound.First");
        let before = resident();
        for i in 0..1500 {
            let index = type_index(format!("sound.Many{i}").as_bytes());
            let value = i.to_arg().as_view().as_raw();
            for name in &names {
                // SAFETY: all arguments are valid.
                assert_eq!(unsafe { TVMFFITypeRegisterAttr(index, &bytes(name), &value) }, 0);
            }
        }
        let taken = resident() - before;
        println!("1500 types of 6 attributes take {} kB", taken / 1000);
        assert!(taken < 3_000_000, "{taken} bytes");
    });
    assert!(status.success(), "{status}");
}

static REFUSED: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn allocate_for_another_version(
    prototype: *mut DLTensor,
    out: *mut *mut DLManagedTensorVersioned,
    _: *mut c_void,
    _: Option<DLPackSetError>,
) -> i32 {
    unsafe extern "C" fn delete(managed: *mut DLManagedTensorVersioned) {
        REFUSED.fetch_add(1, Ordering::SeqCst);
        // SAFETY: the structure came out of the box below.
        drop(unsafe { Box::from_raw(managed) });
    }
    let managed = DLManagedTensorVersioned {
        version: DLPackVersion { major: 9, minor: 0 },
        manager_ctx: std::ptr::null_mut(),
        deleter: Some(delete),
        flags: 0,
        // SAFETY: the runtime passes a prototype.
        dl_tensor: unsafe { *prototype },
    };
    // SAFETY: the runtime passes a place for the result.
    unsafe { out.write(Box::into_raw(Box::new(managed))) };
    0
}

#[test]
fn allocated_tensors_that_are_refused_are_freed() {
    // On a separate thread, to which the allocator belongs.
    let refused = std::thread::spawn(|| {
        let mut prototype = *Tensor::from_slice(&[1f32], &[]).unwrap().as_dl_tensor();
        let mut out = std::ptr::null_mut();
        // SAFETY: all arguments are valid; a tensor without dimensions has no lists.
        unsafe {
            let set = TVMFFIEnvSetDLPackManagedTensorAllocator;
            assert_eq!(set(Some(allocate_for_another_version), 0, std::ptr::null_mut()), 0);
            raised(TVMFFIEnvTensorAlloc(&mut prototype, &mut out)).message().to_owned()
        }
    });
    assert_eq!(refused.join().unwrap(), "DLPack major version is not supported");
    assert_eq!(REFUSED.load(Ordering::SeqCst), 1);
}

#[test]
fn long_chains_are_dropped_and_shown() {
    on_a_small_stack(|| {
        let chain = || {
            let error = |cause| Error::from_parts("ValueError", "no", "", cause, None);
            (0..DEEP).fold(error(None), |cause, _| error(Some(cause)))
        };
        drop(chain());
        assert!(format!("{:?}", chain()).len() > 10 * DEEP);
        let first = Tensor::from_slice(&[1f32], &[]).unwrap();
        let view = (0..DEEP).fold(first, |source, _| {
            // SAFETY: the prototype is the source's own.
            unsafe { Tensor::create_unsafe_view(&source, source.as_dl_tensor()) }.unwrap()
        });
        drop(view);
    });
}

/// An object of another implementation: a header, and words that only that implementation understands.
#[repr(C)]
struct Foreign {
    header: TVMFFIObject,
    words: [usize; 8],
}

static FOREIGN_DELETED: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn delete_foreign(object: *mut c_void, flags: i32) {
    assert_eq!(flags, kTVMFFIObjectDeleterFlagBitMaskBoth);
    FOREIGN_DELETED.fetch_add(1, Ordering::SeqCst);
    // SAFETY: the object came out of the box below.
    drop(unsafe { Box::from_raw(object.cast::<Foreign>()) });
}

#[test]
fn r_values_that_are_not_taken_are_given_back() {
    let foreign = |index: TypeIndex| -> *mut TVMFFIObject {
        let header = TVMFFIObject {
            combined_ref_count: AtomicU64::new(1 | 1 << 32),
            type_index: index.0,
            __padding: 0,
            deleter: Some(delete_foreign),
        };
        Box::into_raw(Box::new(Foreign { header, words: [0; 8] })).cast()
    };
    let refused = |object: *mut TVMFFIObject, cast: &dyn Fn(AnyView<'_>) -> Error| {
        let mut place = object;
        let raw = TVMFFIAny::from_ptr(TypeIndex::OBJECT_RVALUE_REF, (&raw mut place).cast());
        // SAFETY: the place holds a reference to an object.
        let error = cast(unsafe { AnyView::from_raw(raw) });
        assert_eq!(error.kind(), "TypeError", "{error}");
        assert_eq!(place, object);
        // SAFETY: the reference is still ours.
        drop(unsafe { ObjectRef::from_raw(place) }.unwrap());
    };
    refused(foreign(TypeIndex::MODULE), &|view| view.cast::<Module>().unwrap_err());
    assert_eq!(FOREIGN_DELETED.load(Ordering::SeqCst), 1);
    // A list that can't become a shape.
    let list = <List>::from_iter(["no number"]).into_object();
    refused(list.clone().into_raw(), &|view| view.cast::<Shape>().unwrap_err());
    // Nor can a list of integers.
    refused(list.clone().into_raw(), &|view| view.cast::<List<i64>>().unwrap_err());
    refused(list.clone().into_raw(), &|view| view.cast::<Array<i64>>().unwrap_err());
    assert_eq!(list.strong_count(), 1);
}

#[test]
fn names_need_not_be_utf8() {
    let name = TVMFFIByteArray::from_slice(b"sound.\xff\xfe");
    let function = Function::from_packed(|_| Ok(7.into()));
    let mut out = std::ptr::null_mut();
    // SAFETY: all arguments are valid.
    unsafe {
        assert_eq!(TVMFFIFunctionSetGlobal(&name, function.as_raw_handle(), 0), 0);
        raised(TVMFFIFunctionSetGlobal(&name, function.as_raw_handle(), 0));
        assert_eq!(TVMFFIFunctionGetGlobal(&name, &mut out), 0);
    }
    assert_eq!(own::<Function>(out).call(()).unwrap().cast::<i64>().unwrap(), 7);
    // Another name doesn't find it either.
    assert!(get_global("sound.\u{fffd}\u{fffd}").is_none());
    assert!(!list_global_names().iter().any(|name| name.starts_with("sound.\u{fffd}")));
    let names: Function = get_global("ffi.FunctionListGlobalNamesFunctor").unwrap().call(()).unwrap().cast().unwrap();
    let count: i64 = names.call((-1,)).unwrap().cast().unwrap();
    let is_listed = (0..count).any(|i| {
        let name = names.call((i,)).unwrap();
        name.as_view().str_bytes() == Some(b"sound.\xff\xfe")
    });
    assert!(is_listed);
    let mut text = TVMFFIAny::none();
    // SAFETY: all arguments are valid; the text is owned from here on.
    let text = unsafe {
        assert_eq!(TVMFFIStringFromByteArray(&name, &mut text), 0);
        Any::from_raw(text)
    };
    assert!(get_global("ffi.FunctionRemoveGlobal").unwrap().call((&text,)).unwrap().cast::<bool>().unwrap());

    let (first, second) = (type_index(b"sound.Type\xff"), type_index(b"sound.Type\xfe"));
    assert_ne!(first, second);
    let mut found = 0;
    let key = TVMFFIByteArray::from_slice(b"sound.Type\xff");
    // SAFETY: all arguments are valid, and infos live forever.
    unsafe {
        assert_eq!(TVMFFITypeKeyToIndex(&key, &mut found), 0);
        assert_eq!((*TVMFFIGetTypeInfo(found)).type_key.as_slice(), b"sound.Type\xff");
    }
    assert_eq!(found, first);
    assert!(take_raised().is_none());
}
