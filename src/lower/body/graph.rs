//! Graphs of launches: the launches of a block go out together, as a graph of the driver.
//!
//! The code of the block notes each launch in the frame, and the end of the block launches all of them. So the block
//! has launches, conditions and values alone: other operations would run before the launches that stand before them,
//! skip them, or release what they use.

use super::builder::Body;
use super::expr::Ops;
use super::function::BodyLowerer;
use super::open_graph::OpenGraph;
use crate::lower::encode::{Subject, shown};
use crate::lower::launch::LaunchSpec;
use crate::lower::launch::graph;
use crate::lower::launch::shot::Shot;

impl Body<'_> {
    /// Launches all launches of `launches` as a graph of the driver. The first use on a device builds the graph. Later
    /// uses update the parameters of its kernels and launch it as a whole.
    ///
    /// The results are those of launches in order, on one stream. The launches go out singly if a graph isn't possible:
    /// while the stream is captured, while another thread launches the same graph, on HIP, and with a driver that lacks
    /// graphs. If anything fails before the end of `launches`, nothing is launched.
    ///
    /// Inside `launches` only launches, conditions and values are possible. Allocate tensors before the graph. A launch
    /// must not pass scratch memory, write global variables, or state `programmatic_dependent_launch`,
    /// `shared_memory_carveout` or `completion_event`. Its clusters must be constants.
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
        let (text, errors) = {
            let state = self.state.borrow();
            (state.text.clone(), state.errors.len())
        };
        let outer = self.emit(|l| {
            let open = OpenGraph::new(&mut l.b);
            l.graph.replace(open)
        });
        self.inside(launches);
        self.record(|recorder| recorder.graph());
        let graph = self.emit(|l| std::mem::replace(&mut l.graph, outer));
        // the statements of the block have moved the place
        self.state.borrow_mut().text = text;
        let Some(graph) = graph else { return };
        if graph.entries.is_empty() && self.state.borrow().errors.len() == errors {
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
    /// The place of a launch in the open graph, if there is one.
    pub(super) fn next_shot(&mut self, spec: &LaunchSpec) -> Option<Shot> {
        self.graph.as_mut().map(|open| open.next_shot(&mut self.b, spec.launch.entry()))
    }

    /// Ends a graph: launches what its block has noted.
    fn close_graph(&mut self, open: &OpenGraph) {
        open.close(&mut self.b);
        // without a launch, an error is recorded
        let Some((api, _)) = &open.first else { return };
        let (signature, called) = (self.signature, shown(self.signature, Subject::Call));
        let prepared = graph::prepare(self.module_parts(), api, &open.entries, signature, &called);
        let failure = graph::emit(&mut self.b, self.pool, &prepared, open.slot);
        self.fail_by(&failure);
    }
}
