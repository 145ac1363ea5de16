use anstyle::{AnsiColor, Style};

/// What matters most.
pub(crate) const BOLD: Style = Style::new().bold();
/// What matters least.
pub(crate) const DIM: Style = Style::new().dimmed();
/// What to do.
pub(crate) const HINT: Style = AnsiColor::Cyan.on_default();
/// What to look at.
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default().bold();
/// What went wrong.
pub(crate) const WRONG: Style = AnsiColor::Red.on_default().bold();
