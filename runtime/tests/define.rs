//! Types of objects defined in Rust.

use std::sync::atomic::{AtomicUsize, Ordering};

use tvm_ffi_runtime as tvm_ffi;

use tvm_ffi::abi::*;
use tvm_ffi::capi::{TVMFFIObjectDecRef, TVMFFITypeGetOrAllocIndex};
use tvm_ffi::define::Ancestor;
use tvm_ffi::registry::set_global;
use tvm_ffi::unstable::type_table::type_info;
use tvm_ffi::{Any, AnyView, Array, Function, List, Mutable, Obj, Object, ObjectRef, Result, Str, ToAnyView};

use crate::support::*;

/// A shape.
#[derive(Object, Default)]
#[object(key = "test.define.Figure", default)]
struct Figure {
    /// The figure's name.
    label: Mutable<Str>,
    #[object(name = "sides", default = 4)]
    corners: Mutable<i64>,
    #[object(skip)]
    _private: Option<std::thread::ThreadId>,
}

#[derive(Object)]
#[repr(C)]
#[object(key = "test.define.Square")]
struct Square {
    #[object(parent)]
    figure: Figure,
    side: i64,
}

#[derive(Object)]
#[repr(C)]
#[object(key = "test.define.Tile")]
struct Tile {
    #[object(parent)]
    square: Square,
    colour: Str,
}

#[derive(Object)]
#[repr(C)]
#[object(key = "test.define.Circle")]
struct Circle {
    #[object(parent)]
    figure: Figure,
    radius: Option<f64>,
}

#[tvm_ffi::methods]
impl Square {
    /// A square with that side.
    #[init]
    pub fn new(side: i64) -> Result<Self> {
        tvm_ffi::ensure!(side > 0, ValueError, "a side of {side}");
        Ok(Self { figure: Figure::default(), side })
    }

    /// Its area.
    pub fn area(&self) -> i64 {
        self.side * self.side
    }

    pub fn name(&self, before: &str, bytes: &[u8], other: &Obj<Square>) -> String {
        format!("{before}{}{}{}", self.side, bytes.len(), other.side)
    }

    pub fn corners() -> i64 {
        4
    }

    #[skip]
    pub fn is_large(&self) -> bool {
        self.side > 9
    }
}

fn square(side: i64) -> Obj<Square> {
    Obj::new(Square::new(side).unwrap()).unwrap()
}

fn tile() -> Obj<Tile> {
    Obj::new(Tile { square: Square::new(3).unwrap(), colour: Str::new("red") }).unwrap()
}

/// The type's info.
fn info<T: Object>() -> &'static TVMFFITypeInfo {
    // SAFETY: infos are never freed, and the test reads them after the type is registered.
    unsafe { &*type_info(T::type_index().unwrap().0).unwrap() }
}

fn fields<T: Object>() -> &'static [TVMFFIFieldInfo] {
    // SAFETY: as above; the array has the length in the info.
    unsafe { std::slice::from_raw_parts(info::<T>().fields, info::<T>().num_fields as usize) }
}

fn methods<T: Object>() -> &'static [TVMFFIMethodInfo] {
    // SAFETY: as above.
    unsafe { std::slice::from_raw_parts(info::<T>().methods, info::<T>().num_methods as usize) }
}

fn text(bytes: &TVMFFIByteArray) -> &str {
    // SAFETY: texts of infos are never freed.
    std::str::from_utf8(unsafe { bytes.as_slice() }).unwrap()
}

fn get(object: &ObjectRef, field: &TVMFFIFieldInfo) -> Any {
    let mut value = TVMFFIAny::none();
    let place = object.as_ptr().wrapping_byte_add(field.offset as usize).cast();
    // SAFETY: the field is one of the object's type.
    assert_eq!(unsafe { field.getter.unwrap()(place, &mut value) }, 0);
    // SAFETY: a getter writes an owned value.
    unsafe { Any::from_raw(value) }
}

fn set(object: &ObjectRef, field: &TVMFFIFieldInfo, value: impl ToAnyView) -> i32 {
    let place = object.as_ptr().wrapping_byte_add(field.offset as usize).cast();
    // SAFETY: a setter that isn't a function object has this type. The field is one of the object's type.
    unsafe {
        let setter = std::mem::transmute::<*mut std::ffi::c_void, TVMFFIFieldSetter>(field.setter);
        setter(place, &value.to_arg().as_view().as_raw())
    }
}

#[test]
fn objects_go_through_values_and_containers() {
    let tile = tile();
    let any = Any::from(tile.clone());
    assert_eq!(any.type_key(), "test.define.Tile");
    let array: Array = [any.clone()].into_iter().collect();
    let list: List = array.iter().cloned().collect();
    assert!(list.get(0).unwrap().cast::<Obj<Tile>>().unwrap().ptr_eq(&tile));
    let echo = Function::from_typed(|tile: Obj<Tile>, square: Option<Obj<Square>>| {
        (tile.colour == *"red" && square.is_some()).then_some(tile)
    });
    assert!(echo.call_as::<Obj<Tile>>((&tile, &tile)).unwrap().ptr_eq(&tile));
    let error = echo.call((square(1), ())).unwrap_err();
    assert!(error.message().contains("Expected `test.define.Tile` but got `test.define.Square`"), "{error}");
    drop((any, array, list));
    assert_eq!(tile.as_object().strong_count(), 1);
}

#[test]
fn casts_are_checked() {
    let figure = tile().upcast().upcast();
    figure.label.set("here".into());
    assert_eq!(figure.as_object().type_key(), "test.define.Tile");
    let figure = figure.downcast::<Circle>().map(drop).unwrap_err();
    let square: Obj<Square> = figure.downcast().map_err(drop).unwrap();
    assert_eq!((square.side, square.figure.label.get().as_str()), (3, "here"));
    let tile: Obj<Tile> = square.downcast().map_err(drop).unwrap();
    assert_eq!(tile.colour, *"red");
    let circle = Obj::new(Circle { figure: Figure::default(), radius: Some(0.5) }).unwrap();
    assert_eq!(circle.radius, Some(0.5));
    let object = ObjectRef::from(circle.upcast());
    assert!(Obj::<Square>::try_from(object.clone()).is_err());
    assert!(Obj::<Figure>::try_from(object).is_ok());
    assert_eq!(Any::from(1).cast::<Obj<Figure>>().unwrap_err().message(), "expected test.define.Figure, got int");
    assert!(Obj::<Figure>::try_from(ObjectRef::from(<Array>::default())).is_err());
    assert!(Any::none().cast::<Option<Obj<Figure>>>().unwrap().is_none());
}

/// A type without objects.
#[derive(Object)]
#[object(key = "test.define.Never")]
struct Never {}

#[test]
fn a_type_without_objects_isnt_registered() {
    assert!(Any::from(square(1)).cast::<Obj<Never>>().is_err());
    assert!(tvm_ffi::unstable::type_table::key_to_index("test.define.Never").is_none());
}

#[test]
fn others_read_and_write_fields() {
    let tile = tile();
    let [label, sides] = fields::<Figure>() else { panic!("{:?}", fields::<Figure>().len()) };
    assert_eq!((text(&label.name), text(&label.doc), text(&sides.name)), ("label", "The figure's name.", "sides"));
    assert_eq!(text(&sides.metadata), r#"{"type_schema":"{\"type\":\"int\"}"}"#);
    let writable = kTVMFFIFieldFlagBitMaskWritable;
    assert_eq!((label.flags, sides.flags), (writable, writable | kTVMFFIFieldFlagBitMaskHasDefault));
    // SAFETY: the info owns the default.
    assert_eq!(unsafe { AnyView::from_raw(sides.default_value_or_factory) }.cast::<i64>().unwrap(), 4);
    assert_eq!(set(tile.as_object(), label, "a name of more than seven bytes"), 0);
    assert_eq!(tile.square.figure.label.get(), *"a name of more than seven bytes");
    assert_eq!(get(tile.as_object(), label).cast::<String>().unwrap(), "a name of more than seven bytes");
    assert_eq!(raised(set(tile.as_object(), sides, "four")).kind(), "TypeError");
    let [side] = fields::<Square>() else { panic!() };
    assert_eq!(side.flags, 0);
    assert_eq!(raised(set(tile.as_object(), side, 5)).message(), "the field is read-only");
    assert_eq!(get(tile.as_object(), side).cast::<i64>().unwrap(), 3);
    assert_eq!(text(&info::<Figure>().type_key), "test.define.Figure");
    assert_eq!(info::<Tile>().type_depth, 3);
    // SAFETY: the type has metadata, which is never freed.
    let metadata = unsafe { &*info::<Figure>().metadata };
    assert_eq!(text(&metadata.doc), "A shape.");
    let mut made = std::ptr::null_mut();
    // SAFETY: the place is writable.
    assert_eq!(unsafe { metadata.creator.unwrap()(&mut made) }, 0);
    // SAFETY: the creator returns a reference.
    let made: Obj<Figure> = unsafe { ObjectRef::from_raw(made.cast()) }.unwrap().try_into().unwrap();
    assert_eq!(made.corners.get(), 0);
}

#[test]
fn others_call_methods() {
    let names: Vec<_> = methods::<Square>().iter().map(|method| text(&method.name)).collect();
    assert_eq!(names, ["__ffi_init__", "area", "name", "corners"]);
    let call = |name: &str, args: &[AnyView<'_>]| {
        let method = methods::<Square>().iter().find(|method| text(&method.name) == name).unwrap();
        // SAFETY: the info owns the function.
        let function: Function = unsafe { AnyView::from_raw(method.method) }.cast().unwrap();
        function.call_packed(args)
    };
    let square: Obj<Square> = call("__ffi_init__", &[5.to_arg().as_view()]).unwrap().cast().unwrap();
    assert_eq!(square.side, 5);
    assert_eq!(call("__ffi_init__", &[0.to_arg().as_view()]).unwrap_err().message(), "a side of 0");
    // A tile is a square.
    let tile = tile();
    let view = tile.to_arg();
    assert_eq!(call("area", &[view.as_view()]).unwrap().cast::<i64>().unwrap(), 9);
    let other = square.to_arg();
    let name = call(
        "name",
        &[view.as_view(), "x".to_arg().as_view(), [0u8, 1].as_slice().to_arg().as_view(), other.as_view()],
    );
    assert_eq!(name.unwrap().cast::<String>().unwrap(), "x325");
    assert_eq!(call("corners", &[]).unwrap().cast::<i64>().unwrap(), Square::corners());
    assert!(!square.is_large());
    let error = call("area", &[1.to_arg().as_view()]).unwrap_err();
    assert!(
        error.message().starts_with(
            "Mismatched type on argument #0 when calling: `test.define.Square.area(0: test.define.Square) -> int`."
        ),
        "{error}"
    );
}

/// A value with a large alignment.
#[derive(Object)]
#[repr(C, align(64))]
#[object(key = "test.define.Aligned")]
struct Aligned {
    first: u8,
    second: i64,
}

#[test]
fn alignment_is_kept() {
    let aligned = Obj::new(Aligned { first: 7, second: 8 }).unwrap();
    assert!((&raw const *aligned).addr().is_multiple_of(64));
    let values: Vec<i64> =
        fields::<Aligned>().iter().map(|field| get(aligned.as_object(), field).cast().unwrap()).collect();
    assert_eq!(values, [7, 8]);
}

/// A type that several threads begin to register at once.
#[derive(Object)]
#[object(key = "test.define.Contended")]
struct Contended {
    value: i64,
}

#[test]
fn registration_happens_once() {
    let indices: Vec<TypeIndex> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|value| scope.spawn(move || Obj::new(Contended { value }).unwrap().as_object().type_index()))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(indices.iter().all(|index| *index == Contended::type_index().unwrap()));
    assert_eq!(fields::<Contended>().len(), 1);
}

/// A type with a key that other code has registered.
#[derive(Object)]
#[object(key = "test.define.Taken")]
struct Taken {}

#[test]
fn a_key_of_others_is_refused() {
    let key = bytes("test.define.Taken");
    // SAFETY: the key is valid.
    assert!(unsafe { TVMFFITypeGetOrAllocIndex(&key, -1, 1, 0, 1, TypeIndex::OBJECT.0) } > 0);
    for _ in 0..2 {
        let error = Obj::new(Taken {}).map(drop).unwrap_err();
        assert_eq!(error.message(), "type `test.define.Taken` is registered already, by other code");
    }
}

/// A type that is used while it is registered.
#[derive(Object)]
#[object(key = "test.define.Itself")]
struct Itself {
    #[object(default = Obj::new(Itself { next: None })?)]
    next: Option<Obj<Itself>>,
}

#[test]
fn a_default_of_its_own_type_is_refused() {
    let error = Obj::new(Itself { next: None }).map(drop).unwrap_err();
    assert!(error.message().contains("registration of a type uses the type itself"), "{error}");
}

/// A type with a registration that panics once.
#[derive(Object)]
#[object(key = "test.define.Panics")]
struct Panics {
    #[object(default = panic_once())]
    value: i64,
}

fn panic_once() -> i64 {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    match CALLS.fetch_add(1, Ordering::SeqCst) {
        0 => std::panic::resume_unwind(Box::new("once")),
        _ => 5,
    }
}

#[test]
fn a_registration_that_panics_may_be_tried_again() {
    assert!(std::panic::catch_unwind(|| Obj::new(Panics { value: 1 })).is_err());
    assert_eq!(Obj::new(Panics { value: 2 }).unwrap().value, 2);
}

/// A link of a chain.
#[derive(Object)]
#[object(key = "test.define.Link")]
struct Link {
    next: Option<Obj<Link>>,
}

#[test]
fn a_long_chain_is_dropped_without_recursion() {
    on_a_small_stack(|| {
        let mut chain = Obj::new(Link { next: None }).unwrap();
        for _ in 0..DEEP {
            chain = Obj::new(Link { next: Some(chain) }).unwrap();
        }
        drop(chain);
    });
}

/// A value whose destructor panics.
#[derive(Object)]
#[object(key = "test.define.Angry")]
struct Angry {
    value: i64,
}

static DROPPED: AtomicUsize = AtomicUsize::new(0);

impl Drop for Angry {
    fn drop(&mut self) {
        DROPPED.fetch_add(self.value as usize, Ordering::SeqCst);
        std::panic::resume_unwind(Box::new("no"));
    }
}

#[test]
fn a_panic_of_a_destructor_stays_inside() {
    let angry = Obj::new(Angry { value: 3 }).unwrap();
    let weak = angry.downgrade();
    let raw = angry.into_object().into_raw();
    // SAFETY: the reference is released here.
    assert_eq!(unsafe { TVMFFIObjectDecRef(raw.cast()) }, 0);
    assert!(weak.upgrade().is_none());
    drop(Obj::new(Angry { value: 4 }).unwrap());
    assert_eq!(DROPPED.load(Ordering::SeqCst), 7);
}

#[test]
fn fields_are_written_while_they_are_read() {
    let figure = Obj::new(Figure::default()).unwrap();
    let write = {
        let figure = figure.clone();
        Function::from_typed(move |text: Str, corners: i64| {
            figure.label.set(text);
            figure.corners.set(corners);
        })
    };
    set_global("test.define.write", write, true).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let write = tvm_ffi::registry::get_global("test.define.write").unwrap();
            for i in 0..rounds(2_000) {
                write.call((format!("a text of more than seven bytes: {i}"), i)).unwrap();
            }
        });
        for _ in 0..rounds(2_000) {
            let label = get(figure.as_object(), &fields::<Figure>()[0]).cast::<String>().unwrap();
            assert!(label.is_empty() || label.starts_with("a text"), "{label}");
        }
    });
    assert!(tvm_ffi::registry::remove_global("test.define.write"));
}

/// The crate under another name.
mod elsewhere {
    pub use tvm_ffi_runtime as runtime;
}

/// A type in a crate that has the runtime under another path.
#[derive(Object)]
#[object(key = "test.define.Elsewhere", crate = crate::define::elsewhere::runtime)]
struct Elsewhere {
    value: i64,
}

#[tvm_ffi::methods(crate = crate::define::elsewhere::runtime)]
impl Elsewhere {
    pub fn twice(&self) -> i64 {
        2 * self.value
    }
}

#[tvm_ffi::export(name = "define_elsewhere", crate = crate::define::elsewhere::runtime)]
fn twice(object: &Obj<Elsewhere>) -> i64 {
    object.twice()
}

#[test]
fn macros_find_the_crate_by_a_path() {
    unsafe extern "C" {
        fn __tvm_ffi_define_elsewhere(_: *mut std::ffi::c_void, _: *const TVMFFIAny, _: i32, _: *mut TVMFFIAny) -> i32;
    }
    // SAFETY: an exported function follows the calling convention.
    let twice = unsafe { Function::from_extern_c(std::ptr::null_mut(), __tvm_ffi_define_elsewhere, None) };
    assert_eq!(twice.call_as::<i64>((Obj::new(Elsewhere { value: 4 }).unwrap(),)).unwrap(), 8);
}
