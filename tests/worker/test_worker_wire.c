// test_worker_wire.c: the host does not trust messages of a worker. It refuses truncated or invalid
// frames and descriptions. A valid batch is read back unchanged.
#include "support/check.h"

#include "wire/batch.h"
#include "wire/describe.h"

#include <rlhf/draft/program.h>

#include <stdlib.h>

static void a_frame_has_all_its_bytes(void **state) {
    struct rlhf__buf b = RLHF__BUF_INIT;
    struct rlhf__wire in;
    size_t bytes;
    (void)state;
    rlhf__wire_begin(&b, 7);
    rlhf__wire_u32(&b, 5);
    rlhf__wire_f64(&b, -0.25);
    rlhf__wire_puts(&b, "text");
    rlhf__wire_end(&b);
    const size_t whole = b.len;
    for (b.len = 0; b.len < whole; b.len++)
        assert_int_equal(rlhf__wire_front(&b, 0, RLHF__WIRE_MAX, &in, &bytes), 0);
    assert_int_equal(rlhf__wire_front(&b, 0, RLHF__WIRE_MAX, &in, &bytes), 1);
    assert_int_equal(bytes, whole);
    assert_int_equal(in.kind, 7);
    assert_int_equal(rlhf__wire_get_u32(&in), 5);
    assert_true(rlhf__wire_get_f64(&in) == -0.25);
    const rlhf_str s = rlhf__wire_get_text(&in);
    assert_int_equal(s.len, 4);
    assert_memory_equal(s.ptr, "text", 4);
    assert_int_equal(rlhf__wire_get_u32(&in), 0); // the input is used up
    assert_int_equal(in.bad, 1);
    b.data[15] = 1; // an invalid length
    assert_int_equal(rlhf__wire_front(&b, 0, RLHF__WIRE_MAX, &in, &bytes), -1);
    rlhf__buf_finish(&b);
}

static void a_text_is_in_its_frame(void **state) {
    struct rlhf__buf b = RLHF__BUF_INIT;
    struct rlhf__wire in;
    size_t bytes, n;
    (void)state;
    rlhf__wire_begin(&b, 1);
    rlhf__wire_u64(&b, UINT64_MAX);
    rlhf__wire_end(&b);
    assert_int_equal(rlhf__wire_front(&b, 0, RLHF__WIRE_MAX, &in, &bytes), 1);
    assert_int_equal(rlhf__wire_get_text(&in).len, 0);
    assert_int_equal(in.bad, 1);
    rlhf__wire_begin(&b, 1);
    rlhf__wire_text(&b, "12345", 5);
    rlhf__wire_end(&b);
    assert_int_equal(rlhf__wire_front(&b, 0, RLHF__WIRE_MAX, &in, &bytes), 1);
    rlhf__wire_get_items(&in, 4, &n);
    assert_int_equal(n, 0);
    assert_int_equal(in.bad, 1);
    rlhf__buf_finish(&b);
}

// ---- batches ----

struct rows {
    rlhf_str prompt[3], response[3], meta[3];
    int32_t ids[6], offset[4], prompt_len[3], group[3];
    uint8_t finished[3];
    int64_t source[3];
    float logp[6];
    int32_t turn[6];
    rlhf_str messages[3];
    uint8_t end[3];
    rlhf_reward_in in;
};

static void rows_init(struct rows *r) {
    *r = (struct rows){.prompt = {{"ab", 2}, {"ab", 2}, {"c", 1}},
                       .response = {{"x", 1}, {"", 0}, {"long text", 9}},
                       .meta = {{NULL, 0}, {"{}", 2}, {NULL, 0}},
                       .ids = {1, 2, 3, 4, 5, 6},
                       .offset = {0, 2, 5, 6},
                       .prompt_len = {1, 2, 1},
                       .group = {4, 4, 9},
                       .finished = {1, 0, 1},
                       .source = {7, 7, 1ll << 40},
                       .logp = {0, -1, 0, 0, -2, -3},
                       .turn = {-1, 0, -1, -1, 0, 1},
                       .messages = {{"[]", 2}, {"[1]", 3}, {"[12]", 4}},
                       .end = {1, 2, 5}};
    r->in = (rlhf_reward_in){.size = sizeof r->in,
                             .n = 3,
                             .phase = 6,
                             .prompt = r->prompt,
                             .response = r->response,
                             .meta = r->meta,
                             .source = r->source,
                             .group = r->group,
                             .finished = r->finished,
                             .prompt_len = r->prompt_len,
                             .ids = r->ids,
                             .offset = r->offset,
                             .logp_sampled = r->logp};
}

static void a_batch_is_read_as_it_was_put(void **state) {
    struct rows r;
    rlhf_reward_in got;
    rlhf_str *texts;
    int has_token;
    (void)state;
    rows_init(&r);
    const uint64_t bytes = rlhf__batch_bytes(&r.in, 1, 3);
    void *room = calloc(1, (size_t)bytes);
    assert_non_null(room);
    rlhf__batch_put(&r.in, 1, 3, 1, room);
    assert_int_equal(rlhf__batch_get(room, bytes, &got, &has_token, &texts), 0);
    assert_int_equal(got.n, 2);
    assert_int_equal(got.phase, 6);
    assert_int_equal(has_token, 1);
    assert_int_equal(got.offset[0], 0);
    assert_int_equal(got.offset[1], 3);
    assert_int_equal(got.offset[2], 4);
    assert_int_equal(got.ids[0], 3);
    assert_int_equal(got.group[1], 9);
    assert_int_equal(got.finished[1], 1);
    assert_true(got.source[0] == 7 && got.source[1] == 1ll << 40);
    assert_true(got.logp_sampled[2] == -2 && got.logp_sampled[3] == -3);
    assert_null(got.logp_ref);
    assert_true(!got.turn && !got.messages && !got.end);
    assert_int_equal(got.prompt[0].len, 2);
    assert_memory_equal(got.response[1].ptr, "long text", 9);
    assert_memory_equal(got.meta[0].ptr, "{}", 2);
    free(texts);
    // If the batch is truncated at any byte, it is refused.
    for (uint64_t n = 0; n < bytes; n++)
        assert_int_equal(rlhf__batch_get(room, n, &got, &has_token, &texts), -1);
    free(room);
}

// If a reward knows about turns, it also gets them in a worker.
static void a_batch_of_several_turns(void **state) {
    struct rows r;
    rlhf_reward_in got;
    rlhf_str *texts;
    int has_token;
    (void)state;
    rows_init(&r);
    r.in.turn = r.turn;
    r.in.messages = r.messages;
    r.in.end = r.end;
    const uint64_t bytes = rlhf__batch_bytes(&r.in, 1, 3);
    void *room = calloc(1, (size_t)bytes);
    assert_non_null(room);
    rlhf__batch_put(&r.in, 1, 3, 0, room);
    assert_int_equal(rlhf__batch_get(room, bytes, &got, &has_token, &texts), 0);
    assert_memory_equal(got.turn, r.turn + 2, 4 * sizeof *r.turn);
    assert_true(got.end[0] == 2 && got.end[1] == 5);
    assert_int_equal(got.messages[0].len, 3);
    assert_memory_equal(got.messages[1].ptr, "[12]", 4);
    assert_memory_equal(got.meta[0].ptr, "{}", 2);
    free(texts);
    for (uint64_t n = 0; n < bytes; n++)
        assert_int_equal(rlhf__batch_get(room, n, &got, &has_token, &texts), -1);
    free(room);
}

static void arrays_end_where_their_blocks_do(void **state) {
    struct rlhf__out_places p;
    (void)state;
    rlhf__out_places(3, 70000, 1, &p);
    for (int i = 0; i < RLHF__OUTS; i++) {
        assert_int_equal(p.block[i] % 65536, 0);
        assert_int_equal(p.at[i] + p.bytes[i], p.block[i + 1]);
        assert_true(p.at[i] >= p.block[i]);
    }
    assert_int_equal(p.bytes[RLHF__OUT_TOKEN], 280000);
}

// ---- descriptions ----

static const char *const names[] = {"one", "two", NULL};
static const char *const defaults[] = {"two", NULL};
static const rlhf_opt opts[] = {
    {.key = "gain", .help = "a number", .type = RLHF_T_F64, .f_def = 0.5, .f_max = 1},
    {.key = "way", .help = "a way", .type = RLHF_T_ENUM, .offset = 8, .choices = names},
    {.key = "text", .type = RLHF_T_STR, .offset = 16, .s_def = "x"},
    {.key = "any", .type = RLHF_T_LIST, .offset = 24},
    {.key = "some", .type = RLHF_T_LIST, .offset = 32, .choices = names, .l_def = defaults},
    {.key = "layers", .type = RLHF_T_I64_LIST, .offset = 40, .i_max = 9}};

static const void *extension(void *self, const char *id) {
    static const rlhf_program_use programs = {sizeof programs, 0};
    return !self && strcmp(id, RLHF_EXT_PROGRAM) == 0 ? &programs : NULL;
}

static void put(struct rlhf__buf *b) {
    struct rlhf__plugin p = {.desc = {.id = "org.example.x",
                                      .version = "1",
                                      .summary = "sums",
                                      .license = "MIT",
                                      .state_version = 3,
                                      .extension = extension},
                             .table = {opts, 6, sizeof *opts}};
    p.ops.reward.flags = RLHF_REWARD_PER_TOKEN;
    rlhf__buf_clear(b);
    rlhf__description_put(&p, b);
}

static void a_description_is_read_as_it_was_put(void **state) {
    struct rlhf__buf b = RLHF__BUF_INIT;
    struct rlhf__description d;
    struct rlhf__error err = {0, ""};
    (void)state;
    put(&b);
    struct rlhf__wire in = {(const uint8_t *)b.data, (const uint8_t *)b.data + b.len, 0, 0};
    assert_int_equal(rlhf__description_get(&in, &d, &err), RLHF_OK);
    assert_string_equal(d.desc.id, "org.example.x");
    assert_int_equal(d.desc.state_version, 3);
    assert_string_equal(d.desc.license, "MIT");
    assert_null(d.desc.url);
    assert_int_equal(d.has, RLHF__DESCRIBED_PROGRAM);
    assert_int_equal(d.desc.n_opts, 6);
    assert_true(d.opts[5].type == RLHF_T_I64_LIST && d.opts[5].i_max == 9);
    assert_true(d.opts[5].offset + sizeof(rlhf_i64_list) <= d.desc.config_size);
    assert_int_equal(d.ops_flags, RLHF_REWARD_PER_TOKEN);
    assert_string_equal(d.opts[1].choices[1], "two");
    assert_null(d.opts[1].choices[2]);
    assert_null(d.opts[2].help);
    assert_true(d.opts[0].f_def == 0.5);
    assert_true(!d.opts[3].choices && !d.opts[3].l_def);
    assert_string_equal(d.opts[4].choices[0], "one");
    assert_string_equal(d.opts[4].l_def[0], "two");
    assert_null(d.opts[4].l_def[1]);
    rlhf__description_finish(&d);
    rlhf__buf_finish(&b);
}

// A description that is truncated at any byte is refused. A description in which a byte is changed
// is refused or read, and sanitizers find no error.
static void a_bad_description_is_refused(void **state) {
    struct rlhf__buf b = RLHF__BUF_INIT;
    struct rlhf__description d;
    struct rlhf__error err = {0, ""};
    (void)state;
    put(&b);
    for (size_t n = 0; n < b.len; n++) {
        struct rlhf__wire in = {(const uint8_t *)b.data, (const uint8_t *)b.data + n, 0, 0};
        assert_int_equal(rlhf__description_get(&in, &d, &err), RLHF_E_UNSUPPORTED);
        rlhf__description_finish(&d);
    }
    for (size_t n = 0; n < b.len; n++) {
        b.data[n] = (char)~b.data[n];
        struct rlhf__wire in = {(const uint8_t *)b.data, (const uint8_t *)b.data + b.len, 0, 0};
        const rlhf_status st = rlhf__description_get(&in, &d, &err);
        assert_true(st == RLHF_OK || st == RLHF_E_UNSUPPORTED);
        rlhf__description_finish(&d);
        b.data[n] = (char)~b.data[n];
    }
    rlhf__buf_finish(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_frame_has_all_its_bytes),
        cmocka_unit_test(a_text_is_in_its_frame),
        cmocka_unit_test(a_batch_is_read_as_it_was_put),
        cmocka_unit_test(a_batch_of_several_turns),
        cmocka_unit_test(arrays_end_where_their_blocks_do),
        cmocka_unit_test(a_description_is_read_as_it_was_put),
        cmocka_unit_test(a_bad_description_is_refused),
    };
    return cmocka_run_group_tests_name("worker wire", tests, NULL, NULL);
}
