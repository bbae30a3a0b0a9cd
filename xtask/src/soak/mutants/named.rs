//! Mutants placed by hand: those that no swarm and no test had noticed in the cold review of November 2026, by the review's
//! numbers.
//!
//! The text of each must be there: one that is gone is an error, so that this table follows the source.

use anyhow::Context;

use super::sites::{Change, Form, Site};

struct Named {
    name: &'static str,
    /// Below `crates/array/src`.
    file: &'static str,
    function: &'static str,
    /// Texts after which the expression comes, one after the other, from the beginning of the function on.
    after: &'static [&'static str],
    /// The expression, with the white space that it has in the source.
    find: &'static str,
    instead: &'static str,
    what: &'static str,
}

const ALL: [Named; 12] = [
    Named {
        name: "review-3",
        file: "journal/placer.rs",
        function: "take_flushed",
        after: &[],
        find: "Some(flush.covers)",
        instead: "Some([flush.covers, std::mem::take(&mut self.unsafe_ids)].concat())",
        what: "a flush covers intents that came into place after it began (N3)",
    },
    Named {
        name: "review-17",
        file: "journal/recovery/judging.rs",
        function: "judge_row",
        after: &["let listed: SymbolSet", "let missing = "],
        find: "data.minus(there).or(listed)",
        instead: "data.minus(there)",
        what: "a listed sector is taken as data in a mixed codeword",
    },
    Named {
        name: "review-24",
        file: "meta/state.rs",
        function: "miss",
        after: &[],
        find: "self.due()",
        instead: "Generation::NONE",
        what: "what a drive lacks is not waited for (J9)",
    },
    Named {
        name: "review-27",
        file: "store.rs",
        function: "is_committed",
        after: &[],
        find: "core.place.layout.spec().is_enough(away.or(copies))",
        instead: "!copies.is_empty()",
        what: "one drive is enough for a generation",
    },
    Named {
        name: "review-31",
        file: "array/background/rebuild.rs",
        function: "may_count",
        after: &[],
        find: "self.journal.as_mut().is_none_or(is_over)",
        instead: "self.journal.as_mut().is_none_or(is_over) || true",
        what: "a rebuilt drive counts before all that was begun without it is over (RB5)",
    },
    Named {
        name: "review-32",
        file: "array/background/rebuild.rs",
        function: "may_count",
        after: &["has_metadata"],
        find: "is_over && self.store.as_ref().is_none_or(has_metadata)",
        instead: "is_over",
        what: "a rebuilt drive counts before it has the newest metadata (RB5)",
    },
    Named {
        name: "review-33",
        file: "journal/mod.rs",
        function: "begin_filling",
        after: &["&mut self.requests.waiting"],
        find: "transaction.participants.contains(drive)",
        instead: "true",
        what: "every write that waits does without the new drive",
    },
    Named {
        name: "review-43",
        file: "journal/beginning.rs",
        function: "first_to_begin",
        after: &["None if "],
        find: "has_intent",
        instead: "false",
        what: "others begin between the transactions of an announced write (N4)",
    },
    Named {
        name: "review-47",
        file: "journal/room.rs",
        function: "on_others",
        after: &[],
        find: "ring != subject",
        instead: "true",
        what: "a copy of a record may lie on the subject's own ring (J8)",
    },
    Named {
        name: "review-48",
        file: "journal/recovery.rs",
        function: "handle_examined",
        after: &[],
        find: "!found.iter().any(|found| found.is_whole)",
        instead: "false",
        what: "what a recovery computed is not compared with its checksum (X5)",
    },
    Named {
        name: "review-49",
        file: "array/background/rebuild.rs",
        function: "note_marked",
        after: &[],
        find: "flush.is_some() || !is_over || !is_tagged || !self.core.meta.is_settled()",
        instead: "flush.is_some() || !is_over || !is_tagged",
        what: "the mark moves before the metadata is committed (RB2)",
    },
    Named {
        name: "review-52",
        file: "meta/state.rs",
        function: "note_change",
        after: &[],
        find: "self.begun.plus(1)",
        instead: "self.begun",
        what: "a change is due one generation too early (J10)",
    },
];

/// Those of one file, each with its name.
pub(super) fn of(file: &str, source: &str) -> anyhow::Result<Vec<(&'static str, Site)>> {
    let meant = ALL.iter().filter(|named| named.file == file);
    meant.map(|named| Ok((named.name, named.site(source)?))).collect()
}

/// The files that have some.
pub(super) fn files() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|named| named.file)
}

impl Named {
    fn site(&self, source: &str) -> anyhow::Result<Site> {
        let Self { name, file, function, find, .. } = self;
        let head = match *function {
            "" => String::new(),
            _ => format!("fn {function}("),
        };
        let mut at = 0;
        for text in std::iter::once(&*head).chain(self.after.iter().copied()).chain([*find]) {
            let found = source[at..].find(text);
            let found =
                found.with_context(|| format!("{name}: {file} has no {text:?} any more"))?;
            at += found + text.len();
        }
        let range = at - find.len()..at;
        let line = 1 + source[..range.start].matches('\n').count();
        let changes = vec![Change { what: self.what.into(), text: self.instead.into() }];
        Ok(Site { range, form: Form::Expression, function: (*function).into(), line, changes })
    }
}
