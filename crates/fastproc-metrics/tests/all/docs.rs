//! The pages of metrics agree with the code.

use std::{fs, path::PathBuf};

use fastproc_metrics::metrics::{cadvisor_names, markdown};

/// Compares a page with what the code says of it, or writes it.
#[track_caller]
fn check(name: &str, page: impl FnOnce(&str) -> String) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let path = path.join(name);
    let found = fs::read_to_string(&path).unwrap_or_default();
    let page = page(&found);
    if std::env::var_os("FASTPROC_WRITE_DOCS").is_some() {
        fs::write(&path, &page).expect("docs/ is writable");
    } else {
        assert!(
            found == page,
            "docs/{name} is not what the code says: FASTPROC_WRITE_DOCS=1 cargo test -p fastproc-metrics --test all docs:: writes it"
        );
    }
}

#[test]
fn the_table_of_metrics_is_current() {
    check("metrics.md", |_| markdown());
}

#[test]
fn the_table_of_the_names_of_cadvisor_is_current() {
    const MARKS: [&str; 2] = ["<!-- names: from the code -->\n", "<!-- names: end -->\n"];
    check("cadvisor.md", |page| {
        let (before, rest) = page.split_once(MARKS[0]).expect("the table begins");
        let (_, after) = rest.split_once(MARKS[1]).expect("the table ends");
        [before, MARKS[0], &cadvisor_names(), MARKS[1], after].concat()
    });
}
