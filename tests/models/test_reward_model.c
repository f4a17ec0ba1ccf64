// test_reward_model.c: opens a reward model that bradley_terry.so trained. Tests its calibration on
// samples, and its scores: pooled, per token, alone and in a batch. Also opens directories that are
// not reward models.
#include "e2e.h"

#include "data/order.h"
#include "model/session.h"
#include "plugin/instance.h"
#include "service/text_services.h"
#include "weights/safetensors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_SAMPLES = 48 };

struct test {
    struct e2e *e2e;
    struct rlhf__dirs dirs;
    struct rlhf__plugins *plugins;
    struct rlhf__session session;
    struct rlhf__text_services *served;
    struct rlhf__reward_model *rm;
    struct rlhf__weights *file;
    const int32_t *ids, *offset, *prompt_len; // the samples, in the mapped file
    uint32_t n, total;
    int32_t trainable, reserved; // the mode of opening models
};

static struct test t;

static void path_of(const char *name, char out[512]) {
    snprintf(out, 512, "%s/%s", t.e2e->dir, name);
}

static rlhf_status open_model(const char *dir, int32_t longest, const struct rlhf__tokenizer *tok,
                              struct rlhf__error *err) {
    char path[512];
    path_of(dir, path);
    struct rlhf__reward_model_spec spec = {
        .dir = path, .trainable = t.trainable, .longest = longest, .policy = tok};
    return rlhf__reward_model_open(&t.session.models, &spec, &t.rm, err);
}

static const int32_t *tensor(const char *name, uint32_t *n) {
    const struct rlhf__tensor *x = rlhf__weights_find(t.file, name);
    assert_non_null(x);
    assert_int_equal(x->dtype, RLHF__TENSOR_I32);
    *n = (uint32_t)x->count;
    return (const int32_t *)(const void *)x->data;
}

// Run rm, which trained a reward model for a few steps, and a session in which it can be opened.
static int setup(void **state) {
    if (e2e_setup(state)) return -1;
    memset(&t, 0, sizeof t);
    t.e2e = *state;
    e2e_write(
        t.e2e, "pairs.jsonl",
        "{\"prompt\": \"the film\", \"chosen\": \" was good.\", \"rejected\": \" was bad\"}\n"
        "{\"prompt\": \"it\", \"responses\": [\" is dull\", \" is fun.\", \" is\"], "
        "\"best\": 1}\n"
        "{\"prompt\": \"a story\", \"chosen\": \" of the end.\", \"rejected\": \" of it\"}\n");
    int status =
        e2e_run(t.e2e,
                "--algo bradley_terry.so --policy model --data pairs.jsonl "
                "--set policy.init=random --set batch.size=2 --set run.phases=5 "
                "--set optim.lr=0.01 --set sampling.max_new_tokens=8 --set compute.dtype=f32 "
                "--set score.calibrate=%d --set run.dir=rm --set log.tensorboard=false",
                N_SAMPLES);
    if (status) fail_msg("%s", t.e2e->out);
    struct rlhf__compute_config compute = {.backend = "cpu", .dtype = RLHF__DTYPE_F32};
    struct rlhf__run_config run = {.seed = 1, .threads = 1};
    assert_int_equal(rlhf__dirs_find(&t.dirs, NULL), RLHF_OK);
    assert_int_equal(rlhf__plugins_open(&t.dirs, &t.plugins, NULL), RLHF_OK);
    assert_int_equal(
        rlhf__session_init(&t.session, &t.dirs, NULL, NULL, t.plugins, &compute, &run, NULL),
        RLHF_OK);
    assert_int_equal(rlhf__text_services_open(&t.session.models, &t.dirs, &t.served, NULL),
                     RLHF_OK);
    return 0;
}

static int teardown(void **state) {
    rlhf__weights_close(t.file);
    rlhf__reward_model_close(t.rm);
    rlhf__text_services_close(t.served);
    rlhf__session_finish(&t.session);
    rlhf__plugins_close(t.plugins);
    return e2e_teardown(state);
}

static void open_with_samples(void) {
    char path[512];
    struct rlhf__error err = {0, ""};
    if (open_model("rm/checkpoints/latest", 0, NULL, &err) != RLHF_OK) fail_msg("%s", err.text);
    path_of("rm/checkpoints/latest/state/samples.safetensors", path);
    assert_int_equal(rlhf__weights_open(path, &t.file, NULL), RLHF_OK);
    uint32_t offsets;
    t.ids = tensor("ids", &t.total);
    t.offset = tensor("offset", &offsets);
    t.prompt_len = tensor("prompt_len", &t.n);
    assert_int_equal(offsets, t.n + 1);
    assert_int_equal(t.n, N_SAMPLES);
}

static void score(uint32_t from, uint32_t to, int32_t pooling, float *seq, float *token) {
    int32_t offset[N_SAMPLES + 1], base = t.offset[from];
    for (uint32_t i = from; i <= to; i++)
        offset[i - from] = t.offset[i] - base;
    struct rlhf__error err = {0, ""};
    if (rlhf__reward_model_score(t.rm, to - from, t.ids + base, offset, t.prompt_len + from,
                                 pooling, seq, token, &err) != RLHF_OK)
        fail_msg("%s", err.text);
}

static void calibrated_on_its_samples(void **state) {
    (void)state;
    open_with_samples();
    float seq[N_SAMPLES];
    score(0, t.n, 0, seq, NULL);
    double sum = 0, square = 0;
    for (int i = 0; i < N_SAMPLES; i++)
        sum += (double)seq[i] / N_SAMPLES;
    for (int i = 0; i < N_SAMPLES; i++)
        square += ((double)seq[i] - sum) * ((double)seq[i] - sum) / N_SAMPLES;
    assert_true(fabs(sum) < 1e-5);
    assert_true(fabs(sqrt(square) - 1) < 1e-5);
    assert_true(t.rm->head.pooling == RLHF_POOL_MEAN);
    // Fitting once more finds the same numbers.
    struct rlhf__reward_head before = t.rm->head;
    int fitted = 0;
    assert_int_equal(
        rlhf__reward_model_calibrate(t.rm, t.n, t.ids, t.offset, t.prompt_len, &fitted, NULL),
        RLHF_OK);
    assert_int_equal(fitted, 1);
    assert_memory_equal(&t.rm->head, &before, sizeof before);
}

// The order of the prompts comes from a separate random stream. Samples of tokens use the stream
// "calibrate".
static void prompts_are_dealt_from_their_own_stream(void **state) {
    (void)state;
    struct rlhf__order order = {0};
    int32_t row_of[64], first[3] = {-1, -1, -1};
    open_with_samples();
    assert_int_equal(rlhf__order_init(&order, 3, 1, "calibrate:prompts", 1, NULL), RLHF_OK);
    for (uint32_t i = 0; i < t.n; i++) {
        row_of[i] = (int32_t)rlhf__order_next(&order);
        int32_t k = first[row_of[i]];
        if (k < 0) first[row_of[i]] = (int32_t)i;
        if (k < 0) continue;
        // Every sample of the same row has the same prompt.
        assert_int_equal(t.prompt_len[i], t.prompt_len[k]);
        assert_memory_equal(t.ids + t.offset[i], t.ids + t.offset[k],
                            (size_t)t.prompt_len[i] * sizeof *t.ids);
    }
    rlhf__order_finish(&order);
}

static void tokens_pool_to_sequences(void **state) {
    (void)state;
    open_with_samples();
    float mean[N_SAMPLES], last[N_SAMPLES], *token = calloc(t.total, sizeof *token);
    assert_non_null(token);
    score(0, t.n, RLHF_POOL_MEAN, mean, token);
    score(0, t.n, RLHF_POOL_LAST, last, NULL);
    for (uint32_t i = 0; i < t.n; i++) {
        int32_t begin = t.offset[i] + t.prompt_len[i], end = t.offset[i + 1];
        double sum = 0;
        assert_true(begin < end);
        for (int32_t k = t.offset[i]; k < begin; k++)
            assert_true(token[k] == 0);
        for (int32_t k = begin; k < end; k++)
            sum += (double)token[k];
        assert_true(fabs(sum / (end - begin) - (double)mean[i]) < 1e-5);
        assert_true(token[end - 1] == last[i]);
    }
    free(token);
}

static void a_row_does_not_see_the_others(void **state) {
    (void)state;
    open_with_samples();
    float all[N_SAMPLES], one;
    score(0, t.n, 0, all, NULL);
    for (uint32_t i = 0; i < t.n; i++) {
        score(i, i + 1, 0, &one, NULL);
        assert_true(one == all[i]);
    }
}

// If a row lacks a response, the row's reward is the reward of the prompt's last token.
static void a_row_without_a_response(void **state) {
    (void)state;
    open_with_samples();
    int32_t whole = t.offset[1], shorter = whole - 1, one = 1;
    const int32_t offset[2] = {0, whole}, single[2] = {0, 1};
    float want, got[2], token[64];
    assert_true(whole >= 2 && whole <= 64);
    assert_int_equal(rlhf__reward_model_score(t.rm, 1, t.ids, offset, &shorter, RLHF_POOL_LAST,
                                              &want, token, NULL),
                     RLHF_OK);
    assert_int_equal(rlhf__reward_model_score(t.rm, 1, t.ids, offset, &whole, 0, got, token, NULL),
                     RLHF_OK);
    assert_true(fabs((double)got[0] - (double)want) < 1e-5);
    for (int32_t k = 0; k < whole; k++)
        assert_true(token[k] == 0);
    assert_int_equal(rlhf__reward_model_score(t.rm, 1, t.ids, single, &one, 0, got + 1, NULL, NULL),
                     RLHF_OK);
    assert_true(isfinite(got[1]));
}

// The model reads rows as its own tokenizer would make them, whether or not the given rows have a
// leading bos.
static void a_front_of_its_own(void **state) {
    (void)state;
    open_with_samples();
    int32_t bos = rlhf__tokenizer_info(t.rm->model->tok)->bos, more[N_SAMPLES + 1], len[N_SAMPLES];
    int32_t *ids = calloc(t.total + N_SAMPLES, sizeof *ids);
    float seq[2][N_SAMPLES], *token = calloc(2 * (size_t)t.total + N_SAMPLES, sizeof *token);
    float *longer = token + t.total, plain = 0;
    assert_true(ids && token && bos >= 0);
    for (int32_t i = 0; i < N_SAMPLES; i++) {
        more[i] = t.offset[i] + i;
        len[i] = t.prompt_len[i] + 1;
        ids[more[i]] = bos;
        assert_int_not_equal(t.ids[t.offset[i]], bos);
        memcpy(ids + more[i] + 1, t.ids + t.offset[i],
               (size_t)(t.offset[i + 1] - t.offset[i]) * sizeof *ids);
    }
    more[N_SAMPLES] = t.offset[N_SAMPLES] + N_SAMPLES;
    for (int with = 0; with < 2; with++) {
        rlhf__tokenizer_set_bos(t.rm->model->tok, with);
        memset(token, 0x7f, (2 * (size_t)t.total + N_SAMPLES) * sizeof *token);
        score(0, t.n, 0, seq[0], token);
        assert_int_equal(
            rlhf__reward_model_score(t.rm, t.n, ids, more, len, 0, seq[1], longer, NULL), RLHF_OK);
        assert_memory_equal(seq[0], seq[1], sizeof seq[0]);
        for (uint32_t i = 0; i < t.n; i++) {
            assert_true(longer[more[i]] == 0);
            assert_memory_equal(token + t.offset[i], longer + more[i] + 1,
                                (size_t)(t.offset[i + 1] - t.offset[i]) * sizeof *token);
        }
        if (!with) plain = seq[0][0];
    }
    assert_true(seq[0][0] != plain); // the leading token is read
    free(ids);
    free(token);
}

static void refuse(const char *dir, int32_t longest, const struct rlhf__tokenizer *tok,
                   const char *why) {
    struct rlhf__error err = {0, ""};
    assert_true(open_model(dir, longest, tok, &err) != RLHF_OK);
    assert_null(t.rm);
    if (!strstr(err.text, why)) fail_msg("expected \"%s\" in: %s", why, err.text);
}

static void what_is_no_reward_model(void **state) {
    (void)state;
    char path[512];
    struct rlhf__tokenizer *other = NULL, *same = NULL;
    refuse("model", 0, NULL, "is not a reward model");
    refuse("nowhere", 0, NULL, "nowhere");
    refuse("rm/checkpoints/latest", 65, NULL,
           "is 64 tokens; prompts and responses of this run have up to 65");
    assert_int_equal(e2e_shell(t.e2e,
                               "cp -r model other && sed -i 's/i n/t i/' other/merges.txt && "
                               "sed -i 's/\"in\"/\"ti\"/' other/vocab.json"),
                     0);
    path_of("other", path);
    assert_int_equal(rlhf__tokenizer_open(path, &other, NULL), RLHF_OK);
    refuse("rm/checkpoints/latest", 0, other, "is not the policy's");
    path_of("model", path);
    assert_int_equal(rlhf__tokenizer_open(path, &same, NULL), RLHF_OK);
    assert_int_equal(open_model("rm/checkpoints/latest", 64, same, NULL), RLHF_OK);
    rlhf__tokenizer_close(other);
    rlhf__tokenizer_close(same);
}

// transformers wrote this directory. The reward is the logit of the last token, unchanged.
static void as_transformers_writes_it(void **state) {
    (void)state;
    assert_int_equal(
        e2e_shell(t.e2e, "cp -rL rm/checkpoints/latest hf && cat >hf/config.json <<'END'\n"
                         "{\"architectures\": [\"GPT2ForSequenceClassification\"], "
                         "\"model_type\": \"gpt2\", \"vocab_size\": 260, \"n_positions\": 64, "
                         "\"n_ctx\": 64, \"n_embd\": 32, \"n_layer\": 2, \"n_head\": 2, "
                         "\"activation_function\": \"gelu_new\", \"attn_pdrop\": 0.1, "
                         "\"layer_norm_epsilon\": 1e-05, \"problem_type\": \"regression\", "
                         "\"summary_type\": \"cls_index\", \"id2label\": {\"0\": \"LABEL_0\"}, "
                         "\"label2id\": {\"LABEL_0\": 0}, \"bos_token_id\": 259, "
                         "\"eos_token_id\": 259, \"pad_token_id\": 259, "
                         "\"transformers_version\": \"4.44.0\", \"torch_dtype\": \"float32\"}\n"
                         "END"),
        0);
    open_with_samples();
    float ours[N_SAMPLES], theirs[N_SAMPLES];
    score(0, t.n, RLHF_POOL_LAST, ours, NULL);
    struct rlhf__reward_head head = t.rm->head;
    rlhf__reward_model_close(t.rm);
    assert_int_equal(open_model("hf", 0, NULL, NULL), RLHF_OK);
    assert_true(t.rm->head.pooling == RLHF_POOL_LAST);
    assert_true(t.rm->head.gain == 1 && t.rm->head.bias == 0);
    score(0, t.n, 0, theirs, NULL);
    for (int i = 0; i < N_SAMPLES; i++)
        assert_true(fabs(head.gain * (double)theirs[i] + head.bias - (double)ours[i]) < 1e-4);
}

// A saved model can be read back. Saving needs the weights, which only a trainable model keeps.
static void written_and_read(void **state) {
    (void)state;
    t.trainable = 1;
    open_with_samples();
    float before[N_SAMPLES], after[N_SAMPLES];
    char path[512];
    score(0, t.n, 0, before, NULL);
    path_of("copy", path);
    struct rlhf__folder *dir = NULL;
    assert_int_equal(rlhf__folder_make(NULL, path, NULL, &dir, NULL), RLHF_OK);
    assert_int_equal(rlhf__reward_model_write(t.rm, dir, NULL), RLHF_OK);
    rlhf__folder_close(dir);
    rlhf__reward_model_close(t.rm);
    assert_int_equal(open_model("copy", 0, NULL, NULL), RLHF_OK);
    score(0, t.n, 0, after, NULL);
    assert_memory_equal(after, before, sizeof before);
}

// The messages of a service, received as a caller receives them.
static struct rlhf__error said;

static rlhf_status take(const rlhf_host *host, rlhf_status code, const char *msg) {
    (void)host;
    rlhf__fail(&said, code, "%s", msg);
    return code;
}

static const void *find(const rlhf_host *host, const char *id) {
    (void)host;
    return rlhf__services_find(&t.session.services, id);
}

// A reward whose create() runs on this thread.
static const rlhf_host *caller(void) {
    static const struct rlhf__plugin reward = {.desc = {.kind = RLHF_KIND_REWARD}};
    static struct rlhf__host host;
    host.api = (rlhf_host){.size = sizeof host.api, .fail = take, .service = find};
    host.instance.plugin = &reward;
    rlhf__on_call_begin(&host.on_call, "create()");
    return &host.api;
}

// Plugins that open one directory share one model.
static void shared_by_directory(void **state) {
    (void)state;
    char a[512], b[512];
    int64_t users;
    struct rlhf__reward_service *s = rlhf__text_services_reward(t.served);
    const rlhf_reward_model_service *svc =
        rlhf__services_find(&t.session.services, RLHF_SVC_REWARD_MODEL);
    rlhf_reward_model *first, *second, *third;
    rlhf_reward_model_open how = {.size = sizeof how, .path = a};
    path_of("rm/checkpoints/latest", a);
    path_of("rm/checkpoints/000005", b);
    rlhf__reward_service_trainable(s, 1);
    assert_null(rlhf__reward_service_at(s, 0, &users));
    assert_int_equal(svc->open(caller(), &how, &first), RLHF_OK);
    how.path = b;
    assert_int_equal(svc->open(caller(), &how, &second), RLHF_OK);
    assert_ptr_equal(first, second);
    struct rlhf__reward_model *rm = rlhf__reward_service_at(s, 0, &users);
    assert_non_null(rm);
    assert_int_equal(users, 2);
    assert_int_equal(rm->model->trainable, 1);
    assert_null(rlhf__reward_service_at(s, 1, NULL));
    how.path = "nowhere";
    assert_true(svc->open(caller(), &how, &third) < 0);
    assert_null(third);
    assert_true(said.code < 0);
    assert_non_null(strstr(said.text, "nowhere"));
    svc->close(caller(), first);
    assert_ptr_equal(rlhf__reward_service_at(s, 0, &users), rm);
    assert_int_equal(users, 1);
    svc->close(caller(), second);
    assert_null(rlhf__reward_service_at(s, 0, NULL));
}

// ---- out of memory ----

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);

// If this is 1, allocations of this program fail, including allocations of host objects that are
// linked into it.
static int32_t no_memory;

void *__wrap_malloc(size_t n) { return no_memory ? NULL : __real_malloc(n); }
void *__wrap_calloc(size_t n, size_t size) { return no_memory ? NULL : __real_calloc(n, size); }

// Asserts that the call ran out of memory, and that its caller got the message `text`.
static void said_of_memory(rlhf_status st, const char *text) {
    no_memory = 0;
    assert_int_equal(st, RLHF_E_NOMEM);
    assert_int_equal(said.code, RLHF_E_NOMEM);
    if (!strstr(said.text, text)) fail_msg("\"%s\" is not in \"%s\"", text, said.text);
    said = (struct rlhf__error){0, ""};
}

// If a service runs out of memory, its message names the purpose.
static void services_say_what_memory_was_for(void **state) {
    (void)state;
    char path[512], text[64];
    path_of("rm/checkpoints/latest", path);
    const struct rlhf__services *s = &t.session.services;
    const rlhf_reward_model_service *models = rlhf__services_find(s, RLHF_SVC_REWARD_MODEL);
    const rlhf_classifier_service *classifiers = rlhf__services_find(s, RLHF_SVC_CLASSIFIER);
    const rlhf_tokenizer_service *toks = rlhf__services_find(s, RLHF_SVC_TOKENIZER);
    rlhf_reward_model *m;
    rlhf_classifier *c;
    rlhf_tokenizer *tok, *other;
    const int32_t id = 1;
    const rlhf_reward_model_open model_how = {.size = sizeof model_how, .path = path};
    const rlhf_classifier_open classifier_how = {.size = sizeof classifier_how, .path = path};
    const rlhf_tokenizer_open tok_how = {.size = sizeof tok_how, .path = path};
    const rlhf_decode_in decode = {.size = sizeof decode, .n = 1, .ids = &id};
    rlhf_decode_out decoded = {.size = sizeof decoded, .utf8 = text, .cap = sizeof text};
    assert_int_equal(toks->open(caller(), &tok_how, &tok), RLHF_OK);
    no_memory = 1;
    rlhf_status st = models->open(caller(), &model_how, &m);
    said_of_memory(st, "rm/checkpoints/latest: out of memory");
    no_memory = 1;
    st = classifiers->open(caller(), &classifier_how, &c);
    said_of_memory(st, "rm/checkpoints/latest: out of memory");
    no_memory = 1;
    st = toks->open(caller(), &tok_how, &other);
    said_of_memory(st, "out of memory opening a tokenizer");
    no_memory = 1;
    st = toks->decode(caller(), tok, &decode, &decoded);
    said_of_memory(st, "out of memory for the text of 1 tokens");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(calibrated_on_its_samples, setup, teardown),
        cmocka_unit_test_setup_teardown(prompts_are_dealt_from_their_own_stream, setup, teardown),
        cmocka_unit_test_setup_teardown(tokens_pool_to_sequences, setup, teardown),
        cmocka_unit_test_setup_teardown(a_row_does_not_see_the_others, setup, teardown),
        cmocka_unit_test_setup_teardown(a_row_without_a_response, setup, teardown),
        cmocka_unit_test_setup_teardown(a_front_of_its_own, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_no_reward_model, setup, teardown),
        cmocka_unit_test_setup_teardown(as_transformers_writes_it, setup, teardown),
        cmocka_unit_test_setup_teardown(written_and_read, setup, teardown),
        cmocka_unit_test_setup_teardown(shared_by_directory, setup, teardown),
        cmocka_unit_test_setup_teardown(services_say_what_memory_was_for, setup, teardown),
    };
    return cmocka_run_group_tests_name("reward_model", tests, NULL, NULL);
}
