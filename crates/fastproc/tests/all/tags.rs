//! The code that the build generates from the tags of `bpf/record.h`.

#[path = "../../build/groups.rs"]
#[allow(dead_code, reason = "the build has use for all of it")]
mod groups;
#[path = "../../build/header.rs"]
#[allow(dead_code, reason = "the build has use for all of it")]
mod header;
#[path = "../../build/rust.rs"]
mod rust;

use fastproc_testbed::gate;

const STYLE: rust::Style = rust::Style {
    prefix: "fp_",
    view: Some(header::View::PROCESS),
};

/// The code for a header with a group that has this member. Panics, like the build, if a tag is missing.
fn written(member: &str) -> String {
    let text = format!(
        "#define FP_PART 0x1\n#define FP_NONE 7\n\nstruct fp_part {{\n\t{member}\n}};\n\n\
         struct fp_record {{\n\tstruct fp_part part FP_GROUP; /* A part. */\n}};\n\n\
         struct fp_thread_record {{\n\tu64 known FP_PUBLIC; /* Of a thread. */\n}};\n"
    );
    let header = header::Header::parse("record.h", &text);
    let view = &header::View::PROCESS;
    header.require_tags("record.h", view);
    [
        rust::write(&header, &STYLE),
        groups::write_fields(&header, &STYLE, view),
        groups::write_accessors(&header, &STYLE, view),
        groups::write_records(&header, &STYLE, view),
    ]
    .concat()
}

fn is_refused(member: &str) -> bool {
    std::panic::catch_unwind(|| written(member)).is_err()
}

#[test]
fn a_member_that_lacks_a_tag_ends_the_build() {
    for lacking in [
        "u64 known;",
        "u64 known FP_PUBLIC;",
        "u64 known FP_SUM;",
        "u64 known FP_UNKNOWN(0);",
        "char known[8] FP_LEADER;",
        "u64 known; /* FP_PUBLIC FP_SUM */",
    ] {
        assert!(is_refused(lacking), "{lacking}");
    }
    assert!(!is_refused("u64 known FP_PUBLIC FP_SUM;"));
    gate::ran();
}

#[test]
fn a_tag_that_does_not_exist_or_says_two_things_ends_the_build() {
    for wrong in [
        "u64 known FP_EVERYBODY FP_SUM;",
        "u64 known FP_PUBLIC FP_TICKS FP_SUM;",
        "u64 known FP_PUBLIC FP_SUM FP_LEADER;",
        "u64 known FP_PUBLIC FP_SUM FP_UNKNOWN(FP_NOTHING);",
        // Its threads lack it.
        "u64 other FP_PUBLIC FP_SUM;",
    ] {
        assert!(is_refused(wrong), "{wrong}");
    }
    gate::ran();
}

#[test]
fn tags_say_who_sees_a_member_and_what_is_made_of_it() {
    let secret = written("u64 secret FP_NOBODY FP_PROCESS;");
    assert!(secret.contains("\npub(crate) secret: "), "{secret}");
    assert!(secret.contains("Shown::Nobody,"), "{secret}");
    for (tag, shown) in [
        ("PUBLIC", "Public"),
        ("TICKS", "Ticks"),
        ("BOOT_TICKS", "BootTicks"),
        ("TRACERS", "Tracers"),
    ] {
        let code = written(&format!("u64 known FP_{tag} FP_SUM;"));
        assert!(code.contains("\npub known: "), "{code}");
        assert!(code.contains(&format!("Shown::{shown},")), "{code}");
        assert!(code.contains("self.known += thread.known;"), "{code}");
        assert!(
            code.contains("if groups.contains(crate::Fields::PART)"),
            "{code}"
        );
        assert!(code.contains("const PART = record::PART;"), "{code}");
        assert!(
            code.contains("pub fn part(self) -> Option<&'a crate::record::Part>"),
            "{code}"
        );
    }
    gate::ran();
}

#[test]
fn members_with_an_unknown_value_are_options() {
    for (type_name, value, in_rust, bits) in [
        ("u64", "0", "0", "Some(0)"),
        ("s32", "-1", "-1", "Some(0xffff_ffff)"),
        ("u64", "-1", "u64::MAX", "Some(0xffff_ffff_ffff_ffff)"),
        ("u32", "FP_NONE", "7", "Some(7)"),
    ] {
        let code = written(&format!(
            "{type_name} known FP_PUBLIC FP_LEADER FP_UNKNOWN({value});"
        ));
        assert!(code.contains("\npub(crate) known: "), "{code}");
        assert!(
            code.contains("pub const fn known(&self) -> Option<"),
            "{code}"
        );
        assert!(
            code.contains(&format!("if self.known == {in_rust} ")),
            "{code}"
        );
        assert!(
            code.contains(&format!("            known: {in_rust},")),
            "{code}"
        );
        assert!(code.contains(&format!("unknown: {bits},")), "{code}");
    }
    gate::ran();
}

#[test]
fn members_that_the_kernel_hides_are_options() {
    let code = written("u64 other FP_PUBLIC FP_LEADER;\n\tu64 known FP_TRACERS FP_LEADER;");
    assert!(code.contains("pub fn known(self) -> Option<u64>"), "{code}");
    assert!(!code.contains("pub fn other("), "{code}");
    gate::ran();
}
