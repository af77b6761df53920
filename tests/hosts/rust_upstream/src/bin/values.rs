//! Upstream's crate on a library: functions, arrays, maps, tensors, objects, errors. It prints the same on upstream's
//! `libtvm_ffi` and on ours.

use tvm_ffi::{
    Any, AnyView, Array, Bytes, CPUNDAlloc, DLDataType, DLDataTypeCode, DLDevice, DLDeviceType, Error, FieldGetter,
    Function, Map, Object, ObjectArc, ObjectRefCast, RUNTIME_ERROR, Result, Shape, String as Str, Tensor,
    TypeAttrColumn, VALUE_ERROR, into_typed_fn, object::ObjectRef,
};

#[repr(C)]
#[derive(tvm_ffi::derive::Object)]
#[type_key = "hosts.values.Base"]
#[type_register]
#[type_child_slots = 1]
struct BaseObj {
    base: Object,
    value: i64,
}

#[repr(C)]
#[derive(tvm_ffi::derive::ObjectRef, Clone)]
struct Base {
    data: ObjectArc<BaseObj>,
}

#[repr(C)]
#[derive(tvm_ffi::derive::Object)]
#[type_key = "hosts.values.Leaf"]
#[type_register]
#[type_final]
struct LeafObj {
    base: BaseObj,
    text: Str,
}

#[repr(C)]
#[derive(tvm_ffi::derive::ObjectRef, Clone)]
struct Leaf {
    data: ObjectArc<LeafObj>,
}

tvm_ffi::impl_object_upcast!(Leaf => Base);

fn call(name: &str, args: &[AnyView]) -> Result<Any> {
    Function::get_global(name)?.call_packed(args)
}

/// The library's text form of a value.
fn repr(value: &Any) -> String {
    let text = call("ffi.ReprPrint", &[AnyView::from(value)]).and_then(|text| Str::try_from(text));
    text.map_or_else(|error| format!("no text: {}", error.message()), |text| text.as_str().to_owned())
}

fn show<T: Into<Any>>(what: &str, outcome: Result<T>) {
    match outcome {
        Ok(value) => println!("{what}: {}", repr(&value.into())),
        Err(error) => println!("{what}: {}: {}", error.kind().as_str(), error.message()),
    }
}

fn functions() -> Result<()> {
    let double = Function::from_typed(|x: i64| -> Result<i64> { Ok(2 * x) });
    show("double", double.call_tuple((21i64,)));
    show("double of a text", double.call_tuple((Str::from("text"),)));
    show("double of nothing", double.call_packed(&[]));
    let typed = into_typed_fn!(double.clone(), Fn(i64) -> Result<i64>);
    show("typed", typed(4));
    Function::register_global("hosts.values.double", double)?;
    show("registered", call("hosts.values.double", &[AnyView::from(&5i64)]));
    show("no function", Function::get_global("hosts.values.none").map(Any::from));
    let failing = Function::from_packed(|args: &[AnyView]| -> Result<Any> {
        Err(Error::new(VALUE_ERROR, &format!("{} arguments", args.len()), ""))
    });
    show("failing", failing.call_tuple((1i64, 2i64)));
    show("size of no array", call("ffi.ArraySize", &[AnyView::from(&1i64)]));
    show("parsed", call("ffi.json.Parse", &[AnyView::from(&Str::from("{\"a\": [1, 2.5, null]}"))]));
    Ok(())
}

fn containers() -> Result<()> {
    let array: Array<i64> = [1i64, 2, 3].into_iter().collect();
    show("array", Ok(array.clone()));
    show("size", call("ffi.ArraySize", &[AnyView::from(&array)]));
    show("sum", Ok(array.iter().sum::<i64>()));
    show("beyond", array.get(3));
    let texts = call("ffi.Array", &[AnyView::from(&Str::from("a")), AnyView::from(&Str::from("a longer string"))])?;
    show("made by the library", Array::<Str>::try_from(texts.clone()));
    show("of another type", Array::<i64>::try_from(texts).map(Any::from));
    let map: Map<Str, i64> = (0..20).map(|i| (Str::from(format!("key {i}").as_str()), i)).collect();
    show("map", Ok(map.clone()));
    println!("entries: {} {:?}", map.len(), map.get(&Str::from("key 7"))?);
    show("item", call("ffi.MapGetItem", &[AnyView::from(&map), AnyView::from(&Str::from("key 19"))]));
    show("no item", call("ffi.MapGetItem", &[AnyView::from(&map), AnyView::from(&Str::from("none"))]));
    let made =
        call("ffi.Map", &[AnyView::from(&1i64), AnyView::from(&2i64), AnyView::from(&3i64), AnyView::from(&4i64)])?;
    let made: Map<i64, i64> = made.try_into()?;
    println!("of the library: {} {:?} {:?}", made.len(), made.get(&3)?, made.get(&5)?);
    show("shape", Ok(Shape::from(vec![2i64, 3])));
    show("bytes", Ok(Bytes::from(&b"\x00\xff"[..])));
    Ok(())
}

fn tensors() -> Result<()> {
    let dtype = DLDataType::new(DLDataTypeCode::kDLFloat, 32, 1);
    let tensor = Tensor::from_nd_alloc(CPUNDAlloc {}, &[2, 2], dtype, DLDevice::new(DLDeviceType::kDLCPU, 0));
    show("tensor", Ok(tensor.clone()));
    show("device", call("ffi.ContainerFindFirstNonCPUDevice", &[AnyView::from(&tensor)]));
    let copied = Tensor::from_slice(&[1.0f32, 2.0, 3.0], &[3])?;
    println!("elements: {:?} {:?}", copied.shape(), copied.data_as_slice::<f32>()?);
    show("elements of another type", copied.data_as_slice::<f64>().map(|elements| elements.len() as i64));
    Ok(())
}

fn objects() -> Result<()> {
    let base = BaseObj { base: Object::new(), value: 7 };
    let leaf = Leaf { data: ObjectArc::new(LeafObj { base, text: Str::from("a text of many bytes") }) };
    let any = Any::from(leaf);
    println!("object: {}", repr(&any));
    let base = Base::try_from(any)?;
    println!("value: {}", base.data.value);
    let object: ObjectRef = base.try_cast().map_err(|_| Error::new(RUNTIME_ERROR, "no object", ""))?;
    let leaf: Leaf = object.try_cast().map_err(|_| Error::new(RUNTIME_ERROR, "no leaf", ""))?;
    println!("text: {}", leaf.data.text.as_str());
    show("interrupt", call("ffi.VisitInterrupt", &[AnyView::from(&5i64)]));
    let key = Str::from("ffi.VisitInterrupt");
    let made = call(
        "ffi.MakeObjectFromPackedArgs",
        &[AnyView::from(&key), AnyView::from(&Str::from("value")), AnyView::from(&6i64)],
    );
    show("made by its fields", made);
    println!("column: {}", TypeAttrColumn::new("__ffi_repr__").is_some());
    show("no field", FieldGetter::new(77, "none").map(|_| 0i64));
    show("compared", call("ffi.RecursiveLt", &[AnyView::from(&1i64), AnyView::from(&2i64)]));
    Ok(())
}

fn errors() -> Result<()> {
    let cause = Error::new(RUNTIME_ERROR, "the cause", "");
    let error = Error::new_with_cause_and_extra_context(VALUE_ERROR, "the effect", "", Some(&cause), None);
    Error::set_raised(&error);
    let raised = Error::from_raised();
    println!("raised: {} {}", raised.kind().as_str(), raised.message());
    println!("cause: {}", raised.cause_chain().map_or("none".to_owned(), |cause| cause.message().to_owned()));
    let appended = Error::with_appended_backtrace(raised, "  File \"a.rs\", line 1, in a\n");
    print!("backtrace: {}", appended.backtrace());
    Ok(())
}

fn main() {
    for part in [functions, containers, tensors, objects, errors] {
        if let Err(error) = part() {
            println!("{}: {}", error.kind().as_str(), error.message());
        }
    }
}
