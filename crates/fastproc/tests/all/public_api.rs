//! The public API of the published crates matches their lists, so a review sees changes.

use std::{
    collections::HashMap, env, fs, os::unix::fs::PermissionsExt, path::Path, process::Command,
};

use fastproc_testbed::gate;
use public_api::Builder;

const CRATES: [&str; 2] = ["fastproc", "seqtext"];

/// Writes rustdoc's description of the crates, an unstable one. What cargo itself compiles must not see the variable.
fn describe(root: &Path, target: &Path) {
    let rustdoc = target.join("tmp/rustdoc-json");
    fs::write(
        &rustdoc,
        "#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec rustdoc \"$@\"\n",
    )
    .expect("the target folder is ours");
    fs::set_permissions(&rustdoc, fs::Permissions::from_mode(0o755)).expect("its mode is set");
    let packages = CRATES.map(|name| format!("--package={name}"));
    let status = Command::new(env!("CARGO"))
        .args(["doc", "--lib", "--no-deps", "--locked", "--quiet"])
        .args(packages)
        .current_dir(root)
        .env("RUSTDOC", &rustdoc)
        .env(
            "RUSTDOCFLAGS",
            "--cap-lints allow -Z unstable-options --output-format json",
        )
        .env("CARGO_TARGET_DIR", target)
        // scripts/time-tests sets it for the tests.
        .env_remove("RUSTC_BOOTSTRAP")
        .status();
    assert!(status.expect("cargo can be started").success());
}

/// The list without the output of `bitflags`: lines that are equal for all its types, except for the name and the
/// width.
fn without_bitflags(lines: &[String]) -> String {
    let implements = "impl bitflags::traits::Flags for ";
    let types = lines
        .iter()
        .filter_map(|line| line.strip_prefix(implements));
    let types: Vec<_> = types.collect();
    let shape = |line: &str| {
        let of = types.iter().find(|name| line.contains(**name))?;
        let line = line.replace(*of, "_").replace("u8", "u32");
        (!line.starts_with("pub struct")).then_some(line)
    };
    let mut times: HashMap<_, usize> = HashMap::new();
    for shape in lines.iter().filter_map(|line| shape(line)) {
        *times.entry(shape).or_default() += 1;
    }
    let is_own = |line: &&String| shape(line).is_none_or(|shape| times[&shape] < types.len());
    let own: Vec<_> = lines.iter().filter(is_own).map(String::as_str).collect();
    own.join("\n") + "\n"
}

/// The compiler's version.
fn rustc() -> String {
    let output = Command::new("rustc").arg("--version").output();
    let text = String::from_utf8(output.expect("it is installed").stdout).expect("text");
    let version = text.split(' ').nth(1).expect("rustc 1.2.3 (…)");
    version.to_owned()
}

#[test]
fn the_lists_are_what_is_public() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .expect("target/tmp");
    let list = |name: &str| root.join(format!("crates/{name}/public-api.txt"));
    let writes = env::var_os("FASTPROC_WRITE_API").is_some();
    let wanted = fs::read_to_string(root.join("scripts/compiler")).expect("the file is read");
    let (wanted, rustc) = (wanted.trim(), rustc());
    // Another version may list derived items differently.
    if rustc != wanted {
        assert!(
            !writes,
            "the lists are those of Rust {wanted}: use it, or name {rustc} in scripts/compiler"
        );
        gate::skipped(&format!(
            "the lists of the public API are those of Rust {wanted}, and this is {rustc}"
        ));
        return;
    }
    describe(&root, target);
    let mut differs = String::new();
    for name in CRATES {
        let api = Builder::from_rustdoc_json(target.join(format!("doc/{name}.json")))
            .omit_blanket_impls(true)
            .omit_auto_trait_impls(true)
            .omit_auto_derived_impls(true)
            .build()
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let lines: Vec<_> = api.items().map(ToString::to_string).collect();
        let text = without_bitflags(&lines);
        if writes {
            fs::write(list(name), &text).expect("it can be written");
        }
        let kept = fs::read_to_string(list(name)).expect("the file is read");
        let only = |text: &str, other: &str, mark: char| {
            let other: Vec<_> = other.lines().collect();
            let lines = text.lines().filter(|line| !other.contains(line));
            lines.fold(String::new(), |all, line| all + &format!("{mark} {line}\n"))
        };
        differs += &only(&kept, &text, '-');
        differs += &only(&text, &kept, '+');
    }
    assert!(
        differs.is_empty(),
        "the public API has changed; see CHANGELOG.md of what breaks, and make api:\n{differs}"
    );
    gate::ran();
}
