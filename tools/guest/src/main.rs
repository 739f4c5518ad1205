//! PID 1 of an emulated machine: mounts the usual file systems, runs the scenarios that the kernel's command line
//! names, reports each of them on the second serial port, and ends the emulator.
//!
//! Other output goes to the console, the first serial port. On an error this program returns, which causes a kernel
//! panic; the driver outside shows it with the console's last lines.

mod apparmor;
mod cadvisor;
mod cgroup_cost;
mod cgroup_dying;
mod cgroup_flush;
mod cgroup_metrics;
mod cgroup_rare;
mod cgroup_scale;
mod cgroup_storm;
mod cgroups;
mod cpus;
mod enter;
mod exit_port;
mod exits;
mod hidden;
mod json;
mod look;
mod memory;
mod mounts;
mod proofs;
mod reporter;
mod service;
mod size;
mod storm;
mod survey;
mod swapping;
mod testbed;
mod walk_storm;

use std::{convert::Infallible, fs, io, process::ExitCode};

use fastproc_guest::scenario::{PARAMETER, Scenario};

use crate::{exit_port::ExitPort, reporter::Reporter, testbed::Testbed};

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    if let Some((enter, rest)) = arguments.split_first()
        && enter == "enter"
    {
        let error = enter::enter(rest);
        eprintln!("init: {error}");
        return ExitCode::from(125);
    }
    if let Some((word, rest)) = arguments.split_first()
        && word == cgroups::MEMBER
    {
        return cgroups::be_member(rest);
    }
    if let Some((word, rest)) = arguments.split_first()
        && word == cgroup_storm::CHURN
    {
        return cgroup_storm::churn(rest);
    }
    if arguments.first().is_some_and(|word| word == storm::COMPARE) {
        return storm::compare();
    }
    if arguments
        .first()
        .is_some_and(|word| word == swapping::SLEEPER)
    {
        return swapping::sleep();
    }
    if let Some((word, rest)) = arguments.split_first()
        && word == "look"
    {
        let source = rest.first().and_then(|source| source.to_str());
        return look::main(source.unwrap_or_default());
    }
    if std::process::id() != 1 {
        eprintln!(
            "this is PID 1 of an emulated machine that fastproc is tested on; here there is nothing for it to do"
        );
        return ExitCode::from(2);
    }
    match first_process() {
        Ok(never) => match never {},
        Err(error) => {
            eprintln!("the guest cannot go on: {error}");
            ExitCode::FAILURE
        }
    }
}

fn first_process() -> io::Result<Infallible> {
    // Do nothing else before it is certain that this is one of our emulated machines.
    mounts::mount("proc", "/proc")?;
    let line = fs::read_to_string("/proc/cmdline")?;
    let scenarios = Scenario::from_kernel_command_line(&line).ok_or_else(|| {
        io::Error::other(format!("no scenarios are named by {PARAMETER}= in: {line}"))
    })?;
    let exit_port = ExitPort::open()?;
    mounts::mount_all()?;
    let mut passed = true;
    for scenario in scenarios {
        let mut reporter = Reporter::begin(scenario)?;
        run(scenario, &mut reporter)?;
        passed &= reporter.end()?;
    }
    exit_port.leave(passed)
}

fn run(scenario: Scenario, reporter: &mut Reporter) -> io::Result<()> {
    match scenario {
        Scenario::Survey => survey::survey(reporter)?,
        Scenario::Glance => {
            proofs::doctor(reporter)?;
            let testbed = Testbed::open()?;
            proofs::chosen_source_once(reporter)?;
            testbed.close(reporter)?;
        }
        Scenario::Conformance => {
            // Before some of the test processes keep a CPU busy.
            proofs::doctor(reporter)?;
            proofs::doctor_as_others(reporter)?;
            let testbed = Testbed::open()?;
            proofs::verify_every_source(reporter)?;
            proofs::verify_as_others(reporter)?;
            testbed.close(reporter)?;
        }
        Scenario::KptrRestrict => {
            let shown = hidden::hide_addresses(reporter)?;
            proofs::every_source(reporter)?;
            hidden::show_addresses(&shown)?;
        }
        Scenario::Lockdown => {
            hidden::lock_down(reporter)?;
            proofs::every_source(reporter)?;
            proofs::chosen_source(reporter)?;
        }
        Scenario::Hotplug => {
            proofs::doctor(reporter)?;
            let shaking = cpus::Shaking::start()?;
            proofs::every_source_at_length(reporter)?;
            shaking.stop(reporter)?;
            cpus::come_and_go_unseen(reporter)?;
        }
        Scenario::Cgroups => {
            let members = cgroups::build_and_stop()?;
            cgroups::compare(reporter)?;
            cgroup_rare::compare(reporter)?;
            cgroup_metrics::compare(reporter, "procfs")?;
            if cgroups::has_bpf() {
                cgroup_metrics::compare(reporter, "auto")?;
            }
            cgroups::end(members)?;
        }
        Scenario::Memory => {
            memory::use_all_kinds(reporter)?;
            let swapping = swapping::Swapping::start()?;
            proofs::every_source(reporter)?;
            swapping.stop(reporter)?;
        }
        Scenario::HidePid => {
            hidden::hide_processes()?;
            proofs::every_source(reporter)?;
            proofs::doctor_as_others(reporter)?;
            proofs::verify_as_others(reporter)?;
            hidden::show_processes()?;
        }
        Scenario::Namespaces => proofs::in_namespaces(reporter)?,
        Scenario::NamespaceStorms => {
            proofs::doctor_in_pid_namespace(reporter)?;
            storm::in_namespaces(reporter)?;
        }
        Scenario::Service => {
            let service = service::Service::start(&[])?;
            let testbed = Testbed::open()?;
            proofs::with_a_service(reporter)?;
            testbed.close(reporter)?;
            service.stop(reporter)?;
        }
        Scenario::AppArmor => {
            apparmor::load(reporter)?;
            let service = service::Service::start(&enter::Place::Service.enter())?;
            apparmor::look(reporter)?;
            service.stop(reporter)?;
        }
        Scenario::Exits => exits::record(reporter)?,
        Scenario::Cost => proofs::cost(reporter)?,
        Scenario::InterruptsCost => proofs::interrupts_cost(reporter)?,
        Scenario::NamespaceCost => proofs::namespace_cost(reporter)?,
        Scenario::CgroupCost => {
            cgroups::enable_controllers()?;
            cgroup_cost::measure(reporter, &cgroup_cost::SMALL)?;
        }
        Scenario::CgroupCostBig => {
            cgroups::enable_controllers()?;
            cgroup_cost::measure(reporter, &cgroup_cost::BIG)?;
        }
        Scenario::CgroupFlush => {
            cgroups::enable_controllers()?;
            cgroup_flush::measure(reporter)?;
        }
        Scenario::Cadvisor => {
            let members = cgroups::build_and_stop()?;
            cadvisor::compare(reporter, "/tree/")?;
            cgroups::end(members)?;
        }
        Scenario::CadvisorCost => {
            cgroups::enable_controllers()?;
            cadvisor::cost(reporter)?;
        }
        Scenario::CgroupStorms => cgroup_storm::compare(reporter, cgroup_storm::MANY)?,
        Scenario::CgroupScale => cgroup_scale::check(reporter, cgroup_scale::SIZES)?,
        Scenario::CgroupScaleBig => {
            cgroup_scale::check(reporter, cgroup_scale::SIZES_OF_MANY_CPUS)?;
        }
        Scenario::Storms32 => walk_storm::compare(reporter, 32)?,
        Scenario::Storms255 => walk_storm::compare(reporter, 255)?,
        Scenario::CgroupDying => cgroup_dying::check(reporter)?,
        Scenario::Big => {
            size::use_every_queue()?;
            size::check(reporter, 64, 400, 300)?;
            proofs::first_source(reporter)?;
        }
        Scenario::Interrupts => {
            size::check(reporter, 2, 2000, 1)?;
            proofs::first_source(reporter)?;
        }
    }
    Ok(())
}
