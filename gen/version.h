/* SPDX-License-Identifier: Apache-2.0
 *
 * version.h: the one place of the version; the Makefile reads it, too.
 */
#define DPGEN_VERSION "0.3.0"
