// certificates.c: see certificates.h.
#include "http/certificates.h"

#include <errno.h>
#include <rlhf/log.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const of_the_system[] = {
    "/etc/ssl/certs/ca-certificates.crt", // Debian, Ubuntu, Arch
    "/etc/pki/tls/certs/ca-bundle.crt",   // Fedora, Red Hat
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem", // SUSE
    "/etc/ssl/cert.pem",      // Alpine
};

rlhf_status rlhf__certificates(const rlhf_host *host, const char *ca, const char **path) {
    const char *variable = getenv("SSL_CERT_FILE");
    const char *given = ca ? ca : variable && *variable ? variable : NULL;
    *path = given;
    if (given && access(given, R_OK) != 0)
        return rlhf_failf(host, RLHF_E_INVALID, "%s=%s cannot be read: %s",
                          ca ? "ca" : "SSL_CERT_FILE", given, strerror(errno));
    for (size_t i = 0; !*path && i < sizeof of_the_system / sizeof *of_the_system; i++)
        if (access(of_the_system[i], R_OK) == 0) *path = of_the_system[i];
    return RLHF_OK;
}
