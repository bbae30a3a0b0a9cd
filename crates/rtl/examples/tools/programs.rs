//! The programs that play an engine and count its gates.

use std::path::Path;
use std::process::Command;

use levelhead_rtl::{File, Gates};

use crate::Result;

/// The programs, each beside an option that does nothing.
const PROGRAMS: [[&str; 2]; 3] = [["iverilog", "-V"], ["verilator", "--version"], ["yosys", "-V"]];

/// Whether all of them can be run; else the error says how to get them.
pub(super) fn check() -> Result<()> {
    for [program, option] in PROGRAMS {
        if Command::new(program).arg(option).output().is_err() {
            return Err(format!(
                "{program} is not installed; on Debian: apt-get install iverilog verilator yosys"
            )
            .into());
        }
    }
    Ok(())
}

/// The most seconds that a tool may take.
const SECONDS_MAX: &str = "300";

/// A program that simulates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Simulator {
    Iverilog,
    /// How much the C++ compiler optimises: a short run ends sooner without.
    Verilator {
        is_optimised: bool,
    },
}

/// What a testbench says at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Played {
    /// Beats that went in.
    pub(super) beats: u64,
    /// Cycles from the first to the last of them.
    pub(super) cycles: u64,
    /// Cycles from the last beat of the first group to the first one that left.
    pub(super) latency: u64,
}

/// What a program prints, on both streams, and whether it ended well; killed after [`SECONDS_MAX`].
fn said(folder: &Path, program: &str, arguments: &[&str]) -> Result<(bool, String)> {
    let mut command = Command::new("timeout");
    command.current_dir(folder).args(["-k", "5", SECONDS_MAX, program]).args(arguments);
    let output = command.output().map_err(|error| format!("{program} does not start: {error}"))?;
    let text = [output.stdout, output.stderr].concat();
    Ok((output.status.success(), String::from_utf8_lossy(&text).into_owned()))
}

/// The same of a program that must end well.
fn must(folder: &Path, program: &str, arguments: &[&str]) -> Result<String> {
    let (is_good, text) = said(folder, program, arguments)?;
    if is_good { Ok(text) } else { Err(format!("{program} failed: {}", tail(&text)).into()) }
}

/// The end of what a program said.
fn tail(text: &str) -> &str {
    let start = text.char_indices().rev().nth(2000).map_or(0, |(at, _)| at);
    text[start..].trim()
}

pub(super) fn write(folder: &Path, files: &[File]) -> Result<()> {
    for file in files {
        std::fs::write(folder.join(file.name), &file.text)?;
    }
    Ok(())
}

fn sources(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".sv") {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Plays the testbench of a folder, each side resting in `stalls` of 8 cycles.
pub(super) fn play(folder: &Path, simulator: Simulator, stalls: u32) -> Result<Played> {
    let sources = sources(folder)?;
    let sources = sources.iter().map(String::as_str);
    let text = match simulator {
        Simulator::Iverilog => {
            let stalls = format!("-Ptestbench.STALLS={stalls}");
            let options = ["-g2012", "-s", "testbench", &stalls, "-o", "run"];
            must(folder, "iverilog", &options.into_iter().chain(sources).collect::<Vec<_>>())?;
            must(folder, "vvp", &["run"])?
        }
        Simulator::Verilator { is_optimised } => {
            let stalls = format!("-GSTALLS={stalls}");
            let mut options = vec!["--binary", "--timing", "-j", "1", &stalls];
            options.extend(["--top-module", "testbench", "-Mdir", "built"]);
            if !is_optimised {
                options.extend([
                    "-fno-expand",
                    "-MAKEFLAGS",
                    "OPT_FAST=-O0 OPT_SLOW=-O0 OPT_GLOBAL=-O0",
                ]);
            }
            must(folder, "verilator", &options.into_iter().chain(sources).collect::<Vec<_>>())?;
            must(folder, "./built/Vtestbench", &[])?
        }
    };
    if !text.contains("PASS:") {
        return Err(format!("the testbench does not pass: {}", tail(&text)).into());
    }
    let number = |before: &str| {
        let (_, rest) = text.split_once(before)?;
        rest.split_whitespace().next()?.parse().ok()
    };
    let figure =
        |before| number(before).ok_or_else(|| format!("no '{before}' in: {}", tail(&text)));
    Ok(Played {
        beats: figure("in: ")?,
        cycles: figure("beats in ")?,
        latency: figure("latency: ")?,
    })
}

/// Whether verilator has nothing to warn of in the modules, with all its warnings.
pub(super) fn lint(folder: &Path, top: &str, modules: &[File]) -> Result<()> {
    let options = ["--lint-only", "-Wall", "--top-module", top];
    let names = modules.iter().map(|module| module.name);
    let (is_good, text) =
        said(folder, "verilator", &options.into_iter().chain(names).collect::<Vec<_>>())?;
    if is_good && text.trim().is_empty() {
        return Ok(());
    }
    Err(format!("verilator warns: {}", tail(&text)).into())
}

/// The gates of the modules of a folder.
pub(super) fn gates(folder: &Path) -> Result<Gates> {
    let said = must(folder, "yosys", &["-q", "-s", "synth.ys"])?;
    // A memory that becomes registers, a bit that is never driven: the engine has none of them.
    if !said.trim().is_empty() {
        return Err(format!("yosys warns: {}", tail(&said)).into());
    }
    let read = |name: &str| std::fs::read_to_string(folder.join(name));
    Ok(Gates::read(&read("stat.txt")?, &read("ltp.txt")?)?)
}
