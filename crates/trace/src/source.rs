//! The bytes of a trace: unpacked, looked at in advance, cut into lines or records.

use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Read};
use std::rc::Rc;

use crate::collect::Collector;
use crate::error::{Position, Problem, TraceError, quoted};

/// The longest line of a text, in bytes.
pub const LINE_MAX: usize = 4096;

/// How much of the unpacked trace is looked at to tell its format.
const HEAD_SIZE: usize = 64 << 10;

/// How the file is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    Plain,
    Gzip,
    Zstd,
}

impl Packing {
    fn of(magic: &[u8]) -> Self {
        match magic {
            [0x1F, 0x8B, ..] => Self::Gzip,
            // A frame, or one of the 16 kinds of skippable frame that parallel packers put first.
            [0x28, 0xB5, 0x2F, 0xFD] | [0x50..=0x5F, 0x2A, 0x4D, 0x18] => Self::Zstd,
            _ => Self::Plain,
        }
    }
}

/// The unpacked bytes of a trace.
pub(crate) struct Source<'a> {
    name: &'a str,
    packing: Packing,
    head: Vec<u8>,
    reader: BufReader<Box<dyn Read + 'a>>,
    packed_bytes: Rc<Cell<u64>>,
}

/// One step of a text reader: takes the lines, one by one.
pub(crate) trait LineReader {
    /// Takes the next line, which is not blank, no comment, and has no blanks at its end.
    fn line(&mut self, line: &[u8], into: &mut Collector) -> Result<(), Problem>;
}

impl<'a> Source<'a> {
    /// Starts to read `source`, by whatever it is packed with.
    pub(crate) fn open(
        source: Box<dyn Read + 'a>,
        name: &'a str,
        progress: &'a mut dyn FnMut(u64),
    ) -> Result<Self, TraceError> {
        let packed_bytes = Rc::new(Cell::new(0));
        let mut counted = Counted { source, bytes: Rc::clone(&packed_bytes), progress };
        let mut magic = Vec::new();
        let mut packing = Packing::Plain;
        let mut head = Vec::new();
        let opened = read_up_to(&mut counted, 4, &mut magic).and_then(|()| {
            packing = Packing::of(&magic);
            let mut unpacked = unpack(packing, io::Cursor::new(magic).chain(counted))?;
            read_up_to(&mut unpacked, HEAD_SIZE, &mut head)?;
            Ok(unpacked)
        });
        let unpacked = match opened {
            Ok(unpacked) => unpacked,
            Err(error) => return Err(failure(name, packing, packed_bytes.get(), &error)),
        };
        let reader: Box<dyn Read + 'a> = Box::new(io::Cursor::new(head.clone()).chain(unpacked));
        let reader = BufReader::with_capacity(HEAD_SIZE, reader);
        Ok(Self { name, packing, head, reader, packed_bytes })
    }

    /// The first bytes of the trace, which stay to be read.
    pub(crate) fn head(&self) -> &[u8] {
        &self.head
    }

    /// Whether [`Source::head`] is the whole trace.
    pub(crate) fn head_is_all(&self) -> bool {
        self.head.len() < HEAD_SIZE
    }

    /// Hands every line to `reader` that is not blank and does not begin with `#`.
    pub(crate) fn read_lines(
        &mut self,
        reader: &mut dyn LineReader,
        into: &mut Collector,
    ) -> Result<(), TraceError> {
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            let mut limited = self.reader.by_ref().take(LINE_MAX as u64 + 1);
            match limited.read_until(b'\n', &mut line) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) => return Err(self.failure(&error)),
            }
            if line.len() > LINE_MAX && !line.ends_with(b"\n") {
                let expected = format!("a line of at most {LINE_MAX} bytes").into();
                let problem = Problem { column: LINE_MAX, expected, found: quoted(&line) };
                return Err(problem.in_line(self.name, number));
            }
            let text = line.trim_ascii_end();
            if text.is_empty() || text.trim_ascii_start().starts_with(b"#") {
                continue;
            }
            reader.line(text, into).map_err(|problem| problem.in_line(self.name, number))?;
        }
        Ok(())
    }

    /// The next record of `SIZE` bytes, number `record` from 0, or nothing at the end.
    pub(crate) fn read_record<const SIZE: usize>(
        &mut self,
        record: u64,
    ) -> Result<Option<[u8; SIZE]>, TraceError> {
        let mut bytes = [0; SIZE];
        let mut filled = 0;
        while filled < SIZE {
            match self.reader.read(&mut bytes[filled..]) {
                Ok(0) if filled == 0 => return Ok(None),
                Ok(0) => {
                    let expected = format!("{SIZE} bytes");
                    let found = format!("the end after {filled}");
                    return Err(self.in_record::<SIZE>(record, expected, found));
                }
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failure(&error)),
            }
        }
        Ok(Some(bytes))
    }

    /// Something is wrong with record `record`, each being of `SIZE` bytes.
    pub(crate) fn in_record<const SIZE: usize>(
        &self,
        record: u64,
        expected: String,
        found: String,
    ) -> TraceError {
        let position = Position::Record { record, byte: record * SIZE as u64 };
        TraceError { file: self.name.to_owned(), position, expected, found }
    }

    fn failure(&self, error: &io::Error) -> TraceError {
        failure(self.name, self.packing, self.packed_bytes.get(), error)
    }
}

/// Reads until `into` has `count` bytes or the source ends.
fn read_up_to(source: &mut dyn Read, count: usize, into: &mut Vec<u8>) -> io::Result<()> {
    source.take(count as u64).read_to_end(into).map(|_| ())
}

fn unpack<'a>(packing: Packing, source: impl Read + 'a) -> io::Result<Box<dyn Read + 'a>> {
    Ok(match packing {
        Packing::Plain => Box::new(source),
        Packing::Gzip => {
            let source = BufReader::with_capacity(HEAD_SIZE, source);
            Box::new(flate2::bufread::MultiGzDecoder::new(source))
        }
        Packing::Zstd => Box::new(zstd::stream::read::Decoder::new(source)?),
    })
}

fn failure(name: &str, packing: Packing, packed_bytes: u64, error: &io::Error) -> TraceError {
    let cut_off = error.kind() == io::ErrorKind::UnexpectedEof;
    let expected = match (packing, cut_off) {
        (Packing::Plain, _) => "more of the file",
        (Packing::Gzip, true) => "the rest of the gzip data",
        (Packing::Gzip, false) => "intact gzip data",
        (Packing::Zstd, true) => "the rest of the zstd data",
        (Packing::Zstd, false) => "intact zstd data",
    };
    let found = match (packing, cut_off) {
        (Packing::Gzip | Packing::Zstd, true) => "the end of the file: it was cut off".to_owned(),
        (Packing::Plain, _) | (Packing::Gzip | Packing::Zstd, false) => error.to_string(),
    };
    let position = Position::After { bytes: packed_bytes };
    TraceError { file: name.to_owned(), position, expected: expected.to_owned(), found }
}

/// A reader that tells how many bytes went through it.
struct Counted<'a> {
    source: Box<dyn Read + 'a>,
    bytes: Rc<Cell<u64>>,
    progress: &'a mut dyn FnMut(u64),
}

impl Read for Counted<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(into)?;
        self.bytes.set(self.bytes.get() + count as u64);
        (self.progress)(self.bytes.get());
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::sample;
    use crate::{Format, read};

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut packed = Vec::new();
        flate2::bufread::GzEncoder::new(bytes, flate2::Compression::default())
            .read_to_end(&mut packed)
            .unwrap();
        packed
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        zstd::encode_all(bytes, 1).unwrap()
    }

    fn error_of(bytes: &[u8], format: Option<Format>) -> TraceError {
        read(bytes, "t", format, &mut |_| ()).unwrap_err()
    }

    /// A reader that yields one byte at a time and is interrupted in between.
    struct Halting<'a> {
        bytes: &'a [u8],
        halts: bool,
    }

    impl Read for Halting<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.halts = !self.halts;
            if self.halts {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let count = into.len().min(1);
            self.bytes.read(&mut into[..count])
        }
    }

    #[test]
    fn packed_traces_read_as_the_plain_one_does() {
        for format in Format::ALL {
            let plain = sample(format);
            let trace = read(&*plain, "t", None, &mut |_| ()).unwrap();
            let twice = [gzip(&plain[..40]), gzip(&plain[40..])].concat();
            let with_skippable =
                [&[0x50, 0x2A, 0x4D, 0x18, 2, 0, 0, 0, 7, 7], &*zstd(&plain)].concat();
            for packed in [gzip(&plain), zstd(&plain), twice, with_skippable] {
                let mut told = 0;
                let unpacked = read(&*packed, "t", None, &mut |bytes| told = bytes).unwrap();
                assert_eq!(unpacked, trace, "{format}");
                assert_eq!(told, packed.len() as u64, "{format}");
            }
            let slow = Halting { bytes: &plain, halts: false };
            assert_eq!(read(slow, "t", None, &mut |_| ()).unwrap(), trace, "{format}");
        }
    }

    #[test]
    fn packed_traces_that_are_cut_off_are_errors_wherever_the_cut_is() {
        let plain = sample(Format::Vscsi1).repeat(1000);
        for (packed, named) in [(gzip(&plain), "gzip"), (zstd(&plain), "zstd")] {
            for kept in (4..packed.len()).step_by(7).chain([packed.len() - 1]) {
                let error = error_of(&packed[..kept], Some(Format::Vscsi1));
                assert_eq!(error.position, Position::After { bytes: kept as u64 }, "{error}");
                assert_eq!(error.expected, format!("the rest of the {named} data"));
                assert_eq!(error.found, "the end of the file: it was cut off");
            }
        }
    }

    #[test]
    fn packed_traces_with_other_bytes_in_them_are_errors() {
        let plain = sample(Format::Vscsi1).repeat(1000);
        for mut packed in [gzip(&plain), zstd(&plain)] {
            let end = packed.len() - 2;
            packed[end] ^= 0x55; // in the checksum, or in the last block
            let error = error_of(&packed, Some(Format::Vscsi1));
            assert!(error.to_string().starts_with("t, after "), "{error}");
        }
    }

    #[test]
    fn lines_have_a_limit() {
        let mut text = b"0 0 8 8 1\n".to_vec();
        text.extend([b' '; LINE_MAX - 9]);
        text.extend(b"9 0 8 8 1\n");
        let trace = read(&*text, "t", None, &mut |_| ()).unwrap();
        assert_eq!(trace.records.len(), 2);
        text.insert(12, b' ');
        let error = error_of(&text, None);
        assert_eq!(error.position, Position::Line { line: 2, column: LINE_MAX as u64 + 1 });
        assert_eq!(error.expected, "a line of at most 4096 bytes");
    }

    #[test]
    fn blank_lines_and_comments_count_as_lines_and_nothing_else() {
        let text = b"\r\n# made by hand\n  \t\n10 0 8 8 1\r\n\n  # more\n20 0 8 8 x";
        let error = error_of(text, None);
        assert_eq!(
            error.to_string(),
            "t:7:10: expected the type, 1 (read) or 0 (write), found 'x'"
        );
    }

    #[test]
    fn failing_readers_are_reported_with_how_far_they_came() {
        struct Failing(usize);
        impl Read for Failing {
            fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
                if self.0 == 0 {
                    return Err(io::Error::other("cable pulled"));
                }
                let count = into.len().min(self.0);
                self.0 -= count;
                into[..count].fill(b'\n');
                Ok(count)
            }
        }
        for bytes in [0, 3, 100_000] {
            let error = read(Failing(bytes), "t", Some(Format::Spc), &mut |_| ()).unwrap_err();
            let text =
                format!("t, after {bytes} bytes: expected more of the file, found cable pulled");
            assert_eq!(error.to_string(), text);
        }
    }
}
