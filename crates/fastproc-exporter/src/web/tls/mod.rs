//! TLS as a web configuration file describes it.

mod client;
mod section;

use std::sync::Arc;

use tokio_rustls::rustls::{
    ServerConfig,
    crypto::{CryptoProvider, ring},
    version::{TLS12, TLS13},
};

pub(super) use self::section::{ClientChecks, Named, Section};

/// The configuration of a section, or what is wrong with it.
pub(super) fn server_config(section: &Section) -> Result<ServerConfig, String> {
    let provider = Arc::new(CryptoProvider {
        cipher_suites: section.suites.clone(),
        kx_groups: section.curves.clone(),
        ..ring::default_provider()
    });
    let versions = match (section.min_tls13, section.max_tls12) {
        (true, _) => &[&TLS13][..],
        (_, true) => &[&TLS12][..],
        // Without suites for TLS 1.2 only 1.3 is offered.
        _ if section.suites.iter().all(|suite| suite.tls13().is_some()) => &[&TLS13][..],
        _ => &[&TLS13, &TLS12][..],
    };
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(versions)
        .map_err(|error| error.to_string())?;
    let builder = match client::verifier(section, provider)? {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder
        .with_single_cert(section.cert.certificates()?, section.key.private_key()?)
        .map_err(|error| format!("the certificate and the key do not do: {error}"))?;
    config.ignore_client_order = section.prefer_server_order;
    Ok(config)
}
