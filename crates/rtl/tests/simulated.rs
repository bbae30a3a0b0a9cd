//! The emitted engine under iverilog and verilator, beside the `erasure` crate.

use std::fs;
use std::path::Path;
use std::process::Command;

use levelhead_erasure::{Code, Kernel};
use levelhead_rtl::{File, Group, Vectors, coefficients, sector};
use levelhead_stats::{Rng, Streams};

/// Whether a tool is there. Without it the test is left out, and says so; in CI it fails.
fn is_there(tool: &str, flag: &str) -> bool {
    let is_there = Command::new(tool).arg(flag).output().is_ok();
    if !is_there {
        assert!(std::env::var_os("CI").is_none(), "{tool} is not installed");
        eprintln!("SKIPPED: {tool} is not installed");
    }
    is_there
}

fn sectors(count: usize, size: usize, rng: &mut Rng) -> Vec<Vec<u8>> {
    let mut sectors = vec![vec![0; size]; count];
    sectors.iter_mut().for_each(|sector| rng.fill(sector));
    sectors
}

/// A random codeword, with `erased` of its symbols to be computed from the others.
fn group(code: &Code, size: usize, erased: &[usize], rng: &mut Rng) -> Group {
    let mut symbols = sectors(code.data(), size, rng);
    let mut redundant = vec![vec![0; size]; code.redundant()];
    {
        let data: Vec<&[u8]> = symbols.iter().map(Vec::as_slice).collect();
        let mut into: Vec<&mut [u8]> = redundant.iter_mut().map(Vec::as_mut_slice).collect();
        code.encode(Kernel::Naive, &data, &mut into).expect("the sizes fit");
    }
    symbols.extend(redundant);
    let plan = code.plan(erased, erased).expect("no more are erased than are redundant");
    let take = |at: &usize| symbols[*at].clone();
    Group {
        coefficients: coefficients(code, &plan).expect("the sizes fit"),
        sources: plan.sources().iter().map(take).collect(),
        wanted: erased.iter().map(take).collect(),
    }
}

/// The redundant symbols alone: encoding.
fn encoding(code: &Code, size: usize, rng: &mut Rng) -> Group {
    let erased: Vec<usize> = (code.data()..code.len()).collect();
    group(code, size, &erased, rng)
}

fn pattern(code: &Code, count: usize, rng: &mut Rng) -> Vec<usize> {
    let mut erased = Vec::new();
    while erased.len() < count {
        let symbol = rng.below(code.len() as u64) as usize;
        if !erased.contains(&symbol) {
            erased.push(symbol);
        }
    }
    erased.sort_unstable();
    erased
}

fn write(folder: &Path, files: &[File]) {
    for file in files {
        fs::write(folder.join(file.name), &file.text).expect("the folder takes files");
    }
}

fn said(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    format!("{text}{}", String::from_utf8_lossy(&output.stderr))
}

const SOURCES: [&str; 4] = ["row_ram.sv", "lanes.sv", "sector.sv", "testbench.sv"];

fn iverilog(folder: &Path, stalls: u32) -> String {
    let mut compile = Command::new("iverilog");
    compile.current_dir(folder).args(["-g2012", "-s", "testbench", "-o", "run"]);
    compile.arg(format!("-Ptestbench.STALLS={stalls}")).args(SOURCES);
    let complaints = said(&mut compile);
    assert!(folder.join("run").exists(), "{complaints}");
    said(Command::new("vvp").current_dir(folder).arg("run"))
}

fn verilator(folder: &Path, stalls: u32) -> String {
    let mut compile = Command::new("verilator");
    compile.current_dir(folder).args(["--binary", "--timing", "-O3", "-Wno-fatal"]);
    compile.args(["--top-module", "testbench", &format!("-GSTALLS={stalls}"), "-Mdir", "built"]);
    let complaints = said(compile.args(SOURCES));
    let program = folder.join("built/Vtestbench");
    assert!(program.exists(), "{complaints}");
    said(Command::new(program).current_dir(folder))
}

fn folder_of(code: &Code, beats_log: u32, groups: &[Group]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("there is a folder for temporary files");
    write(folder.path(), &sector(code).expect("the code fits"));
    write(folder.path(), &Vectors { code, beats_log, groups }.files());
    folder
}

fn replace(folder: &Path, file: &str, from: &str, to: &str) {
    let path = folder.join(file);
    let text = fs::read_to_string(&path).expect("it was written");
    assert!(text.contains(from), "{from} is not in {file}");
    fs::write(path, text.replacen(from, to, 1)).expect("it was written before");
}

/// Encoding, then every number of erasures in 20 patterns.
fn all_numbers_of_erasures(code: &Code, size: usize, rng: &mut Rng) -> Vec<Group> {
    let mut groups = vec![encoding(code, size, rng)];
    for count in 1..=code.redundant() {
        for _ in 0..20 {
            let erased = pattern(code, count, rng);
            groups.push(group(code, size, &erased, rng));
        }
    }
    groups
}

#[test]
fn engine_gives_the_bytes_of_the_erasure_crate_with_stalls_on_both_sides() {
    if !is_there("iverilog", "-V") {
        return;
    }
    let mut rng = Streams::new(1).stream("rtl");
    for code in [Code::new(20, 3), Code::new(260, 4)] {
        let code = code.expect("it exists");
        // Of the longer code each tenth group, which is every number of erasures twice.
        let step = if code.data() < 256 { 1 } else { 10 };
        let groups = all_numbers_of_erasures(&code, 256, &mut rng);
        let groups: Vec<Group> = groups.into_iter().step_by(step).collect();
        let folder = folder_of(&code, 4, &groups);
        let text = iverilog(folder.path(), 2);
        assert!(text.contains("PASS"), "{code:?}: {text}");
    }
}

#[test]
fn verilator_finds_nothing_to_warn_of() {
    if !is_there("verilator", "--version") {
        return;
    }
    for code in [Code::new(252, 3), Code::new(246, 9), Code::new(1019, 4), Code::new(1004, 19)] {
        let folder = tempfile::tempdir().expect("there is a folder for temporary files");
        write(folder.path(), &sector(&code.expect("it exists")).expect("it fits"));
        let mut lint = Command::new("verilator");
        lint.current_dir(folder.path()).args(["--lint-only", "-Wall", "--top-module", "sector"]);
        assert_eq!(said(lint.args(&SOURCES[..3])), "");
    }
}

#[test]
fn ten_groups_in_a_row_are_taken_at_nearly_16_bytes_a_cycle() {
    if !is_there("verilator", "--version") {
        return;
    }
    let code = Code::new(246, 9).expect("it exists");
    let mut rng = Streams::new(2).stream("rtl");
    let mut groups: Vec<Group> = (0..5).map(|_| encoding(&code, 4096, &mut rng)).collect();
    for _ in 0..5 {
        let erased = pattern(&code, 9, &mut rng);
        groups.push(group(&code, 4096, &erased, &mut rng));
    }
    let folder = folder_of(&code, 8, &groups);
    let text = verilator(folder.path(), 0);
    assert!(text.contains("PASS"), "{text}");
    let words: Vec<&str> =
        text.lines().find(|line| line.starts_with("in:")).expect("it is said").split(' ').collect();
    let (beats, cycles): (f64, f64) =
        (words[1].parse().expect("beats"), words[4].parse().expect("cycles"));
    println!("{} bytes a cycle", 16.0 * beats / cycles);
    assert!(16.0 * beats / cycles >= 15.9, "{text}");
}

#[test]
fn planted_faults_are_caught() {
    if !is_there("iverilog", "-V") {
        return;
    }
    let code = Code::new(20, 3).expect("it exists");
    let mut rng = Streams::new(3).stream("rtl");
    let groups = all_numbers_of_erasures(&code, 256, &mut rng);
    let faults = [
        ("a swapped coefficient", "next[row] : active", "next[(row + 1) % ROWS] : active"),
        ("a stall ignored", "(!out_valid || out_ready)", "1'b1"),
        ("a bank not cleared", "first && !high", "1'b0"),
    ];
    for (what, from, to) in faults {
        let folder = folder_of(&code, 4, &groups);
        replace(folder.path(), "sector.sv", from, to);
        let text = iverilog(folder.path(), 2);
        assert!(text.contains("FAIL"), "{what}: {text}");
    }
}
