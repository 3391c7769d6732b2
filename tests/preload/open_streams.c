/* Uses stdio and never closes COUNT streams: open_streams COUNT. One has the program's buffer. */
#include <stdio.h>
#include <stdlib.h>

static FILE *streams[100];
static char buffer[1000];

int main(int argc, char **argv)
{
    for (int i = 0; argc > 1 && i < atoi(argv[1]); i++) {
        streams[i] = fopen("/dev/null", "w");
        if (streams[i] == NULL) return 1;
        if (i == 0) setvbuf(streams[i], buffer, _IOFBF, sizeof buffer);
        fputs("text", streams[i]);
    }
    printf("%d\n", getchar());
    fputs("", stderr);
    return 0;
}
