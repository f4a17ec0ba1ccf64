// main.c: does nothing; the test is whether this links.
int main(void) { return 0; }
