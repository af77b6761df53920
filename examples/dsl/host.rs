//! A program that calls the kernels of `kernels.dsl`, and compares each with plain Rust. It knows the functions, and
//! not the compiler.

use std::error::Error;

use tvm_ffi_codegen::runtime::{self, AnyView, Array, CallArgs, Function, Module, Tensor, TensorView, registry};

pub type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

/// Calls each kernel of the module.
pub fn run(module: &Module) -> Result {
    registry::set_global("host.rate", Function::from_typed(rate), true)?;
    registry::set_global("host.norm", Function::from_typed(norm), true)?;
    registry::set_global("host.label", Function::from_typed(|what: String, n: i64| format!("{n} {what}")), true)?;
    let functions = Functions(module);
    let checks = [
        ("curve, saxpy, clamp", elementwise as fn(&Functions<'_>) -> Result<bool>),
        ("total, row_sums", sums),
        ("matmul of a transposed tensor", matmul),
        ("linear, with and without bias", linear),
        ("outer, gather: new tensors", returned),
        ("blocks, first_negative", blocks),
        ("reduce, exchange", modes),
        ("scale, split: lists, optional numbers, pairs", parts),
        ("normalise, label: calls of the host", calls),
    ];
    for (what, check) in checks {
        match check(&functions)? {
            true => println!("  {what}: as in plain Rust"),
            false => return Err(format!("{what}: not as in plain Rust").into()),
        }
    }
    refused(&functions)
}

/// The host's function, which the kernel `exchange` calls.
fn rate(currency: String) -> runtime::Result<f64> {
    match currency.as_str() {
        "EUR" => Ok(0.5),
        _ => Err(runtime::Error::new("KeyError", &currency)),
    }
}

/// The host's function, which the kernel `normalise` calls with its own arguments. A tensor that it gets as an object
/// may be kept.
fn norm(x: Tensor, weights: Array<f64>) -> runtime::Result<f64> {
    let squares = x.to_vec::<f32>()?.into_iter().zip(weights.to_vec()).map(|(x, weight)| weight * f64::from(x * x));
    Ok(squares.sum::<f64>().sqrt())
}

struct Functions<'a>(&'a Module);

impl Functions<'_> {
    fn get(&self, name: &str) -> Result<Function> {
        Ok(self.0.get_function(name)?.ok_or_else(|| format!("there is no function {name}"))?)
    }

    fn call(&self, name: &str, args: impl CallArgs) -> Result<runtime::Any> {
        Ok(self.get(name)?.call(args)?)
    }

    /// Prints the error of a call, with the lines of its backtrace that are the kernels'.
    fn fails(&self, name: &str, args: impl CallArgs) -> Result {
        let Err(error) = self.get(name)?.call(args) else { return Err(format!("{name} has accepted it").into()) };
        println!("  {error}");
        error.backtrace().lines().filter(|line| line.contains(".dsl")).for_each(|line| println!("  {line}"));
        Ok(())
    }
}

fn floats(elements: &[f32], shape: &[i64]) -> Result<Tensor> {
    Ok(Tensor::from_slice(elements, shape)?)
}

/// Numbers that floats have exactly, sums and products of them too.
fn numbers(count: usize) -> Vec<f32> {
    (0..count).map(|i| (i * 7 % 13) as f32 / 4.0 - 1.0).collect()
}

fn elementwise(f: &Functions<'_>) -> Result<bool> {
    let x = numbers(1000);
    let (tensor, y) = (floats(&x, &[1000])?, floats(&numbers(1000), &[1000])?);
    f.call("curve", (&tensor, &y))?;
    let curve = y.to_vec::<f32>()? == x.iter().map(|x| (x * x + 1.0).sqrt()).collect::<Vec<_>>();
    let before = y.to_vec::<f32>()?;
    f.call("saxpy", (3, &tensor, &y))?;
    let saxpy = y.to_vec::<f32>()? == x.iter().zip(&before).map(|(x, y)| 3.0 * x + y).collect::<Vec<_>>();
    f.call("clamp", (&tensor, -0.5, 1))?;
    let clamp = tensor.to_vec::<f32>()? == x.iter().map(|x| x.clamp(-0.5, 1.0)).collect::<Vec<_>>();
    Ok(curve && saxpy && clamp)
}

fn sums(f: &Functions<'_>) -> Result<bool> {
    let elements: Vec<f64> = (0..1000).map(f64::from).collect();
    let total = f.call("total", (&Tensor::from_slice(&elements, &[1000])?,))?.cast::<f64>()? == 499_500.0;
    let (x, y) = (numbers(12), floats(&[0.0; 3], &[3])?);
    f.call("row_sums", (&floats(&x, &[3, 4])?, &y))?;
    Ok(total && y.to_vec::<f32>()? == x.chunks(4).map(|row| row.iter().sum()).collect::<Vec<f32>>())
}

/// `a` is `[m, k]`, of these strides.
fn product(a: &[f32], strides: [usize; 2], b: &[f32], [m, k, n]: [usize; 3]) -> Vec<f32> {
    let element = |i: usize, j: usize| (0..k).map(|l| a[i * strides[0] + l * strides[1]] * b[l * n + j]).sum();
    (0..m).flat_map(|i| (0..n).map(move |j| element(i, j))).collect()
}

fn matmul(f: &Functions<'_>) -> Result<bool> {
    let (mut a, b) = (numbers(8), numbers(12));
    let c = floats(&[0.0; 6], &[2, 3])?;
    let expected = product(&a, [1, 2], &b, [2, 4, 3]);
    let rows = TensorView::from_mut_slice(&mut a, &[4, 2])?;
    let device = rows.as_dl_tensor().device;
    // SAFETY: the elements are those of `rows`, which lives as long, by exchanged axes.
    let a = unsafe { TensorView::from_raw_parts(rows.data_ptr(), &[2, 4], Some(&[1, 2]), rows.dtype(), device)? };
    f.call("matmul", (&a, &floats(&b, &[4, 3])?, &c))?;
    Ok(c.to_vec::<f32>()? == expected)
}

fn linear(f: &Functions<'_>) -> Result<bool> {
    let (x, w, bias) = (numbers(8), numbers(12), numbers(3));
    let plain = product(&x, [4, 1], &w, [2, 4, 3]);
    let (x, w, y) = (floats(&x, &[2, 4])?, floats(&w, &[4, 3])?, floats(&[0.0; 6], &[2, 3])?);
    f.call("linear", (&x, &w, AnyView::none(), &y))?;
    let without = y.to_vec::<f32>()? == plain;
    f.call("linear", (&x, &w, &floats(&bias, &[3])?, &y))?;
    let biased: Vec<f32> = plain.iter().zip(bias.iter().cycle()).map(|(y, bias)| bias + y).collect();
    Ok(without && y.to_vec::<f32>()? == biased)
}

fn returned(f: &Functions<'_>) -> Result<bool> {
    let (x, y) = (numbers(3), numbers(5));
    let outer = f.call("outer", (&floats(&x, &[3])?, &floats(&y, &[5])?))?.cast::<Tensor>()?;
    let products: Vec<f32> = x.iter().flat_map(|x| y.iter().map(move |y| x * y)).collect();
    let places = Tensor::from_slice(&[4i64, 0, 4], &[3])?;
    let gathered = f.call("gather", (&floats(&y, &[5])?, &places))?.cast::<Tensor>()?;
    let is_outer = outer.shape() == [3, 5] && outer.to_vec::<f32>()? == products;
    Ok(is_outer && gathered.to_vec::<f32>()? == [y[4], y[0], y[4]])
}

fn blocks(f: &Functions<'_>) -> Result<bool> {
    let (x, y) = (numbers(12), floats(&[0.0; 3], &[3])?);
    f.call("blocks", (&floats(&x, &[12])?, &y))?;
    let blocks = y.to_vec::<f32>()? == x.chunks(4).map(|block| block.iter().sum()).collect::<Vec<f32>>();
    let at = f.call("first_negative", (&floats(&[2.0, 0.0, -1.0, -2.0], &[4])?,))?.cast::<i64>()?;
    let none = f.call("first_negative", (&floats(&[2.0], &[1])?,))?.cast::<i64>()?;
    Ok(blocks && (at, none) == (2, -1))
}

fn modes(f: &Functions<'_>) -> Result<bool> {
    let x = Tensor::from_slice(&[1.0, 2.0, 6.0], &[3])?;
    let reduced = ["sum", "mean", "max"].map(|mode| Ok(f.call("reduce", (&x, mode))?.cast::<f64>()?));
    let [sum, mean, max] = reduced.map(|value: Result<f64>| value.unwrap_or(f64::NAN));
    let exchanged = f.call("exchange", (&x, "EUR"))?.cast::<f64>()?;
    Ok((sum, mean, max, exchanged) == (9.0, 3.0, 6.0, 4.5))
}

fn parts(f: &Functions<'_>) -> Result<bool> {
    let x = numbers(6);
    let (tensor, factors) = (floats(&x, &[6])?, Array::<f64>::from_iter([2.0, 0.5]));
    let first = f.call("scale", (&tensor, &factors, AnyView::none()))?.cast::<Tensor>()?;
    let second = f.call("scale", (&tensor, &factors, 1))?.cast::<Tensor>()?;
    let by = |factor: f32| x.iter().map(|x| x * factor).collect::<Vec<_>>();
    let scaled = first.to_vec::<f32>()? == by(2.0) && second.to_vec::<f32>()? == by(0.5);
    let range = Array::<f64>::from_iter([-0.5, 0.5]);
    let split = f.call("split", (&tensor, &range))?.cast::<Array>()?;
    let of = |i: usize| split.as_slice()[i].cast::<Tensor>()?.to_vec::<f32>();
    let within: Vec<f32> = x.iter().map(|x| x.clamp(-0.5, 0.5)).collect();
    let missing: Vec<f32> = x.iter().zip(&within).map(|(x, within)| x - within).collect();
    Ok(scaled && of(0)? == within && of(1)? == missing)
}

fn calls(f: &Functions<'_>) -> Result<bool> {
    let (x, ones) = (floats(&[3.0, 4.0], &[2])?, Array::<f64>::from_iter([1.0, 1.0]));
    let normal = f.call("normalise", (&x, &ones))?.cast::<Tensor>()?;
    let label = f.call("label", (&Array::<i64>::from_iter([1, 2, 3]), "things"))?.cast::<String>()?;
    Ok(normal.to_vec::<f32>()? == [0.6, 0.8] && label == "3 things")
}

/// Calls that the wrapper refuses, then calls that the kernel refuses.
fn refused(f: &Functions<'_>) -> Result {
    let (x, y) = (floats(&numbers(6), &[6])?, floats(&numbers(5), &[5])?);
    f.fails("saxpy", ("three", &x, &y))?;
    f.fails("saxpy", (3, &x, &y))?;
    f.fails("blocks", (&x, &y))?;
    let doubles = Tensor::from_slice(&[1.0], &[1])?;
    f.fails("reduce", (&doubles, "median"))?;
    f.fails("gather", (&x, &Tensor::from_slice(&[1i64, 6], &[2])?))?;
    f.fails("exchange", (&doubles, "XYZ"))?;
    let none = Array::<f64>::from_iter([]);
    f.fails("scale", (&x, &none, AnyView::none()))?;
    f.fails("normalise", (&x, &none))
}
