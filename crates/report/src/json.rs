//! JSON for people and for pipes: two spaces a level, a line break at the end.

use serde::Serialize;

/// `value` as indented JSON.
///
/// Numbers that are not finite become `null`, as JSON has no word for them.
///
/// # Errors
///
/// A map whose keys are not strings, or a `Serialize` that fails.
pub fn pretty<T: Serialize + ?Sized>(value: &T) -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn values_are_indented_and_end_the_line() {
        let value = BTreeMap::from([("p99", vec![1.5, f64::NAN])]);
        assert_eq!(pretty(&value).unwrap(), "{\n  \"p99\": [\n    1.5,\n    null\n  ]\n}\n");
    }

    #[test]
    fn keys_that_json_cannot_have_are_an_error() {
        assert!(pretty(&BTreeMap::from([(vec![1], 2)])).is_err());
    }
}
