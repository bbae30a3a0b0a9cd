//! The demo of either program.

use std::fs;

use serde_json::Value;

use super::{Shelf, keys, levelhead};

/// The rows of the whole demo with these options, and its page; nothing unless `LEVELHEAD_DEMO=1` allows it a minute.
pub(crate) fn rows(options: &[&str]) -> Option<(Vec<Value>, String)> {
    if std::env::var_os("LEVELHEAD_DEMO").is_none_or(|value| value != "1") {
        eprintln!("SKIPPED: the demo takes more than a minute; LEVELHEAD_DEMO=1 runs it");
        return None;
    }
    let (shelf, out) = (Shelf::new(), Shelf::new());
    let page = out.path("page.html");
    let folder = shelf.dir.path().to_str().unwrap();
    let always = ["demo", "--json", "--folder", folder, "--report", &page, "--seed", "3"];
    let value = levelhead(&[always.as_slice(), options].concat()).json();
    assert_eq!(keys(&value), ["rows", "seed"]);
    assert_eq!(value["seed"], 3);
    assert_eq!(shelf.names(), [] as [&str; 0]);
    let page = fs::read_to_string(page).unwrap();
    Some((value["rows"].as_array().unwrap().clone(), page))
}
