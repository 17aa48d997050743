// What objects that were compiled with the headers of a newer glibc and GCC call, in terms of glibc 2.28 and the libstdc++
// of GCC 8. `.ci/run wheels` links it into the libraries of a wheel: docs/decisions/018-wheels-of-one-machine.md.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <unwind.h>

#if defined(__x86_64__)
#define OLDEST "GLIBC_2.2.5"
#define NAMED "GLIBC_2.12"
#else
#define OLDEST "GLIBC_2.17"
#define NAMED OLDEST
#endif

// A function with a newer version, called by its older one. Those of threads moved from libpthread to libc.
#define OLDER(type, name, version, parameters, arguments) \
  __asm__(".symver old_" #name "," #name "@" version);    \
  type old_##name parameters;                             \
  type name parameters { return old_##name arguments; }

OLDER(int, pthread_mutex_trylock, OLDEST, (pthread_mutex_t* mutex), (mutex))
OLDER(int, pthread_once, OLDEST, (pthread_once_t* once, void (*function)(void)), (once, function))
OLDER(int, pthread_setname_np, NAMED, (pthread_t thread, const char* name), (thread, name))
OLDER(int, pthread_sigmask, OLDEST, (int how, const sigset_t* restrict set, sigset_t* restrict old), (how, set, old))
// std::condition_variable::wait
OLDER(void, _ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE, "GLIBCXX_3.4.11", (void* self, void* lock),
      (self, lock))

// glibc 2.30. A change of the wall clock changes the length of the wait.
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const struct timespec* end) {
  const long second = 1000000000;
  struct timespec now;
  struct timespec wall;
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &wall);
  const long nanoseconds = second + end->tv_nsec - now.tv_nsec + wall.tv_nsec;  // from 0 to 3 seconds
  wall.tv_sec += end->tv_sec - now.tv_sec - 1 + nanoseconds / second;
  wall.tv_nsec = nanoseconds % second;
  return pthread_cond_timedwait(condition, mutex, &wall);
}

// glibc 2.32. The reference counts of std::shared_ptr are then always atomic.
char __libc_single_threaded = 0;

// glibc 2.33. The structure is that of the kernel on x86-64 and aarch64.
int stat(const char* restrict path, struct stat* restrict status) {
  return (int)syscall(SYS_newfstatat, AT_FDCWD, path, status, 0);
}

int fstat(int fd, struct stat* status) { return (int)syscall(SYS_fstat, fd, status); }

// GCC 11: the halves of the copy constructor and the destructor of std::exception_ptr. They must not call these two,
// because headers of GCC 11 define both by the halves. The second constructor takes a reference, too; the exception's
// own cleanup gives one back.
void copy_exception(void** self, void* exception) __asm__("_ZNSt15__exception_ptr13exception_ptrC1EPv");
void add_reference(void** self) __asm__("_ZNSt15__exception_ptr13exception_ptr9_M_addrefEv");
void release(void** self) __asm__("_ZNSt15__exception_ptr13exception_ptr10_M_releaseEv");

void add_reference(void** self) {
  void* kept;  // never destroyed
  copy_exception(&kept, *self);
}

void release(void** self) {
  _Unwind_DeleteException((struct _Unwind_Exception*)*self - 1);  // directly before the object, says the C++ ABI
  *self = NULL;
}

// GCC 11: std::__throw_bad_array_new_length
void __cxa_throw_bad_array_new_length(void) __attribute__((noreturn));
void throw_length(void) __asm__("_ZSt28__throw_bad_array_new_lengthv");
void throw_length(void) { __cxa_throw_bad_array_new_length(); }
