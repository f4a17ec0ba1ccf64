// series.h: a series of measurements of the same work, and their shortest and median time.
#ifndef RLHF_BENCH_SERIES_H
#define RLHF_BENCH_SERIES_H

enum { SERIES_MOST = 1024 };

struct series {
    int n;
    double at[SERIES_MOST];
};

void series_add(struct series *s, double seconds); // keeps only the first SERIES_MOST times
double series_least(const struct series *s);
double series_median(const struct series *s);

#endif
