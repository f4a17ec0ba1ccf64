// http.c: rlhf-bench-http: rows and requests per second of http.so. The server, on the loopback
// interface, reads each request and gives every row the same reward.
//
//   rlhf-bench-http [ROWS] [BATCH] [CONCURRENCY]     4096, 32, 4
#include <rlhf/reward.h>
#include <rlhf/test.h>

#include "rewards/http_server.h"

#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CALLS = 10 };

// Answers every row of the request with the same reward. Every row begins with the text {"phase",
// so the number of rows is the number of times that this text occurs.
static void serve(void *context, const struct http_request *q, struct http_reply *reply) {
    size_t n = 0;
    (void)context;
    for (const char *at = q->body; (at = strstr(at, "{\"phase\"")); at++)
        n++;
    reply->body = malloc(4 * n + 3);
    if (!reply->body) return;
    char *to = reply->body;
    *to++ = '[';
    for (size_t i = 0; i < n; i++)
        to += sprintf(to, i ? ",1.5" : "1.5");
    memcpy(to, "]", 2);
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static struct rlhf_test_host host;

// Scores a batch of `rows` rows with identical texts, and returns the seconds that this takes.
static double score(const rlhf_plugin *p, void *self, uint32_t rows) {
    static const char prompt[] = "What is seventeen plus twenty-five?";
    static char response[401];
    memset(response, 'x', sizeof response - 1);
    rlhf_str *text = calloc(2 * (size_t)rows, sizeof *text);
    uint8_t *flags = calloc(3 * (size_t)rows, 1);
    float *seq = calloc(rows, sizeof *seq);
    if (!text || !flags || !seq) {
        free(text);
        free(flags);
        free(seq);
        return -1;
    }
    for (uint32_t i = 0; i < rows; i++) {
        text[i] = (rlhf_str){prompt, sizeof prompt - 1};
        text[rows + i] = (rlhf_str){response, sizeof response - 1};
    }
    const rlhf_reward_in in = {
        .size = sizeof in, .n = rows, .prompt = text, .response = text + rows, .finished = flags};
    const rlhf_reward_out out = {.size = sizeof out,
                                 .seq = seq,
                                 .verdict = flags + rows,
                                 .failed = flags + 2 * (size_t)rows};
    const rlhf_reward_ops *ops = p->ops;
    const double began = seconds();
    int ok = 1;
    for (int k = 0; k < CALLS; k++)
        ok = ok && ops->score(self, &in, &out) == RLHF_OK;
    const double took = seconds() - began;
    ok = ok && seq[rows - 1] == 1.5f;
    free(text);
    free(flags);
    free(seq);
    return ok ? took : -1;
}

int main(int argc, char **argv) {
    char exe[3072], path[4096], url[64];
    const char *const rows = argc > 1 ? argv[1] : "4096";
    const ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    struct http_server *server = http_server_open(serve, NULL);
    if (n < 0 || !server) return 1;
    exe[n] = 0;
    snprintf(path, sizeof path, "%s/../lib/rlhf/%d/rewards/http.so", dirname(exe), RLHF_ABI_MAJOR);
    const rlhf_plugin *p = rlhf_test_open(path, 0);
    _Alignas(16) unsigned char config[512];
    void *self = NULL;
    if (!p || p->config_size > sizeof config) return 1;
    rlhf_test_init(&host, 1);
    rlhf_test_config(p, config);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", http_server_port(server));
    if (!rlhf_test_set(p, config, "url", url) ||
        !rlhf_test_set(p, config, "batch", argc > 2 ? argv[2] : "32") ||
        !rlhf_test_set(p, config, "concurrency", argc > 3 ? argv[3] : "4") || atoi(rows) < 1)
        return 2;
    double took = -1;
    if (p->create(&host.table, config, &self) == RLHF_OK)
        took = score(p, self, (uint32_t)atoi(rows));
    if (took < 0) {
        fprintf(stderr, "%s\n", host.fail_text);
        return 1;
    }
    printf("http.so: %.0f rows/s, %.0f requests/s on %d connections\n", CALLS * atoi(rows) / took,
           http_server_requests(server) / took, http_server_connections(server) - 1);
    p->destroy(self);
    http_server_close(server);
    return 0;
}
