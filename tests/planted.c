/* SPDX-License-Identifier: Apache-2.0
 *
 * planted.c: linked into dpgen with --wrap=verify_main: $PLANT is a command that changes the folder before it is proved, as a
 * bug of dpgen would; or an end that the proof may have: `status N`, `signal N`.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int __wrap_verify_main(int argc, char **argv);
int __real_verify_main(int argc, char **argv);

int __wrap_verify_main(int argc, char **argv)
{
    int n;
    const char *plant = getenv("PLANT");
    if (sscanf(plant, "status %d", &n) == 1)
        return n;
    if (sscanf(plant, "signal %d", &n) == 1)
        return signal(n, SIG_DFL), raise(n), 1;
    if (chdir(argv[argc - 1]) != 0 || system(plant) != 0)
        return 99;
    argv[argc - 1] = ".";
    return __real_verify_main(argc, argv);
}
