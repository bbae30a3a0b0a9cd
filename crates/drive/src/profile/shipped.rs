//! The profiles that come with the program, by name.

pub(super) const ALL: [(&str, &str); 4] = [
    ("nearline-2tb", include_str!("../../profiles/nearline-2tb.toml")),
    ("nearline-6tb", include_str!("../../profiles/nearline-6tb.toml")),
    ("nearline-18tb", include_str!("../../profiles/nearline-18tb.toml")),
    ("st2000dm006", include_str!("../../profiles/st2000dm006.toml")),
];
