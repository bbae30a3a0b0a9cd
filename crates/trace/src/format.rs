//! The formats by name.

use std::fmt;
use std::str::FromStr;

use levelhead_units::meant;

/// How a trace is written down. `docs/traces.md` has the details.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// MSR Cambridge: `filetime,host,disk,Read|Write,offset,size,response`.
    Msr,
    /// MSR Cambridge as cut up for replayers: `milliseconds device offset size 0|1`.
    MsrCut,
    /// MQSim and SSDsim, after DiskSim's ASCII: `nanoseconds device sector sectors 0|1`.
    Ssdsim,
    /// CloudPhysics vscsi, version 1: binary records of 32 bytes.
    Vscsi1,
    /// Storage Performance Council: `unit,sector,size,R|W,seconds`.
    Spc,
    /// SYSTOR '17: `seconds,response,R|W,LUN,offset,size`.
    Systor17,
    /// The text of `blkparse` in its default form.
    Blkparse,
    /// fio's own log, version 2 or 3.
    FioLog,
}

/// Every name a format goes by, the first of each being the one that is printed.
const NAMES: [(&str, Format); 10] = [
    ("msr", Format::Msr),
    ("msr-cut", Format::MsrCut),
    ("mqsim", Format::Ssdsim),
    ("ssdsim", Format::Ssdsim),
    ("disksim", Format::Ssdsim),
    ("vscsi", Format::Vscsi1),
    ("spc", Format::Spc),
    ("systor17", Format::Systor17),
    ("blkparse", Format::Blkparse),
    ("fio", Format::FioLog),
];

impl Format {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Msr,
        Self::MsrCut,
        Self::Ssdsim,
        Self::Vscsi1,
        Self::Spc,
        Self::Systor17,
        Self::Blkparse,
        Self::FioLog,
    ];
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.iter().find(|(_, format)| format == self);
        f.pad(name.expect("every format has a name").0)
    }
}

/// A text that names no format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFormat(String);

impl fmt::Display for UnknownFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
        let (text, expected) = (&self.0, names.join(", "));
        write!(f, "'{text}' is not a trace format: expected {expected}{}", meant(text, names))
    }
}

impl std::error::Error for UnknownFormat {}

impl FromStr for Format {
    type Err = UnknownFormat;
    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        let named = NAMES.iter().find(|(name, _)| *name == text);
        named.map(|(_, format)| *format).ok_or_else(|| UnknownFormat(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_and_aliases_mean_the_same() {
        for format in Format::ALL {
            assert_eq!(format.to_string().parse(), Ok(format));
        }
        for alias in ["mqsim", "ssdsim", "disksim"] {
            assert_eq!(alias.parse(), Ok(Format::Ssdsim));
        }
        let error = "csv".parse::<Format>().unwrap_err().to_string();
        let names = "msr, msr-cut, mqsim, ssdsim, disksim, vscsi, spc, systor17, blkparse, fio";
        assert_eq!(error, format!("'csv' is not a trace format: expected {names}"));
    }
}
