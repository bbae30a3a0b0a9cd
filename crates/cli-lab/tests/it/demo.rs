//! `levelhead-lab demo`: all of it where `LEVELHEAD_DEMO=1` allows it a minute.

use crate::support::demo::rows;

#[test]
fn demo_shows_what_virtual_time_predicts_beside_it() {
    let Some((rows, page)) = rows(&[]) else { return };
    assert_eq!(rows.len(), 5);
    for row in &rows {
        for key in ["predicted_mean_ms", "predicted_p50_ms", "predicted_p99_ms"] {
            assert!(row[key].as_f64().unwrap() > 0.0, "{row}");
        }
        // How they agree is the machine's affair.
        assert!(row["agrees"].is_boolean(), "{row}");
    }
    assert!(page.contains("virtual time"));
}
