// eval_parts.c: see eval_parts.h.
#include "eval/eval_parts.h"

#include "verdict/reward_parts.h"

#include <math.h>
#include <stdio.h>

rlhf_status rlhf__eval_parts_open(struct rlhf__log *log, struct rlhf__metrics **out,
                                  struct rlhf__error *err) {
    return rlhf__metrics_open(NULL, -1, log, out, err);
}

struct adding {
    struct rlhf__table *table;
    struct rlhf__metrics *const *reported;
    rlhf_status st;
};

static void add(void *arg, const char *metric) {
    struct adding *a = arg;
    char name[sizeof a->table->row->name];
    rlhf_str reward, part;
    if (a->st != RLHF_OK || !rlhf__reward_part(metric, &reward, &part)) return;
    snprintf(name, sizeof name, "%.*s/%.*s", (int)reward.len, reward.ptr, (int)part.len, part.ptr);
    struct rlhf__table_row *r = rlhf__table_add(a->table, name, 4);
    if (!r) {
        a->st = RLHF_E_NOMEM;
        return;
    }
    for (uint32_t j = 0; j < 2; j++) {
        r->side[j] = (struct rlhf__estimate){NAN, NAN};
        if (a->reported[j]) rlhf__metrics_get(a->reported[j], metric, &r->side[j].mean);
    }
    r->difference.mean = r->side[0].mean - r->side[1].mean;
    a->table->parts++;
}

rlhf_status rlhf__eval_parts_add(struct rlhf__table *t, struct rlhf__metrics *const reported[2],
                                 struct rlhf__error *err) {
    struct adding a = {t, reported, RLHF_OK};
    rlhf__metrics_names(reported[0], add, &a);
    return a.st == RLHF_OK ? RLHF_OK : RLHF__NOMEM(err, "out of memory for the table");
}
