//! The one place that prints: data to stdout, everything else to stderr.

mod style;
mod table;
mod terminal;

use std::io::{self, Write};

use anstream::AutoStream;
use serde::Serialize;
use serde_json::json;

pub(crate) use self::style::{BOLD, DIM, HINT, WARN, WRONG};
pub(crate) use self::table::Table;
use crate::args::Globals;
use crate::exit::Exit;
use crate::failure::Failure;

/// What a command tells: to machines as it serialises (tokens as strings), to people as it writes.
pub(crate) trait Answer: Serialize {
    /// Writes sentences or a [`Table`]. Styles may be used: they are taken out again where there is
    /// no colour.
    fn to_people(&self, out: &mut dyn Write) -> io::Result<()>;
}

/// Where and how to print.
#[derive(Debug)]
pub(crate) struct Output {
    json: bool,
    color: anstream::ColorChoice,
}

impl Output {
    pub(crate) fn new(globals: &Globals) -> Self {
        Self {
            json: globals.json,
            color: globals.color.into(),
        }
    }

    /// Whether machines read it.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Prints data: the whole answer, one document.
    pub(crate) fn answer(&self, answer: &impl Answer) -> io::Result<()> {
        let mut out = self.stdout();
        if self.json {
            serde_json::to_writer_pretty(&mut out, answer)?;
            writeln!(out)?;
        } else {
            answer.to_people(&mut out)?;
        }
        out.flush()
    }

    /// Prints data: one of many that come one after the other, one to a line.
    pub(crate) fn line(&self, answer: &impl Answer) -> io::Result<()> {
        let mut out = self.stdout();
        if self.json {
            serde_json::to_writer(&mut out, answer)?;
            writeln!(out)?;
        } else {
            answer.to_people(&mut out)?;
        }
        out.flush()
    }

    /// Prints data that is a text by itself: a script, a page.
    pub(crate) fn text(&self, text: &str) -> io::Result<()> {
        let mut out = self.stdout();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// Tells people on stderr how it goes.
    ///
    /// That nobody can read it any more is no reason to stop.
    pub(crate) fn note(&self, sentence: &str) {
        drop(writeln!(self.stderr(), "fencelock: {sentence}"));
    }

    /// Warns people on stderr.
    pub(crate) fn warn(&self, sentence: &str) {
        drop(writeln!(
            self.stderr(),
            "fencelock: {WARN}warning:{WARN:#} {sentence}"
        ));
    }

    /// Tells why there is no answer, on stderr.
    pub(crate) fn failure(&self, failure: &Failure) {
        let mut err = self.stderr();
        let told = if self.json {
            let document = json!({ "error": {
                "exit": failure.exit.status(),
                "kind": failure.exit.word(),
                "what": failure.what,
                "causes": failure.causes,
                "hint": failure.hint,
            }});
            writeln!(err, "{document}")
        } else {
            for_people(&mut err, failure)
        };
        // Nobody is left to tell it to.
        drop(told);
    }

    /// Prints what the reader of arguments has to say: help, the version, or what is wrong.
    pub(crate) fn usage(answer: &clap::Error) -> Exit {
        drop(answer.print());
        if answer.use_stderr() {
            Exit::Usage
        } else {
            Exit::Done
        }
    }

    fn stdout(&self) -> AutoStream<io::StdoutLock<'static>> {
        AutoStream::new(io::stdout().lock(), self.color)
    }

    fn stderr(&self) -> AutoStream<io::StderrLock<'static>> {
        AutoStream::new(io::stderr().lock(), self.color)
    }
}

fn for_people(err: &mut dyn Write, failure: &Failure) -> io::Result<()> {
    writeln!(err, "fencelock: {WRONG}error:{WRONG:#} {}", failure.what)?;
    for cause in &failure.causes {
        writeln!(err, "  because: {cause}")?;
    }
    match &failure.hint {
        Some(hint) => writeln!(err, "  {HINT}hint:{HINT:#} {hint}"),
        None => Ok(()),
    }
}
