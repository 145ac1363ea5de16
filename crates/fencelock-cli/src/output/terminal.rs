//! What only makes sense where somebody sits.

use std::io::{self, BufRead, IsTerminal, Write};

use super::Output;
use crate::exit::Exit;
use crate::failure::Failure;

impl Output {
    /// Whether somebody is there to be asked.
    pub(crate) fn can_ask(&self) -> bool {
        io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Asks whether to go on; a failure when the answer is no, or nobody is there to be asked.
    pub(crate) fn confirm(&self, question: &str) -> Result<(), Failure> {
        if !self.can_ask() {
            let message = "this cannot be undone, and nobody is there to be asked";
            return Err(Failure::new(Exit::Usage, message).hint("say --yes"));
        }
        let mut err = self.stderr();
        write!(err, "{question} [y/N] ")?;
        err.flush()?;
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer)?;
        match answer.trim() {
            "y" | "Y" | "yes" => Ok(()),
            _ => Err(Failure::new(Exit::Finding, "nothing was done")),
        }
    }

    /// Tells how far it is, over what was told before; nothing where nobody looks on.
    pub(crate) fn progress(&self, text: &str) {
        if io::stderr().is_terminal() {
            // That it cannot be read is no reason to stop.
            drop(write!(self.stderr(), "\r\x1b[K{text}"));
        }
    }

    /// Takes the last progress away.
    pub(crate) fn progress_done(&self) {
        self.progress("");
    }
}
