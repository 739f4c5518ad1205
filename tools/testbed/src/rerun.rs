//! Tests that change their whole process, and those that look at it, run themselves again in a process of their own.

use std::{
    any::type_name,
    env,
    process::{Command, Output},
};

const CASE: &str = "FASTPROC_TEST_CASE";

/// The name of a test in its program: that of its function, with its modules.
pub fn name_of<T: Fn()>(_test: T) -> &'static str {
    let path = type_name::<T>();
    path.split_once("::").map_or(path, |(_, name)| name)
}

/// The command that runs this test again, alone. Add what tells it there what to do.
///
/// # Panics
///
/// If `/proc` does not show this program.
pub fn again<T: Fn()>(test: T) -> Command {
    let mut command = Command::new(env::current_exe().expect("/proc shows this program"));
    command.args(["--exact", name_of(test), "--nocapture"]);
    command.args(["--include-ignored", "--test-threads=1"]);
    command
}

/// Runs this test again with `case` set, and returns its output.
///
/// # Panics
///
/// If it fails there.
#[track_caller]
pub fn rerun<T: Fn()>(test: T, case: &str) -> Output {
    let output = again(test).env(CASE, case).output();
    let output = output.expect("this program can be executed");
    assert!(output.status.success(), "{case}: {}", told(&output));
    output
}

/// What a test told that was run [`again`]: it must have run, passed, and skipped nothing.
///
/// # Panics
///
/// If not.
#[track_caller]
pub fn assert_passed(output: &Output) {
    let told = told(output);
    let passed = output.status.success() && told.contains("1 passed");
    assert!(passed && !told.contains("SKIPPED"), "{told}");
}

fn told(output: &Output) -> String {
    let [said, errors] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    format!("{said}\n{errors}")
}

/// Whether this process runs only this test. If not, runs the test in a process of its own. cargo-nextest gives one to each.
///
/// # Panics
///
/// If it fails there.
#[track_caller]
pub fn own_process<T: Fn()>(test: T) -> bool {
    if is_rerun() || env::var_os("NEXTEST_EXECUTION_MODE").is_some() {
        return true;
    }
    rerun(test, "a process of its own");
    false
}

/// Whether [`rerun`] started this process with this case.
pub fn is_case(case: &str) -> bool {
    env::var(CASE).is_ok_and(|now| now == case)
}

/// Whether [`rerun`] started this process.
pub fn is_rerun() -> bool {
    env::var_os(CASE).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_run_again_by_its_name() {
        assert_eq!(
            name_of(a_test_is_run_again_by_its_name),
            "rerun::tests::a_test_is_run_again_by_its_name"
        );
        if is_case("there") {
            return println!("{}", is_case("elsewhere"));
        }
        assert!(!is_rerun());
        let output = rerun(a_test_is_run_again_by_its_name, "there");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("false"), "{text}");
    }
}
