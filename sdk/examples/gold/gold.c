// gold.c: a reward that reads the right answer from the prompt's data row ("answer"). A response
// that contains the answer gets 1, plus `rare` times the share of responses in its group that do
// not contain the answer. A data row without an answer is refused before the first phase. Verdicts
// are reported separately from the rewards.
//
// Rows of prompts come from a file of {"text": ..., "answer": ...} lines (--prompts rows.jsonl).
#include <rlhf/reward.h>
#include <rlhf/service.h>

#include <string.h>

struct config {
    const char *key;
    double rare;
};

struct state {
    const rlhf_host *host;
    const struct config *config; // outlives the instance
    const rlhf_row_service *rows;
};

static rlhf_status create(const rlhf_host *host, const void *config, void **self) {
    const rlhf_row_service *rows = host->service(host, RLHF_SVC_ROW);
    if (!rows)
        return host->fail(host, RLHF_E_UNSUPPORTED, "this host does not offer " RLHF_SVC_ROW);
    struct state *s = host->alloc(host, sizeof *s); // zeroed
    if (!s) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    s->host = host;
    s->config = config;
    s->rows = rows;
    *self = s;
    return RLHF_OK;
}

static void destroy(void *self) {
    struct state *s = self;
    if (s) s->host->free(s->host, s);
}

static int holds(rlhf_str text, rlhf_str part) {
    for (uint64_t i = 0; i + part.len <= text.len; i++)
        if (part.len == 0 || memcmp(text.ptr + i, part.ptr, (size_t)part.len) == 0) return 1;
    return 0;
}

// Sets *right to 1 if the response contains the answer of its data row, else to 0. If a call of the
// row service fails, returns its status; the service has already reported the error.
static rlhf_status check(const struct state *s, rlhf_str meta, rlhf_str response, int *right) {
    const rlhf_row_service *rows = s->rows;
    rlhf_row *row = NULL;
    rlhf_str answer;
    RLHF_TRY(rows->open(s->host, meta, &row));
    rlhf_status st = rows->string(s->host, row, s->config->key, &answer);
    if (st >= 0) *right = holds(response, answer);
    rows->close(s->host, row);
    return st;
}

static rlhf_status score(void *self, const rlhf_reward_in *in, const rlhf_reward_out *out) {
    const struct state *s = self;
    for (uint32_t i = 0; i < in->n; i++) {
        int right = 0;
        RLHF_TRY(check(s, in->meta[i], in->response[i], &right));
        out->seq[i] = (float)right;
        out->verdict[i] = right ? RLHF_VERDICT_RIGHT : RLHF_VERDICT_WRONG;
    }
    // Rows of a group are adjacent; some may be missing.
    for (uint32_t begin = 0, end; begin < in->n; begin = end) {
        uint32_t wrong = 0;
        for (end = begin; end < in->n && in->group[end] == in->group[begin]; end++)
            wrong += out->seq[end] == 0;
        for (uint32_t i = begin; i < end; i++)
            if (out->seq[i] > 0) out->seq[i] += (float)(s->config->rare * wrong / (end - begin));
    }
    return RLHF_OK;
}

static rlhf_status check_row(void *self, const rlhf_row_in *in) {
    int right;
    return check(self, in->meta, (rlhf_str){NULL, 0}, &right);
}

static const rlhf_opt options[] = {
    RLHF_OPT_STR(struct config, key, "answer", "where the row has the answer"),
    RLHF_OPT_F64(struct config, rare, 0, 0, 10, "what being one of few is worth"),
};
static const rlhf_reward_ops ops = {.size = sizeof ops, .score = score, .check_row = check_row};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_REWARD,
    .id = "org.example.gold", // reverse DNS; must be unique
    .version = "1.0.0",
    .summary = "whether a response holds the answer of its row",
    RLHF_OPTIONS(struct config, options),
    .create = create,
    .destroy = destroy,
    .ops = &ops,
};
RLHF_DEFINE_PLUGIN(plugin)
