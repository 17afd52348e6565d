//! Size of a synthetic fleet, and the interval of its profiles.

/// Seconds between two profiles of a pod.
pub const TICK_SECONDS: i64 = 15;

/// Numbers of services, pods and stacks of a fleet.
#[derive(Debug, Clone, Copy)]
pub struct FleetShape {
    /// Number of services in the fleet.
    pub services: usize,
    /// Number of pods of each service.
    pub pods: usize,
    /// Number of distinct call paths in the CPU profiles of a service.
    pub cpu_stacks: usize,
    /// Number of allocation sites of a service.
    pub heap_sites: usize,
    /// Mean CPU use of a pod, in cores.
    pub cores: f64,
}

impl Default for FleetShape {
    /// 20 services with 3 pods each. One hour of CPU and heap profiles is 28,800 profiles: about 1.8 GB of pprof, 0.77
    /// GB after gzip.
    fn default() -> Self {
        Self {
            services: 20,
            pods: 3,
            cpu_stacks: 900,
            heap_sites: 260,
            cores: 0.35,
        }
    }
}
