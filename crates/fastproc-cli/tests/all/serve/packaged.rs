//! The dashboards and the alert rules of the package.

use std::{
    collections::{BTreeSet, HashSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use fastproc_testbed::{gate, needs};
use serde_json::Value;

use crate::serve::folder::Folder;

const DASHBOARDS: [&str; 2] = ["fastproc-processes.json", "fastproc-machine.json"];
const RULES: &str = "prometheus/fastproc.rules.yml";

fn packaging() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging")
}

#[track_caller]
fn text(name: &str) -> String {
    fs::read_to_string(packaging().join(name)).expect("the file is read")
}

#[track_caller]
fn dashboard(name: &str) -> Value {
    serde_json::from_str(&text(&format!("grafana/{name}"))).expect("it is JSON")
}

fn items<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value[name].as_array().into_iter().flatten()
}

#[track_caller]
fn word<'a>(value: &'a Value, name: &str) -> &'a str {
    let word = value[name].as_str();
    word.unwrap_or_else(|| panic!("{name} is missing: {value}"))
}

/// The queries of all panels.
fn expressions(dashboard: &Value) -> Vec<&str> {
    items(dashboard, "panels")
        .flat_map(|panel| items(panel, "targets"))
        .map(|target| word(target, "expr"))
        .collect()
}

#[track_caller]
fn promtool(arguments: &[&str], file: &Path) {
    let output = Command::new("promtool")
        .args(arguments)
        .arg(file)
        .output()
        .expect("the program starts");
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn alerts_come_when_they_should_and_not_before() {
    needs!(gate::programs(&["promtool"]));
    promtool(&["check", "rules"], &packaging().join(RULES));
    let test = packaging().join("prometheus/fastproc.rules.test.yml");
    promtool(&["test", "rules"], &test);
}

/// Grafana replaces variables; after that each query is a rule.
#[test]
fn prometheus_understands_every_query_of_the_dashboards() {
    needs!(gate::programs(&["promtool"]));
    let folder = Folder::new();
    let mut rules = String::from("groups:\n- name: queries\n  rules:\n");
    for name in DASHBOARDS {
        for (at, expression) in expressions(&dashboard(name)).into_iter().enumerate() {
            let filled = expression
                .replace("$__rate_interval", "5m")
                .replace("$top", "10");
            let filled = Value::from(filled);
            let record = name.replace(['-', '.'], "_");
            let rule = format!("  - record: {record}:{at}\n    expr: {filled}\n");
            rules.push_str(&rule);
        }
    }
    let path = folder.write("queries.yml", &rules);
    promtool(&["check", "rules"], Path::new(&path));
}

/// Names of metrics in a text.
fn names(text: &str) -> BTreeSet<&str> {
    let starts = ["fastproc_", "namedprocess_", "node_", "process_"];
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| starts.iter().any(|start| word.starts_with(start)))
        .collect()
}

#[test]
fn every_metric_that_is_asked_for_is_told() {
    let page = fastproc_metrics::metrics::markdown();
    let scrape = packaging().join("../fixtures/golden/serve-all");
    let scrape = fs::read_to_string(scrape).expect("the golden scrape exists");
    // For names that come from the kernel the page has the prefixes.
    let told: HashSet<&str> = names(&page)
        .into_iter()
        .filter(|name| !name.ends_with('_'))
        .chain(names(&scrape))
        .collect();
    let rules = text(RULES);
    let expressions_of_rules = rules.lines().filter_map(|line| line.split_once("expr: "));
    let mut asked: Vec<String> = expressions_of_rules.map(|(_, text)| text.into()).collect();
    for name in DASHBOARDS {
        let dashboard = dashboard(name);
        asked.extend(expressions(&dashboard).into_iter().map(str::to_owned));
        let variables = items(&dashboard["templating"], "list");
        asked.extend(variables.map(|variable| variable["query"].to_string()));
    }
    assert!(asked.len() > 100);
    for text in &asked {
        for name in names(text) {
            assert!(told.contains(name), "nobody tells {name}: {text}");
        }
    }
}
