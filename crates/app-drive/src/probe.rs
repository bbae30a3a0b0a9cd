//! `levelhead drive probe`: what a real drive can do, what it says of itself, and what cannot be known.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use levelhead_host::{
    DeviceKind, DeviceReport, DiskReport, Fact, Limit, LimitsState, ReadLimit, probe,
};
use levelhead_report::json;
use levelhead_units::Nanos;
use serde_json::{Map, Value, json};

use levelhead_app::{AppError, Show};

/// What was found out about a file or device.
#[derive(Clone, Debug)]
pub struct Probed {
    path: PathBuf,
    report: DeviceReport,
}

/// Finds out what it can about a file or device, and changes nothing on it.
pub fn probe_device(path: &Path) -> Result<Probed, AppError> {
    let report = probe(path).map_err(AppError::usage)?;
    Ok(Probed { path: path.to_owned(), report })
}

/// One line of what was found: its key for programs, its name for people, and the value for both.
struct Line {
    key: &'static str,
    name: &'static str,
    found: Fact<(Value, String)>,
}

impl Line {
    fn new<T>(
        key: &'static str,
        name: &'static str,
        fact: &Fact<T>,
        show: impl FnOnce(&T) -> (Value, String),
    ) -> Self {
        Self { key, name, found: fact.as_ref().map(show).map_err(Clone::clone) }
    }

    fn plain<T: Display + Clone + Into<Value>>(
        key: &'static str,
        name: &'static str,
        fact: &Fact<T>,
    ) -> Self {
        Self::new(key, name, fact, |value| (value.clone().into(), value.to_string()))
    }
}

impl Probed {
    fn kind(&self) -> &'static str {
        match self.report.kind {
            DeviceKind::File => "file",
            DeviceKind::Disk => "disk",
            DeviceKind::Part => "part of a disk",
        }
    }

    fn lines(&self) -> Vec<Line> {
        let size = |size: &levelhead_units::Bytes| (size.get().into(), size.short());
        let mut lines = vec![Line::new("size_bytes", "size", &self.report.size, size)];
        if let Some(disk) = &self.report.disk {
            lines.extend(disk_lines(disk));
        }
        lines
    }
}

fn disk_lines(disk: &DiskReport) -> Vec<Line> {
    let yes_no = |value: &bool| ((*value).into(), if *value { "yes" } else { "no" }.to_owned());
    let state = |state: &LimitsState| {
        let text = match state {
            LimitsState::On => "on",
            LimitsState::Off => "off",
            LimitsState::Unsupported => "not supported",
        };
        (text.into(), text.to_owned())
    };
    vec![
        Line::plain("model", "model", &disk.model),
        Line::plain("logical_block", "logical block, bytes", &disk.logical_block),
        Line::plain("physical_block", "physical block, bytes", &disk.physical_block),
        Line::new("rotational", "rotational", &disk.rotational, yes_no),
        Line::plain("queue_depth", "queue depth", &disk.queue_depth),
        Line::plain("scheduler", "scheduler", &disk.scheduler),
        Line::plain("write_cache", "write cache", &disk.write_cache),
        Line::new("duration_limits", "command duration limits", &disk.limits, state),
        Line::new("read_limits", "limits for reads", &disk.read_limits, |limits| {
            limits_shown(limits)
        }),
        Line::new("fast_limit", "limit of a fast read", &disk.fast_limit, |number| {
            ((*number).into(), format!("number {number}"))
        }),
        Line::new("error_recovery", "error recovery (SCT ERC)", &disk.error_recovery, |found| {
            let Some(found) = found else {
                return (Value::Null, "not supported".to_owned());
            };
            let (read, write) = (time_shown(found.read), time_shown(found.write));
            let value = json!({ "read_ms": millis(found.read), "write_ms": millis(found.write) });
            (value, format!("read {read}, write {write}"))
        }),
        Line::new("limited_retry", "NVMe limited retry", &disk.limited_retry, |found| {
            let levels = if found.has_recovery_levels { "yes" } else { "no" };
            let value = json!({
                "time_limit_ms": millis(found.time_limit),
                "recovery_levels": found.has_recovery_levels,
            });
            let limit = time_shown(found.time_limit);
            (value, format!("time limit: {limit}; recovery levels: {levels}"))
        }),
        Line::new("counters", "read in its life", &disk.counters, |found| {
            let (read, repeated) = (found.sectors_read, found.repeated);
            let value = json!({ "sectors_read": read, "repeated": repeated });
            (value, format!("{read} sectors of 4096 bytes, {repeated} times again"))
        }),
    ]
}

fn millis(time: Option<Nanos>) -> Option<f64> {
    time.map(Nanos::as_millis_f64)
}

fn time_shown(time: Option<Nanos>) -> String {
    millis(time).map_or("none".to_owned(), |millis| format!("{millis} ms"))
}

fn limits_shown(limits: &[ReadLimit]) -> (Value, String) {
    let one = |limit: Option<Limit>| {
        limit.map(|Limit { time, expiry }| {
            json!({ "ms": time.as_millis_f64(), "ends_command": expiry.ends() })
        })
    };
    let values = limits.iter().map(|limit| {
        json!({
            "number": limit.number,
            "inactive": one(limit.inactive),
            "active": one(limit.active),
            "guideline": one(limit.guideline),
        })
    });
    let text = |limit: &ReadLimit| {
        let kinds =
            [("waiting", limit.inactive), ("active", limit.active), ("both", limit.guideline)];
        let kinds = kinds.into_iter().filter_map(|(kind, limit)| {
            let Limit { time, expiry } = limit?;
            let then = if expiry.ends() { "then ended" } else { "then goes on" };
            Some(format!("{kind} {} ms, {then}", time.as_millis_f64()))
        });
        format!("{}: {}", limit.number, kinds.collect::<Vec<_>>().join("; "))
    };
    let texts: Vec<String> = limits.iter().map(text).collect();
    let text = if texts.is_empty() { "none is set".to_owned() } else { texts.join(" | ") };
    (values.collect(), text)
}

impl Show for Probed {
    fn text(&self) -> String {
        let mut text = format!("{}: {}\n", self.path.display(), self.kind());
        for Line { name, found, .. } in self.lines() {
            let found = found.map_or_else(|reason| format!("unknown: {reason}"), |(_, text)| text);
            text.push_str(&format!("{name}: {found}\n"));
        }
        if self.report.disk.is_none() {
            text.push_str("everything else: unknown, the drive below a file is not asked\n");
        }
        text
    }

    /// What is unknown is null, and its reason stands under `unknown`.
    fn json(&self) -> String {
        let mut value = Map::new();
        let mut unknown = Map::new();
        value.insert("path".to_owned(), self.path.display().to_string().into());
        value.insert("kind".to_owned(), self.kind().into());
        if let Some(disk) = &self.report.disk {
            value.insert("name".to_owned(), disk.name.clone().into());
        }
        for Line { key, found, .. } in self.lines() {
            let found = found.map_or_else(
                |reason| {
                    unknown.insert(key.to_owned(), reason.into());
                    Value::Null
                },
                |(value, _)| value,
            );
            value.insert(key.to_owned(), found);
        }
        value.insert("unknown".to_owned(), unknown.into());
        json::pretty(&value).expect("numbers and names are JSON")
    }
}

#[cfg(test)]
mod tests {
    use levelhead_host::{Counters, ErrorRecovery, Expiry};
    use levelhead_units::Bytes;

    use super::*;

    fn disk() -> DiskReport {
        let missing = || "no permission: ask as root".to_owned();
        let active = Limit { time: Nanos::from_millis(100), expiry: Expiry::Unavailable };
        let limit = ReadLimit { number: 2, inactive: None, active: Some(active), guideline: None };
        let seven = Some(Nanos::from_secs(7));
        DiskReport {
            name: "sda".to_owned(),
            model: Ok("ST2000DM006".to_owned()),
            logical_block: Ok(512),
            physical_block: Ok(4096),
            rotational: Ok(true),
            queue_depth: Ok(32),
            scheduler: Ok("mq-deadline".to_owned()),
            write_cache: Ok("write back".to_owned()),
            limits: Ok(LimitsState::Off),
            read_limits: Ok(vec![limit]),
            fast_limit: Ok(2),
            error_recovery: Ok(Some(ErrorRecovery { read: seven, write: None })),
            limited_retry: Err("only NVMe drives have it".to_owned()),
            counters: Err(missing()),
        }
    }

    fn probed(disk: Option<DiskReport>, kind: DeviceKind) -> Probed {
        let report = DeviceReport { kind, size: Ok(Bytes::new(4 << 30)), disk };
        Probed { path: "/dev/sda".into(), report }
    }

    #[test]
    fn text_says_what_was_found_and_what_is_unknown() {
        let text = probed(Some(disk()), DeviceKind::Disk).text();
        for line in [
            "/dev/sda: disk",
            "size: 4GiB",
            "rotational: yes",
            "command duration limits: off",
            "limits for reads: 2: active 100 ms, then ended",
            "limit of a fast read: number 2",
            "error recovery (SCT ERC): read 7000 ms, write none",
            "NVMe limited retry: unknown: only NVMe drives have it",
            "read in its life: unknown: no permission: ask as root",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        let text = probed(None, DeviceKind::File).text();
        let expected = "/dev/sda: file\nsize: 4GiB\neverything else: unknown, the drive below a \
                        file is not asked\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn json_has_null_and_a_reason_for_what_is_unknown() {
        let counters = Ok(Counters { sectors_read: 9, repeated: 1 });
        let found = DiskReport { counters, ..disk() };
        let text = probed(Some(found), DeviceKind::Part).json();
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&value["kind"], &value["name"]), (&json!("part of a disk"), &json!("sda")));
        assert_eq!(value["size_bytes"], json!(4_u64 << 30));
        assert_eq!(value["read_limits"][0]["active"], json!({ "ms": 100.0, "ends_command": true }));
        assert_eq!(value["error_recovery"], json!({ "read_ms": 7000.0, "write_ms": null }));
        assert_eq!(value["counters"], json!({ "sectors_read": 9, "repeated": 1 }));
        assert_eq!(value["limited_retry"], Value::Null);
        assert_eq!(value["unknown"], json!({ "limited_retry": "only NVMe drives have it" }));
    }
}
