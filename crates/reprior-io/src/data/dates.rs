//! Dates in cells, with or without a time of day, and as numbers.
//!
//! Understood are `2024-01-31`, `2024/01/31`, `31.01.2024`, `31/01/2024`, `01/31/2024` (and with `-`), each with an optional `T14:30`, ` 14:30:05.5` or ` 2:30 PM`.
//! A zone at the end (`Z`, `+01:00`) is read and left out of account: times are those of the clock. The calendar is the Gregorian one.

use std::f64::consts::TAU;

use serde::{Deserialize, Serialize};

/// In what order a date has its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DateForm {
    /// `2024-01-31`.
    YearFirst,
    /// `31.01.2024`.
    DayFirst,
    /// `01/31/2024`.
    MonthFirst,
}

impl DateForm {
    /// All of them.
    pub(super) const ALL: [Self; 3] = [Self::YearFirst, Self::DayFirst, Self::MonthFirst];

    /// An example.
    pub(super) fn example(self) -> &'static str {
        match self {
            Self::YearFirst => "2024-01-31",
            Self::DayFirst => "31.01.2024",
            Self::MonthFirst => "01/31/2024",
        }
    }
}

/// A date, perhaps with a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Moment {
    /// Days since 1970-01-01, the time of day as their fraction.
    pub days: f64,
    /// Whether a time was given.
    pub has_time: bool,
}

/// The moment in a cell; none in what is no date of this form.
pub(super) fn parse(cell: &str, form: DateForm) -> Option<Moment> {
    let (date, time) = match cell.split_once(['T', ' ']) {
        Some((date, time)) => (date, Some(time.trim())),
        None => (cell, None),
    };
    let days = day(date, form)? as f64;
    match time {
        None => Some(Moment {
            days,
            has_time: false,
        }),
        Some(time) => Some(Moment {
            days: days + fraction(time)?,
            has_time: true,
        }),
    }
}

/// Days since 1970-01-01 of a date.
fn day(date: &str, form: DateForm) -> Option<i64> {
    let separator = date.chars().find(|c| !c.is_ascii_digit())?;
    let parts: Vec<&str> = date.split(separator).collect();
    let &[first, second, third] = parts.as_slice() else {
        return None;
    };
    let (year, month, day) = match (form, separator) {
        (DateForm::YearFirst, '-' | '/') => (first, second, third),
        (DateForm::DayFirst, '.' | '/' | '-') => (third, second, first),
        (DateForm::MonthFirst, '/' | '-') => (third, first, second),
        _ => return None,
    };
    if year.len() != 4 || ![month, day].iter().all(|part| matches!(part.len(), 1 | 2)) {
        return None;
    }
    let (year, month, day): (i64, i64, i64) = (whole(year)?, whole(month)?, whole(day)?);
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    (year >= 1 && (1..=length).contains(&day)).then(|| days_from_civil(year, month, day))
}

/// Digits as a number; a sign is none.
fn whole(digits: &str) -> Option<i64> {
    let is_whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_whole.then(|| digits.parse().ok()).flatten()
}

/// Days since 1970-01-01 of a day of the Gregorian calendar: years are counted from March, so that a leap day is their last.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    year.div_euclid(400) * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The part of a day that has gone by.
fn fraction(time: &str) -> Option<f64> {
    let upper = time.to_ascii_uppercase();
    let (clock, afternoon) = match (upper.strip_suffix("AM"), upper.strip_suffix("PM")) {
        (Some(clock), _) => (clock.trim(), Some(false)),
        (_, Some(clock)) => (clock.trim(), Some(true)),
        _ => (without_zone(&upper), None),
    };
    let parts: Vec<&str> = clock.split(':').collect();
    let (hours, minutes, seconds) = match *parts.as_slice() {
        [hours, minutes] => (hours, minutes, 0.0),
        [hours, minutes, seconds] => {
            let (all, rest) = seconds.split_once('.').unwrap_or((seconds, "0"));
            whole(all)?;
            whole(rest)?;
            (hours, minutes, seconds.parse().ok()?)
        }
        _ => return None,
    };
    let (mut hours, minutes) = (whole(hours)?, whole(minutes)?);
    if let Some(is_afternoon) = afternoon {
        if !(1..=12).contains(&hours) {
            return None;
        }
        hours = hours % 12 + if is_afternoon { 12 } else { 0 };
    }
    let is_time = hours < 24 && minutes < 60 && (0.0..61.0).contains(&seconds);
    is_time.then(|| (hours as f64 * 3600.0 + minutes as f64 * 60.0 + seconds) / 86_400.0)
}

/// A time without `Z`, `+01:00` or `-0500` at its end.
fn without_zone(time: &str) -> &str {
    match time.find(['Z', '+', '-']) {
        Some(at) => time[..at].trim(),
        None => time,
    }
}

/// Sine and cosine of the time of the year, whose length is taken as 365.2425 days.
pub(super) fn season(days: f64) -> [f64; 2] {
    around(days / 365.242_5)
}

/// Sine and cosine of the time of the day.
pub(super) fn hour(days: f64) -> [f64; 2] {
    around(days)
}

fn around(turns: f64) -> [f64; 2] {
    let angle = TAU * turns.rem_euclid(1.0);
    [libm::sin(angle), libm::cos(angle)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn days(cell: &str, form: DateForm) -> Option<f64> {
        parse(cell, form).map(|moment| moment.days)
    }

    #[test]
    fn dates_are_days_since_1970() {
        use DateForm::{DayFirst, MonthFirst, YearFirst};
        for (cell, form, expected) in [
            ("1970-01-01", YearFirst, Some(0.0)),
            ("2024-01-31", YearFirst, Some(19_753.0)),
            ("2024/1/31", YearFirst, Some(19_753.0)),
            ("31.01.2024", DayFirst, Some(19_753.0)),
            ("31.1.2024", DayFirst, Some(19_753.0)),
            ("01/31/2024", MonthFirst, Some(19_753.0)),
            ("31/01/2024", MonthFirst, None),
            ("31.01.2024", MonthFirst, None),
            ("2024-02-29", YearFirst, Some(19_782.0)),
            ("2023-02-29", YearFirst, None),
            ("1969-12-31", YearFirst, Some(-1.0)),
            ("1600-03-01", YearFirst, Some(-135_080.0)),
            ("2024-13-01", YearFirst, None),
            ("2024-00-01", YearFirst, None),
            ("24-01-31", YearFirst, None),
            ("2024-01", YearFirst, None),
            ("2024--1-31", YearFirst, None),
            ("", YearFirst, None),
            ("9999999999999999999-01-01", YearFirst, None),
        ] {
            assert_eq!(days(cell, form), expected, "{cell}");
        }
    }

    #[test]
    fn times_are_fractions_of_a_day() {
        for (time, expected) in [
            ("12:00", Some(0.5)),
            ("06:00:00.000", Some(0.25)),
            ("18:00Z", Some(0.75)),
            ("18:00+01:00", Some(0.75)),
            ("6:00 PM", Some(0.75)),
            ("12:00 am", Some(0.0)),
            ("13:00 PM", None),
            ("24:00", None),
            ("12", None),
            ("12:60", None),
            ("", None),
        ] {
            assert_eq!(fraction(time), expected, "{time}");
        }
        let moment = parse("2024-01-31T12:00", DateForm::YearFirst).unwrap();
        assert_eq!((moment.days, moment.has_time), (19_753.5, true));
        let [sine, cosine] = hour(moment.days);
        assert!(sine.abs() < 1e-9 && (cosine + 1.0).abs() < 1e-9);
    }
}
