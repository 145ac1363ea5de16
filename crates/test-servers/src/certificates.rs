use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, date_time_ymd,
};

use crate::folder;

/// An authority of a test's own, which issues certificates for servers and clients.
///
/// Everything is written as PEM to a folder that nobody else can enter, and deleted with the
/// authority.
///
/// # Examples
///
/// ```
/// let authority = test_servers::Authority::new()?;
/// let server = authority.issue(&["127.0.0.1"])?;
/// assert!(authority.certificate().is_file());
/// assert!(server.certificate.is_file() && server.key.is_file());
/// # anyhow::Ok(())
/// ```
#[derive(Debug)]
pub struct Authority {
    folder: PathBuf,
    certificate: PathBuf,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its key, each a file of PEM. Both go with their [`Authority`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Issued {
    /// The certificate.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

impl Authority {
    /// An authority that nobody trusts yet.
    ///
    /// # Errors
    ///
    /// When its folder cannot be written to.
    pub fn new() -> Result<Self> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::DigitalSignature,
            KeyUsagePurpose::KeyCertSign,
        ];
        let folder = folder::private()?;
        // Whoever looks for the issuer of a certificate goes by its name first.
        let name = folder.to_string_lossy();
        params.distinguished_name.push(DnType::CommonName, &*name);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        let certificate = folder.join("authority.pem");
        fs::write(&certificate, issuer.pem())?;
        Ok(Self {
            folder,
            certificate,
            issuer,
        })
    }

    /// The authority's own certificate, for those who are to trust it.
    #[must_use]
    pub fn certificate(&self) -> &Path {
        &self.certificate
    }

    /// Issues a certificate for these host names and addresses. It is good for either side: a
    /// server of etcd shows its own when it calls itself.
    ///
    /// # Errors
    ///
    /// When a name is none, or nothing can be written.
    pub fn issue(&self, hosts: &[&str]) -> Result<Issued> {
        self.sign(hosts, params(hosts)?)
    }

    /// As [`issue`](Self::issue), and expired years ago.
    ///
    /// # Errors
    ///
    /// As [`issue`](Self::issue).
    pub fn issue_expired(&self, hosts: &[&str]) -> Result<Issued> {
        let mut params = params(hosts)?;
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2020, 1, 2);
        self.sign(hosts, params)
    }

    fn sign(&self, hosts: &[&str], params: CertificateParams) -> Result<Issued> {
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        let number = fs::read_dir(&self.folder)?.count();
        let file = |kind: &str| {
            let name = hosts.first().unwrap_or(&"nobody");
            self.folder.join(format!("{name}-{number}-{kind}.pem"))
        };
        let issued = Issued {
            certificate: file("certificate"),
            key: file("key"),
        };
        fs::write(&issued.certificate, certificate.pem())?;
        fs::write(&issued.key, key.serialize_pem())?;
        Ok(issued)
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        // What is left in the folder for temporary files harms nobody.
        drop(fs::remove_dir_all(&self.folder));
    }
}

fn params(hosts: &[&str]) -> Result<CertificateParams> {
    let names: Vec<_> = hosts.iter().map(|&host| host.to_owned()).collect();
    let mut params = CertificateParams::new(names)?;
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![
        ExtendedKeyUsagePurpose::ServerAuth,
        ExtendedKeyUsagePurpose::ClientAuth,
    ];
    Ok(params)
}
