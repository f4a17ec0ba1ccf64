// prompts.c: the prompts that an algorithm's choose_prompts() chooses from. See rlhf/test.h.
#include <rlhf/test.h>

#include <math.h>

void rlhf_test_prompts_init(struct rlhf_test_prompts *p, uint32_t n, uint32_t n_choose) {
    memset(p, 0, sizeof *p);
    if (n > RLHF_TEST_ROWS) n = RLHF_TEST_ROWS;
    p->table = (rlhf_prompts){.size = (uint32_t)sizeof p->table,
                              .n_choose = n_choose,
                              .n = n,
                              .last_score = p->last_score,
                              .seen = p->seen,
                              .meta = p->meta};
    for (uint32_t i = 0; i < n; i++)
        p->last_score[i] = NAN;
}

rlhf_status rlhf_test_choose(const rlhf_algo_ops *ops, void *self, struct rlhf_test_prompts *p,
                             int64_t *chosen) {
    for (uint32_t i = 0; i < p->table.n_choose; i++)
        chosen[i] = -1;
    rlhf_choice out = {.size = (uint32_t)sizeof out, .prompt = chosen};
    RLHF_TRY(ops->choose_prompts(self, &p->table, &out));
    for (uint32_t i = 0; i < p->table.n_choose; i++)
        if (chosen[i] < 0 || chosen[i] >= p->table.n) return RLHF_E_INTERNAL;
    for (uint32_t i = 0; i < p->table.n_choose; i++) {
        uint32_t k = 0; // if a prompt was chosen twice, it counts as used once
        while (chosen[k] != chosen[i])
            k++;
        p->seen[chosen[i]] += k == i;
    }
    p->table.phase++;
    return RLHF_OK;
}
