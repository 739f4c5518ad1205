//! Keys and certificates.

use std::sync::Arc;

use tokio_rustls::rustls::{
    RootCertStore, ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::WebPkiClientVerifier,
    version::{TLS12, TLS13},
};

use super::config::{ClientAuth, Pem, TlsSection};

/// The configuration of a section, or what is wrong with it.
pub(super) fn server_config(section: &TlsSection) -> Result<ServerConfig, String> {
    let (Some(cert), Some(key)) = (&section.cert, &section.key) else {
        return Err("a certificate and a key are needed".into());
    };
    let provider = Arc::new(ring::default_provider());
    let versions = match (section.min_tls13, section.max_tls12) {
        (true, _) => &[&TLS13][..],
        (_, true) => &[&TLS12][..],
        _ => &[&TLS13, &TLS12][..],
    };
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(versions)
        .map_err(|error| error.to_string())?;
    let builder = match (&section.client_ca, section.client_auth) {
        (Some(authority), auth @ (ClientAuth::VerifyIfGiven | ClientAuth::RequireAndVerify)) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(authority)? {
                roots.add(certificate).map_err(|error| error.to_string())?;
            }
            let mut verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            if auth == ClientAuth::VerifyIfGiven {
                verifier = verifier.allow_unauthenticated();
            }
            builder.with_client_cert_verifier(verifier.build().map_err(|error| error.to_string())?)
        }
        _ => builder.with_no_client_auth(),
    };
    let key_text = text(key)?;
    let key = PrivateKeyDer::from_pem_slice(&key_text)
        .map_err(|error| format!("{} has no private key: {error}", name(key)))?;
    builder
        .with_single_cert(certificates(cert)?, key)
        .map_err(|error| format!("the certificate and the key do not do: {error}"))
}

fn certificates(pem: &Pem) -> Result<Vec<CertificateDer<'static>>, String> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text(pem)?).collect();
    match certificates {
        Ok(certificates) if certificates.is_empty() => {
            Err(format!("{} has no certificate", name(pem)))
        }
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(format!("{} is no certificate: {error}", name(pem))),
    }
}

fn text(pem: &Pem) -> Result<Vec<u8>, String> {
    match pem {
        Pem::File(path) => {
            std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
        }
        Pem::Text(text) => Ok(text.clone().into_bytes()),
    }
}

fn name(pem: &Pem) -> String {
    match pem {
        Pem::File(path) => path.display().to_string(),
        Pem::Text(_) => "the text here".into(),
    }
}
