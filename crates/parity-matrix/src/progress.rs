//! Shows how far it has come.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A line for one place, on a terminal that moves and elsewhere once at its end.
pub(crate) fn bar(name: &str, length: u64) -> ProgressBar {
    let bar = ProgressBar::new(length);
    let style = "{prefix:28} {bar:30} {pos:>5}/{len:<5} {elapsed:>4} {msg}";
    // Invariant: the template is well-formed.
    let style = ProgressStyle::with_template(style).expect("a template");
    bar.set_style(style);
    bar.set_prefix(name.to_owned());
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}

/// Leaves the line as it is.
pub(crate) fn done(bar: &ProgressBar, words: String) {
    if bar.is_hidden() {
        println!("{}: {words}, {:.0?}", bar.prefix(), bar.elapsed());
    }
    bar.finish_with_message(words);
}
