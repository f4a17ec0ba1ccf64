// clock.h: clocks to measure durations and processor time, and the time of day.
#ifndef RLHF_CORE_BASE_CLOCK_H
#define RLHF_CORE_BASE_CLOCK_H

#include <stdint.h>
#include <string.h>
#include <time.h>

// Monotonic seconds since an arbitrary point in time. [any]
static inline double rlhf__seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// Seconds of processor time that the threads of this process have used. [any]
static inline double rlhf__cpu_seconds(void) {
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + 1e-9 * (double)used.tv_nsec;
}

#define RLHF__UTC_BYTES 25

// Overwrite the `n` digits at `to` with the last `n` digits of `v`.
static inline void rlhf__utc_digits(char *to, int n, int64_t v) {
    for (; n > 0; v /= 10)
        to[--n] = (char)('0' + v % 10);
}

// Write the date of the day that is `days` after 1970-01-01. Source: H. Hinnant, "chrono-Compatible
// Low-Level Date Algorithms", civil_from_days. In that algorithm, years begin in March, so a leap
// day is the last day of its year.
static inline void rlhf__utc_date(char *out, int64_t days) {
    days += 719468;                                         // since 0000-03-01
    const int64_t era = days / 146097, day = days % 146097; // an era has 400 years
    const int64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    const int64_t of_year = day - (365 * year + year / 4 - year / 100);
    const int64_t month = (5 * of_year + 2) / 153; // 0 = March
    rlhf__utc_digits(out, 4, era * 400 + year + (month >= 10));
    rlhf__utc_digits(out + 5, 2, month < 10 ? month + 3 : month - 9);
    rlhf__utc_digits(out + 8, 2, of_year - (153 * month + 2) / 5 + 1);
}

// Write a point in time to `out`, in ISO 8601 and UTC: "2026-11-27T01:20:16.123Z". Unlike
// gmtime_r(), this function is async-signal-safe. [any]
static inline void rlhf__utc_of(const struct timespec *t, char out[RLHF__UTC_BYTES]) {
    const int64_t s = t->tv_sec > 0 ? (int64_t)t->tv_sec : 0;
    memcpy(out, "0000-00-00T00:00:00.000Z", RLHF__UTC_BYTES);
    rlhf__utc_date(out, s / 86400);
    rlhf__utc_digits(out + 11, 2, s / 3600 % 24);
    rlhf__utc_digits(out + 14, 2, s / 60 % 60);
    rlhf__utc_digits(out + 17, 2, s % 60);
    rlhf__utc_digits(out + 20, 3, t->tv_nsec / 1000000);
}

// Write the present time to `out` in this form. [any]
static inline void rlhf__utc(char out[RLHF__UTC_BYTES]) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    rlhf__utc_of(&now, out);
}

#endif
