// figures.c: see figures.h.
#include "scale/figures.h"

#include "base/json.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- numbers ----

// A number of a section, from `least` (0 or more) to `most`. If `whole` is 1, the number must be an
// integer.
struct number {
    const char *key;
    size_t at;
    double least, most;
    int whole;
};

#define P    struct rlhf__scale_plan
#define M    struct rlhf__scale_machine
#define L    struct rlhf__scale_line
#define HUGE 1e30

static const struct number plan_numbers[] = {
    {"rows", offsetof(P, rows), 1, 1e9, 1},
    {"group", offsetof(P, group), 1, 1e6, 1},
    {"whole_groups", offsetof(P, whole), 0, 2, 1},
    {"minibatches", offsetof(P, minibatches), 1, 1e6, 1},
    {"epochs", offsetof(P, epochs), 1, 1e6, 1},
    {"shards", offsetof(P, shards), 0, 1e6, 1},
    {"parameters", offsetof(P, parameters), 1, 1e15, 1},
    {"tied_share", offsetof(P, tied), 0, 1, 0},
    {"microbatch_tokens", offsetof(P, microbatch), 0, 1e9, 1},
    {"moments", offsetof(P, moments), 0, 16, 1},
    {"reward_dealt", offsetof(P, reward_dealt), 0, 1, 1},
    {"overlaps", offsetof(P, overlaps), 0, 1, 1},
};
static const struct number machine_numbers[] = {
    {"cores_shared", offsetof(M, shared), 0, 1, 1},
    {"threads", offsetof(M, threads), 1, 1e6, 1},
    {"rows", offsetof(M, rows), 1, 1e9, 1},
    {"tokens", offsetof(M, tokens), 1, 1e12, 1},
    {"passes_s", offsetof(M, passes), 0, HUGE, 0},
    {"reward_s", offsetof(M, reward), 0, HUGE, 0},
    {"other_s", offsetof(M, other), 0, HUGE, 0},
    {"fixed_s", offsetof(M, fixed), 0, HUGE, 0},
    {"step_s", offsetof(M, step), 0, HUGE, 0},
    {"pack_s", offsetof(M, pack), 0, HUGE, 0},
    {"copy_bytes_per_s", offsetof(M, copy), 1, HUGE, 0},
    {"products_per_s", offsetof(M, products), 0, HUGE, 0},
    {"decode_products", offsetof(M, decode_flops), 0, HUGE, 0},
    {"memory_bytes", offsetof(M, memory), 0, HUGE, 0},
    {"memory_moments_bytes", offsetof(M, memory_moments), 0, HUGE, 0},
    {"memory_rows_bytes", offsetof(M, memory_rows), 0, HUGE, 0},
    {"memory_undo_bytes", offsetof(M, memory_undo), 0, HUGE, 0},
};
static const struct number line_numbers[] = {
    {"bytes_per_s", offsetof(L, bytes), 1, HUGE, 0},
    {"ranks_per_host", offsetof(L, locals), 1, 1e6, 1},
    {"latency_s", offsetof(L, latency), 0, 3600, 0},
    {"slowed", offsetof(L, slowed), 0, 1, 0},
};
#define N(list) (sizeof(list) / sizeof *(list))

// A part of the file.
struct section {
    const char *name, *text_key; // text_key: a description for people, or NULL
    const struct number *number;
    size_t n, text_at;
};

static const struct section sections[] = {
    {"run", NULL, plan_numbers, N(plan_numbers), 0},
    {"machine", "compute", machine_numbers, N(machine_numbers), offsetof(M, compute)},
    {"network", "detail", line_numbers, N(line_numbers), offsetof(L, detail)},
};
enum { RUN, MACHINE, NETWORK, SECTIONS };
enum { TEXT_CAP = 256, VERSION = 1 };

static rlhf_status wrong(const char *path, const char *section, const char *key, const json_t *v,
                         const char *allowed, struct rlhf__error *err) {
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s: %s.%s is %s; %s is allowed; write the file again with rlhf-host scale "
                      "--measure",
                      path, section, key, rlhf__json_kind(v), allowed);
}

static rlhf_status read_number(const char *path, const struct section *s, const struct number *n,
                               const json_t *from, void *to, struct rlhf__error *err) {
    const json_t *v = json_object_get(from, n->key);
    if (!json_is_number(v)) return wrong(path, s->name, n->key, v, "a number", err);
    const double x = json_number_value(v);
    if (!(x >= n->least && x <= n->most) || (n->whole && x != floor(x)))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s: %s.%s is %g; %s from %g to %g is allowed; write the file again with "
                          "rlhf-host scale --measure",
                          path, s->name, n->key, x, n->whole ? "a whole number" : "a number",
                          n->least, n->most);
    memcpy((char *)to + n->at, &x, sizeof x);
    return RLHF_OK;
}

static rlhf_status read_section(const char *path, const struct section *s, const json_t *from,
                                void *to, struct rlhf__error *err) {
    for (size_t i = 0; i < s->n; i++)
        RLHF_TRY(read_number(path, s, &s->number[i], from, to, err));
    if (!s->text_key) return RLHF_OK;
    const json_t *v = json_object_get(from, s->text_key);
    if (!json_is_string(v)) return wrong(path, s->name, s->text_key, v, "a text", err);
    snprintf((char *)to + s->text_at, TEXT_CAP, "%s", json_string_value(v));
    return RLHF_OK;
}

// ---- lists of a machine ----

// Points are [[x, seconds], ...].
static rlhf_status read_curve(const char *path, const char *section, const char *key,
                              const json_t *machine, struct rlhf__scale_curve *c,
                              struct rlhf__error *err) {
    static const char allowed[] =
        "a list of at most 16 pairs [count, seconds], in ascending order,";
    const json_t *list = json_object_get(machine, key);
    const size_t n = json_array_size(list);
    if (!json_is_array(list) || n > RLHF__SCALE_POINTS)
        return wrong(path, section, key, list, allowed, err);
    for (c->n = 0; c->n < n; c->n++) {
        const json_t *pair = json_array_get(list, c->n);
        const double x = json_number_value(json_array_get(pair, 0));
        const double s = json_number_value(json_array_get(pair, 1));
        if (json_array_size(pair) != 2 || !(s > 0) || !(x > (c->n ? c->at[c->n - 1].x : 0)))
            return wrong(path, section, key, list, allowed, err);
        c->at[c->n] = (struct rlhf__scale_point){x, s};
    }
    return RLHF_OK;
}

static rlhf_status read_lengths(const char *path, const json_t *machine,
                                struct rlhf__scale_machine *m, struct rlhf__error *err) {
    static const char allowed[] = "a list of 1 to 1024 lengths of rows, in tokens,";
    const json_t *list = json_object_get(machine, "lengths");
    const size_t n = json_array_size(list);
    if (n < 1 || n > RLHF__SCALE_LENGTHS)
        return wrong(path, "machine", "lengths", list, allowed, err);
    for (m->n_lengths = 0; m->n_lengths < n; m->n_lengths++) {
        const double x = json_number_value(json_array_get(list, m->n_lengths));
        if (!(x >= 1)) return wrong(path, "machine", "lengths", list, allowed, err);
        m->length[m->n_lengths] = x;
    }
    return RLHF_OK;
}

static json_t *curve_json(const struct rlhf__scale_curve *c) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < c->n; i++)
        json_array_append_new(list, json_pack("[f, f]", c->at[i].x, c->at[i].seconds));
    return list;
}

// ---- the file ----

rlhf_status rlhf__scale_figures_read(const char *path, struct rlhf__scale_figures *f,
                                     struct rlhf__error *err) {
    json_t *file;
    RLHF_TRY(rlhf__json_load(path, &file, err));
    const json_t *run = json_object_get(file, "run"), *machine = json_object_get(file, "machine");
    const json_t *line = json_object_get(file, "network");
    rlhf_status st = RLHF_OK;
    if (json_integer_value(json_object_get(file, "rlhf_host_scale")) != VERSION)
        st = rlhf__fail(err, RLHF_E_INVALID,
                        "%s was not written by rlhf-host scale --measure: \"rlhf_host_scale\" is "
                        "%s, not %d; choose another file",
                        path, rlhf__json_kind(json_object_get(file, "rlhf_host_scale")), VERSION);
    else if (!line && (!run || !machine))
        st = rlhf__fail(err, RLHF_E_INVALID,
                        "%s has neither \"run\" and \"machine\" nor \"network\"; write it with "
                        "rlhf-host scale --measure",
                        path);
    if (st == RLHF_OK && run && machine) {
        st = read_section(path, &sections[RUN], run, &f->plan, err);
        if (st == RLHF_OK) st = read_section(path, &sections[MACHINE], machine, &f->machine, err);
        if (st == RLHF_OK) st = read_curve(path, "machine", "draw", machine, &f->machine.draw, err);
        if (st == RLHF_OK)
            st = read_curve(path, "machine", "learn", machine, &f->machine.learn, err);
        if (st == RLHF_OK) st = read_lengths(path, machine, &f->machine, err);
        f->has_run = 1;
    }
    if (st == RLHF_OK && line) {
        st = read_section(path, &sections[NETWORK], line, &f->line, err);
        if (st == RLHF_OK)
            st = read_curve(path, "network", "exchange", line, &f->line.exchange, err);
        f->has_line = 1;
    }
    json_decref(file);
    return st;
}

rlhf_status rlhf__scale_figures_before(const char *path, struct rlhf__scale_figures *f,
                                       struct rlhf__error *err) {
    if (rlhf__is_dir(path))
        return rlhf__fail(err, RLHF_E_INVALID, "'%s' cannot be written: it is a directory", path);
    RLHF_TRY(rlhf__file_may_make(path, err)); // an existing file is replaced by a new one
    return rlhf__is_file(path) ? rlhf__scale_figures_read(path, f, err) : RLHF_OK;
}

static json_t *section_json(const struct section *s, const void *from) {
    json_t *o = json_object();
    if (s->text_key)
        json_object_set_new(o, s->text_key, rlhf__json_text((const char *)from + s->text_at));
    for (size_t i = 0; i < s->n; i++) {
        double x;
        memcpy(&x, (const char *)from + s->number[i].at, sizeof x);
        json_object_set_new(o, s->number[i].key,
                            s->number[i].whole ? json_integer((json_int_t)x) : json_real(x));
    }
    return o;
}

json_t *rlhf__scale_figures_json(const struct rlhf__scale_figures *f) {
    json_t *file = json_pack("{s:i}", "rlhf_host_scale", VERSION);
    if (f->has_run) {
        const struct rlhf__scale_machine *m = &f->machine;
        json_t *machine = section_json(&sections[MACHINE], m), *lengths = json_array();
        json_object_set_new(machine, "draw", curve_json(&m->draw));
        json_object_set_new(machine, "learn", curve_json(&m->learn));
        for (uint32_t i = 0; i < m->n_lengths; i++)
            json_array_append_new(lengths, json_integer((json_int_t)m->length[i]));
        json_object_set_new(machine, "lengths", lengths);
        json_object_set_new(file, "run", section_json(&sections[RUN], &f->plan));
        json_object_set_new(file, "machine", machine);
    }
    if (f->has_line) {
        json_t *line = section_json(&sections[NETWORK], &f->line);
        json_object_set_new(line, "exchange", curve_json(&f->line.exchange));
        json_object_set_new(file, "network", line);
    }
    return file;
}

// ---- a line as typed ----

struct unit {
    const char *name;
    double value;
};

// Returns 1 if text[0..len) is a number with one of these units. The number must be above 0; if
// `zero` is 1, it may also be 0.
static int with_unit(const char *text, size_t len, const struct unit *u, size_t n, int zero,
                     double *out) {
    char *end;
    const double x = strtod(text, &end);
    const size_t used = (size_t)(end - text);
    if (used == 0 || used > len || !isfinite(x) || x < 0 || (x == 0 && !zero)) return 0;
    for (size_t i = 0; i < n; i++)
        if (strlen(u[i].name) == len - used && strncmp(end, u[i].name, len - used) == 0) {
            *out = x * u[i].value;
            return 1;
        }
    return 0;
}

rlhf_status rlhf__scale_line_typed(const char *text, struct rlhf__scale_line *out,
                                   struct rlhf__error *err) {
    static const struct unit rates[] = {
        {"mbit", 1e6 / 8}, {"gbit", 1e9 / 8}, {"MB", 1e6}, {"GB", 1e9}};
    static const struct unit times[] = {{"us", 1e-6}, {"ms", 1e-3}};
    const char *comma = strchr(text, ',');
    *out = (struct rlhf__scale_line){.locals = 1};
    if (comma && with_unit(text, (size_t)(comma - text), rates, N(rates), 0, &out->bytes) &&
        with_unit(comma + 1, strlen(comma + 1), times, N(times), 1, &out->latency))
        return RLHF_OK;
    return rlhf__fail(
        err, RLHF_E_INVALID,
        "--network is \"%s\"; a file that rlhf-host scale --measure wrote is allowed, "
        "or a rate (mbit, gbit, MB or GB a second) and a latency (us, ms), such as "
        "10gbit,20us",
        text);
}
