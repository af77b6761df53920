//! Wrappers with many tensors: code size is at most linear in the number of tensors. An object also contains nothing
//! that its wrappers don't use.

use tvm_ffi_codegen::lower::{RuntimeHelpers, lower};
use tvm_ffi_codegen::{Backend, Engine, Kernel, ir};
#[cfg(target_os = "linux")]
use tvm_ffi_codegen::{Body, MatchKey, MatchPattern, MatchRow, ParamType, ScalarType};

use crate::support::sig;

/// A signature with tensors of four dimensions that share their symbols, or each have their own.
fn signature(count: usize, shared: bool) -> String {
    let tensor = |i: usize| {
        let own = if shared { String::new() } else { i.to_string() };
        format!("x{i}: Tensor([a{own}, b{own}, c{own}, d{own}], float32)")
    };
    format!("f({})", (0..count).map(tensor).collect::<Vec<_>>().join(", "))
}

extern "C" fn never_called() {}

#[test]
fn code_and_data_grow_with_the_number_of_tensors() {
    let kernel = Kernel::address(never_called as *const u8);
    for &backend in Backend::ALL {
        let engine = Engine::builder().backend(backend).build().unwrap();
        for shared in [true, false] {
            let size = |count: usize| {
                let signature = sig(&signature(count, shared));
                let code = engine.compile_code([(&signature, &kernel)]).unwrap();
                [code.code_size() as f64 / count as f64, code.data_size() as f64 / count as f64]
            };
            let sizes: Vec<_> = [1, 2, 4, 8, 16, 32, 64].map(|count| (count, size(count))).into();
            println!("{backend}, shared symbols: {shared}, bytes of code and data for each tensor: {sizes:?}");
            let few = sizes[3].1;
            for (count, many) in &sizes[4..] {
                for (many, few) in many.iter().zip(few) {
                    assert!(*many < 1.15 * few, "{backend}, {count} tensors, shared symbols: {shared}: {sizes:?}");
                }
            }
        }
    }
}

/// A chain of tensors. Each size has a parameter and two symbols; only the last tensor determines a symbol directly.
fn chain(count: usize, forward: bool) -> String {
    let link = |i: usize| format!("x{i}: Tensor([3 * k + s{i} + s{}], int8)", i + 1);
    let mut links: Vec<String> = (0..count - 1).map(link).collect();
    links.push(format!("x{}: Tensor([s{}], int8)", count - 1, count - 1));
    if forward {
        links.reverse();
    }
    format!("f(k: int64, {})", links.join(", "))
}

/// Each dimension except the last has to wait for the next one.
#[test]
fn code_of_dimensions_that_wait_is_that_of_dimensions_that_do_not() {
    for count in [8, 50, 700] {
        let size = |forward: bool| {
            let signature = sig(&chain(count, forward));
            let start = std::time::Instant::now();
            let module = lower(&signature, &Kernel::check_only(), RuntimeHelpers::Import).unwrap();
            let time = start.elapsed();
            let wrapper = module.functions.values().find(|f| f.name == "__tvm_ffi_f").unwrap();
            let body = wrapper.body.as_ref().unwrap();
            let insts: usize = body.blocks.values().map(|block| block.insts.len()).sum();
            println!("{count} tensors, forward: {forward}: {insts} instructions, {time:?}");
            insts
        };
        let (forward, reverse) = (size(true), size(false));
        assert!(
            reverse <= forward + forward / 50 + 2,
            "{count} tensors: {reverse} instructions, {forward} in forward order"
        );
    }
}

/// A module that stands alone, as for an object.
fn alone(signature: &str) -> ir::Module {
    lower(&sig(signature), &Kernel::check_only(), RuntimeHelpers::Define).unwrap()
}

#[test]
fn objects_have_the_routines_that_their_signatures_use() {
    for (signature, expected) in [
        ("f(a: int64, b: float64, c: bool, h: handle)", &[][..]),
        ("f(x: Tensor([n], float32), y: Tensor([n], float32))", &[]),
        ("f(x: Tensor([n], float32, strides=[s]))", &["dim"]),
        ("f(x: Tensor([n], float32), y: Tensor([2 * n], float32))", &["copy_place", "dim", "eval"]),
        ("f(n: int64, m: int64) where n < m", &["eval"]),
        ("f(x: Optional[int64])", &["check"]),
        ("f(xs: Array[int64])", &["check", "copy_place"]),
    ] {
        let module = alone(signature);
        let defined = module.functions.values().filter(|f| f.body.is_some());
        let mut names: Vec<_> = defined.filter_map(|f| f.name.strip_prefix("__tvm_ffi_codegen_")).collect();
        names.sort_unstable();
        let mut expected = [&["bind", "report"], expected].concat();
        expected.sort_unstable();
        assert_eq!(names, expected, "{signature}");
    }
}

#[test]
fn objects_have_the_names_that_their_messages_may_tell() {
    let has = |module: &ir::Module, name: &str| {
        module.data.values().any(|data| data.bytes.windows(name.len()).any(|bytes| bytes == name.as_bytes()))
    };
    let (scalars, tensors) = (alone("f(a: int64)"), alone("f(x: Tensor([n], float32))"));
    for (name, of_scalars) in [("VisitInterrupt", true), ("bfloat", false), ("vulkan", false)] {
        assert_eq!(has(&scalars, name), of_scalars, "{name}");
        assert!(has(&tensors, name), "{name}");
    }
}

/// Bytes of code and data with Cranelift, for this machine. The bounds leave some headroom.
#[cfg(feature = "cranelift")]
#[test]
fn objects_are_small() {
    use tvm_ffi_codegen::OptLevel;
    use tvm_ffi_codegen::backend::cranelift::{IsaOptions, compile, host_isa};

    let isa = host_isa(&IsaOptions { opt_level: OptLevel::Full, pic: true, ..IsaOptions::default() }).unwrap();
    for (signature, max) in [
        ("scalars(a: int64, b: float64, c: bool, h: handle)".to_owned(), 3_000),
        ("add_one(x: Tensor([n], float32), y: Tensor([n], float32))".to_owned(), 5_900),
        (signature(16, true), 10_500),
    ] {
        let module = ir::verify(alone(&signature)).unwrap();
        let compiled = compile(&module, &*isa).unwrap();
        let [code, data] = [compiled.code_size(), compiled.data_size()];
        println!("{signature}: {code} bytes of code, {data} of data");
        assert!(code + data < max, "{signature}: {code} bytes of code, {data} of data");
    }
}

/// The CPU time of this thread.
#[cfg(target_os = "linux")]
fn processor_time() -> std::time::Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live variable.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) }, 0);
    std::time::Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Writes the given number of something into a body.
#[cfg(target_os = "linux")]
type Write = fn(&Body<'_>, usize);

/// Compiles a body with few and with many things. The cost of one, in bytes of code and in time, must not grow with
/// their number.
#[cfg(target_os = "linux")]
fn grows_with(what: &str, write: Write, [few, many]: [usize; 2]) {
    let signature = sig("f(n: int64) -> int64");
    let engine = Engine::builder().threads(std::num::NonZeroUsize::MIN).build().unwrap();
    let cost = |count: usize| {
        let kernel = Kernel::body(move |b| {
            write(b, count);
            b.ret(1);
        });
        let start = processor_time();
        lower(&signature, &kernel, RuntimeHelpers::Import).unwrap();
        let lowered = processor_time();
        let code = engine.compile_code([(&signature, &kernel)]).unwrap();
        let compiled = processor_time();
        let of_one = |time: std::time::Duration| 1e6 * time.as_secs_f64() / count as f64;
        let cost = [code.code_size() as f64 / count as f64, of_one(lowered - start), of_one(compiled - lowered)];
        println!("{count} {what}, each: {cost:.1?} (bytes of code, microseconds of lowering, and of both)");
        cost
    };
    let of_few = cost(few);
    let of_many = cost(many);
    assert!(of_many[0] < 1.1 * of_few[0], "bytes of code for each of {many} {what}: {of_many:?}, {of_few:?}");
    // with quadratic time, the time for one would grow by the ratio of the numbers
    let max = (many / few) as f64 / 2.0;
    for (few, many) in of_few.iter().zip(of_many).skip(1) {
        assert!(many < max * few, "time of each of the {what}: {few}, {many}");
    }
}

/// In a body that holds its results, each call adds to what all later calls may have to release.
#[cfg(target_os = "linux")]
#[test]
fn bodies_grow_with_the_number_of_their_calls() {
    let held = |b: &Body<'_>, count: usize| {
        for _ in 0..count {
            b.call_global("growth.id", [b.arg("n")]).returns(ParamType::Any);
        }
    };
    grows_with("calls whose results are held", held, [500, 5000]);
}

#[cfg(target_os = "linux")]
#[test]
fn bodies_grow_with_what_is_in_them() {
    const FEW_AND_MANY: [usize; 2] = [300, 1800];
    let of: [(&str, Write); 8] = [
        ("calls whose results are released", |b, count| {
            (0..count).for_each(|_| b.call_global("growth.id", [b.arg("n")]).run());
        }),
        ("functions that are held in a conditional inside of a handler's attempt", |b, count| {
            let call = || _ = b.call_global("growth.id", [b.arg("n")]).returns(ParamType::Function);
            b.try_(|| b.if_(b.arg("n").gt(0), || (0..count).for_each(|_| call())), |_| {});
        }),
        ("results that are moved", |b, count| {
            for _ in 0..count {
                let made = b.call_global("growth.id", [b.arg("n")]).returns(ParamType::Any);
                b.call_global("growth.id", [made.by_move()]).run();
            }
        }),
        ("tensors", |b, count| {
            let device = tvm_ffi_codegen::runtime::DLDevice::CPU;
            (0..count).for_each(|_| _ = b.alloc_tensor([1], tvm_ffi_codegen::DLDataType::INT64, device));
        }),
        ("variables", |b, count| (0..count).for_each(|_| b.variable().set(b.arg("n")))),
        ("arguments", |b, count| b.call_global("growth.id", vec![b.arg("n"); count]).run()),
        ("matches that forward", |b, count| {
            for i in 0..count {
                let row = MatchRow::new([MatchPattern::from(i)], || b.call_global("growth.id", (i,)).forward());
                b.match_else([MatchKey::new("n", b.arg("n"))], [row], || {});
            }
        }),
        ("captured values", |b, count| {
            let captures = (0..count).map(|_| (b.arg("n").into(), ParamType::from(ScalarType::Int64)));
            b.closure(&sig("g() -> int64"), captures, |b| b.ret(b.captured(0).value()));
        }),
    ];
    for (what, write) in of {
        grows_with(what, write, FEW_AND_MANY);
    }
}

/// Texts with many lines: the time of one line, to parse, lower and print them, must not grow with their number.
#[cfg(target_os = "linux")]
#[test]
fn texts_grow_with_their_lines() {
    let block = |lines: &dyn Fn(usize) -> String, count: usize| {
        format!(
            "f(n: int64, x: Tensor([...], any)) -> int64 {{\n{}return n;\n}}",
            (0..count).map(lines).collect::<String>()
        )
    };
    let of: [(&str, &dyn Fn(usize) -> String); 8] = [
        ("values", &|i| format!("let a{i} = n + {i} * (n // 2);\n")),
        ("values that are used later", &|i| match i {
            0 => "let a0 = n;\n".to_owned(),
            _ => format!("let a{i} = a{} + a{};\n", i - 1, i / 2),
        }),
        ("blocks with names", &|i| format!("if n > {i} {{ let a = n; var b; b = a; }}\n")),
        ("comments", &|i| format!("# {i}\nensure n > {i}, ValueError(\"{{}}\", n); # {i}\n")),
        ("questions", &|i| format!("ensure x.ndim == 2 and x.dtype == float32 and n > {i}, ValueError(\"\");\n")),
        ("matches", &|i| {
            format!("match n, x.dtype {{ {i}, float32 => return 1; {i}, _ => return n; else => {{ }} }}\n")
        }),
        ("unknown names", &|i| format!("let a{i} = n; ensure b{i} > 1, ValueError(\"\");\n")),
        ("functions", &|i| format!("return n;\n}}\n## Doc.\nf{i}(n: int64) -> int64 {{\n")),
    ];
    for (what, line) in of {
        let cost = |count: usize| {
            let text = block(line, count);
            let start = processor_time();
            let program = tvm_ffi_codegen::HostProgram::parse(&text).unwrap();
            let parsed = processor_time();
            for (signature, kernel) in program.functions() {
                let lowered = lower(signature, kernel, RuntimeHelpers::Import);
                assert_eq!(lowered.is_err(), what == "unknown names");
            }
            let lowered = processor_time();
            assert!(program.to_string().lines().count() > count);
            let of_one = |time: std::time::Duration| 1e6 * time.as_secs_f64() / count as f64;
            let cost = [parsed - start, lowered - parsed, processor_time() - lowered].map(of_one);
            println!("{count} {what}, microseconds of each: {cost:.2?} (to parse, lower and print)");
            cost
        };
        let [few, many] = [1250, 10_000];
        for (of_few, of_many) in cost(few).into_iter().zip(cost(many)) {
            assert!(of_many < (many / few) as f64 / 2.0 * of_few, "time of each of the {what}: {of_few}, {of_many}");
        }
    }
}

/// The same for bodies of Rust that are printed.
#[cfg(target_os = "linux")]
#[test]
fn printed_bodies_grow_with_what_is_in_them() {
    let signature = sig("f(x: Tensor([n], float32), g: Function)");
    let cost = |count: usize| {
        let kernel = Kernel::body(move |b| {
            let (x, mut last) = (b.tensor("x"), b.i64(0));
            for i in 0..count {
                b.call(b.param(1), (last,)).run();
                last = x.load([last]).cast(ScalarType::Int64) + i;
                // sizes that aren't used need no text
                let view = x.slice(0, 0, last);
                let _ = (view.size(0), view.ptr(), b.dim("n"));
                b.if_(last.gt(0), || x.store([last], x.load([last]) * 2.0));
            }
        });
        let start = processor_time();
        let text = tvm_ffi_codegen::HostProgram::of([(&signature, &kernel)]).unwrap().to_string();
        let cost = 1e6 * (processor_time() - start).as_secs_f64() / count as f64;
        println!("{count} calls, microseconds of each: {cost:.1}, {} bytes", text.len());
        cost
    };
    let (few, many) = (cost(500), cost(4000));
    assert!(many < 4.0 * few, "time of each: {few}, {many}");
}

/// A register allocator's time grows with the square of the number of jumps that pass values to one block.
#[test]
#[cfg(target_os = "linux")]
fn blocks_that_take_values_have_few_jumps() {
    const COUNT: usize = 2000;
    let of: [(&str, Write); 4] = [
        ("calls", |b, count| (0..count).for_each(|_| b.call_global("growth.id", [b.arg("n")]).run())),
        ("checks", |b, count| (0..count).for_each(|_| b.ensure(b.arg("n").gt(0), "ValueError", "n", ()))),
        ("calls beside a held value", |b, count| {
            b.call_global("growth.id", [b.arg("n")]).returns(ParamType::Any);
            (0..count).for_each(|_| b.call_global("growth.id", [b.arg("n")]).run());
        }),
        ("calls inside of a handler's attempt", |b, count| {
            b.try_(|| (0..count).for_each(|_| b.call_global("growth.id", [b.arg("n")]).run()), |_| {});
        }),
    ];
    for (what, write) in of {
        let kernel = Kernel::body(move |b| {
            write(b, COUNT);
            b.ret(1);
        });
        let lowered = lower(&sig("f(n: int64) -> int64"), &kernel, RuntimeHelpers::Import).unwrap();
        let mut jumps = std::collections::HashMap::new();
        for (name, function) in lowered.functions.iter().filter_map(|(name, decl)| Some((name, decl.body.as_ref()?))) {
            for block in function.blocks.values() {
                let passing = block.terminator.iter().flat_map(|end| end.targets()).filter(|to| !to.args.is_empty());
                passing.for_each(|to| *jumps.entry((name, to.block)).or_insert(0) += 1);
            }
        }
        let most = jumps.values().max().copied().unwrap_or_default();
        assert!((2..=300).contains(&most), "{what}: {most}");
    }
}
