//! No files of one crate that need each other.
//!
//! A file needs another if its product code names something that the other one defines. Where a name
//! passes through other files on its way (`pub use`, or an import of an import), the file at the end of
//! the way counts.
//!
//! A parent and its children are one thing in several files: a parent does not *need* what lies below
//! it, it consists of it, and its children may share what the parent defines. So `a/mod.rs` and `a/b.rs`
//! alone are no circle. `a/b.rs` and `a/c.rs` that name each other are, and so are `a/mod.rs` that needs
//! `d.rs`, `d.rs` that needs `a/b.rs`, and `a/b.rs` that needs `a/mod.rs`.
//!
//! `mod` declarations, imports of whole modules, comments and tests are no needs, and neither are
//! methods and macros that are used without a path.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::rust::{Kind, Token};
use super::sources::{Named, Source, group_end, named};
use super::{Finding, Rule};

/// How many imports a name may pass through; more are taken for imports that lead nowhere.
const WAY_MAX: usize = 16;

/// A module's names from the root of its crate.
type Path = Vec<String>;

/// The modules of one crate.
#[derive(Default)]
struct Crate<'a> {
    modules: BTreeMap<Path, Module<'a>>,
    /// The module that each file holds.
    files: BTreeMap<&'a str, Path>,
}

/// One module: a file, or a part of one.
struct Module<'a> {
    file: &'a str,
    /// What it defines itself.
    defined: BTreeSet<&'a str>,
    /// The paths that it names, each with the first line that does.
    named: BTreeMap<String, usize>,
    /// The path behind every name that an import gives; the first one's.
    imports: BTreeMap<String, String>,
    /// The paths of which it imports everything, in order.
    globs: Vec<String>,
}

impl<'a> Module<'a> {
    fn new(file: &'a str, defined: BTreeSet<&'a str>, all: Vec<Named>) -> Self {
        let mut module = Self {
            file,
            defined,
            named: BTreeMap::new(),
            imports: BTreeMap::new(),
            globs: Vec::new(),
        };
        for Named { path, line, bound, .. } in all {
            if let Some(bound) = bound {
                module.imports.entry(bound).or_insert_with(|| path.clone());
            }
            if path.ends_with("::*") {
                module.globs.push(path.clone());
            }
            module.named.entry(path).or_insert(line);
        }
        module
    }
}

/// Files, and the files that they need: the line that says so.
pub(crate) type Needs<'a> = BTreeMap<&'a str, BTreeMap<&'a str, usize>>;

pub(crate) fn check(sources: &[Source<'_>]) -> Vec<Finding> {
    needs(sources).iter().flat_map(|(dir, needs)| in_crate(dir, needs)).collect()
}

/// What the files of every crate need, by the crate's folder.
pub(crate) fn needs<'a>(sources: &[Source<'a>]) -> BTreeMap<&'a str, Needs<'a>> {
    let mut crates: BTreeMap<&str, Crate<'_>> = BTreeMap::new();
    for source in sources {
        let Some((dir, file)) = source.path.split_once("/src/") else { continue };
        if let Some(path) = module_path(file) {
            let modules = crates.entry(dir).or_default();
            modules.files.insert(source.path, path.clone());
            modules.add(path, source.path, &source.product);
        }
    }
    crates.iter().map(|(&dir, modules)| (dir, modules.needs())).collect()
}

fn in_crate(dir: &str, needs: &Needs<'_>) -> Vec<Finding> {
    let circles = circles(needs);
    circles.iter().map(|circle| finding(circle, needs, &format!("{dir}/src/"))).collect()
}

/// The module that the file at `path` below `src` holds.
fn module_path(path: &str) -> Option<Path> {
    let mut names: Path = path.strip_suffix(".rs")?.split('/').map(str::to_owned).collect();
    match names.last()?.as_str() {
        "mod" => drop(names.pop()),
        "lib" | "main" if names.len() == 1 => names.clear(),
        _ => {}
    }
    Some(names)
}

impl<'a> Crate<'a> {
    /// Adds the module at `path`, and the modules that stand within its code.
    fn add(&mut self, path: Path, file: &'a str, code: &[Token<'a>]) {
        let mut own = Vec::new();
        let mut defined = BTreeSet::new();
        let mut at = 0;
        while at < code.len() {
            let opens = code.get(at + 2).is_some_and(|token| token.is("{"));
            if code[at].is_word("mod") && opens {
                let end = group_end(code, at + 2);
                let inner = [path.as_slice(), &[code[at + 1].text.to_owned()]].concat();
                self.add(inner, file, &code[at + 3..end - 1]);
                at = end;
            } else if code[at].is("{") {
                let end = group_end(code, at);
                own.extend(&code[at..end]);
                at = end;
            } else {
                defined.extend(definition(&code[at..]));
                own.push(code[at]);
                at += 1;
            }
        }
        self.modules.insert(path, Module::new(file, defined, named(&own)));
    }

    fn needs(&self) -> Needs<'a> {
        let mut needs = Needs::new();
        for (path, module) in &self.modules {
            for (named, &line) in &module.named {
                let words: Vec<&str> = named.split("::").collect();
                let Some(file) = self.file_of(path, &words, WAY_MAX) else { continue };
                if !self.files[file].starts_with(&self.files[module.file]) {
                    let lines = needs.entry(module.file).or_default();
                    let first = lines.entry(file).or_insert(line);
                    *first = line.min(*first);
                }
            }
        }
        needs
    }

    /// The file that defines what `words` name in the module at `from`, if it is of this crate and no
    /// whole module.
    fn file_of(&self, from: &[String], words: &[&str], way: usize) -> Option<&'a str> {
        let (&first, rest) = words.split_first()?;
        let way = way.checked_sub(1)?;
        match first {
            "crate" => self.file_below(&[], rest, way),
            "self" => self.file_below(from, rest, way),
            "super" => {
                let (_, parent) = from.split_last()?;
                match rest {
                    ["super", ..] => self.file_of(parent, rest, way),
                    _ => self.file_below(parent, rest, way),
                }
            }
            _ => {
                let module = self.modules.get(from)?;
                let is_child = self.modules.contains_key(&below(from, first));
                if is_child || module.defined.contains(first) {
                    return self.file_below(from, words, way);
                }
                self.file_by_import(from, words, way)
            }
        }
    }

    /// The same for `words` that begin below the module at `path`.
    fn file_below(&self, path: &[String], words: &[&str], way: usize) -> Option<&'a str> {
        let (&first, rest) = words.split_first()?;
        let child = below(path, first);
        if self.modules.contains_key(&child) {
            return self.file_below(&child, rest, way);
        }
        let module = self.modules.get(path)?;
        if first == "*" {
            return None; // Each name that it brings is looked at where it is used.
        }
        if module.defined.contains(first) {
            return Some(module.file);
        }
        // What is neither defined nor imported here, a macro has defined.
        let imported = self.imported(path, first);
        if imported { self.file_by_import(path, words, way) } else { Some(module.file) }
    }

    /// Whether the module at `path` has `name` from an import.
    fn imported(&self, path: &[String], name: &str) -> bool {
        let Some(module) = self.modules.get(path) else { return false };
        module.imports.contains_key(name)
            || module.globs.iter().any(|glob| self.glob(path, glob).is_some())
    }

    /// The file that defines what `words` name in the module at `from`, which imports their first.
    fn file_by_import(&self, from: &[String], words: &[&str], way: usize) -> Option<&'a str> {
        let way = way.checked_sub(1)?;
        let (&first, rest) = words.split_first()?;
        let module = self.modules.get(from)?;
        if let Some(import) = module.imports.get(first) {
            let mut path: Vec<&str> = import.split("::").collect();
            if path == [first] {
                return None; // Another crate, or a name of this module.
            }
            path.extend(rest);
            return self.file_of(from, &path, way);
        }
        let mut globs = module.globs.iter().filter_map(|glob| self.glob(from, glob));
        globs.find_map(|module| {
            let has = self.modules[&module].defined.contains(first)
                || self.modules.contains_key(&below(&module, first))
                || self.modules[&module].imports.contains_key(first);
            if has { self.file_below(&module, words, way) } else { None }
        })
    }

    /// The module of this crate of which the path `glob`, in the module at `from`, imports everything.
    fn glob(&self, from: &[String], glob: &str) -> Option<Path> {
        let mut path = from.to_vec();
        for word in glob.strip_suffix("::*")?.split("::") {
            match word {
                "crate" => path.clear(),
                "self" => {}
                "super" => drop(path.pop()?),
                _ => path.push(word.to_owned()),
            }
        }
        self.modules.contains_key(&path).then_some(path)
    }
}

fn below(path: &[String], name: &str) -> Path {
    [path, &[name.to_owned()]].concat()
}

/// The name that the item at the start of `code` defines, if one starts there.
fn definition<'a>(code: &[Token<'a>]) -> Option<&'a str> {
    let word = |at: usize| code.get(at).filter(|token| token.kind == Kind::Word).map(|t| t.text);
    match word(0)? {
        "fn" | "struct" | "enum" | "union" | "trait" | "type" => word(1),
        "const" | "static" => word(if word(1) == Some("mut") { 2 } else { 1 }),
        "macro_rules" => word(2),
        _ => None,
    }
}

/// The sets of files that need each other, each in the order of their names.
fn circles<'a>(needs: &Needs<'a>) -> Vec<Vec<&'a str>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        needs.keys().map(|&file| (file, reach(file, needs))).collect();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut circles = Vec::new();
    for (&file, reach) in &reached {
        if reach.contains(file) && !seen.contains(file) {
            let back = |other: &&str| reached.get(*other).is_some_and(|from| from.contains(file));
            let circle: Vec<&str> = reach.iter().copied().filter(back).collect();
            seen.extend(&circle);
            circles.push(circle);
        }
    }
    circles
}

/// All files that `from` needs, directly or by way of others.
fn reach<'a>(from: &str, needs: &Needs<'a>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut left = vec![from];
    while let Some(file) = left.pop() {
        for &next in needs.get(file).into_iter().flat_map(BTreeMap::keys) {
            if reached.insert(next) {
                left.push(next);
            }
        }
    }
    reached
}

fn finding(circle: &[&str], needs: &Needs<'_>, src: &str) -> Finding {
    let way = shortest(circle[0], needs);
    let line = needs[way[0]][way[1]];
    let name = |file: &str| file.strip_prefix(src).unwrap_or(file).to_owned();
    let steps = way.windows(2).map(|two| format!("{}:{}", name(two[0]), needs[two[0]][two[1]]));
    let steps: Vec<String> = steps.chain([name(way[0])]).collect();
    let count = circle.len();
    let files: Vec<String> = circle.iter().map(|file| name(file)).collect();
    let sentence = format!(
        "{count} files need each other, as in {}; they are {}",
        steps.join(" -> "),
        files.join(" ")
    );
    Finding { path: way[0].to_owned(), line, rule: Rule::Circle, sentence }
}

/// The shortest way from `file` back to itself, both ends included.
fn shortest<'a>(file: &'a str, needs: &Needs<'a>) -> Vec<&'a str> {
    let mut ways = VecDeque::from([vec![file]]);
    let mut seen = BTreeSet::new();
    while let Some(way) = ways.pop_front() {
        let last = way[way.len() - 1];
        for &next in needs.get(last).into_iter().flat_map(BTreeMap::keys) {
            let longer = [way.as_slice(), &[next]].concat();
            if next == file {
                return longer;
            }
            if seen.insert(next) {
                ways.push_back(longer);
            }
        }
    }
    unreachable!("a file of a circle leads back to itself")
}

#[cfg(test)]
mod tests {
    use crate::tidy::Tree;

    const ROOT: &str = "//! S.\n#![forbid(unsafe_code)]\n";

    /// A crate of these files, and what is found: the sentences, without `circle: `.
    fn check(files: &[(&str, &str)], want: &[&str]) {
        let tree = files.iter().fold(Tree::planted(), |tree, (name, text)| {
            let head = if *name == "lib.rs" { ROOT } else { "//! A.\n" };
            tree.with_file(&format!("crates/stats/src/{name}"), &format!("{head}{text}"))
        });
        let want: Vec<String> =
            want.iter().map(|finding| format!("crates/stats/src/{finding}")).collect();
        assert_eq!(tree.findings(), want, "{files:?}");
    }

    #[test]
    fn planted_circle_of_two_is_found() {
        check(
            &[
                ("a.rs", "use crate::b::B;\npub struct A;\n"),
                ("b.rs", "fn f(_: crate::a::A) {}\npub struct B;\n"),
            ],
            &[
                "a.rs:2: circle: 2 files need each other, as in a.rs:2 -> b.rs:2 -> a.rs; they are a.rs b.rs",
            ],
        );
    }

    #[test]
    fn planted_circle_is_found_however_it_is_named() {
        let found = "a.rs:2: circle: 2 files need each other, as in a.rs:2 -> b.rs:2 -> a.rs; they are a.rs b.rs";
        for back in [
            "use super::a::A;",
            "use crate::{a::{A}, c};",
            "use crate::a; fn f() { a::A; }",
            "use crate::a as other; fn f(_: other::A) {}",
            "mod inner { use super::super::a::A; }",
            "mod inner { fn f() { crate::a::g(); } }",
            "use crate::A;",
            "use crate::a::*; fn f() { A::new(); }",
        ] {
            check(
                &[
                    ("lib.rs", "mod a;\nmod b;\nmod c;\npub use a::A;\n"),
                    ("a.rs", "use crate::b::B; pub struct A; pub fn g() {}\n"),
                    ("b.rs", &format!("{back} pub struct B;\n")),
                    ("c.rs", "pub struct C;\n"),
                ],
                &[found],
            );
        }
    }

    #[test]
    fn planted_circles_through_parents_are_found() {
        check(
            &[
                ("a/mod.rs", "mod b;\nuse crate::d::D;\npub struct A;\n"),
                ("a/b.rs", "use super::A;\npub struct B;\n"),
                ("d.rs", "use crate::a::b::B;\npub struct D;\n"),
            ],
            &[
                "a/b.rs:2: circle: 3 files need each other, as in a/b.rs:2 -> a/mod.rs:3 -> d.rs:2 -> \
               a/b.rs; they are a/b.rs a/mod.rs d.rs",
            ],
        );
    }

    #[test]
    fn planted_longer_circles_are_found_once_each() {
        check(
            &[
                ("a.rs", "use crate::b::B;\npub struct A;\n"),
                ("b.rs", "use crate::c::C;\npub struct B;\n"),
                ("c.rs", "use crate::a::A;\npub struct C;\n"),
                ("d.rs", "use crate::{a::A, e::E};\npub struct D;\n"),
                ("e.rs", "use crate::d::D;\npub struct E;\n"),
            ],
            &[
                "a.rs:2: circle: 3 files need each other, as in a.rs:2 -> b.rs:2 -> c.rs:2 -> a.rs; \
                 they are a.rs b.rs c.rs",
                "d.rs:2: circle: 2 files need each other, as in d.rs:2 -> e.rs:2 -> d.rs; they are \
                 d.rs e.rs",
            ],
        );
    }

    #[test]
    fn what_is_no_circle_is_let_through() {
        // A parent that hands out what its children define: one names the other through it, and both
        // what the parent defines.
        check(
            &[
                ("lib.rs", "mod a;\npub use a::B;\npub struct S;\n"),
                ("a/mod.rs", "mod b;\nmod c;\npub use b::B;\npub use c::*;\npub struct A(B);\n"),
                ("a/b.rs", "use super::{A, C};\npub struct B;\n"),
                ("a/c.rs", "use crate::S; use super::A;\npub struct C;\n"),
            ],
            &[],
        );
        // Tests, comments and strings, modules as such, and names that only look like modules.
        check(
            &[
                ("a.rs", "//! See [`crate::b::B`].\nuse crate::b;\npub struct A { b: u8 }\n"),
                (
                    "b.rs",
                    "use crate::a::A;\nconst S: &str = \"crate::a::A\";\n#[cfg(test)]\nmod tests {\n \
                     use super::*; use crate::a::A; }\npub struct B;\n",
                ),
            ],
            &[],
        );
    }

    #[test]
    fn imports_that_lead_nowhere_end() {
        check(
            &[
                ("a.rs", "pub use crate::b::X;\n"),
                ("b.rs", "pub use crate::a::X;\n"),
                ("c.rs", "use super::super::super::Y; use self::c::Z; use std::fmt::*;\n"),
            ],
            &[],
        );
    }
}
