//! Metrics of the process itself, read from `/proc/self` at every scrape.
//!
//! Out: `process_*` metrics with the names that every Prometheus client library uses, the memory of the allocator, and
//! the version. If a value cannot be read, for example without `/proc`, its metric is omitted; nothing here fails. This
//! module does not depend on profiles.

use std::fmt;
use std::fs;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::info::Info;

/// Ticks per second in `/proc/PID/stat`: USER_HZ, which is 100 in every Linux ABI for which the program is built.
const TICKS_PER_SECOND: f64 = 100.0;

/// Reads the metrics of this process at every scrape.
#[derive(Debug)]
pub struct ProcessMetrics {
    start_time: Option<f64>,
}

impl Default for ProcessMetrics {
    fn default() -> Self {
        Self::new()
    }
}

impl ProcessMetrics {
    /// Creates the collector for `Scope::register_collector` of the root scope.
    pub fn new() -> Self {
        Self {
            start_time: start_time(),
        }
    }
}

impl Collector for ProcessMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        if let Some(seconds) = cpu_seconds() {
            let counter = ConstCounter::new(seconds);
            let name = "process_cpu_seconds";
            let help = "Total user and system CPU time spent in seconds.";
            counter.encode(encoder.encode_descriptor(name, help, None, counter.metric_type())?)?;
        }
        let (allocated, resident) = allocator();
        let gauges = [
            (
                "process_resident_memory_bytes",
                "Resident memory size in bytes.",
                status_kib("VmRSS:"),
            ),
            (
                "process_virtual_memory_bytes",
                "Virtual memory size in bytes.",
                status_kib("VmSize:"),
            ),
            (
                "process_start_time_seconds",
                "Start time of the process since unix epoch in seconds.",
                self.start_time,
            ),
            ("process_open_fds", "Number of open file descriptors.", open_fds()),
            ("process_max_fds", "Maximum number of open file descriptors.", max_fds()),
            ("process_threads", "Number of threads.", status_number("Threads:")),
            (
                "alluvium_allocator_allocated_bytes",
                "Bytes that the program has allocated.",
                allocated,
            ),
            (
                "alluvium_allocator_resident_bytes",
                "Bytes of resident memory that the allocator holds.",
                resident,
            ),
        ];
        for (name, help, value) in gauges {
            if let Some(value) = value {
                let gauge = ConstGauge::new(value);
                gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
            }
        }
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        let help = "The version of this program.";
        build.encode(encoder.encode_descriptor("alluvium_build", help, None, build.metric_type())?)
    }
}

/// Metrics of the process and of the machine's network traffic under Alloy's names, for existing alerts on Alloy.
#[derive(Debug)]
pub struct ResourceMetrics {
    start_time: Option<f64>,
}

impl Default for ResourceMetrics {
    fn default() -> Self {
        Self::new()
    }
}

impl ResourceMetrics {
    /// Creates the collector for `Scope::register_collector` of the root scope.
    pub fn new() -> Self {
        Self {
            start_time: start_time(),
        }
    }
}

impl Collector for ResourceMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let (received, sent) = traffic().unzip();
        let counters = [
            (
                "alloy_resources_process_cpu_seconds",
                "Total user and system CPU time spent in seconds.",
                cpu_seconds(),
            ),
            (
                "alloy_resources_machine_rx_bytes",
                "Bytes that the machine has received over all network interfaces.",
                received,
            ),
            (
                "alloy_resources_machine_tx_bytes",
                "Bytes that the machine has sent over all network interfaces.",
                sent,
            ),
        ];
        for (name, help, value) in counters {
            if let Some(value) = value {
                let counter = ConstCounter::new(value);
                counter.encode(encoder.encode_descriptor(name, help, None, counter.metric_type())?)?;
            }
        }
        let gauges = [
            (
                "alloy_resources_process_resident_memory_bytes",
                "Resident memory size in bytes.",
                status_kib("VmRSS:"),
            ),
            (
                "alloy_resources_process_virtual_memory_bytes",
                "Virtual memory size in bytes.",
                status_kib("VmSize:"),
            ),
            (
                "alloy_resources_process_start_time_seconds",
                "Start time of the process since unix epoch in seconds.",
                self.start_time,
            ),
        ];
        for (name, help, value) in gauges {
            if let Some(value) = value {
                let gauge = ConstGauge::new(value);
                gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
            }
        }
        Ok(())
    }
}

/// Returns the number of bytes received and sent over all interfaces.
fn traffic() -> Option<(f64, f64)> {
    let text = fs::read_to_string("/proc/net/dev").ok()?;
    let mut sums = (0.0, 0.0);
    // Two heading lines precede a line for each interface: the name, eight numbers for receiving and eight for sending.
    for line in text.lines().skip(2) {
        let (_, numbers) = line.split_once(':')?;
        let mut numbers = numbers.split_whitespace();
        sums.0 += numbers.next()?.parse::<f64>().ok()?;
        sums.1 += numbers.nth(7)?.parse::<f64>().ok()?;
    }
    Some(sums)
}

/// Returns the CPU time of all threads, running and ended, in seconds.
pub fn cpu_seconds() -> Option<f64> {
    let fields = stat_fields()?;
    // proc(5): utime and stime are fields 14 and 15. The first two fields have been removed.
    let ticks: u64 = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some(ticks as f64 / TICKS_PER_SECOND)
}

/// Returns the fields of `/proc/self/stat` after the command name, which may contain spaces and parentheses.
fn stat_fields() -> Option<Vec<String>> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    Some(rest.split_whitespace().map(str::to_owned).collect())
}

fn start_time() -> Option<f64> {
    let since_boot: u64 = stat_fields()?.get(19)?.parse().ok()?;
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let boot: f64 = stat
        .lines()
        .find_map(|line| line.strip_prefix("btime "))?
        .parse()
        .ok()?;
    Some(boot + since_boot as f64 / TICKS_PER_SECOND)
}

/// Returns the memory of the process in bytes. Cached pages of files do not count, because the system reclaims them
/// itself.
pub fn own_memory() -> Option<u64> {
    status_kib("RssAnon:").map(|bytes| bytes as u64)
}

fn status_number(key: &str) -> Option<f64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(key))?;
    value.split_whitespace().next()?.parse().ok()
}

fn status_kib(key: &str) -> Option<f64> {
    status_number(key).map(|kib| kib * 1024.0)
}

fn open_fds() -> Option<f64> {
    // One of the descriptors is the open directory itself.
    Some(fs::read_dir("/proc/self/fd").ok()?.count().saturating_sub(1) as f64)
}

fn max_fds() -> Option<f64> {
    let text = fs::read_to_string("/proc/self/limits").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn allocator() -> (Option<f64>, Option<f64>) {
    if tikv_jemalloc_ctl::epoch::advance().is_err() {
        return (None, None);
    }
    let read = |value: Result<usize, _>| value.ok().map(|bytes| bytes as f64);
    (
        read(tikv_jemalloc_ctl::stats::allocated::read()),
        read(tikv_jemalloc_ctl::stats::resident::read()),
    )
}

#[cfg(test)]
mod tests {
    use std::time::{SystemTime, UNIX_EPOCH};

    use crate::metrics::Scope;

    use super::ProcessMetrics;

    fn value(text: &str, name: &str) -> f64 {
        let line = text.lines().find(|line| line.starts_with(&format!("{name} ")));
        let line = line.unwrap_or_else(|| panic!("no {name} in {text}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_numbers_of_this_process_are_plausible() {
        let scope = Scope::new();
        scope.register_collector(ProcessMetrics::new());
        let text = scope.encode();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
        let started = value(&text, "process_start_time_seconds");
        assert!(started > now - 3600.0 && started < now + 2.0, "{started} {now}");
        assert!(value(&text, "process_cpu_seconds_total") < 3600.0);
        assert!(value(&text, "process_resident_memory_bytes") > 1e6);
        assert!(value(&text, "process_open_fds") >= 3.0);
        assert!(value(&text, "process_threads") >= 2.0);
        assert!(text.contains(&format!(
            "alluvium_build_info{{version=\"{}\"}} 1\n",
            env!("CARGO_PKG_VERSION")
        )));
    }
}
