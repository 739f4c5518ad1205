//! When the BPF objects of a published crate count as made from its sources.

#[path = "../../build/objects.rs"]
#[allow(dead_code, reason = "the build has use for all of it")]
mod objects;

use std::{fs, path::Path};

use fastproc_testbed::Folder;

/// A folder of sources: a program, and a header in a folder below.
fn sources(header: &str, text: &str) -> Folder {
    let folder = Folder::new("sources");
    fs::create_dir(folder.join("part")).expect("the folder is made");
    fs::write(folder.join("a.bpf.c"), "#include \"part/b.h\"\n").expect("there is room");
    fs::write(folder.join("part").join(header), text).expect("there is room");
    folder
}

fn digest(folder: &Path) -> String {
    objects::digest(folder, &objects::sources(folder))
}

#[test]
fn objects_are_of_the_same_sources_wherever_those_lie() {
    let made_of = digest(&sources("b.h", "int b;\n"));
    let prebuilt = Folder::new("prebuilt");
    let is_of = |folder: &Path| objects::is_of(&prebuilt, &digest(folder));
    let same = sources("b.h", "int b;\n");
    assert!(!is_of(&same), "there are no objects yet");
    fs::write(prebuilt.join("sources"), made_of).expect("there is room");
    assert!(is_of(&same));
    assert!(!is_of(&sources("b.h", "int c;\n")), "a header was changed");
    assert!(!is_of(&sources("c.h", "int b;\n")), "a header was renamed");
    fs::write(same.join("c.bpf.c"), "").expect("there is room");
    assert!(!is_of(&same), "a program was added");
}
