// Program cadvisor serves the metrics of cAdvisor's own packages, as its command does, whose module is not in the module proxy.
// The guests of tools/kernels compare them with those of fastproc.
//
//	cadvisor ADDRESS      the metrics that the command serves by default
//	cadvisor ADDRESS all  all that these guests can have
package main

import (
	"log"
	"net/http"
	"os"
	"time"

	"github.com/google/cadvisor/cache/memory"
	"github.com/google/cadvisor/container"
	v2 "github.com/google/cadvisor/info/v2"
	"github.com/google/cadvisor/manager"
	"github.com/google/cadvisor/metrics"
	"github.com/google/cadvisor/utils/sysfs"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/utils/clock"
)

func main() {
	if len(os.Args) < 2 {
		log.Fatal("usage: cadvisor ADDRESS [all]")
	}
	// Each scrape reads again, so that values can be compared with those of files before and after.
	interval, isDynamic := time.Hour, false
	housekeeping := manager.HousekeepingConfig{Interval: &interval, AllowDynamic: &isDynamic}
	left := []container.MetricKind{
		container.PerfMetrics,
		container.ReferencedMemoryMetrics,
		container.ResctrlMetrics,
		container.NetworkTcpUsageMetrics,
		container.NetworkAdvancedTcpUsageMetrics,
		container.NetworkUdpUsageMetrics,
		container.CpuLoadMetrics,
	}
	if len(os.Args) == 2 {
		left = append(left, container.MemoryNumaMetrics, container.ProcessMetrics, container.ProcessSchedulerMetrics,
			container.HugetlbUsageMetrics, container.CPUTopologyMetrics, container.CPUSetMetrics)
	}
	excluded := container.MetricSet{}
	for _, kind := range left {
		excluded[kind] = struct{}{}
	}
	included := container.AllMetrics.Difference(excluded)
	everyPath := []string{""}
	cache := memory.New(2*time.Minute, nil)
	containers, err := manager.New(cache, sysfs.NewRealSysFs(), housekeeping, included, http.DefaultClient, everyPath, nil, "", 0)
	if err != nil {
		log.Fatal(err)
	}
	if err := containers.Start(); err != nil {
		log.Fatal(err)
	}
	fresh := time.Duration(0)
	options := v2.RequestOptions{IdType: v2.TypeName, Count: 1, Recursive: true, MaxAge: &fresh}
	collector := metrics.NewPrometheusCollector(containers, nil, included, clock.RealClock{}, options)
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector)
	http.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	log.Fatal(http.ListenAndServe(os.Args[1], nil))
}
