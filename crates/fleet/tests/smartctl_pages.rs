//! The reader on pages of real drives, where those are at hand: `../shared/data/fleet` beside the workspace.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;

use levelhead_fleet::smart::{Erc, Limit, Page, read_page};
use levelhead_testkit::shared;

/// The bytes of a file of that folder.
fn bytes(name: &str) -> Option<Vec<u8>> {
    shared(&format!("fleet/{name}")).map(|path| fs::read(path).unwrap())
}

fn text(name: &str) -> Option<String> {
    bytes(name).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// The class of an answer as the index of the pages writes it.
fn class(erc: Erc) -> String {
    let limit = |limit| match limit {
        Limit::Off => "Disabled".to_owned(),
        Limit::Tenths(tenths) => tenths.to_string(),
    };
    match erc {
        Erc::NotRead => "erc-not-read".to_owned(),
        Erc::NoSct => "no-sct".to_owned(),
        Erc::SctWithoutErc => "sct-without-erc".to_owned(),
        Erc::Limits { read, write } if read == write => limit(read),
        Erc::Limits { read, write } => format!("{}/{}", limit(read), limit(write)),
    }
}

#[test]
fn every_page_is_of_its_class() {
    let Some(index) = text("smartctl/index.csv") else { return };
    let mut count = 0;
    for line in index.lines().skip(1) {
        let fields: Vec<_> = line.split(',').collect();
        let page = text(&format!("smartctl/{}", fields[0])).expect("a file of the index");
        let page = read_page(&page);
        assert_eq!(class(page.erc), fields[5], "{}", fields[0]);
        let plain = |text: &str| text.replace([' ', '-'], "");
        let model = page.model.unwrap_or_default();
        assert!(plain(&model).contains(&plain(fields[2])), "{model} {}", fields[2]);
        assert!(page.write_cache.is_some(), "{}", fields[0]);
        count += 1;
    }
    assert_eq!(count, 34);
}

#[test]
fn pages_cut_off_or_mangled_claim_nothing_else_and_never_panic() {
    let Some(index) = text("smartctl/index.csv") else { return };
    for line in index.lines().skip(1) {
        let name = line.split(',').next().unwrap_or_default();
        let page = text(&format!("smartctl/{name}")).expect("a file of the index");
        let whole = read_page(&page).erc;
        let ends = (0..page.len()).filter(|&end| page.is_char_boundary(end));
        for end in ends.step_by(if cfg!(debug_assertions) { 13 } else { 1 }) {
            let Page { erc, .. } = read_page(&page[..end]);
            assert!(erc == Erc::NotRead || erc == whole, "{name} {end}: {erc:?}");
        }
        let mut bytes = page.into_bytes();
        for at in (0..bytes.len()).step_by(397) {
            bytes[at] ^= 0x55;
            read_page(&String::from_utf8_lossy(&bytes));
        }
    }
}

/// A page as a drive with such answers gives it.
fn page_of(read: &str, write: &str, lists_erc: bool) -> String {
    let mut page = "SCT capabilities: \t       (0x003d)\tSCT Status supported.\n".to_owned();
    if lists_erc {
        page += "\t\t\t\t\tSCT Error Recovery Control supported.\n";
    }
    page += "\t\t\t\t\tSCT Data Table supported.\n\n";
    if !read.is_empty() {
        page += &format!(
            "SCT Error Recovery Control:\n           Read: {read}\n          Write: {write}\n"
        );
    }
    page
}

#[test]
fn digest_of_the_field_is_of_the_classes_that_it_counts() {
    let Some(packed) = bytes("linuxhw_enterprise_hdd.csv.gz") else { return };
    let mut digest = String::new();
    flate2::read::GzDecoder::new(&*packed).read_to_string(&mut digest).expect("a digest");
    let mut counts = BTreeMap::<&str, u32>::new();
    for line in digest.lines().skip(1) {
        let fields: Vec<_> = line.rsplit(',').take(4).collect();
        let [_, lists_erc, write, read] = fields[..] else { panic!("{line}") };
        let erc = read_page(&page_of(read, write, lists_erc == "1")).erc;
        *counts
            .entry(match erc {
                Erc::NotRead => "not read",
                Erc::NoSct | Erc::SctWithoutErc => "without",
                Erc::Limits { read: Limit::Off, .. } => "disabled",
                Erc::Limits { read: Limit::Tenths(1), .. } => "0.1 s",
                Erc::Limits { read: Limit::Tenths(_), .. } => "others",
            })
            .or_default() += 1;
    }
    assert_eq!(counts["disabled"], 6205);
    assert_eq!(counts["0.1 s"], 553);
    assert_eq!(counts["without"], 3223);
    assert_eq!(counts["not read"], 1169);
    assert_eq!(counts.values().sum::<u32>(), 30_590);
}
