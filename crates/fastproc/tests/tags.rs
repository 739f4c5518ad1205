//! What the tags of `bpf/record.h` make of a member in Rust.

#[path = "../build/header.rs"]
#[allow(dead_code, reason = "the build has use for all of it")]
mod header;
#[path = "../build/rust.rs"]
mod rust;

use fastproc_testbed::gate;

const STYLE: rust::Style = rust::Style {
    prefix: "fp_",
    public: true,
};

fn written(member: &str) -> String {
    let text = format!("struct fp_part {{\n\t{member}\n}};\n");
    rust::write(&header::Header::parse("record.h", &text), &STYLE)
}

#[test]
fn a_member_without_a_tag_is_for_nobody() {
    for member in [
        "u64 secret;",
        "char secret[8];",
        "u64 secret; /* FP_PUBLIC */",
    ] {
        let code = written(member);
        assert!(code.contains("\npub(crate) secret: "), "{code}");
        assert!(
            code.contains("shown: crate::schema::Shown::Nobody,"),
            "{code}"
        );
    }
    for (tag, shown) in [
        ("PUBLIC", "Public"),
        ("TICKS", "Ticks"),
        ("BOOT_TICKS", "BootTicks"),
        ("TRACERS", "Tracers"),
    ] {
        let code = written(&format!("u64 known FP_{tag};"));
        assert!(code.contains("\npub known: "), "{code}");
        assert!(code.contains(&format!("Shown::{shown},")), "{code}");
    }
    gate::ran();
}

#[test]
fn a_tag_that_does_not_exist_ends_the_build() {
    for member in ["u64 known FP_EVERYBODY;", "u64 known FP_PUBLIC FP_TICKS;"] {
        assert!(
            std::panic::catch_unwind(|| written(member)).is_err(),
            "{member}"
        );
    }
    gate::ran();
}
