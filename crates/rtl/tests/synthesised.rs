//! The emitted engine under yosys: no latches, and gates and depth beside `[LEC17]`, table 2.

use std::fs;
use std::process::Command;

use levelhead_erasure::Code;
use levelhead_rtl::sector;

/// RAM is counted apart: its module is a box without gates.
const SCRIPT: &str = "read_verilog -sv row_ram.sv; blackbox row_ram; read_verilog -sv lanes.sv sector.sv; \
    hierarchy -top sector; proc; flatten; opt; memory; wreduce; opt_clean; opt; techmap; opt; \
    abc -g XOR,AND,NAND,NOR,OR,XNOR,ANDNOT,ORNOT; opt_clean; tee -q -o stat stat; \
    delete t:row_ram; tee -q -o ltp ltp -noff";

/// The weight of a cell in XOR equivalents: XOR 1, flip-flops 2.8, other gates of two inputs 1/2. RAM has none.
fn weight(cell: &str) -> f64 {
    if cell.contains("LATCH") {
        panic!("a latch: {cell}");
    }
    match cell {
        "row_ram" => 0.0,
        "$_XOR_" | "$_XNOR_" => 1.0,
        _ if cell.contains("DFF") => 2.8,
        _ => 0.5,
    }
}

#[test]
fn engine_of_9_and_246_takes_less_than_the_encoder_of_the_paper() {
    if Command::new("yosys").arg("-V").output().is_err() {
        assert!(std::env::var_os("CI").is_none(), "yosys is not installed");
        eprintln!("SKIPPED: yosys is not installed");
        return;
    }
    let folder = tempfile::tempdir().expect("there is a folder for temporary files");
    for file in sector(&Code::new(246, 9).expect("it exists")).expect("it fits") {
        fs::write(folder.path().join(file.name), file.text).expect("the folder takes files");
    }
    let run = Command::new("yosys").current_dir(folder.path()).args(["-q", "-p", SCRIPT]).output();
    let run = run.expect("it starts");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).expect("yosys wrote it");
    let equivalent: f64 = read("stat")
        .lines()
        .filter_map(|line| line.trim().split_once(' '))
        .filter(|(cell, _)| cell.starts_with("$_") || *cell == "row_ram")
        .map(|(cell, count)| weight(cell) * count.trim().parse::<f64>().expect("a count"))
        .sum();
    println!("{equivalent} XOR equivalents");
    // The paper's encoder has 28k, its decoder 232k.
    assert!((10_000.0..=26_000.0).contains(&equivalent), "{equivalent}");
    let ltp = read("ltp");
    let depth = ltp.split("length=").nth(1).and_then(|text| text.split(')').next());
    let depth: u32 = depth.and_then(|text| text.parse().ok()).expect("a depth");
    assert!((4..=12).contains(&depth), "{depth}");
}
