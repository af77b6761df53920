//! A host in Rust, on the bundled runtime: `host-bundled LIBRARY`.

mod prices;
mod show;

use std::ffi::c_void;
use std::process::ExitCode;

use show::show;
use tvm_ffi_runtime::function::CallArgs;
use tvm_ffi_runtime::{Any, Array, Bytes, DLDataType, DLDevice, DLDeviceType, Function, Module, Result, Tensor};

/// A tensor of a dtype without a Rust type, from its bits.
fn bits<T: Copy>(dtype: DLDataType, values: &[T]) -> Result<Tensor> {
    let cpu = DLDevice { device_type: DLDeviceType::CPU, device_id: 0 };
    let tensor = Tensor::empty(&[values.len() as i64], dtype, cpu)?;
    assert_eq!(tensor.nbytes(), size_of_val(values));
    // SAFETY: the tensor was just allocated with this many bytes.
    unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), tensor.data_ptr().cast(), values.len()) };
    Ok(tensor)
}

/// Prints the result of a call: its value, or its error.
fn call_function(label: &str, function: Option<Function>, args: impl CallArgs) -> Any {
    let Some(function) = function else {
        println!("{label}: no such function");
        return Any::none();
    };
    match function.call(args) {
        Ok(value) => {
            println!("{label}: {}", show(&value));
            value
        }
        Err(error) => {
            println!("{label}: {error}");
            Any::none()
        }
    }
}

/// A host with the library.
struct Host(Module);

impl Host {
    fn call(&self, label: &str, args: impl CallArgs) -> Result<()> {
        let name = label.split('(').next().unwrap_or(label);
        call_function(label, self.0.get_function(name)?, args);
        Ok(())
    }

    fn numbers(&self) -> Result<()> {
        let of = |tensor: &Tensor| Any::from(tensor.clone());
        let at = Tensor::from_slice(&[1f32, 2., 3.5], &[3])?;
        let (x, y) = (of(&at), of(&Tensor::from_slice(&[0f32; 3], &[3])?));
        let m = of(&Tensor::from_slice(&[1f32, 2., 3., 4., 5., 6.], &[2, 3])?);
        let short_y = of(&Tensor::from_slice(&[0f32; 2], &[2])?);
        let a = of(&Tensor::from_slice(&[1f64, 2., 3.], &[3])?);
        let b = of(&Tensor::from_slice(&[4f64, 5., 6.5], &[3])?);
        let i = of(&Tensor::from_slice(&[1i32, 2, 3], &[3])?);
        let j = of(&Tensor::from_slice(&[1i32, 3, 2], &[3])?);
        let h = of(&bits(DLDataType::BFLOAT16, &[0x3f80u16, 0xc000, 0x4060])?);
        let e = of(&bits(DLDataType::FLOAT8_E4M3FN, &[0x38u8, 0x3c, 0xc0])?);

        self.call("scale(x, y)", (&x, &y))?;
        println!("y: {}", show(&y));
        self.call("scale(x, y, -1)", (&x, &y, -1))?;
        println!("y: {}", show(&y));
        self.call("scale(x, y, 0.5)", (&x, &y, 0.5))?;
        println!("y: {}", show(&y));
        self.call("scale(x)", (&x,))?;
        self.call("scale(x, 5)", (&x, 5))?;
        self.call("scale(x, a)", (&x, &a))?;
        self.call("scale(x, y[:2])", (&x, &short_y))?;
        self.call("scale(x, y, \"2\")", (&x, &y, "2"))?;
        self.call("dot(a, b)", (&a, &b))?;
        self.call("dot(a, None)", (&a, Any::none()))?;
        self.call("outer(x, y)", (&x, &y))?;
        self.call("outer(x, m)", (&x, &m))?;
        self.call("widen(h, y)", (&h, &y))?;
        println!("y: {}", show(&y));
        self.call("widen(x, y)", (&x, &y))?;
        self.call("sum8(e)", (&e,))?;
        self.call("sum8(h)", (&h,))?;
        self.call("is_sorted(i)", (&i,))?;
        self.call("is_sorted(j)", (&j,))?;
        self.call("is_sorted(m)", (&m,))?;
        let address = self.0.get_function("address")?.map(|address| address.call((&at,))).transpose()?;
        let same =
            address.is_some_and(|address| address.cast().is_ok_and(|address: *mut c_void| address == at.data_ptr()));
        println!("address(x) is that of x: {}", if same { "True" } else { "False" });
        self.call("address(5)", (5,))?;
        self.call("dtype_of(h)", (&h,))?;
        self.call("dtype_of(e)", (&e,))?;
        self.call("device_of(x)", (&x,))?;
        self.call("shape_of(m)", (&m,))
    }

    fn texts(&self) -> Result<()> {
        let str = |text: &str| Any::from(text);
        self.call("count(\"banana\")", ("banana",))?;
        self.call("count(\"banana\", \"na\")", ("banana", "na"))?;
        self.call("count(5)", (5,))?;
        self.call("count(\"a\", \"b\", \"c\")", ("a", "b", "c"))?;
        self.call("greet(\"you\")", ("you",))?;
        self.call("greet(\"\")", ("",))?;
        self.call("greet(None)", (Any::none(),))?;
        self.call("reversed(b\"abc\")", (Bytes::new(b"abc"),))?;
        self.call("reversed(\"abc\")", ("abc",))?;
        self.call("split(\"a,bc,,d\", \",\")", ("a,bc,,d", ","))?;
        self.call("split(\"abc\", \"\")", ("abc", ""))?;
        self.call("find(\"banana\", \"n\")", ("banana", "n"))?;
        self.call("find(\"banana\", \"x\")", ("banana", "x"))?;
        let words = Array::from(vec![str("a"), str("longer than seven")]);
        self.call("lengths([\"a\", \"longer than seven\"])", (&words,))?;
        let mixed = Array::from(vec![str("a"), 5i64.into()]);
        self.call("lengths([\"a\", 5])", (&mixed,))
    }

    fn objects(&self) -> Result<()> {
        let counter: Option<Function> = call_function("counter()", self.0.get_function("counter")?, ()).cast().ok();
        for _ in 0..2 {
            call_function("counter()()", counter.clone(), ());
        }
        call_function("counter()(1)", counter, (1,));
        self.call("library()", ())?;
        self.call("price(\"pear\")", ("pear",))?;
        self.call("price(\"apple\", 7)", ("apple", 7))?;
        self.call("price(\"plum\")", ("plum",))?;
        self.call("price(\"pear\", 300)", ("pear", 300))?;
        let price_of = self.0.get_function_from("price_of", true)?;
        call_function("price_of(\"apple\") of what is imported", price_of, ("apple",));
        let text = |found: Option<String>| show(&found.map_or_else(Any::none, Any::from));
        println!("doc of scale: {}", text(self.0.function_doc("scale", false)?));
        println!("doc of dot: {}", text(self.0.function_doc("dot", false)?));
        println!("metadata of price: {}", text(self.0.function_metadata("price", false)?));
        println!("metadata of nothing: {}", text(self.0.function_metadata("nothing", false)?));
        Ok(())
    }
}

fn run(library: &str) -> Result<()> {
    prices::register()?;
    // SAFETY: the library belongs to this test. Its functions and initialisers do what their signatures say.
    let host = Host(unsafe { Module::load_from_file(library) }?);
    host.numbers()?;
    host.texts()?;
    host.objects()?;
    host.call("nothing()", ())?;
    host.call("price_of(\"apple\")", ("apple",))
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    let [_, library] = &args[..] else {
        eprintln!("usage: host-bundled LIBRARY");
        return ExitCode::from(2);
    };
    match run(library) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
