/* SPDX-License-Identifier: Apache-2.0
 *
 * alone.c: dpgen-verify as a folder carries it: without libyaml, and so without the comparison with model.yaml.
 */
#include "verify.h"

int verify_main(int argc, char **argv)
{
    return verify_run(argc, argv, NULL);
}
