use std::{fs, os::unix::fs::PermissionsExt, thread, time::Duration};

use fastproc_testbed::Folder;
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

use super::*;

#[test]
fn directories_are_found_from_their_parents_and_forgotten_when_they_are_gone() {
    let folder = std::env::temp_dir().join(format!("fastproc-tree-{}", std::process::id()));
    fs::create_dir_all(folder.join("a/b")).expect("a folder");
    fs::write(folder.join("a/b/cpu.stat"), "usage_usec 7\n").expect("a file");
    fs::write(folder.join("a/own"), "1\n").expect("a file");
    let mut tree = Tree::at(&folder).expect("a folder");
    tree.begin();
    let root = tree.root_id();
    assert!(tree.meet(root, 0));
    let [a] = tree.children(root)[..] else {
        panic!("one child")
    };
    assert!(tree.meet(a, root));
    let b = rustix::fs::stat(folder.join("a/b"))
        .expect("the folder exists")
        .st_ino;
    assert!(!tree.meet(b, b + 1) && tree.meet(b, a));
    assert_eq!(tree.path(b), Some(&b"/a/b"[..]));
    let mut memory = Vec::new();
    for _ in 0..2 {
        assert_eq!(
            tree.read(b, "cpu.stat", &mut memory),
            Some("usage_usec 7\n")
        );
        assert_eq!(tree.read(b, "memory.stat", &mut memory), None);
        assert_eq!(tree.directories[&b].files.len(), 1);
    }
    // No descriptor is low enough, or there are enough.
    assert_eq!(tree.kept, 1);
    tree.bounds.descriptors = 1;
    assert!(tree.read(a, "own", &mut memory).is_some());
    assert!(tree.directories[&a].files.is_empty());
    tree.bounds.descriptors = 2;
    tree.keeps_below = 0;
    assert!(tree.read(a, "own", &mut memory).is_some());
    assert!(tree.directories[&a].files.is_empty());
    tree.end();
    fs::remove_dir_all(folder.join("a")).expect("the folder is removed");
    tree.begin();
    assert!(tree.meet(root, 0) && tree.children(root).is_empty());
    tree.end();
    assert_eq!((tree.path(a), tree.path(b)), (None, None));
    assert_eq!(tree.kept, 0);
    assert!(tree.check().is_ok());
    fs::remove_dir_all(&folder).expect("the folder is removed");
}

/// Meets all directories. Returns how many are known then, how many have too long paths, and whether there are not
/// too many.
fn pass(tree: &mut Tree) -> (usize, usize, bool) {
    tree.begin();
    let mut left = vec![(tree.root_id(), 0)];
    while let Some((id, parent)) = left.pop() {
        if tree.meet(id, parent) {
            left.extend(tree.children(id).into_iter().map(|child| (child, id)));
        }
    }
    tree.end();
    (tree.directories.len(), tree.left_out, tree.check().is_ok())
}

/// However many directories there are and however long their paths, no more is kept or looked up.
#[test]
fn cgroups_beyond_the_bounds_use_no_memory() {
    let folder = std::env::temp_dir().join(format!("fastproc-bounds-{}", std::process::id()));
    for at in 0..9 {
        fs::create_dir_all(folder.join(format!("{at}/deep/er"))).expect("a folder");
    }
    let pass = |bounds| {
        let mut tree = Tree::at(&folder).expect("a folder");
        tree.bounds = bounds;
        pass(&mut tree)
    };
    let all = 1 + 9 * 3;
    assert_eq!(pass(Bounds::default()), (all, 0, true));
    let exactly = Bounds {
        cgroups: all,
        path_bytes: "/0/deep/er".len(),
        parts: 3,
        bytes_of_all: "/".len() + 9 * "/0/0/deep/0/deep/er".len(),
        descriptors: 0,
        until: Duration::MAX,
    };
    assert_eq!(pass(exactly), (all, 0, true));
    let fewer = |cgroups| pass(Bounds { cgroups, ..exactly });
    assert!(!fewer(all - 1).2);
    let (count, _, fits) = fewer(5);
    assert!(count <= 2 * 5 && !fits);
    let less = Bounds {
        bytes_of_all: exactly.bytes_of_all - 1,
        ..exactly
    };
    assert_eq!(pass(less), (all, 0, false));
    let (count, _, fits) = pass(Bounds {
        bytes_of_all: 9,
        ..exactly
    });
    assert!(count <= 9 && !fits);
    // Only the long paths are left out, and counted once, without what is below them.
    let shorter = |path: &str| {
        pass(Bounds {
            path_bytes: path.len(),
            ..exactly
        })
    };
    assert_eq!(shorter("/0/deep/e"), (1 + 9 * 2, 9, true));
    assert_eq!(shorter("/0"), (1 + 9, 9, true));
    let flatter = |parts| pass(Bounds { parts, ..exactly });
    assert_eq!(flatter(2), (1 + 9 * 2, 9, true));
    assert_eq!(flatter(1), (1 + 9, 9, true));
    fs::remove_dir_all(&folder).expect("the folder is removed");
}

/// A pass that takes too long is broken off, and what is known by then is not forgotten.
#[test]
fn a_pass_goes_on_where_an_earlier_one_was_broken_off() {
    let folder = std::env::temp_dir().join(format!("fastproc-late-{}", std::process::id()));
    fs::create_dir_all(folder.join("a/b")).expect("a folder");
    let mut tree = Tree::at(&folder).expect("a folder");
    tree.bounds.until = Duration::ZERO;
    assert_eq!(pass(&mut tree), (1, 0, false));
    tree.bounds.until = Duration::MAX;
    assert_eq!(pass(&mut tree), (3, 0, true));
    tree.bounds.until = Duration::ZERO;
    assert_eq!(pass(&mut tree), (3, 0, false));
    fs::remove_dir_all(&folder).expect("the folder is removed");
}

/// They are moved away, not removed: a new directory might have the number of a removed one.
#[test]
fn directories_that_are_gone_do_not_count() {
    let folder = std::env::temp_dir().join(format!("fastproc-gone-{}", std::process::id()));
    let [inside, away] = ["inside", "away"].map(|name| folder.join(name));
    for folder in [&inside, &away] {
        fs::create_dir_all(folder).expect("a folder");
    }
    let mut tree = Tree::at(&inside).expect("a folder");
    tree.bounds.cgroups = 1 + 9;
    for round in 0..3 {
        let names: Vec<_> = (0..9).map(|at| format!("{round}-{at}")).collect();
        for name in &names {
            fs::create_dir(inside.join(name)).expect("a folder");
        }
        assert_eq!(pass(&mut tree), (1 + 9, 0, true));
        for name in &names {
            fs::rename(inside.join(name), away.join(name)).expect("the file is renamed");
        }
    }
    fs::remove_dir_all(&folder).expect("the folder is removed");
}

#[test]
fn a_file_that_this_user_may_not_read_is_hidden_and_an_absent_one_is_not() {
    let folder = Folder::new("hidden");
    let file = folder.join("cgroup.events");
    fs::write(&file, "populated 1\n").expect("root or its owner may write to the folder");
    fs::set_permissions(file, fs::Permissions::from_mode(0o000)).expect("its owner may do this");
    let tree = Tree::at(&folder).expect("the folder exists");
    let root = tree.root_id();
    // Capabilities belong to threads.
    let hidden = thread::spawn(move || {
        let none = CapabilitySets {
            effective: CapabilitySet::empty(),
            permitted: CapabilitySet::empty(),
            inheritable: CapabilitySet::empty(),
        };
        set_capabilities(None, none).expect("capabilities can always be given up");
        ["cgroup.events", "cgroup.stat"].map(|name| tree.is_hidden(root, name))
    });
    let hidden = hidden.join().expect("the thread does not panic");
    assert_eq!(hidden, [true, false]);
}
