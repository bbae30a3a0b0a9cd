//! One HTML page, complete in itself: no scripts, no fonts, nothing loaded from anywhere.

use crate::figure::Figure;
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
    Table { caption: String, table: Table },
    Figure(Figure),
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
        let mut html = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{title}</title>\n<style>\n{colours}{figure_rules}{RULES}</style>\n</head>\n\
             <body>\n<main>\n<h1>{title}</h1>\n"
        );
        for block in &self.blocks {
            block.push_html(&mut html);
        }
        html.push_str("</main>\n</body>\n</html>\n");
        html
    }
}

impl Block {
    fn push_html(&self, html: &mut String) {
        match self {
            Self::Heading(text) => html.push_str(&format!("<h2>{}</h2>\n", escape(text))),
            Self::Paragraph(text) => html.push_str(&format!("<p>{}</p>\n", escape(text))),
            Self::Facts(facts) => {
                html.push_str("<dl class=\"lh-facts\">\n");
                for (name, value) in facts {
                    let (name, value) = (escape(name), escape(value));
                    html.push_str(&format!("<dt>{name}</dt><dd>{value}</dd>\n"));
                }
                html.push_str("</dl>\n");
            }
            Self::Table { caption, table } => {
                html.push_str("<figure class=\"lh-wide\">\n");
                if !caption.is_empty() {
                    html.push_str(&format!("<figcaption>{}</figcaption>\n", escape(caption)));
                }
                html.push_str(&table.to_html());
                html.push_str("</figure>\n");
            }
            Self::Figure(figure) => {
                html.push_str("<figure>\n");
                html.push_str(&figure.to_inline_svg());
                html.push_str("</figure>\n");
            }
        }
    }
}

/// How the page looks. The colours are those of [`colour_rules`].
const RULES: &str = "\
body{margin:0;background:var(--lh-paper);color:var(--lh-ink);\
font:16px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif}
main{max-width:70rem;margin:0 auto;padding:1.5rem 1rem 4rem}
h1{font-size:1.6rem;line-height:1.2;margin:0 0 1rem}
h2{font-size:1.2rem;margin:2.2rem 0 .6rem}
p{max-width:42rem}
figure{margin:1.4rem 0}
figure svg{display:block;width:100%;max-width:56rem;height:auto}
.lh-wide{overflow-x:auto}
figcaption{font-weight:600;margin-bottom:.4rem}
.lh-table{border-collapse:collapse;font-size:.92rem;font-variant-numeric:tabular-nums}
.lh-table th,.lh-table td{padding:.3rem .9rem .3rem 0;text-align:left;\
border-bottom:1px solid var(--lh-grid);white-space:nowrap}
.lh-table th{color:var(--lh-faint);font-weight:600}
.lh-table .lh-right{text-align:right}
.lh-facts{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1.2rem;\
margin:1rem 0;font-size:.92rem}
.lh-facts dt{color:var(--lh-faint)}
.lh-facts dd{margin:0;overflow-wrap:anywhere}
";

#[cfg(test)]
mod tests {
    use super::*;
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
    fn the_page_is_complete_in_itself() {
        let html = page().to_html();
        for word in ["<script", "src=", "href=", "@import", "url(", "http"] {
            assert!(!html.contains(word), "{word}");
        }
        assert_eq!(html.matches("<style>").count(), 1);
        assert_eq!(html.matches("<svg ").count(), 2);
        assert!(html.ends_with("</html>\n"));
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
