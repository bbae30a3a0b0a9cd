//! What the system knows of this program, by the names that Prometheus' own clients give it.

use std::fs;

use levelhead_metrics::{Family, Kind, Value};

const HELP: [(&str, Kind, &str); 6] = [
    ("process_cpu_seconds", Kind::Counter, "Processor time that the program has used."),
    ("process_resident_memory_bytes", Kind::Gauge, "Resident memory of the program."),
    ("process_virtual_memory_bytes", Kind::Gauge, "Virtual memory of the program."),
    ("process_open_fds", Kind::Gauge, "Open files and sockets of the program."),
    ("process_threads", Kind::Gauge, "Threads of the program."),
    (
        "process_start_time_seconds",
        Kind::Gauge,
        "Start time of the program, in seconds since 1970.",
    ),
];

/// What could be found out.
pub(super) fn families() -> Vec<Family> {
    let found = Found::look().unwrap_or_default();
    let values = [
        found.cpu.map(Value::Real),
        found.resident.map(Value::Whole),
        found.virtual_size.map(Value::Whole),
        found.files.map(Value::Whole),
        found.threads.map(Value::Whole),
        found.start.map(Value::Real),
    ];
    let family = |((name, kind, help), value)| {
        let family = Family::new(name, kind, help);
        match value {
            Some(value) => family.with(Vec::new(), value),
            None => family,
        }
    };
    HELP.into_iter().zip(values).map(family).collect()
}

#[derive(Debug, Default)]
struct Found {
    cpu: Option<f64>,
    resident: Option<u64>,
    virtual_size: Option<u64>,
    files: Option<u64>,
    threads: Option<u64>,
    start: Option<f64>,
}

impl Found {
    /// From the files of proc(5).
    fn look() -> Option<Self> {
        let stat = fs::read_to_string("/proc/self/stat").ok()?;
        // The name, in brackets, may be anything.
        let (_, rest) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        // The first of these is field 3 of the table in proc(5).
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        let page = rustix::param::page_size() as u64;
        let seconds = |ticks_count: u64| ticks_count as f64 / ticks;
        let begin = boot_time().zip(field(22));
        Some(Self {
            cpu: field(14).zip(field(15)).map(|(user, system)| seconds(user + system)),
            threads: field(20),
            start: begin.map(|(boot, after)| boot as f64 + seconds(after)),
            virtual_size: field(23),
            resident: field(24).map(|pages| pages * page),
            files: fs::read_dir("/proc/self/fd").ok().map(|open| open.count() as u64),
        })
    }
}

/// When the machine was started, in seconds since 1970.
fn boot_time() -> Option<u64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_knows_how_large_it_is_and_since_when_it_runs() {
        let found = Found::look().unwrap();
        let resident = found.resident.unwrap();
        assert!(resident > 100_000 && resident <= found.virtual_size.unwrap(), "{found:?}");
        assert!(found.files.unwrap() >= 3 && found.threads.unwrap() >= 1, "{found:?}");
        assert!(found.start.unwrap() > boot_time().unwrap() as f64, "{found:?}");
        assert!(families().iter().all(|family| family.series().len() == 1));
    }
}
