// test_http_tls.c: http.so and certificates. `openssl s_server` accepts the connections and passes
// them to http_server.c. If `openssl` is missing, the tests are skipped.
#include "rewards/fixture.h"
#include "rewards/http_score.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct reward r;
static struct texts t;
static struct http_server *server;
static char dir[] = "/tmp/rlhf-test-XXXXXX";
static int there;

// A process of `openssl s_server`, its port and its certificate.
struct tls {
    const char *name, *address;
    pid_t pid;
    int port;
};
static struct tls own = {.name = "own", .address = "127.0.0.1"};
static struct tls elsewhere = {.name = "elsewhere", .address = "127.0.0.2"};

static void serve(void *context, const struct http_request *q, struct http_reply *reply) {
    (void)context;
    reply->body = http_score(q);
    if (!reply->body) reply->status = 400;
}

__attribute__((format(printf, 1, 2))) static int run(const char *fmt, ...) {
    char command[2048];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(command, sizeof command, fmt, ap);
    va_end(ap);
    return system(command);
}

// Makes a self-signed certificate for an address.
static int make_certificate(const char *name, const char *address) {
    return run(
        "openssl req -x509 -newkey rsa:2048 -nodes -keyout %s/%s.key -out %s/%s.pem -days 30 "
        "-subj /CN=test -addext subjectAltName=IP:%s >/dev/null 2>&1",
        dir, name, dir, name, address);
}

static int listens(int port) {
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                            .sin_port = htons((uint16_t)port)};
    union {
        struct sockaddr_in *in;
        struct sockaddr *any;
    } u = {&a};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    const int yes = connect(fd, u.any, sizeof a) == 0;
    close(fd);
    return yes;
}

// Starts `openssl s_server` between the port and a connection of our server. The connection is the
// standard input and output of `openssl s_server`.
static int start_tls(struct tls *s) {
    const struct timespec pause = {0, 20000000};
    int pair[2];
    char address[64], key[300], pem[300];
    if (make_certificate(s->name, s->address) != 0) return 0;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return 0;
    s->port = http_free_port();
    snprintf(address, sizeof address, "127.0.0.1:%d", s->port);
    snprintf(key, sizeof key, "%s/%s.key", dir, s->name);
    snprintf(pem, sizeof pem, "%s/%s.pem", dir, s->name);
    s->pid = fork();
    if (s->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(pair[1], 0);
        dup2(pair[1], 1);
        close(pair[0]);
        close(pair[1]);
        close(2); // it reports disconnecting clients as errors
        execlp("openssl", "openssl", "s_server", "-quiet", "-accept", address, "-key", key, "-cert",
               pem, (char *)NULL);
        _exit(127);
    }
    close(pair[1]);
    if (s->pid < 0 || !http_server_adopt(server, pair[0])) return 0;
    for (int i = 0; i < 3000; i++) {
        if (listens(s->port)) return 1;
        nanosleep(&pause, NULL);
    }
    return 0;
}

static int setup(void **state) {
    (void)state;
    unsetenv("SSL_CERT_FILE");
    unsetenv("https_proxy");
    unsetenv("HTTPS_PROXY");
    unsetenv("all_proxy");
    unsetenv("ALL_PROXY");
    there = run("openssl version >/dev/null 2>&1") == 0;
    if (!there) return 0;
    server = http_server_open(serve, NULL);
    if (!server || !mkdtemp(dir) || make_certificate("other", "127.0.0.1") != 0) return -1;
    return start_tls(&own) && start_tls(&elsewhere) ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    const pid_t all[] = {own.pid, elsewhere.pid};
    for (int i = 0; i < 2; i++) {
        if (all[i] <= 0) continue;
        kill(all[i], SIGKILL);
        waitpid(all[i], NULL, 0);
    }
    http_server_close(server);
    return there ? run("rm -rf %s", dir) : 0;
}

static rlhf_status try_with(const struct tls *s, const char *ca, const char *more) {
    char options[1024];
    const int n =
        snprintf(options, sizeof options, "url=https://127.0.0.1:%d/score%s", s->port, more);
    if (ca) snprintf(options + n, sizeof options - (size_t)n, ",ca=%s/%s", dir, ca);
    return reward_try(&r, "http.so", options);
}

static void one_row(void) {
    memset(&t, 0, sizeof t);
    texts_add(&t, "It was ", 7, "abc", 3);
}

static void a_known_authority(void **state) {
    (void)state;
    if (!there) skip();
    assert_int_equal(try_with(&own, "own.pem", ""), RLHF_OK);
    assert_false(rlhf_test_logged(&r.host, "does not answer yet"));
    one_row();
    if (texts_score(&r, &t, 0, 1) != RLHF_OK) fail_msg("%s", r.host.fail_text);
    assert_true(t.seq[0] == 3);
    reward_close(&r);
}

// Without the option `ca`, the variable SSL_CERT_FILE names the authorities. The option has
// precedence.
static void an_authority_of_the_environment(void **state) {
    (void)state;
    if (!there) skip();
    char path[300];
    snprintf(path, sizeof path, "%s/own.pem", dir);
    setenv("SSL_CERT_FILE", path, 1);
    assert_int_equal(try_with(&own, NULL, ""), RLHF_OK);
    reward_close(&r);
    assert_int_equal(try_with(&own, "other.pem", ""), RLHF_E_INVALID);
    setenv("SSL_CERT_FILE", "/nowhere.pem", 1);
    assert_int_equal(try_with(&own, "own.pem", ""), RLHF_OK);
    reward_close(&r);
    assert_int_equal(try_with(&own, NULL, ""), RLHF_E_INVALID);
    assert_string_equal(r.host.fail_text,
                        "SSL_CERT_FILE=/nowhere.pem cannot be read: No such file or directory");
    unsetenv("SSL_CERT_FILE");
}

// With `probe`, the certificate is refused before the first phase. With probe=false, it is refused
// at the first request.
static void a_certificate_that_is_refused(void **state) {
    (void)state;
    if (!there) skip();
    static const char *const files[] = {NULL, "other.pem"};
    for (int i = 0; i < 2; i++) {
        char says[128];
        snprintf(says, sizeof says,
                 "the certificate of https://127.0.0.1:%d is refused: ", own.port);
        assert_int_equal(try_with(&own, files[i], ""), RLHF_E_INVALID);
        if (!strstr(r.host.fail_text, says)) fail_msg("%s", r.host.fail_text);
        assert_int_equal(files[i] ? 0 : 1, strstr(r.host.fail_text, "(ca=FILE names") != NULL);
        assert_int_equal(r.host.live, 0);
        assert_int_equal(try_with(&own, files[i], ",probe=false"), RLHF_OK);
        one_row();
        assert_int_equal(texts_score(&r, &t, 0, 1), RLHF_E_IO);
        if (!strstr(r.host.fail_text, says)) fail_msg("%s", r.host.fail_text);
        reward_close(&r);
    }
}

// The server's certificate is for 127.0.0.2.
static void another_name(void **state) {
    (void)state;
    if (!there) skip();
    assert_int_equal(try_with(&elsewhere, "elsewhere.pem", ""), RLHF_E_INVALID);
    assert_non_null(strstr(r.host.fail_text, "is refused: "));
    assert_non_null(strstr(r.host.fail_text, "127.0.0.1"));
}

static void a_file_without_certificates(void **state) {
    (void)state;
    if (!there) skip();
    char path[300];
    snprintf(path, sizeof path, "%s/empty.pem", dir);
    fclose(fopen(path, "w"));
    assert_int_equal(try_with(&own, "empty.pem", ""), RLHF_E_INVALID);
    assert_non_null(strstr(r.host.fail_text, "is refused: "));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_known_authority),
        cmocka_unit_test(an_authority_of_the_environment),
        cmocka_unit_test(a_certificate_that_is_refused),
        cmocka_unit_test(another_name),
        cmocka_unit_test(a_file_without_certificates),
    };
    return cmocka_run_group_tests_name("http_tls", tests, setup, teardown);
}
