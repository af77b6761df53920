//! A graph compiler in one file. It reads the model in `graph_compiler/model.py`, and compiles it to one host function
//! that calls all others.
//!
//! ```text
//! graph_compiler          compiles the model with each backend, and runs it in this process
//! graph_compiler FOLDER   writes a library for each backend, which `graph_compiler/run.py` runs
//! ```
//!
//! The compiler's own kernels are functions of the same module, which the host function calls by symbol. `host.clip` is
//! a global function that the program running the model registers. Prices are in a module of the kind `hosts.prices`,
//! which the host function's module imports.

use std::collections::HashMap;
use std::error::Error;
use std::path::Path;

use tvm_ffi_codegen::artifact::{LibraryBuilder, Linker, PackBuilder, Payload, Triple};
use tvm_ffi_codegen::runtime::{self, Function, Module, ModuleImpl, Tensor, registry};
use tvm_ffi_codegen::spec::{Part, SourceLocation};
use tvm_ffi_codegen::{Backend, Body, DLDataType, Engine, Expr, Kernel, ScalarType, Signature, TensorRef, TensorType};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

// The graph.

/// A value of the graph, as the number of the node that produces it.
type Value = usize;

#[derive(Clone, Debug)]
enum Op {
    /// A parameter of the model.
    Input(String),
    /// A kernel of this compiler, applied to tensors.
    Kernel(&'static str, Vec<Value>),
    /// A global function, which takes a tensor and returns another of the same shape.
    Host(String, Value),
    /// A tensor times the price of an item.
    Priced(Value, String),
}

#[derive(Clone, Debug)]
struct Node {
    op: Op,
    /// The line in the model's source.
    line: u32,
}

#[derive(Clone, Debug)]
struct Graph {
    name: String,
    file: String,
    nodes: Vec<Node>,
}

impl Graph {
    /// Reads a model: a function with statements `y = f(x, ...)` and a `return`. The last node is the result.
    fn read(file: &str, source: &str) -> Result<Graph> {
        let mut graph = Graph { name: String::new(), file: file.to_owned(), nodes: Vec::new() };
        let mut values = HashMap::new();
        for (line, text) in (1u32..).zip(source.lines().map(str::trim)) {
            let error = |what: &str| format!("{file}:{line}: {what}");
            if let Some(head) = text.strip_prefix("def ") {
                let (name, inputs) = call_of(head).ok_or_else(|| error("expected `def name(inputs):`"))?;
                graph.name = name.to_owned();
                for input in inputs {
                    values.insert(input, graph.nodes.len());
                    graph.nodes.push(Node { op: Op::Input(input.to_owned()), line });
                }
            } else if !text.is_empty() && !text.starts_with('#') {
                let (target, call) = match text.strip_prefix("return ") {
                    Some(call) => ("", call),
                    None => text.split_once(" = ").ok_or_else(|| error("expected `y = f(x)`"))?,
                };
                let (function, args) = call_of(call).ok_or_else(|| error("expected a call"))?;
                let value =
                    |name: &&str| values.get(*name).copied().ok_or_else(|| error(&format!("no value `{name}`")));
                let op = match (function, &args[..]) {
                    ("matmul" | "add", [x, y]) => Op::Kernel(kernel_named(function)?, vec![value(x)?, value(y)?]),
                    ("relu" | "softmax", [x]) => Op::Kernel(kernel_named(function)?, vec![value(x)?]),
                    ("priced", [x, item]) => Op::Priced(value(x)?, item.trim_matches('"').to_owned()),
                    (host, [x]) if host.starts_with("host.") => Op::Host(host.to_owned(), value(x)?),
                    _ => return Err(error(&format!("no function `{function}` of {} arguments", args.len())).into()),
                };
                values.insert(target, graph.nodes.len());
                graph.nodes.push(Node { op, line });
            }
        }
        Ok(graph)
    }
}

/// The callee and the arguments of `f(x, y)`.
fn call_of(text: &str) -> Option<(&str, Vec<&str>)> {
    let (function, rest) = text.trim_end_matches(':').split_once('(')?;
    Some((function, rest.strip_suffix(')')?.split(',').map(str::trim).collect()))
}

// The kernels.

/// A kernel of this compiler. The last parameter is the tensor that it writes.
struct KernelDef {
    name: &'static str,
    params: &'static str,
    build: fn(&Body<'_>),
}

const KERNELS: [KernelDef; 5] = [
    KernelDef {
        name: "matmul",
        params: "x: Tensor([m, k], float32), y: Tensor([k, n], float32), to: Tensor([m, n], float32)",
        build: |b| {
            let (x, y) = (b.tensor("x"), b.tensor("y"));
            each(b, |i, j| b.fold(0, b.dim("k"), b.f32(0.0), |k, sum| sum + x.load([i, k]) * y.load([k, j])));
        },
    },
    KernelDef {
        name: "add",
        params: "x: Tensor([m, n], float32), y: Tensor([n], float32), to: Tensor([m, n], float32)",
        build: |b| each(b, |i, j| b.tensor("x").load([i, j]) + b.tensor("y").load([j])),
    },
    KernelDef {
        name: "relu",
        params: "x: Tensor([m, n], float32), to: Tensor([m, n], float32)",
        build: |b| each(b, |i, j| b.tensor("x").load([i, j]).max(0.0)),
    },
    KernelDef {
        name: "scale",
        params: "x: Tensor([m, n], float32), by: float32, to: Tensor([m, n], float32)",
        build: |b| each(b, |i, j| b.tensor("x").load([i, j]) * b.arg("by")),
    },
    KernelDef {
        name: "softmax",
        params: "x: Tensor([m, n], float32), to: Tensor([m, n], float32)",
        build: |b| {
            let (x, to, n) = (b.tensor("x"), b.tensor("to"), b.dim("n"));
            b.for_range(0, b.dim("m"), |i| {
                let most = b.fold(0, n, b.f32(f32::NEG_INFINITY), |j, most| most.max(x.load([i, j])));
                let sum = b.fold(0, n, b.f32(0.0), |j, sum| sum + (x.load([i, j]) - most).exp());
                b.for_range(0, n, |j| to.store([i, j], (x.load([i, j]) - most).exp() / sum));
            });
        },
    },
];

/// Writes all elements of `to`.
fn each<'b>(b: &'b Body<'_>, element: impl Fn(Expr<'b>, Expr<'b>) -> Expr<'b>) {
    b.for_range(0, b.dim("m"), |i| {
        b.for_range(0, b.dim("n"), |j| b.tensor("to").store([i, j], element(i, j)));
    });
}

fn kernel_named(name: &str) -> Result<&'static str> {
    let known = KERNELS.iter().find(|known| known.name == name);
    Ok(known.ok_or_else(|| format!("no kernel `{name}`"))?.name)
}

// The compiler.

/// The functions of the graph's module: the host function, and the kernels that it calls.
fn lower(graph: &Graph) -> Result<Vec<(Signature, Kernel)>> {
    // an error about an argument is attributed to the line that names the argument
    let line = graph.nodes.first().map_or(1, |input| input.line);
    let place = SourceLocation::new(&graph.file, line, &graph.name);
    let mut functions = vec![(
        SIGNATURE.parse::<Signature>()?.with_location(Part::Signature, place)?,
        Kernel::body({
            let graph = graph.clone();
            move |b| host_function(&graph, b)
        }),
    )];
    for KernelDef { name, params, build } in KERNELS {
        functions.push((format!("{name}({params})").parse()?, Kernel::body(build)));
    }
    Ok(functions)
}

/// The signature of the model.
const SIGNATURE: &str = "forward(x: Tensor([m, k], float32), w: Tensor([k, n], float32), bias: Tensor([n], float32)) -> \
                         Tensor([m, n], float32)";

/// Emits the call of each node. The body builder adds the checks, releases and error handling.
fn host_function(graph: &Graph, b: &Body<'_>) {
    let mut tensors: Vec<TensorRef<'_>> = Vec::new();
    for (number, node) in graph.nodes.iter().enumerate() {
        b.set_location(&graph.file, node.line, &graph.name);
        // where a node writes: the last one into the result, any other into a tensor that the body owns
        let place = || match number + 1 == graph.nodes.len() {
            true => b.result(),
            false => b.alloc_tensor([b.dim("m"), b.dim("n")], DLDataType::FLOAT32, b.tensor("x")),
        };
        let tensor = match &node.op {
            Op::Input(name) => b.tensor(name),
            Op::Kernel(name, operands) => {
                let to = place();
                let args = operands.iter().map(|operand| tensors[*operand]).chain([to]);
                b.call_symbol(name, args.collect::<Vec<_>>()).run();
                to
            }
            Op::Host(name, x) => {
                let ty = TensorType::new(["m", "n"], DLDataType::FLOAT32);
                b.call_global(name, (tensors[*x],)).returns(ty).tensor()
            }
            Op::Priced(x, item) => {
                let price = b.call_import("price_of", (item.as_str(),)).returns(ScalarType::Float32);
                let to = place();
                b.call_symbol("scale", (tensors[*x], price.value(), to)).run();
                to
            }
        };
        tensors.push(tensor);
    }
}

// Running the model: in this process, or in a library.

/// The kind of module that has prices. A library carries the module's bytes, and the program that loads the library
/// defines the kind.
const KIND: &str = "hosts.prices";

const PRICES: &str = "apple=3\npear=5\n";

/// A module of that kind, for the bundled runtime.
struct Prices(HashMap<String, i64>);

impl ModuleImpl for Prices {
    fn kind(&self) -> &str {
        KIND
    }

    fn get_function(&self, name: &str) -> runtime::Result<Option<Function>> {
        let prices = self.0.clone();
        let price_of = move |item: String| {
            prices.get(&item).copied().ok_or_else(|| runtime::err!(ValueError, "no price of `{item}`"))
        };
        Ok((name == "price_of").then(|| Function::from_typed(price_of)))
    }
}

fn prices() -> Module {
    let lines = PRICES.lines().filter_map(|line| line.split_once('='));
    Module::from_impl(Prices(lines.filter_map(|(item, price)| Some((item.to_owned(), price.parse().ok()?))).collect()))
}

/// Writes the library. Without `with_prices` it lacks the module that it imports, as if you had forgotten to add it.
fn write_library(graph: &Graph, backend: Backend, folder: &Path, with_prices: bool) -> Result<()> {
    let name = if with_prices { "model" } else { "alone" };
    let mut library = LibraryBuilder::new().backend(backend).register_global("forward", "model.forward");
    for (signature, kernel) in lower(graph)? {
        library = library.function(&signature, &kernel);
    }
    let mut linker = Linker::new(Triple::host()).object(library.emit()?.into_bytes()).library("m");
    if with_prices {
        let mut modules = PackBuilder::new();
        let root = modules.library();
        let prices = modules.module(KIND, Payload::Bytes(PRICES.into()));
        let object = folder.join("prices.o");
        modules.import(root, prices).write_object(&Triple::host(), &object)?;
        linker = linker.file(object);
    }
    Ok(linker.link(folder.join(format!("{name}_{}.so", backend.name())))?)
}

/// The model's result, computed in plain Rust. `x` has three columns, and `w` has two.
fn expected(x: &[f32], w: &[f32], bias: &[f32]) -> Vec<f32> {
    let rows = x.chunks(3).map(|row| {
        let mut y = [0, 1].map(|j| (0..3).map(|k| row[k] * w[2 * k + j]).sum::<f32>() + bias[j]);
        y = y.map(|y| y.clamp(0.0, 1.0) * 3.0);
        let exp = y.map(|y_j| (y_j - y[0].max(y[1])).exp());
        exp.map(|e| e / (exp[0] + exp[1]))
    });
    rows.flatten().collect()
}

fn run_here(graph: &Graph, backend: Backend) -> Result<()> {
    let engine = Engine::builder().backend(backend).import(prices()).build()?;
    let functions = lower(graph)?;
    // SAFETY: the bodies stay within the shapes that their signatures state.
    let module = unsafe { engine.compile_module(functions.iter().map(|(signature, kernel)| (signature, kernel)))? };
    let forward = module.get_function("forward")?.ok_or("there is no forward")?;

    registry::set_global("host.clip", Function::from_typed(clip), true)?;
    let (x, w, bias) = ([1f32, -2.0, 0.5, 0.25, 3.0, -1.0], [0.5f32, 1.0, -0.25, 0.125, 2.0, -1.0], [0.1f32, 0.2]);
    let args = (Tensor::from_slice(&x, &[2, 3])?, Tensor::from_slice(&w, &[3, 2])?, Tensor::from_slice(&bias, &[2])?);
    let result = forward.call((&args.0, &args.1, &args.2))?.cast::<Tensor>()?.to_vec::<f32>()?;
    let right = result.iter().zip(expected(&x, &w, &bias)).all(|(is, want)| (is - want).abs() < 1e-6);
    println!("{backend}: {result:.4?}, {}", if right { "as in plain Rust" } else { "wrong" });

    // First the wrapper rejects the number of columns, and then the host's function rejects its argument. Each error
    // has the model's line in its backtrace.
    let (short, bad) = (Tensor::from_slice(&w, &[2, 3])?, Tensor::from_slice(&[f32::NAN; 2], &[2])?);
    for (w, bias) in [(&short, &args.2), (&args.1, &bad)] {
        let Err(error) = forward.call((&args.0, w, bias)) else { return Err("no error".into()) };
        println!("  {error}");
        let backtrace = error.backtrace();
        backtrace.lines().filter(|line| line.contains(&graph.file)).for_each(|line| println!("{line}"));
    }
    Ok(())
}

/// The host's function: limits each element to 1.
fn clip(x: Tensor) -> runtime::Result<Tensor> {
    let mut elements = x.to_vec::<f32>()?;
    if elements.iter().any(|x| x.is_nan()) {
        return Err(runtime::Error::new("ValueError", "an element is no number"));
    }
    elements.iter_mut().for_each(|x| *x = x.min(1.0));
    Tensor::from_vec(elements, x.shape())
}

fn main() -> Result<()> {
    let graph = Graph::read("model.py", include_str!("graph_compiler/model.py"))?;
    let folder = std::env::args().nth(1);
    for &backend in Backend::ALL {
        match &folder {
            None => run_here(&graph, backend)?,
            Some(folder) => {
                write_library(&graph, backend, folder.as_ref(), true)?;
                write_library(&graph, backend, folder.as_ref(), false)?;
            }
        }
    }
    Ok(())
}
