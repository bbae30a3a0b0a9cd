//! Every Rust file of the tree as code and product: its tokens, the same without tests, and the
//! paths the latter names.
//!
//! Test code is an item under `#[cfg(test)]` (alone or in `all(..)`) or `#[test]`, a file that such
//! a `mod` names or that opens with `#![cfg(test)]`, and whatever lies in `tests/` or `benches/`.

use super::rust::{Kind, Token, tokens};
use super::tree::Tree;

/// One Rust file.
#[derive(Debug)]
pub(crate) struct Source<'a> {
    pub(crate) path: &'a str,
    pub(crate) text: &'a str,
    /// Everything in it.
    pub(crate) code: Vec<Token<'a>>,
    /// What remains without tests; nothing of a file that is all test.
    pub(crate) product: Vec<Token<'a>>,
    /// What kind of file it is.
    pub(crate) kind: FileKind<'a>,
}

/// Which crate a file belongs to, and as what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind<'a> {
    /// In the sources of `crates/<name>`.
    Crate(&'a str),
    /// A test module, an integration test or a benchmark, wherever.
    Test,
    /// Anywhere else: `xtask`, `bench`, `fuzz`.
    Other,
}

/// A path that code names, such as `std::time::Instant`, or a single word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    /// Its words joined by `::`; the path of an import of everything ends in `*`.
    pub(crate) path: String,
    pub(crate) line: usize,
    /// The name that it has here, if it is an import that gives it one.
    pub(crate) bound: Option<String>,
    /// Whether a `!` follows, as of a macro.
    pub(crate) called_as: CalledAs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CalledAs {
    Path,
    Macro,
}

/// The Rust files of `tree`.
pub(crate) fn read(tree: &Tree) -> Vec<Source<'_>> {
    let rust_files = tree.files.iter().filter(|file| file.path.ends_with(".rs"));
    let mut test_modules = Vec::new();
    let mut sources = Vec::new();
    for file in rust_files {
        let code = tokens(&file.text);
        let (product, modules) = without_tests(&code);
        let dir = module_dir(&file.path);
        test_modules.extend(modules.iter().map(|name| format!("{dir}/{name}")));
        let kind = kind(&file.path);
        sources.push(Source { path: &file.path, text: &file.text, code, product, kind });
    }
    for source in &mut sources {
        let in_module = |module: &String| {
            let rest = source.path.strip_prefix(module.as_str());
            rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
        };
        if test_modules.iter().any(in_module) {
            source.kind = FileKind::Test;
        }
        if source.kind == FileKind::Test {
            source.product.clear();
        }
    }
    sources
}

fn kind(path: &str) -> FileKind<'_> {
    let mut parts = path.split('/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some("crates"), Some(name), Some("src" | "build.rs")) => FileKind::Crate(name),
        _ if path.split('/').any(|part| part == "tests" || part == "benches") => FileKind::Test,
        _ => FileKind::Other,
    }
}

/// The folder in which the modules that the file at `path` declares lie.
fn module_dir(path: &str) -> String {
    let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
    match name {
        "lib.rs" | "main.rs" | "mod.rs" => dir.to_owned(),
        _ => path.trim_end_matches(".rs").to_owned(),
    }
}

/// `code` without its tests, and the names of the test modules that lie in files of their own.
fn without_tests<'a>(code: &[Token<'a>]) -> (Vec<Token<'a>>, Vec<&'a str>) {
    let mut product = Vec::new();
    let mut modules = Vec::new();
    let mut at = 0;
    while at < code.len() {
        if let Some(end) = attribute_end(code, at) {
            let is_inner = code[at + 1].is("!");
            let attribute = &code[at + if is_inner { 3 } else { 2 }..end - 1];
            if !is_test(attribute) {
                product.extend(&code[at..end]);
                at = end;
            } else if is_inner {
                return (Vec::new(), modules); // The whole file.
            } else {
                let (item_end, module) = skip_item(code, end);
                modules.extend(module);
                at = item_end;
            }
        } else {
            product.push(code[at]);
            at += 1;
        }
    }
    (product, modules)
}

/// The end of the attribute that starts at `at`, if one does.
fn attribute_end(code: &[Token<'_>], at: usize) -> Option<usize> {
    if !code[at].is("#") {
        return None;
    }
    let open = at + 1 + usize::from(code.get(at + 1)?.is("!"));
    code.get(open)?.is("[").then(|| group_end(code, open))
}

/// The end of the group that opens at `open`.
pub(crate) fn group_end(code: &[Token<'_>], open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in code.iter().enumerate().skip(open) {
        match token.text {
            "(" | "[" | "{" if token.kind == Kind::Mark => depth += 1,
            ")" | "]" | "}" if token.kind == Kind::Mark => depth = depth.saturating_sub(1),
            _ => continue,
        }
        if depth == 0 {
            return at + 1;
        }
    }
    code.len()
}

/// Whether an attribute with these tokens keeps its item out of the product.
fn is_test(attribute: &[Token<'_>]) -> bool {
    let words: Vec<_> = attribute.iter().map(|token| token.text).collect();
    match words.as_slice() {
        ["test"] | ["cfg", "(", "test", ")"] => true,
        ["cfg", "(", "all", "(", inner @ .., ")", ")"] => {
            let mut depth = 0_i32;
            inner.iter().any(|&word| {
                depth += i32::from(word == "(") - i32::from(word == ")");
                depth == 0 && word == "test"
            })
        }
        _ => false,
    }
}

/// The end of the item that starts at `at`, and its name if it is a module in a file of its own.
fn skip_item<'a>(code: &[Token<'a>], mut at: usize) -> (usize, Option<&'a str>) {
    while at < code.len() {
        match attribute_end(code, at) {
            Some(end) => at = end,
            None => break,
        }
    }
    let start = at;
    let words = &code[start..code.len().min(start + 6)];
    let is_import = words.iter().take(5).any(|token| token.is_word("use"));
    while at < code.len() {
        let token = &code[at];
        if token.is(";") {
            let module =
                words.windows(2).find(|pair| pair[0].is_word("mod")).map(|pair| pair[1].text);
            return (at + 1, module);
        }
        if token.is("}") || token.is(")") || token.is("]") {
            return (at, None); // The end of what the item stands in: a field, a match arm.
        }
        let is_group = token.is("{") || token.is("(") || token.is("[");
        let end = if is_group { group_end(code, at) } else { at + 1 };
        if token.is("{") && !is_import {
            return (end, None);
        }
        at = end;
    }
    (at, None)
}

/// Every path in `code`: imports spelled out one by one, other paths as they stand.
pub(crate) fn named(code: &[Token<'_>]) -> Vec<Named> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < code.len() {
        if code[at].is_word("use") {
            at = import(code, at + 1, "", &mut found);
        } else if code[at].kind == Kind::Word {
            let (path, end) = path_at(code, at);
            let is_macro = code.get(end).is_some_and(|token| token.is("!"))
                && !code.get(end + 1).is_some_and(|token| token.is("="));
            let called_as = if is_macro { CalledAs::Macro } else { CalledAs::Path };
            found.push(Named { path, line: code[at].line, bound: None, called_as });
            at = end;
        } else {
            at += 1;
        }
    }
    found
}

/// The path that starts with the word at `at`, and where it ends.
fn path_at(code: &[Token<'_>], at: usize) -> (String, usize) {
    let mut path = code[at].text.to_owned();
    let mut end = at + 1;
    while is_colons(code, end) && code.get(end + 2).is_some_and(|token| token.kind == Kind::Word) {
        path.push_str("::");
        path.push_str(code[end + 2].text);
        end += 3;
    }
    (path, end)
}

fn is_colons(code: &[Token<'_>], at: usize) -> bool {
    code.get(at).is_some_and(|token| token.is(":"))
        && code.get(at + 1).is_some_and(|token| token.is(":"))
}

/// Reads one branch of an import below `prefix`; returns where it ends.
fn import(code: &[Token<'_>], mut at: usize, prefix: &str, found: &mut Vec<Named>) -> usize {
    if is_colons(code, at) {
        at += 2;
    }
    let Some(token) = code.get(at) else { return at };
    let join = |word: &str| match (prefix, word) {
        ("", word) => word.to_owned(),
        (prefix, "self") => prefix.to_owned(),
        (prefix, word) => format!("{prefix}::{word}"),
    };
    let found_as = |path, bound| Named { path, line: token.line, bound, called_as: CalledAs::Path };
    if token.is("{") {
        at += 1;
        while let Some(token) = code.get(at) {
            if token.is("}") || token.is(";") {
                return at + 1;
            }
            at = if token.is(",") { at + 1 } else { import(code, at, prefix, found).max(at + 1) };
        }
        return at;
    }
    if token.is("*") {
        found.push(found_as(join("*"), None));
        return at + 1;
    }
    if token.kind != Kind::Word {
        return at;
    }
    let (path, end) = path_at(code, at);
    let path = match path.strip_suffix("::self") {
        Some(module) => join(module),
        None => join(&path),
    };
    if is_colons(code, end) {
        return import(code, end + 2, &path, found);
    }
    if code.get(end).is_some_and(|token| token.is_word("as")) {
        let alias = code.get(end + 1).map(|token| token.text.to_owned());
        found.push(found_as(path, alias));
        return end + 2;
    }
    let last = path.rsplit("::").next().map(str::to_owned);
    found.push(found_as(path, last));
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product(source: &str) -> String {
        let code = tokens(source);
        let words: Vec<_> = without_tests(&code).0.iter().map(|token| token.text).collect();
        words.join(" ")
    }

    #[test]
    fn test_items_are_left_out() {
        assert_eq!(product("a #[cfg(test)] mod tests { b { c } } d"), "a d");
        assert_eq!(
            product("a #[cfg(test)] #[allow(x)] pub(crate) fn b() -> [u8; 3] { c } d"),
            "a d"
        );
        assert_eq!(product("#[test] fn b() { c } d"), "d");
        assert_eq!(product("#[cfg(all(test, unix))] use b::{c, d}; e"), "e");
        assert_eq!(product("struct A { #[cfg(test)] b: u8 } c"), "struct A { } c");
    }

    #[test]
    fn other_conditions_stay() {
        let any = "# [ cfg ( any ( test , unix ) ) ] mod a { b }";
        assert_eq!(product(any), any);
        let not = "# [ cfg ( all ( not ( test ) ) ) ] mod a ;";
        assert_eq!(product(not), not);
    }

    #[test]
    fn a_file_under_cfg_test_is_all_test() {
        assert_eq!(product("#![cfg(test)] fn a() {}"), "");
        assert_eq!(product("#![forbid(x)] a"), "# ! [ forbid ( x ) ] a");
    }

    #[test]
    fn test_modules_in_files_of_their_own_are_found() {
        let tree = Tree::default()
            .with_file("crates/a/src/lib.rs", "#[cfg(test)] mod tests; mod b;")
            .with_file("crates/a/src/tests.rs", "x")
            .with_file("crates/a/src/tests/deep.rs", "x")
            .with_file("crates/a/src/b.rs", "#[cfg(test)] mod model;")
            .with_file("crates/a/src/b/model.rs", "x")
            .with_file("crates/a/src/tests_like.rs", "x");
        let kinds: Vec<_> = read(&tree).iter().map(|source| source.kind).collect();
        let (own, test) = (FileKind::Crate("a"), FileKind::Test);
        assert_eq!(kinds, [own, test, test, own, test, own]);
    }

    fn names(source: &str) -> Vec<String> {
        named(&tokens(source)).into_iter().map(|named| named.path).collect()
    }

    #[test]
    fn imports_are_spelled_out() {
        let source = "pub use std::{fmt::{self, Write as _}, time::Instant, fs::*}; x";
        let want = ["pub", "std::fmt", "std::fmt::Write", "std::time::Instant", "std::fs::*", "x"];
        assert_eq!(names(source), want);
        assert_eq!(names("use ::std::env;"), ["std::env"]);
        assert_eq!(names("use a::b::self as c;"), ["a::b"]);
        let bound = |source: &str| -> Vec<Option<String>> {
            named(&tokens(source)).into_iter().map(|named| named.bound).collect()
        };
        let bound_as = |name: &str| Some(name.to_owned());
        assert_eq!(
            bound("use a::{self, b::C as D, e::*, f}; g"),
            [bound_as("a"), bound_as("D"), None, bound_as("f"), None]
        );
    }

    #[test]
    fn paths_end_at_generics_and_macros_are_marked() {
        let found = named(&tokens("std::mem::take::<A>(x) a::print!(b != c)"));
        let list: Vec<_> = found.iter().map(|n| (n.path.as_str(), n.called_as)).collect();
        let path = CalledAs::Path;
        assert_eq!(list[0], ("std::mem::take", path));
        assert_eq!(list[3], ("a::print", CalledAs::Macro));
        assert_eq!(list[4], ("b", path));
    }

    #[test]
    fn broken_imports_end() {
        for source in ["use", "use a::", "use {", "use a::{b,", "use a::{::};", "use {;{"] {
            names(source);
        }
    }
}
