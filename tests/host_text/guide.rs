//! The bodies as text in the book do what its pages say.

use std::fs;

use tvm_ffi_codegen::runtime::{Error, Function, Tensor, registry};
use tvm_ffi_codegen::{Backend, Engine, HostProgram};

/// The functions that the book's `axpy` chooses from.
const AXPY: &str = "
    axpy_f32(a: float64, x: Tensor([n], float32), y: Tensor([n], float32)) {
      for i in range(0, n) { y[i] = float32(a) * x[i] + y[i]; }
    }
    axpy_f64(a: float64, x: Tensor([n], float64), y: Tensor([n], float64)) {
      for i in range(0, n) { y[i] = a * x[i] + y[i]; }
    }";

/// The blocks of host text on the pages about bodies and calls.
fn texts() -> Vec<String> {
    let read = |page: &str| fs::read_to_string(format!("{}/docs/howto/{page}.md", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let pages = ["bodies", "calling-out"].map(read).concat();
    let blocks = pages.split("```tfh\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap().to_owned()).collect()
}

#[test]
fn bodies_of_the_book_do_what_it_says() {
    let text = texts().concat() + AXPY;
    let program = HostProgram::parse(&text).unwrap_or_else(|error| panic!("{error}"));
    let names: Vec<&str> = program.functions().map(|(signature, _)| signature.name()).collect();
    assert_eq!(names, ["saxpy", "convert", "axpy", "load", "axpy_f32", "axpy_f64"]);
    // the book shows the canonical form
    for text in texts() {
        assert_eq!(HostProgram::format(&text).unwrap(), text);
    }
    let rate = |from: String, _to: String| if from == "USD" { Ok(0.5) } else { Err(Error::new("KeyError", &from)) };
    registry::set_global("host.rate", Function::from_typed(rate), true).unwrap();
    let load = |key: i64| match key {
        0 => Err(Error::new("KeyError", "nothing")),
        1 => Err(Error::new("OSError", "the disk is gone")),
        key => Ok(10 * key),
    };
    registry::set_global("host.load", Function::from_typed(load), true).unwrap();
    for backend in Backend::ALL {
        let engine = Engine::builder().backend(*backend).build().unwrap();
        // SAFETY: the bodies stay within the shapes that their signatures state.
        let functions = unsafe { engine.compile_functions(program.functions()) }.unwrap();
        let [saxpy, convert, axpy, load, _, _] = &functions[..] else { panic!("{} functions", functions.len()) };

        let x = Tensor::from_slice(&[1.0f32, 2.0], &[2]).unwrap();
        let y = Tensor::from_slice(&[10.0f32, 20.0], &[2]).unwrap();
        saxpy.call((3, &x, &y)).unwrap();
        assert_eq!(y.to_vec::<f32>().unwrap(), [13.0, 26.0]);

        assert_eq!(convert.call((3.0, "USD")).unwrap().cast::<f64>().unwrap(), 1.5);
        let error = convert.call((3.0, "XYZ")).unwrap_err();
        assert_eq!(error.to_string(), "KeyError: XYZ");
        assert!(error.backtrace().contains("File \"bank.py\", line 12, in convert"));

        axpy.call((2, &x, &y)).unwrap();
        assert_eq!(y.to_vec::<f32>().unwrap(), [15.0, 30.0]);
        let whole = Tensor::from_slice(&[1i64], &[1]).unwrap();
        let error = axpy.call((2, &whole, &whole)).unwrap_err();
        assert!(error.message().ends_with("the rows are float32, float64; no row takes this `x.dtype`"), "{error}");

        assert_eq!(load.call((4,)).unwrap().cast::<i64>().unwrap(), 40);
        assert_eq!(load.call((0,)).unwrap().cast::<i64>().unwrap(), -1);
        let error = load.call((1,)).unwrap_err();
        assert_eq!(error.to_string(), "RuntimeError: can't load 1");
        assert_eq!(error.cause().unwrap().to_string(), "OSError: the disk is gone");
    }
}
