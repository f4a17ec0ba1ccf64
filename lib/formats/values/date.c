// date.c: see date.h.
#include "values/date.h"

#include "base/printable.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

// Reads a date and adds the day of the week and of the year. Returns 0 if the text is not a date.
static int read_date(const char *text, struct tm *day) {
    int year, month, of_month, end = 0;
    *day = (struct tm){0};
    if (strlen(text) != 10 || strspn(text, "0123456789-") != 10 ||
        sscanf(text, "%4d-%2d-%2d%n", &year, &month, &of_month, &end) != 3 || end != 10 || year < 1)
        return 0;
    day->tm_year = year - 1900;
    day->tm_mon = month - 1;
    day->tm_mday = of_month;
    const time_t at = timegm(day); // a day beyond the end of the month moves into the next month
    return gmtime_r(&at, day) && day->tm_mon == month - 1 && day->tm_mday == of_month;
}

rlhf_status rlhf__date_check(const char *text, struct rlhf__error *err) {
    struct tm day;
    char shown[80];
    if (read_date(text, &day)) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID, "'%s' is not a date; expected one as 2026-11-28",
                      rlhf__printable(text, shown, sizeof shown));
}

int rlhf__date_put(const char *date, rlhf_str format, struct rlhf__buf *out) {
    static const char plain[] = "aAbBCdDeFgGhHIjmMnpPrRStTuUVwWxXyY%", empty[] = "zZ";
    struct tm day;
    if (!read_date(date, &day)) return 0;
    for (uint64_t i = 0; i < format.len; i++) {
        char one[4] = "%", text[64];
        size_t n = 1;
        if (format.ptr[i] != '%' || i + 1 == format.len) {
            rlhf__buf_putc(out, format.ptr[i]);
            continue;
        }
        if (format.ptr[i + 1] == '-' && i + 2 < format.len) one[n++] = format.ptr[++i];
        const char directive = one[n] = format.ptr[++i];
        if (directive && strchr(empty, directive))
            continue; // Python writes an empty text for the time zone of a date
        if (!directive || !strchr(plain, directive)) return 0;
        rlhf__buf_put(out, text, strftime(text, sizeof text, one, &day));
    }
    return 1;
}
