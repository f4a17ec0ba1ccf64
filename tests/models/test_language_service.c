// test_language_service.c: the service "rlhf.language_model" of the host, with the default model of
// env_calc, which has a chat template and a context of 160 tokens.
#include "e2e.h"

#include "learn/pass.h"
#include "service_kit.h"
#include "tokenizer/conversation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_CTX = 160, MOST = 2048 };

struct fixture {
    struct service_kit kit;
    const rlhf_language_model_service *s;
    rlhf_language_model *lm;
    char dir[RLHF__PATH_CAP];
};

static struct fixture *f;

static void open_model(int32_t longest, int32_t slots) {
    const rlhf_language_open how = {
        .size = sizeof how, .path = f->dir, .longest = longest, .slots = slots};
    if (f->s->open(&f->kit.host, &how, &f->lm) != RLHF_OK) fail_msg("%s", f->kit.said.text);
}

static int setup(void **state) {
    (void)state;
    f = calloc(1, sizeof *f);
    if (!f || service_kit_init(&f->kit)) return -1;
    rlhf__default_model(&f->kit.dirs, "calc", f->dir);
    f->s = f->kit.host.service(&f->kit.host, RLHF_SVC_LANGUAGE_MODEL);
    return f->s ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    f->s->close(&f->kit.host, f->lm);
    const int left = service_kit_finish(&f->kit);
    free(f);
    return left;
}

static rlhf_str str(const char *text) { return (rlhf_str){text, strlen(text)}; }

static uint32_t prompt_of(const char *text, const char *messages, int32_t ids[N_CTX]) {
    rlhf_encode_out to = {.size = sizeof to, .cap = N_CTX, .ids = ids};
    const rlhf_language_prompt q = {.size = sizeof q, .text = str(text), .messages = str(messages)};
    if (f->s->prompt(&f->kit.host, f->lm, &q, &to) != RLHF_OK) fail_msg("%s", f->kit.said.text);
    assert_true(to.n <= N_CTX);
    return to.n;
}

// Returns the number of tokens of the text, of which the first `cap` are written to `ids`.
static uint32_t encode(const char *text, int32_t *ids, uint32_t cap) {
    const rlhf_encode_in q = {.size = sizeof q, .text = str(text)};
    rlhf_encode_out to = {.size = sizeof to, .cap = cap, .ids = ids};
    if (f->s->encode(&f->kit.host, f->lm, &q, &to) != RLHF_OK) fail_msg("%s", f->kit.said.text);
    return to.n;
}

// Returns the length of the text, of which the first `cap` bytes are written to `text`.
static uint64_t decode(const int32_t *ids, uint32_t n, char *text, uint64_t cap) {
    const rlhf_decode_in q = {.size = sizeof q, .n = n, .ids = ids};
    rlhf_decode_out to = {.size = sizeof to, .utf8 = text, .cap = cap};
    if (f->s->decode(&f->kit.host, f->lm, &q, &to) != RLHF_OK) fail_msg("%s", f->kit.said.text);
    return to.len;
}

// ---- texts ----

static void texts_and_messages(void **state) {
    (void)state;
    int32_t ids[N_CTX], own[N_CTX];
    char text[256];
    open_model(0, 0);
    rlhf_language_info info = {.size = sizeof info};
    assert_int_equal(f->s->info(&f->kit.host, f->lm, &info), RLHF_OK);
    assert_int_equal(info.longest, N_CTX);
    assert_int_equal(info.templated, 1);
    assert_int_equal(info.n_ends, 1);
    // Only the template writes special tokens.
    const uint32_t n =
        prompt_of("", "[{\"role\": \"user\", \"content\": \"1<|im_end|>\\n\"}]", ids);
    static const char rendered[] =
        "<|im_start|>user\n1<|im_end|>\n<|im_end|>\n<|im_start|>assistant\n";
    const uint64_t len = decode(ids, n, text, sizeof text);
    assert_int_equal(len, strlen(rendered));
    assert_memory_equal(text, rendered, len);
    uint32_t special = 0;
    for (uint32_t i = 0; i < n; i++)
        special += ids[i] == info.end[0];
    assert_int_equal(special, 1);
    // A text is not rendered.
    const uint32_t k = prompt_of("12+3", "", ids);
    assert_int_equal(k, encode("12+3", own, N_CTX));
    assert_memory_equal(ids, own, k * sizeof *ids);
    // Only `cap` ids are written, and only `cap` bytes.
    own[2] = -7;
    assert_int_equal(encode("12+3", own, 2), k);
    assert_int_equal(own[2], -7);
    assert_int_equal(encode("12+3", NULL, 0), k);
    text[2] = '!';
    assert_int_equal(decode(ids, k, text, 2), 4);
    assert_memory_equal(text, "12!", 3);
    // Ids outside of the vocabulary are skipped, and bytes that are not UTF-8 become U+FFFD.
    const int32_t odd[] = {-1, ids[0], 1 << 30};
    assert_int_equal(decode(odd, 3, text, sizeof text), 1);
    assert_int_equal(text[0], '1');
    assert_int_equal(decode(own, encode("a\xff", own, N_CTX), text, sizeof text), 4);
    assert_memory_equal(text, "a\xef\xbf\xbd", 4);
}

static void refuse_prompt(const char *text, const char *messages, const char *why) {
    rlhf_encode_out to = {.size = sizeof to};
    const rlhf_language_prompt q = {.size = sizeof q, .text = str(text), .messages = str(messages)};
    assert_int_equal(f->s->prompt(&f->kit.host, f->lm, &q, &to), RLHF_E_INVALID);
    if (!strstr(f->kit.said.text, why)) fail_msg("\"%s\" is not in \"%s\"", why, f->kit.said.text);
}

static void prompts_that_are_refused(void **state) {
    (void)state;
    open_model(0, 0);
    refuse_prompt("a", "[{\"role\": \"user\", \"content\": \"b\"}]",
                  "a text or messages, not both");
    refuse_prompt("", "[{\"role\": ", "messages is not JSON");
    refuse_prompt("", "[{\"role\": \"nobody\", \"content\": \"b\"}]", "nobody");
    refuse_prompt("", "[{\"role\": \"assistant\", \"content\": \"b\"}]", "messages");
}

// ---- scores ----

struct rows {
    uint32_t n;
    int32_t ids[MOST], offset[32], prompt_len[32];
};

static void add_row(struct rows *r, const char *prompt, const char *response) {
    const int32_t at = r->offset[r->n];
    const uint32_t k = encode(prompt, r->ids + at, MOST);
    const uint32_t n = encode(response, r->ids + at + k, MOST);
    r->prompt_len[r->n] = (int32_t)k;
    r->offset[++r->n] = at + (int32_t)(k + n);
}

static rlhf_status score(const struct rows *r, uint32_t from, uint32_t to, float *logp) {
    int32_t offset[32];
    for (uint32_t i = from; i <= to; i++)
        offset[i - from] = r->offset[i] - r->offset[from];
    const rlhf_language_rows q = {.size = sizeof q,
                                  .n = to - from,
                                  .ids = r->ids + r->offset[from],
                                  .offset = offset,
                                  .prompt_len = r->prompt_len + from};
    const rlhf_language_scores out = {.size = sizeof out, .logp = logp};
    return f->s->score(&f->kit.host, f->lm, &q, &out);
}

// The log-probs are those of a forward pass of the model. Each row has the same bits alone, with
// other rows, and with a prompt that other rows share.
static void scores_are_exact(void **state) {
    (void)state;
    static struct rows r;
    static float all[MOST], alone[MOST], direct[MOST];
    memset(&r, 0, sizeof r);
    open_model(0, 0);
    static const char *const text[][2] = {{"What is 12 + 3?", "15"},
                                          {"What is 12 + 3?", "16"},
                                          {"What is 12 - 3?", "1"},
                                          {"Say no", "no, I do not"},
                                          {"a", ""},
                                          {"What is 12 + 3?", "15"}};
    for (size_t i = 0; i < sizeof text / sizeof *text; i++)
        add_row(&r, text[i][0], text[i][1]);
    for (size_t i = 0; i < MOST; i++)
        all[i] = 77;
    assert_int_equal(score(&r, 0, r.n, all), RLHF_OK);
    struct rlhf__rows e = {0};
    assert_int_equal(rlhf__rows_init(&e, r.n, (uint32_t)r.offset[r.n], NULL), RLHF_OK);
    memcpy(e.ids, r.ids, e.total * sizeof *e.ids);
    memcpy(e.offset, r.offset, (e.n + 1) * sizeof *e.offset);
    memcpy(e.prompt_len, r.prompt_len, e.n * sizeof *e.prompt_len);
    const rlhf_dist whole = RLHF_DIST_WHOLE;
    const struct rlhf__pass_out out = {.logp = direct};
    const struct rlhf__model *m = rlhf__text_services_at(f->kit.served, 0)->model;
    assert_int_equal(rlhf__pass(m, &e, &whole, 0, &out, NULL), RLHF_OK);
    assert_memory_equal(all, direct, e.total * sizeof *all);
    for (uint32_t i = 0; i < r.n; i++) {
        const size_t at = (size_t)r.offset[i], n = (size_t)r.offset[i + 1] - at;
        assert_int_equal(score(&r, i, i + 1, alone), RLHF_OK);
        assert_memory_equal(alone, all + at, n * sizeof *all);
        for (int32_t t = 0; t < r.prompt_len[i]; t++)
            assert_true(all[at + (size_t)t] == 0);
        for (size_t t = (size_t)r.prompt_len[i]; t < n; t++)
            assert_true(all[at + t] < 0);
    }
    rlhf__rows_finish(&e);
}

static void rows_that_are_refused(void **state) {
    (void)state;
    static float logp[MOST];
    open_model(8, 0);
    static const struct {
        int32_t ids[10], len, prompt_len;
        const char *why;
    } all[] = {{{1, 2, 300}, 3, 1, "row 0 has the token 300"},
               {{1, -1, 3}, 3, 1, "row 0 has the token -1"},
               {{1, 2, 3}, 3, 0, "a prompt of 0"},
               {{1, 2, 3}, 3, 4, "a prompt of 4"},
               {{1, 2, 3}, 9, 1, "row 0 needs 9 tokens"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct rows *r = calloc(1, sizeof *r);
        assert_non_null(r);
        memcpy(r->ids, all[i].ids, sizeof all[i].ids);
        r->n = 1;
        r->offset[1] = all[i].len;
        r->prompt_len[0] = all[i].prompt_len;
        assert_int_equal(score(r, 0, 1, logp), RLHF_E_INVALID);
        if (!strstr(f->kit.said.text, all[i].why))
            fail_msg("\"%s\" is not in \"%s\"", all[i].why, f->kit.said.text);
        free(r);
    }
    const rlhf_language_open how = {.size = sizeof how, .path = f->dir, .longest = N_CTX + 1};
    rlhf_language_model *other;
    assert_int_equal(f->s->open(&f->kit.host, &how, &other), RLHF_E_INVALID);
    assert_non_null(strstr(f->kit.said.text, "reads at most 160 tokens"));
}

// ---- responses ----

enum { N_PROMPTS = 6, MAX_NEW = 12 };

struct responses {
    int32_t ids[N_PROMPTS * MAX_NEW], len[N_PROMPTS];
    uint8_t stopped[N_PROMPTS];
    float logp[N_PROMPTS * MAX_NEW];
};

static void generate(const struct rows *r, rlhf_language_request q, struct responses *out) {
    const rlhf_language_responses to = {.size = sizeof to,
                                        .ids = out->ids,
                                        .len = out->len,
                                        .stopped = out->stopped,
                                        .logp = out->logp};
    q.size = sizeof q;
    if (!q.n) q.n = r->n;
    q.ids = r->ids;
    q.offset = r->offset;
    q.max_new = MAX_NEW;
    memset(out, 85, sizeof *out);
    if (f->s->generate(&f->kit.host, f->lm, &q, &to) != RLHF_OK) fail_msg("%s", f->kit.said.text);
}

// Asserts that the log-probs of responses are those that score() computes.
static void same_logps(const struct rows *r, const struct responses *out) {
    static float logp[MOST];
    for (uint32_t i = 0; i < r->n; i++) {
        static struct rows one;
        const int32_t n = r->offset[i + 1] - r->offset[i], len = out->len[i];
        memset(&one, 0, sizeof one);
        memcpy(one.ids, r->ids + r->offset[i], (size_t)n * sizeof *one.ids);
        memcpy(one.ids + n, out->ids + i * MAX_NEW, (size_t)len * sizeof *one.ids);
        one.n = 1;
        one.offset[1] = n + len;
        one.prompt_len[0] = n;
        assert_int_equal(score(&one, 0, 1, logp), RLHF_OK);
        assert_memory_equal(logp + n, out->logp + i * MAX_NEW, (size_t)len * sizeof *logp);
    }
}

static void make_prompts(struct rows *r) {
    char text[64];
    memset(r, 0, sizeof *r);
    for (int i = 0; i < N_PROMPTS; i++) {
        snprintf(text, sizeof text, "[{\"role\": \"user\", \"content\": \"%d + %d\"}]", i + 3,
                 7 * i);
        int32_t ids[N_CTX];
        const uint32_t n = prompt_of("", text, ids);
        memcpy(r->ids + r->offset[r->n], ids, n * sizeof *ids);
        r->prompt_len[r->n] = (int32_t)n;
        r->offset[r->n + 1] = r->offset[r->n] + (int32_t)n;
        r->n++;
    }
}

// Responses do not depend on the slots. The draws depend only on the generator and on the number
// of the response.
static void responses_are_exact(void **state) {
    (void)state;
    static struct rows r;
    static struct responses a, b;
    rlhf_rng rng = {.seed = 5, .stream = 9};
    open_model(0, 1);
    make_prompts(&r);
    generate(&r, (rlhf_language_request){.temperature = 0}, &a);
    same_logps(&r, &a);
    rlhf_language_model *first = f->lm;
    open_model(0, 4);
    assert_null(rlhf__text_services_at(f->kit.served, 1)); // the objects share a model
    f->s->close(&f->kit.host, first);
    generate(&r, (rlhf_language_request){.temperature = 0}, &b);
    assert_memory_equal(&a, &b, sizeof a);
    generate(&r, (rlhf_language_request){.temperature = 1.5, .rng = &rng}, &a);
    same_logps(&r, &a);
    generate(&r, (rlhf_language_request){.temperature = 1.5, .rng = &rng}, &b);
    assert_memory_equal(&a, &b, sizeof a);
    rng.counter = 1; // response 0 is now drawn as response 1 was
    generate(&r, (rlhf_language_request){.temperature = 1.5, .rng = &rng}, &b);
    assert_int_not_equal(memcmp(a.ids, b.ids, sizeof a.ids), 0);
    for (int i = 0; i < N_PROMPTS; i++) {
        for (int32_t t = 0; t < a.len[i]; t++)
            assert_true(a.ids[i * MAX_NEW + t] >= 0);
        assert_int_equal(a.stopped[i], a.ids[i * MAX_NEW + a.len[i] - 1] == 258);
    }
}

// Response i at counter c is drawn as response 0 at counter c + i.
static void draws_are_numbered(void **state) {
    (void)state;
    static struct rows r;
    static struct responses a, b;
    rlhf_rng rng = {.seed = 5, .stream = 9};
    open_model(0, 2);
    for (int i = 0; i < 3; i++)
        add_row(&r, "[1]", "");
    const rlhf_language_request q = {
        .temperature = 2, .rng = &rng, .flags = RLHF_LANGUAGE_PAST_ENDS};
    generate(&r, q, &a);
    assert_int_not_equal(memcmp(a.ids, a.ids + 2 * MAX_NEW, MAX_NEW * sizeof *a.ids), 0);
    rng.counter = 2;
    generate(&r, q, &b);
    assert_memory_equal(b.ids, a.ids + 2 * MAX_NEW, MAX_NEW * sizeof *a.ids);
}

static void what_ends_a_response(void **state) {
    (void)state;
    static struct rows r;
    static struct responses a, b;
    open_model(0, 2);
    make_prompts(&r);
    generate(&r, (rlhf_language_request){.temperature = 0}, &a);
    assert_int_equal(a.stopped[0], 1);
    assert_true(a.len[0] > 1);
    generate(&r, (rlhf_language_request){.flags = RLHF_LANGUAGE_PAST_ENDS}, &b);
    assert_int_equal(b.stopped[0], 0);
    assert_int_equal(b.len[0], MAX_NEW);
    assert_memory_equal(a.ids, b.ids, (size_t)a.len[0] * sizeof *a.ids);
    const int32_t stop[] = {a.ids[0]};
    generate(&r, (rlhf_language_request){.stop = stop, .n_stop = 1}, &b);
    assert_int_equal(b.stopped[0], 1);
    assert_int_equal(b.len[0], 1);
    for (int t = 1; t < MAX_NEW; t++) { // after `len` tokens, there are zeros
        assert_int_equal(b.ids[t], 0);
        assert_true(b.logp[t] == 0);
    }
}

// The last of 32 stop tokens counts, even if the model has as many end tokens as a model can have.
static void every_stop_token_counts(void **state) {
    (void)state;
    static struct rows r;
    static struct responses a, b;
    int32_t stop[32];
    open_model(0, 2);
    make_prompts(&r);
    generate(&r, (rlhf_language_request){.temperature = 0}, &a);
    struct rlhf__ends *ends = &rlhf__text_services_at(f->kit.served, 0)->model->ends;
    for (ends->n = 0; ends->n < RLHF__ENDS_MAX; ends->n++) // bytes that no response has
        ends->id[ends->n] = 128 + ends->n;
    for (int i = 0; i < 31; i++)
        stop[i] = 200 + i;
    stop[31] = a.ids[0];
    generate(&r, (rlhf_language_request){.stop = stop, .n_stop = 32}, &b);
    assert_int_equal(b.stopped[0], 1);
    assert_int_equal(b.len[0], 1);
}

// Objects of one directory have separate limits.
static void limits_of_an_object(void **state) {
    (void)state;
    static float logp[MOST];
    struct rows *r = calloc(1, sizeof *r);
    int32_t ids[2], len[1];
    uint8_t stopped[1];
    assert_non_null(r);
    open_model(8, 0);
    rlhf_language_model *small = f->lm;
    open_model(0, 1);
    rlhf_language_model *large = f->lm;
    rlhf_language_info info = {.size = sizeof info};
    assert_int_equal(f->s->info(&f->kit.host, small, &info), RLHF_OK);
    assert_int_equal(info.longest, 8);
    assert_int_equal(f->s->info(&f->kit.host, large, &info), RLHF_OK);
    assert_int_equal(info.longest, N_CTX);
    r->n = 1;
    r->offset[1] = 9;
    r->prompt_len[0] = 1;
    assert_int_equal(score(r, 0, 1, logp), RLHF_OK);
    const rlhf_language_request q = {
        .size = sizeof q, .n = 1, .ids = r->ids, .offset = r->offset, .max_new = 2};
    const rlhf_language_responses to = {
        .size = sizeof to, .ids = ids, .len = len, .stopped = stopped};
    assert_int_equal(f->s->generate(&f->kit.host, large, &q, &to), RLHF_OK);
    f->lm = small;
    assert_int_equal(score(r, 0, 1, logp), RLHF_E_INVALID);
    assert_non_null(strstr(f->kit.said.text, "row 0 needs 9 tokens"));
    assert_int_equal(f->s->generate(&f->kit.host, small, &q, &to), RLHF_E_INVALID);
    assert_non_null(strstr(f->kit.said.text, "0 slots"));
    f->s->close(&f->kit.host, large);
    free(r);
}

static void null_arrays_are_refused(void **state) {
    (void)state;
    int32_t ids[4] = {1, 2}, offset[2] = {0, 2}, prompt_len[1] = {1}, len[1];
    uint8_t stopped[1];
    float logp[2];
    open_model(0, 1);
    for (int k = 0; k < 4; k++) {
        const rlhf_language_rows q = {.size = sizeof q,
                                      .n = 1,
                                      .ids = k == 0 ? NULL : ids,
                                      .offset = k == 1 ? NULL : offset,
                                      .prompt_len = k == 2 ? NULL : prompt_len};
        const rlhf_language_scores to = {.size = sizeof to, .logp = k == 3 ? NULL : logp};
        assert_int_equal(f->s->score(&f->kit.host, f->lm, &q, &to), RLHF_E_INVALID);
        assert_non_null(strstr(f->kit.said.text, "but one is NULL"));
        const rlhf_language_request g = {
            .size = sizeof g, .n = 1, .ids = ids, .offset = offset, .max_new = 2, .n_stop = k == 3};
        const rlhf_language_responses out = {.size = sizeof out,
                                             .ids = k == 0 ? NULL : ids + 2,
                                             .len = k == 1 ? NULL : len,
                                             .stopped = k == 2 ? NULL : stopped};
        f->kit.said.text[0] = 0;
        assert_int_equal(f->s->generate(&f->kit.host, f->lm, &g, &out), RLHF_E_INVALID);
        assert_non_null(strstr(f->kit.said.text, "but one is NULL"));
    }
    const rlhf_language_rows none = {.size = sizeof none};
    const rlhf_language_scores nowhere = {.size = sizeof nowhere};
    assert_int_equal(f->s->score(&f->kit.host, f->lm, &none, &nowhere), RLHF_OK); // no rows
    offset[0] = 1;
    const rlhf_language_rows q = {
        .size = sizeof q, .n = 1, .ids = ids, .offset = offset, .prompt_len = prompt_len};
    const rlhf_language_scores to = {.size = sizeof to, .logp = logp};
    assert_int_equal(f->s->score(&f->kit.host, f->lm, &q, &to), RLHF_E_INVALID);
    assert_non_null(strstr(f->kit.said.text, "offset[0] must be 0"));
}

static void requests_that_are_refused(void **state) {
    (void)state;
    static struct rows r;
    static struct responses a;
    const rlhf_language_responses to = {
        .size = sizeof to, .ids = a.ids, .len = a.len, .stopped = a.stopped};
    static const int32_t wrong[33] = {-1};
    static const struct {
        rlhf_language_request q;
        const char *why;
    } all[] = {{{.max_new = 0}, "max_new is 0"},
               {{.max_new = 200}, "row 0 needs"},
               {{.max_new = 2, .temperature = -1}, "temperature -1"},
               {{.max_new = 2, .top_p = 2}, "top_p 2"},
               {{.max_new = 2, .temperature = 1}, "needs a generator"},
               {{.max_new = 2, .flags = 2}, "flags 2"},
               {{.max_new = 2, .stop = wrong, .n_stop = 1}, "stop has the token -1"},
               {{.max_new = 2, .stop = wrong, .n_stop = 33}, "33 stop tokens"}};
    open_model(0, 0);
    make_prompts(&r);
    rlhf_language_request q = {.size = sizeof q, .n = 1, .ids = r.ids, .offset = r.offset};
    q.max_new = 2;
    assert_int_equal(f->s->generate(&f->kit.host, f->lm, &q, &to), RLHF_E_INVALID);
    assert_non_null(strstr(f->kit.said.text, "was opened with 0 slots"));
    f->s->close(&f->kit.host, f->lm);
    open_model(0, 1);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        q = all[i].q;
        q.size = sizeof q;
        q.n = 1;
        q.ids = r.ids;
        q.offset = r.offset;
        assert_int_equal(f->s->generate(&f->kit.host, f->lm, &q, &to), RLHF_E_INVALID);
        if (!strstr(f->kit.said.text, all[i].why))
            fail_msg("\"%s\" is not in \"%s\"", all[i].why, f->kit.said.text);
    }
}

// ---- memory ----

// Returns the bytes of the model's cache at the peak of its largest calls.
static uint64_t cache_of(int32_t slots) {
    struct rlhf__memory_plan *plan = NULL;
    struct rlhf__rows e = {0};
    assert_int_equal(rlhf__memory_plan_open(f->kit.session.compute->table, &plan, NULL), RLHF_OK);
    f->kit.session.models.memory_plan = plan;
    open_model(0, slots);
    const struct rlhf__served *o = rlhf__text_services_at(f->kit.served, 0);
    assert_int_equal(o->model->planned, 1);
    assert_int_equal(rlhf__rows_init(&e, 1, 100, NULL), RLHF_OK);
    e.offset[1] = 100;
    assert_int_equal(o->list->kind->largest(o, o->model, &e, NULL), RLHF_OK);
    struct rlhf__uses u = *rlhf__memory_plan_peak(plan);
    const uint32_t owner = rlhf__uses_owner(&u, "language model");
    assert_true(u.bytes[owner][RLHF__USE_PACKED] > 0);
    const uint64_t cache = u.bytes[owner][RLHF__USE_CACHE];
    rlhf__rows_finish(&e);
    f->s->close(&f->kit.host, f->lm);
    f->lm = NULL;
    f->kit.session.models.memory_plan = NULL;
    rlhf__memory_plan_close(plan);
    return cache;
}

// The memory estimate counts the cache of as many responses as a plugin announced.
static void the_cache_is_counted(void **state) {
    (void)state;
    const uint64_t one = (uint64_t)N_CTX * 3 * 2 * 32 * sizeof(float); // layers, k and v, heads
    assert_int_equal(cache_of(0), 0);
    assert_true(cache_of(1024) >= 1024 * one);
}

// The default policy has no chat template.
static void messages_need_a_template(void **state) {
    (void)state;
    const rlhf_language_open how = {.size = sizeof how, .path = "default"};
    assert_int_equal(f->s->open(&f->kit.host, &how, &f->lm), RLHF_OK);
    rlhf_language_info info = {.size = sizeof info};
    assert_int_equal(f->s->info(&f->kit.host, f->lm, &info), RLHF_OK);
    assert_int_equal(info.templated, 0);
    refuse_prompt("", "[{\"role\": \"user\", \"content\": \"b\"}]", "has no chat template");
}

// A classifier cannot be opened as a language model. After the failure, nothing is open.
static void no_language_model(void **state) {
    (void)state;
    char dir[RLHF__PATH_CAP];
    rlhf__default_model(&f->kit.dirs, "classifier", dir);
    const rlhf_language_open how = {.size = sizeof how, .path = dir};
    assert_int_equal(f->s->open(&f->kit.host, &how, &f->lm), RLHF_E_INVALID);
    assert_non_null(strstr(f->kit.said.text, "classifier"));
    assert_null(f->lm);
    assert_null(rlhf__text_services_at(f->kit.served, 0));
}

int main(void) {
#define TEST(NAME) cmocka_unit_test_setup_teardown(NAME, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(texts_and_messages),        TEST(prompts_that_are_refused),
        TEST(scores_are_exact),          TEST(rows_that_are_refused),
        TEST(responses_are_exact),       TEST(what_ends_a_response),
        TEST(requests_that_are_refused), TEST(no_language_model),
        TEST(the_cache_is_counted),      TEST(every_stop_token_counts),
        TEST(limits_of_an_object),       TEST(null_arrays_are_refused),
        TEST(messages_need_a_template),  TEST(draws_are_numbered),
    };
    return cmocka_run_group_tests_name("language_service", tests, NULL, NULL);
}
