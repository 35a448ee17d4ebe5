/* The clock of a process, set forward or back while it runs: loaded by LD_PRELOAD (tests/soak/clocks.py).

   The file that OFFSET_CLOCK names holds nanoseconds (8 bytes, in the order of this machine). They are added to the time
   of day. Clocks that count from the start of the machine are as they are, as when an administrator sets a clock. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const int64_t SECOND = 1000000000;
static const int64_t zero = 0;
static volatile const int64_t *offset = &zero;

__attribute__((constructor)) static void begin(void)
{
    const char *name = getenv("OFFSET_CLOCK");
    int file = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *page = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (page != MAP_FAILED)
        offset = page;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    long failed = syscall(SYS_clock_gettime, clock, now);
    if (failed == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        int64_t whole = now->tv_sec * SECOND + now->tv_nsec + *offset;
        now->tv_sec = whole / SECOND;
        now->tv_nsec = whole % SECOND;
    }
    return failed ? -1 : 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec precise;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &precise) != 0)
        return -1;
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now)
{
    struct timespec precise;
    if (clock_gettime(CLOCK_REALTIME, &precise) != 0)
        return -1;
    if (now != NULL)
        *now = precise.tv_sec;
    return precise.tv_sec;
}
