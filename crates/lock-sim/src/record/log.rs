use super::entry::Entry;

/// Everything that happened in a run, or nothing when nobody will read it.
#[derive(Clone, Debug, Default)]
pub struct Record {
    entries: Vec<Entry>,
    off: bool,
}

impl Record {
    /// An empty one that keeps what it is told.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            entries: Vec::new(),
            off: false,
        }
    }

    /// One that keeps nothing.
    #[must_use]
    pub const fn off() -> Self {
        Self {
            entries: Vec::new(),
            off: true,
        }
    }

    /// Keeps an entry. Entries come in the order of time.
    pub fn push(&mut self, entry: Entry) {
        if !self.off {
            self.entries.push(entry);
        }
    }

    /// What was kept.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }
}

impl FromIterator<Entry> for Record {
    fn from_iter<I: IntoIterator<Item = Entry>>(entries: I) -> Self {
        Self {
            entries: entries.into_iter().collect(),
            off: false,
        }
    }
}
