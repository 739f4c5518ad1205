//! The web configuration file of Prometheus' exporter toolkit: TLS, users, headers.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use hyper::header::{HeaderName, HeaderValue};
use tokio_rustls::rustls::ServerConfig;

use super::tls;
use crate::document::{self, ConfigError, Node, Wrong};

/// What the file says.
#[derive(Clone, Debug, Default)]
pub struct WebConfig {
    /// TLS, with keys and certificates read.
    pub(super) tls: Option<Arc<ServerConfig>>,
    /// Users with the bcrypt hashes of their passwords.
    pub(super) users: HashMap<String, String>,
    /// Headers of every answer.
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
}

/// How much is asked of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ClientAuth {
    #[default]
    None,
    VerifyIfGiven,
    RequireAndVerify,
}

/// `tls_server_config`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TlsSection {
    pub cert: Option<Pem>,
    pub key: Option<Pem>,
    pub client_auth: ClientAuth,
    pub client_ca: Option<Pem>,
    pub min_tls13: bool,
    pub max_tls12: bool,
}

/// Where a key or a certificate is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Pem {
    File(PathBuf),
    Text(String),
}

impl WebConfig {
    /// Reads the file, and the keys and certificates that it names.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let folder = path.parent().unwrap_or(Path::new(""));
        document::read_file(path, |root| understand(*root, folder))
    }

    /// Whether connections are encrypted.
    pub fn has_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Whether users must say who they are.
    pub fn has_users(&self) -> bool {
        !self.users.is_empty()
    }
}

fn understand(root: Node<'_>, folder: &Path) -> Result<WebConfig, Wrong> {
    let mut config = WebConfig::default();
    for (key, name, value) in root.entries("the configuration")? {
        match name {
            "tls_server_config" if value.is_null() => {}
            "tls_server_config" => {
                let section = tls_section(value, folder)?;
                let server = tls::server_config(&section).map_err(|reason| value.wrong(reason))?;
                config.tls = Some(Arc::new(server));
            }
            "basic_auth_users" => {
                for (user, name, hash) in value.entries("basic_auth_users")? {
                    let text = hash.text("a user's bcrypt hash")?;
                    // A password that is written down as it is would never match, and be in a file.
                    text.parse::<bcrypt::HashParts>().map_err(|_| {
                        user.wrong(format!("what user {name} has is not a bcrypt hash ($2y$…)"))
                    })?;
                    config.users.insert(name.into(), text.into());
                }
            }
            "http_server_config" => http_section(value, &mut config)?,
            "rate_limit" => return Err(key.wrong("rate_limit is not supported; see --min-interval")),
            _ => return Err(key.wrong(format!(
                "{name} is not known here; there are tls_server_config, http_server_config and basic_auth_users"
            ))),
        }
    }
    Ok(config)
}

fn http_section(value: Node<'_>, config: &mut WebConfig) -> Result<(), Wrong> {
    for (key, name, value) in value.entries("http_server_config")? {
        match name {
            // HTTP/2 is not spoken either way, and a client falls back to 1.1.
            "http2" => drop(value.flag("http2")?),
            "headers" => {
                for (key, name, value) in value.entries("headers")? {
                    let header = HeaderName::from_bytes(name.as_bytes())
                        .map_err(|_| key.wrong(format!("{name:?} is no name of a header")))?;
                    let text = value.text("a header")?;
                    let text = HeaderValue::from_str(text)
                        .map_err(|_| value.wrong("a header cannot have this value"))?;
                    config.headers.push((header, text));
                }
            }
            _ => {
                return Err(key.wrong(format!(
                    "{name} is not known here; http_server_config has http2 and headers"
                )));
            }
        }
    }
    Ok(())
}

fn tls_section(section: Node<'_>, folder: &Path) -> Result<TlsSection, Wrong> {
    let mut tls = TlsSection::default();
    for (key, name, value) in section.entries("tls_server_config")? {
        let file = || Ok(Some(Pem::File(folder.join(value.text(name)?))));
        let text = || Ok(Some(Pem::Text(value.text(name)?.to_owned())));
        match name {
            "cert_file" => tls.cert = file()?,
            "key_file" => tls.key = file()?,
            "client_ca_file" => tls.client_ca = file()?,
            "cert" => tls.cert = text()?,
            "key" => tls.key = text()?,
            "client_ca" => tls.client_ca = text()?,
            "client_auth_type" => {
                tls.client_auth = match value.text(name)? {
                    "NoClientCert" | "" => ClientAuth::None,
                    "VerifyClientCertIfGiven" => ClientAuth::VerifyIfGiven,
                    "RequireAndVerifyClientCert" => ClientAuth::RequireAndVerify,
                    other => return Err(value.wrong(format!(
                        "client_auth_type {other} is not supported; there are NoClientCert, VerifyClientCertIfGiven and RequireAndVerifyClientCert"
                    ))),
                }
            }
            "min_version" | "max_version" => {
                let version = value.text(name)?;
                let old = match version {
                    "TLS13" => false,
                    "TLS12" => true,
                    "TLS10" | "TLS11" if name == "min_version" => true,
                    _ => return Err(value.wrong(format!("{name} {version} is not supported; there are TLS12 and TLS13"))),
                };
                if name == "min_version" {
                    tls.min_tls13 = !old;
                } else {
                    tls.max_tls12 = old;
                }
            }
            "prefer_server_cipher_suites" => drop(value.flag(name)?),
            "cipher_suites" | "curve_preferences" | "client_allowed_sans" => {
                return Err(key.wrong(format!("{name} is not supported")));
            }
            _ => return Err(key.wrong(format!("{name} is not known in tls_server_config"))),
        }
    }
    if tls.cert.is_none() || tls.key.is_none() {
        return Err(section.wrong("tls_server_config needs cert_file and key_file"));
    }
    if (tls.client_auth == ClientAuth::None) != tls.client_ca.is_none() {
        return Err(
            section.wrong("client_ca_file and a client_auth_type that verifies belong together")
        );
    }
    if tls.min_tls13 && tls.max_tls12 {
        return Err(section.wrong("min_version is above max_version"));
    }
    Ok(tls)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<WebConfig, Wrong> {
        document::read(text, |root| understand(*root, Path::new("/nowhere")))
    }

    #[test]
    fn users_and_headers() {
        let hash = bcrypt::hash("x", 4).unwrap();
        let config = read(&format!(
            "basic_auth_users:\n  a: {hash}\nhttp_server_config:\n  http2: false\n  headers:\n    X-Frame-Options: deny\n"
        ))
        .unwrap();
        assert_eq!(config.users["a"], hash);
        assert_eq!(config.headers[0].1, "deny");
        assert!(!config.has_tls());
        assert!(!read("").unwrap().has_users());
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (text, line, word) in [
            ("basic_auth_users:\n  a: secret\n", 2, "bcrypt"),
            ("tls_server_config:\n  cert_file: a\n", 2, "key_file"),
            (
                "tls_server_config:\n  cert_file: a\n  key_file: b\n",
                2,
                "/nowhere/",
            ),
            (
                "tls_server_config:\n  cipher_suites: [x]\n",
                2,
                "cipher_suites",
            ),
            ("x: 1\n", 1, "x is not known"),
            (
                "http_server_config:\n  headers:\n    'a b': c\n",
                3,
                "header",
            ),
        ] {
            let wrong = read(text).expect_err(text);
            assert_eq!(wrong.line, line, "{text}: {wrong:?}");
            assert!(wrong.reason.contains(word), "{text}: {wrong:?}");
        }
    }
}
