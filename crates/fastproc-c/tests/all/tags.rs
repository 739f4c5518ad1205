//! The tags of a member in `bpf/record.h` decide about its accessor.

#[path = "../../build/main.rs"]
#[allow(dead_code, reason = "cargo runs it; only what it writes is tested")]
mod build;

use fastproc_testbed::gate;

const HEADER: &str = "
struct fp_identity {
	u32 tgid FP_PUBLIC FP_PROCESS; /* Process id. */
	u32 secret_key FP_NOBODY FP_PROCESS;     /* Not for you. */
	u32 inner_key FP_PUBLIC FP_PROCESS FP_INNER; /* For the library. */
	s32 code FP_TRACERS FP_PROCESS; /* Exit status. */
};

struct fp_users {
	s32 mask FP_PUBLIC FP_LEADER FP_UNKNOWN(-1); /* May be unknown. */
};

struct fp_record {
	struct fp_identity identity FP_ALWAYS; /* Who it is. */
	struct fp_users users FP_GROUP; /* Users. */
};

struct fp_thread_record {
	u32 tid FP_PUBLIC; /* Thread id. */
	u32 secret_state FP_NOBODY;  /* Not for you. */
};
";

#[test]
fn tags_make_accessors_or_none() {
    let code = build::accessors(&build::header::Header::parse("record.h", HEADER));
    for name in ["fastproc_identity_tgid", "fastproc_thread_tid"] {
        assert!(code.contains(name), "{code}");
    }
    assert!(
        !code.contains("secret") && !code.contains("inner"),
        "{code}"
    );
    assert!(code.contains(".and_then(|group| group.mask())"), "{code}");
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
