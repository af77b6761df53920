//! A host in Rust, on upstream's crate: `main LIBRARY KIND`. KIND is a library with the kind of module `hosts.prices`.
//! It registers itself at load.

use tvm_ffi::{
    Any, AnyCompatible, AnyView, Array, Bytes, CPUNDAlloc, DLDataType, DLDataTypeCode, DLDataTypeExt, DLDevice,
    DLDeviceType, Function, Map, Module, Result, Shape, String as Str, Tensor, TypeIndex,
};

/// A tensor on the CPU, of any dtype with elements as large as `T`.
fn tensor<T: Copy>(shape: &[i64], code: DLDataTypeCode, values: &[T]) -> Tensor {
    let dtype = DLDataType::new(code, 8 * size_of::<T>() as u8, 1);
    let mut made = Tensor::from_nd_alloc(CPUNDAlloc {}, shape, dtype, DLDevice::new(DLDeviceType::kDLCPU, 0));
    assert_eq!(made.numel(), values.len());
    // SAFETY: the tensor was just allocated for this many elements of that size.
    unsafe { std::slice::from_raw_parts_mut(made.data_ptr_mut().cast::<T>(), values.len()) }.copy_from_slice(values);
    made
}

fn list<T>(items: impl IntoIterator<Item = T>, show: impl FnMut(T) -> String) -> String {
    items.into_iter().map(show).collect::<Vec<_>>().join(", ")
}

/// A value in the format of all hosts.
fn show(value: &Any) -> String {
    fn cast<T: AnyCompatible>(value: &Any) -> T {
        value.try_as().expect("a value of that type index")
    }
    let is = |index: TypeIndex| value.type_index() == index as i32;
    if is(TypeIndex::kTVMFFINone) {
        "None".to_owned()
    } else if is(TypeIndex::kTVMFFIInt) {
        cast::<i64>(value).to_string()
    } else if is(TypeIndex::kTVMFFIBool) {
        if cast(value) { "True".to_owned() } else { "False".to_owned() }
    } else if is(TypeIndex::kTVMFFIFloat) {
        cast::<f64>(value).to_string()
    } else if is(TypeIndex::kTVMFFIOpaquePtr) {
        "handle".to_owned()
    } else if is(TypeIndex::kTVMFFIDataType) {
        cast::<DLDataType>(value).to_string().as_str().to_owned()
    } else if is(TypeIndex::kTVMFFIDevice) {
        let device: DLDevice = cast(value);
        let kind = if device.device_type == DLDeviceType::kDLCPU { "cpu" } else { "device" };
        format!("{kind}:{}", device.device_id)
    } else if is(TypeIndex::kTVMFFISmallStr) || is(TypeIndex::kTVMFFIStr) {
        format!("\"{}\"", cast::<Str>(value).as_str())
    } else if is(TypeIndex::kTVMFFISmallBytes) || is(TypeIndex::kTVMFFIBytes) {
        format!("b\"{}\"", std::string::String::from_utf8_lossy(&cast::<Bytes>(value)))
    } else if is(TypeIndex::kTVMFFIShape) {
        format!("Shape({})", list(cast::<Shape>(value).as_slice(), |size| size.to_string()))
    } else if is(TypeIndex::kTVMFFITensor) {
        let tensor: Tensor = cast(value);
        let elements = tensor.data_as_slice::<f32>().expect("float32");
        format!(
            "Tensor({:?}, {}, [{}])",
            tensor.shape(),
            tensor.dtype().to_string().as_str(),
            list(elements, |x| x.to_string())
        )
    } else if is(TypeIndex::kTVMFFIArray) {
        format!("[{}]", list(&cast::<Array<Any>>(value), |item| show(&item)))
    } else if is(TypeIndex::kTVMFFIMap) {
        let entry = |(key, value): (Any, Any)| format!("{}: {}", show(&key), show(&value));
        format!("{{{}}}", list(cast::<Map<Any, Any>>(value).iter(), entry))
    } else if is(TypeIndex::kTVMFFIFunction) {
        "Function".to_owned()
    } else if is(TypeIndex::kTVMFFIModule) {
        "Module".to_owned()
    } else {
        format!("type index {}", value.type_index())
    }
}

fn call_packed(function: &Function, args: &[Any]) -> Result<Any> {
    function.call_packed(&args.iter().map(AnyView::from).collect::<Vec<_>>())
}

/// Prints the result of a call: its value, or its error.
fn call_function(label: &str, function: Option<Function>, args: &[Any]) -> Any {
    let Some(function) = function else {
        println!("{label}: no such function");
        return Any::new();
    };
    match call_packed(&function, args) {
        Ok(value) => {
            println!("{label}: {}", show(&value));
            value
        }
        Err(error) => {
            println!("{label}: {}: {}", error.kind(), error.message());
            Any::new()
        }
    }
}

/// A host with the library.
struct Host(Module);

impl Host {
    /// A function of the module itself. `Module::get_function` also searches the imports.
    fn get(&self, name: &str) -> Result<Option<Function>> {
        let get = Function::get_global("ffi.ModuleGetFunction")?;
        let found = call_packed(&get, &[self.0.clone().into(), Str::from(name).into(), false.into()])?;
        Ok(found.try_as())
    }

    fn call(&self, label: &str, args: &[Any]) -> Result<()> {
        let name = label.split('(').next().unwrap_or(label);
        call_function(label, self.get(name)?, args);
        Ok(())
    }

    fn numbers(&self) -> Result<()> {
        use DLDataTypeCode::{kDLBfloat, kDLFloat, kDLFloat8_e4m3fn, kDLInt};
        let of = |tensor: &Tensor| Any::from(tensor.clone());
        let at = tensor(&[3], kDLFloat, &[1f32, 2., 3.5]);
        let (x, y) = (of(&at), of(&tensor(&[3], kDLFloat, &[0f32; 3])));
        let m = of(&tensor(&[2, 3], kDLFloat, &[1f32, 2., 3., 4., 5., 6.]));
        let short_y = of(&tensor(&[2], kDLFloat, &[0f32; 2]));
        let (a, b) = (of(&tensor(&[3], kDLFloat, &[1f64, 2., 3.])), of(&tensor(&[3], kDLFloat, &[4f64, 5., 6.5])));
        let (i, j) = (of(&tensor(&[3], kDLInt, &[1i32, 2, 3])), of(&tensor(&[3], kDLInt, &[1i32, 3, 2])));
        let h = of(&tensor(&[3], kDLBfloat, &[0x3f80u16, 0xc000, 0x4060]));
        let e = of(&tensor(&[3], kDLFloat8_e4m3fn, &[0x38u8, 0x3c, 0xc0]));

        self.call("scale(x, y)", &[x.clone(), y.clone()])?;
        println!("y: {}", show(&y));
        self.call("scale(x, y, -1)", &[x.clone(), y.clone(), (-1i64).into()])?;
        println!("y: {}", show(&y));
        self.call("scale(x, y, 0.5)", &[x.clone(), y.clone(), 0.5f64.into()])?;
        println!("y: {}", show(&y));
        self.call("scale(x)", &[x.clone()])?;
        self.call("scale(x, 5)", &[x.clone(), 5i64.into()])?;
        self.call("scale(x, a)", &[x.clone(), a.clone()])?;
        self.call("scale(x, y[:2])", &[x.clone(), short_y])?;
        self.call("scale(x, y, \"2\")", &[x.clone(), y.clone(), Str::from("2").into()])?;
        self.call("dot(a, b)", &[a.clone(), b])?;
        self.call("dot(a, None)", &[a, Any::new()])?;
        self.call("outer(x, y)", &[x.clone(), y.clone()])?;
        self.call("outer(x, m)", &[x.clone(), m.clone()])?;
        self.call("widen(h, y)", &[h.clone(), y.clone()])?;
        println!("y: {}", show(&y));
        self.call("widen(x, y)", &[x.clone(), y])?;
        self.call("sum8(e)", &[e.clone()])?;
        self.call("sum8(h)", &[h.clone()])?;
        self.call("is_sorted(i)", &[i])?;
        self.call("is_sorted(j)", &[j])?;
        self.call("is_sorted(m)", &[m.clone()])?;
        let address = call_packed(&self.0.get_function("address")?, &[x.clone()])?.try_as::<*mut std::ffi::c_void>();
        let same = address.is_some_and(|address| std::ptr::eq(address, at.data_ptr()));
        println!("address(x) is that of x: {}", if same { "True" } else { "False" });
        self.call("address(5)", &[5i64.into()])?;
        self.call("dtype_of(h)", &[h])?;
        self.call("dtype_of(e)", &[e])?;
        self.call("device_of(x)", &[x])?;
        self.call("shape_of(m)", &[m])
    }

    fn texts(&self) -> Result<()> {
        let str = |text: &str| Any::from(Str::from(text));
        self.call("count(\"banana\")", &[str("banana")])?;
        self.call("count(\"banana\", \"na\")", &[str("banana"), str("na")])?;
        self.call("count(5)", &[5i64.into()])?;
        self.call("count(\"a\", \"b\", \"c\")", &[str("a"), str("b"), str("c")])?;
        self.call("greet(\"you\")", &[str("you")])?;
        self.call("greet(\"\")", &[str("")])?;
        self.call("greet(None)", &[Any::new()])?;
        self.call("reversed(b\"abc\")", &[Bytes::from(b"abc").into()])?;
        self.call("reversed(\"abc\")", &[str("abc")])?;
        self.call("split(\"a,bc,,d\", \",\")", &[str("a,bc,,d"), str(",")])?;
        self.call("split(\"abc\", \"\")", &[str("abc"), str("")])?;
        self.call("find(\"banana\", \"n\")", &[str("banana"), str("n")])?;
        self.call("find(\"banana\", \"x\")", &[str("banana"), str("x")])?;
        let words = Array::<Any>::new(vec![str("a"), str("longer than seven")]);
        self.call("lengths([\"a\", \"longer than seven\"])", &[words.into()])?;
        let mixed = Array::<Any>::new(vec![str("a"), 5i64.into()]);
        self.call("lengths([\"a\", 5])", &[mixed.into()])
    }

    fn objects(&self) -> Result<()> {
        let str = |text: &str| Any::from(Str::from(text));
        let counter: Option<Function> = call_function("counter()", self.get("counter")?, &[]).try_as();
        for _ in 0..2 {
            call_function("counter()()", counter.clone(), &[]);
        }
        call_function("counter()(1)", counter, &[1i64.into()]);
        self.call("library()", &[])?;
        self.call("price(\"pear\")", &[str("pear")])?;
        self.call("price(\"apple\", 7)", &[str("apple"), 7i64.into()])?;
        self.call("price(\"plum\")", &[str("plum")])?;
        self.call("price(\"pear\", 300)", &[str("pear"), 300i64.into()])?;
        let price_of = self.0.get_function("price_of")?;
        call_function("price_of(\"apple\") of what is imported", Some(price_of), &[str("apple")]);
        let text = |found: Option<Str>| found.map_or("None".to_owned(), |text| format!("\"{}\"", text.as_str()));
        println!("doc of scale: {}", text(self.0.get_function_doc("scale", false)?));
        println!("doc of dot: {}", text(self.0.get_function_doc("dot", false)?));
        println!("metadata of price: {}", text(self.0.get_function_metadata("price", false)?));
        println!("metadata of nothing: {}", text(self.0.get_function_metadata("nothing", false)?));
        Ok(())
    }
}

fn run(library: &str, kind: &str) -> Result<()> {
    let kind = Module::load_from_file(kind)?;
    call_packed(&kind.get_function("use_malloc")?, &[])?;
    let host = Host(Module::load_from_file(library)?);
    host.numbers()?;
    host.texts()?;
    host.objects()?;
    host.call("nothing()", &[])?;
    host.call("price_of(\"apple\")", &[Str::from("apple").into()])
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let [_, library, kind] = &args[..] else { panic!("usage: main LIBRARY KIND") };
    run(library, kind).unwrap_or_else(|error| panic!("{}: {}", error.kind(), error.message()));
}
