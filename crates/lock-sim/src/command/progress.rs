use indicatif::{ProgressBar, ProgressStyle};

/// A bar for so many seeds; without an end, if nobody knows how many there will be.
pub(crate) fn bar(seeds: Option<u64>) -> ProgressBar {
    let (bar, template) = match seeds {
        Some(seeds) => (
            ProgressBar::new(seeds),
            "{bar:30} {pos}/{len} seeds, {per_sec}, {elapsed} of {duration}  {msg}",
        ),
        None => (
            ProgressBar::new_spinner(),
            "{spinner} {pos} seeds, {per_sec}, {elapsed}  {msg}",
        ),
    };
    let style = ProgressStyle::with_template(template);
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
