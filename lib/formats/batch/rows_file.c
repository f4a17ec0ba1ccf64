// rows_file.c: see rows_file.h.
#include "batch/rows_file.h"

#include "base/file.h"
#include "base/hash.h"

#include <limits.h>
#include <string.h>

#define MAX_BYTES ((uint64_t)1 << 36)
#define HEAD      56 // bytes: magic and six u64
#define ROW       32 // four u32 and two u64
#define TOKEN     8  // an id and a log-prob
#define TAIL      4
#define FLAGS     ((uint64_t)RLHF__SHARE_PROMPTS | RLHF__DRAWN)

static const char magic[8] = {'R', 'L', 'H', 'F', 'R', 'O', 'W', 'S'};

// The numbers of the head, in their order.
enum { ROWS, TOKENS, FLAG_BITS, WORDS, FIRST, COMPUTED, HEADS };

// ---- writing ----

static void put_rows(const struct rlhf__rows *e, struct rlhf__buf *b) {
    for (uint32_t i = 0; i < e->n; i++) {
        rlhf__buf_u32le(b, (uint32_t)(e->offset[i + 1] - e->offset[i]));
        rlhf__buf_u32le(b, (uint32_t)e->prompt_len[i]);
        rlhf__buf_u32le(b, (uint32_t)e->group[i]);
        rlhf__buf_u32le(b, e->finished[i]);
        rlhf__buf_u64le(b, (uint64_t)e->source[i]);
        rlhf__buf_u64le(b, (uint64_t)e->version[i]);
    }
}

static void put_tokens(const struct rlhf__rows *e, struct rlhf__buf *b) {
    uint32_t bits;
    for (uint32_t t = 0; t < e->total; t++)
        rlhf__buf_u32le(b, (uint32_t)e->ids[t]);
    for (uint32_t t = 0; t < e->total; t++) {
        memcpy(&bits, &e->token[RLHF__LOGP_SAMPLED][t], sizeof bits);
        rlhf__buf_u32le(b, bits);
    }
}

static uint64_t support_words(const struct rlhf__rows *e) {
    return e->support ? (uint64_t)rlhf__rows_response_tokens(e, 0, e->n) * e->support_words : 0;
}

rlhf_status rlhf__rows_put(const struct rlhf__rows *e, const struct rlhf__rows_about *about,
                           struct rlhf__buf *out, struct rlhf__error *err) {
    const size_t from = out->len;
    rlhf__buf_put(out, magic, sizeof magic);
    rlhf__buf_u64le(out, e->n);
    rlhf__buf_u64le(out, e->total);
    rlhf__buf_u64le(out, e->flags & FLAGS);
    rlhf__buf_u64le(out, e->support ? e->support_words : 0);
    rlhf__buf_u64le(out, about->first);
    rlhf__buf_u64le(out, (uint64_t)about->tokens);
    put_rows(e, out);
    put_tokens(e, out);
    const uint64_t words = support_words(e);
    for (uint64_t k = 0; k < words; k++)
        rlhf__buf_u32le(out, e->support[k]);
    if (!out->bad) rlhf__buf_u32le(out, rlhf__crc32c(0, out->data + from, out->len - from));
    return rlhf__buf_ok(out, err);
}

// ---- reading ----

static uint64_t get_le(const char *p, int bytes) {
    uint64_t v = 0;
    for (int i = 0; i < bytes; i++)
        v |= (uint64_t)(uint8_t)p[i] << (8 * i);
    return v;
}

// A file in memory: its head and where its parts begin.
struct file {
    uint64_t head[HEADS];
    const char *row, *id, *logp, *support, *end;
};

// Find the parts, and check the checksum. Returns what is wrong, or NULL.
static const char *open_file(const struct rlhf__buf *b, struct file *f) {
    const char *p = rlhf__buf_text(b);
    if (b->len < HEAD + TAIL || memcmp(p, magic, sizeof magic) != 0)
        return "it does not hold sampled rows";
    for (int i = 0; i < HEADS; i++)
        f->head[i] = get_le(p + 8 + 8 * i, 8);
    const uint64_t room = b->len - HEAD - TAIL, *h = f->head;
    if (h[ROWS] > room / ROW || h[TOKENS] > room / TOKEN || h[TOKENS] > INT32_MAX ||
        ROW * h[ROWS] + TOKEN * h[TOKENS] > room || (h[FLAG_BITS] & ~FLAGS) ||
        h[WORDS] > UINT32_MAX || h[FIRST] > INT64_MAX || h[COMPUTED] > INT64_MAX)
        return "its head does not fit its length";
    if (get_le(p + b->len - TAIL, TAIL) != rlhf__crc32c(0, p, b->len - TAIL)) return "its checksum";
    f->row = p + HEAD;
    f->id = f->row + ROW * h[ROWS];
    f->logp = f->id + 4 * h[TOKENS];
    f->support = f->logp + 4 * h[TOKENS];
    f->end = p + b->len - TAIL;
    return NULL;
}

// Check the rows, and set *responses to the number of their response tokens. Returns what is wrong,
// or NULL.
static const char *check_rows(const struct file *f, const struct rlhf__rows_fit *fit,
                              uint64_t *responses) {
    uint64_t total = 0;
    *responses = 0;
    for (uint64_t i = 0; i < f->head[ROWS]; i++) {
        const char *p = f->row + ROW * i;
        const uint64_t len = get_le(p, 4), prompt = get_le(p + 4, 4);
        if (len < 1 || len > fit->n_ctx || prompt < 1 || prompt > len)
            return "a length is out of range";
        if (get_le(p + 8, 4) > INT32_MAX || get_le(p + 12, 4) > 1 || get_le(p + 24, 8) > INT64_MAX)
            return "a number of a row is out of range";
        if (get_le(p + 16, 8) >= (uint64_t)fit->prompts) return "a prompt is not one of the run's";
        total += len;
        *responses += len - prompt;
    }
    return total == f->head[TOKENS] ? NULL : "its lengths do not add up";
}

static const char *check(const struct file *f, const struct rlhf__rows_fit *fit) {
    uint64_t responses;
    const char *wrong = check_rows(f, fit, &responses);
    if (wrong) return wrong;
    const uint64_t want = fit->n_vocab_support ? rlhf_support_words(fit->n_vocab_support) : 0;
    if (f->head[WORDS] != want) return "the sets that tokens were sampled from are not the run's";
    if ((uint64_t)(f->end - f->support) != 4 * want * responses)
        return "its head does not fit its length";
    for (uint64_t t = 0; t < f->head[TOKENS]; t++)
        if (get_le(f->id + 4 * t, 4) >= (uint64_t)fit->n_vocab)
            return "a token is not of the vocabulary";
    return NULL;
}

static void take_row(const char *p, struct rlhf__rows *e, uint32_t i) {
    e->offset[i + 1] = e->offset[i] + (int32_t)get_le(p, 4);
    e->prompt_len[i] = (int32_t)get_le(p + 4, 4);
    e->group[i] = (int32_t)get_le(p + 8, 4);
    e->finished[i] = (uint8_t)get_le(p + 12, 4);
    e->source[i] = (int64_t)get_le(p + 16, 8);
    e->version[i] = (int64_t)get_le(p + 24, 8);
}

static rlhf_status take(const struct file *f, const struct rlhf__rows_fit *fit,
                        struct rlhf__rows *e, struct rlhf__error *err) {
    RLHF_TRY(rlhf__rows_init(e, (uint32_t)f->head[ROWS], (uint32_t)f->head[TOKENS], err));
    for (uint32_t i = 0; i < e->n; i++)
        take_row(f->row + (uint64_t)ROW * i, e, i);
    for (uint64_t t = 0; t < e->total; t++) {
        const uint32_t bits = (uint32_t)get_le(f->logp + 4 * t, 4);
        e->ids[t] = (int32_t)get_le(f->id + 4 * t, 4);
        memcpy(&e->token[RLHF__LOGP_SAMPLED][t], &bits, sizeof bits);
        memcpy(&e->token[RLHF__LOGP_OLD][t], &bits, sizeof bits);
    }
    e->flags = (uint32_t)f->head[FLAG_BITS] | RLHF__DRAWN;
    if (!f->head[WORDS]) return RLHF_OK;
    RLHF_TRY(rlhf__rows_add_support(e, fit->n_vocab_support, err));
    const uint64_t words = support_words(e);
    for (uint64_t k = 0; k < words; k++)
        e->support[k] = (uint32_t)get_le(f->support + 4 * k, 4);
    return RLHF_OK;
}

rlhf_status rlhf__rows_read(const char *path, const struct rlhf__rows_fit *fit,
                            struct rlhf__rows *e, struct rlhf__rows_about *about,
                            struct rlhf__error *err) {
    struct rlhf__buf b = RLHF__BUF_INIT;
    struct file f = {{0}, NULL, NULL, NULL, NULL, NULL};
    rlhf_status st = rlhf__file_read(path, MAX_BYTES, &b, err);
    const char *wrong = st == RLHF_OK ? open_file(&b, &f) : NULL;
    if (st == RLHF_OK && !wrong) wrong = check(&f, fit);
    if (wrong)
        st = rlhf__fail(err, RLHF_E_INVALID, "%s is damaged: %s", path, wrong);
    else if (st == RLHF_OK)
        st = take(&f, fit, e, err);
    if (st == RLHF_OK) *about = (struct rlhf__rows_about){f.head[FIRST], (int64_t)f.head[COMPUTED]};
    rlhf__buf_finish(&b);
    if (st != RLHF_OK) rlhf__rows_finish(e);
    return st;
}
