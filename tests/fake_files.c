/* The files and the limits of the fake kernel: they read as the test says. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_os.h"

#define FILES 256

typedef struct fake_file {
    const char *path;
    const char *text;
    size_t reads;
} fake_file_t;

static fake_file_t files[FILES];
static size_t read_count;
static size_t data_limit = SIZE_MAX;
static bool address_space_may_grow = true;

/* The file at `path`, or the first free place. */
static fake_file_t *find(const char *path)
{
    fake_file_t *file = files;
    while (file < files + FILES && file->path != NULL && strcmp(file->path, path) != 0)
        file++;
    if (file == files + FILES) {
        (void)fprintf(stderr, "fake_os: too many files\n");
        abort();
    }
    return file;
}

void fake_os_set_file(const char *path, const char *text)
{
    fake_file_t *file = find(path);
    file->path = path;
    file->text = text;
}

size_t fake_os_file_reads(void)
{
    return read_count;
}

size_t fake_os_reads_of(const char *path)
{
    return find(path)->reads;
}

size_t os_read_file(const char *path, char *text, size_t room)
{
    fake_file_t *file = find(path);
    read_count++;
    file->reads += file->path != NULL;
    text[0] = '\0';
    if (file->text == NULL)
        return 0;
    size_t length = strlen(file->text);
    length = length < room ? length : room - 1;
    memcpy(text, file->text, length);
    text[length] = '\0';
    return length;
}

void fake_os_set_data_limit(size_t size)
{
    data_limit = size;
}

size_t os_data_limit(void)
{
    return data_limit;
}

/* Folders are those that a file is in. */
bool os_is_folder(const char *path)
{
    size_t length = strlen(path);
    for (fake_file_t *file = files; file < files + FILES && file->path != NULL; file++)
        if (file->text != NULL && strncmp(file->path, path, length) == 0 &&
            file->path[length] == '/')
            return true;
    return false;
}

/* No file can be created. All that are open are one. */
os_file_t os_look_at(int number)
{
    (void)number;
    return (os_file_t){.is_open = true};
}

bool os_appends(int number)
{
    (void)number;
    return false;
}

bool os_is_output(int number)
{
    (void)number;
    return false;
}

int os_create_file(const char *path)
{
    (void)path;
    return -EROFS;
}

int os_open_output(const char *path)
{
    return os_create_file(path);
}

bool os_write_file(int file, const void *bytes, size_t length)
{
    (void)file;
    (void)bytes;
    (void)length;
    return false;
}

void os_rewind_file(int file)
{
    (void)file;
}

void os_cut_file(int file, uint64_t length)
{
    (void)file;
    (void)length;
}

void os_close_file(int file)
{
    (void)file;
}

os_rights_t os_rights(void)
{
    return (os_rights_t){.group_count = 0};
}

void os_write(int file, const char *text, size_t length)
{
    while (length > 0) {
        ssize_t written = write(file, text, length);
        if (written <= 0)
            return;
        text += written;
        length -= (size_t)written;
    }
}

void fake_os_set_address_space_may_grow(bool may_grow)
{
    address_space_may_grow = may_grow;
}

bool os_address_space_may_grow(void)
{
    return address_space_may_grow;
}
