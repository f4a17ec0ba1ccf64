// main.c: nothing; the link is the test.
int main(void) { return 0; }
