//! The cost of a call of a function with variants, in instructions.

use crate::callgrind;
use crate::command::{Tests, cargo, target_folder};
use crate::run::Failure;

/// How variants are found, the number of keys, and the number of variants.
const ROWS: [(&str, &str); 8] = [
    ("rows", "1-1"),
    ("rows", "3-16"),
    ("rows", "3-1000"),
    ("rows", "8-16"),
    ("table", "1-1"),
    ("table", "3-16"),
    ("table", "3-1000"),
    ("table", "8-16"),
];

/// The table: instructions of one call, counted with callgrind, beside a call of the variant itself.
pub fn table() -> Result<Tests, Failure> {
    cargo(&["build", "--release", "--example", "dispatch_calls"]).run()?;
    let example = target_folder().join("release/examples/dispatch_calls").display().to_string();
    let count = |which: &str| callgrind::per_call(&example, which, |valgrind| valgrind);
    let direct = [count("direct-0-1-jit")?, count("direct-0-1-library")?];
    println!("\n| found by | keys-variants | in this process | more | in a library | more |");
    println!("| --- | --- | ---: | ---: | ---: | ---: |");
    println!("| itself | | {:.0} | | {:.0} | |", direct[0], direct[1]);
    for (found, size) in ROWS {
        let [jit, library] = ["jit", "library"].map(|place| count(&format!("{found}-{size}-{place}")));
        let (jit, library) = (jit?, library?);
        println!(
            "| {found} | {size} | {jit:.0} | {:.0} | {library:.0} | {:.0} |",
            jit - direct[0],
            library - direct[1]
        );
    }
    Ok(Tests::default())
}
