// evil.c: code that prints a message when it is opened; not a valid plugin.
#include <stdio.h>

__attribute__((constructor)) static void say(void) { fprintf(stderr, "EVIL code is running\n"); }
