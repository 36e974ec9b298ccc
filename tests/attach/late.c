/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A program that knows nothing of UCX and opens an object that does, as interpreters and Open MPI open theirs:
 *
 *     late marked|plain OBJECT...
 *
 * Objects are found by plain names through this program's own search path. In each, UCX's addresses must bear UCI's mark, or
 * must not. Each object is closed again and opened a second time, at the same place in memory as a rule. Then two threads do
 * so at the same time.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OBJECTS_MAX = 8, ROUNDS = 300 };

static int look_into(void *object, const char *name, int wanted)
{
    int (*is_marked)(void) = (int (*)(void))dlsym(object, "is_marked");
    int marked             = is_marked();

    dlclose(object);
    if (marked != wanted) {
        fprintf(stderr, "%s: %s\n", name, (marked < 0) ? "UCX fails" : marked ? "marked" : "not marked");
    }
    return marked != wanted;
}

static void *open_object(const char *name)
{
    void *object = dlopen(name, RTLD_LAZY | RTLD_LOCAL);

    if (object == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return object;
}

static void *open_often(void *path)
{
    int i;

    for (i = 0; i < ROUNDS; ++i) {
        dlclose(open_object(path));
    }
    return NULL;
}

/* The loader has more than one lock */
static void open_in_two_threads(char *path, char *other_path)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, open_often, path) != 0) {
        fprintf(stderr, "no thread\n");
        exit(1);
    }
    open_often(other_path);
    pthread_join(thread, NULL);
}

/* By plain names before UCX is used: its own memory hooks get in between then, and do not know this program's path */
int main(int argc, char **argv)
{
    int wanted = (argc > 1) && (strcmp(argv[1], "marked") == 0), failed = 0, i;
    char paths[OBJECTS_MAX][4096];
    void *objects[OBJECTS_MAX];
    Dl_info info;

    if (argc < 3) {
        fprintf(stderr, "usage: late marked|plain OBJECT...\n");
        return 1;
    }
    for (i = 2; i < argc; ++i) {
        objects[i - 2] = open_object(argv[i]);
        dladdr(dlsym(objects[i - 2], "is_marked"), &info);
        snprintf(paths[i - 2], sizeof(paths[0]), "%s", info.dli_fname);
    }
    for (i = 2; i < argc; ++i) {
        failed += look_into(objects[i - 2], argv[i], wanted);
    }
    for (i = 2; i < argc; ++i) {
        failed += look_into(open_object(paths[i - 2]), argv[i], wanted);
    }
    open_in_two_threads(paths[0], paths[argc - 3]);
    return failed > 0;
}
