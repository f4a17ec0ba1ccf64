// test_output.c: a rank that aborts first waits until the launcher has read its output.
#include "support/check.h"

#include "../../plugins/collectives/mpi_output.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct reader {
    int fd;
    atomic_int read; // number of bytes
};

// Reads 5 bytes, two at a time, after 50 ms each.
static void *slow_reader(void *arg) {
    struct reader *r = arg;
    const struct timespec nap = {0, 50000000};
    char text[2];
    ssize_t n;
    do {
        nanosleep(&nap, NULL);
        n = read(r->fd, text, r->read < 4 ? 2 : 1);
        r->read += n > 0 ? (int)n : 0;
    } while (n > 0 && r->read < 5);
    return NULL;
}

static void waits_for_reader(int in, int out) {
    pthread_t thread;
    struct reader reader = {.fd = out};
    assert_int_equal(write(in, "lines", 5), 5);
    assert_int_equal(pthread_create(&thread, NULL, slow_reader, &reader), 0);
    assert_int_equal(mpi_output_read(in, 60), 0);
    assert_true(reader.read >= 4); // the reader may not have counted its last byte yet
    pthread_join(thread, NULL);
}

static void waits_until_all_is_read(void **state) {
    (void)state;
    int fd[2];
    assert_int_equal(pipe(fd), 0);
    waits_for_reader(fd[1], fd[0]);
    close(fd[0]);
    close(fd[1]);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    waits_for_reader(fd[1], fd[0]);
    close(fd[0]);
    close(fd[1]);
}

static void waits_no_longer_than_the_limit(void **state) {
    (void)state;
    int fd[2];
    assert_int_equal(pipe(fd), 0);
    assert_int_equal(write(fd[1], "lines", 5), 5);
    assert_int_equal(mpi_output_read(fd[1], 0.05), 5);
    close(fd[0]); // a launcher that has ended
    assert_int_equal(mpi_output_read(fd[1], 0.05), 5);
    close(fd[1]);
}

static void does_not_wait_for_a_file(void **state) {
    (void)state;
    FILE *f = tmpfile();
    assert_non_null(f);
    assert_int_equal(write(fileno(f), "lines", 5), 5);
    assert_int_equal(lseek(fileno(f), 0, SEEK_SET), 0);
    assert_int_equal(mpi_output_read(fileno(f), 60), 0);
    fclose(f);
    assert_int_equal(mpi_output_read(-1, 60), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(waits_until_all_is_read),
                                       cmocka_unit_test(waits_no_longer_than_the_limit),
                                       cmocka_unit_test(does_not_wait_for_a_file)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
