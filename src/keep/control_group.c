/* The control group. See control_group.h and cgroups(7). */
#include "keep/control_group.h"

#include "base/text.h"
#include "os/os.h"
#include "options/tuning.h"

/* The new kind of groups is mounted at the first place; an old machine has a hierarchy for memory
 * alone (RHEL 8 by default, say): a process that is over its limit there is killed just so. */
static const char *const group_mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/memory"};

static const char *const machine_stall = "/proc/pressure/memory";

/* Containers of a cluster have paths of some 250 characters. */
#define PATH_MOST 512
#define NAME_MOST 32

/* memory.stat names the bytes of files within its first 2 KiB. A longer /proc/self/cgroup is cut.
 */
#define TEXT_MOST (4 * KIB)

typedef struct level {
    size_t length; /* of its path: the first characters of `folder` */
    uint64_t limit;
} level_t;

/* Callers come one at a time (control_group.h). */
static struct {
    bool is_v1;                        /* the group is in the hierarchy of an old machine */
    char folder[PATH_MOST];            /* path of the group of the process */
    level_t levels[LIMITS_LEVELS + 1]; /* groups with a limit: that of the process first, then
                                          those around it. One more for the root, where a
                                          container may see its own group */
    unsigned level_count;
    size_t stall_length;  /* of the path of the group that says how long tasks wait; 0: none does */
    char text[TEXT_MOST]; /* of the file that was read last */
} group_state SPARSE;

/* Appends `more` to the path at `place`, which has room for it, and a NUL. Returns the new length.
 */
static size_t path_append(char *place, size_t length, const char *more, size_t more_length)
{
    for (size_t at = 0; at < more_length; at++)
        place[length++] = more[at];
    place[length] = '\0';
    return length;
}

/* Reads the file `name` of the group whose path has that length. False: it cannot be read. */
static bool group_read(size_t length, const char *name)
{
    char path[PATH_MOST + NAME_MOST];
    size_t end = path_append(path, 0, group_state.folder, length);
    end = path_append(path, end, "/", 1);
    path_append(path, end, name, text_length(name));
    return os_read_file(path, group_state.text, sizeof group_state.text) != 0;
}

static uint64_t group_number(size_t length, const char *name)
{
    uint64_t number = LIMIT_NONE;
    const char *at = group_state.text;
    return group_read(length, name) && limits_parse_number(&at, &number) ? number : LIMIT_NONE;
}

static uint64_t group_limit(size_t length)
{
    if (group_state.is_v1)
        return group_number(length, "memory.limit_in_bytes");
    uint64_t hard = group_number(length, "memory.max");
    uint64_t soft = group_number(length, "memory.high");
    return soft < hard ? soft : hard;
}

static void group_scan_level(size_t length)
{
    uint64_t limit = group_limit(length);
    if (limit != LIMIT_NONE)
        group_state.levels[group_state.level_count++] = (level_t){length, limit};
    if (!group_state.is_v1 && group_state.stall_length == 0 &&
        group_read(length, "memory.pressure"))
        group_state.stall_length = length;
}

/* The length of the path of the group around; `least` is that of the mount. */
static size_t group_parent_length(size_t length, size_t least)
{
    while (length > least && group_state.folder[length - 1] != '/')
        length--;
    return length > least ? length - 1 : least;
}

void control_group_scan(void)
{
    group_name_t name;
    group_state.level_count = 0;
    group_state.stall_length = 0;
    if (os_read_file("/proc/self/cgroup", group_state.text, sizeof group_state.text) == 0 ||
        !limits_parse_group(group_state.text, &name))
        return;
    group_state.is_v1 = name.is_v1;
    size_t least = path_append(group_state.folder, 0, group_mounts[group_state.is_v1],
                               text_length(group_mounts[group_state.is_v1]));
    size_t length = least;
    if (name.length > 1 && least + name.length < PATH_MOST) /* more than "/" */
        length = path_append(group_state.folder, least, name.path, name.length);
    for (unsigned level = 0; level < LIMITS_LEVELS && length > least; level++) {
        group_scan_level(length);
        length = group_parent_length(length, least);
    }
    group_scan_level(least);
}

/* Bytes that count against the limit of the level, without memory that holds files: the kernel
 * takes this away before it refuses. The bytes of files are only read where they may matter, for
 * the kernel adds them up at each reading. LIMIT_NONE: the group is gone. */
static uint64_t group_used(const level_t *level, uint64_t promised)
{
    uint64_t used =
        group_number(level->length, group_state.is_v1 ? "memory.usage_in_bytes" : "memory.current");
    headroom_t alone = headroom_unlimited();
    if (used == LIMIT_NONE)
        return used;
    headroom_add(&alone, level->limit, used + promised);
    if (alone.pressure == PRESSURE_NONE)
        return used;
    uint64_t files = group_read(level->length, "memory.stat")
                         ? limits_parse_file_bytes(group_state.text, group_state.is_v1)
                         : 0;
    return used - (files < used ? files : used);
}

headroom_t control_group_headroom(uint64_t promised)
{
    headroom_t headroom = headroom_unlimited();
    for (unsigned index = 0; index < group_state.level_count; index++) {
        uint64_t used = group_used(&group_state.levels[index], promised);
        if (used != LIMIT_NONE)
            headroom_add(&headroom, group_state.levels[index].limit, used + promised);
    }
    return headroom;
}

unsigned control_group_stall(void)
{
    bool is_read =
        group_state.stall_length != 0
            ? group_read(group_state.stall_length, "memory.pressure")
            : os_read_file(machine_stall, group_state.text, sizeof group_state.text) != 0;
    return is_read ? limits_parse_stall(group_state.text) : 0;
}
