// Behind two.h, and a noun of its own.
#include "a/two.h"
int two_more(int n) { return n + 1; }
