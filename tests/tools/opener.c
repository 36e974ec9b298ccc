/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A program that is linked with no MPI and opens one, as Python does with mpi4py: with an object, out of the global scope
 *
 *     opener OBJECT ARGUMENT...    OBJECT has main()
 */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    void *object = (argc > 1) ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    int (*run)(int, char **);

    if (object == NULL) {
        fprintf(stderr, "%s\n", (argc > 1) ? dlerror() : "which object?");
        return 2;
    }
    run = (int (*)(int, char **))dlsym(object, "main");
    return run(argc - 1, argv + 1);
}
