#!/bin/sh
# Errors that `cargo test -p seqtext` cannot find: memory errors and undefined behaviour in seqtext's unsafe code, on this
# machine's kind of processor and on others. Runs the installed tools and names the missing ones.
#
#   scripts/check-seqtext.sh            report missing tools
#   scripts/check-seqtext.sh --strict   fail if a tool is missing, for CI
set -u
cd "$(dirname "$0")/.." || exit 1

strict=no
[ "${1-}" = --strict ] && strict=yes
failed=
missing=
host=$(rustc -vV | sed -n 's/^host: //p')

check() {
    name=$1
    shift
    echo "== $name: $*"
    "$@" || failed="$failed$name; "
}

not_checked() {
    echo "!! NOT CHECKED: $1 ($2)" >&2
    missing="$missing$1; "
}

nightly=no
rustc +nightly -V >/dev/null 2>&1 && nightly=yes

# Memory errors, in optimised code.
if [ $nightly = yes ]; then
    check AddressSanitizer env RUSTFLAGS="-Zsanitizer=address -Copt-level=2" RUSTDOCFLAGS="-Zsanitizer=address" \
        cargo +nightly test --quiet -p seqtext --target "$host"
elif command -v valgrind >/dev/null; then
    runner=CARGO_TARGET_$(echo "$host" | tr 'a-z-' 'A-Z_')_RUNNER
    check valgrind env "$runner=valgrind --quiet --error-exitcode=99" \
        cargo test --quiet --release -p seqtext --test all
else
    not_checked "memory errors" "neither a nightly toolchain nor valgrind"
fi

# Undefined behaviour, and the same tests where bytes have the other order or pointers 32 bits.
if cargo +nightly miri --version >/dev/null 2>&1; then
    export MIRIFLAGS="-Zmiri-strict-provenance -Zmiri-symbolic-alignment-check"
    for target in "$host" s390x-unknown-linux-gnu i686-unknown-linux-gnu; do
        check "Miri on $target" cargo +nightly miri test --quiet -p seqtext --target "$target" --test all
    done
else
    not_checked "undefined behaviour, big-endian, 32 bits" "rustup component add --toolchain nightly miri rust-src"
fi

# Random calls for half a minute.
if [ $nightly = yes ] && cargo fuzz --version >/dev/null 2>&1; then
    check fuzzing env --chdir crates/seqtext cargo +nightly fuzz run calls -- -max_total_time=30
else
    not_checked fuzzing "cargo install cargo-fuzz, and a nightly toolchain"
fi

[ -n "$missing" ] && echo "!! NOT CHECKED: $missing" >&2
[ -n "$failed" ] && echo "!! FAILED: $failed" >&2
[ -z "$failed" ] && { [ -z "$missing" ] || [ $strict = no ]; }
