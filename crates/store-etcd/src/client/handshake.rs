//! What TLS 1.3 says too late for a call: its handshake is over before the server has looked at the
//! client's certificate, and whoever calls at once only learns that the connection has gone.

use std::io;
use std::sync::Arc;

use etcd_kv::KvError;
use lock_spi::{Effect, Error, ErrorKind, Result};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::tls::{self, Tls};

/// Connects for no other reason than to hear what the server says to the certificate.
pub(super) struct Handshake(TlsConnector);

impl Handshake {
    /// Reads the certificates.
    pub(super) fn new(tls: &Tls) -> Result<Self> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(refused)?
            .with_root_certificates(roots(tls)?);
        let mut config = match &tls.identity {
            Some((certificate, key)) => {
                let chain = CertificateDer::pem_file_iter(certificate).map_err(refused)?;
                let chain = chain.collect::<Result<_, _>>().map_err(refused)?;
                let key = PrivateKeyDer::from_pem_file(key).map_err(refused)?;
                config.with_client_auth_cert(chain, key).map_err(refused)?
            }
            None => config.with_no_client_auth(),
        };
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Self(Arc::new(config).into()))
    }

    /// Why the server ends its connections to this client, where it says so.
    pub(super) async fn verdict(&self, host: &str) -> Option<KvError> {
        let heard = self.listen(host).await;
        heard.err().and_then(|error| tls::refusal(&error))
    }

    /// Until the server has said anything: a server that is content begins with its settings.
    async fn listen(&self, host: &str) -> io::Result<()> {
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
        let name = name.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
        let connection = TcpStream::connect(host).await?;
        let mut connection = self.0.connect(name, connection).await?;
        connection.read_u8().await.map(drop)
    }
}

fn roots(tls: &Tls) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    match &tls.ca {
        Some(ca) => {
            for certificate in CertificateDer::pem_file_iter(ca).map_err(refused)? {
                roots.add(certificate.map_err(refused)?).map_err(refused)?;
            }
        }
        None => {
            let system = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(system.certs);
        }
    }
    Ok(roots)
}

fn refused(source: impl std::error::Error + Send + Sync + 'static) -> Error {
    let message = "the certificates of the client cannot be used";
    Error::new(ErrorKind::InvalidRequest, Effect::None, message).with_source(source)
}
