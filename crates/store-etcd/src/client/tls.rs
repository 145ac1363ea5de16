use std::path::{Path, PathBuf};
use std::{error, fs, io};

use etcd_client::{Certificate, Identity, TlsOptions};
use etcd_kv::{Applied, KvError, KvErrorKind};
use lock_spi::{Effect, Error, ErrorKind, Result};
use rustls::AlertDescription;
use tonic::ConnectError;

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

/// What a failed call says when one side refused the other in the handshake of TLS, and would again:
/// that is a matter of certificates and addresses, not of time. Nothing was applied then, for no
/// server takes requests before the handshake is over.
pub(super) fn refusal(cause: &(dyn error::Error + 'static)) -> Option<KvError> {
    let refusal = causes(cause).find_map(as_tls)?;
    let told = |message: String| {
        let told = KvError::new(KvErrorKind::Denied, Applied::No, message);
        Some(told.with_source(refusal.clone()))
    };
    match refusal {
        rustls::Error::InvalidCertificate(why) => {
            told(format!("the certificate of the server does not fit: {why}"))
        }
        rustls::Error::NoCertificatesPresented => told("the server has no certificate".into()),
        rustls::Error::AlertReceived(alert) if is_about_certificates(*alert) => told(format!(
            "the server refuses this client's certificate: {alert:?}"
        )),
        rustls::Error::InvalidMessage(_) => told("the server does not speak TLS".into()),
        rustls::Error::PeerIncompatible(why) => told(format!(
            "the server and this client have no TLS in common: {why:?}"
        )),
        rustls::Error::NoApplicationProtocol => told("the server does not speak HTTP/2".into()),
        _ => None,
    }
}

/// Whether it is such a refusal. Another member may have a certificate that fits.
pub(super) fn is_refusal(error: &KvError) -> bool {
    error::Error::source(error).is_some_and(|source| source.is::<rustls::Error>())
}

/// Whether the server hung up in the handshake: because it does not speak TLS, or because it is going
/// down. Connections that do not come about at all have an error of their own.
pub(super) fn was_cut_short(cause: &(dyn error::Error + 'static)) -> bool {
    let connect = causes(cause).find_map(|cause| cause.downcast_ref());
    connect.is_some_and(|ConnectError(inner)| inner.is::<io::Error>())
}

fn causes<'a>(
    error: &'a (dyn error::Error + 'static),
) -> impl Iterator<Item = &'a (dyn error::Error + 'static)> {
    std::iter::successors(Some(error), |error| error.source())
}

/// An error of TLS travels inside of one of input and output, whose source it is not.
fn as_tls<'a>(error: &'a (dyn error::Error + 'static)) -> Option<&'a rustls::Error> {
    let inner = error
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref);
    match inner {
        Some(inner) => inner.downcast_ref(),
        None => error.downcast_ref(),
    }
}

const fn is_about_certificates(alert: AlertDescription) -> bool {
    use AlertDescription as Alert;
    matches!(
        alert,
        Alert::NoCertificate
            | Alert::BadCertificate
            | Alert::UnsupportedCertificate
            | Alert::CertificateRevoked
            | Alert::CertificateExpired
            | Alert::CertificateUnknown
            | Alert::UnknownCA
            | Alert::AccessDenied
            | Alert::CertificateRequired
            | Alert::UnrecognisedName
    )
}

fn refused(message: String) -> Error {
    Error::new(ErrorKind::InvalidRequest, Effect::None, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(error: rustls::Error) -> Option<KvError> {
        let handshake = io::Error::new(io::ErrorKind::InvalidData, error);
        let connect = ConnectError(handshake.into());
        refusal(&tonic::Status::from_error(connect.into()))
    }

    #[test]
    fn a_refusal_is_denied_and_says_what_does_not_fit() {
        use rustls::{CertificateError, InvalidMessage};
        for (error, words) in [
            (
                rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer),
                "certificate of the server does not fit: ",
            ),
            (
                rustls::Error::AlertReceived(AlertDescription::CertificateRequired),
                "refuses this client's certificate: CertificateRequired",
            ),
            (
                rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType),
                "does not speak TLS",
            ),
        ] {
            let refusal = told(error).unwrap();
            let (kind, applied) = (refusal.kind(), refusal.applied());
            assert_eq!((kind, applied), (KvErrorKind::Denied, Applied::No));
            assert!(refusal.message().contains(words), "{refusal}");
            assert!(is_refusal(&refusal));
        }
    }

    #[test]
    fn what_may_pass_is_no_refusal() {
        for error in [
            rustls::Error::AlertReceived(AlertDescription::InternalError),
            rustls::Error::DecryptError,
        ] {
            assert!(told(error.clone()).is_none(), "{error}");
        }
        let reset = io::Error::from(io::ErrorKind::ConnectionReset);
        assert!(refusal(&reset).is_none());
        let denied = KvError::new(KvErrorKind::Denied, Applied::No, "permission denied");
        assert!(!is_refusal(&denied));
    }

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
