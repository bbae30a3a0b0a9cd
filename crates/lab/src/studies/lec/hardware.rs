//! Table 2: gates of the engine in hardware, beside the paper's encoder and decoder.

use levelhead_rtl::{Kind, Row as Engine, committed};

use super::closed;
use crate::studies::{Drawing, Head, Row, Study, StudyPlan, Unit};

pub(super) const TABLE_2: Study = closed(
    [
        "lec.table2",
        "Gates of an encoder and a decoder in hardware, at 16 bytes a cycle",
        "[LEC17], Table 2",
        "At 4 GB/s and 250 MHz an encoder takes 11k to 78k equivalent XOR gates, and a decoder 156k to 894k.",
    ],
    |_| Ok(table_2()),
);

/// What is drawn, and what the paper's figure stands beside.
const ENCODING: &str = "XOR equivalents, beside the paper's encoder";
const BOTH: &str = "XOR equivalents, beside the paper's encoder and decoder";

fn table_2() -> StudyPlan {
    let mut plan = StudyPlan::default();
    let mut sectors = Vec::new();
    for engine in committed() {
        let Engine { published, kind, gates, ram_bits, bytes_per_cycle } = engine;
        let case = engine.name();
        let row = |metric: &str, figure: f64| {
            Row::exact(Head::new(case.clone(), metric), Unit::Count, figure)
        };
        let (encoder, decoder) = (published.encoder as f64, published.decoder as f64);
        let equivalent = gates.xor_equivalent();
        match kind {
            // One engine does the work of both.
            Kind::Sector => {
                plan.rows.push(row(BOTH, equivalent).paper(encoder + decoder));
                let code = format!("{},{}", published.redundant, published.data);
                sectors.push((code, case.clone()));
            }
            Kind::Polynomial => plan.rows.push(row(ENCODING, equivalent).paper(encoder)),
        }
        plan.rows.extend([
            row("XOR", gates.xor as f64),
            row("other gates", gates.and as f64),
            row("flip-flops", gates.flip_flops as f64),
            row("NAND2 equivalents", gates.nand2_equivalent()),
            row("RAM bits", ram_bits as f64),
            row("depth", gates.depth as f64),
            row("bytes a cycle", bytes_per_cycle).paper(16.0),
        ]);
    }
    let title = "The sector engine beside the paper's encoder and decoder together";
    plan.drawings.push(Drawing::beside_paper(title, "XOR equivalents", &[BOTH], &sectors));
    plan.remarks = vec![
        "Ours is counted by yosys: a XOR is 1, another gate of two inputs 1/2, a flip-flop 2.8. The \
         paper does not define its unit."
            .to_owned(),
        "Sector computes what was erased at known places, and encodes by the same gates; the paper's \
         decoder finds errors at unknown places. Its sums lie in RAM, which has no weight here; the \
         paper does not say whether its buffers are counted."
            .to_owned(),
        "Polynomial is the paper's encoder: all symbols of one codeword in turn.".to_owned(),
    ];
    plan
}
