//! What is printed, without what differs from run to run.

use insta::Settings;

/// Compares with the snapshot of this name, as it stands.
pub(crate) fn assert_constant(name: &str, text: &str) {
    plain().bind(|| insta::assert_snapshot!(name, text));
}

fn plain() -> Settings {
    let mut settings = Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings
}

/// Compares with the snapshot of this name; `words` are replaced by what they stand for.
pub(crate) fn assert_printed(name: &str, text: &str, words: &[(&str, &str)]) {
    let mut settings = plain();
    settings.add_filter(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "[time]");
    settings.add_filter(r#""remaining_ms": \d+"#, r#""remaining_ms": [ms]"#);
    settings.add_filter(r"\b[0-9a-f]{32}\b", "[id]");
    settings.add_filter(r"\b[0-9a-f]{16}\b", "[session]");
    settings.add_filter(r"\b\d+(\.\d)? ?s\b", "[duration]");
    settings.add_filter(r"[\w.-]+@[\w.-]+, process \d+", "[caller]");
    for (word, meaning) in words {
        settings.add_filter(&format!(r"\b{word}\b"), *meaning);
    }
    // Columns are as wide as what was replaced.
    settings.add_filter(r"(\S)  +", "$1  ");
    settings.bind(|| insta::assert_snapshot!(name, text));
}
