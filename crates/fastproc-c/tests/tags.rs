//! What the tags of `bpf/record.h` make of a member's accessor.

#[path = "../build/main.rs"]
#[allow(dead_code, reason = "cargo runs it; only what it writes is tested")]
mod build;

use fastproc_testbed::gate;

const HEADER: &str = "
struct fp_identity {
	u32 tgid FP_PUBLIC; /* Process id. */
	u32 secret_key;     /* Not for you. */
	s32 code FP_TRACERS; /* Exit status. */
};

struct fp_record {
	struct fp_identity identity; /* Who it is. */
};

struct fp_thread_record {
	u32 tid FP_PUBLIC; /* Thread id. */
	u32 secret_state;  /* Not for you. */
};
";

#[test]
fn a_member_without_a_tag_has_no_accessor() {
    let code = build::accessors(&build::header::Header::parse("record.h", HEADER));
    for name in ["fastproc_identity_tgid", "fastproc_thread_tid"] {
        assert!(code.contains(name), "{code}");
    }
    assert!(!code.contains("secret"), "{code}");
    let of_tracers = code
        .split("/// ")
        .find(|part| part.contains("fastproc_identity_code("));
    let of_tracers = of_tracers.expect("it has one");
    assert!(
        of_tracers.starts_with("Exit status. [guarded]"),
        "{of_tracers}"
    );
    assert!(of_tracers.contains("Guard::Guarded"), "{of_tracers}");
    gate::ran();
}
