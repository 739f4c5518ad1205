//! The Debian package, as its manifest describes it, and the published crates. cargo-deb is not available in every
//! test; `scripts/check-deb` checks the package itself.

use std::{fs, path::Path, process::Command};

use serde_json::Value;

/// cargo's metadata of all packages here.
fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .output()
        .expect("cargo is there");
    let all: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    all["packages"].as_array().expect("a list").clone()
}

/// The part of the manifest that cargo-deb reads, and the description, from which it takes the synopsis.
fn manifest() -> (Value, String) {
    let packages = packages();
    let package = packages
        .iter()
        .find(|package| package["name"] == "fastproc-cli")
        .expect("this one");
    let description = package["description"].as_str().expect("it has one");
    (package["metadata"]["deb"].clone(), description.to_string())
}

/// The sources and destinations of assets.
fn assets(deb: &Value) -> Vec<(String, String)> {
    let list = deb["assets"].as_array().expect("a list");
    let text = |value: &Value| value.as_str().expect("a text").to_string();
    list.iter()
        .map(|asset| (text(&asset[0]), text(&asset[1])))
        .collect()
}

#[test]
fn the_synopsis_is_one_line_that_does_not_repeat_the_name() {
    let (deb, description) = manifest();
    assert!(
        !description.starts_with("fastproc") && description.len() < 80,
        "{description}"
    );
    assert_eq!(deb["name"], "fastproc");
}

#[test]
fn packaged_files_that_no_build_makes_exist() {
    let (deb, _) = manifest();
    let files = [
        &deb["changelog"],
        &deb["license-file"][0],
        &deb["triggers-file"],
    ];
    let files = files.map(|file| file.as_str().expect("a path").to_string());
    let assets = assets(&deb).into_iter().map(|(source, _)| source);
    let is_made = |source: &String| {
        source.starts_with("target/") || source.starts_with("../../packaging/generated/")
    };
    for source in assets.chain(files).filter(|source| !is_made(source)) {
        let path = Path::new(&source);
        let path = if source.contains('*') {
            path.parent().expect("a folder")
        } else {
            path
        };
        assert!(path.exists(), "{source}");
    }
}

#[test]
fn the_crates_are_published_after_those_that_they_depend_on() {
    let text = fs::read_to_string("../../CONTRIBUTING.md").expect("the file is read");
    let order: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("    cargo publish -p "))
        .collect();
    let packages = packages();
    let name = |value: &Value| value["name"].as_str().expect("a name").to_string();
    let mut published: Vec<_> = packages
        .iter()
        .filter(|package| package["publish"].is_null())
        .collect();
    let place = |wanted: &str| order.iter().position(|name| *name == wanted);
    published.sort_by_key(|package| place(&name(package)));
    assert_eq!(
        published
            .iter()
            .map(|package| name(package))
            .collect::<Vec<_>>(),
        order
    );
    for package in published {
        for needed in package["dependencies"].as_array().expect("a list") {
            let is_here = packages.iter().any(|other| other["name"] == needed["name"]);
            if !is_here || needed["kind"] == "dev" {
                continue;
            }
            let (package, needed) = (name(package), name(needed));
            assert!(
                place(&needed).is_some(),
                "{package} needs {needed}, which is not published"
            );
            assert!(
                place(&needed) < place(&package),
                "{package} needs {needed} before"
            );
        }
    }
}

/// Metadata that the registry shows and searches.
#[test]
fn published_crates_say_what_they_are() {
    let packages = packages();
    let published = packages
        .iter()
        .filter(|package| package["publish"].is_null());
    for package in published {
        for key in ["description", "license", "rust_version"] {
            assert!(package[key].is_string(), "{} has no {key}", package["name"]);
        }
        for key in ["keywords", "categories"] {
            let count = package[key].as_array().map_or(0, Vec::len);
            assert!(
                (1..=5).contains(&count),
                "{}: {count} {key}",
                package["name"]
            );
        }
        let manifest = Path::new(package["manifest_path"].as_str().expect("a path"));
        for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
            assert!(
                manifest.with_file_name(licence).is_file(),
                "{}: {licence}",
                package["name"]
            );
        }
    }
}

#[test]
fn the_changelog_of_the_package_begins_with_this_version() {
    let text = fs::read_to_string("../../packaging/changelog").expect("the file is read");
    let begins = format!("fastproc ({}-", env!("CARGO_PKG_VERSION"));
    assert!(text.starts_with(&begins), "{text}");
}

/// A program that may have privileges parses no data from the network: `fastproc-exporter` does.
#[test]
fn the_command_has_no_web_server_in_it() {
    let needed = |package: &str| {
        let output = Command::new(env!("CARGO"))
            .args("tree --offline --edges=normal --prefix=none --package".split(' '))
            .arg(package)
            .output()
            .expect("cargo is there");
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).expect("names are UTF-8");
        let of_web = ["hyper", "rustls", "bcrypt", "saphyr", "tokio"];
        let names = text.lines().filter_map(|line| line.split(' ').next());
        let mut found: Vec<_> = names.filter(|name| of_web.contains(name)).collect();
        found.sort_unstable();
        found.dedup();
        found.len()
    };
    assert_eq!(needed("fastproc-exporter"), 5);
    assert_eq!(needed("fastproc-cli"), 0);
}
