// reward_parts.c: see reward_parts.h.
#include "verdict/reward_parts.h"

#include "verdict/rules.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define BEGIN "rewards/"
#define END   "/mean"

int rlhf__reward_part(const char *metric, rlhf_str *reward, rlhf_str *part) {
    const size_t n = strlen(metric), begin = sizeof BEGIN - 1, end = sizeof END - 1;
    if (strncmp(metric, BEGIN, begin) != 0 || n <= begin + end ||
        strcmp(metric + n - end, END) != 0)
        return 0;
    const char *name = metric + begin, *slash = memchr(name, '/', n - begin - end);
    if (!slash || slash == name || slash + 1 >= metric + n - end) return 0;
    if (reward) *reward = (rlhf_str){name, (size_t)(slash - name)};
    if (part) *part = (rlhf_str){slash + 1, (size_t)(metric + n - end - slash - 1)};
    return 1;
}

void rlhf__reward_part_put(struct rlhf__buf *out, const char *metric, size_t n_rewards) {
    rlhf_str reward, part;
    if (!rlhf__reward_part(metric, &reward, &part)) return;
    if (n_rewards > 1) rlhf__buf_printf(out, "%.*s/", (int)reward.len, reward.ptr);
    rlhf__buf_put(out, part.ptr, (size_t)part.len);
}

// ---- notes ----

// Returns the reward of the facts that the series belongs to, or NULL. `part` is 1 for a part.
static const struct rlhf__paid *owner(const struct rlhf__history *h, const char *metric, int part) {
    char name[256];
    for (size_t k = 0; k < h->facts->n_rewards; k++) {
        const struct rlhf__paid *one = &h->facts->reward[k];
        const int n = snprintf(name, sizeof name, BEGIN "%s/", one->name);
        if (n < 0 || (size_t)n >= sizeof name || strncmp(metric, name, (size_t)n) != 0) continue;
        if (part || strcmp(metric + n, END + 1) == 0) return one;
    }
    return NULL;
}

static void put_name(const struct rlhf__history *h, const struct rlhf__paid *one,
                     const char *metric, int part, struct rlhf__buf *out) {
    if (part)
        rlhf__reward_part_put(out, metric, h->facts->n_rewards);
    else
        rlhf__buf_puts(out, one->name);
}

static void about_part(const struct rlhf__series *s, const char *name, struct rlhf__notes *out) {
    static const struct rlhf__run_note form = {
        .level = RLHF__NOTE_INFO, .id = "part", .rule = "a mean that the reward itself reports"};
    const struct rlhf__first_last e = rlhf__trend_ends(s);
    char first[40], last[40];
    rlhf__notes_add(out, &form, "%s: %s in the first phase, %s at the end.", name,
                    rlhf__figure(e.first, first), rlhf__figure(e.last, last));
}

// Adds a note if the values stayed between 0 and a twentieth of the rise of the whole reward. A
// part with negative values is a penalty, which is best at 0.
static void silent(const struct rlhf__history *h, const struct rlhf__paid *one,
                   const struct rlhf__series *s, const char *name, struct rlhf__notes *out) {
    const struct rlhf__series *all = rlhf__series_of(h->series, "objective/scores");
    const struct rlhf__first_last e = rlhf__trend_ends(all);
    const double limit = RLHF__RULE_DROWNED * (e.last - e.first);
    const struct rlhf__run_note form = {
        .level = RLHF__NOTE_WARN,
        .id = "silent_reward",
        .rule = "objective/scores rose, and this mean stayed between 0 and a twentieth of the rise",
        .change = "easier prompts, partial credit, or supervised training (sft.so) until some "
                  "responses are rewarded; nothing, if it is a penalty",
        .held = {s->n ? s->phase[0] : 0, s->n}};
    double most = 0;
    char top[40];
    if (s->n < RLHF__TREND_FEWEST || one->is_length ||
        rlhf__measure_moved(h->series, "objective/scores") <= 0)
        return;
    for (int64_t i = 0; i < s->n; i++) {
        if (!(s->value[i] >= 0) || fabs(one->weight) * s->value[i] > limit) return;
        most = fmax(most, s->value[i]);
    }
    if (most > 0)
        rlhf__notes_add(out, &form, "%s stayed near 0 (at most %s) while the reward rose.", name,
                        rlhf__figure(most, top));
    else
        rlhf__notes_add(out, &form, "%s stayed at 0 in all %lld phases while the reward rose.",
                        name, (long long)s->n);
}

void rlhf__rule_reward_parts(const struct rlhf__history *h, struct rlhf__notes *out) {
    struct rlhf__buf name = RLHF__BUF_INIT;
    for (size_t i = 0; i < h->series->n; i++) {
        const struct rlhf__series *s = &h->series->all[i];
        const int part = rlhf__reward_part(s->name, NULL, NULL);
        const struct rlhf__paid *one = owner(h, s->name, part);
        if (!one || s->n == 0 || (!part && h->facts->n_rewards < 2)) continue;
        rlhf__buf_clear(&name);
        put_name(h, one, s->name, part, &name);
        if (part) about_part(s, rlhf__buf_text(&name), out);
        silent(h, one, s, rlhf__buf_text(&name), out);
    }
    if (name.bad) out->bad = 1;
    rlhf__buf_finish(&name);
}
