//! What was measured, and the profile that says it.

use levelhead_units::Sectors;

use super::facts::{AtDepth, Rate, Seek};
use super::fit::SKEW_USUAL;
use super::lateness::Lateness;
use super::layout::{BLOCK_SIZE, Layout, Zone};

/// What a controller usually takes before anything moves, in seconds. Reads alone do not tell it from the
/// seek.
const OVERHEAD_USUAL: f64 = 0.000_2;
/// What a write usually waits besides, in seconds.
const WRITE_SETTLE_USUAL: f64 = 0.000_4;
/// No drive loses more than that between tracks, in revolutions: if sustained reads are slower still,
/// it is the way from the drive that is slow.
const SKEW_BELIEVED: f64 = 0.35;
/// Usual speeds, and by which share a measured one may differ to be taken for one of them.
const RPM_USUAL: [u32; 6] = [4_200, 5_400, 5_900, 7_200, 10_000, 15_000];
const RPM_NOISE: f64 = 0.001;
/// On a disk that has nothing else to do, a place is faster than the place before by at most this share.
const JUMP: f64 = 0.25;
/// The part of the time between tracks that switching to the next one may take.
const SWITCH_SHARE: f64 = 0.95;

/// What reads alone say of a drive.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Its sectors.
    pub size: Sectors,
    /// Seconds of a revolution.
    pub rotation: f64,
    /// How much longer or shorter it may be, in seconds: half of an interval of about 95 %.
    pub rotation_error: f64,
    /// By how much sustained reads are slower than the medium passes under the head: time lost between
    /// tracks, in revolutions, or where it is more than any drive loses there, the way from the drive.
    pub skew: f64,
    /// Sustained rates, from the first sector to the last.
    pub rates: Vec<Rate>,
    /// Random reads, by depth.
    pub depths: Vec<AtDepth>,
    /// Seeks, by length.
    pub seeks: Vec<Seek>,
    /// How late the machine itself was, if that was looked at.
    pub lateness: Option<Lateness>,
    pub(super) layout: Layout,
}

impl Measured {
    /// Revolutions a minute: one of the usual numbers if it comes so near that only the times' noise can
    /// lie between, else the nearest whole number.
    pub fn rpm(&self) -> u32 {
        let measured = 60.0 / self.rotation;
        let is_meant = |rpm: &u32| (measured / f64::from(*rpm) - 1.0).abs() < RPM_NOISE;
        RPM_USUAL.into_iter().find(is_meant).unwrap_or(measured.round() as u32)
    }

    /// Whether the rates fall from place to place, as they do on a disk that had nothing else to do: at
    /// most one in ten is faster than the place before by more than a quarter.
    pub fn is_steady(&self) -> bool {
        let jumps = self
            .rates
            .windows(2)
            .filter(|pair| pair[1].bytes_per_s > pair[0].bytes_per_s * (1.0 + JUMP));
        jumps.count() * 10 <= self.rates.len()
    }

    /// How many cylinders the seeks' lengths count in: an assumption, see [`Measured::to_toml`].
    pub fn cylinders(&self) -> u64 {
        self.layout.cylinders()
    }

    /// The profile of a make called `name` that gives these rates and times, with what is assumed in its
    /// comments. [`Profile::parse`](crate::Profile::parse) takes it.
    pub fn to_toml(&self, name: &str) -> String {
        let overhead = self.overhead();
        let sector = self.sector();
        let between = self.skew_between() * self.rotation * SWITCH_SHARE;
        let bare = |seek: &Seek| (seek.positioning - overhead - sector).max(0.0);
        let shortest = self.seeks.first().map_or(0.0, bare).min(between);
        let settle = WRITE_SETTLE_USUAL.min(between - shortest).max(0.0);
        let mut text = self.account();
        text.push_str(&format!(
            "name = {}\nblock_size = {BLOCK_SIZE}\nblocks = {}         # measured: its size\n\
             rpm = {}                # measured\nheads = {}                 # assumed\n\
             overhead = \"{}\"      # assumed; with the seek it gives what was measured\n\
             head_switch = \"{}\"   # assumed: as the shortest seek\n\
             write_settle = \"{}\"  # assumed\n{}\n[seek]                    # measured\npoints = [\n",
            quoted(name),
            self.size.bytes().get() / BLOCK_SIZE,
            self.rpm(),
            self.layout.heads,
            micros(overhead),
            micros(shortest),
            micros(settle),
            self.bus_rate().map_or_else(String::new, |rate| format!(
                "bus_rate = \"{:.3}MB/s\"  # measured: sustained reads are much slower than the medium\n",
                rate / 1e6
            )),
        ));
        for (at, seek) in self.seeks.iter().enumerate() {
            let time = if at == 0 { shortest } else { bare(seek) };
            text.push_str(&format!("    [{}, \"{}\"],\n", seek.length, micros(time)));
        }
        // The last two lengths go on in a line to the whole stroke.
        if let [.., before, last] = self.seeks[..]
            && last.length + 1 < self.cylinders()
        {
            let more = (self.cylinders() - 1 - last.length) as f64;
            let slope =
                (last.positioning - before.positioning) / (last.length - before.length) as f64;
            let length = self.cylinders() - 1;
            let whole = Seek { length, positioning: last.positioning + slope * more, ..last };
            let time = micros(bare(&whole));
            text.push_str(&format!("    [{length}, \"{time}\"],   # derived\n"));
        }
        text.push_str(
            "]\n\n# Rates are measured; where zones begin is assumed: half way between places.\n",
        );
        for (zone, rate) in self.layout.zones.iter().zip(&self.rates) {
            text.push_str(&self.zone(zone, rate));
        }
        text
    }

    /// What was measured and what is assumed, as comments.
    fn account(&self) -> String {
        let mut text = format!(
            "# A drive measured by reads alone: {} sectors of 4096 bytes.\n#\n\
             # One revolution: {:.4} ms. Between tracks it loses {:.3} of one.\n#\n\
             # Random reads of 4 KiB, by how many are under way:\n#\n#   depth   a second   mean ms    p99 ms\n",
            self.size.get(),
            self.rotation * 1e3,
            self.skew
        );
        for AtDepth { depth, per_s, mean, p99, .. } in &self.depths {
            let (mean, p99) = (mean * 1e3, p99 * 1e3);
            text.push_str(&format!("#   {depth:>5}   {per_s:>8.1}  {mean:>8.2}  {p99:>8.2}\n"));
        }
        text.push_str(
            "#\n# Heads and skews do not show in reads: cylinders are groups of as many tracks as there are\n\
             # heads below, and tracks are as long and as far apart in time as the rates and the passing of\n\
             # single sectors say. How a write differs from a read is assumed, and so is the order in\n\
             # which the drive serves what it holds: soonest first, by who uses this file.\n\n",
        );
        text
    }

    fn zone(&self, zone: &Zone, rate: &Rate) -> String {
        let track = zone.blocks_per_track;
        let skew = ((track as f64 * self.skew_between()).round() as u64).min(track - 1);
        format!(
            "\n[[zone]]                  # {:.1} MB/s\ncylinders = {}\nblocks_per_track = {track}\n\
             track_skew = {skew}\ncylinder_skew = {skew}\n",
            rate.bytes_per_s / 1e6,
            zone.cylinders
        )
    }

    /// What the controller is assumed to take: the usual, or half of the shortest positioning if that
    /// is less.
    fn overhead(&self) -> f64 {
        let least = self.seeks.first().map_or(OVERHEAD_USUAL, |seek| seek.positioning);
        OVERHEAD_USUAL.min((least / 2.0).max(0.0))
    }

    /// Time lost between tracks, in revolutions.
    fn skew_between(&self) -> f64 {
        if self.skew > SKEW_BELIEVED { SKEW_USUAL } else { self.skew }
    }

    /// The rate of the way from the drive, where that and not the medium bounds the rates.
    fn bus_rate(&self) -> Option<f64> {
        let rates = self.rates.iter().map(|rate| rate.bytes_per_s);
        (self.skew > SKEW_BELIEVED).then(|| rates.fold(0.0, f64::max))
    }

    /// How long one sector takes to pass, on average over the zones, or to leave the drive.
    pub(super) fn sector(&self) -> f64 {
        if let Some(rate) = self.bus_rate() {
            return levelhead_units::SECTOR_SIZE as f64 / rate;
        }
        let share = |zone: &Zone| {
            levelhead_units::SECTOR_SIZE as f64 / (zone.blocks_per_track * BLOCK_SIZE) as f64
        };
        let zones = &self.layout.zones;
        self.rotation * zones.iter().map(share).sum::<f64>() / zones.len() as f64
    }
}

/// A text as TOML has it.
fn quoted(text: &str) -> String {
    let plain: String = text.chars().filter(|c| !c.is_control()).collect();
    format!("\"{}\"", plain.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A time as profiles have it.
fn micros(seconds: f64) -> String {
    format!("{}us", (seconds * 1e6).round().max(0.0))
}

#[cfg(test)]
mod tests {
    use levelhead_units::Lba;

    use super::*;

    #[test]
    fn rates_that_jump_about_are_not_those_of_a_quiet_disk() {
        let measured = |rates: Vec<f64>| {
            let rate = |(at, mb): (u64, f64)| Rate {
                lba: Lba::new(at * 1_000),
                bytes_per_s: mb * 1e6,
                error: 0.0,
            };
            let rates: Vec<Rate> = (0..).zip(rates).map(rate).collect();
            let (size, rotation, skew) = (Sectors::new(20_000), 0.008_333, 0.16);
            let layout = Layout::new(size, &rates, rotation, skew);
            Measured {
                size,
                rotation,
                rotation_error: 0.0,
                skew,
                rates,
                depths: Vec::new(),
                seeks: Vec::new(),
                lateness: None,
                layout,
            }
        };
        let falling: Vec<f64> = (0..20).map(|at| 180.0 - 5.0 * f64::from(at)).collect();
        assert!(measured(falling.clone()).is_steady());
        let mut disturbed = falling;
        (disturbed[4], disturbed[12]) = (60.0, 50.0);
        assert!(measured(disturbed.clone()).is_steady(), "twice in twenty");
        disturbed[8] = 40.0;
        assert!(!measured(disturbed).is_steady());
    }
}
