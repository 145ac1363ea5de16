use std::time::Duration;

use crate::args::Globals;
use crate::config::Config;
use crate::failure::Failure;
use crate::output::Output;
use crate::store::Store;

/// How long the store may take to answer, unless said otherwise.
const TIMEOUT: Duration = Duration::from_secs(10);

/// What every command is given.
#[derive(Debug)]
pub(crate) struct Context<'o> {
    /// The one place that prints.
    pub(crate) output: &'o Output,
    /// How long the store may take to answer.
    pub(crate) timeout: Duration,
    globals: Globals,
    config: Config,
}

impl<'o> Context<'o> {
    pub(crate) fn new(globals: Globals, output: &'o Output) -> Result<Self, Failure> {
        let config = Config::find()?;
        Ok(Self {
            output,
            timeout: globals.timeout.or(config.timeout).unwrap_or(TIMEOUT),
            globals,
            config,
        })
    }

    /// The store that the flags, the environment or a configuration file name.
    pub(crate) fn store(&self) -> Result<Store, Failure> {
        let url = self
            .globals
            .store
            .as_deref()
            .or(self.config.store.as_deref());
        let namespace = self.globals.namespace.as_deref();
        let namespace = namespace.or(self.config.namespace.as_deref());
        Store::named(url, namespace, self.timeout)
    }
}
