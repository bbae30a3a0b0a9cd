//! The places in a source file where a mutant can be put, by the rules of `cargo-mutants`.
//!
//! | place | mutants |
//! |---|---|
//! | the body of a function | returns at once a value of its type ([`values`]) |
//! | a binary operator, an assignment with one | each of the operators that it may be confused with |
//! | `!` and the minus sign | left out |
//! | an arm of a `match` that has a wildcard arm | left out |
//! | the guard of an arm | `true`, `false` |
//! | a field of a struct literal with a base | left out |
//!
//! Left alone are tests, constants, statics, `const fn`, patterns, types, arguments of macros, and an `&&` that joins a
//! `let`: none of them can ask at run time which mutant is on.

use std::ops::Range;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, Pat, UnOp};

use super::values;

/// A place, and its mutants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Site {
    /// The bytes of the source that a mutant replaces; empty for an arm that has no guard.
    pub(crate) range: Range<usize>,
    pub(crate) form: Form,
    /// The function that the place lies in.
    pub(crate) function: String,
    pub(crate) line: usize,
    pub(crate) changes: Vec<Change>,
}

/// How a mutant is written into the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Instead of an expression.
    Expression,
    /// As the first statement of a function, whose body this is.
    Body,
    /// As a guard behind the pattern of an arm that has none.
    Arm,
    /// Before the guard of an arm.
    ArmWithGuard,
}

/// One mutant of a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// What is changed, in words.
    pub(crate) what: String,
    /// The text instead; none for an arm that is left out.
    pub(crate) text: String,
}

/// All places of a source file, in order; a place comes before those inside it.
pub(crate) fn find(source: &str) -> syn::Result<Vec<Site>> {
    let file = syn::parse_file(source)?;
    let mut finder =
        Finder { source, path: Vec::new(), function: String::new(), sites: Vec::new() };
    finder.visit_file(&file);
    let mut sites = finder.sites;
    sites.sort_by_key(|site| (site.range.start, std::cmp::Reverse(site.range.end)));
    Ok(sites)
}

struct Finder<'a> {
    source: &'a str,
    /// The modules and types around.
    path: Vec<String>,
    function: String,
    sites: Vec<Site>,
}

impl Finder<'_> {
    fn text(&self, of: &impl Spanned) -> &str {
        &self.source[of.span().byte_range()]
    }

    fn add(&mut self, range: Range<usize>, form: Form, changes: Vec<Change>) {
        if changes.is_empty() || self.function.is_empty() {
            return;
        }
        let line = 1 + self.source[..range.start].matches('\n').count();
        let function = self.function.clone();
        self.sites.push(Site { range, form, function, line, changes });
    }

    fn function(&mut self, sig: &syn::Signature, block: &syn::Block) {
        if sig.constness.is_some() {
            return;
        }
        let mut path = self.path.clone();
        path.push(sig.ident.to_string());
        let outer = std::mem::replace(&mut self.function, path.join("::"));
        if !block.stmts.is_empty() {
            let from = block.brace_token.span.open().byte_range().end;
            let to = block.brace_token.span.close().byte_range().start;
            let body = self.source[from..to].trim();
            let texts = values::of(&sig.output).into_iter().filter(|text| text != body);
            let changes = texts
                .map(|text| Change { what: format!("replace the body with {text}"), text })
                .collect();
            self.add(from..to, Form::Body, changes);
        }
        self.visit_block(block);
        self.function = outer;
    }

    fn inside(&mut self, name: String, visit: impl FnOnce(&mut Self)) {
        self.path.push(name);
        visit(self);
        self.path.pop();
    }

    fn arms(&mut self, arms: &[syn::Arm]) {
        let is_wild = |arm: &syn::Arm| matches!(arm.pat, Pat::Wild(_)) && arm.guard.is_none();
        let has_wild = arms.iter().any(is_wild);
        for arm in arms {
            let pattern = one_line(self.text(&arm.pat));
            let delete = || {
                let what = format!("delete the arm {pattern}");
                vec![Change { what, text: String::new() }]
            };
            match &arm.guard {
                None if has_wild && !is_wild(arm) => {
                    let end = arm.pat.span().byte_range().end;
                    self.add(end..end, Form::Arm, delete());
                }
                None => {}
                Some((_, guard)) if !has_let(guard) => {
                    let range = guard.span().byte_range();
                    if has_wild {
                        self.add(range.clone(), Form::ArmWithGuard, delete());
                    }
                    let changes = ["true", "false"].map(|text| Change {
                        what: format!("replace the guard of {pattern} with {text}"),
                        text: text.into(),
                    });
                    self.add(range, Form::Expression, changes.into());
                }
                Some(_) => {}
            }
        }
    }
}

fn has_let(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(binary) if matches!(binary.op, BinOp::And(_)) => {
            has_let(&binary.left) || has_let(&binary.right)
        }
        _ => false,
    }
}

/// Operators, and those that each may be confused with.
const OPERATORS: [(&str, &[&str]); 28] = [
    ("==", &["!="]),
    ("!=", &["=="]),
    ("&&", &["||"]),
    ("||", &["&&"]),
    ("<", &["==", ">", "<="]),
    (">", &["==", "<", ">="]),
    ("<=", &[">", "<"]),
    (">=", &["<", ">"]),
    ("+", &["-", "*"]),
    ("-", &["+", "/"]),
    ("*", &["+", "/"]),
    ("/", &["%", "*"]),
    ("%", &["/", "+"]),
    ("&", &["|", "^"]),
    ("|", &["&", "^"]),
    ("^", &["|", "&"]),
    ("<<", &[">>"]),
    (">>", &["<<"]),
    ("+=", &["-=", "*="]),
    ("-=", &["+=", "/="]),
    ("*=", &["+=", "/="]),
    ("/=", &["%=", "*="]),
    ("%=", &["/=", "+="]),
    ("&=", &["|="]),
    ("|=", &["&="]),
    ("^=", &["|=", "&="]),
    ("<<=", &[">>="]),
    (">>=", &["<<="]),
];

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::Path(path) => path.is_ident("test"),
        syn::Meta::List(list) => {
            list.path.is_ident("cfg") && list.tokens.to_string().starts_with("test")
        }
        syn::Meta::NameValue(_) => false,
    })
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_test(&item.attrs) {
            self.inside(item.ident.to_string(), |finder| visit::visit_item_mod(finder, item));
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !is_test(&item.attrs) {
            self.function(&item.sig, &item.block);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if is_test(&item.attrs) {
            return;
        }
        let of = match &*item.self_ty {
            syn::Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
            _ => None,
        };
        self.inside(of.unwrap_or_default(), |finder| visit::visit_item_impl(finder, item));
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !is_test(&item.attrs) {
            self.function(&item.sig, &item.block);
        }
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.function(&item.sig, block);
        }
    }

    // What is evaluated by the compiler, or is no expression.
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
    fn visit_item_enum(&mut self, _: &'ast syn::ItemEnum) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_generics(&mut self, _: &'ast syn::Generics) {}
    fn visit_generic_argument(&mut self, _: &'ast syn::GenericArgument) {}
    fn visit_pat(&mut self, _: &'ast Pat) {}
    fn visit_macro(&mut self, _: &'ast syn::Macro) {}
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}

    fn visit_expr_repeat(&mut self, repeat: &'ast syn::ExprRepeat) {
        self.visit_expr(&repeat.expr);
    }

    fn visit_expr_binary(&mut self, binary: &'ast syn::ExprBinary) {
        let op = self.text(&binary.op).to_owned();
        let instead = OPERATORS.iter().find(|(known, _)| *known == op);
        let joins_let = has_let(&binary.left) || has_let(&binary.right);
        if let (Some((_, others)), false) = (instead, joins_let) {
            let (left, right) = (self.text(&binary.left), self.text(&binary.right));
            let changes = others.iter().map(|other| Change {
                what: format!("replace {op} with {other}"),
                text: format!("({left}) {other} ({right})"),
            });
            let changes = changes.collect();
            self.add(binary.span().byte_range(), Form::Expression, changes);
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_unary(&mut self, unary: &'ast syn::ExprUnary) {
        let name = match unary.op {
            UnOp::Not(_) => Some("!"),
            UnOp::Neg(_) => Some("-"),
            _ => None,
        };
        if let Some(name) = name {
            let (what, text) = (format!("delete {name}"), self.text(&unary.expr).to_owned());
            let range = unary.span().byte_range();
            self.add(range, Form::Expression, vec![Change { what, text }]);
        }
        visit::visit_expr_unary(self, unary);
    }

    fn visit_expr_match(&mut self, matched: &'ast syn::ExprMatch) {
        self.arms(&matched.arms);
        visit::visit_expr_match(self, matched);
    }

    fn visit_expr_struct(&mut self, literal: &'ast syn::ExprStruct) {
        if literal.rest.is_some() {
            let whole = literal.span().byte_range();
            let (mut changes, fields) = (Vec::new(), &literal.fields);
            for pair in fields.pairs() {
                let field = pair.value();
                let from = field.span().byte_range().start;
                let comma = pair.punct().map(|comma| comma.span().byte_range().end);
                let to = comma.unwrap_or(field.span().byte_range().end);
                let syn::Member::Named(name) = &field.member else { continue };
                let before = &self.source[whole.start..from];
                let text = format!("{before}{}", &self.source[to..whole.end]);
                changes.push(Change { what: format!("delete the field {name}"), text });
            }
            self.add(whole, Form::Expression, changes);
        }
        visit::visit_expr_struct(self, literal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whats(source: &str) -> Vec<String> {
        let sites = find(source).expect("the source is good");
        let all = sites.into_iter().flat_map(|site| {
            let Site { function, changes, .. } = site;
            changes.into_iter().map(move |change| format!("{function}: {}", change.what))
        });
        all.collect()
    }

    #[test]
    fn every_kind_of_place_is_found() {
        let source = "
            impl Ring {
                fn is_full(&self, most: usize) -> bool { self.used + 1 >= most && !self.open }
            }
            fn kind(x: u8) -> u8 { match x { 1 => 2, 3 if x > 2 => 4, _ => 5 } }
            fn made(x: u8) -> A { A { a: x, ..A::new() } }
        ";
        let want = [
            "Ring::is_full: replace the body with true",
            "Ring::is_full: replace the body with false",
            "Ring::is_full: replace && with ||",
            "Ring::is_full: replace >= with <",
            "Ring::is_full: replace >= with >",
            "Ring::is_full: replace + with -",
            "Ring::is_full: replace + with *",
            "Ring::is_full: delete !",
            "kind: replace the body with 0",
            "kind: replace the body with 1",
            "kind: delete the arm 1",
            "kind: delete the arm 3",
            "kind: replace the guard of 3 with true",
            "kind: replace the guard of 3 with false",
            "kind: replace > with ==",
            "kind: replace > with <",
            "kind: replace > with >=",
            "made: replace the body with Default::default()",
            "made: delete the field a",
        ];
        assert_eq!(whats(source), want);
    }

    #[test]
    fn what_the_compiler_evaluates_and_tests_are_left_alone() {
        let source = "
            const A: usize = 1 + 2;
            const fn b() -> usize { 1 + 2 }
            fn c(x: [u8; 1 + 2]) { assert!(x[0] > 1); if let 1 = x[0] && x[1] == 2 {} }
            #[test]
            fn d() { let e = 1 + 2; }
            #[cfg(test)]
            mod tests { fn f() { let e = 1 + 2; } }
        ";
        assert_eq!(whats(source), ["c: replace the body with ()", "c: replace == with !="]);
    }
}
