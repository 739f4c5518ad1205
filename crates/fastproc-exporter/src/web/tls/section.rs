//! The contents of `tls_server_config`.

use std::{
    io,
    path::{Path, PathBuf},
};

use tokio_rustls::rustls::{
    SupportedCipherSuite,
    crypto::{
        SupportedKxGroup,
        ring::{ALL_CIPHER_SUITES, ALL_KX_GROUPS, kx_group},
    },
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};

use crate::document::{Node, Wrong};

/// Suites of Go that rustls lacks, since there are safer ones.
const LEFT_OUT_SUITES: &[&str] = &[
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
];
/// Curves of Go that ring lacks.
const LEFT_OUT_CURVES: &[&str] = &["CurveP521"];

/// `tls_server_config`.
#[derive(Clone, Debug)]
pub(in crate::web) struct Section {
    pub(super) cert: Pem,
    pub(super) key: Pem,
    pub(super) client_auth: ClientAuth,
    pub(super) client_ca: Option<Pem>,
    pub(super) client_allowed_sans: Option<Vec<String>>,
    pub(super) min_tls13: bool,
    pub(super) max_tls12: bool,
    /// In order of preference.
    pub(super) suites: Vec<SupportedCipherSuite>,
    pub(super) curves: Vec<&'static dyn SupportedKxGroup>,
    pub(super) prefer_server_order: bool,
}

/// Reads a file by the name that it has in the configuration.
pub(in crate::web) type Named<'a> = dyn Fn(&str) -> io::Result<Vec<u8>> + 'a;

/// A key or a certificate.
#[derive(Clone, Debug)]
pub(super) struct Pem {
    /// Where it is, if it is in a file.
    path: Option<PathBuf>,
    /// The contents, or why they could not be read.
    text: Result<Vec<u8>, String>,
}

/// How strictly clients are checked: Go's `ClientAuthType`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ClientAuth {
    #[default]
    None,
    Request,
    RequireAny,
    VerifyIfGiven,
    RequireAndVerify,
}

/// What a client must show to be let in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::web) struct ClientChecks {
    auth: ClientAuth,
    has_allowed_sans: bool,
}

impl ClientChecks {
    #[cfg(test)]
    pub(in crate::web) fn new(auth: &str, has_allowed_sans: bool) -> Self {
        Self {
            auth: ClientAuth::named(auth).unwrap(),
            has_allowed_sans,
        }
    }

    /// Whether a client that the others turn away may be let in by these, whatever the authorities and names are.
    pub(in crate::web) fn are_weaker_than(self, others: Self) -> bool {
        (others.auth.is_mandatory() && !self.auth.is_mandatory())
            || (others.auth.verifies() && !self.auth.verifies())
            || (others.has_allowed_sans && !self.has_allowed_sans)
    }
}

impl ClientAuth {
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "NoClientCert" => Self::None,
            "RequestClientCert" => Self::Request,
            // The second is what older toolkits called it.
            "RequireAnyClientCert" | "RequireClientCert" => Self::RequireAny,
            "VerifyClientCertIfGiven" => Self::VerifyIfGiven,
            "RequireAndVerifyClientCert" => Self::RequireAndVerify,
            _ => return None,
        })
    }

    pub(super) fn verifies(self) -> bool {
        matches!(self, Self::VerifyIfGiven | Self::RequireAndVerify)
    }

    pub(super) fn is_mandatory(self) -> bool {
        matches!(self, Self::RequireAny | Self::RequireAndVerify)
    }
}

impl Section {
    pub(in crate::web) fn client_checks(&self) -> ClientChecks {
        ClientChecks {
            auth: self.client_auth,
            has_allowed_sans: self.client_allowed_sans.is_some(),
        }
    }

    /// Reads a section; adds a warning for each line that is not used. As in Prometheus' toolkit, an empty text is as good
    /// as none, and `None` is a section without certificates: connections are not encrypted.
    pub(in crate::web) fn read(
        section: Node<'_>,
        folder: &Path,
        named: &Named<'_>,
        warnings: &mut Vec<String>,
    ) -> Result<Option<Self>, Wrong> {
        let (mut cert, mut key_pem, mut client_ca) = (None, None, None);
        let (mut client_auth, mut client_allowed_sans) = (None, None);
        let (mut min_tls13, mut max_tls12, mut prefer_server_order) = (false, false, true);
        let (mut suites, mut curves) = (ALL_CIPHER_SUITES.to_vec(), ALL_KX_GROUPS.to_vec());
        for (key, name, value) in section.entries("tls_server_config")? {
            let may_be_empty = name != "client_allowed_sans";
            if value.is_null() || may_be_empty && value.text(name).is_ok_and(str::is_empty) {
                continue;
            }
            let file = || {
                let name = value.text(name)?;
                let path = folder.join(name);
                let text =
                    named(name).map_err(|error| format!("cannot read {}: {error}", path.display()));
                Ok(Some(Pem {
                    path: Some(path),
                    text,
                }))
            };
            let text = || {
                let text = Ok(value.text(name)?.into());
                Ok(Some(Pem { path: None, text }))
            };
            match name {
                "cert_file" => cert = file()?,
                "key_file" => key_pem = file()?,
                "client_ca_file" => client_ca = file()?,
                "cert" => cert = text()?,
                "key" => key_pem = text()?,
                "client_ca" => client_ca = text()?,
                "client_auth_type" => {
                    let text = value.text(name)?;
                    let named = ClientAuth::named(text).ok_or_else(|| {
                        value.wrong(format!("client_auth_type {text} is not known; there are NoClientCert, RequestClientCert, RequireAnyClientCert, VerifyClientCertIfGiven and RequireAndVerifyClientCert"))
                    })?;
                    client_auth = Some(named);
                }
                "client_allowed_sans" => {
                    let names = value.texts(name)?.into_iter().flatten();
                    client_allowed_sans = Some(names.map(|(_, name)| name.to_owned()).collect());
                }
                "min_version" => min_tls13 = version(value, name)? == 13,
                "max_version" => match version(value, name)? {
                    12 => max_tls12 = true,
                    13 => max_tls12 = false,
                    _ => return Err(value.wrong("there is nothing older than TLS12 here")),
                },
                "cipher_suites" => suites = cipher_suites(value, warnings)?,
                "curve_preferences" => curves = curve_preferences(value, warnings)?,
                "prefer_server_cipher_suites" => prefer_server_order = value.flag(name)?,
                _ => return Err(key.wrong(format!("{name} is not known in tls_server_config"))),
            }
        }
        let (cert, key) = match (cert, key_pem) {
            (Some(cert), Some(key)) => (cert, key),
            (None, None) if client_ca.is_none() && client_auth.is_none() => {
                warnings.push(format!(
                    "line {}: tls_server_config names no certificate, so connections are not encrypted",
                    section.line()
                ));
                return Ok(None);
            }
            _ => return Err(section.wrong("tls_server_config needs cert_file and key_file")),
        };
        let client_auth = client_auth.unwrap_or_default();
        if client_auth == ClientAuth::None && client_ca.is_some() {
            return Err(section.wrong("client_ca_file is of no use without a client_auth_type"));
        }
        if client_auth == ClientAuth::None && client_allowed_sans.is_some() {
            return Err(section
                .wrong("client_allowed_sans would let everybody in without a client_auth_type"));
        }
        if client_auth.verifies() && client_ca.is_none() {
            return Err(section.wrong("a client_auth_type that verifies needs client_ca_file"));
        }
        if min_tls13 && max_tls12 {
            return Err(section.wrong("min_version is above max_version"));
        }
        if max_tls12 && suites.iter().all(|suite| suite.tls13().is_some()) {
            return Err(section.wrong("cipher_suites has none that there is here for TLS12"));
        }
        Ok(Some(Self {
            cert,
            key,
            client_auth,
            client_ca,
            client_allowed_sans,
            min_tls13,
            max_tls12,
            suites,
            curves,
            prefer_server_order,
        }))
    }
}

fn version(value: Node<'_>, name: &str) -> Result<u32, Wrong> {
    match value.text(name)? {
        "TLS10" => Ok(10),
        "TLS11" => Ok(11),
        "TLS12" => Ok(12),
        "TLS13" => Ok(13),
        other => Err(value.wrong(format!(
            "{name} {other} is not known; there are TLS12 and TLS13"
        ))),
    }
}

/// The suites of TLS 1.2 in the given order. As in Go, all suites of TLS 1.3 are always offered.
fn cipher_suites(
    value: Node<'_>,
    warnings: &mut Vec<String>,
) -> Result<Vec<SupportedCipherSuite>, Wrong> {
    let names = value.texts("cipher_suites")?.unwrap_or_default();
    if names.is_empty() {
        return Ok(ALL_CIPHER_SUITES.to_vec());
    }
    let all = ALL_CIPHER_SUITES.iter().copied();
    let (mut suites, old): (Vec<_>, Vec<_>) = all.partition(|suite| suite.tls13().is_some());
    for (node, name) in names {
        // rustls has other names for those of TLS 1.3.
        let known = |suite: &&SupportedCipherSuite| {
            let own = format!("{:?}", suite.suite());
            own.replace("TLS13_", "TLS_") == name
        };
        if let Some(suite) = old.iter().find(known) {
            if !suites.contains(suite) {
                suites.push(*suite);
            }
        } else if LEFT_OUT_SUITES.contains(&name) {
            warnings.push(left_out(node, name));
        } else if !suites.iter().any(|suite| known(&suite)) {
            return Err(node.wrong(format!("cipher_suites: {name} is not known")));
        }
    }
    Ok(suites)
}

fn curve_preferences(
    value: Node<'_>,
    warnings: &mut Vec<String>,
) -> Result<Vec<&'static dyn SupportedKxGroup>, Wrong> {
    let mut curves: Vec<&'static dyn SupportedKxGroup> = Vec::new();
    let names = value.texts("curve_preferences")?.unwrap_or_default();
    if names.is_empty() {
        return Ok(ALL_KX_GROUPS.to_vec());
    }
    for (node, name) in names {
        match name {
            "X25519" => curves.push(kx_group::X25519),
            "CurveP256" => curves.push(kx_group::SECP256R1),
            "CurveP384" => curves.push(kx_group::SECP384R1),
            name if LEFT_OUT_CURVES.contains(&name) => warnings.push(left_out(node, name)),
            _ => return Err(node.wrong(format!("curve_preferences: {name} is not known"))),
        }
    }
    if curves.is_empty() {
        return Err(value.wrong("curve_preferences has none of X25519, CurveP256 and CurveP384"));
    }
    Ok(curves)
}

fn left_out(node: Node<'_>, name: &str) -> String {
    format!("line {}: {name} is not there and not used", node.line())
}

impl Pem {
    pub(super) fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, String> {
        let certificates: Result<Vec<_>, _> =
            CertificateDer::pem_slice_iter(self.text.as_ref().map_err(Clone::clone)?).collect();
        match certificates {
            Ok(certificates) if certificates.is_empty() => {
                Err(format!("{} has no certificate", self.name()))
            }
            Ok(certificates) => Ok(certificates),
            Err(error) => Err(format!("{} is no certificate: {error}", self.name())),
        }
    }

    pub(super) fn private_key(&self) -> Result<PrivateKeyDer<'static>, String> {
        PrivateKeyDer::from_pem_slice(self.text.as_ref().map_err(Clone::clone)?)
            .map_err(|error| format!("{} has no private key: {error}", self.name()))
    }

    fn name(&self) -> String {
        match &self.path {
            Some(path) => path.display().to_string(),
            None => "the text here".into(),
        }
    }
}
