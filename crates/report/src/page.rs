//! One HTML page, complete in itself: nothing is loaded from anywhere, and the page's own policy forbids it.
//!
//! Figures answer to pointer and keys by a script (`page.js`) that is part of the page. Curves are drawn
//! anew by [uPlot](https://github.com/leeoniya/uPlot), whose licence (MIT) the page repeats; bars and
//! heat maps stay the pictures that they are. Where no script runs, so do curves: each figure is there
//! twice, for a broad page and for a narrow one, of which the page shows one.

use crate::figure::{Breadth, Figure, Live};
use crate::markup::{colour_rules, escape};
use crate::table::Table;

/// A page, built from top to bottom.
///
/// ```
/// use levelhead_report::{Column, Page, Table};
///
/// let mut table = Table::new([Column::left("policy"), Column::right("p99, ms")]);
/// table.push(["normal", "221"]);
/// let html = Page::new("Replay of a trace")
///     .facts([("seed", "7"), ("version", "0.1.0")])
///     .paragraph("One drive of six is slow.")
///     .table("Latency of reads", table)
///     .to_html();
/// assert!(html.starts_with("<!doctype html>"));
/// ```
#[derive(Clone, Debug)]
pub struct Page {
    title: String,
    blocks: Vec<Block>,
}

#[derive(Clone, Debug)]
enum Block {
    Heading(String),
    Paragraph(String),
    Facts(Vec<(String, String)>),
    Lead(String),
    Table {
        caption: String,
        table: Table,
    },
    Figure(Figure),
    /// Blocks that a reader opens by their name.
    Folded {
        name: String,
        blocks: Vec<Block>,
    },
}

impl Page {
    /// An empty page.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), blocks: Vec::new() }
    }

    /// Begins a section.
    #[must_use]
    pub fn heading(self, text: impl Into<String>) -> Self {
        self.with(Block::Heading(text.into()))
    }

    /// Adds a paragraph of plain text.
    #[must_use]
    pub fn paragraph(self, text: impl Into<String>) -> Self {
        self.with(Block::Paragraph(text.into()))
    }

    /// Puts at the top the sentence that a reader who reads one sentence should read.
    #[must_use]
    pub fn lead(mut self, text: impl Into<String>) -> Self {
        self.blocks.insert(0, Block::Lead(text.into()));
        self
    }

    /// Adds all of `page` but its title, folded away under `name` until a reader opens it.
    #[must_use]
    pub fn folded(self, name: impl Into<String>, page: Self) -> Self {
        self.with(Block::Folded { name: name.into(), blocks: page.blocks })
    }

    /// Adds what a reader needs to repeat the result: seed, options, version.
    #[must_use]
    pub fn facts<N: Into<String>, V: Into<String>>(
        self,
        facts: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        let facts = facts.into_iter().map(|(name, value)| (name.into(), value.into()));
        self.with(Block::Facts(facts.collect()))
    }

    /// Adds a table; an empty caption is left out.
    #[must_use]
    pub fn table(self, caption: impl Into<String>, table: Table) -> Self {
        self.with(Block::Table { caption: caption.into(), table })
    }

    /// Adds a figure.
    #[must_use]
    pub fn figure(self, figure: Figure) -> Self {
        self.with(Block::Figure(figure))
    }

    fn with(mut self, block: Block) -> Self {
        self.blocks.push(block);
        self
    }

    /// The page as one file.
    pub fn to_html(&self) -> String {
        let title = escape(&self.title);
        let colours = colour_rules(":root");
        let figure_rules = crate::figure::RULES;
        let mut body = Body::default();
        push_blocks(&self.blocks, &mut body);
        let (plot_rules, scripts) = body.scripts();
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{title}</title>\n<style id=\"lh-figure-style\">\n{colours}{figure_rules}</style>\n\
             <style>\n{RULES}{plot_rules}</style>\n</head>\n\
             <body>\n<main>\n<h1>{title}</h1>\n{}</main>\n{scripts}</body>\n</html>\n",
            body.html
        )
    }
}

/// What a browser may do for the page: run what is in it, and nothing else.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                      base-uri 'none'; form-action 'none'";

/// What stands between the title and the end, and what that needs.
#[derive(Debug, Default)]
struct Body {
    html: String,
    has_figures: bool,
    has_curves: bool,
}

impl Body {
    fn push(&mut self, html: &str) {
        self.html.push_str(html);
    }

    fn push_figure(&mut self, figure: &Figure) {
        self.push("<figure class=\"lh-fig\">\n<div class=\"lh-still\">\n");
        for breadth in [Breadth::Broad, Breadth::Narrow] {
            self.push(&figure.to_inline_svg(breadth));
        }
        self.push("</div>\n");
        if let Some(live) = figure.to_live() {
            self.has_figures = true;
            self.has_curves |= live.is_drawn();
            self.push("<script type=\"application/json\">");
            self.push(&Live::to_script_text(&live));
            self.push("</script>\n");
        }
        self.push("</figure>\n");
    }

    /// Rules and scripts of the figures that there are.
    fn scripts(&self) -> (&'static str, String) {
        let script =
            if self.has_figures { format!("<script>\n{SCRIPT}</script>\n") } else { String::new() };
        match self.has_curves {
            true => {
                let plot = format!("<script>\n/*\nuPlot\n{UPLOT_LICENCE}*/\n{UPLOT}\n</script>\n");
                (UPLOT_RULES, plot + &script)
            }
            false => ("", script),
        }
    }
}

/// Adds blocks from top to bottom; tables and figures that follow each other stand side by side where
/// a page has the room.
fn push_blocks(blocks: &[Block], body: &mut Body) {
    for run in blocks.chunk_by(|a, b| a.is_exhibit() && b.is_exhibit()) {
        if run[0].is_exhibit() {
            body.push("<div class=\"lh-row\">\n");
        }
        run.iter().for_each(|block| block.push_html(body));
        if run[0].is_exhibit() {
            body.push("</div>\n");
        }
    }
}

impl Block {
    /// A table or a picture.
    fn is_exhibit(&self) -> bool {
        match self {
            Self::Table { .. } => true,
            Self::Figure(figure) => figure.one_value().is_none(),
            Self::Heading(_)
            | Self::Paragraph(_)
            | Self::Facts(_)
            | Self::Lead(_)
            | Self::Folded { .. } => false,
        }
    }

    fn push_html(&self, body: &mut Body) {
        match self {
            Self::Heading(text) => body.push(&format!("<h2>{}</h2>\n", escape(text))),
            Self::Paragraph(text) => body.push(&format!("<p>{}</p>\n", escape(text))),
            Self::Lead(text) => {
                body.push(&format!("<p class=\"lh-lead\">{}</p>\n", escape(text)));
            }
            Self::Facts(facts) => {
                body.push("<dl class=\"lh-facts\">\n");
                for (name, value) in facts {
                    let (name, value) = (escape(name), escape(value));
                    body.push(&format!("<dt>{name}</dt><dd>{value}</dd>\n"));
                }
                body.push("</dl>\n");
            }
            Self::Table { caption, table } => {
                body.push("<figure class=\"lh-wide\">\n");
                if !caption.is_empty() {
                    body.push(&format!("<figcaption>{}</figcaption>\n", escape(caption)));
                }
                body.push(&table.to_html());
                body.push("</figure>\n");
            }
            Self::Figure(figure) => match figure.one_value() {
                Some(sentence) => body.push(&format!("<p>{}</p>\n", escape(&sentence))),
                None => body.push_figure(figure),
            },
            Self::Folded { name, blocks } => {
                body.push(&format!("<details>\n<summary>{}</summary>\n", escape(name)));
                push_blocks(blocks, body);
                body.push("</details>\n");
            }
        }
    }
}

/// How the page looks. The colours are those of [`colour_rules`].
const RULES: &str = include_str!("page.css");
/// What makes figures answer.
const SCRIPT: &str = include_str!("page.js");
/// What draws curves, version 1.6.32, as its authors publish it.
const UPLOT: &str = include_str!("../vendor/uplot/uPlot.iife.min.js");
const UPLOT_RULES: &str = include_str!("../vendor/uplot/uPlot.min.css");
const UPLOT_LICENCE: &str = include_str!("../vendor/uplot/LICENSE");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::{Axis, Shading};
    use crate::table::Column;

    fn page() -> Page {
        let mut table = Table::new([Column::left("a")]);
        table.push(["1 < 2"]);
        Page::new("Slow & \"steady\"")
            .facts([("command", "replay '<x>'")])
            .heading("Results")
            .paragraph("a <b>bold</b> claim")
            .table("", table.clone())
            .table("One table", table)
            .figure(Figure::cdf("Latency", "ms", &[("normal", &[1.0, 2.0])]))
            .figure(Figure::cdf("Latency", "ms", &[("level", &[1.0, 2.0])]))
    }

    #[test]
    fn what_the_caller_says_is_never_markup() {
        let html = page().to_html();
        assert!(html.contains("<title>Slow &amp; &quot;steady&quot;</title>"), "{html}");
        assert!(html.contains("<h1>Slow &amp; &quot;steady&quot;</h1>"), "{html}");
        assert!(html.contains("<dt>command</dt><dd>replay &#39;&lt;x&gt;&#39;</dd>"), "{html}");
        assert!(html.contains("<p>a &lt;b&gt;bold&lt;/b&gt; claim</p>"), "{html}");
        assert!(html.contains("<td>1 &lt; 2</td>"), "{html}");
        assert_eq!(html.matches("<figcaption>").count(), 1);
    }

    #[test]
    fn the_lead_stands_before_all_else() {
        let html = page().lead("One <sentence>.").to_html();
        assert!(
            html.contains("</h1>\n<p class=\"lh-lead\">One &lt;sentence&gt;.</p>\n<dl"),
            "{html}"
        );
    }

    #[test]
    fn the_page_is_complete_in_itself() {
        let html = page().to_html();
        for word in ["src=", "href=", "@import", "url(", "fetch(", "XMLHttpRequest", "import("] {
            assert!(!html.contains(word), "{word}");
        }
        // Names of places, which nothing asks: of uPlot's authors, and of SVG in a saved picture.
        for (at, _) in html.match_indices("http") {
            let known =
                ["http-equiv", "https://github.com/leeoniya/uPlot", "http://www.w3.org/2000/svg"];
            assert!(
                known.iter().any(|known| html[at..].starts_with(known)),
                "{}",
                &html[at..at + 60]
            );
        }
        assert!(html.contains("default-src 'none'"));
        assert_eq!(html.matches("<svg ").count(), 2 * 2, "each figure for two breadths");
        assert!(html.ends_with("</html>\n"));
    }

    #[test]
    fn a_page_brings_what_its_figures_need() {
        let plain = Page::new("a").paragraph("b").to_html();
        assert!(!plain.contains("<script"), "{plain}");
        let bars = Figure::bars("a", Axis::linear("b"), &["c"], &[("d", &[1.0])]);
        let bars = Page::new("a").figure(bars).to_html();
        assert!(bars.contains("<script>") && !bars.contains("var uPlot="));
        let curves = page().to_html();
        assert_eq!(curves.matches("var uPlot=").count(), 1);
        assert!(
            curves.contains("Copyright (c)") && curves.contains("Permission is hereby granted")
        );
    }

    #[test]
    fn tables_and_figures_that_follow_each_other_share_a_row() {
        let html = page().to_html();
        assert_eq!(html.matches("<div class=\"lh-row\">").count(), 1, "{html}");
        let row = html.split("<div class=\"lh-row\">").nth(1).unwrap();
        assert_eq!(row.matches("<figure ").count(), 4, "{row}");
    }

    #[test]
    fn a_heat_map_of_one_value_is_a_sentence() {
        let html = |values: &[Vec<f64>]| {
            let shading = Shading::up_to(100.0);
            let map = Figure::heat_map("busy <%>", &["0 s", "1 s"], &["a", "b"], values, shading);
            Page::new("p").figure(map.with_note("Of 9 drives.")).to_html()
        };
        let same = html(&[vec![100.0, 99.99], vec![100.0, 100.0]]);
        let sentence = "<p>busy &lt;%&gt;: 100 in each of the 4 fields. Of 9 drives.</p>";
        assert!(same.contains(sentence) && !same.contains("<svg "), "{same}");
        for other in [50.0, f64::NAN] {
            assert!(html(&[vec![100.0, 100.0], vec![100.0, other]]).contains("<svg "), "{other}");
        }
    }

    #[test]
    fn no_name_ends_a_script() {
        let evil = "</script><script>alert(1)</script><!--";
        let figures = [
            Figure::cdf(evil, evil, &[(evil, &[1.0, 2.0])]).with_note(evil),
            Figure::bars(evil, Axis::linear(evil), &[evil], &[(evil, &[1.0])]),
            Figure::heat_map(evil, &[evil; 2], &[evil], &[vec![1.0, 2.0]], Shading::full_at(1.1)),
        ];
        for figure in figures {
            let html = Page::new(evil).figure(figure).to_html();
            assert!(!html.contains("<script>alert") && !html.contains("<!--"), "{html}");
            let opened = html.matches("<script").count();
            assert_eq!(opened, html.matches("</script>").count());
        }
    }

    #[test]
    fn every_element_is_closed() {
        let html = page().to_html();
        for tag in ["html", "head", "body", "main", "figure", "table", "tr", "td", "dl", "svg", "g"]
        {
            let opened = html.matches(&format!("<{tag}>")).count()
                + html.matches(&format!("<{tag} ")).count();
            assert_eq!(opened, html.matches(&format!("</{tag}>")).count(), "{tag}");
        }
    }
}
