//! Graphs of launches: the launches of a block go out together, as a graph of the driver.
//!
//! The code of the block notes each launch in the frame. So the block has launches, conditions and values alone: no
//! other operation could keep its place among the launches, or what a launch uses could end before the block.

use super::builder::Body;
use super::expr::Ops;
use super::function::BodyLowerer;
use crate::ir::{Block, StackSlot};
use crate::lower::device_api::Api;
use crate::lower::encode::{Subject, shown};
use crate::lower::launch::LaunchSpec;
use crate::lower::launch::graph::{self, Shot};

/// A graph under construction.
#[derive(Debug)]
pub(super) struct OpenGraph {
    /// Where the launches are noted.
    slot: StackSlot,
    /// The block that clears them, which goes on to `start`. It is written at the end, when their number is known.
    clear: Block,
    start: Block,
    /// Whether a launch was stated, also one with an error.
    has_launch: bool,
    /// The kernels of the launches so far.
    entries: Vec<String>,
    /// The API of the first launch, and the stream that it states.
    first: Option<(&'static Api, Option<String>)>,
}

impl Body<'_> {
    /// Launches all launches of `launches` as a graph of the driver. The graph is built at its first use on a device. Later
    /// uses update the parameters of its kernels and launch it as a whole.
    ///
    /// The results are those of launches in order. The kernels run in the order of the launches, also those under
    /// conditions, on one stream. The launches go out singly where a graph isn't possible: while the stream is captured,
    /// while another thread launches the same graph, on HIP, and with a driver that lacks graphs. If anything fails before
    /// the end of `launches`, nothing is launched.
    ///
    /// Inside `launches` only launches, conditions and values are possible. Allocate tensors before the graph. A launch
    /// must not pass scratch memory or state `programmatic_dependent_launch`, and its clusters must be constants.
    ///
    /// ```
    /// use tvm_ffi_codegen::spec::{KernelArg, Launch};
    /// use tvm_ffi_codegen::{Kernel, dim};
    /// # let images: Vec<tvm_ffi_codegen::image::Image> = Vec::new();
    ///
    /// // step(x: Tensor([n], float32, device="cuda"), y: Tensor([n], float32, device="cuda"), relu: bool)
    /// let step = Kernel::body(move |b| {
    ///     let args = ["x", "y"].map(|name| KernelArg::Param(name.to_owned()));
    ///     let launch = |entry| Launch::new(entry).grid([(dim("n") + 127) / 128]).block([128]).args(args.clone());
    ///     b.graph(|| {
    ///         b.launch(launch("scale"), images.clone());
    ///         b.if_(b.arg("relu"), || b.launch(launch("relu"), images.clone()));
    ///     });
    /// });
    /// # let _ = step;
    /// ```
    pub fn graph(&self, launches: impl FnOnce()) {
        self.is_in_graph("graph");
        let text = self.state.borrow().text.clone();
        let outer = self.emit(|l| {
            let open = l.open_graph();
            l.graph.replace(open)
        });
        self.inside(launches);
        self.record(|recorder| recorder.graph());
        let graph = self.emit(|l| std::mem::replace(&mut l.graph, outer));
        // the statements of the block have moved the place
        self.state.borrow_mut().text = text;
        let Some(graph) = graph else { return };
        if !graph.has_launch {
            self.error("graph", "has no launch");
        }
        self.emit(|l| l.close_graph(&graph));
    }

    /// Whether an operation is inside a graph, where it isn't possible; records an error then.
    pub(super) fn is_in_graph(&self, operation: &str) -> bool {
        let ops: &dyn Ops = self;
        ops.is_in_graph(operation)
    }

    /// Why a launch can't be part of the open graph, if there is one.
    pub(super) fn graph_problems(&self, spec: &LaunchSpec) -> Vec<String> {
        self.emit(|l| {
            let Some(open) = &mut l.graph else { return Vec::new() };
            open.has_launch = true;
            let Some(api) = spec.api() else { return Vec::new() };
            let mut problems = graph::problems(&spec.launch);
            let stream = spec.launch.stated_stream();
            let (first_api, first_stream) = open.first.get_or_insert_with(|| (api, stream.map(str::to_owned)));
            if !std::ptr::eq(*first_api, api) {
                problems
                    .push(format!("is for {}, and a launch before it in the graph for {}", api.shown, first_api.shown));
            }
            if first_stream.as_deref() != stream {
                let shown = |stream: Option<&str>| match stream {
                    Some(name) => format!("stream={name}"),
                    None => "no stream".to_owned(),
                };
                let (this, first) = (shown(stream), shown(first_stream.as_deref()));
                problems.push(format!("states {this}, and a launch before it in the graph {first}"));
            }
            problems
        })
    }
}

impl dyn Ops + '_ {
    /// Whether an operation is inside a graph, where it isn't possible; records an error then.
    pub(super) fn is_in_graph(&self, operation: &str) -> bool {
        let is_inside = self.emit(|l| l.graph.is_some());
        if is_inside {
            let problem = "isn't possible inside a graph, which has launches, conditions and values alone";
            self.note(operation, problem.to_owned());
        }
        is_inside
    }
}

impl BodyLowerer<'_> {
    /// Begins a graph.
    fn open_graph(&mut self) -> OpenGraph {
        let slot = graph::slot(&mut self.b);
        let (clear, start) = (self.b.block(), self.b.block());
        self.b.jump(clear, &[]);
        self.b.switch_to(start);
        OpenGraph { slot, clear, start, has_launch: false, entries: Vec::new(), first: None }
    }

    /// The place of a launch in the open graph, if there is one.
    pub(super) fn next_shot(&mut self, spec: &LaunchSpec) -> Option<Shot> {
        let open = self.graph.as_mut()?;
        let number = u32::try_from(open.entries.len()).unwrap_or(u32::MAX);
        open.entries.push(spec.launch.entry().to_owned());
        Some(Shot::next(&mut self.b, open.slot, number))
    }

    /// Ends a graph: launches what its block has noted.
    fn close_graph(&mut self, open: &OpenGraph) {
        let OpenGraph { slot, clear, start, entries, first, .. } = open;
        let here = self.b.current();
        self.b.switch_to(*clear);
        graph::clear(&mut self.b, *slot, u32::try_from(entries.len()).unwrap_or(u32::MAX));
        self.b.jump(*start, &[]);
        self.b.switch_to(here);
        // without a launch, an error is recorded
        let Some((api, _)) = first else { return };
        let (signature, called) = (self.signature, shown(self.signature, Subject::Call));
        let prepared = graph::prepare(self.module_parts(), api, entries, signature, &called);
        let failure = graph::emit(&mut self.b, self.pool, &prepared, *slot);
        self.fail_by(&failure);
    }
}
