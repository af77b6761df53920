//! The cost of a hit, over calling the function that it finds: of a dispatch table, and of generated functions with
//! variants.
//!
//! `cargo bench --bench dispatch` prints criterion's figures and then tables of medians.

#[path = "../support/mod.rs"]
mod support;
mod whole;

use std::ffi::c_void;

use criterion::Criterion;
use support::Samples;
use tvm_ffi_codegen::DLDataType;
use tvm_ffi_codegen::dispatch::DispatchTable;
use tvm_ffi_codegen::runtime::abi::TVMFFIAny;
use tvm_ffi_codegen::runtime::{Any, AnyView, Function, Str};
use whole::{Found, Result, call, whole};

const KEYS: [usize; 3] = [1, 3, 8];
const ENTRIES: [usize; 3] = [1, 16, 1000];

fn main() -> Result<()> {
    let mut criterion = Criterion::default().configure_from_args();
    let samples = Samples::default();
    // SAFETY: it accesses no memory.
    let empty = unsafe { Function::from_code(empty, ()) };
    let direct = "called directly";
    for keys in KEYS {
        let args = arguments(keys, 0);
        let raw: Vec<TVMFFIAny> = args.iter().map(|arg| *arg.as_raw()).collect();
        samples.batch(&mut criterion, &row(direct, keys), || call(&empty, &raw));
        for entries in ENTRIES {
            let (table, calls) = table(keys, entries, &empty)?;
            let mut next = 0;
            samples.batch(&mut criterion, &row(&format!("{entries}"), keys), || {
                next = if next + 1 == calls.len() { 0 } else { next + 1 };
                call(table.function(), &calls[next])
            });
        }
    }
    let text = Any::from(Str::new("a text of 24 characters."));
    let (table, _) = table(1, 16, &empty)?;
    table.insert((&text,), empty.clone())?;
    samples.batch(&mut criterion, "text", || call(table.function(), &[*text.as_raw()]));
    for (found, keys, variants, place) in generated() {
        let whole = whole(found, keys, variants, place == LIBRARY)?;
        let mut next = 0;
        samples.batch(&mut criterion, &generated_row(found, keys, variants, place), || {
            next = if next + 1 == whole.calls.len() { 0 } else { next + 1 };
            call(&whole.function, &whole.calls[next])
        });
    }
    criterion.final_summary();
    if !support::is_smoke() {
        println!("\nmedians, nanoseconds a hit beyond a call of the function, which takes calls in turn\n");
        println!("| keys | directly | 1 entry | 16 entries | 1,000 entries |\n|---|---|---|---|---|");
        for keys in KEYS {
            let base = samples.median(&row(direct, keys)).unwrap_or_default();
            let over = ENTRIES.map(|entries| {
                let all = samples.median(&row(&entries.to_string(), keys)).unwrap_or_default();
                format!("{:.1}", all - base)
            });
            println!("| {keys} | {base:.1} | {} |", over.join(" | "));
        }
        println!("\nwith a key of one text of 24 characters: {:.1} in all", samples.median("text").unwrap_or_default());
        println!("\ngenerated functions of two tensors: nanoseconds of a call\n");
        println!("| found | keys | variants | in this process | in a library |\n|---|---|---|---|---|");
        for (found, keys, variants, place) in generated() {
            let of = |place| samples.median(&generated_row(found, keys, variants, place)).unwrap_or_default();
            if place == LIBRARY {
                println!("| {} | {keys} | {variants} | {:.1} | {:.1} |", found.name(), of(JIT), of(LIBRARY));
            }
        }
    }
    Ok(())
}

const JIT: &str = "jit";
const LIBRARY: &str = "library";

/// The generated functions to measure: how a call finds its variant, the keys, the variants, and the place.
fn generated() -> impl Iterator<Item = (Found, usize, usize, &'static str)> {
    let sizes = |found| match found {
        Found::Directly => vec![(0, 1)],
        Found::ByRows | Found::InTable => vec![(1, 1), (1, 16), (1, 1000), (3, 1), (3, 16), (3, 1000), (8, 16)],
    };
    let rows = Found::ALL.into_iter().flat_map(move |found| sizes(found).into_iter().map(move |size| (found, size)));
    rows.flat_map(|(found, (keys, variants))| [JIT, LIBRARY].map(|place| (found, keys, variants, place)))
}

fn generated_row(found: Found, keys: usize, variants: usize, place: &str) -> String {
    format!("{}-{keys}-{variants}-{place}", found.name())
}

fn row(which: &str, keys: usize) -> String {
    format!("{keys} keys, {which}")
}

/// Key values as a compiler has them: a dtype, a truth value, and numbers; then one argument.
fn arguments(keys: usize, entry: usize) -> Vec<Any> {
    let mut args: Vec<Any> = match keys {
        1 => Vec::new(),
        _ => vec![DLDataType::FLOAT16.into(), entry.is_multiple_of(2).into()],
    };
    args.extend((args.len()..keys).map(|place| Any::from((entry / place.max(1)) as i64)));
    if keys > 2 {
        // at least one value tells all entries apart
        args[2] = (entry as i64).into();
    }
    args.push(7.into());
    args
}

/// A table with so many entries, and the arguments of a call for up to 64 of them.
fn table(keys: usize, entries: usize, function: &Function) -> Result<(DispatchTable, Vec<Vec<TVMFFIAny>>)> {
    let names = (0..keys).map(|key| format!("k{key}"));
    let on_miss = Function::from_packed(|_| Ok(Any::none()));
    let table = DispatchTable::new("table", names, on_miss, None)?;
    let mut calls: Vec<Vec<TVMFFIAny>> = Vec::new();
    for entry in 0..entries {
        let args = arguments(keys, entry);
        let views: Vec<AnyView<'_>> = args.iter().take(keys).map(Any::as_view).collect();
        table.insert(views.as_slice(), function.clone())?;
        if calls.len() < 64 {
            calls.push(args.iter().map(|arg| *arg.as_raw()).collect());
        }
    }
    // the thread's first call registers it
    if let Some(first) = calls.first() {
        call(table.function(), first);
    }
    Ok((table, calls))
}

unsafe extern "C" fn empty(_: *mut c_void, _: *const TVMFFIAny, _: i32, _: *mut TVMFFIAny) -> i32 {
    0
}
