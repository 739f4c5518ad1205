//! The counters of the machine.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use fastproc::counters::{self, Want};
use pyo3::{prelude::*, types::PyDict};

use crate::errors::{self, Forked};

/// Reads `/proc/stat` and `/proc/vmstat`, from the kernel's memory if possible.
#[pyclass(frozen, module = "fastproc")]
pub struct Counters {
    inner: Mutex<counters::Counters>,
    /// The process that opened it.
    process: u32,
}

impl Counters {
    fn lock(&self) -> MutexGuard<'_, counters::Counters> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Counters {
    #[new]
    #[pyo3(signature = (*, bpf=true))]
    fn new(py: Python<'_>, bpf: bool) -> PyResult<Self> {
        let options = counters::Options::new().bpf(bpf);
        let counters = py
            .detach(|| options.open())
            .map_err(|error| errors::to_py_err(py, &error))?;
        Ok(Self {
            inner: Mutex::new(counters),
            process: std::process::id(),
        })
    }

    /// Why the values come from the kernel's text, if they do.
    #[getter]
    fn unavailable(&self) -> Option<String> {
        self.lock().unavailable().map(ToString::to_string)
    }

    /// Reads the counters. Counts by interrupt may be up to `irqs_latency` seconds old.
    fn collect<'py>(&self, py: Python<'py>, irqs_latency: f64) -> PyResult<Bound<'py, PyDict>> {
        if self.process != std::process::id() {
            return Err(Forked::new_err(fastproc::Error::Forked.to_string()));
        }
        let latency = Duration::try_from_secs_f64(irqs_latency)
            .map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))?;
        let collect = || {
            let mut counters = self.lock();
            counters.set_stat_irqs_latency(latency);
            counters.collect(Want::STAT | Want::VMSTAT).cloned()
        };
        let sample = py
            .detach(collect)
            .map_err(|error| errors::to_py_err(py, &error))?;
        let stat = &sample.stat;
        let all = PyDict::new(py);
        let times = |times: &fastproc::text::machine_stat::CpuTimes| times.ns.to_vec();
        all.set_item("monotonic_ns", sample.taken.as_nanos() as u64)?;
        all.set_item("cpu", times(&stat.total))?;
        let cpus: Vec<_> = stat
            .cpus
            .iter()
            .map(|cpu| (cpu.id, times(&cpu.times)))
            .collect();
        all.set_item("cpus", cpus)?;
        all.set_item("intr", stat.intr)?;
        all.set_item("irqs", &stat.irqs)?;
        all.set_item("ctxt", stat.ctxt)?;
        all.set_item("btime", stat.btime)?;
        all.set_item("processes", stat.processes)?;
        all.set_item("procs_running", stat.procs_running)?;
        all.set_item("procs_blocked", stat.procs_blocked)?;
        all.set_item("softirq", stat.softirq)?;
        all.set_item("softirqs", &stat.softirqs)?;
        let vmstat = PyDict::new(py);
        for (name, value) in sample.vmstat.iter() {
            vmstat.set_item(name, value)?;
        }
        all.set_item("vmstat", vmstat)?;
        Ok(all)
    }
}
