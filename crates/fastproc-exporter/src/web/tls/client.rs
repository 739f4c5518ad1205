//! Checks of client certificates.

use std::{
    collections::HashSet,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
};

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
    Certificate, Version,
    der::{Decode, oid::ObjectIdentifier},
    ext::pkix::{ExtendedKeyUsage, SubjectAltName, name::GeneralName},
};

use super::section::{ClientAuth, Section};
use crate::say;

/// The most subjects of old certificates that are named in the log: every client can show others.
const NAMED: usize = 16;

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
        old: Mutex::default(),
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
    /// The subjects of certificates that were refused because they are not of X.509 version 3.
    old: Mutex<HashSet<String>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    /// Refuses a certificate that is not of X.509 version 3, which Go admits and rustls does not, and says so.
    fn refuse_if_old(&self, certificate: &[u8]) -> Result<(), CertificateError> {
        let certificate = Certificate::from_der(certificate).map(|read| read.tbs_certificate);
        // The other checks judge one that cannot be read.
        let Some(certificate) = certificate.ok().filter(|read| read.version != Version::V3) else {
            return Ok(());
        };
        let subject = certificate.subject.to_string();
        let mut old = self.old.lock().unwrap_or_else(PoisonError::into_inner);
        if old.len() < NAMED && old.insert(subject.clone()) {
            say(&format!(
                "a client with the certificate of {subject} is refused, because the certificate is not of X.509 version 3; \
                 sign it with extensions, as openssl x509 -req -extfile does"
            ));
        }
        Err(CertificateError::ApplicationVerificationFailure)
    }
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
        self.refuse_if_old(end_entity)?;
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

    use tokio_rustls::rustls::{crypto::ring, pki_types::pem::PemObject};

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
    /// A self-signed certificate of version 1, whose subject has a terminal's escape.
    const OLD: &[u8] = b"\
-----BEGIN CERTIFICATE-----
MIIBHzCBxwIUf/McoX0giJ3zrJpqyOUrAQdd/t4wCgYIKoZIzj0EAwIwEjEQMA4G
A1UEAwwHb2xkG1sySjAgFw0yNjExMjgwOTA0MTRaGA8yMTI2MTEwNDA5MDQxNFow
EjEQMA4GA1UEAwwHb2xkG1sySjBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABLbE
h6ya4OCzLhbKnFHWW5O1KG5oc3fsMtmVZfwtqNrkOaFOLiGTqoyndlx0OBBhcI5Y
/rHw0ftH0L3bOWnLKuUwCgYIKoZIzj0EAwIDRwAwRAIgB7dhwVKqSDD0UrhM5q/L
hoxhbwMp6otmR9s8ys7+6Z8CIH0l3+UjveXw2Sc+w2qJxOXJVhuimIl++7XsUrsc
ovbI
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

    #[test]
    fn a_certificate_of_version_1_is_refused_and_its_subject_is_said_once() {
        let verifier = Verifier {
            chain: None,
            known: Vec::new(),
            mandatory: true,
            allowed_sans: None,
            old: Mutex::default(),
            algorithms: ring::default_provider().signature_verification_algorithms,
        };
        let admits = |pem| {
            let certificate = CertificateDer::from_pem_slice(pem).expect("a certificate");
            let verified = verifier.verify_client_cert(&certificate, &[], UnixTime::now());
            verified.is_ok()
        };
        assert_eq!([CLIENT, OLD, OLD].map(admits), [true, false, false]);
        let said: Vec<_> = verifier.old.lock().expect("no panic").drain().collect();
        assert_eq!(said, [r"CN=old\1b[2J"]);
    }
}
