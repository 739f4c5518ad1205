//! A service of another user is trusted if root has given it its place.

use std::{
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt, chown, symlink},
    path::{Path, PathBuf},
};

use crate::common::{Served, become_user, in_child, settings, turns};
use fastproc::{
    SourceKind,
    source::service::{self, Error},
};
use fastproc_service::bind;
use fastproc_testbed::{Folder, alone, gate, needs};
use nix::sys::socket::{Backlog, listen};

const NOBODY: u32 = 65534;
const READER: u32 = 12_345;

/// A folder below folders that only root can write, unlike those for temporary files.
struct RootsFolder(PathBuf);

impl RootsFolder {
    fn new() -> Self {
        let path = PathBuf::from(format!("/run/fastproc-trust-{}", std::process::id()));
        fs::create_dir(&path).expect("the folder is made");
        fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("its mode is set");
        Self(path)
    }
}

impl Drop for RootsFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_service_that_only_root_can_have_put_there_is_believed() {
    let _alone = alone();
    needs!(gate::root());
    let folder = RootsFolder::new();
    let inner = folder.0.join("inner");
    fs::create_dir(&inner).expect("the folder is made");
    fs::set_permissions(&inner, Permissions::from_mode(0o755)).expect("its mode is set");
    let socket = inner.join("socket");
    let mut served = Served::start("trust", Some(SourceKind::Procfs));
    served.stop();
    let (mut test, mut server) = turns();
    let child = in_child(|| {
        let listener = bind(&socket).expect("root may bind the socket");
        chown(&socket, Some(NOBODY), Some(NOBODY)).expect("root sets the owner");
        become_user(NOBODY);
        // From now on this user listens.
        listen(&listener, Backlog::MAXCONN).expect("it is a socket");
        served.serve(listener, &settings(Some(SourceKind::Procfs)));
        server.give();
        server.wait();
        served.stop();
    });
    test.wait();
    let is_believed = |path: &Path| {
        let path = path.to_owned();
        let (mut told, mut tell) = turns();
        let child = in_child(move || {
            become_user(READER);
            let believed = match service::status(&path) {
                Ok(_) => 1,
                Err(Error::Untrusted { uid: NOBODY, .. }) => 0,
                Err(error) => panic!("{error}"),
            };
            tell.tell(believed);
        });
        let believed = told.number() == 1;
        child.join();
        believed
    };
    assert!(is_believed(&socket));
    // A link leads there, wherever it is.
    let links = Folder::new("trust-links");
    let link = links.join("socket");
    symlink(&socket, &link).expect("the link is made");
    assert!(is_believed(&link));
    // Others may write to the folder or the one above, or own it.
    for folder in [&inner, &folder.0] {
        for mode in [0o757, 0o775, 0o1777] {
            fs::set_permissions(folder, Permissions::from_mode(mode)).expect("its mode is set");
            assert!(!is_believed(&socket), "{mode:o}");
        }
        fs::set_permissions(folder, Permissions::from_mode(0o755)).expect("its mode is set");
        assert!(is_believed(&socket));
        chown(folder, Some(NOBODY), None).expect("root sets the owner");
        assert!(!is_believed(&socket));
        chown(folder, Some(0), None).expect("root sets the owner");
    }
    // The listener is not the owner of the socket.
    chown(&socket, Some(READER + 1), None).expect("root sets the owner");
    assert!(!is_believed(&socket));
    test.give();
    child.join();
    gate::ran();
}
