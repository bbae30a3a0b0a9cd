//! Mutants written into a source, so that one build has all of them: each place asks at run time which mutant is on.
//!
//! ```text
//!   a + 1 < b     (match crate::mutant::now() { 7 => ((a + 1) <= (b)),
//!                    _ => ((match crate::mutant::now() { 8 => ((a) - (1)), _ => (a + 1) }) < b) })
//! ```
//!
//! What a mutant says instead is the text of the source without other mutants, because only one is on at a time. So nested
//! places make the text longer by their depth, and not by its power.

use std::ops::Range;

use super::sites::{Form, Site};

/// What the copy has instead of a source.
#[derive(Debug, Default)]
pub(crate) struct Spliced {
    pub(crate) text: String,
    /// What belongs to each mutant in it, by number.
    pub(crate) own: Vec<(Range<usize>, u32)>,
    /// What each place covers, with all its mutants.
    pub(crate) around: Vec<(Range<usize>, Vec<u32>)>,
}

impl Spliced {
    /// The mutants that an error at this byte is due to: the one whose text it is in, or all of the innermost place around it.
    pub(crate) fn blamed(&self, at: usize) -> Vec<u32> {
        let own = self.own.iter().filter(|(range, _)| range.contains(&at));
        if let Some((_, number)) = own.min_by_key(|(range, _)| range.len()) {
            return vec![*number];
        }
        let around = self.around.iter().filter(|(range, _)| range.contains(&at));
        around.min_by_key(|(range, _)| range.len()).map_or(Vec::new(), |(_, all)| all.clone())
    }
}

/// A place with the numbers of those of its mutants that are to be there, and what each changes.
pub(crate) struct Chosen<'a> {
    pub(crate) site: &'a Site,
    /// The index in the place's changes, and the number.
    pub(crate) mutants: Vec<(usize, u32)>,
}

/// Writes the mutants of these places into a source. The places are in order, and those inside others come after them.
pub(crate) fn splice(source: &str, chosen: &[Chosen<'_>]) -> Spliced {
    let mut spliced = Spliced::default();
    // Places that are open: where they end, what comes there, and where they began in the new text.
    let mut open: Vec<(usize, &str, usize, Vec<u32>)> = Vec::new();
    let mut at = 0;
    for Chosen { site, mutants } in chosen {
        close(&mut spliced, source, &mut at, &mut open, site.range.start);
        spliced.text.push_str(&source[at..site.range.start]);
        at = site.range.start;
        let begin = spliced.text.len();
        let numbers: Vec<u32> = mutants.iter().map(|&(_, number)| number).collect();
        let after = write(&mut spliced, site, mutants);
        open.push((site.range.end, after, begin, numbers));
    }
    close(&mut spliced, source, &mut at, &mut open, usize::MAX);
    spliced.text.push_str(&source[at..]);
    spliced
}

/// Ends the places that end before this one begins.
fn close(
    spliced: &mut Spliced,
    source: &str,
    at: &mut usize,
    open: &mut Vec<(usize, &str, usize, Vec<u32>)>,
    next: usize,
) {
    while let Some((end, after, begin, numbers)) = open.pop_if(|(end, ..)| *end <= next) {
        spliced.text.push_str(&source[*at..end]);
        spliced.text.push_str(after);
        spliced.around.push((begin..spliced.text.len(), numbers));
        *at = end;
    }
}

/// Writes what comes before a place; returns what comes after it.
fn write(spliced: &mut Spliced, site: &Site, mutants: &[(usize, u32)]) -> &'static str {
    let Spliced { text, own, .. } = spliced;
    let mut each = |text: &mut String, before: &str, after: &str| {
        for &(at, number) in mutants {
            let begin = text.len();
            text.push_str(&format!("{number} => {before}{}{after}, ", site.changes[at].text));
            own.push((begin..text.len(), number));
        }
    };
    match site.form {
        Form::Expression => {
            text.push_str("(match crate::mutant::now() { ");
            each(text, "(", ")");
            text.push_str("_ => (");
            ")})"
        }
        Form::Body => {
            text.push_str(" match crate::mutant::now() { ");
            each(text, "return ", "");
            text.push_str("_ => {} } ");
            ""
        }
        Form::Arm => {
            let number = mutants[0].1;
            text.push_str(&format!(" if crate::mutant::now() != {number}"));
            ""
        }
        Form::ArmWithGuard => {
            let number = mutants[0].1;
            text.push_str(&format!("crate::mutant::now() != {number} && ("));
            ")"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sites::find;
    use super::*;

    fn all(source: &str) -> Spliced {
        let sites = find(source).expect("the source is good");
        let mut next = 0;
        let chosen = sites.iter().map(|site| {
            let mutants = (0..site.changes.len()).map(|at| {
                next += 1;
                (at, next)
            });
            Chosen { site, mutants: mutants.collect() }
        });
        splice(source, &chosen.collect::<Vec<_>>())
    }

    #[test]
    fn nested_places_are_switched_one_by_one() {
        let text = all("fn f(a: u8, b: u8) { g(a << 1 == b); }").text;
        let want = "fn f(a: u8, b: u8) { match crate::mutant::now() { 1 => return (), _ => {} }  \
            g((match crate::mutant::now() { 2 => ((a << 1) != (b)), _ => (\
            (match crate::mutant::now() { 3 => ((a) >> (1)), _ => (a << 1)}) == b)})); }";
        assert_eq!(text, want);
    }

    #[test]
    fn an_arm_is_left_out_by_its_guard() {
        let text = all("fn f(a: u8) { match a { 1 => g(), 2 if h(a) => i(), _ => j() } }").text;
        assert!(text.contains("1 if crate::mutant::now() != 2 => g()"), "{text}");
        let guard = "2 if crate::mutant::now() != 3 && ((match crate::mutant::now() { \
            4 => (true), 5 => (false), _ => (h(a))})) => i()";
        assert!(text.contains(guard), "{text}");
    }

    #[test]
    fn an_error_is_due_to_the_mutant_whose_text_it_is_in() {
        let spliced = all("fn f(a: u8, b: u8) { g(a << 1 == b); }");
        let at = |text: &str| spliced.text.find(text).expect("it is there");
        assert_eq!(spliced.blamed(at("!=")), [2]);
        assert_eq!(spliced.blamed(at(">>")), [3]);
        assert_eq!(spliced.blamed(at("== b")), [2]);
        assert!(spliced.blamed(0).is_empty());
    }
}
