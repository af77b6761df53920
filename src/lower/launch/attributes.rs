//! The attributes that a launch states: each one's id, its value, and the driver version that has it.

use std::fmt::{self, Display, Formatter};

use super::super::device_api::attribute::{self, cluster_policy, sync_domain};
use crate::spec::{ClusterScheduling, Dim, Launch, MemorySyncDomain};

/// An attribute that a launch states. `Display` writes it as the text form of launches does, except for extents.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Attribute<'l> {
    /// The name in the text form of launches.
    pub name: &'static str,
    /// The id in cuda.h.
    pub id: i64,
    pub value: AttributeValue<'l>,
    /// The min driver version that has the attribute: 12050 for 12.5; 0 if all supported drivers have it.
    pub version: u32,
}

/// The value of an attribute.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum AttributeValue<'l> {
    Extents(&'l [Dim]),
    Flag,
    Number(i64),
    /// A number with a word for it.
    Word(i64, &'static str),
    /// The name of a parameter that is an event.
    Event(&'l str),
}

impl Display for Attribute<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        match self.value {
            AttributeValue::Extents(_) | AttributeValue::Flag => Ok(()),
            AttributeValue::Number(number) => write!(f, "={number}"),
            AttributeValue::Word(_, word) | AttributeValue::Event(word) => write!(f, "={word}"),
        }
    }
}

/// The attributes that a launch states. A cluster is the first one, because messages read it there.
pub(super) fn stated(launch: &Launch) -> Vec<Attribute<'_>> {
    use AttributeValue::{Event, Extents, Flag, Number, Word};
    let extents = |extents| Some(Extents(extents)).filter(|value| *value != Extents(&[]));
    let flags = launch.flags();
    let flag = |stated: bool| stated.then_some(Flag);
    let policy = |policy: ClusterScheduling| match policy {
        ClusterScheduling::Spread => cluster_policy::SPREAD,
        ClusterScheduling::LoadBalancing => cluster_policy::LOAD_BALANCING,
    };
    let domain = |domain: MemorySyncDomain| match domain {
        MemorySyncDomain::Default => sync_domain::DEFAULT,
        MemorySyncDomain::Remote => sync_domain::REMOTE,
    };
    let number = |number: i64| Some(Number(number));
    let all = [
        ("cluster", attribute::CLUSTER, 0, extents(launch.cluster_extents())),
        ("preferred_cluster", attribute::PREFERRED_CLUSTER, 12080, extents(launch.preferred_cluster_extents())),
        ("cooperative", attribute::COOPERATIVE, 0, flag(flags.cooperative)),
        ("programmatic_dependent_launch", attribute::PROGRAMMATIC, 0, flag(flags.programmatic_dependent_launch)),
        ("priority", attribute::PRIORITY, 0, launch.stated_priority().map(i64::from).and_then(number)),
        (
            "cluster_scheduling",
            attribute::CLUSTER_SCHEDULING,
            0,
            launch.stated_cluster_scheduling().map(|stated| Word(policy(stated), stated.word())),
        ),
        (
            "memory_sync_domain",
            attribute::SYNC_DOMAIN,
            0,
            launch.stated_memory_sync_domain().map(|stated| Word(domain(stated), stated.word())),
        ),
        (
            "shared_memory_carveout",
            attribute::CARVEOUT,
            12050,
            launch.stated_shared_memory_carveout().map(i64::from).and_then(number),
        ),
        ("completion_event", attribute::COMPLETION_EVENT, 12030, launch.stated_completion_event().map(Event)),
    ];
    let stated =
        |(name, id, version, value): (_, _, _, Option<_>)| Some(Attribute { name, id, value: value?, version });
    all.into_iter().filter_map(stated).collect()
}

/// The min driver version that has all attributes of a launch; 0 if all supported drivers have them.
pub(super) fn version(launch: &Launch) -> u32 {
    stated(launch).iter().map(|attribute| attribute.version).max().unwrap_or(0)
}
