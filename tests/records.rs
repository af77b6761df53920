//! Records beyond what fixtures express: launches, prototypes, bodies in Rust, owners.

use std::sync::atomic::{AtomicUsize, Ordering};

use tvm_ffi_codegen::image::Image;
use tvm_ffi_codegen::runtime::registry::set_global;
use tvm_ffi_codegen::runtime::{Any, AnyView, Array, Function, Map, Str, Tensor};
use tvm_ffi_codegen::spec::{KernelArg, Launch};
use tvm_ffi_codegen::{Backend, Engine, Kernel, ScalarType, dim};

use crate::support::args::{new_fields, strong_count};
use crate::support::sig;
use crate::support::text::reads_back;

fn engines() -> impl Iterator<Item = Engine> {
    Backend::ALL.iter().map(|backend| Engine::builder().backend(*backend).build().unwrap())
}

fn fields(of: impl IntoIterator<Item = (&'static str, Any)>) -> Any {
    new_fields(of.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

const NO_IMAGES: [(&str, Image); 0] = [];

/// A body reads fields, and gives them to launches.
#[test]
fn launches_take_fields_by_path() {
    unsafe extern "C" fn scale(x: *mut f32, n: i32, by: f32, block: u32, _: u32, _: u32, _: u32, _: u32, _: u32) {
        if (block as i32) < n {
            // SAFETY: the launch has at least as many blocks as the tensor has elements, and `n` is their number.
            unsafe { *x.add(block as usize) *= by };
        }
    }
    let text = r#"f(cfg: Record("Config", x: Tensor([n], float32), alpha: float64, tile: Tuple[int64, int8]))"#;
    let args = KernelArg::list("cfg.x, int32(n + cfg.tile[1]), float32(cfg.alpha)").unwrap();
    let launch = Launch::new("scale").grid([dim("n").ceil_div(dim("cfg.tile[0]")) * dim("cfg.tile[0]")]).args(args);
    let kernel = Kernel::launch_on_cpu(launch, Kernel::address(scale as *const u8));
    for engine in engines() {
        // SAFETY: the function has the launch's parameters.
        let function = unsafe { engine.compile(&sig(text), &kernel) }.unwrap();
        let x = Tensor::from_vec(vec![1_f32, 2.0, 3.0], &[3]).unwrap();
        let tile = Any::from(Array::from(vec![Any::from(2), 0.into()]));
        function.call((fields([("alpha", 2.into()), ("tile", tile.clone()), ("x", x.clone().into())]),)).unwrap();
        assert_eq!(x.to_vec::<f32>().unwrap(), [2.0, 4.0, 6.0]);
        let wrong = fields([("alpha", 2.into()), ("tile", tile), ("x", 3.into())]);
        let message = function.call((wrong,)).unwrap_err().to_string();
        let expected =
            format!("TypeError: Mismatched type of cfg.x on argument #0 when calling: `{text}`, expected Tensor");
        assert_eq!(message, format!("{expected}, got int"));
    }
}

/// The prototype of a kernel has the fields one by one.
#[test]
fn prototypes_have_the_fields() {
    let text =
        r#"f(cfg: Record("Config", x: Tensor([n], float32), t: Tuple[int8, Optional[bool]], name: str), cfg_x: int8)"#;
    let prototype = Kernel::symbol("f").c_prototype(&sig(text)).unwrap();
    assert_eq!(
        prototype,
        "void f(float* cfg_x, int8_t cfg_t_0, uint8_t cfg_t_1_given, uint8_t cfg_t_1, const char* cfg_name, \
         size_t cfg_name_size, int8_t cfg_x_, int64_t n);"
    );
    let parameters = Kernel::symbol("f").parameters(&sig(text)).unwrap();
    assert_eq!(parameters[0].source.to_string(), "cfg.x.data");
    assert_eq!(parameters[7].source.to_string(), "n, from cfg.x.shape[0]");
}

/// Bodies in Rust have fields by name, by number and by path; the text of a body is read back.
#[test]
fn bodies_have_fields() {
    let signature =
        sig(r#"f(cfg: Record("Config", size: Tuple[int64, str], alpha: float64), given: int64) -> float64"#);
    let kernel = Kernel::body(|b| {
        let cfg = b.param(0);
        assert_eq!(cfg.items().map(|field| field.path().to_owned()).collect::<Vec<_>>(), ["cfg.size", "cfg.alpha"]);
        let size = cfg.field("size").item(0).value() + cfg.item(0).item(1).size() + b.arg("given");
        b.ret(size.cast(ScalarType::Float64) * b.arg("cfg.alpha"));
    });
    reads_back(&[(signature.clone(), kernel.clone())]);
    for engine in engines() {
        // SAFETY: the body reads no memory.
        let function = unsafe { engine.compile(&signature, &kernel) }.unwrap();
        let size = Array::from(vec![Any::from(3), Str::new("a text on the heap").into()]);
        let cfg =
            Map::try_from_entries([(Str::new("alpha"), Any::from(0.5)), (Str::new("size"), size.into())]).unwrap();
        assert_eq!(function.call((cfg, 1)).unwrap().cast::<f64>().unwrap(), 11.0);
    }
    let wrong = Kernel::body(|b| b.ret(b.param(0).field("beta").value()));
    // SAFETY: the body reads no memory.
    let error = unsafe { Engine::new().unwrap().compile(&signature, &wrong) }.unwrap_err();
    let expected =
        "field(\"beta\"): `cfg: Record(\"Config\", size: Tuple[int64, str], alpha: float64)` has no such field";
    assert!(error.to_string().contains(expected), "{error}");
}

/// Values that getters create live until the kernel ends, and no longer.
#[test]
fn the_call_owns_what_getters_create() {
    let signature = sig(r#"f(a: Record("A", o: Function, s: str), b: Tuple[Record("B", o: Function)]) -> Function"#);
    let kernel =
        Kernel::text("{ return call global test.owned_by_the_call(a.o, a.s, b[0].o) -> Function; }", NO_IMAGES)
            .unwrap();
    static COUNTS: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];
    let look = |args: &[AnyView<'_>]| {
        for (count, arg) in COUNTS.iter().zip([args[0], args[2]]) {
            count.store(strong_count(&arg.to_owned()?) as usize, Ordering::Relaxed);
        }
        args[0].to_owned()
    };
    set_global("test.owned_by_the_call", Function::from_packed(look), true).unwrap();
    for engine in engines() {
        // SAFETY: the body reads no memory.
        let function = unsafe { engine.compile(&signature, &kernel) }.unwrap();
        let objects = [0, 1].map(|_| Any::from(Function::from_packed(|_| Ok(().into()))));
        let a = fields([("o", objects[0].clone()), ("s", Str::new("a text on the heap").into())]);
        let b = Array::from(vec![fields([("o", objects[1].clone())])]);
        let idle = objects.each_ref().map(strong_count);
        let result = function.call((&a, &b)).unwrap();
        // the call's own reference, and that of the copy which is counted
        let during = COUNTS.each_ref().map(|count| count.load(Ordering::Relaxed) as u32);
        assert_eq!(during, idle.map(|count| count + 2));
        assert_eq!(strong_count(&objects[0]), idle[0] + 1);
        drop(result);
        // also after an error
        let wrong = fields([("o", objects[0].clone()), ("s", 1.into())]);
        let with_wrong = strong_count(&objects[0]);
        function.call((&wrong, &b)).unwrap_err();
        assert_eq!(strong_count(&objects[0]), with_wrong);
        drop(wrong);
        assert_eq!(objects.each_ref().map(strong_count), idle);
    }
}
