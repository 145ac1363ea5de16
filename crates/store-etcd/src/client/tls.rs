use std::fs;
use std::path::{Path, PathBuf};

use etcd_client::{Certificate, Identity, TlsOptions};
use lock_spi::{Effect, Error, ErrorKind, Result};

/// Whom to trust, and how to show who one is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Tls {
    /// The authorities; the system's when there are none.
    pub(super) ca: Option<PathBuf>,
    /// The client's certificate and its key.
    pub(super) identity: Option<(PathBuf, PathBuf)>,
}

impl Tls {
    /// Reads the files.
    pub(super) fn load(&self) -> Result<TlsOptions> {
        let mut options = TlsOptions::new();
        options = match &self.ca {
            Some(ca) => options.ca_certificate(Certificate::from_pem(certificates(ca)?)),
            None => options.with_enabled_roots(),
        };
        if let Some((certificate, key)) = &self.identity {
            let certificate = certificates(certificate)?;
            options = options.identity(Identity::from_pem(certificate, read(key)?));
        }
        Ok(options)
    }
}

/// A file with at least one certificate: without any, nobody would be trusted, and in silence.
fn certificates(path: &Path) -> Result<Vec<u8>> {
    const BEGIN: &[u8] = b"-----BEGIN CERTIFICATE-----";
    let content = read(path)?;
    if content.windows(BEGIN.len()).any(|window| window == BEGIN) {
        return Ok(content);
    }
    Err(refused(format!("{} has no certificate", path.display())))
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path)
        .map_err(|source| refused(format!("{} cannot be read", path.display())).with_source(source))
}

fn refused(message: String) -> Error {
    Error::new(ErrorKind::InvalidRequest, Effect::None, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_will_not_do_is_named() {
        let not_pem = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        for (path, words) in [
            ("/nowhere/ca.pem", "cannot be read"),
            (not_pem, "has no certificate"),
        ] {
            let tls = Tls {
                ca: Some(path.into()),
                identity: None,
            };
            let error = tls.load().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidRequest);
            assert!(error.to_string().contains(path), "{error}");
            assert!(error.to_string().contains(words), "{error}");
        }
    }
}
