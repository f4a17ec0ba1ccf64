// eval_table.c: see eval_table.h.
#include "eval/eval_table.h"

#include "base/file.h"
#include "base/folder.h"
#include "base/json.h"
#include "base/printable.h"
#include "report/jsonl.h"
#include "weights/run_checkpoint.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct rlhf__table_row *rlhf__table_add(struct rlhf__table *t, const char *name, int decimals) {
    struct rlhf__table_row *row = realloc(t->row, (t->n + 1) * sizeof *row);
    if (!row) return NULL;
    t->row = row;
    row += t->n++;
    *row = (struct rlhf__table_row){.decimals = decimals, .difference = {NAN, NAN}};
    snprintf(row->name, sizeof row->name, "%s", name);
    return row;
}

void rlhf__table_finish(struct rlhf__table *t) {
    free(t->row);
    *t = (struct rlhf__table){0};
}

// ---- one model: a line per measure ----

// The row of a single reward repeats the row "reward".
static int is_repeated(const struct rlhf__table *t, size_t i) { return t->rewards == 1 && i == 1; }

static int is_reward(const struct rlhf__table *t, size_t i) { return i >= 1 && i <= t->rewards; }

static int is_part(const struct rlhf__table *t, size_t i) {
    return i > t->rewards && i <= t->rewards + t->parts;
}

// Rewards and their parts are indented. If there is only one reward, its parts need no REWARD/.
static void print_name(const struct rlhf__table *t, size_t i) {
    const char *name = t->row[i].name, *slash = strchr(name, '/');
    if (is_part(t, i))
        printf("  %-9s", t->rewards == 1 && slash ? slash + 1 : name);
    else
        printf(is_reward(t, i) ? "  %-9s" : "%-11s", name);
}

static void print_lines(const struct rlhf__table *t) {
    for (size_t i = 0; i < t->n; i++) {
        const struct rlhf__table_row *r = &t->row[i];
        const char *open = " (";
        if (is_repeated(t, i)) continue;
        print_name(t, i);
        putchar(' ');
        if (isfinite(r->side[0].mean))
            printf("%.*f", r->decimals, r->side[0].mean);
        else
            printf("-");
        if (strcmp(r->name, "kl") == 0) printf(" nats per sequence");
        if (strcmp(r->name, "length") == 0) printf(" tokens");
        if (isfinite(r->side[0].error)) {
            printf(" (standard error %.*f", r->decimals, r->side[0].error);
            open = ", ";
        }
        if (i == 0) {
            printf("%sstd %.4f, ", open, t->side[0].reward_std);
            if (t->side[0].scored < t->responses) printf("%u of ", t->side[0].scored);
            printf("%u responses", t->responses);
            open = ", ";
        }
        if (is_reward(t, i) && i <= RLHF__TABLE_REWARDS) {
            printf("%sstd %.4f", open, t->side[0].std[i - 1]);
            open = ", ";
        }
        puts(open[0] == ',' ? ")" : "");
    }
}

// ---- two models: a table ----

enum { COLUMN = 20 };

// Print a cell. If `sign` is 1, this is the last cell of a line: print its number with a sign, and
// end the line.
static void print_cell(int decimals, const struct rlhf__estimate *e, int sign) {
    char text[64];
    if (!isfinite(e->mean))
        snprintf(text, sizeof text, "-");
    else if (!isfinite(e->error))
        snprintf(text, sizeof text, sign ? "%+.*f" : "%.*f", decimals, e->mean);
    else
        snprintf(text, sizeof text, sign ? "%+.*f (%.*f)" : "%.*f (%.*f)", decimals, e->mean,
                 decimals, e->error);
    if (sign)
        printf("  %s\n", text);
    else
        printf("  %-*s", COLUMN, text);
}

static void print_columns(const struct rlhf__table *t) {
    printf("A: %s\nB: %s\n", t->side[0].model, t->side[1].model);
    printf("%-11s  %-*s  %-*s  A - B\n", "", COLUMN, "A", COLUMN, "B");
    for (size_t i = 0; i < t->n; i++) {
        const struct rlhf__table_row *r = &t->row[i];
        if (is_repeated(t, i)) continue;
        print_name(t, i);
        print_cell(r->decimals, &r->side[0], 0);
        print_cell(r->decimals, &r->side[1], 0);
        print_cell(r->decimals, &r->difference, 1);
    }
    printf("%u responses of each model to the same prompts; standard errors in parentheses\n",
           t->responses);
    if (t->side[0].scored < t->responses || t->side[1].scored < t->responses)
        printf("A has a reward for %u of them, B for %u; the others are left out\n",
               t->side[0].scored, t->side[1].scored);
}

void rlhf__table_print(const struct rlhf__table *t, int heading) {
    if (heading && t->data) printf("%s:\n", t->data);
    if (t->sides == 2)
        print_columns(t);
    else
        print_lines(t);
}

// ---- JSON ----

static void put(json_t *v, const char *name, double x) {
    if (v && isfinite(x)) json_object_set_new(v, name, json_real(x));
}

static json_t *estimate(const struct rlhf__estimate *e) {
    json_t *v = json_object();
    put(v, "mean", e->mean);
    put(v, "error", e->error);
    return v;
}

// The means of the reward's parts as an object, or NULL if the reward has no parts.
static json_t *parts_json(const struct rlhf__table *t, const char *reward, uint32_t j) {
    const size_t n = strlen(reward);
    json_t *all = NULL;
    for (size_t i = t->rewards + 1; i < t->n && is_part(t, i); i++) {
        const char *name = t->row[i].name;
        if (strncmp(name, reward, n) != 0 || name[n] != '/') continue;
        if (!all) all = json_object();
        json_object_set_new(all, name + n + 1, estimate(&t->row[i].side[j]));
    }
    return all;
}

static json_t *rewards_json(const struct rlhf__table *t, uint32_t j) {
    json_t *all = json_object();
    for (size_t i = 1; i <= t->rewards; i++) {
        json_t *v = estimate(&t->row[i].side[j]);
        if (i <= RLHF__TABLE_REWARDS) put(v, "std", t->side[j].std[i - 1]);
        json_t *parts = parts_json(t, t->row[i].name, j);
        if (parts) json_object_set_new(v, "parts", parts);
        json_object_set_new(all, t->row[i].name, v);
    }
    return all;
}

// Returns the key in JSON of the row `name`.
static const char *key(const char *name) {
    if (strcmp(name, "distinct-3") == 0) return "distinct_3";
    return strcmp(name, "length") == 0 ? "mean_length" : name;
}

static json_t *side_json(const struct rlhf__table *t, uint32_t j) {
    json_t *v = json_object(), *pass = json_object();
    char name[256];
    json_object_set_new(v, "model", rlhf__json_text(t->side[j].model));
    json_object_set_new(v, "samples", json_integer(t->responses));
    if (t->side[j].scored < t->responses)
        json_object_set_new(v, "scored", json_integer(t->side[j].scored));
    for (size_t i = 0; i < t->n; i++) {
        const struct rlhf__table_row *r = &t->row[i];
        if (is_reward(t, i) || is_part(t, i)) continue;
        if (strncmp(r->name, "pass@", 5) == 0) {
            json_object_set_new(pass, r->name + 5, estimate(&r->side[j]));
            continue;
        }
        put(v, key(r->name), r->side[j].mean);
        snprintf(name, sizeof name, "%s_error", key(r->name));
        put(v, name, r->side[j].error);
        if (i == 0) put(v, "reward_std", t->side[j].reward_std);
        if (i == 0) json_object_set_new(v, "rewards", rewards_json(t, j));
    }
    if (json_object_size(pass)) json_object_set(v, "pass", pass);
    json_decref(pass);
    return v;
}

json_t *rlhf__table_json(const struct rlhf__table *t) {
    json_t *v = side_json(t, 0);
    json_object_set_new(v, "seed", json_integer(t->seed));
    json_object_set_new(v, "prompts", json_integer(t->prompts));
    if (t->per_prompt) json_object_set_new(v, "per_prompt", json_integer(t->per_prompt));
    put(v, "right_from", t->pass);
    if (t->sides < 2) return v;
    json_t *difference = json_object();
    for (size_t i = 0; i < t->n; i++)
        if (!is_repeated(t, i))
            json_object_set_new(difference, key(t->row[i].name), estimate(&t->row[i].difference));
    json_object_set_new(v, "compare", side_json(t, 1));
    json_object_set_new(v, "difference", difference);
    return v;
}

// ---- the run's evaluations ----

#define FILE_NAME "evaluations.jsonl"

// If the file's last line is incomplete, end it with a line break, so that the next appended line
// can be read.
static rlhf_status end_line(const struct rlhf__folder *run, int fd, struct rlhf__error *err) {
    struct rlhf__buf text = RLHF__BUF_INIT, end = RLHF__BUF_INIT;
    rlhf_status st = rlhf__folder_read(run, FILE_NAME, 1u << 30, &text, err);
    if (st == RLHF_OK && text.len > 0 && text.data[text.len - 1] != '\n') {
        rlhf__buf_putc(&end, '\n');
        st = rlhf__append_buf(fd, FILE_NAME, &end, err);
    }
    rlhf__buf_finish(&text);
    rlhf__buf_finish(&end);
    return st;
}

rlhf_status rlhf__table_open(const struct rlhf__model *model, int *fd, struct rlhf__error *err) {
    const char *dir = model->peft.dir ? model->peft.dir : model->dir;
    char run[RLHF__PATH_CAP];
    struct rlhf__folder *folder = NULL;
    *fd = -1;
    RLHF_TRY(rlhf__run_above(dir, run, err));
    if (!run[0])
        return rlhf__fail(err, RLHF_E_INVALID,
                          "eval: --save stores results in a run, and '%s' was not written by one; "
                          "--json prints them",
                          dir);
    RLHF_TRY(rlhf__folder_open(NULL, run, &folder, err));
    rlhf_status st = rlhf__folder_append(folder, FILE_NAME, 0, fd, err);
    if (st == RLHF_OK) st = end_line(folder, *fd, err);
    rlhf__folder_close(folder);
    return st;
}

rlhf_status rlhf__table_save(int fd, const json_t *results, struct rlhf__log *log,
                             struct rlhf__error *err) {
    struct rlhf__buf lines = RLHF__BUF_INIT;
    for (size_t i = 0; i < json_array_size(results); i++) {
        rlhf__json_write(&lines, json_array_get(results, i), 0);
        rlhf__buf_putc(&lines, '\n');
    }
    const rlhf_status st = rlhf__append_buf(fd, FILE_NAME, &lines, err);
    rlhf__buf_finish(&lines);
    if (st == RLHF_OK) rlhf__logf(log, RLHF_LOG_INFO, "eval: stored in the run's " FILE_NAME);
    return st;
}
