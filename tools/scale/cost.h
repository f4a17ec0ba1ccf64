// cost.h: what a phase costs on a number of ranks, from the figures of one machine and a network.
// Pure functions: nothing is measured, read or printed here. docs/planning-scale.md has the
// formulas.
#ifndef RLHF_TOOLS_SCALE_COST_H
#define RLHF_TOOLS_SCALE_COST_H

#include "scale/figures.h"

// How a run is spread.
struct rlhf__scale_layout {
    double ranks;
    double per_host; // ranks of a machine
    double rows;     // of a phase, in all ranks together
};

// Why a run cannot be spread so.
enum rlhf__scale_refusal {
    RLHF__SCALE_FITS = 0,
    RLHF__SCALE_FEW_ROWS = 1, // fewer groups of rows than ranks
    RLHF__SCALE_SHARDS = 2    // the ranks do not divide the shards
};

// Seconds of one phase by part; all parts but `hidden` add up, and `hidden` is subtracted.
struct rlhf__scale_cost {
    double draw, reward, passes, compute, tree, reduce, step, spread, gather, other, hidden;
    double total;
    double rows_per_s;
    double imbalance; // the longest share of a minibatch over the mean, less 1
    double memory;    // bytes of a rank
    double sent;      // bytes that a rank sends in a phase
};

// Returns why the run cannot be spread so. [any]
int rlhf__scale_refuses(const struct rlhf__scale_figures *f, const struct rlhf__scale_layout *l);

// The layout must not be refused. [any]
struct rlhf__scale_cost rlhf__scale_cost(const struct rlhf__scale_figures *f,
                                         const struct rlhf__scale_layout *l);

// Returns the rows a second, divided by those of as many machines (devices) as the ranks use, each
// with one process, a phase of `alone` rows and nothing to exchange. [any]
double rlhf__scale_efficiency(const struct rlhf__scale_figures *f,
                              const struct rlhf__scale_layout *l, double alone);

// Returns the fewest rows of a phase with which the efficiency of these ranks is at least `wanted`,
// compared with one process for the same rows; 0 if it is lower with any number of rows.
// Minibatches have whole groups. [any]
double rlhf__scale_rows_for(const struct rlhf__scale_figures *f, double ranks, double per_host,
                            double wanted);

// Where more ranks stop helping: the number of ranks, beginning with those of one machine, that can
// be doubled only for less than `gain` times the rows a second, with `rows` rows a phase. *few = 1
// if it cannot be doubled because there are too few rows. 0 if up to `most` ranks help. [any]
double rlhf__scale_stops(const struct rlhf__scale_figures *f, double per_host, double rows,
                         double gain, double most, int *few);

// Returns the seconds at x: between two points on the line between them, below the first point the
// first point's. Above the last point by the slope between it and the largest point of at most a
// quarter of its x, or the first. [any]
double rlhf__scale_curve_at(const struct rlhf__scale_curve *c, double x);

#endif
