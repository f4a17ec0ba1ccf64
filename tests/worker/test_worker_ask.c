// test_worker_ask.c: the host's side of a worker's sockets. The test plays the worker with plain
// sockets.
#include "support/check.h"

#include "base/clock.h"
#include "worker/ask.h"

#include <rlhf/service.h>

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

// The functions of the host's table that tokenizers need, and a record of calls to them.
struct fixture {
    rlhf_host api; // first: service() casts back
    rlhf_tokenizer_service tokenizers;
    int32_t encoded, logged; // logged: lines
    double seconds;          // seconds that encode() accepts
    struct rlhf__worker worker;
    struct rlhf__ear ear;
    struct rlhf__batch_note note;
    int ask, call; // the worker's ends
};

static const void *service(const rlhf_host *api, const char *id) {
    const struct fixture *f = (const struct fixture *)(const void *)api;
    return strcmp(id, RLHF_SVC_TOKENIZER) == 0 ? &f->tokenizers : NULL;
}

static int32_t never(const rlhf_host *api) {
    (void)api;
    return 0;
}

static void count_line(const rlhf_host *api, int32_t level, const char *text) {
    struct fixture *f = (struct fixture *)(uintptr_t)api;
    (void)level;
    f->logged += strstr(text, "its worker has not answered for ") != NULL;
}

static rlhf_status encode(const rlhf_host *host, const rlhf_tokenizer *t, const rlhf_encode_in *in,
                          rlhf_encode_out *out) {
    struct fixture *f = (struct fixture *)(uintptr_t)host;
    const double until = rlhf__seconds() + f->seconds;
    (void)t;
    out->n = in->text.len < out->cap ? (uint32_t)in->text.len : out->cap;
    memset(out->ids, 0, out->n * sizeof *out->ids);
    f->encoded++;
    while (rlhf__seconds() < until)
        usleep(1000);
    return RLHF_OK;
}

static int setup(void **state) {
    struct fixture *f = calloc(1, sizeof *f);
    int ask[2], call[2];
    if (!f || socketpair(AF_UNIX, SOCK_STREAM, 0, ask) || socketpair(AF_UNIX, SOCK_STREAM, 0, call))
        return -1;
    f->api = (rlhf_host){
        .size = sizeof f->api, .service = service, .cancelled = never, .log = count_line};
    f->tokenizers = (rlhf_tokenizer_service){.size = sizeof f->tokenizers, .encode = encode};
    f->worker = (struct rlhf__worker){
        .noise = -1, .ask.fd = ask[0], .call.fd = call[0], .output = (char *)&f->note};
    f->ear.api = &f->api;
    f->ear.handle[0] = (struct rlhf__handle){2, f}; // a tokenizer
    f->ask = ask[1];
    f->call = call[1];
    *state = f;
    return 0;
}

static int teardown(void **state) {
    struct fixture *f = *state;
    close(f->ask);
    close(f->call);
    close(f->worker.ask.fd);
    close(f->worker.call.fd);
    rlhf__buf_finish(&f->worker.ask.in);
    rlhf__buf_finish(&f->worker.ask.out);
    rlhf__buf_finish(&f->worker.call.in);
    rlhf__buf_finish(&f->worker.call.out);
    free(f);
    return 0;
}

static void send_encode(const struct fixture *f, size_t bytes) {
    struct rlhf__buf b = RLHF__BUF_INIT;
    rlhf__wire_begin(&b, RLHF__CALL_ENCODE);
    rlhf__wire_u32(&b, 1);
    rlhf__wire_u32(&b, 1u << 30);
    rlhf__wire_u64(&b, bytes);
    void *text = rlhf__buf_grow(&b, bytes);
    assert_non_null(text);
    memset(text, 'a', bytes);
    rlhf__wire_end(&b);
    assert_int_equal(rlhf__wire_send(f->call, &b), 0);
    rlhf__buf_finish(&b);
}

static void answer(const struct fixture *f) {
    struct rlhf__buf b = RLHF__BUF_INIT;
    rlhf__wire_begin(&b, RLHF__ASK_ANSWER);
    rlhf__wire_u32(&b, 0);
    rlhf__wire_puts(&b, "");
    rlhf__wire_end(&b);
    assert_int_equal(rlhf__wire_send(f->ask, &b), 0);
    rlhf__buf_finish(&b);
}

static rlhf_status ask(struct fixture *f, double timeout_s) {
    struct rlhf__asked a = {.worker = &f->worker, .ear = &f->ear};
    rlhf__wire_begin(&a.frame, RLHF__ASK_DESTROY);
    rlhf__ear_begin(&f->ear);
    const rlhf_status st = rlhf__ask(&a, 1, timeout_s, "the limit");
    rlhf__asked_finish(&a);
    return st;
}

// The reply has four bytes per byte of text, which exceeds the socket's buffer. Other requests wait
// until the reply is read.
static void a_reply_that_nobody_reads_is_the_last(void **state) {
    struct fixture *f = *state;
    const int room = 1 << 20;
    setsockopt(f->call, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    for (int i = 0; i < 4; i++)
        send_encode(f, 40000);
    assert_true(ask(f, 0.5) < 0);
    assert_non_null(strstr(f->worker.failed.text, "longer than 0.5 s (the limit)"));
    assert_int_equal(f->logged, 1); // reported after half of the limit
    assert_in_range(f->encoded, 1, 3);
}

// Messages that come before the answer belong to the call. The time that a tokenizer takes in the
// host does not count as the worker's.
static void the_hosts_work_is_not_counted(void **state) {
    struct fixture *f = *state;
    f->seconds = 0.2;
    for (int i = 0; i < 3; i++)
        send_encode(f, 10);
    answer(f);
    assert_int_equal(ask(f, 0.3), RLHF_OK);
    assert_int_equal(f->encoded, 3);
    assert_int_equal(f->logged, 0);
}

// Frames stay in place until all of them have been taken out.
static void frames_are_not_moved(void **state) {
    struct fixture *f = *state;
    struct rlhf__channel *c = &f->worker.call;
    struct rlhf__wire in;
    const uint8_t *first = NULL;
    size_t bytes = 0;
    for (int i = 0; i < 100; i++)
        send_encode(f, 10);
    rlhf__channel_fill(c);
    for (size_t i = 0; i < 100; i++) {
        assert_int_equal(rlhf__channel_front(c, &in, &bytes), 1);
        if (!first) first = in.at;
        assert_ptr_equal(in.at, first + i * bytes);
        rlhf__channel_pop(c, bytes);
    }
    assert_int_equal(rlhf__channel_front(c, &in, &bytes), 0);
    send_encode(f, 10);
    rlhf__channel_fill(c);
    assert_int_equal(rlhf__channel_front(c, &in, &bytes), 1);
    assert_ptr_equal(in.at, first);
    c->most = 10;
    assert_int_equal(rlhf__channel_front(c, &in, &bytes), -2);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {T(a_reply_that_nobody_reads_is_the_last),
                                       T(the_hosts_work_is_not_counted), T(frames_are_not_moved)};
    return cmocka_run_group_tests_name("worker ask", tests, NULL, NULL);
}
