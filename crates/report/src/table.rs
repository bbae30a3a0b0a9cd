//! A table of strings: aligned for a terminal, marked up for a page, or as CSV.

use std::io;

use levelhead_units::escaped;

use crate::csv;
use crate::markup::escape;

/// To which side a column's cells go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// A column's head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// What stands above it.
    pub name: String,
    /// To which side its cells go.
    pub align: Align,
}

impl Column {
    /// A column of words.
    pub fn left(name: impl Into<String>) -> Self {
        Self { name: name.into(), align: Align::Left }
    }

    /// A column of numbers.
    pub fn right(name: impl Into<String>) -> Self {
        Self { name: name.into(), align: Align::Right }
    }
}

/// Rows of cells under named columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub fn new(columns: impl IntoIterator<Item = Column>) -> Self {
        Self { columns: columns.into_iter().collect(), rows: Vec::new() }
    }

    /// Adds a row, one cell a column.
    ///
    /// # Panics
    ///
    /// If the number of cells is not the number of columns.
    pub fn push<C: Into<String>>(&mut self, cells: impl IntoIterator<Item = C>) {
        let row: Vec<String> = cells.into_iter().map(Into::into).collect();
        assert_eq!(row.len(), self.columns.len(), "cells in row {}", self.rows.len());
        self.rows.push(row);
    }

    /// The heads.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The rows, in the order they came.
    pub fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }

    /// The table in columns of characters: heads, a rule, rows. No line has trailing spaces. Line
    /// breaks and control characters in a cell are escaped, so that a cell stays a cell and a
    /// name from outside cannot steer a terminal.
    pub fn to_text(&self) -> String {
        let heads: Vec<String> =
            self.columns.iter().map(|column| escaped(&column.name).into_owned()).collect();
        let rows: Vec<Vec<String>> = self
            .rows
            .iter()
            .map(|row| row.iter().map(|cell| escaped(cell).into_owned()).collect())
            .collect();
        let width = |at: usize| {
            let cells = rows.iter().map(|row| row[at].chars().count());
            cells.fold(heads[at].chars().count(), usize::max)
        };
        let widths: Vec<usize> = (0..heads.len()).map(width).collect();
        let rule: Vec<String> = widths.iter().map(|&width| "-".repeat(width)).collect();
        let mut text = String::new();
        for row in [&heads, &rule].into_iter().chain(&rows) {
            let mut line = String::new();
            for ((cell, column), &width) in row.iter().zip(&self.columns).zip(&widths) {
                match column.align {
                    Align::Left => line.push_str(&format!("{cell:<width$}  ")),
                    Align::Right => line.push_str(&format!("{cell:>width$}  ")),
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    /// The table as a `<table>` element.
    pub fn to_html(&self) -> String {
        let mut html = String::from("<table class=\"lh-table\">\n<thead>\n<tr>");
        for column in &self.columns {
            let class = class(column.align);
            html.push_str(&format!("<th scope=\"col\"{class}>{}</th>", escape(&column.name)));
        }
        html.push_str("</tr>\n</thead>\n<tbody>\n");
        for row in &self.rows {
            html.push_str("<tr>");
            for (cell, column) in row.iter().zip(&self.columns) {
                html.push_str(&format!("<td{}>{}</td>", class(column.align), escape(cell)));
            }
            html.push_str("</tr>\n");
        }
        html.push_str("</tbody>\n</table>\n");
        html
    }

    /// Writes heads and rows as CSV.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn write_csv(&self, out: impl io::Write) -> io::Result<()> {
        let mut writer = csv::Writer::new(out);
        writer.write_row(self.columns.iter().map(|column| &column.name))?;
        self.rows.iter().try_for_each(|row| writer.write_row(row))
    }
}

fn class(align: Align) -> &'static str {
    match align {
        Align::Left => "",
        Align::Right => " class=\"lh-right\"",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new([Column::left("policy"), Column::right("p99 ms")]);
        table.push(["normal", "221.5"]);
        table.push(["level <ours>", "40"]);
        table
    }

    #[test]
    fn text_is_aligned_and_has_no_trailing_spaces() {
        let want = "\
policy        p99 ms
------------  ------
normal         221.5
level <ours>      40
";
        assert_eq!(table().to_text(), want);
    }

    #[test]
    fn widths_count_characters_and_controls_are_escaped() {
        let mut table = Table::new([Column::left("µs"), Column::left("note")]);
        table.push(["é", "a\nb\u{1b}[31m"]);
        assert_eq!(table.to_text(), "µs  note\n--  ------------\né   a\\nb\\x1b[31m\n");
    }

    #[test]
    fn html_is_escaped() {
        let html = table().to_html();
        assert!(html.contains("<th scope=\"col\" class=\"lh-right\">p99 ms</th>"), "{html}");
        assert!(
            html.contains("<td>level &lt;ours&gt;</td><td class=\"lh-right\">40</td>"),
            "{html}"
        );
    }

    #[test]
    fn csv_has_heads_and_rows() {
        let mut out = Vec::new();
        table().write_csv(&mut out).unwrap();
        assert_eq!(out, b"policy,p99 ms\nnormal,221.5\nlevel <ours>,40\n");
    }

    #[test]
    fn a_table_without_rows_or_columns_is_still_a_table() {
        assert_eq!(Table::new([Column::left("a")]).to_text(), "a\n-\n");
        assert_eq!(Table::new([]).to_text(), "\n\n");
        assert_eq!(Table::new([]).to_html().matches("<tr>").count(), 1);
    }

    #[test]
    #[should_panic(expected = "cells in row 2")]
    fn a_row_of_the_wrong_length_is_our_bug() {
        table().push(["one"]);
    }
}
