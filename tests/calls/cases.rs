//! Bodies that each use one feature of the API.

use std::sync::LazyLock;
use tvm_ffi_codegen::lower::CallArg;

use tvm_ffi_codegen::runtime::abi::DLDevice;
use tvm_ffi_codegen::runtime::{Any, Array, Function, Tensor};
use tvm_ffi_codegen::{Body, DLDataType, DLDeviceType, Kernel, ParamType, ScalarType};

use super::callees;
use crate::support::library::Library;
use crate::support::sig;

/// A function to call, with its library and its arguments.
pub struct Case {
    pub name: &'static str,
    pub library: Library,
    pub args: fn() -> Vec<Any>,
    /// Whether it looks up functions in the library's imports.
    pub imports: bool,
    /// Whether the code itself catches errors: it continues after one, or raises another.
    pub catches: bool,
    /// Whether moves and variables change references, so that the last one isn't always released first.
    pub moves: bool,
    /// Whether it succeeds without an injected failure.
    pub succeeds: bool,
}

impl Case {
    fn new(name: &'static str, library: Library, args: fn() -> Vec<Any>) -> Self {
        Case { name, library, args, imports: false, catches: false, moves: false, succeeds: true }
    }

    fn imports(self) -> Self {
        Case { imports: true, ..self }
    }

    fn catches(self) -> Self {
        Case { catches: true, ..self }
    }

    fn moves(self) -> Self {
        Case { moves: true, ..self }
    }

    fn fails(self) -> Self {
        Case { succeeds: false, ..self }
    }
}

fn case(
    name: &'static str,
    signature: &str,
    args: fn() -> Vec<Any>,
    body: impl Fn(&Body<'_>) + Send + Sync + 'static,
) -> Case {
    let library = Library::of(&format!("{name}{signature}"), body);
    Case::new(name, library, args)
}

fn ty(text: &str) -> ParamType {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn vector() -> Any {
    Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]).unwrap().into()
}

/// A callee for each type of result, by name.
const RESULTS: &[(&str, &str, &str)] = &[
    ("result_none", "calls.none", "None"),
    ("result_int", "calls.int", "int64"),
    ("result_float", "calls.float", "float64"),
    ("result_small", "calls.small", "str"),
    ("result_text", "calls.text", "str"),
    ("result_bytes", "calls.bytes", "bytes"),
    ("result_shape", "calls.shape", "Shape"),
    ("result_dims", "calls.shape", "Shape([m, n])"),
    ("result_tensor", "calls.tensor", "Tensor([n], float32)"),
    ("result_function", "calls.function", "Function"),
    ("result_array", "calls.array", "Array[Any]"),
    ("result_tuple", "calls.array", "Tuple[int64, Tensor([3], float32)]"),
    ("result_list", "calls.list", "List[str]"),
    ("result_map", "calls.map", "Map[str, int64]"),
    ("result_dict", "calls.dict", "Dict[str, int64]"),
    ("result_module", "calls.module", "Module"),
    ("result_object", "calls.shape", "Object(\"ffi.Shape\")"),
    ("result_any", "calls.tensor", "Any"),
    ("result_optional", "calls.none", "Optional[Tensor([n], float32)]"),
    // callees that return the wrong type
    ("wrong_scalar", "calls.text", "int64"),
    ("wrong_object", "calls.tensor", "Function"),
    ("wrong_size", "calls.tensor", "Tensor([2], float32)"),
    ("wrong_dtype", "calls.tensor", "Tensor([n], float64)"),
    ("wrong_item", "calls.array", "Tuple[int64, str]"),
];

/// All cases, built once.
pub static CASES: LazyLock<Vec<Case>> = LazyLock::new(all);

fn all() -> Vec<Case> {
    callees::register();
    let mut all = arguments();
    all.extend(RESULTS.iter().map(|(name, callee, result)| {
        let made = case(name, "()", Vec::new, move |b| {
            b.call_global("calls.text", ()).returns(ParamType::Str);
            let value = b.call_global(callee, ()).returns(ty(result));
            b.call_global("calls.int", (value,)).run();
        });
        match *name {
            // the helpers release earlier what iterates over the container
            "result_map" | "result_dict" => made.moves(),
            name if name.starts_with("wrong") => made.fails(),
            _ => made,
        }
    }));
    all.extend(callee_kinds());
    all.extend(ownership());
    all.extend(flow());
    all.extend(closures());
    all
}

/// All kinds of arguments.
fn arguments() -> Vec<Case> {
    vec![
        case(
            "scalars",
            "(n: int64, x: float32, yes: bool) -> int64",
            || vec![1.into(), 2.5.into(), true.into()],
            |b| {
                let args = (b.arg("n"), b.arg("x"), b.arg("yes"), 3u8, -1.5, false, b.i64(7) + b.arg("n"), ());
                b.ret(b.call_global("calls.int", args).returns(ScalarType::Int64).value());
            },
        ),
        case(
            "texts",
            "(s: str, t: bytes)",
            || vec!["a parameter of many characters".into(), Any::from(tvm_ffi_codegen::runtime::Bytes::new(b"b"))],
            |b| {
                let args = (
                    b.param(0),
                    b.param(1),
                    "",
                    "short",
                    "a string that is not small",
                    "with\0NUL",
                    CallArg::bytes(b"b"),
                    CallArg::bytes(b"bytes that are not small"),
                );
                b.call_global("calls.int", args).run();
            },
        ),
        case(
            "dtypes_and_devices",
            "(t: dtype, d: device)",
            || vec![DLDataType::FLOAT16.into(), DLDevice::new(DLDeviceType::CUDA, 1).into()],
            |b| {
                b.call_global("calls.int", (b.param(0), b.param(1), DLDataType::FLOAT32, DLDevice::CPU)).run();
            },
        ),
        case(
            "shapes_and_arrays",
            "(n: int64, s: Shape)",
            || vec![5.into(), tvm_ffi_codegen::runtime::Shape::new(&[8]).into()],
            |b| {
                let inner = CallArg::array((b.arg("n"), "a string that is not small"));
                let none: [i64; 0] = [];
                let args = (
                    CallArg::shape([b.arg("n"), b.i64(2)]),
                    CallArg::shape(none),
                    b.param(1),
                    CallArg::array((1, inner)),
                );
                b.call_global("calls.int", args).run();
            },
        ),
        case(
            "keywords",
            "(n: int64)",
            || vec![5.into()],
            |b| {
                b.call_global("calls.int", (1,)).kwarg("n", b.arg("n")).kwarg("s", "a string that is not small").run();
            },
        ),
        case(
            "tensors",
            "(x: Tensor([m, n], float32))",
            || vec![vector()],
            |b| {
                let x = b.tensor("x");
                let views = (x, x.slice(1, 1, 2), x.transpose([1, 0]), x.reshape([6]), x.slice(0, 1, 1).slice(1, 2, 1));
                b.call_global("calls.int", views).run();
            },
        ),
        case(
            "parameters",
            "(f: Function, a: Array[int64], o: Optional[Tensor([n], float32)], any: Any, p: Tuple[int64, str])",
            || {
                let tuple = Array::from(vec![Any::from(1), Any::from("an item of many characters")]);
                vec![
                    Function::from_packed(|_| Ok(Any::none())).into(),
                    Array::from(vec![Any::from(1)]).into(),
                    Any::none(),
                    vector(),
                    tuple.into(),
                ]
            },
            |b| {
                let all: Vec<CallArg<'_>> = b.params().map(CallArg::from).collect();
                b.call_global("calls.int", all).run();
                b.call_global("calls.int", (b.param(4).item(0), b.param(4).item(1))).run();
            },
        ),
    ]
}

/// All ways to name a callee.
fn callee_kinds() -> Vec<Case> {
    let two = vec![
        (
            sig("by_symbol(n: int64) -> int64"),
            Kernel::body(|b| {
                let kept = b.call_global("calls.text", ()).returns(ParamType::Str);
                let n = b.call_symbol("of_the_module", (b.arg("n"), kept)).returns(ScalarType::Int64).value();
                b.ret(n + b.call_symbol("calls_take", (kept.by_move(),)).returns(ScalarType::Int64).value());
            }),
        ),
        (
            sig("of_the_module(n: int64, s: str) -> int64"),
            Kernel::body(|b| {
                b.call_global("calls.echo", (b.param(1),)).returns(ParamType::Str);
                b.ret(b.arg("n") * 2);
            }),
        ),
    ];
    let library = Library::new(two).unwrap_or_else(|e| panic!("{e}"));
    vec![
        Case::new("by_symbol", library, || vec![21.into()]).moves(),
        case(
            "by_value",
            "(f: Function) -> int64",
            || vec![Function::from_packed(|args| args[0].to_owned()).into()],
            |b| {
                let other = b.call_global("calls.function", ()).returns(ParamType::Function);
                let n = b.call(b.param(0), (20,)).returns(ScalarType::Int64).value();
                b.ret(n + b.call(other, (22,)).returns(ScalarType::Int64).value());
            },
        ),
        case("uncached", "() -> int64", Vec::new, |b| {
            let one = b.call_global("calls.int", ()).uncached().returns(ScalarType::Int64).value();
            b.ret(one + b.call_global("calls.int", ()).uncached().returns(ScalarType::Int64).value());
        }),
        case(
            "by_import",
            "(n: int64) -> int64",
            || vec![1.into()],
            |b| {
                let text = b.call_import("echo", ("a string that is not small",)).returns(ParamType::Str);
                // a global function, which the imports don't have
                b.call_import("calls.echo", (text,)).run();
                b.ret(b.call_import("echo", (b.arg("n"),)).returns(ScalarType::Int64).value());
            },
        )
        .imports(),
        case(
            "too_large",
            "(n: int64)",
            || vec![(1i64 << 32).into()],
            |b| {
                let n = b.arg("n");
                b.alloc_tensor([n, n], DLDataType::UINT8, DLDevice::CPU);
            },
        )
        .fails(),
        case(
            "too_far",
            "(n: int64)",
            || vec![(1i64 << 32).into()],
            |b| {
                b.alloc_strided(
                    [2, 2].map(|size| b.i64(size)),
                    [b.arg("n") * (1i64 << 28), b.arg("n")],
                    DLDataType::FLOAT64,
                    DLDevice::CPU,
                );
            },
        )
        .fails(),
        case(
            "reshaped_too_large",
            "(n: int64)",
            || vec![(1i64 << 32).into()],
            |b| {
                // the sizes' product wraps to 0, the number of elements of the tensor
                let t = b.alloc_tensor([0], DLDataType::UINT8, DLDevice::CPU);
                b.call_global("calls.text", (t.reshape([b.arg("n"), b.arg("n")]),)).run();
            },
        )
        .fails(),
        case("by_import_that_fails", "()", Vec::new, |b| b.call_import("fail", ()).run()).imports().fails(),
        case("missing_import", "()", Vec::new, |b| b.call_import("calls.nowhere", ()).run()).imports().fails(),
        case("missing_context", "()", Vec::new, |b| b.call_import("echo", (1,)).run()).fails(),
        case("missing_global", "()", Vec::new, |b| {
            b.call_global("calls.text", ()).returns(ParamType::Str);
            b.call_global("calls.nowhere", ()).run();
        })
        .fails(),
        case(
            "forwarded",
            "(f: Function, s: str) -> Any",
            || vec![Function::from_packed(|args| args[0].to_owned()).into(), "a string that is not small".into()],
            |b| {
                let kept = b.call_global("calls.text", ()).returns(ParamType::Str);
                b.call(b.param(0), (kept, CallArg::array((1, "a string that is not small")))).forward();
            },
        )
        .moves(),
        case(
            "forwarded_and_moved",
            "(x: Tensor([m, n], float32)) -> Any",
            || vec![vector()],
            |b| {
                let text = b.call_global("calls.text", ()).returns(ParamType::Str);
                b.call_symbol("calls_take", (text.by_move(),)).forward();
            },
        )
        .moves(),
        case(
            "forwarded_to_a_number",
            "(n: int64) -> int64",
            || vec![1.into()],
            |b| {
                let text = b.call_global("calls.text", ()).returns(ParamType::Str);
                b.call_global("calls.int", (text,)).forward();
            },
        ),
        case(
            "forwarded_to_nothing",
            "(n: int64)",
            || vec![1.into()],
            |b| {
                b.call_global("calls.text", ()).returns(ParamType::Str);
                b.call_global("calls.text", ()).forward();
            },
        ),
        case(
            "forwarded_and_wrong",
            "(n: int64) -> Function",
            || vec![1.into()],
            |b| {
                b.call_global("calls.text", ()).returns(ParamType::Str);
                b.call_global("calls.text", ()).forward();
            },
        )
        .fails()
        .moves(),
        case("no_function", "(x: Any)", || vec![1.into()], |b| b.call(b.param(0), ()).run()).fails(),
    ]
}

/// Moves, variables, results.
fn ownership() -> Vec<Case> {
    vec![
        case(
            "returned",
            "(n: int64) -> Array[Any]",
            || vec![1.into()],
            |b| {
                b.call_global("calls.text", ()).returns(ParamType::Str);
                let array = b.call_global("calls.array", ()).returns(ty("Array[Any]"));
                b.ret_value(array.by_move());
            },
        )
        .moves(),
        case(
            "returned_parameter",
            "(x: Tensor([m, n], float32)) -> Any",
            || vec![vector()],
            |b| {
                b.call_global("calls.text", ()).returns(ParamType::Str);
                b.ret_value(b.param(0));
            },
        )
        .moves(),
        case("moved", "()", Vec::new, |b| {
            let one = b.call_global("calls.tensor", ()).returns(ParamType::Any);
            let other = b.call_global("calls.text", ()).returns(ParamType::Str);
            b.call_global("calls.take", (other.by_move(), one.by_move())).run();
            // never moved
            let third = b.call_global("calls.text", ()).returns(ParamType::Str);
            b.call_global("calls.int", (third.by_move(),)).run();
        })
        .moves(),
        case(
            "variables",
            "(n: int64) -> Any",
            || vec![3.into()],
            |b| {
                let (one, other) = (b.variable(), b.variable());
                other.set("a string that is not small");
                b.for_range(0, b.arg("n"), |i| {
                    let text = b.call_global("calls.text", (i,)).returns(ParamType::Str);
                    one.set(text.by_move());
                    other.set(one.get());
                });
                one.cast(ParamType::Str);
                b.ret_value(other.get());
            },
        )
        .moves(),
        case(
            "tensors_of_its_own",
            "(n: int64) -> Tensor([n], float32)",
            || vec![3.into()],
            |b| {
                let t = b.alloc_tensor([b.arg("n")], DLDataType::FLOAT32, DLDevice::CPU);
                let strided = b.alloc_strided([b.arg("n"), b.i64(2)], [1, 4], DLDataType::FLOAT32, t);
                b.for_range(0, b.arg("n"), |i| {
                    t.store([i], i.cast(ScalarType::Float32));
                    b.for_range(0, 2, |j| strided.store([i, j], b.f32(1.0)));
                    b.result().store([i], b.f32(2.0));
                });
                b.call_global("calls.int", (t, strided, t.slice(0, 1, 2))).run();
                b.call_global("calls.take", (t.owned().by_move(),)).run();
            },
        )
        .moves(),
    ]
}

/// Functions that bodies create.
fn closures() -> Vec<Case> {
    let add = || sig("add(x: int64) -> int64");
    vec![
        case(
            "closure_passed",
            "(n: int64) -> int64",
            || vec![40.into()],
            move |b| {
                let text = b.call_global("calls.text", ()).returns(ParamType::Str);
                let captures = [(b.arg("n").into(), ScalarType::Int64.into()), (text.into(), ParamType::Str)];
                let function = b.closure(&add(), captures, |b| {
                    b.call_global("calls.echo", (b.captured(1),)).returns(ParamType::Str);
                    b.ret(b.arg("x") + b.captured(0).value());
                });
                b.ret(b.call_global("calls.apply", (function, 2)).returns(ScalarType::Int64).value());
            },
        ),
        case("closure_that_fails", "()", Vec::new, move |b| {
            let tensor = b.call_global("calls.tensor", ()).returns(ParamType::Any);
            let function = b.closure(&add(), [(tensor.by_move(), ty("Tensor([n], float32)"))], |b| {
                b.call_global("calls.text", (b.captured(0).tensor(),)).returns(ParamType::Str);
                b.call_global("calls.fail", ()).run();
                b.ret(1);
            });
            b.call(function, (1,)).run();
        })
        .fails()
        .moves(),
        case("closure_returned", "() -> Function", Vec::new, move |b| {
            let text = b.call_global("calls.text", ()).returns(ParamType::Str);
            let function = b.closure(&add(), [(text.by_move(), ParamType::Str)], |b| b.ret(b.arg("x")));
            b.ret_value(function.by_move());
        })
        .moves(),
        case("closure_refuses", "() -> int64", Vec::new, move |b| {
            let function = b.closure(&add(), [], |b| b.ret(b.arg("x")));
            b.ret(b.call(function, ("no number",)).returns(ScalarType::Int64).value());
        })
        .fails(),
    ]
}

/// Loops, conditions and errors.
fn flow() -> Vec<Case> {
    vec![
        case(
            "left_early",
            "(n: int64) -> int64",
            || vec![5.into()],
            |b| {
                b.call_global("calls.text", ()).returns(ParamType::Str);
                b.for_range(0, b.arg("n"), |i| {
                    b.call_global("calls.tensor", (i,)).returns(ParamType::Any);
                    b.if_(i.eq(1), || {
                        b.call_global("calls.array", ()).returns(ParamType::Any);
                        b.ret(b.call_global("calls.int", (i,)).returns(ScalarType::Int64).value());
                    });
                });
                b.ret(-1);
            },
        ),
        case(
            "broken_off",
            "(n: int64) -> int64",
            || vec![5.into()],
            |b| {
                let outer = b.call_global("calls.text", ()).returns(ParamType::Str);
                b.for_range(0, b.arg("n"), |i| {
                    let inner = b.call_global("calls.tensor", (i, outer)).returns(ParamType::Any);
                    b.if_(i.eq(2), || b.break_());
                    b.call_global("calls.int", (inner,)).run();
                });
                b.ret(b.call_global("calls.int", (outer,)).returns(ScalarType::Int64).value());
            },
        ),
        case(
            "continued",
            "(n: int64) -> int64",
            || vec![5.into()],
            |b| {
                let (outer, last) = (b.call_global("calls.text", ()).returns(ParamType::Str), b.variable());
                let sum = b.fold(0, b.arg("n"), b.i64(0), |i, sum| {
                    let inner = b.call_global("calls.tensor", (i, outer)).returns(ParamType::Any);
                    b.if_(i.eq(1), || {
                        b.call_global("calls.array", ()).returns(ParamType::Any);
                        b.continue_with([sum + 10]);
                    });
                    b.if_(i.eq(2), || {
                        last.set(inner.by_move());
                        b.continue_();
                    });
                    sum + b.call_global("calls.int", (i,)).returns(ScalarType::Int64).value()
                });
                b.call_global("calls.int", (outer, last.get())).run();
                b.ret(sum);
            },
        )
        .moves(),
        case(
            "continued_out_of_a_handler",
            "(n: int64) -> int64",
            || vec![4.into()],
            |b| {
                let turns = b.fold(0, b.arg("n"), b.i64(0), |i, turns| {
                    b.call_global("calls.text", (i,)).returns(ParamType::Str);
                    b.try_(
                        || {
                            b.call_global("calls.array", ()).returns(ParamType::Any);
                            b.if_(i.eq(0), || b.continue_with([turns + 100]));
                            b.call_global("calls.fail", ()).run();
                        },
                        |error| {
                            b.if_(i.eq(1), || b.continue_());
                            b.call_global("calls.int", (error.error(),)).run();
                            b.if_(i.eq(2), || b.continue_with([turns + 10]));
                        },
                    );
                    turns + 1
                });
                b.ret(turns);
            },
        )
        .catches(),
        case(
            "conditions",
            "(n: int64) -> int64",
            || vec![5.into()],
            |b| {
                let yes = b.call_global("calls.int", ()).returns(ScalarType::Int64).value().gt(b.arg("n"));
                b.if_else(
                    yes,
                    || {
                        b.call_global("calls.text", (1,)).returns(ParamType::Str);
                    },
                    || {
                        b.call_global("calls.tensor", (2,)).returns(ParamType::Any);
                    },
                );
                b.ret(1);
            },
        ),
        case(
            "raised",
            "(n: int64)",
            || vec![5.into()],
            |b| {
                b.call_global("calls.text", ()).returns(ParamType::Str);
                b.call_global("calls.array", ()).returns(ParamType::Any);
                b.raise("KernelError", "no {}", [b.arg("n")]);
            },
        )
        .fails(),
        case("failing_callee", "()", Vec::new, |b| {
            b.call_global("calls.text", ()).returns(ParamType::Str);
            b.call_global("calls.fail", ()).run();
            b.call_global("calls.int", ()).run();
        })
        .fails(),
        case("signals", "()", Vec::new, |b| {
            b.call_global("calls.text", ()).returns(ParamType::Str);
            b.for_range(0, 6, |i| {
                b.check_signals_every(3);
                b.call_global("calls.echo", (i,)).run();
            });
        }),
        case("caught", "() -> int64", Vec::new, |b| {
            let outer = b.variable();
            b.try_(
                || {
                    b.call_global("calls.text", ()).returns(ParamType::Str);
                    outer.set(b.call_global("calls.tensor", ()).returns(ParamType::Any).by_move());
                    b.call_global("calls.fail", ()).run();
                },
                |error| {
                    b.if_(error.is_kind("KeyError"), || b.call_global("calls.int", (error.error(),)).run());
                },
            );
            b.ret(b.call_global("calls.int", (outer.get(),)).returns(ScalarType::Int64).value());
        })
        .catches()
        .moves(),
        case("raised_again", "()", Vec::new, |b| {
            b.call_global("calls.text", ()).returns(ParamType::Str);
            b.try_(
                || {
                    b.call_global("calls.tensor", ()).returns(ParamType::Any);
                    b.call_global("calls.fail", ()).run();
                },
                |error| error.raise_again(),
            );
        })
        .catches()
        .fails(),
        case(
            "raised_from",
            "(n: int64)",
            || vec![1.into()],
            |b| {
                b.try_(
                    || {
                        b.call_global("calls.tensor", ()).returns(ParamType::Any);
                        b.call_global("calls.fail", ()).run();
                    },
                    |error| error.raise_from("KernelError", "turn {}", [b.arg("n")]),
                );
            },
        )
        .catches()
        .fails()
        .moves(),
        case("returned_from_try", "() -> int64", Vec::new, |b| {
            b.call_global("calls.text", ()).returns(ParamType::Str);
            b.try_(
                || {
                    b.call_global("calls.tensor", ()).returns(ParamType::Any);
                    b.ret(b.call_global("calls.int", ()).returns(ScalarType::Int64).value());
                },
                |error| {
                    b.call_global("calls.int", (error.error(),)).run();
                    b.ret(-1);
                },
            );
            b.ret(-2);
        })
        .catches(),
    ]
}
