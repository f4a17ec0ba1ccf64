// figures.c: see figures.h.
#include "runs/figures.h"

#include <math.h>
#include <time.h>

void rlhf__put_bytes(struct rlhf__buf *out, int64_t bytes) {
    static const char units[] = "KMGTP";
    double v = (double)bytes;
    int i = -1;
    for (; v >= 1023.5 && i + 1 < (int)sizeof units - 1; i++)
        v /= 1024;
    if (i < 0)
        rlhf__buf_printf(out, "%lld", (long long)bytes);
    else
        rlhf__buf_printf(out, v < 9.95 ? "%.1f %c" : "%.0f %c", v, units[i]);
}

void rlhf__put_duration(struct rlhf__buf *out, double seconds) {
    if (!(seconds >= 0) || seconds > 1e11) return;
    const long long s = llround(seconds), days = s / 86400, hours = s / 3600 % 24;
    const int minutes = (int)(s / 60 % 60);
    if (days)
        rlhf__buf_printf(out, "%lld d %lld:%02d", days, hours, minutes);
    else if (hours)
        rlhf__buf_printf(out, "%lld:%02d:%02d", hours, minutes, (int)(s % 60));
    else
        rlhf__buf_printf(out, "%d:%02d", minutes, (int)(s % 60));
}

void rlhf__put_when(struct rlhf__buf *out, double when, double now) {
    struct tm at, today;
    char text[64];
    if (!(when > 0) || when > 1e11 || !(now > 0)) return;
    const time_t a = (time_t)when, b = (time_t)now;
    if (!localtime_r(&a, &at) || !localtime_r(&b, &today)) return;
    const int this_year = at.tm_year == today.tm_year;
    const char *form = this_year && at.tm_yday == today.tm_yday ? "today %H:%M"
                       : this_year                              ? "%e %b"
                                                                : "%e %b %Y";
    const size_t n = strftime(text, sizeof text, form, &at);
    rlhf__buf_puts(out, n > 0 && *text == ' ' ? text + 1 : text);
}
