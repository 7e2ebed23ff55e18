/* SPDX-License-Identifier: Apache-2.0
 *
 * sha256.h: SHA-256 as a state that can be copied: a hash over parameters of several stages travels between them.
 */
#ifndef SHA256_H
#define SHA256_H
#include <stddef.h>
#include <stdint.h>

typedef struct { uint32_t h[8]; uint64_t n; unsigned char block[64]; } Digest;
void digest_start(Digest *d);
void digest_add(Digest *d, const void *data, size_t n);
void digest_end(Digest *d, char hex[65]);
void digest_of(const void *data, size_t n, char hex[65]);       /* all three */
#endif
