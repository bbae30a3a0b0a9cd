//! Two codes and planted faults under the tools, which `cargo xtask rtl` runs beside all eight codes; in every run of the
//! tests what needs no tool.

use std::path::Path;

use levelhead_erasure::Code;
use levelhead_rtl::{BEAT_ROUNDING, committed};

use super::*;

/// Runs these steps of a code, all of which must be good.
fn runs(name: &str, kinds: &[Kind], steps: &[Step]) -> Vec<Done> {
    let published = code(name).expect("it is in the paper's table");
    let of_kind = |&kind: &Kind| steps.iter().map(move |&step| Job { published, kind, step });
    let jobs: Vec<Job> = kinds.iter().flat_map(of_kind).collect();
    let done = all(&jobs, 7);
    for done in &done {
        assert!(done.found.is_ok(), "{:?}: {:?}", done.job, done.found);
    }
    done
}

#[test]
#[ignore = "a minute of iverilog, verilator and yosys: cargo xtask rtl"]
fn every_byte_is_that_of_the_erasure_crate_with_stalls_on_both_sides() {
    runs("9,246", &Kind::ALL, &[Step::Lint, Step::Iverilog, Step::Verilator]);
    runs("4,1019", &Kind::ALL, &[Step::Lint]);
    runs("4,1019", &[Kind::Polynomial], &[Step::Iverilog]);
    runs("4,1019", &[Kind::Sector], &[Step::Verilator]);
}

#[test]
#[ignore = "a minute of iverilog, verilator and yosys: cargo xtask rtl"]
fn row_that_is_kept_is_what_the_tools_find() {
    let done = runs("9,246", &Kind::ALL, &[Step::Gates, Step::Throughput]);
    let published = code("9,246").expect("it is in the paper's table");
    for found in rows(&[published], &done) {
        let kept = committed();
        let kept =
            kept.iter().find(|kept| kept.name() == found.name()).expect("every code is kept");
        assert!((found.bytes_per_cycle - kept.bytes_per_cycle).abs() < BEAT_ROUNDING);
        assert_eq!(found.gates.rams, kept.gates.rams);
        // Another version of yosys finds other gates, but not many more.
        let ratio = found.gates.xor_equivalent() / kept.gates.xor_equivalent();
        assert!((0.9..=1.1).contains(&ratio), "{found:?} and {kept:?}");
        assert!(found.gates.depth <= 12, "{found:?}");
    }
}

/// A text in a module that is put in the place of another, and what that breaks.
struct Fault {
    what: &'static str,
    kind: Kind,
    from: &'static str,
    to: &'static str,
}

const FAULTS: [Fault; 9] = [
    Fault {
        what: "a swapped coefficient",
        kind: Kind::Sector,
        from: "next[SYMBOL*row +: SYMBOL] : active",
        to: "next[SYMBOL*((row + 1) % ROWS) +: SYMBOL] : active",
    },
    Fault {
        what: "a stall of the reader ignored",
        kind: Kind::Sector,
        from: "full[leave_bank] && (!out_valid || out_ready)",
        to: "full[leave_bank]",
    },
    Fault {
        what: "coefficients that are not waited for",
        kind: Kind::Sector,
        from: "!(starts && !is_loaded) && ",
        to: "",
    },
    Fault { what: "a bank not cleared", kind: Kind::Sector, from: "first && !high", to: "1'b0" },
    Fault {
        what: "a bank that is not waited for",
        kind: Kind::Sector,
        from: " && !(starts && first && full[bank])",
        to: "",
    },
    Fault {
        what: "a reset that leaves a beat behind",
        kind: Kind::Sector,
        from: "beat <= '0; first <= 1'b1;",
        to: "first <= 1'b1;",
    },
    Fault {
        what: "a swapped term",
        kind: Kind::Polynomial,
        from: "= used[0] ^",
        to: "= used[1] ^",
    },
    Fault {
        what: "a stall of the reader ignored",
        kind: Kind::Polynomial,
        from: " && (!out_valid || out_ready)",
        to: "",
    },
    Fault {
        what: "a remainder not cleared",
        kind: Kind::Polynomial,
        from: " & {REMAINDER{!first}}",
        to: "",
    },
];

fn plant(folder: &Path, Fault { what, kind, from, to }: &Fault) {
    let path = folder.join(format!("{kind}.sv"));
    let text = std::fs::read_to_string(&path).expect("it was written");
    assert!(text.contains(from), "{what}: {from} is not in the module");
    std::fs::write(path, text.replacen(from, to, 1)).expect("it was written before");
}

#[test]
#[ignore = "a minute of iverilog, verilator and yosys: cargo xtask rtl"]
fn planted_faults_are_caught() {
    for fault in &FAULTS {
        // Of two sectors come nine, so that the writer waits for banks.
        let code = match fault.kind {
            Kind::Sector => Code::new(2, 9),
            Kind::Polynomial => Code::new(20, 3),
        };
        let code = code.expect("it exists");
        let folder = tempfile::tempdir().expect("there is a place for temporary files");
        let play = Play::Patterns(4);
        let ask = Emit { code: &code, kind: fault.kind, sector_size: SHORT, play, seed: 7 };
        programs::write(folder.path(), &emit(&ask).expect("the code fits")).expect("there is room");
        let good = programs::play(folder.path(), Simulator::Iverilog, STALLS);
        assert!(good.is_ok(), "{good:?}");
        plant(folder.path(), fault);
        let problem =
            programs::play(folder.path(), Simulator::Iverilog, STALLS).expect_err(fault.what);
        assert!(problem.to_string().contains("FAIL"), "{}: {problem}", fault.what);
    }
}

#[test]
#[ignore = "a minute of iverilog, verilator and yosys: cargo xtask rtl"]
fn latches_and_warnings_are_caught() {
    let code = Code::new(20, 3).expect("it exists");
    let ask = Emit {
        code: &code,
        kind: Kind::Polynomial,
        sector_size: SHORT,
        play: Play::Row(1),
        seed: 7,
    };
    let folder = tempfile::tempdir().expect("there is a place for temporary files");
    programs::write(folder.path(), &emit(&ask).expect("the code fits")).expect("there is room");
    let fault = Fault {
        what: "a latch",
        kind: Kind::Polynomial,
        from: "assign out_data = remainder;",
        to: "always_latch if (in_valid) out_data = remainder;",
    };
    plant(folder.path(), &fault);
    let problem = programs::gates(folder.path()).expect_err("there is a latch").to_string();
    assert!(problem.contains("LATCH"), "{problem}");
    let unused = Fault {
        what: "an unused wire",
        kind: Kind::Polynomial,
        from: "logic first;",
        to: "logic first, spare;",
    };
    plant(folder.path(), &unused);
    let modules = modules(&code, Kind::Polynomial).expect("the code fits");
    let problem =
        programs::lint(folder.path(), "polynomial", &modules).expect_err("a wire is unused");
    assert!(problem.to_string().contains("UNUSED"), "{problem}");
}

#[test]
fn codes_of_the_table_are_named_as_in_the_paper() {
    assert_eq!(code("9,246").expect("it is in the paper's table").encoder, 28_000);
    assert!(code("9,247").is_err());
}

#[test]
fn page_has_the_table_that_is_kept() {
    let page =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rtl.md"))
            .expect("it is there");
    for line in text(&committed()).lines() {
        assert!(page.contains(line), "docs/rtl.md lacks: {line}");
    }
}
