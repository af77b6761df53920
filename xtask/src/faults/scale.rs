//! Large numbers of everything: the CPU time of one thing must not grow with their number.

use super::{RELEASE, Result, built, failure};
use crate::command::{Tests, cmd};

/// The names of the steps, each with the small and the large number of things that it makes.
const SIZES: &[(&str, [u64; 2])] = &[
    ("wrappers", [10_000, 100_000]),
    ("library", [10_000, 100_000]),
    ("params", [50, 500]),
    ("functions", [10_000, 100_000]),
    ("lines", [10_000, 100_000]),
    ("engines", [1000, 10_000]),
];
/// The maximum growth of the CPU time of one thing when there are ten times as many. With quadratic time it would be
/// 10. One function of 100,000 lines takes Cranelift's register allocator 4 times as long for each line.
const MAX_GROWTH: f64 = 6.0;
/// Shorter steps are not compared, in seconds: their time is mostly that of what they begin with.
const LEAST: f64 = 0.05;
/// The maximum growth of memory in KiB while 10,000 engines come and go, and while threads call.
const MAX_MEMORY: i64 = 4096;
/// The seconds of calls, if `XTASK_SCALE_SECONDS` states no others.
const SECONDS: &str = "600";

/// The step whose seconds are bytes of an object.
const BYTES: &str = "bytes";

/// A line that the program prints.
struct Step {
    name: String,
    count: f64,
    seconds: f64,
    memory_kib: i64,
}

fn run(program: &str, what: &str, count: &str) -> Result<Vec<Step>> {
    let printed = cmd(program, &[what, count]).env("TVM_FFI_BACKTRACE", "0").run()?.stdout;
    let step = |line: &str| {
        let [name, count, seconds, memory] = line.split(' ').collect::<Vec<_>>()[..] else { return None };
        let (count, seconds) = (count.parse().ok()?, seconds.parse().ok()?);
        Some(Step { name: name.to_owned(), count, seconds, memory_kib: memory.parse().ok()? })
    };
    Ok(printed.lines().filter_map(step).collect())
}

pub fn scale() -> Result {
    let program = built("scale", RELEASE)?;
    let (mut rows, mut problems) = (Vec::new(), Vec::new());
    for (what, sizes) in SIZES {
        let [few, many] = sizes.map(|count| run(&program, what, &count.to_string()));
        for (few, many) in few?.iter().zip(many?) {
            let [of_few, of_many] = [few, &many].map(|step| step.seconds / step.count);
            let (name, count, memory) = (&many.name, many.count, many.memory_kib);
            let compared = few.seconds >= LEAST;
            let growth = of_many / of_few;
            let times = if compared { format!("{growth:>5.2} times") } else { format!("{:>11}", "short") };
            rows.push(if *name == BYTES {
                format!("{what:<10} {name:<10} {of_few:>9.0} {of_many:>9.0} each,    {times}")
            } else {
                format!(
                    "{what:<10} {name:<10} {:>9.2} {:>9.2} us each, {times}; {count:>7} take {:>8.2} s, {memory:>8} \
                     KiB",
                    1e6 * of_few,
                    1e6 * of_many,
                    many.seconds
                )
            });
            if compared && growth > MAX_GROWTH {
                problems.push(format!("{what}, {name}: {growth:.1} times the time of each"));
            }
            if *what == "engines" && memory > MAX_MEMORY {
                problems.push(format!("{what}: memory grows by {memory} KiB"));
            }
        }
    }
    let seconds = std::env::var("XTASK_SCALE_SECONDS").unwrap_or_else(|_| SECONDS.to_owned());
    for calls in run(&program, "calls", &seconds)? {
        if calls.memory_kib > MAX_MEMORY {
            problems.push(format!("calls: memory grows by {} KiB", calls.memory_kib));
        }
    }
    println!("\nCPU time of one thing among few and among many:");
    rows.iter().for_each(|row| println!("{row}"));
    match problems.is_empty() {
        true => Ok(Tests { passed: rows.len() as u64 + 1, ..Tests::default() }),
        false => Err(failure(problems.join("; "))),
    }
}
