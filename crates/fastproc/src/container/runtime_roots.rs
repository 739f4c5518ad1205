//! Folders of the runtimes beside the usual ones: those that their configurations name, or the user.

use std::{
    path::{Path, PathBuf},
    sync::OnceLock,
};

use serde_json::Value;

use super::{
    origin::Runtime,
    runtime_files::{DOCKER, read_file},
};
use crate::base::{error::Error, proc_root};

/// Files with Docker's `data-root`.
const DOCKER_CONFIGURATIONS: [&str; 2] = [
    "etc/docker/daemon.json",
    "var/snap/docker/current/config/daemon.json",
];
/// Files of containers/storage. A later one counts more.
const STORAGE_CONFIGURATIONS: [&str; 2] = [
    "usr/share/containers/storage.conf",
    "etc/containers/storage.conf",
];

static GIVEN: OnceLock<Vec<PathBuf>> = OnceLock::new();

/// Makes this whole program search these folders, too: a `data-root` of Docker, a state folder of containerd, or a
/// graphroot or runroot of Podman and CRI-O. The paths are those on the host.
///
/// # Errors
/// This program runs with privileges that its user does not have (set-user-ID, or capabilities of its file): then the
/// folders are not the user's choice.
pub fn set_roots(folders: Vec<PathBuf>) -> Result<(), Error> {
    if let Some(folder) = folders.first()
        && proc_root::has_more_privileges_than_its_user()
    {
        let refused =
            "a program with more privileges than its user searches the usual folders only";
        let path = folder.display().to_string();
        return Err(Error::unreadable(path, std::io::Error::other(refused)));
    }
    let folders = folders.into_iter();
    let folders = folders.map(|folder| std::path::absolute(&folder).unwrap_or(folder));
    GIVEN.get_or_init(|| folders.collect());
    Ok(())
}

/// A path on the host whose root is this folder.
fn below(root: &Path, path: &Path) -> Option<PathBuf> {
    let path = path.strip_prefix("/").ok()?;
    let is_plain = |part| matches!(part, std::path::Component::Normal(_));
    path.components().all(is_plain).then(|| root.join(path))
}

/// Folders of runtimes below this root, beside the usual ones.
pub(super) fn named(root: &Path) -> Vec<(Runtime, PathBuf)> {
    all(root, GIVEN.get().map_or(&[], Vec::as_slice))
}

fn all(root: &Path, given: &[PathBuf]) -> Vec<(Runtime, PathBuf)> {
    let below = |path: &str| below(root, Path::new(path));
    let text = |path: &&str| String::from_utf8(read_file(&root.join(path))?).ok();
    let mut named = Vec::new();
    let mut docker: Vec<PathBuf> = DOCKER_CONFIGURATIONS
        .iter()
        .filter_map(|path| {
            let configuration: Value = serde_json::from_str(&text(path)?).ok()?;
            let keys = ["data-root", "graph"].iter();
            let mut found = keys.filter_map(|key| configuration.get(key)?.as_str());
            below(found.next()?)
        })
        .collect();
    named.extend(
        docker
            .iter()
            .map(|folder| (Runtime::Docker, folder.clone())),
    );
    docker.extend(DOCKER.iter().map(|folder| root.join(folder)));
    let remapped = docker.iter().flat_map(|folder| remapped(folder));
    named.extend(remapped.map(|folder| (Runtime::Docker, folder)));
    let state = text(&"etc/containerd/config.toml").and_then(|text| value(&text, "", "state"));
    named.extend(
        state
            .and_then(|state| below(&state))
            .map(|folder| (Runtime::Containerd, folder)),
    );
    let configurations = STORAGE_CONFIGURATIONS.iter().filter_map(text);
    for configuration in configurations {
        for key in ["runroot", "graphroot"] {
            let folder = value(&configuration, "storage", key).and_then(|folder| below(&folder));
            let runtimes = [Runtime::CriO, Runtime::Podman];
            named.extend(
                folder
                    .iter()
                    .flat_map(|folder| runtimes.map(|of| (of, folder.clone()))),
            );
        }
    }
    for folder in given.iter().filter_map(|path| self::below(root, path)) {
        let runtimes = [
            Runtime::Docker,
            Runtime::Containerd,
            Runtime::CriO,
            Runtime::Podman,
        ];
        named.extend(runtimes.map(|of| (of, folder.clone())));
    }
    named
}

/// Folders that Docker uses with `userns-remap`: the ids of the user and the group, with a dot between them.
fn remapped(folder: &Path) -> Vec<PathBuf> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let entries = entries.filter_map(|entry| {
        let entry = entry.ok()?;
        let name = entry.file_name().into_string().ok()?;
        let (uid, gid) = name.split_once('.')?;
        (is_number(uid) && is_number(gid)).then(|| entry.path())
    });
    entries.take(MOST_REMAPPED).collect()
}

const MOST_REMAPPED: usize = 16;

/// The text of a key in a section of a TOML file; the first section has no name. It need not understand the rest.
fn value(text: &str, section: &str, key: &str) -> Option<String> {
    let mut within = "";
    let mut found = None;
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[') {
            within = name.split(']').next().unwrap_or_default().trim();
        } else if within == section
            && let Some(rest) = line.strip_prefix(key)
            && let Some(value) = rest.trim_start().strip_prefix('=')
        {
            let value = value.trim_start();
            let quote = value
                .chars()
                .next()
                .filter(|quote| ['"', '\''].contains(quote));
            found = quote.and_then(|quote| Some(value[1..].split_once(quote)?.0.to_owned()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_given_may_be_of_any_runtime() {
        let named = all(Path::new("/host"), &["/srv/a".into(), "relative".into()]);
        let folder = PathBuf::from("/host/srv/a");
        for runtime in [Runtime::Docker, Runtime::Containerd, Runtime::Podman] {
            assert!(named.contains(&(runtime, folder.clone())), "{named:?}");
        }
        assert!(named.iter().all(|(_, found)| *found == folder));
    }

    #[test]
    fn a_value_is_that_of_its_section() {
        let text = "version = 2\n# state = \"/no\"\nstate = '/run/c'\nstates = \"/no\"\n\
            [plugins.\"a\"]\nstate = \"/no\"\n[ storage ] # here\ngraphroot=\"/a b\" # x\nrunroot = 7\n";
        for (section, key, expected) in [
            ("", "state", Some("/run/c")),
            ("storage", "graphroot", Some("/a b")),
            ("storage", "runroot", None),
            ("storage", "state", None),
        ] {
            assert_eq!(value(text, section, key).as_deref(), expected, "{key}");
        }
    }
}
