//! The driver calls of a graph, printed for people.

use std::fmt::{self, Display, Formatter};

use super::super::device_api::{Api, Call};
use super::sequence::around;
use crate::spec::Signature;

/// A graph of a function. `Display` prints the sequence of driver calls that follows those of its launches.
pub(super) struct GraphSequence<'a> {
    pub api: &'static Api,
    /// The kernels of the launches, in order.
    pub entries: &'a [String],
    pub signature: &'a Signature,
}

impl Display for GraphSequence<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let GraphSequence { api, entries, signature } = self;
        let name = |call: Call| api.function_name(call);
        writeln!(f, "{signature} @ graph of {}", entries.join(", "))?;
        let [current, enter, leave] = around(api);
        if !api.has_graphs() {
            writeln!(f, "\neach call, for each launch that has happened:")?;
            writeln!(f, "  {}", name(Call::Launch))?;
            return writeln!(
                f,
                "    {current} before, and {enter} before and {leave} behind the launch where another device is current"
            );
        }
        writeln!(f, "\neach call, in the device's context, where a launch has happened:")?;
        writeln!(
            f,
            "  {current} before, and {enter} before and {leave} behind the calls where another context than the \
             device's is current"
        )?;
        writeln!(f, "  {}: the launches go out singly where the stream is captured", name(Call::IsCapturing))?;
        writeln!(f, "  once for each device, and for each launch that happens there for the first time:")?;
        writeln!(f, "    {}: once for each device", name(Call::GraphCreate))?;
        writeln!(f, "    {}: behind the launch before it", name(Call::GraphAddKernel))?;
        writeln!(f, "    {}: before the launch behind it, if that is there", name(Call::GraphAddEdges))?;
        writeln!(f, "    {}: for each attribute", name(Call::GraphSetAttribute))?;
        writeln!(f, "    {}: the one before", name(Call::GraphDestroyExec))?;
        writeln!(f, "    {}", name(Call::GraphInstantiate))?;
        writeln!(f, "  for each launch that has happened on the device:")?;
        writeln!(f, "    {}: if it happens", name(Call::GraphSetParams))?;
        writeln!(
            f,
            "    {}: if it happens and didn't the last time, or the other way round",
            name(Call::GraphSetEnabled)
        )?;
        writeln!(f, "  {}", name(Call::GraphLaunch))?;
        writeln!(f, "\nthe launches go out singly, each by {}, too:", name(Call::Launch))?;
        writeln!(f, "  while another thread launches the graph")?;
        writeln!(f, "  where they are on two devices")?;
        writeln!(f, "  where the driver lacks one of these functions")
    }
}
