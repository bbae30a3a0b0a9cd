//! The profiles that come with the program, by name.

pub(super) const ALL: [(&str, &str); 12] = [
    ("nearline-2tb", include_str!("../../profiles/nearline-2tb.toml")),
    ("nearline-6tb", include_str!("../../profiles/nearline-6tb.toml")),
    ("nearline-18tb", include_str!("../../profiles/nearline-18tb.toml")),
    ("st2000dm006", include_str!("../../profiles/st2000dm006.toml")),
    ("simple15k", include_str!("../../profiles/simple15k.toml")),
    ("cheetah15k5", include_str!("../../profiles/cheetah15k5.toml")),
    ("cheetah9lp", include_str!("../../profiles/cheetah9lp.toml")),
    ("barracuda", include_str!("../../profiles/barracuda.toml")),
    ("atlas_III", include_str!("../../profiles/atlas_III.toml")),
    ("maxtor300g", include_str!("../../profiles/maxtor300g.toml")),
    ("iraw-15k", include_str!("../../profiles/iraw-15k.toml")),
    ("iraw-10k", include_str!("../../profiles/iraw-10k.toml")),
];
