//! Project tasks: `cargo xtask test` runs everything that CI runs; `soak` and `bench` take longer.

mod beside;
mod book;
mod byte_order;
mod callgrind;
mod calls_cost;
mod command;
mod compiler;
mod debugging;
mod dependencies;
mod difference;
mod dispatch_cost;
mod faults;
mod fuzz;
mod hosts;
mod launches_cost;
mod layers;
mod llvm_functions;
mod page;
mod payload;
mod peers;
mod platforms;
mod python;
mod quickstart;
mod release;
mod run;
mod runtime_cost;
mod steps;
mod struct_args;
mod tools;
#[cfg(test)]
mod twins;
mod upstream;
mod watchdog;
mod wine;
mod with_llvm;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "Tasks of this repository")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Runs every check; stops at the first that fails. Some run beside the others.
    Test {
        /// Runs only this step; you can repeat the option.
        #[arg(long, value_name = "STEP")]
        only: Vec<String>,
        /// Lists the steps without running them.
        #[arg(long)]
        list: bool,
        /// Rewrites the files that the step compares with, and prints the changes. For the step `objects`.
        #[arg(long, requires = "only")]
        bless: bool,
    },
    /// Runs the long soaks: 100,000 compilations on one engine, two threads, LLVM, longer runs under valgrind, a module
    /// of 2 GiB.
    Soak {
        /// Runs only this step; you can repeat the option.
        #[arg(long, value_name = "STEP")]
        only: Vec<String>,
    },
    /// Makes the files of a release in `target/release-files`, and tests them. Nothing is published.
    Release {
        /// Runs only this step; you can repeat the option.
        #[arg(long, value_name = "STEP")]
        only: Vec<String>,
    },
    /// Builds the book into `target/book`, after writing its generated parts anew.
    Book,
    /// Runs the tests of launches on the machine's GPUs, with its own driver.
    Gpu,
    /// Runs a fuzz target, after its committed inputs.
    Fuzz {
        /// The target's name, as in `fuzz/fuzz_targets`.
        target: String,
        /// The number of minutes of generated inputs.
        #[arg(long, default_value_t = 1)]
        minutes: u64,
        /// The number of processes, which share the inputs that they find.
        #[arg(long, default_value_t = 1)]
        jobs: u32,
    },
    /// Runs benchmarks, and prints their tables.
    Bench {
        /// Runs only this step; you can repeat the option.
        #[arg(long, value_name = "STEP")]
        only: Vec<String>,
    },
}

fn main() -> ExitCode {
    match Cli::parse().task {
        Task::Test { list: true, .. } => run::list(steps::TEST),
        Task::Test { only, bless: true, .. } => run::run("test --bless", steps::BLESS, &[], &only),
        Task::Test { only, .. } => run::run("test", steps::TEST, steps::BESIDE, &only),
        Task::Soak { only } => run::run("soak", steps::SOAK, &[], &only),
        Task::Release { only } => run::run("release", steps::RELEASE, &[], &only),
        Task::Book => book::task(),
        Task::Gpu => run::run("gpu", steps::GPU, &[], &[]),
        Task::Fuzz { target, minutes, jobs } => fuzz::task(&target, minutes, jobs),
        Task::Bench { only } => run::run("bench", steps::BENCH, &[], &only),
    }
}
