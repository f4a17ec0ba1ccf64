// evil.c: code that says so as soon as it is opened; no plugin of any kind.
#include <stdio.h>

__attribute__((constructor)) static void say(void) { fprintf(stderr, "EVIL code is running\n"); }
