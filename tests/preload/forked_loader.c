/* Forks while another thread holds the lock of the dynamic loader, as one does that throws an
   exception. The child, which never gets that lock, writes a heap profile at its end. */
#include "check.h"

#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/wait.h>

static sem_t is_inside;
static sem_t may_leave;
static void *volatile kept;

static int stay(struct dl_phdr_info *info, size_t size, void *nothing)
{
    (void)info;
    (void)size;
    (void)nothing;
    check_eq(sem_post(&is_inside), 0);
    check_eq(sem_wait(&may_leave), 0);
    return 1;
}

static void *hold_lock(void *nothing)
{
    (void)dl_iterate_phdr(stay, nothing);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    int status = -1;
    check_eq(sem_init(&is_inside, 0, 0), 0);
    check_eq(sem_init(&may_leave, 0, 0), 0);
    for (unsigned index = 0; index < 1000; index++) kept = malloc(10000);
    check_eq(pthread_create(&thread, NULL, hold_lock, NULL), 0);
    check_eq(sem_wait(&is_inside), 0);
    const pid_t child = fork();
    check(child >= 0);
    if (child == 0) {
        (void)alarm(20);
        return 0; /* and write the profile */
    }
    check(waitpid(child, &status, 0) == child);
    check_eq(status, 0);
    check_eq(sem_post(&may_leave), 0);
    check_eq(pthread_join(thread, NULL), 0);
    return 0;
}
