/* SPDX-License-Identifier: Apache-2.0
 *
 * replay.c: a fuzz target without a fuzzer: each file is one input.  What readers say goes nowhere; sanitizers end the process.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int main(int argc, char **argv)
{
    FILE *said = freopen("/dev/null", "w", stderr);
    for (int i = 1; i < argc && said; i++) {
        FILE *f = fopen(argv[i], "rb");
        if (!f)
            return 2;
        fseek(f, 0, SEEK_END);
        size_t n = (size_t)ftell(f);
        rewind(f);
        uint8_t *data = malloc(n + !n);     /* of this size, so that a sanitizer sees a read behind the end */
        if (!data || fread(data, 1, n, f) != n)
            return 2;
        fclose(f);
        printf("%s\n", argv[i]);
        fflush(stdout);
        LLVMFuzzerTestOneInput(data, n);
        free(data);
    }
    printf("%d inputs\n", argc - 1);
    return 0;
}
