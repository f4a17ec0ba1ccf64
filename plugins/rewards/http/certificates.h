// certificates.h: which authorities may sign the certificate of a service.
#ifndef RLHF_REWARDS_HTTP_CERTIFICATES_H
#define RLHF_REWARDS_HTTP_CERTIFICATES_H

#include <rlhf/host.h>

// Sets *path to the PEM file of the authorities: `ca`, or the file of the environment variable
// SSL_CERT_FILE, or the first file that exists where a distribution keeps those of the system.
// Otherwise sets it to NULL, and libcurl's default applies. libcurl alone would search one place
// only, that of the distribution for which it was built. RLHF_E_INVALID: `ca` or the variable's
// file cannot be read. *path is `ca`, the variable's value or a literal. [main]
rlhf_status rlhf__certificates(const rlhf_host *, const char *ca, const char **path);

#endif
