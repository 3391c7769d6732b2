/* Runs a fuzzer's inputs without the fuzzer: replay FILE-OR-FOLDER... So every build of every
   compiler repeats what was found, and a crash can be looked at in a debugger. */
#include "check.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t input[1 << 20];
static size_t input_count;

static void replay_file(const char *path)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    check(file >= 0);
    size_t length = 0;
    ssize_t got;
    while ((got = read(file, input + length, sizeof input - length)) > 0) length += (size_t)got;
    (void)close(file);
    (void)printf("%s\n", path);
    (void)fflush(stdout);
    (void)LLVMFuzzerTestOneInput(input, length);
    input_count++;
}

static void replay_folder(const char *path)
{
    DIR *folder = opendir(path);
    check(folder != NULL);
    const struct dirent *entry;
    while ((entry = readdir(folder)) != NULL) {
        char name[4096];
        if (entry->d_name[0] == '.') continue;
        (void)snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        replay_file(name);
    }
    (void)closedir(folder);
}

int main(int argc, char **argv)
{
    struct stat status;
    for (int i = 1; i < argc; i++) {
        check_eq(stat(argv[i], &status), 0);
        if (S_ISDIR(status.st_mode)) {
            replay_folder(argv[i]);
        } else {
            replay_file(argv[i]);
        }
    }
    check(input_count > 0);
    (void)printf("%zu inputs replayed\n", input_count);
    return 0;
}
