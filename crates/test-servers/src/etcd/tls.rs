//! Servers that let clients in by certificate only.

use std::path::PathBuf;

use crate::certificates::{Authority, Issued};
use crate::etcd::builder::EtcdBuilder;

/// What the members show to clients, and whom they trust.
#[derive(Clone, Debug)]
pub(super) struct Tls {
    authority: PathBuf,
    own: Issued,
}

impl EtcdBuilder {
    /// Lets clients in over TLS only, and only with a certificate of this authority; `own` is the one
    /// that the members show.
    pub fn tls(self, authority: &Authority, own: &Issued) -> Self {
        self.with_tls(Tls {
            authority: authority.certificate().to_owned(),
            own: own.clone(),
        })
    }
}

impl Tls {
    /// For etcd.
    pub(super) fn arguments(&self) -> Vec<String> {
        vec![
            format!("--cert-file={}", self.own.certificate.display()),
            format!("--key-file={}", self.own.key.display()),
            format!("--trusted-ca-file={}", self.authority.display()),
            "--client-cert-auth".to_owned(),
        ]
    }

    /// For etcdctl, which shows the members' certificate.
    pub(super) fn ctl_options(&self) -> Vec<String> {
        vec![
            format!("--cacert={}", self.authority.display()),
            format!("--cert={}", self.own.certificate.display()),
            format!("--key={}", self.own.key.display()),
        ]
    }
}
