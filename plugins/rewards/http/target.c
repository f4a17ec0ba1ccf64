// target.c: see target.h.
#include "http/target.h"

#include "http/certificates.h"

#include <errno.h>
#include <rlhf/log.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

static rlhf_status no_memory(const rlhf_host *host) {
    return host->fail(host, RLHF_E_NOMEM, "out of memory");
}

// ---- the URL ----

// Checks the form of the URL before libcurl parses it, because libcurl's parser is lenient: it
// finds a host in http:///path and accepts any scheme. Messages may quote the URL only after this
// function has found no password in it.
static rlhf_status check_form(const rlhf_host *host, const char *url) {
    const char *sep = strstr(url, "://");
    const size_t scheme = sep ? (size_t)(sep - url) : 0;
    const int plain = scheme == 4 && strncasecmp(url, "http", 4) == 0;
    const int tls = scheme == 5 && strncasecmp(url, "https", 5) == 0;
    if (!plain && !tls)
        return host->fail(host, RLHF_E_INVALID,
                          "url does not begin with http:// or https://, which are allowed");
    const char *authority = sep + 3;
    const size_t len = strcspn(authority, "/?#\\");
    if (memchr(authority, '@', len))
        return host->fail(host, RLHF_E_INVALID,
                          "url has a user or a password in it, which the run's files would show: "
                          "put an Authorization header into an environment variable, and its name "
                          "into header_env");
    if (len == 0 || authority[0] == ':')
        return host->fail(host, RLHF_E_INVALID, "url has no host; expected https://HOST/PATH");
    return RLHF_OK;
}

// Returns a part of a URL, to be freed with curl_free. Returns "" if the URL lacks the part, and
// NULL if memory runs out or the part cannot be read.
static char *part(CURLU *url, CURLUPart what, unsigned flags) {
    char *text = NULL;
    const CURLUcode code = curl_url_get(url, what, &text, flags);
    if (code == CURLUE_OK) return text;
    return NULL;
}

// Returns scheme://host:port of a parsed URL, to be freed with free. Returns NULL if memory runs
// out or a part cannot be read.
static char *origin_of(CURLU *url) {
    char *scheme = part(url, CURLUPART_SCHEME, 0), *name = part(url, CURLUPART_HOST, 0);
    char *port = part(url, CURLUPART_PORT, CURLU_DEFAULT_PORT), *all = NULL;
    if (scheme && name && port) {
        const size_t size = strlen(scheme) + strlen(name) + strlen(port) + 5;
        all = malloc(size);
        if (all) snprintf(all, size, "%s://%s:%s", scheme, name, port);
    }
    curl_free(scheme);
    curl_free(name);
    curl_free(port);
    for (char *c = all; c && *c; c++)
        if (*c >= 'A' && *c <= 'Z') *c = (char)(*c - 'A' + 'a');
    return all;
}

// Sets t->shown to the URL without its query and fragment, because these may contain a key.
static void fill_shown(struct rlhf__target *t, const char *path) {
    size_t at = (size_t)snprintf(t->shown, sizeof t->shown, "%.150s", t->origin);
    for (; *path && at + 4 < sizeof t->shown; path++)
        t->shown[at++] = *path > ' ' && *path < 0x7f ? *path : '?';
    t->shown[at] = 0;
}

static rlhf_status parse(struct rlhf__target *t, const rlhf_host *host, const char *url) {
    t->url = curl_url();
    if (!t->url) return no_memory(host);
    const CURLUcode code = curl_url_set(t->url, CURLUPART_URL, url, 0);
    if (code == CURLUE_OUT_OF_MEMORY) return no_memory(host);
    if (code != CURLUE_OK)
        return rlhf_failf(host, RLHF_E_INVALID, "url is not valid: %s", curl_url_strerror(code));
    t->origin = origin_of(t->url);
    char *path = part(t->url, CURLUPART_PATH, 0), *name = part(t->url, CURLUPART_HOST, 0);
    if (t->origin && path && name) {
        fill_shown(t, path);
        t->tls = strncmp(t->origin, "https:", 6) == 0;
        t->loopback = strcmp(name, "localhost") == 0 || strncmp(name, "127.", 4) == 0 ||
                      strcmp(name, "[::1]") == 0;
    }
    const int ok = t->origin && path && name;
    curl_free(path);
    curl_free(name);
    return ok ? RLHF_OK : no_memory(host);
}

int rlhf__target_same_origin(const struct rlhf__target *t, const char *url) {
    CURLU *other = curl_url();
    char *origin = NULL;
    if (other && curl_url_set(other, CURLUPART_URL, url, 0) == CURLUE_OK) origin = origin_of(other);
    const int same = origin && strcmp(origin, t->origin) == 0;
    free(origin);
    curl_url_cleanup(other);
    return same;
}

// ---- headers ----

// Returns 1 if the text is one line "Name: value" whose name is a token (RFC 9110) and whose value
// is free of control characters.
static int is_header(const char *text) {
    static const char token[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const size_t name = strspn(text, token);
    if (!name || text[name] != ':') return 0;
    const char *value = text + name + 1;
    value += strspn(value, " \t");
    if (!*value) return 0;
    for (; *value; value++)
        if ((unsigned char)*value < ' ' && *value != '\t') return 0;
    return 1;
}

static rlhf_status append(struct curl_slist **headers, const rlhf_host *host, const char *text) {
    struct curl_slist *more = curl_slist_append(*headers, text);
    if (!more) return no_memory(host);
    *headers = more;
    return RLHF_OK;
}

static rlhf_status secret_header(struct rlhf__target *t, const rlhf_host *host, const char *name,
                                 struct curl_slist **headers) {
    const char *text = getenv(name);
    if (!text)
        return rlhf_failf(host, RLHF_E_INVALID,
                          "header_env=%s: this environment variable is not set", name);
    if (!is_header(text))
        return rlhf_failf(host, RLHF_E_INVALID,
                          "header_env=%s: the variable's value is not a header of one line; "
                          "expected \"Name: value\"",
                          name);
    if (!t->tls && !t->loopback)
        rlhf_logf(host, RLHF_LOG_WARN,
                  "the header of header_env=%s is sent over http, where anyone on the network "
                  "path can read it",
                  name);
    return append(headers, host, text);
}

rlhf_status rlhf__target_init(struct rlhf__target *t, const rlhf_host *host,
                              const struct rlhf__http_options *o, struct curl_slist **headers) {
    memset(t, 0, sizeof *t);
    *headers = NULL;
    RLHF_TRY(check_form(host, o->url));
    RLHF_TRY(parse(t, host, o->url));
    if (o->ca || t->tls) RLHF_TRY(rlhf__certificates(host, o->ca, &t->ca));
    RLHF_TRY(append(headers, host, "Content-Type: application/json"));
    RLHF_TRY(append(headers, host, "Accept: application/json"));
    RLHF_TRY(append(headers, host, "Expect:")); // no wait before large requests
    return o->header_env ? secret_header(t, host, o->header_env, headers) : RLHF_OK;
}

void rlhf__target_finish(struct rlhf__target *t) {
    curl_url_cleanup(t->url);
    free(t->origin);
    memset(t, 0, sizeof *t);
}

// A worker without a network refuses every socket with EACCES.
rlhf_status rlhf__target_network(const rlhf_host *host) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int why = errno;
    if (fd >= 0) close(fd);
    if (fd >= 0 || (why != EACCES && why != EPERM)) return RLHF_OK;
    return host->fail(
        host, RLHF_E_INVALID,
        "it needs the network, which is closed to it in a worker; network=true opens it");
}
