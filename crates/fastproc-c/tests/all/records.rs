//! What records in C hold: the members that `bpf/` describes, at their places, and nothing that the kernel hides.

use std::{
    fmt::Write,
    fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
};

use fastproc::schema;
use fastproc_testbed::{READS_BY_BPF, as_user_with, gate, needs};

use crate::common::{self, NOBODY, Served, run};

#[test]
fn members_have_the_places_of_the_library_in_rust() {
    needs!(gate::programs(&["cc", "pkg-config"]));
    let prefix = common::install("places");
    let (mut program, mut expected) = (String::new(), String::new());
    program +=
        "#include <stddef.h>\n#include <stdio.h>\n#include <fastproc.h>\nint main(void)\n{\n";
    for (structure, name) in [
        (schema::RECORD, "fastproc_record"),
        (schema::THREAD, "fastproc_thread_record"),
    ] {
        let _ = writeln!(program, "printf(\"%zu\\n\", sizeof({name}));");
        let _ = writeln!(expected, "{}", structure.size);
        for field in structure.fields() {
            let _ = writeln!(
                program,
                "printf(\"%zu %zu\\n\", offsetof({name}, {path}), sizeof((({name} *)NULL)->{path}));",
                path = field.path
            );
            let _ = writeln!(expected, "{} {}", field.offset, field.type_of.size());
        }
    }
    program += "return 0;\n}\n";
    let source = prefix.join("places.c");
    fs::write(&source, program).expect("the file is written");
    assert_eq!(
        run(&mut Command::new(common::compile(&prefix, &source))),
        expected
    );
}

fn program(prefix: &Path) -> PathBuf {
    let source = prefix.join("guarded.c");
    fs::copy("tests/all/guarded.c", &source).expect("the file can be copied");
    common::compile(prefix, &source)
}

#[test]
fn guarded_members_are_unknown_to_a_user_whatever_the_source() {
    needs!(
        gate::programs(&["cc", "pkg-config", "setpriv"]),
        gate::bpf()
    );
    let prefix = common::install("guarded");
    let program = program(&prefix);
    let served = Served::start(&prefix);
    let own = std::process::id().to_string();
    for source in ["bpf", "procfs", "service"] {
        for uid in [0, NOBODY] {
            // BPF reads all values: the library hides them.
            let mut command = if uid != 0 && source == "bpf" {
                as_user_with(uid, READS_BY_BPF, &program)
            } else {
                let mut command = Command::new(&program);
                command.uid(uid).gid(uid);
                command
            };
            let text = run(command
                .args([source, &own])
                .env("FASTPROC_SOCKET", &served.socket)
                .current_dir("/"));
            let [masked, known] = if uid == 0 { ["0", "1"] } else { ["1", "0"] };
            let exit_code = if uid == 0 { "0" } else { "-1" };
            let expected = format!(
                "masked {masked}\nexit_code {exit_code}\nstart_stack {known}\nhas_io {known}\nrchar {known}\n\
                 thread_rchar {known}\nsource {source}\n"
            );
            assert_eq!(text, expected, "{source} as {uid}");
        }
    }
    drop(served);
}
