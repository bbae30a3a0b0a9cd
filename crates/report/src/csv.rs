//! Comma-separated values as RFC 4180 has them, with `\n` at the end of a row.
//!
//! A field is quoted when it must be: when it holds a comma, a quote or a line break, when spaces
//! lead or trail it (some readers strip them), or when it is the only field of its row and empty
//! (the row would be a blank line, which readers skip).

use std::io::{self, Write};

/// Writes rows; the caller buffers and flushes `out`.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
}

impl<W: Write> Writer<W> {
    /// A writer of rows to `out`.
    pub fn new(out: W) -> Self {
        Self { out }
    }

    /// Writes one row.
    ///
    /// # Errors
    ///
    /// Those of the underlying writer.
    pub fn write_row<F: AsRef<str>>(
        &mut self,
        fields: impl IntoIterator<Item = F>,
    ) -> io::Result<()> {
        let mut row = String::new();
        let mut count = 0;
        for field in fields {
            if count > 0 {
                row.push(',');
            }
            push_field(&mut row, field.as_ref());
            count += 1;
        }
        if count == 1 && row.is_empty() {
            row.push_str("\"\"");
        }
        row.push('\n');
        self.out.write_all(row.as_bytes())
    }

    /// The underlying writer.
    pub fn into_inner(self) -> W {
        self.out
    }
}

fn push_field(row: &mut String, field: &str) {
    let must_quote = field.contains([',', '"', '\n', '\r'])
        || field.starts_with([' ', '\t'])
        || field.ends_with([' ', '\t']);
    if must_quote {
        row.push('"');
        row.push_str(&field.replace('"', "\"\""));
        row.push('"');
    } else {
        row.push_str(field);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rows: &[&[&str]], want: &str) {
        let mut writer = Writer::new(Vec::new());
        for row in rows {
            writer.write_row(*row).unwrap();
        }
        assert_eq!(String::from_utf8(writer.into_inner()).unwrap(), want);
    }

    #[test]
    fn plain_fields_are_not_quoted() {
        check(&[&["policy", "p99, ms"], &["normal", "12.5"]], "policy,\"p99, ms\"\nnormal,12.5\n");
    }

    #[test]
    fn quotes_commas_and_line_breaks_survive() {
        check(&[&["a\"b", "c,d", "e\nf", "g\rh"]], "\"a\"\"b\",\"c,d\",\"e\nf\",\"g\rh\"\n");
        check(&[&[" a", "b ", "c d", "\te"]], "\" a\",\"b \",c d,\"\te\"\n");
    }

    #[test]
    fn empty_rows_and_fields_stay_apart() {
        check(&[&["", ""]], ",\n");
        check(&[&[""]], "\"\"\n");
        check(&[&[]], "\n");
    }

    #[test]
    fn errors_of_the_writer_come_through() {
        let mut full: &mut [u8] = &mut [0; 3];
        assert!(Writer::new(&mut full).write_row(["longer than three"]).is_err());
    }
}
