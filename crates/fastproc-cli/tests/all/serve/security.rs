//! TLS and passwords, by the exporter toolkit's web configuration file.

use std::process::{Command, Output};

use fastproc_testbed::{gate, needs};

use crate::serve::{FASTPROC, folder::Folder, server::Server};

/// The bcrypt hash of `s3cret` at the lowest cost: a test needs no protection.
fn hash() -> String {
    bcrypt::hash("s3cret", 4).expect("it can be hashed")
}

/// Makes a key and a certificate for loopback, signed by a certificate that was made before, or by itself.
#[track_caller]
pub fn certificate(folder: &Folder, name: &str, authority: Option<&str>) {
    certificate_of(folder, name, authority, "IP:127.0.0.1");
}

/// Makes a certificate with other alternative names.
#[track_caller]
pub fn certificate_of(folder: &Folder, name: &str, authority: Option<&str>, names: &str) {
    let path = |name: &str, end: &str| folder.path().join(format!("{name}.{end}"));
    let mut command = Command::new("openssl");
    command
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt"])
        .args(["ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"])
        .args(["-subj", &format!("/CN={name}")])
        .args(["-addext", &format!("subjectAltName={names}"), "-keyout"])
        .arg(path(name, "key"))
        .arg("-out")
        .arg(path(name, "pem"));
    if let Some(authority) = authority {
        command
            .args(["-addext", "basicConstraints=critical,CA:FALSE", "-CA"])
            .arg(path(authority, "pem"))
            .arg("-CAkey")
            .arg(path(authority, "key"));
    }
    let output = command.output().expect("openssl is there");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Certificates of a server, of a client signed by an authority, and of a stranger signed by another one.
#[track_caller]
pub fn certificates(folder: &Folder) {
    for (name, authority) in [
        ("server", None),
        ("authority", None),
        ("client", Some("authority")),
        ("another", None),
        ("stranger", Some("another")),
    ] {
        certificate(folder, name, authority);
    }
}

/// A web configuration with TLS and a user called `reader`, whose password is `s3cret`.
#[track_caller]
pub fn web_config(folder: &Folder) -> String {
    certificate(folder, "server", None);
    folder.write(
        "web.yml",
        &format!(
            "tls_server_config:\n  cert_file: server.pem\n  key_file: server.key\nbasic_auth_users:\n  reader: {}\n",
            hash()
        ),
    )
}

#[track_caller]
pub fn curl(folder: &Folder, server: &Server, arguments: &[&str]) -> Output {
    Command::new("curl")
        .args("--silent --show-error --max-time 120 --write-out %{http_code}".split(' '))
        .args(["--noproxy", "*", "--output"])
        .arg(folder.path().join("answer"))
        .args(arguments)
        .arg(format!("https://{}/metrics", server.address))
        .output()
        .expect("curl is there")
}

/// The status of the answer; 0 without an answer.
#[track_caller]
pub fn code(output: &Output) -> u16 {
    let code = String::from_utf8_lossy(&output.stdout);
    code.parse().unwrap_or_else(|_| panic!("{output:?}"))
}

/// Passwords that wait to be checked take no more than half of the places.
#[test]
fn beside_wrong_passwords_a_client_that_was_let_in_can_connect_again() {
    let folder = Folder::new();
    let hash = bcrypt::hash("s3cret", 11).expect("it can be hashed");
    let web = folder.write("web.yml", &format!("basic_auth_users:\n  reader: {hash}\n"));
    let arguments = [
        "--web.config.file",
        &web,
        "--max-connections",
        "5",
        "--source",
        "procfs",
    ];
    let (server, _) = Server::start_only(&mut Command::new(FASTPROC), &arguments);
    let known = ["Authorization: Basic cmVhZGVyOnMzY3JldA=="];
    let mut kept = server.connect();
    assert_eq!(kept.get("/-/healthy", &known).status, 200);
    let mut others: Vec<_> = (0..4).map(|_| server.connect()).collect();
    for other in &mut others {
        let wrong = b"GET / HTTP/1.1\r\nHost: here\r\nAuthorization: Basic eDp5\r\n\r\n";
        other.send(wrong).expect("the server reads");
    }
    // The server has read them once it has answered these.
    for _ in 0..2 {
        assert_eq!(kept.get("/-/healthy", &known).status, 200);
    }
    assert_eq!(server.get("/-/healthy", &known).status, 200);
}

#[test]
fn only_who_knows_the_password_is_answered_and_only_by_tls() {
    needs!(gate::programs(&["curl", "openssl"]));
    let folder = Folder::new();
    let server = Server::start(&[
        "--web.config.file",
        &web_config(&folder),
        "--source",
        "procfs",
    ]);
    assert!(server.stderr().contains("https://"));
    let trust = folder.path().join("server.pem");
    let trust = ["--cacert", trust.to_str().expect("UTF-8")];
    let ask = |more: &[&str]| curl(&folder, &server, &[&trust[..], more].concat());
    assert_eq!(code(&ask(&["--user", "reader:s3cret"])), 200);
    let text = std::fs::read_to_string(folder.path().join("answer")).expect("it was written");
    assert!(text.contains("\nfastproc_build_info{"));
    assert_eq!(code(&ask(&["--user", "reader:s3cret", "--tlsv1.3"])), 200);
    assert_eq!(
        code(&ask(&["--user", "reader:s3cret", "--tls-max", "1.2"])),
        200
    );
    // A client that offers HTTP/2 as well is answered in HTTP/1.1.
    let version = ask(&[
        "--http2",
        "--user",
        "reader:s3cret",
        "--write-out",
        "%{http_version}",
    ]);
    assert_eq!(String::from_utf8_lossy(&version.stdout), "1.1");
    for more in [
        &[][..],
        &["--user", "reader:wrong"],
        &["--user", "other:s3cret"],
        &["--user", ":"],
    ] {
        assert_eq!(code(&ask(more)), 401, "{more:?}");
    }
    // An untrusted certificate, and a connection without TLS.
    let output = curl(&folder, &server, &["--user", "reader:s3cret"]);
    assert_eq!(
        (code(&output), output.status.code()),
        (0, Some(60)),
        "{output:?}"
    );
    let mut plain = server.connect();
    plain
        .send(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n")
        .expect("the request is sent");
    let answer = plain.response().expect("it says what is wrong");
    assert_eq!(answer.status, 400);
    assert_eq!(
        answer.text(),
        "Client sent an HTTP request to an HTTPS server.\n"
    );
    plain.wait_for_end();
}
