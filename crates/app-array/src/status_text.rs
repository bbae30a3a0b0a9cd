//! `array status` for people: what state the array is in and what to do about it, in about ten lines; `-v` for the rest.
//!
//! ```text
//!   array:     UUID, layout, size
//!   state:     healthy, degraded or failed, and why; how many more drives may fail
//!   policy:    how reads are served; which drives are avoided
//!   going on:  initial sync, rebuild, replacement, scrub, with their ends
//!   requests:  in progress, and how long the last ones took
//!   next:      what to do
//!
//!   a table of the drives, with errors
//!   the last events
//! ```

use levelhead_host::words;
use levelhead_report::{Column, Table, json};
use levelhead_units::Bytes;

use crate::event_json::{EventJson, Facts};
use crate::health::Health;
use crate::messages::{CopyJson, DriveJson, RebuildJson, StatusJson};
use levelhead_app::Show;

/// Events that are shown.
const EVENTS_SHOWN: usize = 5;

/// A drive that held so many wrong sectors is to be replaced: ZFS takes as many checksum errors for too many.
const WRONG_MANY: u64 = 10;

/// How much is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// What an operator needs.
    Brief,
    /// Every counter and event that there is.
    Verbose,
}

/// The status of an array, and how well that is.
pub(crate) struct Shown {
    pub(crate) status: Box<StatusJson>,
    pub(crate) health: Health,
    /// The array, as it was typed.
    pub(crate) array: String,
    pub(crate) detail: Detail,
}

impl Show for Shown {
    fn text(&self) -> String {
        let Self { status, health, array, detail } = self;
        let mut text = status.summary(health);
        text.push_str(&lines("next", &status.advice(array)));
        text.push_str(&format!("\n{}", status.drive_table().to_text()));
        text.push_str(&format!(
            "errors since the array was started, {}\n{}",
            ago(status.at_seconds),
            status.failures()
        ));
        if *detail == Detail::Verbose {
            text.push_str(&status.details());
        }
        let events = match detail {
            Detail::Brief => &status.events[status.events.len().saturating_sub(EVENTS_SHOWN)..],
            Detail::Verbose => &status.events[..],
        };
        if !events.is_empty() {
            text.push('\n');
        }
        for event in events {
            text.push_str(&format!("{}\n", event.line()));
        }
        text
    }

    fn json(&self) -> String {
        json::pretty(&self.status).expect("numbers and names are JSON")
    }
}

/// `key:` and the first of these, the others below it; nothing where there are none.
fn lines(key: &str, all: &[String]) -> String {
    let keys = std::iter::once(format!("{key}:")).chain(std::iter::repeat(String::new()));
    keys.zip(all).map(|(key, line)| format!("{key:<10} {line}\n")).collect()
}

impl StatusJson {
    fn summary(&self, health: &Health) -> String {
        let Self { array, uuid, outstanding, .. } = self;
        let size = Bytes::new(self.size_bytes).short();
        let margin = self.margin();
        let requests = format!(
            "{} in progress; the last ones took {:.1} ms on average, p99 {:.1} ms",
            words::counted(*outstanding, "request"),
            self.mean_ms,
            self.p99_ms
        );
        [
            ("array", vec![format!("{uuid}, {array}, {size}")]),
            ("state", vec![format!("{}; {margin}", health.sentence())]),
            ("policy", vec![self.policy_line()]),
            ("journal", self.journal_warning().into_iter().collect()),
            ("spares", if self.spares.is_empty() { vec![] } else { vec![self.spares.join(" ")] }),
            ("going on", self.going_on()),
            ("requests", vec![requests]),
        ]
        .into_iter()
        .map(|(key, all)| lines(key, &all))
        .collect()
    }

    /// How reads are served, and which drives they go around.
    fn policy_line(&self) -> String {
        let is_avoided = |drive: &&DriveJson| drive.sits_out && !drive.silent;
        let avoided: Vec<String> =
            self.drives.iter().filter(is_avoided).map(|drive| self.why_avoided(drive)).collect();
        let avoided: String = avoided.iter().map(|why| format!("; {why}")).collect();
        format!("{}{avoided}", self.policy)
    }

    fn why_avoided(&self, drive: &DriveJson) -> String {
        let number = drive.drive;
        let why = if self.is_avoided_by_hand(number) { " by the operator" } else { "" };
        format!("drive {number} is avoided{why}")
    }

    /// Whether the last that is known of it is that an operator wanted it.
    fn is_avoided_by_hand(&self, number: u8) -> bool {
        let is_of = |event: &&EventJson| matches!(event.facts, Facts::Standing { drive, .. } if drive == number);
        let mut names = self.events.iter().rev().filter(is_of).map(|event| event.event.as_str());
        names.find(|name| ["sat-out", "sat-out-by-hand"].contains(name)) == Some("sat-out-by-hand")
    }

    /// What a crash would do to an array without a journal.
    fn journal_warning(&self) -> Option<String> {
        match &self.journal {
            None => Some("none: a crash may leave redundancy that is wrong".to_owned()),
            Some(journal) if journal.recovering => Some("recovering after a crash".to_owned()),
            Some(_) => None,
        }
    }

    /// What works beside clients' requests.
    fn going_on(&self) -> Vec<String> {
        let mut all = Vec::new();
        if self.synced_percent < 100.0 && self.resync != "idle" {
            let how = match self.resync.as_str() {
                "stuck" => ", stuck".to_owned(),
                _ => self.ends("resync-begun", self.synced_percent / 100.0),
            };
            all.push(format!("resync, {:.1} % done{how}", self.synced_percent));
        }
        if let Some(RebuildJson { drive, done_stripes, stripes, missed_regions, .. }) =
            &self.rebuild
        {
            let done = *done_stripes as f64 / (*stripes).max(1) as f64;
            let ends = self.ends_unless_paused("rebuild-begun", done);
            all.push(match missed_regions {
                None => format!(
                    "rebuild of drive {drive}, {:.1} % done{}{ends}",
                    done * 100.0,
                    self.pace()
                ),
                Some(left) => format!(
                    "partial resync of drive {drive}, {} left{}",
                    words::counted(*left, "region"),
                    self.pace()
                ),
            });
        }
        if let Some(CopyJson { drive, member, left_regions, regions }) = &self.copy {
            let done = (regions - left_regions) as f64 / (*regions).max(1) as f64;
            let to = member.as_ref().map_or(String::new(), |member| format!(" with {member}"));
            let ends = self.ends_unless_paused("copy-begun", done);
            all.push(format!(
                "replacement of drive {drive}{to}, {:.1} % copied{}{ends}",
                done * 100.0,
                self.pace()
            ));
        }
        if !["idle", "done"].contains(&self.scrub.state.as_str()) {
            all.push(self.scrub.sentence());
        }
        if all.is_empty() {
            all.push("nothing beside requests".to_owned());
        }
        all
    }

    /// How a rebuild is held, if it is.
    fn pace(&self) -> String {
        match (self.rebuild_paused, self.rebuild_min_rate) {
            (true, _) => ", paused".to_owned(),
            (false, Some(rate)) => format!(", at least {} a second", Bytes::new(rate)),
            (false, None) => String::new(),
        }
    }

    /// [`StatusJson::ends`] of a rebuild.
    fn ends_unless_paused(&self, begun: &str, done: f64) -> String {
        if self.rebuild_paused { String::new() } else { self.ends(begun, done) }
    }

    /// When what began with the last such event is over, if it goes on as it did; nothing where that is not known.
    fn ends(&self, begun: &str, done: f64) -> String {
        let Some(begun) = self.events.iter().rev().find(|event| event.event == begun) else {
            return String::new();
        };
        let share = |left: u64, all: u64| left as f64 / all.max(1) as f64;
        let before = match begun.facts {
            Facts::Resync { synced_stripes, stripes } => share(synced_stripes, stripes),
            Facts::Rebuild { done_stripes, stripes, .. } => share(done_stripes, stripes),
            Facts::Copy { left_regions, regions, .. } => 1.0 - share(left_regions, regions),
            _ => return String::new(),
        };
        let since = (self.at_seconds - begun.at_seconds).max(0.0);
        left(since, before, done).map_or(String::new(), |seconds| format!(", {}", about(seconds)))
    }

    /// What to do, most urgent first.
    fn advice(&self, array: &str) -> Vec<String> {
        let mut all = Vec::new();
        let is_rebuilt = |drive: u8| self.rebuild.as_ref().is_some_and(|is| is.drive == drive);
        if self.state == "failed" {
            all.push(
                "bring missing drives back and start it again, or read what is left: levelhead array salvage"
                    .to_owned(),
            );
            return all;
        }
        for drive in &self.drives {
            let number = drive.drive;
            let replace = format!("levelhead array replace {array} {number} DEVICE");
            match drive.state.as_str() {
                "missing" if !is_rebuilt(number) => {
                    all.push(format!("bring drive {number} back, or replace it: {replace}"));
                }
                "failed" | "lost" | "removed" if !is_rebuilt(number) => {
                    all.push(format!("replace drive {number}: {replace}"));
                }
                _ if drive.silent || (drive.sits_out && !self.is_avoided_by_hand(number)) => {
                    all.push(format!("look at drive {number}, and at its cables: smartctl -a"));
                }
                _ => {}
            }
            let wrong = drive.counted("wrong_sectors").unwrap_or(0);
            if wrong >= WRONG_MANY && drive.state == "present" {
                let wrong = words::counted(wrong, "wrong sector");
                all.push(format!("replace drive {number}, which held {wrong}: {replace}"));
            }
            if let Some(why) = &drive.refusal {
                all.push(format!("repair what drive {number} is on: {why}"));
            }
        }
        if self.scrub.unlocated > 0 {
            all.push(
                "compare the files there with a backup; with the array stopped, levelhead array check names the sectors"
                    .to_owned(),
            );
        }
        if self.damaged.sectors > 0 {
            all.push(format!(
                "restore {} from a backup: levelhead array status {array} --damaged",
                words::counted(self.damaged.sectors, "sector")
            ));
        }
        all
    }

    fn drive_table(&self) -> Table {
        let left = ["drive", "state", "member"].map(Column::left);
        let right = ["read errors", "write errors", "wrong sectors", "queue", "median ms"]
            .map(Column::right);
        let mut table = Table::new(left.into_iter().chain(right));
        for drive in &self.drives {
            let count = |name| drive.counted(name).unwrap_or(0).to_string();
            table.push([
                drive.drive.to_string(),
                drive.standing(),
                drive.member.clone().unwrap_or_else(|| "-".to_owned()),
                count("read_errors"),
                count("write_errors"),
                count("wrong_sectors"),
                drive.queue.to_string(),
                format!("{:.1}", drive.median_ms),
            ]);
        }
        table
    }

    /// Counters, what drives report of themselves, and how redundancy is computed.
    fn details(&self) -> String {
        let counted =
            self.counted().map(|(name, value)| format!("{} {value}", name.replace('_', " ")));
        let counted: Vec<String> = counted.collect();
        let mut text = format!("\n{}\n", self.journal_line());
        text.push_str(&self.damaged_line());
        if let Some(verify) = &self.verify {
            text.push_str(&format!("{}\n", verify.sentence()));
        }
        if self.scrub.state != "idle" {
            text.push_str(&format!("{}\n", self.scrub.sentence()));
        }
        text.push_str(&format!("{}since the start: {}\n", self.latencies(), counted.join(", ")));
        let names = ["drive", "fast-fail"].map(Column::left);
        let figures = ["retry rate %", "retry ms", "service ms"].map(Column::right);
        let mut table = Table::new(names.into_iter().chain(figures));
        let figure =
            |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.2}"));
        for drive in &self.drives {
            table.push([
                drive.drive.to_string(),
                drive.fast_fail.clone().unwrap_or_else(|| "-".to_owned()),
                figure(drive.retry_rate_percent),
                figure(drive.retry_latency_ms),
                figure(drive.service_time_ms),
            ]);
        }
        text.push_str(&format!("\n{}", table.to_text()));
        for class in &self.arithmetic {
            text.push_str(&format!("{}\n", class.sentence()));
        }
        text
    }
}

/// The seconds that are left of what got from `before` to `done`, shares of it all, in `since` seconds.
fn left(since: f64, before: f64, done: f64) -> Option<f64> {
    (done > before && done < 1.0).then(|| since * (1.0 - done) / (done - before))
}

fn about(seconds: f64) -> String {
    match seconds as u64 {
        0..60 => "less than a minute left".to_owned(),
        seconds @ 60..7_200 => format!("about {} min left", seconds.div_ceil(60)),
        seconds => format!("about {} h left", seconds.div_ceil(3_600)),
    }
}

fn ago(seconds: f64) -> String {
    match seconds as u64 {
        0..60 => "less than a minute ago".to_owned(),
        seconds @ 60..7_200 => format!("{} min ago", seconds / 60),
        seconds @ 7_200..172_800 => format!("{} h ago", seconds / 3_600),
        seconds => format!("{} days ago", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was resumed at 90 % and has got to 91 % in ten seconds takes ninety more.
    #[test]
    fn end_is_reckoned_from_where_it_began() {
        assert_eq!(left(10.0, 0.90, 0.91).map(f64::round), Some(90.0));
        assert_eq!(left(10.0, 0.0, 0.5), Some(10.0));
        assert_eq!([left(10.0, 0.5, 0.5), left(10.0, 0.5, 1.0)], [None, None]);
        let texts = [59.9, 60.0, 7_199.0, 7_200.0].map(about);
        let minutes = ["less than a minute left", "about 1 min left", "about 120 min left"];
        assert_eq!(texts[..3], minutes);
        assert_eq!(texts[3], "about 2 h left");
        let texts = [59.9, 60.0, 7_200.0, 200_000.0].map(ago);
        assert_eq!(texts, ["less than a minute ago", "1 min ago", "2 h ago", "2 days ago"]);
    }
}
