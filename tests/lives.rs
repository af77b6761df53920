//! Uses of a body's values after their end. Each is one error, for owned values, their parts and views. Uses before the
//! end are valid.

use std::cell::Cell;

use tvm_ffi_codegen::lower::{CallResult, RuntimeHelpers, TensorRef, lower};
use tvm_ffi_codegen::runtime::DLDevice;
use tvm_ffi_codegen::{Body, CallArg, DLDataType, Kernel, LowerError, ParamType, ScalarType, Signature};

use crate::support::sig;

const SIGNATURE: &str = "f(n: int64, s: str) -> int64";

/// The errors of a body.
fn errors_of(signature: &Signature, body: impl Fn(&Body<'_>) + Send + Sync + 'static) -> Vec<String> {
    match lower(signature, &Kernel::body(body), RuntimeHelpers::Import) {
        Ok(module) => {
            tvm_ffi_codegen::ir::verify(module).unwrap();
            Vec::new()
        }
        Err(LowerError::Body { errors, .. }) => errors.iter().map(ToString::to_string).collect(),
        Err(error) => panic!("{error}"),
    }
}

/// Checks that a body has exactly one error, with this operation and this problem.
fn one_error((operation, problem): (&str, &str), what: &str, body: impl Fn(&Body<'_>) + Send + Sync + 'static) {
    let errors = errors_of(&sig(SIGNATURE), body);
    let [error] = &errors[..] else { panic!("{what}: {errors:#?}") };
    assert!(error.starts_with(&format!("{operation}: ")) && error.contains(problem), "{what}: {error}");
}

fn no_error(what: &str, body: impl Fn(&Body<'_>) + Send + Sync + 'static) {
    assert_eq!(errors_of(&sig(SIGNATURE), body), [""; 0], "{what}");
}

fn ty(text: &str) -> ParamType {
    sig(&format!("f(x: {text})")).params()[0].ty.clone()
}

fn made<'b>(b: &'b Body<'_>, text: &str) -> CallResult<'b> {
    b.call_global("lives.make", ()).returns(ty(text))
}

fn allocated<'b>(b: &'b Body<'_>) -> TensorRef<'b> {
    b.alloc_tensor([b.arg("n")], DLDataType::INT64, DLDevice::CPU)
}

const BLOCK: &str = "inside of a loop or conditional that has ended";
const MOVED: &str = "has been moved";

#[test]
fn parts_end_with_the_block_that_made_their_owner() {
    let passed = ("call of `lives.take`", BLOCK);
    one_error(passed, "a result of a while's condition", |b| {
        let kept = Cell::new(None);
        let condition = || {
            kept.set(Some(made(b, "str")));
            b.bool(false)
        };
        b.while_(condition, || {});
        b.call_global("lives.take", [CallArg::from(*kept.get().unwrap())]).run();
        b.ret(1);
    });
    one_error(("load", BLOCK), "a tensor of a loop", |b| {
        let kept = Cell::new(None);
        b.for_range(0, 3, |_| kept.set(Some(allocated(b))));
        b.ret(kept.get().unwrap().load([0]));
    });
    one_error(("store", BLOCK), "a view of a conditional", |b| {
        let kept = Cell::new(None);
        let tensor = allocated(b);
        b.if_(b.arg("n").gt(0), || kept.set(Some(tensor.slice(0, 0, 1))));
        kept.get().unwrap().store([0], 1);
        b.ret(1);
    });
    one_error(("slice", BLOCK), "a view of a tensor of a loop", |b| {
        let kept = Cell::new(None);
        b.for_range(0, 3, |_| kept.set(Some(allocated(b))));
        kept.get().unwrap().slice(0, 0, 1);
        b.ret(1);
    });
    one_error(("value", BLOCK), "a value of a variable that is taken inside of a conditional", |b| {
        let (variable, kept) = (b.variable(), Cell::new(None));
        variable.set(1);
        b.if_(b.arg("n").gt(0), || kept.set(Some(variable.cast(ScalarType::Int64))));
        b.ret(kept.get().unwrap().value());
    });
    one_error(("call of `result of a function value[0]`", BLOCK), "a function inside of a result of a loop", |b| {
        let kept = Cell::new(None);
        let f = made(b, "Function");
        b.for_range(0, 3, |_| kept.set(Some(b.call(f, ()).returns(ty("Tuple[Function]")).item(0))));
        b.call(kept.get().unwrap(), ()).run();
        b.ret(1);
    });
}

#[test]
fn parts_end_where_their_owner_is_moved() {
    one_error(("call of `lives.take`", MOVED), "an item", |b| {
        let pair = made(b, "Tuple[Tuple[int64], int64]");
        let item = pair.item(0);
        b.variable().set(pair.by_move());
        b.call_global("lives.take", [item]).run();
        b.ret(1);
    });
    one_error(("value", MOVED), "the value of an item", |b| {
        let pair = made(b, "Tuple[int64]");
        b.variable().set(pair.by_move());
        b.ret(pair.item(0).value());
    });
    one_error(("size", MOVED), "the size of a text", |b| {
        let text = made(b, "str");
        b.variable().set(text.by_move());
        b.ret(text.size());
    });
    one_error(("load", MOVED), "a tensor", |b| {
        let tensor = allocated(b);
        b.variable().set(tensor.owned().by_move());
        b.ret(tensor.load([0]));
    });
    one_error(("load", MOVED), "a view", |b| {
        let tensor = allocated(b);
        let view = tensor.slice(0, 0, 1);
        b.variable().set(tensor.owned().by_move());
        b.ret(view.load([0]));
    });
    one_error(("load", MOVED), "a pointer into a tensor", |b| {
        let tensor = allocated(b);
        let pointer = b.offset(tensor.ptr(), ScalarType::Int64, 1);
        b.variable().set(tensor.owned().by_move());
        b.ret(b.load(ScalarType::Int64, pointer));
    });
    one_error(("alloc_tensor", MOVED), "the device of a tensor", |b| {
        let tensor = allocated(b);
        b.variable().set(tensor.owned().by_move());
        b.alloc_tensor([1], DLDataType::INT64, tensor);
        b.ret(1);
    });
    one_error(("set", "each turn would move it again"), "a tensor that each turn of a loop moves", |b| {
        let (tensor, variable) = (allocated(b), b.variable());
        b.for_range(0, 3, |_| variable.set(tensor.owned().by_move()));
        b.ret(1);
    });
    no_error("a number that was taken out before", |b| {
        let pair = made(b, "Tuple[int64]");
        let number = pair.item(0).value();
        b.variable().set(pair.by_move());
        b.ret(number);
    });
}

#[test]
fn parts_end_where_their_variable_is_set() {
    const REPLACED: &str = "has been given another value";
    const NEXT_TURN: &str = "whose next turn uses a part of it";
    one_error(("load", REPLACED), "a tensor of a variable", |b| {
        let variable = b.variable();
        variable.set(allocated(b));
        let tensor = variable.cast(ty("Tensor([k], int64)")).tensor();
        variable.set(1);
        b.ret(tensor.load([0]));
    });
    one_error(("set", NEXT_TURN), "a tensor of a variable that a loop sets behind the use", |b| {
        let variable = b.variable();
        variable.set(allocated(b));
        let tensor = variable.cast(ty("Tensor([k], int64)")).tensor();
        b.for_range(0, 3, |i| {
            tensor.store([0], i);
            variable.set(1);
        });
        b.ret(1);
    });
    one_error(("call of `lives.take`", NEXT_TURN), "a variable that a loop moves behind the use of a part", |b| {
        let variable = b.variable();
        variable.set("a text");
        let text = variable.cast(ParamType::Str);
        b.for_range(0, 3, |_| {
            b.call_global("lives.take", [text.size()]).run();
            b.call_global("lives.take", [variable.get().by_move()]).run();
        });
        b.ret(1);
    });
    no_error("a variable that each turn of a loop sets, with the parts of that turn", |b| {
        let variable = b.variable();
        b.for_range(0, 3, |_| {
            variable.set(allocated(b));
            let tensor = variable.cast(ty("Tensor([k], int64)")).tensor();
            tensor.store([0], 1);
            variable.set("a text");
        });
        b.call_global("lives.take", [variable.get().by_move()]).run();
        variable.set(2);
        b.ret(variable.cast(ScalarType::Int64).value());
    });
}

#[test]
fn the_next_turn_is_gone_on_to_in_loops_only() {
    for (name, leave) in [
        ("break_", (|b| b.break_()) as fn(&Body<'_>)),
        ("continue_", |b| b.continue_()),
        ("continue_with", |b| b.continue_with([1])),
    ] {
        one_error((name, "isn't inside a loop"), "the whole body", move |b| {
            b.for_range(0, 3, |_| {});
            b.if_(b.arg("n").gt(0), || leave(b));
            b.ret(1);
        });
        one_error((name, "isn't inside a loop"), "a closure that a loop makes", move |b| {
            b.for_range(0, 3, |_| {
                b.closure(&sig("g()"), [], leave);
            });
            b.ret(1);
        });
    }
    let carried = |b: &Body<'_>, leave: fn(&Body<'_>, [tvm_ffi_codegen::Expr<'_>; 2])| {
        let first = [b.i64(0), b.i64(1)];
        b.fold_n(0, 3, first, |_, values| {
            leave(b, values);
            values
        });
        b.ret(1);
    };
    one_error(("continue_with", "the loop carries 2 values, got 1"), "too few", move |b| {
        carried(b, |b, [x, _]| b.continue_with([x]));
    });
    one_error(("continue_with", "the loop carries 0 values, got 1"), "a loop without values", |b| {
        b.while_(|| b.arg("n").gt(0), || b.continue_with([1]));
        b.ret(1);
    });
    one_error(("continue_with", "operands are int64 and float64; cast one"), "another type", move |b| {
        carried(b, |b, [x, _]| b.continue_with([x.cast(ScalarType::Float64), x]));
    });
    one_error(("continue_with", BLOCK), "a value of a conditional", move |b| {
        carried(b, |b, [x, y]| {
            let kept = Cell::new(x);
            b.if_(x.gt(y), || kept.set(x + 1));
            b.continue_with([kept.get(), y]);
        });
    });
    one_error(("set", "each turn would move it again"), "a move in the last turn", |b| {
        let (tensor, variable) = (allocated(b), b.variable());
        b.for_range(0, 3, |i| {
            b.if_(i.lt(2), || b.continue_());
            variable.set(tensor.owned().by_move());
        });
        b.ret(1);
    });
    no_error("a move in a turn that ends", |b| {
        let variable = b.variable();
        b.for_range(0, 3, |i| {
            let tensor = allocated(b);
            b.if_(i.lt(2), || {
                variable.set(tensor.owned().by_move());
                b.continue_();
            });
        });
        b.ret(1);
    });
    no_error("the numbers that a loop carries, as constants", move |b| carried(b, |b, _| b.continue_with([3, 4])));
}

#[test]
fn one_call_does_not_lend_what_it_moves() {
    const BESIDE: &str = "beside an argument that moves it";
    one_error(("call of `lives.take`", BESIDE), "a value", |b| {
        let text = made(b, "str");
        b.call_global("lives.take", [CallArg::from(text), text.by_move()]).run();
        b.ret(1);
    });
    one_error(("call of `lives.take`", BESIDE), "an item beside its tuple as a keyword", |b| {
        let pair = made(b, "Tuple[Tuple[int64], int64]");
        b.call_global("lives.take", [pair.item(0)]).kwarg("pair", pair.by_move()).run();
        b.ret(1);
    });
    one_error(("call of `lives.take`", BESIDE), "a view beside its tensor", |b| {
        let tensor = allocated(b);
        b.call_global("lives.take", [CallArg::from(tensor.slice(0, 0, 1)), tensor.owned().by_move()]).run();
        b.ret(1);
    });
}

#[test]
fn a_handler_in_a_loop_moves_its_error_once() {
    let again = "each turn would move it again";
    let fail = |b: &Body<'_>| b.call_global("lives.fail", ()).run();
    one_error(("set", again), "into a variable", move |b| {
        let variable = b.variable();
        b.try_(
            || fail(b),
            |caught| {
                b.for_range(0, b.arg("n"), |_| {
                    b.if_(caught.is_kind("ValueError"), || {});
                    variable.set(caught.error().by_move());
                });
            },
        );
        b.ret(1);
    });
    one_error(("call of `lives.take`", again), "into a call", move |b| {
        b.try_(
            || fail(b),
            |caught| b.for_range(0, b.arg("n"), |_| b.call_global("lives.take", [caught.error().by_move()]).run()),
        );
        b.ret(1);
    });
    no_error("a loop around the handler", move |b| {
        let variable = b.variable();
        b.for_range(0, b.arg("n"), |_| b.try_(|| fail(b), |caught| variable.set(caught.error().by_move())));
        b.ret(1);
    });
}

#[test]
fn errors_have_the_line_that_was_stated_and_bring_no_others() {
    let errors = errors_of(&sig("f(x: Tensor([n], float32), a: float32) -> float32"), |b| {
        b.set_location("model.py", 3, "forward");
        let y = b.tensor("y");
        let sum = b.fold(0, y.size(0), b.arg("none"), |i, sum| sum + b.arg("a") * y.load([i]));
        b.set_location("model.py", 4, "forward");
        y.store([0], sum.sqrt());
        b.ensure(sum.gt(1.0), "ValueError", "{}", [b.arg("also_none")]);
        b.launch_with(tvm_ffi_codegen::spec::Launch::new("k").grid([1]).block([1]), [], [("y", y)]);
        b.clear_location();
        b.ret(b.arg("x"));
    });
    let expected = [
        "tensor(\"y\"): `f(x: Tensor([n], float32), a: float32) -> float32` has no such parameter (File \"model.py\", line 3, in forward)",
        "arg(\"none\"): `f(x: Tensor([n], float32), a: float32) -> float32` has no such parameter (File \"model.py\", line 3, in forward)",
        "arg(\"also_none\"): `f(x: Tensor([n], float32), a: float32) -> float32` has no such parameter (File \"model.py\", line 4, in forward)",
        "arg(\"x\"): is a tensor; use `tensor`",
    ];
    assert_eq!(errors, expected);
}

#[test]
fn a_return_that_is_an_error_still_ends_the_function() {
    let errors = errors_of(&sig("f() -> str"), |b| b.ret(1));
    assert_eq!(errors, ["ret: `f() -> str` returns no scalar"]);
    let errors = errors_of(&sig("f() -> int64"), |b| b.ret_value("a text"));
    assert_eq!(errors, ["ret_value: `f() -> int64` returns no value that the body makes"]);
}

#[test]
fn frames_have_limits() {
    one_error(("scratch", "65536 that it may"), "bytes", |b| {
        b.scratch((64 << 10) + 1, 1);
        b.ret(1);
    });
    let of_padding = errors_of(&sig(SIGNATURE), |b| {
        (0..3000).for_each(|_| _ = b.scratch(1, 4096));
        b.ret(1);
    });
    assert!(of_padding.len() > 2900 && of_padding[0].contains("65536 that it may"), "{:?}", &of_padding[..1]);
    let frame = ("frame", "more than 1048576 bytes");
    one_error(frame, "arguments", |b| {
        b.call_global("lives.take", vec![b.arg("n"); 100_000]).run();
        b.ret(1);
    });
    one_error(frame, "variables", |b| {
        (0..100_000).for_each(|_| _ = b.variable());
        b.ret(1);
    });
    one_error(("alloc_tensor", "at most 64 dimensions, got 65"), "dimensions", |b| {
        let tensor = b.alloc_tensor(vec![1; 65], DLDataType::INT64, DLDevice::CPU);
        b.ret(tensor.size(64));
    });
    no_error("what fits", |b| {
        (0..15).for_each(|_| _ = b.scratch(8, 2048));
        b.ret(b.alloc_tensor(vec![1; 64], DLDataType::INT64, DLDevice::CPU).size(63));
    });
}
