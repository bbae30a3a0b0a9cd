//! An archive in the format `newc`, which the kernel unpacks into its first file system.
//!
//! ```text
//!   header: "070701" and 13 fields of 8 hexadecimal digits | name, 0 | to 4 | content | to 4 | ..
//! ```
//!
//! The last entry is named `TRAILER!!!`. See `Documentation/driver-api/early-userspace/buffer-format.rst`
//! of Linux.

/// An archive in the making.
#[derive(Debug, Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

const DIRECTORY: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const TRAILER: &str = "TRAILER!!!";

impl Archive {
    /// A folder; its parents must have come before.
    pub(crate) fn folder(&mut self, name: &str) {
        self.entry(name, DIRECTORY, &[]);
    }

    /// A file that may be executed; its folder must have come before.
    pub(crate) fn file(&mut self, name: &str, content: &[u8]) {
        self.entry(name, PROGRAM, content);
    }

    /// The whole archive.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.entry(TRAILER, 0, &[]);
        self.bytes
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) {
        assert!(!name.starts_with('/'), "names are relative to the root: {name}");
        self.entries += 1;
        let size = |bytes: usize| u32::try_from(bytes).expect("a file is smaller than 4 GiB");
        // Inode, mode, user, group, links, time, size, device (two halves), its own device (two
        // halves), length of the name with its zero, checksum.
        let name_size = size(name.len() + 1);
        let fields =
            [self.entries, mode, 0, 0, 1, 0, size(content.len()), 0, 0, 0, 0, name_size, 0];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_has_headers_names_and_contents_at_multiples_of_four() {
        let mut archive = Archive::default();
        archive.folder("bin");
        archive.file("bin/a", b"xyz");
        let bytes = archive.finish();
        let text: String = bytes.iter().map(|byte| char::from(*byte)).collect();
        let folder = "07070100000001000041ed00000000000000000000000100000000000000000000000000\
                      000000000000000000000000000004000000"
            .to_owned()
            + "00bin\0";
        assert!(text.starts_with(&folder), "{text:?}");
        let file = text.find("bin/a").expect("it is there");
        assert_eq!((file - 110) % 4, 0);
        // 110 bytes of header and 6 of name fill 116 = 29 * 4.
        assert_eq!(&text[file + 6..file + 10], "xyz\0");
        assert!(text[file..].contains("TRAILER!!!\0"));
        assert_eq!(bytes.len() % 4, 0);
    }

    #[test]
    #[should_panic(expected = "relative to the root")]
    fn an_absolute_name_is_our_own_mistake() {
        Archive::default().folder("/bin");
    }
}
