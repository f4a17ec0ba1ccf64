// option_rules.h: the rules of the contract for the option table of a plugin (rlhf/option.h).
#ifndef RLHF_HOST_PLUGIN_OPTION_RULES_H
#define RLHF_HOST_PLUGIN_OPTION_RULES_H

#include "option/options.h"

#include <rlhf/plugin.h>

// Read the option table of d into *out. Fails if the table cannot be read, or if an option breaks a
// rule: it is unsafe (rlhf__opts_check), it has a key that the host uses or may use later, a member
// or flag is set that does not apply to its type, a member has a value that it must not have, or it
// shares bytes of the config struct with another option. `host_keys` (ended by NULL) are the keys
// that the host uses; NULL: an option may have any key. Errors: RLHF_E_UNSUPPORTED; the message
// names the option. [main]
rlhf_status rlhf__option_rules_read(const rlhf_plugin *d, const char *const *host_keys,
                                    struct rlhf__opt_table *out, struct rlhf__error *err);

#endif
