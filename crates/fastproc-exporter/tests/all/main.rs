//! The exporter as a program. The tests of fastproc-cli run it behind `fastproc serve`.

mod serve;
