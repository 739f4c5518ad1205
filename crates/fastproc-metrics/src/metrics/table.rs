//! The table of all metrics for the documentation.

use super::{cgroups, groups, host, own};
use crate::exposition::Family;

/// The page `docs/metrics.md`.
pub fn markdown() -> String {
    let mut page = String::from(
        "# Metrics\n\nWhat `fastproc serve` answers at `/metrics`. This page is made from the code: \
         `FASTPROC_WRITE_DOCS=1 cargo test -p fastproc-metrics --test all docs::` writes it.\n",
    );
    for (title, text, families) in [
        (
            "Groups of processes",
            "Names, labels and types are those of process-exporter 0.8. A counter counts from the start of the exporter, or of \
             a process that started later, and does not fall when processes exit.",
            groups::ALL.to_vec(),
        ),
        (
            "The machine",
            "Names, labels and types are those of node_exporter. Each part is switched by its flag; `--no-collector.…` \
             turns it off, and `--no-host` all.",
            host::families(),
        ),
        (
            "Cgroups",
            "With `--cgroups`. Names and types are those of cAdvisor; [cadvisor.md](cadvisor.md) says what differs. \
             Each has the labels of its cgroup: `id` is its path, `container`, `image`, `name`, `namespace` and `pod` name a \
             container, `unit` and `slice` a unit of systemd. Other labels are in the table.",
            cgroups::families(),
        ),
        (
            "The exporter",
            "What the exporter reports about itself.",
            own::ALL.to_vec(),
        ),
    ] {
        page += &format!(
            "\n## {title}\n\n{text}\n\n| metric | type | labels | meaning |\n|---|---|---|---|\n"
        );
        for family in families {
            page += &row(&family);
        }
    }
    page
}

fn row(family: &Family) -> String {
    let labels: Vec<String> = family
        .labels
        .iter()
        .map(|label| format!("`{label}`"))
        .collect();
    format!(
        "| `{}` | {} | {} | {} |\n",
        family.name,
        family.kind.name(),
        labels.join(", "),
        family.help
    )
}
