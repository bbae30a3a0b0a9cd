//! The programs that play an engine and count its gates.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail, ensure};
use levelhead_rtl::{File, Gates};

use crate::needs::Need;

/// What the tools are called, and where they come from.
pub(super) const NEEDS: [Need; 3] = [
    Need { program: "iverilog", package: "iverilog" },
    Need { program: "verilator", package: "verilator" },
    Need { program: "yosys", package: "yosys" },
];

/// The most seconds that a tool may take.
const SECONDS_MAX: &str = "900";

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
fn said(folder: &Path, program: &str, arguments: &[&str]) -> anyhow::Result<(bool, String)> {
    let mut command = Command::new("timeout");
    command.current_dir(folder).args(["-k", "5", SECONDS_MAX, program]).args(arguments);
    let output = command.output().with_context(|| format!("{program} does not start"))?;
    let text = [output.stdout, output.stderr].concat();
    Ok((output.status.success(), String::from_utf8_lossy(&text).into_owned()))
}

/// The same of a program that must end well.
fn must(folder: &Path, program: &str, arguments: &[&str]) -> anyhow::Result<String> {
    let (is_good, text) = said(folder, program, arguments)?;
    ensure!(is_good, "{program} failed: {}", tail(&text));
    Ok(text)
}

/// The end of what a program said.
fn tail(text: &str) -> &str {
    let start = text.char_indices().rev().nth(2000).map_or(0, |(at, _)| at);
    text[start..].trim()
}

pub(super) fn write(folder: &Path, files: &[File]) -> anyhow::Result<()> {
    for file in files {
        std::fs::write(folder.join(file.name), &file.text)?;
    }
    Ok(())
}

fn sources(folder: &Path) -> anyhow::Result<Vec<String>> {
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
pub(super) fn play(folder: &Path, simulator: Simulator, stalls: u32) -> anyhow::Result<Played> {
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
            let mut options = vec!["--binary", "--timing", "-j", "1", "-fno-expand", &stalls];
            options.extend(["--top-module", "testbench", "-Mdir", "built"]);
            if !is_optimised {
                options.extend(["-MAKEFLAGS", "OPT_FAST=-O0 OPT_SLOW=-O0 OPT_GLOBAL=-O0"]);
            }
            must(folder, "verilator", &options.into_iter().chain(sources).collect::<Vec<_>>())?;
            must(folder, "./built/Vtestbench", &[])?
        }
    };
    ensure!(text.contains("PASS:"), "the testbench does not pass: {}", tail(&text));
    let number = |before: &str| {
        let (_, rest) = text.split_once(before)?;
        rest.split_whitespace().next()?.parse().ok()
    };
    let figure =
        |before| number(before).with_context(|| format!("no '{before}' in: {}", tail(&text)));
    Ok(Played {
        beats: figure("in: ")?,
        cycles: figure("beats in ")?,
        latency: figure("latency: ")?,
    })
}

/// Whether verilator has nothing to warn of in the modules, with all its warnings.
pub(super) fn lint(folder: &Path, top: &str, modules: &[File]) -> anyhow::Result<()> {
    let options = ["--lint-only", "-Wall", "--top-module", top];
    let names = modules.iter().map(|module| module.name);
    let (is_good, text) =
        said(folder, "verilator", &options.into_iter().chain(names).collect::<Vec<_>>())?;
    ensure!(is_good && text.trim().is_empty(), "verilator warns: {}", tail(&text));
    Ok(())
}

/// The gates of the modules of a folder.
pub(super) fn gates(folder: &Path) -> anyhow::Result<Gates> {
    let said = must(folder, "yosys", &["-q", "-s", "synth.ys"])?;
    // A memory that becomes registers, a bit that is never driven: the engine has none of them.
    if !said.trim().is_empty() {
        bail!("yosys warns: {}", tail(&said));
    }
    let read = |name: &str| std::fs::read_to_string(folder.join(name));
    Ok(Gates::read(&read("stat.txt")?, &read("ltp.txt")?)?)
}
