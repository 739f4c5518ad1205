//! The web configuration file of Prometheus' exporter toolkit: TLS, users, headers.

use std::{collections::HashMap, io, path::Path, sync::Arc};

use hyper::header::{HeaderName, HeaderValue};
use tokio_rustls::rustls::ServerConfig;

use super::tls::{self, ClientChecks, Named, Section};
use crate::document::{self, ConfigError, Node, Wrong};

/// The contents of the file.
#[derive(Clone, Debug, Default)]
pub struct WebConfig {
    /// TLS, with keys and certificates read.
    pub(super) tls: Option<Arc<ServerConfig>>,
    /// How strictly the certificates of clients are checked.
    pub(super) clients: ClientChecks,
    /// Users with the bcrypt hashes of their passwords.
    pub(super) users: HashMap<String, String>,
    /// Headers of every answer.
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    /// Lines that are not used.
    pub warnings: Vec<String>,
}

impl WebConfig {
    /// Parses the file, given the result of reading its text. `named` reads keys and certificates by the names in it.
    pub fn read(
        path: &Path,
        text: io::Result<Vec<u8>>,
        named: &Named<'_>,
    ) -> Result<Self, ConfigError> {
        let folder = path.parent().unwrap_or(Path::new(""));
        document::read_file(path, text, |root| understand(*root, folder, named))
    }

    /// Whether connections are encrypted.
    pub fn has_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Whether requests need a password.
    pub fn has_users(&self) -> bool {
        !self.users.is_empty()
    }
}

fn understand(root: Node<'_>, folder: &Path, named: &Named<'_>) -> Result<WebConfig, Wrong> {
    let mut config = WebConfig::default();
    let mut tls = None;
    for (key, name, value) in root.entries("the configuration")? {
        match name {
            "tls_server_config" if value.is_null() => {}
            "tls_server_config" => {
                let Some(section) = Section::read(value, folder, named, &mut config.warnings)?
                else {
                    continue;
                };
                config.clients = section.client_checks();
                tls = Some(tls::server_config(&section).map_err(|reason| value.wrong(reason))?);
            }
            "basic_auth_users" => {
                let mut costs = Vec::new();
                for (user, name, hash) in value.entries("basic_auth_users")? {
                    let text = hash.text("a user's bcrypt hash")?;
                    // A plain password would never match, and would stand readable in a file.
                    let parts = text.parse::<bcrypt::HashParts>().map_err(|_| {
                        user.wrong(format!("what user {name} has is not a bcrypt hash ($2y$…)"))
                    })?;
                    costs.push(parts.get_cost());
                    config.users.insert(name.into(), text.into());
                }
                if let (Some(least), Some(most)) = (costs.iter().min(), costs.iter().max())
                    && least < most
                {
                    config.warnings.push(format!(
                        "line {}: the hashes of passwords have costs from {least} to {most}. The time of an answer \
                         tells clients whether a user with a lower cost exists; give all the same cost (htpasswd -B -C {most})",
                        key.line()
                    ));
                }
            }
            "http_server_config" => http_section(value, &mut config)?,
            "rate_limit" => return Err(key.wrong("rate_limit is not supported; see --min-interval")),
            _ => return Err(key.wrong(format!(
                "{name} is not known here; there are tls_server_config, http_server_config and basic_auth_users"
            ))),
        }
    }
    config.tls = tls.map(|mut tls| {
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        Arc::new(tls)
    });
    Ok(config)
}

fn http_section(value: Node<'_>, config: &mut WebConfig) -> Result<(), Wrong> {
    for (key, name, value) in value.entries("http_server_config")? {
        match name {
            "http2" => {
                if value.flag("http2")? {
                    config.warnings.push(format!(
                        "line {}: http2 changes nothing: answers are in HTTP/1.1",
                        key.line()
                    ));
                }
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<WebConfig, Wrong> {
        let named = |_: &str| Err(io::ErrorKind::NotFound.into());
        document::read(text, |root| {
            understand(*root, Path::new("/nowhere"), &named)
        })
    }

    #[test]
    fn http2_is_accepted_with_a_warning_and_not_offered() {
        for (value, count) in [("true", 1), ("false", 0)] {
            let config = read(&format!("http_server_config:\n  http2: {value}\n")).unwrap();
            assert_eq!(config.warnings.len(), count, "{:?}", config.warnings);
        }
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
    fn errors_name_their_line() {
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
                "cipher_suites: x",
            ),
            (
                "tls_server_config:\n  curve_preferences: [CurveP521]\n",
                2,
                "none of",
            ),
            (
                "tls_server_config:\n  cert_file: a\n  key_file: b\n  client_auth_type: VerifyClientCertIfGiven\n",
                2,
                "client_ca_file",
            ),
            (
                "tls_server_config:\n  cert_file: a\n  key_file: b\n  client_allowed_sans: [x]\n",
                2,
                "client_auth_type",
            ),
            (
                "tls_server_config:\n  client_auth_type: Some\n",
                2,
                "RequireAnyClientCert",
            ),
            (
                "tls_server_config:\n  cert_file: a\n  key_file: ''\n",
                2,
                "needs cert_file and key_file",
            ),
            (
                "tls_server_config:\n  cert_file: ''\n  key_file: ''\n  client_auth_type: RequireAnyClientCert\n",
                2,
                "needs cert_file and key_file",
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

    /// Templates write every key.
    #[test]
    fn empty_names_of_files_are_none_as_in_prometheus_toolkit() {
        let empty = [
            "cert_file",
            "key_file",
            "client_ca_file",
            "client_auth_type",
        ];
        let empty: String = empty.map(|key| format!("  {key}: \"\"\n")).concat();
        let config = read(&format!("tls_server_config:\n{empty}")).unwrap();
        assert!(!config.has_tls());
        assert!(config.warnings[0].contains("not encrypted"), "{config:?}");
    }

    #[test]
    fn users_who_can_be_told_apart_by_time_are_a_warning() {
        let users = |costs: [u32; 2]| {
            let hash = |cost| bcrypt::hash("x", cost).unwrap();
            let [a, b] = costs.map(hash);
            read(&format!("basic_auth_users:\n  a: {a}\n  b: {b}\n")).unwrap()
        };
        assert!(users([4, 4]).warnings.is_empty());
        let warnings = users([4, 5]).warnings;
        assert!(warnings[0].contains("from 4 to 5"), "{warnings:?}");
    }
}
