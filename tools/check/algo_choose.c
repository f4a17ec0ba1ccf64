// algo_choose.c: tests choose_prompts() of an algorithm. Calls it with tables of prompts in guarded
// memory, and checks whether the algorithm has state.
#include "check/cases.h"

#include "check/algo_batch.h"
#include "check/guard.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PROMPTS = 7, CHOSEN = 7, NOT_WRITTEN = -7777777 };

static const char data_row[] = "{\"prompt\": \"a\", \"answer\": \"1\"}";

// The history of the prompts in a table.
enum history { UNUSED, SOME_USED, EQUAL_SCORES };

struct table {
    int32_t n, n_choose, history, phase;
    const char *what;
};

static const struct table tables[] = {{7, 3, UNUSED, 0, "3 of 7 prompts that were not used yet"},
                                      {7, 3, SOME_USED, 1, "3 of 7 prompts, some of them used"},
                                      {7, 7, EQUAL_SCORES, 2, "7 of 7 prompts with equal scores"},
                                      {2, 5, SOME_USED, 1, "5 of 2 prompts"},
                                      {1, 4, UNUSED, 0, "4 of 1 prompt"}};

#define TABLES (int32_t)(sizeof tables / sizeof *tables)

static void *lay(struct rlhf__guards *g, const void *from, size_t n, int32_t side, int32_t rule,
                 const char *what) {
    void *at = rlhf__guard_take(g, n, side, rule, what);
    if (at) memcpy(at, from, n);
    return at;
}

// Returns the data row of prompt i. This is one of the author's rows. If the author gave none, it
// is one of two made-up rows, and the second of these is empty. The caller frees *text.
static rlhf_str row_of(const struct rlhf__check *c, int32_t i, char **text) {
    const size_t own = json_array_size(c->rows);
    *text = own ? json_dumps(json_array_get(c->rows, (size_t)i % own), JSON_COMPACT) : NULL;
    if (*text) return (rlhf_str){.ptr = *text, .len = (uint32_t)strlen(*text)};
    if (own || i % 2) return (rlhf_str){0};
    return (rlhf_str){.ptr = data_row, .len = sizeof data_row - 1};
}

static void fill(const struct table *table, float *score, int64_t *seen) {
    for (int32_t i = 0; i < table->n; i++) {
        const int used =
            table->history == EQUAL_SCORES || (table->history == SOME_USED && i % 3 != 1);
        score[i] = !used ? NAN : table->history == EQUAL_SCORES ? 0.5f : 0.3f * (float)i - 0.7f;
        seen[i] = used ? 1 + i % 2 : 0;
    }
}

// Call choose_prompts(). `chosen` has CHOSEN elements.
static rlhf_status choose(struct rlhf__probe *t, const struct table *table, int32_t side,
                          int64_t *chosen, struct rlhf__error *err) {
    struct rlhf__guards *g = rlhf__guards_open(t->check->log);
    char *text[PROMPTS] = {0};
    rlhf_str meta[PROMPTS];
    float score[PROMPTS];
    int64_t seen[PROMPTS];
    if (!g) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
    const size_t n = (size_t)table->n, bytes = (size_t)table->n_choose * sizeof *chosen;
    fill(table, score, seen);
    for (int32_t i = 0; i < table->n; i++)
        meta[i] = row_of(t->check, i, &text[i]);
    for (int32_t k = 0; k < CHOSEN; k++)
        chosen[k] = NOT_WRITTEN;
    rlhf_prompts in = {.n_choose = (uint32_t)table->n_choose, .n = table->n, .phase = table->phase};
    in.last_score =
        lay(g, score, n * sizeof *score, side, RLHF__CHECK_BORROWED, "prompts->last_score");
    in.seen = lay(g, seen, n * sizeof *seen, side, RLHF__CHECK_BORROWED, "prompts->seen");
    in.meta = lay(g, meta, n * sizeof *meta, side, RLHF__CHECK_BORROWED, "prompts->meta");
    rlhf__guards_protect(g);
    int64_t *prompt = lay(g, chosen, bytes, side, RLHF__CHECK_CHOOSE, "out->prompt");
    const uint32_t minor = t->check->plugin->abi_minor;
    rlhf_choice *out = RLHF__GUARDED(rlhf_choice, g, minor), took;
    rlhf_status st = RLHF_OK;
    if (!in.last_score || !in.seen || !in.meta || !prompt || !out)
        st = rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
    if (st == RLHF_OK) {
        out->prompt = prompt;
        struct rlhf__tails tails = {.n = 0};
        RLHF__LEND(rlhf_prompts, &in, minor, &tails);
        rlhf__probe_begin(t, "choose_prompts()");
        st = t->check->plugin->ops.algo.choose_prompts(t->self, &in, out);
        rlhf__guard_kept(&tails, t->check->log);
        st = rlhf__probe_end(t, st, err);
        rlhf__guard_struct_end(RLHF__STRUCT_rlhf_choice, out, &took, minor, t->check->log);
        const struct rlhf__lent lent = {"prompt", prompt, took.prompt};
        rlhf__guard_lent("rlhf_choice", &lent, 1, t->check->log);
        memcpy(chosen, prompt, bytes);
    }
    rlhf__guards_close(g);
    for (int32_t i = 0; i < table->n; i++)
        free(text[i]);
    return st;
}

// Calls choose() and checks the results against the contract. Returns 0 if something was reported.
static int check_choice(struct rlhf__probe *t, const struct table *table, int32_t side,
                        int64_t *chosen) {
    struct rlhf__child_log *log = t->check->log;
    struct rlhf__error err;
    if (choose(t, table, side, chosen, &err) < 0) {
        rlhf__child_log_found(log, RLHF__CHECK_CHOOSE, "of %s, %s%s", table->what, err.text,
                              json_array_size(t->check->rows)
                                  ? ""
                                  : " (if it reads other fields of data rows: --rows)");
        return 0;
    }
    for (int32_t k = 0; k < table->n_choose; k++) {
        if (chosen[k] >= 0 && chosen[k] < table->n) continue;
        if (chosen[k] == NOT_WRITTEN)
            rlhf__child_log_found(log, RLHF__CHECK_CHOOSE, "of %s, chosen[%d] was not written",
                                  table->what, k);
        else
            rlhf__child_log_found(log, RLHF__CHECK_CHOOSE, "of %s, chosen[%d] is %lld", table->what,
                                  k, (long long)chosen[k]);
        return 0;
    }
    return 1;
}

// ---- state ----

// One instance makes choices and runs phases. At the end it makes the first choice again.
struct course {
    struct rlhf__algo_batch *batch;
    int64_t first[CHOSEN], other[CHOSEN], then[CHOSEN];
    struct rlhf__state_buffer kept;
};

static int differ(const int64_t *a, const int64_t *b) {
    for (int32_t k = 0; k < CHOSEN; k++)
        if (a[k] != b[k]) return k + 1;
    return 0;
}

static int run_course(struct rlhf__probe *t, struct course *x) {
    const int saves = t->check->plugin->desc.state_version != 0;
    struct rlhf__error err;
    double loss;
    return check_choice(t, &tables[0], RLHF__GUARD_END, x->first) &&
           rlhf__algo_phase(t, x->batch, &loss) &&
           check_choice(t, &tables[1], RLHF__GUARD_END, x->other) &&
           rlhf__algo_phase(t, x->batch, &loss) &&
           (!saves || rlhf__state_buffer_save(t, &x->kept, &err) == RLHF_OK) &&
           check_choice(t, &tables[0], RLHF__GUARD_END, x->then);
}

// After load(), another instance must choose as the saved instance did.
static void check_kept(struct rlhf__check *c, struct course *x) {
    struct rlhf__probe t;
    struct rlhf__error err;
    rlhf_plan plan;
    int64_t loaded[CHOSEN];
    if (rlhf__algo_open(c, 1, &t, &plan) &&
        rlhf__state_buffer_load(&t, &x->kept, c->plugin->desc.state_version, &err) == RLHF_OK &&
        check_choice(&t, &tables[0], RLHF__GUARD_END, loaded)) {
        const int k = differ(x->then, loaded);
        if (k)
            rlhf__child_log_found(c->log, RLHF__CHECK_UNSAVED,
                                  "chosen[%d] is %lld, and %lld by an instance that load() gave "
                                  "what save() wrote",
                                  k - 1, (long long)x->then[k - 1], (long long)loaded[k - 1]);
    }
    rlhf__probe_finish(&t);
}

// If an instance later makes a different choice from the same prompts, it has state, which save()
// must write.
static void check_state(struct rlhf__check *c) {
    const int saves = c->plugin->desc.state_version != 0;
    struct course *x = calloc(1, sizeof *x);
    struct rlhf__probe t = {.check = c};
    rlhf_plan plan;
    if (!x) return;
    const int whole = rlhf__state_buffer_init(&x->kept) && rlhf__algo_open(c, 1, &t, &plan) &&
                      rlhf__algo_batch_new(c, &plan, 1, &x->batch) && run_course(&t, x);
    rlhf__probe_finish(&t);
    const int k = whole ? differ(x->first, x->then) : 0;
    if (whole && saves) check_kept(c, x);
    if (k && !saves)
        rlhf__child_log_found(
            c->log, RLHF__CHECK_UNSAVED,
            "chosen[%d] of the same prompts is %lld, and %lld after two phases; that is a state, "
            "and without save(), load() and a state_version a resumed run begins without it",
            k - 1, (long long)x->first[k - 1], (long long)x->then[k - 1]);
    free(x->batch);
    rlhf__state_buffer_finish(&x->kept);
    free(x);
}

// ---- steps ----

int rlhf__try_choose(struct rlhf__check *c, int32_t step) {
    struct rlhf__probe t;
    int64_t chosen[CHOSEN];
    rlhf_plan plan;
    if (!c->plugin->ops.algo.choose_prompts || step > TABLES) return 0;
    if (step == TABLES) {
        rlhf__child_log_doing(c->log, "a choice, phases, and the choice again");
        check_state(c);
        return 1;
    }
    rlhf__child_log_doing(c->log, "choose_prompts() of %s", tables[step].what);
    for (int32_t side = RLHF__GUARD_END; side <= RLHF__GUARD_BEGIN; side++) {
        if (rlhf__algo_open(c, 1, &t, &plan)) check_choice(&t, &tables[step], side, chosen);
        rlhf__probe_finish(&t);
    }
    return 1;
}

int rlhf__try_choose_memory(struct rlhf__check *c, int32_t step) {
    struct rlhf__probe t;
    struct rlhf__error err;
    int64_t chosen[CHOSEN];
    rlhf_plan plan;
    int more = 0;
    if (!c->plugin->ops.algo.choose_prompts || step >= 200) return 0;
    rlhf__child_log_doing(c->log, "choose_prompts() with no memory for allocation %d", step + 1);
    if (rlhf__algo_open(c, 1, &t, &plan)) {
        const int64_t before = rlhf__probe_allocs(&t);
        rlhf__probe_fail_alloc(&t, step + 1);
        choose(&t, &tables[1], RLHF__GUARD_END, chosen, &err);
        more = rlhf__probe_allocs(&t) - before > step;
    }
    rlhf__probe_finish(&t);
    return more;
}
