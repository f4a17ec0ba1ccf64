// cost.h: computes the cost of a phase on a number of ranks, from the figures of one machine and of
// the network. These are pure functions: they measure, read and print nothing.
// docs/planning-scale.md has the formulas.
#ifndef RLHF_TOOLS_SCALE_COST_H
#define RLHF_TOOLS_SCALE_COST_H

#include "scale/figures.h"

// How a run is divided among ranks.
struct rlhf__scale_layout {
    double ranks;
    double per_host; // ranks on each machine
    double rows;     // rows of a phase, over all ranks
};

// Why a run cannot have a layout.
enum rlhf__scale_refusal {
    RLHF__SCALE_FITS = 0,
    RLHF__SCALE_FEW_ROWS = 1, // fewer groups of rows than ranks
    RLHF__SCALE_SHARDS = 2    // the number of shards is not a multiple of the number of ranks
};

// The seconds of one phase, by part. The total is the sum of all parts but `hidden`, minus
// `hidden`.
struct rlhf__scale_cost {
    double draw, reward, passes, compute, tree, reduce, step, spread, gather, other, hidden;
    double total;
    double rows_per_s;
    double imbalance; // longest share of a minibatch divided by the mean share, minus 1
    double memory;    // bytes of a rank
    double sent;      // bytes that a rank sends in a phase
};

// Returns why the run cannot have this layout (enum rlhf__scale_refusal). [any]
int rlhf__scale_refuses(const struct rlhf__scale_figures *f, const struct rlhf__scale_layout *l);

// Returns the cost of a layout that rlhf__scale_refuses accepts. [any]
struct rlhf__scale_cost rlhf__scale_cost(const struct rlhf__scale_figures *f,
                                         const struct rlhf__scale_layout *l);

// Returns the efficiency of a layout: its rows per second, divided by those of the same machines
// (or devices) without exchanges. Without exchanges, each machine runs a separate process with
// `alone` rows in a phase. [any]
double rlhf__scale_efficiency(const struct rlhf__scale_figures *f,
                              const struct rlhf__scale_layout *l, double alone);

// Returns the smallest number of rows per phase at which these ranks have an efficiency of at least
// `wanted`, compared with one process that computes the same rows. Returns 0 if no number of rows
// is enough. Assumes minibatches of whole groups. [any]
double rlhf__scale_rows_for(const struct rlhf__scale_figures *f, double ranks, double per_host,
                            double wanted);

// Returns the number of ranks beyond which more ranks do not help, for phases of `rows` rows.
// Starts with the ranks of one machine (or one device), and doubles their number as long as this
// multiplies the rows per second by at least `gain`. Sets *few to 1 if the doubling ended because
// there are too few rows for more ranks. Returns 0 if doubling helps up to `most` ranks. [any]
double rlhf__scale_stops(const struct rlhf__scale_figures *f, double per_host, double rows,
                         double gain, double most, int *few);

// Returns the seconds at x. Between two points, interpolates linearly. Below the first point,
// returns the seconds of the first point. Above the last point, which is at X, extrapolates on a
// line through this point and an earlier one: the last point with x <= X / 4 or, if none exists,
// the first point. If there is only one point, the line goes through 0. [any]
double rlhf__scale_curve_at(const struct rlhf__scale_curve *c, double x);

#endif
