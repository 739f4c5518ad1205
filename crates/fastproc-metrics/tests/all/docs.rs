//! The page of all metrics agrees with the code.

use std::path::PathBuf;

#[test]
fn the_table_of_metrics_is_current() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let page = fastproc_metrics::metrics::markdown();
    if std::env::var_os("FASTPROC_WRITE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    assert!(
        std::fs::read_to_string(&path).unwrap_or_default() == page,
        "docs/metrics.md is not what the code says: FASTPROC_WRITE_DOCS=1 cargo test -p fastproc-metrics --test all docs:: writes it"
    );
}
