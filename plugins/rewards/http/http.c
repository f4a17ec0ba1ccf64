// http.c: http.so gets rewards from a service. It sends rows as JSON with POST to a URL, and reads
// the rewards from the answer.
//
// docs/rewards/http.md describes the two formats and the handling of failures. To run code, use
// exec.so or python.so.
#include "http/exchange.h"

#include "http/body.h"

#include <rlhf/log.h>
#include <rlhf/reward.h>

struct http {
    const rlhf_host *host;
    const struct rlhf__http_options *options;
    struct rlhf__http_client client;
    struct rlhf__tally tally; // metrics of the current call
};

static void http_destroy(void *self) {
    struct http *s = self;
    if (!s) return;
    rlhf__http_close(&s->client);
    s->host->free(s->host, s);
}

static rlhf_status http_open(struct http *s) {
    const struct rlhf__http_options *o = s->options;
    s->client.host = s->host;
    s->client.o = o;
    RLHF_TRY(rlhf__target_network(s->client.host));
    RLHF_TRY(rlhf__http_open(&s->client));
    rlhf_logf(s->host, RLHF_LOG_INFO, "rows go to %s, %lld in a request, %lld requests at a time",
              s->client.target.shown, (long long)o->batch, (long long)o->concurrency);
    return RLHF_OK;
}

static rlhf_status http_create(const rlhf_host *host, const void *config, void **self) {
    struct http *s = host->alloc(host, sizeof *s);
    if (!s) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    s->host = host;
    s->options = config;
    const rlhf_status st = http_open(s);
    if (st < 0) {
        http_destroy(s);
        return st;
    }
    *self = s;
    return RLHF_OK;
}

// ---- scoring ----

static void report(const struct http *s, const struct rlhf__http_exchange *x) {
    const rlhf_host *h = s->host;
    rlhf__tally_report(&s->tally, h);
    rlhf_metric_add(h, "requests", (double)x->requests.sent);
    rlhf_metric_add(h, "repeats", (double)x->requests.repeats);
    rlhf_metric_add(h, "paused", x->requests.paused);
}

// If rows got no reward, reports the reason for the first of them. Returns an error if all rows
// lack a reward, or if the host does not support failed rows.
static rlhf_status say_failures(const struct http *s, const struct rlhf__http_exchange *x,
                                int marked) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->in->n; i++)
        n += x->failed[i];
    if (!n) return RLHF_OK;
    // The message does not name the rows, because the host reports them.
    const rlhf_status st = rlhf_failf(s->host, RLHF_E_IO, "%s: %s", s->client.target.shown, x->why);
    return n < x->in->n && marked ? RLHF_OK : st;
}

static rlhf_status score(struct http *s, const rlhf_reward_in *in, const rlhf_reward_out *out,
                         uint8_t *failed) {
    struct rlhf__http_exchange x = {.client = &s->client,
                                    .in = in,
                                    .seq = out->seq,
                                    .verdict = out->verdict,
                                    .failed = failed,
                                    .tally = &s->tally};
    memset(&s->tally, 0, sizeof s->tally);
    rlhf_status st = rlhf__exchange(&x);
    if (st == RLHF_OK) report(s, &x);
    if (st == RLHF_OK) st = say_failures(s, &x, failed == out->failed);
    return st;
}

static rlhf_status http_score(void *self, const rlhf_reward_in *in, const rlhf_reward_out *out) {
    struct http *s = self;
    if (!in->n) return RLHF_OK;
    if (RLHF_HAS(rlhf_reward_out, out, failed)) return score(s, in, out, out->failed);
    uint8_t *own = s->host->alloc(s->host, in->n);
    if (!own) return s->host->fail(s->host, RLHF_E_NOMEM, "out of memory");
    const rlhf_status st = score(s, in, out, own);
    s->host->free(s->host, own);
    return st;
}

static rlhf_status http_check_row(void *self, const rlhf_row_in *in) {
    const struct http *s = self;
    return rlhf__body_check_row(s->host, s->options, in->meta);
}

// ---- options ----

static const char *http_why_unused(const rlhf_option_in *in) {
    const struct rlhf__http_options *o = in->config;
    const char *key = in->key;
    const int openrlhf = o->form == RLHF__FORM_OPENRLHF;
    if (strcmp(key, "ids") == 0 && openrlhf) return "form=openrlhf has no token ids";
    if (strcmp(key, "label") == 0 && !openrlhf)
        return "form=rows sends the whole data row, label is of form=openrlhf";
    if (strcmp(key, "ca") == 0 && o->url && strncmp(o->url, "http:", 5) == 0)
        return "the url is http, which has no certificate";
    if (strncmp(key, "backoff", 7) == 0 && o->repeats == 0 && o->patience_s <= 0)
        return "with repeats=0 and patience_s=0 no request is repeated";
    return NULL;
}

static const char *const form_names[] = {"rows", "openrlhf", NULL};
static const rlhf_opt options[] = {
    {.key = "url",
     .help = "where rows are POSTed: http:// or https://, no user or password in it",
     .type = RLHF_T_STR,
     .flags = RLHF_OPT_REQUIRED | RLHF_OPT_TRUSTED,
     .offset = offsetof(struct rlhf__http_options, url)},
    RLHF_OPT_ENUM(struct rlhf__http_options, form, RLHF__FORM_ROWS, form_names,
                  "what requests and answers look like: rows, our own; openrlhf, those of "
                  "OpenRLHF's remote reward model"),
    RLHF_OPT_I64(struct rlhf__http_options, batch, 32, 1, 65536, "rows of a request, at most"),
    RLHF_OPT_I64(struct rlhf__http_options, concurrency, 4, 1, 64,
                 "requests at a time, each on a connection that is kept"),
    RLHF_OPT_BOOL(struct rlhf__http_options, ids, 0, "send token ids too"),
    RLHF_OPT_STR(struct rlhf__http_options, label, NULL,
                 "key of the data row that is sent as its label; without it labels are \"\""),
    {.key = "header_env",
     .help = "environment variable with a header to send, \"Name: value\"; it is never shown",
     .type = RLHF_T_STR,
     .flags = RLHF_OPT_TRUSTED,
     .offset = offsetof(struct rlhf__http_options, header_env)},
    {.key = "ca",
     .help = "PEM file of the authorities that may sign the service's certificate, in place of the "
             "system's",
     .type = RLHF_T_PATH,
     .flags = RLHF_OPT_TRUSTED,
     .offset = offsetof(struct rlhf__http_options, ca)},
    RLHF_OPT_F64_ABOVE(struct rlhf__http_options, connect_timeout_s, 10, 0, 3600,
                       "seconds to connect in"),
    RLHF_OPT_F64(struct rlhf__http_options, patience_s, 600, 0, 1e7,
                 "seconds that the run waits for a service that is down or says 429"),
    RLHF_OPT_I64(struct rlhf__http_options, repeats, 3, 0, 100,
                 "how often a request is sent again that is answered with a status 5xx"),
    RLHF_OPT_F64_ABOVE(struct rlhf__http_options, backoff_s, 0.5, 0, 3600,
                       "seconds before the first of them, then twice as many each time"),
    RLHF_OPT_F64_ABOVE(struct rlhf__http_options, backoff_max_s, 60, 0, 86400,
                       "seconds between two tries, at most"),
    RLHF_OPT_I64(struct rlhf__http_options, redirects, 0, 0, 10,
                 "redirects that are followed within the url's scheme, host and port"),
    RLHF_OPT_I64(struct rlhf__http_options, max_answer_mib, 16, 1, 1024,
                 "size of an answer, at most"),
    RLHF_OPT_BOOL(struct rlhf__http_options, probe, 1,
                  "connect once at the start, so that a certificate is refused before the first "
                  "phase"),
};
static const rlhf_reward_ops ops = {
    .size = sizeof ops,
    .flags = RLHF_REWARD_ROW_ALONE | RLHF_REWARD_EXTERNAL,
    .score = http_score,
    .check_row = http_check_row,
};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_REWARD,
    .id = "org.rlhf-host.http",
    .version = RLHF_SDK_VERSION,
    .summary = "rewards of a service, by HTTP",
    .vendor = "rlhf-host",
    .license = "Apache-2.0",
    RLHF_OPTIONS(struct rlhf__http_options, options),
    .create = http_create,
    .destroy = http_destroy,
    .ops = &ops,
    .why_unused = http_why_unused,
};
RLHF_DEFINE_PLUGIN(plugin)
