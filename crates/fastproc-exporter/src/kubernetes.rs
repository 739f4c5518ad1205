//! Checks that the manifest and the chart in packaging/kubernetes agree with each other, with the exporter and with
//! their page.

use saphyr::{LoadableYamlNode, Yaml};

use crate::naming;

const MANIFEST: &str = include_str!("../../../packaging/kubernetes/daemonset.yaml");
const CONTAINERFILE: &str = include_str!("../../../packaging/kubernetes/Containerfile");
const CHART: &str = include_str!("../../../packaging/kubernetes/chart/Chart.yaml");
const VALUES: &str = include_str!("../../../packaging/kubernetes/chart/values.yaml");
const TEMPLATE: &str = include_str!("../../../packaging/kubernetes/chart/templates/daemonset.yaml");
const PAGE: &str = include_str!("../../../docs/kubernetes.md");

const CAPABILITIES: [&str; 4] = ["BPF", "PERFMON", "SYS_PTRACE", "DAC_READ_SEARCH"];

fn documents(text: &str) -> Vec<Yaml<'_>> {
    Yaml::load_from_str(text).expect("it is YAML")
}

fn text<'y>(node: &'y Yaml<'y>) -> &'y str {
    node.as_str().expect("a string")
}

fn texts<'y>(node: &'y Yaml<'y>) -> Vec<&'y str> {
    let list = node.as_vec().expect("a list");
    list.iter().map(text).collect()
}

#[test]
fn the_manifest_has_what_is_needed_and_no_more() {
    let documents = documents(MANIFEST);
    let kinds: Vec<&str> = documents.iter().map(|one| text(&one["kind"])).collect();
    assert_eq!(kinds, ["Namespace", "ConfigMap", "DaemonSet", "Service"]);
    let selector = &documents[2]["spec"]["selector"]["matchLabels"];
    let pod = &documents[2]["spec"]["template"];
    assert_eq!(&pod["metadata"]["labels"], selector);
    assert_eq!(&documents[3]["spec"]["selector"], selector);
    let spec = &pod["spec"];
    assert_eq!(spec["hostPID"].as_bool(), Some(true));
    assert_eq!(spec["automountServiceAccountToken"].as_bool(), Some(false));
    let container = &spec["containers"][0];
    let context = &container["securityContext"];
    assert_eq!(context["runAsUser"].as_integer(), Some(0));
    assert_eq!(context["readOnlyRootFilesystem"].as_bool(), Some(true));
    assert_eq!(context["allowPrivilegeEscalation"].as_bool(), Some(false));
    assert_eq!(texts(&context["capabilities"]["drop"]), ["ALL"]);
    assert_eq!(texts(&context["capabilities"]["add"]), CAPABILITIES);
    for (probe, path) in [
        ("livenessProbe", "/-/healthy"),
        ("readinessProbe", "/-/ready"),
    ] {
        assert_eq!(text(&container[probe]["httpGet"]["path"]), path);
    }
    let image = format!("fastproc:{}", env!("CARGO_PKG_VERSION"));
    assert_eq!(text(&container["image"]), image);
    assert!(CONTAINERFILE.contains(&image));
}

#[test]
fn the_chart_is_the_manifest_with_values() {
    let (manifest, chart, values) = (documents(MANIFEST), documents(CHART), documents(VALUES));
    for member in ["version", "appVersion"] {
        assert_eq!(text(&chart[0][member]), env!("CARGO_PKG_VERSION"));
    }
    let rules = text(&manifest[1]["data"]["groups.yml"]);
    assert_eq!(text(&values[0]["config"]), rules);
    let container = &manifest[2]["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(values[0]["resources"], container["resources"]);
    assert!(TEMPLATE.contains(&format!("add: [{}]", CAPABILITIES.join(", "))));
    for argument in texts(&container["args"]) {
        let flag = argument.split('=').next().unwrap_or_default();
        assert!(TEMPLATE.contains(flag), "{flag}");
    }
    for line in [
        "runAsUser: 0",
        "readOnlyRootFilesystem: true",
        "drop: [ALL]",
    ] {
        assert!(TEMPLATE.contains(line), "{line}");
    }
}

#[test]
fn the_rules_are_right_and_the_page_has_each_capability_and_value() {
    let manifest = documents(MANIFEST);
    let rules = naming::parse(text(&manifest[1]["data"]["groups.yml"])).expect("rules");
    assert_eq!(rules.warnings, [""; 0]);
    for capability in CAPABILITIES {
        assert!(PAGE.contains(&format!("`{capability}`")), "{capability}");
    }
    for (name, _) in documents(VALUES)[0].as_mapping().expect("values") {
        assert!(
            PAGE.contains(&format!("`{}`", text(name))),
            "{}",
            text(name)
        );
    }
}
