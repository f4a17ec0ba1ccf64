// cost.c: see cost.h.
#include "scale/cost.h"

#include <math.h>

#include "team/blocks.h"
#include "team/tree.h"

// Bytes of memory traffic per parameter for each shard of a rank after the first, measured with
// four shards of the default model in one process of two threads.
#define TREE    12.0
#define STAGING (16.0 * 1024 * 1024) // bytes that a rank uses for the blocks of other ranks

double rlhf__scale_curve_at(const struct rlhf__scale_curve *c, double x) {
    if (c->n == 0) return 0;
    const struct rlhf__scale_point *p = c->at, *last = &p[c->n - 1];
    if (x <= p[0].x) return p[0].seconds;
    if (c->n == 1) return p[0].seconds * x / p[0].x;
    uint32_t i = 1;
    if (x > last->x) { // extrapolating from the last two points would double their error
        while (i + 1 < c->n && p[i].x <= last->x / 4)
            i++;
        return last->seconds +
               (last->seconds - p[i - 1].seconds) / (last->x - p[i - 1].x) * (x - last->x);
    }
    while (p[i].x < x)
        i++;
    const double slope = (p[i].seconds - p[i - 1].seconds) / (p[i].x - p[i - 1].x);
    return p[i - 1].seconds + slope * (x - p[i - 1].x);
}

static double shards_of(const struct rlhf__scale_plan *p, double ranks) {
    return p->shards > 0 ? p->shards : ranks;
}

// Each rank first adds up the sums of its own shards, as far as the tree of sums allows
// (team/tree.h). Returns the largest number of sums that a rank then has.
static uint32_t most_nodes(uint32_t shards, uint32_t ranks) {
    const uint32_t each = shards / ranks;
    uint32_t most = 1;
    for (uint32_t r = 0; r < ranks; r++) {
        const uint32_t n = rlhf__tree_of(shards, r * each, (r + 1) * each).n;
        most = n > most ? n : most;
    }
    return most;
}

// Returns the largest number of buffers for sums that a rank needs in addition to its gradients.
static uint32_t most_asides(uint32_t shards, uint32_t ranks) {
    const uint32_t each = shards / ranks;
    uint32_t most = 0;
    for (uint32_t r = 0; r < ranks; r++) {
        const uint32_t n = rlhf__tree_asides(shards, r * each, (r + 1) * each);
        most = n > most ? n : most;
    }
    return most;
}

int rlhf__scale_refuses(const struct rlhf__scale_figures *f, const struct rlhf__scale_layout *l) {
    const struct rlhf__scale_plan *p = &f->plan;
    if (fmod(shards_of(p, l->ranks), l->ranks) != 0) return RLHF__SCALE_SHARDS;
    return l->rows / p->group < l->ranks ? RLHF__SCALE_FEW_ROWS : RLHF__SCALE_FITS;
}

// ---- the shards of a minibatch ----

// Returns the number of tokens of `rows` rows, beginning with row `first`. After the last measured
// row, the first one follows.
static double length_of(const struct rlhf__scale_machine *m, uint32_t first, uint32_t rows) {
    double sum = 0;
    for (uint32_t i = 0; i < rows; i++)
        sum += m->length[(first + i) % m->n_lengths];
    return sum;
}

static double mean_length(const struct rlhf__scale_machine *m) {
    return length_of(m, 0, m->n_lengths) / m->n_lengths;
}

// The part of a minibatch that the slowest rank computes.
struct share {
    double seconds, tokens, mean;
};

// The rank that is being filled, and the slowest so far.
struct filling {
    const struct rlhf__scale_machine *machine;
    double shard_tokens;
    struct share rank, slowest;
};

static void end_shard(struct filling *x) {
    if (x->shard_tokens > 0)
        x->rank.seconds += rlhf__scale_curve_at(&x->machine->learn, x->shard_tokens);
    x->rank.tokens += x->shard_tokens;
    x->shard_tokens = 0;
}

static void end_rank(struct filling *x) {
    if (x->rank.seconds > x->slowest.seconds) x->slowest = x->rank;
    x->rank = (struct share){0};
}

// Cut a minibatch, which begins with row `first` and has `rows` rows, into shards, in the order of
// the rows. Return the seconds and tokens of the slowest rank, and the mean tokens of a rank. A
// unit, which is a row or a group, belongs to the shard in which its middle token lies.
static struct share slowest(const struct rlhf__scale_figures *f, uint32_t first, uint32_t rows,
                            double ranks) {
    const struct rlhf__scale_plan *p = &f->plan;
    const double shards = shards_of(p, ranks), each = shards / ranks;
    const int whole = p->whole > 1 || (p->whole > 0 && rows / p->group >= shards);
    const uint32_t unit = whole ? (uint32_t)p->group : 1;
    const double total = length_of(&f->machine, first, rows);
    double before = 0, shard = 0;
    struct filling x = {.machine = &f->machine};
    for (uint32_t i = 0; i < rows; i += unit) {
        const double n = length_of(&f->machine, first + i, i + unit > rows ? rows - i : unit);
        const double at = floor(shards * (before + n / 2) / total);
        if (at > shard) end_shard(&x);
        if (floor(at / each) > floor(shard / each)) end_rank(&x);
        shard = at;
        x.shard_tokens += n;
        before += n;
    }
    end_shard(&x);
    end_rank(&x);
    x.slowest.mean = total / ranks;
    return x.slowest;
}

enum { CUT_ROWS = 65536 }; // more rows are not cut one by one

// Estimates the same figures for minibatches of more than CUT_ROWS rows. Assumes that the slowest
// shard has half a row more than the mean.
static struct share slowest_of_many(const struct rlhf__scale_figures *f, double rows,
                                    double ranks) {
    const double each = shards_of(&f->plan, ranks) / ranks, row = mean_length(&f->machine);
    const double mean = rows * row / ranks, shard = mean / each + row / 2;
    return (struct share){each * rlhf__scale_curve_at(&f->machine.learn, shard), each * shard,
                          mean};
}

// Returns the mean of slowest() over the minibatches of an epoch, or only over the first ones if
// the epoch has more than CUT_ROWS rows. If a single minibatch has more rows than that, uses
// slowest_of_many().
static struct share learning(const struct rlhf__scale_figures *f, double rows, double ranks) {
    const double each = floor(rows / f->plan.minibatches);
    struct share sum = {0};
    uint32_t n = 0;
    if (each > CUT_ROWS) return slowest_of_many(f, each, ranks);
    while (n < f->plan.minibatches && (n == 0 || (n + 1) * each <= CUT_ROWS)) {
        const struct share s = slowest(f, n * (uint32_t)each, (uint32_t)each, ranks);
        sum = (struct share){sum.seconds + s.seconds, sum.tokens + s.tokens, sum.mean + s.mean};
        n++;
    }
    return (struct share){sum.seconds / n, sum.tokens / n, sum.mean / n};
}

// ---- the parts of a phase ----

// Fill in the parts of the cost in which a rank computes and does not use the network. If the ranks
// of a machine share its cores, these parts take `slow` times as long as measured; otherwise `slow`
// is 1.
static void work(const struct rlhf__scale_figures *f, const struct rlhf__scale_layout *l,
                 double slow, struct rlhf__scale_cost *c) {
    const struct rlhf__scale_plan *p = &f->plan;
    const struct rlhf__scale_machine *m = &f->machine;
    const double groups = ceil(floor(l->rows / p->group) / l->ranks), own = groups * p->group;
    const double steps = p->minibatches * p->epochs, tokens = own * mean_length(m);
    const double by_rows = l->rows / m->rows, owned = (l->ranks - 1) / l->ranks;
    const struct share s = learning(f, l->rows, l->ranks);
    c->draw = slow * rlhf__scale_curve_at(&m->draw, own);
    c->reward = slow * m->reward * (p->reward_dealt != 0 ? own / m->rows : by_rows);
    c->passes = slow * m->passes;
    if (m->learn.n)
        c->passes *= rlhf__scale_curve_at(&m->learn, tokens) /
                     rlhf__scale_curve_at(&m->learn, m->rows * mean_length(m));
    c->compute = slow * steps * s.seconds;
    c->imbalance = s.mean > 0 ? s.tokens / s.mean - 1 : 0;
    c->tree =
        slow * steps * (shards_of(p, l->ranks) / l->ranks - 1) * TREE * p->parameters / m->copy;
    c->step = slow * steps * (m->step / l->ranks + 4 * p->parameters * owned / m->copy + m->pack);
    c->other = slow * m->other * own / m->rows + m->fixed * fmax(1, slow / m->threads);
}

// Returns the seconds of exchanges that overlap with computation. Gradients are sent during the
// backward pass of a rank's last microbatch. New weights are sent during the forward pass of the
// next minibatch's first microbatch, unless the phase has no further minibatch. Only windows
// (team/sum.h) without embeddings and heads can overlap, and only with the passes through the
// layers. The first of these windows cannot be sent before its gradients are computed, and the
// layers of the last window cannot be computed before their weights have arrived.
static double hidden(const struct rlhf__scale_figures *f, double ranks, double slow,
                     const struct rlhf__scale_cost *c) {
    const struct rlhf__scale_plan *p = &f->plan;
    const double steps = p->minibatches * p->epochs, layers = 1 - p->tied;
    const double windows = p->parameters / (double)RLHF__BLOCK / ranks;
    const double early = floor(layers * windows), share = early / windows;
    double pass = c->compute / steps / (shards_of(p, ranks) / ranks);
    if (p->microbatch > 0)
        pass = fmin(pass, slow * rlhf__scale_curve_at(&f->machine.learn, p->microbatch));
    if (early < 1) return 0;
    return (1 - f->line.slowed) * (1 - 1 / early) *
           (steps * fmin(share * c->reduce / steps, layers * pass * 2 / 3) +
            (steps - 1) * fmin(share * c->spread / steps, layers * pass / 3));
}

// Fill in the parts of the cost that use the network.
static void exchange(const struct rlhf__scale_figures *f, const struct rlhf__scale_layout *l,
                     double here, double slow, struct rlhf__scale_cost *c) {
    const struct rlhf__scale_plan *p = &f->plan;
    const double r = l->ranks, steps = p->minibatches * p->epochs, owned = (r - 1) / r;
    const double rate = f->line.bytes * f->line.locals / here, wait = f->line.latency;
    const double gradient = 4 * p->parameters,
                 windows = ceil(p->parameters / ((double)RLHF__BLOCK * r));
    const double nodes = most_nodes((uint32_t)shards_of(p, r), (uint32_t)r);
    const double rows = 32 * l->rows * mean_length(&f->machine);
    const double adds = slow * 12 * p->parameters * owned / r / f->machine.copy;
    const double way = owned * gradient / rate + windows * wait / 4;
    if (r < 2) return;
    c->reduce = steps * (owned * gradient * nodes / rate + windows * wait / 4 + adds);
    c->spread = steps * way;
    c->gather = 3 * (rows / rate + wait * r) + steps * 2 * wait * r;
    c->sent = steps * owned * gradient * (nodes + 1) + 3 * rows / r * (r - 1);
    if (p->overlaps != 0) c->hidden = hidden(f, r, slow, c);
}

// The moments are divided among the ranks. So is their copy from the last phase boundary.
static double memory(const struct rlhf__scale_figures *f, const struct rlhf__scale_layout *l) {
    const struct rlhf__scale_plan *p = &f->plan;
    const struct rlhf__scale_machine *m = &f->machine;
    const double kept = 1 - 1 / l->ranks;
    const double asides = most_asides((uint32_t)shards_of(p, l->ranks), (uint32_t)l->ranks);
    return m->memory - kept * (m->memory_moments + m->memory_undo * p->moments / (1 + p->moments)) +
           m->memory_rows * (l->rows / m->rows - 1) + 4 * p->parameters * asides +
           fmin(STAGING, 4 * p->parameters * kept);
}

struct rlhf__scale_cost rlhf__scale_cost(const struct rlhf__scale_figures *f,
                                         const struct rlhf__scale_layout *l) {
    struct rlhf__scale_cost c = {0};
    const double here = fmin(l->per_host, l->ranks), slow = f->machine.shared != 0 ? here : 1;
    work(f, l, slow, &c);
    exchange(f, l, here, slow, &c);
    c.total = c.draw + c.reward + c.passes + c.compute + c.tree + c.reduce + c.step + c.spread +
              c.gather + c.other - c.hidden;
    c.rows_per_s = l->rows / c.total;
    c.memory = memory(f, l);
    return c;
}

// ---- comparisons ----

double rlhf__scale_efficiency(const struct rlhf__scale_figures *f,
                              const struct rlhf__scale_layout *l, double rows_alone) {
    const double machines = f->machine.shared != 0 ? ceil(l->ranks / l->per_host) : l->ranks;
    struct rlhf__scale_figures alone = *f;
    alone.plan.shards = 1;
    const struct rlhf__scale_layout one = {1, 1, rows_alone};
    return rlhf__scale_cost(f, l).rows_per_s / machines / rlhf__scale_cost(&alone, &one).rows_per_s;
}

double rlhf__scale_rows_for(const struct rlhf__scale_figures *f, double ranks, double per_host,
                            double wanted) {
    const double unit = f->plan.group * f->plan.minibatches, most = 4194304;
    double low = 0, high = ceil(ranks / f->plan.minibatches);
    struct rlhf__scale_layout l = {ranks, per_host, high * unit};
    while (rlhf__scale_efficiency(f, &l, l.rows) < wanted) {
        low = high;
        high *= 2;
        l.rows = high * unit;
        if (l.rows > most) return 0;
    }
    while (high - low > 1) {
        const double middle = floor((low + high) / 2);
        l.rows = middle * unit;
        if (rlhf__scale_refuses(f, &l) == RLHF__SCALE_FITS &&
            rlhf__scale_efficiency(f, &l, l.rows) >= wanted)
            high = middle;
        else
            low = middle;
    }
    return high * unit;
}

double rlhf__scale_stops(const struct rlhf__scale_figures *f, double per_host, double rows,
                         double gain, double most, int *few) {
    struct rlhf__scale_layout l = {f->machine.shared != 0 ? per_host : 1, per_host, rows};
    *few = rlhf__scale_refuses(f, &l) == RLHF__SCALE_FEW_ROWS;
    if (rlhf__scale_refuses(f, &l) != RLHF__SCALE_FITS) return 1;
    for (double before = rlhf__scale_cost(f, &l).rows_per_s; l.ranks < most;) {
        const struct rlhf__scale_layout twice = {2 * l.ranks, per_host, rows};
        const int refusal = rlhf__scale_refuses(f, &twice);
        *few = refusal == RLHF__SCALE_FEW_ROWS;
        if (refusal != RLHF__SCALE_FITS) return l.ranks;
        const double after = rlhf__scale_cost(f, &twice).rows_per_s;
        if (after < gain * before) return l.ranks;
        before = after;
        l = twice;
    }
    return 0;
}
