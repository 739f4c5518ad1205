//! Metrics that other programs leave in files, compared with a real `node_exporter` that reads the same files.

use std::{fs, os::unix::fs::symlink, process::Command};

use fastproc_testbed::{gate, needs, wait_until};

use crate::serve::{
    exposition::Metrics, folder::Folder, node_exporter::NodeExporter, server::Server,
};

const ERROR: &str = "node_textfile_scrape_error";
/// Contents of one file, right and wrong.
const TEXTS: &[&str] = &[
    "",
    "\n\n# nothing\n",
    "node_left 1\n",
    "node_left 1",
    "node_left 1 1395066363000\n",
    "node_left 1 soon\n",
    "node_left{a=\"1\"} 1\nnode_left{a=\"2\",} +Inf\nnode_left{ a = \"3\" } -2.5e-9\n",
    "node_left{a=\"\\\\ \\n \\\"é\"} 1\n",
    "node_left{a=\"\\t\"} 1\n",
    "node_left{a=\"1\",a=\"2\"} 1\n",
    "node_left{a=1} 1\n",
    "node_left{a=\"1} 1\n",
    "node_left{a-b=\"1\"} 1\n",
    "node_left 0x1p-2\n",
    "node_left 1_000\n",
    "node_left one\n",
    "node_left\n",
    "node-left 1\n",
    "9node_left 1\n",
    "# TYPE node_left counter\nnode_left 1\n",
    "# TYPE node_left COUNTER\nnode_left 1\n",
    "# TYPE node_left info\nnode_left 1\n",
    "# TYPE node_left counter\n# TYPE node_left counter\nnode_left 1\n",
    "node_left 1\n# TYPE node_left counter\n",
    "# HELP node_left a\n# HELP node_left b\nnode_left 1\n",
    "# HELP node_left \\q\nnode_left 1\n",
    "# TYPE node_left histogram\nnode_left_bucket{le=\"+Inf\"} 2\nnode_left_sum 1\nnode_left_count 2\n",
    "# TYPE node_left histogram\nnode_left_bucket{le=\"much\"} 2\nnode_left_sum 1\nnode_left_count 2\n",
    "# TYPE node_left summary\nnode_left{quantile=\"0.9\"} 2\nnode_left_sum 1\nnode_left_count 2\n",
    "node_left 1\nnode_other 2\nbroken\n",
    "\t node_left\t1\n",
];

fn told(metrics: &Metrics) -> Vec<String> {
    let left = ["node_left", "node_other", "node_textfile_"];
    let mut told: Vec<String> = metrics
        .series()
        .filter(|(name, ..)| left.iter().any(|start| name.starts_with(start)))
        .map(|(name, labels, value)| format!("{name} {labels:?} {value}"))
        .chain(
            metrics
                .families
                .iter()
                .filter(|(name, _)| left.iter().any(|start| name.starts_with(start)))
                .map(|(name, kind)| format!("{name} is a {kind}")),
        )
        .collect();
    told.sort();
    told
}

/// A server with few other metrics.
fn start(folder: &str) -> Server {
    let flag = format!("--collector.textfile.directory={folder}");
    Server::start(&[
        "--source=procfs",
        "--procnames=none",
        "--collector.textfile",
        &flag,
    ])
}

#[test]
fn files_are_told_and_refused_as_node_exporter_does() {
    needs!(gate::programs(&[NodeExporter::PROGRAM]));
    let folder = Folder::new();
    let path = folder.path().to_str().expect("UTF-8");
    let other = NodeExporter::start(
        Command::new(NodeExporter::PROGRAM)
            .arg("--collector.textfile")
            .arg(format!("--collector.textfile.directory={path}")),
    );
    let server = start(path);
    for text in TEXTS {
        folder.write("a.prom", text);
        assert_eq!(told(&server.scrape()), told(&other.scrape()), "{text:?}");
    }
    fs::remove_file(folder.path().join("a.prom")).expect("the file is removed");
    folder.write("ignored.txt", "broken");
    assert_eq!(told(&server.scrape()), told(&other.scrape()));
    folder.write("b.prom", "node_left{in=\"b\"} 2\n");
    folder.write("a.prom", "node_left{in=\"a\"} 1\n");
    assert_eq!(told(&server.scrape()), told(&other.scrape()));
    // Names with and without _total are two families, in OpenMetrics too.
    folder.write(
        "a.prom",
        "node_left 1\n# TYPE node_left_total counter\nnode_left_total 2\n",
    );
    fs::remove_file(folder.path().join("b.prom")).expect("the file is removed");
    assert_eq!(told(&server.scrape()), told(&other.scrape()));
    let open = server.get("/metrics", &["Accept: application/openmetrics-text"]);
    let text = open.text().strip_suffix("# EOF\n").expect("its end");
    assert_eq!(Metrics::parse(text).get("node_left_total", &[]), Some(2.0));
    fs::remove_dir_all(folder.path()).expect("the folder is removed");
    assert_eq!(told(&server.scrape()), told(&other.scrape()));
}

/// In cases where the other no longer answers, or blocks forever, the other metrics are still served here.
#[test]
fn a_file_that_cannot_be_told_is_left_out_and_said_once() {
    let folder = Folder::new();
    let server = start(folder.path().to_str().expect("UTF-8"));
    let rest = folder.write("a.prom", "node_left{in=\"a\"} 1\n");
    assert_eq!(server.scrape().get(ERROR, &[]), Some(0.0));
    let big = format!("node_left{{in=\"big\"}} 1\n#{}\n", "x".repeat(5 << 20));
    let path = folder.path().join("bad.prom");
    for (at, text) in [
        // Names that exist already, here and in another file.
        "fastproc_build_info{version=\"0\"} 1\n",
        "node_memory_of_others 1\n",
        "node_left{in=\"a\"} 2\n",
        "# TYPE node_left gauge\nnode_left{in=\"bad\"} 2\n",
        "node_left{in=\"bad\"} 1\nnode_left{in=\"bad\"} 2\n",
        &big,
    ]
    .into_iter()
    .enumerate()
    {
        folder.write("bad.prom", text);
        let before = server.stderr().len();
        let metrics = server.scrape();
        assert_eq!(metrics.get(ERROR, &[]), Some(1.0), "{at}");
        assert_eq!(metrics.get("node_left", &[]), Some(1.0), "{at}");
        wait_until("it says so", || {
            server.stderr()[before..].contains("bad.prom: ")
        });
        let said = server.stderr();
        server.scrape();
        assert_eq!(server.stderr(), said, "{at}");
    }
    fs::remove_file(&path).expect("the file is removed");
    // A pipe without a writer, a folder, a broken link.
    let made = Command::new("mkfifo").arg(&path).status();
    assert!(made.expect("mkfifo is everywhere").success());
    fs::create_dir(folder.path().join("folder.prom")).expect("it can be made");
    symlink("nowhere", folder.path().join("link.prom")).expect("it can be made");
    fs::write(folder.path().join("binary.prom"), b"\xff\xfe\n").expect("it can be written");
    folder.write("forged\nfastproc: all is well\x1b[2J.prom", "secret:1");
    let metrics = server.scrape();
    wait_until("it says so", || server.stderr().contains("forged"));
    let said = server.stderr();
    assert!(
        said.contains(r"/forged\nfastproc: all is well\u{1b}[2J.prom: "),
        "{said}"
    );
    assert!(!said.contains("secret"), "{said}");
    assert_eq!(metrics.get(ERROR, &[]), Some(1.0));
    assert_eq!(metrics.get("node_left", &[]), Some(1.0));
    let files: Vec<&str> = metrics
        .series()
        .filter(|(name, ..)| *name == "node_textfile_mtime_seconds")
        .map(|(_, labels, _)| &*labels["file"])
        .collect();
    assert_eq!(files, [&*rest]);
}
