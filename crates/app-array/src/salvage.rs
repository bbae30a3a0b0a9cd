//! `levelhead array salvage`: what can be had of an array that is beyond help.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use levelhead_erasure::Kernel;
use levelhead_host::{Origin, SalvageError, SalvageOptions, Salvaged, words};
use levelhead_report::json;
use levelhead_units::{Bytes, Sectors};
use serde::Serialize;

use super::check::SumsJson;
use super::drives::{Drives, LeftOutJson};
use levelhead_app::{AppError, Progress, Show, Task};

/// Which array, and where to.
#[derive(Clone, Debug)]
pub struct Salvage {
    /// Its drives.
    pub drives: Drives,
    /// The file that is made.
    pub to: PathBuf,
    /// Which code does the arithmetic: the one with the most instructions of this processor, unmeasured, if
    /// nothing else is asked for.
    pub kernel: Option<Kernel>,
}

/// What was had.
#[derive(Debug, Serialize)]
pub struct SalvagedArray {
    uuid: String,
    array: String,
    size_bytes: u64,
    file: PathBuf,
    drives: Vec<Option<String>>,
    old: Vec<OldJson>,
    left_out: Vec<LeftOutJson>,
    refusal: Option<String>,
    sectors: SectorsJson,
    /// Null where the array has no checksums.
    checksums: Option<SumsJson>,
    /// The first runs of sectors that are not sure.
    named: Vec<RunJson>,
}

#[derive(Debug, Serialize)]
struct OldJson {
    drive: usize,
    member: String,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct SectorsJson {
    read: u64,
    journal: u64,
    computed: u64,
    doubtful: u64,
    old: u64,
    lost: u64,
}

#[derive(Debug, Serialize)]
struct RunJson {
    kind: &'static str,
    first_sector: u64,
    sectors: u64,
}

/// Reads what can be had into a new file.
pub fn salvage(ask: &Salvage, progress: &dyn Progress) -> Result<SalvagedArray, AppError> {
    let kernel = super::serve::kernel(ask.kernel)?;
    let task: Mutex<Option<Box<dyn Task>>> = Mutex::new(None);
    let note = |done: u64, total: u64| {
        let mut task = task.lock().unwrap_or_else(PoisonError::into_inner);
        task.get_or_insert_with(|| progress.begin("salvage", total)).reach(done);
    };
    let salvaged = ask.drives.with_which(|which| {
        let options = SalvageOptions { kernel };
        levelhead_host::salvage(which, &ask.to, options, &note).map_err(|error| match error {
            SalvageError::Refused(error) => AppError::usage(error),
            SalvageError::Unwritten(error) => AppError::trouble(error),
        })
    })?;
    Ok(SalvagedArray::of(&salvaged, ask.to.clone()))
}

impl SalvagedArray {
    /// How much of it is not what the array held, in one sentence; nothing if all is.
    pub fn trouble(&self) -> Option<String> {
        let SectorsJson { doubtful, old, lost, .. } = self.sectors;
        (doubtful + old + lost > 0).then(|| {
            format!(
                "not all of the array is in the file: {} {} lost, {old} may be older and {doubtful} wrong",
                words::counted(lost, "sector"),
                words::is_or_are(lost)
            )
        })
    }

    fn of(salvaged: &Salvaged, file: PathBuf) -> Self {
        let [read, journal, computed, doubtful, old, lost] = salvaged.sectors;
        let drives = salvaged.drives.iter();
        let old_drives = salvaged
            .old
            .iter()
            .map(|(drive, member)| OldJson { drive: drive.as_usize(), member: member.to_string() });
        let named = salvaged.named.iter().map(|(origin, extent)| RunJson {
            kind: origin.name(),
            first_sector: extent.lba.get(),
            sectors: extent.sectors.get(),
        });
        Self {
            uuid: salvaged.uuid.to_string(),
            array: salvaged.spec.to_string(),
            size_bytes: salvaged.size.bytes().get(),
            file,
            drives: drives.map(|drive| drive.as_ref().map(ToString::to_string)).collect(),
            old: old_drives.collect(),
            left_out: salvaged.left_out.iter().map(LeftOutJson::of).collect(),
            refusal: salvaged.refusal.clone(),
            sectors: SectorsJson { read, journal, computed, doubtful, old, lost },
            checksums: salvaged.sums.map(SumsJson::of),
            named: named.collect(),
        }
    }
}

impl Show for SalvagedArray {
    fn text(&self) -> String {
        let Self { array, uuid, file, .. } = self;
        let (size, file) = (Bytes::new(self.size_bytes).short(), file.display());
        let mut text = format!("array: {array}, {uuid}\nfile: {file}, {size}\n");
        if let Some(refusal) = &self.refusal {
            text.push_str(&format!("would not be served: {refusal}\n"));
        }
        for left in &self.left_out {
            text.push_str(&format!("left out: {}\n", left.reason));
        }
        for OldJson { drive, member } in &self.old {
            text.push_str(&format!("read where no other copy exists: {member}, drive {drive}\n"));
        }
        let SectorsJson { read, journal, computed, doubtful, old, lost } = self.sectors;
        let counts = [read, journal, computed, doubtful, old, lost];
        for (origin, count) in Origin::ALL.into_iter().zip(counts) {
            let bytes = Sectors::new(count).bytes().short();
            text.push_str(&format!(
                "{}: {} ({bytes})\n",
                origin.name(),
                words::counted(count, "sector")
            ));
        }
        if let Some(sums) = self.checksums {
            text.push_str(&sums.text());
        }
        for RunJson { kind, first_sector, sectors } in &self.named {
            let last = first_sector + sectors - 1;
            text.push_str(&match sectors {
                1 => format!("{kind}: sector {first_sector}\n"),
                _ => format!("{kind}: sectors {first_sector} to {last}\n"),
            });
        }
        text
    }

    fn json(&self) -> String {
        json::pretty(self).expect("numbers and names are JSON")
    }
}
