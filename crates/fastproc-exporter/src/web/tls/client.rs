//! Checks of client certificates.

use std::{net::IpAddr, sync::Arc};

use tokio_rustls::rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore,
    SignatureScheme,
    client::danger::HandshakeSignatureValid,
    crypto::{
        CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
    },
    pki_types::{CertificateDer, UnixTime},
    server::{
        ParsedCertificate, WebPkiClientVerifier,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
};
use x509_cert::{
    Certificate,
    der::{Decode, oid::ObjectIdentifier},
    ext::pkix::{ExtendedKeyUsage, SubjectAltName, name::GeneralName},
};

use super::section::{ClientAuth, Section};

/// The verifier for this section. `None`: no certificate is requested.
pub(super) fn verifier(
    section: &Section,
    provider: Arc<CryptoProvider>,
) -> Result<Option<Arc<dyn ClientCertVerifier>>, String> {
    let auth = section.client_auth;
    if auth == ClientAuth::None {
        return Ok(None);
    }
    let algorithms = provider.signature_verification_algorithms;
    let (mut chain, mut known) = (None, Vec::new());
    if let (Some(authority), true) = (&section.client_ca, auth.verifies()) {
        let mut roots = RootCertStore::empty();
        known = authority.certificates()?;
        for certificate in &known {
            let added = roots.add(certificate.clone());
            added.map_err(|error| error.to_string())?;
        }
        let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        chain = Some(builder.build().map_err(|error| error.to_string())?);
    }
    Ok(Some(Arc::new(Verifier {
        chain,
        known,
        mandatory: auth.is_mandatory(),
        allowed_sans: section.client_allowed_sans.clone(),
        algorithms,
    })))
}

/// A client that presents a certificate must have its key; other checks are as configured.
#[derive(Debug)]
struct Verifier {
    /// Checks the signer, if one is required.
    chain: Option<Arc<dyn ClientCertVerifier>>,
    /// The certificates of `client_ca_file`. A client may have one of them: as a rule a self-signed one, which is no
    /// valid end of a chain, and which Go admits.
    known: Vec<CertificateDer<'static>>,
    mandatory: bool,
    /// One of its names must be among these.
    allowed_sans: Option<Vec<String>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ClientCertVerifier for Verifier {
    fn client_auth_mandatory(&self) -> bool {
        self.mandatory
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        let chain = self.chain.as_ref();
        chain.map_or(&[], |chain| chain.root_hint_subjects())
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        if self.known.iter().any(|known| known == end_entity) {
            is_for_clients_now(end_entity, now)?;
        } else if let Some(chain) = &self.chain {
            chain.verify_client_cert(end_entity, intermediates, now)?;
        } else {
            ParsedCertificate::try_from(end_entity)?;
        }
        if let Some(allowed) = &self.allowed_sans {
            let names = subject_names(end_entity).ok_or(CertificateError::BadEncoding)?;
            if !names.iter().any(|name| allowed.contains(name)) {
                return Err(CertificateError::ApplicationVerificationFailure.into());
            }
        }
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// Checks what remains to be checked of a certificate that is trusted itself.
fn is_for_clients_now(certificate: &[u8], now: UnixTime) -> Result<(), CertificateError> {
    const CLIENTS: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.2");
    const ANY: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.37.0");
    let certificate =
        Certificate::from_der(certificate).map_err(|_| CertificateError::BadEncoding)?;
    let certificate = certificate.tbs_certificate;
    let (from, until) = (
        certificate.validity.not_before,
        certificate.validity.not_after,
    );
    if now.as_secs() < from.to_unix_duration().as_secs() {
        return Err(CertificateError::NotValidYet);
    }
    if now.as_secs() > until.to_unix_duration().as_secs() {
        return Err(CertificateError::Expired);
    }
    let purposes = certificate.get::<ExtendedKeyUsage>();
    let purposes = purposes.map_err(|_| CertificateError::BadEncoding)?;
    let has = |purpose: &ObjectIdentifier| [CLIENTS, ANY].contains(purpose);
    if purposes.is_some_and(|(_, purposes)| !purposes.0.iter().any(has)) {
        return Err(CertificateError::InvalidPurpose);
    }
    Ok(())
}

/// The subject alternative names: hosts, mail addresses, URIs and addresses. `None`: the certificate cannot be read.
fn subject_names(certificate: &[u8]) -> Option<Vec<String>> {
    let certificate = Certificate::from_der(certificate).ok()?;
    let names = certificate.tbs_certificate.get::<SubjectAltName>().ok()?;
    let Some((_, SubjectAltName(names))) = names else {
        return Some(Vec::new());
    };
    let names = names.into_iter().filter_map(|name| match name {
        GeneralName::DnsName(text)
        | GeneralName::Rfc822Name(text)
        | GeneralName::UniformResourceIdentifier(text) => Some(text.as_str().to_owned()),
        GeneralName::IpAddress(bytes) => address(bytes.as_bytes()).map(|ip| ip.to_string()),
        _ => None,
    });
    Some(names.collect())
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(v4) = <[u8; 4]>::try_from(bytes) {
        return Some(v4.into());
    }
    let v6 = <[u8; 16]>::try_from(bytes).ok()?;
    Some(IpAddr::from(v6).to_canonical())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio_rustls::rustls::pki_types::pem::PemObject;

    use super::*;

    /// A certificate for a client, valid for ten days.
    const CLIENT: &[u8] = b"\
-----BEGIN CERTIFICATE-----
MIIBYDCCAQagAwIBAgIUHNNEV5RNAgZEbkD/OpKtr+uCAL4wCgYIKoZIzj0EAwIw
DDEKMAgGA1UEAwwBYTAeFw0yNjExMjgwNjA3MDNaFw0yNjEyMDgwNjA3MDNaMAwx
CjAIBgNVBAMMAWEwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAASPwYN8XeKEWnjD
eFMYJWDGy7G95H6tZyZc+05Xi1B9C3q3F8hUGiDU7D4pbUx6sbybIXH57TDkLWRt
oFj/ulmwo0YwRDAfBgNVHSMEGDAWgBSk+NrodjbGGhMxsXsOz6FeCdk7EzATBgNV
HSUEDDAKBggrBgEFBQcDAjAMBgNVHRMBAf8EAjAAMAoGCCqGSM49BAMCA0gAMEUC
IQC0tCo2ciu1GwwsnM33YZOmKSGjjk0p1Ku2vX3NpnkITwIgMWcPyYQNJacmLk2t
ZRCQ14W8ly7iqUFeTzVRKtmxAXQ=
-----END CERTIFICATE-----
";
    const VALID_FROM: u64 = 1_795_846_023;
    const VALID_UNTIL: u64 = VALID_FROM + 10 * 86_400;

    #[test]
    fn a_certificate_that_is_trusted_itself_is_valid_until_it_expires() {
        let certificate = CertificateDer::from_pem_slice(CLIENT).expect("a certificate");
        let at = |seconds| {
            let now = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
            is_for_clients_now(&certificate, now)
        };
        assert_eq!(at(VALID_FROM - 1), Err(CertificateError::NotValidYet));
        assert_eq!((at(VALID_FROM), at(VALID_UNTIL)), (Ok(()), Ok(())));
        assert_eq!(at(VALID_UNTIL + 1), Err(CertificateError::Expired));
    }
}
