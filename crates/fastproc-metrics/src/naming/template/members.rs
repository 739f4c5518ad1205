//! What a template finds behind a dot: fields and methods of values.

use super::{
    time::{Time, month, weekday},
    value::Value,
};

/// `.name` of it, which may be a method with arguments.
pub(super) fn member(value: &Value, name: &str, arguments: &[Value]) -> Result<Value, String> {
    let plain = |value: Value| match arguments {
        [] => Ok(value),
        _ => Err(format!("{name} is no method, and has arguments")),
    };
    match value {
        Value::Data(data) => plain(match name {
            "Cgroups" => Value::List(data.cgroups.clone()),
            "Comm" => Value::Text(data.comm.clone()),
            "ExeBase" => Value::Text(data.exe_base.clone()),
            "ExeFull" => Value::Text(data.exe_full.clone()),
            "Username" => Value::Text(data.username.clone()),
            "PID" => Value::Int(data.pid),
            "StartTime" => Value::Time(data.start_time),
            "Matches" => Value::Map(data.matches.clone()),
            _ => match data.container.get(name) {
                Some(text) => Value::Text(text.clone()),
                None => return Err(format!("there is no field {name}")),
            },
        }),
        Value::Map(entries) => plain(
            entries
                .get(name)
                .map_or(Value::Nil, |text| Value::Text(text.clone())),
        ),
        Value::Time(time) => of_time(*time, name, arguments),
        Value::Named(_, shown) if name == "String" => plain(Value::Text((*shown).into())),
        other => Err(format!("a {} has no {name}", other.type_name())),
    }
}

/// The methods that make sense of one time alone.
fn of_time(moment: Time, name: &str, arguments: &[Value]) -> Result<Value, String> {
    let time = moment.calendar();
    let value = match (name, arguments) {
        ("Format", [Value::Text(layout)]) => Value::Text(moment.format(layout)),
        (_, [_, ..]) => return Err(format!("{name} takes other arguments")),
        ("Unix", _) => Value::Int((moment.unix_ns / 1_000_000_000) as i64),
        ("UnixMilli", _) => Value::Int((moment.unix_ns / 1_000_000) as i64),
        ("UnixMicro", _) => Value::Int((moment.unix_ns / 1_000) as i64),
        ("UnixNano", _) => Value::Int(moment.unix_ns as i64),
        ("Year", _) => Value::Int(time.year().into()),
        ("Month", _) => Value::Named(time.month().into(), month(&time)),
        ("Day", _) => Value::Int(time.day().into()),
        ("YearDay", _) => Value::Int(time.day_of_year().into()),
        ("Weekday", _) => Value::Named(
            time.weekday().to_sunday_zero_offset().into(),
            weekday(&time),
        ),
        ("Hour", _) => Value::Int(time.hour().into()),
        ("Minute", _) => Value::Int(time.minute().into()),
        ("Second", _) => Value::Int(time.second().into()),
        ("Nanosecond", _) => Value::Int(time.subsec_nanosecond().into()),
        ("String", _) => Value::Text(moment.to_string()),
        ("IsZero", _) => Value::Bool(false),
        ("UTC", _) => Value::Time(moment),
        _ => return Err(format!("{name} of a time is not supported")),
    };
    Ok(value)
}
