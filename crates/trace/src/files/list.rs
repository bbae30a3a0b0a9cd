//! One's own list of what is done with files, one operation a line.
//!
//! ```text
//!   write data 0 64MiB      # a comment
//!   begin                   what comes before is prepared: it is not timed, and nothing of it is in memory from here on
//!   read data 4096 8KiB
//!   write data 64MiB 4096   at the end; or in place
//!   sync data               sync alone: every file that was written since its last sync
//!   think 20                milliseconds in which the processor is busy
//!   remove data
//! ```
//!
//! Files have names without spaces, and are made by their first write. What is longer than a request becomes several steps of one
//! operation.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use levelhead_units::{Bytes, Nanos};

use super::{FileId, Habit, REQUEST, Stage, Step};
use crate::error::{Position, Problem, TraceError, quoted};

/// The most operations of a list.
pub const OPERATIONS_MAX: usize = 1_000_000;

/// The most bytes that all operations of a list may read and write.
pub const MOVED_MAX: Bytes = Bytes::new(1 << 38);

/// The longest name of a file.
const NAME_MAX: usize = 200;

/// The longest time to think, in milliseconds: a day.
const THINK_MAX: f64 = 86.4e6;

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// Reads a part of a file.
    Read,
    /// Writes a part of a file; makes it, if it is not there.
    Write,
    /// What was written is safe.
    Sync,
    /// Removes a file.
    Remove,
    /// The processor is busy.
    Think,
}

impl Verb {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Read, Self::Write, Self::Sync, Self::Remove, Self::Think];

    /// As in a list.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Sync => "sync",
            Self::Remove => "remove",
            Self::Think => "think",
        }
    }
}

/// One operation: some steps of its stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// What it does.
    pub verb: Verb,
    /// Its steps, by their numbers in the stage.
    pub steps: Range<usize>,
}

/// A list that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileList {
    /// What is prepared, if anything is.
    pub prepared: Option<Stage>,
    /// What is timed.
    pub run: Stage,
    /// The operations of `run`.
    pub operations: Vec<Operation>,
}

impl FileList {
    /// Reads a list of which `window` steps may be under way at a time. `name` stands for the file in messages.
    ///
    /// ```
    /// use levelhead_trace::FileList;
    ///
    /// let list = FileList::read(b"write a 0 3MiB\nbegin\nread a 0 4096\n", "my.list", 1)?;
    /// assert_eq!((list.prepared.unwrap().steps.len(), list.run.steps.len()), (4, 1));
    /// # Ok::<(), levelhead_trace::TraceError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The first line that is no operation, or one that cannot be: of a file that is not there, beyond its end, or beyond a limit.
    pub fn read(text: &[u8], name: &str, window: u32) -> Result<Self, TraceError> {
        let mut reader = Reader::default();
        for (line, text) in (1..).zip(text.split(|&byte| byte == b'\n')) {
            reader.line(text).map_err(|problem| problem.in_line(name, line))?;
        }
        let Reader { steps, operations, prepared, .. } = reader;
        if operations.is_empty() {
            let found = if prepared.is_some() { "nothing behind begin" } else { "none" };
            return Err(TraceError {
                file: name.to_owned(),
                position: Position::Whole,
                expected: "at least one operation that is timed".to_owned(),
                found: found.to_owned(),
            });
        }
        let stage = |name, is_measured, steps| Stage { name, is_measured, window, steps };
        let prepared = prepared.map(|steps| stage("prepared", false, steps));
        Ok(Self { prepared, run: stage("run", true, steps), operations })
    }
}

/// A list as far as it has been read.
#[derive(Debug, Default)]
struct Reader {
    steps: Vec<Step>,
    operations: Vec<Operation>,
    /// What came before `begin`.
    prepared: Option<Vec<Step>>,
    files: BTreeMap<String, (FileId, u64)>,
    /// Files that were written since their last sync.
    dirty: BTreeSet<FileId>,
    named: u32,
    counted: usize,
    moved: u64,
}

/// What a line says, word by word.
struct Words<'a> {
    line: &'a str,
    rest: &'a str,
}

impl<'a> Words<'a> {
    fn problem(&self, expected: impl Into<std::borrow::Cow<'static, str>>, word: &str) -> Problem {
        let column = match word.is_empty() {
            true => self.line.trim_end().len(),
            // Words are parts of their line.
            false => word.as_ptr() as usize - self.line.as_ptr() as usize,
        };
        let found = match word.is_empty() {
            true => "the end of the line".to_owned(),
            false => quoted(word.as_bytes()),
        };
        Problem { column, expected: expected.into(), found }
    }

    /// The next word; empty at the end.
    fn next(&mut self) -> &'a str {
        let rest = self.rest.trim_start();
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let (word, rest) = rest.split_at(end);
        self.rest = rest;
        word
    }

    fn size(&mut self, what: &'static str) -> Result<(u64, &'a str), Problem> {
        let word = self.next();
        match word.parse::<Bytes>() {
            Ok(bytes) => Ok((bytes.get(), word)),
            Err(_) => Err(self.problem(format!("{what}, such as 4096 or 64KiB"), word)),
        }
    }

    fn end(&mut self) -> Result<(), Problem> {
        let word = self.next();
        if word.is_empty() { Ok(()) } else { Err(self.problem("the end of the line", word)) }
    }
}

const VERBS: &str = "read, write, sync, remove, think or begin";

impl Reader {
    fn line(&mut self, bytes: &[u8]) -> Result<(), Problem> {
        let line = std::str::from_utf8(bytes).map_err(|error| Problem {
            column: error.valid_up_to(),
            expected: "text in UTF-8".into(),
            found: quoted(bytes),
        })?;
        let rest = line.split('#').next().unwrap_or_default();
        let mut words = Words { line, rest };
        let verb = words.next();
        if verb.is_empty() {
            return Ok(());
        }
        let begun = self.steps.len();
        let verb = match verb {
            "begin" => return self.begin(&mut words, verb),
            "read" => self.read(&mut words)?,
            "write" => self.write(&mut words)?,
            "sync" => self.sync(&mut words)?,
            "remove" => self.remove(&mut words)?,
            "think" => self.think(&mut words)?,
            _ => return Err(words.problem(VERBS, verb)),
        };
        words.end()?;
        self.counted += 1;
        if self.counted > OPERATIONS_MAX {
            let expected = format!("at most {OPERATIONS_MAX} operations");
            return Err(Problem { column: 0, expected: expected.into(), found: "one more".into() });
        }
        if self.moved > MOVED_MAX.get() {
            let expected = format!("operations of at most {MOVED_MAX} in all");
            return Err(Problem { column: 0, expected: expected.into(), found: "more".into() });
        }
        self.operations.push(Operation { verb, steps: begun..self.steps.len() });
        Ok(())
    }

    fn begin(&mut self, words: &mut Words<'_>, verb: &str) -> Result<(), Problem> {
        if self.prepared.is_some() {
            return Err(words.problem("one begin in a list", verb));
        }
        self.operations.clear();
        self.dirty.clear();
        self.prepared = Some(std::mem::take(&mut self.steps));
        words.end()
    }

    /// A file that is there, and its size.
    fn file(&self, words: &mut Words<'_>) -> Result<(FileId, u64), Problem> {
        let name = words.next();
        let known = self.files.get(name).copied();
        known.ok_or_else(|| words.problem("a file that was written before", name))
    }

    fn read(&mut self, words: &mut Words<'_>) -> Result<Verb, Problem> {
        let (file, size) = self.file(words)?;
        let (offset, at) = words.size("the first byte")?;
        let (length, count) = words.size("how many bytes")?;
        if offset >= size {
            return Err(words.problem(format!("a byte of the file's {size}"), at));
        }
        if length == 0 || length > size - offset {
            let most = size - offset;
            return Err(words.problem(format!("1 to {most} bytes, to the file's end"), count));
        }
        self.parts(offset, length, |offset, length| Step::Read { file, offset, length });
        Ok(Verb::Read)
    }

    fn write(&mut self, words: &mut Words<'_>) -> Result<Verb, Problem> {
        let name = words.next();
        if name.is_empty() || name.len() > NAME_MAX {
            let expected = format!("the name of a file, of at most {NAME_MAX} bytes");
            return Err(words.problem(expected, name));
        }
        let size = self.files.get(name).map_or(0, |(_, size)| *size);
        let (offset, at) = words.size("the first byte")?;
        let (length, count) = words.size("how many bytes")?;
        if offset > size {
            let expected = format!("a byte from 0 to {size}, the end of the file");
            return Err(words.problem(expected, at));
        }
        if length == 0 || length > MOVED_MAX.get() {
            return Err(words.problem(format!("1 to {MOVED_MAX}"), count));
        }
        if !self.files.contains_key(name) {
            let file = FileId(self.named);
            self.named += 1;
            self.steps.push(Step::Create { file, habit: Habit::Changing });
            self.files.insert(name.to_owned(), (file, 0));
        }
        let known = self.files.get_mut(name).expect("it was made");
        known.1 = size.max(offset + length);
        let file = known.0;
        self.dirty.insert(file);
        self.parts(offset, length, |offset, length| Step::Write { file, offset, length });
        Ok(Verb::Write)
    }

    fn sync(&mut self, words: &mut Words<'_>) -> Result<Verb, Problem> {
        if words.rest.trim().is_empty() {
            self.steps.extend(std::mem::take(&mut self.dirty).into_iter().map(Step::Sync));
        } else {
            let (file, _) = self.file(words)?;
            self.dirty.remove(&file);
            self.steps.push(Step::Sync(file));
        }
        Ok(Verb::Sync)
    }

    fn remove(&mut self, words: &mut Words<'_>) -> Result<Verb, Problem> {
        let name = words.next();
        let Some((file, _)) = self.files.remove(name) else {
            return Err(words.problem("a file that was written before", name));
        };
        self.dirty.remove(&file);
        self.steps.push(Step::Remove(file));
        Ok(Verb::Remove)
    }

    fn think(&mut self, words: &mut Words<'_>) -> Result<Verb, Problem> {
        let word = words.next();
        let time = word.parse().ok().filter(|time| (0.0..=THINK_MAX).contains(time));
        let time: f64 =
            time.ok_or_else(|| words.problem(format!("0 to {THINK_MAX} milliseconds"), word))?;
        self.steps.push(Step::Compute(Nanos::new((time * 1e6).round() as u64)));
        Ok(Verb::Think)
    }

    /// What a request can bring at a time.
    fn parts(&mut self, offset: u64, length: u64, step: impl Fn(Bytes, Bytes) -> Step) {
        self.moved = self.moved.saturating_add(length);
        // What is beyond the limit is refused by the caller.
        if self.moved > MOVED_MAX.get() {
            return;
        }
        let end = offset + length;
        self.steps.extend(
            (offset..end)
                .step_by(REQUEST as usize)
                .map(|at| step(Bytes::new(at), Bytes::new(REQUEST.min(end - at)))),
        );
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<FileList, String> {
        FileList::read(text.as_bytes(), "my.list", 3).map_err(|error| error.to_string())
    }

    #[test]
    fn lines_become_steps_and_what_is_before_begin_is_prepared() {
        let list = read(
            "# files\nwrite a 0 2MiB  # two requests\n\nbegin\nread a 1MiB 1MiB\nwrite b 0 10\nwrite b 10 5\nsync\nthink 1.5\nsync b\nremove a\n",
        )
        .unwrap();
        let (a, b) = (FileId(0), FileId(1));
        let bytes = Bytes::new;
        let habit = Habit::Changing;
        let mib = Bytes::new(1 << 20);
        let prepared = list.prepared.unwrap();
        assert!(!prepared.is_measured && list.run.is_measured && list.run.window == 3);
        assert_eq!(
            prepared.steps,
            [
                Step::Create { file: a, habit },
                Step::Write { file: a, offset: bytes(0), length: mib },
                Step::Write { file: a, offset: mib, length: mib },
            ]
        );
        assert_eq!(
            list.run.steps,
            [
                Step::Read { file: a, offset: mib, length: mib },
                Step::Create { file: b, habit },
                Step::Write { file: b, offset: bytes(0), length: bytes(10) },
                Step::Write { file: b, offset: bytes(10), length: bytes(5) },
                Step::Sync(b),
                Step::Compute(Nanos::from_micros(1_500)),
                Step::Sync(b),
                Step::Remove(a),
            ]
        );
        let verbs: Vec<Verb> = list.operations.iter().map(|operation| operation.verb).collect();
        use Verb::{Read, Remove, Sync, Think, Write};
        assert_eq!(verbs, [Read, Write, Write, Sync, Think, Sync, Remove]);
        assert_eq!(list.operations[1].steps, 1..3);
        assert!(list.operations.iter().all(|operation| !operation.steps.is_empty()));
    }

    #[test]
    fn what_cannot_be_is_named_with_its_line_and_place() {
        for (text, expected) in [
            ("", "my.list: expected at least one operation that is timed, found none"),
            (
                "write a 0 1\nbegin\n",
                "my.list: expected at least one operation that is timed, found nothing behind begin",
            ),
            (
                "write a 0 1\nseek a 0",
                "my.list:2:1: expected read, write, sync, remove, think or begin, found 'seek'",
            ),
            ("read a 0 1", "my.list:1:6: expected a file that was written before, found 'a'"),
            ("sync a", "my.list:1:6: expected a file that was written before, found 'a'"),
            (
                "remove",
                "my.list:1:7: expected a file that was written before, found the end of the line",
            ),
            (
                "write a 5 1",
                "my.list:1:9: expected a byte from 0 to 0, the end of the file, found '5'",
            ),
            (
                "write a zero 1",
                "my.list:1:9: expected the first byte, such as 4096 or 64KiB, found 'zero'",
            ),
            ("write a 0 0", "my.list:1:11: expected 1 to 256GiB, found '0'"),
            ("write a 0 1 1", "my.list:1:13: expected the end of the line, found '1'"),
            (
                "write a 0 8\nread a 4 5",
                "my.list:2:10: expected 1 to 4 bytes, to the file's end, found '5'",
            ),
            ("write a 0 8\nread a 8 1", "my.list:2:8: expected a byte of the file's 8, found '8'"),
            ("think -1", "my.list:1:7: expected 0 to 86400000 milliseconds, found '-1'"),
            ("think NaN", "my.list:1:7: expected 0 to 86400000 milliseconds, found 'NaN'"),
            ("begin\nbegin", "my.list:2:1: expected one begin in a list, found 'begin'"),
            (
                "write a 0 200GiB\nwrite a 0 100GiB",
                "my.list:2:1: expected operations of at most 256GiB in all, found more",
            ),
            (
                "write a 0 1\nremove a\nread a 0 1",
                "my.list:3:6: expected a file that was written before, found 'a'",
            ),
        ] {
            assert_eq!(read(text).unwrap_err(), expected, "{text:?}");
        }
        let error = FileList::read(b"sync \xff", "my.list", 1).unwrap_err().to_string();
        assert!(error.starts_with("my.list:1:6: expected text in UTF-8"), "{error}");
    }

    proptest! {
        /// Whatever a list says, it is read or refused; what is read is within the files (FW2).
        #[test]
        fn arbitrary_lists_are_read_or_refused(
            lines in prop::collection::vec("(read|write|sync|remove|think|begin|#)? ?[abc]? [0-9]{0,4} [0-9]{0,4}", 0..20),
            bytes in prop::collection::vec(any::<u8>(), 0..60),
        ) {
            let _ = FileList::read(&bytes, "my.list", 1);
            if let Ok(list) = FileList::read(lines.join("\n").as_bytes(), "my.list", 1) {
                let mut sizes = BTreeMap::new();
                for step in list.prepared.iter().flat_map(|stage| &stage.steps).chain(&list.run.steps) {
                    match *step {
                        Step::Create { file, .. } => {
                            prop_assert!(sizes.insert(file, 0).is_none());
                        }
                        Step::Write { file, offset, length } => {
                            let size = sizes.get_mut(&file).expect("it was made");
                            prop_assert!(offset.get() <= *size);
                            *size = (*size).max(offset.get() + length.get());
                        }
                        Step::Read { file, offset, length } => {
                            prop_assert!(offset.get() + length.get() <= sizes[&file]);
                        }
                        Step::Sync(file) => prop_assert!(sizes.contains_key(&file)),
                        Step::Remove(file) => prop_assert!(sizes.remove(&file).is_some()),
                        Step::Compute(_) => {}
                    }
                }
            }
        }
    }
}
