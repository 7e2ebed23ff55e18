/* SPDX-License-Identifier: Apache-2.0
 *
 * main.c: the program; dpgen calls verify_main() as well.
 */
#include "verify.h"

int main(int argc, char **argv)
{
    return verify_main(argc, argv);
}
