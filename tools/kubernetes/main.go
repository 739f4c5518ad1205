// Reads objects of Kubernetes from standard input, as the API server would: a field that a type lacks, a duplicate field or a
// value of another type is an error. scripts/check-kubernetes calls it.
package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

var kinds = map[string]any{
	"apps/v1 DaemonSet":                       &apps.DaemonSet{},
	"monitoring.coreos.com/v1 ServiceMonitor": &monitoring.ServiceMonitor{},
	"v1 ConfigMap":                            &core.ConfigMap{},
	"v1 Namespace":                            &core.Namespace{},
	"v1 Service":                              &core.Service{},
}

func check(document []byte) (string, error) {
	var kind meta.TypeMeta
	if err := yaml.Unmarshal(document, &kind); err != nil {
		return "a document", err
	}
	name := kind.APIVersion + " " + kind.Kind
	object, known := kinds[name]
	if !known {
		return name, fmt.Errorf("this kind is not expected; add it to tools/kubernetes/main.go")
	}
	return name, yaml.UnmarshalStrict(document, object)
}

func main() {
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	objects, failed := 0, false
	for _, document := range regexp.MustCompile(`(?m)^---\s*$`).Split(string(input), -1) {
		if strings.TrimSpace(regexp.MustCompile(`(?m)^#.*$`).ReplaceAllString(document, "")) == "" {
			continue
		}
		objects++
		if name, err := check([]byte(document)); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
			failed = true
		}
	}
	if failed || objects == 0 {
		os.Exit(1)
	}
	fmt.Printf("%d objects are right\n", objects)
}
