//! Measurements without a framework. Each measurement runs for at least a second on one core. Its
//! result, with the median of the runs, is printed as one line of JSON on stdout. Each argument of the program selects
//! the measurements whose name contains it.

use std::time::{Duration, Instant};

/// Minimum duration of a measurement.
const AT_LEAST: Duration = Duration::from_secs(1);

/// Selection of measurements.
pub(crate) struct Bench {
    filters: Vec<String>,
}

impl Bench {
    pub(crate) fn of_arguments() -> Self {
        // `cargo bench` passes `--bench`; the other arguments are filters.
        let filters: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
        Self { filters }
    }

    /// Measures a function that processes this many MB in each call.
    pub(crate) fn run(&self, name: &str, megabytes: f64, mut measured: impl FnMut()) {
        if !self.filters.is_empty() && !self.filters.iter().any(|filter| name.contains(filter.as_str())) {
            return;
        }
        measured();
        let mut times = Vec::new();
        let start = Instant::now();
        while start.elapsed() < AT_LEAST || times.len() < 5 {
            let start = Instant::now();
            measured();
            times.push(start.elapsed());
        }
        times.sort_unstable();
        let median = times[times.len() / 2].as_secs_f64();
        println!(
            r#"{{"name":"{name}","runs":{},"median_us":{:.1},"best_us":{:.1},"mb":{megabytes:.6},"mb_per_s":{:.0}}}"#,
            times.len(),
            median * 1e6,
            times[0].as_secs_f64() * 1e6,
            megabytes / median,
        );
    }
}
