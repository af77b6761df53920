//! Limits, and the layouts and constants of cuda.h that generated code writes. `tests/gpu/layouts.txt` repeats them for
//! a C compiler.

/// `CUlaunchConfig`. It also holds the arguments of HIP launches.
pub(in crate::lower) mod config {
    pub(in crate::lower) const SIZE: u32 = 56;
    pub(in crate::lower) const GRID: i32 = 0;
    pub(in crate::lower) const BLOCK: i32 = 12;
    pub(in crate::lower) const SHARED: i32 = 24;
    pub(in crate::lower) const STREAM: i32 = 32;
    pub(in crate::lower) const ATTRIBUTES: i32 = 40;
    pub(in crate::lower) const COUNT: i32 = 48;
    /// The number of the device, an `int32_t`, for hooks. These bytes are padding.
    pub(in crate::lower) const DEVICE: i32 = 52;
}

/// `CUlaunchAttribute`.
pub(in crate::lower) mod attribute {
    pub(in crate::lower) const SIZE: u32 = 72;
    pub(in crate::lower) const ID: i32 = 0;
    pub(in crate::lower) const VALUE: i32 = 8;
    pub(in crate::lower) const COOPERATIVE: i64 = 2;
    pub(in crate::lower) const CLUSTER: i64 = 4;
    pub(in crate::lower) const PROGRAMMATIC: i64 = 6;
    pub(in crate::lower) const PRIORITY: i64 = 8;
    pub(in crate::lower) const PREFERRED_CLUSTER: i64 = 11;
    pub(in crate::lower) const CLUSTER_SCHEDULING: i64 = 5;
    pub(in crate::lower) const SYNC_DOMAIN: i64 = 10;
    pub(in crate::lower) const COMPLETION_EVENT: i64 = 12;
    pub(in crate::lower) const CARVEOUT: i64 = 14;
    /// An entry that the driver skips.
    pub(in crate::lower) const IGNORE: i64 = 0;
    /// The offset of a completion event's flags; the event is at [`VALUE`].
    pub(in crate::lower) const EVENT_FLAGS: i32 = VALUE + 8;

    /// `CUclusterSchedulingPolicy`.
    pub(in crate::lower) mod cluster_policy {
        pub(in crate::lower) const SPREAD: i64 = 1;
        pub(in crate::lower) const LOAD_BALANCING: i64 = 2;
    }

    /// `CUlaunchMemSyncDomain`.
    pub(in crate::lower) mod sync_domain {
        pub(in crate::lower) const DEFAULT: i64 = 0;
        pub(in crate::lower) const REMOTE: i64 = 1;
    }
}

/// `CUDA_KERNEL_NODE_PARAMS` in the form of version 12.0.
pub(super) mod node_params {
    pub(in crate::lower::device_api) const SIZE: usize = 72;
    pub(in crate::lower::device_api) const FUNCTION: i32 = 0;
    /// The extents of grid and block and the shared memory lie as in a configuration.
    pub(in crate::lower::device_api) const GRID: i32 = 8;
    pub(in crate::lower::device_api) const BLOCK: i32 = 20;
    pub(in crate::lower::device_api) const SHARED: i32 = 32;
    pub(in crate::lower::device_api) const PARAMS: i32 = 40;
    pub(in crate::lower::device_api) const EXTRA: i32 = 48;
    pub(in crate::lower::device_api) const KERNEL: i32 = 56;
    pub(in crate::lower::device_api) const CONTEXT: i32 = 64;
}

/// The max number of devices of one kind that a library supports.
pub(in crate::lower) const MOST_DEVICES: i64 = 64;
/// The max blocks of a grid in x, y and z (CUDA C++ Programming Guide, table of technical specifications).
pub(in crate::lower) const MOST_BLOCKS: [i64; 3] = [(1 << 31) - 1, 65535, 65535];
/// The max threads of a block in x, y and z.
pub(in crate::lower) const MOST_THREADS: [i64; 3] = [1024, 1024, 64];
/// The max threads of a block in total.
pub(in crate::lower) const MOST_THREADS_OF_BLOCK: i64 = 1024;
/// The max blocks of a cluster. Above [`PORTABLE_CLUSTER`] the kernel has to allow it.
pub(in crate::lower) const MOST_BLOCKS_OF_CLUSTER: i64 = 16;
pub(in crate::lower) const PORTABLE_CLUSTER: i64 = 8;

#[cfg(test)]
mod tests {
    use super::super::api::CUDA;
    use super::{attribute, config, node_params};

    /// The fixture matches these constants; another test compares the fixture with cuda.h.
    #[test]
    fn the_table_has_what_is_written() {
        let table = include_str!("../../../tests/gpu/layouts.txt");
        let attributes = &CUDA.attributes;
        let facts = [
            ("sizeof CUlaunchConfig", i64::from(config::SIZE)),
            ("offsetof CUlaunchConfig gridDimX", config::GRID.into()),
            ("offsetof CUlaunchConfig blockDimX", config::BLOCK.into()),
            ("offsetof CUlaunchConfig sharedMemBytes", config::SHARED.into()),
            ("offsetof CUlaunchConfig hStream", config::STREAM.into()),
            ("offsetof CUlaunchConfig attrs", config::ATTRIBUTES.into()),
            ("offsetof CUlaunchConfig numAttrs", config::COUNT.into()),
            ("sizeof CUlaunchAttribute", attribute::SIZE.into()),
            ("offsetof CUlaunchAttribute id", attribute::ID.into()),
            ("offsetof CUlaunchAttribute value", attribute::VALUE.into()),
            ("sizeof CUDA_KERNEL_NODE_PARAMS", node_params::SIZE as i64),
            ("offsetof CUDA_KERNEL_NODE_PARAMS func", node_params::FUNCTION.into()),
            ("offsetof CUDA_KERNEL_NODE_PARAMS gridDimX", node_params::GRID.into()),
            ("offsetof CUDA_KERNEL_NODE_PARAMS blockDimX", node_params::BLOCK.into()),
            ("offsetof CUDA_KERNEL_NODE_PARAMS sharedMemBytes", node_params::SHARED.into()),
            ("offsetof CUDA_KERNEL_NODE_PARAMS kernelParams", node_params::PARAMS.into()),
            ("offsetof CUDA_KERNEL_NODE_PARAMS extra", node_params::EXTRA.into()),
            ("offsetof CUDA_KERNEL_NODE_PARAMS kern", node_params::KERNEL.into()),
            ("offsetof CUDA_KERNEL_NODE_PARAMS ctx", node_params::CONTEXT.into()),
            ("value CU_LAUNCH_ATTRIBUTE_COOPERATIVE", attribute::COOPERATIVE),
            ("value CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION", attribute::CLUSTER),
            ("value CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION", attribute::PROGRAMMATIC),
            ("value CU_LAUNCH_ATTRIBUTE_PRIORITY", attribute::PRIORITY),
            ("value CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION", attribute::PREFERRED_CLUSTER),
            ("value CU_LAUNCH_ATTRIBUTE_IGNORE", attribute::IGNORE),
            ("value CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE", attribute::CLUSTER_SCHEDULING),
            ("value CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN", attribute::SYNC_DOMAIN),
            ("value CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT", attribute::COMPLETION_EVENT),
            ("value CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT", attribute::CARVEOUT),
            ("offsetof CUlaunchAttribute value.launchCompletionEvent.flags", attribute::EVENT_FLAGS.into()),
            ("value CU_CLUSTER_SCHEDULING_POLICY_SPREAD", attribute::cluster_policy::SPREAD),
            ("value CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING", attribute::cluster_policy::LOAD_BALANCING),
            ("value CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT", attribute::sync_domain::DEFAULT),
            ("value CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE", attribute::sync_domain::REMOTE),
            ("value CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK", attributes.block[0].into()),
            ("value CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X", attributes.block[1].into()),
            ("value CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y", attributes.block[2].into()),
            ("value CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z", attributes.block[3].into()),
            ("value CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR", attributes.capability[0].into()),
            ("value CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR", attributes.capability[1].into()),
            ("value CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN", attributes.shared.into()),
            ("value CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES", CUDA.kernel_shared.map_or(-1, |shared| shared.own.into())),
            (
                "value CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES",
                CUDA.kernel_shared.map_or(-1, |shared| shared.max.into()),
            ),
            (
                "value CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED",
                CUDA.non_portable_cluster.map_or(-1, i64::from),
            ),
        ];
        for (fact, number) in facts {
            let line = format!("{fact} {number}");
            assert!(table.lines().any(|stated| stated == line), "{line}");
        }
    }
}
