//! Graphs of a body's launches: each launch is noted in the frame, and the end of the graph launches all of them.

use super::super::device_api::{Api, Graph};
use super::super::unit::ModulePool;
use super::graph_sequence::GraphSequence;
use super::{Failure, ModuleParts};
use crate::ir::{FunctionBuilder, StackSlot, Type};
use crate::spec::{Dim, KernelArg, Launch, Signature};

/// Why a launch can't be part of a graph, for each of its parts.
pub(in crate::lower) fn problems(launch: &Launch) -> Vec<String> {
    let mut problems = Vec::new();
    // cuda.h calls these valid for launches alone
    let alone = [
        (launch.flags().programmatic_dependent_launch, "programmatic_dependent_launch"),
        (launch.stated_shared_memory_carveout().is_some(), "shared_memory_carveout"),
        (launch.stated_completion_event().is_some(), "completion_event"),
    ];
    for (_, name) in alone.into_iter().filter(|(is_stated, _)| *is_stated) {
        problems.push(format!("states {name}, which the kernels of a graph don't have"));
    }
    let clusters = [("cluster", launch.cluster_extents()), ("preferred_cluster", launch.preferred_cluster_extents())];
    for (part, extents) in clusters {
        if let Some(extent) = extents.iter().find(|extent| !matches!(extent, Dim::Const(_))) {
            problems.push(format!("has {part} = {extent} in a graph, which keeps its clusters; expected constants"));
        }
    }
    if !launch.globals().is_empty() {
        let why = "whose kernels run only after all values are written";
        problems.push(format!("writes global variables in a graph, {why}"));
    }
    if launch.stated_args().unwrap_or_default().iter().any(|arg| matches!(arg, KernelArg::Scratch { .. })) {
        let why = "whose kernels run only after it is released";
        problems.push(format!("passes scratch memory in a graph, {why}; allocate it before the graph"));
    }
    problems
}

/// A graph of a module, ready for the code that launches it.
pub(in crate::lower) struct PreparedGraph {
    graph: Graph,
    /// The offset of `Cannot launch a graph ...` in the constant pool, a C string.
    caller: u32,
}

/// Adds a graph to a module. `entries` are the kernels of its launches, in order. `called` is the printed signature.
pub(in crate::lower) fn prepare(
    into: ModuleParts<'_>,
    api: &'static Api,
    entries: &[String],
    signature: &Signature,
    called: &str,
) -> PreparedGraph {
    let ModuleParts { module, pool, drivers, launches, .. } = into;
    if let Some(sequences) = &mut launches.sequences {
        sequences.push(GraphSequence { api, entries, signature }.to_string());
    }
    let count = u32::try_from(entries.len()).unwrap_or(u32::MAX);
    let graph = drivers.graph(module, &mut pool.constants, pool.data, (api, count));
    let caller = pool.constants.text(&format!("Cannot launch a graph when calling: `{called}`"));
    PreparedGraph { graph, caller }
}

/// Emits the launch of the shots in a slot; the code continues after it if it succeeds.
pub(in crate::lower) fn emit(
    b: &mut FunctionBuilder<'_>,
    pool: &ModulePool,
    prepared: &PreparedGraph,
    slot: StackSlot,
) -> Failure {
    let block = b.cold_block();
    let code = b.block_param(block, Type::I32);
    b.structured(|c| prepared.graph.launch(c.stack_addr(slot), (pool.data, prepared.caller), block));
    Failure { block, code }
}
