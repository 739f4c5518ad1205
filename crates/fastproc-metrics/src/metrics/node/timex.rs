//! How the kernel keeps the time: adjtimex(2), which changes nothing here.

use std::mem::MaybeUninit;

use crate::exposition::{Exposition, Family, Value};

const NONE: &[&str] = &[];

crate::metrics::families! {
    OFFSET = "node_timex_offset_seconds" Gauge NONE, "Offset of the clock to its reference. --collector.timex, as the next.";
    FREQUENCY = "node_timex_frequency_adjustment_ratio" Gauge NONE, "How much faster the clock is made to run.";
    MAX_ERROR = "node_timex_maxerror_seconds" Gauge NONE, "Greatest error of the clock.";
    ESTIMATED_ERROR = "node_timex_estimated_error_seconds" Gauge NONE, "Estimated error of the clock.";
    STATUS = "node_timex_status" Gauge NONE, "Bits of the clock's status.";
    CONSTANT = "node_timex_loop_time_constant" Gauge NONE, "Time constant of the phase-locked loop.";
    TICK = "node_timex_tick_seconds" Gauge NONE, "Time between ticks of the clock.";
    PPS_FREQUENCY = "node_timex_pps_frequency_hertz" Gauge NONE, "Frequency of the pulse that comes each second.";
    PPS_JITTER = "node_timex_pps_jitter_seconds" Gauge NONE, "Jitter of the pulse.";
    PPS_SHIFT = "node_timex_pps_shift_seconds" Gauge NONE, "Duration of an interval of the pulse.";
    PPS_STABILITY = "node_timex_pps_stability_hertz" Gauge NONE, "Average of the last changes of the pulse's frequency.";
    PPS_JITTERS = "node_timex_pps_jitter_total" Counter NONE, "Times that the jitter of the pulse was too great.";
    PPS_CALIBRATIONS = "node_timex_pps_calibration_total" Counter NONE, "Intervals of calibration.";
    PPS_ERRORS = "node_timex_pps_error_total" Counter NONE, "Errors of calibration.";
    PPS_UNSTABLE = "node_timex_pps_stability_exceeded_total" Counter NONE, "Times that the pulse was not stable enough.";
    TAI = "node_timex_tai_offset_seconds" Gauge NONE, "Offset to International Atomic Time.";
    SYNCED = "node_timex_sync_status" Gauge NONE, "1 if the clock is synchronized to a reliable server.";
}

/// Scaled parts per million, with 16 bits after the point.
const PPM_16: f64 = 1e6 * 65536.0;

/// Writes the metrics, if adjtimex(2) works; some sandboxes forbid it.
pub(super) fn write(text: &mut Exposition) {
    let mut memory = MaybeUninit::<libc::timex>::zeroed();
    // SAFETY: all-zero is a value of the struct, and with no mode set the call only fills it in.
    let (state, timex) = unsafe { (libc::adjtimex(memory.as_mut_ptr()), memory.assume_init()) };
    if state < 0 {
        return;
    }
    let unit = if timex.status & libc::STA_NANO == 0 {
        1e6
    } else {
        1e9
    };
    let synced = state != libc::TIME_ERROR;
    for (family, value) in [
        (OFFSET, timex.offset as f64 / unit),
        (FREQUENCY, 1.0 + timex.freq as f64 / PPM_16),
        (MAX_ERROR, timex.maxerror as f64 / 1e6),
        (ESTIMATED_ERROR, timex.esterror as f64 / 1e6),
        (STATUS, f64::from(timex.status)),
        (CONSTANT, timex.constant as f64),
        (TICK, timex.tick as f64 / 1e6),
        (PPS_FREQUENCY, timex.ppsfreq as f64 / PPM_16),
        (PPS_JITTER, timex.jitter as f64 / unit),
        (PPS_SHIFT, f64::from(timex.shift)),
        (PPS_STABILITY, timex.stabil as f64 / PPM_16),
        (PPS_JITTERS, timex.jitcnt as f64),
        (PPS_CALIBRATIONS, timex.calcnt as f64),
        (PPS_ERRORS, timex.errcnt as f64),
        (PPS_UNSTABLE, timex.stbcnt as f64),
        (TAI, f64::from(timex.tai)),
        (SYNCED, f64::from(u8::from(synced))),
    ] {
        text.one(&family, Value::Real(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exposition::Format;

    #[test]
    fn a_tick_is_a_hundredth_of_a_second() {
        let mut text = Exposition::new(Format::Prometheus, Vec::new());
        write(&mut text);
        let text = String::from_utf8(text.finish()).expect("a text");
        let mut lines = text.lines();
        // A sandbox may forbid adjtimex(2).
        if let Some(tick) = lines.find_map(|line| line.strip_prefix("node_timex_tick_seconds ")) {
            let tick: f64 = tick.parse().expect("a number");
            assert!((0.009..=0.011).contains(&tick), "{tick}");
        }
    }
}
