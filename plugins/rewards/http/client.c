// client.c: see client.h.
#include "http/client.h"

#include "process/utf8.h"

#include <rlhf/log.h>
#include <rlhf/service.h>
#include <time.h>

enum { SHOWN = 80 }; // maximal length of foreign text in a message, in bytes

double rlhf__http_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static rlhf_status no_memory(const rlhf_host *host) {
    return host->fail(host, RLHF_E_NOMEM, "out of memory");
}

// ---- one handle ----

static size_t take(char *bytes, size_t size, size_t n, void *context) {
    struct rlhf__http_slot *s = context;
    (void)size; // size is always 1
    s->too_long = n > s->answer_max - s->answer.len;
    if (s->too_long) return 0;
    rlhf__bytes_add(&s->answer, bytes, n);
    return s->answer.full ? 0 : n;
}

static int cancelled(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d) {
    const rlhf_host *host = context;
    (void)a, (void)b, (void)c, (void)d;
    return host->cancelled(host);
}

// Sets the options that all requests and the probe have in common. Returns 0 if memory runs out.
static int prepare(const struct rlhf__http_client *c, CURL *easy, char *error) {
    const struct rlhf__http_options *o = c->o;
    return curl_easy_setopt(easy, CURLOPT_URL, o->url) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, error) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                            (long)(o->connect_timeout_s * 1000) + 1) == CURLE_OK &&
           (!c->target.ca || curl_easy_setopt(easy, CURLOPT_CAINFO, c->target.ca) == CURLE_OK);
}

static rlhf_status slot_init(const struct rlhf__http_client *c, struct rlhf__http_slot *s) {
    s->body.host = s->answer.host = c->host;
    s->answer_max = (size_t)c->o->max_answer_mib << 20;
    s->easy = curl_easy_init();
    if (!s->easy || !prepare(c, s->easy, s->error)) return no_memory(c->host);
    curl_easy_setopt(s->easy, CURLOPT_POST, 1L);
    curl_easy_setopt(s->easy, CURLOPT_HTTPHEADER, c->headers);
    curl_easy_setopt(s->easy, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(s->easy, CURLOPT_WRITEDATA, s);
    curl_easy_setopt(s->easy, CURLOPT_PRIVATE, s);
    curl_easy_setopt(s->easy, CURLOPT_TIMEOUT_MS, (long)(c->timeout_s * 1000));
    if (curl_easy_setopt(s->easy, CURLOPT_USERAGENT, "rlhf-host/" RLHF_SDK_VERSION) != CURLE_OK)
        return no_memory(c->host);
    return RLHF_OK;
}

// ---- the probe ----

static int is_certificate(CURLcode code) {
    return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE ||
           code == CURLE_SSL_ISSUER_ERROR || code == CURLE_SSL_CRL_BADFILE;
}

static void certificate_text(const struct rlhf__http_client *c, const char *said, char *why) {
    const char *advice = c->o->ca       ? ""
                         : c->target.ca ? " (ca=FILE names other authorities than the system's)"
                                        : " (this system has no file of authorities; install the "
                                          "package ca-certificates, or pass ca=FILE)";
    snprintf(why, RLHF__WHY, "the certificate of %s is refused: %.250s%s", c->target.origin, said,
             advice);
}

// Connects to the service and does the TLS handshake, without sending a request. A service that
// does not answer is accepted, because it may answer later. A wrong certificate is an error,
// because waiting does not help.
static rlhf_status probe(const struct rlhf__http_client *c) {
    char error[CURL_ERROR_SIZE] = "", why[RLHF__WHY];
    CURL *easy = curl_easy_init();
    if (!easy || !prepare(c, easy, error)) {
        curl_easy_cleanup(easy);
        return no_memory(c->host);
    }
    curl_easy_setopt(easy, CURLOPT_CONNECT_ONLY, 1L);
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, cancelled);
    curl_easy_setopt(easy, CURLOPT_XFERINFODATA, c->host);
    const CURLcode code = curl_easy_perform(easy);
    curl_easy_cleanup(easy);
    const char *said = *error ? error : curl_easy_strerror(code);
    if (code == CURLE_OUT_OF_MEMORY) return no_memory(c->host);
    if (c->host->cancelled(c->host)) return RLHF_E_CANCELLED;
    if (is_certificate(code)) {
        certificate_text(c, said, why);
        return c->host->fail(c->host, RLHF_E_INVALID, why);
    }
    if (code != CURLE_OK)
        rlhf_logf(c->host, RLHF_LOG_WARN, "%s does not answer yet: %.200s", c->target.shown, said);
    return RLHF_OK;
}

// ---- the pool ----

static double allowed_seconds(const rlhf_host *host) {
    const rlhf_limits *limits = host->service(host, RLHF_SVC_LIMITS);
    return limits ? limits->timeout_s : 300;
}

rlhf_status rlhf__http_open(struct rlhf__http_client *c) {
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return c->host->fail(c->host, RLHF_E_INTERNAL, "libcurl does not start");
    c->started = 1;
    c->host->rng(c->host, "backoff", &c->jitter);
    RLHF_TRY(rlhf__target_init(&c->target, c->host, c->o, &c->headers));
    c->timeout_s = allowed_seconds(c->host);
    c->multi = curl_multi_init();
    if (!c->multi) return no_memory(c->host);
    const uint32_t n = (uint32_t)c->o->concurrency;
    curl_multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, (long)n);
    curl_multi_setopt(c->multi, CURLMOPT_MAX_HOST_CONNECTIONS, (long)n);
    c->slot = c->host->alloc(c->host, n * sizeof *c->slot);
    if (!c->slot) return no_memory(c->host);
    for (; c->n_slots < n; c->n_slots++)
        RLHF_TRY(slot_init(c, &c->slot[c->n_slots]));
    return c->o->probe ? probe(c) : RLHF_OK;
}

static void slot_finish(struct rlhf__http_slot *s) {
    curl_easy_cleanup(s->easy);
    rlhf__bytes_finish(&s->body);
    rlhf__bytes_finish(&s->answer);
}

void rlhf__http_close(struct rlhf__http_client *c) {
    if (!c->started) return;
    rlhf__http_drop(c);
    for (uint32_t i = 0; c->slot && i < (uint32_t)c->o->concurrency; i++)
        slot_finish(&c->slot[i]); // a slot whose initialization failed is partly zero
    if (c->slot) c->host->free(c->host, c->slot);
    curl_multi_cleanup(c->multi);
    curl_slist_free_all(c->headers);
    rlhf__target_finish(&c->target);
    curl_global_cleanup();
}

void rlhf__http_drop(struct rlhf__http_client *c) {
    for (uint32_t i = 0; i < c->n_slots; i++) {
        if (c->slot[i].flying) curl_multi_remove_handle(c->multi, c->slot[i].easy);
        c->slot[i].flying = 0;
    }
    c->n_flying = 0;
}

void rlhf__http_wait(struct rlhf__http_client *c, int ms) {
    int running;
    curl_multi_perform(c->multi, &running);
    if (ms > 0 && (uint32_t)running == c->n_flying) curl_multi_poll(c->multi, NULL, 0, ms, NULL);
}

// ---- requests ----

static rlhf_status launch(struct rlhf__http_client *c, struct rlhf__http_slot *s, const char *url) {
    s->answer.len = 0;
    s->answer.full = 0;
    s->too_long = 0;
    s->error[0] = 0;
    if (curl_easy_setopt(s->easy, CURLOPT_URL, url) != CURLE_OK) return no_memory(c->host);
    const CURLMcode code = curl_multi_add_handle(c->multi, s->easy);
    if (code == CURLM_OUT_OF_MEMORY) return no_memory(c->host);
    if (code != CURLM_OK)
        return rlhf_failf(c->host, RLHF_E_INTERNAL, "libcurl refuses a request: %s",
                          curl_multi_strerror(code));
    s->flying = 1;
    c->n_flying++;
    return RLHF_OK;
}

rlhf_status rlhf__http_send(struct rlhf__http_client *c, struct rlhf__http_slot *s) {
    curl_easy_setopt(s->easy, CURLOPT_POSTFIELDS, s->body.data);
    curl_easy_setopt(s->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)s->body.len);
    // libcurl itself repeats a request if a connection that it has used before turns out to be dead
    curl_easy_setopt(s->easy, CURLOPT_FRESH_CONNECT, (long)(c->once != 0));
    s->hops = 0;
    s->began = rlhf__http_now();
    return launch(c, s, c->o->url);
}

// Follow a redirect if that is allowed. The slot is then in flight again.
static enum rlhf__http_end redirect(struct rlhf__http_client *c, struct rlhf__http_slot *s,
                                    long status, char *why) {
    char *to = NULL, next[4096], shown[4 * SHOWN];
    curl_easy_getinfo(s->easy, CURLINFO_REDIRECT_URL, &to);
    const int keeps = status == 301 || status == 302 || status == 307 || status == 308;
    if (!to || !keeps) {
        snprintf(why, RLHF__WHY,
                 "it answered with status %ld, which is not a valid answer to a POST", status);
        return RLHF__HTTP_REFUSED;
    }
    const size_t end = strcspn(to, "?#"); // leave out the query, which may contain a key
    rlhf__utf8_shown(to, end, shown, sizeof shown);
    if (s->hops >= c->o->redirects) {
        snprintf(why, RLHF__WHY, "it redirects to \"%s\" with status %ld, and redirects=%lld",
                 shown, status, (long long)c->o->redirects);
        return RLHF__HTTP_REFUSED;
    }
    if (!rlhf__target_same_origin(&c->target, to) || strlen(to) >= sizeof next) {
        snprintf(
            why, RLHF__WHY,
            "it redirects to \"%s\": only redirects within %s are followed, name the other place "
            "in url",
            shown, c->target.origin);
        return RLHF__HTTP_REFUSED;
    }
    memcpy(next, to, strlen(to) + 1);
    s->hops++;
    if (launch(c, s, next) == RLHF_OK) return RLHF__HTTP_ONWARD;
    snprintf(why, RLHF__WHY, "out of memory");
    return RLHF__HTTP_REFUSED;
}

// Evaluates the status of an answer that has arrived.
static enum rlhf__http_end judge(struct rlhf__http_client *c, struct rlhf__http_slot *s, char *why,
                                 double *retry_after) {
    long status = 0;
    curl_off_t wait = 0;
    char shown[SHOWN];
    curl_easy_getinfo(s->easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(s->easy, CURLINFO_RETRY_AFTER, &wait);
    *retry_after = (double)wait;
    if (status >= 200 && status < 300) return RLHF__HTTP_ANSWERED;
    if (status >= 300 && status < 400) return redirect(c, s, status, why);
    const char *hint = (status == 401 || status == 403) && !c->o->header_env
                           ? " (header_env names a variable with a header)"
                           : "";
    if (s->answer.len)
        snprintf(why, RLHF__WHY, "it answered with status %ld%s: \"%s\"", status, hint,
                 rlhf__utf8_shown(s->answer.data, s->answer.len, shown, sizeof shown));
    else
        snprintf(why, RLHF__WHY, "it answered with status %ld%s and nothing more", status, hint);
    if (c->once && status >= 500 && status != 503) return RLHF__HTTP_REFUSED;
    if (status == 429 || status == 502 || status == 503 || status == 504) return RLHF__HTTP_DOWN;
    return status >= 500 ? RLHF__HTTP_ERROR : RLHF__HTTP_REFUSED;
}

// Evaluates a request whose answer is missing or incomplete.
static enum rlhf__http_end broken(const struct rlhf__http_client *c,
                                  const struct rlhf__http_slot *s, CURLcode code, char *why) {
    const char *said = *s->error ? s->error : curl_easy_strerror(code);
    curl_off_t sent = 0;
    curl_easy_getinfo(s->easy, CURLINFO_PRETRANSFER_TIME_T, &sent);
    if (s->too_long) {
        snprintf(why, RLHF__WHY, "its answer is longer than max_answer_mib=%lld",
                 (long long)c->o->max_answer_mib);
        return RLHF__HTTP_REFUSED;
    }
    if (s->answer.full || code == CURLE_OUT_OF_MEMORY) {
        snprintf(why, RLHF__WHY, "there is not enough memory for its answer");
        return RLHF__HTTP_REFUSED;
    }
    if (code == CURLE_OPERATION_TIMEDOUT && sent > 0) {
        snprintf(why, RLHF__WHY, "it did not answer within rewards.timeout_s=%g", c->timeout_s);
        return RLHF__HTTP_REFUSED;
    }
    if (is_certificate(code)) {
        certificate_text(c, said, why);
        return RLHF__HTTP_REFUSED;
    }
    rlhf__utf8_shown(said, strlen(said), why, 4 * SHOWN);
    return c->once && sent > 0 ? RLHF__HTTP_REFUSED : RLHF__HTTP_DOWN;
}

struct rlhf__http_slot *rlhf__http_next(struct rlhf__http_client *c, enum rlhf__http_end *end,
                                        char *why, double *retry_after) {
    int left;
    CURLMsg *m;
    *why = 0;
    *retry_after = 0;
    do
        m = curl_multi_info_read(c->multi, &left);
    while (m && m->msg != CURLMSG_DONE);
    if (!m) return NULL;
    const CURLcode code = m->data.result;
    struct rlhf__http_slot *s = NULL;
    curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &s);
    curl_multi_remove_handle(c->multi, s->easy);
    s->flying = 0;
    c->n_flying--;
    *end = code == CURLE_OK ? judge(c, s, why, retry_after) : broken(c, s, code, why);
    return s;
}
