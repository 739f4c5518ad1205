//! Clients, cipher suites and curves of `tls_server_config`.

use fastproc_testbed::{gate, needs};

use crate::serve::{
    folder::Folder,
    security::{certificate, certificate_of, certificates, code, curl},
    server::Server,
};

const KEYS: &str = "tls_server_config:\n  cert_file: server.pem\n  key_file: server.key\n";

/// A server with these lines in its section, and its clients.
struct Site<'a> {
    folder: &'a Folder,
    server: Server,
}

impl<'a> Site<'a> {
    #[track_caller]
    fn start(folder: &'a Folder, lines: &[&str]) -> Self {
        let lines = lines.iter().map(|line| format!("  {line}\n"));
        let web = folder.write(
            "web.yml",
            &lines.fold(KEYS.into(), |text: String, line| text + &line),
        );
        let server = Server::start(&["--web.config.file", &web, "--source", "procfs"]);
        Self { folder, server }
    }

    /// Whether a client with this certificate gets an answer.
    #[track_caller]
    fn admits(&self, client: Option<&str>) -> bool {
        let path = |name: String| self.folder.path().join(name).display().to_string();
        match client {
            None => self.answers(&[]),
            Some(name) => self.answers(&[
                "--cert",
                &path(format!("{name}.pem")),
                "--key",
                &path(format!("{name}.key")),
            ]),
        }
    }

    #[track_caller]
    fn answers(&self, arguments: &[&str]) -> bool {
        let trust = self.folder.path().join("server.pem");
        let trust = ["--cacert", trust.to_str().expect("UTF-8")];
        code(&curl(
            self.folder,
            &self.server,
            &[&trust[..], arguments].concat(),
        )) == 200
    }
}

#[test]
fn each_kind_of_client_authentication_is_as_in_go() {
    needs!(gate::programs(&["curl", "openssl"]));
    let folder = Folder::new();
    certificates(&folder);
    for (kind, has_authority, without, stranger) in [
        ("NoClientCert", false, true, true),
        ("RequestClientCert", false, true, true),
        ("RequireAnyClientCert", false, false, true),
        ("RequireClientCert", true, false, true),
        ("VerifyClientCertIfGiven", true, true, false),
        ("RequireAndVerifyClientCert", true, false, false),
    ] {
        let auth = format!("client_auth_type: {kind}");
        let authority = has_authority.then_some("client_ca_file: authority.pem");
        let lines: Vec<&str> = [auth.as_str()].into_iter().chain(authority).collect();
        let site = Site::start(&folder, &lines);
        assert_eq!(site.admits(None), without, "{kind} without a certificate");
        assert!(site.admits(Some("client")), "{kind} with a certificate");
        // It is in client_ca_file itself, and no authority is above it.
        assert!(site.admits(Some("authority")), "{kind}, self-signed");
        assert_eq!(
            site.admits(Some("stranger")),
            stranger,
            "{kind}, a stranger"
        );
    }
}

#[test]
fn a_client_is_known_by_any_of_its_alternative_names() {
    needs!(gate::programs(&["curl", "openssl"]));
    let folder = Folder::new();
    certificate(&folder, "server", None);
    certificate(&folder, "authority", None);
    for (name, names) in [
        ("host", "DNS:scraper.example,DNS:other.example"),
        ("mail", "email:scraper@example.org"),
        ("uri", "URI:spiffe://example.org/scraper"),
        ("address", "IP:2001:DB8:0:0:0:0:0:1"),
        ("unknown", "DNS:scraper.example.org"),
    ] {
        certificate_of(&folder, name, Some("authority"), names);
    }
    let sans = "client_allowed_sans: [other.example, 'scraper@example.org', 'spiffe://example.org/scraper', '2001:db8::1']";
    for kind in ["RequireAndVerifyClientCert", "RequireAnyClientCert"] {
        let auth = format!("client_auth_type: {kind}");
        let site = Site::start(&folder, &[&auth, "client_ca_file: authority.pem", sans]);
        for name in ["host", "mail", "uri", "address"] {
            assert!(site.admits(Some(name)), "{kind}: {name}");
        }
        assert!(!site.admits(Some("unknown")), "{kind}");
    }
    let none = [
        "client_auth_type: RequireAnyClientCert",
        "client_allowed_sans: []",
    ];
    assert!(
        !Site::start(&folder, &none).admits(Some("host")),
        "nobody is allowed"
    );
}

#[test]
fn only_the_suites_and_curves_that_are_named_are_spoken() {
    needs!(gate::programs(&["curl", "openssl"]));
    let folder = Folder::new();
    certificate(&folder, "server", None);
    let old = |suite: &'static str| ["--tls-max", "1.2", "--ciphers", suite];
    let site = Site::start(
        &folder,
        &[
            "cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA]",
            "curve_preferences: [CurveP384, CurveP521]",
        ],
    );
    assert!(site.answers(&old("ECDHE-ECDSA-AES256-GCM-SHA384")));
    assert!(!site.answers(&old("ECDHE-ECDSA-AES128-GCM-SHA256")));
    // As with Go, the suites of TLS 1.3 cannot be chosen.
    assert!(site.answers(&["--tlsv1.3"]));
    assert!(site.answers(&["--curves", "P-384"]));
    assert!(!site.answers(&["--curves", "X25519"]));
    for left_out in ["TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", "CurveP521"] {
        assert!(site.server.stderr().contains(left_out), "{left_out}");
    }
    // If all named suites belong to TLS 1.3, the server offers only that.
    for line in [
        "cipher_suites: [TLS_AES_128_GCM_SHA256]",
        "min_version: TLS13",
    ] {
        let site = Site::start(&folder, &[line]);
        assert!(site.answers(&["--tlsv1.3"]), "{line}");
        assert!(!site.answers(&["--tls-max", "1.2"]), "{line}");
    }
}
